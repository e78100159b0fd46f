//! Which part of a container a request is about: a partition key, a range, a span of the hash space, or everything.
//!
//! This is also where the limits of a resource token meet the request: what leaves this file lies within them.

use http::StatusCode;
use http::header::USER_AGENT;
use orrery_engine::{Error, Kind, Scope};
use orrery_model::{Epk, PartitionKey};

use crate::errors::{ApiError, Plane, Result};
use crate::headers::{CUSTOM_USER_AGENT, END_EPK, PARTITION_KEY, RANGE_ID, READ_KEY_TYPE, START_EPK};
use crate::service::{Context, Target};

const JAVASCRIPT_SDK: &str = "azure-cosmos-js/";
const RANGE_KEY_TYPE: &str = "EffectivePartitionKeyRange";

/// The key of an item request. Without the header it is `[]`, which only a container without a key of its own accepts.
pub fn key(context: &Context<'_>) -> Result<PartitionKey> {
    let key = header_key(context)?;
    context.limits.permits_key(&key)?;
    Ok(key)
}

/// The same, not yet compared with the caller's limits: for batches, whose operations may have keys of their own.
pub fn header_key(context: &Context<'_>) -> Result<PartitionKey> {
    match context.text(PARTITION_KEY) {
        None => Ok(PartitionKey::default()),
        Some(text) => parse_key(text),
    }
}

pub fn parse_key(text: &str) -> Result<PartitionKey> {
    PartitionKey::parse_header(text)
        .map_err(|_| ApiError::bad_request(format!("Partition key {text} is invalid.")))
}

/// The scope of a feed, a query or a change feed.
pub fn of_request(context: &Context<'_>, target: &Target) -> Result<Scope> {
    let scope = asked_for(context, target)?;
    let within = context.limits.scope(&target.container, scope);
    within.map_err(|error| ApiError::from_engine(error, Plane::Items))
}

fn asked_for(context: &Context<'_>, target: &Target) -> Result<Scope> {
    let range = context.text(RANGE_ID).map(range_id).transpose()?;
    if let (Some(start), Some(end)) = (context.text(START_EPK), context.text(END_EPK)) {
        let kind = context.text(READ_KEY_TYPE).unwrap_or("");
        if !kind.eq_ignore_ascii_case(RANGE_KEY_TYPE) {
            return Err(ApiError::bad_request(format!(
                "A span of effective partition keys needs the header x-ms-read-key-type: {RANGE_KEY_TYPE}."
            )));
        }
        return Ok(Scope::Epk { min: epk(start)?, max: epk(end)?, range });
    }
    if let Some(text) = context.text(PARTITION_KEY) {
        let key = parse_key(text)?;
        // `[]` is the key of everything in a container without a key, and the prefix of everything elsewhere.
        if !key.0.is_empty() {
            // Checked here, so that a key of the wrong length is an error of its own and not an empty answer.
            target.container.span(&key).map_err(|error| ApiError::from_engine(error, Plane::Items))?;
            return Ok(Scope::Key(key));
        }
    }
    Ok(range.map_or(Scope::All, Scope::Range))
}

/// Runs a request, and again by the new map when a partition went away under it.
pub fn routed<T>(target: &Target, scope: &Scope, run: impl FnMut() -> Result<T>) -> Result<T> {
    target.container.routed(scope, ApiError::is_range_gone, run)
}

/// The same for a query, by the scope that it now has.
///
/// A client that names a range which has gone is told so, reads the map again and asks the ranges that have taken over.
/// One SDK never does: it keeps the refusal as if it were a row, asks again at once, and does not stop. Its queries
/// are answered from the part of the hash space that the range was.
pub fn routed_query<T>(
    context: &Context<'_>,
    target: &Target,
    scope: &Scope,
    mut run: impl FnMut(&Scope) -> Result<T>,
) -> Result<T> {
    if !asks_for_ever(context) {
        return routed(target, scope, || run(scope));
    }
    // Any scope that names no range: the map is looked at before every run.
    routed(target, &Scope::All, || run(&target.container.taken_over(scope)))
}

/// Whether ranges that have taken over answer for the one that the request names.
pub fn is_stand_in(context: &Context<'_>, scope: &Scope) -> bool {
    matches!(scope, Scope::Epk { range: None, .. }) && context.text(RANGE_ID).is_some()
}

/// Queries of the JavaScript SDK, up to 4.10.1 at least.
fn asks_for_ever(context: &Context<'_>) -> bool {
    // Browsers send their own name in the usual header, so the SDK has another for its name.
    [USER_AGENT, CUSTOM_USER_AGENT]
        .into_iter()
        .any(|header| context.text(header).is_some_and(|name| name.contains(JAVASCRIPT_SDK)))
}

/// The number of a range; some clients put the container's rid and a comma before it.
pub fn range_id(text: &str) -> Result<u32> {
    let number = text.rsplit(',').next().unwrap_or(text).trim();
    number.parse().map_err(|_| {
        let gone = Error::new(Kind::RangeGone, format!("The partition key range '{number}' does not exist."));
        ApiError::from_engine(gone, Plane::Items)
    })
}

fn epk(text: &str) -> Result<Epk> {
    Epk::from_hex(text).map_err(|_| {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            crate::errors::Voice::Partition,
            format!("The effective partition key '{text}' is not hexadecimal text."),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_number_with_or_without_its_container() {
        assert_eq!(range_id("3").unwrap(), 3);
        assert_eq!(range_id("AAAAAYAAAAI=,12").unwrap(), 12);
        let error = range_id("x").unwrap_err();
        assert_eq!((error.status.as_u16(), error.substatus), (410, 1002));
    }

    #[test]
    fn a_key_that_is_no_key_is_named_in_the_error() {
        assert_eq!(parse_key(r#"["a"]"#).unwrap().0.len(), 1);
        let error = parse_key("[[]]").unwrap_err();
        assert_eq!((error.status.as_u16(), error.message.as_str()), (400, "Partition key [[]] is invalid."));
    }
}
