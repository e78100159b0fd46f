//! The end of a partition's service: it holds its feed while others are built from it, pauses, and leaves.
//!
//! Both holds are guards. Whatever goes wrong before the catalog has changed, dropping them makes the partition serve
//! as before.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use orrery_storage::{Commit, Durability};

use super::Partition;
use crate::error::{Error, Result};

/// Keeps deletes in the feed that the successors have not seen.
pub(crate) struct FeedHold(Arc<Partition>);

impl FeedHold {
    /// Everything after the partition's present LSN is kept.
    pub(crate) fn new(partition: &Arc<Partition>) -> FeedHold {
        // A visit that has begun may still remove rows up to the LSN it saw, so the present one ends first.
        partition.shared.agenda.held_from.store(partition.lsn(), Ordering::Release);
        partition.shared.agenda.wait_for_visit();
        FeedHold(partition.clone())
    }
}

impl Drop for FeedHold {
    fn drop(&mut self) {
        self.0.shared.agenda.held_from.store(u64::MAX, Ordering::Release);
    }
}

/// Writers wait; readers go on.
pub(crate) struct Pause {
    partitions: Vec<Arc<Partition>>,
    left: bool,
}

impl Pause {
    pub(crate) fn begin(partitions: Vec<Arc<Partition>>) -> Pause {
        for partition in &partitions {
            // Under the lock: whoever had it has submitted, whoever comes next sees the pause.
            let _state = partition.shared.overlay.lock();
            partition.shared.gate.pause();
        }
        Pause { partitions, left: false }
    }

    /// Waits until everything submitted before the pause is published.
    pub(crate) fn drain(&self) -> Result<()> {
        for partition in &self.partitions {
            // Answered after everything before it.
            partition.space.commit(Commit::default(), Durability::Relaxed).inspect_err(|error| {
                // Nobody else waits for this answer, and later commits fail as well.
                partition.shared.fail(error);
            })?;
            let submitted = partition.shared.overlay.lock().next_lsn - 1;
            if partition.lsn() != submitted {
                return Err(Error::internal("A partition could not be brought to rest."));
            }
        }
        Ok(())
    }

    /// The range belongs to others now. Only after the map that says so is in place.
    pub(crate) fn leave(mut self) {
        self.left = true;
        for partition in &self.partitions {
            partition.shared.gate.leave();
        }
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if !self.left {
            for partition in &self.partitions {
                partition.shared.gate.reopen();
            }
        }
    }
}

impl Partition {
    /// The range belongs to others.
    pub(crate) fn leave(&self) {
        self.shared.gate.leave();
    }

    /// Refuses everything until another partition is opened in its place.
    pub(crate) fn give_up(&self) {
        self.shared.gate.lose(false);
    }

    /// Whether an attempt to split it has a chance. One whose whole content had a single effective key is tried again
    /// when it has grown by an eighth.
    pub(crate) fn may_be_split(&self) -> bool {
        let refused_at = self.shared.unsplittable_bytes.load(Ordering::Relaxed);
        self.takes_writes() && (refused_at == 0 || self.usage().size_bytes > refused_at + refused_at / 8)
    }

    pub(crate) fn cannot_be_split(&self) {
        self.shared.unsplittable_bytes.store(self.usage().size_bytes.max(1), Ordering::Relaxed);
    }
}
