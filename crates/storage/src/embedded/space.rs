//! Handles: one owner's space, and snapshots of it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::cache::kept_under;
use super::committer::{Handle, Request, SpaceState};
use super::core::{Core, Owner};
use super::snapshots::Pin;
use super::trees::{SPACE_BYTES, TreeRows, guarded, prefixed};
use crate::store::{
    Commit, Direction, Done, Durability, Epoch, KEY_BYTES_MAX, KeyRange, Row, RowIterator, Snapshot, Space,
    SpaceId, SpaceStats, StoreError, Table, Visit,
};

pub(super) struct EmbeddedSpace {
    handle: Arc<Handle>,
    owner: Arc<Owner>,
}

impl EmbeddedSpace {
    pub(super) fn new(id: SpaceId, epoch: Epoch, state: Arc<SpaceState>, owner: Arc<Owner>) -> EmbeddedSpace {
        EmbeddedSpace { handle: Arc::new(Handle { id, epoch, state, failed: OnceLock::new() }), owner }
    }
}

impl Space for EmbeddedSpace {
    fn id(&self) -> SpaceId {
        self.handle.id
    }

    fn epoch(&self) -> Epoch {
        self.handle.epoch
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        let core = &self.owner.core;
        if core.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let pin = core.snapshots.open();
        // Asked after the snapshot is open: one that does not see the drop here is older than it.
        let empty = self.handle.state.dropped.load(Ordering::Acquire);
        let state = self.handle.state.clone();
        Ok(Box::new(EmbeddedSnapshot { core: core.clone(), pin, space: self.handle.id, state, empty }))
    }

    fn check_room(&self, commit: &Commit) -> Result<(), StoreError> {
        self.owner.core.setback.check()?;
        self.owner.core.reserve.check(commit)
    }

    fn submit(&self, commit: Commit, durability: Durability, done: Done) {
        let bytes = commit.size_bytes();
        let request = Request::Commit { handle: self.handle.clone(), commit, durability, done };
        self.owner.core.queue.push(request, bytes);
    }

    fn stats(&self) -> SpaceStats {
        SpaceStats { size_bytes_estimate: self.owner.core.trees.space_bytes(self.handle.id) }
    }
}

struct EmbeddedSnapshot {
    core: Arc<Core>,
    pin: Arc<Pin>,
    space: SpaceId,
    state: Arc<SpaceState>,
    /// The space was dropped before.
    empty: bool,
}

impl Drop for EmbeddedSnapshot {
    fn drop(&mut self) {
        self.core.snapshots.close(&self.pin);
    }
}

/// Keys up to this length are looked up without an allocation.
const KEY_BYTES_ON_STACK: usize = 256;

impl Snapshot for EmbeddedSnapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        if self.empty || key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Ok(None);
        }
        let _gate = self.pin.enter()?;
        let Some(generation) = kept_under(self.state.generation, table, key) else {
            return self.get_from_tree(table, key);
        };
        let items = &self.core.items;
        let address = items.address(generation, key);
        if let Some(value) = items.get(&address, self.pin.seqno) {
            return Ok(Some(value));
        }
        let found = self.get_from_tree(table, key)?;
        if let Some(value) = &found {
            items.fill(&address, self.pin.seqno, value);
        }
        Ok(found)
    }

    fn visit(&self, table: Table, range: KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        if self.empty || range.is_empty() {
            return Ok(());
        }
        let sources = {
            let _gate = self.pin.enter()?;
            self.core.trees.sources(table, self.space, &range, self.pin.seqno)?
        };
        // The tables of a dropped space go as they are, while older snapshots still see it.
        let sources = sources.filter(|_| !self.state.dropped.load(Ordering::Acquire));
        let mut until_look = ROWS_PER_LOOK;
        let mut expired = false;
        let mut look = |key: &[u8], value: &[u8]| {
            until_look -= 1;
            if until_look == 0 {
                until_look = ROWS_PER_LOOK;
                if self.pin.is_expired() {
                    expired = true;
                    return ControlFlow::Break(());
                }
            }
            visit(key, value)
        };
        match sources {
            Some(sources) => guarded(|| sources.visit(&mut look))
                .inspect_err(|error| self.core.read_failed(table, error))?,
            None => {
                let mut rows = self.scan(table, range, Direction::Forward);
                while let Some(row) = rows.next_row().transpose()? {
                    if look(&row.key, &row.value).is_break() {
                        break;
                    }
                }
            }
        }
        if expired { Err(StoreError::SnapshotExpired) } else { Ok(()) }
    }

    fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator> {
        let rows = if self.empty || range.is_empty() {
            None
        } else {
            let scan = || {
                let _gate = self.pin.enter()?;
                self.core.trees.scan(table, self.space, &range, self.pin.seqno)
            };
            Some(scan())
        };
        let (rows, failed) = match rows {
            Some(Ok(rows)) => (Some(rows), None),
            Some(Err(error)) => (None, Some(error)),
            None => (None, None),
        };
        Box::new(EmbeddedRows { rows, failed, direction, pin: self.pin.clone(), until_look: 0 })
    }
}

impl EmbeddedSnapshot {
    /// The caller has entered the snapshot's gate.
    fn get_from_tree(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let length = SPACE_BYTES + key.len();
        if length <= KEY_BYTES_ON_STACK {
            let mut bytes = [0; KEY_BYTES_ON_STACK];
            bytes[..SPACE_BYTES].copy_from_slice(&self.space.0.to_be_bytes());
            bytes[SPACE_BYTES..length].copy_from_slice(key);
            return self.looked_up(table, &bytes[..length]);
        }
        self.looked_up(table, &prefixed(self.space, key))
    }

    fn looked_up(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        let found = self.core.trees.get(table, key, self.pin.seqno);
        found.inspect_err(|error| self.core.read_failed(table, error))
    }
}

/// Rows between two looks at whether the snapshot has expired.
const ROWS_PER_LOOK: u32 = 64;

/// Owns the version of the tree that it reads, so it stays right without its snapshot; only its age is limited.
struct EmbeddedRows {
    rows: Option<TreeRows>,
    failed: Option<StoreError>,
    direction: Direction,
    pin: Arc<Pin>,
    until_look: u32,
}

impl RowIterator for EmbeddedRows {
    fn next_row(&mut self) -> Option<Result<Row, StoreError>> {
        if let Some(error) = self.failed.take() {
            return Some(Err(error));
        }
        if self.until_look == 0 {
            self.until_look = ROWS_PER_LOOK;
            if self.rows.is_some() && self.pin.is_expired() {
                self.rows = None;
                return Some(Err(StoreError::SnapshotExpired));
            }
        }
        self.until_look -= 1;
        let row = self.rows.as_mut()?.next(self.direction);
        if !matches!(row, Some(Ok(_))) {
            // The end, or an error: what comes after it would leave rows out.
            self.rows = None;
        }
        row
    }
}
