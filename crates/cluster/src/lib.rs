//! A store whose truth is a fenced, ordered, durable log of every space, and whose rows are read from a copy.
//!
//! Nothing here knows a protocol of clients. `log` says what a log promises, `suite` checks it on every
//! implementation, `file` keeps one in a directory, `postgres` keeps one in PostgreSQL; `store` is the store over any
//! of them ([ADR 37](../../../docs/adr/0037-the-log-is-the-database.md)).

pub mod file;
pub mod log;
pub mod postgres;
mod seal;
pub mod store;
pub mod suite;

pub use file::FileLog;
pub use log::{Checkpoint, Entry, Frame, Log, LogStats, Session, SpaceState, Taken};
pub use postgres::PostgresLog;
pub use store::{ClusterOptions, ClusterStats, ClusterStore};
