//! How a request is weighed against the throughput: its class by its headers, and the pages of feeds and queries.
//!
//! Items, batches and lists are admitted and charged by the engine, which knows their partitions. Queries and change feeds
//! are admitted by every partition they turn to and charged to each for its own part.

use crate::consistency;
use crate::errors::{ApiError, Plane, Result};
use crate::service::{Context, Target};
use crate::{headers, items};
use orrery_engine::{Error as EngineError, RequestClass, Scope};

/// The class that the headers of a request give it.
pub fn class(context: &Context<'_>) -> Result<RequestClass> {
    let low_priority = match context.text(headers::PRIORITY_LEVEL) {
        None => false,
        Some(text) if text.eq_ignore_ascii_case("high") => false,
        Some(text) if text.eq_ignore_ascii_case("low") => true,
        Some(text) => return Err(invalid("x-ms-cosmos-priority-level", text)),
    };
    let bucket = match context.text(headers::THROUGHPUT_BUCKET) {
        None => None,
        Some(text) => match text.trim().parse() {
            Ok(number @ 1..=BUCKETS_MAX) => Some(number),
            _ => return Err(invalid("x-ms-cosmos-throughput-bucket", text)),
        },
    };
    let reads_twice = consistency::level(context)?.reads_twice();
    Ok(RequestClass { low_priority, bucket, reads_twice })
}

const BUCKETS_MAX: u8 = orrery_engine::throughput::BUCKETS_MAX as u8;

fn invalid(header: &str, text: &str) -> ApiError {
    ApiError::refused(format!("The value '{text}' specified for the header '{header}' is invalid."))
}

/// Lets a page in at one of its partitions.
pub fn admit_range(target: &Target, range: u32, class: RequestClass) -> Result<()> {
    let refused = |error: EngineError| {
        let at = items::at(error.at.unwrap_or_default());
        ApiError::from_engine(error, Plane::Items).at(at)
    };
    target.container.admit_page(range, class).map_err(refused)
}

/// Charges a page to the partition that its answer names.
pub fn charge(target: &Target, scope: &Scope, class: RequestClass, range: Option<u32>, charge_ru: f64) {
    let key = match scope {
        Scope::Key(key) => Some(key),
        _ => None,
    };
    if let Some(range) = range {
        target.container.charge_page(range, class, charge_ru, key);
    }
}
