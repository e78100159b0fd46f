//! Partitions that split by the dozen while the Python SDK loads, reads, queries and follows them.
//!
//! `cargo xtask splits 100000` is the test at its full size; `ci` runs a smaller one. The program is
//! `tests/sdk/python/splits.py`. The server's limit for the size of a partition is made so small that the data alone
//! make partitions split a dozen times or more, whatever the number of items.

use anyhow::{Context as _, Result};

use crate::Context;
use crate::process::{Task, exists};
use crate::sdk;
use crate::server::{KEY, Server};
use crate::steps::{Outcome, build};

const ITEMS: u64 = 10_000;
/// What an item of the program takes in a partition, about.
const ITEM_BYTES: u64 = 500;
/// How many partitions' worth of items are loaded.
const PARTITIONS: u64 = 20;
const SPLITS_BY_SIZE_MIN: &str = "8";
const SECONDS_MAX: u64 = 1_800;

pub fn run(context: &Context) -> Result<Outcome> {
    if !exists("python3", "--version") {
        return Ok(Outcome::Skipped("there is no python3 here".to_owned()));
    }
    let items = match context.words.first() {
        None => ITEMS,
        Some(word) => word.parse().with_context(|| format!("{word} is not a number of items"))?,
    };
    let place = sdk::python(context)?;
    build(context)?;
    let limit = (items * ITEM_BYTES / PARTITIONS).to_string();
    let server = Server::start_with(context, "splits", &["--partition-size-limit", &limit])?;
    let task = Task::new(context, place.work.join("venv/bin/python"))
        .arg(place.sources.join("splits.py"))
        .args(&["--items", &items.to_string(), "--splits-by-size-min", SPLITS_BY_SIZE_MIN])
        .args(&["--every", if items < 50_000 { "1" } else { "3" }])
        .env("COSMOS_ENDPOINT", server.endpoint("http"))
        .env("COSMOS_KEY", KEY)
        .limit_seconds(SECONDS_MAX);
    let log = sdk::without_proxies(task).run_logged("splits")?;
    println!("{}", log.trim());
    Ok(Outcome::Passed(log.lines().next_back().unwrap_or_default().to_owned()))
}
