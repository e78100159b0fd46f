//! The committer: the one thread that writes.
//!
//! For each group: check and number the commits, append them as one frame, sync, apply to the memtables, publish,
//! answer; then, between groups, rotate what is full, end a full segment, release old ones, and wait when the trees
//! have fallen behind. The wait comes after the answers, and on a condition variable.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use lsm_tree::{AbstractTree, Memtable};

use super::cache::kept_under;
use super::core::Core;
use super::frame::{FrameBuilder, Kind};
use super::garbage::IDLE_LOG_BYTES;
use super::log::Log;
use super::setback::{self, Step, is_passing};
use super::{drops, trees};
use crate::queue::Gather;
use crate::store::{Change, Claim, Commit, Done, Durability, Epoch, SpaceId, StoreError, TABLES, Table};

/// Sorted runs in the first level of a tree from which each group is delayed.
const L0_RUNS_DELAY: usize = 12;
/// ... and at which commits wait.
const L0_RUNS_MAX: usize = 24;
const DELAY_STEP: Duration = Duration::from_micros(100);
/// Memtables of a tree that wait for their flush at which commits wait.
const SEALED_MEMTABLES_MAX: usize = 3;
/// The longest that a group waits at a time for writers that were answered a moment ago and are expected back. Also
/// bounded by what the last flush took: whoever came a moment too late would have to wait that long for the next.
const GATHER_MAX: Duration = Duration::from_millis(2);
/// The longest single wait; a lost wake-up then costs a moment and not the store.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(500);

pub(super) type Reply<T> = std::sync::mpsc::SyncSender<Result<T, StoreError>>;

pub(super) enum Request {
    Commit {
        handle: Arc<Handle>,
        commit: Commit,
        durability: Durability,
        done: Done,
    },
    /// Removes rows of a dropped space, which has no owner.
    Remove {
        id: SpaceId,
        commit: Commit,
        done: Done,
    },
    /// Answers `None` while the space's rows are still being removed.
    Open {
        id: SpaceId,
        claim: Claim,
        reply: Reply<Option<(Arc<SpaceState>, Epoch)>>,
    },
    Drop {
        id: SpaceId,
        reply: Reply<()>,
    },
    DropFinished {
        id: SpaceId,
        reply: Reply<()>,
    },
    /// The store is idle: what is in memory goes to tables, and the log ends where it is.
    Trim,
    /// Seals every memtable.
    Seal {
        reply: Reply<()>,
    },
    Close {
        reply: Reply<()>,
    },
}

/// What all handles of a space share.
pub(super) struct SpaceState {
    /// Tells the space from an earlier one of the same number that was dropped.
    pub(super) generation: u64,
    /// The number of the present owner. Written by the committer only.
    epoch: AtomicU64,
    pub(super) dropped: AtomicBool,
}

/// One owner's handle.
pub(super) struct Handle {
    pub(super) id: SpaceId,
    pub(super) epoch: Epoch,
    pub(super) state: Arc<SpaceState>,
    /// Its first failure: later commits may build on the failed one, so they fail with it.
    pub(super) failed: OnceLock<StoreError>,
}

pub(super) struct Committer {
    core: Arc<Core>,
    log: Log,
    frame: FrameBuilder,
    /// Stay the same until this thread rotates them.
    active: [Arc<Memtable>; TABLES.len()],
    unflushed: [Unflushed; TABLES.len()],
    spaces: HashMap<SpaceId, Arc<SpaceState>>,
    generations: u64,
    /// Drops whose rows are not all removed, with their seqnos.
    pending_drops: BTreeMap<SpaceId, u64>,
    /// State of the background at which segments were last released ...
    released_at: Option<u64>,
    /// ... and at which the trees were last found to keep up.
    unhurried_at: Option<u64>,
    /// The background has been asked to look whether the store is idle.
    looked_for_idleness: bool,
    closed: bool,
    /// A segment could not be started: when it is tried again, and after how many failures.
    roll_again: Option<(Instant, u32)>,
}

/// The first seqnos of a tree's memtables: what the log must still hold.
#[derive(Default)]
struct Unflushed {
    active: Option<u64>,
    /// Oldest first.
    sealed: VecDeque<u64>,
}

/// A group while it is being committed.
#[derive(Default)]
struct Group {
    rows: Vec<Numbered>,
    last_seqno: u64,
    sync: bool,
    answers: Vec<Answer>,
    drops: Vec<SpaceId>,
    seal: Vec<Reply<()>>,
    trim: bool,
    close: Option<Reply<()>>,
}

/// A commit with its number.
struct Numbered {
    space: SpaceId,
    /// `None` for the removal of a dropped space, of which nothing is cached.
    generation: Option<u64>,
    seqno: u64,
    changes: Vec<Change>,
}

enum Answer {
    /// Succeeds when the group does.
    Done(Done),
    Failed(Done, StoreError),
    Reply(Reply<()>),
    Opened(Reply<Option<(Arc<SpaceState>, Epoch)>>, Option<(Arc<SpaceState>, Epoch)>),
    Closed(Reply<Option<(Arc<SpaceState>, Epoch)>>),
}

impl Committer {
    pub(super) fn new(
        core: Arc<Core>,
        log: Log,
        first_unflushed: [Option<u64>; TABLES.len()],
        pending_drops: HashMap<SpaceId, u64>,
    ) -> Result<Committer, StoreError> {
        let mut committer = Committer {
            active: core.trees.active(),
            core,
            log,
            frame: FrameBuilder::new(),
            unflushed: first_unflushed.map(|active| Unflushed { active, sealed: VecDeque::new() }),
            spaces: HashMap::new(),
            generations: 0,
            pending_drops: pending_drops.into_iter().collect(),
            released_at: None,
            unhurried_at: None,
            looked_for_idleness: false,
            closed: false,
            roll_again: None,
        };
        committer.log_pending_drops()?;
        committer.count_log();
        Ok(committer)
    }

    pub(super) fn run(mut self) {
        // A recovered memtable may already be full.
        let _ = self.guarded(|committer| {
            committer.settle();
            Ok(())
        });
        let mut requests = Vec::new();
        let mut gather = Gather::default();
        let mut before = 0;
        while self.core.queue.take(&mut requests, gather) {
            let entries = requests.len();
            let flushed_in = self.serve(&mut requests);
            // Writers that share a flush come back together, except the one that was first and made the flush begin
            // without the others. Waiting for as many as last time makes one flush out of those two.
            gather = Gather {
                entries: if flushed_in.is_zero() { 0 } else { entries.max(before) },
                wait: GATHER_MAX.min(flushed_in),
            };
            before = entries;
        }
        // Every handle is gone without a close. What was answered as relaxed may as well survive.
        if self.core.stopped().is_none() && !self.closed {
            let _ = self.log.sync();
        }
    }

    /// Commits a group. Returns how long its flush took: zero when it needed none.
    fn serve(&mut self, requests: &mut Vec<Request>) -> Duration {
        let mut group = Group::default();
        self.frame.clear();
        for request in requests.drain(..) {
            self.prepare(request, &mut group);
        }
        let commits = group.rows.len() as u64;
        // The group's answers stay outside, so that even a panic is answered.
        let started = Instant::now();
        let result = self.guarded(|committer| committer.write(&mut group));
        let flushed_in = if group.sync { started.elapsed() } else { Duration::ZERO };
        if result.is_ok() && !self.frame.is_empty() {
            self.core.counters.commits.fetch_add(commits, Ordering::Relaxed);
            self.core.counters.groups.fetch_add(1, Ordering::Relaxed);
        }
        if result.is_ok() && !group.drops.is_empty() {
            drops::resume(&self.core);
        }
        self.core.publish();
        for answer in group.answers {
            answer.send(&result);
        }
        let _ = self.guarded(|committer| {
            committer.settle();
            Ok(())
        });
        if group.trim {
            let _ = self.guarded(Committer::trim);
        }
        for reply in group.seal {
            let sealed =
                self.guarded(|committer| TABLES.into_iter().try_for_each(|table| committer.rotate(table)));
            let _ = reply.send(sealed);
        }
        if let Some(reply) = group.close {
            let result = self.guarded(Committer::close);
            self.core.closed.store(true, Ordering::Release);
            let _ = reply.send(result);
        }
        flushed_in
    }

    /// A panic stops writes instead of ending the thread that must answer them.
    fn guarded(
        &mut self,
        step: impl FnOnce(&mut Committer) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match catch_unwind(AssertUnwindSafe(|| step(self))) {
            Ok(result) => result,
            Err(_) => Err(self.stop("an internal check failed in the committer")),
        }
    }

    fn prepare(&mut self, request: Request, group: &mut Group) {
        match request {
            Request::Commit { handle, commit, durability, done } => {
                if let Some(error) = self.refusal(&handle, &commit) {
                    let _ = handle.failed.set(error.clone());
                    return group.answers.push(Answer::Failed(done, error));
                }
                let generation = Some(handle.state.generation);
                self.number(handle.id, generation, commit, durability == Durability::Strict, group);
                group.answers.push(Answer::Done(done));
            }
            Request::Remove { id, commit, done } => {
                if let Some(error) = self.stopped() {
                    return group.answers.push(Answer::Failed(done, error));
                }
                self.number(id, None, commit, false, group);
                group.answers.push(Answer::Done(done));
            }
            Request::Open { id, claim, reply } => {
                if self.closed {
                    return group.answers.push(Answer::Closed(reply));
                }
                if self.pending_drops.contains_key(&id) {
                    return group.answers.push(Answer::Opened(reply, None));
                }
                let state = self.spaces.entry(id).or_insert_with(|| {
                    self.generations += 1;
                    Arc::new(SpaceState {
                        generation: self.generations,
                        epoch: AtomicU64::new(0),
                        dropped: AtomicBool::new(false),
                    })
                });
                let Some(epoch) = claim.granted(Epoch(state.epoch.load(Ordering::Relaxed))) else {
                    return drop(reply.send(Err(StoreError::Fenced(id))));
                };
                state.epoch.store(epoch.0, Ordering::Relaxed);
                group.answers.push(Answer::Opened(reply, Some((state.clone(), epoch))));
            }
            Request::Drop { id, reply } => {
                if let Some(error) = self.stopped() {
                    return drop(reply.send(Err(error)));
                }
                let seqno = self.mark(Kind::Drop, id, group);
                group.sync = true;
                // Fenced from here on, in this group already.
                if let Some(state) = self.spaces.get(&id) {
                    state.epoch.fetch_add(1, Ordering::Relaxed);
                }
                self.pending_drops.insert(id, seqno);
                group.drops.push(id);
                group.answers.push(Answer::Reply(reply));
            }
            Request::DropFinished { id, reply } => {
                if let Some(error) = self.stopped() {
                    return drop(reply.send(Err(error)));
                }
                // Not synced: a row of a new owner of this space comes after it in the log and cannot survive alone.
                self.mark(Kind::DropFinished, id, group);
                self.pending_drops.remove(&id);
                group.answers.push(Answer::Reply(reply));
            }
            Request::Trim => group.trim = true,
            Request::Seal { reply } => match self.stopped() {
                Some(error) => drop(reply.send(Err(error))),
                None => group.seal.push(reply),
            },
            Request::Close { reply } => {
                if std::mem::replace(&mut self.closed, true) {
                    return drop(reply.send(Err(StoreError::Closed)));
                }
                group.close = Some(reply);
            }
        }
    }

    fn refusal(&self, handle: &Handle, commit: &Commit) -> Option<StoreError> {
        if let Some(error) = handle.failed.get() {
            return Some(error.clone());
        }
        if handle.state.epoch.load(Ordering::Relaxed) != handle.epoch.0 {
            return Some(StoreError::Fenced(handle.id));
        }
        self.stopped().or_else(|| commit.check().err())
    }

    fn stopped(&self) -> Option<StoreError> {
        if self.closed { Some(StoreError::Closed) } else { self.core.stopped() }
    }

    fn number(
        &mut self,
        space: SpaceId,
        generation: Option<u64>,
        commit: Commit,
        sync: bool,
        group: &mut Group,
    ) {
        group.sync |= sync;
        if commit.changes.is_empty() {
            return;
        }
        let seqno = self.core.trees.counter.next();
        self.frame.push_commit(seqno, space, &commit);
        group.rows.push(Numbered { space, generation, seqno, changes: commit.changes });
        group.last_seqno = seqno;
    }

    fn mark(&mut self, kind: Kind, id: SpaceId, group: &mut Group) -> u64 {
        let seqno = self.core.trees.counter.next();
        self.frame.push_mark(kind, seqno, id);
        group.last_seqno = seqno;
        seqno
    }

    /// Log, sync, memtables: in this order, so that nothing is readable that a crash could still undo.
    fn write(&mut self, group: &mut Group) -> Result<(), StoreError> {
        let written = match self.frame.is_empty() {
            true => Ok(()),
            false => self.log.append(&mut self.frame, group.last_seqno),
        };
        let synced = written.and_then(|()| if group.sync { self.log.sync() } else { Ok(()) });
        if let Err(error) = synced {
            return Err(self.stop(&format!("writing the log failed: {error}")));
        }
        for Numbered { space, generation, seqno, changes } in group.rows.drain(..) {
            for change in &changes {
                self.unflushed[change.table as usize].active.get_or_insert(seqno);
                let kept = generation.and_then(|of| kept_under(of, change.table, &change.key));
                if let Some(generation) = kept {
                    self.core.items.wrote(generation, &change.key, seqno, change.value.as_ref());
                }
            }
            trees::apply(&self.active, space, seqno, changes);
        }
        for id in &group.drops {
            if let Some(state) = self.spaces.remove(id) {
                state.dropped.store(true, Ordering::Release);
            }
            self.core.dropping.lock().spaces.insert(*id);
        }
        Ok(())
    }

    /// Between groups: everything that keeps memory, log and trees within their limits.
    fn settle(&mut self) {
        loop {
            self.core.publish();
            if self.closed || self.core.stopped().is_some() {
                return;
            }
            let generation = self.core.background.generation();
            if self.tidy_log(generation).is_err() {
                return;
            }
            let log_full = self.log.size_bytes() >= self.core.options.log_bytes_max;
            if self.unhurried_at == Some(generation) && !log_full {
                return;
            }
            match self.hurry() {
                Hurry::None => {
                    self.unhurried_at = Some(generation);
                    return self.core.setback.go_on();
                }
                Hurry::Delay(time) => {
                    self.core.setback.go_on();
                    return self.core.background.wait_for_progress(generation, time);
                }
                Hurry::Wait => {
                    // Whoever comes now is told to come back; whoever has come is served when there is progress.
                    self.core.setback.hold_up();
                    self.core.background.wait_for_progress(generation, WAIT_MAX);
                }
            }
        }
    }

    /// Releases old segments, ends a full one, and seals memtables that are full or hold the log back.
    fn tidy_log(&mut self, generation: u64) -> Result<(), StoreError> {
        if self.released_at.replace(generation) != Some(generation) {
            self.release_segments();
        }
        if self.log.segment_bytes() >= self.core.options.segment_bytes
            && self.roll_again.is_none_or(|(time, _)| time <= Instant::now())
        {
            self.roll()?;
        }
        for table in TABLES {
            if self.active[table as usize].size() >= self.core.options.memtable_bytes[table as usize] {
                self.rotate(table)?;
            }
        }
        if self.log.size_bytes() >= self.core.options.log_bytes_max / 4 * 3
            && let Some(oldest) = self.log.oldest_last_seqno()
        {
            for table in TABLES {
                if self.unflushed[table as usize].active.is_some_and(|first| first <= oldest) {
                    self.rotate(table)?;
                }
            }
        }
        self.count_log();
        let worth_trimming = self.log.size_bytes() >= IDLE_LOG_BYTES;
        if worth_trimming && !std::mem::replace(&mut self.looked_for_idleness, worth_trimming) {
            self.core.background.look_later();
        }
        self.looked_for_idleness &= worth_trimming;
        Ok(())
    }

    fn release_segments(&mut self) {
        for table in TABLES {
            // Flushes take memtables oldest first and only this thread adds any, so the rest are the newest.
            let left = self.core.trees.tree(table).sealed_memtable_count();
            let sealed = &mut self.unflushed[table as usize].sealed;
            sealed.drain(..sealed.len().saturating_sub(left));
        }
        let firsts =
            self.unflushed.iter().flat_map(|tree| tree.sealed.front().into_iter().chain(&tree.active));
        let oldest_needed = firsts.copied().min().unwrap_or(u64::MAX);
        let names = self.log.release(oldest_needed);
        if !names.is_empty() {
            self.core.background.remove_segments(names);
        }
    }

    fn rotate(&mut self, table: Table) -> Result<(), StoreError> {
        // A table must not hold a row that the log may lose: after a power cut the other rows of its commit would be
        // missing.
        if let Err(error) = self.log.sync() {
            return Err(self.stop(&format!("syncing the log failed: {error}")));
        }
        if self.core.trees.tree(table).rotate_memtable().is_some() {
            let unflushed = &mut self.unflushed[table as usize];
            unflushed.sealed.extend(unflushed.active.take());
            self.active[table as usize] = self.core.trees.tree(table).active_memtable();
            self.core.background.request_flush();
            self.unhurried_at = None;
        }
        Ok(())
    }

    fn roll(&mut self) -> Result<(), StoreError> {
        // A segment is named after its base, and one that holds nothing but repeated drops has used up no number.
        while self.core.trees.counter.get() <= self.log.base() {
            let _ = self.core.trees.counter.next();
        }
        let base = self.core.trees.counter.get();
        match self.log.roll(base) {
            Ok(()) => {
                if self.roll_again.take().is_some() {
                    self.core.setback.overcome(Step::Log);
                }
                self.log_pending_drops()
            }
            // The present segment becomes longer than it should; nothing else is different.
            Err(error) if is_passing(&error) => {
                let failures = self.roll_again.map_or(1, |(_, failures)| failures + 1);
                self.roll_again = Some((Instant::now() + setback::pause(failures), failures));
                self.core.setback.met(Step::Log, &format!("starting a log segment failed: {error}"));
                Ok(())
            }
            Err(error) => Err(self.stop(&format!("starting a log segment failed: {error}"))),
        }
    }

    /// Says again, in a new segment, what is being dropped, so that older segments may go.
    fn log_pending_drops(&mut self) -> Result<(), StoreError> {
        if self.pending_drops.is_empty() {
            return Ok(());
        }
        self.frame.clear();
        for (id, seqno) in &self.pending_drops {
            self.frame.push_mark(Kind::DropPending, *seqno, *id);
        }
        let below = self.log.base() - 1;
        let written = self.log.append(&mut self.frame, below).and_then(|()| self.log.sync());
        written.map_err(|error| self.stop(&format!("writing the log failed: {error}")))
    }

    /// Seals what the log is still needed for; when nothing is, begins a new segment.
    fn trim(&mut self) -> Result<(), StoreError> {
        if self.stopped().is_some() {
            return Ok(());
        }
        for table in TABLES {
            if self.unflushed[table as usize].active.is_some() {
                self.rotate(table)?;
            }
        }
        self.release_segments();
        let flushed = self.unflushed.iter().all(|tree| tree.active.is_none() && tree.sealed.is_empty());
        if flushed && self.pending_drops.is_empty() && !self.log.is_segment_empty() {
            self.roll()?;
            self.release_segments();
        }
        self.count_log();
        Ok(())
    }

    fn hurry(&self) -> Hurry {
        let mut runs = 0;
        let mut sealed = 0;
        for table in TABLES {
            let tree = self.core.trees.tree(table);
            runs = runs.max(self.core.trees.runs_to_merge(table));
            sealed = sealed.max(tree.sealed_memtable_count());
        }
        let log_full = self.log.size_bytes() >= self.core.options.log_bytes_max;
        if runs >= L0_RUNS_MAX || sealed >= SEALED_MEMTABLES_MAX || log_full {
            return Hurry::Wait;
        }
        match runs.checked_sub(L0_RUNS_DELAY) {
            None | Some(0) => Hurry::None,
            Some(over) => Hurry::Delay(DELAY_STEP * (over * over) as u32),
        }
    }

    /// Everything into tables, so that the next open has nothing to replay.
    fn close(&mut self) -> Result<(), StoreError> {
        for table in TABLES {
            if let Some(error) = self.core.stopped() {
                return Err(error);
            }
            self.rotate(table)?;
        }
        self.core.wait_for_flush()?;
        self.release_segments();
        if !self.log.is_segment_empty() {
            self.roll()?;
            // Without a new segment the next open replays the last one, over tables that have it all.
            self.release_segments();
        }
        self.core.publish();
        self.count_log();
        Ok(())
    }

    fn stop(&self, reason: &str) -> StoreError {
        self.core.stop_writes(reason);
        self.core.stopped().unwrap_or(StoreError::Closed)
    }

    fn count_log(&self) {
        if self.core.reserve.follow(self.log.size_bytes()) {
            self.core.background.request_flush();
        }
        self.core.counters.log_bytes.store(self.log.size_bytes(), Ordering::Relaxed);
        self.core.counters.syncs.store(self.log.syncs(), Ordering::Relaxed);
    }
}

enum Hurry {
    None,
    Delay(Duration),
    Wait,
}

impl Answer {
    fn send(self, group: &Result<(), StoreError>) {
        match self {
            Answer::Done(done) => call(done, group.clone()),
            Answer::Failed(done, error) => call(done, Err(error)),
            Answer::Reply(reply) => drop(reply.send(group.clone())),
            Answer::Opened(reply, opened) => drop(reply.send(Ok(opened))),
            Answer::Closed(reply) => drop(reply.send(Err(StoreError::Closed))),
        }
    }
}

/// A callback that panics is its owner's fault and must not take every other commit with it.
fn call(done: Done, result: Result<(), StoreError>) {
    if catch_unwind(AssertUnwindSafe(|| done(result))).is_err() {
        tracing::error!("a commit's callback panicked");
    }
}
