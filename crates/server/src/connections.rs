//! All open connections: how many there may be, who must go when there are too many, and the sweeper.
//!
//! When all places are taken, a newcomer does not simply find the door closed: whoever holds most of the places gives
//! one up, the one that has been idle longest, and before all others one that never asked for anything. So somebody
//! who opens connections and leaves them silent takes places only from himself. A place is given up after
//! `IDLE_TICKS_MIN` of idleness at the earliest; if nobody has been idle for so long the newcomer is told to come
//! again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::connection::{ORDER_CLOSE, ORDER_FINISH, Watch};
use crate::limits::CONNECTIONS_GIVEN_UP_MAX;

const TICK: Duration = Duration::from_secs(1);
/// Ticks after which an idle connection may be ended for a newcomer. The first may pass at once.
const IDLE_TICKS_MIN: u32 = 2;
/// Ticks without a byte read after which a connection may be ended for the memory that its answers hold.
const UNREAD_TICKS_MIN: u32 = 2;

/// All open connections of a server.
#[derive(Default)]
pub struct Connections {
    open: Mutex<HashMap<u64, Weak<Watch>>>,
    tick: AtomicU32,
    next_number: AtomicU64,
    /// Bytes of large answers that wait to be read, over all connections.
    unread_bytes: AtomicUsize,
    /// Wakes the sweeper, which sleeps without a timer while nothing is open.
    opened: Notify,
    emptied: Notify,
}

impl Connections {
    /// Registers a connection. With `limit` open an idle one gives up its place; `None` when there is none.
    pub fn open(self: &Arc<Self>, limit: usize, peer: IpAddr) -> Option<Arc<Watch>> {
        let count = self.open.lock().len();
        // Those that were told to close are still counted for a moment, but not for ever.
        if count >= limit && (count >= limit + CONNECTIONS_GIVEN_UP_MAX || !self.give_up_one(limit)) {
            return None;
        }
        let number = self.next_number.fetch_add(1, Relaxed);
        let watch = Arc::new(Watch::new(self.clone(), number, peer));
        let mut open = self.open.lock();
        open.insert(number, Arc::downgrade(&watch));
        let first = open.len() == 1;
        drop(open);
        if first {
            self.opened.notify_one();
        }
        Some(watch)
    }

    pub(crate) fn closed(&self, number: u64) {
        let mut open = self.open.lock();
        open.remove(&number);
        if open.is_empty() {
            drop(open);
            self.emptied.notify_waiters();
        }
    }

    /// Seconds since the start, while connections are open.
    pub(crate) fn now(&self) -> u32 {
        self.tick.load(Relaxed)
    }

    /// Ends idle connections of the peer that has most. Several at a time, if they never asked for anything: looking
    /// through all of them for each newcomer is what a flood would like.
    fn give_up_one(&self, limit: usize) -> bool {
        let all = self.all();
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for watch in &all {
            *counts.entry(watch.peer()).or_default() += 1;
        }
        let is_long = |since: u32| self.now().saturating_sub(since) >= IDLE_TICKS_MIN;
        let mut idle: Vec<Idle<'_>> = all
            .iter()
            .filter_map(|watch| {
                let (served, since) = watch.idle_since().filter(|(_, since)| is_long(*since))?;
                Some(Idle { places: counts[&watch.peer()], served, since, watch })
            })
            .collect();
        let Some(places) = idle.iter().map(|idle| idle.places).max() else { return false };
        idle.retain(|idle| idle.places == places);
        idle.sort_by_key(|idle| (idle.served, idle.since));
        let several = (limit / 64).clamp(1, CONNECTIONS_GIVEN_UP_MAX);
        let silent = idle.iter().take(several).take_while(|idle| !idle.served).count();
        idle.iter().take(silent.max(1)).for_each(|idle| idle.watch.tell(ORDER_CLOSE));
        true
    }

    /// Takes room for a large answer out of `limit` for all of them.
    pub(crate) fn take_unread(&self, bytes: usize, limit: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|after| *after <= limit);
        self.unread_bytes.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    pub(crate) fn give_back_unread(&self, bytes: usize) {
        self.unread_bytes.fetch_sub(bytes, Relaxed);
    }

    /// Bytes of large answers that wait to be read.
    pub fn unread_bytes(&self) -> usize {
        self.unread_bytes.load(Relaxed)
    }

    /// Hangs up on the connection that has not read its answers for the longest time.
    pub(crate) fn end_longest_unread(&self) {
        let is_long = |since: u32| self.now().saturating_sub(since) >= UNREAD_TICKS_MIN;
        let all = self.all();
        let waiting = all.iter().filter_map(|watch| Some((watch.unread_since()?, watch)));
        let longest = waiting.filter(|(since, _)| is_long(*since)).min_by_key(|(since, _)| *since);
        if let Some((_, watch)) = longest {
            watch.tell(ORDER_CLOSE);
        }
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

    pub(crate) fn end_overdue(&self, now: u32, idle_timeout: Duration) -> usize {
        let mut ended = 0;
        for watch in self.all() {
            if let Some(order) = watch.overdue(now, idle_timeout) {
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
        self.open.lock().values().filter_map(Weak::upgrade).collect()
    }

    #[cfg(test)]
    pub(crate) fn set_now(&self, tick: u32) {
        self.tick.store(tick, Relaxed);
    }
}

/// A connection that may be given up, and how many its peer has.
struct Idle<'a> {
    places: usize,
    served: bool,
    since: u32,
    watch: &'a Arc<Watch>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn peer(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    /// Whether it was told to close: it is idle and no longer up for being given up.
    fn gave_up(watch: &Watch) -> bool {
        watch.idle_since().is_none()
    }

    #[test]
    fn the_limit_counts_what_is_open() {
        let connections = Arc::new(Connections::default());
        let first = connections.open(1, peer(1)).unwrap();
        assert!(connections.open(1, peer(1)).is_none(), "it came just now");
        drop(first);
        assert!(connections.open(1, peer(1)).is_some());
    }

    #[test]
    fn whoever_has_most_places_gives_up_the_one_it_used_least() {
        let connections = Arc::new(Connections::default());
        let few = connections.open(4, peer(1)).unwrap();
        let [busy, used, silent] = [(); 3].map(|()| connections.open(4, peer(2)).unwrap());
        busy.request_began();
        used.request_began();
        used.request_ended();
        connections.set_now(5);
        let newcomer = connections.open(4, peer(3)).expect("a place is given up");
        assert_eq!([&few, &used, &silent].map(|watch| gave_up(watch)), [false, false, true]);
        drop(silent);
        let next = connections.open(4, peer(3)).expect("another one");
        assert!(gave_up(&used) && !gave_up(&few));
        drop((newcomer, next));
    }

    #[test]
    fn a_flood_of_silent_connections_makes_room_in_batches_and_never_beyond_a_bound() {
        let connections = Arc::new(Connections::default());
        let silent: Vec<_> = (0..128).map(|_| connections.open(128, peer(1)).unwrap()).collect();
        connections.set_now(5);
        let newcomer = connections.open(128, peer(2)).unwrap();
        assert_eq!(silent.iter().filter(|watch| gave_up(watch)).count(), 2);
        // None of those that were told has closed yet.
        let more: Vec<_> = (0..500).filter_map(|_| connections.open(128, peer(2))).collect();
        assert_eq!(more.len(), CONNECTIONS_GIVEN_UP_MAX - 1);
        drop(newcomer);
    }
}
