//! Whether the client is still there while a query runs for it.
//!
//! Pages are made on the thread of their request, which reads nothing from the network meanwhile. A server that can tell
//! whether the client has hung up says by a [`Presence`] whom to ask; the budget of the request asks now and then, and
//! what runs for it ends when nobody waits for its answer any more.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Answers whether the client of a request has gone. Asked from several threads, and cheaply: nothing may wait in it.
#[derive(Clone, Default)]
pub enum Presence {
    /// Nothing can be told.
    #[default]
    Unknown,
    /// The server tells by the number of the connection. Costs nothing to make.
    Connection(fn(i32) -> bool, i32),
    /// True when the client has gone.
    Flag(Arc<AtomicBool>),
    Asked(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl Presence {
    pub fn new(is_gone: impl Fn() -> bool + Send + Sync + 'static) -> Presence {
        Presence::Asked(Arc::new(is_gone))
    }

    /// Asks the network.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Presence::Unknown => false,
            Presence::Connection(is_gone, number) => is_gone(*number),
            Presence::Flag(gone) => gone.load(Ordering::Relaxed),
            Presence::Asked(is_gone) => is_gone(),
        }
    }
}

impl fmt::Debug for Presence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Presence")
    }
}
