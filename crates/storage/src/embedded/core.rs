//! What all threads of an embedded store share, and the order in which it starts and ends.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::EmbeddedOptions;
use super::background::{self, Background};
use super::cache::ItemCache;
use super::committer::{Committer, Reply, Request, WAIT_MAX};
use super::directory::{Directory, Found};
use super::files::LogDirectory;
use super::log::{Log, segment_name};
use super::log_end::{EndFile, LogEnd};
use super::reserve::Reserve;
use super::setback::{Setback, Step};
use super::snapshots::Snapshots;
use super::trees::{self, Trees};
use super::{drops, recovery};
use crate::queue::Queue;
use crate::store::{SpaceId, StoreError, StoreStats, TABLES, Table};

/// How long a flush that is tried again and again is waited for.
const HINDERED_MAX: Duration = Duration::from_secs(5);

pub(super) struct Core {
    pub(super) options: EmbeddedOptions,
    pub(super) log_directory: Arc<dyn LogDirectory>,
    pub(super) trees: Trees,
    pub(super) snapshots: Snapshots,
    pub(super) items: ItemCache,
    pub(super) queue: Queue<Request>,
    pub(super) background: Background,
    pub(super) counters: Counters,
    pub(super) reserve: Arc<Reserve>,
    pub(super) setback: Setback,
    pub(super) dropping: Mutex<Dropping>,
    /// Told when a drop has finished, and when there is no point in waiting for it.
    pub(super) drop_finished: Condvar,
    pub(super) closed: AtomicBool,
    /// Why writes have stopped, once they have.
    stopped: OnceLock<Arc<str>>,
    directory: Directory,
}

#[derive(Default)]
pub(super) struct Counters {
    pub(super) commits: AtomicU64,
    pub(super) groups: AtomicU64,
    pub(super) syncs: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) compactions: AtomicU64,
    pub(super) log_bytes: AtomicU64,
}

/// Dropped spaces whose rows are not all removed.
#[derive(Default)]
pub(super) struct Dropping {
    pub(super) spaces: BTreeSet<SpaceId>,
    pub(super) thread: Option<JoinHandle<()>>,
}

/// Held by the store and its spaces; ends the threads when the last of them is gone.
pub(super) struct Owner {
    pub(super) core: Arc<Core>,
    committer: Mutex<Option<JoinHandle<()>>>,
    background: Mutex<Vec<JoinHandle<()>>>,
}

impl Core {
    pub(super) fn start(
        directory: Directory,
        found: Found,
        options: EmbeddedOptions,
        log_directory: Arc<dyn LogDirectory>,
    ) -> Result<Arc<Owner>, StoreError> {
        let known = LogEnd::read(&directory.path)?;
        // The trees first: a store that is refused because of them keeps its log as it is.
        let trees = Trees::open(&directory, &options)?;
        let recovered = recovery::check(&*log_directory, known).map_err(|error| directory.advise(error))?;
        let persisted = trees.persisted();
        if !known.is_some_and(|known| known.takes_anything()) {
            recovered.check_against(persisted).map_err(|error| directory.advise(error))?;
        }
        let mut replayed = 0u64;
        let mut first_unflushed = [None; TABLES.len()];
        let active = trees.active();
        recovered.replay(&log_directory, persisted, |space, seqno, commit| {
            for change in &commit.changes {
                first_unflushed[change.table as usize].get_or_insert(seqno);
            }
            replayed += commit.changes.len() as u64;
            trees::apply(&active, space, seqno, commit.changes);
        })?;
        // One above everything that was ever numbered and may still be somewhere. The tables alone would not do:
        // their highest number falls when compaction forgets a deletion.
        let highest = persisted.into_iter().fold(recovered.last_seqno, u64::max);
        let next = highest + 1;
        trees.counter.set(next);
        if replayed > 0 {
            tracing::info!(rows = replayed, "replayed the log");
        }

        let reserve = Arc::new(Reserve::open(&directory.path, options.reserve_bytes_max));
        let log = EndFile::open(&directory.path)
            .and_then(|end_file| {
                let (log_directory, segments) = (log_directory.clone(), recovered.segments);
                Log::start(log_directory, end_file, reserve.clone(), segments, next, options.segment_bytes)
            })
            .map_err(|error| StoreError::Io(format!("log: {error}").into()))?;
        for base in recovered.obsolete.iter().filter(|base| **base != next) {
            // Found empty again next time, if it stays.
            let _ = log_directory.remove(&segment_name(*base));
        }
        if found == Found::Empty {
            directory.finish_creation()?;
        }
        let core = Arc::new(Core {
            snapshots: Snapshots::new(next, options.snapshot_age_max),
            items: ItemCache::new(options.cache_bytes / 2),
            options,
            log_directory,
            trees,
            queue: Queue::new(),
            background: Background::new(),
            counters: Counters::default(),
            reserve,
            setback: Setback::default(),
            dropping: Mutex::new(Dropping {
                spaces: recovered.unfinished_drops.keys().copied().collect(),
                thread: None,
            }),
            drop_finished: Condvar::new(),
            closed: AtomicBool::new(false),
            stopped: OnceLock::new(),
            directory,
        });
        let committer = Committer::new(core.clone(), log, first_unflushed, recovered.unfinished_drops)?;
        let background = background::start(&core)?;
        let committer = spawn("store-committer", move || committer.run())?;
        drops::resume(&core);
        Ok(Arc::new(Owner {
            core,
            committer: Mutex::new(Some(committer)),
            background: Mutex::new(background),
        }))
    }

    /// Sends a request that has an answer, and waits for it.
    pub(super) fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, StoreError> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.queue.push_control(request(sender));
        receiver.recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Stops all writes for good. Whatever has failed may have left memory and disk different; only a restart, which
    /// believes the disk alone, makes them the same again.
    pub(super) fn stop_writes(&self, reason: &str) {
        if self.stopped.set(reason.into()).is_ok() {
            tracing::error!(reason, "the store has stopped accepting writes");
        }
        self.background.wake_all();
        self.queue.wake();
        let _dropping = self.dropping.lock();
        self.drop_finished.notify_all();
    }

    pub(super) fn stopped(&self) -> Option<StoreError> {
        self.stopped.get().map(|reason| StoreError::WritesStopped(reason.clone()))
    }

    /// A read has failed. What is damaged is found out beside the readers, and said once.
    #[cold]
    pub(super) fn read_failed(&self, table: Table, error: &StoreError) {
        let damaged = matches!(error, StoreError::Damaged(_) | StoreError::Io(_));
        if damaged && self.trees.damage[table as usize].suspect() {
            self.background.request_look();
        }
    }

    /// Lets readers see the newest state, and new snapshots the newest version of the trees.
    pub(super) fn publish(&self) {
        self.snapshots.publish(self.trees.counter.get());
    }

    pub(super) fn wait_for_drop(&self, id: SpaceId) -> Result<(), StoreError> {
        let mut dropping = self.dropping.lock();
        while dropping.spaces.contains(&id) {
            if let Some(error) = self.stopped() {
                return Err(error);
            }
            if self.closed.load(Ordering::Acquire) {
                return Err(StoreError::Closed);
            }
            self.drop_finished.wait(&mut dropping);
        }
        Ok(())
    }

    /// Returns when no sealed memtable is left, or when it has not been possible to flush one for a while.
    pub(super) fn wait_for_flush(&self) -> Result<(), StoreError> {
        let mut hindered_since = None;
        loop {
            let generation = self.background.generation();
            if let Some(error) = self.stopped() {
                return Err(error);
            }
            if self.trees.sealed_memtables() == 0 {
                return Ok(());
            }
            match self.setback.reason(Step::Flush) {
                None => hindered_since = None,
                Some(reason) => {
                    if hindered_since.get_or_insert_with(Instant::now).elapsed() > HINDERED_MAX {
                        return Err(StoreError::Exhausted(reason));
                    }
                }
            }
            self.background.wait_for_progress(generation, WAIT_MAX);
        }
    }

    pub(super) fn stats(&self) -> StoreStats {
        let counters = &self.counters;
        let cached = self.items.stats();
        let log_bytes = counters.log_bytes.load(Ordering::Relaxed);
        StoreStats {
            disk_bytes: self.trees.disk_bytes() + log_bytes,
            log_bytes,
            commits: counters.commits.load(Ordering::Relaxed),
            groups: counters.groups.load(Ordering::Relaxed),
            syncs: counters.syncs.load(Ordering::Relaxed),
            flushes: counters.flushes.load(Ordering::Relaxed),
            compactions: counters.compactions.load(Ordering::Relaxed),
            snapshots_open: self.snapshots.count(),
            fork_bytes: 0,
            item_cache_hits: cached.hits,
            item_cache_misses: cached.misses,
            item_cache_bytes: cached.size_bytes,
            damaged_tables: self.trees.damaged_tables(),
            writes_stopped: self.stopped.get().is_some(),
            disk_full: self.reserve.is_short(),
        }
    }
}

impl Owner {
    /// Ends flushing, compaction and drops, and lets another process have the directory. The committer goes on
    /// answering that the store is closed until every handle is gone.
    pub(super) fn stop_background(&self) {
        self.core.background.stop();
        let mut threads = std::mem::take(&mut *self.background.lock());
        let mut dropping = self.core.dropping.lock();
        self.core.drop_finished.notify_all();
        threads.extend(dropping.thread.take());
        drop(dropping);
        for thread in threads {
            join(thread);
        }
        self.core.unlock();
    }
}

impl Core {
    fn unlock(&self) {
        self.directory.unlock();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The committer first: what is queued is still committed and answered.
        self.core.queue.end();
        if let Some(thread) = self.committer.lock().take() {
            join(thread);
        }
        self.core.closed.store(true, Ordering::Release);
        self.stop_background();
    }
}

fn join(thread: JoinHandle<()>) {
    // The last handle may be dropped by a callback, on the committer's own thread.
    if thread.thread().id() != std::thread::current().id() {
        let _ = thread.join();
    }
}

pub(super) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map_err(|error| StoreError::Io(format!("cannot start a thread: {error}").into()))
}
