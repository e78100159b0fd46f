//! How a request is weighed against the throughput: its class by its headers, and the pages of feeds and queries.
//!
//! Items and batches are admitted and charged by the engine, which knows their partition. A page may cross partitions:
//! it is admitted by the one it begins in, and charged to the one its answer names.

use orrery_engine::{RequestClass, Scope};
use orrery_model::PartitionKey;

use crate::config::ConsistencyLevel;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer};
use crate::service::{Context, Target};
use crate::{consistency, items, scope};

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
    let reads_twice = consistency::level(context)? >= ConsistencyLevel::BoundedStaleness;
    Ok(RequestClass { low_priority, bucket, reads_twice })
}

const BUCKETS_MAX: u8 = orrery_engine::throughput::BUCKETS_MAX as u8;

fn invalid(header: &str, text: &str) -> ApiError {
    ApiError::refused(format!("The value '{text}' specified for the header '{header}' is invalid."))
}

/// Lets a page in where it begins.
pub fn admit(context: &Context<'_>, target: &Target, scope: &Scope) -> Result<RequestClass> {
    let class = class(context)?;
    target.container.admit_page(scope, None, class).map_err(|error| {
        ApiError::from_engine(error, Plane::Items).at(items::place(target, &PartitionKey::default()))
    })?;
    Ok(class)
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

/// A query's page: admitted, run, and charged for whatever came out.
pub fn query(context: &Context<'_>, run: impl FnOnce() -> Result<Answer>) -> Result<Answer> {
    let target = context.container_inside()?;
    let scope = scope::of_request(context, &target)?;
    let class = admit(context, &target, &scope)?;
    let outcome = run();
    match outcome {
        Ok(answer) => {
            let charge_ru = class.read_charge(answer.charge_ru);
            charge(&target, &scope, class, answer.range, charge_ru);
            Ok(if class.reads_twice { answer.charge(charge_ru) } else { answer })
        }
        Err(error) => {
            if let (Some(charge_ru), Some(at)) = (error.charge_ru, error.at) {
                charge(&target, &scope, class, at.range, charge_ru);
            }
            Err(error)
        }
    }
}
