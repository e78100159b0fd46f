//! Consumption by second over the last minute, in a ring of atomics.
//!
//! Each cell holds the second it counts (24 bits) and thousandths of RU (40 bits). Whoever comes first in a new
//! second takes the cell over. A thread that was held up for a whole turn of the ring would count into a later
//! second; a report bears that.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Seconds that are remembered; a power of two above [`REPORTED_S`].
const CELLS: usize = 64;
/// Seconds that a report looks back.
pub(super) const REPORTED_S: u64 = 60;

const AMOUNT_BITS: u32 = 40;
const AMOUNT_MAX: u64 = (1 << AMOUNT_BITS) - 1;
const SECOND_MASK: u64 = (1 << 24) - 1;

pub(super) struct Recent([AtomicU64; CELLS]);

impl Recent {
    pub(super) fn new() -> Recent {
        Recent([const { AtomicU64::new(0) }; CELLS])
    }

    pub(super) fn add(&self, second: u64, amount_milli: u64) {
        let cell = &self.0[second as usize % CELLS];
        let tag = (second & SECOND_MASK) << AMOUNT_BITS;
        let _ = cell.fetch_update(Relaxed, Relaxed, |held| {
            let before = if held & !AMOUNT_MAX == tag { held & AMOUNT_MAX } else { 0 };
            Some(tag | before.saturating_add(amount_milli).min(AMOUNT_MAX))
        });
    }

    /// What was spent in one second, in thousandths.
    fn of(&self, second: u64) -> u64 {
        let held = self.0[second as usize % CELLS].load(Relaxed);
        if held >> AMOUNT_BITS == second & SECOND_MASK { held & AMOUNT_MAX } else { 0 }
    }

    /// The most that was spent in one second of the last minute, with the present one.
    pub(super) fn peak_milli(&self, second: u64) -> u64 {
        (second.saturating_sub(REPORTED_S)..=second).map(|second| self.of(second)).max().unwrap_or(0)
    }

    /// The average over the last `span` complete seconds.
    pub(super) fn average_milli(&self, second: u64, span: u64) -> u64 {
        let span = span.clamp(1, REPORTED_S).min(second.max(1));
        let sum: u64 = (second.saturating_sub(span)..second).map(|second| self.of(second)).sum();
        sum / span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_counted_apart_and_forgotten_after_a_minute() {
        let recent = Recent::new();
        recent.add(100, 500);
        recent.add(100, 250);
        recent.add(101, 100);
        assert_eq!(recent.peak_milli(101), 750);
        assert_eq!(recent.average_milli(102, 2), 425);
        assert_eq!(recent.peak_milli(160), 750);
        assert_eq!(recent.peak_milli(161), 100);
        recent.add(164, 7);
        assert_eq!(recent.peak_milli(164), 7, "the cell of second 100 was taken over");
    }

    #[test]
    fn a_cell_saturates() {
        let recent = Recent::new();
        recent.add(5, u64::MAX);
        recent.add(5, 1);
        assert_eq!(recent.peak_milli(5), AMOUNT_MAX);
        assert_eq!(recent.peak_milli(6), AMOUNT_MAX);
    }
}
