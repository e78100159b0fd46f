//! A second try, alone, for what failed among others.
//!
//! Tests here start servers, browsers and dozens of threads beside each other on as few as two cores, and one of some
//! three thousand now and then loses a race that no user could lose. What fails is therefore run once more by itself;
//! what passes then counts, but the summary of the run calls it *unsteady* by name, so that somebody mends it.
//!
//! No second try: tests that kill the server, because a lost write is lost however seldom that happens; and runs where
//! so much failed that chance is no explanation.

use anyhow::{Result, bail};

use crate::Context;
use crate::process::Task;

/// More targets than these have not failed by chance.
const TARGETS_MAX: usize = 2;
/// Targets whose names contain this have no second try.
const NEVER: &str = "crash";

/// Runs `cargo test` with these arguments. The note names what passed only when it was alone.
pub fn cargo_test(
    context: &Context,
    name: &str,
    arguments: &[&str],
    prepare: impl Fn(Task) -> Task,
) -> Result<String> {
    // Options of the test program come last, behind a `--`.
    let end = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (of_cargo, of_tests) = arguments.split_at(end);
    let all = [&["test", "--no-fail-fast"][..], of_cargo, of_tests].concat();
    let Err((error, log)) = prepare(Task::cargo(context, &all)).run_noted(name) else {
        return Ok(String::new());
    };
    let targets = failed_targets(&log);
    if targets.is_empty() || targets.len() > TARGETS_MAX || targets.iter().any(|it| it.contains(NEVER)) {
        return Err(error);
    }
    let tests = failed_tests(&log);
    for target in &targets {
        println!("\n`cargo test {target}` failed among others; once more, alone:");
        let words: Vec<&str> = target.split(' ').collect();
        let again = [&["test"][..], &words, of_tests].concat();
        if prepare(Task::cargo(context, &again)).run().is_err() {
            return Err(error);
        }
    }
    Ok(unsteady(&tests))
}

/// Runs a suite, and once more if it failed.
pub fn suite<T>(name: &str, mut run: impl FnMut() -> Result<T>) -> Result<(T, String)> {
    let first = match run() {
        Ok(done) => return Ok((done, String::new())),
        Err(error) => error,
    };
    println!("\n{name} failed ({first}); once more:");
    match run() {
        Ok(done) => Ok((done, unsteady(&[name.to_owned()]))),
        Err(second) => bail!("{second}, twice"),
    }
}

fn unsteady(names: &[String]) -> String {
    format!("UNSTEADY, passed when tried again: {}", names.join(", "))
}

/// The targets that cargo lists at the end of a run that goes on after failures, as arguments that run them again.
fn failed_targets(log: &str) -> Vec<String> {
    let is_heading = |line: &&str| line.ends_with("target failed:") || line.ends_with("targets failed:");
    log.lines()
        .skip_while(|line| !is_heading(line))
        .skip(1)
        .map_while(|line| line.trim().strip_prefix('`')?.strip_suffix('`'))
        .map(str::to_owned)
        .collect()
}

fn failed_tests(log: &str) -> Vec<String> {
    let name = |line: &str| line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned);
    let mut names: Vec<String> = log.lines().filter_map(name).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
test a_page_ends ... ok
test a_fork_is_of_one_moment ... FAILED
error: test failed, to rerun pass `-p orrery-engine --test forks`
error: 2 targets failed:
    `-p orrery-engine --test forks`
    `-p orrery --test commands`
";

    #[test]
    fn what_failed_is_found_in_the_log() {
        assert_eq!(failed_targets(LOG), ["-p orrery-engine --test forks", "-p orrery --test commands"]);
        assert_eq!(failed_tests(LOG), ["a_fork_is_of_one_moment"]);
    }

    #[test]
    fn a_build_that_failed_has_no_targets() {
        assert!(failed_targets("error[E0308]: mismatched types\nerror: could not compile `x`").is_empty());
    }

    #[test]
    fn a_suite_has_two_tries() {
        let mut tries = 0;
        let (value, note) = suite("portal", || {
            tries += 1;
            if tries == 1 { bail!("a page was late") } else { Ok(tries) }
        })
        .unwrap();
        assert_eq!((value, note.as_str()), (2, "UNSTEADY, passed when tried again: portal"));
        assert!(suite("portal", || -> Result<()> { bail!("no") }).is_err());
    }
}
