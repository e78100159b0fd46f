//! What a transaction comes to: how much the partition holds after it, and what has to be looked after later.

use bytes::Bytes;

use crate::partition::item_key::ItemKey;
use crate::partition::rows::Totals;

pub(super) struct Tally {
    totals: Totals,
    /// Growth of logical partitions.
    sizes: Vec<(Bytes, i64)>,
    earliest_expiry: Option<u32>,
    deletes: bool,
    versions: bool,
}

/// The figures at some point.
pub(super) struct TallyMark {
    totals: Totals,
    sizes: usize,
}

impl Tally {
    pub(super) fn new(totals: Totals) -> Tally {
        Tally { totals, sizes: Vec::new(), earliest_expiry: None, deletes: false, versions: false }
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    /// `sized`: sizes of logical partitions are known, and kept.
    pub(super) fn grow(&mut self, target: &ItemKey, items: i64, bytes: i64, sized: bool) {
        self.totals.items = self.totals.items.saturating_add_signed(items);
        self.totals.bytes = self.totals.bytes.saturating_add_signed(bytes);
        if sized {
            self.sizes.push((Bytes::copy_from_slice(target.logical_partition()), bytes));
        }
    }

    /// How large the partition is with so much more.
    pub(super) fn bytes_with(&self, growth: i64) -> u64 {
        self.totals.bytes.saturating_add_signed(growth)
    }

    /// By how much a logical partition has grown.
    pub(super) fn growth_of(&self, logical_partition: &[u8]) -> i64 {
        self.sizes.iter().filter(|(prefix, _)| prefix == logical_partition).map(|(_, bytes)| bytes).sum()
    }

    /// Growth of logical partitions, where their sizes are kept.
    pub(super) fn into_sizes(self) -> Vec<(Bytes, i64)> {
        self.sizes
    }

    pub(super) fn mark(&self) -> TallyMark {
        TallyMark { totals: self.totals, sizes: self.sizes.len() }
    }

    pub(super) fn undo(&mut self, mark: &TallyMark) {
        self.totals = mark.totals;
        self.sizes.truncate(mark.sizes);
    }

    // ---- what upkeep has to know

    pub(super) fn note_expiry(&mut self, second: u32) {
        self.earliest_expiry = Some(self.earliest_expiry.map_or(second, |earliest| earliest.min(second)));
    }

    /// The first second in which something written here will be over.
    pub(super) fn earliest_expiry(&self) -> Option<u32> {
        self.earliest_expiry
    }

    pub(super) fn note_delete(&mut self) {
        self.deletes = true;
    }

    /// Whether the feed got a row that will be removed one day.
    pub(super) fn deletes(&self) -> bool {
        self.deletes
    }

    pub(super) fn note_version(&mut self) {
        self.versions = true;
    }

    /// Whether versions were kept that will be removed one day.
    pub(super) fn versions(&self) -> bool {
        self.versions
    }
}
