//! A container as the engine serves it: its current definition, and which physical partition owns which key.
//!
//! [`ContainerCore`] is what a partition needs to know about its container and outlives changes of the definition;
//! [`Container`] adds the map of ranges. Partitions are opened when they are first needed, so a start with
//! thousands of containers costs nothing but reading the catalog.
//!
//! Routing an item: partition key → effective partition key → the last range that starts at or before it. Ranges
//! never overlap and cover the whole hash space; a range id that is not in the map is gone (it was split, or it
//! never was), and the client is told to read the map again.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use orrery_model::{Epk, PartitionKey};
use orrery_storage::{Space, SpaceId};
use parking_lot::Mutex;

use crate::account::{DatabaseIdentity, Shared};
use crate::batch::{BatchOperation, BatchReply};
use crate::config::EngineConfig;
use crate::definition::ContainerDefinition;
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::feed::{ChangesFrom, ChangesPage, FeedPage, PageRequest, Scope, Span};
use crate::item::{ItemReply, ReadOptions, Write, WriteAck, WriteReply};
use crate::partition::Partition;

/// What the service says when a key has fewer values than the container's definition has paths.
const KEY_TOO_SHORT: &str = "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.";
const KEY_TOO_LONG: &str = "The partition key supplied in x-ms-partitionkey header has more components than defined in the the collection.";
const RANGE_GONE: &str = "The requested resource is no longer available at the server.";

/// A container's identity and current definition.
pub struct ContainerCore {
    number: u32,
    name: String,
    database: Arc<DatabaseIdentity>,
    version: ArcSwap<Version>,
    deleted: AtomicBool,
}

/// What a replace changes, together.
pub(crate) struct Version {
    pub(crate) definition: Arc<ContainerDefinition>,
    pub(crate) etag: Etag,
    pub(crate) ts: u32,
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

    pub fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Acquire)
    }

    pub(crate) fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }
}

/// What a partition is opened with.
pub struct PartitionSetup {
    pub range_id: u32,
    pub min: Epk,
    pub max: Epk,
    pub space: Arc<dyn Space>,
    pub owner: Arc<ContainerCore>,
    pub env: Arc<dyn Env>,
    pub config: Arc<EngineConfig>,
}

/// One physical partition as clients see it in the map of ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct RangeInfo {
    pub id: u32,
    pub min: Epk,
    pub max: Epk,
    /// The ranges this one was split from, oldest first.
    pub parents: Vec<u32>,
    /// The LSN at which the range began: 0, or where its parent ended.
    pub lsn: u64,
    /// The share of the container's throughput that this range serves.
    pub throughput_fraction: f64,
    pub etag: Etag,
    pub ts: u32,
}

/// How much a container or a partition holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub items: u64,
    pub size_bytes: u64,
}

/// A range of the map with the partition behind it, once it is open.
pub(crate) struct Slot {
    pub(crate) info: RangeInfo,
    pub(crate) space: SpaceId,
    partition: OnceLock<Arc<Partition>>,
    /// Held while the partition is being opened: taking a space twice would fence the first owner.
    opening: Mutex<()>,
}

impl Slot {
    pub(crate) fn new(info: RangeInfo, space: SpaceId) -> Slot {
        Slot { info, space, partition: OnceLock::new(), opening: Mutex::new(()) }
    }
}

/// What the catalog has to remember of a container's ranges, beyond those that serve.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeHistory {
    /// Every range that has a row, also those that were split, with its space.
    pub(crate) rows: Vec<(u32, SpaceId)>,
    /// The id of the next range; ids are never given twice.
    pub(crate) next_range: u32,
}

/// The handle through which everything inside a container is done.
pub struct Container {
    core: Arc<ContainerCore>,
    history: RangeHistory,
    /// Sorted by `min`, never empty.
    slots: Vec<Slot>,
    shared: Arc<Shared>,
}

impl Container {
    pub(crate) fn new(
        number: u32,
        database: Arc<DatabaseIdentity>,
        version: Version,
        mut slots: Vec<Slot>,
        history: RangeHistory,
        shared: Arc<Shared>,
    ) -> Container {
        slots.sort_by(|a, b| a.info.min.cmp(&b.info.min));
        let core = ContainerCore {
            number,
            name: version.definition.id.clone(),
            database,
            version: ArcSwap::from_pointee(version),
            deleted: AtomicBool::new(false),
        };
        Container { core: Arc::new(core), history, slots, shared }
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

    /// The map of ranges in hash order.
    pub fn ranges(&self) -> Vec<RangeInfo> {
        self.slots.iter().map(|slot| slot.info.clone()).collect()
    }

    /// Items and bytes over all partitions. A partition that cannot be opened counts as empty here; whoever
    /// reads or writes in it gets the error.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for slot in &self.slots {
            match self.open(slot) {
                Ok(partition) => {
                    let usage = partition.usage();
                    sum.items += usage.items;
                    sum.size_bytes += usage.size_bytes;
                }
                Err(error) => {
                    tracing::warn!(container = self.name(), range = slot.info.id, %error, cause = ?error.cause, "partition not counted")
                }
            }
        }
        sum
    }

    /// The partition that owns a full key.
    pub fn partition_of(&self, key: &PartitionKey) -> Result<Arc<Partition>> {
        Ok(self.route(key)?.0)
    }

    /// The partition with a range id, or `RangeGone`.
    pub fn partition(&self, range_id: u32) -> Result<Arc<Partition>> {
        match self.slots.iter().find(|slot| slot.info.id == range_id) {
            Some(slot) => self.open(slot),
            None => Err(Error::new(Kind::RangeGone, RANGE_GONE)),
        }
    }

    /// Every partition that a scope touches, in hash order.
    pub fn partitions_of(&self, scope: &Scope) -> Result<Vec<Arc<Partition>>> {
        match scope {
            Scope::All => self.slots.iter().map(|slot| self.open(slot)).collect(),
            Scope::Range(id) => Ok(vec![self.partition(*id)?]),
            Scope::Epk { range: Some(id), .. } => Ok(vec![self.partition(*id)?]),
            Scope::Epk { min, max, range: None } => self.overlapping(min, max),
            Scope::Key(key) => {
                let (min, max) = self.span(key)?;
                self.overlapping(&min, &max)
            }
        }
    }

    /// The part of the hash space that a full or a prefix key covers, as `[min, max)`.
    pub fn span(&self, key: &PartitionKey) -> Result<(Epk, Epk)> {
        let definition = self.definition();
        let paths = definition.partition_key.paths.len();
        if key.0.len() > paths {
            return Err(Error::new(Kind::PartitionKeyMismatch, KEY_TOO_LONG));
        }
        Ok(definition.partition_key.effective_prefix(key))
    }

    /// What a scope means inside each of its partitions.
    pub fn span_of(&self, scope: &Scope) -> Result<Span> {
        crate::feed::span_of(self, scope)
    }

    /// Partitions that were opened so far; the others have no work in the background.
    pub(crate) fn open_partitions(&self) -> impl Iterator<Item = Arc<Partition>> + '_ {
        self.slots.iter().filter_map(|slot| slot.partition.get().cloned())
    }

    pub(crate) fn set_version(&self, version: Version) {
        self.core.version.store(Arc::new(version));
    }

    /// Ends the container for those who still hold the handle: what is not yet submitted is refused.
    pub(crate) fn mark_deleted(&self) {
        self.core.deleted.store(true, Ordering::Release);
        for slot in &self.slots {
            // Waits for a partition that is just being opened, so that none is missed.
            let _opening = slot.opening.lock();
            if let Some(partition) = slot.partition.get() {
                partition.close();
            }
        }
    }

    pub(crate) fn history(&self) -> &RangeHistory {
        &self.history
    }

    fn overlapping(&self, min: &Epk, max: &Epk) -> Result<Vec<Arc<Partition>>> {
        self.slots
            .iter()
            .filter(|slot| slot.info.min < *max && slot.info.max > *min)
            .map(|slot| self.open(slot))
            .collect()
    }

    fn route(&self, key: &PartitionKey) -> Result<(Arc<Partition>, Epk)> {
        let version = self.core.version.load();
        let definition = &version.definition.partition_key;
        // A container without a key of its own takes items under `[]`; everywhere else a key is complete.
        if !(definition.system_key && key.0.is_empty()) {
            let paths = definition.paths.len();
            if key.0.len() < paths {
                return Err(Error::new(Kind::PartitionKeyMismatch, KEY_TOO_SHORT));
            }
            if key.0.len() > paths {
                return Err(Error::new(Kind::PartitionKeyMismatch, KEY_TOO_LONG));
            }
        }
        let epk = definition.effective(key);
        let after = self.slots.partition_point(|slot| slot.info.min <= epk);
        let slot = after.checked_sub(1).and_then(|at| self.slots.get(at));
        let slot = slot.ok_or_else(|| Error::internal("The map of ranges does not cover the key."))?;
        Ok((self.open(slot)?, epk))
    }

    fn open(&self, slot: &Slot) -> Result<Arc<Partition>> {
        if let Some(partition) = slot.partition.get() {
            return Ok(partition.clone());
        }
        let _opening = slot.opening.lock();
        if let Some(partition) = slot.partition.get() {
            return Ok(partition.clone());
        }
        // Checked under the lock: a dropped space must not be opened again by a request that was on its way.
        if self.core.is_deleted() {
            return Err(Error::owner_not_found());
        }
        let partition = Partition::open(PartitionSetup {
            range_id: slot.info.id,
            min: slot.info.min.clone(),
            max: slot.info.max.clone(),
            space: self.shared.store.open_space(slot.space)?,
            owner: self.core.clone(),
            env: self.shared.env.clone(),
            config: self.shared.config.clone(),
        })?;
        Ok(slot.partition.get_or_init(|| Arc::new(partition)).clone())
    }
}

/// Items: each call finds its partition and hands over.
impl Container {
    /// Reads one item from the last published state, on the caller's thread.
    pub fn read_item(&self, key: &PartitionKey, id: &str, options: &ReadOptions) -> Result<ItemReply> {
        let (partition, epk) = self.route(key)?;
        partition.read_item(key, &epk, id, options)
    }

    /// The id of the item with this number, as rids name it.
    pub fn item_id(&self, key: &PartitionKey, number: u64) -> Result<String> {
        let (partition, epk) = self.route(key)?;
        partition.item_id(&epk, number)
    }

    /// Checks and prepares a write now; the future waits until it is durable.
    pub fn write_item(
        &self,
        key: &PartitionKey,
        write: Write,
    ) -> impl Future<Output = Result<WriteReply>> + Send + use<> {
        let prepared = self.route(key).map(|(partition, epk)| partition.write_item(key, &epk, write));
        async move { prepared?.await }
    }

    /// Writes all operations or none.
    pub fn write_batch(
        &self,
        key: &PartitionKey,
        operations: Vec<BatchOperation>,
    ) -> impl Future<Output = Result<BatchReply>> + Send + use<> {
        let prepared = self.route(key).map(|(partition, epk)| partition.write_batch(key, &epk, operations));
        async move { prepared?.await }
    }

    /// Writes each operation by itself. Keys that another partition owns make the whole request `RangeGone`: the
    /// client's map of ranges is old.
    pub fn write_bulk(
        &self,
        range_id: u32,
        operations: Vec<(PartitionKey, BatchOperation)>,
        continue_on_error: bool,
    ) -> impl Future<Output = Result<BatchReply>> + Send + use<> {
        let prepared =
            self.partition(range_id).map(|partition| partition.write_bulk(operations, continue_on_error));
        async move { prepared?.await }
    }

    /// Removes every item of a logical partition: invisible at once, its rows go in the background.
    pub fn delete_partition_key(
        &self,
        key: &PartitionKey,
    ) -> impl Future<Output = Result<WriteAck>> + Send + use<> {
        let prepared = self.route(key).map(|(partition, epk)| partition.delete_partition_key(key, &epk));
        async move { prepared?.await }
    }

    pub fn read_feed(&self, scope: &Scope, page: &PageRequest) -> Result<FeedPage> {
        crate::feed::read_feed(self, scope, page)
    }

    pub fn read_changes(&self, scope: &Scope, from: ChangesFrom, page: &PageRequest) -> Result<ChangesPage> {
        crate::feed::read_changes(self, scope, from, page)
    }
}
