//! What the service is told at its start.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Uri};
use orrery_api::Refusal;
use orrery_budget::MemoryPool;
use orrery_engine::AccountKeys;

/// How results are written where a client asks for GraphSON 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Results {
    /// As Cosmos DB does: plain JSON without types.
    #[default]
    Cosmos,
    /// As TinkerPop does: values say what they are.
    Typed,
}

/// Whether a request may be addressed as it is.
pub type HostCheck = Arc<dyn Fn(&HeaderMap, &Uri) -> Result<(), Refusal> + Send + Sync>;

#[derive(Clone)]
pub struct GremlinConfig {
    pub keys: AccountKeys,
    pub results: Results,
    /// How far clocks may be apart that resource tokens are judged by.
    pub clock_skew_s: u64,
    /// The longest that a traversal may take.
    pub request_time: Duration,
    /// The most memory that one traversal may hold.
    pub memory_bytes: usize,
    /// The memory that all requests of the process share.
    pub memory: Arc<MemoryPool>,
    /// What is kept of graphs that were read.
    pub cache_bytes: u64,
    pub hosts: HostCheck,
}
