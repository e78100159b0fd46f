//! Everything between a socket and an api: configuration, listeners, TLS, limits, metrics, log, life cycle.
//!
//! A request passes `listener` (accept, tell the protocols apart) → `dispatch` (body, deadline, count, log) → an
//! [`orrery_api::HttpApi`]; what it means is none of this crate's business. [`lifecycle::serve`] puts it all together
//! for the `orrery` binary, and [`server::Server`] alone can serve any api, which is how the tests here do it.

pub mod answer;
pub mod api;
mod attendant;
pub mod certificate;
pub mod client;
mod cluster_metrics;
pub mod config;
pub mod connection;
pub mod connections;
pub mod deadline;
pub mod dispatch;
pub mod hosts;
pub mod in_process;
pub mod lengthy;
pub mod lifecycle;
pub mod limits;
pub mod listener;
pub mod log;
mod long_threads;
pub mod memory;
pub mod metrics;
pub mod open_files;
mod pages;
mod partition_metrics;
mod peeked;
pub mod request_log;
pub mod server;
pub mod service;
mod sniff;
pub mod stream;
pub mod tls;
pub mod transport;
pub mod upload;
