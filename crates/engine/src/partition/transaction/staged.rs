//! What a transaction has staged: the rows of its commit, and what they mean for the operations that follow.

use std::collections::HashMap;

use bytes::Bytes;
use orrery_storage::{Change, Commit, Table};

use crate::item::Item;
use crate::partition::index::{Index, Stage};
use crate::partition::item_key::ItemKey;

/// Rows of a usual write: an update of some values has about ten, a create twice as many.
const USUAL_ROWS: usize = 24;
/// Staged items that are searched one by one.
const SEARCHED_MAX: usize = 32;

pub(in crate::partition) struct Staged {
    /// The LSN of the first change; most commits have no other.
    first_lsn: u64,
    lsn: u64,
    pub(super) commit: Commit,
    /// Rows of the commit whose sizes were added up, and their sum.
    counted: (usize, usize),
    /// Items as the transaction leaves them; later entries win.
    items: Vec<(Bytes, Option<Item>)>,
    /// The latest entry of `items` for each key, of its first `placed` entries. Empty until there are many.
    places: HashMap<Bytes, usize>,
    placed: usize,
    claims: Vec<(Bytes, Option<Bytes>)>,
    index: Stage,
}

/// How much was staged at some point.
pub(super) struct StagedMark {
    rows: usize,
    items: usize,
    claims: usize,
}

/// A commit, and the items and unique values that it changes.
pub(super) struct Submitted {
    pub(super) commit: Commit,
    pub(super) items: Vec<(Bytes, Option<Item>)>,
    pub(super) claims: Vec<(Bytes, Option<Bytes>)>,
}

impl Staged {
    pub(super) fn new(next_lsn: u64, index: &Index) -> Staged {
        Staged {
            first_lsn: next_lsn,
            lsn: next_lsn,
            commit: Commit::with_capacity(USUAL_ROWS),
            counted: (0, 0),
            items: Vec::new(),
            places: HashMap::new(),
            placed: 0,
            claims: Vec::new(),
            index: Stage::new(index),
        }
    }

    pub(super) fn first_lsn(&self) -> u64 {
        self.first_lsn
    }

    /// The LSN of what is staged next.
    pub(in crate::partition) fn lsn(&self) -> u64 {
        self.lsn
    }

    /// What comes next stands under the n-th LSN of the commit.
    pub(super) fn under(&mut self, nth: u64) {
        self.lsn = self.first_lsn + nth;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commit.changes.is_empty()
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

    // ---- items and claims

    /// Items in the order in which they were staged; a later one of the same key wins.
    pub(in crate::partition) fn items(&self) -> &[(Bytes, Option<Item>)] {
        &self.items
    }

    pub(super) fn push_item(&mut self, key: Bytes, item: Option<Item>) {
        self.items.push((key, item));
    }

    /// The latest staged version of an item. A script stages thousands, everybody else a few.
    pub(super) fn item(&mut self, key: &Bytes) -> Option<Option<Item>> {
        if self.items.len() <= SEARCHED_MAX {
            return self.items.iter().rev().find(|(staged, _)| staged == key).map(|(_, item)| item.clone());
        }
        for (place, (key, _)) in self.items.iter().enumerate().skip(self.placed) {
            self.places.insert(key.clone(), place);
        }
        self.placed = self.items.len();
        self.places.get(key).map(|place| self.items[*place].1.clone())
    }

    /// Stages the rows of unique values that an item comes to hold.
    pub(super) fn claim(&mut self, keys: Vec<Bytes>, id: &[u8]) {
        for key in keys {
            let id = Bytes::copy_from_slice(id);
            self.commit.put(Table::Feed, key.clone(), id.clone());
            self.claims.push((key, Some(id)));
        }
    }

    pub(super) fn release(&mut self, keys: Vec<Bytes>) {
        for key in keys {
            self.commit.delete(Table::Feed, key.clone());
            self.claims.push((key, None));
        }
    }

    /// Who holds a unique value, if that was changed here.
    pub(super) fn claim_holder(&self, key: &Bytes) -> Option<Option<&Bytes>> {
        self.claims.iter().rev().find(|(staged, _)| staged == key).map(|(_, holder)| holder.as_ref())
    }

    // ---- index rows

    /// Stages the index rows by which two versions differ, and returns how many terms those are.
    pub(super) fn index_rows(
        &mut self,
        index: &Index,
        target: &ItemKey,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> usize {
        self.index.rows(index, &mut self.commit, target, old, new)
    }

    /// Stages the rows that bring an item's index entries from an earlier policy to the present one.
    pub(super) fn rebuild_index(&mut self, index: &Index, target: &ItemKey, item: &Item) {
        self.index.rebuild(index, &mut self.commit, target, item);
    }

    /// Terms of the time of a write.
    pub(super) fn time_terms(&self) -> usize {
        self.index.time_terms()
    }

    // ---- the end

    pub(super) fn mark(&self) -> StagedMark {
        StagedMark { rows: self.commit.changes.len(), items: self.items.len(), claims: self.claims.len() }
    }

    /// Takes back what was staged since.
    pub(super) fn undo(&mut self, mark: &StagedMark) {
        self.commit.changes.truncate(mark.rows);
        self.items.truncate(mark.items);
        self.places.clear();
        self.placed = 0;
        self.claims.truncate(mark.claims);
    }

    /// Stages what the index adds to a commit as a whole. `changes`: it has changes, and an LSN.
    pub(super) fn complete(&mut self, index: &Index, changes: bool) {
        if changes {
            // From the first LSN on the store knows under which policy rows were made.
            self.index.wrote();
        }
        self.index.complete(index, &mut self.commit);
    }

    /// The commit is on its way: what it consists of.
    pub(super) fn submitted(self, index: &Index, lsn: u64) -> Submitted {
        self.index.submitted(index, lsn);
        Submitted { commit: self.commit, items: self.items, claims: self.claims }
    }
}
