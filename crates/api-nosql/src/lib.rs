//! The NoSQL API of Cosmos DB over REST: decode a request, call the engine, encode the answer.
//!
//! [`Service`], an [`orrery_api::HttpApi`], takes a whole HTTP request and gives a whole HTTP response; sockets, TLS
//! and runtimes are the server's business. Meaning lives in the engine; what is here is the wire: paths (`routes`),
//! what a request wants (`actions`), who wants it (`auth`) of what (`access`, for the engine to say whether it may),
//! headers, resource ids (`rid`), error texts (`errors`), and one file for each kind of resource. `compat_table` lists
//! every route with what this server does about it.
//!
//! ```text
//! Request ─ routes ─ actions ─ auth ─ access ─┬─ account, databases, containers, offers, ranges, conflicts
//!                                             ├─ users, permissions, encryption_keys
//!                                             ├─ items, patch, batch, partition_key_delete
//!                                             ├─ feed, changes              pages with continuations
//!                                             ├─ query/                     feeds filtered by SQL
//!                                             └─ scripts/                   procedures, triggers, functions
//! ```
//!
//! The same requests come in frames of the direct protocol (`rntbd`), which has another wire and nothing else of its
//! own.
//!
//! Bodies are JSON, or the binary form of it (`binary_json`, `formats`); batches may be rows instead (`hybrid_row`).

mod access;
mod account;
mod actions;
mod addresses;
mod admin;
mod advise;
mod attachments;
mod auth;
mod barriers;
mod batch;
mod binary_json;
mod body;
mod changes;
mod compat_table;
mod config;
mod conflicts;
mod consistency;
mod containers;
mod continuation;
mod databases;
mod encryption_keys;
mod errors;
mod faults;
mod feed;
mod fields;
mod forks;
mod formats;
#[doc(hidden)]
pub mod fuzzing;
mod generation;
mod headers;
mod host;
mod http_date;
mod hybrid_row;
mod identity;
mod item_json;
mod items;
mod media;
mod offers;
mod paging;
mod partition_key_delete;
mod patch;
mod permissions;
mod query;
mod ranges;
mod recording;
mod request_budget;
mod request_class;
mod resource_feed;
mod rid;
mod rntbd;
mod routes;
mod scope;
mod scripts;
mod service;
mod session;
mod splits;
mod test_controls;
mod throughput;
mod users;
mod write;

pub use actions::{OPERATIONS, is_query};
pub use compat_table::{SUPPORT, Support, SupportLevel, support_table};
pub use config::{
    AccountKeys, CLOCK_SKEW_S_DEFAULT, CrossPartition, EMULATOR_KEY, QUERY_PAGE_TIME_DEFAULT,
    REQUEST_TIME_DEFAULT, ServiceConfig,
};
pub use orrery_script::Limits as ScriptLimits;
pub use recording::Recorder;
pub use rntbd::{DirectApi, tokens_page};
pub use service::{BODY_BYTES_MAX, Service};
