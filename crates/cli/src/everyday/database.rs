//! `orrery database list|create|show|scale|delete`.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use http::Method;
use serde_json::{Value, json};

use super::{group, name, offer, option, table};
use crate::account::{Account, Place, read_all, target, throughput_headers};
use crate::admin::block_on;

pub fn command() -> Command {
    let database = || name("name", "DATABASE", "The database");
    let throughput = "RU/s that its containers share: a number, or autoscale:NUMBER";
    group(
        "database",
        "Databases of an account: list, create, show, scale, delete",
        [
            Command::new("list").about("List the databases"),
            Command::new("create").about("Make a database").arg(database()).arg(option(
                "throughput",
                "RU",
                throughput,
            )),
            Command::new("show").about("Show a database, its throughput and its containers").arg(database()),
            Command::new("scale")
                .about("Change the throughput that the containers share")
                .arg(database())
                .arg(name("throughput", "RU", "A number of RU/s, or autoscale:NUMBER")),
            Command::new("delete")
                .about("Delete a database with everything in it")
                .arg(database())
                .arg(super::container::yes()),
        ],
    )
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().map(String::as_str);
    let as_json = matches.get_flag("json");
    block_on(async {
        let mut account = Account::new(target(matches)?);
        let name = text("name").unwrap_or_default();
        let place = Place::database(name);
        match operation {
            "list" => {
                let found = read_all(&mut account, &Place::account(), "dbs", "Databases").await?;
                match as_json {
                    true => println!("{}", Value::Array(found)),
                    false => found
                        .iter()
                        .for_each(|database| println!("{}", database["id"].as_str().unwrap_or(""))),
                }
            }
            "create" => {
                let mut call = Place::account().feed(Method::POST, "dbs");
                call.headers = throughput_headers(text("throughput"))?;
                call.body = json!({"id": name}).to_string().into();
                let made = account.send(&call).await?;
                super::container::said(&made.body, &format!("made {name}"), as_json);
            }
            "show" => {
                let database = account.get(place.call(Method::GET)).await?;
                let offer = offer::find(&mut account, &database).await?;
                let containers = read_all(&mut account, &place, "colls", "DocumentCollections").await?;
                let throughput = offer.as_ref().map(offer::text);
                if as_json {
                    println!(
                        "{}",
                        json!({"database": database, "throughput": throughput, "containers": containers})
                    );
                    return Ok(());
                }
                println!(
                    "database    {name}\nthroughput  {}",
                    throughput.as_deref().unwrap_or("each container has its own")
                );
                let row = |it: &Value| json!({"container": it["id"], "partition key": paths(it)});
                let rows: Vec<Value> = containers.iter().map(row).collect();
                if !rows.is_empty() {
                    print!("\n{}", table::render(&rows));
                }
            }
            "scale" => {
                let database = account.get(place.call(Method::GET)).await?;
                let changed =
                    offer::change(&mut account, &database, text("throughput").unwrap_or_default()).await?;
                super::container::said(
                    changed.to_string().as_bytes(),
                    &format!("{name} has {}", offer::text(&changed)),
                    as_json,
                );
            }
            _ => {
                super::container::confirm(matches, &format!("the database {name} with everything in it"))?;
                account.send(&place.call(Method::DELETE)).await?;
                super::container::said(b"{}", &format!("deleted {name}"), as_json);
            }
        }
        Ok(())
    })
}

pub fn paths(container: &Value) -> String {
    let paths = container["partitionKey"]["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
    paths.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
}
