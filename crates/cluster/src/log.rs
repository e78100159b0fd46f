//! What a log promises to the store above it.
//!
//! Every space has a log of its own: entries numbered from 1 without gaps, written by one owner at a time. Taking a
//! space raises its epoch and writes a *marker* as the next entry. When the marker is there, everything that earlier
//! owners appended is in the log before it or never will be: the epoch is the fence.
//!
//! A checkpoint holds in chunks what the entries up to its place come to, that one included. When it is set, entries
//! before its place may be *cut*. So a space is: its checkpoint, if it has one, and the entries from `log_from` to
//! `end`. The entry at the checkpoint's place stays, so that a copy which ends there can be compared with it.
//!
//! Calls wait for disks and networks. Errors are those of stores: of an append that failed with `OutcomeUnknown`
//! nobody knows whether it is there; taking the space again and reading shows it. With any other error nothing was
//! written.

use bytes::Bytes;
use orrery_storage::{Claim, Epoch, SpaceId, StoreError};

/// The largest entry or chunk that is taken: a commit of the largest size with what is around it.
pub const ENTRY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Stands for one unbroken connection to the log. What a new connection shows need not be what the old one has seen
/// (another server may answer, which lacks what nobody was told of), so a space that was taken in one session is
/// taken again before anything is appended in the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub u64);

/// The rows of a space at one moment, in chunks 0, 1, ….
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last entry that it contains.
    pub at: u64,
    pub chunks: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceState {
    pub epoch: Epoch,
    /// Who took it last.
    pub owner: String,
    pub checkpoint: Option<Checkpoint>,
    /// Entries from here on are there.
    pub log_from: u64,
}

/// A space as its new owner finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    pub session: Session,
    pub epoch: Epoch,
    pub checkpoint: Option<Checkpoint>,
    pub log_from: u64,
    /// The number of the marker, which is the last entry.
    pub end: u64,
}

/// An entry to be appended by the owner of a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub space: SpaceId,
    pub epoch: Epoch,
    /// One more than the last entry's.
    pub number: u64,
    pub data: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub number: u64,
    pub epoch: Epoch,
    pub data: Bytes,
}

/// Figures for metrics, since the log was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogStats {
    pub appends: u64,
    pub append_bytes: u64,
    /// Connections that were made; 1 where nothing has ever broken.
    pub connections: u64,
    /// Appends whose answer was lost.
    pub unknown_outcomes: u64,
    pub connected: bool,
}

pub trait Log: Send + Sync {
    /// Names the log, for ever: a copy that was made of one log is not used with another.
    fn identity(&self) -> &str;

    /// Makes `owner` the owner of a space and appends the marker. A space that nobody has ever taken is made by
    /// `Claim::Take`. `Claim::Renew` of an owner whose last renewal succeeded without an answer succeeds too.
    fn take(&self, space: SpaceId, claim: Claim, owner: &str, marker: &Bytes) -> Result<Taken, StoreError>;

    /// Appends entries of several spaces, durably. Each is there whole or not at all. Answers with the spaces that
    /// have a newer owner: theirs were not appended, the others were. Refused as `Unavailable` if the session is over.
    fn append(&self, session: Session, frames: &[Frame]) -> Result<Vec<SpaceId>, StoreError>;

    /// Entries from a number on, in order, about so many bytes of them and at least one, if there is one.
    fn read(&self, space: SpaceId, from: u64, bytes_max: usize) -> Result<Vec<Entry>, StoreError>;

    /// `None` for a space that nobody has ever taken.
    fn state(&self, space: SpaceId) -> Result<Option<SpaceState>, StoreError>;

    /// Every space that was ever taken, in order. Dropped ones are among them.
    fn spaces(&self) -> Result<Vec<SpaceId>, StoreError>;

    /// Writes a chunk of a checkpoint in the making, which nobody sees before it is set. Refused as `Fenced` if the
    /// space has a newer owner. A chunk that was written before is replaced.
    fn write_chunk(
        &self,
        space: SpaceId,
        epoch: Epoch,
        at: u64,
        number: u32,
        data: &Bytes,
    ) -> Result<(), StoreError>;

    /// From now on the space is this checkpoint and the entries after it: `log_from` is its place.
    fn set_checkpoint(&self, space: SpaceId, epoch: Epoch, checkpoint: Checkpoint) -> Result<(), StoreError>;

    fn read_chunk(&self, space: SpaceId, at: u64, number: u32) -> Result<Bytes, StoreError>;

    /// Removes some of what no checkpoint needs: a bounded piece of work. Says whether there may be more.
    fn cut(&self, space: SpaceId) -> Result<bool, StoreError>;

    /// Fences the owner and forgets every entry and checkpoint, at once for readers; `cut` gives the room back. The
    /// space goes on counting epochs and entries where it was.
    fn drop_space(&self, space: SpaceId) -> Result<(), StoreError>;

    fn stats(&self) -> LogStats;

    /// Nothing is taken or appended from now on.
    fn close(&self);
}

/// A name that no other log has.
pub(crate) fn new_identity() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::Exhausted(format!("no random bytes: {error}").into()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
