//! How long a command may go on: until its time is over or its client has gone.
//!
//! A cursor outlives the command that opened it. Its budget asks one [`Control`], which every `getMore` sets anew, so
//! that rows are made in the time of the command that asks for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use orrery_api::Client;
use orrery_budget::{Budget, Limits, MemoryPool};
use orrery_mongo::{Error, error::code};
use parking_lot::Mutex;

pub struct Control {
    origin: Instant,
    /// Microseconds after the origin; the maximum where there is no end.
    ends_us: AtomicU64,
    client: Mutex<Client>,
    /// Somebody has ended it by `killOp`.
    killed: AtomicBool,
}

impl Control {
    pub fn new() -> Arc<Control> {
        Arc::new(Control {
            origin: Instant::now(),
            ends_us: AtomicU64::new(u64::MAX),
            client: Mutex::new(Client::Unknown),
            killed: AtomicBool::new(false),
        })
    }

    /// A command goes on with what this controls.
    pub fn begin(&self, client: Client, time: Duration) {
        let end = self.origin.elapsed().saturating_add(time);
        self.ends_us.store(u64::try_from(end.as_micros()).unwrap_or(u64::MAX), Relaxed);
        *self.client.lock() = client;
    }

    pub fn kill(&self) {
        self.killed.store(true, Relaxed);
    }

    pub fn is_killed(&self) -> bool {
        self.killed.load(Relaxed)
    }

    pub fn is_late(&self) -> bool {
        self.origin.elapsed().as_micros() > u128::from(self.ends_us.load(Relaxed))
    }

    pub fn left(&self) -> Duration {
        Duration::from_micros(self.ends_us.load(Relaxed)).saturating_sub(self.origin.elapsed())
    }

    fn is_over(&self) -> bool {
        self.is_late() || self.is_killed() || self.client.lock().is_gone()
    }

    /// A budget that ends when this does.
    pub fn budget(self: &Arc<Self>, memory: Arc<MemoryPool>, memory_bytes: usize) -> Budget {
        let control = self.clone();
        let limits = Limits { memory_bytes, ..Limits::default() };
        Budget::with(memory, limits, Some(Box::new(move || control.is_over())))
    }

    /// Time that ran out is told as such.
    pub fn explain(&self, error: Error) -> Error {
        match error.code {
            code::INTERRUPTED if self.is_killed() => {
                Error::new(code::INTERRUPTED, "operation was interrupted")
            }
            code::INTERRUPTED if self.is_late() => {
                Error::new(code::MAX_TIME_MS_EXPIRED, "operation exceeded time limit")
            }
            _ => error,
        }
    }
}
