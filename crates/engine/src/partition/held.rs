//! A partition as it was at a moment, for readers that want to see it so for a while: transactions, snapshot reads.
//!
//! A snapshot of the store is held, and what has changed since is told by the feed. So a reader can ask the index of
//! the present, which is fast, and put right what it finds: versions of later are replaced by those of then, and
//! items that have left the result come back. Purges of whole logical partitions are not told item by item; a reader
//! has to begin anew behind one, and so where the partition has gone to others.

use std::sync::Arc;

use bytes::Bytes;
use orrery_model::{Epk, PartitionKey};
use orrery_storage::{Direction, Snapshot, Table, keys};

use super::item_key::ItemKey;
use super::rows::{ChangeKind, FeedRow, damaged, decode_item};
use super::{Partition, Purges, expiry, newest};
use crate::container::Container;
use crate::error::{Error, Kind, Result};
use crate::item::Item;

/// Changes that one look may go through.
const CHANGES_MAX: usize = 1_000_000;

struct Held {
    partition: Arc<Partition>,
    snapshot: Box<dyn Snapshot>,
    lsn: u64,
    now_s: u32,
    default_ttl: Option<i32>,
    purges: Arc<Purges>,
}

impl Held {
    fn new(partition: Arc<Partition>) -> Result<Held> {
        let view = partition.view(&[])?;
        let (default_ttl, lsn) = (view.default_ttl, view.lsn);
        let purges = Arc::clone(&view.purges);
        drop(view);
        let snapshot = partition.snapshot()?;
        // What was published in between is in it.
        let lsn = newest(snapshot.as_ref())?.map_or(lsn, |(newest, _)| newest.max(lsn));
        Ok(Held { now_s: partition.env.now_s(), snapshot, lsn, default_ttl, purges, partition })
    }

    fn item(&self, key: &[u8]) -> Result<Option<Item>> {
        let Some(item) = self.snapshot.get(Table::Items, key)?.map(decode_item).transpose()? else {
            return Ok(None);
        };
        if expiry::is_over(self.default_ttl, &item, self.now_s) {
            return Ok(None);
        }
        let prefix_bytes = keys::ItemKey::decode(key).map_or(0, |parts| key.len() - parts.id.len());
        let purged = self.purges.get(&key[..prefix_bytes]).is_some_and(|purged| item.lsn <= *purged);
        Ok((!purged).then_some(item))
    }

    fn changed(&self, found: &mut Vec<Bytes>) -> Result<()> {
        let snapshot = self.partition.snapshot()?;
        let mut rows = snapshot.scan(Table::Feed, keys::feed_after(self.lsn), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let change = FeedRow::decode(&row.value)?;
            if change.kind == ChangeKind::Purge || found.len() >= CHANGES_MAX {
                return Err(gone());
            }
            found.push(change.key);
        }
        Ok(())
    }
}

fn gone() -> Error {
    Error::new(Kind::RangeGone, "What a reader has held can no longer be told from what is there now.")
}

/// All partitions of a container as they were at a moment.
pub struct HeldContainer {
    container: Arc<Container>,
    parts: Vec<Held>,
}

impl HeldContainer {
    /// `None` where some of the partitions are on other nodes.
    pub fn new(container: &Arc<Container>) -> Result<Option<HeldContainer>> {
        let parts = container.partitions()?.into_iter().map(Held::new).collect::<Result<Vec<_>>>()?;
        Ok(Some(HeldContainer { container: container.clone(), parts }))
    }

    fn part(&self, epk: &Epk) -> Option<&Held> {
        self.parts.iter().find(|part| {
            let (min, max) = part.partition.bounds();
            epk >= min && epk < max
        })
    }

    /// Where an item lies.
    pub fn key_of(&self, key: &PartitionKey, id: &str) -> Bytes {
        let epk = self.container.definition().partition_key.effective(key);
        ItemKey::new(&epk, key, id).key
    }

    /// The id of an item by where it lies.
    pub fn id_of(key: &[u8]) -> Option<String> {
        let parts = keys::ItemKey::decode(key)?;
        std::str::from_utf8(parts.id).ok().map(str::to_owned)
    }

    /// Whether a version was written later.
    pub fn is_later(&self, key: &[u8], lsn: u64) -> Result<bool> {
        Ok(lsn > self.part_of(key)?.lsn)
    }

    /// An item as it was.
    pub fn item(&self, key: &[u8]) -> Result<Option<Item>> {
        self.part_of(key)?.item(key)
    }

    fn part_of(&self, key: &[u8]) -> Result<&Held> {
        let parts = keys::ItemKey::decode(key).ok_or_else(|| damaged("item"))?;
        self.part(&Epk(parts.epk[..].into())).ok_or_else(gone)
    }

    /// Where items lie that have changed since.
    pub fn changed(&self) -> Result<Vec<Bytes>> {
        let mut found = Vec::new();
        self.parts.iter().try_for_each(|part| part.changed(&mut found))?;
        Ok(found)
    }
}
