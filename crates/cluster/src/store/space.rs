//! Spaces as their owners have them.

use std::sync::Arc;

use orrery_storage::{Commit, Done, Durability, Epoch, Snapshot, Space, SpaceId, SpaceStats, StoreError};
use parking_lot::Mutex;

use super::Lifetime;
use super::committer::Request;
use super::copy::{LocalSpace, Position};
use crate::log::Session;

/// What all handles of a space share.
pub(super) struct SpaceState {
    pub(super) id: SpaceId,
    /// Held while the space is taken or dropped: one at a time.
    pub(super) opening: Mutex<()>,
    pub(super) owned: Mutex<Owned>,
    /// Where the rows are.
    pub(super) local: Mutex<LocalSpace>,
}

/// The ownership that this process has of a space.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Owned {
    /// Whose commits are taken. 0: nobody's.
    pub(super) epoch: Epoch,
    /// Of the last handle, which may renew.
    pub(super) handle_epoch: Epoch,
    /// The highest that the log has given this process, whether or not a handle came of it.
    pub(super) log_epoch: Epoch,
    pub(super) session: Session,
    /// How far the copy is, by what it was given. In a space that is open its end is the log's.
    pub(super) position: Position,
    /// Nothing was ever put where the rows are to be.
    pub(super) empty: bool,
    /// What the log has grown by since the last checkpoint, and how large that was.
    pub(super) log_bytes: u64,
    pub(super) checkpoint_bytes: u64,
    pub(super) checkpoint_at: u64,
    /// A checkpoint is due or being made.
    pub(super) keeping: bool,
}

/// The first failure of a handle: later commits may build on the failed one, so they fail with it.
pub(super) type Failed = Mutex<Option<StoreError>>;

pub(super) struct ClusterSpace {
    pub(super) state: Arc<SpaceState>,
    pub(super) epoch: Epoch,
    pub(super) failed: Arc<Failed>,
    pub(super) owner: Arc<Lifetime>,
}

impl Space for ClusterSpace {
    fn id(&self) -> SpaceId {
        self.state.id
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        self.owner.core.refuse_closed()?;
        self.state.local.lock().space.snapshot()
    }

    fn check_room(&self, commit: &Commit) -> Result<(), StoreError> {
        self.state.local.lock().space.check_room(commit)
    }

    fn submit(&self, commit: Commit, _: Durability, done: Done) {
        if let Err(error) = self.owner.core.refuse_closed() {
            return done(Err(error));
        }
        let bytes = commit.size_bytes();
        let request = Request::Commit {
            space: self.state.clone(),
            epoch: self.epoch,
            failed: self.failed.clone(),
            commit,
            done,
        };
        self.owner.core.queue.push(request, bytes);
    }

    fn stats(&self) -> SpaceStats {
        self.state.local.lock().space.stats()
    }
}

/// A fork: a space of the copy that no log knows.
pub(super) struct ForkSpace {
    pub(super) id: SpaceId,
    pub(super) space: Arc<dyn Space>,
}

impl Space for ForkSpace {
    fn id(&self) -> SpaceId {
        self.id
    }

    fn epoch(&self) -> Epoch {
        self.space.epoch()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        self.space.snapshot()
    }

    fn check_room(&self, commit: &Commit) -> Result<(), StoreError> {
        self.space.check_room(commit)
    }

    fn submit(&self, commit: Commit, durability: Durability, done: Done) {
        let id = self.id;
        let named = move |error| match error {
            StoreError::Fenced(_) => StoreError::Fenced(id),
            error => error,
        };
        self.space.submit(commit, durability, Box::new(move |result| done(result.map_err(named))));
    }

    fn stats(&self) -> SpaceStats {
        self.space.stats()
    }
}
