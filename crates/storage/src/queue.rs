//! The bounded queue between submitters and the one committer thread of a store.
//!
//! Submitters wait while the queue is full (by bytes or by count), so a store that has fallen behind slows its callers
//! instead of filling memory. The committer takes everything that waits, up to a limit per group. Controls (opening or
//! dropping a space, closing, a wake-up) travel in the same order but are never refused for lack of room.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// Most commits that may wait.
pub(crate) const QUEUE_COMMITS_MAX: usize = 16 * 1024;
/// Most bytes that may wait. One larger commit is let in alone.
pub(crate) const QUEUE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most commits in one group, so that the first of them is not answered late.
pub(crate) const GROUP_COMMITS_MAX: usize = 4 * 1024;
/// Most bytes in one group. One larger commit makes a group of its own.
pub(crate) const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    not_empty: Condvar,
    not_full: Condvar,
}

struct State<T> {
    entries: VecDeque<(T, usize)>,
    bytes: usize,
    /// Set by a wake-up that carries no entry.
    woken: bool,
    /// The last handle is gone: the committer ends when the queue is empty.
    ended: bool,
    /// The committer has ended. Entries from helpers that have not noticed yet are dropped, unanswered.
    dead: bool,
    submitters_waiting: usize,
    committer_waiting: bool,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Queue<T> {
        let state = State {
            entries: VecDeque::new(),
            bytes: 0,
            woken: false,
            ended: false,
            dead: false,
            submitters_waiting: 0,
            committer_waiting: false,
        };
        Queue { state: Mutex::new(state), not_empty: Condvar::new(), not_full: Condvar::new() }
    }

    /// Adds a commit of about `bytes` bytes, waiting while there is no room.
    pub(crate) fn push(&self, entry: T, bytes: usize) {
        let mut state = self.state.lock();
        while !state.entries.is_empty()
            && (state.entries.len() >= QUEUE_COMMITS_MAX || state.bytes + bytes > QUEUE_BYTES_MAX)
        {
            state.submitters_waiting += 1;
            self.not_full.wait(&mut state);
            state.submitters_waiting -= 1;
        }
        self.add(state, entry, bytes);
    }

    /// Adds an entry that must get through even when the queue is full.
    pub(crate) fn push_control(&self, entry: T) {
        self.add(self.state.lock(), entry, 0);
    }

    fn add(&self, mut state: parking_lot::MutexGuard<'_, State<T>>, entry: T, bytes: usize) {
        if state.dead {
            return;
        }
        state.entries.push_back((entry, bytes));
        state.bytes += bytes;
        let wake = std::mem::take(&mut state.committer_waiting);
        drop(state);
        if wake {
            self.not_empty.notify_one();
        }
    }

    /// Lets the committer return from `take` without an entry.
    pub(crate) fn wake(&self) {
        let mut state = self.state.lock();
        state.woken = true;
        let wake = std::mem::take(&mut state.committer_waiting);
        drop(state);
        if wake {
            self.not_empty.notify_one();
        }
    }

    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.wake();
    }

    /// Moves the next group into `group`, waiting while there is none. Returns false when the queue has ended.
    /// An empty group is a wake-up.
    pub(crate) fn take(&self, group: &mut Vec<T>) -> bool {
        let mut state = self.state.lock();
        while state.entries.is_empty() && !state.woken {
            if state.ended {
                state.dead = true;
                return false;
            }
            state.committer_waiting = true;
            self.not_empty.wait(&mut state);
        }
        state.committer_waiting = false;
        state.woken = false;
        let mut bytes = 0;
        while let Some((_, entry_bytes)) = state.entries.front() {
            bytes += entry_bytes;
            if !group.is_empty() && (bytes > GROUP_BYTES_MAX || group.len() >= GROUP_COMMITS_MAX) {
                break;
            }
            let Some((entry, entry_bytes)) = state.entries.pop_front() else { break };
            state.bytes -= entry_bytes;
            group.push(entry);
        }
        // The burst that made the buffer large may never come again.
        if state.entries.is_empty() && state.entries.capacity() > GROUP_COMMITS_MAX {
            state.entries = VecDeque::new();
        }
        let wake = state.submitters_waiting > 0;
        drop(state);
        if wake {
            self.not_full.notify_all();
        }
        true
    }
}
