//! The budget of one request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::pool::MemoryPool;

/// Memory is fetched from the pool in pieces of this size, so that small amounts touch nothing shared.
const PIECE_BYTES: usize = 64 * 1024;
/// How often the client is asked after. Clocks are cheap, sockets are not.
const CLIENT_EVERY: Duration = Duration::from_millis(50);

/// What a request may use beside the share of the pool that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most that one request may hold, however much is free.
    pub memory_bytes: usize,
    pub steps: u64,
    pub deadline: Option<Instant>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { memory_bytes: usize::MAX, steps: u64::MAX, deadline: None }
    }
}

/// What is left of a budget, in amounts that mean the same on another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    pub memory_bytes: usize,
    pub steps: u64,
    pub time: Option<Duration>,
}

impl Remaining {
    /// The limits of whoever may use so much from now on.
    pub fn limits(&self) -> Limits {
        // Time that no clock can hold is no limit.
        let deadline = self.time.and_then(|time| Instant::now().checked_add(time));
        Limits { memory_bytes: self.memory_bytes, steps: self.steps, deadline }
    }
}

/// Why a request cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// It wants more memory than any request may have; asking again changes nothing.
    RequestMemory {
        limit_bytes: usize,
    },
    /// The requests of the moment have taken what there is; it may work a little later.
    ProcessMemory {
        limit_bytes: usize,
    },
    /// One answer, or one row of it, would be larger than any may be.
    Answer {
        limit_bytes: usize,
    },
    Steps {
        limit: u64,
    },
    Time,
    /// Nobody waits for the answer.
    ClientGone,
}

impl Exceeded {
    /// Whether the same request may succeed later.
    pub fn is_temporary(self) -> bool {
        matches!(self, Exceeded::ProcessMemory { .. })
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::RequestMemory { limit_bytes } => {
                write!(
                    out,
                    "The request needs more than the {} MB of memory that a request may hold.",
                    limit_bytes >> 20
                )
            }
            Exceeded::ProcessMemory { limit_bytes } => write!(
                out,
                "The server is short of memory: its requests share {} MB, which are taken at the moment. Try again later, \
                 ask for less at a time, or raise --memory-limit.",
                limit_bytes >> 20
            ),
            Exceeded::Answer { limit_bytes } => write!(
                out,
                "Response size too large. A single row of a result may have {} MB, and a response little more; select less \
                 at a time.",
                limit_bytes >> 20
            ),
            Exceeded::Steps { limit } => write!(out, "The request needs more than {limit} steps."),
            Exceeded::Time => out.write_str("The request took longer than it may."),
            Exceeded::ClientGone => out.write_str("The client has gone before the answer was ready."),
        }
    }
}

impl std::error::Error for Exceeded {}

/// Answers whether the client has gone; asked now and then, from any thread, and must not wait.
pub type IsGone = Box<dyn Fn() -> bool + Send + Sync>;

/// The budget of one request. Clones are the same budget: a request that works on several threads shares it.
#[derive(Clone)]
pub struct Budget(Arc<Spending>, Option<Instant>);

struct Spending {
    pool: Arc<MemoryPool>,
    limits: Limits,
    /// Taken from the pool, in pieces; never less than `used`.
    fetched: AtomicUsize,
    used: AtomicUsize,
    steps: AtomicU64,
    began: Instant,
    is_gone: Option<IsGone>,
    next_look_ms: AtomicU64,
    gone: AtomicBool,
}

impl Budget {
    pub fn new(pool: Arc<MemoryPool>) -> Budget {
        Budget::with(pool, Limits::default(), None)
    }

    /// For tests and tools that answer to nobody.
    pub fn unlimited() -> Budget {
        Budget::new(MemoryPool::unlimited())
    }

    pub fn with(pool: Arc<MemoryPool>, limits: Limits, is_gone: Option<IsGone>) -> Budget {
        let state = Spending {
            pool,
            limits,
            fetched: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            steps: AtomicU64::new(0),
            began: Instant::now(),
            is_gone,
            next_look_ms: AtomicU64::new(CLIENT_EVERY.as_millis() as u64),
            gone: AtomicBool::new(false),
        };
        Budget(Arc::new(state), limits.deadline)
    }

    /// The same budget for a part of the request that has less time.
    pub fn ending(&self, deadline: Instant) -> Budget {
        Budget(self.0.clone(), Some(self.1.map_or(deadline, |own| own.min(deadline))))
    }

    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// What may still be used. What has no limit stays without one.
    pub fn remaining(&self) -> Remaining {
        let Limits { memory_bytes, steps, .. } = self.0.limits;
        Remaining {
            memory_bytes: match memory_bytes {
                usize::MAX => usize::MAX,
                limit => limit.saturating_sub(self.used_bytes()),
            },
            steps: match steps {
                u64::MAX => u64::MAX,
                limit => limit.saturating_sub(self.steps()),
            },
            time: self.1.map(|deadline| deadline.saturating_duration_since(Instant::now())),
        }
    }

    /// What the request holds now.
    pub fn used_bytes(&self) -> usize {
        self.0.used.load(Relaxed)
    }

    pub fn steps(&self) -> u64 {
        self.0.steps.load(Relaxed)
    }

    /// Charges memory that is about to be taken. On failure nothing is charged.
    pub fn take(&self, bytes: usize) -> Result<(), Exceeded> {
        let state = &*self.0;
        let limit_bytes = state.limits.memory_bytes;
        let grow = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit_bytes);
        let before = state
            .used
            .fetch_update(Relaxed, Relaxed, grow)
            .map_err(|_| Exceeded::RequestMemory { limit_bytes })?;
        if state.fetch_up_to(before + bytes) {
            return Ok(());
        }
        state.used.fetch_sub(bytes, Relaxed);
        // What no request could ever have is not worth a second try.
        match before + bytes > state.pool.limit_bytes() / 2 {
            true => Err(Exceeded::RequestMemory { limit_bytes: state.pool.limit_bytes() / 2 }),
            false => Err(Exceeded::ProcessMemory { limit_bytes: state.pool.limit_bytes() }),
        }
    }

    /// Takes back a charge of [`Budget::take`]. The pool gets what was fetched when the request ends, or when most of
    /// it lies idle.
    pub fn give_back(&self, bytes: usize) {
        let state = &*self.0;
        let before = state.used.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "more is given back than was taken");
        let used = before.saturating_sub(bytes);
        let fetched = state.fetched.load(Relaxed);
        let keep = used.next_multiple_of(PIECE_BYTES);
        // Somebody else may change `fetched` at the same time; then the pool gets it at the end.
        if fetched / 2 > keep + PIECE_BYTES
            && state.fetched.compare_exchange(fetched, keep, Relaxed, Relaxed).is_ok()
        {
            state.pool.give_back(fetched - keep);
            // A charge that came between the two may have been promised what has just been returned.
            let used = state.used.load(Relaxed);
            state.fetch_up_to(used);
        }
    }

    /// Charges memory until the guard is dropped.
    pub fn hold(&self, bytes: usize) -> Result<Held, Exceeded> {
        self.take(bytes)?;
        Ok(Held { budget: self.clone(), bytes })
    }

    /// Counts steps of work, and looks at the clock and after the client. To be called every few hundred steps.
    pub fn step(&self, steps: u64) -> Result<(), Exceeded> {
        let state = &*self.0;
        let total = state.steps.fetch_add(steps, Relaxed).saturating_add(steps);
        if total > state.limits.steps {
            return Err(Exceeded::Steps { limit: state.limits.steps });
        }
        self.check()
    }

    /// Looks at the clock and after the client.
    pub fn check(&self) -> Result<(), Exceeded> {
        let state = &*self.0;
        if self.1.is_none() && state.is_gone.is_none() {
            return Ok(());
        }
        let now = Instant::now();
        if self.1.is_some_and(|deadline| now >= deadline) {
            return Err(Exceeded::Time);
        }
        match state.client_has_gone(now) {
            true => Err(Exceeded::ClientGone),
            false => Ok(()),
        }
    }
}

impl Spending {
    /// Fetches from the pool until `bytes` are covered.
    fn fetch_up_to(&self, bytes: usize) -> bool {
        loop {
            let fetched = self.fetched.load(Relaxed);
            if bytes <= fetched {
                return true;
            }
            let missing = bytes - fetched;
            // Whole pieces where there is room for them, just what is missing where there is not.
            let more = [missing.next_multiple_of(PIECE_BYTES), missing]
                .into_iter()
                .find(|more| self.pool.take(fetched, *more));
            let Some(more) = more else { return false };
            if self.fetched.compare_exchange(fetched, fetched + more, Relaxed, Relaxed).is_ok() {
                return true;
            }
            self.pool.give_back(more);
        }
    }

    fn client_has_gone(&self, now: Instant) -> bool {
        let Some(is_gone) = &self.is_gone else { return false };
        if self.gone.load(Relaxed) {
            return true;
        }
        let now_ms = now.duration_since(self.began).as_millis() as u64;
        if now_ms < self.next_look_ms.load(Relaxed) {
            return false;
        }
        self.next_look_ms.store(now_ms + CLIENT_EVERY.as_millis() as u64, Relaxed);
        let gone = is_gone();
        self.gone.fetch_or(gone, Relaxed);
        gone
    }
}

impl Drop for Spending {
    fn drop(&mut self) {
        self.pool.give_back(*self.fetched.get_mut());
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Budget")
            .field("used_bytes", &self.used_bytes())
            .field("steps", &self.steps())
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}

/// Memory that is charged as long as this lives. It may outlive the request's other work: the body of an answer
/// carries one until it is sent.
#[derive(Debug)]
pub struct Held {
    budget: Budget,
    bytes: usize,
}

impl Held {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Charges more, or gives back, until exactly `bytes` are held.
    pub fn resize(&mut self, bytes: usize) -> Result<(), Exceeded> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.budget.take(more)?,
            None => self.budget.give_back(self.bytes - bytes),
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1024 * 1024;

    #[test]
    fn what_is_taken_comes_back() {
        let pool = MemoryPool::new(64 * MIB);
        let budget = Budget::new(pool.clone());
        let mut held = budget.hold(10 * MIB).unwrap();
        held.resize(20 * MIB).unwrap();
        assert_eq!(held.resize(40 * MIB), Err(Exceeded::RequestMemory { limit_bytes: 32 * MIB }));
        assert_eq!((held.bytes(), budget.used_bytes()), (20 * MIB, 20 * MIB));
        held.resize(MIB).unwrap();
        assert!(pool.taken_bytes() <= 2 * MIB, "most of it lies idle: {}", pool.taken_bytes());
        drop((held, budget));
        assert_eq!(pool.taken_bytes(), 0);
    }

    #[test]
    fn its_own_limit_and_that_of_all_are_told_apart() {
        let pool = MemoryPool::new(64 * MIB);
        let limits = Limits { memory_bytes: 8 * MIB, ..Limits::default() };
        let small = Budget::with(pool.clone(), limits, None);
        assert_eq!(small.take(9 * MIB), Err(Exceeded::RequestMemory { limit_bytes: 8 * MIB }));
        let others: Vec<Held> = (0..3).map(|_| Budget::new(pool.clone()).hold(15 * MIB).unwrap()).collect();
        let refused = Budget::new(pool.clone()).hold(15 * MIB).unwrap_err();
        assert_eq!(refused, Exceeded::ProcessMemory { limit_bytes: 64 * MIB });
        assert!(refused.is_temporary());
        drop(others);
        assert!(Budget::new(pool).hold(15 * MIB).is_ok());
    }

    #[test]
    fn steps_time_and_absent_clients_end_it() {
        let limits = Limits { steps: 100, ..Limits::default() };
        let budget = Budget::with(MemoryPool::unlimited(), limits, None);
        assert_eq!((budget.step(100), budget.step(1)), (Ok(()), Err(Exceeded::Steps { limit: 100 })));
        let limits = Limits { deadline: Some(Instant::now()), ..Limits::default() };
        assert_eq!(Budget::with(MemoryPool::unlimited(), limits, None).check(), Err(Exceeded::Time));
        let gone = Budget::with(MemoryPool::unlimited(), Limits::default(), Some(Box::new(|| true)));
        assert_eq!(gone.check(), Ok(()), "not asked at once");
        std::thread::sleep(CLIENT_EVERY);
        assert_eq!((gone.check(), gone.check()), (Err(Exceeded::ClientGone), Err(Exceeded::ClientGone)));
    }

    #[test]
    fn a_part_of_a_request_may_have_less_time() {
        let budget = Budget::new(MemoryPool::new(64 * MIB));
        let part = budget.ending(Instant::now());
        assert_eq!((part.check(), budget.check()), (Err(Exceeded::Time), Ok(())));
        assert_eq!(part.ending(Instant::now() + Duration::from_secs(9)).check(), Err(Exceeded::Time));
        let held = part.hold(MIB).unwrap();
        assert_eq!(budget.used_bytes(), held.bytes());
    }

    #[test]
    fn what_is_left_can_be_used_elsewhere() {
        let deadline = Some(Instant::now() + Duration::from_secs(3600));
        let limits = Limits { memory_bytes: 8 * MIB, steps: 100, deadline };
        let budget = Budget::with(MemoryPool::unlimited(), limits, None);
        budget.step(40).unwrap();
        let _held = budget.hold(3 * MIB).unwrap();
        let left = budget.remaining();
        assert_eq!((left.memory_bytes, left.steps), (5 * MIB, 60));
        let there = left.limits();
        assert!(there.deadline.is_some());
        let ended = budget.ending(Instant::now()).remaining();
        assert_eq!(Budget::with(MemoryPool::unlimited(), ended.limits(), None).check(), Err(Exceeded::Time));
        let free = Budget::unlimited().remaining();
        assert_eq!((free.limits(), free.time), (Limits::default(), None));
        let far = Remaining { time: Some(Duration::MAX), ..free };
        assert_eq!(far.limits(), Limits::default());
    }

    #[test]
    fn threads_that_share_a_budget_leave_nothing_behind() {
        let pool = MemoryPool::new(64 * MIB);
        let budget = Budget::new(pool.clone());
        std::thread::scope(|scope| {
            for seed in 0..4_usize {
                let budget = budget.clone();
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let bytes = (seed * 7919 + round * 104_729) % (2 * MIB);
                        drop(budget.hold(bytes));
                    }
                });
            }
        });
        assert_eq!(budget.used_bytes(), 0);
        drop(budget);
        assert_eq!(pool.taken_bytes(), 0);
    }
}
