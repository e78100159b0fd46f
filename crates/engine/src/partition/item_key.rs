//! Which row an operation is about: an item's key with the parts that its other rows need.

use bytes::Bytes;
use orrery_model::{Epk, PartitionKey};
use orrery_storage::{KEY_BYTES_MAX, keys};
use smallvec::SmallVec;

use super::rules::Claim;
use crate::error::{Error, Result};

/// Longest stored form of a partition key: three values of 2 KB with their frames.
const PARTITION_KEY_BYTES_MAX: usize = 3 * 2048 + 64;
/// What other rows put around an item's key.
const KEY_ROOM_BYTES: usize = keys::index::ROOM_BYTES;

#[derive(Debug, Clone)]
pub(super) struct ItemKey {
    /// In `Table::Items`.
    pub(super) key: Bytes,
    /// How much of `key` is the same for the whole logical partition.
    prefix_bytes: usize,
    pub(super) epk: Epk,
    partition_key: SmallVec<[u8; 32]>,
}

impl ItemKey {
    pub(super) fn new(epk: &Epk, partition_key: &PartitionKey, id: &str) -> ItemKey {
        let mut encoded = Vec::with_capacity(32);
        partition_key.encode(&mut encoded);
        let key = keys::item(epk.as_bytes(), &encoded, id.as_bytes());
        let prefix_bytes = key.len() - id.len();
        ItemKey { key, prefix_bytes, epk: epk.clone(), partition_key: SmallVec::from_vec(encoded) }
    }

    /// The target of a stored key; `None` when the bytes are no item key.
    pub(super) fn from_key(key: Bytes) -> Option<ItemKey> {
        let parts = keys::ItemKey::decode(&key)?;
        let prefix_bytes = key.len() - parts.id.len();
        let epk = Epk(SmallVec::from_slice(&parts.epk));
        let partition_key = SmallVec::from_slice(&parts.partition_key);
        Some(ItemKey { prefix_bytes, epk, partition_key, key })
    }

    /// Another item of the same logical partition.
    pub(super) fn sibling(&self, id: &[u8]) -> Bytes {
        let mut key = Vec::with_capacity(self.prefix_bytes + id.len());
        key.extend_from_slice(self.logical_partition());
        key.extend_from_slice(id);
        key.into()
    }

    /// What the keys of all items of the logical partition start with.
    pub(super) fn logical_partition(&self) -> &[u8] {
        &self.key[..self.prefix_bytes]
    }

    pub(super) fn id(&self) -> &[u8] {
        &self.key[self.prefix_bytes..]
    }

    pub(super) fn order(&self, number: u64) -> Bytes {
        keys::order(self.epk.as_bytes(), number)
    }

    pub(super) fn unique(&self, claim: &Claim) -> Bytes {
        keys::unique(self.epk.as_bytes(), &self.partition_key, claim.constraint, &claim.values)
    }

    /// Refuses keys that the store could not hold, before anything is submitted: a commit that fails would stop the
    /// partition.
    pub(super) fn check(&self) -> Result<()> {
        if self.partition_key.len() > PARTITION_KEY_BYTES_MAX
            || self.key.len() > KEY_BYTES_MAX - KEY_ROOM_BYTES
        {
            return Err(Error::bad_request("The partition key value is longer than 2048 bytes."));
        }
        Ok(())
    }
}
