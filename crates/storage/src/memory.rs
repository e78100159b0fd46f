//! A store in memory: for tests, for servers that keep nothing, and for forks of other stores.
//!
//! The rows of a space are persistent ordered maps (`layers`), so a snapshot is a few reference counts and stays as it
//! is whatever is committed later, and so is a fork. A committer thread gives the promises of the trait their one
//! place: commits leave the queue in order, are applied whole, and are answered on this thread, never on the
//! submitter's. Forks are made on it, too, so those of several spaces are of one moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::layers::Layers;
use crate::queue::{Gather, Queue};
use crate::store::{
    Claim, Commit, Direction, Done, Durability, Epoch, Fork, KeyRange, RowIterator, Snapshot, Space, SpaceId,
    SpaceStats, Store, StoreError, StoreStats, Table, Visit,
};

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
    /// What has been written to all spaces and is still there.
    held_bytes: AtomicU64,
    held_bytes_max: u64,
}

/// What all handles of a space share.
struct SpaceState {
    layers: Mutex<Layers>,
    /// The number of the present owner. Written only by the committer thread.
    epoch: AtomicU64,
}

/// What a new space begins with.
pub(crate) enum Seed {
    Empty,
    /// What another space of this store holds.
    Space(SpaceId),
    Layers(Layers),
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
    Seed {
        seeds: Vec<(SpaceId, Seed)>,
        reply: Reply<()>,
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
        MemoryStore::with_limit(u64::MAX)
    }

    /// A store whose owners are told that there is no room when it holds so much.
    pub(crate) fn with_limit(held_bytes_max: u64) -> MemoryStore {
        let shared = Arc::new(MemoryCore {
            queue: Queue::new(),
            spaces: Mutex::default(),
            closed: AtomicBool::new(false),
            commits: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            snapshots_open: AtomicU64::new(0),
            held_bytes: AtomicU64::new(0),
            held_bytes_max,
        });
        let committer = shared.clone();
        std::thread::Builder::new()
            .name("memory-committer".into())
            .spawn(move || committer.run())
            .expect("a thread can be started");
        MemoryStore { _lifetime: Arc::new(Lifetime(shared.clone())), shared }
    }

    pub(crate) fn has(&self, id: SpaceId) -> bool {
        self.shared.spaces.lock().contains_key(&id)
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.shared.held_bytes.load(Ordering::Relaxed)
    }

    /// Makes new spaces, all at one moment.
    pub(crate) fn seed(&self, seeds: Vec<(SpaceId, Seed)>) -> Result<(), StoreError> {
        self.ask(|reply| Request::Seed { seeds, reply })
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

    fn fork_spaces(&self, forks: &[Fork]) -> Result<(), StoreError> {
        let seeds = forks.iter().map(|fork| (fork.space, fork.origin.map_or(Seed::Empty, Seed::Space)));
        self.seed(seeds.collect())
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
                    let mut layers = space.layers.lock();
                    let before = layers.over_bytes();
                    layers.apply(commit);
                    self.count(before, layers.over_bytes());
                    drop(layers);
                    self.commits.fetch_add(1, Ordering::Relaxed);
                }
                drop(failed);
                done(result);
            }
            Request::Open { id, claim, reply } => {
                let result = if closed { Err(StoreError::Closed) } else { self.own(id, claim) };
                drop(reply.send(result));
            }
            Request::Seed { seeds, reply } => {
                let result = if closed { Err(StoreError::Closed) } else { self.plant(seeds) };
                drop(reply.send(result));
            }
            Request::Drop { id, reply } => {
                let result = if closed { Err(StoreError::Closed) } else { Ok(()) };
                if result.is_ok()
                    && let Some(state) = self.spaces.lock().remove(&id)
                {
                    state.epoch.fetch_add(1, Ordering::Relaxed);
                    let gone = std::mem::take(&mut *state.layers.lock());
                    self.count(gone.over_bytes(), 0);
                }
                drop(reply.send(result));
            }
            Request::Close { reply } => {
                self.closed.store(true, Ordering::Relaxed);
                // What forks lie on goes before the store that they come from.
                for state in self.spaces.lock().values() {
                    *state.layers.lock() = Layers::default();
                }
                drop(reply.send(Ok(())));
            }
        }
    }

    fn count(&self, before: u64, after: u64) {
        self.held_bytes.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
    }

    fn plant(&self, seeds: Vec<(SpaceId, Seed)>) -> Result<(), StoreError> {
        let mut spaces = self.spaces.lock();
        if let Some((id, _)) = seeds.iter().find(|(id, _)| spaces.contains_key(id)) {
            return Err(StoreError::Refused(format!("there is a space {} already", id.0).into()));
        }
        for (id, seed) in seeds {
            let layers = match seed {
                Seed::Empty => Layers::default(),
                Seed::Space(origin) => {
                    spaces.get(&origin).map(|state| state.layers.lock().clone()).unwrap_or_default()
                }
                Seed::Layers(layers) => layers,
            };
            self.count(0, layers.over_bytes());
            spaces.insert(id, Arc::new(SpaceState { layers: Mutex::new(layers), epoch: AtomicU64::new(0) }));
        }
        Ok(())
    }

    fn own(&self, id: SpaceId, claim: Claim) -> Result<(Arc<SpaceState>, Epoch), StoreError> {
        let mut spaces = self.spaces.lock();
        let state = spaces
            .entry(id)
            .or_insert_with(|| Arc::new(SpaceState { layers: Mutex::default(), epoch: AtomicU64::new(0) }));
        let newest = Epoch(state.epoch.load(Ordering::Relaxed));
        let epoch = claim.granted(newest).ok_or(StoreError::Fenced(id))?;
        state.epoch.store(epoch.0, Ordering::Relaxed);
        Ok((state.clone(), epoch))
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
        Ok(Box::new(MemorySnapshot { layers: self.state.layers.lock().clone(), shared }))
    }

    fn check_room(&self, commit: &Commit) -> Result<(), StoreError> {
        let shared = &self.lifetime.0;
        let adds = commit.changes.iter().any(|change| change.value.is_some());
        let held = shared.held_bytes.load(Ordering::Relaxed).saturating_add(commit.size_bytes() as u64);
        match adds && held > shared.held_bytes_max {
            true => Err(StoreError::Exhausted(
                format!("forks have {} MiB of their own, which is the most they may", held >> 20).into(),
            )),
            false => Ok(()),
        }
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
        SpaceStats { size_bytes_estimate: self.state.layers.lock().size_bytes() }
    }
}

struct MemorySnapshot {
    layers: Layers,
    shared: Arc<MemoryCore>,
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        self.shared.snapshots_open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Snapshot for MemorySnapshot {
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Bytes>, StoreError> {
        self.layers.get(table, key)
    }

    fn visit(&self, table: Table, range: KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.layers.visit(table, range, visit)
    }

    fn scan(&self, table: Table, range: KeyRange, direction: Direction) -> Box<dyn RowIterator> {
        self.layers.scan(table, range, direction)
    }
}
