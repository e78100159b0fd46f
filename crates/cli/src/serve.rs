//! `orrery serve`: the table of settings as flags, and the other places they may come from.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use orrery_server::config::settings::HIDDEN;
use orrery_server::config::{self, Config, ConfigError, Given, SETTINGS, Setting, TlsMode};
use orrery_server::lifecycle::{Step, Steps};

use crate::Usage;
use crate::account::target_of;
use crate::transfer::dump;

/// Requests at once while the account is written out.
const DUMP_READERS: usize = 4;

const AFTER_HELP: &str = "\
Every setting may also be given as an environment variable (ORRERY_ and the name in capitals, `-` becomes `_`) or as a key \
of the TOML file named by --config, with the same name. A flag beats the environment, which beats the file, which beats the default.";

pub fn command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(PathBuf))
        .help("TOML file with settings [env: ORRERY_CONFIG]")
        .help_heading("Where");
    Command::new("serve")
        .about("Run the server")
        .args(SETTINGS.iter().map(flag))
        .arg(config)
        .after_help(AFTER_HELP)
}

/// The flag of one setting. Texts stay texts here: checking them is the table's business, for every place alike.
pub fn flag(setting: &'static Setting) -> Arg {
    let mut help = setting.help.to_owned();
    if !setting.default.is_empty() {
        help.push_str(&format!(" [default: {}]", setting.default));
    }
    let flag = Arg::new(setting.name)
        .long(setting.name)
        .help(help)
        .help_heading(setting.group)
        .hide(setting.group == HIDDEN)
        .action(ArgAction::Append);
    match setting.value {
        "" => flag.num_args(0..=1).require_equals(true).default_missing_value("true").value_name("BOOL"),
        value => flag.num_args(1).value_name(value),
    }
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (config, warnings) = configure(matches)?;
    let steps = steps(&config)?;
    orrery_server::lifecycle::serve(&config, &warnings, steps)
}

/// Loading before the first request and dumping after the last, through the server's own port as any client would.
fn steps(config: &Config) -> Result<Steps> {
    if let Some(directory) = &config.export_on_exit {
        dump::check_directory(directory).map_err(|error| Usage(format!("--export-on-exit: {error:#}")))?;
    }
    if let Some(directory) = &config.import {
        dump::check_directory(directory).map_err(|error| Usage(format!("--import: {error:#}")))?;
    }
    let scheme = if config.tls == TlsMode::Required { "https" } else { "http" };
    let step = |directory: &PathBuf, load: bool| -> Step {
        let (directory, key) = (directory.clone(), config.keys.primary.clone());
        Box::new(move |address| {
            Box::pin(async move {
                // The certificate is this process's own.
                let target = target_of(&format!("{scheme}://{address}"), Some(&key), None, true)?;
                let done = match load {
                    true => dump::load_if_there(target, &directory).await.context("--import"),
                    false => dump::dump(target, &directory, DUMP_READERS).await.context("--export-on-exit"),
                };
                done.map(|_| ())
            })
        })
    };
    Ok(Steps {
        before_announcing: config.import.as_ref().map(|directory| step(directory, true)),
        before_stopping: config.export_on_exit.as_ref().map(|directory| step(directory, false)),
    })
}

/// The effective configuration, and what should be said about it.
pub fn configure(matches: &ArgMatches) -> Result<(Config, Vec<String>)> {
    let usage = |ConfigError(text)| Usage(text);
    let (environment, unknown) = config::from_environment(std::env::vars_os().filter_map(|(name, value)| {
        // A variable that is no text cannot be one of ours.
        Some((name.into_string().ok()?, value.into_string().ok()?))
    }));
    let path = matches.try_get_one::<PathBuf>("config").ok().flatten().cloned();
    let path =
        path.or_else(|| std::env::var_os("ORRERY_CONFIG").filter(|name| !name.is_empty()).map(PathBuf::from));
    let file = path.map(|path| config::file::read(&path)).transpose().map_err(usage)?.unwrap_or_default();
    let config = config::resolve(&given(matches)?, &environment, &file).map_err(usage)?;
    let warnings =
        unknown.iter().map(|name| format!("{name} is set, but there is no such setting")).collect();
    Ok((config, warnings))
}

fn given(matches: &ArgMatches) -> Result<Given, Usage> {
    let mut given = Given::new();
    for setting in SETTINGS {
        // A subcommand with a part of the table (`cert`) has only some of the flags.
        let Ok(Some(texts)) = matches.try_get_many::<String>(setting.name) else { continue };
        let texts: Vec<String> = texts.cloned().collect();
        if texts.len() > 1 && !setting.repeats {
            return Err(Usage(format!("--{} is given {} times; allowed: once", setting.name, texts.len())));
        }
        given.insert(setting.name, texts);
    }
    Ok(given)
}
