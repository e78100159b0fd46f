//! Finding an item by the number in its rid.
//!
//! Clients may address an item by its `_self` link, which names it by number instead of by id; the order rows, which
//! list a logical partition by creation, lead from one to the other.

use orrery_model::{Epk, PartitionKey};
use orrery_storage::{Table, keys};

use super::{Partition, rows};
use crate::charge;
use crate::error::Result;
use crate::item;

impl Partition {
    /// The partition key and the id of the item with this number. Whether the item is still shown is for whoever
    /// reads it to find out.
    pub(crate) fn item_at(&self, epk: &Epk, number: u64) -> Result<(PartitionKey, String)> {
        let row = self.snapshot()?.get(Table::Index, &keys::order(epk.as_bytes(), number))?;
        let key = row.ok_or_else(|| item::not_found().charged(charge::LOOK_UP_RU))?;
        let parts = keys::ItemKey::decode(&key).ok_or_else(|| rows::damaged("order"))?;
        let key = PartitionKey::decode(&parts.partition_key).ok_or_else(|| rows::damaged("order"))?;
        let id = String::from_utf8(parts.id.to_vec()).map_err(|_| rows::damaged("order"))?;
        Ok((key, id))
    }
}
