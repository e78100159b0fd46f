//! The background thread of an account: visits open partitions that have something to clean up.
//!
//! Once a second it asks each open partition whether anything is due, which costs a few loads; work itself is bounded
//! per visit, so partitions take turns. Partitions that were never opened have no work that anyone could notice. Those
//! that have lost their store are opened again, so that their work goes on without anybody asking for them.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::account::Account;

const ROUND_INTERVAL: Duration = Duration::from_secs(1);

pub struct Sweeper {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Waits for the next round. Returns whether there is one.
    fn wait(&self, interval: Duration) -> bool {
        let mut asked = self.asked.lock();
        if !*asked {
            self.changed.wait_for(&mut asked, interval);
        }
        !*asked
    }
}

impl Sweeper {
    pub fn start(account: Weak<Account>) -> Sweeper {
        let stop = Arc::new(Stop::default());
        let seen = stop.clone();
        let thread = std::thread::Builder::new().name("sweeper".into()).spawn(move || run(&account, &seen));
        let thread = match thread {
            Ok(thread) => Some(thread),
            Err(error) => {
                // Nothing expired becomes visible for that; only its space stays taken.
                tracing::warn!(%error, "the sweeper could not be started");
                None
            }
        };
        Sweeper { stop, thread }
    }

    /// Ends the thread after the visit it is in.
    pub fn stop(mut self) {
        self.ask();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // A panic of the thread has been reported where it happened.
            drop(thread.join());
        }
    }

    fn ask(&self) {
        *self.stop.asked.lock() = true;
        self.stop.changed.notify_all();
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.ask();
    }
}

fn run(account: &Weak<Account>, stop: &Stop) {
    let mut more = false;
    let mut pause = None;
    loop {
        let interval = if more { Duration::ZERO } else { pause.unwrap_or(ROUND_INTERVAL) };
        if !stop.wait(interval) {
            return;
        }
        more = false;
        let began = Instant::now();
        let mut linking = false;
        let Some(account) = account.upgrade() else { return };
        account.reopen_lost();
        for partition in account.open_partitions() {
            if *stop.asked.lock() {
                return;
            }
            if !partition.upkeep_is_due() {
                continue;
            }
            match partition.upkeep() {
                Ok(done) => {
                    more |= done.more;
                    linking |= done.linking;
                }
                Err(error) => {
                    tracing::warn!(range = partition.range_id(), %error, cause = ?error.cause, "upkeep failed")
                }
            }
        }
        // Linking vectors is work of minutes that nobody waits for: it leaves half of the time to others.
        pause = linking.then(|| began.elapsed().min(ROUND_INTERVAL));
    }
}
