//! The copy: an embedded store that holds what the log says, and knows how far.
//!
//! Each space has a place in the copy under a number of the copy's own, so that it can be thrown away and filled anew
//! at once, while the old rows go in the background. Space 0 of the copy says which place a space has, and its
//! *position*:
//!
//! - `applied`: every entry up to here is in the copy.
//! - `intended`, `term`: nothing after this entry is in the copy, and whose entry it was.
//!
//! The position is written before the rows that it speaks of. The copy's log keeps the order of all spaces, so after a
//! crash it may hold more than `applied` and never more than `intended`. If the log still has the entry `intended`, of
//! the same term, what the copy holds is a part of its history, and applying again from `applied` on makes it whole:
//! entries say what rows are, not how they change.
//!
//! Nothing in the copy is waited for on disk: what a crash takes from it comes back from the log.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use orrery_storage::{
    ByteReader, Change, Commit, Direction, Done, Durability, EmbeddedOptions, EmbeddedStore, KeyRange, Space,
    SpaceId, Store, StoreError, Table,
};
use parking_lot::Mutex;

/// How far a space of the copy is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) applied: u64,
    pub(super) intended: u64,
    pub(super) term: u64,
}

/// Where a space is in the copy.
#[derive(Clone)]
pub(super) struct LocalSpace {
    pub(super) id: SpaceId,
    pub(super) space: Arc<dyn Space>,
}

pub(super) struct Copy {
    pub(super) store: EmbeddedStore,
    positions: Arc<dyn Space>,
    state: Mutex<State>,
}

struct State {
    next: u32,
    /// What was found at the start and nobody has asked for yet.
    found: HashMap<SpaceId, (SpaceId, Position)>,
}

const POSITIONS: SpaceId = SpaceId(0);
const IDENTITY_KEY: &[u8] = b"identity";
const NEXT_KEY: &[u8] = b"next";
/// Before the number of a space of the copy whose rows are to go.
const GARBAGE: u8 = 1;
/// Before the number of a space.
const POSITION: u8 = 2;

impl Copy {
    /// Opens the copy of a log, or makes an empty one. One of another log is emptied.
    pub(super) fn open(path: &Path, options: EmbeddedOptions, identity: &str) -> Result<Copy, StoreError> {
        let store = EmbeddedStore::open(path, options)?;
        let positions = store.open_space(POSITIONS)?;
        let mut state = State { next: 1, found: HashMap::new() };
        let mut garbage = Vec::new();
        let snapshot = positions.snapshot()?;
        if let Some(next) = snapshot.get(Table::Items, NEXT_KEY)? {
            state.next = ByteReader(&next).u32().ok_or_else(damaged)?;
        }
        let was_of = snapshot.get(Table::Items, IDENTITY_KEY)?;
        let of_another = was_of.as_ref().is_some_and(|was| was != identity.as_bytes());
        let mut rows = snapshot.scan(Table::Feed, KeyRange::all(), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let mut key = ByteReader(&row.key);
            let (kind, id) =
                (key.u8(), key.array().map(u32::from_be_bytes).map(SpaceId).ok_or_else(damaged)?);
            match kind {
                Some(GARBAGE) => garbage.push(id),
                Some(POSITION) => {
                    let (local, position) = decode_position(&row.value).ok_or_else(damaged)?;
                    match of_another {
                        true => garbage.push(local),
                        false => drop(state.found.insert(id, (local, position))),
                    }
                }
                _ => return Err(damaged()),
            }
        }
        drop(snapshot);
        let copy = Copy { store, positions, state: Mutex::new(state) };
        if of_another {
            tracing::warn!(
                "the copy on disk is of another store: it is thrown away and filled again from the log"
            );
            let mut commit = Commit::default();
            let rows = copy.positions.snapshot()?;
            let mut rows = rows.scan(Table::Feed, KeyRange::prefix(&[POSITION]), Direction::Forward);
            while let Some(row) = rows.next_row().transpose()? {
                commit.delete(Table::Feed, row.key);
            }
            garbage.iter().for_each(|id| commit.put(Table::Feed, named(GARBAGE, *id), ""));
            copy.positions.commit(commit, Durability::Strict)?;
        }
        if was_of.is_none() || of_another {
            let mut commit = Commit::default();
            commit.put(Table::Items, IDENTITY_KEY, Bytes::copy_from_slice(identity.as_bytes()));
            copy.positions.commit(commit, Durability::Strict)?;
        }
        garbage.into_iter().try_for_each(|id| copy.remove(id))?;
        Ok(copy)
    }

    /// What the copy had of a space when it was opened; the first who asks gets it.
    pub(super) fn find(&self, space: SpaceId) -> Result<Option<(LocalSpace, Position)>, StoreError> {
        let Some((id, position)) = self.state.lock().found.remove(&space) else { return Ok(None) };
        Ok(Some((LocalSpace { id, space: self.store.open_space(id)? }, position)))
    }

    /// An empty place, which is not this space's before a position says so.
    pub(super) fn new_local(&self) -> Result<LocalSpace, StoreError> {
        let id = self.new_number();
        Ok(LocalSpace { id, space: self.store.open_space(id)? })
    }

    pub(super) fn new_number(&self) -> SpaceId {
        let mut state = self.state.lock();
        let id = SpaceId(state.next);
        state.next += 1;
        let mut commit = Commit::default();
        commit.put(Table::Items, NEXT_KEY, state.next.to_le_bytes().to_vec());
        self.positions.submit(commit, Durability::Relaxed, Box::new(|_| {}));
        id
    }

    /// Says how far a space will be when what is submitted to it next is there.
    pub(super) fn set_position(&self, space: SpaceId, local: &LocalSpace, position: Position) {
        let mut commit = Commit::with_capacity(1);
        commit.put(Table::Feed, named(POSITION, space), encode_position(local.id, position));
        // If this fails so does every later commit of the copy, and those are answered.
        self.positions.submit(commit, Durability::Relaxed, Box::new(|_| {}));
    }

    /// Puts another place, or none, where the rows of a space are, and has the old ones removed.
    pub(super) fn replace(
        &self,
        space: SpaceId,
        old: Option<SpaceId>,
        new: Option<&LocalSpace>,
    ) -> Result<(), StoreError> {
        let mut commit = Commit::default();
        if let Some(old) = old {
            commit.put(Table::Feed, named(GARBAGE, old), "");
        }
        match new {
            Some(new) => {
                commit.put(Table::Feed, named(POSITION, space), encode_position(new.id, Position::default()));
            }
            None => commit.delete(Table::Feed, named(POSITION, space)),
        }
        self.positions.commit(commit, Durability::Relaxed)?;
        old.map_or(Ok(()), |old| self.remove(old))
    }

    fn remove(&self, id: SpaceId) -> Result<(), StoreError> {
        self.store.drop_space(id)?;
        let mut commit = Commit::default();
        commit.delete(Table::Feed, named(GARBAGE, id));
        self.positions.commit(commit, Durability::Relaxed)
    }

    /// Submits what entries `applied` + 1 to `intended` come to, after the position that says so.
    pub(super) fn apply(
        &self,
        space: SpaceId,
        local: &LocalSpace,
        position: Position,
        changes: Vec<Change>,
        done: Done,
    ) {
        self.set_position(space, local, position);
        local.space.submit(Commit { changes }, Durability::Relaxed, done);
    }
}

fn named(kind: u8, id: SpaceId) -> Bytes {
    let mut key = vec![kind];
    key.extend_from_slice(&id.0.to_be_bytes());
    key.into()
}

fn encode_position(local: SpaceId, position: Position) -> Bytes {
    let mut value = local.0.to_le_bytes().to_vec();
    for number in [position.applied, position.intended, position.term] {
        value.extend_from_slice(&number.to_le_bytes());
    }
    value.into()
}

fn decode_position(value: &[u8]) -> Option<(SpaceId, Position)> {
    let mut reader = ByteReader(value);
    let local = SpaceId(reader.u32()?);
    Some((local, Position { applied: reader.u64()?, intended: reader.u64()?, term: reader.u64()? }))
}

fn damaged() -> StoreError {
    StoreError::Damaged(
        "the copy's own notes make no sense: remove its directory, it is filled again from the log".into(),
    )
}
