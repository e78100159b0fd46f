//! Item feeds: all items of a container, a range, a span or a key, page by page.

use http::StatusCode;
use orrery_engine::{FeedContinuation, FeedPage, PageRequest, RequestClass, Scope, block_on};

use crate::continuation;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{Answer, CONTINUATION};
use crate::item_json::{size_hint, write_item};
use crate::items;
use crate::paging::{self, PAGE_BYTES_MAX, page_items};
use crate::resource_feed::{close_envelope, open_envelope};
use crate::service::{Context, Target};
use crate::{consistency, request_class, scope};

/// A page of one logical partition that is not likely to hold more than this is read in place.
const SHORT_BYTES: u64 = 256 * 1024;

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let scope = scope::of_request(context, &target)?;
    let position = match continuation::of_request(context, &target.rid, !matches!(scope, Scope::All))? {
        None => None,
        Some(bytes) => Some(FeedContinuation::decode(&bytes).ok_or_else(continuation::invalid)?),
    };
    let page = PageRequest {
        max_items: page_items(context)?,
        max_bytes: PAGE_BYTES_MAX,
        continuation: position,
        session: consistency::session(context)?,
        class: request_class::class(context)?,
    };
    let read = || {
        let found = block_on(target.container.read_feed(&scope, &page)).map_err(|error| {
            ApiError::from_engine(error, Plane::Items).at(items::place(&target, &Default::default()))
        })?;
        answer(context, &target, page.class, &found)
    };
    if is_short(&target, &scope, page.max_items) { read() } else { context.lengthy(read) }
}

/// Whether a page is likely to be read in less time than it takes to hand it over: of one logical partition, and
/// small if its items are not much larger than others.
fn is_short(target: &Target, scope: &Scope, items_max: usize) -> bool {
    let (Scope::Key(_), Some(item_bytes)) = (scope, target.container.item_bytes_about(scope)) else {
        return false;
    };
    (items_max as u64).saturating_mul(item_bytes) <= SHORT_BYTES
}

fn answer(context: &Context<'_>, target: &Target, class: RequestClass, page: &FeedPage) -> Result<Answer> {
    let size: usize = page.items.iter().map(size_hint).sum();
    let _held = paging::hold(context, 2 * size)?;
    let mut out = Vec::with_capacity(size + 64);
    open_envelope(&mut out, "Documents", target.rid.as_str());
    for (n, item) in page.items.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        write_item(&mut out, &target.rid, item);
    }
    close_envelope(&mut out, page.items.len());
    let charge_ru = class.read_charge(page.charge_ru);
    let mut answer = items::answer(context, target, StatusCode::OK, items::at(page.at), charge_ru)
        .count(page.items.len())
        .body(out);
    if let Some(next) = &page.continuation {
        answer = answer.set(CONTINUATION, continuation::header(&target.rid, &next.encode()));
    }
    Ok(answer)
}
