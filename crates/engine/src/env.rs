//! Time and randomness, passed in.
//!
//! What the engine stores, answers or decides by the calendar or by chance comes from here, so a test can set the
//! clock and a failure can be repeated from its seed. How long something has taken (pages of queries, splits, the
//! sweeper's rounds) is measured with the machine's own clock; it decides when work pauses and what a cache forgets,
//! never a result.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub trait Env: Send + Sync {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
    fn random_u64(&self) -> u64;

    /// Nanoseconds since some moment of the past; never goes back, whatever happens to the calendar.
    fn monotonic_ns(&self) -> u64 {
        self.now_ms().saturating_mul(1_000_000)
    }

    /// How far the clock was moved on purpose, for tests.
    fn moved_ms(&self) -> u64 {
        0
    }

    /// Whether it can be.
    fn is_movable(&self) -> bool {
        false
    }

    /// Moves it forward, if it can be moved.
    fn move_clock(&self, _by_ms: u64) {}

    /// Seconds since 1970, as resources carry them in `_ts`.
    fn now_s(&self) -> u32 {
        u32::try_from(self.now_ms() / 1000).unwrap_or(u32::MAX)
    }
}

/// The machine's clock, and random numbers from a generator seeded once per process.
pub struct SystemEnv {
    random: AtomicU64,
    started: Instant,
    movable: bool,
    moved_ms: AtomicU64,
}

impl SystemEnv {
    pub fn new() -> SystemEnv {
        // The standard library seeds its hash maps from the operating system; hashing with one of those keys gives
        // a seed without a dependency. These numbers tell things apart; no secret is made of them.
        use std::hash::{BuildHasher, Hasher};
        let seed = std::collections::hash_map::RandomState::new().build_hasher().finish();
        SystemEnv {
            random: AtomicU64::new(seed),
            started: Instant::now(),
            movable: false,
            moved_ms: AtomicU64::new(0),
        }
    }

    /// The same with a clock that can be moved, if asked.
    pub fn with_movable_clock(self, movable: bool) -> SystemEnv {
        SystemEnv { movable, ..self }
    }
}

impl Default for SystemEnv {
    fn default() -> SystemEnv {
        SystemEnv::new()
    }
}

impl Env for SystemEnv {
    fn now_ms(&self) -> u64 {
        // A clock before 1970 is a broken machine; 0 keeps the engine running and is visible in every `_ts`.
        let now_ms =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_millis() as u64);
        now_ms.saturating_add(self.moved_ms())
    }

    fn random_u64(&self) -> u64 {
        next_random(&self.random)
    }

    fn monotonic_ns(&self) -> u64 {
        let passed_ns = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        passed_ns.saturating_add(self.moved_ms().saturating_mul(1_000_000))
    }

    fn moved_ms(&self) -> u64 {
        self.moved_ms.load(Ordering::Relaxed)
    }

    fn is_movable(&self) -> bool {
        self.movable
    }

    fn move_clock(&self, by_ms: u64) {
        if self.movable {
            self.moved_ms.fetch_add(by_ms, Ordering::Relaxed);
        }
    }
}

/// A clock that stands still until it is moved, and random numbers from a seed.
pub struct TestEnv {
    now_ms: AtomicU64,
    random: AtomicU64,
}

impl TestEnv {
    pub fn new(now_ms: u64, seed: u64) -> TestEnv {
        TestEnv { now_ms: AtomicU64::new(now_ms), random: AtomicU64::new(seed) }
    }

    pub fn set_now_ms(&self, now_ms: u64) {
        self.now_ms.store(now_ms, Ordering::SeqCst);
    }

    pub fn advance_ms(&self, by_ms: u64) {
        self.now_ms.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Env for TestEnv {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn random_u64(&self) -> u64 {
        next_random(&self.random)
    }
}

/// SplitMix64: the state is a counter, so threads may share it without a lock.
fn next_random(state: &AtomicU64) -> u64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut z = state.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (a, b) = (TestEnv::new(0, 7), TestEnv::new(0, 7));
        let numbers: Vec<u64> = (0..4).map(|_| a.random_u64()).collect();
        assert_eq!(numbers, (0..4).map(|_| b.random_u64()).collect::<Vec<_>>());
        assert_eq!(numbers.iter().collect::<std::collections::HashSet<_>>().len(), 4);
    }

    #[test]
    fn a_test_moves_its_own_clock() {
        let env = TestEnv::new(1_500, 0);
        assert_eq!(env.now_s(), 1);
        env.advance_ms(500);
        assert_eq!((env.now_ms(), env.now_s()), (2_000, 2));
    }
}
