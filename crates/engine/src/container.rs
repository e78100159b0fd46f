//! A container as the engine serves it: its current definition, and which physical partition owns which key.
//!
//! [`ContainerCore`] is what a partition needs to know about its container and outlives changes of the definition;
//! [`Container`] adds the map of ranges. Partitions are opened when they are first needed, so a start with
//! thousands of containers costs nothing but reading the catalog.
//!
//! Routing an item: partition key → effective partition key → the last range that starts at or before it. Ranges
//! never overlap and cover the whole hash space; a range id that is not in the map is gone (it was split, or it
//! never was), and the client is told to read the map again.
//!
//! The map may change while a request is on its way; `call::container`, where the calls are, routes it again then.

mod adopt;
mod opening;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, Guard};
use orrery_model::{Epk, PartitionKey};
use orrery_storage::Space;

use crate::account::{DatabaseIdentity, Shared};
use crate::call::{PartitionAddress, PartitionRef};
use crate::columns::ColumnBudget;
use crate::config::EngineConfig;
use crate::definition::ContainerDefinition;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::etag::Etag;
use crate::feed::{Scope, Span};
use crate::item::SessionRequirement;
use crate::partition::{Draft, Drafted, Partition, gone};
use crate::query_host::Hosts;
use crate::ranges::{RangeInfo, RangeMap, Slot};
use crate::script::Scripts;
use crate::throughput::{BUCKETS_MAX, RequestClass, Supply};

use opening::Asking;
pub(crate) use opening::{Opening, Retry};

/// A container's identity and current definition.
pub struct ContainerCore {
    number: u32,
    name: String,
    database: Arc<DatabaseIdentity>,
    version: ArcSwap<Version>,
    scripts: ArcSwap<Scripts>,
    supply: Supply,
    hosts: Arc<Hosts>,
    deleted: AtomicBool,
}

/// What a replace changes, together.
pub(crate) struct Version {
    pub(crate) definition: Arc<ContainerDefinition>,
    /// Of the catalog.
    pub(crate) lsn: u64,
    pub(crate) etag: Etag,
    pub(crate) ts: u32,
}

impl Version {
    pub(crate) fn new(definition: ContainerDefinition, lsn: u64, ts: u32) -> Version {
        Version { definition: Arc::new(definition), lsn, etag: Etag::new(lsn, ts), ts }
    }
}

impl ContainerCore {
    /// Counts from 1 within the database; never used again after a delete.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn database(&self) -> &Arc<DatabaseIdentity> {
        &self.database
    }

    /// The definition as of now; an operation reads it once and stays with it.
    pub fn definition(&self) -> Arc<ContainerDefinition> {
        self.version.load().definition.clone()
    }

    /// The scripts as of now.
    pub fn scripts(&self) -> Arc<Scripts> {
        self.scripts.load_full()
    }

    pub(crate) fn set_scripts(&self, scripts: Scripts) {
        self.scripts.store(Arc::new(scripts));
    }

    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    /// The throughput that the container's partitions divide.
    pub(crate) fn supply(&self) -> &Supply {
        &self.supply
    }

    pub(crate) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    pub(crate) fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }
}

/// What a partition is opened with.
pub(crate) struct PartitionSetup {
    pub range_id: u32,
    pub min: Epk,
    pub max: Epk,
    pub space: Arc<dyn Space>,
    pub owner: Arc<ContainerCore>,
    pub env: Arc<dyn Env>,
    pub config: Arc<EngineConfig>,
    pub(crate) columns: Arc<ColumnBudget>,
}

/// How much a container or a partition holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub items: u64,
    pub size_bytes: u64,
}

/// The handle through which everything inside a container is done.
pub struct Container {
    core: Arc<ContainerCore>,
    /// Replaced by the catalog's writer only.
    map: ArcSwap<RangeMap>,
    shared: Arc<Shared>,
}

impl Container {
    pub(crate) fn new(
        number: u32,
        database: Arc<DatabaseIdentity>,
        version: Version,
        map: RangeMap,
        shared: Arc<Shared>,
        supply: Supply,
    ) -> Container {
        supply.set_partitions(map.slots().len());
        let core = ContainerCore {
            number,
            name: version.definition.id.clone(),
            database,
            version: ArcSwap::from_pointee(version),
            scripts: ArcSwap::default(),
            supply,
            hosts: shared.hosts.clone(),
            deleted: AtomicBool::new(false),
        };
        Container { core: Arc::new(core), map: ArcSwap::from_pointee(map), shared }
    }

    pub fn number(&self) -> u32 {
        self.core.number
    }

    pub fn name(&self) -> &str {
        &self.core.name
    }

    pub fn database(&self) -> &Arc<DatabaseIdentity> {
        &self.core.database
    }

    pub fn core(&self) -> &Arc<ContainerCore> {
        &self.core
    }

    pub fn definition(&self) -> Arc<ContainerDefinition> {
        self.core.definition()
    }

    pub fn etag(&self) -> Etag {
        self.core.version.load().etag
    }

    pub fn ts(&self) -> u32 {
        self.core.version.load().ts
    }

    pub fn scripts(&self) -> Arc<Scripts> {
        self.core.scripts()
    }

    /// The map of ranges in hash order.
    pub fn ranges(&self) -> Vec<RangeInfo> {
        self.map.load().infos()
    }

    /// The partition that owns a full key, where it is here.
    pub(crate) fn partition_of(&self, key: &PartitionKey) -> Result<Arc<Partition>> {
        let slot = self.slot_at(&self.effective(key)?)?;
        self.open(&slot)
    }

    /// The partition with a range id, where it is here, or `RangeGone`.
    pub(crate) fn partition(&self, range_id: u32) -> Result<Arc<Partition>> {
        let slot = self.slot(range_id)?;
        self.open(&slot)
    }

    /// The part of the hash space that a range was which has since been split or merged.
    pub fn gone_range(&self, range_id: u32) -> Option<(Epk, Epk)> {
        self.map.load().was(range_id)
    }

    /// Every partition, in hash order.
    pub(crate) fn partitions(&self) -> Result<Vec<Arc<Partition>>> {
        self.map.load().slots().iter().map(|slot| self.open(slot)).collect()
    }

    /// The ranges that a scope touches, in hash order.
    pub(crate) fn slots_of(&self, scope: &Scope) -> Result<Vec<Arc<Slot>>> {
        match scope {
            Scope::All => Ok(self.map.load().slots().to_vec()),
            Scope::Range(id) => Ok(vec![self.slot(*id)?]),
            Scope::Epk { range: Some(id), .. } => Ok(vec![self.slot(*id)?]),
            Scope::Epk { min, max, range: None } => Ok(self.overlapping(min, max)),
            Scope::Key(key) => {
                let (min, max) = self.span(key)?;
                Ok(self.overlapping(&min, &max))
            }
        }
    }

    fn overlapping(&self, min: &Epk, max: &Epk) -> Vec<Arc<Slot>> {
        self.map.load().overlapping(min, max).cloned().collect()
    }

    /// The part of the hash space that a full or a prefix key covers, as `[min, max)`.
    pub fn span(&self, key: &PartitionKey) -> Result<(Epk, Epk)> {
        let definition = self.definition();
        let paths = definition.partition_key.paths.len();
        if key.0.len() > paths {
            return Err(Error::key_too_long());
        }
        Ok(definition.partition_key.effective_prefix(key))
    }

    /// What a scope means inside each of its partitions.
    pub fn span_of(&self, scope: &Scope) -> Result<Span> {
        crate::feed::span_of(self, scope)
    }

    /// Runs `work` on a draft of a logical partition that is here and commits what it did; see [`Partition::draft`].
    pub(crate) fn draft<T>(
        &self,
        key: &PartitionKey,
        session: &SessionRequirement,
        class: RequestClass,
        work: impl FnOnce(&mut Draft<'_>) -> Result<T>,
    ) -> Result<Drafted<T>> {
        let epk = self.effective(key)?;
        let slot = self.slot_at(&epk)?;
        self.open(&slot)?.draft(key, &epk, session, class, work)
    }

    /// Whether all versions of items are kept for readers of the change feed.
    pub fn keeps_versions(&self) -> bool {
        let policy = &self.definition().json["changeFeedPolicy"];
        policy["retentionDuration"].as_u64().is_some_and(|minutes| minutes > 0)
    }

    /// Partitions that were opened so far; the others have no work in the background.
    pub(crate) fn open_partitions(&self) -> impl Iterator<Item = Arc<Partition>> {
        let map = self.map.load();
        let open: Vec<_> = map.slots().iter().filter_map(|slot| slot.serving()).collect();
        open.into_iter()
    }

    /// Follows a changed offer: the new shares are in force for the next request. More throughput than the present
    /// partitions can serve (`Supply::wants_partitions`) waits for splits.
    pub(crate) fn throughput_changed(&self, total_ru: u32, buckets: [u8; BUCKETS_MAX]) {
        self.core.supply.set_throughput(total_ru, buckets);
    }

    pub(crate) fn set_version(&self, version: Version) {
        self.core.version.store(Arc::new(version));
    }

    /// Ends the container for those who still hold the handle: what is not yet submitted is refused.
    pub(crate) fn mark_deleted(&self) {
        self.core.deleted.store(true, Ordering::Release);
        for slot in self.map.load().slots() {
            // Waits for a partition that is just being opened, so that none is missed.
            let _opening = slot.lock();
            if let Some(partition) = slot.latest() {
                partition.close();
            }
        }
    }

    pub(crate) fn map(&self) -> Guard<Arc<RangeMap>> {
        self.map.load()
    }

    /// Only for the catalog's writer, after the change is durable.
    pub(crate) fn set_map(&self, map: RangeMap) {
        self.core.supply.set_partitions(map.slots().len());
        self.map.store(Arc::new(map));
    }

    /// The range with an id, or `RangeGone`.
    pub(crate) fn slot(&self, range_id: u32) -> Result<Arc<Slot>> {
        self.map.load().by_id(range_id).cloned().ok_or_else(gone)
    }

    /// The range in which a part of the hash space begins.
    pub(crate) fn slot_at(&self, epk: &Epk) -> Result<Arc<Slot>> {
        let map = self.map.load();
        let slot = map.owner(epk).cloned();
        slot.ok_or_else(|| Error::internal("The map of ranges does not cover the key."))
    }

    /// Where a full key lies in the hash space.
    pub fn effective(&self, key: &PartitionKey) -> Result<Epk> {
        let version = self.core.version.load();
        let definition = &version.definition.partition_key;
        // A container without a key of its own takes items under `[]`; everywhere else a key is complete.
        if !(definition.system_key && key.0.is_empty()) {
            let paths = definition.paths.len();
            if key.0.len() < paths {
                return Err(Error::key_too_short());
            }
            if key.0.len() > paths {
                return Err(Error::key_too_long());
            }
        }
        Ok(definition.effective(key))
    }

    /// The partition that owns a full key, wherever it is.
    pub(crate) fn route(&self, key: &PartitionKey) -> Result<(PartitionRef, Epk)> {
        let epk = self.effective(key)?;
        Ok((self.owner(&epk)?, epk))
    }

    /// The partition in which a part of the hash space begins, wherever it is.
    pub(crate) fn owner(&self, epk: &Epk) -> Result<PartitionRef> {
        let map = self.map.load();
        let slot =
            map.owner(epk).ok_or_else(|| Error::internal("The map of ranges does not cover the key."))?;
        self.reach(slot)
    }

    /// The partition of a range, wherever it is.
    pub(crate) fn reach(&self, slot: &Slot) -> Result<PartitionRef> {
        let partition = self.open(slot)?;
        match &self.shared.loopback {
            None => Ok(PartitionRef::Local(partition)),
            Some(loopback) => {
                let (database, container) = (self.core.database.number, self.core.number);
                let address = PartitionAddress { database, container, range: slot.id() };
                Ok(loopback.reach(address, &partition))
            }
        }
    }

    /// Whether some partitions may be elsewhere, so that calling them takes as long as the way there.
    pub(crate) fn reaches_out(&self) -> bool {
        self.shared.loopback.is_some()
    }

    fn open(&self, slot: &Slot) -> Result<Arc<Partition>> {
        match slot.serving() {
            Some(partition) => Ok(partition),
            None => self.open_slot(slot, Asking::Request),
        }
    }

    pub(crate) fn setup(&self, range_id: u32, min: &Epk, max: &Epk, space: Arc<dyn Space>) -> PartitionSetup {
        PartitionSetup {
            range_id,
            min: min.clone(),
            max: max.clone(),
            space,
            owner: self.core.clone(),
            env: self.shared.env.clone(),
            config: self.shared.config.clone(),
            columns: self.shared.columns.clone(),
        }
    }
}
