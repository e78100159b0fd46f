//! `orrery item get|put|patch|delete`.

use std::io::Read;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use orrery_model::PartitionKey;
use serde_json::{Value, json};

use super::{charge, container_name, group, item_patch, key_header, name, option, partition_key};
use crate::Usage;
use crate::account::{Account, ContainerInfo, Place, target};
use crate::admin::block_on;
use crate::transfer::{Preparation, raw_json};
use crate::workload::Call;
use crate::workload::client::Answer;

/// Largest item that is read from a file or from standard input.
const ITEM_BYTES_MAX: u64 = 4 * 1024 * 1024;

pub fn command() -> Command {
    let container = || name("name", "DB/CONTAINER", "The container");
    let id = || name("id", "ID", "The item's id");
    let key = || {
        let help = "Partition key: a value, JSON if it is some (5 is a number, '\"5\"' a string), or a JSON array of values [default: the id, where that is the key]";
        option("partition-key", "KEY", help).short('k')
    };
    let etag = || option("if-match", "ETAG", "Only if the item still has this etag (else exit code 4)");
    group(
        "item",
        "Items of a container: get, put, patch, delete",
        [
            Command::new("get").about("Print an item").arg(container()).arg(id()).arg(key()),
            Command::new("put")
                .about("Write an item, new or not")
                .arg(container())
                .arg(name("item", "JSON", "The item; @FILE reads it from a file, - from standard input"))
                .arg(
                    Arg::new("create")
                        .long("create")
                        .help("Only if it is new (else exit code 4)")
                        .action(ArgAction::SetTrue),
                )
                .arg(etag()),
            item_patch::arguments(
                Command::new("patch").about("Change parts of an item").arg(container()).arg(id()).arg(key()),
            )
            .arg(etag()),
            Command::new("delete").about("Delete an item").arg(container()).arg(id()).arg(key()).arg(etag()),
        ],
    )
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().map(String::as_str);
    let (database, container) = container_name(text("name").unwrap_or_default())?;
    let place = Place::container(database, container);
    block_on(async {
        let mut account = Account::new(target(matches)?);
        let mut call = match operation {
            "put" => put(&mut account, matches, &place).await?,
            _ => {
                let id = text("id").unwrap_or_default();
                let key = key(&mut account, &place, id, text("partition-key")).await?;
                let method = match operation {
                    "get" => Method::GET,
                    "patch" => Method::PATCH,
                    _ => Method::DELETE,
                };
                let mut call = place.item(id).call(method);
                call.headers.push(key_header(&key));
                if operation == "patch" {
                    call.headers.push(("content-type", "application/json-patch+json".into()));
                    call.body = item_patch::body(matches)?.to_string().into();
                }
                call
            }
        };
        if let Some(etag) = text("if-match") {
            call.headers.push(("if-match", etag.to_owned()));
        }
        let answer = account.send(&call).await?;
        show(&answer, matches.get_flag("json"));
        Ok(())
    })
}

fn show(answer: &Answer, as_json: bool) {
    let text = String::from_utf8_lossy(&answer.body);
    let item: Option<Value> = serde_json::from_slice(&answer.body).ok();
    if as_json {
        let etag = answer.header("etag");
        println!("{}", json!({"item": item, "etag": etag, "requestCharge": answer.charge_ru()}));
        return;
    }
    // As it came, where reading it in would change its numbers.
    match item.map(|item| format!("{item:#}")) {
        Some(pretty) if same_digits(&pretty, &text) => println!("{pretty}"),
        _ if text.is_empty() => {}
        _ => println!("{text}"),
    }
    eprintln!("{}", charge(answer.charge_ru()));
}

fn same_digits(a: &str, b: &str) -> bool {
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).collect::<Vec<_>>();
    digits(a) == digits(b)
}

/// The key that was given, or the id where the container's key is `/id`.
async fn key(account: &mut Account, place: &Place, id: &str, given: Option<&str>) -> Result<PartitionKey> {
    if let Some(text) = given {
        return Ok(partition_key(text)?);
    }
    let container = ContainerInfo::read(account, place).await?;
    match container.key.paths.as_slice() {
        [path] if path.segments() == ["id"] => Ok(partition_key(&raw_json::quoted(id))?),
        _ => {
            let paths = &container.definition["partitionKey"]["paths"];
            Err(Usage(format!("--partition-key is needed: the container's key is {paths}")).into())
        }
    }
}

async fn put(account: &mut Account, matches: &ArgMatches, place: &Place) -> Result<Call> {
    let given = matches.get_one::<String>("item").map(String::as_str).unwrap_or_default();
    let text = read(given)?;
    let container = ContainerInfo::read(account, place).await?;
    let preparation = Preparation { rule: None, id_from: None, key: container.key, id_prefix: String::new() };
    if raw_json::member(&text, "id").is_none() {
        return Err(Usage("the item has no id".into()).into());
    }
    let item = preparation.item(text, 0).map_err(|reason| Usage(format!("the item: {reason}")))?;
    let changes = matches.get_one::<String>("if-match").is_some();
    let mut call = match changes {
        true => place.item(&item.id).call(Method::PUT),
        false => place.feed(Method::POST, "docs"),
    };
    call.headers = vec![key_header(&item.key), ("content-type", "application/json".into())];
    if !changes && !matches.get_flag("create") {
        call.headers.push(("x-ms-documentdb-is-upsert", "True".into()));
    }
    call.body = item.body.into();
    Ok(call)
}

/// JSON as it is given, from a file, or from standard input.
pub fn read(given: &str) -> Result<String> {
    let mut text = String::new();
    match given.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(path).with_context(|| format!("cannot read {path}"))?;
            file.take(ITEM_BYTES_MAX)
                .read_to_string(&mut text)
                .with_context(|| format!("cannot read {path}"))?;
        }
        None if given == "-" => drop(std::io::stdin().take(ITEM_BYTES_MAX).read_to_string(&mut text)?),
        None => text.push_str(given),
    }
    Ok(text)
}
