//! The direct protocol of Cosmos DB, RNTBD: frames over TLS, many requests on one connection.
//!
//! Clients in direct mode (the default of Java and .NET) read the account, containers, ranges and query plans over
//! HTTPS, ask `/addresses` where partitions are, and send everything about items here. A frame says what an HTTP
//! request would have said, in other words; so it becomes the same request, is served by the same code, and only its
//! answer is written differently.
//!
//! ```text
//! bytes ─ frame ─ token, tokens ─ request ─┐                    ┌─ response ─ token ─ bytes
//!   └─ handshake, once                     └─ Service::perform ─┘
//! ```
//!
//! `connection` reads and writes; [`DirectApi`] is what the server knows of all this.

mod call;
mod connection;
mod frame;
mod handshake;
mod input;
mod output;
mod request;
mod response;
mod token;
mod tokens;

#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod golden_tests;

use std::sync::Arc;

use orrery_api::{Attendant, ByteStream, Claim, Connection, StreamApi, StreamFuture};

use crate::service::Service;

pub use tokens::page as tokens_page;

/// The direct protocol in front of a service.
pub struct DirectApi(pub Arc<Service>);

impl StreamApi for DirectApi {
    fn name(&self) -> &'static str {
        "rntbd"
    }

    fn claims(&self, first: &[u8]) -> Claim {
        match handshake::is_context_request(first) {
            Some(true) => Claim::Mine,
            Some(false) => Claim::NotMine,
            None => Claim::Undecided,
        }
    }

    fn serve<'a>(
        &'a self,
        stream: Box<dyn ByteStream>,
        connection: Connection,
        attendant: Arc<dyn Attendant>,
    ) -> StreamFuture<'a> {
        Box::pin(connection::serve(self.0.clone(), stream, connection, attendant))
    }
}
