//! Bringing a partition's index rows up to a changed policy, in the background and a little at a time.
//!
//! Items are visited in the order of their keys, a bounded number per commit, each commit under the partition's lock
//! like any write. A mark says how far it got, so a restart goes on where it stopped. When all items have been visited,
//! rows of composite indexes that are no more are removed, and then the scheme is settled: from the moment that is
//! durable, readers may use everything the policy indexes.
//!
//! Writers do not wait for any of this. What they write follows the present policy at once (see `write`). A change
//! of policy on the way starts the visit over.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use orrery_storage::{Direction, KeyRange, Table, keys};

use super::super::item_key::ItemKey;
use super::super::rows::damaged;
use super::super::transaction::Transaction;
use super::super::{Partition, durability, upkeep};
use super::scheme::{SCHEME, Scheme};
use crate::error::Result;

/// Items brought up in one commit: the partition's writers wait that long.
const ITEMS_PER_COMMIT: usize = 64;
/// Bytes of rows after which a commit ends early.
const COMMIT_BYTES_MAX: usize = 1024 * 1024;
/// Rows removed in one commit.
const REMOVALS_PER_COMMIT: usize = 1000;
/// Commits of one visit; then other partitions have their turn.
const COMMITS_PER_VISIT: usize = 64;

/// Where a visit has got to: for which change of policy (u64), how many items are done (u64), the key of the last one.
pub(super) const MARK: &str = "index-rebuild";

struct Mark {
    done: u64,
    last: Bytes,
}

impl Mark {
    /// The mark in a row, if it belongs to this change of policy.
    fn decode(row: &Bytes, changes: u64) -> Option<Mark> {
        let (of, rest) = row.split_first_chunk()?;
        let (done, _) = rest.split_first_chunk()?;
        let done = u64::from_le_bytes(*done);
        (u64::from_le_bytes(*of) == changes).then(|| Mark { done, last: row.slice(16..) })
    }

    fn encode(&self, changes: u64) -> Bytes {
        [&changes.to_le_bytes(), &self.done.to_le_bytes(), &self.last[..]].concat().into()
    }
}

impl Partition {
    /// How much of the index follows the present policy, in percent.
    pub fn index_progress(&self) -> u8 {
        let index = &self.shared.index;
        let scheme = index.scheme.load();
        let items = self.usage().items;
        let policy = &self.owner.definition().indexing;
        let known = scheme.definition.indexing.makes_rows_of(policy);
        if items == 0 || known && scheme.stale.is_empty() {
            return 100;
        }
        if !known {
            return 0;
        }
        let done = index.rebuilt_items.load(Ordering::Relaxed).min(items);
        // It is complete when it is settled, not before.
        (done * 100 / items).min(99) as u8
    }

    /// Does a bounded part of what a change of policy left to do. Returns whether all is done.
    pub(in crate::partition) fn rebuild_index(&self) -> Result<bool> {
        // Beginning a transaction takes over the present policy.
        drop(Transaction::begin(self, &self.settings())?);
        for _ in 0..COMMITS_PER_VISIT {
            let scheme = self.shared.index.scheme.load_full();
            if scheme.stale.is_empty() {
                return Ok(true);
            }
            if self.rebuild_some(&scheme)? {
                continue;
            }
            if self.remove_composites(&scheme)? {
                continue;
            }
            self.settle(&scheme)?;
        }
        Ok(!self.shared.index.is_behind())
    }

    /// Visits the next items. Returns whether there were any.
    fn rebuild_some(&self, scheme: &Arc<Scheme>) -> Result<bool> {
        let snapshot = self.snapshot()?;
        let row = snapshot.get(Table::Feed, &keys::meta(MARK))?;
        let mark = row.and_then(|row| Mark::decode(&row, scheme.changes));
        let mut range = KeyRange::all();
        if let Some(mark) = &mark {
            range.start = Bound::Excluded(mark.last.clone());
        }
        let mut rows = snapshot.scan(Table::Items, range, Direction::Forward);
        let mut found = Vec::with_capacity(ITEMS_PER_COMMIT);
        while found.len() < ITEMS_PER_COMMIT
            && let Some(row) = rows.next_row().transpose()?
        {
            found.push(row.key);
        }
        drop(rows);
        drop(snapshot);
        if found.is_empty() {
            return Ok(false);
        }
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !self.is_current(scheme) {
            return Ok(true);
        }
        let mut done = 0;
        for key in &found {
            let target = ItemKey::from_key(key.clone()).ok_or_else(|| damaged("item"))?;
            // It may have been written again, or deleted, since it was found.
            if let Some(item) = transaction.stored(key)? {
                transaction.rebuild_index(&target, &item);
            }
            done += 1;
            if transaction.size_bytes() > COMMIT_BYTES_MAX {
                break;
            }
        }
        let done_before = mark.map_or(0, |mark| mark.done);
        let mark = Mark { done: done_before + done as u64, last: found[done - 1].clone() };
        transaction.stage(Table::Feed, keys::meta(MARK), Some(mark.encode(scheme.changes)));
        upkeep::durable(transaction.finish_marks()?)?;
        self.shared.index.rebuilt_items.store(mark.done, Ordering::Relaxed);
        Ok(true)
    }

    /// Removes rows of composite indexes that are no more. Returns whether there were any.
    fn remove_composites(&self, scheme: &Arc<Scheme>) -> Result<bool> {
        let snapshot = self.snapshot()?;
        let mut range = keys::index::composites();
        let mut gone: Vec<Bytes> = Vec::new();
        loop {
            let mut rows = snapshot.scan(Table::Index, range.clone(), Direction::Forward);
            let mut kept = None;
            while gone.len() < REMOVALS_PER_COMMIT
                && let Some(row) = rows.next_row().transpose()?
            {
                let number = keys::index::composite_of(&row.key).ok_or_else(|| damaged("composite"))?;
                if scheme.has_composite(number) {
                    kept = Some(number);
                    break;
                }
                gone.push(row.key);
            }
            // One that stays is passed over whole.
            match kept.and_then(|number| number.checked_add(1)) {
                Some(next) => {
                    let mut start = Vec::with_capacity(keys::index::HEAD_BYTES);
                    keys::index::push_composite_head(&mut start, next);
                    range.start = Bound::Included(start.into());
                }
                None => break,
            }
        }
        if gone.is_empty() {
            return Ok(false);
        }
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !self.is_current(scheme) {
            return Ok(true);
        }
        for key in gone {
            transaction.stage(Table::Index, key, None);
        }
        upkeep::durable(transaction.finish_marks()?)?;
        Ok(true)
    }

    /// Every item follows the present policy: says so, durably first.
    fn settle(&self, scheme: &Arc<Scheme>) -> Result<()> {
        let settings = self.settings();
        let mut transaction = Transaction::begin(self, &settings)?;
        if !self.is_current(scheme) {
            return Ok(());
        }
        let settled = Arc::new(scheme.settled());
        transaction.stage(Table::Feed, keys::meta(SCHEME), Some(settled.encode()));
        transaction.stage(Table::Feed, keys::meta(MARK), None);
        let ticket: Option<durability::Ticket> = transaction.finish_marks()?;
        upkeep::durable(ticket)?;
        // Readers that find the settled scheme take their snapshots after this commit. Writers that were in between
        // have written under the stale policies, which takes out more than there is and leaves out nothing.
        let _state = self.shared.overlay.lock();
        let index = &self.shared.index;
        if self.is_current(scheme) {
            index.recorded.store(true, Ordering::Relaxed);
            index.scheme.store(settled);
            index.look_at_graphs();
        } else {
            // The policy changed meanwhile: the scheme in memory lists more stale policies than there are, which is
            // safe, and is what the next commit records.
            index.recorded.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether a scheme is still the one in force; the caller holds the partition's lock.
    pub(super) fn is_current(&self, scheme: &Arc<Scheme>) -> bool {
        Arc::ptr_eq(&self.shared.index.scheme.load(), scheme)
    }
}
