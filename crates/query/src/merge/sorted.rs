//! ORDER BY over several shares: each hands out its rows sorted, and the merge always takes the first of all.
//!
//! The next page goes on after the last row that was taken, by its keys and not by counting, so rows that come or go
//! in between move nothing else: shares before the last row's share go on with greater keys, those after it with
//! equal ones, and the share itself after the row. A condition in the share's query keeps it from starting over (see
//! `bound`). Among rows of equal keys in one share the row is found by its `_rid`, or, if it is gone, by how many of
//! them were taken.

use std::cmp::Ordering;
use std::collections::VecDeque;

use orrery_model::Value;
use orrery_sql::{Direction, SqlError};

use super::bound::at_or_after;
use super::chain::Window;
use super::row::{Members, items};
use super::{Ask, MergeError, MergePosition, PageResult, PageSize, Rows, SharePage, Shares, Source};
use crate::plan::{Distinct, QueryInfo};
use crate::prepared::Prepared;

/// Rows that a share is asked for at a time, at least and at most.
const SHARE_ROWS_MIN: usize = 16;
const SHARE_ROWS_MAX: usize = 1_000;

/// The last row that a page took.
#[derive(Clone, Debug, PartialEq)]
pub struct SortedPosition {
    pub share: usize,
    pub keys: Vec<Value>,
    pub rid: String,
    /// Rows with these keys that were taken from this share.
    pub ties: u64,
    /// Rows of this `_rid` among them; a JOIN makes several of one item.
    pub repeats: u64,
    /// Rows counted against OFFSET, LIMIT and TOP.
    pub passed: u64,
}

struct SortedRow {
    keys: Vec<Value>,
    rid: String,
    payload: Option<Vec<u8>>,
}

/// One share being read.
#[derive(Default)]
struct Stream {
    rows: VecDeque<SortedRow>,
    next: Option<Vec<u8>>,
    begun: bool,
    /// The rows up to the position of the page before are still to be dropped.
    resuming: bool,
    /// Of rows that tie with that position, how many are to be dropped if its row is not found, and how many of its
    /// own item.
    ties_left: u64,
    repeats_left: u64,
    found: bool,
}

impl Stream {
    fn is_exhausted(&self) -> bool {
        self.begun && self.next.is_none()
    }
}

pub(super) fn page<S: Shares>(
    source: &Source<'_>,
    info: &QueryInfo,
    shares: &mut S,
    start: Option<MergePosition>,
    size: PageSize,
) -> PageResult<S::Error> {
    let (start, mut skip) = match start {
        None => (None, 0),
        Some(MergePosition::Sorted(at)) if at.keys.len() == info.order_by.len() => (Some(at), 0),
        // What a client remembers whose continuations must be short.
        Some(MergePosition::Whole { delivered, .. }) => (None, delivered),
        // The shares have taken over one that was read partly, and know where they begin.
        Some(MergePosition::Chain { share: 0, .. }) => (None, 0),
        Some(_) => return Err(MergeError::Foreign),
    };
    let filter = match (&start, info.order_by_expressions.first(), info.order_by.first()) {
        (Some(at), Some(expression), Some(direction)) => at_or_after(expression, &at.keys[0], *direction),
        _ => "true".to_string(),
    };
    let query = source.rewritten(&info.rewritten, &filter).map_err(S::Error::from)?;
    let window = Window::of(info);
    let count = shares.count();
    let resuming = start.is_some();
    let (ties_left, repeats_left) = start.as_ref().map_or((0, 0), |at| (at.ties, at.repeats));
    let stream = || Stream { resuming, ties_left, repeats_left, ..Stream::default() };
    let mut merge = Merging {
        query: &query,
        order: &info.order_by,
        share_rows: (size.rows.saturating_mul(2) / count.max(1)).clamp(SHARE_ROWS_MIN, SHARE_ROWS_MAX),
        streams: (0..count).map(|_| stream()).collect(),
        distinct: info.distinct == Distinct::Ordered,
        start,
    };
    let mut last = merge.start.clone();
    let mut passed = last.as_ref().map_or(0, |at| at.passed);
    let mut out = Rows::default();
    loop {
        if window.is_over(passed) {
            return Ok((out, None));
        }
        let Some(share) = merge.first(shares)? else { return Ok((out, None)) };
        if size.is_reached(&out) {
            return Ok((out, last.map(|at| MergePosition::Sorted(SortedPosition { passed, ..at }))));
        }
        let Some(row) = merge.streams[share].rows.pop_front() else { continue };
        let SortedRow { keys, rid, payload } = row;
        let before = last.take();
        let tied = before.as_ref().filter(|at| compare(&at.keys, &keys, merge.order).is_eq());
        let repeated = merge.distinct && tied.is_some();
        let same_share = tied.filter(|at| at.share == share);
        let ties = same_share.map_or(0, |at| at.ties) + 1;
        let repeats = same_share.filter(|at| at.rid == rid).map_or(0, |at| at.repeats) + 1;
        last = Some(SortedPosition { share, keys, rid, ties, repeats, passed: 0 });
        if repeated {
            continue;
        }
        let Some(payload) = payload else { continue };
        passed += 1;
        if passed <= window.offset {
            continue;
        }
        if skip > 0 {
            skip -= 1;
        } else {
            out.push(&payload);
        }
    }
}

struct Merging<'m> {
    query: &'m Prepared,
    order: &'m [Direction],
    share_rows: usize,
    streams: Vec<Stream>,
    distinct: bool,
    start: Option<SortedPosition>,
}

impl Merging<'_> {
    /// The share whose next row comes first; shares with equal rows in their own order.
    fn first<S: Shares>(&mut self, shares: &mut S) -> Result<Option<usize>, S::Error> {
        self.fill(shares)?;
        let mut best: Option<(usize, &[Value])> = None;
        for (share, stream) in self.streams.iter().enumerate() {
            let Some(row) = stream.rows.front() else { continue };
            if best.is_none_or(|(_, keys)| compare(&row.keys, keys, self.order).is_lt()) {
                best = Some((share, &row.keys));
            }
        }
        Ok(best.map(|(share, _)| share))
    }

    /// Reads until every share has a row at hand or no more rows.
    fn fill<S: Shares>(&mut self, shares: &mut S) -> Result<(), S::Error> {
        loop {
            let empty: Vec<usize> = self
                .streams
                .iter()
                .enumerate()
                .filter(|(_, stream)| stream.rows.is_empty() && !stream.is_exhausted())
                .map(|(share, _)| share)
                .collect();
            if empty.is_empty() {
                return Ok(());
            }
            for batch in empty.chunks(shares.degree().max(1)) {
                let asks: Vec<Ask<'_>> = batch
                    .iter()
                    .map(|share| {
                        let from = self.streams[*share].next.as_deref();
                        Ask { share: *share, query: self.query, from, rows: self.share_rows }
                    })
                    .collect();
                let pages = shares.pages(&asks)?;
                for (share, page) in batch.iter().zip(pages) {
                    shares.used(*share, &page);
                    self.take(*share, page)?;
                }
            }
        }
    }

    fn take(&mut self, share: usize, page: SharePage) -> Result<(), SqlError> {
        let stream = &mut self.streams[share];
        stream.begun = true;
        for row in page.rows.iter() {
            let members = Members::of(row)?;
            stream.rows.push_back(SortedRow {
                keys: items(&members.value("orderByItems")?),
                rid: members.value("_rid")?.as_str().unwrap_or_default().to_string(),
                payload: members.text("payload").map(<[u8]>::to_vec),
            });
        }
        stream.next = page.next;
        if let Some(start) = &self.start
            && stream.resuming
        {
            stream.drop_taken(share, start, self.order, self.distinct);
        }
        Ok(())
    }
}

impl Stream {
    /// Drops the rows that earlier pages took.
    fn drop_taken(&mut self, share: usize, start: &SortedPosition, order: &[Direction], distinct: bool) {
        let rows = &mut self.rows;
        while rows.front().is_some_and(|row| compare(&row.keys, &start.keys, order).is_lt()) {
            rows.pop_front();
        }
        if distinct || share < start.share {
            while rows.front().is_some_and(|row| compare(&row.keys, &start.keys, order).is_eq()) {
                rows.pop_front();
            }
        } else if share == start.share {
            let tied = |row: &SortedRow| compare(&row.keys, &start.keys, order).is_eq();
            let mut ahead = rows.iter().take_while(|row| tied(row)).any(|row| row.rid == start.rid);
            while rows.front().is_some_and(tied) {
                let of_item = rows.front().is_some_and(|row| row.rid == start.rid);
                if of_item && self.repeats_left > 0 {
                    self.repeats_left -= 1;
                    (self.found, ahead) = (true, false);
                } else if self.found || of_item || !(ahead || self.ties_left > 0) {
                    break;
                }
                self.ties_left = self.ties_left.saturating_sub(1);
                rows.pop_front();
            }
        }
        // A page of the share that was dropped whole may be followed by more of the same.
        self.resuming = rows.is_empty();
    }
}

pub(super) fn compare(left: &[Value], right: &[Value], order: &[Direction]) -> Ordering {
    for ((left, right), direction) in left.iter().zip(right).zip(order) {
        let by_key = left.compare(right);
        let by_key = if *direction == Direction::Descending { by_key.reverse() } else { by_key };
        if by_key.is_ne() {
            return by_key;
        }
    }
    Ordering::Equal
}
