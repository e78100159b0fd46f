//! How much of everything one script may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use orrery_budget::Budget;

use crate::priority;

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// From the first statement to the last callback, retries included.
    pub time: Duration,
    /// What the script's values may take.
    pub memory_bytes: usize,
    /// Calls may nest until their frames take this much.
    pub stack_bytes: usize,
    /// Documents read, written and listed.
    pub operations: usize,
    /// Operations that wait for their turn.
    pub queue: usize,
    /// The body that the script answers with.
    pub result_bytes: usize,
    /// What it writes to the console; the rest is cut off.
    pub log_bytes: usize,
}

/// How long a script goes on: until a moment, or until nobody waits for it any more, or its request has to end.
#[derive(Debug, Clone)]
pub struct Until {
    pub deadline: Instant,
    pub gone: Arc<AtomicBool>,
    pub budget: Option<Budget>,
}

impl Until {
    /// Until a moment, whoever waits.
    pub fn moment(deadline: Instant) -> Until {
        Until { deadline, gone: Arc::default(), budget: None }
    }

    /// Asked in every loop of a script and between its operations.
    pub(crate) fn is_over_now(&self) -> bool {
        priority::look();
        self.is_over()
    }

    pub fn is_over(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
            || Instant::now() >= self.deadline
            || self.budget.as_ref().is_some_and(|budget| budget.check().is_err())
    }
}

/// The part of the time in which no new operation is accepted: a script that is told so can still say where it was.
pub(crate) const LAST_PART: u32 = 10;

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(5),
            memory_bytes: 64 * 1024 * 1024,
            stack_bytes: 512 * 1024,
            operations: 50_000,
            queue: 10_000,
            result_bytes: 4 * 1024 * 1024,
            log_bytes: 64 * 1024,
        }
    }
}
