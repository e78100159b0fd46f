//! What a store on several machines rests on: a fenced, ordered, durable log of every space, with checkpoints.
//!
//! Nothing here knows a protocol of clients. `log` says what a log promises, `suite` checks it on every
//! implementation, `file` keeps one in a directory, `postgres` keeps one in PostgreSQL
//! ([ADR 37](../../../docs/adr/0037-the-log-is-the-database.md)).

pub mod file;
pub mod log;
pub mod postgres;
mod seal;
pub mod suite;

pub use file::FileLog;
pub use log::{Checkpoint, Entry, Frame, Log, LogStats, Session, SpaceState, Taken};
pub use postgres::PostgresLog;
