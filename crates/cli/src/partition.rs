//! `orrery partition split` and `merge`: asks a running server to change a container's partitions, and waits for it.
//!
//! The server does the work whether or not anyone waits; this prints each step as it is reached and ends with the
//! outcome.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use serde_json::{Value, json};

use crate::admin::{ask, block_on, connect, with_server_flags};

const ROUTE: &str = "splits";
/// How often the server is asked how far it is.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

pub fn command() -> Command {
    let command = Command::new("partition")
        .about("Split or merge the physical partitions of a container while it is in use")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(operation("split", "Split a partition in two halves of about the same size"))
        .subcommand(operation("merge", "Merge a partition with the one after it"));
    with_server_flags(command)
}

fn operation(name: &'static str, about: &'static str) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let range = match name {
        "split" => "Which partition, by its range id [default: the one that holds most]",
        _ => "The first of the two, by its range id [default: the two that hold least]",
    };
    Command::new(name)
        .about(about)
        .arg(text("db", "NAME", "The database").required(true))
        .arg(text("container", "NAME", "The container").required(true))
        .arg(text("range", "ID", range))
        .arg(Arg::new("no-wait").long("no-wait").help("Do not wait for the end").action(ArgAction::SetTrue))
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    block_on(follow(operation, matches))
}

async fn follow(operation: &str, matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let mut client = connect(matches)?;
    let request = json!({
        "operation": operation,
        "database": text("db"),
        "container": text("container"),
        "range": text("range"),
    });
    let mut job = ask(&mut client, Method::POST, ROUTE, "", request.to_string()).await?;
    if matches.get_flag("no-wait") {
        println!("job {} is {}", job["job"], job["step"].as_str().unwrap_or_default());
        return Ok(());
    }
    let number = job["job"].clone();
    let mut shown = String::new();
    loop {
        let step = job["step"].as_str().unwrap_or_default().to_owned();
        match step.as_str() {
            "done" => break,
            "failed" => bail!("{}", job["error"].as_str().unwrap_or("the job failed")),
            _ if step != shown => println!("{step}"),
            _ => {}
        }
        shown = step;
        tokio::time::sleep(LOOK_INTERVAL).await;
        let jobs = ask(&mut client, Method::GET, ROUTE, "", String::new()).await?;
        let jobs = jobs["jobs"].as_array().cloned().unwrap_or_default();
        job =
            jobs.into_iter().find(|job| job["job"] == number).context("the server has forgotten the job")?;
    }
    println!(
        "{} became {}: {} items in {} ms, writers waited {} ms",
        ranges(&job["from"]),
        ranges(&job["to"]),
        job["itemsCopied"],
        job["tookMs"],
        job["pausedMs"]
    );
    Ok(())
}

fn ranges(ids: &Value) -> String {
    let ids: Vec<&str> = ids.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("{} {}", if ids.len() == 1 { "range" } else { "ranges" }, ids.join(" and "))
}
