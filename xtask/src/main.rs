//! The project's chores, as one small program: `cargo xtask ci` is the test command of the README.
//!
//! A *step* is one thing that can be right or wrong: the format, the lints, the tests, an SDK. Each can be run alone
//! (`cargo xtask tidy`, `cargo xtask sdk python`), and `ci` runs them in an order that fails early: what takes a
//! second comes before what takes minutes. The table of steps is in `steps.rs`; adding one is one line there.
//!
//! Everything a step needs beyond the toolchains is installed by the step itself below `target/`, so a clean clone is
//! enough to begin and deleting `target/` is enough to start over.

mod corpora;
mod docs;
mod examples;
mod layering;
mod licences;
mod process;
mod sdk;
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
}

impl Context {
    fn from_arguments(arguments: &[String]) -> Result<Self> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the checkout").to_owned();
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let mut context = Context { root, target, quick: false, check: false, words: Vec::new() };
        for argument in arguments {
            match argument.as_str() {
                "--quick" => context.quick = true,
                "--check" => context.check = true,
                option if option.starts_with('-') => {
                    bail!("unknown option {option}; there are --quick and --check")
                }
                word => context.words.push(word.to_owned()),
            }
        }
        Ok(context)
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
    println!("`splits` takes a number of items: cargo xtask splits 100000");
    println!("`docs` writes the generated pages; with --check it only compares");
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
