//! A store whose truth is a log, and whose rows are read from a copy of it on this machine.
//!
//! ```text
//!  submit ──> queue ──> committer: one append for everything queued ──> log (PostgreSQL, or a directory)
//!                          │ when the log has answered
//!                          v
//!                       copy (embedded store, nothing waited for on disk) ──> answered, visible
//! ```
//!
//! - `committer` appends what all spaces have queued in one call and applies it to the copy in the same order. A commit
//!   is answered when it is in the log and in the copy; nobody reads what the log does not have.
//! - `opening` takes a space: raises its epoch in the log, brings the copy up to the log's end, or fills a new one from
//!   the checkpoint where the copy's history is not the log's.
//! - `keeper` writes checkpoints and cuts the log, one space at a time, in the background.
//! - `copy` knows how far the copy of each space is. `rows` is what entries and chunks are made of.
//!
//! When the log cannot be reached, commits fail as `Unavailable` or `OutcomeUnknown` and their owners take the space
//! again ([ADR 31](../../../../docs/adr/0031-a-store-that-fails-and-comes-back.md)); the log then shows what is there.
//!
//! Missing on purpose, for now: several processes over one log. A second one takes spaces, and the first is fenced when
//! it writes, but until then it answers reads from its copy.

mod committer;
mod copy;
mod keeper;
mod opening;
mod rows;
mod space;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use orrery_storage::{Claim, EmbeddedOptions, Fork, Queue, Space, SpaceId, Store, StoreError, StoreStats};
use parking_lot::Mutex;

use self::committer::Request;
use self::copy::Copy;
use self::keeper::Keeper;
use self::space::{ForkSpace, SpaceState};
use crate::log::{Log, LogStats};

pub struct ClusterStore {
    owner: Arc<Lifetime>,
}

/// Sizes of the store over a log. Tests make them small.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    pub copy: EmbeddedOptions,
    /// A checkpoint is written when the log since the last one is larger than this and than that one was.
    pub checkpoint_bytes_min: u64,
    /// Size of a chunk of a checkpoint.
    pub chunk_bytes: usize,
}

impl Default for ClusterOptions {
    fn default() -> ClusterOptions {
        ClusterOptions {
            copy: EmbeddedOptions::default(),
            checkpoint_bytes_min: 64 << 20,
            chunk_bytes: 1 << 20,
        }
    }
}

/// Figures about log and copy, for metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterStats {
    pub log: LogStats,
    pub checkpoints: u64,
    pub checkpoint_bytes: u64,
    /// Spaces whose copy was filled from checkpoint and log.
    pub restores: u64,
    /// Entries that were read from the log to bring copies up to its end.
    pub replayed_entries: u64,
}

struct Core {
    log: Arc<dyn Log>,
    copy: Copy,
    /// Who this process is to the log.
    name: String,
    options: ClusterOptions,
    queue: Queue<Request>,
    spaces: Mutex<HashMap<SpaceId, Arc<SpaceState>>>,
    /// Forks, and where they are in the copy. They end with the process, there as here.
    forks: Mutex<HashMap<SpaceId, SpaceId>>,
    keeper: Keeper,
    closed: AtomicBool,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    commits: AtomicU64,
    groups: AtomicU64,
    checkpoints: AtomicU64,
    checkpoint_bytes: AtomicU64,
    restores: AtomicU64,
    replayed_entries: AtomicU64,
}

/// Held by the store and its spaces; ends the threads when the last of them is gone.
struct Lifetime {
    core: Arc<Core>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Lifetime {
    fn stop(&self) {
        self.core.keeper.end();
        self.core.queue.end();
        let threads = std::mem::take(&mut *self.threads.lock());
        let me = std::thread::current().id();
        // The last handle may go on one of these threads, in a callback.
        threads
            .into_iter()
            .filter(|thread| thread.thread().id() != me)
            .for_each(|thread| drop(thread.join()));
    }
}

impl Drop for Lifetime {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ClusterStore {
    /// A store over a log, with its copy in a directory. `name` is what other processes see as the owner of spaces.
    pub fn open(
        log: Arc<dyn Log>,
        directory: impl AsRef<Path>,
        name: &str,
        options: ClusterOptions,
    ) -> Result<ClusterStore, StoreError> {
        let copy = Copy::open(directory.as_ref(), options.copy.clone(), log.identity())?;
        let core = Arc::new(Core {
            // No other process, nor this one after a restart, has the same.
            name: format!("{name} {}", &crate::log::new_identity()?[..8]),
            log,
            copy,
            options,
            queue: Queue::new(),
            spaces: Mutex::default(),
            forks: Mutex::default(),
            keeper: Keeper::default(),
            closed: AtomicBool::new(false),
            counters: Counters::default(),
        });
        let committer = core.clone();
        let keeper = core.clone();
        let threads = vec![
            spawn("cluster-committer", move || committer.run_committer())?,
            spawn("cluster-keeper", move || keeper.run_keeper())?,
        ];
        Ok(ClusterStore { owner: Arc::new(Lifetime { core, threads: Mutex::new(threads) }) })
    }

    pub fn cluster_stats(&self) -> ClusterStats {
        let Core { log, counters, .. } = &*self.owner.core;
        ClusterStats {
            log: log.stats(),
            checkpoints: counters.checkpoints.load(Ordering::Relaxed),
            checkpoint_bytes: counters.checkpoint_bytes.load(Ordering::Relaxed),
            restores: counters.restores.load(Ordering::Relaxed),
            replayed_entries: counters.replayed_entries.load(Ordering::Relaxed),
        }
    }

    /// Writes a checkpoint of a space now, and cuts its log.
    pub fn checkpoint(&self, id: SpaceId) -> Result<(), StoreError> {
        let state = self.owner.core.spaces.lock().get(&id).cloned();
        match state {
            Some(state) => self.owner.core.checkpoint(&state),
            None => Err(StoreError::Refused(format!("space {} is not open", id.0).into())),
        }
    }
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(run);
    thread.map_err(|error| StoreError::Exhausted(format!("no thread: {error}").into()))
}

impl Core {
    fn refuse_closed(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Waits until everything that was submitted before has been appended and given to the copy, or has failed.
    fn drain(&self) -> Result<(), StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.queue.push_control(Request::Drained(sender));
        receiver.recv().map_err(|_| StoreError::Closed)
    }
}

impl Store for ClusterStore {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        let core = &self.owner.core;
        core.refuse_closed()?;
        let fork = core.forks.lock().get(&id).copied();
        match fork {
            Some(local) => Ok(Arc::new(ForkSpace { id, space: core.copy.store.claim_space(local, claim)? })),
            None => self.owner.open(id, claim),
        }
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        let core = &self.owner.core;
        core.refuse_closed()?;
        if let Some(local) = core.forks.lock().remove(&id) {
            return core.copy.store.drop_space(local);
        }
        core.drop_space(id)
    }

    fn fork_spaces(&self, forks: &[Fork]) -> Result<(), StoreError> {
        let core = &self.owner.core;
        core.refuse_closed()?;
        let mut known = core.forks.lock();
        let mut local = Vec::with_capacity(forks.len());
        for fork in forks {
            if known.contains_key(&fork.space) || core.spaces.lock().contains_key(&fork.space) {
                return Err(StoreError::Refused(format!("there is a space {} already", fork.space.0).into()));
            }
            let origin = match fork.origin {
                None => None,
                Some(origin) => Some(match known.get(&origin) {
                    Some(local) => *local,
                    None => self.owner.local_of(origin)?,
                }),
            };
            local.push(Fork { origin, space: core.copy.new_number() });
        }
        core.copy.store.fork_spaces(&local)?;
        known.extend(forks.iter().zip(local).map(|(fork, local)| (fork.space, local.space)));
        Ok(())
    }

    fn blocking(&self) -> bool {
        true
    }

    fn stats(&self) -> StoreStats {
        let core = &self.owner.core;
        StoreStats {
            commits: core.counters.commits.load(Ordering::Relaxed),
            groups: core.counters.groups.load(Ordering::Relaxed),
            ..core.copy.store.stats()
        }
    }

    fn close(&self) -> Result<(), StoreError> {
        let core = &self.owner.core;
        if core.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // What was submitted before is answered first.
        let _ = core.drain();
        self.owner.stop();
        core.log.close();
        core.copy.store.close()
    }
}

#[cfg(test)]
mod tests;
