//! `orrery container list|create|show|scale|delete`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use orrery_server::config::file::json_or_toml;
use serde_json::{Value, json};

use super::database::paths;
use super::{container_name, group, name, offer, option, table};
use crate::Usage;
use crate::account::{Account, ContainerInfo, Place, read_all, target, throughput_headers};
use crate::admin::block_on;

pub fn command() -> Command {
    let container = || name("name", "DB/CONTAINER", "The container");
    let definition = option(
        "definition",
        "FILE",
        "The rest of its definition, JSON or TOML: indexingPolicy, uniqueKeyPolicy, …",
    )
    .value_parser(clap::value_parser!(PathBuf));
    group(
        "container",
        "Containers of a database: list, create, show, scale, delete",
        [
            Command::new("list")
                .about("List the containers of a database, or of all")
                .arg(name("name", "DATABASE", "The database [default: all]").required(false)),
            Command::new("create")
                .about("Make a container")
                .arg(container())
                .arg(
                    option(
                        "partition-key",
                        "PATHS",
                        "Path of the partition key; up to three with commas make it hierarchical",
                    )
                    .required(true),
                )
                .arg(option(
                    "throughput",
                    "RU",
                    "RU/s: a number, or autoscale:NUMBER [default: the database's, else 400]",
                ))
                .arg(
                    option("ttl", "SECONDS", "Items expire after this time; -1: only those that say when")
                        .allow_hyphen_values(true),
                )
                .arg(definition),
            Command::new("show")
                .about("Show a container: definition, throughput, physical partitions")
                .arg(container()),
            Command::new("scale").about("Change the throughput").arg(container()).arg(name(
                "throughput",
                "RU",
                "A number of RU/s, or autoscale:NUMBER",
            )),
            Command::new("delete").about("Delete a container with its items").arg(container()).arg(yes()),
        ],
    )
}

pub fn yes() -> Arg {
    Arg::new("yes").long("yes").help("Do not ask").action(ArgAction::SetTrue)
}

/// Asks a person; a script has to say `--yes`.
pub fn confirm(matches: &ArgMatches, what: &str) -> Result<(), Usage> {
    if matches.get_flag("yes") {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Usage(format!("this deletes {what}; say --yes")));
    }
    eprint!("Delete {what}? Type yes: ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    if line.trim() == "yes" { Ok(()) } else { Err(Usage("nothing was deleted".into())) }
}

/// A sentence for people, or what the server answered for scripts.
pub fn said(body: &[u8], sentence: &str, as_json: bool) {
    match as_json {
        true => println!("{}", serde_json::from_slice::<Value>(body).unwrap_or(Value::Null)),
        false => println!("{sentence}"),
    }
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().map(String::as_str);
    let as_json = matches.get_flag("json");
    let full = text("name").unwrap_or_default();
    block_on(async {
        let mut account = Account::new(target(matches)?);
        if operation == "list" {
            return list(&mut account, full, as_json).await;
        }
        let (database, container) = container_name(full)?;
        let place = Place::container(database, container);
        match operation {
            "create" => {
                let call = create(matches, database, container)?;
                let made = account.send(&call).await?;
                said(&made.body, &format!("made {full}"), as_json);
            }
            "show" => show(&mut account, &place, full, as_json).await?,
            "scale" => {
                let owner = account.get(place.call(Method::GET)).await?;
                let changed =
                    offer::change(&mut account, &owner, text("throughput").unwrap_or_default()).await?;
                said(
                    changed.to_string().as_bytes(),
                    &format!("{full} has {} RU/s", offer::text(&changed)),
                    as_json,
                );
            }
            _ => {
                confirm(matches, &format!("the container {full} with its items"))?;
                account.send(&place.call(Method::DELETE)).await?;
                said(b"{}", &format!("deleted {full}"), as_json);
            }
        }
        Ok(())
    })
}

/// The containers of a database; of all of them where none is named.
async fn list(account: &mut Account, database: &str, as_json: bool) -> Result<()> {
    let databases = match database {
        "" => {
            let all = read_all(account, &Place::account(), "dbs", "Databases").await?;
            all.iter().filter_map(|one| one["id"].as_str().map(str::to_owned)).collect()
        }
        one => vec![one.to_owned()],
    };
    let (mut found, mut rows) = (Vec::new(), Vec::new());
    for name in &databases {
        for one in read_all(account, &Place::database(name), "colls", "DocumentCollections").await? {
            let id = one["id"].as_str().unwrap_or_default();
            // As other commands want it.
            let shown = if database.is_empty() { format!("{name}/{id}") } else { id.to_owned() };
            rows.push(json!({"container": shown, "partition key": paths(&one), "time to live": ttl(&one)}));
            found.push(one);
        }
    }
    match as_json {
        true => println!("{}", Value::Array(found)),
        false => print!("{}", table::render(&rows)),
    }
    Ok(())
}

/// When items of a container expire, for people.
fn ttl(definition: &Value) -> String {
    match definition["defaultTtl"].as_i64() {
        None => "off".to_owned(),
        Some(-1) => "on, items say when they expire".to_owned(),
        Some(seconds) => format!("{seconds} s"),
    }
}

fn create(matches: &ArgMatches, database: &str, container: &str) -> Result<crate::workload::Call> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let mut definition = match matches.get_one::<PathBuf>("definition") {
        None => json!({}),
        Some(path) => {
            let read =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            json_or_toml(path, &read).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?
        }
    };
    let key: Vec<&str> = text("partition-key").unwrap_or_default().split(',').map(str::trim).collect();
    definition["id"] = container.into();
    definition["partitionKey"] =
        json!({"paths": key, "kind": if key.len() > 1 { "MultiHash" } else { "Hash" }, "version": 2});
    if let Some(ttl) = text("ttl") {
        let seconds: i64 =
            ttl.parse().map_err(|_| Usage(format!("--ttl: `{ttl}` is no number of seconds")))?;
        definition["defaultTtl"] = seconds.into();
    }
    let mut call = Place::database(database).feed(Method::POST, "colls");
    call.headers = throughput_headers(text("throughput"))?;
    call.headers.push(("content-type", "application/json".into()));
    call.body = definition.to_string().into();
    Ok(call)
}

async fn show(account: &mut Account, place: &Place, full: &str, as_json: bool) -> Result<()> {
    let info = ContainerInfo::read(account, place).await?;
    let offer = offer::find(account, &info.definition).await?;
    let throughput = offer.as_ref().map(offer::text);
    if as_json {
        println!(
            "{}",
            json!({"definition": info.definition, "throughput": throughput, "physicalPartitions": info.ranges.len()})
        );
        return Ok(());
    }
    println!("container            {full}");
    println!("partition key        {}", paths(&info.definition));
    println!(
        "throughput           {}",
        throughput.as_deref().unwrap_or("shared with the database, or serverless")
    );
    println!("physical partitions  {}", info.ranges.len());
    println!("time to live         {}", ttl(&info.definition));
    println!("indexing             {}", info.definition["indexingPolicy"]);
    Ok(())
}
