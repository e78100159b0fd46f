//! How many entries a range holds, roughly and cheaply.
//!
//! A bounded number of entries is read. When the range ends before, the figure is exact. When it does not, the rest
//! is judged from what was read: entries of one value sort by hash, which spreads evenly, so the part of the hash
//! space that the entries read cover tells how many there are in all of it. In a range of values the numbers covered
//! tell the same if they are spread evenly; otherwise it can only be said that there are more than were read. The
//! same data always gives the same figure.

use orrery_index::{ValueRange, decode};
use orrery_model::{Epk, Value};
use orrery_storage::Direction;

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

/// Of what is only known to be more than was read, this many times as much is assumed.
const UNKNOWN_FACTOR: u64 = 8;

impl PartitionView {
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
        let judged = if range.is_point() {
            let (min, max) = match span {
                Span::Epk { min, max } => (min.max(self.bounds().0), max.min(self.bounds().1)),
                _ => self.bounds(),
            };
            judge(rows, position(min.as_bytes()), position(last.reference()), end_position(max))
        } else {
            let number = |bytes: &[u8]| match decode(bytes) {
                Some(Value::Number(number)) => Some(number.as_f64()),
                _ => None,
            };
            let highest = self.entries(path, range, span, Direction::Reverse, None).next_entry()?;
            let lowest = self.entries(path, range, span, Direction::Forward, None).next_entry()?;
            let ends = lowest
                .zip(highest)
                .and_then(|(lowest, highest)| Some((number(lowest.value())?, number(highest.value())?)));
            match (ends, number(last.value())) {
                (Some((low, high)), Some(reached)) => judge(rows, low, reached, high),
                _ => rows.saturating_mul(UNKNOWN_FACTOR),
            }
        };
        // Elements of arrays aside, a path has at most one entry for each item.
        let rows = judged.max(rows).min(self.item_count().max(rows));
        Ok(Estimate { rows, exact: false })
    }
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
