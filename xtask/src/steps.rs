//! The table of steps and the runner that prints a heading, the time and, at the end, a summary.
//!
//! `ci` stops at the first step that fails: what follows would mostly repeat the same failure, and the summary says
//! which steps were not reached.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::process::{Leashed, Task};
use crate::{
    Context, attack, corpora, docs, instructions, layering, licences, portal, sdk, second_try, splits, tidy,
};

/// How a step ended that did not fail.
pub enum Outcome {
    /// It passed; the note goes into the summary.
    Passed(String),
    /// It could not run here, and why. Shown in the summary so that nobody takes it for a pass.
    Skipped(String),
}

pub struct Step {
    pub name: &'static str,
    pub purpose: &'static str,
    /// Whether `ci --quick` runs it.
    pub quick: bool,
    pub run: fn(&Context) -> Result<Outcome>,
}

/// Seconds first, minutes last.
pub const STEPS: &[Step] = &[
    Step { name: "fmt", purpose: "the sources are formatted", quick: true, run: format },
    Step {
        name: "tidy",
        purpose: "file sizes, headers, words that do not belong",
        quick: true,
        run: tidy::run,
    },
    Step {
        name: "layering",
        purpose: "crates depend on each other in one direction",
        quick: true,
        run: layering::run,
    },
    Step { name: "licences", purpose: "every dependency may be used", quick: true, run: licences::run },
    Step { name: "clippy", purpose: "the lints, with warnings denied", quick: true, run: clippy },
    Step { name: "docs", purpose: "generated pages are up to date", quick: true, run: docs::run },
    Step { name: "test", purpose: "the tests of the workspace", quick: true, run: test },
    Step {
        name: "loopback",
        purpose: "the tests of engine and scenarios, every call of a partition through a pipe",
        quick: false,
        run: loopback,
    },
    Step { name: "doc", purpose: "the API documentation builds without warnings", quick: false, run: doc },
    Step { name: "build", purpose: "the server, as users get it", quick: false, run: build },
    Step {
        name: "instructions",
        purpose: "requests take no more instructions than recorded",
        quick: false,
        run: instructions::run,
    },
    Step {
        name: "sdk",
        purpose: "the official SDKs against the server, plain and TLS",
        quick: true,
        run: sdk::run,
    },
    Step {
        name: "portal",
        purpose: "the portal in a browser, where one is found",
        quick: false,
        run: portal::run,
    },
    Step {
        name: "crash",
        purpose: "kill the server again and again, lose nothing",
        quick: false,
        run: crash,
    },
    Step {
        name: "attack",
        purpose: "resource bombs and protocol abuse beside another client",
        quick: false,
        run: attack::run,
    },
    Step {
        name: "splits",
        purpose: "partitions split by the dozen under load, and nobody notices",
        quick: false,
        run: splits::run,
    },
    Step {
        name: "corpora",
        purpose: "recorded answers of the service, where a harness is at hand",
        quick: false,
        run: corpora::run,
    },
];

const FORMAT_SECONDS_MAX: u64 = 120;
const COMPILE_SECONDS_MAX: u64 = 1500;
const TEST_SECONDS_MAX: u64 = 1800;
const CRASH_SECONDS_MAX: u64 = 900;

/// Rounds of the crash test in the full run; the workspace's tests do a few by themselves.
const CRASH_ROUNDS: &str = "50";
/// Rounds of the one that kills in the middle of splits.
const SPLIT_CRASH_ROUNDS: &str = "30";

fn format(context: &Context) -> Result<Outcome> {
    Task::cargo(context, &["fmt", "--all", "--check"]).limit_seconds(FORMAT_SECONDS_MAX).run()?;
    // Packages that are workspaces of their own.
    for package in ["tests/sdk/rust", "fuzz"] {
        Task::cargo(context, &["fmt", "--check", "--manifest-path"])
            .arg(context.root.join(package).join("Cargo.toml"))
            .limit_seconds(FORMAT_SECONDS_MAX)
            .run()?;
    }
    Ok(Outcome::Passed(String::new()))
}

fn clippy(context: &Context) -> Result<Outcome> {
    Task::cargo(context, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        .limit_seconds(COMPILE_SECONDS_MAX)
        .run()?;
    Ok(Outcome::Passed(String::new()))
}

/// The gate judges the change before it, so it draws the same cases each time. `cargo test` by hand draws new ones.
const PROPERTY_SEED: &str = "20261118";

fn test(context: &Context) -> Result<Outcome> {
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| PROPERTY_SEED.to_owned());
    let note = second_try::cargo_test(context, "test", &["--workspace"], |task| {
        task.env("PROPTEST_RNG_SEED", &seed).limit_seconds(TEST_SECONDS_MAX)
    })?;
    Ok(Outcome::Passed(note))
}

/// The tests were built by the step before.
fn loopback(context: &Context) -> Result<Outcome> {
    let suites: [(&str, &[&str]); 3] = [
        ("engine", &["--package", "orrery-engine"]),
        // Queries, scripts and conditions cross with the help of the api. What waits for a limit of time is skipped.
        (
            "nosql",
            &[
                "--package",
                "orrery-api-nosql",
                "--test",
                "scenarios",
                "--test",
                "scripts",
                "--",
                "--skip",
                "attackers",
                "--skip",
                "mean_harm",
                "--skip",
                "functions_end",
            ],
        ),
        // Statements that were never text are printed on their way.
        ("table", &["--package", "orrery-api-table", "--test", "scenarios"]),
    ];
    let mut notes = Vec::new();
    for (name, arguments) in suites {
        notes.push(second_try::cargo_test(context, &format!("loopback-{name}"), arguments, |task| {
            task.env("ORRERY_LOOPBACK", "1").limit_seconds(TEST_SECONDS_MAX)
        })?);
    }
    notes.retain(|note| !note.is_empty());
    Ok(Outcome::Passed(notes.join("; ")))
}

fn doc(context: &Context) -> Result<Outcome> {
    Task::cargo(context, &["doc", "--workspace", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .limit_seconds(COMPILE_SECONDS_MAX)
        .run()?;
    Ok(Outcome::Passed(String::new()))
}

/// The step beside whose work the release build is begun: the last minutes of an optimised link keep one core busy, the
/// tests mostly the other. Cargo locks each profile by itself, so neither waits for the other.
const BUILT_BESIDE: &str = "test";

/// Begins the build that `build` then waits for, with a lower priority than the tests have. Whatever goes wrong here
/// goes wrong again, and is shown, in that step.
fn build_ahead(context: &Context) -> Option<Leashed> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let log = std::fs::File::create(context.target.join("build-ahead.log")).ok()?;
    Task::new(context, "nice")
        .args(&["-n", "5"])
        .arg(cargo)
        .args(&["build", "--package", "orrery", "--release"])
        .start(Some(log))
        .ok()
}

/// Builds the server; `sdk`, `crash` and `corpora` call it too, because cargo answers at once when nothing changed.
pub fn build(context: &Context) -> Result<Outcome> {
    let (profile, flags) = context.profile();
    Task::cargo(context, &["build", "--package", "orrery"])
        .args(flags)
        .limit_seconds(COMPILE_SECONDS_MAX)
        .run()?;
    let binary = context.target.join(profile).join("orrery");
    let size_bytes = std::fs::metadata(&binary)?.len();
    Ok(Outcome::Passed(format!("{profile}, {:.1} MB", size_bytes as f64 / 1e6)))
}

fn crash(context: &Context) -> Result<Outcome> {
    build(context)?;
    let (profile, _) = context.profile();
    // The tests themselves stay debug builds, which the step before has made; what they kill is the real thing.
    let mut figures = Vec::new();
    for (test, rounds) in [
        ("crash", CRASH_ROUNDS),
        ("split_crash", SPLIT_CRASH_ROUNDS),
        ("graph_crash", SPLIT_CRASH_ROUNDS),
        ("mongo_crash", SPLIT_CRASH_ROUNDS),
    ] {
        let log = Task::cargo(context, &["test", "--package", "orrery", "--test", test, "--", "--nocapture"])
            .env("ORRERY_CRASH_ROUNDS", rounds)
            .env("ORRERY_CRASH_BINARY", context.target.join(profile).join("orrery"))
            .limit_seconds(CRASH_SECONDS_MAX)
            .run_logged(test)?;
        // A test prints its seed, rounds and writes; the last such line is worth keeping.
        let line = log.lines().rev().find(|line| line.contains("rounds")).unwrap_or_default();
        figures.push(line.trim().to_owned());
    }
    Ok(Outcome::Passed(figures.join("; ")))
}

struct Line {
    name: &'static str,
    state: &'static str,
    time: Duration,
    note: String,
}

/// Runs the steps of `ci`; false when one failed.
pub fn run_all(context: &Context) -> Result<bool> {
    let started = Instant::now();
    let mut lines = Vec::new();
    let mut failed = false;
    // Ended with this function, whichever way that goes.
    let mut ahead = Vec::new();
    for step in STEPS.iter().filter(|step| step.quick || !context.quick) {
        if failed {
            lines.push(Line { name: step.name, state: "not run", time: Duration::ZERO, note: String::new() });
            continue;
        }
        println!("\n=== {} · {}", step.name, step.purpose);
        if step.name == BUILT_BESIDE && !context.quick {
            ahead.extend(build_ahead(context));
        }
        let begun = Instant::now();
        let (state, note) = match (step.run)(context) {
            Ok(Outcome::Passed(note)) => ("ok", note),
            Ok(Outcome::Skipped(reason)) => ("skipped", reason),
            Err(error) => {
                failed = true;
                println!("{error:#}");
                ("FAILED", error.to_string().lines().next().unwrap_or_default().to_owned())
            }
        };
        let line = Line { name: step.name, state, time: begun.elapsed(), note };
        println!("--- {} {} in {:.1} s", line.name, line.state, line.time.as_secs_f64());
        lines.push(line);
    }
    println!("\n{:<10} {:<8} {:>8}", "step", "result", "seconds");
    for line in &lines {
        let text =
            format!("{:<10} {:<8} {:>8.1}  {}", line.name, line.state, line.time.as_secs_f64(), line.note);
        println!("{}", text.trim_end());
    }
    let verdict = if failed { "FAILED" } else { "ok" };
    println!("{:<10} {verdict:<8} {:>8.1}", "all", started.elapsed().as_secs_f64());
    Ok(!failed)
}
