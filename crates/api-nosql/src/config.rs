//! What one API instance is told at start: keys, consistency, names.

use std::sync::Arc;
use std::time::Duration;

pub use orrery_api::EMULATOR_KEY;
use orrery_budget::MemoryPool;
pub use orrery_engine::AccountKeys;
use orrery_engine::ConsistencyLevel;

/// How far the date of a request may be from the server's clock, unless the configuration says otherwise.
pub const CLOCK_SKEW_S_DEFAULT: u64 = 900;

/// How long a page of a query may take, unless the configuration says otherwise.
pub const QUERY_PAGE_TIME_DEFAULT: Duration = Duration::from_secs(5);

/// How long a request may take to be answered, unless the configuration says otherwise.
pub const REQUEST_TIME_DEFAULT: Duration = Duration::from_secs(60);

/// Who merges the answers of several partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrossPartition {
    /// The client, by a plan that the server gives it: what the service does.
    #[default]
    Sdk,
    /// The server, for clients that have no query engine.
    Server,
}

#[derive(Clone, Debug)]
pub struct ServiceConfig {
    pub keys: AccountKeys,
    pub consistency: ConsistencyLevel,
    pub account_name: String,
    /// The name of the one region that the account document lists.
    pub region: String,
    /// The server's version, told to clients in headers and at the end of error messages.
    pub version: String,
    /// How far the date of a request may be from the server's clock, in seconds.
    pub auth_clock_skew_s: u64,
    pub cross_partition: CrossPartition,
    /// Whether clients are told addresses for direct mode.
    pub direct_mode: bool,
    /// How long one page of a query may take that could go on later.
    pub query_page_time: Duration,
    /// The longest that a request may take to be answered.
    pub request_time: Duration,
    /// The memory that all requests of the process share.
    pub memory: Arc<MemoryPool>,
    /// What one script may take.
    pub scripts: orrery_script::Limits,
}
