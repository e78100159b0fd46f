//! What all ports of a server share: metrics, log, limits, connections, TLS.
//!
//! A server may have a port for each api beside the one that all of them share. However many there are, connections are
//! counted together, long requests wait for the same turns, and one certificate serves all.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::api::SharedBackend;
use crate::config::{Config, Keys, TlsMode};
use crate::connection::{Connections, Watch};
use crate::hosts::Hosts;
use crate::limits::LONG_REQUESTS_MAX;
use crate::log::LogSink;
use crate::metrics::Metrics;
use crate::request_log::RequestLog;
use crate::tls::{CertificateSource, Tls};

pub struct Transport {
    pub backend: SharedBackend,
    pub metrics: Metrics,
    pub request_log: RequestLog,
    pub log: LogSink,
    pub request_timeout: Duration,
    pub connections: Arc<Connections>,
    pub connections_max: usize,
    pub tls: Tls,
    pub tls_mode: TlsMode,
    pub(crate) hosts: Hosts,
    pub(crate) keys: Keys,
    pub(crate) metrics_auth: bool,
    /// Requests that may take long and are being answered.
    pub(crate) long: Arc<Semaphore>,
}

impl Transport {
    pub fn new(config: &Config, backend: SharedBackend, log: LogSink) -> Transport {
        Transport {
            backend,
            metrics: Metrics::default(),
            request_log: RequestLog::new(&config.log, log.clone()),
            log,
            request_timeout: config.request_timeout,
            connections: Arc::new(Connections::default()),
            connections_max: config.connections_max,
            tls: Tls::new(CertificateSource::of(config)),
            tls_mode: config.tls,
            hosts: Hosts::new(config),
            keys: config.keys.clone(),
            metrics_auth: config.metrics_auth,
            long: Arc::new(Semaphore::new(LONG_REQUESTS_MAX)),
        }
    }

    /// Whether there is memory for work that may need much, and for its answer. Short work goes on without.
    pub(crate) fn has_room(&self, watch: &Watch) -> bool {
        let pool = self.backend.memory();
        let (limit, connections) = (pool.limit_bytes(), watch.connections());
        let nearly = |taken: usize, limit: usize| taken > limit / 16 * 15;
        if nearly(connections.unread_bytes(), limit / 2) {
            connections.end_longest_unread();
            return false;
        }
        !nearly(pool.taken_bytes(), limit)
    }
}
