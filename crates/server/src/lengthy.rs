//! Long pieces of work: how many run at one time, that they take turns, and that short requests go before them.
//!
//! A page that scans keeps its thread; the runtime hands the other requests of that thread to a new one. Without a
//! limit a few hundred such pages would take every thread that there may be, and with them the ones that answer short
//! requests. So some of them run and the others wait, in the order in which they came; how many may wait is bounded
//! where requests come in (`dispatch`).
//!
//! ```text
//! worker        gives its other requests away ─> waits for a turn ─> waits for the work ─> goes on with the request
//! long thread                                                        ─> works, below the priority of workers
//! ```
//!
//! Those that run do so on threads of their own (`long_threads`), to which the system prefers those that answer short
//! requests: a point read finds a processor although long work keeps all of them busy.
//!
//! Work that runs for long asks now and then whether its client is still there. On that occasion it passes its turn
//! on, if it has had it for `SLICE` and somebody waits, and queues up again: a query of a minute holds up one of a
//! millisecond for a moment only. It may hold a lock that those who run wait for, so it goes on after `PAUSE_MAX` in
//! any case.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::long_threads;

/// Long pieces of work at one time, for each thread that answers requests: some wait for the disk. More would only
/// hold more memory.
const RUNNING_PER_WORKER: usize = 2;
const RUNNING_MIN: usize = 4;
const SLICE: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// One for the process, like the threads it protects.
static GATE: Gate = Gate::new();
static RUNNING_MAX: AtomicUsize = AtomicUsize::new(RUNNING_MIN);

thread_local! {
    /// Since when the work of this thread has its turn.
    static INSIDE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Says how many threads answer requests.
pub fn set_workers(workers: usize) {
    RUNNING_MAX.store((workers * RUNNING_PER_WORKER).max(RUNNING_MIN), Relaxed);
}

/// Runs work that may take long, when its turn comes, and lets others have this thread's requests meanwhile.
pub fn run(work: &mut (dyn FnMut() + Send)) {
    if INSIDE.get().is_some() {
        // A part of long work that has its turn already.
        return work();
    }
    tokio::task::block_in_place(|| {
        let _turn = GATE.enter(RUNNING_MAX.load(Relaxed));
        long_threads::run(&mut || {
            INSIDE.set(Some(Instant::now()));
            work();
        });
    });
}

/// Lets others have a turn, if this thread has had one for long and somebody waits. Called by long work now and then.
pub fn pause() {
    GATE.pause(SLICE, PAUSE_MAX);
}

struct Gate(Mutex<Turns>);

struct Turns {
    running: usize,
    /// Those that wait, in their order.
    waiting: VecDeque<Arc<Waiting>>,
}

/// One that waits. Each is woken by itself: a hundred that wake up to see whose turn it is take longer than most turns.
#[derive(Default)]
struct Waiting {
    called: AtomicBool,
    wake: Condvar,
}

impl Gate {
    const fn new() -> Gate {
        Gate(Mutex::new(Turns { running: 0, waiting: VecDeque::new() }))
    }

    fn enter(&self, running_max: usize) -> Turn<'_> {
        let mut state = self.0.lock();
        match state.running < running_max {
            true => state.running += 1,
            false => drop(wait(&mut state, None)),
        }
        INSIDE.set(Some(Instant::now()));
        Turn(self)
    }

    fn pause(&self, slice: Duration, pause_max: Duration) {
        if INSIDE.get().is_none_or(|since| since.elapsed() < slice) {
            return;
        }
        let mut state = self.0.lock();
        if !state.waiting.is_empty() {
            state.pass_on();
            if !wait(&mut state, Some(Instant::now() + pause_max)) {
                state.running += 1; // One more than there should be, until one of them ends.
            }
        }
        INSIDE.set(Some(Instant::now()));
    }
}

/// Waits to be called. False: until the deadline in vain.
fn wait(state: &mut MutexGuard<'_, Turns>, deadline: Option<Instant>) -> bool {
    let waiting = Arc::new(Waiting::default());
    state.waiting.push_back(waiting.clone());
    loop {
        let late = match deadline {
            Some(deadline) => waiting.wake.wait_until(state, deadline).timed_out(),
            None => {
                waiting.wake.wait(state);
                false
            }
        };
        if waiting.called.load(Relaxed) {
            return true;
        }
        if late {
            state.waiting.retain(|other| !Arc::ptr_eq(other, &waiting));
            return false;
        }
    }
}

impl Turns {
    /// Gives a turn back. Passed on instead, if somebody waits, so that nobody who comes now is faster.
    fn pass_on(&mut self) {
        match self.waiting.pop_front() {
            Some(next) => {
                next.called.store(true, Relaxed);
                next.wake.notify_one();
            }
            None => self.running -= 1,
        }
    }
}

struct Turn<'a>(&'a Gate);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        INSIDE.set(None);
        self.0.0.lock().pass_on();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_at_rest(gate: &Gate) -> bool {
        let state = gate.0.lock();
        state.running == 0 && state.waiting.is_empty()
    }

    #[test]
    fn so_many_run_and_all_get_their_turn() {
        let gate = Gate::new();
        let (now, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..20 {
                scope.spawn(|| {
                    let _turn = gate.enter(3);
                    most.fetch_max(now.fetch_add(1, Relaxed) + 1, Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(1, Relaxed);
                    done.fetch_add(1, Relaxed);
                });
            }
        });
        assert_eq!((most.load(Relaxed), done.load(Relaxed)), (3, 20));
        assert!(is_at_rest(&gate));
    }

    #[test]
    fn a_short_one_does_not_wait_for_the_end_of_long_ones() {
        let gate = Gate::new();
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let _turn = gate.enter(2);
                    while began.elapsed() < Duration::from_secs(3) {
                        std::thread::sleep(Duration::from_millis(5));
                        gate.pause(Duration::from_millis(20), PAUSE_MAX);
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(50));
            for _ in 0..10 {
                drop(gate.enter(2));
            }
            assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        });
        assert!(is_at_rest(&gate));
    }

    #[test]
    fn a_pause_ends_even_if_nobody_passes_a_turn_on() {
        let gate = Gate::new();
        std::thread::scope(|scope| {
            let _turn = gate.enter(1);
            scope.spawn(|| {
                let _turn = gate.enter(1);
                std::thread::sleep(Duration::from_millis(300));
            });
            std::thread::sleep(Duration::from_millis(50));
            let began = Instant::now();
            gate.pause(Duration::ZERO, Duration::from_millis(50));
            assert!(began.elapsed() < Duration::from_millis(250));
        });
        assert!(is_at_rest(&gate));
    }

    #[test]
    fn a_panic_gives_its_turn_back() {
        let gate = Gate::new();
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _turn = gate.enter(1);
            panic!("on purpose");
        }));
        assert!(failed.is_err() && is_at_rest(&gate));
    }
}
