//! The conflicts feed. One region has no conflicting writes, so the feed is empty and every conflict is missing; the
//! container has to exist all the same.

use http::{HeaderValue, StatusCode};
use orrery_engine::Error;

use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer, At};
use crate::query::items::CROSS_PARTITION_DISABLED;
use crate::resource_feed::{Feed, envelope};
use crate::service::Context;

const NONE: HeaderValue = HeaderValue::from_static("conflicts=0;");

pub fn list(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    Ok(context
        .answer(StatusCode::OK)
        .at(At::container(context.catalog_at().lsn))
        .owner(target.alt_path(), target.rid.as_str())
        .charge(1.0)
        .count(0)
        .set(headers::RESOURCE_QUOTA, NONE)
        .set(headers::RESOURCE_USAGE, NONE)
        .body(envelope("Conflicts", target.rid.as_str(), std::iter::empty())))
}

/// A query over nothing; it is still held to the language, and must say where it looks.
pub fn query(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let pinned =
        [headers::PARTITION_KEY, headers::RANGE_ID].into_iter().any(|name| context.text(name).is_some());
    if !pinned && !context.flag(headers::ENABLE_CROSS_PARTITION) {
        return Err(ApiError::refused(CROSS_PARTITION_DISABLED));
    }
    Feed { key: "Conflicts", rid: target.rid.as_str(), entries: Vec::new() }.query(context)
}

pub fn missing(context: &Context<'_>) -> Result<Answer> {
    context.container_inside()?;
    Err(ApiError::from_engine(Error::not_found(), Plane::Items).charge(1.0))
}
