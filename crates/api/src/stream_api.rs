//! Protocols that have a connection to themselves: MongoDB's wire protocol, RNTBD, WebSocket.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Connection, Summary};

/// Whether the first bytes of a connection are those of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    Mine,
    NotMine,
    /// It depends on what follows. The server asks again with more, as long as there is more that it keeps.
    Undecided,
}

/// Both directions of a connection.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

pub type StreamFuture<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

/// A protocol of its own on a connection. Boxed once for each connection; nothing is for each request.
pub trait StreamApi: Send + Sync + 'static {
    /// The `api` label of metrics.
    fn name(&self) -> &'static str;

    /// Whether a connection that begins like this is this protocol's. Called for every connection of a shared port
    /// with at least one byte, so the usual first bytes of others should be told apart quickly.
    fn claims(&self, first: &[u8]) -> Claim;

    /// Serves a connection to its end. Dropped when the server closes it.
    fn serve<'a>(
        &'a self,
        stream: Box<dyn ByteStream>,
        connection: Connection,
        attendant: Arc<dyn Attendant>,
    ) -> StreamFuture<'a>;
}

/// The right of a request to work for long; given back when dropped.
pub struct LongTurn(#[allow(dead_code, reason = "held, not read")] Box<dyn Send>);

impl LongTurn {
    pub fn new(held: impl Send + 'static) -> LongTurn {
        LongTurn(Box::new(held))
    }
}

/// The server's side of a connection that an api serves by itself. A connection without requests in flight counts as
/// idle, and is ended when it has been so for long.
pub trait Attendant: Send + Sync {
    fn request_began(&self);

    /// Counts and logs a request. The status is in the words of HTTP: metrics and log show classes of them.
    fn request_ended(&self, summary: &Summary, status: u16, took: Duration);

    /// Waits for the turn of a request that may take long: a connection has a few, the server some more. `None`:
    /// there is no room, and the request is to be refused.
    fn long_turn(&self) -> Pin<Box<dyn Future<Output = Option<LongTurn>> + Send + '_>>;

    /// So many bytes of answers wait for the network. A connection that takes none of them for long is ended.
    fn answer_queued(&self, bytes: usize);

    /// So many of them were taken, or are not waited for any more.
    fn answer_taken(&self, bytes: usize);

    /// Ready when the connection is to end: what is in flight is finished, nothing new is taken.
    fn ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
