//! Keeps logs short: writes a checkpoint of a space whose log has grown, and cuts what it replaces.
//!
//! A checkpoint costs about as much as the log since the last one: it is due when that is larger than it was itself. It
//! is written from an image of the copy, chunk by chunk, while the space goes on. One space at a time, so that appends
//! wait for little.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use orrery_storage::{
    Change, Commit, Durability, Epoch, Fork, KeyRange, Snapshot, SpaceId, Store, StoreError, TABLES,
};
use parking_lot::{Condvar, Mutex};

use super::Core;
use super::committer::Request;
use super::rows::ChunkBuilder;
use super::space::{Owned, SpaceState};
use crate::log::Checkpoint;

#[derive(Default)]
pub(super) struct Keeper {
    state: Mutex<KeeperState>,
    woken: Condvar,
}

#[derive(Default)]
struct KeeperState {
    tasks: VecDeque<Task>,
    ended: bool,
}

enum Task {
    Checkpoint(Arc<SpaceState>),
    Cut(SpaceId),
}

/// What a space holds at one entry, for as long as that is needed.
pub(super) struct Frozen {
    snapshot: Box<dyn Snapshot>,
    /// The space of the copy that keeps it.
    image: SpaceId,
    owned: Owned,
}

impl Keeper {
    pub(super) fn add(&self, space: Arc<SpaceState>) {
        self.push(Task::Checkpoint(space));
    }

    pub(super) fn cut(&self, space: SpaceId) {
        self.push(Task::Cut(space));
    }

    fn push(&self, task: Task) {
        self.state.lock().tasks.push_back(task);
        self.woken.notify_one();
    }

    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.woken.notify_one();
    }

    fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    fn next(&self) -> Option<Task> {
        let mut state = self.state.lock();
        while !state.ended {
            if let Some(task) = state.tasks.pop_front() {
                return Some(task);
            }
            self.woken.wait(&mut state);
        }
        None
    }
}

impl Core {
    pub(super) fn run_keeper(&self) {
        while let Some(task) = self.keeper.next() {
            let (space, result) = match &task {
                Task::Checkpoint(state) => (state.id, self.checkpoint(state)),
                Task::Cut(space) => (*space, self.cut(*space)),
            };
            if let Err(error) = result {
                // Tried again when the log has grown more; what was cut half is cut with the next checkpoint.
                tracing::warn!(space = space.0, %error, "the log of a space could not be shortened");
            }
        }
    }

    /// Writes a checkpoint of an open space and cuts its log.
    pub(super) fn checkpoint(&self, state: &Arc<SpaceState>) -> Result<(), StoreError> {
        let written = self.write_checkpoint(state);
        let mut owned = state.owned.lock();
        owned.keeping = false;
        match written {
            Ok(Some((checkpoint, bytes, log_bytes))) => {
                owned.log_bytes = owned.log_bytes.saturating_sub(log_bytes);
                owned.checkpoint_bytes = bytes;
                owned.checkpoint_at = checkpoint.at;
                drop(owned);
                self.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
                self.counters.checkpoint_bytes.fetch_add(bytes, Ordering::Relaxed);
                self.cut(state.id)
            }
            Ok(None) => Ok(()),
            Err(error) => {
                owned.log_bytes /= 2;
                Err(error)
            }
        }
    }

    /// The checkpoint, its size, and the size of the log that it replaces. `None` if there is nothing new.
    fn write_checkpoint(
        &self,
        state: &Arc<SpaceState>,
    ) -> Result<Option<(Checkpoint, u64, u64)>, StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.queue.push_control(Request::Frozen(state.clone(), sender));
        let frozen = receiver.recv().unwrap_or(Err(StoreError::Closed))?;
        let result = match frozen.owned.position.applied > frozen.owned.checkpoint_at {
            true => self.write_chunks(state.id, &frozen).map(Some),
            false => Ok(None),
        };
        let Frozen { snapshot, image, .. } = frozen;
        drop(snapshot);
        self.copy.store.drop_space(image)?;
        result
    }

    /// What an open space holds. Called by the committer, so nothing is on its way.
    pub(super) fn freeze(&self, state: &SpaceState) -> Result<Frozen, StoreError> {
        let local = state.local.lock().clone();
        local.space.commit(Commit::default(), Durability::Relaxed)?;
        let owned = *state.owned.lock();
        if owned.epoch == Epoch::default() {
            return Err(StoreError::Unavailable("the space is being opened".into()));
        }
        let image = self.copy.new_number();
        self.copy.store.fork_spaces(&[Fork { origin: Some(local.id), space: image }])?;
        let snapshot = self.copy.store.open_space(image)?.snapshot()?;
        Ok(Frozen { snapshot, image, owned })
    }

    fn write_chunks(&self, id: SpaceId, frozen: &Frozen) -> Result<(Checkpoint, u64, u64), StoreError> {
        let Owned { epoch, position, log_bytes, .. } = frozen.owned;
        let at = position.applied;
        let (mut chunk, mut chunks, mut bytes) = (ChunkBuilder::new(), 0, 0);
        let mut write = |chunk: &mut ChunkBuilder| {
            if self.keeper.has_ended() {
                return Err(StoreError::Closed);
            }
            let data = chunk.finish();
            bytes += data.len() as u64;
            self.log.write_chunk(id, epoch, at, chunks, &data)?;
            chunks += 1;
            Ok(())
        };
        for table in TABLES {
            let mut result = Ok(());
            let mut visit = |key: &[u8], value: &[u8]| {
                let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
                chunk.push(&Change { table, key, value: Some(value) });
                if chunk.len() >= self.options.chunk_bytes {
                    result = write(&mut chunk);
                }
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            frozen.snapshot.visit(table, KeyRange::all(), &mut visit)?;
            result?;
        }
        if !chunk.is_empty() {
            write(&mut chunk)?;
        }
        let checkpoint = Checkpoint { at, chunks };
        self.log.set_checkpoint(id, epoch, checkpoint)?;
        Ok((checkpoint, bytes, log_bytes))
    }

    fn cut(&self, id: SpaceId) -> Result<(), StoreError> {
        while !self.keeper.has_ended() && self.log.cut(id)? {}
        Ok(())
    }
}
