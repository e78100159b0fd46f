//! How a request is weighed against the throughput: its class by its headers.
//!
//! The engine admits and charges, which knows the partitions that a request turns to.

use crate::consistency;
use crate::errors::{ApiError, Result};
use crate::headers;
use crate::service::Context;
use orrery_engine::RequestClass;

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
    // A client of the direct protocol asks two replicas by itself, and adds up what both charge.
    let reads_twice = consistency::level(context)?.reads_twice() && context.direct.is_none();
    Ok(RequestClass { low_priority, bucket, reads_twice })
}

const BUCKETS_MAX: u8 = orrery_engine::throughput::BUCKETS_MAX as u8;

fn invalid(header: &str, text: &str) -> ApiError {
    ApiError::refused(format!("The value '{text}' specified for the header '{header}' is invalid."))
}
