//! Entries of single values that were read before.
//!
//! Equality is what most filters ask for, and the same few values are asked for again and again: the open orders, the
//! readings of a kind. Reading their rows means merging a memtable with tables, row by row. A list of the references
//! is a copy of that, kept in memory.
//!
//! Every value falls into one of the partition's *stripes*, which says which LSN last changed a row there: writers
//! put it in when they submit, which is before any reader can see the commit. A list that was read by a view of LSN
//! `f` is right for a view of LSN `l` when the last change is not behind either of them. So nothing is ever taken out
//! by writers, and a list that is no longer right is replaced by whoever reads the rows next.
//!
//! A list is kept when its value is asked for the second time. Places cost memory, so a partition has them only from
//! the first such question on; what was staged before and is submitted after changes all of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use orrery_model::murmur3_x64_128;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::view::PartitionView;

/// What all lists of the process may take.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What one list may take: some thousand references. Longer ones are better read than kept.
const LIST_BYTES_MAX: usize = 256 * 1024;
const ENTRY_BYTES: u64 = 128;
/// For the size of the cache's own table.
const LISTS_EXPECTED: usize = 2_000;
/// A stripe for so many items; within limits.
const ITEMS_PER_PLACE: u64 = 4;
const PLACES_MIN: usize = 256;
const PLACES_MAX: usize = 4096;

/// Partition, and range of rows.
type ListKey = (u64, Bytes, Bytes);

/// Lists of all partitions.
static LISTS: LazyLock<Cache<ListKey, Arc<List>, Weights>> =
    LazyLock::new(|| Cache::with_weighter(LISTS_EXPECTED, BYTES_MAX, Weights));

#[derive(Clone)]
struct Weights;

impl Weighter<ListKey, Arc<List>> for Weights {
    fn weight(&self, (_, start, end): &ListKey, list: &Arc<List>) -> u64 {
        ENTRY_BYTES + (start.len() + end.len() + list.bytes.len() + 4 * list.ends.len()) as u64
    }
}

/// References of one value, in the order of their rows.
pub(super) struct List {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Rows that were read besides, of other parts of the partition.
    pub passed_over: u64,
    /// The LSN of the view that read it.
    from: u64,
}

impl List {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn reference(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.bytes[start..self.ends[at] as usize]
    }
}

/// A list in the making.
#[derive(Default)]
pub(super) struct Filling {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Filling {
    /// False: it has become too long.
    pub fn push(&mut self, reference: &[u8]) -> bool {
        self.bytes.extend_from_slice(reference);
        self.ends.push(self.bytes.len() as u32);
        self.bytes.len() + 4 * self.ends.len() <= LIST_BYTES_MAX
    }
}

struct Stripe {
    /// The last LSN that changed a row.
    changed: AtomicU64,
    /// The value that was asked for last.
    asked: AtomicU64,
}

/// What a partition knows about changes.
#[derive(Default)]
pub(in crate::partition) struct Postings {
    stripes: OnceLock<Box<[Stripe]>>,
}

/// What a transaction is going to change; `None` when it was begun while nobody asked.
pub(super) type Changes = Option<Vec<u64>>;

impl Postings {
    pub(super) fn changes(&self) -> Changes {
        self.stripes.get().map(|_| Vec::new())
    }

    /// The commit with this LSN is about to be submitted. The caller holds the partition's lock.
    pub(super) fn submitted(&self, changes: &Changes, lsn: u64) {
        let Some(stripes) = self.stripes.get() else { return };
        let all = || stripes.iter().for_each(|stripe| stripe.changed.store(lsn, Ordering::Release));
        match changes {
            None => all(),
            Some(values) => values.iter().for_each(|value| {
                stripe(stripes, *value).changed.store(lsn, Ordering::Release);
            }),
        }
    }
}

/// Tells values apart: the start of their rows, up to the reference.
pub(super) fn value_hash(row_start: &[u8]) -> u64 {
    murmur3_x64_128(row_start).0
}

fn stripe(stripes: &[Stripe], value: u64) -> &Stripe {
    // Their number is a power of two.
    &stripes[value as usize & (stripes.len() - 1)]
}

/// What is known about a value.
pub(super) enum Known {
    List(Arc<List>),
    /// Worth a list.
    Again,
    Nothing,
}

impl PartitionView {
    pub(super) fn known(&self, value: u64, start: &Bytes, end: &Bytes) -> Known {
        let stripes = self.stripes();
        let stripe = stripe(stripes, value);
        if stripe.asked.load(Ordering::Relaxed) != value {
            stripe.asked.store(value, Ordering::Relaxed);
            return Known::Nothing;
        }
        let list = LISTS.get(&(self.shared.identity, start.clone(), end.clone()));
        // Not before: the list may be that of a change which has just come.
        let changed = stripe.changed.load(Ordering::Acquire);
        match list {
            _ if changed > self.position().lsn => Known::Nothing,
            Some(list) if changed <= list.from => Known::List(list),
            _ => Known::Again,
        }
    }

    pub(super) fn learn(&self, start: &Bytes, end: &Bytes, filling: Filling, rows_read: u64) {
        let Filling { mut bytes, mut ends } = filling;
        bytes.shrink_to_fit();
        ends.shrink_to_fit();
        let passed_over = rows_read.saturating_sub(ends.len() as u64);
        let list = List { bytes, ends, passed_over, from: self.position().lsn };
        // The range may be a piece of something larger.
        let (start, end) = (Bytes::copy_from_slice(start), Bytes::copy_from_slice(end));
        LISTS.insert((self.shared.identity, start, end), Arc::new(list));
    }

    fn stripes(&self) -> &[Stripe] {
        let postings = &self.shared.index.postings;
        if let Some(stripes) = postings.stripes.get() {
            return stripes;
        }
        // Writers hold this lock from the first look at the stripes until they have submitted.
        let state = self.shared.overlay.lock();
        let submitted = state.next_lsn - 1;
        postings.stripes.get_or_init(|| {
            let count = usize::try_from(self.item_count() / ITEMS_PER_PLACE).unwrap_or(PLACES_MAX);
            let count = count.clamp(PLACES_MIN, PLACES_MAX).next_power_of_two();
            (0..count)
                .map(|_| Stripe { changed: AtomicU64::new(submitted), asked: AtomicU64::new(0) })
                .collect()
        })
    }
}
