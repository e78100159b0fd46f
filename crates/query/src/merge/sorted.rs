//! ORDER BY over several shares: each hands out its rows sorted, and the merge always takes the first of all.
//!
//! The next page goes on after the last row that was taken, by its keys and not by counting, so rows that come or go
//! in between move nothing else. Rows of equal keys come in the order of their shares and in a share by the numbers
//! of their items, so every share knows exactly where to go on: those before the last row's share behind all rows of
//! these keys, those after it before all of them, and the share itself behind the row.

use std::cmp::Ordering;
use std::sync::Arc;

use orrery_budget::Held;

use super::chain::Window;
use super::share_rows::ShareRows;
use super::{Ask, MergeError, MergePosition, PageResult, PageSize, SharePage, Shares};
use crate::compile::OrderKey;
use crate::exec::{SortPosition, compare_keys};
use crate::prepared::Prepared;

/// Rows that a share is asked for at a time beyond its even part, and at most.
const SHARE_ROWS_MORE: usize = 4;
const SHARE_ROWS_MAX: usize = 1_000;

/// The last row that a page took.
#[derive(Clone, Debug, PartialEq)]
pub struct SortedPosition {
    /// The share it came from. Where that was split since there are several, from this one to the `last`.
    pub share: usize,
    pub last: usize,
    pub after: SortPosition,
    /// Rows counted against OFFSET, LIMIT and TOP.
    pub passed: u64,
}

/// A sorted query over several shares.
#[derive(Debug)]
pub(super) struct Sorted {
    pub query: Arc<Prepared>,
    pub window: Window,
    /// Rows of equal keys are equal, and one of them is wanted.
    pub distinct: bool,
}

/// One share being read.
#[derive(Default)]
struct Stream {
    rows: ShareRows,
    /// The row of the page that comes next.
    at: usize,
    next: Option<Vec<u8>>,
    begun: bool,
    /// What the rows are charged with.
    _held: Option<Held>,
}

impl Stream {
    fn is_empty(&self) -> bool {
        self.at >= self.rows.len()
    }

    fn is_exhausted(&self) -> bool {
        self.begun && self.next.is_none()
    }
}

/// Where each share goes on that has not given a page yet.
struct Resumed {
    at: SortedPosition,
    /// Behind all rows of the same keys, and before them.
    behind: SortPosition,
    before: SortPosition,
}

impl Resumed {
    fn new(at: SortedPosition) -> Resumed {
        let place = |number, rows| SortPosition { keys: at.after.keys.clone(), number, rows };
        Resumed { behind: place(u64::MAX, u64::MAX), before: place(0, 0), at }
    }

    fn of_share(&self, share: usize, distinct: bool) -> &SortPosition {
        match share {
            _ if distinct => &self.behind,
            share if share < self.at.share => &self.behind,
            share if share > self.at.last => &self.before,
            _ => &self.at.after,
        }
    }
}

impl Sorted {
    pub fn page<S: Shares>(
        &self,
        shares: &mut S,
        start: Option<MergePosition>,
        size: PageSize,
    ) -> PageResult<S::Error> {
        let (start, mut passed, mut skip) = match start {
            None => (None, 0, 0),
            Some(MergePosition::Sorted(at)) if at.after.keys.len() == self.query.order_count() => {
                let passed = at.passed;
                (Some(at), passed, 0)
            }
            // What a client remembers whose continuations must be short.
            Some(MergePosition::Materialized { delivered, .. }) => (None, 0, delivered),
            // The shares have taken over one that was read partly, and know where they begin.
            Some(MergePosition::Chain { share: 0, passed, .. }) => (None, passed, 0),
            Some(_) => return Err(MergeError::Foreign),
        };
        let count = shares.count();
        let mut merge = Merging {
            sorted: self,
            order: &self.query.compiled.order,
            share_rows: self.share_rows(passed, skip, size, count),
            streams: (0..count).map(|_| Stream::default()).collect(),
            waiting: Vec::with_capacity(count),
            passed,
            last: start.as_ref().map(|at| Last::Kept(at.clone())),
            resumed: start.map(Resumed::new),
        };
        merge.fill(shares)?;
        let mut out = shares.no_rows();
        loop {
            if self.window.is_over(passed) {
                return Ok((out, None));
            }
            let Some(share) = merge.waiting.last().copied() else { return Ok((out, None)) };
            if size.is_reached(&out) {
                let at = merge.last_row();
                return Ok((out, at.map(|at| MergePosition::Sorted(SortedPosition { passed, ..at }))));
            }
            if !(self.distinct && merge.repeats_last(share)) {
                passed += 1;
                if passed > self.window.offset {
                    let stream = &merge.streams[share];
                    match (skip, stream.rows.rows.get(stream.at)) {
                        (0, Some(row)) => out.push(row),
                        _ => skip = skip.saturating_sub(1),
                    }
                }
            }
            merge.passed = passed;
            merge.advance(share, shares)?;
        }
    }
}

impl Sorted {
    /// How many rows to ask a share for: what is even, and some more, since none is as the others. Whoever has more
    /// of the first rows than that is asked again.
    fn share_rows(&self, passed: u64, skip: u64, size: PageSize, shares: usize) -> usize {
        let left = self.window.end.map_or(u64::MAX, |end| end.saturating_sub(passed));
        let skipped = self.window.offset.saturating_sub(passed).saturating_add(skip);
        let wanted = skipped.saturating_add(size.rows as u64).min(left);
        let even = usize::try_from(wanted).unwrap_or(usize::MAX).div_ceil(shares.max(1));
        even.saturating_add(even / 4 + SHARE_ROWS_MORE).min(SHARE_ROWS_MAX)
    }
}

/// The row that was taken last.
enum Last {
    /// It is still among those of its share.
    Row(usize, usize),
    Kept(SortedPosition),
}

struct Merging<'m> {
    sorted: &'m Sorted,
    order: &'m [OrderKey],
    share_rows: usize,
    streams: Vec<Stream>,
    /// The shares that have a row at hand; the one whose row comes first is the last.
    waiting: Vec<usize>,
    passed: u64,
    last: Option<Last>,
    resumed: Option<Resumed>,
}

impl Merging<'_> {
    /// Whether the next row of a share has the keys of the row before.
    fn repeats_last(&self, share: usize) -> bool {
        let stream = &self.streams[share];
        let keys = match &self.last {
            None => return false,
            Some(Last::Row(share, at)) => self.streams[*share].rows.keys(*at),
            Some(Last::Kept(at)) => &at.after.keys,
        };
        compare_keys(keys, stream.rows.keys(stream.at), self.order).is_eq()
    }

    fn last_row(&self) -> Option<SortedPosition> {
        match self.last.as_ref()? {
            Last::Kept(at) => Some(at.clone()),
            Last::Row(share, at) => {
                let after = self.streams[*share].rows.place(*at);
                Some(SortedPosition { share: *share, last: *share, after, passed: 0 })
            }
        }
    }

    /// Takes the row of the share that comes first.
    fn advance<S: Shares>(&mut self, share: usize, shares: &mut S) -> Result<(), S::Error> {
        self.waiting.pop();
        let stream = &mut self.streams[share];
        self.last = Some(Last::Row(share, stream.at));
        stream.at += 1;
        if !stream.is_empty() {
            self.wait(share);
        } else if !stream.is_exhausted() {
            self.fill(shares)?;
        }
        Ok(())
    }

    /// Puts a share where its next row stands among those of the others.
    fn wait(&mut self, share: usize) {
        let place = self.waiting.partition_point(|other| self.compare(*other, share).is_gt());
        self.waiting.insert(place, share);
    }

    /// Shares with equal rows come in their own order.
    fn compare(&self, left: usize, right: usize) -> Ordering {
        let keys = |share: usize| {
            let stream = &self.streams[share];
            stream.rows.keys(stream.at)
        };
        compare_keys(keys(left), keys(right), self.order).then(left.cmp(&right))
    }

    /// Reads until every share has a row at hand or no more rows.
    fn fill<S: Shares>(&mut self, shares: &mut S) -> Result<(), S::Error> {
        loop {
            let empty: Vec<usize> = self
                .streams
                .iter()
                .enumerate()
                .filter(|(_, stream)| stream.is_empty() && !stream.is_exhausted())
                .map(|(share, _)| share)
                .collect();
            if empty.is_empty() {
                return Ok(());
            }
            if let Some(Last::Row(share, _)) = &self.last
                && empty.contains(share)
            {
                self.last = self.last_row().map(Last::Kept);
            }
            for batch in empty.chunks(shares.degree().max(1)) {
                let asks: Vec<Ask<'_>> = batch.iter().map(|share| self.ask(*share)).collect();
                let pages = shares.pages(&asks)?;
                for (share, page) in batch.iter().zip(pages) {
                    shares.used(*share, &page);
                    self.take(*share, page);
                }
            }
        }
    }

    fn ask(&self, share: usize) -> Ask<'_> {
        let from = self.streams[share].next.as_deref();
        let after = match (&self.resumed, from) {
            (Some(resumed), None) => Some((resumed.of_share(share, self.sorted.distinct), self.passed)),
            _ => None,
        };
        Ask { share, query: &self.sorted.query, from, after, rows: self.share_rows }
    }

    fn take(&mut self, share: usize, page: SharePage) {
        let stream = &mut self.streams[share];
        *stream = Stream { rows: page.rows, at: 0, next: page.next, begun: true, _held: page.held };
        if !stream.is_empty() {
            self.wait(share);
        }
    }
}
