//! `orrery clock` and `orrery reset`: the controls for tests of a server that was started with `--test-controls on`.
//! `orrery throttling`: whether a server refuses what exceeds the throughput, switched while it runs.

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use orrery_server::config::values;
use serde_json::{Value, json};

use crate::Usage;
use crate::account::{EXIT_CODES_HELP, with_account_flags};
use crate::admin::{ask, block_on, connect};
use crate::everyday::container::confirm;

pub fn clock_command() -> Command {
    let json =
        Arg::new("json").long("json").help("Print JSON, for scripts").global(true).action(ArgAction::SetTrue);
    let by = Arg::new("by").value_name("TIME").required(true).help("How far: 90s, 15m, 24h");
    let command = Command::new("clock")
        .about("The clock of a server for tests: time to live, tokens and throughput move with it")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(Command::new("show").about("Print the server's time and how far it was moved"))
        .subcommand(Command::new("advance").about("Move the clock forward; it never goes back").arg(by))
        .arg(json)
        .after_help(format!("Needs a server that was started with --test-controls on.\n{EXIT_CODES_HELP}"));
    with_account_flags(command)
}

pub fn reset_command() -> Command {
    let yes = Arg::new("yes").long("yes").help("Do not ask").action(ArgAction::SetTrue);
    let command = Command::new("reset")
        .about("Delete all databases of a server for tests")
        .arg(yes)
        .after_help(format!("Needs a server that was started with --test-controls on.\n{EXIT_CODES_HELP}"));
    with_account_flags(command)
}

pub fn throttling_command() -> Command {
    let json =
        Arg::new("json").long("json").help("Print JSON, for scripts").global(true).action(ArgAction::SetTrue);
    let command = Command::new("throttling")
        .about("Whether a server refuses what exceeds the throughput: show, on, off")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(Command::new("show").about("Print whether it does"))
        .subcommand(
            Command::new("on").about("Refuse with 429 what exceeds the throughput, until the server ends"),
        )
        .subcommand(Command::new("off").about("Count and report, and refuse nothing"))
        .arg(json)
        .after_help(EXIT_CODES_HELP);
    with_account_flags(command)
}

pub fn run_throttling(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    block_on(async {
        let mut client = connect(matches)?;
        let (method, body) = match operation {
            "show" => (Method::GET, String::new()),
            wanted => (Method::PUT, json!({"enabled": wanted == "on"}).to_string()),
        };
        let answer = ask(&mut client, method, "throttling", "", body).await?;
        match (matches.get_flag("json"), answer["enabled"].as_bool()) {
            (true, _) => println!("{answer}"),
            (false, Some(true)) => println!("on: what exceeds the throughput is refused"),
            (false, _) => println!("off: charges are reported, nothing is refused"),
        }
        Ok(())
    })
}

pub fn run_clock(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    let by = matches.try_get_one::<String>("by").ok().flatten();
    let by_ms = by.map(|text| values::duration(text).map_err(|problem| Usage(format!("TIME: {problem}"))));
    let by_ms = by_ms.transpose()?.map(|by| by.as_millis() as u64);
    block_on(async {
        let mut client = connect(matches)?;
        let (method, body) = match (operation, by_ms) {
            ("advance", Some(by_ms)) => (Method::POST, json!({"advanceMs": by_ms}).to_string()),
            _ => (Method::GET, String::new()),
        };
        let clock = ask(&mut client, method, "clock", "", body).await?;
        if matches.get_flag("json") {
            println!("{clock}");
            return Ok(());
        }
        let number = |name: &str| clock[name].as_i64().unwrap_or(0);
        let now = jiff::Timestamp::from_millisecond(number("nowMs")).map(|now| now.to_string());
        println!("{}, {} s ahead", now.unwrap_or_default(), number("movedMs") / 1000);
        Ok(())
    })
}

pub fn run_reset(matches: &ArgMatches) -> Result<()> {
    confirm(matches, "all databases of the server")?;
    block_on(async {
        let mut client = connect(matches)?;
        let answer = ask(&mut client, Method::POST, "reset", "", String::new()).await?;
        debug_assert_eq!(answer, Value::Null);
        println!("deleted all databases");
        Ok(())
    })
}
