//! `orrery workload`: measures any endpoint that speaks the Cosmos NoSQL, the Table or the MongoDB protocol, this
//! server or another.
//!
//! It makes a container, a table or a collection of its own, loads items, runs each operation for a time over some
//! connections, prints throughput, charges, errors and a latency histogram, and removes what it made. A 429 is waited
//! out as the server asks and counted apart; the latencies are those of the attempts that were answered.
//!
//! ```text
//! options ─> client (signed HTTP, frames or messages, TLS) ─> runner (load, phases) ─> report (text or JSON)
//! ```

pub(crate) mod client;
mod direct;
mod in_process;
mod items;
mod mongo_requests;
mod mongo_wire;
mod nosql_requests;
mod operations;
pub(crate) mod options;
mod report;
mod runner;
mod table_requests;
pub(crate) mod trust;

pub use client::{Call, Client, Target};
pub use options::{endpoint_of, key_of};
pub use trust::client_config;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};

pub fn command() -> Command {
    options::command()
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let options = options::Options::parse(matches)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(runner::run(options))
}
