//! Rows of a sorted query: which of them were counted by earlier pages, which can still be emitted, and in which order.
//!
//! Rows wait here until all are known, unless items come in the order of the keys already. With a limit only the best
//! can ever be emitted, so the others are dropped from time to time, and what sorts behind them is not even projected.

use std::cmp::Ordering;

use orrery_model::Value;
use orrery_sql::SqlError;

use super::SortPosition;
use crate::compile::OrderKey;
use crate::eval::Frame;
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::value::value_bytes;

/// Rows a limited sort holds at least before it drops the worst; sorting a few at a time would cost more.
const SORTED_ROWS_SLACK: u64 = 256;

pub(super) struct Sorter<'p> {
    order: &'p [OrderKey],
    /// Items come in the order of the sort keys already, equal ones by number.
    pub presorted: bool,
    pub rows: Vec<SortedRow>,
    /// The keys and the number of the last row that a limited sort still keeps.
    cutoff: Option<(Vec<Value>, u64)>,
    /// Rows up to here were counted by the pages before.
    after: Option<SortPosition>,
    /// Rows of the item at `after` that have been seen again.
    after_rows: u64,
    /// Rows that earlier pages counted.
    passed_before: u64,
    last: Option<SortPosition>,
    /// Rows that have all that is sorted by, if that is not paths alone, and rows behind `after` that lack some of it.
    pub keyed: u64,
    pub keyless: u64,
}

/// What a row is sorted by.
pub(super) struct SortKeys {
    pub values: Vec<Value>,
    /// Whether the row has all of them by itself.
    complete: bool,
}

pub(super) struct SortedRow {
    pub keys: Vec<Value>,
    pub number: u64,
    /// In the format of the execution.
    pub written: Vec<u8>,
    pub mark: Vec<u8>,
    pub carried: Vec<Value>,
}

impl SortedRow {
    pub fn size_bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|key| size_of::<Value>() + value_bytes(key)).sum();
        let carried = self.carried.len() * size_of::<Value>();
        self.written.len() + keys + self.mark.len() + carried + ROW_OVERHEAD_BYTES
    }
}

impl<'p> Sorter<'p> {
    pub fn new(order: &'p [OrderKey]) -> Sorter<'p> {
        Sorter {
            order,
            presorted: false,
            rows: Vec::new(),
            cutoff: None,
            after: None,
            after_rows: 0,
            passed_before: 0,
            last: None,
            keyed: 0,
            keyless: 0,
        }
    }

    /// Goes on after a row, with which so many were counted.
    pub fn resume(&mut self, passed: u64, after: SortPosition) {
        (self.passed_before, self.after) = (passed, Some(after));
    }

    /// Whether rows have to wait for each other.
    pub fn waits(&self) -> bool {
        !self.order.is_empty() && !self.presorted
    }

    /// The last row that was counted.
    pub fn position(&self) -> Option<&SortPosition> {
        self.last.as_ref().or(self.after.as_ref())
    }

    /// The row that was counted last by this page.
    pub fn last(&self) -> Option<&SortPosition> {
        self.last.as_ref()
    }

    pub fn keys<'a>(&self, frame: &mut Frame<'a>) -> Result<SortKeys, SqlError>
    where
        'p: 'a,
    {
        let mut values = Vec::with_capacity(self.order.len());
        let mut complete = true;
        for key in self.order {
            let mut value = frame.eval(&key.node)?.to_value();
            if value.is_undefined() {
                complete = false;
                value = key.missing.map_or(Value::Undefined, Value::from);
            }
            values.push(value);
        }
        Ok(SortKeys { values, complete })
    }

    /// Where a row stands to the one that the page goes on after; `None` on a first page.
    pub fn place(&self, keys: &SortKeys, number: u64) -> Option<Ordering> {
        let after = self.after.as_ref()?;
        Some(compare_keys(&keys.values, &after.keys, self.order).then(number.cmp(&after.number)))
    }

    /// Whether a row at such a place was counted by the pages before.
    pub fn was_counted(&mut self, place: Ordering) -> bool {
        let rows = self.after.as_ref().map_or(0, |after| after.rows);
        let counted = place.is_lt() || place.is_eq() && self.after_rows < rows;
        self.after_rows += u64::from(counted && place.is_eq());
        counted
    }

    /// Whether rows that were counted before are asked for again: only orders that an index of values does not have
    /// need their number.
    pub fn counts_again(&self, keys: &SortKeys) -> bool {
        keys.complete && self.order.iter().any(|key| key.path.is_none())
    }

    /// Whether a row sorts behind all that can be emitted.
    pub fn is_cut_off(&self, keys: &SortKeys, number: u64) -> bool {
        self.cutoff.as_ref().is_some_and(|(worst, last)| {
            compare_keys(&keys.values, worst, self.order).then(number.cmp(last)).is_ge()
        })
    }

    /// Counts a row by whether it has what it is sorted by.
    pub fn count(&mut self, keys: &SortKeys) {
        self.keyed += u64::from(keys.complete);
        self.keyless += u64::from(!keys.complete);
    }

    /// Remembers the row about to be emitted as the one to go on after.
    pub fn counted(&mut self, keys: Vec<Value>, number: u64) {
        if keys.is_empty() {
            return;
        }
        let again = self.position().filter(|last| last.number == number && last.keys == keys);
        let rows = again.map_or(0, |last| last.rows).saturating_add(1);
        self.last = Some(SortPosition { keys, number, rows });
    }

    /// Of a query that looks at so many rows, drops what can never be emitted.
    pub fn keep_best(&mut self, wanted: u64, meter: &Meter) {
        let wanted = wanted.saturating_sub(self.passed_before);
        let slack = wanted.saturating_mul(2).max(SORTED_ROWS_SLACK);
        if wanted == 0 || (self.rows.len() as u64) < slack {
            return;
        }
        self.sort();
        for dropped in self.rows.drain(wanted as usize..) {
            meter.give_back(dropped.size_bytes());
        }
        self.cutoff = self.rows.last().map(|row| (row.keys.clone(), row.number));
    }

    /// By the keys, then by number; stable, so that the rows of one item stay in order.
    pub fn sort(&mut self) {
        let order = self.order;
        self.rows.sort_by(|left, right| {
            compare_keys(&left.keys, &right.keys, order).then(left.number.cmp(&right.number))
        });
    }

    /// By scores, one for each row, the highest first; then by number.
    pub fn sort_by_scores(&mut self, scores: &[f64]) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|left, right| {
            let by_score = scores[*right].total_cmp(&scores[*left]);
            by_score.then(self.rows[*left].number.cmp(&self.rows[*right].number))
        });
        let mut rows: Vec<Option<SortedRow>> = std::mem::take(&mut self.rows).into_iter().map(Some).collect();
        self.rows = order.into_iter().filter_map(|at| rows[at].take()).collect();
    }
}

pub(crate) fn compare_keys(left: &[Value], right: &[Value], order: &[OrderKey]) -> Ordering {
    for ((left, right), key) in left.iter().zip(right).zip(order) {
        let by_key = left.compare(right);
        let by_key = if key.descending { by_key.reverse() } else { by_key };
        if by_key.is_ne() {
            return by_key;
        }
    }
    Ordering::Equal
}
