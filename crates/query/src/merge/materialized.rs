//! Queries whose first row can only be known when all shares have been read: aggregates, groups, distinct rows,
//! distances. The rows behind the first page are kept for the next ones, where shares can keep rows; else every page
//! computes the result again and leaves out what was delivered. Distinct rows alone can stop when a page is full;
//! they are kept from the second page on.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use orrery_model::Value;
use orrery_sql::SqlError;

use super::chain::Window;
use super::share_rows::ShareRows;
use super::{CachedRows, DRAIN_ROWS, EVERY_ROW, MergePosition, PageSize, Shares, drain};
use crate::exec::{Execution, Flow, compare_keys};
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::output::{Content, Row, RowFormat, Rows};
use crate::prepared::Prepared;
use crate::value::Eval;

/// The page being filled.
pub(super) struct Output {
    rows: Rows,
    size: PageSize,
    /// Rows still to be left out because earlier pages had them.
    skip: u64,
    delivered: u64,
    /// Rows behind the page, from the first on, as many as can be kept.
    behind: CachedRows,
    /// Whether it is worth collecting all of them; one tells that there is a next page.
    collects: bool,
    /// A row was refused because there was no room.
    cut_off: bool,
}

impl Output {
    /// `rows`: none yet.
    pub fn new(delivered: u64, rows: Rows, size: PageSize) -> Output {
        let behind = CachedRows::default();
        let collects = delivered > 0;
        Output { rows, size, skip: delivered, delivered, behind, collects, cut_off: false }
    }

    /// Says that all rows are known whether or not the page takes them.
    pub fn collect(&mut self) {
        self.collects = true;
    }

    /// Takes the next row of the result; answers whether it wants another.
    pub fn push(&mut self, row: &Row<'_>) -> Result<bool, SqlError> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(true);
        }
        if !self.size.is_reached(&self.rows) {
            self.rows.write(row)?;
            self.delivered += 1;
            return Ok(true);
        }
        if self.behind.rows.is_empty() || (self.collects && self.behind.has_room()) {
            self.behind.rows.write(row)?;
            return Ok(self.collects);
        }
        self.cut_off = true;
        Ok(false)
    }

    pub fn finish<S: Shares>(self, shares: &mut S) -> (Rows, Option<MergePosition>) {
        let Output { rows, delivered, behind, collects, cut_off, .. } = self;
        if behind.rows.is_empty() {
            return (rows, None);
        }
        let cached = match collects {
            true => shares.keep(CachedRows { first: delivered, ends: !cut_off, ..behind }),
            false => 0,
        };
        (rows, Some(MergePosition::Materialized { delivered, cached }))
    }
}

/// A page of rows that were kept; `None` where there is no such row.
pub(super) fn hand_out(
    kept: &CachedRows,
    cached: u64,
    delivered: u64,
    mut rows: Rows,
    size: PageSize,
) -> Option<(Rows, Option<MergePosition>)> {
    let mut rest = kept.after(delivered).peekable();
    rest.peek()?;
    while !size.is_reached(&rows)
        && let Some(row) = rest.next()
    {
        rows.push(row);
    }
    let delivered = delivered + rows.len() as u64;
    let more = rest.peek().is_some() || !kept.ends;
    Some((rows, more.then_some(MergePosition::Materialized { delivered, cached })))
}

/// Drops duplicates and counts rows against TOP and OFFSET LIMIT on their way out.
struct Funnel<'o> {
    output: &'o mut Output,
    window: Window,
    passed: u64,
    seen: Option<HashSet<Vec<u8>>>,
    meter: Meter,
}

impl Funnel<'_> {
    fn push(&mut self, row: &[u8], mark: &[u8]) -> Result<bool, SqlError> {
        if let Some(seen) = &mut self.seen {
            if seen.contains(mark) {
                return Ok(true);
            }
            self.meter.take(mark.len() + ROW_OVERHEAD_BYTES)?;
            seen.insert(mark.to_vec());
        }
        if self.window.is_over(self.passed) {
            return Ok(false);
        }
        self.passed += 1;
        if self.passed <= self.window.offset {
            return Ok(true);
        }
        Ok(self.output.push(&Row::written(row))? && !self.window.is_over(self.passed))
    }
}

/// Aggregates and groups: parts of all shares, put together, and then the rest of the query over them.
#[derive(Debug)]
pub(super) struct Groups {
    pub query: Prepared,
    pub parts: Arc<Prepared>,
}

impl Groups {
    pub fn rows<S: Shares>(
        &self,
        shares: &mut S,
        output: &mut Output,
        format: &dyn RowFormat,
    ) -> Result<(), S::Error> {
        output.collect();
        let meter = Rc::new(Meter::new(shares.budget()));
        let mut execution = Execution::new(&self.query).within(&meter).written_as(format);
        absorb(&self.parts, shares, &mut execution)?;
        execution.finish(&mut |row| Ok(if output.push(&row)? { Flow::More } else { Flow::Stop }))?;
        Ok(())
    }
}

/// Gives an execution the groups of all shares.
pub(super) fn absorb<S: Shares>(
    parts: &Arc<Prepared>,
    shares: &mut S,
    execution: &mut Execution<'_>,
) -> Result<(), S::Error> {
    drain(parts, EVERY_ROW, shares, &mut |_, mut page| {
        page.take_groups().into_iter().try_for_each(|part| execution.absorb(part)).map(|()| true)
    })
}

/// Distinct rows in the order in which they first appear.
#[derive(Debug)]
pub(super) struct DistinctRows {
    pub query: Arc<Prepared>,
    pub window: Window,
}

impl DistinctRows {
    pub fn rows<S: Shares>(&self, shares: &mut S, output: &mut Output) -> Result<(), S::Error> {
        let meter = Meter::new(shares.budget());
        let seen = Some(HashSet::new());
        let mut funnel = Funnel { output, window: self.window, passed: 0, seen, meter };
        drain(&self.query, DRAIN_ROWS, shares, &mut |_, page| {
            for (at, row) in page.rows.iter().enumerate() {
                if !funnel.push(row, page.mark(at))? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// How many distinct rows there are.
#[derive(Debug)]
pub(super) struct DistinctCount {
    pub query: Arc<Prepared>,
    /// The name of the count; empty for `SELECT VALUE`.
    pub alias: String,
}

impl DistinctCount {
    pub fn rows<S: Shares>(
        &self,
        shares: &mut S,
        output: &mut Output,
        format: &dyn RowFormat,
    ) -> Result<(), S::Error> {
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let meter = Meter::new(shares.budget());
        drain(&self.query, DRAIN_ROWS, shares, &mut |_, page| {
            for at in 0..page.len() {
                let mark = page.mark(at);
                if !seen.contains(mark) {
                    meter.take(mark.len() + ROW_OVERHEAD_BYTES)?;
                    seen.insert(mark.to_vec());
                }
            }
            Ok(true)
        })?;
        let count = Value::from(seen.len() as i64);
        let row = match self.alias.as_str() {
            "" => count,
            alias => Value::Object(vec![(alias.to_owned(), count)]),
        };
        let row = Eval::from_constant(&row);
        output.push(&Row { content: Content::Value(&row, format), ..Row::written(&[]) })?;
        Ok(())
    }
}

/// Sorted rows of all shares, for orders in which a share does not hand out its rows: by distance, or distinct ones by
/// something else than what they are.
#[derive(Debug)]
pub(super) struct SortedAtOnce {
    pub query: Arc<Prepared>,
    pub window: Window,
    pub distinct: bool,
}

impl SortedAtOnce {
    pub fn rows<S: Shares>(&self, shares: &mut S, output: &mut Output) -> Result<(), S::Error> {
        output.collect();
        let meter = Meter::new(shares.budget());
        let order = &self.query.compiled.order;
        // Duplicates are dropped later, so only without DISTINCT it is known how many rows are enough.
        let enough = self.window.end.filter(|_| !self.distinct).and_then(|end| usize::try_from(end).ok());
        let mut held: Vec<HeldRow> = Vec::new();
        drain(&self.query, DRAIN_ROWS, shares, &mut |_, page| {
            for at in 0..page.len() {
                let row = HeldRow::of(&page, at);
                meter.take(row.size_bytes())?;
                held.push(row);
                let Some(enough) = enough else { continue };
                if held.len() >= enough.saturating_mul(2).max(HELD_ROWS_SLACK) {
                    held.sort_by(|left, right| compare_keys(&left.keys, &right.keys, order));
                    held.drain(enough..).for_each(|row| meter.give_back(row.size_bytes()));
                }
            }
            Ok(true)
        })?;
        // Stable: rows of equal keys stay in the order of their shares.
        held.sort_by(|left, right| compare_keys(&left.keys, &right.keys, order));
        let seen = self.distinct.then(HashSet::new);
        let mut funnel = Funnel { output, window: self.window, passed: 0, seen, meter };
        for row in &held {
            if !funnel.push(&row.written, &row.mark)? {
                break;
            }
        }
        Ok(())
    }
}

/// A row that waits for all others.
struct HeldRow {
    keys: Vec<Value>,
    written: Vec<u8>,
    mark: Vec<u8>,
}

impl HeldRow {
    fn of(page: &ShareRows, at: usize) -> HeldRow {
        let written = page.rows.get(at).unwrap_or_default().to_vec();
        HeldRow { keys: page.keys(at).to_vec(), written, mark: page.mark(at).to_vec() }
    }

    fn size_bytes(&self) -> usize {
        self.written.len() + self.mark.len() + 32 * self.keys.len() + ROW_OVERHEAD_BYTES
    }
}

/// Rows held at least before the worst are dropped.
const HELD_ROWS_SLACK: usize = 1_024;
