//! The rows of a space in memory. Those of a fork lie over rows that stay as they were.
//!
//! ```text
//! over    { b: deleted, c: 3 }      what was written here, a persistent ordered map
//! below   { a: 1, b: 2, d: 4 }      a snapshot of the origin, never changed
//! read as { a: 1, c: 3, d: 4 }
//! ```
//!
//! A copy is four reference counts, whatever is in it. A space that is no fork has nothing below, and forgets what is
//! deleted; where something is below, a deletion has to be remembered.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;
use imbl::OrdMap;

use crate::store::{
    Commit, Direction, KeyRange, Row, RowIterator, Snapshot, StoreError, TABLES, Table, Visit,
};

/// Rows that an iterator takes from the map at once.
const SCAN_CHUNK_ROWS: usize = 64;

/// A value, or that the row was deleted.
type Entry = Option<Bytes>;

#[derive(Clone, Default)]
pub(crate) struct Layers {
    over: [OrdMap<Bytes, Entry>; TABLES.len()],
    below: Option<Arc<dyn Snapshot>>,
    over_bytes: u64,
    below_bytes: u64,
}

fn entry_bytes(key: &Bytes, entry: &Entry) -> u64 {
    (key.len() + entry.as_ref().map_or(0, Bytes::len)) as u64
}

impl Layers {
    /// Nothing yet over what is below, which has about so many bytes.
    pub(crate) fn over(below: Arc<dyn Snapshot>, below_bytes: u64) -> Layers {
        Layers { below: Some(below), below_bytes, ..Layers::default() }
    }

    /// What was written here, in memory.
    pub(crate) fn over_bytes(&self) -> u64 {
        self.over_bytes
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.over_bytes + self.below_bytes
    }

    pub(crate) fn apply(&mut self, commit: Commit) {
        for change in commit.changes {
            let over = &mut self.over[change.table as usize];
            let key_bytes = change.key.len() as u64;
            let old = if change.value.is_some() || self.below.is_some() {
                self.over_bytes += entry_bytes(&change.key, &change.value);
                over.insert(change.key, change.value)
            } else {
                over.remove(&change.key)
            };
            if let Some(old) = old {
                self.over_bytes -= key_bytes + old.as_ref().map_or(0, Bytes::len) as u64;
            }
        }
    }

    pub(crate) fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        match (self.over[table as usize].get(key), &self.below) {
            (Some(entry), _) => Ok(entry.clone()),
            (None, Some(below)) => below.get(table, key),
            (None, None) => Ok(None),
        }
    }

    pub(crate) fn visit(
        &self,
        table: Table,
        range: KeyRange,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        if range.is_empty() {
            return Ok(());
        }
        let bounds = (range.start.clone(), range.end.clone());
        let mut over = self.over[table as usize].range::<_, Bytes>(bounds).peekable();
        let mut flow = ControlFlow::Continue(());
        if let Some(below) = &self.below {
            below.visit(table, range, &mut |key, value| {
                while let Some((first, entry)) = over.next_if(|(first, _)| first[..] <= *key) {
                    let hides = first[..] == *key;
                    if let Some(value) = entry {
                        flow = visit(first, value);
                    }
                    if hides || flow.is_break() {
                        return flow;
                    }
                }
                flow = visit(key, value);
                flow
            })?;
        }
        if flow.is_continue() {
            for (key, entry) in over {
                if let Some(value) = entry
                    && visit(key, value).is_break()
                {
                    break;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator> {
        let over = self.over[table as usize].clone();
        let entries = |range: KeyRange| Entries {
            map: over,
            rest: (!range.is_empty()).then_some(range),
            direction,
            chunk: Vec::new(),
        };
        match &self.below {
            None => Box::new(entries(range)),
            Some(below) => Box::new(LayeredRows {
                below: below.scan(table, range.clone(), direction),
                over: entries(range),
                direction,
                next_below: None,
                next_over: None,
                failed: false,
            }),
        }
    }
}

/// Owns its map and walks it in chunks: a borrowing iterator could not leave `scan`.
struct Entries {
    map: OrdMap<Bytes, Entry>,
    /// What is not yet in `chunk`; `None` when that is nothing.
    rest: Option<KeyRange>,
    direction: Direction,
    /// The next entries, last one first.
    chunk: Vec<(Bytes, Entry)>,
}

impl Entries {
    fn fill(&mut self, range: KeyRange) {
        let entry = |(key, value): (&Bytes, &Entry)| (key.clone(), value.clone());
        let entries = self.map.range::<_, Bytes>((range.start.clone(), range.end.clone()));
        match self.direction {
            Direction::Forward => self.chunk.extend(entries.take(SCAN_CHUNK_ROWS).map(entry)),
            Direction::Reverse => self.chunk.extend(entries.rev().take(SCAN_CHUNK_ROWS).map(entry)),
        }
        if self.chunk.len() == SCAN_CHUNK_ROWS {
            let seen = Bound::Excluded(self.chunk[SCAN_CHUNK_ROWS - 1].0.clone());
            let rest = match self.direction {
                Direction::Forward => KeyRange { start: seen, end: range.end },
                Direction::Reverse => KeyRange { start: range.start, end: seen },
            };
            self.rest = (!rest.is_empty()).then_some(rest);
        }
        self.chunk.reverse();
    }

    fn next_entry(&mut self) -> Option<(Bytes, Entry)> {
        if self.chunk.is_empty()
            && let Some(range) = self.rest.take()
        {
            self.fill(range);
        }
        self.chunk.pop()
    }
}

impl RowIterator for Entries {
    /// Where nothing is below, every entry has a value.
    fn next_row(&mut self) -> Option<Result<Row, StoreError>> {
        loop {
            if let (key, Some(value)) = self.next_entry()? {
                return Some(Ok(Row { key, value }));
            }
        }
    }
}

struct LayeredRows {
    over: Entries,
    below: Box<dyn RowIterator>,
    direction: Direction,
    next_over: Option<(Bytes, Entry)>,
    next_below: Option<Row>,
    failed: bool,
}

impl RowIterator for LayeredRows {
    fn next_row(&mut self) -> Option<Result<Row, StoreError>> {
        loop {
            if self.failed {
                return None;
            }
            if self.next_over.is_none() {
                self.next_over = self.over.next_entry();
            }
            if self.next_below.is_none() {
                match self.below.next_row() {
                    Some(Ok(row)) => self.next_below = Some(row),
                    Some(Err(error)) => {
                        self.failed = true;
                        return Some(Err(error));
                    }
                    None => {}
                }
            }
            let order = match (&self.next_over, &self.next_below) {
                (None, _) => return self.next_below.take().map(Ok),
                (Some(_), None) => std::cmp::Ordering::Less,
                (Some((over, _)), Some(below)) => match self.direction {
                    Direction::Forward => over.cmp(&below.key),
                    Direction::Reverse => below.key.cmp(over),
                },
            };
            if order.is_gt() {
                return self.next_below.take().map(Ok);
            }
            if order.is_eq() {
                self.next_below = None;
            }
            if let Some((key, Some(value))) = self.next_over.take() {
                return Some(Ok(Row { key, value }));
            }
        }
    }
}
