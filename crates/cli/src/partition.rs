//! `orrery partition split` and `merge`: asks a running server to change a container's partitions, and waits for it.
//!
//! The server does the work whether or not anyone waits; this prints each step as it is reached and ends with the
//! outcome.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use serde_json::{Value, json};

use crate::workload::{Call, Client, Target, client_config, endpoint_of, key_of};

const PATH: &str = "_orrery/splits";
/// How often the server is asked how far it is.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

pub fn command() -> Command {
    Command::new("partition")
        .about("Split or merge the physical partitions of a container while it is in use")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(operation("split", "Split a partition in two halves of about the same size"))
        .subcommand(operation("merge", "Merge a partition with the one after it"))
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
        .arg(text("endpoint", "URL", "Where the server is").default_value("http://127.0.0.1:8081"))
        .arg(text(
            "key",
            "BASE64",
            "Master key [env: ORRERY_KEY] [default: the emulator's, for loopback endpoints]",
        ))
        .arg(text("db", "NAME", "The database").required(true))
        .arg(text("container", "NAME", "The container").required(true))
        .arg(text("range", "ID", range))
        .arg(Arg::new("no-wait").long("no-wait").help("Do not wait for the end").action(ArgAction::SetTrue))
        .arg(
            text("ca", "FILE", "Trust the certificates in this PEM file, besides the system's")
                .value_parser(clap::value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("insecure")
                .long("insecure")
                .help("Do not verify the server's certificate")
                .action(ArgAction::SetTrue),
        )
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    runtime.block_on(follow(operation, matches))
}

async fn follow(operation: &str, matches: &ArgMatches) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let endpoint = endpoint_of(text("endpoint").unwrap_or_default())?;
    let key = key_of(text("key"), &endpoint)?;
    let tls = match endpoint.scheme_str() {
        Some("https") => {
            let authority = matches.get_one::<PathBuf>("ca").map(PathBuf::as_path);
            Some(client_config(authority, matches.get_flag("insecure"))?)
        }
        _ => None,
    };
    let mut client = Client::new(Arc::new(Target::new(endpoint, &key, tls)?));
    let request = json!({
        "operation": operation,
        "database": text("db"),
        "container": text("container"),
        "range": text("range"),
    });
    let mut job = ask(&mut client, Method::POST, request.to_string()).await?;
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
        let jobs = ask(&mut client, Method::GET, String::new()).await?;
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

async fn ask(client: &mut Client, method: Method, body: String) -> Result<Value> {
    let call = Call {
        method,
        path: PATH.to_owned(),
        link: PATH.to_owned(),
        kind: "_orrery",
        headers: Vec::new(),
        body: Bytes::from(body),
    };
    let answer = client.send(&call).await?;
    let parsed: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status >= 300 {
        match parsed["message"].as_str() {
            Some(message) => bail!("{message}"),
            None => bail!("{}", answer.message()),
        }
    }
    Ok(parsed)
}
