//! `orrery key new`: a master key, as long as the service's.

use anyhow::Result;
use base64::Engine;
use clap::{ArgMatches, Command};

/// Length of the service's own keys.
const KEY_BYTES: usize = 64;

pub fn command() -> Command {
    Command::new("key")
        .about("Make keys")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("new").about("Print a new master key, for `orrery serve --key` or ORRERY_KEY"),
        )
}

pub fn run(_: &ArgMatches) -> Result<()> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("the system gives no random bytes: {error}"))?;
    println!("{}", base64::engine::general_purpose::STANDARD.encode(bytes));
    Ok(())
}
