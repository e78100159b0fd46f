//! The MongoDB API: its wire protocol, authentication, commands, cursors, sessions; documents in containers.
//!
//! ```text
//! bytes ── wire ── connection ── commands (one table) ──┬── collection: documents as items, scans, writes
//!                     │                                 ├── catalog: what containers have no word for
//!                  auth (SCRAM)                         └── cursors, sessions, transactions, fail points
//! ```
//!
//! What filters, updates, expressions and pipelines mean is `orrery-mongo`'s; how items are kept is the engine's. A
//! database of MongoDB is a database of the account, a collection a container, a document an item (see
//! `collection::id_text` and `orrery_mongo::stored` for their ids).
#![forbid(unsafe_code)]

mod auth;
mod catalog;
mod collection;
mod commands;
mod config;
mod connection;
mod control;
mod cursors;
mod errors;
mod failpoints;
#[doc(hidden)]
pub mod fuzzing;
mod operations;
mod over_http;
mod recent;
mod reply;
mod service;
mod sessions;
mod wire;

pub use commands::{Command, TABLE as COMMANDS};
pub use config::{AuthMode, MongoConfig, ServerVersion};
pub use service::{MongoService, register_rules};
