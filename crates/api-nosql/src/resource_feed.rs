//! Feeds of databases, containers, offers, users, permissions, scripts and ranges: all of them, page by page, or
//! those that a query selects.
//!
//! The whole list is in memory, so a page is a slice of it. Entries are ordered by their number, which is the order of
//! creation and never changes; the continuation is the number of the last entry of the page, so entries that come or
//! go between two pages disturb nothing.

use http::StatusCode;
use orrery_engine::charge::catalog::READ_RU;

use crate::errors::{ApiError, CONTINUATION_INVALID, Result};
use crate::headers::{self, Answer};
use crate::paging::page_items;
use crate::query;
use crate::service::Context;
use crate::write::{push_json_string, push_u64};

/// One resource of a feed.
pub struct Entry {
    pub number: u32,
    pub json: Vec<u8>,
}

/// What a feed of resources is made of. `key` is the member that holds them, `rid` their owner's.
pub struct Feed<'a> {
    pub key: &'static str,
    pub rid: &'a str,
    /// In the order of their numbers.
    pub entries: Vec<Entry>,
}

impl Feed<'_> {
    pub fn list(self, context: &Context<'_>) -> Result<Answer> {
        let after = position(context)?;
        let rows = self.entries.into_iter().filter(|entry| after.is_none_or(|after| entry.number > after));
        page(context, self.key, self.rid, rows.map(|entry| (entry.number, entry.json)).collect())
    }

    pub fn query(self, context: &Context<'_>) -> Result<Answer> {
        let after = position(context)?;
        let selected = query::resources::select(context, self.entries)?;
        // Rows of a query have no numbers of their own: their places in the result stand in.
        let rows = selected.into_iter().enumerate().map(|(place, json)| (place as u32 + 1, json));
        let rows = rows.filter(|(place, _)| after.is_none_or(|after| *place > after)).collect();
        page(context, self.key, self.rid, rows)
    }
}

/// A page of a long feed, of which only what the page needs is written: `entries` gives those after a number, at most
/// so many.
pub fn list_after(
    context: &Context<'_>,
    key: &str,
    rid: &str,
    entries: impl FnOnce(u32, usize) -> Vec<Entry>,
) -> Result<Answer> {
    let after = position(context)?.unwrap_or(0);
    // One more tells whether there is another page.
    let entries = entries(after, page_items(context)?.saturating_add(1));
    page(context, key, rid, entries.into_iter().map(|entry| (entry.number, entry.json)).collect())
}

fn page(context: &Context<'_>, key: &str, rid: &str, mut rows: Vec<(u32, Vec<u8>)>) -> Result<Answer> {
    let size = page_items(context)?;
    let more = rows.len() > size;
    rows.truncate(size);
    let mut answer = context
        .answer(StatusCode::OK)
        .at(context.catalog_at())
        .charge(READ_RU)
        .count(rows.len())
        .body(envelope(key, rid, rows.iter().map(|(_, json)| json.as_slice())));
    if more && let Some((last, _)) = rows.last() {
        answer = answer.set(headers::CONTINUATION, continuation(*last));
    }
    Ok(answer)
}

/// `{"_rid":…,"<Key>":[…],"_count":n}`
pub fn envelope<'j>(key: &str, rid: &str, rows: impl Iterator<Item = &'j [u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    open_envelope(&mut out, key, rid);
    let mut count = 0;
    for row in rows {
        if count > 0 {
            out.push(b',');
        }
        out.extend_from_slice(row);
        count += 1;
    }
    close_envelope(&mut out, count);
    out
}

pub fn open_envelope(out: &mut Vec<u8>, key: &str, rid: &str) {
    out.extend_from_slice(b"{\"_rid\":");
    push_json_string(out, rid);
    out.push(b',');
    push_json_string(out, key);
    out.extend_from_slice(b":[");
}

pub fn close_envelope(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(b"],\"_count\":");
    push_u64(out, count as u64);
    out.push(b'}');
}

const CONTINUATION_PREFIX: &str = "+RID:~#N:";

fn continuation(last: u32) -> http::HeaderValue {
    headers::text_value(&format!("{CONTINUATION_PREFIX}{last}"))
}

fn position(context: &Context<'_>) -> Result<Option<u32>> {
    let Some(token) = context.text(headers::CONTINUATION).filter(|token| !token.is_empty()) else {
        return Ok(None);
    };
    match token.strip_prefix(CONTINUATION_PREFIX).and_then(|number| number.parse().ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(ApiError::refused(CONTINUATION_INVALID)),
    }
}
