//! The one binary: `orrery serve` and the commands around it.
//!
//! Each subcommand is a module with `command()`, its part of the command line, and `run()`. Exit codes are in
//! `account/failure.rs`: 0 done, 1 failed (the reason is on stderr), 2 the command line or a setting is wrong, and
//! some that scripts can tell apart.

mod account;
mod admin;
mod advise;
mod budget;
mod cert;
mod check;
mod completions;
mod connect;
mod everyday;
mod faults;
mod key;
mod partition;
mod partitions;
mod repair;
mod script;
mod serve;
mod test_controls;
mod transfer;
mod workload;

use std::process::ExitCode;

use clap::Command;
use clap::error::ErrorKind;

use account::{ExitCodes, Failure};

/// A document is larger than what the C library's allocator keeps per thread, and its rows are freed by other threads
/// than made them: allocation was a tenth of a write. Huge pages are off because an idle server would hold twice the
/// memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Freed memory goes back to the system after this time, where the allocator would wait for a second: what a burst of
/// large queries has freed counts towards the memory limit as long as it is kept. The allocator's own variable
/// (`MIMALLOC_PURGE_DELAY`) goes before.
const MEMORY_KEPT_MS: std::ffi::c_long = 200;

fn give_memory_back_soon() {
    /// Its place among the options of the allocator, in versions 2 and 3.
    const PURGE_DELAY: std::ffi::c_int = 15;
    #[allow(unsafe_code)]
    unsafe extern "C" {
        fn mi_option_set_default(option: std::ffi::c_int, value: std::ffi::c_long);
    }
    // SAFETY: a function of the allocator that this program is linked with; it stores a number.
    #[allow(unsafe_code)]
    unsafe {
        mi_option_set_default(PURGE_DELAY, MEMORY_KEPT_MS);
    }
}

/// A wrong setting, as opposed to something that failed.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

fn command() -> Command {
    Command::new("orrery")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Azure Cosmos DB, self-hosted: one binary that unmodified Cosmos SDKs talk to")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(serve::command())
        .subcommand(connect::command())
        .subcommand(cert::command())
        .subcommand(key::command())
        .subcommand(check::command())
        .subcommand(repair::command())
        .subcommand(partition::command())
        .subcommand(partitions::command())
        .subcommand(faults::command())
        .subcommand(script::command())
        .subcommand(everyday::database::command())
        .subcommand(everyday::container::command())
        .subcommand(everyday::item::command())
        .subcommand(everyday::query::command())
        .subcommand(everyday::feed::command())
        .subcommand(everyday::fork::command())
        .subcommand(everyday::top::command())
        .subcommand(transfer::import_command())
        .subcommand(transfer::export_command())
        .subcommand(advise::command())
        .subcommand(budget::command())
        .subcommand(test_controls::throttling_command())
        .subcommand(test_controls::clock_command())
        .subcommand(test_controls::reset_command())
        .subcommand(workload::command())
        .subcommand(completions::command())
        .subcommand(completions::man_command())
        .subcommand(Command::new("version").about("Print the version"))
}

fn main() -> ExitCode {
    give_memory_back_soon();
    let matches = command().try_get_matches().unwrap_or_else(|error| refuse(&error));
    let result = match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("connect", matches)) => connect::run(matches),
        Some(("cert", matches)) => cert::run(matches),
        Some(("key", matches)) => key::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("repair", matches)) => repair::run(matches),
        Some(("partition", matches)) => partition::run(matches),
        Some(("partitions", matches)) => partitions::run(matches),
        Some(("faults", matches)) => faults::run(matches),
        Some(("script", matches)) => script::run(matches),
        Some(("database", matches)) => everyday::database::run(matches),
        Some(("container", matches)) => everyday::container::run(matches),
        Some(("item", matches)) => everyday::item::run(matches),
        Some(("query", matches)) => everyday::query::run(matches),
        Some(("feed", matches)) => everyday::feed::run(matches),
        Some(("fork", matches)) => everyday::fork::run(matches),
        Some(("top", matches)) => everyday::top::run(matches),
        Some(("completions", matches)) => completions::run(matches, command()),
        Some(("man", matches)) => completions::run_man(matches, command()),
        Some(("advise", matches)) => advise::run(matches),
        Some(("budget", matches)) => budget::run(matches),
        Some(("throttling", matches)) => test_controls::run_throttling(matches),
        Some(("clock", matches)) => test_controls::run_clock(matches),
        Some(("reset", matches)) => test_controls::run_reset(matches),
        Some(("import", matches)) => transfer::import(matches),
        Some(("export", matches)) => transfer::export(matches),
        Some(("workload", matches)) => workload::run(matches),
        _ => {
            println!("orrery {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("orrery: {error:#}");
            // A failure may have been given context on its way.
            let failure = error.downcast_ref::<Failure>().map(|failure| failure.code);
            ExitCode::from(match failure {
                _ if error.is::<Usage>() => ExitCodes::Usage as u8,
                failure => failure.unwrap_or(ExitCodes::Failed) as u8,
            })
        }
    }
}

/// Prints what is wrong with the command line and, for an unknown flag, which there are.
fn refuse(error: &clap::Error) -> ! {
    let _ = error.print();
    if error.kind() == ErrorKind::UnknownArgument {
        let mut command = command();
        let mut names = std::env::args().skip(1);
        while let Some(inner) = names.next().and_then(|name| command.find_subcommand(name)).cloned() {
            command = inner;
        }
        let flags: Vec<String> =
            command.get_arguments().filter_map(|flag| Some(format!("--{}", flag.get_long()?))).collect();
        eprintln!("allowed: {}", if flags.is_empty() { "no flags".into() } else { flags.join(", ") });
    }
    std::process::exit(error.exit_code())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        super::command().debug_assert();
    }
}
