//! How many requests are on their way at once: more while all is well, fewer when the server says that it is too much.
//!
//! Additive increase, multiplicative decrease, as TCP does it. Requests that fail together count once.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// At the start, before anything is known.
const START: f64 = 16.0;
const DECREASE: f64 = 0.7;
/// How much a request that went well adds, divided by how many there are at once: one more for each round.
const INCREASE: f64 = 1.0;
/// Refusals within this time are one.
const SETTLE: Duration = Duration::from_millis(200);
/// How often a worker that must wait looks again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub struct Pace {
    state: Mutex<State>,
    max: f64,
}

struct State {
    limit: f64,
    decreased: Option<Instant>,
}

impl Pace {
    pub fn new(max: usize) -> Pace {
        let max = max.max(1) as f64;
        Pace { state: Mutex::new(State { limit: START.min(max), decreased: None }), max }
    }

    /// Whether the worker with this number may send.
    pub fn allows(&self, worker: usize) -> bool {
        (worker as f64) < self.lock().limit
    }

    pub fn succeeded(&self) {
        let mut state = self.lock();
        state.limit = (state.limit + INCREASE / state.limit.max(1.0)).min(self.max);
    }

    pub fn throttled(&self, now: Instant) {
        let mut state = self.lock();
        if state.decreased.is_none_or(|last| now.duration_since(last) > SETTLE) {
            state.limit = (state.limit * DECREASE).max(1.0);
            state.decreased = Some(now);
        }
    }

    pub fn limit(&self) -> usize {
        self.lock().limit as usize
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_the_maximum_and_gives_way_once_for_each_crowd() {
        let pace = Pace::new(100);
        for _ in 0..10_000 {
            pace.succeeded();
        }
        assert_eq!(pace.limit(), 100);
        let now = Instant::now();
        pace.throttled(now);
        pace.throttled(now);
        assert_eq!(pace.limit(), 70);
        for n in 1..100 {
            pace.throttled(now + SETTLE * 2 * n);
        }
        assert_eq!((pace.limit(), pace.allows(0), pace.allows(1)), (1, true, false));
    }
}
