//! Checking and mending a whole account that nobody uses: every container, every physical partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use orrery_storage::{SpaceId, Store, Table};

use crate::account::Account;
use crate::catalog::CATALOG_SPACE;
use crate::catalog::rows::RowKey;
use crate::container::Container;
use crate::error::Result;
use crate::partition::Partition;

/// Findings that are kept with their keys; more are counted.
const FINDINGS_MAX: usize = 100_000;

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    pub database: String,
    pub container: String,
    /// The id of the partition's range.
    pub partition: u32,
    pub kind: &'static str,
    pub problem: String,
    pub key: String,
}

#[derive(Debug, Default)]
pub struct AccountCheck {
    pub databases: u64,
    pub containers: u64,
    pub partitions: u64,
    /// Rows by kind.
    pub rows: BTreeMap<&'static str, u64>,
    pub findings: Vec<Finding>,
    /// Findings beyond those that were kept.
    pub more: u64,
}

/// What mending may assume.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mending {
    /// Changes that clients have seen may be lost.
    pub lossy: bool,
    /// The index is to be made anew although its rows agree.
    pub remake_index: bool,
}

impl Account {
    /// Compares all rows of all containers. Told as it goes: partitions done, and how many there are.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> AccountCheck {
        let mut check = AccountCheck { databases: self.databases().len() as u64, ..AccountCheck::default() };
        let slots = self.slots();
        for (done, (container, range)) in slots.iter().enumerate() {
            progress(done as u64, slots.len() as u64);
            check.partitions += 1;
            let find = |kind, problem: String, key| Finding {
                database: container.database().name.clone(),
                container: container.name().to_owned(),
                partition: *range,
                kind,
                problem,
                key,
            };
            match container.partition(*range).and_then(|partition| partition.check_rows()) {
                Err(error) => check.findings.push(find("partition", said(&error), String::new())),
                Ok(of_partition) => {
                    for (kind, rows) in of_partition.rows {
                        *check.rows.entry(kind).or_default() += rows;
                    }
                    check.more += of_partition.more;
                    for row in of_partition.findings {
                        match check.findings.len() < FINDINGS_MAX {
                            true => check.findings.push(find(row.kind, row.problem.to_owned(), row.key)),
                            false => check.more += 1,
                        }
                    }
                }
            }
        }
        progress(slots.len() as u64, slots.len() as u64);
        check.containers = self.all_containers().len() as u64;
        check
    }

    /// Makes all rows follow from the items again. The account must be opened anew afterwards, and
    /// [`Account::remake_indexes`] asked for.
    pub fn mend(&self, mending: Mending, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let slots = self.slots();
        for (done, (container, range)) in slots.iter().enumerate() {
            progress(done as u64, slots.len() as u64);
            container.partition(*range)?.mend_rows(mending.lossy, mending.remake_index)?;
        }
        progress(slots.len() as u64, slots.len() as u64);
        Ok(())
    }

    /// Works off what mending has left to the upkeep of partitions.
    pub fn remake_indexes(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let slots = self.slots();
        for (done, (container, range)) in slots.iter().enumerate() {
            progress(done as u64, slots.len() as u64);
            let partition: Arc<Partition> = container.partition(*range)?;
            while partition.upkeep()?.more {}
        }
        progress(slots.len() as u64, slots.len() as u64);
        Ok(())
    }

    /// Whose rows each space holds that is in use.
    pub fn spaces(&self) -> Vec<SpaceOwner> {
        let mut owners = Vec::new();
        for container in self.all_containers() {
            owners.extend(container.map().slots().iter().map(|slot| SpaceOwner {
                space: slot.space.0,
                database: container.database().name.clone(),
                container: container.name().to_owned(),
                partition: slot.id(),
            }));
        }
        owners
    }

    fn all_containers(&self) -> Vec<Arc<Container>> {
        self.databases().iter().flat_map(|database| database.containers()).collect()
    }

    fn slots(&self) -> Vec<(Arc<Container>, u32)> {
        let ranges = |container: Arc<Container>| {
            let ids: Vec<u32> = container.ranges().iter().map(|range| range.id).collect();
            ids.into_iter().map(move |id| (container.clone(), id))
        };
        self.all_containers().into_iter().flat_map(ranges).collect()
    }
}

/// Whose rows a space of the store holds.
#[derive(Debug, Clone)]
pub struct SpaceOwner {
    pub space: u32,
    pub database: String,
    pub container: String,
    pub partition: u32,
}

/// Whether a store has a catalog. One without is taken for new by whoever opens it as an account.
pub fn has_catalog(store: &dyn Store) -> Result<bool> {
    let space = store.open_space(SpaceId(CATALOG_SPACE))?;
    Ok(space.snapshot()?.get(Table::Feed, &RowKey::Meta.encode())?.is_some())
}

/// The error with its cause: this is for whoever has the files.
fn said(error: &crate::error::Error) -> String {
    match &error.cause {
        Some(cause) => cause.to_string(),
        None => error.message.clone(),
    }
}
