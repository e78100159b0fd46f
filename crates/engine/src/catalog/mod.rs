//! What exists: databases, containers with their ranges and scripts, offers, users with their permissions, client
//! encryption keys, and the spaces still to be dropped.
//!
//! The truth is the rows of space 0 (`rows`). `load` reads them at the start; `writer` is the one thread that changes
//! them, each change as one atomic commit; `view` is what readers see, replaced after the commit and never before. So
//! a failed commit changes nothing in memory, and a crash leaves the state before or after a change. When it is not
//! known what became of a commit, or another owner makes them, `follow` reads the rows again and brings what is in
//! memory to them.
//!
//! Numbers of databases, containers, offers and spaces are given once and never again: clients hold on to rids,
//! and a space that is being dropped must not be someone else's.

pub(crate) mod changes;
pub(crate) mod encryption_keys;
mod follow;
pub(crate) mod forks;
pub(crate) mod load;
pub(crate) mod reshape;
pub(crate) mod rows;
mod scripts;
pub(crate) mod user_rows;
pub(crate) mod users;
pub(crate) mod view;
pub(crate) mod writer;

/// The space that holds the catalog.
pub(crate) const CATALOG_SPACE: u32 = 0;

/// Most databases of an account, as the service's quota header states.
pub const DATABASES_MAX: usize = 1_000;
/// Most containers that may share the throughput of one database.
pub const SHARED_CONTAINERS_MAX: usize = 25;
/// Most containers of one database. The service has no documented figure; this one bounds memory.
pub const CONTAINERS_MAX: usize = 100_000;
/// Most physical partitions that a container is created with.
pub const PARTITIONS_MAX: u32 = 10_000;
/// Offer numbers have 24 bits in their rid.
pub(crate) const OFFER_NUMBER_MAX: u32 = (1 << 24) - 1;
/// Container numbers have 31 bits in their rid: the top bit tells containers from users.
pub(crate) const CONTAINER_NUMBER_MAX: u32 = (1 << 31) - 1;
/// Changes that may wait for the catalog's writer.
pub(crate) const CHANGES_QUEUE_MAX: usize = 1_024;
