//! Partitions in the making: the rows of a range, built from the partitions that serve it while they go on serving.
//!
//! ```text
//! copy       every item, in key order, a bounded step at a time, each step from a new snapshot
//! catch up   the feed since the copy began: what has changed is brought to its present state, in rounds
//! seal       the LSN and the totals; from here on the successor is a partition like any other
//! ```
//!
//! A step sees the items as they are at that moment, so the copy as a whole is no consistent state; the feed makes it
//! one. Whatever changed after the copy began has a feed row after that LSN, and applying it again does no harm. An
//! item keeps its LSN, position, time and number, and with them its etag, its rid and its place in the feed: a
//! position in the feed of the old partition means the same in the new one.
//!
//! Rows that follow from an item (order, feed, expiry, unique claims, index) are made anew from it. Deletes are applied
//! and not kept: they are in the feed only for whoever builds a successor, and a successor starts complete.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use orrery_model::Epk;
use orrery_storage::{
    Commit, Direction, Durability, KeyRange, Row, Snapshot, Space, StoreError, Table, keys,
};

use super::index::{Index, Stage};
use super::item_key::ItemKey;
use super::rows::{
    BASE, Base, ChangeKind, FeedRow, ItemHeader, LEAVE_POSITION, Totals, damaged, decode_item, encode_lsn,
    feed_key,
};
use super::sizes::item_row_bytes;
use super::versions::{self, VersionRow};
use super::{Partition, Settings, claiming, upkeep};
use crate::error::Result;
use crate::etag::COMMIT_POSITIONS;
use crate::item::Item;

/// Items of one step of the copy: few enough that writers who share its flush do not notice.
const COPY_ITEMS_PER_STEP: usize = 128;
/// ... and bytes. The first item always fits.
const COPY_BYTES_PER_STEP: usize = 256 * 1024;
/// Changes applied by one commit of a catch-up.
const CHANGES_PER_STEP: usize = 128;
/// Bytes of rows after which a catch-up commits early: a commit has a limit, and items may have many index entries.
const CHANGE_BYTES_PER_STEP: usize = 4 * 1024 * 1024;
/// Rows looked at for a split point with one snapshot.
const ROWS_PER_SNAPSHOT: usize = 50_000;

/// What one step of the copy did.
pub(crate) struct CopyStep {
    /// Go on after this item; `None`: that was all.
    pub(crate) next: Option<Bytes>,
    pub(crate) items: u64,
}

/// What one round of catching up did.
pub(crate) struct CatchUp {
    /// Everything up to here has been seen.
    pub(crate) lsn: u64,
    pub(crate) changes: u64,
}

/// The answer to a seal.
type Sealing = std::sync::mpsc::Receiver<std::result::Result<(), StoreError>>;

/// Seals all of them at once, so that they share a flush: writers are waiting.
pub(crate) fn seal_all(successors: &mut [Successor], lsn: u64, durability: Durability) -> Result<()> {
    let sealing: Vec<Sealing> =
        successors.iter_mut().map(|successor| successor.seal(lsn, durability)).collect();
    for sealed in sealing {
        sealed.recv().unwrap_or(Err(StoreError::Closed))?;
    }
    Ok(())
}

/// A partition in the making. It owns its space, and nobody reads from it yet.
pub(crate) struct Successor {
    min: Epk,
    max: Epk,
    space: Arc<dyn Space>,
    /// As of the beginning; the partition finds out by itself when they are others by the end.
    settings: Settings,
    /// Its items come from several partitions, whose LSNs say nothing about each other.
    merged: bool,
    totals: Totals,
    /// Versions up to this LSN have been removed in the partitions it comes from, in all of them.
    versions_gone: u64,
    staged: Commit,
    /// Its index rows are made anew: the numbers of paths are each partition's own.
    index: Index,
    stage: Stage,
    /// What `staged` will have changed.
    overlay: HashMap<(Table, Bytes), Option<Bytes>>,
}

impl Successor {
    pub(crate) fn new(
        space: Arc<dyn Space>,
        min: Epk,
        max: Epk,
        settings: Settings,
        merged: bool,
    ) -> Successor {
        let index = Index::empty(settings.definition.clone());
        Successor {
            stage: Stage::new(&index),
            index,
            min,
            max,
            space,
            settings,
            merged,
            totals: Totals::default(),
            versions_gone: u64::MAX,
            staged: Commit::default(),
            overlay: HashMap::new(),
        }
    }

    pub(crate) fn bounds(&self) -> (&Epk, &Epk) {
        (&self.min, &self.max)
    }

    pub(crate) fn space(&self) -> &Arc<dyn Space> {
        &self.space
    }

    fn owns(&self, epk: &[u8]) -> bool {
        *epk >= *self.min.as_bytes() && *epk < *self.max.as_bytes()
    }

    /// Submits the last rows; when the answer comes, all of them are durable. `lsn` is where the old partitions ended.
    fn seal(&mut self, lsn: u64, durability: Durability) -> Sealing {
        let base = Base { lsn, totals: self.totals };
        self.put(Table::Feed, keys::meta(BASE), base.encode());
        self.put(Table::Feed, keys::meta(upkeep::RETENTION_LSN), encode_lsn(lsn));
        if self.versions_gone != u64::MAX && self.versions_gone > 0 {
            self.put(Table::Feed, keys::meta(versions::VERSIONS_GONE), encode_lsn(self.versions_gone));
        }
        let rules = self.settings.rules.clone();
        if let Some(mark) = rules.planned_mark(self.settings.definition.default_ttl) {
            self.put(Table::Feed, keys::meta(upkeep::PLANNED_TTL), mark);
        }
        if let Some(mark) = rules.claimed_mark() {
            self.put(Table::Feed, keys::meta(claiming::CLAIMED), mark);
        }
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let commit = self.take_staged();
        self.space.submit(commit, durability, Box::new(move |result| drop(sender.send(result))));
        receiver
    }

    fn put(&mut self, table: Table, key: Bytes, value: Bytes) {
        self.overlay.insert((table, key.clone()), Some(value.clone()));
        self.staged.put(table, key, value);
    }

    fn delete(&mut self, table: Table, key: Bytes) {
        self.overlay.insert((table, key.clone()), None);
        self.staged.delete(table, key);
    }

    fn get(&self, table: Table, key: &Bytes) -> Result<Option<Bytes>> {
        match self.overlay.get(&(table, key.clone())) {
            Some(staged) => Ok(staged.clone()),
            None => Ok(self.space.snapshot()?.get(table, key)?),
        }
    }

    fn commit(&mut self, durability: Durability) -> Result<()> {
        if self.staged.changes.is_empty() {
            self.overlay.clear();
            return Ok(());
        }
        let commit = self.take_staged();
        self.space.check_room(&commit)?;
        Ok(self.space.commit(commit, durability)?)
    }

    fn take_staged(&mut self) -> Commit {
        self.overlay.clear();
        self.stage.wrote();
        self.stage.complete(&self.index, &mut self.staged);
        let stage = std::mem::replace(&mut self.stage, Stage::new(&self.index));
        // Nobody reads what is still being made.
        stage.submitted(&self.index, 0);
        std::mem::take(&mut self.staged)
    }

    /// Stages every row of an item of which there is nothing here yet.
    fn insert(&mut self, key: &Bytes, item: Item, live: bool) -> Result<()> {
        let header = ItemHeader { merged: item.merged || self.merged, ..ItemHeader::of(&item) };
        let (row, item) = header.encode(&item.document);
        let target = ItemKey::from_key(key.clone()).ok_or_else(|| damaged("item"))?;
        self.totals.items += 1;
        self.totals.bytes += (key.len() + row.len()) as u64;
        self.put(Table::Items, key.clone(), row);
        self.put(Table::Index, target.order(item.number), key.clone());
        self.stage.rows(&self.index, &mut self.staged, &target, None, Some(&item));
        let feed = FeedRow {
            kind: kind_of(&item),
            ts: item.ts,
            totals: self.totals,
            number: item.number,
            key: key.clone(),
        };
        self.put(Table::Feed, feed_key(&item), feed.encode());
        if let Some(second) = self.over_from(&item) {
            self.put(Table::Feed, keys::expiry(second, key), Bytes::new());
        }
        for claim in self.claims(&target, &item)? {
            // An item that is over may have lost its claims to another, which may already be here.
            if live || self.get(Table::Feed, &claim)?.is_none() {
                self.put(Table::Feed, claim, Bytes::copy_from_slice(target.id()));
            }
        }
        Ok(())
    }

    /// Stages the removal of every row of an item that is here.
    fn remove(&mut self, key: &Bytes, item: &Item) -> Result<()> {
        let target = ItemKey::from_key(key.clone()).ok_or_else(|| damaged("item"))?;
        self.totals.items = self.totals.items.saturating_sub(1);
        self.totals.bytes = self.totals.bytes.saturating_sub(item_row_bytes(key, item) as u64);
        self.delete(Table::Items, key.clone());
        self.stage.rows(&self.index, &mut self.staged, &target, Some(item), None);
        // An item that was given another id took its number along.
        let order = target.order(item.number);
        if self.get(Table::Index, &order)?.as_ref() == Some(key) {
            self.delete(Table::Index, order);
        }
        self.delete(Table::Feed, feed_key(item));
        if let Some(second) = self.over_from(item) {
            self.delete(Table::Feed, keys::expiry(second, key));
        }
        for claim in self.claims(&target, item)? {
            if self.get(Table::Feed, &claim)?.as_deref() == Some(target.id()) {
                self.delete(Table::Feed, claim);
            }
        }
        Ok(())
    }

    fn claims(&self, target: &ItemKey, item: &Item) -> Result<Vec<Bytes>> {
        if self.settings.rules.constraints() == 0 {
            return Ok(Vec::new());
        }
        let claims = self.settings.rules.claims(item.body())?;
        Ok(claims.iter().map(|claim| target.unique(claim)).collect())
    }

    fn over_from(&self, item: &Item) -> Option<u32> {
        self.settings.rules.over_from(self.settings.definition.default_ttl, item)
    }

    fn stored(&self, key: &Bytes) -> Result<Option<Item>> {
        self.get(Table::Items, key)?.map(decode_item).transpose()
    }

    /// Brings an item to the state that it has in `from`.
    fn bring(&mut self, key: &Bytes, item: Item, live: bool) -> Result<()> {
        if let Some(stored) = self.stored(key)? {
            if (stored.lsn, stored.sub) == (item.lsn, item.sub) {
                return Ok(());
            }
            self.remove(key, &stored)?;
        }
        self.insert(key, item, live)
    }

    /// Applies that nothing is under `key` as of a change, unless a later one is already here.
    fn clear(&mut self, key: &Bytes, lsn: u64, sub: u8) -> Result<()> {
        match self.stored(key)? {
            Some(stored) if (stored.lsn, stored.sub) <= (lsn, sub & !LEAVE_POSITION) => {
                self.remove(key, &stored)
            }
            _ => Ok(()),
        }
    }

    fn purge(&mut self, logical_partition: &[u8], lsn: u64) -> Result<()> {
        let parts = keys::ItemKey::decode(logical_partition).ok_or_else(|| damaged("purge"))?;
        self.put(Table::Feed, keys::purge(&parts.epk, &parts.partition_key), encode_lsn(lsn));
        Ok(())
    }
}

/// A number is made of the change that created its item, so it tells whether a version is the first one.
fn kind_of(item: &Item) -> ChangeKind {
    const VERSION_BITS: u64 = (1 << 44) - 1;
    let version = item.lsn.wrapping_mul(COMMIT_POSITIONS).wrapping_add(u64::from(item.sub));
    if item.number & VERSION_BITS == version & VERSION_BITS {
        ChangeKind::Create
    } else {
        ChangeKind::Replace
    }
}

fn epk_of(key: &[u8]) -> Result<Epk> {
    let parts = keys::ItemKey::decode(key).ok_or_else(|| damaged("item"))?;
    Ok(Epk(parts.epk[..].into()))
}

fn owner<'s>(successors: &'s mut [Successor], key: &[u8]) -> Result<Option<&'s mut Successor>> {
    let parts = keys::ItemKey::decode(key).ok_or_else(|| damaged("item"))?;
    Ok(successors.iter_mut().find(|successor| successor.owns(&parts.epk)))
}

fn commit_all(successors: &mut [Successor]) -> Result<()> {
    // Nothing of this counts before the seal, which waits for the disk.
    successors.iter_mut().try_for_each(|successor| successor.commit(Durability::Relaxed))
}

impl Partition {
    /// Where the range can be cut so that each side has about half of the bytes: between two effective keys. `None`
    /// when everything is under one of them.
    pub(crate) fn split_point(&self) -> Result<Option<Epk>> {
        let half = self.usage().size_bytes / 2;
        let mut range = KeyRange::all();
        let mut bytes = 0u64;
        // Where the present effective key begins, and what lies before it.
        let mut current: Option<(Epk, u64)> = None;
        let mut first = true;
        loop {
            let snapshot = self.snapshot()?;
            let mut rows = snapshot.scan(Table::Items, range.clone(), Direction::Forward);
            let mut last = None;
            for _ in 0..ROWS_PER_SNAPSHOT {
                let Some(row) = rows.next_row().transpose()? else { break };
                let epk = epk_of(&row.key)?;
                if current.as_ref().is_none_or(|(present, _)| *present != epk) {
                    if let Some((begins, before)) = &current
                        && bytes >= half
                    {
                        // The key that crosses the middle goes to the side where it unbalances less.
                        let cut_before = !first && half - before <= bytes - half;
                        return Ok(Some(if cut_before { begins.clone() } else { epk }));
                    }
                    first = current.is_none();
                    current = Some((epk, bytes));
                }
                bytes += (row.key.len() + row.value.len()) as u64;
                last = Some(row.key);
            }
            let Some(last) = last else {
                return Ok(current.filter(|_| !first).map(|(begins, _)| begins));
            };
            range.start = Bound::Excluded(last);
        }
    }

    /// Copies purges in progress. Before the first step of the copy, and after the LSN that catching up begins at was
    /// read.
    pub(crate) fn copy_purges(&self, successors: &mut [Successor]) -> Result<()> {
        let snapshot = self.snapshot()?;
        let mut rows = snapshot.scan(Table::Feed, keys::purges(), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let Some(keys::FeedTableKey::Purge { logical_partition }) = keys::FeedTableKey::decode(&row.key)
            else {
                return Err(damaged("purge"));
            };
            if let Some(successor) = owner(successors, logical_partition)? {
                successor.purge(logical_partition, super::rows::decode_lsn(&row.value)?)?;
            }
        }
        commit_all(successors)
    }

    /// Copies the items after `after`, a bounded number of them.
    pub(crate) fn copy_items(&self, after: Option<Bytes>, successors: &mut [Successor]) -> Result<CopyStep> {
        let view = self.view(&[])?;
        let snapshot = self.snapshot()?;
        let mut range = KeyRange::all();
        if let Some(after) = after {
            range.start = Bound::Excluded(after);
        }
        let mut rows = snapshot.scan(Table::Items, range, Direction::Forward);
        let mut step = CopyStep { next: None, items: 0 };
        let mut bytes = 0;
        while let Some(row) = rows.next_row().transpose()? {
            bytes += row.value.len();
            step.items += 1;
            let item = decode_item(row.value)?;
            if let Some(successor) = owner(successors, &row.key)? {
                let live = view.shows_row(&row.key, &item);
                successor.insert(&row.key, item, live)?;
            }
            if step.items as usize >= COPY_ITEMS_PER_STEP || bytes >= COPY_BYTES_PER_STEP {
                step.next = Some(row.key);
                break;
            }
        }
        commit_all(successors)?;
        Ok(step)
    }

    /// Copies the versions after the row `after`, a bounded number of them. Their rows are the same everywhere.
    pub(crate) fn copy_versions(
        &self,
        after: Option<Bytes>,
        successors: &mut [Successor],
    ) -> Result<CopyStep> {
        let gone = self.shared.agenda.versions_gone.load(std::sync::atomic::Ordering::Acquire);
        successors
            .iter_mut()
            .for_each(|successor| successor.versions_gone = successor.versions_gone.min(gone));
        let snapshot = self.snapshot()?;
        let mut range = keys::versions_after(0);
        if let Some(after) = after {
            range.start = Bound::Excluded(after);
        }
        let mut rows = snapshot.scan(Table::Feed, range, Direction::Forward);
        let mut step = CopyStep { next: None, items: 0 };
        let mut bytes = 0;
        while let Some(row) = rows.next_row().transpose()? {
            bytes += row.value.len();
            step.items += 1;
            let next = row.key.clone();
            copy_version(successors, row)?;
            if step.items as usize >= COPY_ITEMS_PER_STEP || bytes >= COPY_BYTES_PER_STEP {
                step.next = Some(next);
                break;
            }
        }
        commit_all(successors)?;
        Ok(step)
    }

    /// Applies everything that has changed after `after`, as of now.
    pub(crate) fn catch_up(&self, after: u64, successors: &mut [Successor]) -> Result<CatchUp> {
        let round = self.stage_changes(after, successors)?;
        commit_all(successors)?;
        Ok(round)
    }

    /// The same, but the last of it is committed by the seal.
    pub(crate) fn stage_changes(&self, after: u64, successors: &mut [Successor]) -> Result<CatchUp> {
        let view = self.view(&[])?;
        let snapshot = self.snapshot()?;
        let mut rows = snapshot.scan(Table::Feed, keys::feed_after(after), Direction::Forward);
        let mut round = CatchUp { lsn: view.lsn.max(after), changes: 0 };
        while let Some(row) = rows.next_row().transpose()? {
            let Some(keys::FeedTableKey::Feed { lsn, sub }) = keys::FeedTableKey::decode(&row.key) else {
                return Err(damaged("feed"));
            };
            round.lsn = round.lsn.max(lsn);
            round.changes += 1;
            let change = FeedRow::decode(&row.value)?;
            if let Some(successor) = owner(successors, &change.key)? {
                apply(successor, &change, (lsn, sub), snapshot.as_ref(), |item| {
                    view.shows_row(&change.key, item)
                })?;
            }
            let large = |successor: &Successor| successor.staged.size_bytes() > CHANGE_BYTES_PER_STEP;
            if round.changes.is_multiple_of(CHANGES_PER_STEP as u64) || successors.iter().any(large) {
                commit_all(successors)?;
            }
        }
        let mut rows = snapshot.scan(Table::Feed, keys::versions_after(after), Direction::Forward);
        let mut copied = 0;
        while let Some(row) = rows.next_row().transpose()? {
            copy_version(successors, row)?;
            copied += 1;
            if copied % CHANGES_PER_STEP == 0 {
                commit_all(successors)?;
            }
        }
        Ok(round)
    }
}

fn copy_version(successors: &mut [Successor], row: Row) -> Result<()> {
    let key = VersionRow::decode(&row.value)?.key;
    if let Some(successor) = owner(successors, &key)? {
        successor.put(Table::Feed, row.key, row.value);
    }
    Ok(())
}

fn apply(
    successor: &mut Successor,
    change: &FeedRow,
    (lsn, sub): (u64, u8),
    snapshot: &dyn Snapshot,
    live: impl FnOnce(&Item) -> bool,
) -> Result<()> {
    match change.kind {
        ChangeKind::Create | ChangeKind::Replace => {
            let row = snapshot.get(Table::Items, &change.key)?.ok_or_else(|| damaged("feed"))?;
            let item = decode_item(row)?;
            let live = live(&item);
            successor.bring(&change.key, item, live)
        }
        ChangeKind::Delete | ChangeKind::Expire | ChangeKind::Leave => successor.clear(&change.key, lsn, sub),
        ChangeKind::Purge => successor.purge(&change.key, lsn),
    }
}
