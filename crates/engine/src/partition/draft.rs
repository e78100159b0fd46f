//! A transaction that takes its time: what a script reads and writes, committed as one when it is done.
//!
//! A script may run for seconds, so it must not hold the partition's lock. A draft is a [`Transaction`] over a copy of
//! the partition's state and one snapshot: it sees the logical partition as it was when it began, and its own changes.
//! Nothing outside is touched before [`Partition::draft`] commits.
//!
//! ```text
//! lock ─ copy state, snapshot ─ unlock ─ … the script … ─ lock ─ unchanged?  submit the rows as they are
//!                                                              └ changed?    every version that was looked at or
//!                                                                            overwritten is still the same: replay
//!                                                                            else Conflict: the caller runs it again
//! ```
//!
//! Rows name the LSN of their commit, which is only a guess until the lock is held again. When other commits came in
//! between, the operations are applied anew under the lock; then versions and item numbers that the script has seen
//! are not the final ones, and [`Rewritten`] says which became which. A script with more changes than one LSN has
//! positions takes several LSNs in a row, in one commit.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use orrery_model::{Epk, PartitionKey};
use orrery_storage::{COMMIT_BYTES_MAX, Direction, Table, keys};

use super::durability::{Ticket, settle};
use super::index::Mark;
use super::item_key::ItemKey;
use super::overlay::Base;
use super::rows::decode_detached;
use super::transaction::{Applied, Transaction};
use super::{Partition, Settings, rows};
use crate::block_on;
use crate::charge;
use crate::error::{Error, Kind, Result};
use crate::etag::{COMMIT_POSITIONS, Etag};
use crate::item::{self, Item, Operation, Outcome, Position, SessionRequirement, Write};
use crate::throughput::RequestClass;

/// What the service says when another writer was faster.
const CONFLICT: &str = "Conflicting request to resource has been attempted. Retry to avoid conflicts.";

/// A logical partition with a script's changes.
pub struct Draft<'p> {
    transaction: Transaction<'p>,
    key: &'p PartitionKey,
    epk: &'p Epk,
    /// Keys of all items of the logical partition begin with this.
    prefix: Bytes,
    /// What the index rows of its changes were made under.
    index: Option<Mark>,
    /// Versions as they were when they were first looked at, by key. `None`: there was no row.
    seen: HashMap<Bytes, Option<Etag>>,
    /// What has been done, to be done again.
    done: Vec<(Write, Item)>,
    charge_ru: f64,
    must_not_move: bool,
    /// More was staged than a commit may hold: nothing can come of this any more.
    overfull: bool,
}

/// A version that the script has seen, and what became of it.
#[derive(Debug, Clone)]
pub struct Rewritten {
    pub before: Item,
    pub after: Item,
}

/// What came of a draft.
#[derive(Debug)]
pub struct Drafted<T> {
    pub value: T,
    pub charge_ru: f64,
    pub at: Position,
    /// Empty unless others committed while the draft was made.
    pub rewritten: Vec<Rewritten>,
}

impl Partition {
    /// Runs `work` on a draft and commits what it did, on this thread and until it is durable. When `work` fails
    /// nothing has happened. `Kind::Conflict` says that running it again may succeed.
    pub fn draft<T>(
        &self,
        key: &PartitionKey,
        epk: &Epk,
        session: &SessionRequirement,
        class: RequestClass,
        work: impl FnOnce(&mut Draft<'_>) -> Result<T>,
    ) -> Result<Drafted<T>> {
        self.view(session)?;
        self.admit(class)?;
        let settings = Arc::clone(&self.settings());
        let mut draft = Draft::begin(self, &settings, key, epk)?;
        let outcome = work(&mut draft);
        let charge_ru = draft.charge_ru;
        self.charge(class, charge_ru, Some(key));
        match outcome {
            // What was looked at may not be durable yet, and a refusal can rest on it.
            Err(error) => {
                let error = if error.charge_ru == 0.0 { error.charged(charge_ru) } else { error };
                block_on(settle(draft.transaction.abandon(), Err(error)))
            }
            Ok(value) => {
                let (ticket, lsn, rewritten) = draft.commit().map_err(|error| error.charged(charge_ru))?;
                block_on(settle(ticket, Ok(())))?;
                Ok(Drafted { value, charge_ru, at: self.stands_at(lsn, lsn), rewritten })
            }
        }
    }
}

impl<'p> Draft<'p> {
    fn begin(
        partition: &'p Partition,
        settings: &'p Settings,
        key: &'p PartitionKey,
        epk: &'p Epk,
    ) -> Result<Draft<'p>> {
        let target = ItemKey::new(epk, key, "");
        target.check()?;
        let mut state = partition.shared.overlay.lock();
        partition.check_open()?;
        state.settle_published(partition.shared.published_lsn());
        // Under the lock: the snapshot shows at least what is no longer in the overlay.
        let snapshot = partition.space.snapshot()?;
        partition.follow_definition(&state);
        let index = partition.shared.index.mark();
        let copy = Box::new(state.detached(target.logical_partition()));
        drop(state);
        Ok(Draft {
            transaction: Transaction::over(partition, settings, Base::Detached(copy), Some(snapshot)),
            key,
            epk,
            prefix: target.key,
            index,
            seen: HashMap::new(),
            done: Vec::new(),
            charge_ru: 0.0,
            must_not_move: false,
            overfull: false,
        })
    }

    /// What everything so far has cost.
    pub fn charge_ru(&self) -> f64 {
        self.charge_ru
    }

    /// Adds what was done for the script outside of the draft.
    pub fn charge(&mut self, charge_ru: f64) {
        self.charge_ru += charge_ru;
    }

    /// Adds what a page of a query costs that gave `rows` from `items` of this many bytes.
    pub fn charge_query(&mut self, rows: usize, items: usize, bytes: usize) {
        self.charge_ru += crate::query::charge::scanned(rows as u64, items as u64, bytes as u64);
    }

    /// Versions and numbers that were seen must be the final ones: somebody wrote them down. A commit in between is
    /// then a conflict.
    pub fn must_not_move(&mut self) {
        self.must_not_move = true;
    }

    pub fn key(&self) -> &PartitionKey {
        self.key
    }

    /// Reads one item: the script's own version, or the one at its beginning.
    pub fn read(&mut self, id: &str, if_none_match: Option<&str>) -> Result<Item> {
        let mut read = Write::new(Operation::Read { id: id.to_owned() });
        read.if_none_match = if_none_match.map(str::to_owned);
        let applied = self.apply(&read)?;
        applied.item.ok_or_else(item::not_found)
    }

    /// Tries a write. When it fails the draft is as it was, unless it holds more than a commit may: then all that
    /// comes is refused.
    pub fn write(&mut self, write: Write) -> Result<(Outcome, Option<Item>)> {
        self.check_room()?;
        let applied = self.apply(&write)?;
        let written = applied.item.clone().or(applied.old);
        if let (Some(written), false) = (written, applied.outcome == Outcome::Read) {
            // The conditions held, and will as long as nobody else writes; versions that the draft itself wrote are
            // others when it is done again.
            let mut again = Write { if_match: None, if_none_match: None, ..write };
            share_document(&mut again.operation, &written);
            self.done.push((again, written));
        }
        self.overfull |= self.transaction.size_bytes() > COMMIT_BYTES_MAX;
        self.check_room()?;
        Ok((applied.outcome, applied.item))
    }

    /// What the changes take until they are committed.
    pub fn staged_bytes(&mut self) -> usize {
        self.transaction.size_bytes()
    }

    /// Refuses what holds more than a commit may.
    pub fn check_room(&self) -> Result<()> {
        if self.overfull { Err(item::too_large()) } else { Ok(()) }
    }

    fn apply(&mut self, write: &Write) -> Result<Applied> {
        let (partition, settings) = (self.transaction.context.partition, self.transaction.context.settings);
        let prepared = partition.prepare(settings, self.key, self.epk, write);
        let prepared = prepared.inspect_err(|_| self.charge_ru += charge::REFUSED_WRITE_RU)?;
        self.look(&prepared.target.key)?;
        if let Some(renamed) = &prepared.renamed {
            self.look(&renamed.key)?;
        }
        let (lsn, position) = place(self.done.len());
        self.transaction.under(lsn);
        let mut applied = self.transaction.apply(position, &prepared);
        if let Some(target) = self.transaction.size_wanted.take() {
            partition.measure(&target)?;
            let size = partition.shared.overlay.lock().sizes.get(target.logical_partition());
            let prefix = Bytes::copy_from_slice(target.logical_partition());
            size.into_iter()
                .for_each(|size| self.transaction.reads.overlay.sizes.enter(prefix.clone(), size));
            applied = self.transaction.apply(position, &prepared);
        }
        match applied {
            Ok(applied) => {
                self.charge_ru += settings.charge(&applied);
                Ok(applied)
            }
            Err(error) => {
                self.charge_ru += partition.refusal_charge(settings, &prepared, error.kind);
                Err(error)
            }
        }
    }

    /// Notes which version was under a key before the draft changed it.
    fn look(&mut self, key: &Bytes) -> Result<()> {
        if !self.seen.contains_key(key) {
            let stored = self.transaction.look_ahead(key)?;
            let version = stored.map(|item| item.etag);
            self.seen.insert(key.clone(), version);
        }
        Ok(())
    }

    /// The id of the item with this number, as links by rid name it.
    pub fn id_of(&self, number: u64) -> Result<Option<String>> {
        let live = self.changed();
        if let Some(item) = live.values().flatten().find(|item| item.number == number) {
            return Ok(Some(item.id().to_owned()));
        }
        let Some(snapshot) = self.transaction.reads.snapshot() else { return Ok(None) };
        let key = snapshot.get(Table::Index, &keys::order(self.epk.as_bytes(), number))?;
        let id = key.filter(|key| key.starts_with(&self.prefix) && !live.contains_key(key));
        Ok(id.and_then(|key| std::str::from_utf8(&key[self.prefix.len()..]).ok().map(str::to_owned)))
    }

    /// Every item of the logical partition in the order of creation, from the first one after `after`, until `each` has
    /// had enough.
    pub fn scan(&self, after: Option<u64>, each: &mut dyn FnMut(&Item) -> Result<bool>) -> Result<()> {
        let changed = self.changed();
        let mut own: BTreeMap<u64, &Item> = changed
            .values()
            .flatten()
            .map(|item| (item.number, *item))
            .filter(|(number, _)| after.is_none_or(|after| *number > after))
            .collect();
        let Some(snapshot) = self.transaction.reads.snapshot() else { return Ok(()) };
        let mut range = keys::order_of_epk(self.epk.as_bytes());
        if let Some(after) = after {
            range.start = Bound::Excluded(keys::order(self.epk.as_bytes(), after));
        }
        let mut rows = snapshot.scan(Table::Index, range, Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            // Different keys can share a hash; and what was changed comes from the draft itself.
            if !row.value.starts_with(&self.prefix) || changed.contains_key(&row.value) {
                continue;
            }
            let number = keys::order_number(&row.key).ok_or_else(|| rows::damaged("order"))?;
            while let Some(first) = own.first_entry().filter(|first| *first.key() < number) {
                if self.shows(first.get()) && !each(first.get())? {
                    return Ok(());
                }
                first.remove();
            }
            let item = snapshot.get(Table::Items, &row.value)?.map(decode_detached).transpose()?;
            let item = item.ok_or_else(|| rows::damaged("order"))?;
            if self.shows(&item) && !each(&item)? {
                return Ok(());
            }
        }
        for item in own.into_values() {
            if self.shows(item) && !each(item)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Rows that differ from the snapshot's: those on their way to the store, and the draft's own.
    fn changed(&self) -> HashMap<&Bytes, Option<&Item>> {
        let pending =
            self.transaction.reads.overlay.items.iter().filter(|(key, _)| key.starts_with(&self.prefix));
        let pending = pending.map(|(key, pending)| (key, pending.value.as_ref()));
        pending
            .chain(self.transaction.staged.items().iter().map(|(key, item)| (key, item.as_ref())))
            .collect()
    }

    fn shows(&self, item: &Item) -> bool {
        self.transaction.is_live(&self.prefix, item)
    }

    /// Commits, or says that another writer was faster.
    fn commit(mut self) -> Result<(Option<Ticket>, u64, Vec<Rewritten>)> {
        self.check_room()?;
        let (partition, settings) = (self.transaction.context.partition, self.transaction.context.settings);
        let Some(last) = self.done.len().checked_sub(1) else {
            // What a range that is gone still shows must not be taken for an answer.
            partition.shared.gate.check_read()?;
            return Ok((self.transaction.abandon(), partition.lsn(), Vec::new()));
        };
        let mut state = partition.shared.overlay.lock();
        partition.check_open()?;
        state.settle_published(partition.shared.published_lsn());
        let same_index = match (&self.index, &partition.shared.index.mark()) {
            (Some(then), Some(now)) => then.is_same(now),
            _ => false,
        };
        let same_rules = same_index && Arc::ptr_eq(&settings.definition, &partition.owner.definition());
        if same_rules && state.is_unchanged_since(&self.transaction.reads.overlay, &self.prefix) {
            self.transaction.reads.overlay = Base::Shared(state);
            self.transaction.under(place(last).0);
            let lsn = self.transaction.lsn();
            let (expiry, deletes) = (self.transaction.earliest_expiry(), self.transaction.deletes());
            let versions = self.transaction.versions();
            let ticket = self.transaction.finish()?;
            partition.shared.agenda.note(expiry, deletes, versions);
            return Ok((ticket, lsn, Vec::new()));
        }
        drop(state);
        if self.must_not_move {
            return Err(conflict());
        }
        let Draft { done, seen, key, epk, .. } = self;
        let settings = Arc::clone(&partition.settings());
        let prepared = done.iter().map(|(write, _)| partition.prepare(&settings, key, epk, write));
        let prepared: Vec<_> = prepared.collect::<Result<_>>().map_err(|_| conflict())?;
        let mut rewritten = Vec::new();
        let outcome = partition.transact(&settings, |transaction| {
            rewritten.clear();
            for (key, version) in &seen {
                let now = transaction.stored(key)?.map(|item| item.etag);
                if now != *version {
                    return Err(conflict());
                }
            }
            for (change, (prepared, (_, before))) in prepared.iter().zip(&done).enumerate() {
                let (lsn, position) = place(change);
                transaction.under(lsn);
                let applied = transaction.apply(position, prepared)?;
                if let Some(after) = applied.item {
                    rewritten.push(Rewritten { before: before.clone(), after });
                }
            }
            Ok(())
        });
        match outcome {
            Ok((ticket, lsn, ())) => Ok((ticket, lsn, rewritten)),
            // Whatever is refused now was possible at the beginning: somebody was faster.
            Err((ticket, error)) => {
                let lasting = error.kind.is_of_the_partition() || error.kind == Kind::TooLarge;
                block_on(settle(ticket, Err(if lasting { error } else { conflict() })))
            }
        }
    }
}

/// Lets a write that is kept for another time hold the bytes of the row that came of it, not a copy of them.
fn share_document(operation: &mut Operation, written: &Item) {
    if let Operation::Create { document, .. }
    | Operation::Upsert { document, .. }
    | Operation::Replace { document, .. } = operation
        && *document == written.document
    {
        *document = written.document.clone();
    }
}

/// Which LSN of the commit a change stands under, counted from its first, and where.
fn place(change: usize) -> (u64, u8) {
    let change = change as u64;
    (change / COMMIT_POSITIONS, (change % COMMIT_POSITIONS) as u8)
}

fn conflict() -> Error {
    Error::new(Kind::Conflict, CONFLICT)
}
