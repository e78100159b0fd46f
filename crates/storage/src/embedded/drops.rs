//! Removing the rows of dropped spaces.
//!
//! The drop itself is a durable record in the log: after it the space has no owner, its rows are not read and not
//! replayed. Then, on a thread that exists only while there is something to do: first the tables that hold nothing
//! else go at once; then what is left is scanned and deleted in ordinary commits; then a record says that it is done.
//! In this order, because a dropped table may have held the deletion of a row whose older value survives in a wider
//! table, and the scan finds those. A crash in between starts over at the next open.
//!
//! A damaged table does not keep a space from being dropped: what can be read of it is removed, and the rest is left.
//!
//! Nobody waits for this, and a space may leave millions of rows in tables that it shared. So the deletions keep out
//! of the way of those who write: each commit of them is followed by a rest as long as it took, and while the trees
//! have more to compact than they should, there are none.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::blocks::TableFile;
use super::committer::{Request, WAIT_MAX};
use super::core::{Core, spawn};
use super::setback::{self, Step};
use super::trees::{SPACE_BYTES, space_of};
use crate::store::{Commit, Direction, KeyRange, SpaceId, StoreError, TABLES, Table};

/// Rows deleted by one commit.
const REMOVE_ROWS_MAX: usize = 2048;

/// The longest rest after one of them.
const REST_MAX: Duration = Duration::from_millis(20);
/// Sorted runs in the first level of a tree, beyond those at which compaction begins, at which removals wait: well
/// before commits are delayed.
const RUNS_OVER_MAX: usize = 2;

/// Starts the thread unless it runs or there is nothing to remove.
pub(super) fn resume(core: &Arc<Core>) {
    let mut dropping = core.dropping.lock();
    if dropping.spaces.is_empty() || dropping.thread.is_some() || core.closed.load(Ordering::Acquire) {
        return;
    }
    let worker = core.clone();
    match spawn("store-dropper", move || run(&worker)) {
        Ok(thread) => dropping.thread = Some(thread),
        Err(error) => {
            drop(dropping);
            core.stop_writes(&error.to_string());
        }
    }
}

fn run(core: &Arc<Core>) {
    let mut failures = 0;
    loop {
        let Some(space) = ({
            let mut dropping = core.dropping.lock();
            let next = dropping.spaces.first().copied();
            if next.is_none() {
                dropping.thread = None;
            }
            next
        }) else {
            return;
        };
        match remove_rows(core, space) {
            Ok(()) => {
                failures = 0;
                core.dropping.lock().spaces.remove(&space);
                core.drop_finished.notify_all();
            }
            // The next open goes on from the log's record.
            Err(StoreError::Closed | StoreError::WritesStopped(_)) => return,
            Err(error @ (StoreError::NoRoom(_) | StoreError::Exhausted(_))) => {
                failures += 1;
                setback::after(core, Step::Drop, &TABLES, &error);
                std::thread::sleep(setback::pause(failures).min(WAIT_MAX));
            }
            Err(error) => return core.stop_writes(&format!("removing a dropped space failed: {error}")),
        }
    }
}

fn remove_rows(core: &Core, space: SpaceId) -> Result<(), StoreError> {
    for table in TABLES {
        if core.trees.drop_tables_of(table, space)? {
            core.background.finished(core, false);
        }
    }
    // The scan must read the trees without the dropped tables, or it misses the rows that came to light. It does so
    // only with a number above theirs, and the answer to a commit comes after such a number is published.
    remove(core, space, Commit::default())?;
    for table in TABLES {
        match remove_scanned(core, space, table) {
            Err(StoreError::Damaged(_) | StoreError::Io(_)) => remove_readable(core, space, table)?,
            removed => removed?,
        }
    }
    core.ask(|reply| Request::DropFinished { id: space, reply })
}

fn remove_scanned(core: &Core, space: SpaceId, table: Table) -> Result<(), StoreError> {
    let mut range = KeyRange::all();
    while let Some(commit) = next_removal(core, space, table, &mut range)? {
        remove_gently(core, space, commit)?;
    }
    Ok(())
}

fn remove_gently(core: &Core, space: SpaceId, commit: Commit) -> Result<(), StoreError> {
    let started = Instant::now();
    remove(core, space, commit)?;
    std::thread::sleep(started.elapsed().min(REST_MAX));
    wait_while_behind(core);
    Ok(())
}

/// Where a damaged table ends the scan: removes every row that any table still shows, newest version or not. What is
/// in the bad blocks stays there unread, since a space's number is never used again.
fn remove_readable(core: &Core, space: SpaceId, table: Table) -> Result<(), StoreError> {
    core.ask(|reply| Request::Seal { reply })?;
    core.wait_for_flush()?;
    for file in core.trees.tables(table) {
        let range = &file.metadata.key_range;
        let spaces = (space_of(range.min()), space_of(range.max()));
        if !(spaces.0..=spaces.1).contains(&space.0) {
            continue;
        }
        let rows = TableFile::read(&file.path).and_then(|file| file.rows());
        // A file that cannot be read at all has nothing that could be removed.
        let Ok(rows) = rows else { continue };
        let mut keys = rows
            .map(|row| row.key.user_key)
            .filter(|key| space_of(key) == space.0)
            .map(|key| Bytes::from(key).slice(SPACE_BYTES..))
            .peekable();
        while keys.peek().is_some() {
            let mut commit = Commit::default();
            keys.by_ref().take(REMOVE_ROWS_MAX).for_each(|key| commit.delete(table, key));
            remove_gently(core, space, commit)?;
        }
    }
    Ok(())
}

/// Waits until compaction has caught up. A store that stops or closes is found out by the next commit.
fn wait_while_behind(core: &Core) {
    let runs_max = usize::from(core.options.l0_threshold) + RUNS_OVER_MAX;
    while !core.closed.load(Ordering::Acquire) && core.stopped().is_none() {
        let generation = core.background.generation();
        if !core.trees.is_behind(runs_max) {
            return;
        }
        core.background.wait_for_progress(generation, WAIT_MAX);
    }
}

fn remove(core: &Core, id: SpaceId, commit: Commit) -> Result<(), StoreError> {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let bytes = commit.size_bytes();
    let done = Box::new(move |result| drop(sender.send(result)));
    core.queue.push(Request::Remove { id, commit, done }, bytes);
    receiver.recv().unwrap_or(Err(StoreError::Closed))
}

/// Deletions of the first rows in `range`, which then starts after them.
fn next_removal(
    core: &Core,
    space: SpaceId,
    table: Table,
    range: &mut KeyRange,
) -> Result<Option<Commit>, StoreError> {
    let pin = core.snapshots.open();
    let scan = || {
        let _gate = pin.enter()?;
        let mut rows = core.trees.scan(table, space, range, pin.seqno)?;
        let mut commit = Commit::default();
        while commit.changes.len() < REMOVE_ROWS_MAX
            && let Some(row) = rows.next(Direction::Forward)
        {
            commit.delete(table, row?.key);
        }
        Ok(commit)
    };
    let scanned = scan();
    core.snapshots.close(&pin);
    let commit = scanned?;
    let Some(last) = commit.changes.last() else { return Ok(None) };
    range.start = Bound::Excluded(last.key.clone());
    Ok(Some(commit))
}
