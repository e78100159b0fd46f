//! The Table API of Cosmos DB, which is that of Azure Storage: decode a request, call the engine, encode the answer.
//!
//! [`TableService`], an [`orrery_api::HttpApi`], takes a whole HTTP request and gives a whole HTTP response. A table
//! is a container, an entity is an item in the form that Cosmos DB gives it (`stored`), a `$filter` is a query:
//! meaning lives in the engine, and whatever works on items works on entities.
//!
//! ```text
//! Request ─ routes ─ actions ─ shared_key | sas ─ access ─┬─ tables, policies        containers of TablesDB
//!                                                         ├─ entities               one entity: conditions, merges
//!                                                         ├─ batch ─ multipart      many entities of a partition
//!                                                         ├─ query ─ filter         pages in the order of the keys
//!                                                         └─ account_properties, cors
//! ```
//!
//! Pure parts: `date_time`, `edm` and `entity` (values and JSON in), `stored` (the item), `render` (JSON out),
//! `timestamp`, `names`, `continuation`, `xml`. `dialect` says where Cosmos DB and storage differ. `errors` holds the
//! one table of error codes.

mod access;
mod account_properties;
mod actions;
mod batch;
mod compat_table;
mod config;
mod continuation;
mod cors;
mod date_time;
mod dialect;
mod edm;
mod entities;
mod entity;
mod errors;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod multipart;
mod names;
mod params;
mod policies;
mod query;
mod render;
mod resource_token;
mod routes;
mod sas;
mod service;
mod service_store;
mod shared_key;
mod stored;
mod tables;
mod timestamp;
mod xml;

pub use compat_table::page as compat_page;
pub use config::{
    CLOCK_SKEW_S_DEFAULT, DATABASE, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, TableConfig, TableKeys,
};
pub use dialect::{Dialect, DialectChoice};
pub use service::{BODY_BYTES_MAX, TableService};
