//! How large logical partitions are, where it matters.
//!
//! A logical partition can only have reached its limit when the physical partition around it holds that much, and
//! that size is always known. Only from then on are logical partitions measured: once, by reading the range of their
//! items outside the lock, and then kept up to date by every commit. What commits while a measurement runs and is not
//! in its snapshot is counted from the moment the figure is entered; a limit of gigabytes bears that.

use std::collections::HashMap;

use bytes::Bytes;
use orrery_storage::{Direction, KeyRange, Table};

use super::Partition;
use super::item_key::ItemKey;
use super::rows::{ATTACHED_HEADER_BYTES, decode_item};
use crate::error::Result;
use crate::item::Item;

/// Measured logical partitions that are remembered.
const SIZES_MAX: usize = 4096;
/// What an item row holds besides its document.
const ROW_HEADER_BYTES: usize = 23;

#[derive(Clone, Default)]
pub(super) struct LogicalSizes(HashMap<Bytes, u64>);

impl LogicalSizes {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn get(&self, logical_partition: &[u8]) -> Option<u64> {
        self.0.get(logical_partition).copied()
    }

    pub(super) fn add(&mut self, logical_partition: &[u8], bytes: i64) {
        if let Some(size) = self.0.get_mut(logical_partition) {
            *size = size.saturating_add_signed(bytes);
        }
    }

    pub(super) fn enter(&mut self, logical_partition: Bytes, size: u64) {
        // Any entry may go: it is measured again when it is next needed.
        if self.0.len() >= SIZES_MAX
            && let Some(victim) = self.0.keys().next().cloned()
        {
            self.0.remove(&victim);
        }
        self.0.insert(logical_partition, size);
    }
}

/// What an item's row counts.
pub(super) fn item_row_bytes(key: &[u8], item: &Item) -> usize {
    let optional = if item.ttl.is_some() { 4 } else { 0 } + if item.late_members > 0 { 2 } else { 0 };
    let attached = item.attached.as_ref().map_or(0, |_| ATTACHED_HEADER_BYTES + item.attached_bytes());
    key.len() + ROW_HEADER_BYTES + optional + attached + item.document.len()
}

/// The service's text, with the limit that is in force.
pub(super) fn full_message(limit_bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];
    let unit =
        UNITS.into_iter().find(|(_, bytes)| limit_bytes >= *bytes && limit_bytes.is_multiple_of(*bytes));
    match unit {
        Some((name, bytes)) => {
            format!("Partition key reached maximum size of {} {name}", limit_bytes / bytes)
        }
        None => format!("Partition key reached maximum size of {limit_bytes} bytes"),
    }
}

impl Partition {
    /// Measures a logical partition and remembers its size.
    pub(super) fn measure(&self, target: &ItemKey) -> Result<()> {
        let snapshot = self.snapshot()?;
        let range = KeyRange::prefix(target.logical_partition());
        let mut rows = snapshot.scan(Table::Items, range, Direction::Forward);
        let mut size = 0u64;
        while let Some(row) = rows.next_row() {
            let row = row?;
            size += (row.key.len() + row.value.len()) as u64;
            debug_assert!(
                decode_item(row.value.clone())
                    .is_ok_and(|item| { item_row_bytes(&row.key, &item) == row.key.len() + row.value.len() })
            );
        }
        let prefix = Bytes::copy_from_slice(target.logical_partition());
        self.shared.overlay.lock().sizes.enter(prefix, size);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_told_in_its_largest_whole_unit() {
        assert_eq!(full_message(20 << 30), "Partition key reached maximum size of 20 GB");
        assert_eq!(full_message(10 << 20), "Partition key reached maximum size of 10 MB");
        assert_eq!(full_message(1500), "Partition key reached maximum size of 1500 bytes");
    }

    #[test]
    fn only_so_many_sizes_are_remembered() {
        let mut sizes = LogicalSizes::default();
        for n in 0..SIZES_MAX as u32 + 10 {
            sizes.enter(Bytes::copy_from_slice(&n.to_le_bytes()), 1);
        }
        assert_eq!(sizes.0.len(), SIZES_MAX);
    }
}
