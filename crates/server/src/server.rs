//! A server: listeners, the apis behind them, a sweeper, an orderly end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result};
use orrery_api::HttpApi;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::api::{Apis, SharedBackend};
use crate::config::{Config, TlsMode};
use crate::connection::Connections;
use crate::dispatch::Dispatcher;
use crate::listener::{self, Port};
use crate::log::LogSink;
use crate::tls::{CertificateSource, Tls};

/// Addresses that are listened on. Binding comes before opening the store: clients that connect meanwhile wait in the
/// kernel's queue instead of being turned away.
pub struct Bound {
    listeners: Vec<TcpListener>,
    pub addresses: Vec<SocketAddr>,
}

impl Bound {
    /// Must be called inside a runtime.
    pub fn new(addresses: &[SocketAddr]) -> Result<Bound> {
        let listeners = addresses
            .iter()
            .map(|address| listener::bind(*address).with_context(|| refusal(*address)))
            .collect::<Result<Vec<_>>>()?;
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
        Ok(Bound { listeners, addresses })
    }
}

fn refusal(address: SocketAddr) -> String {
    format!("cannot listen on {address} (another server there? choose an address with --listen)")
}

pub struct Server<A> {
    bound: Bound,
    port: Arc<Port<A>>,
    idle_timeout: Duration,
    shutdown_timeout: Duration,
    keeps_certificate: bool,
}

impl<A: HttpApi> Server<A> {
    pub fn new(
        bound: Bound,
        config: &Config,
        apis: Apis<A>,
        backend: SharedBackend,
        log: LogSink,
    ) -> Server<A> {
        let names = config.tls_names.clone();
        let source = match &config.tls_files {
            Some((chain, key)) => CertificateSource::Files(chain.clone(), key.clone()),
            None if config.ephemeral => {
                CertificateSource::Ephemeral { data_dir: config.data_dir.clone(), names }
            }
            None => CertificateSource::Kept { data_dir: config.data_dir.clone(), names },
        };
        let keeps_certificate =
            config.tls != TlsMode::Off && !matches!(source, CertificateSource::Ephemeral { .. });
        let port = Port {
            dispatcher: Dispatcher::new(apis.http, backend, config, log),
            streams: apis.streams,
            connections: Arc::new(Connections::default()),
            connections_max: config.connections_max,
            tls: Tls::new(source),
            tls_mode: config.tls,
        };
        Server {
            bound,
            port: Arc::new(port),
            idle_timeout: config.idle_timeout,
            shutdown_timeout: config.shutdown_timeout,
            keeps_certificate,
        }
    }

    pub fn addresses(&self) -> &[SocketAddr] {
        &self.bound.addresses
    }

    /// Serves until `stop` is ready, then finishes what is in flight. Returns how many connections did not finish in time.
    pub async fn run(self, stop: impl Future<Output = ()>) -> usize {
        let Server { bound, port, idle_timeout, shutdown_timeout, keeps_certificate } = self;
        let mut tasks = JoinSet::new();
        for listener in bound.listeners {
            tasks.spawn(listener::accept(listener, port.clone()));
        }
        let sweeper = port.clone();
        tasks.spawn(async move {
            let dispatcher = &sweeper.dispatcher;
            let each_tick = |timed_out: usize| {
                dispatcher.metrics.connections_timed_out.fetch_add(timed_out as u64, Relaxed);
                dispatcher.request_log.report_held_back();
            };
            sweeper.connections.sweep(idle_timeout, each_tick).await;
        });
        if keeps_certificate {
            // After the start, so that it costs the first answer nothing, and before anyone exports it. Wrong files of the
            // operator show in the log at once instead of with the first client.
            let port = port.clone();
            tasks.spawn(async move {
                if let Err(error) = port.tls.acceptor().await {
                    tracing::error!(error = format!("{error:#}"), "TLS is not available");
                }
            });
        }
        stop.await;
        // Dropping the accept tasks closes the listeners: a new server may take the address at once.
        tasks.shutdown().await;
        port.connections.finish(shutdown_timeout).await
    }
}
