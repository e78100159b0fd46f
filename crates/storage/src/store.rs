//! The lower seam: ordered byte keys in spaces, snapshots, ordered atomic commits.
//!
//! A *space* holds everything of one physical partition (space 0 is the catalog's). It has one owner, numbered by an
//! *epoch*: claiming a space makes a handle of a higher epoch and fences every earlier handle, so a paused owner can
//! never write again. Because there is one owner, a commit needs no conditions: the owner has checked them, and the
//! store promises *order* instead. Commits of one space are applied in the order they were submitted, each whole or
//! not at all, and when one fails every later one of its handle fails too. An owner may therefore prepare the next
//! write on top of one that is still in flight.
//!
//! A commit can fail in four ways ([`Failure`]), and only one of them is the end. After the other three the owner
//! claims the space again: when it has its new handle, every commit of the old one is there or never will be, also
//! one whose outcome nobody could tell, and reading the rows says which.
//!
//! Sync: the embedded store answers reads in microseconds on the caller's thread; a networked store says
//! `blocking()` and is called from a pool. Writes are handed over with a callback and never block the caller,
//! except for a bounded back-pressure wait when the store has fallen behind.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;

/// Names a space. 0 is the catalog; the engine numbers the others and never reuses a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u32);

/// Which of the trees a row lives in. The key order is per table; a commit spans tables atomically.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// Items and everything read by exact key (bloom filters, pinned index blocks).
    Items = 0,
    /// Index rows: small, many, only ever scanned.
    Index = 1,
    /// Feed, expiry and unique rows, catalog rows: sparse.
    Feed = 2,
}

pub const TABLES: [Table; 3] = [Table::Items, Table::Index, Table::Feed];

/// When a commit may be acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After the flush that contains it.
    Strict,
    /// After it is applied; a crash may lose the last moments. For tests; the server says so at start.
    Relaxed,
}

/// One row change. `value: None` deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub table: Table,
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// Rows that become visible and durable together. A key may occur more than once; the last change wins.
#[derive(Debug, Clone, Default)]
pub struct Commit {
    pub changes: Vec<Change>,
}

impl Commit {
    /// An empty commit with room for so many changes.
    pub fn with_capacity(changes: usize) -> Commit {
        Commit { changes: Vec::with_capacity(changes) }
    }

    pub fn put(&mut self, table: Table, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.changes.push(Change { table, key: key.into(), value: Some(value.into()) });
    }

    pub fn delete(&mut self, table: Table, key: impl Into<Bytes>) {
        self.changes.push(Change { table, key: key.into(), value: None });
    }

    /// What the commit counts against `COMMIT_BYTES_MAX`.
    pub fn size_bytes(&self) -> usize {
        self.changes.iter().map(Change::size_bytes).sum()
    }

    /// Whether every row and the whole are within the store's limits. A commit that is not fails, and every later one
    /// of its handle with it, so an owner that takes sizes from outside asks here first.
    pub fn check(&self) -> Result<(), StoreError> {
        for change in &self.changes {
            if change.key.is_empty() {
                return Err(StoreError::Limit("empty key".into()));
            }
            if change.key.len() > KEY_BYTES_MAX {
                return Err(limit("key", change.key.len(), KEY_BYTES_MAX));
            }
            if let Some(value) = change.value.as_ref().filter(|value| value.len() > VALUE_BYTES_MAX) {
                return Err(limit("value", value.len(), VALUE_BYTES_MAX));
            }
        }
        match self.size_bytes() {
            size if size > COMMIT_BYTES_MAX => Err(limit("commit", size, COMMIT_BYTES_MAX)),
            _ => Ok(()),
        }
    }
}

fn limit(what: &str, size_bytes: usize, size_bytes_max: usize) -> StoreError {
    StoreError::Limit(format!("{what} of {size_bytes} bytes, at most {size_bytes_max}").into())
}

/// What each row costs beyond its key and value, in the log and while it waits.
const ROW_OVERHEAD_BYTES: usize = 16;

impl Change {
    /// What the row counts against `COMMIT_BYTES_MAX`.
    pub fn size_bytes(&self) -> usize {
        ROW_OVERHEAD_BYTES + self.key.len() + self.value.as_ref().map_or(0, Bytes::len)
    }
}

/// Called exactly once, on a thread of the store, after the commit is published (or has failed).
/// It must be quick: it runs between two groups.
pub type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Counts the owners of a space: a handle of an earlier epoch than the newest is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// How a space is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// From whoever has it, with an epoch above every earlier one and above this one.
    Take(Epoch),
    /// Again, by the owner of this epoch. Refused as `Fenced` if the space has had another owner since, or was dropped.
    Renew(Epoch),
}

impl Claim {
    /// The epoch of the next owner after one of `newest`; `None` if the claim is refused.
    pub fn granted(self, newest: Epoch) -> Option<Epoch> {
        match self {
            Claim::Take(above) => Some(Epoch(newest.max(above).0.saturating_add(1))),
            Claim::Renew(mine) => (mine == newest).then(|| Epoch(newest.0.saturating_add(1))),
        }
    }
}

/// What an owner can do about a commit that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The store takes no more writes in this process.
    Final,
    /// Nothing was written. With a new handle the same may succeed.
    Refused,
    /// The commit may be there or not. A new handle shows which.
    OutcomeUnknown,
    /// Nothing was written: the space has a newer owner.
    OwnershipLost,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// A write or sync failed. Final for this process: writes stay refused, reads go on.
    #[error("the store has stopped accepting writes: {0}")]
    WritesStopped(Arc<str>),
    /// The store cannot be reached, or cannot take the commit at the moment. Nothing was changed.
    #[error("the store is not available at the moment: {0}")]
    Unavailable(Arc<str>),
    /// The answer to a commit was lost: it may have been written or not.
    #[error("the outcome of a write is not known: {0}")]
    OutcomeUnknown(Arc<str>),
    /// This handle was replaced by a newer owner of the space.
    #[error("space {0:?} has a newer owner")]
    Fenced(SpaceId),
    /// Stored bytes fail their checks.
    #[error("stored data is damaged: {0}")]
    Damaged(Arc<str>),
    #[error("storage i/o: {0}")]
    Io(Arc<str>),
    /// The disk is full. Nothing was changed; what removes something may still be accepted, and everything is again
    /// when there is room.
    #[error("the disk is full: {0}")]
    NoRoom(Arc<str>),
    /// The system lacks something other than room, such as descriptors. Nothing was changed; later it may succeed.
    #[error("not possible at the moment: {0}")]
    Exhausted(Arc<str>),
    /// Another process has the data directory, or it has another format.
    #[error("{0}")]
    Refused(Arc<str>),
    #[error("the store is closed")]
    Closed,
    /// A key, value or commit is outside the store's limits (see `Commit::check`).
    #[error("row outside the store's limits: {0}")]
    Limit(Arc<str>),
    /// The snapshot was held longer than the store keeps one. Open a new one.
    #[error("the snapshot was held for too long")]
    SnapshotExpired,
}

impl StoreError {
    /// What a commit that failed with this leaves its owner to do.
    pub fn failure(&self) -> Failure {
        match self {
            StoreError::WritesStopped(_)
            | StoreError::Damaged(_)
            | StoreError::Io(_)
            | StoreError::Refused(_)
            | StoreError::Closed => Failure::Final,
            StoreError::Unavailable(_)
            | StoreError::NoRoom(_)
            | StoreError::Exhausted(_)
            | StoreError::Limit(_)
            | StoreError::SnapshotExpired => Failure::Refused,
            StoreError::OutcomeUnknown(_) => Failure::OutcomeUnknown,
            StoreError::Fenced(_) => Failure::OwnershipLost,
        }
    }
}

/// Longest key of a row, without the space's prefix.
pub const KEY_BYTES_MAX: usize = 16 * 1024;
/// Largest value of a row.
pub const VALUE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Largest commit: keys, values and a little per row.
pub const COMMIT_BYTES_MAX: usize = 48 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Reverse,
}

/// A half-open or open-ended key range within one table of a space.
#[derive(Debug, Clone)]
pub struct KeyRange {
    pub start: Bound<Bytes>,
    pub end: Bound<Bytes>,
}

impl KeyRange {
    pub fn all() -> KeyRange {
        KeyRange { start: Bound::Unbounded, end: Bound::Unbounded }
    }

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        KeyRange { start: Bound::Included(Bytes::copy_from_slice(prefix)), end: prefix_end(prefix) }
    }

    /// `[start, end)`.
    pub fn half_open(start: impl Into<Bytes>, end: impl Into<Bytes>) -> KeyRange {
        KeyRange { start: Bound::Included(start.into()), end: Bound::Excluded(end.into()) }
    }

    /// Whether no key can lie in it. Ordered maps panic on some of these, so stores ask first.
    pub fn is_empty(&self) -> bool {
        match (&self.start, &self.end) {
            (Bound::Included(start), Bound::Included(end)) => start > end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Excluded(end))
            | (Bound::Excluded(start), Bound::Included(end)) => start >= end,
            _ => false,
        }
    }
}

/// The smallest key after every key with this prefix.
pub fn prefix_end(prefix: &[u8]) -> Bound<Bytes> {
    match prefix.iter().rposition(|byte| *byte != 0xFF) {
        None => Bound::Unbounded,
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            Bound::Excluded(end.into())
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: Bytes,
    pub value: Bytes,
}

/// A space to be made, and whose rows it begins with: none, or those of another space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fork {
    pub origin: Option<SpaceId>,
    pub space: SpaceId,
}

/// Figures about one space; estimates that cost little.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpaceStats {
    pub size_bytes_estimate: u64,
}

/// Figures about the whole store, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreStats {
    pub disk_bytes: u64,
    pub log_bytes: u64,
    pub commits: u64,
    pub groups: u64,
    pub syncs: u64,
    pub flushes: u64,
    pub compactions: u64,
    pub snapshots_open: u64,
    /// What has been written to forks, in memory.
    pub fork_bytes: u64,
    pub item_cache_hits: u64,
    pub item_cache_misses: u64,
    pub item_cache_bytes: u64,
    /// Tables that cannot be read as a whole, as far as somebody has tried.
    pub damaged_tables: u64,
    pub writes_stopped: bool,
    /// The disk is full: only deletes are accepted.
    pub disk_full: bool,
}

pub trait Store: Send + Sync {
    /// Makes the caller the owner of a space (creating it when it has no rows) and fences earlier handles. When it
    /// returns, everything submitted through them is applied or never will be, answered or not.
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError>;
    /// Takes a space from whoever has it.
    fn open_space(&self, id: SpaceId) -> Result<Arc<dyn Space>, StoreError> {
        self.claim_space(id, Claim::Take(Epoch::default()))
    }
    /// Removes every row of a space, durably: after `Ok` they never come back, not even by a crash. Handles are fenced.
    /// Space on disk returns later, in the background. Opening the space again waits for that.
    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError>;
    /// Makes spaces that begin with the rows of others at one moment, the same for all of them. They share what they
    /// have in common, so it takes no longer for many rows than for few; the origins, and who writes to them, do not
    /// notice. Forks are *volatile*: this process has them in memory, and they end with it. `drop_space` forgets one at
    /// once.
    fn fork_spaces(&self, _forks: &[Fork]) -> Result<(), StoreError> {
        Err(StoreError::Refused("this store has no forks".into()))
    }
    /// Whether calls may wait for a network.
    fn blocking(&self) -> bool;
    /// Figures about the whole store.
    fn stats(&self) -> StoreStats;
    /// Flushes and stops. Later commits fail with `Closed`; reads through open snapshots may go on.
    fn close(&self) -> Result<(), StoreError>;
}

pub trait Space: Send + Sync {
    fn id(&self) -> SpaceId;
    /// The ownership that this handle stands for. Its commits are refused when there is a higher one.
    fn epoch(&self) -> Epoch;
    /// The last published state, whoever has published it: reading needs no ownership.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError>;
    /// Whether the store would have room for this commit. One that fails makes every later one of its handle fail, so
    /// an owner asks here first, and answers with the error.
    fn check_room(&self, _commit: &Commit) -> Result<(), StoreError> {
        Ok(())
    }
    /// Queues a commit. Order of submission on this space is order of application.
    fn submit(&self, commit: Commit, durability: Durability, done: Done);
    /// `submit` and wait; for callers that are not on an event loop.
    fn commit(&self, commit: Commit, durability: Durability) -> Result<(), StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.submit(commit, durability, Box::new(move |result| drop(sender.send(result))));
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }
    fn stats(&self) -> SpaceStats;
}

/// A consistent view of one space. Cheap to open (well under a microsecond); release it soon: it pins what was
/// replaced since.
pub trait Snapshot: Send + Sync {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError>;
    fn get_many(&self, table: Table, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StoreError> {
        keys.iter().map(|key| self.get(table, key)).collect()
    }
    /// Shows rows in key order to a visitor until it has seen enough. For whoever looks at many rows and keeps few:
    /// what the visitor sees is not its own.
    fn visit(&self, table: Table, range: KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let mut rows = self.scan(table, range, Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            if visit(&row.key, &row.value).is_break() {
                break;
            }
        }
        Ok(())
    }
    /// Rows in key order. The iterator owns what it needs and may outlive the borrow of the snapshot.
    fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator>;
}

/// Sees the key and the value of a row.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

pub trait RowIterator: Send {
    fn next_row(&mut self) -> Option<Result<Row, StoreError>>;
}
