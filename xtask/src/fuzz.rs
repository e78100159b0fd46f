//! `cargo xtask fuzz [TARGET…] [--runs N]`: the targets of `crates/fuzzing` under libFuzzer, which looks for inputs
//! that reach new code.
//!
//! `cargo-fuzz` is installed below `target/` when it is missing. It runs without a sanitizer, so the usual compiler
//! is enough; debug assertions and overflow checks are on. What it finds interesting is kept below `target/`, and
//! `fuzz/corpus` is only read: an input that is worth keeping is copied there by hand.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::Task;
use crate::steps::Outcome;

const RUNS_DEFAULT: &str = "1000000";
const INSTALL_SECONDS_MAX: u64 = 900;
const RUN_SECONDS_MAX: u64 = 12 * 3600;
/// Longer inputs take longer without finding more.
const INPUT_BYTES_MAX: usize = 4096;
/// An input that takes longer than this has found something.
const INPUT_SECONDS_MAX: usize = 30;
const MEMORY_MB_MAX: usize = 2048;

pub fn run(context: &Context) -> Result<Outcome> {
    let runs: u64 = context.option("runs").unwrap_or(RUNS_DEFAULT).parse().context("--runs is a number")?;
    let known = targets(context)?;
    if let Some(unknown) = context.words.iter().find(|word| !known.contains(word)) {
        bail!("there is no target {unknown}; there are {}", known.join(", "));
    }
    let chosen = if context.words.is_empty() { known } else { context.words.clone() };
    let path = std::env::join_paths(
        std::iter::once(installed(context)?)
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    for target in &chosen {
        let found = context.target.join("xtask/fuzz").join(target);
        std::fs::create_dir_all(&found)?;
        Task::cargo(context, &["fuzz", "run", "--sanitizer", "none", target])
            .arg(&found)
            .arg(context.root.join("fuzz/corpus").join(target))
            .args(&[
                "--",
                &format!("-runs={runs}"),
                &format!("-max_len={INPUT_BYTES_MAX}"),
                &format!("-timeout={INPUT_SECONDS_MAX}"),
                &format!("-rss_limit_mb={MEMORY_MB_MAX}"),
                "-print_final_stats=1",
            ])
            .env("PATH", &path)
            .directory(context.root.join("fuzz"))
            .limit_seconds(RUN_SECONDS_MAX)
            .run()?;
    }
    Ok(Outcome::Passed(format!("{runs} inputs each for {}", chosen.join(", "))))
}

/// A target is a folder of kept inputs.
fn targets(context: &Context) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(context.root.join("fuzz/corpus"))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// The folder with `cargo-fuzz` in it.
fn installed(context: &Context) -> Result<PathBuf> {
    let root = context.target.join("xtask/cargo-fuzz");
    if !root.join("bin/cargo-fuzz").exists() {
        Task::cargo(context, &["install", "cargo-fuzz", "--locked", "--root"])
            .arg(&root)
            .limit_seconds(INSTALL_SECONDS_MAX)
            .run()?;
    }
    Ok(root.join("bin"))
}
