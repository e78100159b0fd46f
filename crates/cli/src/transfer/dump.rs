//! A whole account in a directory, and back.
//!
//! ```text
//! DIR/orrery-dump.json       databases, containers (definition, throughput, scripts), and the file of each
//! DIR/shop/orders.jsonl      one item per line
//! ```
//!
//! A dump is written beside its directory and put in its place when it is complete. Not in it: users and permissions,
//! whose tokens would not be valid elsewhere, and forks.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ArgMatches;
use http::Method;
use indicatif::HumanCount;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::checkpoint::{Checkpoint, write_whole};
use super::export::{self, Export};
use super::format::{Format, FormatOptions};
use super::import_command::{connections, with_suffix};
use super::item::Preparation;
use super::progress::{self, Counts, Meter};
use super::sender::{OnConflict, destination};
use super::source::Source;
use super::{import, item::SYSTEM_PROPERTIES};
use crate::account::{Account, ExitCodes, Failure, Place, key_definition, read_all, throughput_headers};
use crate::workload::Target;

pub const MANIFEST: &str = "orrery-dump.json";
const VERSION: u64 = 1;
/// Feeds of scripts and the member of their pages.
const SCRIPTS: [(&str, &str); 3] =
    [("sprocs", "StoredProcedures"), ("triggers", "Triggers"), ("udfs", "UserDefinedFunctions")];
/// Names as names of files: nothing that a file system could take for something else.
const FILE_NAME: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
const LOAD_CONNECTIONS: usize = 32;

#[derive(Debug, Default)]
pub struct Dumped {
    pub databases: u64,
    pub containers: u64,
    pub counts: Counts,
    pub elapsed: Duration,
}

/// Whether there may be a dump in this directory: it is absent, empty, or has one already.
pub fn check_directory(directory: &Path) -> Result<()> {
    let foreign = directory.exists()
        && !directory.join(MANIFEST).exists()
        && std::fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_some());
    if foreign {
        bail!("{} is not empty and no dump of an account; it is left alone", directory.display());
    }
    Ok(())
}

/// Writes everything to a new directory and puts it in the place of the old one.
pub async fn dump(target: Arc<Target>, directory: &Path, readers: usize) -> Result<Dumped> {
    let began = std::time::Instant::now();
    check_directory(directory)?;
    let fresh = with_suffix(directory, ".new");
    if fresh.exists() {
        std::fs::remove_dir_all(&fresh).with_context(|| format!("cannot remove {}", fresh.display()))?;
    }
    std::fs::create_dir_all(&fresh).with_context(|| format!("cannot make {}", fresh.display()))?;
    let mut account = Account::new(target.clone());
    let throughputs = throughputs(&mut account).await?;
    // They end with the server, and would come back as databases that do not.
    let forks = account.forks().await?;
    let (mut dumped, mut databases) = (Dumped::default(), Vec::new());
    for database in read_all(&mut account, &Place::account(), "dbs", "Databases").await? {
        let name = name_of(&database)?;
        if forks.contains(&name) {
            continue;
        }
        let place = Place::database(&name);
        let folder = utf8_percent_encode(&name, FILE_NAME).to_string();
        std::fs::create_dir_all(fresh.join(&folder))?;
        let mut containers = Vec::new();
        for definition in read_all(&mut account, &place, "colls", "DocumentCollections").await? {
            let container = name_of(&definition)?;
            let place = Place::container(&name, &container);
            let file = format!("{folder}/{}.jsonl", utf8_percent_encode(&container, FILE_NAME));
            let export = Export {
                target: target.clone(),
                place: place.clone(),
                to: fresh.join(&file),
                format: Format::JsonLines,
                system: false,
                readers,
                state: None,
                restart: true,
            };
            let (counts, _) = export::run(&export, &Meter::default(), &progress::bar(None, false)).await?;
            let mut entry = json!({
                "definition": without_system(&definition),
                "throughput": throughput_of(&throughputs, &definition),
                "file": file,
                "items": counts.written,
            });
            for (kind, member) in SCRIPTS {
                let scripts = read_all(&mut account, &place, kind, member).await?;
                entry[kind] = scripts.iter().map(without_system).collect();
            }
            containers.push(entry);
            dumped.containers += 1;
            dumped.counts.add(&counts);
        }
        databases.push(json!({
            "id": name,
            "throughput": throughput_of(&throughputs, &database),
            "containers": containers,
        }));
        dumped.databases += 1;
    }
    let manifest = json!({"version": VERSION, "databases": databases});
    write_whole(&fresh.join(MANIFEST), format!("{manifest:#}\n").as_bytes())?;
    put_in_place(&fresh, directory)?;
    dumped.elapsed = began.elapsed();
    Ok(dumped)
}

fn put_in_place(fresh: &Path, directory: &Path) -> Result<()> {
    let old = with_suffix(directory, ".old");
    let swap = || -> std::io::Result<()> {
        if directory.exists() {
            if old.exists() {
                std::fs::remove_dir_all(&old)?;
            }
            std::fs::rename(directory, &old)?;
        }
        std::fs::rename(fresh, directory)?;
        if old.exists() { std::fs::remove_dir_all(&old) } else { Ok(()) }
    };
    swap().with_context(|| format!("cannot write {}", directory.display()))
}

/// Makes what the dump has and writes its items. What exists already stays, with the items of the dump in it.
pub async fn load(target: Arc<Target>, directory: &Path, connections: usize) -> Result<Dumped> {
    let began = std::time::Instant::now();
    let path = directory.join(MANIFEST);
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let manifest: Value =
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", path.display()))?;
    if manifest["version"] != VERSION {
        bail!("{} was written by another version", path.display());
    }
    let mut account = Account::new(target.clone());
    let mut dumped = Dumped::default();
    for database in manifest["databases"].as_array().into_iter().flatten() {
        let name = name_of(database)?;
        let mut make = Place::account().feed(Method::POST, "dbs");
        make.headers = throughput_headers(database["throughput"].as_str())?;
        make.body = json!({"id": name}).to_string().into();
        make_unless_there(&mut account, &make)
            .await
            .with_context(|| format!("cannot make the database {name}"))?;
        dumped.databases += 1;
        for entry in database["containers"].as_array().into_iter().flatten() {
            let container = name_of(&entry["definition"])?;
            let counts =
                load_container(&mut account, &target, directory, &name, &container, entry, connections);
            dumped.counts.add(&counts.await.with_context(|| format!("cannot load {name}/{container}"))?);
            dumped.containers += 1;
        }
    }
    dumped.elapsed = began.elapsed();
    Ok(dumped)
}

async fn load_container(
    account: &mut Account,
    target: &Arc<Target>,
    directory: &Path,
    database: &str,
    container: &str,
    entry: &Value,
    connections: usize,
) -> Result<Counts> {
    let place = Place::container(database, container);
    let mut make = Place::database(database).feed(Method::POST, "colls");
    make.headers = throughput_headers(entry["throughput"].as_str())?;
    make.headers.push(("content-type", "application/json".into()));
    make.body = entry["definition"].to_string().into();
    make_unless_there(account, &make).await?;
    let file = entry["file"].as_str().context("a container without a file")?;
    // A manifest from elsewhere must not lead out of its directory.
    if Path::new(file).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
        bail!("the file {file} is not inside of the dump");
    }
    let path = directory.join(file);
    let files = vec![(path.clone(), Format::JsonLines)];
    let source = Source::Files { files, options: FormatOptions::default() };
    let key = key_definition(&entry["definition"]["partitionKey"])?;
    let preparation = Preparation { rule: None, id_from: None, key, id_prefix: "made-".into() };
    let rejects = with_suffix(&path, ".rejects.jsonl");
    let checkpoint = Checkpoint::open(None, Value::Null, Some(rejects.clone()), true)?;
    let to = destination(target.clone(), place.clone(), OnConflict::Replace, connections, true).await?;
    let bar = progress::bar(None, false);
    let (counts, _) = import::run(source, Arc::new(to), preparation, checkpoint, connections, bar).await?;
    for (kind, _) in SCRIPTS {
        for script in entry[kind].as_array().into_iter().flatten() {
            let mut make = place.feed(Method::POST, kind);
            make.headers.push(("content-type", "application/json".into()));
            make.body = script.to_string().into();
            make_unless_there(account, &make)
                .await
                .with_context(|| format!("cannot make a script of {kind}"))?;
        }
    }
    if counts.rejected > 0 {
        let message = format!("{} items were rejected; see {}", counts.rejected, rejects.display());
        return Err(Failure::new(ExitCodes::Incomplete, message).into());
    }
    Ok(counts)
}

async fn make_unless_there(account: &mut Account, call: &crate::workload::Call) -> Result<()> {
    let answer = account.ask(call).await?;
    match answer.status {
        201 | 409 => Ok(()),
        _ => Err(Failure::of_answer(&answer).into()),
    }
}

pub async fn load_command(matches: &ArgMatches, target: Arc<Target>, directory: &Path) -> Result<()> {
    let loaded = load(target, directory, connections(matches)?).await?;
    report("imported", &loaded, directory, matches.get_flag("json"));
    Ok(())
}

/// For `serve --import`: a server that begins with what is in a directory. One that is not there yet is an empty
/// account.
pub async fn load_if_there(target: Arc<Target>, directory: &Path) -> Result<Dumped> {
    match directory.join(MANIFEST).exists() {
        true => load(target, directory, LOAD_CONNECTIONS).await,
        false => {
            check_directory(directory)?;
            Ok(Dumped::default())
        }
    }
}

pub fn report(what: &str, dumped: &Dumped, directory: &Path, as_json: bool) {
    if as_json {
        let mut object = dumped.counts.to_json();
        object["databases"] = dumped.databases.into();
        object["containers"] = dumped.containers.into();
        object["seconds"] = dumped.elapsed.as_secs_f64().into();
        println!("{object}");
        return;
    }
    println!(
        "{what} {} databases, {} containers, {} items ({:.1} s): {}",
        dumped.databases,
        dumped.containers,
        HumanCount(dumped.counts.written),
        dumped.elapsed.as_secs_f64(),
        directory.display()
    );
}

fn name_of(resource: &Value) -> Result<String> {
    resource["id"].as_str().map(str::to_owned).context("a resource without an id")
}

fn without_system(resource: &Value) -> Value {
    let object = resource.as_object().into_iter().flatten();
    // Feeds of what is below a container (`_docs`, `_sprocs`) are the server's as well.
    let own =
        object.filter(|(name, _)| !name.starts_with('_') && !SYSTEM_PROPERTIES.contains(&name.as_str()));
    Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

/// Throughput by the link of its owner. A serverless account has none.
async fn throughputs(account: &mut Account) -> Result<Vec<(String, String)>> {
    let probe = account.ask(&Place::account().feed(Method::GET, "offers")).await?;
    if probe.status != 200 {
        return Ok(Vec::new());
    }
    let offers = read_all(account, &Place::account(), "offers", "Offers").await?;
    let text = |offer: &Value| {
        let content = &offer["content"];
        let maximum = content["offerAutopilotSettings"]["maxThroughput"].as_u64();
        let maximum = maximum.or_else(|| content["offerAutopilotSettings"]["tier"].as_u64());
        let text = match maximum {
            Some(maximum) => format!("autoscale:{maximum}"),
            None => content["offerThroughput"].as_u64()?.to_string(),
        };
        Some((offer["resource"].as_str()?.to_owned(), text))
    };
    Ok(offers.iter().filter_map(text).collect())
}

fn throughput_of(all: &[(String, String)], resource: &Value) -> Option<String> {
    let own = resource["_self"].as_str()?;
    all.iter().find(|(link, _)| link == own).map(|(_, text)| text.clone())
}
