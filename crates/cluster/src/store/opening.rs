//! How a space is taken, and how its copy is brought up to the end of the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use orrery_storage::{Claim, Commit, Durability, Epoch, Space, SpaceId, StoreError};
use parking_lot::Mutex;

use super::copy::Position;
use super::rows::{decode_chunk, decode_entry, marker};
use super::space::{ClusterSpace, Owned, SpaceState};
use super::{Core, Lifetime};
use crate::log::Taken;

/// What is read of the log at once.
const PAGE_BYTES: usize = 8 << 20;
/// How often a restore says how far it is.
const PROGRESS: Duration = Duration::from_secs(5);

impl Lifetime {
    pub(super) fn open(self: &Arc<Self>, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        let core = &self.core;
        let state = core.state_of(id)?;
        let _opening = state.opening.lock();
        let before = *state.owned.lock();
        let claim = match claim {
            Claim::Renew(mine) if before.log_epoch == Epoch::default() => Claim::Renew(mine),
            Claim::Renew(mine) if mine != before.handle_epoch => return Err(StoreError::Fenced(id)),
            Claim::Renew(_) => Claim::Renew(before.log_epoch),
            Claim::Take(above) => Claim::Take(above.max(before.log_epoch)),
        };
        // What earlier handles have submitted is appended first.
        core.drain()?;
        let term = new_term()?;
        let taken = core.log.take(id, claim, &core.name, &marker(term))?;
        // From here on the log refuses earlier handles; what it still took of them is on its way to the copy, too.
        {
            let mut owned = state.owned.lock();
            owned.epoch = Epoch::default();
            owned.log_epoch = taken.epoch;
        }
        core.drain()?;
        core.catch_up(&state, &taken, term)?;
        let mut owned = state.owned.lock();
        owned.epoch = taken.epoch;
        owned.handle_epoch = taken.epoch;
        owned.session = taken.session;
        owned.checkpoint_at = taken.checkpoint.map_or(0, |checkpoint| checkpoint.at);
        drop(owned);
        let epoch = taken.epoch;
        Ok(Arc::new(ClusterSpace {
            state: state.clone(),
            epoch,
            failed: Arc::default(),
            owner: self.clone(),
        }))
    }

    /// Where the rows of a space are, for a fork of it.
    pub(super) fn local_of(self: &Arc<Self>, id: SpaceId) -> Result<SpaceId, StoreError> {
        let state = self.core.state_of(id)?;
        let open = state.owned.lock().epoch != Epoch::default();
        if !open {
            // What the copy has of it may be old.
            self.open(id, Claim::Take(Epoch::default()))?;
        }
        let local = state.local.lock().id;
        Ok(local)
    }
}

impl Core {
    /// The state of a space, with what the copy had of it if this is the first time that it is asked for.
    fn state_of(&self, id: SpaceId) -> Result<Arc<SpaceState>, StoreError> {
        let mut spaces = self.spaces.lock();
        if let Some(state) = spaces.get(&id) {
            return Ok(state.clone());
        }
        let (local, owned) = match self.copy.find(id)? {
            Some((local, position)) => (local, Owned { position, ..Owned::default() }),
            None => (self.copy.new_local()?, Owned { empty: true, ..Owned::default() }),
        };
        let state = Arc::new(SpaceState {
            id,
            opening: Mutex::default(),
            owned: Mutex::new(owned),
            local: Mutex::new(local),
        });
        spaces.insert(id, state.clone());
        Ok(state)
    }

    /// Makes the copy what the log says up to the marker, from where it is.
    fn catch_up(&self, state: &SpaceState, taken: &Taken, term: u64) -> Result<(), StoreError> {
        let Owned { position, .. } = *state.owned.lock();
        let mut applied = position.applied;
        if !self.continues(state.id, taken, position)? {
            self.empty_copy(state, position)?;
            applied = self.restore_checkpoint(state, taken)?;
        }
        let local = state.local.lock().clone();
        let mut said = Instant::now();
        while applied < taken.end {
            let entries = self.log.read(state.id, applied + 1, PAGE_BYTES)?;
            if entries.is_empty() {
                return Err(missing(state.id, applied + 1));
            }
            for entry in entries {
                if entry.number != applied + 1 {
                    return Err(missing(state.id, applied + 1));
                }
                let decoded = decode_entry(&entry.data)?;
                let position = Position { applied, intended: entry.number, term: decoded.term };
                self.copy.apply(state.id, &local, position, decoded.changes, Box::new(|_| {}));
                applied = entry.number;
                let mut owned = state.owned.lock();
                owned.position = Position { applied, ..position };
                owned.log_bytes += entry.data.len() as u64;
                drop(owned);
                self.counters.replayed_entries.fetch_add(1, Ordering::Relaxed);
            }
            if said.elapsed() > PROGRESS {
                said = Instant::now();
                let (space, of) = (state.id.0, taken.end);
                tracing::info!(space, entry = applied, of, "reading the log");
            }
        }
        // The marker is ours, so nothing is behind it.
        let end = Position { applied, intended: taken.end, term };
        self.copy.set_position(state.id, &local, end);
        state.owned.lock().position = end;
        // When this is in the copy, so is everything before it.
        local.space.commit(Commit::default(), Durability::Relaxed).inspect_err(|_| {
            state.owned.lock().position = Position::default();
        })
    }

    /// Gives the space an empty place in the copy.
    fn empty_copy(&self, state: &SpaceState, was: Position) -> Result<(), StoreError> {
        let empty = {
            let mut owned = state.owned.lock();
            owned.position = Position::default();
            std::mem::take(&mut owned.empty)
        };
        let old = state.local.lock().clone();
        if empty {
            return self.copy.replace(state.id, None, Some(&old));
        }
        if was.intended > 0 {
            tracing::warn!(space = state.id.0, "the copy's history is not the log's: it is filled again");
        }
        let new = self.copy.new_local()?;
        *state.local.lock() = new.clone();
        self.copy.replace(state.id, Some(old.id), Some(&new))
    }

    /// Whether what the copy holds is a part of the log's history.
    fn continues(&self, id: SpaceId, taken: &Taken, position: Position) -> Result<bool, StoreError> {
        if position.intended == 0 || position.intended < taken.log_from || position.intended > taken.end {
            return Ok(false);
        }
        // What the copy lacks must still be there.
        if position.applied + 1 < taken.log_from {
            return Ok(false);
        }
        let entries = self.log.read(id, position.intended, 1)?;
        let Some(entry) = entries.first().filter(|entry| entry.number == position.intended) else {
            return Ok(false);
        };
        Ok(decode_entry(&entry.data)?.term == position.term)
    }

    /// Fills an empty place with the checkpoint, if there is one. Answers with the last entry that is in it.
    fn restore_checkpoint(&self, state: &SpaceState, taken: &Taken) -> Result<u64, StoreError> {
        let Some(checkpoint) = taken.checkpoint else { return Ok(taken.log_from - 1) };
        self.counters.restores.fetch_add(1, Ordering::Relaxed);
        let local = state.local.lock().clone();
        let (mut bytes, mut said) = (0, Instant::now());
        for number in 0..checkpoint.chunks {
            let chunk = self.log.read_chunk(state.id, checkpoint.at, number)?;
            bytes += chunk.len() as u64;
            let changes = decode_chunk(&chunk)?;
            local.space.submit(Commit { changes }, Durability::Relaxed, Box::new(|_| {}));
            if said.elapsed() > PROGRESS {
                said = Instant::now();
                let (space, of) = (state.id.0, checkpoint.chunks);
                tracing::info!(space, chunk = number, of, "filling the copy from the checkpoint");
            }
        }
        let mut owned = state.owned.lock();
        owned.checkpoint_bytes = bytes;
        owned.log_bytes = 0;
        Ok(checkpoint.at)
    }

    pub(super) fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        let state = self.state_of(id)?;
        let _opening = state.opening.lock();
        self.drain()?;
        self.log.drop_space(id)?;
        state.owned.lock().epoch = Epoch::default();
        // What the log took before is on its way to the copy, which is about to lose it.
        self.drain()?;
        let new = self.copy.new_local()?;
        let old = std::mem::replace(&mut *state.local.lock(), new);
        self.copy.replace(id, Some(old.id), None)?;
        *state.owned.lock() = Owned { empty: true, ..Owned::default() };
        self.keeper.cut(id);
        Ok(())
    }
}

fn missing(id: SpaceId, number: u64) -> StoreError {
    let text = format!(
        "entry {number} of space {} is missing in the log: it was cut, or the database was restored while this \
         server was running; start it again",
        id.0
    );
    StoreError::Damaged(text.into())
}

fn new_term() -> Result<u64, StoreError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Exhausted(format!("no random bytes: {error}").into()))?;
    // 0 is nobody's.
    Ok(u64::from_le_bytes(bytes).max(1))
}
