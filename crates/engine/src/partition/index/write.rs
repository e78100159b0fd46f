//! Index rows of the items that a transaction writes.
//!
//! The usual case is one walk over the old and the new version, whose rows go into the commit as slices of one
//! buffer. Two cases are slower and go by sets of whole rows: while rows of earlier policies may be left, everything
//! that any of them asked for is taken out; and an item so large that its rows might exceed `ITEM_INDEX_BYTES_MAX` is
//! measured first. An item beyond that has a single row that says so, and the partition's readers do without the
//! index as long as there is such a row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use orrery_storage::{Commit, Table, keys};

use super::super::item_key::ItemKey;
use super::Index;
use super::paths::{NewPaths, Paths};
use super::postings::{self, Changes};
use super::scheme::{SCHEME, Scheme};
use super::walk::{ITEM_INDEX_BYTES_MAX, Layout, Version, Walk};
use super::{graph, search};
use crate::definition::IndexingPolicy;
use crate::item::Item;

/// A value in an array takes at least this much of a document, its slot included.
const ELEMENT_BYTES_MIN: usize = 3;
/// What has a row in a search index takes at least this much: a word and the space behind it. Shapes take more for
/// each cell.
const SEARCH_BYTES_MIN: usize = 2;
/// What a row takes at most beside the bytes that its value has in the document and the reference.
const ROW_BYTES_MAX: usize = 32;

/// What a transaction has changed about the index besides rows.
pub(in crate::partition) struct Stage {
    scheme: Arc<Scheme>,
    new_paths: NewPaths,
    /// An item without rows was staged.
    unindexed: bool,
    wrote: bool,
    /// Values whose rows change.
    values: Changes,
    /// The number of this commit, as far as graphs are concerned, and whether they are.
    touch: u64,
    touched: bool,
}

impl Stage {
    pub(in crate::partition) fn new(index: &Index) -> Stage {
        Stage {
            scheme: index.scheme.load_full(),
            new_paths: NewPaths::default(),
            unindexed: false,
            wrote: false,
            values: index.postings.changes(),
            touch: index.touch.load(Ordering::Relaxed) + 1,
            touched: false,
        }
    }

    /// How many terms the time of a write counts in a version.
    pub(in crate::partition) fn time_terms(&self) -> usize {
        usize::from(self.scheme.is_timed())
    }

    /// The commit counts as written under the scheme, with or without rows.
    pub(in crate::partition) fn wrote(&mut self) {
        self.wrote = true;
    }

    /// Adds the rows by which two versions of an item differ. Returns the terms that differ, without those of the time.
    pub(in crate::partition) fn rows(
        &mut self,
        index: &Index,
        commit: &mut Commit,
        target: &ItemKey,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> usize {
        let from = commit.changes.len();
        let terms = self.difference(index, commit, target, old, new);
        self.touch(index, commit, from);
        terms
    }

    /// Tells the graphs which vectors the changes from here on put in or take out.
    fn touch(&mut self, index: &Index, commit: &mut Commit, from: usize) {
        let graphs = index.graphs.load();
        if graphs.is_empty() {
            return;
        }
        for at in from..commit.changes.len() {
            let change = &commit.changes[at];
            if change.table == Table::Index
                && let Some((path, reference)) = keys::index::code_of(&change.key)
                && graphs.contains(&path)
            {
                let key = keys::index::touched(path, self.touch, reference);
                let value = change.value.clone().unwrap_or(Bytes::from_static(graph::GONE));
                commit.put(Table::Index, key, value);
                self.touched = true;
            }
        }
    }

    fn difference(
        &mut self,
        index: &Index,
        commit: &mut Commit,
        target: &ItemKey,
        old: Option<&Item>,
        new: Option<&Item>,
    ) -> usize {
        let scheme = self.scheme.clone();
        let dictionary = index.dictionary.read();
        let mut paths = Paths { dictionary: &dictionary, new: &mut self.new_paths };
        let reference = keys::index::reference(target.epk.as_bytes(), &target.key);
        if let Some(new) = new {
            index.absences.note(new.body(), new.number, &reference);
        }
        let policy = &scheme.definition.indexing;
        let large = [old, new].into_iter().flatten().any(|item| may_be_unindexed(policy, item, &reference));
        if scheme.stale.is_empty() && !large {
            if policy.searches() {
                let paths = Paths { dictionary: &dictionary, new: &mut *paths.new };
                let (old, new) = (old.map(Item::body), new.map(Item::body));
                let (gone, rows) = search::difference(policy, paths, &reference, old, new);
                gone.into_iter().for_each(|key| commit.delete(Table::Index, key));
                rows.into_iter().for_each(|(key, value)| commit.put(Table::Index, key, value));
            }
            let rows = Walk::rows(scheme.layout(), paths, &reference, old.map(version), new.map(version));
            let bytes = Bytes::from(rows.bytes);
            let mut start = 0;
            for change in &rows.changes {
                let key = bytes.slice(start..change.end);
                start = change.end;
                note(&mut self.values, &key, &reference);
                match change.put {
                    true => commit.put(Table::Index, key, Bytes::new()),
                    false => commit.delete(Table::Index, key),
                }
            }
            return rows.terms;
        }
        let mut maker = RowMaker { paths, target, reference: &reference };
        let (mut before, mut after) = (Rows::new(), Rows::new());
        if let Some(old) = old {
            for layout in scheme.stale.iter().map(|stale| stale.layout()).chain([scheme.layout()]) {
                maker.add(&mut before, layout, old);
            }
        }
        if let Some(new) = new {
            self.unindexed |= maker.add(&mut after, scheme.layout(), new);
        }
        paths = maker.paths;
        for key in before.keys().filter(|key| !after.contains_key(*key)) {
            note(&mut self.values, key, &reference);
            commit.delete(Table::Index, key.clone());
        }
        for (key, value) in &after {
            // Under a settled scheme what both versions have is there already.
            if !scheme.stale.is_empty() || before.get(key) != Some(value) {
                note(&mut self.values, key, &reference);
                commit.put(Table::Index, key.clone(), value.clone());
            }
        }
        Walk::terms(scheme.layout(), paths, old.map(version), new.map(version))
    }

    /// Adds the rows that bring one item from the stale policies to the present one.
    pub(in crate::partition) fn rebuild(
        &mut self,
        index: &Index,
        commit: &mut Commit,
        target: &ItemKey,
        item: &Item,
    ) {
        self.wrote = true;
        let from = commit.changes.len();
        let scheme = self.scheme.clone();
        let dictionary = index.dictionary.read();
        let reference = keys::index::reference(target.epk.as_bytes(), &target.key);
        let paths = Paths { dictionary: &dictionary, new: &mut self.new_paths };
        let mut maker = RowMaker { paths, target, reference: &reference };
        let stale: Vec<Rows> = scheme
            .stale
            .iter()
            .map(|stale| {
                let mut rows = Rows::new();
                maker.add(&mut rows, stale.layout(), item);
                rows
            })
            .collect();
        let mut present = Rows::new();
        self.unindexed |= maker.add(&mut present, scheme.layout(), item);
        let stale_keys = stale.iter().flat_map(Rows::keys);
        let gone: BTreeSet<&Bytes> = stale_keys.filter(|key| !present.contains_key(*key)).collect();
        for key in gone {
            note(&mut self.values, key, &reference);
            commit.delete(Table::Index, key.clone());
        }
        for (key, value) in &present {
            // What every policy asked for is there, whichever the item's rows follow.
            if !stale.iter().all(|rows| rows.get(key) == Some(value)) {
                note(&mut self.values, key, &reference);
                commit.put(Table::Index, key.clone(), value.clone());
            }
        }
        self.touch(index, commit, from);
    }

    /// Completes a commit with what its rows rest on: numbers of new paths, and the scheme if the store does not know
    /// it yet.
    pub(in crate::partition) fn complete(&self, index: &Index, commit: &mut Commit) {
        if !self.new_paths.is_empty() {
            self.new_paths.stage(&index.dictionary.read(), commit);
        }
        if self.wrote && !index.recorded.load(Ordering::Relaxed) {
            commit.put(Table::Feed, keys::meta(SCHEME), self.scheme.encode());
        }
    }

    /// The commit is about to be submitted, with this LSN or, if it has none, before it: its paths are everyone's
    /// from now on.
    pub(in crate::partition) fn submitted(self, index: &Index, lsn: u64) {
        index.postings.submitted(&self.values, lsn);
        if !self.new_paths.is_empty() {
            index.dictionary.write().extend(self.new_paths);
        }
        if self.unindexed {
            index.unindexed.store(true, Ordering::Release);
        }
        if self.touched {
            index.touch.store(self.touch, Ordering::Relaxed);
            index.unlinked.store(true, Ordering::Release);
        }
        if self.wrote {
            index.recorded.store(true, Ordering::Relaxed);
        }
    }
}

/// Takes note of a row that changes, for those who keep lists of them. Search rows do no harm.
fn note(values: &mut Changes, key: &[u8], reference: &[u8]) {
    if let Some(values) = values {
        values.push(postings::value_hash(&key[..key.len().saturating_sub(reference.len())]));
    }
}

/// Rows by key.
pub(super) type Rows = BTreeMap<Bytes, Bytes>;

/// Whole sets of rows.
pub(super) struct RowMaker<'w, 'd> {
    pub(super) paths: Paths<'d>,
    pub(super) target: &'w ItemKey,
    pub(super) reference: &'w [u8],
}

impl RowMaker<'_, '_> {
    /// Adds the rows of a version under a policy. Returns whether it is one that is too large for rows.
    pub(super) fn add(&mut self, to: &mut Rows, layout: Layout<'_>, item: &Item) -> bool {
        let paths = Paths { dictionary: self.paths.dictionary, new: &mut *self.paths.new };
        let rows = Walk::rows(layout, paths, self.reference, None, Some(version(item)));
        let mut searches = Rows::new();
        let paths = Paths { dictionary: self.paths.dictionary, new: &mut *self.paths.new };
        let bytes = search::collect(layout.policy, paths, self.reference, item.body(), &mut searches);
        if rows.bytes.len() + bytes > ITEM_INDEX_BYTES_MAX {
            to.insert(keys::index::unindexed(&self.target.key), Bytes::new());
            return true;
        }
        to.append(&mut searches);
        let bytes = Bytes::copy_from_slice(&rows.bytes);
        let mut start = 0;
        for change in &rows.changes {
            to.insert(bytes.slice(start..change.end), Bytes::new());
            start = change.end;
        }
        false
    }
}

/// Whether the rows of a version could exceed the limit, judging by its size alone.
fn may_be_unindexed(policy: &IndexingPolicy, item: &Item, reference: &[u8]) -> bool {
    let mut rows_max = item.document.len() / ELEMENT_BYTES_MIN;
    if policy.searches() {
        rows_max += item.document.len() / SEARCH_BYTES_MIN;
    }
    rows_max * (reference.len() + ROW_BYTES_MAX) + 2 * item.document.len() > ITEM_INDEX_BYTES_MAX
}

pub(super) fn version(item: &Item) -> Version<'_> {
    Version { body: item.body(), ts: item.ts }
}
