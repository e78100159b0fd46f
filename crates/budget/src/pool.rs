//! The memory that all requests share.
//!
//! The rule is the dynamic threshold of switches with shared buffers: a holder may grow while what it holds stays below
//! what is free. One holder alone gets half of the pool, two get a third each, and what they leave free is there for
//! everybody else; nobody has to be known in advance and nobody has to be taken anything away. Holders of less than
//! [`SMALL_BYTES`] grow as long as there is any room at all: point reads go on beside a dozen large sorts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A holder below this is never refused for its share, only when nothing is left.
pub const SMALL_BYTES: usize = 1024 * 1024;

#[derive(Debug)]
pub struct MemoryPool {
    limit_bytes: usize,
    taken_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
    refusals: AtomicU64,
}

impl MemoryPool {
    pub fn new(limit_bytes: usize) -> Arc<MemoryPool> {
        Arc::new(MemoryPool {
            limit_bytes,
            taken_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
            refusals: AtomicU64::new(0),
        })
    }

    /// For tests and tools that answer to nobody.
    pub fn unlimited() -> Arc<MemoryPool> {
        MemoryPool::new(usize::MAX / 2)
    }

    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    pub fn taken_bytes(&self) -> usize {
        self.taken_bytes.load(Relaxed)
    }

    /// The most that was taken at any moment.
    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes.load(Relaxed)
    }

    /// How often somebody was refused.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Relaxed)
    }

    /// Takes `more` for somebody who holds `holding` already, or nothing.
    pub(crate) fn take(&self, holding: usize, more: usize) -> bool {
        let wanted = holding.saturating_add(more);
        let fits = |taken: usize| {
            let after = taken.checked_add(more).filter(|after| *after <= self.limit_bytes)?;
            (wanted <= SMALL_BYTES || wanted <= self.limit_bytes - after).then_some(after)
        };
        match self.taken_bytes.fetch_update(Relaxed, Relaxed, fits) {
            Ok(before) => {
                self.peak_bytes.fetch_max(before + more, Relaxed);
                true
            }
            Err(_) => {
                self.refusals.fetch_add(1, Relaxed);
                false
            }
        }
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.taken_bytes.fetch_sub(bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn one_alone_gets_half_and_many_get_equal_shares() {
        let pool = MemoryPool::new(120 * MIB);
        let grow = |holding: &mut usize| {
            let grew = pool.take(*holding, MIB);
            *holding += if grew { MIB } else { 0 };
            grew
        };
        let mut alone = 0;
        while grow(&mut alone) {}
        assert_eq!(alone, 60 * MIB);
        pool.give_back(alone);
        let mut five = [0; 5];
        while five.iter_mut().fold(false, |any, holding| grow(holding) | any) {}
        assert_eq!(five, [20 * MIB; 5]);
        assert_eq!((pool.taken_bytes(), pool.peak_bytes()), (100 * MIB, 100 * MIB));
    }

    #[test]
    fn small_holders_find_room_while_there_is_any() {
        let pool = MemoryPool::new(10 * MIB);
        assert!(pool.take(0, 5 * MIB));
        for _ in 0..5 {
            assert!(pool.take(0, MIB));
        }
        assert!(!pool.take(0, 1));
        assert_eq!(pool.refusals(), 1);
        pool.give_back(MIB);
        assert!(pool.take(0, MIB));
    }

    #[test]
    fn absurd_sizes_are_refused_not_wrapped() {
        let pool = MemoryPool::new(10 * MIB);
        assert!(!pool.take(usize::MAX - 1, usize::MAX - 1));
        assert!(!pool.take(0, usize::MAX));
        assert_eq!(pool.taken_bytes(), 0);
    }
}
