//! Items that were read lately, one by one, so that a point read finds its item without looking through memtables and
//! blocks of tables.
//!
//! Blocks hold several items each, of which one may be in demand; here the memory goes to the items themselves, and
//! what is asked for once makes room first (the policy is that of `quick_cache`, close to S3-FIFO). Scans neither
//! look here nor leave anything behind.
//!
//! **What a snapshot may see.** An entry says: from sequence number `from` on, the item is this. A snapshot with an
//! older number passes it by and asks the tree. That an entry never outlives its truth rests on two things:
//!
//! - the committer changes or removes an item's entry after the commit is durable and before it is published, so
//!   whoever can see the commit cannot see the entry from before it;
//! - a reader that has found an item in the tree offers it only if no commit has touched the item's stripe since the
//!   reader's snapshot. Otherwise a slow reader could put back what a commit has just replaced. Stripes stand for many
//!   items, which makes a refusal a little too frequent and never wrong.
//!
//! Rows of the index that are asked for by key are kept like items: the nodes of graphs, of which a search reads
//! thousands.
//!
//! A dropped space that is opened again has another generation; what was kept of the old one is never found and makes
//! room in time.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};

use crate::keys;
use crate::store::Table;

/// Larger items stay in their blocks: copying one costs more than finding it.
const ITEM_BYTES_MAX: usize = 64 * 1024;
/// What an entry costs beside its key and value: two handles, the policy's marks, the allocation.
const ENTRY_OVERHEAD_BYTES: usize = 160;
/// For the size of the policy's memory of what it let go; right within a factor of ten is good enough.
const ITEM_BYTES_EXPECTED: u64 = 1024;
const STRIPES: usize = 256;

/// Tells rows of the index from items. Generations are counted up from 0 and never get there.
const OF_INDEX: u64 = 1 << 63;

/// The generation under which a row is kept; `None` for rows that are not.
pub(super) fn kept_under(generation: u64, table: Table, key: &[u8]) -> Option<u64> {
    match table {
        Table::Items => Some(generation),
        Table::Index if keys::index::is_asked_for(key) => Some(generation | OF_INDEX),
        Table::Index | Table::Feed => None,
    }
}

pub(super) struct ItemCache {
    entries: Cache<Key, Entry, Weights, BuildHasherDefault<Known>>,
    stripes: Box<[Stripe]>,
    hasher: RandomState,
}

/// Counters lie with the stripes so that cores do not fight over one pair of them.
#[derive(Default)]
#[repr(align(64))]
struct Stripe {
    /// The last commit that touched an item of this stripe.
    last_write: Mutex<u64>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CacheStats {
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) size_bytes: u64,
}

/// An item's address, hashed once for all that is done with it.
pub(super) struct ItemAddress<'k> {
    hash: u64,
    generation: u64,
    key: &'k [u8],
}

impl ItemCache {
    pub(super) fn new(size_bytes_max: u64) -> ItemCache {
        let items = usize::try_from(size_bytes_max / ITEM_BYTES_EXPECTED).unwrap_or(usize::MAX);
        ItemCache {
            entries: Cache::with(
                items,
                size_bytes_max,
                Weights,
                BuildHasherDefault::default(),
                DefaultLifecycle::default(),
            ),
            stripes: (0..STRIPES).map(|_| Stripe::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn address<'k>(&self, generation: u64, key: &'k [u8]) -> ItemAddress<'k> {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u64(generation);
        hasher.write(key);
        ItemAddress { hash: hasher.finish(), generation, key }
    }

    /// The item as a snapshot with this number sees it, if it is here.
    pub(super) fn get(&self, address: &ItemAddress<'_>, snapshot: u64) -> Option<Bytes> {
        let entry = self.entries.get(address).filter(|entry| entry.from <= snapshot);
        let stripe = self.stripe(address.hash);
        match &entry {
            Some(_) => stripe.hits.fetch_add(1, Relaxed),
            None => stripe.misses.fetch_add(1, Relaxed),
        };
        entry.map(|entry| entry.value)
    }

    /// Offers what a snapshot has found in the tree.
    pub(super) fn fill(&self, address: &ItemAddress<'_>, snapshot: u64, value: &[u8]) {
        if value.len() > ITEM_BYTES_MAX {
            return;
        }
        // Copied, because the value is a part of a block that would stay in memory with it.
        let mut bytes = BytesMut::with_capacity(address.key.len() + value.len());
        bytes.extend_from_slice(address.key);
        bytes.extend_from_slice(value);
        let mut bytes = bytes.freeze();
        let key = bytes.split_to(address.key.len());
        let key = Key { hash: address.hash, generation: address.generation, key };

        let last_write = self.stripe(address.hash).last_write.lock();
        if *last_write < snapshot {
            self.entries.insert(key, Entry { from: snapshot, value: bytes });
        }
    }

    /// Takes note of a durable commit that is not yet published. Only items that are here already stay here: a load
    /// must not push out what is read.
    pub(super) fn wrote(&self, generation: u64, key: &Bytes, seqno: u64, value: Option<&Bytes>) {
        let address = self.address(generation, key);
        let mut last_write = self.stripe(address.hash).last_write.lock();
        *last_write = seqno;
        match value.filter(|value| value.len() <= ITEM_BYTES_MAX) {
            Some(value) => {
                let key = Key { hash: address.hash, generation, key: key.clone() };
                // An error says that it was not here.
                let _ = self.entries.replace(key, Entry { from: seqno + 1, value: value.clone() }, true);
            }
            None => drop(self.entries.remove(&address)),
        }
    }

    pub(super) fn stats(&self) -> CacheStats {
        let sum = |count: fn(&Stripe) -> &AtomicU64| {
            self.stripes.iter().map(|stripe| count(stripe).load(Relaxed)).sum()
        };
        CacheStats {
            hits: sum(|stripe| &stripe.hits),
            misses: sum(|stripe| &stripe.misses),
            size_bytes: self.entries.weight(),
        }
    }

    fn stripe(&self, hash: u64) -> &Stripe {
        &self.stripes[hash as usize % STRIPES]
    }
}

struct Key {
    hash: u64,
    generation: u64,
    key: Bytes,
}

#[derive(Clone)]
struct Entry {
    /// The lowest number of a snapshot that sees this.
    from: u64,
    value: Bytes,
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.generation == other.generation && self.key == other.key
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Hash for ItemAddress<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Equivalent<Key> for ItemAddress<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.generation == key.generation && self.key == key.key
    }
}

/// Passes on a hash that is known already.
#[derive(Default)]
struct Known(u64);

impl Hasher for Known {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Keys write one number; this is for completeness.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[derive(Clone)]
struct Weights;

impl Weighter<Key, Entry> for Weights {
    fn weight(&self, key: &Key, entry: &Entry) -> u64 {
        (ENTRY_OVERHEAD_BYTES + key.key.len() + entry.value.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(cache: &ItemCache, generation: u64, key: &'static str, snapshot: u64) -> Option<Bytes> {
        cache.get(&cache.address(generation, key.as_bytes()), snapshot)
    }

    #[test]
    fn a_snapshot_sees_only_what_is_not_newer_than_itself() {
        let cache = ItemCache::new(1 << 20);
        let address = cache.address(1, b"key");
        cache.fill(&address, 10, b"old");
        assert_eq!(cache.get(&address, 9), None);
        assert_eq!(cache.get(&address, 10), Some("old".into()));
        cache.wrote(1, &"key".into(), 15, Some(&"new".into()));
        assert_eq!(cache.get(&address, 15), None, "a snapshot sees what is below its number");
        assert_eq!(cache.get(&address, 16), Some("new".into()));
        cache.wrote(1, &"key".into(), 20, None);
        assert_eq!(cache.get(&address, 21), None);
    }

    #[test]
    fn a_slow_reader_cannot_put_back_what_was_replaced_or_deleted() {
        let cache = ItemCache::new(1 << 20);
        let address = cache.address(1, b"key");
        cache.wrote(1, &"key".into(), 15, None);
        for snapshot in [9, 15] {
            cache.fill(&address, snapshot, b"old");
            assert_eq!(cache.get(&address, 100), None, "snapshot {snapshot} does not see commit 15");
        }
        cache.fill(&address, 16, b"present");
        assert_eq!(cache.get(&address, 16), Some("present".into()));
    }

    #[test]
    fn a_commit_keeps_what_is_here_and_brings_nothing_new() {
        let cache = ItemCache::new(1 << 20);
        cache.wrote(1, &"new".into(), 5, Some(&"value".into()));
        assert_eq!(seen(&cache, 1, "new", 100), None);
        assert_eq!(cache.stats().size_bytes, 0);
    }

    #[test]
    fn generations_and_keys_are_apart() {
        let cache = ItemCache::new(1 << 20);
        cache.fill(&cache.address(1, b"key"), 10, b"value");
        assert_eq!(seen(&cache, 2, "key", 10), None);
        assert_eq!(seen(&cache, 1, "ke", 10), None);
        assert_eq!(seen(&cache, 1, "key", 10), Some("value".into()));
        assert_eq!(
            cache.stats(),
            CacheStats { hits: 1, misses: 2, size_bytes: (ENTRY_OVERHEAD_BYTES + 8) as u64 }
        );
    }

    #[test]
    fn nodes_of_graphs_are_kept_apart_from_items() {
        let node = keys::index::node(7, 9);
        assert_eq!(kept_under(3, Table::Items, &node), Some(3));
        assert!(kept_under(3, Table::Index, &node).is_some_and(|under| under != 3));
        assert_eq!(kept_under(3, Table::Index, &keys::index::graph(7)), None);
        assert_eq!(kept_under(3, Table::Feed, &node), None);
    }

    #[test]
    fn it_stays_within_its_bytes_and_keeps_what_is_read_again() {
        let cache = ItemCache::new(256 * 1024);
        let hot: Vec<String> = (0..20).map(|number| format!("hot {number}")).collect();
        let value = vec![7; 1000];
        for number in 0..20_000u64 {
            let cold = format!("cold {number}");
            cache.fill(&cache.address(1, cold.as_bytes()), 10, &value);
            let key = &hot[number as usize % hot.len()];
            let address = cache.address(1, key.as_bytes());
            if cache.get(&address, 10).is_none() {
                cache.fill(&address, 10, &value);
            }
            assert!(cache.stats().size_bytes <= 256 * 1024);
        }
        let stats = cache.stats();
        assert!(stats.hits > 19_000, "{stats:?}");
    }

    #[test]
    fn an_item_that_has_become_too_large_is_not_left_in_its_old_form() {
        let cache = ItemCache::new(1 << 20);
        let address = cache.address(1, b"key");
        cache.fill(&address, 10, b"small");
        cache.wrote(1, &"key".into(), 11, Some(&vec![0; ITEM_BYTES_MAX + 1].into()));
        assert_eq!(cache.get(&address, 12), None);
        cache.fill(&address, 12, &vec![0; ITEM_BYTES_MAX + 1]);
        assert_eq!(cache.get(&address, 12), None);
        let none = ItemCache::new(0);
        none.fill(&none.address(1, b"key"), 10, b"value");
        assert_eq!(seen(&none, 1, "key", 10), None, "a cache without room");
    }
}
