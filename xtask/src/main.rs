//! The project's chores, as one small program: `cargo xtask ci` is the test command of the README.
//!
//! A *step* is one thing that can be right or wrong: the format, the lints, the tests, an SDK. Each can be run alone
//! (`cargo xtask tidy`, `cargo xtask sdk python`), and `ci` runs them in an order that fails early: what takes a
//! second comes before what takes minutes. The table of steps is in `steps.rs`; adding one is one line there.
//!
//! Everything a step needs beyond the toolchains is installed by the step itself below `target/`, so a clean clone is
//! enough to begin and deleting `target/` is enough to start over.

mod attack;
mod concepts;
mod corpora;
mod docs;
mod examples;
mod fuzz;
mod instructions;
mod layering;
mod licences;
mod portal;
mod process;
mod sdk;
mod second_try;
mod server;
mod splits;
mod steps;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};

use steps::{Outcome, STEPS};

/// What every step is told.
pub struct Context {
    /// The checkout.
    pub root: PathBuf,
    /// Where cargo builds, and below which the steps install what they need.
    pub target: PathBuf,
    /// A laptop's loop: debug builds, one SDK, few rounds.
    pub quick: bool,
    /// `docs` writes its pages unless this is set.
    pub check: bool,
    /// Words after the step's name, such as the languages of `sdk`.
    pub words: Vec<String>,
    /// Further options of single steps: `--long`, `--seed 7`.
    pub options: Vec<(&'static str, String)>,
}

/// Options of single steps, and whether a value follows.
const OPTIONS: &[(&str, bool)] = &[
    ("long", false),
    ("seed", true),
    ("binary", true),
    ("runs", true),
    ("require", true),
    ("record", false),
];

impl Context {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the checkout").to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let (words, options) = (Vec::new(), Vec::new());
        let mut context = Context { root, target, quick: false, check: false, words, options };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => context.quick = true,
                "--check" => context.check = true,
                option if option.starts_with('-') => {
                    let known = OPTIONS.iter().find(|(name, _)| option.strip_prefix("--") == Some(name));
                    let Some((name, has_value)) = known else {
                        bail!("unknown option {option}; there are --quick and --check, and see `help`")
                    };
                    let value = if *has_value { arguments.next().cloned() } else { None };
                    if *has_value && value.is_none() {
                        bail!("{option} needs a value");
                    }
                    context.options.push((name, value.unwrap_or_default()));
                }
                word => context.words.push(word.to_owned()),
            }
        }
        Ok(context)
    }

    /// Whether an option without a value was given.
    pub fn flag(&self, name: &str) -> bool {
        self.option(name).is_some()
    }

    /// The value of an option, the last one where it was given twice.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(has, _)| *has == name).map(|(_, value)| value.as_str())
    }

    /// The directory that cargo builds the server into, and the flag that says so.
    pub fn profile(&self) -> (&'static str, &'static [&'static str]) {
        if self.quick { ("debug", &[]) } else { ("release", &["--release"]) }
    }
}

fn usage() {
    println!(
        "cargo xtask ci [--quick]     every step, in this order; --quick leaves out what takes minutes\n"
    );
    println!("cargo xtask STEP             one of them:\n");
    for step in STEPS {
        println!("  {:<10} {}", step.name, step.purpose);
    }
    println!("\n`sdk` takes languages: cargo xtask sdk python go");
    println!(
        "`portal vendor` makes the portal's vendored modules anew (needs Node); other words choose tests"
    );
    println!("`splits` takes a number of items: cargo xtask splits 100000");
    println!("`docs` writes the generated pages; with --check it only compares");
    println!(
        "`attack` takes names or their beginnings, --long, --seed N and --binary PATH: docs/operations/attack.md"
    );
}

fn run() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        usage();
        return Ok(true);
    };
    let mut context = Context::from_arguments(rest)?;
    match name.as_str() {
        "ci" => {
            if !context.words.is_empty() {
                bail!("ci takes no words; to run one step, name it: cargo xtask {}", context.words.join(" "));
            }
            // The pages were written by whoever changed their source; here it is only asked whether they did.
            context.check = true;
            steps::run_all(&context)
        }
        // No step of `ci`, which tries the same inputs as a test; this one goes on for as long as it is told to.
        "fuzz" => {
            fuzz::run(&context)?;
            Ok(true)
        }
        // Started by `attack` itself: a process of its own, so that it measures the server alone.
        "attack-witness" => {
            attack::witness(context.words.first().map_or("", String::as_str))?;
            Ok(true)
        }
        "help" | "--help" | "-h" => {
            usage();
            Ok(true)
        }
        name => {
            let Some(step) = STEPS.iter().find(|step| step.name == name) else {
                usage();
                bail!("there is no step {name}");
            };
            match (step.run)(&context)? {
                Outcome::Passed(note) => {
                    println!("{name}: ok{}{note}", if note.is_empty() { "" } else { ", " })
                }
                Outcome::Skipped(reason) => println!("{name}: skipped, {reason}"),
            }
            Ok(true)
        }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
