//! What an operator is shown of a store that goes away and comes back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::account::Account;

/// Counted where it happens.
#[derive(Default)]
pub(crate) struct Outages {
    reopened: AtomicU64,
    catalog_lost: AtomicBool,
}

impl Outages {
    pub(crate) fn partition_reopened(&self) {
        self.reopened.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn catalog_lost(&self, lost: bool) {
        self.catalog_lost.store(lost, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutageFigures {
    /// Partitions that were open and have no store at the moment.
    pub partitions_lost: u64,
    /// Partitions that were opened again, since the start.
    pub partitions_reopened: u64,
    /// Databases and containers cannot be changed at the moment.
    pub catalog_lost: bool,
}

impl Account {
    pub fn outage_figures(&self) -> OutageFigures {
        let mut partitions_lost = 0;
        for database in self.databases() {
            for container in database.containers() {
                partitions_lost +=
                    container.map().slots().iter().filter(|slot| slot.is_lost()).count() as u64;
            }
        }
        let outages = &self.shared().outages;
        OutageFigures {
            partitions_lost,
            partitions_reopened: outages.reopened.load(Ordering::Relaxed),
            catalog_lost: outages.catalog_lost.load(Ordering::Relaxed),
        }
    }
}
