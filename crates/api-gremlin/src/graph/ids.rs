//! Ids for elements and values that were given none: UUIDs of version 7, each greater than those before.
//!
//! Values of a vertex are ordered by their ids where a traversal orders them, so they come in the order in which they
//! were written, and what is written together lies together in the index.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use uuid::Uuid;

/// Bits below the milliseconds that count what is made in one of them.
const COUNT_BITS: u32 = 12;

/// Milliseconds and count of the last one of this process.
static LAST: AtomicU64 = AtomicU64::new(0);

pub fn next(now_ms: u64, random: u64) -> Uuid {
    let now = now_ms << COUNT_BITS;
    // More than the count has room for are taken out of the next millisecond.
    let before = LAST.fetch_update(Relaxed, Relaxed, |last| Some(now.max(last + 1))).unwrap_or_default();
    let stamp = now.max(before + 1);
    let (ms, count) = (stamp >> COUNT_BITS, stamp & ((1 << COUNT_BITS) - 1));
    const VERSION: u128 = 7;
    const VARIANT: u128 = 0b10;
    Uuid::from_u128(
        u128::from(ms) << 80
            | VERSION << 76
            | u128::from(count) << 64
            | VARIANT << 62
            | u128::from(random >> 2),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_grow_also_within_a_millisecond_and_when_the_clock_goes_back() {
        let ids: Vec<Uuid> = (0..10_000u64).map(|n| next(1_700_000_000_000 - n % 3, n << 40)).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        let texts: Vec<String> = ids.iter().map(|id| id.hyphenated().to_string()).collect();
        assert!(texts.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
        assert!(ids.iter().all(|id| id.get_variant() == uuid::Variant::RFC4122));
    }
}
