//! One share after the other, counting rows for TOP and OFFSET LIMIT across them.
//!
//! A share is never asked for more rows than the page still has room for, so the position at which it stops is the
//! position at which the next page goes on. Pages that were read ahead for the sake of speed and did not fit are
//! forgotten and asked for again.
//!
//! Where shares are taken one by one, a page with rows also ends where its share does. Shares that have no rows are
//! passed over in the same page.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Ask, MergeError, MergePosition, PageResult, PageSize, SharePage, Shares};
use crate::output::Rows;
use crate::prepared::{Prepared, QueryShape};

/// Which rows, counted over all shares.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    pub offset: u64,
    /// Rows that count at all, the skipped ones included.
    pub end: Option<u64>,
    /// Whether a page ends where a share has given its last row.
    pub one_by_one: bool,
}

impl Window {
    pub fn of(shape: &QueryShape) -> Window {
        let offset = shape.offset.unwrap_or(0);
        let limit = match (shape.top, shape.limit) {
            (Some(top), Some(limit)) => Some(top.min(limit)),
            (top, limit) => top.or(limit),
        };
        let end = limit.map(|limit| offset.saturating_add(limit));
        Window { offset, end, one_by_one: false }
    }

    /// The same, with pages that end where shares do if no row is counted: what is counted goes on across shares.
    pub fn one_by_one(self, wanted: bool) -> Window {
        Window { one_by_one: wanted && self.offset == 0 && self.end.is_none(), ..self }
    }

    pub fn is_over(&self, passed: u64) -> bool {
        self.end.is_some_and(|end| passed >= end)
    }
}

pub fn page<S: Shares>(
    query: &Arc<Prepared>,
    window: Window,
    shares: &mut S,
    start: Option<MergePosition>,
    size: PageSize,
) -> PageResult<S::Error> {
    let (mut share, mut inner, mut passed) = match start {
        None => (0, None, 0),
        Some(MergePosition::Chain { share, inner, passed }) => (share, inner, passed),
        Some(_) => return Err(MergeError::Foreign),
    };
    // The rows of the first page are taken over as they are.
    let mut out = Rows::default();
    let mut ahead: VecDeque<SharePage> = VecDeque::new();
    let first = share;
    while share < shares.count() {
        if window.is_over(passed) {
            return Ok((out, None));
        }
        if size.is_reached(&out) {
            return Ok((out, Some(MergePosition::Chain { share, inner, passed })));
        }
        let wanted = wanted(window, passed, size.rows - out.len());
        let mut page = match ahead.pop_front() {
            Some(page) if page.rows.len() <= wanted => page,
            _ => {
                ahead.clear();
                // A page that ends with its share has no use for others, unless the first is empty.
                let at_once =
                    if window.one_by_one && share == first { 1 } else { shares.read_ahead().max(1) };
                let last = shares.count().min(share + at_once);
                let asks: Vec<Ask<'_>> = (share..last)
                    .map(|at| {
                        let from = if at == share { inner.as_deref() } else { None };
                        Ask { share: at, query, from, after: None, rows: wanted }
                    })
                    .collect();
                match shares.pages(&asks) {
                    Ok(pages) => ahead.extend(pages),
                    Err(error) if !out.is_empty() && S::may_wait(&error) => {
                        return Ok((out, Some(MergePosition::Chain { share, inner, passed })));
                    }
                    Err(error) => return Err(error.into()),
                }
                ahead.pop_front().unwrap_or_default()
            }
        };
        shares.used(share, &page);
        let stopped = page.rows.is_empty() && page.next.is_some();
        if out.is_empty() && passed >= window.offset {
            passed += page.rows.len() as u64;
            out = std::mem::take(&mut page.rows.rows);
        }
        for row in page.rows.rows.iter() {
            passed += 1;
            if passed > window.offset {
                if out.is_blank() {
                    out = shares.no_rows();
                }
                out.push(row);
            }
        }
        if page.next.is_some() {
            // Pages of later shares come after what is left of this one.
            ahead.clear();
            inner = page.next;
            if stopped {
                // The share stopped for a reason of its own, time or work done; the client comes back for more.
                return Ok((out, Some(MergePosition::Chain { share, inner, passed })));
            }
        } else {
            share += 1;
            inner = None;
            if window.one_by_one && !out.is_empty() && share < shares.count() {
                return Ok((out, Some(MergePosition::Chain { share, inner, passed })));
            }
        }
    }
    Ok((out, None))
}

/// How many rows of a share the page can use: those to skip and those there is room for.
fn wanted(window: Window, passed: u64, room: usize) -> usize {
    let skipped = window.offset.saturating_sub(passed);
    let wanted = skipped.saturating_add(room as u64);
    let left = window.end.map_or(u64::MAX, |end| end.saturating_sub(passed));
    usize::try_from(wanted.min(left)).unwrap_or(usize::MAX).clamp(1, super::DRAIN_ROWS.max(room))
}
