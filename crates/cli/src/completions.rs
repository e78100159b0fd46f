//! `orrery completions` and `orrery man`: made from the description of the command line, so they never say anything
//! else.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;

pub fn command() -> Command {
    Command::new("completions")
        .about("Print completions for a shell")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(clap::value_parser!(Shell))
                .help("bash, elvish, fish, powershell or zsh"),
        )
        .after_help(
            "For this shell only:      source <(orrery completions bash)\n\
             For every bash to come:   orrery completions bash > ~/.local/share/bash-completion/completions/orrery",
        )
}

pub fn man_command() -> Command {
    Command::new("man").about("Write man pages, one for each command, to a directory").arg(
        Arg::new("directory")
            .value_name("DIR")
            .required(true)
            .value_parser(clap::value_parser!(PathBuf))
            .help("Made if it does not exist"),
    )
}

pub fn run(matches: &ArgMatches, mut whole: Command) -> Result<()> {
    let shell = *matches.get_one::<Shell>("shell").context("no shell is given")?;
    clap_complete::generate(shell, &mut whole, "orrery", &mut std::io::stdout());
    Ok(())
}

pub fn run_man(matches: &ArgMatches, whole: Command) -> Result<()> {
    let directory = matches.get_one::<PathBuf>("directory").context("no directory is given")?;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
    clap_mangen::generate_to(whole, directory)
        .with_context(|| format!("cannot write to {}", directory.display()))?;
    println!("wrote man pages to {}; try: man -M {} orrery", directory.display(), directory.display());
    Ok(())
}
