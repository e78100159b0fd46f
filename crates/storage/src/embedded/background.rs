//! Work beside the committer: flushing sealed memtables, compaction, and tidying up and merging when the store has
//! become idle.
//!
//! One flusher and two compactors (the index has one to itself, as it has most of the rows). Each sleeps until there is
//! something to do. Whatever they finish raises `generation`, so that the committer, when it waits because the trees
//! have fallen behind, looks again; and wakes the committer to publish once more, because readers find the new version
//! of a tree only through a newer sequence number.
//!
//! An error or panic in any of them stops the store's writes: the tree may be in a state that nobody has thought of.
//! Damaged tables are not such an error (`damage`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::committer::Request;
use super::core::{Core, spawn};
use super::garbage;
use super::setback::{self, Step};
use super::trim;
use crate::store::{StoreError, TABLES, Table};

/// The trees of each compactor.
const COMPACTORS: [&[Table]; 2] = [&[Table::Index], &[Table::Items, Table::Feed]];
/// After a flush or compaction, and while commits go on, the store looks this often whether it has become idle.
const TIDY_INTERVAL: Duration = Duration::from_secs(1);
/// ... and this often while open snapshots hold old versions.
const TIDY_INTERVAL_HELD: Duration = Duration::from_secs(5);
/// A tree of at most this size is merged at once when the store has become idle; a larger one, of which much would be
/// written again for little, when it stays idle.
const MERGED_AT_ONCE_BYTES: u64 = 128 * 1024 * 1024;
/// How often memtables are sealed on a full disk.
const SEAL_INTERVAL: Duration = Duration::from_secs(3);
/// A compaction that failed for lack of room takes, while it is tried again, room that others need.
const COMPACTION_PATIENCE: u32 = 5;
const MERGED_AFTER: Duration = Duration::from_secs(30);

pub(super) struct Background {
    state: Mutex<PendingWork>,
    flush: Condvar,
    compact: Condvar,
    progress: Condvar,
    generation: AtomicU64,
}

#[derive(Default)]
struct PendingWork {
    flush: bool,
    compact: [bool; COMPACTORS.len()],
    /// Merge also what could wait.
    thorough: [bool; TABLES.len()],
    /// Log segments that are no longer needed, oldest first.
    remove: Vec<String>,
    tidy_at: Option<Instant>,
    stop: bool,
}

impl Background {
    pub(super) fn new() -> Background {
        // Compactors look once: the last process may have ended before it could.
        // And the flusher, for the reserve.
        let state = PendingWork { flush: true, compact: [true; COMPACTORS.len()], ..PendingWork::default() };
        Background {
            state: Mutex::new(state),
            flush: Condvar::new(),
            compact: Condvar::new(),
            progress: Condvar::new(),
            generation: AtomicU64::new(0),
        }
    }

    pub(super) fn request_flush(&self) {
        self.state.lock().flush = true;
        self.flush.notify_one();
    }

    /// A reader has met damage: the compactors look where it is.
    pub(super) fn request_look(&self) {
        self.state.lock().compact = [true; COMPACTORS.len()];
        self.compact.notify_all();
    }

    /// The log has become worth trimming: looks from now on whether the store is idle.
    pub(super) fn look_later(&self) {
        self.state.lock().tidy_at.get_or_insert(Instant::now() + TIDY_INTERVAL);
        self.flush.notify_one();
    }

    pub(super) fn remove_segments(&self, names: Vec<String>) {
        self.state.lock().remove.extend(names);
        self.flush.notify_one();
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns when something was finished since `generation`, or the time is over.
    pub(super) fn wait_for_progress(&self, generation: u64, time_max: Duration) {
        let mut state = self.state.lock();
        if self.generation() == generation && !state.stop {
            self.progress.wait_for(&mut state, time_max);
        }
    }

    pub(super) fn wake_all(&self) {
        let _state = self.state.lock();
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.flush.notify_all();
        self.compact.notify_all();
        self.progress.notify_all();
    }

    pub(super) fn stop(&self) {
        self.state.lock().stop = true;
        self.wake_all();
    }

    /// A tree has a new version.
    pub(super) fn finished(&self, core: &Core, compact: bool) {
        let mut state = self.state.lock();
        if compact {
            state.compact = [true; COMPACTORS.len()];
            self.compact.notify_all();
        }
        state.tidy_at = Some(Instant::now() + TIDY_INTERVAL);
        self.flush.notify_one();
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.progress.notify_all();
        drop(state);
        core.queue.wake();
    }
}

pub(super) fn start(core: &Arc<Core>) -> Result<Vec<JoinHandle<()>>, StoreError> {
    let mut threads = Vec::new();
    let flusher = core.clone();
    threads.push(spawn("store-flusher", move || run_flusher(&flusher))?);
    for index in 0..COMPACTORS.len() {
        let core = core.clone();
        threads.push(spawn("store-compactor", move || run_compactor(&core, index))?);
    }
    Ok(threads)
}

fn run_flusher(core: &Core) {
    let background = &core.background;
    let mut quiet = Quiet::default();
    let mut failures = 0;
    let mut sealed = None;
    loop {
        let mut state = background.state.lock();
        let tidy = loop {
            if state.stop {
                return remove_segments(core, std::mem::take(&mut state.remove));
            }
            let due = state.tidy_at.is_some_and(|time| time <= Instant::now());
            if state.flush || !state.remove.is_empty() || due {
                break due;
            }
            match state.tidy_at {
                Some(time) => drop(background.flush.wait_until(&mut state, time)),
                None => background.flush.wait(&mut state),
            }
        };
        let flush = std::mem::take(&mut state.flush);
        let remove = std::mem::take(&mut state.remove);
        if tidy {
            state.tidy_at = None;
        }
        drop(state);

        remove_segments(core, remove);
        if core.stopped().is_some() {
            continue;
        }
        let result = if flush { flush_all(core) } else { Ok(()) };
        let result = result.and_then(|()| if tidy { tidy_up(core, &mut quiet) } else { Ok(()) });
        match result {
            Ok(()) => {
                failures = 0;
                core.setback.overcome(Step::Flush);
            }
            Err(error) => {
                failures += 1;
                setback::after(core, Step::Flush, &TABLES, &error);
                let mut state = background.state.lock();
                state.flush = true;
                wait(&background.flush, &mut state, setback::pause(failures));
            }
        }
        core.reserve.fill();
        if core.reserve.is_short() {
            // Looks again whether there is room.
            background.state.lock().tidy_at.get_or_insert(Instant::now() + TIDY_INTERVAL);
            seal_deletions(core, &mut sealed);
        }
    }
}

/// On a full disk, room comes back when deletions are in tables and those are merged with what they delete. They are
/// so small that a memtable would not be full of them for long.
fn seal_deletions(core: &Core, sealed: &mut Option<(Instant, u64)>) {
    let commits = core.counters.commits.load(Ordering::Relaxed);
    if sealed.is_none_or(|(time, at)| at != commits && time.elapsed() >= SEAL_INTERVAL) {
        *sealed = Some((Instant::now(), commits));
        // Nobody waits for the answer.
        let (reply, _) = std::sync::mpsc::sync_channel(1);
        core.queue.push_control(Request::Seal { reply });
    }
}

/// Waits before another try, unless the store ends.
fn wait(condition: &Condvar, state: &mut MutexGuard<'_, PendingWork>, time: Duration) {
    let until = Instant::now() + time;
    while !state.stop && !condition.wait_until(state, until).timed_out() {}
}

fn flush_all(core: &Core) -> Result<(), StoreError> {
    for table in TABLES {
        if core.trees.flush(table, core.snapshots.watermark())? {
            core.counters.flushes.fetch_add(1, Ordering::Relaxed);
            core.background.finished(core, true);
        }
    }
    Ok(())
}

/// Names go oldest first, so that a crash in between leaves no hole in the log.
fn remove_segments(core: &Core, names: Vec<String>) {
    for name in names {
        // Not needed any more either way: recovery replays only what the tables do not have.
        if let Err(error) = core.log_directory.remove(&name) {
            tracing::warn!(segment = name, %error, "could not remove a log segment");
            return;
        }
    }
}

/// What the last look found.
#[derive(Default)]
struct Quiet {
    commits: u64,
    since: Option<Instant>,
    /// The log is being trimmed.
    trimming: bool,
}

/// Releases old versions of the trees; once nothing is left of them and no commits come, gives freed memory back to
/// the operating system.
fn tidy_up(core: &Core, quiet: &mut Quiet) -> Result<(), StoreError> {
    let mut held = false;
    for table in TABLES {
        held |= core.trees.release_versions(table, core.snapshots.watermark())?;
    }
    let commits = core.counters.commits.load(Ordering::Relaxed);
    let idle = std::mem::replace(&mut quiet.commits, commits) == commits;
    if idle {
        let since = *quiet.since.get_or_insert_with(Instant::now);
        held |= merge_runs(core, since.elapsed());
        held |= garbage::trim_log(core, since.elapsed(), &mut quiet.trimming);
        trim::give_memory_back();
    } else {
        (quiet.since, quiet.trimming) = (None, false);
    }
    if held || !idle {
        let interval = if idle { TIDY_INTERVAL_HELD } else { TIDY_INTERVAL };
        core.background.state.lock().tidy_at.get_or_insert(Instant::now() + interval);
    }
    Ok(())
}

/// After a burst of writes the first level may hold nearly as many runs as it takes to start a compaction, and every
/// scan reads all of them, with all the versions that they hold of one item. A store that has nothing else to do
/// merges them. True when some are left for later.
fn merge_runs(core: &Core, idle: Duration) -> bool {
    let bytes_max = if idle < MERGED_AFTER { MERGED_AT_ONCE_BYTES } else { u64::MAX };
    let mut left = false;
    let mut state = core.background.state.lock();
    for (index, tables) in COMPACTORS.iter().enumerate() {
        for table in tables.iter().filter(|table| worth_merging(core, **table)) {
            // What nobody can read any more takes room until it goes, so it goes soon.
            if core.trees.table_bytes(*table) > bytes_max && !core.trees.has_garbage(*table) {
                left = true;
                continue;
            }
            (state.compact[index], state.thorough[*table as usize]) = (true, true);
            core.background.compact.notify_all();
        }
    }
    left
}

fn worth_merging(core: &Core, table: Table) -> bool {
    core.trees.has_runs(table) || core.trees.has_garbage(table)
}

fn run_compactor(core: &Core, index: usize) {
    let background = &core.background;
    let mut failures = [0; TABLES.len()];
    loop {
        let mut state = background.state.lock();
        while !state.compact[index] && !state.stop {
            background.compact.wait(&mut state);
        }
        if state.stop {
            return;
        }
        state.compact[index] = false;
        let thorough = state.thorough;
        COMPACTORS[index].iter().for_each(|table| state.thorough[*table as usize] = false);
        drop(state);
        for table in COMPACTORS[index] {
            let compacted = compact(core, *table, false);
            let due = || thorough[*table as usize] && core.trees.has_runs(*table);
            let compacted = compacted.and_then(|()| if due() { compact(core, *table, true) } else { Ok(()) });
            let collect = || thorough[*table as usize] && core.trees.has_garbage(*table);
            let compacted =
                compacted.and_then(|()| if collect() { collect_garbage(core, *table) } else { Ok(()) });
            let failures = &mut failures[*table as usize];
            match compacted {
                Ok(()) if *failures == 0 => {}
                Ok(()) => {
                    *failures = 0;
                    core.setback.overcome(Step::Compaction);
                }
                Err(error) => {
                    *failures += 1;
                    setback::after(core, Step::Compaction, &[*table], &error);
                    let mut state = background.state.lock();
                    state.compact[index] = true;
                    wait(&background.compact, &mut state, setback::pause(*failures) * COMPACTION_PATIENCE);
                }
            }
        }
    }
}

fn compact(core: &Core, table: Table, thorough: bool) -> Result<(), StoreError> {
    while core.stopped().is_none() && !core.background.state.lock().stop {
        if !core.trees.compact(table, core.snapshots.watermark(), thorough)? {
            return Ok(());
        }
        core.counters.compactions.fetch_add(1, Ordering::Relaxed);
        core.background.finished(core, false);
    }
    Ok(())
}

fn collect_garbage(core: &Core, table: Table) -> Result<(), StoreError> {
    core.trees.collect_garbage(table, core.snapshots.watermark())?;
    core.counters.compactions.fetch_add(1, Ordering::Relaxed);
    core.background.finished(core, false);
    Ok(())
}
