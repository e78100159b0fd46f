//! The Gremlin API of Cosmos DB: decode a request, run it over a container, encode the answer.
//!
//! [`GremlinService`] is a stream api, for WebSocket connections on any path, and an HTTP api, for scripts that come
//! by themselves. A graph is a container, vertices and edges are items in the form that Cosmos DB gives them:
//! whatever works on items works on them. What a traversal means is in `orrery-gremlin`; here is the wire, and the
//! graph that it runs over.
//!
//! ```text
//! websocket ─ message ─ graphson | graphbinary ─ sasl ─ access ─ execution ─ orrery_gremlin ─ graph ─ engine
//! http_script ────────────────────────────────────────────────┘
//! ```

mod access;
mod compat_table;
mod config;
mod errors;
mod execution;
#[doc(hidden)]
pub mod fuzzing;
mod graph;
mod graphbinary;
mod graphson;
mod http_script;
mod message;
mod sasl;
mod service;
mod signed_password;
mod upgrade;
mod websocket;

pub use compat_table::page as compat_page;
pub use config::{GremlinConfig, HostCheck, Results};
pub use service::GremlinService;
