//! How many instructions requests take: the same on a quiet machine and on a busy one, so that a change which makes
//! them dearer fails and is told where.
//!
//! The server's own binary plays both sides (`orrery workload --in-process`) under callgrind, over a fixed data set.
//! What is executed between the beginning and the end of a round of requests, by all threads, is counted per crate; the
//! cheapest round of an operation, beside which nothing else was done, is compared with `tests/instructions.txt`.
//! `cargo xtask instructions --record` writes that file anew.

mod profile;
mod recorded;

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::{Task, exists};
use crate::steps::{Outcome, build};
use profile::Profile;
use recorded::Recorded;

const RECORDED: &str = "tests/instructions.txt";
/// Dearer by more than this is a failure.
const GROWTH_MAX: f64 = 0.03;
const SECONDS_MAX: u64 = 600;
const ITEMS: &str = "2000";
const PARTITIONS: &str = "10";
const ROUNDS: usize = 10;
/// As the workload makes them.
const ROUND_REQUESTS: u64 = 20;
const OPERATIONS: [&str; 6] = ["read", "upsert", "query", "lookup", "top", "count"];
/// Functions shown of what grew most.
const FUNCTIONS_SHOWN: usize = 12;

pub fn run(context: &Context) -> Result<Outcome> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Ok(Outcome::Skipped("the recorded counts are those of Linux on x86-64".to_owned()));
    }
    if !exists("valgrind", "--version") {
        return Ok(Outcome::Skipped("valgrind is not installed".to_owned()));
    }
    build(context)?;
    let directory = context.target.join("xtask/instructions");
    match std::fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => std::fs::create_dir_all(&directory)?,
    }
    count(context, &directory)?;
    let now = OPERATIONS.iter().enumerate().map(|(index, operation)| {
        let rounds = (1..=ROUNDS).map(|round| {
            let path = directory.join(format!("callgrind.out.{}", index * ROUNDS + round));
            let text =
                std::fs::read_to_string(&path).with_context(|| format!("no counts of `{operation}`"))?;
            Profile::parse(&text)
        });
        let rounds = rounds.collect::<Result<Vec<_>>>()?;
        let cheapest = rounds.into_iter().min_by_key(Profile::all).context("there are no rounds")?;
        Ok((*operation, cheapest))
    });
    let now = now.collect::<Result<Vec<_>>>()?;
    let path = context.root.join(RECORDED);
    if context.option("record").is_some() {
        std::fs::write(&path, Recorded::of(&now, ROUND_REQUESTS).to_text())?;
        return Ok(Outcome::Passed(format!("written to {RECORDED}")));
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {RECORDED}"))?;
    compare(&Recorded::parse(&text)?, &now)
}

fn count(context: &Context, directory: &Path) -> Result<()> {
    let count = ROUND_REQUESTS * ROUNDS as u64;
    Task::new(context, "valgrind")
        .args(&["--tool=callgrind", "--zero-before=*round_begins*", "--dump-before=*round_ends*"])
        .args(&["--compress-pos=no", "--dump-line=no"])
        .arg(format!("--callgrind-out-file={}", directory.join("callgrind.out").display()))
        .arg(context.target.join("release/orrery"))
        .args(&["workload", "--in-process"])
        .arg(directory.join("data"))
        .args(&["--operations", &OPERATIONS.join(","), "--count", &count.to_string()])
        .args(&["--items", ITEMS, "--partitions", PARTITIONS, "--json"])
        .limit_seconds(SECONDS_MAX)
        .run_logged("instructions")
        .and_then(|log| all_answered(&log))
}

/// Refusals are cheap, and not what is to be counted.
fn all_answered(log: &str) -> Result<()> {
    let line = log.lines().find(|line| line.starts_with('{')).context("the workload has no report")?;
    let report: serde_json::Value = serde_json::from_str(line)?;
    let phases = report["phases"].as_array().context("a report without phases")?;
    for phase in phases {
        if phase["errors"] != 0 {
            bail!("{} failed: {}", phase["operation"], phase["error_texts"]);
        }
    }
    Ok(())
}

fn compare(recorded: &Recorded, now: &[(&str, Profile)]) -> Result<Outcome> {
    let mut dearer = Vec::new();
    let mut cheaper = Vec::new();
    let mut notes = Vec::new();
    for (operation, profile) in now {
        let all = profile.all() / ROUND_REQUESTS;
        let Some(before) = recorded.all(operation) else {
            bail!("{RECORDED} has no `{operation}`: cargo xtask instructions --record")
        };
        let growth = all as f64 / before as f64 - 1.0;
        println!("\n{operation}: {all} instructions a request, {before} recorded ({:+.2} %)", growth * 100.0);
        for (name, count) in profile.by_crate() {
            let (now, before) = (count / ROUND_REQUESTS, recorded.part(operation, &name));
            println!("  {name:<20} {now:>10} {:>+10}", now as i64 - before as i64);
        }
        notes.push(format!("{operation} {all}"));
        if growth > GROWTH_MAX {
            println!("  the functions that take most:");
            for (function, count) in profile.top(FUNCTIONS_SHOWN) {
                println!("  {:>10}  {function}", count / ROUND_REQUESTS);
            }
            dearer.push(format!("{operation} by {:.1} %", growth * 100.0));
        } else if growth < -GROWTH_MAX {
            cheaper.push(*operation);
        }
    }
    if !dearer.is_empty() {
        bail!(
            "more instructions than in {RECORDED}: {}. If they are worth it: cargo xtask instructions --record",
            dearer.join(", ")
        );
    }
    if !cheaper.is_empty() {
        notes.push(format!("cheaper, to be recorded: {}", cheaper.join(", ")));
    }
    Ok(Outcome::Passed(notes.join(", ")))
}
