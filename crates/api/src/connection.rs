//! Where a request came from.

use std::net::SocketAddr;

use crate::Client;

/// Where a request came from.
#[derive(Clone, Debug)]
pub struct Connection {
    pub tls: bool,
    pub local: SocketAddr,
    pub peer: SocketAddr,
    /// Tells whether the client is still there, where the server can.
    pub client: Client,
}
