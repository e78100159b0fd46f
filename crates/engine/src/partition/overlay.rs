//! What the writers of a partition share: the next LSN, the totals, and everything submitted but not yet published.
//!
//! The store publishes commits in order and answers on its own thread. That thread must never wait for a writer (a
//! writer may be waiting for the store), so it only advances the published LSN; entries of published commits are taken
//! out of the overlay by whoever holds the lock next.

use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::rows::Totals;
use super::sizes::LogicalSizes;
use crate::item::Item;

/// The latest submitted value of a row, while a snapshot may not show it yet.
#[derive(Clone)]
pub(super) struct Pending<T> {
    pub(super) lsn: u64,
    /// `None`: deleted.
    pub(super) value: Option<T>,
}

/// What a transaction is built on: the partition's state, held by its lock, or a copy that holds up nobody.
pub(super) enum Base<'p> {
    Shared(MutexGuard<'p, Overlay>),
    Detached(Box<Overlay>),
}

impl Deref for Base<'_> {
    type Target = Overlay;

    fn deref(&self) -> &Overlay {
        match self {
            Base::Shared(state) => state,
            Base::Detached(state) => state,
        }
    }
}

impl DerefMut for Base<'_> {
    fn deref_mut(&mut self) -> &mut Overlay {
        match self {
            Base::Shared(state) => state,
            Base::Detached(state) => state,
        }
    }
}

/// Which overlay entries a commit made.
struct Submitted {
    lsn: u64,
    items: SmallVec<[Bytes; 1]>,
    claims: SmallVec<[Bytes; 1]>,
}

pub(super) struct Overlay {
    pub(super) next_lsn: u64,
    pub(super) totals: Totals,
    pub(super) items: HashMap<Bytes, Pending<Item>>,
    pub(super) claims: HashMap<Bytes, Pending<Bytes>>,
    submitted: VecDeque<Submitted>,
    /// Logical partitions whose items up to an LSN are deleted, with purges that are still on their way.
    pub(super) purges: HashMap<Bytes, u64>,
    pub(super) sizes: LogicalSizes,
}

impl Overlay {
    pub(super) fn new(next_lsn: u64, totals: Totals, purges: HashMap<Bytes, u64>) -> Overlay {
        Overlay {
            next_lsn,
            totals,
            items: HashMap::new(),
            claims: HashMap::new(),
            submitted: VecDeque::new(),
            purges,
            sizes: LogicalSizes::default(),
        }
    }

    /// A copy as far as one logical partition is concerned.
    pub(super) fn detached(&self, logical_partition: &[u8]) -> Overlay {
        let purge = self.purges.get_key_value(logical_partition);
        let items = self.items.iter().filter(|(key, _)| key.starts_with(logical_partition));
        Overlay {
            next_lsn: self.next_lsn,
            totals: self.totals,
            items: items.map(|(key, pending)| (key.clone(), pending.clone())).collect(),
            claims: self.claims.clone(),
            submitted: VecDeque::new(),
            purges: purge.into_iter().map(|(key, lsn)| (key.clone(), *lsn)).collect(),
            sizes: self.sizes.clone(),
        }
    }

    /// Whether nothing has happened to a logical partition, or to the partition's counters, since a copy was made.
    pub(super) fn is_unchanged_since(&self, copy: &Overlay, logical_partition: &[u8]) -> bool {
        self.next_lsn == copy.next_lsn
            && self.purges.get(logical_partition) == copy.purges.get(logical_partition)
            && self.sizes.is_empty() == copy.sizes.is_empty()
    }

    /// Puts the rows of a commit into the overlay. Later entries of the lists win.
    pub(super) fn remember(
        &mut self,
        lsn: u64,
        items: Vec<(Bytes, Option<Item>)>,
        claims: Vec<(Bytes, Option<Bytes>)>,
    ) {
        let submitted = Submitted {
            lsn,
            items: items.iter().map(|(key, _)| key.clone()).collect(),
            claims: claims.iter().map(|(key, _)| key.clone()).collect(),
        };
        self.items.extend(items.into_iter().map(|(key, value)| (key, Pending { lsn, value })));
        self.claims.extend(claims.into_iter().map(|(key, value)| (key, Pending { lsn, value })));
        self.submitted.push_back(submitted);
    }

    /// Takes out claims that are published and belong to no change: they were remembered under the LSN of the next one.
    pub(super) fn forget_claims(&mut self, lsn: u64) {
        // Where there has been a change since, they go with it.
        if self.next_lsn != lsn {
            return;
        }
        while self.submitted.back().is_some_and(|back| back.lsn == lsn) {
            let Some(back) = self.submitted.pop_back() else { break };
            for key in back.claims {
                self.claims.remove(&key);
            }
        }
    }

    /// Takes out what every new snapshot shows.
    pub(super) fn settle_published(&mut self, published_lsn: u64) {
        while self.submitted.front().is_some_and(|front| front.lsn <= published_lsn) {
            let Some(front) = self.submitted.pop_front() else { break };
            for key in front.items {
                // A later commit may have replaced the entry.
                if self.items.get(&key).is_some_and(|pending| pending.lsn == front.lsn) {
                    self.items.remove(&key);
                }
            }
            for key in front.claims {
                if self.claims.get(&key).is_some_and(|pending| pending.lsn == front.lsn) {
                    self.claims.remove(&key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stays_until_the_last_commit_that_wrote_it_is_published() {
        let mut state = Overlay::new(1, Totals::default(), HashMap::new());
        let key = Bytes::from_static(b"k");
        state.remember(1, vec![(key.clone(), None)], vec![(key.clone(), None)]);
        state.remember(2, vec![(key.clone(), None), (key.clone(), None)], Vec::new());
        state.settle_published(0);
        assert_eq!((state.items[&key].lsn, state.claims.len()), (2, 1));
        state.settle_published(1);
        assert_eq!((state.items.len(), state.claims.len()), (1, 0));
        state.settle_published(5);
        assert!(state.items.is_empty() && state.submitted.is_empty());
    }
}
