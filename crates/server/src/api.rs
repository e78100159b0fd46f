//! What lies behind the apis, and which there are on a port.

use std::sync::Arc;

use orrery_api::StreamApi;
use orrery_budget::MemoryPool;
use orrery_portal::Portal;

use crate::metrics::StoreFigures;

/// Asked for health and figures, closed at the end.
pub trait Backend: Send + Sync + 'static {
    /// The memory that all requests of all apis share.
    fn memory(&self) -> &Arc<MemoryPool>;
    fn figures(&self) -> StoreFigures;
    /// Figures of the account in the text format of Prometheus, added to those of the transport; with the names of
    /// databases and containers if `with_names`.
    fn account_metrics(&self, _: &mut String, with_names: bool) {
        let _ = with_names;
    }
    fn close(&self) -> anyhow::Result<()>;
}

pub type SharedBackend = Arc<dyn Backend>;

/// The protocols of a port: streams by their first bytes, everything else over HTTP.
pub struct Apis<A> {
    pub http: A,
    pub streams: Vec<Arc<dyn StreamApi>>,
    /// The web pages, on the port that has them.
    pub portal: Option<Arc<Portal>>,
}

impl<A> Apis<A> {
    /// HTTP and nothing else.
    pub fn http(http: A) -> Apis<A> {
        Apis { http, streams: Vec::new(), portal: None }
    }
}
