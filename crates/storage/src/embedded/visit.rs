//! Looking at many rows without keeping any.
//!
//! The iterator of `lsm-tree` hands out rows that outlive it: each key and value is counted twice on the way, and
//! every row goes through a heap, however few sources there are. A visitor sees rows where they lie, in a memtable or
//! in a block. That is half of what a scan over items costs.
//!
//! What is read is the active memtable and the present tables. Flushes and compactions leave out what is no longer
//! the newest, because an older snapshot reads the tables of its own time; so a snapshot must be younger than the
//! present tables, which nearly all are. And no memtable may wait for its flush, because only the tree itself can see
//! those. Otherwise the iterator does it.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{
    AbstractTree, InternalValue, Memtable, Table as TreeTable, Tree, UserKey, UserValue, ValueType,
};

use super::trees::SPACE_BYTES;
use crate::store::Visit;

/// Older versions of a row that are stepped over one by one before they are leapt over.
const STEPS_MAX: usize = 8;

/// Rows of a tree, as one snapshot sees them.
pub(super) struct Sources {
    memtable: Arc<Memtable>,
    /// Tables of each sorted run that may hold rows, in order.
    runs: Vec<Vec<TreeTable>>,
    bounds: (Bound<UserKey>, Bound<UserKey>),
    /// The snapshot sees what is below.
    seqno: u64,
}

impl Sources {
    /// `None` while a memtable waits for its flush, and for a snapshot that is older than the tables. `tables_from`:
    /// the version of the tables that was last seen, and the first snapshot that may read it.
    pub(super) fn of(
        tree: &Tree,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        seqno: u64,
        tables_from: (u64, u64),
    ) -> Option<Sources> {
        let memtable = tree.active_memtable();
        if tree.sealed_memtable_count() > 0 {
            return None;
        }
        let version = tree.current_version();
        if (version.id(), true) != (tables_from.0, seqno >= tables_from.1) {
            return None;
        }
        // Had it been sealed meanwhile, it might be in the tables already, or others might not be.
        if tree.active_memtable().id() != memtable.id() {
            return None;
        }
        let runs = version.iter_levels().flat_map(|level| level.iter()).map(|run| run.iter());
        let runs = overlapping(runs, &bounds);
        let bounds = (bounds.0.map(UserKey::from), bounds.1.map(UserKey::from));
        Some(Sources { memtable, runs, bounds, seqno })
    }

    /// The same for a part of the rows.
    pub(super) fn within(&self, bounds: (Bound<Bytes>, Bound<Bytes>)) -> Sources {
        Sources {
            memtable: self.memtable.clone(),
            runs: overlapping(self.runs.iter().map(|tables| tables.iter()), &bounds),
            bounds: (bounds.0.map(UserKey::from), bounds.1.map(UserKey::from)),
            seqno: self.seqno,
        }
    }

    /// The value under a key, the space included, that is one of these rows.
    pub(super) fn get(&self, key: &[u8]) -> lsm_tree::Result<Option<UserValue>> {
        let shown = |entry: InternalValue| (!entry.is_tombstone()).then_some(entry.value);
        if let Some(entry) = self.memtable.get(key, self.seqno) {
            return Ok(shown(entry));
        }
        let hash = Builder::get_hash(key);
        for tables in &self.runs {
            let at = tables.partition_point(|table| table.metadata.key_range.max()[..] < *key);
            if let Some(table) = tables.get(at)
                && let Some(entry) = table.get(key, self.seqno, hash)?
            {
                return Ok(shown(entry));
            }
        }
        Ok(None)
    }

    fn is_behind(&self, key: &UserKey) -> bool {
        match &self.bounds.1 {
            Bound::Included(end) => key > end,
            Bound::Excluded(end) => key >= end,
            Bound::Unbounded => false,
        }
    }

    /// Shows every row, its key without the space, until the visitor has seen enough.
    pub(super) fn visit(&self, visit: &mut Visit<'_>) -> lsm_tree::Result<()> {
        // Of one key the newest version comes first: these are where its versions begin and end.
        let version = |key: &UserKey, seqno| {
            InternalValue::from_components(key.clone(), UserKey::empty(), seqno, ValueType::Value).key
        };
        let (first, last) = (|key: &UserKey| version(key, u64::MAX), |key: &UserKey| version(key, 0));
        let start = match &self.bounds.0 {
            Bound::Included(key) => Bound::Included(first(key)),
            Bound::Excluded(key) => Bound::Excluded(last(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = match &self.bounds.1 {
            Bound::Included(key) => Bound::Included(last(key)),
            Bound::Excluded(key) => Bound::Excluded(first(key)),
            Bound::Unbounded => Bound::Unbounded,
        };
        let remembered = &self.memtable.items;
        let mut entries = remembered.range((start, end.clone()));
        let mut entry = entries.find(|entry| entry.key().seqno < self.seqno);
        let mut runs = Vec::with_capacity(self.runs.len());
        for tables in &self.runs {
            let mut run = RunRows { tables: tables.iter(), rows: None, row: None };
            run.advance(self)?;
            runs.extend(run.row.is_some().then_some(run));
        }
        loop {
            let mut least = 0;
            for at in 1..runs.len() {
                if runs[at].row.as_ref().map(|row| &row.key) < runs[least].row.as_ref().map(|row| &row.key) {
                    least = at;
                }
            }
            let row = runs.get(least).and_then(|run| run.row.as_ref());
            match (entry.take(), row) {
                (None, None) => return Ok(()),
                (Some(newest), row) if row.is_none_or(|row| *newest.key() < row.key) => {
                    let key = &newest.key().user_key;
                    if !newest.key().is_tombstone() && visit(&key[SPACE_BYTES..], newest.value()).is_break() {
                        return Ok(());
                    }
                    let mut steps = 0;
                    entry = loop {
                        match entries.next() {
                            Some(older) if older.key().user_key == *key => steps += 1,
                            Some(unseen) if unseen.key().seqno >= self.seqno => {}
                            next => break next,
                        }
                        if steps == STEPS_MAX {
                            steps += 1;
                            entries = remembered.range((Bound::Excluded(last(key)), end.clone()));
                        }
                    };
                    pass(&mut runs, key, self)?;
                }
                (later, _) => {
                    entry = later;
                    let Some(newest) = runs[least].row.take() else { return Ok(()) };
                    let key = &newest.key.user_key;
                    if !newest.key.is_tombstone() && visit(&key[SPACE_BYTES..], &newest.value).is_break() {
                        return Ok(());
                    }
                    runs[least].advance(self)?;
                    pass(&mut runs, key, self)?;
                    while entry.as_ref().is_some_and(|entry| entry.key().user_key == *key) {
                        entry = entries.find(|entry| entry.key().seqno < self.seqno);
                    }
                }
            }
        }
    }
}

/// The tables of each run that may hold rows within bounds.
fn overlapping<'t, R: Iterator<Item = &'t TreeTable>>(
    runs: impl Iterator<Item = R>,
    bounds: &(Bound<Bytes>, Bound<Bytes>),
) -> Vec<Vec<TreeTable>> {
    let edges = (bounds.0.as_ref().map(|key| &key[..]), bounds.1.as_ref().map(|key| &key[..]));
    let overlaps = |table: &&TreeTable| table.metadata.key_range.overlaps_with_bounds(&edges);
    runs.map(|run| run.filter(overlaps).cloned().collect())
        .filter(|tables: &Vec<TreeTable>| !tables.is_empty())
        .collect()
}

/// Leaves other versions of a row behind, in all runs. Runs that have ended go.
fn pass(runs: &mut Vec<RunRows<'_>>, key: &UserKey, sources: &Sources) -> lsm_tree::Result<()> {
    let mut ended = false;
    for run in &mut *runs {
        while run.row.as_ref().is_some_and(|row| row.key.user_key == *key) {
            run.advance(sources)?;
        }
        ended |= run.row.is_none();
    }
    if ended {
        runs.retain(|run| run.row.is_some());
    }
    Ok(())
}

/// The rows of one sorted run, table by table.
struct RunRows<'s> {
    tables: std::slice::Iter<'s, TreeTable>,
    rows: Option<Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>>>>,
    /// The present one.
    row: Option<InternalValue>,
}

impl RunRows<'_> {
    /// Goes on to the next row that the snapshot sees.
    fn advance(&mut self, sources: &Sources) -> lsm_tree::Result<()> {
        self.row = None;
        loop {
            if let Some(rows) = &mut self.rows {
                for row in rows {
                    let row = row?;
                    if sources.is_behind(&row.key.user_key) {
                        self.tables = [].iter();
                        break;
                    }
                    if row.key.seqno < sources.seqno {
                        self.row = Some(row);
                        return Ok(());
                    }
                }
            }
            self.rows = None;
            let Some(table) = self.tables.next() else { return Ok(()) };
            // Looking up where to end costs as much as where to begin, so the end is found by going there.
            self.rows = Some(Box::new(table.range((sources.bounds.0.clone(), Bound::<UserKey>::Unbounded))));
        }
    }
}
