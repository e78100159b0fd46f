//! Which connections are open, how long they have been idle, and how to end them.
//!
//! A timer per request would cost more than reading an item. So every connection has a [`Watch`]: two atomics that say
//! what it is doing and since which tick. One sweeper task advances the tick once a second, while any connection is open, and
//! tells those that took too long to end. Times are therefore a second coarse, which no limit here minds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::HEADER_TIMEOUT;

const TICK: Duration = Duration::from_secs(1);

/// Nothing of a request has arrived.
const IDLE: u8 = 0;
/// Bytes arrived, the headers are not complete (or the TLS handshake is not).
const OPENING: u8 = 1;

/// What a connection is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Finish what is in flight, take nothing new.
    Finish,
    Close,
}

const ORDER_FINISH: u8 = 1;
const ORDER_CLOSE: u8 = 2;

pub struct Watch {
    connections: Arc<Connections>,
    number: u64,
    phase: AtomicU8,
    since: AtomicU32,
    requests: AtomicU32,
    /// HTTP/2 sends frames that belong to no request, so arriving bytes do not start the clock for headers.
    multiplexed: AtomicBool,
    order: AtomicU8,
    ordered: Notify,
}

impl Watch {
    /// Bytes came in. Called for every read.
    pub fn bytes_arrived(&self) {
        if self.phase.load(Relaxed) == IDLE
            && self.requests.load(Relaxed) == 0
            && !self.multiplexed.load(Relaxed)
        {
            self.enter(OPENING);
        }
    }

    pub fn set_multiplexed(&self) {
        self.multiplexed.store(true, Relaxed);
        self.enter(IDLE);
    }

    pub fn request_began(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    pub fn request_ended(&self) {
        self.enter(IDLE);
        self.requests.fetch_sub(1, Relaxed);
    }

    /// Waits until the connection is told to end.
    pub async fn ordered(&self) -> Order {
        self.ordered.notified().await;
        if self.order.load(Relaxed) == ORDER_CLOSE { Order::Close } else { Order::Finish }
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.connections.tick.load(Relaxed), Relaxed);
        self.phase.store(phase, Relaxed);
    }

    fn tell(&self, order: u8) {
        self.order.store(order, Relaxed);
        self.ordered.notify_one();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut open = self.connections.open.lock();
        open.remove(&self.number);
        if open.is_empty() {
            drop(open);
            self.connections.emptied.notify_waiters();
        }
    }
}

/// All open connections of a server.
#[derive(Default)]
pub struct Connections {
    open: Mutex<HashMap<u64, std::sync::Weak<Watch>>>,
    tick: AtomicU32,
    next_number: AtomicU64,
    /// Wakes the sweeper, which sleeps without a timer while nothing is open.
    opened: Notify,
    emptied: Notify,
}

impl Connections {
    /// Registers a connection, unless `limit` are open.
    pub fn open(self: &Arc<Self>, limit: usize) -> Option<Arc<Watch>> {
        let mut open = self.open.lock();
        if open.len() >= limit {
            return None;
        }
        let number = self.next_number.fetch_add(1, Relaxed);
        let watch = Arc::new(Watch {
            connections: self.clone(),
            number,
            phase: AtomicU8::new(IDLE),
            since: AtomicU32::new(self.tick.load(Relaxed)),
            requests: AtomicU32::new(0),
            multiplexed: AtomicBool::new(false),
            order: AtomicU8::new(0),
            ordered: Notify::new(),
        });
        open.insert(number, Arc::downgrade(&watch));
        let first = open.len() == 1;
        drop(open);
        if first {
            self.opened.notify_one();
        }
        Some(watch)
    }

    /// Runs for the life of the server. `each_tick` is called about once a second while connections are open.
    pub async fn sweep(&self, idle_timeout: Duration, each_tick: impl Fn(usize)) {
        loop {
            if self.open.lock().is_empty() {
                // One last call: what the final second left behind is reported.
                each_tick(0);
                self.opened.notified().await;
            }
            tokio::time::sleep(TICK).await;
            let now = self.tick.fetch_add(1, Relaxed) + 1;
            each_tick(self.end_overdue(now, idle_timeout));
        }
    }

    fn end_overdue(&self, now: u32, idle_timeout: Duration) -> usize {
        let ticks = |limit: Duration| limit.as_secs().max(1) as u32;
        let mut ended = 0;
        for watch in self.all() {
            if watch.requests.load(Relaxed) > 0 {
                continue; // A request has its own deadline.
            }
            let age = now.saturating_sub(watch.since.load(Relaxed));
            let (limit, order) = match watch.phase.load(Relaxed) {
                OPENING => (ticks(HEADER_TIMEOUT), ORDER_CLOSE),
                // Told to finish and still there: the other side does not take what was sent.
                _ if watch.order.load(Relaxed) == ORDER_FINISH => {
                    (ticks(idle_timeout) + ticks(HEADER_TIMEOUT), ORDER_CLOSE)
                }
                _ => (ticks(idle_timeout), ORDER_FINISH),
            };
            if age > limit && watch.order.load(Relaxed) < order {
                watch.tell(order);
                ended += 1;
            }
        }
        ended
    }

    /// Ends all connections: those with requests in flight get `grace` to finish them. Returns how many did not.
    pub async fn finish(&self, grace: Duration) -> usize {
        self.tell_all(ORDER_FINISH);
        if tokio::time::timeout(grace, self.wait_until_empty()).await.is_ok() {
            return 0;
        }
        let left = self.open.lock().len();
        self.tell_all(ORDER_CLOSE);
        // Closing is a wake-up away; a second is plenty, and the process ends soon in any case.
        let _ = tokio::time::timeout(TICK, self.wait_until_empty()).await;
        left
    }

    async fn wait_until_empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.open.lock().is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn tell_all(&self, order: u8) {
        self.all().iter().for_each(|watch| watch.tell(order));
    }

    /// Copied out of the lock: dropping the last `Arc` of a watch takes it.
    fn all(&self) -> Vec<Arc<Watch>> {
        self.open.lock().values().filter_map(std::sync::Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

    fn order(watch: &Watch) -> u8 {
        watch.order.load(Relaxed)
    }

    #[test]
    fn slow_headers_end_sooner_than_idleness_and_requests_are_left_alone() {
        let connections = Arc::new(Connections::default());
        let idle = connections.open(10).unwrap();
        let slow = connections.open(10).unwrap();
        let busy = connections.open(10).unwrap();
        let http2 = connections.open(10).unwrap();
        slow.bytes_arrived();
        busy.request_began();
        http2.set_multiplexed();
        http2.bytes_arrived();
        connections.end_overdue(10, IDLE_TIMEOUT);
        assert!([&idle, &slow, &busy, &http2].iter().all(|watch| order(watch) == 0));
        connections.end_overdue(11, IDLE_TIMEOUT);
        assert_eq!([&idle, &slow, &busy, &http2].map(|watch| order(watch)), [0, ORDER_CLOSE, 0, 0]);
        connections.end_overdue(61, IDLE_TIMEOUT);
        assert_eq!([&idle, &busy, &http2].map(|watch| order(watch)), [ORDER_FINISH, 0, ORDER_FINISH]);
        connections.end_overdue(71, IDLE_TIMEOUT);
        assert_eq!(order(&idle), ORDER_CLOSE, "one that does not finish is closed");
    }

    #[test]
    fn the_clock_restarts_with_every_request() {
        let connections = Arc::new(Connections::default());
        let watch = connections.open(1).unwrap();
        watch.bytes_arrived();
        connections.tick.store(50, Relaxed);
        watch.request_began();
        watch.request_ended();
        connections.end_overdue(100, IDLE_TIMEOUT);
        assert_eq!(order(&watch), 0);
        connections.end_overdue(111, IDLE_TIMEOUT);
        assert_eq!(order(&watch), ORDER_FINISH);
    }

    #[test]
    fn the_limit_counts_what_is_open() {
        let connections = Arc::new(Connections::default());
        let first = connections.open(1).unwrap();
        assert!(connections.open(1).is_none());
        drop(first);
        assert!(connections.open(1).is_some());
    }
}
