//! The portal in a browser, and its vendored modules.
//!
//! `tests/portal` is a program for Node that starts the server itself, drives a Chromium and ends with the line `N
//! passed, N failed`. What it needs is installed below `target/portal`. Where there is no Node or no browser the step
//! is skipped with a line that says so; `--require browser` makes that a failure. Pictures of every page are left in
//! `target/portal-screens`.
//!
//! `cargo xtask portal pictures` makes the pictures of `docs/portal` anew, which somebody should look at then.
//!
//! `cargo xtask portal vendor` makes `crates/portal/web/vendor` anew from the packages that `crates/portal/vendor`
//! pins.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::{Task, exists};
use crate::second_try;
use crate::steps::{Outcome, build};

const INSTALL_SECONDS_MAX: u64 = 600;
const SUITE_SECONDS_MAX: u64 = 900;

/// Where browsers are when nobody says so.
const BROWSERS: &[&str] = &[
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

pub fn run(context: &Context) -> Result<Outcome> {
    match context.words.first().map(String::as_str) {
        Some("vendor") => vendor(context),
        Some("pictures") => suite(context, "pictures.mjs"),
        _ => suite(context, "suite.mjs"),
    }
}

fn suite(context: &Context, program: &str) -> Result<Outcome> {
    let missing = |what: &str| match context.option("require") {
        Some("browser") => bail!("{what}"),
        _ => Ok(Outcome::Skipped(what.to_owned())),
    };
    if !exists("node", "--version") || !exists("npm", "--version") {
        return missing("no Node");
    }
    let Some(browser) = browser() else {
        return missing("no Chromium; apt-get install chromium, or ORRERY_CHROMIUM=…");
    };
    build(context)?;
    let sources = context.root.join("tests/portal");
    let work = installed(context, &sources, "tests")?;
    let (profile, _) = context.profile();
    let pictures = context.root.join("docs/portal").display().to_string();
    let words = match program {
        "pictures.mjs" => vec![pictures.as_str()],
        _ => context.words.iter().map(String::as_str).collect(),
    };
    let task = Task::new(context, "node")
        .arg(sources.join(program))
        .args(&words)
        .directory(&work)
        .env("ORRERY_BINARY", context.target.join(profile).join("orrery"))
        .env("ORRERY_CHROMIUM", &browser)
        .env("ORRERY_SCREENS", context.target.join("portal-screens"))
        .limit_seconds(SUITE_SECONDS_MAX);
    let (log, note) = second_try::suite("portal", || task.run_logged("portal"))?;
    let counted = log.lines().rev().find(|line| line.contains(" passed, ")).unwrap_or_default();
    Ok(Outcome::Passed(format!("{} {note}", counted.trim()).trim().to_owned()))
}

fn vendor(context: &Context) -> Result<Outcome> {
    let sources = context.root.join("crates/portal/vendor");
    let work = installed(context, &sources, "vendor")?;
    Task::new(context, "node")
        .arg(sources.join("make.mjs"))
        .arg(&sources)
        .arg(context.root.join("crates/portal/web/vendor"))
        .directory(&work)
        .limit_seconds(INSTALL_SECONDS_MAX)
        .run()?;
    Ok(Outcome::Passed("web/vendor is made".into()))
}

/// A directory below `target` in which the packages of `package.json` are installed.
fn installed(context: &Context, sources: &Path, name: &str) -> Result<PathBuf> {
    let work = context.target.join("portal").join(name);
    std::fs::create_dir_all(&work)?;
    let wanted = std::fs::read_to_string(sources.join("package.json")).context("package.json is missing")?;
    let there = std::fs::read_to_string(work.join("package.json")).unwrap_or_default();
    if there != wanted || !work.join("node_modules/.package-lock.json").exists() {
        std::fs::write(work.join("package.json"), wanted)?;
        Task::new(context, "npm")
            .args(&["install", "--no-audit", "--no-fund", "--loglevel", "error"])
            .directory(&work)
            .limit_seconds(INSTALL_SECONDS_MAX)
            .run()?;
    }
    Ok(work)
}

fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("ORRERY_CHROMIUM").map(PathBuf::from);
    named.into_iter().chain(BROWSERS.iter().map(PathBuf::from)).find(|path| path.exists())
}
