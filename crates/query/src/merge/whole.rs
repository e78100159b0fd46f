//! Queries whose first row can only be known when all shares have been read: aggregates, groups, distinct rows,
//! distances. The rows behind the first page are kept for the next ones, where shares can keep rows; else every page computes
//! the result again and leaves out what was delivered. Distinct rows alone can stop when a page is full; they are kept
//! from the second page on.

use std::collections::HashSet;

use orrery_model::{NumberStyle, Value};
use orrery_sql::SqlError;

use super::chain::Window;
use super::row::{Members, items, parse, unreadable};
use super::totals::Groups;
use super::{HeldRows, MergePosition, PageSize, Rows, Shares, Source, drain, sorted};
use crate::compare::canonical_key;
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::plan::{Distinct, QueryInfo};
use crate::value::Eval;

/// The page being filled.
pub(super) struct Output {
    rows: Rows,
    size: PageSize,
    /// Rows still to be left out because earlier pages had them.
    skip: u64,
    delivered: u64,
    /// Rows behind the page, from the first on, as many as can be kept.
    behind: HeldRows,
    /// Whether it is worth collecting all of them; one tells that there is a next page.
    collects: bool,
    /// A row was refused because there was no room.
    cut_off: bool,
}

impl Output {
    pub fn new(delivered: u64, size: PageSize) -> Output {
        let behind = HeldRows::default();
        let collects = delivered > 0;
        Output { rows: Rows::default(), size, skip: delivered, delivered, behind, collects, cut_off: false }
    }

    /// Says that all rows are known whether or not the page takes them.
    pub fn collect(&mut self) {
        self.collects = true;
    }

    /// Takes the next row of the result; answers whether it wants another.
    pub fn push(&mut self, row: &[u8]) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return true;
        }
        if !self.size.is_reached(&self.rows) {
            self.rows.push(row);
            self.delivered += 1;
            return true;
        }
        if self.behind.rows.is_empty() || (self.collects && self.behind.has_room()) {
            self.behind.rows.push(row);
            return self.collects;
        }
        self.cut_off = true;
        false
    }

    pub fn finish<S: Shares>(self, shares: &mut S) -> (Rows, Option<MergePosition>) {
        let Output { rows, delivered, behind, collects, cut_off, .. } = self;
        if behind.rows.is_empty() {
            return (rows, None);
        }
        let held = match collects {
            true => shares.keep(HeldRows { first: delivered, ends: !cut_off, ..behind }),
            false => 0,
        };
        (rows, Some(MergePosition::Whole { delivered, held }))
    }
}

/// A page of rows that were kept; `None` where there is no such row.
pub(super) fn hand_out(
    kept: &HeldRows,
    held: u64,
    delivered: u64,
    size: PageSize,
) -> Option<(Rows, Option<MergePosition>)> {
    let mut rest = kept.after(delivered).peekable();
    rest.peek()?;
    let mut rows = Rows::default();
    while !size.is_reached(&rows)
        && let Some(row) = rest.next()
    {
        rows.push(row);
    }
    let delivered = delivered + rows.len() as u64;
    let more = rest.peek().is_some() || !kept.ends;
    Some((rows, more.then_some(MergePosition::Whole { delivered, held })))
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
    fn push(&mut self, json: &[u8], value: Option<&Value>) -> Result<bool, SqlError> {
        if let Some(seen) = &mut self.seen {
            let key = match value {
                Some(value) => canonical_key(&Eval::from_constant(value)),
                None => canonical_key(&Eval::from_constant(&parse(json)?)),
            };
            let size = key.len();
            if !seen.insert(key) {
                return Ok(true);
            }
            self.meter.take(size + ROW_OVERHEAD_BYTES)?;
        }
        if self.window.is_over(self.passed) {
            return Ok(false);
        }
        self.passed += 1;
        if self.passed <= self.window.offset {
            return Ok(true);
        }
        Ok(self.output.push(json) && !self.window.is_over(self.passed))
    }
}

pub(super) fn rows<S: Shares>(
    source: &Source<'_>,
    info: &QueryInfo,
    shares: &mut S,
    output: &mut Output,
) -> Result<(), S::Error> {
    let query = source.rewritten(&info.rewritten, "true")?;
    let window = Window::of(info);
    if let Some(alias) = &info.distinct_count {
        let count = count_distinct(&query, shares)?;
        let count = Value::from(count);
        let row = if alias.is_empty() { count } else { Value::Object(vec![(alias.clone(), count)]) };
        output.push(&text_of(&row));
        return Ok(());
    }
    let seen = (info.distinct != Distinct::None).then(HashSet::new);
    let grouped =
        !info.aggregates.is_empty() || !info.aliases.is_empty() || !info.group_by_expressions.is_empty();
    if grouped || !info.order_by.is_empty() {
        output.collect();
    }
    let mut funnel = Funnel { output, window, passed: 0, seen, meter: Meter::new(shares.budget()) };
    if grouped {
        let mut groups = Groups::new(info, shares.budget());
        drain(&query, shares, &mut |row| groups.add(&parse(row)?).map(|()| true))?;
        for row in groups.into_rows() {
            if !funnel.push(&text_of(&row), Some(&row))? {
                break;
            }
        }
        return Ok(());
    }
    if info.order_by.is_empty() {
        return drain(&query, shares, &mut |row| funnel.push(row, None));
    }
    for row in nearest(&query, info, shares, window)? {
        if !funnel.push(&row, None)? {
            break;
        }
    }
    Ok(())
}

fn count_distinct<S: Shares>(query: &crate::Prepared, shares: &mut S) -> Result<i64, S::Error> {
    let mut seen: HashSet<Vec<u8>> = HashSet::new();
    let meter = Meter::new(shares.budget());
    drain(query, shares, &mut |row| {
        let key = canonical_key(&Eval::from_constant(&parse(row)?));
        let size = key.len();
        if seen.insert(key) {
            meter.take(size + ROW_OVERHEAD_BYTES)?;
        }
        Ok(true)
    })?;
    Ok(seen.len() as i64)
}

/// Sorted rows of all shares, for orders in which a share does not hand out its rows: by distance.
fn nearest<S: Shares>(
    query: &crate::Prepared,
    info: &QueryInfo,
    shares: &mut S,
    window: Window,
) -> Result<Vec<Vec<u8>>, S::Error> {
    let mut held: Vec<(Vec<Value>, Vec<u8>)> = Vec::new();
    let meter = Meter::new(shares.budget());
    // Duplicates are dropped later, so only without DISTINCT it is known how many rows are enough.
    let enough = window.end.filter(|_| info.distinct == Distinct::None);
    drain(query, shares, &mut |row| {
        let members = Members::of(row)?;
        let keys = items(&members.value("orderByItems")?);
        let Some(payload) = members.text("payload") else { return Ok(true) };
        meter.take(payload.len() + 32 * keys.len() + ROW_OVERHEAD_BYTES)?;
        held.push((keys, payload.to_vec()));
        let Some(enough) = enough.and_then(|enough| usize::try_from(enough).ok()) else { return Ok(true) };
        if held.len() >= enough.saturating_mul(2).max(HELD_ROWS_SLACK) {
            held.sort_by(|left, right| sorted::compare(&left.0, &right.0, &info.order_by));
            for (keys, payload) in held.drain(enough..) {
                meter.give_back(payload.len() + 32 * keys.len() + ROW_OVERHEAD_BYTES);
            }
        }
        Ok(true)
    })?;
    // Stable: rows of equal keys stay in the order of their shares.
    held.sort_by(|left, right| sorted::compare(&left.0, &right.0, &info.order_by));
    Ok(held.into_iter().map(|(_, payload)| payload).collect())
}

/// Rows held at least before the worst are dropped.
const HELD_ROWS_SLACK: usize = 1_024;

pub(super) fn text_of(row: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    row.write_json(&mut out, NumberStyle::Query);
    out
}

/// The items of an array as numbers.
pub(super) fn numbers(value: Option<&Value>) -> Result<Vec<f64>, SqlError> {
    let elements = value.and_then(Value::as_array).ok_or_else(unreadable)?;
    elements
        .iter()
        .map(|element| element.as_number().map(|number| number.as_f64()).ok_or_else(unreadable))
        .collect()
}
