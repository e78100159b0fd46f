//! What holds for a whole transaction: its partition, the container's settings, and the time.

use crate::etag::COMMIT_POSITIONS;
use crate::item::Item;
use crate::partition::{Partition, Settings, expiry};

/// Nothing here changes while a transaction runs.
#[derive(Clone, Copy)]
pub(in crate::partition) struct Context<'p> {
    pub(in crate::partition) partition: &'p Partition,
    pub(in crate::partition) settings: &'p Settings,
    pub(in crate::partition) now_s: u32,
}

impl<'p> Context<'p> {
    pub(super) fn new(partition: &'p Partition, settings: &'p Settings) -> Context<'p> {
        Context { partition, settings, now_s: partition.env.now_s() }
    }

    /// Whether the time of a version has run out.
    pub(super) fn is_over(&self, item: &Item) -> bool {
        expiry::is_over(self.settings.definition.default_ttl, item, self.now_s)
    }

    /// The number of an item that change `sub` of a commit creates.
    pub(super) fn new_number(&self, lsn: u64, sub: u8) -> u64 {
        // 16 bits of range, 44 of version: numbers of one partition grow with time, those of others never meet them.
        (u64::from(self.partition.range_id) & 0xFFFF) << 44
            | (lsn * COMMIT_POSITIONS + u64::from(sub)) & ((1 << 44) - 1)
    }
}
