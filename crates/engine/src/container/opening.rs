//! Opening the partition of a range: the first time, and again after it has lost its store.
//!
//! ```text
//! empty ──── a request, waiting for whoever is at it ──────────────► serving
//!   ▲                                                                   │ a commit fails, not for good
//!   │                                                                   ▼
//!   └── let go ◄── a request or the sweeper, one at a time ◄────────── lost
//! ```
//!
//! Who opens a partition again claims its space as the owner that it was. If another has come in between, that claim is
//! refused, and only a request takes the space back: the sweeper leaves it where it is, or two would take it from each
//! other for ever. Requests that come while somebody is at it, or shortly after an attempt has failed, are told to come
//! back: none of them holds a thread for a store that does not answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use orrery_storage::{Claim, Failure, StoreError};
use parking_lot::MutexGuard;

use super::Container;
use crate::error::{Error, Kind, Result};
use crate::partition::Partition;
use crate::ranges::Slot;

/// How long an attempt that failed keeps others from the next: this after the first, twice as long after each.
const RETRY_MIN: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(1);

/// What is known about opening a partition that could not be opened, or was lost.
#[derive(Default)]
pub(crate) struct Opening {
    /// Nothing before the first partition.
    claim: Option<Claim>,
    retry: Retry,
}

/// When the next attempt is due, where some have failed.
#[derive(Default)]
pub(crate) struct Retry {
    failures: u32,
    not_before: Option<Instant>,
}

impl Retry {
    pub(crate) fn is_due(&self) -> bool {
        self.not_before.is_none_or(|time| time <= Instant::now())
    }

    pub(crate) fn failed(&mut self) {
        let wait = RETRY_MIN.saturating_mul(1 << self.failures.min(16)).min(RETRY_MAX);
        self.failures += 1;
        self.not_before = Some(Instant::now() + wait);
    }
}

/// Who wants a partition open.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    Request,
    Sweeper,
}

impl Container {
    /// Opens the partitions that were lost, as far as they are still this owner's and the store is back.
    pub(crate) fn reopen_lost(&self) {
        for slot in self.map().slots() {
            if !slot.is_lost() {
                continue;
            }
            match self.open_slot(slot, Asking::Sweeper) {
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(container = self.name(), range = slot.id(), %error, cause = ?error.cause, "not open yet")
                }
            }
        }
    }

    #[cold]
    pub(super) fn open_slot(&self, slot: &Slot, asking: Asking) -> Result<Arc<Partition>> {
        let mut opening = match slot.is_lost() {
            false => slot.lock(),
            true => match slot.try_lock() {
                Some(opening) => opening,
                None => return slot.serving().ok_or_else(Error::unavailable),
            },
        };
        if let Some(partition) = slot.serving() {
            return Ok(partition);
        }
        // Checked under the lock: a dropped space must not be opened again by a request that was on its way.
        if self.core.is_deleted() {
            return Err(Error::owner_not_found());
        }
        slot.check()?;
        if slot.is_lost()
            && let Some(lost) = slot.let_go()
        {
            tracing::warn!(
                container = self.name(),
                range = slot.id(),
                "a partition has lost its store and is opened again"
            );
            *opening = Opening { claim: Some(lost.next_claim()), retry: Retry::default() };
        }
        let wanted = asking == Asking::Request || !matches!(opening.claim, Some(Claim::Take(_)));
        if !wanted || !opening.retry.is_due() {
            return Err(Error::unavailable());
        }
        self.claim_and_open(slot, &mut opening)
    }

    fn claim_and_open(&self, slot: &Slot, opening: &mut MutexGuard<'_, Opening>) -> Result<Arc<Partition>> {
        let claim = opening.claim.unwrap_or(Claim::Take(slot.ownership.epoch));
        let space = match self.shared.store.claim_space(slot.space, claim) {
            Ok(space) => space,
            Err(error) => {
                if let (StoreError::Fenced(_), Claim::Renew(epoch)) = (&error, claim) {
                    opening.claim = Some(Claim::Take(epoch));
                }
                if error.failure() != Failure::Final {
                    opening.retry.failed();
                }
                return Err(not_opened(error));
            }
        };
        let epoch = space.epoch();
        match Partition::open(self.setup(slot.id(), slot.min(), slot.max(), space)) {
            Ok(partition) => {
                let partition = Arc::new(partition);
                if opening.claim.is_some() {
                    self.shared.outages.partition_reopened();
                    tracing::info!(
                        container = self.name(),
                        range = slot.id(),
                        lsn = partition.lsn(),
                        "a partition is open again"
                    );
                }
                **opening = Opening::default();
                slot.set(partition.clone());
                Ok(partition)
            }
            Err(error) => {
                opening.claim = Some(Claim::Renew(epoch));
                if error.kind == Kind::Unavailable {
                    opening.retry.failed();
                }
                Err(error)
            }
        }
    }
}

/// Nothing of the request was done, whatever became of the claim.
fn not_opened(error: StoreError) -> Error {
    match error {
        StoreError::OutcomeUnknown(_) | StoreError::Fenced(_) => Error::unavailable().caused_by(error),
        error => error.into(),
    }
}
