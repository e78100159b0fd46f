//! The bounded queue between submitters and the one committer thread of a store.
//!
//! Submitters wait while the queue is full (by bytes or by count), so a store that has fallen behind slows its callers
//! instead of filling memory. The committer takes everything that waits, up to a limit per group, and may wait a moment
//! for writers that it has just answered, so that they share the next flush. Controls (opening or
//! dropping a space, closing, a wake-up) travel in the same order but are never refused for lack of room.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// Most commits that may wait.
pub(crate) const QUEUE_COMMITS_MAX: usize = 16 * 1024;
/// Most bytes that may wait. One larger commit is let in alone.
pub(crate) const QUEUE_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Most commits in one group, so that the first of them is not answered late.
pub(crate) const GROUP_COMMITS_MAX: usize = 4 * 1024;
/// Most bytes in one group. One larger commit makes a group of its own.
pub(crate) const GROUP_BYTES_MAX: usize = 4 * 1024 * 1024;

pub struct Queue<T> {
    state: Mutex<Waiting<T>>,
    not_empty: Condvar,
    not_full: Condvar,
}

struct Waiting<T> {
    entries: VecDeque<(T, usize)>,
    bytes: usize,
    /// Set by a wake-up that carries no entry.
    woken: bool,
    /// The last handle is gone: the committer ends when the queue is empty.
    ended: bool,
    /// The committer has ended. Entries from helpers that have not noticed yet are dropped, unanswered.
    dead: bool,
    submitters_waiting: usize,
    /// How many entries the waiting committer wants before it is woken; 0 when it is not waiting.
    wanted: usize,
}

/// How long a group may wait to become larger.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gather {
    /// Entries that are worth waiting for.
    pub entries: usize,
    /// How long to wait, and again as long for more if some came meanwhile.
    pub wait: Duration,
}

/// How often a group waits for more, as long as some come. Few: writers that come by themselves, answered or not,
/// would be waited for too, and nobody should wait much longer for company than a flush takes.
const GATHER_TURNS_MAX: u32 = 2;

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue::new()
    }
}

impl<T> Queue<T> {
    pub fn new() -> Queue<T> {
        let state = Waiting {
            entries: VecDeque::new(),
            bytes: 0,
            woken: false,
            ended: false,
            dead: false,
            submitters_waiting: 0,
            wanted: 0,
        };
        Queue { state: Mutex::new(state), not_empty: Condvar::new(), not_full: Condvar::new() }
    }

    /// Adds a commit of about `bytes` bytes, waiting while there is no room.
    pub fn push(&self, entry: T, bytes: usize) {
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
    pub fn push_control(&self, entry: T) {
        self.add(self.state.lock(), entry, 0);
    }

    fn add(&self, mut state: parking_lot::MutexGuard<'_, Waiting<T>>, entry: T, bytes: usize) {
        if state.dead {
            return;
        }
        state.entries.push_back((entry, bytes));
        state.bytes += bytes;
        // Controls and large commits are not kept waiting for company.
        let enough = bytes == 0 || state.bytes >= GROUP_BYTES_MAX || state.entries.len() >= state.wanted;
        let wake = state.wanted > 0 && enough;
        if wake {
            state.wanted = 0;
        }
        drop(state);
        if wake {
            self.not_empty.notify_one();
        }
    }

    /// Lets the committer return from `take` without an entry.
    pub fn wake(&self) {
        let mut state = self.state.lock();
        state.woken = true;
        let wake = std::mem::take(&mut state.wanted) > 0;
        drop(state);
        if wake {
            self.not_empty.notify_one();
        }
    }

    /// Lets the committer end when it has taken what there is.
    pub fn end(&self) {
        self.state.lock().ended = true;
        self.wake();
    }

    /// Moves the next group into `group`, waiting as long as `gather` allows for a large one, and then for any.
    /// Returns false when the queue has ended. An empty group is a wake-up.
    pub fn take(&self, group: &mut Vec<T>, gather: Gather) -> bool {
        let mut state = self.state.lock();
        if state.entries.len() < gather.entries && !state.woken && !state.ended {
            // One wait for all of them, instead of one for the first and another for the rest: each costs two switches
            // of threads.
            let mut deadline = Instant::now() + gather.wait;
            let (mut seen, mut turns) = (state.entries.len(), 1);
            state.wanted = gather.entries;
            // Whoever brings what is wanted resets the mark.
            while state.wanted > 0 {
                if !self.not_empty.wait_until(&mut state, deadline).timed_out() {
                    continue;
                }
                // Where some came the others are on their way: a flush without them costs as much as one with them.
                let came = state.entries.len() > std::mem::replace(&mut seen, state.entries.len());
                if !came || turns == GATHER_TURNS_MAX {
                    break;
                }
                turns += 1;
                deadline += gather.wait;
            }
        }
        while state.entries.is_empty() && !state.woken {
            if state.ended {
                state.dead = true;
                return false;
            }
            state.wanted = 1;
            self.not_empty.wait(&mut state);
        }
        state.wanted = 0;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// Pushes `count` entries from another thread, of which `room` get in before it has to wait.
    fn waits_after(room: usize, count: usize, bytes: usize) {
        let queue = Arc::new(Queue::new());
        let pushed = Arc::new(AtomicUsize::new(0));
        let thread = std::thread::spawn({
            let (queue, pushed) = (queue.clone(), pushed.clone());
            move || {
                for number in 0..count {
                    queue.push(number, bytes);
                    pushed.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        while pushed.load(Ordering::SeqCst) < room {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(pushed.load(Ordering::SeqCst), room, "nobody waits");
        let mut taken = Vec::new();
        while taken.len() < count {
            let mut group = Vec::new();
            assert!(queue.take(&mut group, Gather::default()));
            taken.extend(group);
        }
        thread.join().expect("no panic");
        assert!(taken.into_iter().eq(0..count), "order is kept");
    }

    #[test]
    fn submitters_wait_while_the_queue_is_full() {
        waits_after(QUEUE_COMMITS_MAX, QUEUE_COMMITS_MAX + 100, 1);
        waits_after(4, 10, QUEUE_BYTES_MAX / 4);
        // One that is too large gets in alone.
        waits_after(1, 3, QUEUE_BYTES_MAX * 2);
    }

    #[test]
    fn a_group_has_limits_and_controls_are_never_refused() {
        let queue = Queue::new();
        for number in 0..3 {
            queue.push(number, GROUP_BYTES_MAX);
        }
        for number in 3..GROUP_COMMITS_MAX + 10 {
            queue.push_control(number);
        }
        let mut sizes = Vec::new();
        for _ in 0..4 {
            let mut group = Vec::new();
            assert!(queue.take(&mut group, Gather::default()));
            sizes.push(group.len());
        }
        assert_eq!(sizes, [1, 1, GROUP_COMMITS_MAX, 8]);
    }

    #[test]
    fn an_ended_queue_gives_out_what_it_has_and_then_nothing() {
        let queue = Queue::new();
        queue.push(1, 1);
        queue.end();
        let mut group = Vec::new();
        assert!(queue.take(&mut group, Gather::default()));
        assert_eq!(group, [1]);
        assert!(!queue.take(&mut group, Gather::default()));
        queue.push(2, 1);
        assert!(!queue.take(&mut group, Gather::default()), "nobody is there to take it");
    }

    #[test]
    fn a_group_waits_for_the_writers_it_expects_but_not_for_ever() {
        let queue = Arc::new(Queue::new());
        queue.push(1, 1);
        let thread = std::thread::spawn({
            let queue = queue.clone();
            move || {
                std::thread::sleep(Duration::from_millis(20));
                queue.push(2, 1);
            }
        });
        let mut group = Vec::new();
        assert!(queue.take(&mut group, Gather { entries: 2, wait: Duration::from_secs(60) }));
        assert_eq!(group, [1, 2]);
        thread.join().expect("no panic");
        queue.push(3, 1);
        group.clear();
        assert!(queue.take(&mut group, Gather { entries: 2, wait: Duration::from_millis(1) }));
        assert_eq!(group, [3], "nobody came");
        queue.push(4, 1);
        queue.push_control(5);
        group.clear();
        assert!(queue.take(&mut group, Gather { entries: 2, wait: Duration::from_secs(60) }));
        assert_eq!(group, [4, 5]);
    }

    #[test]
    fn a_group_waits_on_while_writers_keep_coming() {
        let queue = Arc::new(Queue::new());
        let thread = std::thread::spawn({
            let queue = queue.clone();
            move || {
                for number in 0..2 {
                    std::thread::sleep(Duration::from_millis(300));
                    queue.push(number, 1);
                }
            }
        });
        let mut group = Vec::new();
        // Each wait is too short for both of them, but one comes in each.
        assert!(queue.take(&mut group, Gather { entries: 2, wait: Duration::from_millis(500) }));
        assert_eq!(group, [0, 1]);
        thread.join().expect("no panic");
    }

    #[test]
    fn a_wake_up_is_an_empty_group() {
        let queue = Queue::<u8>::new();
        queue.wake();
        let mut group = Vec::new();
        assert!(queue.take(&mut group, Gather::default()) && group.is_empty());
    }
}
