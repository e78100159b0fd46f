//! Whether a partition serves: it does, it pauses for a handover, its range has gone to other partitions, or its store
//! was lost.
//!
//! A pause lasts milliseconds. Writers that arrive in it are neither refused nor do they hold a thread: they are told
//! to wait, and route again when the pause is over. Readers go on until the range has gone; from then on the space
//! behind it may be dropped at any moment, and what a dropped space shows must not be taken for an answer.
//!
//! A partition whose commit has failed for now is *lost*: what it holds in memory rests on rows that may be there or
//! not, so it neither reads nor writes again, and another is opened in its place. One that was *fenced* is lost too;
//! writes that come to it are routed again.

use std::sync::atomic::{AtomicU8, Ordering};

use futures_channel::oneshot;
use parking_lot::Mutex;

use crate::error::{Error, Kind, Result};

const OPEN: u8 = 0;
const PAUSED: u8 = 1;
const GONE: u8 = 2;
const LOST: u8 = 3;
const FENCED: u8 = 4;

pub(crate) const RANGE_GONE: &str = "The requested resource is no longer available at the server.";

#[derive(Default)]
pub(super) struct Gate {
    state: AtomicU8,
    /// As many as there are requests in the server, which are limited there.
    waiting: Mutex<Vec<oneshot::Sender<()>>>,
}

impl Gate {
    /// For writers, under the partition's lock: a pause begins under the same lock.
    pub(super) fn check_write(&self) -> Result<()> {
        match self.state.load(Ordering::Acquire) {
            OPEN => Ok(()),
            LOST => Err(Error::unavailable()),
            _ => Err(gone()),
        }
    }

    /// For readers, after they have taken their snapshot.
    pub(super) fn check_read(&self) -> Result<()> {
        match self.state.load(Ordering::Acquire) {
            OPEN | PAUSED => Ok(()),
            LOST | FENCED => Err(Error::unavailable()),
            _ => Err(gone()),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.load(Ordering::Acquire) == OPEN
    }

    /// Whether another partition has to be opened in place of this one.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state.load(Ordering::Acquire), LOST | FENCED)
    }

    pub(super) fn is_fenced(&self) -> bool {
        self.state.load(Ordering::Acquire) == FENCED
    }

    /// Ready when the pause is over; `None` when there is none.
    pub(super) fn pause_end(&self) -> Option<oneshot::Receiver<()>> {
        let mut waiting = self.waiting.lock();
        if self.state.load(Ordering::Acquire) != PAUSED {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        waiting.push(sender);
        Some(receiver)
    }

    pub(super) fn pause(&self) {
        self.set(PAUSED, &[OPEN]);
    }

    pub(super) fn reopen(&self) {
        self.set(OPEN, &[PAUSED]);
    }

    pub(super) fn leave(&self) {
        self.set(GONE, &[OPEN, PAUSED, LOST, FENCED]);
    }

    /// The first reason stays.
    pub(super) fn lose(&self, fenced: bool) {
        self.set(if fenced { FENCED } else { LOST }, &[OPEN, PAUSED]);
    }

    /// Changes the state, from one of these only: a range that has gone does not come back, nor does one that was lost.
    fn set(&self, state: u8, from: &[u8]) {
        let mut waiting = self.waiting.lock();
        if !from.contains(&self.state.load(Ordering::Acquire)) {
            return;
        }
        self.state.store(state, Ordering::Release);
        if state != PAUSED {
            // Dropping a sender wakes its receiver.
            waiting.clear();
        }
    }
}

pub(crate) fn gone() -> Error {
    Error::new(Kind::RangeGone, RANGE_GONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;

    #[test]
    fn a_pause_holds_writers_and_lets_readers_go_on() {
        let gate = Gate::default();
        assert!(gate.check_write().is_ok() && gate.pause_end().is_none());
        gate.pause();
        assert_eq!(gate.check_write().unwrap_err().kind, Kind::RangeGone);
        assert!(gate.check_read().is_ok());
        let end = gate.pause_end().expect("paused");
        gate.reopen();
        assert!(block_on(end).is_err(), "woken by the dropped sender");
        assert!(gate.check_write().is_ok());
    }

    #[test]
    fn a_range_that_has_gone_is_gone_for_readers_too() {
        let gate = Gate::default();
        gate.pause();
        let end = gate.pause_end().expect("paused");
        gate.leave();
        assert!(block_on(end).is_err());
        assert!(gate.check_read().is_err() && gate.check_write().is_err() && gate.pause_end().is_none());
    }

    #[test]
    fn what_was_lost_stays_lost_and_wakes_those_who_wait() {
        let gate = Gate::default();
        gate.pause();
        let end = gate.pause_end().expect("paused");
        gate.lose(false);
        assert!(block_on(end).is_err());
        gate.lose(true);
        gate.reopen();
        gate.pause();
        assert!(gate.is_lost() && !gate.is_fenced() && gate.pause_end().is_none());
        assert_eq!(gate.check_read().unwrap_err().kind, Kind::Unavailable);
        assert_eq!(gate.check_write().unwrap_err().kind, Kind::Unavailable);
        // Not when the range has gone to others meanwhile: then the client has to read the map again.
        gate.leave();
        assert_eq!(gate.check_read().unwrap_err().kind, Kind::RangeGone);
        assert!(!gate.is_lost());
    }
}
