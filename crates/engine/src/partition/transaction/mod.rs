//! One commit in the making: operations are checked against what is stored, what is on its way to the store, and what
//! this commit itself has changed so far; what they change is staged, and nothing outside is touched before `finish`.
//!
//! Every operation does all its checks before it stages its first row. So an operation that fails leaves no trace, and
//! dropping the transaction undoes everything.
//!
//! The rows of one version of an item are staged in one place, `Transaction::put`, where the old version is at hand;
//! index rows join the commit there, and what they cost is counted in the same walk.
//!
//! A transaction has four parts, each with what it alone changes: `context` (partition, settings and time: nothing),
//! `reads` (overlay and snapshot), `staged` (rows, items and unique values of the commit) and `tally` (sizes, and
//! what upkeep has to know).

mod context;
mod reads;
mod staged;
mod tally;

use std::sync::Arc;

use super::content::Content;
use super::durability::Ticket;
use super::item_key::ItemKey;
use super::overlay::{Base, Overlay};
use super::rows::{ChangeKind, FeedRow, ItemHeader, LEAVE_POSITION, feed_key};
use super::rules::{Claims, Rules, rule_of};
use super::sizes::item_row_bytes;
use super::{AfterPublish, Partition, Settings};
use super::{claiming, upkeep};
use crate::condition::CompiledCondition;
use crate::error::{Error, Kind, Result};
use crate::item::{self, Item, Operation, Outcome, Write};
use bytes::Bytes;
use orrery_model::Raw;
use orrery_storage::{Commit, Snapshot, Table, keys};

use context::Context;
use reads::Reads;
use staged::{Staged, Submitted};
use tally::Tally;

/// An operation with its target, ready to be tried.
pub(super) struct PreparedWrite<'w> {
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
    pub(super) context: Context<'p>,
    pub(super) reads: Reads<'p>,
    pub(super) staged: Staged,
    tally: Tally,
    pub(super) after: AfterPublish,
    /// What holds for all items, as of when the lock was taken.
    pub(super) rules: Arc<Rules>,
    /// A logical partition whose size must be known before the operation can be decided.
    pub(super) size_wanted: Option<ItemKey>,
}

impl<'p> Transaction<'p> {
    pub(super) fn begin(partition: &'p Partition, settings: &'p Settings) -> Result<Transaction<'p>> {
        let mut overlay = partition.shared.overlay.lock();
        partition.check_open()?;
        overlay.settle_published(partition.shared.published_lsn());
        partition.follow_definition(&overlay);
        Ok(Transaction::over(partition, settings, Base::Shared(overlay), None))
    }

    /// A transaction over any overlay; a detached one holds up nobody and must be attached before it can finish.
    pub(super) fn over(
        partition: &'p Partition,
        settings: &'p Settings,
        overlay: Base<'p>,
        snapshot: Option<Box<dyn Snapshot>>,
    ) -> Transaction<'p> {
        Transaction {
            context: Context::new(partition, settings),
            staged: Staged::new(overlay.next_lsn, &partition.shared.index),
            tally: Tally::new(overlay.totals),
            reads: Reads::new(partition, overlay, snapshot),
            after: AfterPublish::Nothing,
            rules: partition.settings().rules.clone(),
            size_wanted: None,
        }
    }

    /// The LSN of the commit, if it comes to one; of its last change.
    pub(super) fn lsn(&self) -> u64 {
        self.staged.lsn()
    }

    /// What comes next stands under the n-th LSN of this commit: one LSN has only so many positions.
    pub(super) fn under(&mut self, nth: u64) {
        self.staged.under(nth);
    }

    pub(super) fn changes_anything(&self) -> bool {
        !self.staged.is_empty()
    }

    /// The first second in which something written here will be over.
    pub(super) fn earliest_expiry(&self) -> Option<u32> {
        self.tally.earliest_expiry()
    }

    /// Whether the feed got a row that will be removed one day.
    pub(super) fn deletes(&self) -> bool {
        self.tally.deletes()
    }

    /// Whether versions were kept that will be removed one day.
    pub(super) fn versions(&self) -> bool {
        self.tally.versions()
    }

    /// Tries one operation as change `sub` of the commit.
    pub(super) fn apply(&mut self, sub: u8, prepared: &PreparedWrite<'_>) -> Result<Applied> {
        let PreparedWrite { target, renamed, write, content, condition } = prepared;
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
                let content =
                    self.context.partition.patched(self.context.settings, target, &old, operations)?;
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
            self.context.partition.shared.index.terms(None, Some(item.body()))
        } else {
            changed
        };
        let terms = terms + self.time_terms(old.as_ref());
        let terms = if old.is_some() { terms + self.time_terms(old.as_ref()) } else { terms };
        Ok(Applied { outcome, item: Some(item), old, patch_operations: 0, terms })
    }

    /// Terms of the time of a write. It is paid once per commit: an item that is touched again does not pay again.
    fn time_terms(&self, old: Option<&Item>) -> usize {
        let again = old.is_some_and(|old| old.lsn >= self.staged.first_lsn());
        if again { 0 } else { self.staged.time_terms() }
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
        let terms = self.context.partition.shared.index.terms(Some(old.body()), Some(item.body()));
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
        let (staged, tally) = (self.staged.mark(), self.tally.mark());
        let result = run(self);
        if result.is_err() {
            self.staged.undo(&staged);
            self.tally.undo(&tally);
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
        let now_s = self.context.now_s;
        let (old_claims, new_claims) = self.claims_of(stored, &content.document)?;
        let mut claimed: Vec<Bytes> = Vec::new();
        for claim in &new_claims {
            if live && old_claims.contains(claim) {
                continue;
            }
            let key = target.unique(claim);
            if let Some(holder) = self.reads.claim_holder(&self.staged, &key)?
                && holder != target.id()
                && self.is_live_sibling(target, &holder)?
            {
                return Err(item::unique_key_violated());
            }
            claimed.push(key);
        }
        let number = match stored {
            Some(stored) if live => stored.number,
            _ => moved.map_or_else(|| self.context.new_number(self.staged.lsn(), sub), |moved| moved.number),
        };
        let before = moved.or(stored.filter(|_| live));
        let header = ItemHeader {
            lsn: self.staged.lsn(),
            sub,
            ts: before.filter(|_| content.attached.is_some()).map_or(now_s, |before| before.ts),
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
        let released = self.released(target, &old_claims, live, Some(&new_claims))?;

        // From here on nothing fails.
        let before_over = stored.and_then(|stored| self.over_from(stored));
        let expires = self.over_from(&item);
        let commit = &mut self.staged.commit;
        if let Some(stored) = stored {
            commit.delete(Table::Feed, feed_key(stored));
            if let Some(second) = before_over.filter(|second| Some(*second) != expires) {
                commit.delete(Table::Feed, keys::expiry(second, &target.key));
            }
            if !live {
                commit.delete(Table::Index, target.order(stored.number));
            }
        }
        self.staged.release(released);
        self.staged.claim(claimed, target.id());
        let commit = &mut self.staged.commit;
        if !live {
            commit.put(Table::Index, target.order(number), target.key.clone());
        }
        if let Some(second) = expires {
            commit.put(Table::Feed, keys::expiry(second, &target.key), Bytes::new());
            self.tally.note_expiry(second);
        }
        commit.put(Table::Items, target.key.clone(), row.clone());
        let index = &self.context.partition.shared.index;
        let terms = self.staged.index_rows(index, target, stored, Some(&item));
        self.grow(target, i64::from(stored.is_none()), growth);
        let kind = if live || moved.is_some() { ChangeKind::Replace } else { ChangeKind::Create };
        self.feed(sub, kind, number, target.key.clone());
        if content.attached.is_none() {
            self.keep_version(sub, kind, number, &target.key, Some(&row), before);
        }
        self.staged.push_item(target.key.clone(), Some(item.clone()));
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
        self.staged.rebuild_index(&self.context.partition.shared.index, target, item);
    }

    /// What the commit counts so far.
    pub(super) fn size_bytes(&mut self) -> usize {
        self.staged.size_bytes()
    }

    fn remove_rows(&mut self, target: &ItemKey, stored: &Item) -> Result<usize> {
        let claims = match self.rules.constraints() {
            0 => Claims::new(),
            _ => self.rules.claims(stored.body())?,
        };
        if !claims.is_empty() {
            let live = self.is_live(target.logical_partition(), stored);
            let released = self.released(target, &claims, live, None)?;
            self.staged.release(released);
        }
        let over_from = self.over_from(stored);
        let commit = &mut self.staged.commit;
        commit.delete(Table::Items, target.key.clone());
        commit.delete(Table::Index, target.order(stored.number));
        commit.delete(Table::Feed, feed_key(stored));
        if let Some(second) = over_from {
            commit.delete(Table::Feed, keys::expiry(second, &target.key));
        }
        let index = &self.context.partition.shared.index;
        let terms = self.staged.index_rows(index, target, Some(stored), None);
        self.grow(target, -1, -(item_row_bytes(&target.key, stored) as i64));
        self.staged.push_item(target.key.clone(), None);
        Ok(terms)
    }

    /// Stages a row that needs no LSN: marks of the partition itself.
    pub(super) fn stage(&mut self, table: Table, key: Bytes, value: Option<Bytes>) {
        match value {
            Some(value) => self.staged.commit.put(table, key, value),
            None => self.staged.commit.delete(table, key),
        }
    }

    /// Stages the feed row of a change.
    pub(super) fn feed(&mut self, sub: u8, kind: ChangeKind, number: u64, key: Bytes) {
        if !kind.leaves_item() {
            self.tally.note_delete();
        }
        let row = FeedRow { kind, ts: self.context.now_s, totals: self.tally.totals(), number, key };
        self.staged.commit.put(Table::Feed, keys::feed(self.staged.lsn(), sub), row.encode());
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
        let Context { settings, now_s, .. } = self.context;
        if let Some(row) = settings.version_row(kind, now_s, key, current, previous) {
            self.staged.commit.put(Table::Feed, keys::version(self.staged.lsn(), sub, number), row.encode());
            self.tally.note_version();
        }
    }

    /// The claims of the row that is there, and of a document that comes.
    fn claims_of(&self, stored: Option<&Item>, document: &[u8]) -> Result<(Claims, Claims)> {
        if self.rules.constraints() == 0 {
            return Ok((Claims::new(), Claims::new()));
        }
        let old = stored.map(|stored| self.rules.claims(stored.body())).transpose()?.unwrap_or_default();
        let body = Raw::document(document)
            .map_err(|corrupt| Error::bad_request(item::INVALID_INPUT).caused_by(corrupt.to_string()))?;
        Ok((old, self.rules.claims(body)?))
    }

    /// Lets an item that was there before some rules claim its keys. Returns the constraint for which another has one.
    pub(super) fn claim_anew(
        &mut self,
        target: &ItemKey,
        item: &Item,
        constraints: &[u16],
    ) -> Result<Option<u16>> {
        let mut claimed = Vec::new();
        for claim in self.rules.claims(item.body())? {
            if !constraints.contains(&claim.constraint) {
                continue;
            }
            let key = target.unique(&claim);
            match self.reads.claim_holder(&self.staged, &key)? {
                Some(holder) if holder == target.id() => {}
                Some(holder) if self.is_live_sibling(target, &holder)? => return Ok(Some(claim.constraint)),
                _ => claimed.push(key),
            }
        }
        self.staged.claim(claimed, target.id());
        Ok(None)
    }

    /// The first second in which a version is to be removed.
    fn over_from(&self, item: &Item) -> Option<u32> {
        self.rules.over_from(self.context.settings.definition.default_ttl, item)
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
        for claim in claims {
            if kept.is_some_and(|kept| kept.contains(claim)) {
                continue;
            }
            let key = target.unique(claim);
            // An item that was there before a rule may never have claimed for it.
            let surely = live && rule_of(claim.constraint).is_none();
            if surely || self.reads.claim_holder(&self.staged, &key)?.as_deref() == Some(target.id()) {
                released.push(key);
            }
        }
        Ok(released)
    }

    /// The version under a key, read once for whoever asks now and for the operation that comes next.
    pub(super) fn look_ahead(&mut self, key: &Bytes) -> Result<Option<&Item>> {
        self.reads.look_ahead(&mut self.staged, key)
    }

    /// The version under a key, whether or not it still counts.
    pub(super) fn stored(&mut self, key: &Bytes) -> Result<Option<Item>> {
        self.reads.item(&mut self.staged, key)
    }

    /// Whether a stored version counts: neither over nor purged.
    pub(super) fn is_live(&self, logical_partition: &[u8], item: &Item) -> bool {
        !self.context.is_over(item) && !self.reads.is_purged(logical_partition, item)
    }

    fn is_live_sibling(&mut self, target: &ItemKey, id: &[u8]) -> Result<bool> {
        let stored = self.stored(&target.sibling(id))?;
        Ok(stored.is_some_and(|item| self.is_live(target.logical_partition(), &item)))
    }

    fn grow(&mut self, target: &ItemKey, items: i64, bytes: i64) {
        self.tally.grow(target, items, bytes, !self.reads.overlay.sizes.is_empty());
    }

    fn check_room(&mut self, target: &ItemKey, growth: i64) -> Result<()> {
        if growth <= 0 {
            return Ok(());
        }
        let Context { partition, settings, .. } = self.context;
        let config = &partition.config;
        let full = |limit| Error::new(Kind::PartitionFull, super::sizes::full_message(limit));
        if settings.definition.partition_key.system_key {
            let limit = config.fixed_container_size_limit;
            return if self.tally.bytes_with(growth) > limit { Err(full(limit)) } else { Ok(()) };
        }
        // A logical partition cannot be larger than the physical one, whose size is always known.
        let limit = config.logical_partition_size_limit;
        if self.tally.bytes_with(growth) <= limit {
            return Ok(());
        }
        let Some(size) = self.reads.overlay.sizes.get(target.logical_partition()) else {
            self.size_wanted = Some(target.clone());
            return Err(Error::internal("The size of the logical partition is not known yet."));
        };
        let staged = self.tally.growth_of(target.logical_partition());
        if size.saturating_add_signed(staged + growth) > limit { Err(full(limit)) } else { Ok(()) }
    }

    /// Hands the commit to the store and makes its changes the base of what comes next. The ticket is ready when
    /// everything that was written or looked at is durable; `None` means it is already.
    pub(super) fn finish(mut self) -> Result<Option<Ticket>> {
        if self.staged.is_empty() {
            return Ok(self.abandon());
        }
        let Context { partition, settings, .. } = self.context;
        let (index, lsn) = (&partition.shared.index, self.staged.lsn());
        self.staged.complete(index, true);
        // Where nothing was written before, no expiry row is of another default than this one.
        if self.staged.first_lsn() == FIRST_LSN {
            if let Some(mark) = self.rules.planned_mark(settings.definition.default_ttl) {
                self.staged.commit.put(Table::Feed, keys::meta(upkeep::PLANNED_TTL), mark);
            }
            if let Some(mark) = self.rules.claimed_mark() {
                self.staged.commit.put(Table::Feed, keys::meta(claiming::CLAIMED), mark);
            }
        }
        // A commit outside the store's limits, or without room, would stop the partition; it is refused instead.
        self.staged.commit.check()?;
        partition.space.check_room(&self.staged.commit)?;
        let Submitted { commit, items, claims } = self.staged.submitted(index, lsn);
        partition.shared.columns.note(lsn, items.iter().map(|(key, _)| key));
        partition.shared.stamps.note(lsn, items.iter().map(|(key, _)| key));
        let totals = self.tally.totals();
        let overlay = &mut *self.reads.overlay;
        overlay.next_lsn = lsn + 1;
        overlay.totals = totals;
        overlay.remember(lsn, items, claims);
        for (prefix, bytes) in self.tally.into_sizes() {
            overlay.sizes.add(&prefix, bytes);
        }
        Ok(Some(partition.submit(commit, Some((lsn, totals)), self.after)))
    }

    /// Hands over rows that belong to no change and need no LSN.
    pub(super) fn finish_marks(mut self) -> Result<Option<Ticket>> {
        if self.staged.is_empty() {
            return Ok(None);
        }
        let partition = self.context.partition;
        let index = &partition.shared.index;
        self.staged.complete(index, false);
        self.staged.commit.check()?;
        let Submitted { commit, .. } = self.staged.submitted(index, self.reads.overlay.next_lsn);
        Ok(Some(partition.submit(commit, None, self.after)))
    }

    /// Hands over claims that belong to no change, and says under which LSN they are remembered.
    pub(super) fn finish_claims(mut self) -> Result<Option<(Ticket, u64)>> {
        if self.staged.is_empty() {
            return Ok(None);
        }
        let partition = self.context.partition;
        let index = &partition.shared.index;
        self.staged.complete(index, false);
        self.staged.commit.check()?;
        let lsn = self.reads.overlay.next_lsn;
        let Submitted { commit, items, claims } = self.staged.submitted(index, lsn);
        self.reads.overlay.remember(lsn, items, claims);
        Ok(Some((partition.submit(commit, None, self.after), lsn)))
    }

    /// Gives up. What was looked at may still have to become durable before the refusal can be told: an empty commit
    /// is answered after everything submitted before it.
    pub(super) fn abandon(self) -> Option<Ticket> {
        let partition = self.context.partition;
        self.reads
            .rests_on_pending()
            .then(|| partition.submit(Commit::default(), None, AfterPublish::Nothing))
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
    /// Takes note of the container's present definition. Under the lock, and always the newest: index rows never go
    /// back to a policy that others have left.
    pub(super) fn follow_definition(&self, state: &Overlay) {
        let published_lsn = self.shared.published_lsn();
        let is_empty = || state.totals.items == 0 && published_lsn == state.next_lsn - 1;
        if self.shared.index.follow(&self.owner.definition(), is_empty) {
            self.shared.agenda.reindex();
        }
    }
}
