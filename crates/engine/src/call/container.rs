//! The calls of a container: each finds its partition, here or elsewhere, and hands over.
//!
//! The map may change while a request is on its way. A request that was routed by key, scope or hash is routed again
//! (`crate::routing`), and its sender notices nothing; only one that names a range by its id is told that it is gone.
//!
//! A write is begun when it is called, and its future waits until it is durable. Everything else is done when its
//! future is first polled, and ready then where the partition is here. A look at figures waits for them on the
//! caller's thread where the partition is elsewhere.

use std::future::Future;
use std::sync::Arc;

use orrery_model::{Epk, PartitionKey};

use super::partition_ref::{DeletePartitionKey, WriteCall, Written, durable, unexpected};
use super::query_page::SentPage;
use super::{Answer, PartitionRef};
use crate::batch::{BatchOperation, BatchReply};
use crate::block_on;
use crate::container::{Container, Usage};
use crate::error::{Error, Kind, Result};
use crate::feed::{ChangesFrom, ChangesPage, FeedPage, PageRequest, Scope, VersionsPage};
use crate::item::{ItemReply, Operation, Position, ReadOptions, Write, WriteAck, WriteReply};
use crate::partition::{ClaimsState, Freshness, gone};
use crate::query::{PageSink, PartitionQuery, QueryFailure, QueryPage};
use crate::routing::{Routes, is_gone, routed};
use crate::script_call::{ScriptCall, ScriptReply};
use crate::throughput::RequestClass;

/// Items.
impl Container {
    /// Reads one item from the last published state.
    pub async fn read_item(&self, key: &PartitionKey, id: &str, options: &ReadOptions) -> Result<ItemReply> {
        routed!(
            self,
            is_gone,
            async {
                let (partition, epk) = self.route(key)?;
                partition.read_item(key, &epk, id, options).await
            }
            .await
        )
    }

    /// What a copy of a logical partition's items is good for that is read from now on; `None` while nobody can tell,
    /// and where the partition is elsewhere.
    pub fn freshness(&self, key: &PartitionKey) -> Option<Freshness> {
        match self.route(key).ok()? {
            (PartitionRef::Local(partition), epk) => partition.freshness(&epk),
            (PartitionRef::Remote(_), _) => None,
        }
    }

    /// The id of the item with this number, as rids name it. Whether the item is still shown is for whoever reads it
    /// to find out.
    pub async fn item_id(&self, key: &PartitionKey, number: u64) -> Result<String> {
        routed!(
            self,
            is_gone,
            async {
                let (partition, epk) = self.route(key)?;
                partition.find_item(&epk, number).await.map(|(_, id)| id)
            }
            .await
        )
    }

    /// The partition key and the id of the item with this number, of which no more is known than where its key lies.
    pub async fn item_at(&self, epk: &Epk, number: u64) -> Result<(PartitionKey, String)> {
        routed!(self, is_gone, async { self.owner(epk)?.find_item(epk, number).await }.await)
    }

    /// How large the item is that a write would change; 0 where there is none, or will be none. A look beforehand,
    /// which says how long the write may take: all that was indexed of the item is compared with what comes.
    pub fn stored_bytes(&self, key: &PartitionKey, operation: &Operation) -> usize {
        match operation {
            Operation::Create { .. } | Operation::Read { .. } => 0,
            operation => self
                .route(key)
                .and_then(|(partition, epk)| block_on(partition.stored_bytes(key, &epk, operation.id())))
                .unwrap_or(0),
        }
    }

    /// Checks and prepares a write now; the future waits until it is durable.
    pub fn write_item(
        self: &Arc<Self>,
        key: &PartitionKey,
        write: Write,
    ) -> impl Future<Output = Result<WriteReply>> + Send + use<> {
        self.routed_write(key, write)
    }

    /// Writes all operations or none.
    pub fn write_batch(
        self: &Arc<Self>,
        key: &PartitionKey,
        operations: Vec<BatchOperation>,
    ) -> impl Future<Output = Result<BatchReply>> + Send + use<> {
        self.routed_write(key, operations)
    }

    /// Writes each operation by itself. Keys that another partition owns make the whole request `RangeGone`: the
    /// client's map of ranges is old.
    pub fn write_bulk(
        &self,
        range_id: u32,
        operations: Vec<(PartitionKey, BatchOperation)>,
        continue_on_error: bool,
    ) -> impl Future<Output = Result<BatchReply>> + Send + use<> {
        let written =
            self.by_id(range_id).map(|partition| partition.write_bulk(operations, continue_on_error));
        async move { written?.await }
    }

    /// Removes every item of a logical partition: invisible at once, its rows go in the background.
    pub fn delete_partition_key(
        self: &Arc<Self>,
        key: &PartitionKey,
    ) -> impl Future<Output = Result<WriteAck>> + Send + use<> {
        self.routed_write(key, DeletePartitionKey)
    }

    /// Runs a script over a logical partition where that is, again when the partition has gone to others meanwhile.
    pub async fn run_script(&self, key: &PartitionKey, call: ScriptCall) -> Result<ScriptReply> {
        let mut routes = Routes::new(self);
        loop {
            let (partition, epk) = self.route(key)?;
            if let Some(reply) = partition.run_script(key, &epk, call.clone()).await? {
                return Ok(reply);
            }
            if !routes.after_pause() {
                return Err(gone());
            }
        }
    }

    /// Begins a write of one key now, on the caller's thread; the future waits until its outcome is durable. In the
    /// pause of a handover it waits for the end of the pause and begins the write again by the new map.
    fn routed_write<C: WriteCall>(
        self: &Arc<Self>,
        key: &PartitionKey,
        call: C,
    ) -> impl Future<Output = Result<C::Reply>> + Send + use<C> {
        let mut begun = self.begin(key, &call);
        // Only a request that may have to be routed again needs these.
        let again = match begun {
            Ok(Written::Moved(_) | Written::Sent(_)) => Some((self.clone(), key.clone())),
            _ => None,
        };
        async move {
            let mut routes = again.as_ref().map(|(container, _)| Routes::new(container));
            loop {
                match begun? {
                    Written::Submitted(partition, submitted) => return durable(&partition, submitted).await,
                    Written::Sent(answer) => match answer.await? {
                        Answer::Done(reply) => return C::reply(reply).ok_or_else(unexpected),
                        Answer::Failed(error) => return Err(error),
                        Answer::Moved => {}
                    },
                    Written::Moved(partition) => {
                        if let Some(pause_end) = partition.pause_end() {
                            // The sender is dropped, not used; either way the pause is over.
                            let _ = pause_end.await;
                        }
                    }
                }
                match &again {
                    Some((container, key)) if routes.as_mut().is_some_and(Routes::after_pause) => {
                        begun = container.begin(key, &call);
                    }
                    _ => return Err(gone()),
                }
            }
        }
    }

    fn begin<C: WriteCall>(&self, key: &PartitionKey, call: &C) -> Result<Written<C::Reply>> {
        let (partition, epk) = self.route(key)?;
        Ok(partition.write(call, key, &epk))
    }
}

/// Lists.
impl Container {
    pub async fn read_feed(&self, scope: &Scope, page: &PageRequest) -> Result<FeedPage> {
        routed!(self, is_gone, crate::feed::read_feed(self, scope, page).await)
    }

    pub async fn read_changes(
        &self,
        scope: &Scope,
        from: ChangesFrom,
        page: &PageRequest,
    ) -> Result<ChangesPage> {
        routed!(self, is_gone, crate::feed::read_changes(self, scope, from, page).await)
    }

    /// A page of all versions of items and of their deletes, after a commit; `None`: from now on.
    pub async fn read_versions(
        &self,
        scope: &Scope,
        after: Option<u64>,
        page: &PageRequest,
    ) -> Result<VersionsPage> {
        routed!(self, is_gone, crate::feed::read_versions(self, scope, after, page).await)
    }
}

/// Queries.
impl Container {
    /// A page of a query over a scope that lies in one partition. Each row is handed to `sink`. Where the partition
    /// is elsewhere this waits for the page on the caller's thread; a page that must be short (`QueryLimits::steps`)
    /// gives up instead.
    pub fn query_page(
        &self,
        scope: &Scope,
        query: &PartitionQuery<'_>,
        sink: &mut PageSink<'_>,
    ) -> Result<QueryPage, QueryFailure> {
        self.only_partition_of(scope)?.query_page(query, sink)
    }

    /// Asks for such a page where it is elsewhere; `None` where it is here.
    pub(crate) fn send_query_page(
        &self,
        scope: &Scope,
        query: &PartitionQuery<'_>,
    ) -> Result<Option<SentPage>, QueryFailure> {
        match self.only_partition_of(scope)? {
            PartitionRef::Local(_) => Ok(None),
            PartitionRef::Remote(partition) => partition.send_page(query).map(Some),
        }
    }

    /// The only partition of a scope.
    fn only_partition_of(&self, scope: &Scope) -> Result<PartitionRef> {
        match scope {
            Scope::Range(id) | Scope::Epk { range: Some(id), .. } => self.by_id(*id),
            _ => {
                let mut partitions = self.refs_of(scope)?;
                let only = partitions.pop().filter(|_| partitions.is_empty());
                only.ok_or_else(|| Error::internal("A share is more than one partition."))
            }
        }
    }
}

/// Figures, and budgets of requests that go through several partitions.
impl Container {
    /// Items and bytes over all partitions. A partition that cannot be opened counts as empty here; whoever
    /// reads or writes in it gets the error.
    pub fn usage(&self) -> Usage {
        block_on(self.summed_usage()).unwrap_or_default()
    }

    async fn summed_usage(&self) -> Result<Usage> {
        routed!(self, is_gone, async {
            let mut sum = Usage::default();
            for slot in self.slots_of(&Scope::All)? {
                let position = async { self.reach(&slot)?.position().await };
                match position.await {
                    Ok(Position { usage, .. }) => {
                        sum.items += usage.items;
                        sum.size_bytes += usage.size_bytes;
                    }
                    Err(error) if error.kind == Kind::RangeGone => return Err(error),
                    Err(error) => {
                        tracing::warn!(container = self.name(), range = slot.id(), %error, cause = ?error.cause, "partition not counted")
                    }
                }
            }
            Ok(sum)
        }.await)
    }

    /// How much of the index follows the present indexing policy, in percent: 100 when all of it does.
    pub fn index_progress(&self) -> u8 {
        let (mut done, mut items) = (0u64, 0u64);
        for slot in self.map().slots() {
            // A partition that cannot be opened says so to whoever reads or writes in it.
            let status = self.reach(slot).and_then(|partition| block_on(partition.status(None)));
            let Ok(status) = status else { continue };
            let weight = status.at.usage.items.max(1);
            items += weight;
            done += weight * u64::from(status.index_progress);
        }
        // Rounded down: complete means complete.
        (done / items.max(1)).min(100) as u8
    }

    /// Lets all items claim what rules want that came after them. Goes on until they have, or two want the same, or
    /// `go_on` fails.
    pub fn build_claims(&self, go_on: &mut dyn FnMut() -> Result<()>) -> Result<Option<(u16, String)>> {
        /// For a handover to end.
        const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
        loop {
            let ranges: Vec<u32> = self.ranges().iter().map(|range| range.id).collect();
            let mut complete = true;
            for range in &ranges {
                go_on()?;
                match self.by_id(*range).and_then(|partition| block_on(partition.build_claims())) {
                    Ok(ClaimsState { duplicate: Some(duplicate), .. }) => return Ok(Some(duplicate)),
                    Ok(state) => complete &= state.complete,
                    Err(error) if error.kind == Kind::RangeGone => {
                        complete = false;
                        std::thread::sleep(PAUSE);
                    }
                    Err(error) => return Err(error),
                }
            }
            if complete && self.ranges().iter().map(|range| range.id).eq(ranges.iter().copied()) {
                return Ok(None);
            }
        }
    }

    /// `RangeGone` unless there is a partition with this range id.
    pub fn check_range(&self, range_id: u32) -> Result<()> {
        self.by_id(range_id).map(drop)
    }

    /// What a partition holds; nothing where it has gone.
    pub fn usage_of_range(&self, range_id: u32) -> Usage {
        let position = self.by_id(range_id).and_then(|partition| block_on(partition.position()));
        position.map(|position| position.usage).unwrap_or_default()
    }

    /// Where the partition of a key stands.
    pub fn position_of(&self, key: &PartitionKey) -> Result<Position> {
        block_on(self.routed_position(key))
    }

    async fn routed_position(&self, key: &PartitionKey) -> Result<Position> {
        routed!(self, is_gone, async { self.route(key)?.0.position().await }.await)
    }

    /// Where the first partition stands.
    pub fn first_position(&self) -> Option<Position> {
        let map = self.map();
        map.slots().first().and_then(|slot| block_on(self.reach(slot).ok()?.position()).ok())
    }

    /// Where a partition stands for a session that must not be ahead of it.
    pub fn position_for(&self, range_id: u32, session: &[(u32, u64)]) -> Result<Position> {
        block_on(self.by_id(range_id)?.status(Some(session))).map(|status| status.at)
    }

    /// Lets a page in at one of its partitions. One that has gone is told by whoever reads it.
    pub fn admit_page(&self, range_id: u32, class: RequestClass) -> Result<()> {
        let Ok(partition) = self.by_id(range_id) else { return Ok(()) };
        match block_on(partition.admit(class)) {
            Err(error) if error.kind != Kind::RangeGone => Err(error),
            _ => Ok(()),
        }
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
        let charged =
            self.by_id(range_id).and_then(|partition| block_on(partition.charge(class, charge_ru, key)));
        drop(charged);
    }

    /// The partitions that a scope touches, in hash order: range id and `[min, max)`.
    pub fn parts_of(&self, scope: &Scope) -> Result<Vec<(u32, Epk, Epk)>> {
        let part = |partition: &PartitionRef| {
            let (min, max) = partition.bounds();
            (partition.range_id(), min.clone(), max.clone())
        };
        Ok(self.refs_of(scope)?.iter().map(part).collect())
    }

    /// About how large an item is where a scope leads, if that is one partition.
    pub fn item_bytes_about(&self, scope: &Scope) -> Option<u64> {
        let mut partitions = self.refs_of(scope).ok()?;
        let only = partitions.pop().filter(|_| partitions.is_empty())?;
        let usage = block_on(only.position()).ok()?.usage;
        Some(usage.size_bytes / usage.items.max(1))
    }

    /// Every partition that a scope touches, wherever they are, in hash order.
    pub(crate) fn refs_of(&self, scope: &Scope) -> Result<Vec<PartitionRef>> {
        self.slots_of(scope)?.iter().map(|slot| self.reach(slot)).collect()
    }

    /// The partition with a range id, wherever it is, or `RangeGone`.
    pub(crate) fn by_id(&self, range_id: u32) -> Result<PartitionRef> {
        let slot = self.slot(range_id)?;
        self.reach(&slot)
    }

    /// The partition in which a scope's items from `epk` on lie.
    pub(crate) fn partition_at(&self, scope: &Scope, epk: &Epk) -> Result<PartitionRef> {
        match scope {
            Scope::Range(id) | Scope::Epk { range: Some(id), .. } => self.by_id(*id),
            _ => self.owner(epk),
        }
    }
}
