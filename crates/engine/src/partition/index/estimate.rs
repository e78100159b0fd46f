//! How many entries a range holds, roughly and cheaply.
//!
//! A bounded number of entries is read. When the range ends before, the figure is exact. When it does not, the rest
//! is judged from what was read: entries of one value sort by hash, which spreads evenly, so the part of the hash
//! space that the entries read cover tells how many there are in all of it. In a range of values the numbers covered,
//! or the first bytes of strings, tell the same if they are spread evenly; otherwise it can only be said that there
//! are more than were read. The same data always gives the same figure.
//!
//! Queries ask about the same ranges again and again, so figures are *kept*: judged once from more entries, and again
//! when the partition has seen a number of commits since. Writers pay nothing for it, and nothing is stored: after a
//! restart the first query judges anew.
//!
//! How far off a kept figure can be: up to 256 entries it was counted; judged from 256 entries of one value, one
//! standard deviation is 1 / √256 = 6 %. As many commits as a sixteenth of the items (64 in small partitions) may have
//! come since, all of which concern the range at worst. Ranges of values that are not spread evenly may be judged
//! wrong by any factor, so whoever goes by a figure has a limit of its own.

use std::collections::HashMap;

use orrery_index::{ValueRange, decode};
use orrery_model::{Epk, Value, murmur3_x64_128};
use orrery_storage::Direction;
use parking_lot::Mutex;

use super::super::scan::Span;
use super::entries::{Entries, Entry};
use super::view::{PartitionView, PathNumber};
use crate::error::Result;

/// What a range holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    pub rows: u64,
    /// Counted rather than judged.
    pub exact: bool,
}

/// Entries by which a figure that is kept is judged.
const KEPT_ENTRIES: usize = 256;
/// Ranges of which figures are kept in a partition; with more, all are judged again.
const KEPT_MAX: usize = 4_096;
/// Commits after which a figure is judged again: so many, or this part of the items.
const KEPT_COMMITS_MIN: u64 = 64;
const KEPT_COMMITS_PART: u64 = 16;

/// Figures of a partition that are kept: by path and range, with the LSN as of which they are right.
#[derive(Default)]
pub(super) struct Estimates(Mutex<HashMap<(PathNumber, u64), (u64, Estimate)>>);

/// Of what is only known to be more than was read, this many times as much is assumed.
const UNKNOWN_FACTOR: u64 = 8;

impl PartitionView {
    /// The same of the whole partition, from what is kept where that is recent.
    pub fn kept_estimate(&self, path: PathNumber, range: &ValueRange) -> Result<Estimate> {
        let key = kept_key(path, range);
        if let Some(estimate) = self.kept(key) {
            return Ok(estimate);
        }
        let estimate = self.estimate(path, range, &Span::All, KEPT_ENTRIES)?;
        let mut kept = self.shared.index.estimates.0.lock();
        if kept.len() >= KEPT_MAX {
            kept.clear();
        }
        kept.insert(key, (self.position().lsn, estimate));
        Ok(estimate)
    }

    /// Whether the figure of a range is there without reading an entry.
    pub fn keeps_estimate(&self, path: PathNumber, range: &ValueRange) -> bool {
        self.kept(kept_key(path, range)).is_some()
    }

    /// What is kept, if that is recent.
    fn kept(&self, key: (PathNumber, u64)) -> Option<Estimate> {
        let recent = KEPT_COMMITS_MIN.min(self.item_count()).max(self.item_count() / KEPT_COMMITS_PART);
        let (at, estimate) = *self.shared.index.estimates.0.lock().get(&key)?;
        (self.position().lsn.abs_diff(at) <= recent).then_some(estimate)
    }

    /// How many entries a range of a path holds, from reading at most `rows_max` of them.
    pub fn estimate(
        &self,
        path: PathNumber,
        range: &ValueRange,
        span: &Span,
        rows_max: usize,
    ) -> Result<Estimate> {
        let mut entries = self.entries(path, range, span, Direction::Forward, None);
        let (rows, last) = read(&mut entries, rows_max)?;
        let Some(last) = last else { return Ok(Estimate { rows, exact: true }) };
        let of_one_value = || {
            let (min, max) = match span {
                Span::Epk { min, max } => (min.max(self.bounds().0), max.min(self.bounds().1)),
                _ => self.bounds(),
            };
            judge(rows, position(min.as_bytes()), position(last.reference()), end_position(max))
        };
        let judged = if range.is_point() {
            of_one_value()
        } else {
            let number = |bytes: &[u8]| match decode(bytes) {
                Some(Value::Number(number)) => Some(number.as_f64()),
                _ => None,
            };
            let highest = self.entries(path, range, span, Direction::Reverse, None).next_entry()?;
            let lowest = self.entries(path, range, span, Direction::Forward, None).next_entry()?;
            let Some((lowest, highest)) = lowest.zip(highest) else {
                return Ok(Estimate { rows, exact: false });
            };
            match (number(lowest.value()), number(last.value()), number(highest.value())) {
                // The first value has more entries than were read. Those of the others are not known, and are thought
                // to be as many.
                _ if lowest.value() == last.value() => {
                    of_one_value().saturating_mul(1 + u64::from(highest.value() != last.value()))
                }
                (Some(low), Some(reached), Some(high)) => judge(rows, low, reached, high),
                _ => judge_bytes(rows, lowest.value(), last.value(), highest.value()),
            }
        };
        // Elements of arrays aside, a path has at most one entry for each item.
        let rows = judged.max(rows).min(self.item_count().max(rows));
        Ok(Estimate { rows, exact: false })
    }
}

fn kept_key(path: PathNumber, range: &ValueRange) -> (PathNumber, u64) {
    let (start, end) = (murmur3_x64_128(&range.start).0, murmur3_x64_128(&range.end).0);
    (path, start ^ end.rotate_left(1))
}

/// Reads up to `rows_max` entries: how many there were, and the last one read if there are more.
fn read(entries: &mut Entries<'_>, rows_max: usize) -> Result<(u64, Option<Entry>)> {
    let mut last = None;
    for rows in 0..rows_max.max(1) as u64 {
        match entries.next_entry()? {
            Some(entry) => last = Some(entry),
            None => return Ok((rows, None)),
        }
    }
    let more = entries.next_entry()?.is_some();
    Ok((rows_max.max(1) as u64, last.filter(|_| more)))
}

/// All of `[low, high]`, when `rows` lie in `[low, reached]`.
fn judge(rows: u64, low: f64, reached: f64, high: f64) -> u64 {
    let share = (reached - low) / (high - low);
    if share.is_finite() && share > 0.0 {
        (rows as f64 / share.min(1.0)) as u64
    } else {
        rows.saturating_mul(UNKNOWN_FACTOR)
    }
}

/// The same of strings and whatever else values are, as if their bytes behind what all of them share were spread
/// evenly.
fn judge_bytes(rows: u64, low: &[u8], reached: &[u8], high: &[u8]) -> u64 {
    let shared = low.iter().zip(high).take_while(|(low, high)| low == high).count();
    let position = |bytes: &[u8]| {
        let rest = bytes.iter().skip(shared).copied().chain(std::iter::repeat(0)).take(6);
        rest.fold(0.0, |position, byte| position * 256.0 + f64::from(byte))
    };
    judge(rows, position(low), position(reached), position(high))
}

/// A place in the hash space as a number, as far as references tell it.
fn position(epk: &[u8]) -> f64 {
    let bytes = orrery_storage::keys::index::reference_epk(epk);
    bytes.iter().fold(0.0, |position, byte| position * 256.0 + f64::from(*byte))
}

/// The same for the end of a range. The whole hash space ends where its hashes do, which is below its highest bytes.
fn end_position(max: &Epk) -> f64 {
    const HASHES_END: [u8; 1] = [0x40];
    position(if *max == Epk::max() { &HASHES_END } else { max.as_bytes() })
}
