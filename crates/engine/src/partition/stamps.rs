//! Which logical partitions were written since somebody read them.
//!
//! A copy of items that an api keeps in memory is good as long as nothing in their logical partition was written. A
//! partition has a row of *stamps*, each the LSN of the last commit that changed an item of those logical partitions
//! that share it. Writers set them under the lock that orders them, before they submit.
//!
//! ```text
//! keep   s = stamp, and everything up to s is published; read; keep what was read with s
//! use    the stamp is still s: nothing was submitted since, so the same would be read again
//! ```
//!
//! A commit that was stamped and is not yet published makes copies useless a moment too early, never too late.
//! There are stamps from the first time that anybody asks for one; a partition that nobody asks pays one look.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use orrery_model::Epk;
use orrery_storage::keys;

use super::Partition;

/// Stamps of a partition: 32 KB.
const STAMPS: usize = 4096;

/// What a copy of a logical partition's items was true for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Of the partition, in this process.
    pub(crate) identity: u64,
    lsn: u64,
    pub range_id: u32,
}

impl Freshness {
    /// Tells the partition from all others that this process has or had open.
    pub fn partition(&self) -> u64 {
        self.identity
    }
}

#[derive(Default)]
pub(super) struct Stamps(OnceLock<Box<[AtomicU64]>>);

impl Stamps {
    /// Takes note of what a commit changes, before it is submitted. The caller holds the partition's lock. One that
    /// changes no item by its key may hide any: a purge does.
    pub fn note<'k>(&self, lsn: u64, mut changed: impl Iterator<Item = &'k Bytes>) {
        let Some(stamps) = self.0.get() else { return };
        let all = || stamps.iter().for_each(|stamp| stamp.store(lsn, Ordering::Release));
        let Some(first) = changed.next() else { return all() };
        for key in std::iter::once(first).chain(changed) {
            match keys::ItemKey::decode(key) {
                Some(parts) => stamps[place(&parts.epk)].store(lsn, Ordering::Release),
                None => return all(),
            }
        }
    }

    fn of(&self, epk: &Epk) -> Option<u64> {
        self.0.get().map(|stamps| stamps[place(epk.as_bytes())].load(Ordering::Acquire))
    }

    /// Has writers note what they change from now on. The caller holds the partition's lock; `last` is the last LSN
    /// that was submitted.
    fn begin(&self, last: u64) {
        self.0.get_or_init(|| (0..STAMPS).map(|_| AtomicU64::new(last)).collect());
    }
}

/// EPKs are hashes already; mixing is for those that begin alike.
fn place(epk: &[u8]) -> usize {
    let mixed = epk.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (mixed >> 32) as usize % STAMPS
}

impl Partition {
    /// What is read of a logical partition from now on is good for; `None` while nobody can tell: where items end by
    /// themselves, are being purged, or were written and are not published.
    pub(crate) fn freshness(&self, epk: &Epk) -> Option<Freshness> {
        let shared = &self.shared;
        let closed = shared.closed.load(Ordering::Acquire) || shared.gate.check_read().is_err();
        if closed || self.settings().definition.default_ttl.is_some() || !shared.purges.load().is_empty() {
            return None;
        }
        let lsn = shared.stamps.of(epk).or_else(|| {
            // Writers hold this lock from their first look until they have submitted.
            let state = shared.overlay.lock();
            shared.stamps.begin(state.next_lsn - 1);
            shared.stamps.of(epk)
        })?;
        let fresh = Freshness { identity: shared.identity, lsn, range_id: self.range_id };
        (shared.published_lsn() >= lsn).then_some(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_stamps_its_logical_partitions_and_a_purge_all() {
        let stamps = Stamps::default();
        let epk = |byte: u8| Epk([byte; 16].into_iter().collect());
        let key = |byte: u8| keys::item(epk(byte).as_bytes(), b"k", b"id");
        stamps.note(3, [key(1)].iter());
        assert_eq!(stamps.of(&epk(1)), None);
        stamps.begin(3);
        stamps.note(4, [key(0), key(2)].iter());
        assert_eq!([0, 1, 2].map(|byte| stamps.of(&epk(byte))), [Some(4), Some(3), Some(4)]);
        stamps.note(5, [].iter());
        assert_eq!([0, 1, 2].map(|byte| stamps.of(&epk(byte))), [Some(5); 3]);
    }
}
