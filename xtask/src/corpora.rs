//! Recorded answers of the service, replayed against the server, where the harness for it lies beside the checkout.
//!
//! The recordings are not part of this project, so on most machines the step is skipped. Where it runs, its scores
//! may not fall below `tests/corpora-floor.toml`; raise the floor whenever the scores rise.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::{Task, exists};
use crate::server::{KEY, Server};
use crate::steps::{Outcome, build};

/// Where the harness is looked for when `ORRERY_HARNESS` does not say otherwise.
const HARNESS: &str = "../shared/harness";
const FLOOR: &str = "tests/corpora-floor.toml";
const REPLAY_SECONDS_MAX: u64 = 300;

pub fn run(context: &Context) -> Result<Outcome> {
    let harness =
        std::env::var_os("ORRERY_HARNESS").map_or_else(|| context.root.join(HARNESS), PathBuf::from);
    let replay = harness.join("hosted_replay/run.py");
    if !replay.is_file() {
        return Ok(Outcome::Skipped("no harness beside the checkout".to_owned()));
    }
    if !exists("python3", "--version") {
        return Ok(Outcome::Skipped("there is no python3 here".to_owned()));
    }
    build(context)?;
    let server = Server::start(context, "corpora")?;
    let log = Task::new(context, "python3")
        .arg(&replay)
        .arg(server.endpoint("http"))
        .args(&["--key", KEY, "-v"])
        .limit_seconds(REPLAY_SECONDS_MAX)
        .run_logged("corpora")?;
    let scores = read_scores(&log);
    if scores.is_empty() {
        bail!("the replay printed no scores");
    }
    for (name, (passed, total)) in &scores {
        println!("{name}: {passed} of {total}");
    }
    let floor =
        std::fs::read_to_string(context.root.join(FLOOR)).with_context(|| format!("cannot read {FLOOR}"))?;
    let fallen = below(&read_floor(&floor)?, &scores);
    if !fallen.is_empty() {
        bail!("scores fell below {FLOOR}: {}", fallen.join(", "));
    }
    let notes = scores.iter().map(|(name, (passed, total))| format!("{name} {passed}/{total}"));
    Ok(Outcome::Passed(notes.collect::<Vec<_>>().join(", ")))
}

/// Lines such as `SCORE hosted-status passed=200 total=248`.
fn read_scores(log: &str) -> BTreeMap<String, (u64, u64)> {
    let mut scores = BTreeMap::new();
    for line in log.lines() {
        let mut words = line.split_whitespace();
        let (Some("SCORE"), Some(name)) = (words.next(), words.next()) else { continue };
        let figures: BTreeMap<&str, u64> = words
            .filter_map(|word| word.split_once('='))
            .filter_map(|(key, value)| Some((key, value.parse().ok()?)))
            .collect();
        if let (Some(&passed), Some(&total)) = (figures.get("passed"), figures.get("total")) {
            scores.insert(name.to_owned(), (passed, total));
        }
    }
    scores
}

/// The floor is the simplest kind of TOML: names and whole numbers, and comments.
fn read_floor(text: &str) -> Result<BTreeMap<String, u64>> {
    let mut floor = BTreeMap::new();
    for line in text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
    {
        let pair = line.split_once('=').map(|(name, value)| (name.trim(), value.trim().parse::<u64>()));
        let Some((name, Ok(value))) = pair else { bail!("{FLOOR}: {line:?} is not `name = number`") };
        floor.insert(name.to_owned(), value);
    }
    Ok(floor)
}

fn below(floor: &BTreeMap<String, u64>, scores: &BTreeMap<String, (u64, u64)>) -> Vec<String> {
    let passed = |name: &String| scores.get(name).map_or(0, |(passed, _)| *passed);
    let fallen = floor.iter().filter(|(name, least)| passed(name) < **least);
    fallen.map(|(name, least)| format!("{name} {} < {least}", passed(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_and_compared_with_the_floor() {
        let scores = read_scores("PASS 001 status\nSCORE hosted-status passed=7 total=9\nSCORE odd\n");
        assert_eq!(scores["hosted-status"], (7, 9));
        let floor = |text| below(&read_floor(text).unwrap(), &scores);
        assert!(floor("# a comment\nhosted-status = 7 # held\n\n").is_empty());
        assert_eq!(floor("hosted-status = 8"), ["hosted-status 7 < 8"]);
        assert_eq!(floor("hosted-body = 1"), ["hosted-body 0 < 1"]);
        assert!(read_floor("hosted-status = many").is_err());
    }
}
