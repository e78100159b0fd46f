//! What a transaction reads: what it has staged itself, then what is on its way to the store, then a snapshot.

use bytes::Bytes;
use orrery_storage::{Snapshot, Table};

use super::staged::Staged;
use crate::error::Result;
use crate::item::Item;
use crate::partition::Partition;
use crate::partition::overlay::Base;
use crate::partition::rows::decode_item;

pub(in crate::partition) struct Reads<'p> {
    partition: &'p Partition,
    pub(in crate::partition) overlay: Base<'p>,
    snapshot: Option<Box<dyn Snapshot>>,
    /// What `look_ahead` found last, for the operation that comes to the same row next.
    looked_at: Option<(Bytes, Option<Item>)>,
    rests_on_pending: bool,
}

impl<'p> Reads<'p> {
    pub(super) fn new(
        partition: &'p Partition,
        overlay: Base<'p>,
        snapshot: Option<Box<dyn Snapshot>>,
    ) -> Reads<'p> {
        Reads { partition, overlay, snapshot, looked_at: None, rests_on_pending: false }
    }

    /// Whether something was read that is not yet durable: whatever comes of it must wait for that.
    pub(super) fn rests_on_pending(&self) -> bool {
        self.rests_on_pending
    }

    /// The snapshot, if one was needed already.
    pub(in crate::partition) fn snapshot(&self) -> Option<&dyn Snapshot> {
        self.snapshot.as_deref()
    }

    /// The version under a key, read once for whoever asks now and for the operation that comes next.
    pub(super) fn look_ahead(&mut self, staged: &mut Staged, key: &Bytes) -> Result<Option<&Item>> {
        let stored = self.item(staged, key)?;
        Ok(self.looked_at.insert((key.clone(), stored)).1.as_ref())
    }

    /// The version under a key, whether or not it still counts.
    pub(super) fn item(&mut self, staged: &mut Staged, key: &Bytes) -> Result<Option<Item>> {
        // Rows change by what is staged alone, which comes after the look.
        if let Some((_, item)) = self.looked_at.take_if(|(looked_at, _)| looked_at == key) {
            return Ok(item);
        }
        if let Some(item) = staged.item(key) {
            return Ok(item);
        }
        if let Some(pending) = self.overlay.items.get(key) {
            self.rests_on_pending = true;
            return Ok(pending.value.clone());
        }
        self.row(Table::Items, key)?.map(decode_item).transpose()
    }

    /// The id of the item that holds a unique value.
    pub(super) fn claim_holder(&mut self, staged: &Staged, key: &Bytes) -> Result<Option<Bytes>> {
        if let Some(holder) = staged.claim_holder(key) {
            return Ok(holder.cloned());
        }
        if let Some(pending) = self.overlay.claims.get(key) {
            self.rests_on_pending = true;
            return Ok(pending.value.clone());
        }
        self.row(Table::Feed, key)
    }

    fn row(&mut self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        if self.snapshot.is_none() {
            self.snapshot = Some(self.partition.snapshot()?);
        }
        let snapshot = self.snapshot.as_ref().expect("opened above");
        Ok(snapshot.get(table, key)?)
    }

    /// Whether a version was there when its logical partition was purged.
    pub(super) fn is_purged(&self, logical_partition: &[u8], item: &Item) -> bool {
        self.overlay.purges.get(logical_partition).is_some_and(|purged| item.lsn <= *purged)
    }
}
