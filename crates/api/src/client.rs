//! Whether the client of a request is still there.
//!
//! Long work is done on the thread of its request, which reads nothing from the network meanwhile. A server that can
//! tell whether the client has hung up says by a [`Client`] whom to ask; the budget of the request asks now and then,
//! and what runs for it ends when nobody waits for its answer any more.

use std::fmt;
use std::sync::Arc;

/// Answers whether the client of a request has gone. Asked from several threads, and cheaply: nothing may wait in it.
#[derive(Clone, Default)]
pub enum Client {
    /// Nothing can be told.
    #[default]
    Unknown,
    /// The server tells by the number of the connection. Costs nothing to make.
    Connection(fn(i32) -> bool, i32),
    Asked(Arc<dyn Fn() -> bool + Send + Sync>),
}

impl Client {
    pub fn new(is_gone: impl Fn() -> bool + Send + Sync + 'static) -> Client {
        Client::Asked(Arc::new(is_gone))
    }

    /// Whether the answer would reach nobody. Never waits.
    pub fn is_gone(&self) -> bool {
        match self {
            Client::Unknown => false,
            Client::Connection(is_gone, number) => is_gone(*number),
            Client::Asked(is_gone) => is_gone(),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Client")
    }
}
