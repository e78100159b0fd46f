//! The inside of the engine for its own tests: partitions, and what is in them.
//!
//! No api uses this. A container hides where its partitions are; tests that look at one's rows, or do its upkeep by
//! hand, know that it is here.

use std::sync::Arc;

use orrery_model::PartitionKey;

use crate::account::Account;
use crate::container::Container;
use crate::error::Result;
use crate::item::SessionRequirement;
use crate::partition::{Draft, Drafted};
use crate::throughput::RequestClass;

pub use crate::call::PagesSent;
pub use crate::partition::index::{
    Composite, Entries, Entry, Estimate, IndexedPath, Items, PartitionView, PathNumber,
};
pub use crate::partition::{ORDERED_SCAN_ITEMS_MAX, Partition};

/// The partitions of a container that are in this process.
pub trait PartitionsHere {
    /// The one that owns a full key.
    fn partition_of(&self, key: &PartitionKey) -> Result<Arc<Partition>>;

    /// The one with a range id, or `RangeGone`.
    fn partition(&self, range_id: u32) -> Result<Arc<Partition>>;

    /// All of them, in hash order.
    fn partitions(&self) -> Result<Vec<Arc<Partition>>>;

    /// Runs `work` on a draft of a logical partition and commits what it did.
    fn draft<T>(
        &self,
        key: &PartitionKey,
        session: &SessionRequirement,
        class: RequestClass,
        work: impl FnOnce(&mut Draft<'_>) -> Result<T>,
    ) -> Result<Drafted<T>>;
}

impl PartitionsHere for Container {
    fn partition_of(&self, key: &PartitionKey) -> Result<Arc<Partition>> {
        Container::partition_of(self, key)
    }

    fn partition(&self, range_id: u32) -> Result<Arc<Partition>> {
        Container::partition(self, range_id)
    }

    fn partitions(&self) -> Result<Vec<Arc<Partition>>> {
        Container::partitions(self)
    }

    fn draft<T>(
        &self,
        key: &PartitionKey,
        session: &SessionRequirement,
        class: RequestClass,
        work: impl FnOnce(&mut Draft<'_>) -> Result<T>,
    ) -> Result<Drafted<T>> {
        Container::draft(self, key, session, class, work)
    }
}

/// The partitions of an account that are open in this process.
pub fn open_partitions(account: &Account) -> Vec<Arc<Partition>> {
    account.open_partitions()
}

/// The pages of queries that were sent through the loopback; `None` where partitions are called directly.
pub fn pages_sent(account: &Account) -> Option<PagesSent> {
    account.pages_sent()
}
