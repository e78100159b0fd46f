//! The one binary: `orrery serve`, `cert`, `key`, `workload`.
//!
//! Each subcommand is a module with `command()`, its part of the command line, and `run()`. Exit codes: 0 done, 1 failed (the
//! reason is on stderr), 2 the command line or a setting is wrong.

mod cert;
mod key;
mod serve;
mod workload;

use std::process::ExitCode;

use clap::Command;

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
        .subcommand(cert::command())
        .subcommand(key::command())
        .subcommand(workload::command())
        .subcommand(Command::new("version").about("Print the version"))
}

fn main() -> ExitCode {
    let matches = command().get_matches();
    let result = match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("cert", matches)) => cert::run(matches),
        Some(("key", matches)) => key::run(matches),
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
            ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_well_formed() {
        super::command().debug_assert();
    }
}
