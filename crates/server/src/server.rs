//! A server: listeners, the apis behind them, a sweeper, an orderly end.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result};
use orrery_api::HttpApi;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::api::{Apis, SharedBackend};
use crate::config::{Config, TlsMode};
use crate::listener::{self, Port};
use crate::log::LogSink;
use crate::transport::Transport;

/// Addresses that are listened on. Binding comes before opening the store: clients that connect meanwhile wait in the
/// kernel's queue instead of being turned away.
#[derive(Default)]
pub struct Bound {
    listeners: Vec<TcpListener>,
    pub addresses: Vec<SocketAddr>,
}

impl Bound {
    /// Must be called inside a runtime. `flag` is the setting that gave the addresses.
    pub fn new(addresses: &[SocketAddr], flag: &str) -> Result<Bound> {
        let listeners = addresses
            .iter()
            .map(|address| listener::bind(*address).with_context(|| refusal(*address, flag)))
            .collect::<Result<Vec<_>>>()?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
        Ok(Bound { listeners, addresses })
    }
}

fn refusal(address: SocketAddr, flag: &str) -> String {
    format!("cannot listen on {address} (another server there? choose an address with --{flag})")
}

/// Accepts connections until it is dropped.
type Accepting = Pin<Box<dyn Future<Output = ()> + Send>>;

pub struct Server {
    transport: Arc<Transport>,
    accepting: Vec<Accepting>,
    addresses: Vec<SocketAddr>,
    idle_timeout: Duration,
    shutdown_timeout: Duration,
}

impl Server {
    /// A server that answers with these apis on all of these addresses.
    pub fn new<A: HttpApi>(
        bound: Bound,
        config: &Config,
        apis: Apis<A>,
        backend: SharedBackend,
        log: LogSink,
    ) -> Server {
        let server = Server {
            transport: Arc::new(Transport::new(config, backend, log)),
            accepting: Vec::new(),
            addresses: bound.addresses.clone(),
            idle_timeout: config.idle_timeout,
            shutdown_timeout: config.shutdown_timeout,
        };
        server.with_port(bound, apis)
    }

    /// The same server, which answers with other apis on further addresses.
    pub fn with_port<A: HttpApi>(mut self, bound: Bound, apis: Apis<A>) -> Server {
        let port = Arc::new(Port::new(apis, self.transport.clone()));
        let accept = |listener| -> Accepting { Box::pin(listener::accept(listener, port.clone())) };
        self.accepting.extend(bound.listeners.into_iter().map(accept));
        self
    }

    /// Those of the first port.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Serves until `stop` is ready, then finishes what is in flight. Returns how many connections did not finish in
    /// time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> usize {
        let Server { transport, accepting, idle_timeout, shutdown_timeout, .. } = self;
        let mut tasks = JoinSet::new();
        for accepting in accepting {
            tasks.spawn(accepting);
        }
        let sweeper = transport.clone();
        tasks.spawn(async move {
            let each_tick = |timed_out: usize| {
                sweeper.metrics.connections_timed_out.fetch_add(timed_out as u64, Relaxed);
                sweeper.request_log.report_held_back();
            };
            sweeper.connections.sweep(idle_timeout, each_tick).await;
        });
        if transport.tls_mode != TlsMode::Off && transport.tls.keeps_certificate() {
            // After the start, so that it costs the first answer nothing, and before anyone exports it. Wrong files
            // of the operator show in the log at once instead of with the first client.
            let transport = transport.clone();
            tasks.spawn(async move {
                if let Err(error) = transport.tls.acceptor().await {
                    tracing::error!(error = format!("{error:#}"), "TLS is not available");
                }
            });
        }
        stop.await;
        // Dropping the accept tasks closes the listeners: a new server may take the address at once.
        tasks.shutdown().await;
        transport.connections.finish(shutdown_timeout).await
    }
}
