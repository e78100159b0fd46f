//! A store in memory: for tests and for servers that keep nothing.
//!
//! Each table of a space is a persistent ordered map, so a snapshot is three reference counts and stays as it is
//! whatever is committed later. A committer thread gives the promises of the trait their one place: commits leave the
//! queue in order, are applied whole, and are answered on this thread, never on the submitter's.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use imbl::OrdMap;
use parking_lot::Mutex;

use crate::queue::{Gather, Queue};
use crate::store::{
    Claim, Commit, Direction, Done, Durability, Epoch, KeyRange, Row, RowIterator, Snapshot, Space, SpaceId,
    SpaceStats, Store, StoreError, StoreStats, TABLES, Table,
};

/// Rows that an iterator takes from the map at once.
const SCAN_CHUNK_ROWS: usize = 64;

pub struct MemoryStore {
    shared: Arc<MemoryCore>,
    /// Ends the committer when the store and every space handle are gone.
    _lifetime: Arc<Lifetime>,
}

struct MemoryCore {
    queue: Queue<Request>,
    spaces: Mutex<HashMap<SpaceId, Arc<SpaceState>>>,
    closed: AtomicBool,
    commits: AtomicU64,
    groups: AtomicU64,
    snapshots_open: AtomicU64,
}

/// What all handles of a space share.
struct SpaceState {
    maps: Mutex<Maps>,
    /// The number of the present owner. Written only by the committer thread.
    epoch: AtomicU64,
}

#[derive(Clone, Default)]
struct Maps {
    tables: [OrdMap<Bytes, Bytes>; TABLES.len()],
    size_bytes: u64,
}

enum Request {
    Commit {
        space: Arc<SpaceState>,
        id: SpaceId,
        epoch: Epoch,
        failed: Arc<Failed>,
        commit: Commit,
        done: Done,
    },
    Open {
        id: SpaceId,
        claim: Claim,
        reply: Reply<(Arc<SpaceState>, Epoch)>,
    },
    Drop {
        id: SpaceId,
        reply: Reply<()>,
    },
    Close {
        reply: Reply<()>,
    },
}

type Reply<T> = std::sync::mpsc::SyncSender<Result<T, StoreError>>;
/// The first failure of a handle: later commits may build on the failed one, so they fail with it.
type Failed = Mutex<Option<StoreError>>;

struct Lifetime(Arc<MemoryCore>);

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.0.queue.end();
    }
}

impl MemoryStore {
    pub fn new() -> MemoryStore {
        let shared = Arc::new(MemoryCore {
            queue: Queue::new(),
            spaces: Mutex::default(),
            closed: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            snapshots_open: AtomicU64::new(0),
        });
        let committer = shared.clone();
        std::thread::Builder::new()
            .name("memory-committer".into())
            .spawn(move || committer.run())
            .expect("a thread can be started");
        MemoryStore { _lifetime: Arc::new(Lifetime(shared.clone())), shared }
    }

    fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.shared.queue.push_control(request(sender));
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }
}

impl Default for MemoryStore {
    fn default() -> MemoryStore {
        MemoryStore::new()
    }
}

impl Store for MemoryStore {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        let (state, epoch) = self.ask(|reply| Request::Open { id, claim, reply })?;
        let lifetime = self._lifetime.clone();
        Ok(Arc::new(MemorySpace { id, epoch, state, failed: Arc::default(), lifetime }))
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        self.ask(|reply| Request::Drop { id, reply })
    }

    fn blocking(&self) -> bool {
        false
    }

    fn stats(&self) -> StoreStats {
        StoreStats {
            commits: self.shared.commits.load(Ordering::Relaxed),
            groups: self.shared.groups.load(Ordering::Relaxed),
            snapshots_open: self.shared.snapshots_open.load(Ordering::Relaxed),
            ..StoreStats::default()
        }
    }

    fn close(&self) -> Result<(), StoreError> {
        match self.ask(|reply| Request::Close { reply }) {
            // Closing twice is no error: the first time has done it.
            Err(StoreError::Closed) => Ok(()),
            result => result,
        }
    }
}

impl MemoryCore {
    fn run(&self) {
        let mut group = Vec::new();
        while self.queue.take(&mut group, Gather::default()) {
            if !group.is_empty() {
                self.groups.fetch_add(1, Ordering::Relaxed);
            }
            for request in group.drain(..) {
                self.serve(request);
            }
        }
    }

    fn serve(&self, request: Request) {
        let closed = self.closed.load(Ordering::Relaxed);
        match request {
            Request::Commit { space, id, epoch, failed, commit, done } => {
                let mut failed = failed.lock();
                let result = match &*failed {
                    Some(error) => Err(error.clone()),
                    None if closed => Err(StoreError::Closed),
                    None if space.epoch.load(Ordering::Relaxed) != epoch.0 => Err(StoreError::Fenced(id)),
                    None => commit.check(),
                };
                if let Err(error) = &result {
                    failed.get_or_insert_with(|| error.clone());
                } else {
                    space.maps.lock().apply(commit);
                    self.commits.fetch_add(1, Ordering::Relaxed);
                }
                drop(failed);
                done(result);
            }
            Request::Open { id, claim, reply } => {
                let result = if closed { Err(StoreError::Closed) } else { self.own(id, claim) };
                drop(reply.send(result));
            }
            Request::Drop { id, reply } => {
                let result = if closed { Err(StoreError::Closed) } else { Ok(()) };
                if result.is_ok()
                    && let Some(state) = self.spaces.lock().remove(&id)
                {
                    state.epoch.fetch_add(1, Ordering::Relaxed);
                    *state.maps.lock() = Maps::default();
                }
                drop(reply.send(result));
            }
            Request::Close { reply } => {
                self.closed.store(true, Ordering::Relaxed);
                drop(reply.send(Ok(())));
            }
        }
    }

    fn own(&self, id: SpaceId, claim: Claim) -> Result<(Arc<SpaceState>, Epoch), StoreError> {
        let mut spaces = self.spaces.lock();
        let state = spaces
            .entry(id)
            .or_insert_with(|| Arc::new(SpaceState { maps: Mutex::default(), epoch: AtomicU64::new(0) }));
        let newest = Epoch(state.epoch.load(Ordering::Relaxed));
        let epoch = claim.granted(newest).ok_or(StoreError::Fenced(id))?;
        state.epoch.store(epoch.0, Ordering::Relaxed);
        Ok((state.clone(), epoch))
    }
}

impl Maps {
    fn apply(&mut self, commit: Commit) {
        for change in commit.changes {
            let table = &mut self.tables[change.table as usize];
            let key_bytes = change.key.len() as u64;
            let old = match change.value {
                Some(value) => {
                    self.size_bytes += key_bytes + value.len() as u64;
                    table.insert(change.key, value)
                }
                None => table.remove(&change.key),
            };
            if let Some(old) = old {
                self.size_bytes -= key_bytes + old.len() as u64;
            }
        }
    }
}

struct MemorySpace {
    id: SpaceId,
    epoch: Epoch,
    state: Arc<SpaceState>,
    failed: Arc<Failed>,
    lifetime: Arc<Lifetime>,
}

impl Space for MemorySpace {
    fn id(&self) -> SpaceId {
        self.id
    }

    fn epoch(&self) -> Epoch {
        self.epoch
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>, StoreError> {
        let shared = self.lifetime.0.clone();
        if shared.closed.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        shared.snapshots_open.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(MemorySnapshot { tables: self.state.maps.lock().tables.clone(), shared }))
    }

    fn submit(&self, commit: Commit, _: Durability, done: Done) {
        let bytes = commit.size_bytes();
        let request = Request::Commit {
            space: self.state.clone(),
            id: self.id,
            epoch: self.epoch,
            failed: self.failed.clone(),
            commit,
            done,
        };
        self.lifetime.0.queue.push(request, bytes);
    }

    fn stats(&self) -> SpaceStats {
        SpaceStats { size_bytes_estimate: self.state.maps.lock().size_bytes }
    }
}

struct MemorySnapshot {
    tables: [OrdMap<Bytes, Bytes>; TABLES.len()],
    shared: Arc<MemoryCore>,
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        self.shared.snapshots_open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshot for MemorySnapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        Ok(self.tables[table as usize].get(key).cloned())
    }

    fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator> {
        let map = self.tables[table as usize].clone();
        let rest = (!range.is_empty()).then_some(range);
        Box::new(MemoryRows { map, rest, direction, chunk: Vec::new() })
    }
}

/// Owns its map and walks it in chunks: a borrowing iterator could not leave `scan`.
struct MemoryRows {
    map: OrdMap<Bytes, Bytes>,
    /// What is not yet in `chunk`; `None` when that is nothing.
    rest: Option<KeyRange>,
    direction: Direction,
    /// The next rows, last one first.
    chunk: Vec<Row>,
}

impl MemoryRows {
    fn fill(&mut self, range: KeyRange) {
        let row = |(key, value): (&Bytes, &Bytes)| Row { key: key.clone(), value: value.clone() };
        let rows = self.map.range::<_, Bytes>((range.start.clone(), range.end.clone()));
        match self.direction {
            Direction::Forward => self.chunk.extend(rows.take(SCAN_CHUNK_ROWS).map(row)),
            Direction::Reverse => self.chunk.extend(rows.rev().take(SCAN_CHUNK_ROWS).map(row)),
        }
        if self.chunk.len() == SCAN_CHUNK_ROWS {
            let seen = Bound::Excluded(self.chunk[SCAN_CHUNK_ROWS - 1].key.clone());
            let rest = match self.direction {
                Direction::Forward => KeyRange { start: seen, end: range.end },
                Direction::Reverse => KeyRange { start: range.start, end: seen },
            };
            self.rest = (!rest.is_empty()).then_some(rest);
        }
        self.chunk.reverse();
    }
}

impl RowIterator for MemoryRows {
    fn next_row(&mut self) -> Option<Result<Row, StoreError>> {
        if self.chunk.is_empty()
            && let Some(range) = self.rest.take()
        {
            self.fill(range);
        }
        self.chunk.pop().map(Ok)
    }
}
