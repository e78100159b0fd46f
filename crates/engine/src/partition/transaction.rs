//! One commit in the making: operations are checked against what is stored, what is on its way to the store, and what
//! this commit itself has changed so far; what they change is staged, and nothing outside is touched before `finish`.
//!
//! Every operation does all its checks before it stages its first row. So an operation that fails leaves no trace, and
//! dropping the transaction undoes everything.
//!
//! The rows of one version of an item are staged in one place, `Transaction::put`, where the old version is at hand;
//! index rows join the commit there, and what they cost is counted in the same walk.

use std::collections::HashMap;
use std::sync::Arc;

use super::content::Content;
use super::durability::Ticket;
use super::expiry;
use super::index::Stage;
use super::item_key::ItemKey;
use super::overlay::{Base, Overlay};
use super::rows::{ChangeKind, FeedRow, ItemHeader, LEAVE_POSITION, Totals, decode_item, feed_key};
use super::sizes::item_row_bytes;
use super::unique::{self, Claims};
use super::upkeep;
use super::{AfterPublish, Partition, Settings};
use crate::condition::CompiledCondition;
use crate::error::{Error, Kind, Result};
use crate::etag::COMMIT_POSITIONS;
use crate::item::{self, Item, Operation, Outcome, Write};
use bytes::Bytes;
use orrery_storage::{Change, Commit, Snapshot, Table, keys};

/// Rows of a usual write: an update of some values has about ten, a create twice as many.
const USUAL_ROWS: usize = 24;
/// Staged items that are searched one by one.
const STAGED_SEARCHED_MAX: usize = 32;

/// An operation with its target, ready to be tried.
pub(super) struct Prepared<'w> {
    pub(super) target: ItemKey,
    /// Where a replace moves the item, when it gives it another id.
    pub(super) renamed: Option<ItemKey>,
    pub(super) write: &'w Write,
    /// Of operations that bring a whole document.
    pub(super) content: Option<Content>,
    /// Of patches that have one.
    pub(super) condition: Option<Arc<CompiledCondition>>,
}

/// What an operation did.
pub(super) struct Applied {
    pub(super) outcome: Outcome,
    pub(super) item: Option<Item>,
    /// The version it replaced or deleted.
    pub(super) old: Option<Item>,
    pub(super) patch_operations: usize,
    /// The index terms it put in and took out.
    pub(super) terms: usize,
}

/// The LSN of the first commit of a new partition.
const FIRST_LSN: u64 = 1;

pub(super) struct Transaction<'p> {
    pub(super) partition: &'p Partition,
    pub(super) settings: &'p Settings,
    pub(super) state: Base<'p>,
    pub(super) snapshot: Option<Box<dyn Snapshot>>,
    /// The LSN of the first change; most commits have no other.
    first_lsn: u64,
    pub(super) lsn: u64,
    pub(super) now_s: u32,
    commit: Commit,
    /// Rows of the commit whose sizes were added up, and their sum.
    counted: (usize, usize),
    totals: Totals,
    /// Items as this transaction leaves them; later entries win.
    pub(super) staged: Vec<(Bytes, Option<Item>)>,
    /// The latest entry of `staged` for each key, of its first `indexed` entries. Empty until there are many.
    staged_places: HashMap<Bytes, usize>,
    indexed: usize,
    staged_claims: Vec<(Bytes, Option<Bytes>)>,
    /// What `look_ahead` found last, for the operation that comes to the same row next.
    looked_at: Option<(Bytes, Option<Item>)>,
    /// Growth of logical partitions.
    staged_sizes: Vec<(Bytes, i64)>,
    /// Something was read that is not yet durable: whatever comes of it must wait for that.
    rests_on_pending: bool,
    earliest_expiry: Option<u32>,
    deletes: bool,
    versions: bool,
    index: Stage,
    pub(super) after: AfterPublish,
    /// A logical partition whose size must be known before the operation can be decided.
    pub(super) size_wanted: Option<ItemKey>,
}

impl<'p> Transaction<'p> {
    pub(super) fn begin(partition: &'p Partition, settings: &'p Settings) -> Result<Transaction<'p>> {
        let mut state = partition.shared.state.lock();
        partition.check_open()?;
        state.settle_published(partition.shared.published_lsn());
        partition.follow_definition(&state);
        Ok(Transaction::over(partition, settings, Base::Shared(state), None))
    }

    /// A transaction over any state; a detached one holds up nobody and must be attached before it can finish.
    pub(super) fn over(
        partition: &'p Partition,
        settings: &'p Settings,
        state: Base<'p>,
        snapshot: Option<Box<dyn Snapshot>>,
    ) -> Transaction<'p> {
        let (lsn, totals) = (state.next_lsn, state.totals);
        Transaction {
            partition,
            settings,
            state,
            snapshot,
            first_lsn: lsn,
            lsn,
            now_s: partition.env.now_s(),
            commit: Commit::with_capacity(USUAL_ROWS),
            counted: (0, 0),
            totals,
            staged: Vec::new(),
            staged_places: HashMap::new(),
            indexed: 0,
            staged_claims: Vec::new(),
            looked_at: None,
            staged_sizes: Vec::new(),
            rests_on_pending: false,
            earliest_expiry: None,
            deletes: false,
            index: Stage::new(&partition.shared.index),
            versions: false,
            after: AfterPublish::Nothing,
            size_wanted: None,
        }
    }

    /// The LSN of the commit, if it comes to one; of its last change.
    pub(super) fn lsn(&self) -> u64 {
        self.lsn
    }

    /// What comes next stands under the n-th LSN of this commit: one LSN has only so many positions.
    pub(super) fn under(&mut self, nth: u64) {
        self.lsn = self.first_lsn + nth;
    }

    pub(super) fn changes_anything(&self) -> bool {
        !self.commit.changes.is_empty()
    }

    /// The first second in which something written here will be over.
    pub(super) fn earliest_expiry(&self) -> Option<u32> {
        self.earliest_expiry
    }

    /// Whether the feed got a row that will be removed one day.
    pub(super) fn deletes(&self) -> bool {
        self.deletes
    }

    /// Whether versions were kept that will be removed one day.
    pub(super) fn versions(&self) -> bool {
        self.versions
    }

    /// Tries one operation as change `sub` of the commit.
    pub(super) fn apply(&mut self, sub: u8, prepared: &Prepared<'_>) -> Result<Applied> {
        let Prepared { target, renamed, write, content, condition } = prepared;
        let stored = self.stored(&target.key)?;
        let live = stored.as_ref().is_some_and(|item| self.is_live(target.logical_partition(), item));
        let old = stored.clone().filter(|_| live);
        match (&write.operation, old) {
            (Operation::Create { .. }, Some(_)) => Err(item::already_exists()),
            (Operation::Create { .. }, None) => self.write(sub, target, stored, None, content.as_ref()),
            // Without a present version there is nothing to hold a condition against: the service inserts.
            (Operation::Upsert { .. }, None) => self.write(sub, target, stored, None, content.as_ref()),
            (Operation::Upsert { .. } | Operation::Replace { .. }, Some(old)) => {
                check_conditions(write, &old)?;
                match renamed {
                    Some(renamed) => self.undone_if_failed(|transaction| {
                        transaction.rename(sub, target, renamed, old, content.as_ref())
                    }),
                    None => self.write(sub, target, stored, Some(old), content.as_ref()),
                }
            }
            (Operation::Patch { operations, .. }, Some(old)) => {
                check_conditions(write, &old)?;
                if let Some(condition) = condition
                    && !condition.matches(&old)?
                {
                    return Err(Error::new(
                        Kind::PatchConditionFailed,
                        "The condition of the patch does not hold.",
                    ));
                }
                let content = self.partition.patched(self.settings, target, &old, operations)?;
                let applied = self.write(sub, target, stored, Some(old), Some(&content))?;
                Ok(Applied { patch_operations: operations.len(), ..applied })
            }
            (Operation::Delete { .. }, Some(old)) => {
                check_conditions(write, &old)?;
                let terms = self.remove(sub, target, &old, ChangeKind::Delete)?;
                let terms = terms + self.time_terms(Some(&old));
                Ok(Applied {
                    outcome: Outcome::Deleted,
                    item: None,
                    old: Some(old),
                    patch_operations: 0,
                    terms,
                })
            }
            (Operation::Read { .. }, Some(old)) => {
                if write.if_none_match.as_deref().is_some_and(|condition| old.etag.matches(condition)) {
                    return Err(Error::new(Kind::NotModified, "The item has not changed."));
                }
                Ok(Applied {
                    outcome: Outcome::Read,
                    item: Some(old.detached()),
                    old: None,
                    patch_operations: 0,
                    terms: 0,
                })
            }
            (Operation::Attach { change, .. }, Some(old)) => {
                self.attach(sub, target, stored, old, write, change)
            }
            (_, None) => Err(item::not_found()),
        }
    }

    pub(super) fn write(
        &mut self,
        sub: u8,
        target: &ItemKey,
        stored: Option<Item>,
        old: Option<Item>,
        content: Option<&Content>,
    ) -> Result<Applied> {
        let content = brought(content)?;
        let (item, changed) = self.put(sub, target, stored.as_ref(), old.is_some(), None, content)?;
        let outcome = if old.is_some() { Outcome::Replaced } else { Outcome::Created };
        // What a dead version left behind is cleaned up on the way, and not this write's cost.
        let terms = if old.is_none() && stored.is_some() {
            self.partition.shared.index.terms(None, Some(item.body()))
        } else {
            changed
        };
        let terms = terms + self.time_terms(old.as_ref());
        let terms = if old.is_some() { terms + self.time_terms(old.as_ref()) } else { terms };
        Ok(Applied { outcome, item: Some(item), old, patch_operations: 0, terms })
    }

    /// Terms of the time of a write. It is paid once per commit: an item that is touched again does not pay again.
    fn time_terms(&self, old: Option<&Item>) -> usize {
        let again = old.is_some_and(|old| old.lsn >= self.first_lsn);
        if again { 0 } else { self.index.time_terms() }
    }

    /// Moves an item to another id of its logical partition. It stays the same item: its number and with it its place
    /// in creation order are kept, and the feed shows one change.
    fn rename(
        &mut self,
        sub: u8,
        target: &ItemKey,
        renamed: &ItemKey,
        old: Item,
        content: Option<&Content>,
    ) -> Result<Applied> {
        let content = brought(content)?;
        let in_the_way = self.stored(&renamed.key)?;
        if in_the_way.as_ref().is_some_and(|item| self.is_live(renamed.logical_partition(), item)) {
            return Err(item::already_exists());
        }
        self.remove_rows(target, &old)?;
        self.feed(sub | LEAVE_POSITION, ChangeKind::Leave, old.number, target.key.clone());
        let (item, _) = self.put(sub, renamed, in_the_way.as_ref(), false, Some(&old), content)?;
        let terms = self.partition.shared.index.terms(Some(old.body()), Some(item.body()));
        let terms = terms + 2 * self.time_terms(Some(&old));
        Ok(Applied {
            outcome: Outcome::Replaced,
            item: Some(item),
            old: Some(old),
            patch_operations: 0,
            terms,
        })
    }

    /// Runs an operation that stages rows before its last check, and takes them back if that fails.
    fn undone_if_failed<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let lengths =
            (self.commit.changes.len(), self.staged.len(), self.staged_claims.len(), self.staged_sizes.len());
        let totals = self.totals;
        let result = run(self);
        if result.is_err() {
            self.commit.changes.truncate(lengths.0);
            self.staged.truncate(lengths.1);
            self.staged_places.clear();
            self.indexed = 0;
            self.staged_claims.truncate(lengths.2);
            self.staged_sizes.truncate(lengths.3);
            self.totals = totals;
        }
        result
    }

    /// Stages a new version. `stored` is the row under the key, `live` whether it still counts: a row that has expired
    /// or was purged is cleaned up as if the sweeper had been there first. `moved` is the version of an item that comes
    /// here from another id. Returns the new version and the index terms by which it differs from the row.
    fn put(
        &mut self,
        sub: u8,
        target: &ItemKey,
        stored: Option<&Item>,
        live: bool,
        moved: Option<&Item>,
        content: &Content,
    ) -> Result<(Item, usize)> {
        let constraints = &self.settings.definition.unique_keys;
        let old_claims = match stored {
            Some(stored) if !constraints.is_empty() => unique::claims(constraints, stored.body()),
            _ => Claims::new(),
        };
        let mut claimed: Vec<Bytes> = Vec::new();
        for (constraint, values) in content.claims.iter().enumerate() {
            if live && old_claims.get(constraint) == Some(values) {
                continue;
            }
            let key = target.unique(constraint, values);
            if let Some(holder) = self.claim_holder(&key)?
                && holder != target.id()
                && self.is_live_sibling(target, &holder)?
            {
                return Err(item::unique_key_violated());
            }
            claimed.push(key);
        }
        let number = match stored {
            Some(stored) if live => stored.number,
            _ => moved.map_or_else(|| self.new_number(sub), |moved| moved.number),
        };
        let before = moved.or(stored.filter(|_| live));
        let header = ItemHeader {
            lsn: self.lsn,
            sub,
            ts: before.filter(|_| content.attached.is_some()).map_or(self.now_s, |before| before.ts),
            number,
            ttl: content.ttl,
            late_members: content.late_members,
            merged: false,
            attached: self.attached(sub, before, content.attached.as_ref()),
        };
        let (row, item) = header.encode(&content.document);
        let old_bytes = stored.map_or(0, |stored| item_row_bytes(&target.key, stored));
        let growth = (target.key.len() + row.len()) as i64 - old_bytes as i64;
        self.check_room(target, growth)?;
        let released = self.released(target, &old_claims, live, Some(&content.claims))?;

        // From here on nothing fails.
        let expires = self.over_from(&item);
        if let Some(stored) = stored {
            self.commit.delete(Table::Feed, feed_key(stored));
            if let Some(second) = self.over_from(stored).filter(|second| Some(*second) != expires) {
                self.commit.delete(Table::Feed, keys::expiry(second, &target.key));
            }
            if !live {
                self.commit.delete(Table::Index, target.order(stored.number));
            }
        }
        self.release(released);
        for key in claimed {
            let id = Bytes::copy_from_slice(target.id());
            self.commit.put(Table::Feed, key.clone(), id.clone());
            self.staged_claims.push((key, Some(id)));
        }
        if !live {
            self.commit.put(Table::Index, target.order(number), target.key.clone());
        }
        if let Some(second) = expires {
            self.commit.put(Table::Feed, keys::expiry(second, &target.key), Bytes::new());
            self.earliest_expiry = Some(self.earliest_expiry.map_or(second, |earliest| earliest.min(second)));
        }
        self.commit.put(Table::Items, target.key.clone(), row.clone());
        let index = &self.partition.shared.index;
        let terms = self.index.rows(index, &mut self.commit, target, stored, Some(&item));
        self.grow(target, i64::from(stored.is_none()), growth);
        let kind = if live || moved.is_some() { ChangeKind::Replace } else { ChangeKind::Create };
        self.feed(sub, kind, number, target.key.clone());
        if content.attached.is_none() {
            self.keep_version(sub, kind, number, &target.key, Some(&row), before);
        }
        self.staged.push((target.key.clone(), Some(item.clone())));
        Ok((item, terms))
    }

    /// Stages the removal of a stored version. Returns its index terms, without the time of the write.
    pub(super) fn remove(
        &mut self,
        sub: u8,
        target: &ItemKey,
        stored: &Item,
        kind: ChangeKind,
    ) -> Result<usize> {
        let terms = self.remove_rows(target, stored)?;
        self.feed(sub, kind, stored.number, target.key.clone());
        self.keep_version(sub, kind, stored.number, &target.key, None, Some(stored));
        Ok(terms)
    }

    /// Stages the rows that bring an item's index entries from an earlier policy to the present one.
    pub(super) fn rebuild_index(&mut self, target: &ItemKey, item: &Item) {
        self.index.rebuild(&self.partition.shared.index, &mut self.commit, target, item);
    }

    /// What the commit counts so far. Only what has come since it was last asked is looked at.
    pub(super) fn size_bytes(&mut self) -> usize {
        let (rows, bytes) = self.counted;
        let counted = match self.commit.changes.get(rows..) {
            Some(new) => bytes + new.iter().map(Change::size_bytes).sum::<usize>(),
            // Something was undone.
            None => self.commit.size_bytes(),
        };
        self.counted = (self.commit.changes.len(), counted);
        counted
    }

    fn remove_rows(&mut self, target: &ItemKey, stored: &Item) -> Result<usize> {
        let constraints = &self.settings.definition.unique_keys;
        if !constraints.is_empty() {
            let claims = unique::claims(constraints, stored.body());
            let live = self.is_live(target.logical_partition(), stored);
            let released = self.released(target, &claims, live, None)?;
            self.release(released);
        }
        self.commit.delete(Table::Items, target.key.clone());
        self.commit.delete(Table::Index, target.order(stored.number));
        self.commit.delete(Table::Feed, feed_key(stored));
        if let Some(second) = self.over_from(stored) {
            self.commit.delete(Table::Feed, keys::expiry(second, &target.key));
        }
        let index = &self.partition.shared.index;
        let terms = self.index.rows(index, &mut self.commit, target, Some(stored), None);
        self.grow(target, -1, -(item_row_bytes(&target.key, stored) as i64));
        self.staged.push((target.key.clone(), None));
        Ok(terms)
    }

    /// Stages a row that needs no LSN: marks of the partition itself.
    pub(super) fn stage(&mut self, table: Table, key: Bytes, value: Option<Bytes>) {
        match value {
            Some(value) => self.commit.put(table, key, value),
            None => self.commit.delete(table, key),
        }
    }

    /// Stages the feed row of a change.
    pub(super) fn feed(&mut self, sub: u8, kind: ChangeKind, number: u64, key: Bytes) {
        self.deletes |= !kind.leaves_item();
        let row = FeedRow { kind, ts: self.now_s, totals: self.totals, number, key };
        self.commit.put(Table::Feed, keys::feed(self.lsn, sub), row.encode());
    }

    /// Stages the row for readers of all versions, where the container has any.
    fn keep_version(
        &mut self,
        sub: u8,
        kind: ChangeKind,
        number: u64,
        key: &Bytes,
        current: Option<&Bytes>,
        previous: Option<&Item>,
    ) {
        if let Some(row) = self.settings.version_row(kind, self.now_s, key, current, previous) {
            self.commit.put(Table::Feed, keys::version(self.lsn, sub, number), row.encode());
            self.versions = true;
        }
    }

    /// The claims of a version that its successor does not renew. A dead version may have lost its claims to others
    /// already, so its rows are looked at first.
    fn released(
        &mut self,
        target: &ItemKey,
        claims: &Claims,
        live: bool,
        kept: Option<&Claims>,
    ) -> Result<Vec<Bytes>> {
        let mut released = Vec::new();
        for (constraint, values) in claims.iter().enumerate() {
            if kept.is_some_and(|kept| kept.get(constraint) == Some(values)) {
                continue;
            }
            let key = target.unique(constraint, values);
            if live || self.claim_holder(&key)?.as_deref() == Some(target.id()) {
                released.push(key);
            }
        }
        Ok(released)
    }

    fn release(&mut self, claims: Vec<Bytes>) {
        for key in claims {
            self.commit.delete(Table::Feed, key.clone());
            self.staged_claims.push((key, None));
        }
    }

    /// The version under a key, read once for whoever asks now and for the operation that comes next.
    pub(super) fn look_ahead(&mut self, key: &Bytes) -> Result<Option<&Item>> {
        let stored = self.stored(key)?;
        Ok(self.looked_at.insert((key.clone(), stored)).1.as_ref())
    }

    /// The version under a key, whether or not it still counts.
    pub(super) fn stored(&mut self, key: &Bytes) -> Result<Option<Item>> {
        // Rows change by what is staged alone, which comes after the look.
        if let Some((_, item)) = self.looked_at.take_if(|(looked_at, _)| looked_at == key) {
            return Ok(item);
        }
        if let Some(item) = self.staged_item(key) {
            return Ok(item);
        }
        if let Some(pending) = self.state.items.get(key) {
            self.rests_on_pending = true;
            return Ok(pending.value.clone());
        }
        self.read(Table::Items, key)?.map(decode_item).transpose()
    }

    /// The latest staged version of an item. A script stages thousands, everybody else a few.
    fn staged_item(&mut self, key: &Bytes) -> Option<Option<Item>> {
        if self.staged.len() <= STAGED_SEARCHED_MAX {
            return self.staged.iter().rev().find(|(staged, _)| staged == key).map(|(_, item)| item.clone());
        }
        for (place, (key, _)) in self.staged.iter().enumerate().skip(self.indexed) {
            self.staged_places.insert(key.clone(), place);
        }
        self.indexed = self.staged.len();
        self.staged_places.get(key).map(|place| self.staged[*place].1.clone())
    }

    fn claim_holder(&mut self, key: &Bytes) -> Result<Option<Bytes>> {
        if let Some((_, holder)) = self.staged_claims.iter().rev().find(|(staged, _)| staged == key) {
            return Ok(holder.clone());
        }
        if let Some(pending) = self.state.claims.get(key) {
            self.rests_on_pending = true;
            return Ok(pending.value.clone());
        }
        self.read(Table::Feed, key)
    }

    fn read(&mut self, table: Table, key: &[u8]) -> Result<Option<Bytes>> {
        if self.snapshot.is_none() {
            self.snapshot = Some(self.partition.snapshot()?);
        }
        let snapshot = self.snapshot.as_ref().expect("opened above");
        Ok(snapshot.get(table, key)?)
    }

    /// Whether a stored version counts: neither over nor purged.
    pub(super) fn is_live(&self, logical_partition: &[u8], item: &Item) -> bool {
        !expiry::is_over(self.settings.definition.default_ttl, item, self.now_s)
            && self.state.purges.get(logical_partition).is_none_or(|purged| item.lsn > *purged)
    }

    fn is_live_sibling(&mut self, target: &ItemKey, id: &[u8]) -> Result<bool> {
        let stored = self.stored(&target.sibling(id))?;
        Ok(stored.is_some_and(|item| self.is_live(target.logical_partition(), &item)))
    }

    fn over_from(&self, item: &Item) -> Option<u32> {
        expiry::over_from(self.settings.definition.default_ttl, item.ts, item.ttl)
    }

    fn new_number(&self, sub: u8) -> u64 {
        // 16 bits of range, 44 of version: numbers of one partition grow with time, those of others never meet them.
        (u64::from(self.partition.range_id) & 0xFFFF) << 44
            | (self.lsn * COMMIT_POSITIONS + u64::from(sub)) & ((1 << 44) - 1)
    }

    fn grow(&mut self, target: &ItemKey, items: i64, bytes: i64) {
        self.totals.items = self.totals.items.saturating_add_signed(items);
        self.totals.bytes = self.totals.bytes.saturating_add_signed(bytes);
        if !self.state.sizes.is_empty() {
            self.staged_sizes.push((Bytes::copy_from_slice(target.logical_partition()), bytes));
        }
    }

    fn check_room(&mut self, target: &ItemKey, growth: i64) -> Result<()> {
        if growth <= 0 {
            return Ok(());
        }
        let config = &self.partition.config;
        let full = |limit| Error::new(Kind::PartitionFull, super::sizes::full_message(limit));
        if self.settings.definition.partition_key.system_key {
            let limit = config.fixed_container_size_limit;
            return if self.totals.bytes.saturating_add_signed(growth) > limit {
                Err(full(limit))
            } else {
                Ok(())
            };
        }
        // A logical partition cannot be larger than the physical one, whose size is always known.
        let limit = config.logical_partition_size_limit;
        if self.totals.bytes.saturating_add_signed(growth) <= limit {
            return Ok(());
        }
        let Some(size) = self.state.sizes.get(target.logical_partition()) else {
            self.size_wanted = Some(target.clone());
            return Err(Error::internal("The size of the logical partition is not known yet."));
        };
        let staged: i64 = self
            .staged_sizes
            .iter()
            .filter(|(prefix, _)| prefix == target.logical_partition())
            .map(|(_, bytes)| bytes)
            .sum();
        if size.saturating_add_signed(staged + growth) > limit { Err(full(limit)) } else { Ok(()) }
    }

    /// Hands the commit to the store and makes its changes the base of what comes next. The ticket is ready when
    /// everything that was written or looked at is durable; `None` means it is already.
    pub(super) fn finish(mut self) -> Result<Option<Ticket>> {
        if self.commit.changes.is_empty() {
            return Ok(self.abandon());
        }
        // From the first LSN on the store knows under which policy rows were made.
        self.index.wrote();
        self.index.complete(&self.partition.shared.index, &mut self.commit);
        // Where nothing was written before, no expiry row is of another default than this one.
        if self.first_lsn == FIRST_LSN
            && let Some(mark) = upkeep::planned_mark(self.settings.definition.default_ttl)
        {
            self.commit.put(Table::Feed, keys::meta(upkeep::PLANNED_TTL), mark);
        }
        // A commit outside the store's limits, or without room, would stop the partition; it is refused instead.
        self.commit.check()?;
        self.partition.space.check_room(&self.commit)?;
        self.index.submitted(&self.partition.shared.index, self.lsn);
        self.partition.shared.columns.note(self.lsn, self.staged.iter().map(|(key, _)| key));
        let state = &mut *self.state;
        state.next_lsn = self.lsn + 1;
        state.totals = self.totals;
        state.remember(self.lsn, self.staged, self.staged_claims);
        for (prefix, bytes) in self.staged_sizes {
            state.sizes.add(&prefix, bytes);
        }
        let commit = std::mem::take(&mut self.commit);
        Ok(Some(self.partition.submit(commit, Some((self.lsn, self.totals)), self.after)))
    }

    /// Hands over rows that belong to no change and need no LSN.
    pub(super) fn finish_marks(mut self) -> Result<Option<Ticket>> {
        if self.commit.changes.is_empty() {
            return Ok(None);
        }
        self.index.complete(&self.partition.shared.index, &mut self.commit);
        self.commit.check()?;
        self.index.submitted(&self.partition.shared.index, self.state.next_lsn);
        let commit = std::mem::take(&mut self.commit);
        Ok(Some(self.partition.submit(commit, None, self.after)))
    }

    /// Gives up. What was looked at may still have to become durable before the refusal can be told: an empty commit
    /// is answered after everything submitted before it.
    pub(super) fn abandon(self) -> Option<Ticket> {
        self.rests_on_pending.then(|| self.partition.submit(Commit::default(), None, AfterPublish::Nothing))
    }
}

fn brought(content: Option<&Content>) -> Result<&Content> {
    content.ok_or_else(|| Error::internal("A write was prepared without its document."))
}

fn check_conditions(write: &Write, old: &Item) -> Result<()> {
    let holds = write.if_match.as_deref().is_none_or(|condition| old.etag.matches(condition))
        && !write.if_none_match.as_deref().is_some_and(|condition| old.etag.matches(condition));
    if holds { Ok(()) } else { Err(item::precondition_failed()) }
}

impl Partition {
    /// Takes note of the container's present definition. Under the lock, and always the newest: index rows never go back
    /// to a policy that others have left.
    pub(super) fn follow_definition(&self, state: &Overlay) {
        let published_lsn = self.shared.published_lsn();
        let is_empty = || state.totals.items == 0 && published_lsn == state.next_lsn - 1;
        if self.shared.index.follow(&self.owner.definition(), is_empty) {
            self.shared.agenda.reindex();
        }
    }
}
