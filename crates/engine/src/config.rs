//! The limits and choices of one account, fixed while it is open but for what is a [`Switch`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use orrery_storage::Durability;

#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// RU/s that one physical partition serves: a container of `T` RU/s starts with `ceil(T / this)` of them.
    pub partition_throughput_limit: u32,
    /// Bytes at which a physical partition is due to be split.
    pub partition_size_limit: u64,
    /// Bytes that the items of one partition key value may take.
    pub logical_partition_size_limit: u64,
    /// Bytes that a container without a partition key may take.
    pub fixed_container_size_limit: u64,
    pub durability: Durability,
    /// Refuse what exceeds the provisioned throughput. Charges are counted and reported either way.
    pub throttling: Switch,
    /// Let idle partitions save up to five minutes of their share.
    pub burst: bool,
    /// No offers: every partition may spend a fixed rate.
    pub serverless: bool,
    /// Memory for columns of all partitions together.
    pub column_bytes_max: u64,
    /// Items of a partition from which on vectors are linked to graphs, where an index asks for one.
    pub graph_items_min: u64,
    pub partition_calls: PartitionCalls,
}

/// A choice that may be changed while the account is open. Clones are one switch.
#[derive(Debug, Clone)]
pub struct Switch(Arc<AtomicBool>);

impl From<bool> for Switch {
    fn from(on: bool) -> Switch {
        Switch(Arc::new(AtomicBool::new(on)))
    }
}

impl Switch {
    pub fn is_on(&self) -> bool {
        self.0.load(Relaxed)
    }

    pub fn set(&self, on: bool) {
        self.0.store(on, Relaxed);
    }
}

/// How partitions of this process are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionCalls {
    Direct,
    /// As if they were elsewhere: every call and every answer goes through a pipe, as bytes. For tests.
    Loopback,
}

impl PartitionCalls {
    /// Through the loopback where the environment says `ORRERY_LOOPBACK=1`, so that any test can be run through it.
    fn of_environment() -> PartitionCalls {
        match std::env::var_os("ORRERY_LOOPBACK").is_some_and(|value| value == "1") {
            true => PartitionCalls::Loopback,
            false => PartitionCalls::Direct,
        }
    }
}

const GIB: u64 = 1024 * 1024 * 1024;

impl Default for EngineConfig {
    fn default() -> EngineConfig {
        EngineConfig {
            partition_throughput_limit: 10_000,
            partition_size_limit: 50 * GIB,
            logical_partition_size_limit: 20 * GIB,
            fixed_container_size_limit: 10 * GIB,
            durability: Durability::Strict,
            throttling: Switch::from(false),
            burst: false,
            serverless: false,
            column_bytes_max: 64 * 1024 * 1024,
            graph_items_min: 5_000,
            partition_calls: PartitionCalls::of_environment(),
        }
    }
}
