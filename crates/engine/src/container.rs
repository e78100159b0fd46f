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
//! The map may change while a request is on its way. A request that was routed by key, scope or hash is routed again,
//! here, and its sender notices nothing; only one that names a range by its id is told that the range is gone.

mod adopt;
mod opening;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwap, Guard};
use orrery_model::{Epk, PartitionKey};
use orrery_storage::Space;

use crate::account::{DatabaseIdentity, Shared};
use crate::batch::{BatchOperation, BatchReply};
use crate::columns::ColumnBudget;
use crate::condition::Hosts;
use crate::config::EngineConfig;
use crate::definition::ContainerDefinition;
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::feed::{ChangesFrom, ChangesPage, FeedPage, PageRequest, Scope, Span, VersionsPage};
use crate::item::{
    ItemReply, Operation, Position, ReadOptions, SessionRequirement, Write, WriteAck, WriteReply,
};
use crate::partition::{Draft, Drafted, Partition, RANGE_GONE, Submitted, settle};
use crate::query::{PartitionQuery, QueryFailure, QueryPage};
use crate::ranges::{RangeInfo, RangeMap, Slot};
use crate::script::Scripts;
use crate::throughput::{BUCKETS_MAX, RequestClass, Supply};

use opening::Asking;
pub(crate) use opening::{Opening, Retry};

/// How often one request is routed again because the map has changed under it.
const ROUTES_MAX: usize = 16;

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
pub struct PartitionSetup {
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

    /// Items and bytes over all partitions. A partition that cannot be opened counts as empty here; whoever
    /// reads or writes in it gets the error.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        for slot in self.map.load().slots() {
            match self.open(slot) {
                Ok(partition) => {
                    let usage = partition.usage();
                    sum.items += usage.items;
                    sum.size_bytes += usage.size_bytes;
                }
                Err(error) => {
                    tracing::warn!(container = self.name(), range = slot.id(), %error, cause = ?error.cause, "partition not counted")
                }
            }
        }
        sum
    }

    /// How much of the index follows the present indexing policy, in percent: 100 when all of it does.
    pub fn index_progress(&self) -> u8 {
        let (mut done, mut items) = (0u64, 0u64);
        for slot in self.map.load().slots() {
            // A partition that cannot be opened says so to whoever reads or writes in it.
            let Ok(partition) = self.open(slot) else { continue };
            let weight = partition.usage().items.max(1);
            items += weight;
            done += weight * u64::from(partition.index_progress());
        }
        // Rounded down: complete means complete.
        (done / items.max(1)).min(100) as u8
    }

    /// The partition that owns a full key.
    pub fn partition_of(&self, key: &PartitionKey) -> Result<Arc<Partition>> {
        Ok(self.route(key)?.0)
    }

    /// The partition with a range id, or `RangeGone`.
    pub fn partition(&self, range_id: u32) -> Result<Arc<Partition>> {
        match self.map.load().by_id(range_id) {
            Some(slot) => self.open(slot),
            None => Err(Error::new(Kind::RangeGone, RANGE_GONE)),
        }
    }

    /// `RangeGone` unless there is a partition with this range id.
    pub fn check_range(&self, range_id: u32) -> Result<()> {
        self.partition(range_id).map(drop)
    }

    /// What a partition holds; nothing where it has gone.
    pub fn usage_of_range(&self, range_id: u32) -> Usage {
        self.partition(range_id).map(|partition| partition.usage()).unwrap_or_default()
    }

    /// Where the partition of a key stands.
    pub fn position_of(&self, key: &PartitionKey) -> Result<Position> {
        self.partition_of(key).map(|partition| partition.position())
    }

    /// Where the first partition stands.
    pub fn first_position(&self) -> Option<Position> {
        let map = self.map.load();
        map.slots().first().and_then(|slot| self.open(slot).ok()).map(|partition| partition.position())
    }

    /// Where a partition stands for a session that must not be ahead of it.
    pub fn position_for(&self, range_id: u32, session: &[(u32, u64)]) -> Result<Position> {
        Ok(self.partition(range_id)?.open_view(session)?.position())
    }

    /// Lets a page in at one of its partitions, or says where that stands. One that has gone is told by whoever reads it.
    pub fn admit_page(&self, range_id: u32, class: RequestClass) -> Result<(), (Error, Position)> {
        let Ok(partition) = self.partition(range_id) else { return Ok(()) };
        partition.admit(class).map_err(|error| (error, partition.position()))
    }

    /// How large the item is that a write would change; 0 where there is none, or will be none. A look beforehand, which says
    /// how long the write may take: all that was indexed of the item is compared with what comes.
    pub fn stored_bytes(&self, key: &PartitionKey, operation: &Operation) -> usize {
        match operation {
            Operation::Create { .. } | Operation::Read { .. } => 0,
            operation => {
                let stored = |(partition, epk): (Arc<Partition>, Epk)| {
                    partition.stored_bytes(key, &epk, operation.id())
                };
                self.route(key).and_then(stored).unwrap_or(0)
            }
        }
    }

    /// The partitions that a scope touches, in hash order: range id and `[min, max)`.
    pub fn parts_of(&self, scope: &Scope) -> Result<Vec<(u32, Epk, Epk)>> {
        let part = |partition: &Arc<Partition>| {
            let (min, max) = partition.bounds();
            (partition.range_id(), min.clone(), max.clone())
        };
        Ok(self.partitions_of(scope)?.iter().map(part).collect())
    }

    /// The only partition of a scope, if there is only one.
    fn only_partition_of(&self, scope: &Scope) -> Result<Option<Arc<Partition>>> {
        match scope {
            Scope::Range(id) | Scope::Epk { range: Some(id), .. } => self.partition(*id).map(Some),
            _ => {
                let mut partitions = self.partitions_of(scope)?;
                Ok(partitions.pop().filter(|_| partitions.is_empty()))
            }
        }
    }

    /// About how large an item is where a scope leads, if that is one partition.
    pub fn item_bytes_about(&self, scope: &Scope) -> Option<u64> {
        let usage = self.only_partition_of(scope).ok()??.usage();
        Some(usage.size_bytes / usage.items.max(1))
    }

    /// A page of a query over a scope that lies in one partition. Each row is handed out as text.
    pub fn query_page(
        &self,
        scope: &Scope,
        query: &PartitionQuery<'_>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<QueryPage, QueryFailure> {
        match self.only_partition_of(scope)? {
            Some(partition) => partition.query(query, sink),
            None => Err(Error::internal("A share is more than one partition.").into()),
        }
    }

    /// The part of the hash space that a range was which has since been split or merged.
    pub fn gone_range(&self, range_id: u32) -> Option<(Epk, Epk)> {
        self.map.load().was(range_id)
    }

    /// The partition in which a scope's items from `epk` on lie.
    pub(crate) fn partition_at(&self, scope: &Scope, epk: &Epk) -> Result<Arc<Partition>> {
        match scope {
            Scope::Range(id) | Scope::Epk { range: Some(id), .. } => self.partition(*id),
            _ => self.owner(epk),
        }
    }

    /// Every partition, in hash order.
    pub fn partitions(&self) -> Result<Vec<Arc<Partition>>> {
        self.map.load().slots().iter().map(|slot| self.open(slot)).collect()
    }

    /// Every partition that a scope touches, in hash order.
    pub fn partitions_of(&self, scope: &Scope) -> Result<Vec<Arc<Partition>>> {
        match scope {
            Scope::All => self.partitions(),
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
            return Err(Error::key_too_long());
        }
        Ok(definition.partition_key.effective_prefix(key))
    }

    /// What a scope means inside each of its partitions.
    pub fn span_of(&self, scope: &Scope) -> Result<Span> {
        crate::feed::span_of(self, scope)
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

    fn overlapping(&self, min: &Epk, max: &Epk) -> Result<Vec<Arc<Partition>>> {
        self.map.load().overlapping(min, max).map(|slot| self.open(slot)).collect()
    }

    fn route(&self, key: &PartitionKey) -> Result<(Arc<Partition>, Epk)> {
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
        let epk = definition.effective(key);
        Ok((self.owner(&epk)?, epk))
    }

    fn owner(&self, epk: &Epk) -> Result<Arc<Partition>> {
        let map = self.map.load();
        let slot =
            map.owner(epk).ok_or_else(|| Error::internal("The map of ranges does not cover the key."))?;
        self.open(slot)
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

/// Routing again when the map has changed under a request.
impl Container {
    /// Runs a read. When a partition it was routed to has gone meanwhile, it runs once more by the new map.
    pub fn routed<T>(&self, mut run: impl FnMut(&Container) -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            let before = Arc::as_ptr(&self.map.load());
            tries += 1;
            match run(self) {
                Err(error)
                    if error.kind == Kind::RangeGone
                        && tries < ROUTES_MAX
                        && before != Arc::as_ptr(&self.map.load()) => {}
                result => return result,
            }
        }
    }

    /// Runs a write of one key now, on the caller's thread; the future waits until its outcome is durable. In the
    /// pause of a handover it waits for the end of the pause and runs the write again by the new map.
    fn routed_write<T, W>(
        self: &Arc<Self>,
        key: &PartitionKey,
        write: W,
    ) -> impl Future<Output = Result<T>> + Send + use<T, W>
    where
        T: Send,
        W: Fn(&Partition, &PartitionKey, &Epk) -> Submitted<T> + Send,
    {
        let mut attempt = self.attempt(key, &write);
        // Only a request that must wait needs these.
        let again = matches!(attempt, Attempt::Moved(_)).then(|| (self.clone(), key.clone()));
        async move {
            let mut tries = 0;
            loop {
                match (attempt, &again) {
                    (Attempt::Submitted((ticket, answer)), _) => return settle(ticket, answer).await,
                    (Attempt::Failed(error), _) => return Err(error),
                    (Attempt::Moved(partition), Some((container, key))) if tries < ROUTES_MAX => {
                        tries += 1;
                        if let Some(pause_end) = partition.pause_end() {
                            // The sender is dropped, not used; either way the pause is over.
                            let _ = pause_end.await;
                        }
                        attempt = container.attempt(key, &write);
                    }
                    (Attempt::Moved(_), _) => return Err(Error::new(Kind::RangeGone, RANGE_GONE)),
                }
            }
        }
    }

    fn attempt<T>(
        &self,
        key: &PartitionKey,
        write: &impl Fn(&Partition, &PartitionKey, &Epk) -> Submitted<T>,
    ) -> Attempt<T> {
        let (partition, epk) = match self.route(key) {
            Ok(routed) => routed,
            Err(error) => return Attempt::Failed(error),
        };
        match write(&partition, key, &epk) {
            (None, Err(error)) if error.kind == Kind::RangeGone && !partition.takes_writes() => {
                Attempt::Moved(partition)
            }
            submitted => Attempt::Submitted(submitted),
        }
    }
}

/// What came of running a write.
enum Attempt<T> {
    Submitted(Submitted<T>),
    /// Nothing was done: the partition pauses for a handover, or has gone.
    Moved(Arc<Partition>),
    Failed(Error),
}

/// Items: each call finds its partition and hands over.
impl Container {
    /// Reads one item from the last published state, on the caller's thread.
    pub fn read_item(&self, key: &PartitionKey, id: &str, options: &ReadOptions) -> Result<ItemReply> {
        self.routed(|container| {
            let (partition, epk) = container.route(key)?;
            partition.read_item(key, &epk, id, options)
        })
    }

    /// The id of the item with this number, as rids name it.
    pub fn item_id(&self, key: &PartitionKey, number: u64) -> Result<String> {
        self.routed(|container| {
            let (partition, epk) = container.route(key)?;
            partition.item_id(&epk, number)
        })
    }

    /// The partition key and the id of the item with this number, of which no more is known than where its key lies.
    pub fn item_at(&self, epk: &Epk, number: u64) -> Result<(PartitionKey, String)> {
        self.routed(|container| container.owner(epk)?.item_at(epk, number))
    }

    /// Checks and prepares a write now; the future waits until it is durable.
    pub fn write_item(
        self: &Arc<Self>,
        key: &PartitionKey,
        write: Write,
    ) -> impl Future<Output = Result<WriteReply>> + Send + use<> {
        self.routed_write(key, move |partition, key, epk| partition.submit_item(key, epk, &write))
    }

    /// Writes all operations or none.
    pub fn write_batch(
        self: &Arc<Self>,
        key: &PartitionKey,
        operations: Vec<BatchOperation>,
    ) -> impl Future<Output = Result<BatchReply>> + Send + use<> {
        self.routed_write(key, move |partition, key, epk| partition.submit_batch(key, epk, &operations))
    }

    /// Writes each operation by itself. Keys that another partition owns make the whole request `RangeGone`: the
    /// client's map of ranges is old.
    pub fn write_bulk(
        &self,
        range_id: u32,
        operations: Vec<(PartitionKey, BatchOperation)>,
        continue_on_error: bool,
    ) -> impl Future<Output = Result<BatchReply>> + Send + use<> {
        let partition = self.partition(range_id);
        let first = partition.map(|partition| {
            let submitted = partition.submit_bulk(&operations, continue_on_error);
            (partition, submitted)
        });
        async move {
            let (partition, mut submitted) = first?;
            if matches!(&submitted, (None, Err(error)) if error.kind == Kind::RangeGone)
                && let Some(pause_end) = partition.pause_end()
            {
                // A handover that fails leaves the range as it was. One that succeeds makes it gone, which the
                // request is told because it named the range.
                let _ = pause_end.await;
                submitted = partition.submit_bulk(&operations, continue_on_error);
            }
            settle(submitted.0, submitted.1).await
        }
    }

    /// Runs `work` on a draft of a logical partition and commits what it did; see [`Partition::draft`].
    pub fn draft<T>(
        &self,
        key: &PartitionKey,
        session: &SessionRequirement,
        class: RequestClass,
        work: impl FnOnce(&mut Draft<'_>) -> Result<T>,
    ) -> Result<Drafted<T>> {
        let (partition, epk) = self.route(key)?;
        partition.draft(key, &epk, session, class, work)
    }

    /// Removes every item of a logical partition: invisible at once, its rows go in the background.
    pub fn delete_partition_key(
        self: &Arc<Self>,
        key: &PartitionKey,
    ) -> impl Future<Output = Result<WriteAck>> + Send + use<> {
        self.routed_write(key, |partition, key, epk| partition.submit_purge(key, epk))
    }

    /// Charges a page where it was read.
    pub fn charge_page(
        &self,
        range_id: u32,
        class: RequestClass,
        charge_ru: f64,
        key: Option<&PartitionKey>,
    ) {
        // A range that was split meanwhile has nobody left to charge.
        if let Ok(partition) = self.partition(range_id) {
            partition.charge(class, charge_ru, key);
        }
    }

    pub fn read_feed(&self, scope: &Scope, page: &PageRequest) -> Result<FeedPage> {
        self.routed(|container| crate::feed::read_feed(container, scope, page))
    }

    pub fn read_changes(&self, scope: &Scope, from: ChangesFrom, page: &PageRequest) -> Result<ChangesPage> {
        self.routed(|container| crate::feed::read_changes(container, scope, from, page))
    }

    /// A page of all versions of items and of their deletes, after a commit; `None`: from now on.
    pub fn read_versions(
        &self,
        scope: &Scope,
        after: Option<u64>,
        page: &PageRequest,
    ) -> Result<VersionsPage> {
        self.routed(|container| crate::feed::read_versions(container, scope, after, page))
    }

    /// Whether all versions of items are kept for readers of the change feed.
    pub fn keeps_versions(&self) -> bool {
        let policy = &self.definition().json["changeFeedPolicy"];
        policy["retentionDuration"].as_u64().is_some_and(|minutes| minutes > 0)
    }
}
