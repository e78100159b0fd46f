//! The apis without a network: requests go straight to them, in the same process.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use bytes::Bytes;
use http::{Request, Response};
use orrery_api::{Client, Connection, HttpApi as _};

use crate::config::Config;
use crate::service::{self, Served};

/// What a server would serve, without its ports.
pub struct InProcess {
    served: Served,
}

impl InProcess {
    /// Opens the store that the configuration names, and what serves it.
    pub fn open(config: &Config) -> Result<InProcess> {
        Ok(InProcess { served: service::open(config)? })
    }

    /// Answers a request as the main port would.
    pub async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
        let connection = Connection { tls: false, local, peer: local, client: Client::Unknown };
        self.served.main.http.handle(request, connection).await.response
    }

    /// Writes out what is only in memory.
    pub fn close(&self) -> Result<()> {
        self.served.backend.close()
    }
}
