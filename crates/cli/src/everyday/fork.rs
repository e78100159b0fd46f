//! `orrery fork create|list|drop`: databases that begin with what another holds, for a test to change and throw away.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use serde_json::{Value, json};

use super::{group, name, table};
use crate::account::{Account, Place, target};
use crate::admin::{KIND, block_on};
use crate::workload::Call;

pub fn command() -> Command {
    let replace = "If there is a fork of this name, it is dropped first";
    group(
        "fork",
        "Forks of databases, for tests: made and dropped in milliseconds, gone when the server ends",
        [
            Command::new("create")
                .about("Make a database that begins with everything another holds at this moment")
                .arg(name("database", "DATABASE", "The database to fork; it may be a fork itself"))
                .arg(
                    Arg::new("name")
                        .value_name("NAME")
                        .help("Its name  [default: the first free DATABASE-fork-N]"),
                )
                .arg(Arg::new("replace").long("replace").help(replace).action(ArgAction::SetTrue)),
            Command::new("list").about("List the forks and the databases they come from"),
            Command::new("drop")
                .about("Drop a fork; a database that is none stays")
                .arg(Arg::new("name").value_name("NAME").required_unless_present("all").help("The fork"))
                .arg(
                    Arg::new("all")
                        .long("all")
                        .help("Drop all forks")
                        .action(ArgAction::SetTrue)
                        .conflicts_with("name"),
                ),
        ],
    )
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (operation, matches) = matches.subcommand().context("no operation is given")?;
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().map(String::as_str);
    let flag = |name: &str| matches.try_get_one::<bool>(name).ok().flatten().is_some_and(|set| *set);
    let as_json = matches.get_flag("json");
    block_on(async {
        let mut account = Account::new(target(matches)?);
        match operation {
            "create" => {
                let origin = text("database").unwrap_or_default();
                let wanted = json!({"database": origin, "name": text("name"), "replace": flag("replace")});
                let made = account.send(&call(Method::POST, wanted.to_string())).await?;
                let fork: Value = serde_json::from_slice(&made.body)?;
                let took_ms = fork["tookUs"].as_f64().unwrap_or(0.0) / 1000.0;
                let id = fork["id"].as_str().unwrap_or_default();
                let sentence = format!("made {id}, a fork of {origin}, in {took_ms:.1} ms");
                super::container::said(&made.body, &sentence, as_json);
            }
            "list" => {
                let listed = account.get(call(Method::GET, String::new())).await?;
                if as_json {
                    println!("{listed}");
                    return Ok(());
                }
                let row = |fork: &Value| {
                    json!({
                        "fork": fork["id"],
                        "of": fork["origin"],
                        "containers": fork["containers"],
                        "partitions": fork["partitions"],
                    })
                };
                let rows: Vec<Value> = listed["forks"].as_array().into_iter().flatten().map(row).collect();
                if !rows.is_empty() {
                    print!("{}", table::render(&rows));
                }
            }
            _ if flag("all") => {
                account.send(&call(Method::DELETE, String::new())).await?;
                super::container::said(b"{}", "dropped all forks", as_json);
            }
            _ => {
                let fork = text("name").unwrap_or_default();
                // Not found is said as everywhere.
                let place = Place::database(fork);
                account.get(place.call(Method::GET)).await?;
                let listed = account.get(call(Method::GET, String::new())).await?;
                if !listed["forks"].as_array().into_iter().flatten().any(|known| known["id"] == fork) {
                    bail!("{fork} is a database and no fork; `orrery database delete` deletes it");
                }
                account.send(&place.call(Method::DELETE)).await?;
                super::container::said(b"{}", &format!("dropped {fork}"), as_json);
            }
        }
        Ok(())
    })
}

fn call(method: Method, body: String) -> Call {
    let link = format!("{KIND}/forks");
    Call { method, path: link.clone(), link, kind: KIND, headers: Vec::new(), body: Bytes::from(body) }
}
