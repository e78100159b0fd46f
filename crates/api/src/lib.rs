//! What an API is to the server, and what the server is to an API.
//!
//! The server owns sockets, TLS, limits, metrics and the log; an API owns the meaning of a protocol. They meet here,
//! and know nothing else of each other. There are two kinds of protocols:
//!
//! - [`HttpApi`]: one request, one answer. The server reads whole requests over HTTP/1.1 and HTTP/2 and sends whole
//!   answers. Several can share a port ([`Either`]): each is asked whether a request is its own.
//! - [`StreamApi`]: has a connection to itself, from its first byte on, plain or inside TLS. The server looks at the
//!   first bytes and hands the connection to whoever claims them; what nobody claims is HTTP.
//!
//! Both are told where a request came from ([`Connection`]) and whether its client is still there ([`Client`]), and
//! both say what the log and the metrics need to know about an answer ([`Summary`]).

mod client;
mod connection;
mod http_api;
mod refusal;
mod stream_api;
mod summary;
mod well_known;

pub use client::Client;
pub use connection::Connection;
pub use http_api::{Answered, Either, HttpApi};
pub use refusal::Refusal;
pub use stream_api::{Attendant, ByteStream, Claim, LongTurn, StreamApi, StreamFuture};
pub use summary::{Fault, Summary};
pub use well_known::EMULATOR_KEY;

/// Runs work that may keep a thread busy for long, such as pages of scans. A server on an event loop makes room for
/// others, and may do the work on another thread; a test just runs it.
pub type Lengthy = fn(&mut (dyn FnMut() + Send));
