//! How much one page may hold, as the client asks for it and as the server allows it.

use orrery_budget::Held;

use crate::errors::{ApiError, Result};
use crate::headers::MAX_ITEM_COUNT;
use crate::service::Context;

/// The page of a client that names no size, or 0.
pub const PAGE_ITEMS_DEFAULT: usize = 1_000;
/// The largest page in items, also for a client that leaves the size to the server with -1.
pub const PAGE_ITEMS_MAX: usize = orrery_engine::PAGE_ITEMS_MAX;
/// A page ends after the item that crosses this size.
pub const PAGE_BYTES_MAX: usize = orrery_engine::PAGE_BYTES_DEFAULT;

pub fn page_items(context: &Context<'_>) -> Result<usize> {
    let Some(text) = context.text(MAX_ITEM_COUNT) else {
        return Ok(PAGE_ITEMS_DEFAULT);
    };
    match text.trim().parse::<i64>() {
        Ok(-1) => Ok(PAGE_ITEMS_MAX),
        Ok(0) => Ok(PAGE_ITEMS_DEFAULT),
        Ok(wanted) if wanted > 0 => Ok(usize::try_from(wanted).unwrap_or(PAGE_ITEMS_MAX).min(PAGE_ITEMS_MAX)),
        _ => Err(ApiError::refused(format!(
            "The input PageSize {text} is invalid. Ensure to pass a valid page size which must be a positive integer or -1 for a dynamic page size."
        ))),
    }
}

/// Less than this is not worth asking for.
const FREE_BYTES: usize = 64 * 1024;

/// Charges the request with a page while it is made.
pub fn hold(context: &Context<'_>, bytes: usize) -> Result<Option<Held>> {
    Ok(if bytes > FREE_BYTES { Some(context.budget.hold(bytes)?) } else { None })
}
