//! `orrery import`: what its flags mean.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Method;
use orrery_model::PropertyPath;
use orrery_server::config::values;
use serde_json::{Value, json};

use super::checkpoint::Checkpoint;
use super::format::{FORMATS, Format, FormatOptions, is_packed, is_stdin};
use super::item::Preparation;
use super::key_rule::{KeyRule, fnv1a};
use super::sender::{OnConflict, destination};
use super::source::Source;
use super::{dump, import, progress};
use crate::Usage;
use crate::account::{
    Account, EXIT_CODES_HELP, ExitCodes, Failure, Place, target, target_of, throughput_headers,
    with_account_flags,
};
use crate::workload::Target;

const CONNECTIONS_MAX: u64 = 2_000;
const TABLES_DATABASE: &str = "TablesDB";

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let path = |name, value, help| text(name, value, help).value_parser(clap::value_parser!(PathBuf));
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
    };
    let command = Command::new("import")
        .about("Load items into a container, from files or from another container; or a whole account")
        .arg(
            Arg::new("files")
                .value_name("FILE")
                .num_args(0..)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Files to read; - is standard input"),
        )
        .arg(text("db", "NAME", "The database; made if it does not exist"))
        .arg(text(
            "container",
            "NAME",
            "The container; made if it does not exist and its partition key is known",
        ))
        .arg(text("format", "NAME", "The format of the files [default: by their names, else jsonl]"))
        .arg(text(
            "from",
            "ACCOUNT",
            "Read from this account (URL or connection string) [default: the same one]",
        ))
        .arg(text("from-key", "BASE64", "Key of that account, if ACCOUNT does not have it"))
        .arg(text("from-container", "DB/NAME", "Read from this container instead of files"))
        .arg(text("partition-key", "RULE", "The partition key of the items, and how it is made (see below)"))
        .arg(text("throughput", "RU", "RU/s of a container that is made: a number, or autoscale:NUMBER"))
        .arg(text("id", "PATH", "The property that becomes the id, like /order/number"))
        .arg(
            text(
                "on-conflict",
                "WHAT",
                "Items that exist already: replace them, skip them, or reject the record",
            )
            .default_value("replace"),
        )
        .arg(
            text("connections", "N", "Requests at once, at most; fewer while the server answers 429")
                .default_value("128"),
        )
        .arg(switch("no-bulk", "Send every item in a request of its own"))
        .arg(switch("csv-text", "Take all cells of CSV as text"))
        .arg(text("csv-nesting", "SIGN", "Names in a CSV header are paths, separated by this sign"))
        .arg(path("state", "FILE", "Where to keep how far the import is [default: beside the first file]"))
        .arg(switch("restart", "Begin anew, whatever the state says"))
        .arg(path(
            "rejects",
            "FILE",
            "Where rejected records go, with the reason [default: beside the first file]",
        ))
        .arg(path("all", "DIR", "Load a whole account that `orrery export --all DIR` has written"))
        .arg(switch("json", "Print one JSON object instead of text"))
        .after_help(after_help());
    with_account_flags(command)
}

fn after_help() -> String {
    let mut text = String::from("Formats:\n");
    for (name, _, help) in FORMATS {
        text.push_str(&format!("  {name:<10} {help}\n"));
    }
    text.push_str(
        "\nPartition keys:\n  \
         /customer                        a property that the items have\n  \
         /tenant,/user                    a hierarchical key\n  \
         /pk=concat(/customer,/month)     made on the way: c7-2026-11\n  \
         /pk=random(/day,10)              2026-11-18-3: spread over 10 logical partitions\n  \
         /pk=calculated(/day,/order,10)   the same, by the FNV-1a hash of /order, so readers can tell which\n\n\
         Cells of CSV: nothing leaves the property out; null, true, false, numbers, {…}, […] and \"…\" are JSON if they are valid JSON \
         (whole numbers up to 2^53); everything else is text, 007 too.\n\n\
         An import that was interrupted goes on where it was when the same command is run again, and its counts are exact.\n",
    );
    text.push_str(EXIT_CODES_HELP);
    text
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let target = target(matches)?;
        if let Some(directory) = matches.get_one::<PathBuf>("all") {
            return dump::load_command(matches, target, directory).await;
        }
        import_one(matches, target).await
    })
}

pub fn connections(matches: &ArgMatches) -> Result<usize, Usage> {
    let text = matches.get_one::<String>("connections").map_or("128", String::as_str);
    let number = values::number(text, 1, CONNECTIONS_MAX);
    number.map(|number| number as usize).map_err(|problem| Usage(format!("--connections: {problem}")))
}

pub fn format_of(matches: &ArgMatches, path: &Path) -> Result<Format, Usage> {
    match matches.get_one::<String>("format") {
        Some(name) => {
            let choices: Vec<(&str, Format)> =
                FORMATS.iter().map(|(name, format, _)| (*name, *format)).collect();
            values::choice(name, &choices).map_err(|problem| Usage(format!("--format: {problem}")))
        }
        None => Ok(Format::of_name(path).unwrap_or(Format::JsonLines)),
    }
}

async fn import_one(matches: &ArgMatches, target: Arc<Target>) -> Result<()> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let needed = |name: &str| {
        text(name)
            .map(str::to_owned)
            .ok_or_else(|| Usage(format!("--{name} is needed (or --all for a whole account)")))
    };
    let (database, container) = (needed("db")?, needed("container")?);
    let place = Place::container(&database, &container);
    let rule = text("partition-key").map(KeyRule::parse).transpose()?;
    let id_from =
        text("id").map(PropertyPath::parse).transpose().map_err(|error| Usage(format!("--id: {error}")))?;
    let on_conflict = values::choice(
        text("on-conflict").unwrap_or("replace"),
        &[("replace", OnConflict::Replace), ("skip", OnConflict::Skip), ("reject", OnConflict::Reject)],
    )
    .map_err(|problem| Usage(format!("--on-conflict: {problem}")))?;
    let connections = connections(matches)?;
    let files: Vec<PathBuf> = matches.get_many::<PathBuf>("files").into_iter().flatten().cloned().collect();
    let (mut source, like) = source(matches, &target, files.clone()).await?;

    let mut account = Account::new(target.clone());
    let tables = matches!(&source, Source::Files { files, .. } if files.iter().any(|(_, format)| *format == Format::TableCsv));
    let definition =
        ensure(&mut account, &database, &container, rule.as_ref(), like, tables, text("throughput")).await?;
    let key = crate::account::key_definition(&definition["partitionKey"])?;
    if let Some(rule) = &rule
        && serde_json::to_value(&rule.paths)? != definition["partitionKey"]["paths"]
    {
        return Err(Usage(format!(
            "--partition-key: the container exists with the key {}, not {}",
            definition["partitionKey"]["paths"],
            json!(rule.paths)
        ))
        .into());
    }
    if let Source::Files { options, .. } = &mut source {
        options.graph_key = key.paths.first().and_then(|path| path.segments().first().cloned());
    }

    let length = source_bytes(&source);
    let identity = identity(matches, &target, &source);
    let name = match &source {
        Source::Files { files, .. } => files.first().map(|(path, _)| path.clone()).unwrap_or_default(),
        Source::Container { .. } => PathBuf::from(format!("orrery-{database}-{container}")),
    };
    let beside = |flag: &str, end: &str| {
        let given = matches.get_one::<PathBuf>(flag).cloned();
        given.or_else(|| (!is_stdin(&name)).then(|| with_suffix(&name, end)))
    };
    let rejects = beside("rejects", ".rejects.jsonl").or_else(|| Some("orrery.rejects.jsonl".into()));
    let checkpoint = Checkpoint::open(
        beside("state", ".import-state"),
        identity,
        rejects.clone(),
        matches.get_flag("restart"),
    )?;
    let before = checkpoint.counts();
    let as_json = matches.get_flag("json");
    if before.read > 0 && !as_json {
        eprintln!("going on after {} records", before.read);
    }
    let to =
        Arc::new(destination(target, place, on_conflict, connections, !matches.get_flag("no-bulk")).await?);
    let id_prefix = format!("{:08x}-", fnv1a(name.file_name().unwrap_or_default().as_encoded_bytes()));
    let preparation = Preparation { rule, id_from, key, id_prefix };
    let bar = progress::bar(length, !as_json);
    let (counts, elapsed) =
        import::run(source, to.clone(), preparation, checkpoint, connections, bar).await?;
    println!("{}", progress::summary("imported", &counts, &to.meter, elapsed, as_json));
    if counts.rejected > 0 {
        let shown = rejects.map(|path| path.display().to_string()).unwrap_or_default();
        let message =
            format!("{} records were rejected; they are in {shown} with the reasons", counts.rejected);
        return Err(Failure::new(ExitCodes::Incomplete, message).into());
    }
    Ok(())
}

pub fn with_suffix(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// What is read, and the definition that a container should have that is made for it.
async fn source(
    matches: &ArgMatches,
    target: &Arc<Target>,
    files: Vec<PathBuf>,
) -> Result<(Source, Option<Value>)> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let Some(from) = text("from-container") else {
        if text("from").is_some() {
            return Err(Usage("--from needs --from-container DB/NAME".into()).into());
        }
        if files.is_empty() {
            return Err(Usage(
                "nothing to import: name files (- is standard input), --from-container or --all".into(),
            )
            .into());
        }
        let files = files.into_iter().map(|path| Ok((path.clone(), format_of(matches, &path)?)));
        let files = files.collect::<Result<_, Usage>>()?;
        let nesting = text("csv-nesting").map(|text| {
            let mut signs = text.chars();
            match (signs.next(), signs.next()) {
                (Some(sign), None) => Ok(sign),
                _ => Err(Usage("--csv-nesting: allowed: one sign".into())),
            }
        });
        let options = FormatOptions {
            text_only: matches.get_flag("csv-text"),
            nesting: nesting.transpose()?,
            graph_key: None,
        };
        return Ok((Source::Files { files, options }, None));
    };
    if !files.is_empty() {
        return Err(Usage("files and --from-container are given: name one of them".into()).into());
    }
    let (database, container) = from.split_once('/').ok_or_else(|| {
        Usage(format!("--from-container: `{from}` is not allowed; allowed: DATABASE/CONTAINER"))
    })?;
    let authority = matches.get_one::<PathBuf>("ca");
    let from = match text("from") {
        Some(account) => target_of(account, text("from-key"), authority, matches.get_flag("insecure"))?,
        None => target.clone(),
    };
    let place = Place::container(database, container);
    let definition =
        Account::new(from.clone()).get(place.call(Method::GET)).await.context("cannot read the source")?;
    Ok((Source::Container { target: from, place }, Some(definition)))
}

fn source_bytes(source: &Source) -> Option<u64> {
    match source {
        // What a packed file holds is known at its end.
        Source::Files { files, .. } => files
            .iter()
            .map(|(path, _)| {
                let file = std::fs::metadata(path).ok().filter(|it| it.is_file() && !is_packed(path));
                file.map(|it| it.len())
            })
            .sum(),
        Source::Container { .. } => None,
    }
}

/// What makes two imports the same one: source, destination, and everything that changes what is written.
fn identity(matches: &ArgMatches, target: &Target, source: &Source) -> Value {
    let text = |name: &str| matches.get_one::<String>(name);
    let read = match source {
        Source::Files { files, .. } => files
            .iter()
            .map(|(path, format)| {
                let size = std::fs::metadata(path).map(|it| it.len()).unwrap_or(0);
                json!({"file": path.display().to_string(), "format": format.name(), "bytes": size})
            })
            .collect(),
        Source::Container { target, .. } => {
            json!({"account": target.endpoint.to_string(), "container": text("from-container")})
        }
    };
    json!({
        "source": read,
        "account": target.endpoint.authority().map(ToString::to_string),
        "database": text("db"),
        "container": text("container"),
        "partitionKey": text("partition-key"),
        "id": text("id"),
        "onConflict": text("on-conflict"),
    })
}

/// The definition of the container, which is made if it can be.
pub async fn ensure(
    account: &mut Account,
    database: &str,
    container: &str,
    rule: Option<&KeyRule>,
    like: Option<Value>,
    tables: bool,
    throughput: Option<&str>,
) -> Result<Value> {
    let place = Place::container(database, container);
    let answer = account.ask(&place.call(Method::GET)).await?;
    if answer.status == 200 {
        return Ok(serde_json::from_slice(&answer.body)?);
    }
    if answer.status != 404 {
        return Err(Failure::of_answer(&answer).into());
    }
    let mut definition = match (like, rule) {
        (Some(like), _) => like,
        (None, Some(_)) => json!({}),
        (None, None) if tables && database == TABLES_DATABASE => table_definition(),
        (None, None) => {
            let message = format!(
                "{database}/{container} does not exist; name its partition key with --partition-key to have it made"
            );
            return Err(Failure::new(ExitCodes::NotFound, message).into());
        }
    };
    if let Some(object) = definition.as_object_mut() {
        object.retain(|name, _| !name.starts_with('_') && name != "geospatialConfig");
        object.insert("id".into(), container.into());
        if let Some(rule) = rule {
            object.insert("partitionKey".into(), rule.definition());
        }
    }
    let mut make = Place::account().feed(Method::POST, "dbs");
    make.body = json!({"id": database}).to_string().into();
    let made = account.ask(&make).await?;
    if made.status != 201 && made.status != 409 {
        return Err(Failure::of_answer(&made).into());
    }
    let mut make = Place::database(database).feed(Method::POST, "colls");
    make.headers = throughput_headers(throughput)?;
    make.headers.push(("content-type", "application/json".into()));
    make.body = definition.to_string().into();
    let made = account.send(&make).await.context("cannot make the container")?;
    Ok(serde_json::from_slice(&made.body)?)
}

/// As the Table API makes its tables.
fn table_definition() -> Value {
    json!({
        "partitionKey": {"paths": ["/'$pk'"], "kind": "Hash", "version": 2},
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": true,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/\"_etag\"/?"}],
            "compositeIndexes": [[{"path": "/\"$pk\"", "order": "ascending"}, {"path": "/id", "order": "ascending"}]],
        },
    })
}
