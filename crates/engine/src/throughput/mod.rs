//! Request units as a budget: who may spend how much, who has spent it, and on what.
//!
//! Every physical partition has a `Meter`. A request is *admitted* before it does anything and *charged* when its cost
//! is known, so a partition can go into debt; while it is in debt it refuses with the time until the debt is paid.
//!
//! ```text
//! offer ── Supply ──┬── share of each partition ── Meter ── Limiter   a container's own throughput
//!                   └── Pool ── Limiter, Limiter, …                   shared by the containers of a database
//! ```
//!
//! - `bucket`: one budget as one atomic number. `limiter`: the budgets that a request must pass.
//! - `supply`: what an offer gives to each partition. `meter`: what a partition has spent, always counted.
//! - `recent`, `hot`: consumption by second, and the logical partitions behind it. `insight`: all of it as a report.
//!
//! Counting happens whether or not anything is enforced (`EngineConfig::throttling`). On the way of a request there
//! is no lock, no timer and no allocation; only one request in many takes a lock to note its key, and never waits for
//! it.
//!
//! Deliberately missing: budgets for metadata, and the retired RU-per-minute offers.

mod bucket;
mod hot;
pub(crate) mod insight;
mod limiter;
mod meter;
mod recent;
mod supply;

pub use hot::HotKey;
pub use insight::{LargeKey, PartitionInsight};
pub use limiter::{BUCKET_UNLIMITED, BUCKETS_MAX};
pub(crate) use meter::{Figures, Meter, MeteredRange};
pub(crate) use supply::{Pool, Supply};

/// What a physical partition of a serverless account may spend per second.
pub const SERVERLESS_RU: u32 = 5_000;

/// The service's text for a refused request.
pub(crate) const RATE_IS_LARGE: &str = "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: http://aka.ms/cosmosdb-error-429";

/// How a request wants to be treated by the budget, and what it asks of its reads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestClass {
    /// Refused before others are when the budget runs low.
    pub low_priority: bool,
    /// A throughput bucket, 1 to [`BUCKETS_MAX`].
    pub bucket: Option<u8>,
    /// Reads at strong or bounded staleness ask two replicas on the service, and cost twice.
    pub reads_twice: bool,
}

impl RequestClass {
    /// What a read of this class costs that costs `charge_ru` at weaker levels.
    pub fn read_charge(self, charge_ru: f64) -> f64 {
        if self.reads_twice { charge_ru * 2.0 } else { charge_ru }
    }
}
