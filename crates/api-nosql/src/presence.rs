//! Whether the client is still there while a query runs for it.
//!
//! Pages are made on the thread of their request, which reads nothing from the network meanwhile. A server that can tell
//! whether the client has hung up puts a [`Presence`] into the extensions of the request; a query asks it now and then,
//! and ends when nobody waits for its page any more.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::StatusCode;

use crate::errors::{ApiError, Voice};

/// How often the network is asked.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Answers whether the client of a request has gone. Asked from several threads, and cheaply: nothing may wait in it.
#[derive(Clone)]
pub struct Presence(Arc<dyn Fn() -> bool + Send + Sync>);

impl Presence {
    pub fn new(is_gone: impl Fn() -> bool + Send + Sync + 'static) -> Presence {
        Presence(Arc::new(is_gone))
    }
}

impl fmt::Debug for Presence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Presence(…)")
    }
}

/// The same for whoever asks often: the network is asked every [`LOOK_EVERY`].
#[derive(Debug)]
pub(crate) struct Patience<'a> {
    presence: Option<&'a Presence>,
    began: Instant,
    next_look_ms: AtomicU64,
    over: AtomicBool,
}

impl<'a> Patience<'a> {
    pub fn new(presence: Option<&'a Presence>) -> Patience<'a> {
        let next_look_ms = AtomicU64::new(LOOK_EVERY.as_millis() as u64);
        Patience { presence, began: Instant::now(), next_look_ms, over: AtomicBool::new(false) }
    }

    /// Whether nobody waits any more. Once it is over it stays so.
    pub fn is_over(&self) -> bool {
        let Some(presence) = self.presence else { return false };
        if self.over.load(Ordering::Relaxed) {
            return true;
        }
        let now_ms = self.began.elapsed().as_millis() as u64;
        let look_ms = self.next_look_ms.load(Ordering::Relaxed);
        if now_ms < look_ms {
            return false;
        }
        self.next_look_ms.store(now_ms + LOOK_EVERY.as_millis() as u64, Ordering::Relaxed);
        let gone = (presence.0)();
        self.over.fetch_or(gone, Ordering::Relaxed);
        gone
    }
}

/// An answer for the log: the client does not see it.
pub(crate) fn gone() -> ApiError {
    let message =
        "The client has closed its connection, or taken its request back, before the answer was ready.";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, Voice::Gateway, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_has_gone_stays_gone_and_is_asked_about_now_and_then_only() {
        let asked = Arc::new(AtomicU64::new(0));
        let count = asked.clone();
        let presence = Presence::new(move || count.fetch_add(1, Ordering::Relaxed) > 0);
        let patience = Patience::new(Some(&presence));
        for _ in 0..1_000 {
            assert!(!patience.is_over());
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0, "not before the first look is due");
        let began = Instant::now();
        while !patience.is_over() && began.elapsed() < Duration::from_secs(5) {}
        assert!(patience.is_over() && patience.is_over());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
        assert!(!Patience::new(None).is_over());
    }
}
