//! Failures that pass: a full disk, too many open files, too little memory. What was tried is tried again, with a
//! pause that grows, instead of stopping writes for good.
//!
//! Only where nothing is left half done. A new log segment is created or it is not, and the present one goes on
//! meanwhile. A flush or compaction writes new tables and then names them; what it wrote before it failed is removed,
//! and it starts over from what it was made of. A failed write of a frame that the reserve could not help, and a
//! failed sync, stay final.
//!
//! Writers notice nothing until the log is as large as it may be or the trees are too far behind. From then on new
//! commits are refused as not possible at the moment, until there is progress again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::core::Core;
use super::reserve::For;
use crate::store::{StoreError, Table};

/// The first pause; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// What can be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Log,
    Flush,
    Compaction,
    Drop,
}

#[derive(Default)]
pub(super) struct Setback {
    /// The last failure of each step that has not succeeded since.
    reasons: Mutex<[Option<Arc<str>>; 4]>,
    any: AtomicBool,
    /// Commits have to wait.
    held_up: AtomicBool,
}

impl Setback {
    pub(super) fn met(&self, step: Step, reason: &str) {
        let before = self.reasons.lock()[step as usize].replace(reason.into());
        self.any.store(true, Ordering::Relaxed);
        if before.as_deref() != Some(reason) {
            tracing::warn!(reason, "not possible at the moment; it is tried again");
        }
    }

    pub(super) fn overcome(&self, step: Step) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut reasons = self.reasons.lock();
        if reasons[step as usize].take().is_some() {
            tracing::info!(?step, "possible again");
        }
        self.any.store(reasons.iter().any(Option::is_some), Ordering::Relaxed);
    }

    pub(super) fn reason(&self, step: Step) -> Option<Arc<str>> {
        if self.any.load(Ordering::Relaxed) { self.reasons.lock()[step as usize].clone() } else { None }
    }

    /// Commits wait from here on. That is usual when there is much to do, and no reason to refuse any.
    pub(super) fn hold_up(&self) {
        self.held_up.store(true, Ordering::Relaxed);
    }

    pub(super) fn go_on(&self) {
        if self.held_up.load(Ordering::Relaxed) {
            self.held_up.store(false, Ordering::Relaxed);
        }
    }

    pub(super) fn check(&self) -> Result<(), StoreError> {
        if !self.held_up.load(Ordering::Relaxed) || !self.any.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.reasons.lock().iter().flatten().next() {
            Some(reason) => Err(StoreError::Exhausted(reason.clone())),
            None => Ok(()),
        }
    }
}

/// After a failed step of the background: prepares for the next try, or stops writes when there must be none.
pub(super) fn after(core: &Core, step: Step, tables: &[Table], error: &StoreError) {
    let reason = match step {
        Step::Log => format!("starting a log segment failed: {error}"),
        Step::Flush => format!("flushing failed: {error}"),
        Step::Compaction => format!("compaction failed: {error}"),
        Step::Drop => format!("removing a dropped space failed: {error}"),
    };
    if !matches!(error, StoreError::NoRoom(_) | StoreError::Exhausted(_)) {
        return core.stop_writes(&reason);
    }
    for table in tables {
        // Where even that cannot be read now, the next try does not get that far either.
        if core.trees.is_as_on_disk(*table).is_ok_and(|same| !same) {
            return core.stop_writes(&reason);
        }
        core.trees.sweep(*table);
    }
    core.setback.met(step, &reason);
    if matches!(error, StoreError::NoRoom(_)) {
        core.reserve.release(if step == Step::Compaction { For::Compaction } else { For::Flush });
    }
}

/// How long to wait after so many failures in a row.
pub(super) fn pause(failures: u32) -> Duration {
    PAUSE_MIN.saturating_mul(1 << failures.saturating_sub(1).min(8)).min(PAUSE_MAX)
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether the same call may succeed later.
pub(super) fn is_passing(error: &io::Error) -> bool {
    let lacks =
        matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::Interrupted) || is_full(error);
    #[cfg(unix)]
    let lacks = lacks || matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
    lacks
}
