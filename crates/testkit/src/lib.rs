//! For tests only: the real binary as a child process, a small signed REST client, a random generator with a seed, the
//! frames of tests that kill the server and of scenarios from data files.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! use orrery_testkit::{Client, TestServer};
//! let mut server = TestServer::start(std::path::Path::new("target/debug/orrery"), &[])?;
//! let mut client = Client::new(server.address());
//! client.post("dbs", "", "dbs", &[], r#"{"id":"d"}"#)?.expect_status(201)?;
//! server.kill()?;              // SIGKILL
//! server.restart()?;           // same directory, a new port
//! # Ok(()) }
//! ```

mod client;
mod crash;
mod graph;
pub mod postgres;
mod random;
mod scenario;
mod server;
mod table;

pub use client::{Client, EMULATOR_KEY, Reply};
pub use crash::CrashTest;
pub use graph::{GraphWriter, graph_request, graph_script};
pub use random::Random;
pub use scenario::{contains, run_scenarios, substitute, text_of};
pub use server::TestServer;
pub use table::{ChangesetWriter, table_request};
