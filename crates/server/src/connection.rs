//! One connection: what it is doing since when, what it has not sent yet, and how it is told to end.
//!
//! A timer per request would cost more than reading an item. So every connection has a [`Watch`]: a few atomics that
//! say what it is doing and since which tick. One sweeper task ([`Connections::sweep`]) advances the tick once a
//! second, while any connection is open, and tells those that took too long to end. Times are therefore a second
//! coarse, which no limit here minds.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::answer::Unsent;
pub use crate::connections::Connections;
use crate::limits::{
    ANSWER_STALL_TIMEOUT, CONNECTION_UNSENT_BYTES_MAX, FIRST_REQUEST_TIMEOUT, HEADER_TIMEOUT,
    LONG_REQUESTS_PER_CONNECTION_MAX,
};

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

pub(crate) const ORDER_FINISH: u8 = 1;
pub(crate) const ORDER_CLOSE: u8 = 2;

pub struct Watch {
    connections: Arc<Connections>,
    number: u64,
    peer: IpAddr,
    phase: AtomicU8,
    since: AtomicU32,
    requests: AtomicU32,
    /// Whether a request ever came.
    served: AtomicBool,
    /// HTTP/2 sends frames that belong to no request, so arriving bytes do not start the clock for headers.
    multiplexed: AtomicBool,
    order: AtomicU8,
    ordered: Notify,
    /// Bytes of answers that the network has not taken.
    unsent_bytes: AtomicUsize,
    /// The tick at which some of them were last taken.
    moved: AtomicU32,
    /// The large ones among them.
    answers: Mutex<Vec<Weak<Unsent>>>,
    /// Wakes requests that wait for earlier answers to be sent.
    drained: Notify,
    /// Turns of requests that may take long.
    long: Arc<Semaphore>,
}

impl Watch {
    pub(crate) fn new(connections: Arc<Connections>, number: u64, peer: IpAddr) -> Watch {
        let now = connections.now();
        Watch {
            connections,
            number,
            peer,
            phase: AtomicU8::new(IDLE),
            since: AtomicU32::new(now),
            requests: AtomicU32::new(0),
            served: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            order: AtomicU8::new(0),
            ordered: Notify::new(),
            unsent_bytes: AtomicUsize::new(0),
            moved: AtomicU32::new(now),
            answers: Mutex::default(),
            drained: Notify::new(),
            long: Arc::new(Semaphore::new(LONG_REQUESTS_PER_CONNECTION_MAX)),
        }
    }

    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

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

    pub fn is_multiplexed(&self) -> bool {
        self.multiplexed.load(Relaxed)
    }

    pub fn request_began(&self) {
        self.requests.fetch_add(1, Relaxed);
        self.served.store(true, Relaxed);
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

    /// Waits until enough of the earlier answers was read, and for the turn of a request that may take long: the
    /// streams of one connection share what a connection may have. `None`: they did not in time.
    pub async fn turn(&self, long: bool, limit: Duration) -> Option<Turn> {
        if !long && self.unsent_bytes() <= CONNECTION_UNSENT_BYTES_MAX {
            return Some(Turn(None));
        }
        let turn = async {
            let permit = match long {
                true => Arc::clone(&self.long).acquire_owned().await.ok(),
                false => None,
            };
            loop {
                let drained = self.drained.notified();
                if self.unsent_bytes() <= CONNECTION_UNSENT_BYTES_MAX {
                    return Turn(permit);
                }
                drained.await;
            }
        };
        tokio::time::timeout(limit, turn).await.ok()
    }

    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes.load(Relaxed)
    }

    pub(crate) fn answer_began(&self, bytes: usize) {
        if self.unsent_bytes.fetch_add(bytes, Relaxed) == 0 {
            self.answer_moved();
        }
    }

    /// Some of an answer was taken. Returns the tick.
    pub(crate) fn answer_moved(&self) -> u32 {
        let now = self.connections.now();
        self.moved.store(now, Relaxed);
        now
    }

    pub(crate) fn answer_ended(&self, bytes: usize) {
        let before = self.unsent_bytes.fetch_sub(bytes, Relaxed);
        if before > CONNECTION_UNSENT_BYTES_MAX {
            self.drained.notify_waiters();
        }
    }

    /// Lets the sweeper see a large answer.
    pub(crate) fn remember(&self, answer: &Arc<Unsent>) {
        let mut answers = self.answers.lock();
        answers.retain(|answer| answer.strong_count() > 0);
        answers.push(Arc::downgrade(answer));
    }

    /// Since when nothing was taken of what waits longest; `None` when nothing waits.
    pub(crate) fn unread_since(&self) -> Option<u32> {
        if self.unsent_bytes() == 0 {
            return None;
        }
        // Out of the lock before they are dropped: the last one to go ends the answer.
        let answers: Vec<Arc<Unsent>> = self.answers.lock().iter().filter_map(Weak::upgrade).collect();
        let oldest = answers.iter().map(|answer| answer.since()).min();
        let moved = self.moved.load(Relaxed);
        Some(oldest.map_or(moved, |oldest| oldest.min(moved)))
    }

    /// Since when it has done nothing, and whether it ever did; `None` while it works.
    pub(crate) fn idle_since(&self) -> Option<(bool, u32)> {
        let idle = self.requests.load(Relaxed) == 0 && self.unsent_bytes() == 0;
        (idle && self.order.load(Relaxed) < ORDER_CLOSE)
            .then(|| (self.served.load(Relaxed), self.since.load(Relaxed)))
    }

    /// What it must be told for having taken too long.
    pub(crate) fn overdue(&self, now: u32, idle_timeout: Duration) -> Option<u8> {
        let ticks = |limit: Duration| limit.as_secs().max(1) as u32;
        let order = self.order.load(Relaxed);
        let stalled = self.unread_since().is_some_and(|since| {
            // The other side does not take what was sent.
            now.saturating_sub(since) > ticks(ANSWER_STALL_TIMEOUT)
        });
        if stalled {
            return (order < ORDER_CLOSE).then_some(ORDER_CLOSE);
        }
        if self.requests.load(Relaxed) > 0 {
            return None; // A request has its own deadline.
        }
        let age = now.saturating_sub(self.since.load(Relaxed));
        let (limit, due) = match self.phase.load(Relaxed) {
            OPENING => (ticks(HEADER_TIMEOUT), ORDER_CLOSE),
            _ if !self.served.load(Relaxed) => (ticks(FIRST_REQUEST_TIMEOUT.min(idle_timeout)), ORDER_CLOSE),
            // Told to finish and still there.
            _ if order == ORDER_FINISH => (ticks(idle_timeout) + ticks(HEADER_TIMEOUT), ORDER_CLOSE),
            _ => (ticks(idle_timeout), ORDER_FINISH),
        };
        (age > limit && order < due).then_some(due)
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.connections.now(), Relaxed);
        self.phase.store(phase, Relaxed);
    }

    pub(crate) fn tell(&self, order: u8) {
        self.order.store(order, Relaxed);
        self.ordered.notify_one();
    }
}

/// The right of a request to be worked for; given back when dropped.
pub struct Turn(#[allow(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.connections.closed(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

    fn open(connections: &Arc<Connections>) -> Arc<Watch> {
        connections.open(10, Ipv4Addr::LOCALHOST.into()).unwrap()
    }

    fn order(watch: &Watch) -> u8 {
        watch.order.load(Relaxed)
    }

    fn serve(watch: &Watch) {
        watch.request_began();
        watch.request_ended();
    }

    #[test]
    fn slow_headers_end_sooner_than_idleness_and_requests_are_left_alone() {
        let connections = Arc::new(Connections::default());
        let [idle, slow, busy, http2] = [(); 4].map(|()| open(&connections));
        [&idle, &slow, &http2].iter().for_each(|watch| serve(watch));
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
    fn a_connection_that_never_asks_for_anything_ends_soon() {
        let connections = Arc::new(Connections::default());
        let [silent, http2, served] = [(); 3].map(|()| open(&connections));
        http2.set_multiplexed();
        serve(&served);
        let limit = FIRST_REQUEST_TIMEOUT.as_secs() as u32;
        connections.end_overdue(limit, IDLE_TIMEOUT);
        assert_eq!([&silent, &http2, &served].map(|watch| order(watch)), [0, 0, 0]);
        connections.end_overdue(limit + 1, IDLE_TIMEOUT);
        assert_eq!([&silent, &http2, &served].map(|watch| order(watch)), [ORDER_CLOSE, ORDER_CLOSE, 0]);
    }

    #[test]
    fn the_clock_restarts_with_every_request() {
        let connections = Arc::new(Connections::default());
        let watch = open(&connections);
        watch.bytes_arrived();
        connections.set_now(50);
        serve(&watch);
        connections.end_overdue(100, IDLE_TIMEOUT);
        assert_eq!(order(&watch), 0);
        connections.end_overdue(111, IDLE_TIMEOUT);
        assert_eq!(order(&watch), ORDER_FINISH);
    }

    #[test]
    fn an_answer_of_which_nothing_is_taken_ends_its_connection_even_while_it_asks_for_more() {
        let connections = Arc::new(Connections::default());
        let watch = open(&connections);
        let limit = ANSWER_STALL_TIMEOUT.as_secs() as u32;
        watch.request_began();
        watch.answer_began(100);
        connections.set_now(limit);
        watch.answer_moved();
        connections.end_overdue(limit + 1, IDLE_TIMEOUT);
        assert_eq!(order(&watch), 0, "it reads slowly, but it reads");
        connections.end_overdue(2 * limit + 1, IDLE_TIMEOUT);
        assert_eq!(order(&watch), ORDER_CLOSE);
    }

    #[test]
    fn one_stalled_answer_is_seen_beside_others_that_move() {
        let connections = Arc::new(Connections::default());
        let watch = open(&connections);
        let pool = orrery_budget::MemoryPool::unlimited();
        let large = || crate::answer::Answer::new(vec![1; 100_000].into(), &watch, &pool, None).unwrap();
        let (stalled, limit) = (large(), ANSWER_STALL_TIMEOUT.as_secs() as u32);
        connections.set_now(limit + 1);
        watch.answer_moved();
        connections.end_overdue(limit + 1, IDLE_TIMEOUT);
        assert_eq!(order(&watch), ORDER_CLOSE);
        drop(stalled);
        assert_eq!(watch.unread_since(), None);
    }

    #[test]
    fn long_requests_take_turns_and_unread_answers_hold_up_further_requests() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let connections = Arc::new(Connections::default());
            let watch = open(&connections);
            let soon = Duration::from_millis(50);
            let mut turns = Vec::new();
            for _ in 0..LONG_REQUESTS_PER_CONNECTION_MAX {
                turns.push(watch.turn(true, soon).await.expect("there is room"));
            }
            assert!(watch.turn(true, soon).await.is_none());
            assert!(watch.turn(false, soon).await.is_some(), "short ones do not wait for them");
            turns.pop();
            assert!(watch.turn(true, soon).await.is_some());
            watch.answer_began(CONNECTION_UNSENT_BYTES_MAX + 1);
            assert!(watch.turn(false, soon).await.is_none());
            let waiting = watch.clone();
            let waiting =
                tokio::spawn(async move { waiting.turn(false, Duration::from_secs(10)).await.is_some() });
            tokio::time::sleep(soon).await;
            watch.answer_ended(CONNECTION_UNSENT_BYTES_MAX + 1);
            assert!(waiting.await.unwrap());
        });
    }
}
