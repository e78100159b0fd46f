//! Which sequence numbers are being read: the published one, the open snapshots, and the watermark below which old
//! values may go.
//!
//! A snapshot reads every row with a seqno below its own, through the tree version of its time. Opening one reads
//! `visible` and counts it in a map under one mutex; the watermark is computed under the same mutex, so no flush can
//! remove what a snapshot being opened is about to need.
//!
//! An open snapshot pins every table and memtable that was replaced since. So it has a maximum age: past it, its reads
//! fail with `SnapshotExpired` and it pins nothing more. Each read holds its snapshot's gate, which expiry must close
//! first, because a tree panics when it is asked for a version that is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::store::StoreError;

pub(super) struct Snapshots {
    /// Readers see every seqno below this one. Written by the committer only.
    visible: AtomicU64,
    open: Mutex<BTreeMap<u64, Entry>>,
    age_max: Duration,
}

/// All snapshots with the same seqno. One without any is kept while its seqno is the visible one: the next snapshot
/// will want it.
struct Entry {
    pin: Arc<Pin>,
    count: usize,
    /// When it was first found to hold something back.
    superseded: Option<Instant>,
}

pub(super) struct Pin {
    pub(super) seqno: u64,
    /// True once expired.
    gate: RwLock<bool>,
}

impl Pin {
    /// Held during a read: what the snapshot pins stays until the guard is dropped.
    pub(super) fn enter(&self) -> Result<RwLockReadGuard<'_, bool>, StoreError> {
        let expired = self.gate.read();
        if *expired { Err(StoreError::SnapshotExpired) } else { Ok(expired) }
    }

    pub(super) fn is_expired(&self) -> bool {
        *self.gate.read()
    }
}

impl Snapshots {
    pub(super) fn new(visible: u64, age_max: Duration) -> Snapshots {
        Snapshots { visible: AtomicU64::new(visible), open: Mutex::default(), age_max }
    }

    pub(super) fn publish(&self, seqno: u64) {
        self.visible.store(seqno, Ordering::Release);
    }

    pub(super) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    pub(super) fn open(&self) -> Arc<Pin> {
        let mut open = self.open.lock();
        let seqno = self.visible();
        let entry = open.entry(seqno).or_insert_with(|| Entry {
            pin: Arc::new(Pin { seqno, gate: RwLock::new(false) }),
            count: 0,
            superseded: None,
        });
        entry.count += 1;
        entry.pin.clone()
    }

    pub(super) fn close(&self, pin: &Arc<Pin>) {
        let mut open = self.open.lock();
        // An expired pin has left the map already, and another with its number may have come.
        if let Some(entry) = open.get_mut(&pin.seqno).filter(|entry| Arc::ptr_eq(&entry.pin, pin)) {
            entry.count -= 1;
            if entry.count == 0 && pin.seqno != self.visible() {
                open.remove(&pin.seqno);
            }
        }
    }

    /// The oldest seqno that is or may be read. Expires what has become too old.
    pub(super) fn watermark(&self) -> u64 {
        let mut open = self.open.lock();
        let visible = self.visible();
        while let Some(mut oldest) = open.first_entry() {
            // A snapshot of the present state holds nothing back, however old it is.
            if *oldest.key() >= visible {
                return visible;
            }
            let entry = oldest.get_mut();
            let superseded = *entry.superseded.get_or_insert_with(Instant::now);
            if entry.count > 0 && superseded.elapsed() < self.age_max {
                return *oldest.key();
            }
            let entry = oldest.remove();
            if entry.count > 0 {
                *entry.pin.gate.write() = true;
                tracing::warn!(snapshots = entry.count, "snapshots were held for too long and have expired");
            }
        }
        visible
    }

    pub(super) fn count(&self) -> u64 {
        self.open.lock().values().map(|entry| entry.count as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_is_the_oldest_open_snapshot_else_what_is_visible() {
        let snapshots = Snapshots::new(5, Duration::from_secs(60));
        let (first, second) = (snapshots.open(), snapshots.open());
        snapshots.publish(9);
        let third = snapshots.open();
        assert_eq!((snapshots.watermark(), snapshots.count()), (5, 3));
        snapshots.close(&first);
        assert_eq!(snapshots.watermark(), 5);
        snapshots.close(&second);
        assert_eq!(snapshots.watermark(), 9);
        snapshots.publish(11);
        assert_eq!(snapshots.watermark(), 9);
        snapshots.close(&third);
        assert_eq!((snapshots.watermark(), snapshots.count()), (11, 0));
    }

    #[test]
    fn an_old_snapshot_expires_only_when_it_holds_something_back() {
        let snapshots = Snapshots::new(5, Duration::ZERO);
        let pin = snapshots.open();
        assert_eq!(snapshots.watermark(), 5);
        assert!(!pin.is_expired() && pin.enter().is_ok());
        snapshots.publish(6);
        assert_eq!(snapshots.watermark(), 6);
        assert!(matches!(pin.enter(), Err(StoreError::SnapshotExpired)));
        // Its closing must not count against another with the same number.
        snapshots.publish(5);
        let other = snapshots.open();
        snapshots.close(&pin);
        assert_eq!(snapshots.count(), 1);
        snapshots.close(&other);
    }

    #[test]
    fn expiry_waits_for_a_read_that_has_begun() {
        let snapshots = Arc::new(Snapshots::new(5, Duration::ZERO));
        let pin = snapshots.open();
        snapshots.publish(6);
        let reading = pin.enter().expect("not expired");
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::spawn({
            let snapshots = snapshots.clone();
            move || sender.send(snapshots.watermark()).expect("awaited")
        });
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
        drop(reading);
        assert_eq!(receiver.recv().expect("sent"), 6);
        thread.join().expect("no panic");
    }
}
