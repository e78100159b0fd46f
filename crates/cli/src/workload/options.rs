//! What `orrery workload` is told.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use base64::Engine;
use clap::{Arg, ArgAction, ArgMatches, Command};
use http::Uri;
use orrery_server::config::EMULATOR_KEY;
use orrery_server::config::values;

use super::mongo_wire::Credentials;
use super::operations::{Kind, NAMES};
use crate::Usage;

const ENDPOINT: &str = "http://127.0.0.1:8081";
const TABLE_ENDPOINT: &str = "http://127.0.0.1:8902/orrery";
const MONGO_ENDPOINT: &str = "mongodb://127.0.0.1:10255";
/// The account of a server that was not told another name.
const ACCOUNT: &str = "orrery";
/// Items are at most 2 MB; leave room for the fixed members.
const SIZE_BYTES_MAX: u64 = 1_900_000;

pub struct Options {
    pub endpoint: Uri,
    pub key: Vec<u8>,
    pub kinds: Vec<Kind>,
    pub until: Until,
    pub connections: usize,
    /// Requests at a time on each connection.
    pub in_flight: usize,
    pub items: u64,
    pub size_bytes: usize,
    pub partitions: u64,
    pub zipf: bool,
    pub throughput: u32,
    /// What is made and removed: of the Table API a table, else a database.
    pub made: String,
    pub api: Spoken,
    pub keep: bool,
    pub authority: Option<PathBuf>,
    pub insecure: bool,
    pub json: bool,
    pub seed: u64,
    /// Calls about items go in frames of the direct protocol.
    pub direct: bool,
    /// No network: the apis are called in this process, over a data directory.
    pub in_process: Option<PathBuf>,
}

/// The protocol that is spoken.
#[derive(Clone)]
pub enum Spoken {
    NoSql,
    /// With this name of the account.
    Table(String),
    /// By this user.
    Mongo(Credentials),
}

/// When a phase ends.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    Elapsed(Duration),
    Count(u64),
}

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
    };
    Command::new("workload")
        .about("Measure an endpoint: ours or any other that speaks the protocol")
        .arg(text("api", "NAME", "Which protocol to speak: nosql, table or mongo").default_value("nosql"))
        .arg(text(
            "endpoint",
            "URL",
            "Where the account is [default: http://127.0.0.1:8081; of tables http://127.0.0.1:8902/orrery; of MongoDB \
             mongodb://127.0.0.1:10255]",
        ))
        .arg(text(
            "key",
            "BASE64",
            "Master key [env: ORRERY_KEY] [default: the emulator's, for loopback endpoints]",
        ))
        .arg(
            text("operations", "LIST", "What to run, one after the other, with commas (see below)")
                .default_value("read,upsert,mix95"),
        )
        .arg(
            text(
                "protocol",
                "WHICH",
                "How items are asked for: http, or rntbd (direct mode, to the endpoint itself)",
            )
            .default_value("http"),
        )
        .arg(
            text(
                "in-process",
                "DIR",
                "Call the API in this process, without a network, over this data directory: for profilers",
            )
            .value_parser(clap::value_parser!(PathBuf))
            .conflicts_with_all(["endpoint", "key", "ca", "insecure", "protocol", "connections", "duration"])
            .requires("count"),
        )
        .arg(text("duration", "TIME", "How long each operation runs").default_value("10s"))
        .arg(text("count", "N", "Run each operation this many times instead").conflicts_with("duration"))
        .arg(text("connections", "N", "Connections, each with one request at a time").default_value("8"))
        .arg(text("in-flight", "N", "Requests at a time on each; above 1 with rntbd only").default_value("1"))
        .arg(text("items", "N", "Items loaded first").default_value("1000"))
        .arg(text("size", "BYTES", "Size of an item, about; accepts 10kB and the like").default_value("1024"))
        .arg(
            text("partitions", "N", "Logical partitions that the items are spread over").default_value("100"),
        )
        .arg(
            text("distribution", "HOW", "Which items are asked for: uniform or zipf (few are hot)")
                .default_value("uniform"),
        )
        .arg(
            text(
                "throughput",
                "RU",
                "RU/s of the container; above the server's limit per partition it gets several",
            )
            .default_value("4000"),
        )
        .arg(text("database", "NAME", "Database to make; must not exist").default_value("orrery-workload"))
        .arg(
            text("table", "NAME", "Table to make, instead of a database; must not exist")
                .default_value("orreryworkload"),
        )
        .arg(switch("keep", "Leave the database or the table in place"))
        .arg(
            text("ca", "FILE", "Trust the certificates in this PEM file, besides the system's")
                .value_parser(clap::value_parser!(PathBuf)),
        )
        .arg(switch("insecure", "Do not verify the server's certificate"))
        .arg(switch("json", "Print one JSON object instead of tables"))
        .arg(text("seed", "N", "Seed of the random choices").default_value("1"))
        .after_help(operations_help())
}

fn operations_help() -> String {
    let mut text = String::from("Operations:\n");
    for (name, help) in NAMES {
        text.push_str(&format!("  {name:<9} {help}\n"));
    }
    text
}

impl Options {
    pub fn parse(matches: &ArgMatches) -> Result<Options> {
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        let required = |name: &str| text(name).unwrap_or_default();
        let wrong = |name: &str, problem: String| Usage(format!("--{name}: {problem}"));
        let number = |name: &str, min, max| {
            values::number(required(name), min, max).map_err(|problem| wrong(name, problem))
        };
        let (default, tables) = values::choice(
            required("api"),
            &[("nosql", ENDPOINT), ("table", TABLE_ENDPOINT), ("mongo", MONGO_ENDPOINT)],
        )
        .map(|default| (default, default == TABLE_ENDPOINT))
        .map_err(|problem| wrong("api", problem))?;
        let mongo = default == MONGO_ENDPOINT;
        let in_process = matches.get_one::<PathBuf>("in-process").cloned();
        if mongo && in_process.is_some() {
            return Err(wrong("in-process", "allowed: with --api nosql or table".into()).into());
        }
        let given = text("endpoint").unwrap_or(default);
        let endpoint = if mongo { mongo_endpoint(given)? } else { endpoint_of(given)? };
        let kinds = required("operations").split(',').map(|name| {
            Kind::parse(name.trim()).ok_or_else(|| {
                let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                wrong("operations", format!("`{name}` is not allowed; allowed: {}", names.join(", ")))
            })
        });
        let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
        if let Some(kind) = kinds.iter().find(|kind| tables && !kind.of_tables()) {
            return Err(wrong("operations", format!("the Table API has no `{}`", kind.name())).into());
        }
        let until = match text("count") {
            Some(_) => Until::Count(number("count", 1, u64::MAX)?),
            None => Until::Elapsed(
                values::duration(required("duration")).map_err(|problem| wrong("duration", problem))?,
            ),
        };
        let size_bytes = values::size_bytes(required("size")).map_err(|problem| wrong("size", problem))?;
        if size_bytes > SIZE_BYTES_MAX {
            return Err(wrong("size", format!("allowed: up to {SIZE_BYTES_MAX}")).into());
        }
        let zipf = values::choice(required("distribution"), &[("uniform", false), ("zipf", true)])
            .map_err(|problem| wrong("distribution", problem))?;
        let named = if tables { "table" } else { "database" };
        let made = required(named).to_owned();
        let signs = if tables { "" } else { "-_." };
        if made.is_empty() || !made.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c)) {
            let signs: String = signs.chars().map(|sign| format!(", `{sign}`")).collect();
            return Err(wrong(named, format!("allowed: letters, digits{signs}")).into());
        }
        let direct = values::choice(required("protocol"), &[("http", false), ("rntbd", true)])
            .map_err(|problem| wrong("protocol", problem))?;
        let in_flight = number("in-flight", 1, 256)? as usize;
        if in_flight > 1 && !direct {
            return Err(wrong("in-flight", "allowed: 1, or --protocol rntbd".into()).into());
        }
        let (key, api) = match (tables, mongo) {
            (true, _) => (key_of(text("key"), &endpoint)?, Spoken::Table(account_of(&endpoint))),
            (_, true) => {
                let (credentials, key) = credentials_of(text("key"), &endpoint)?;
                (key, Spoken::Mongo(credentials))
            }
            _ => (key_of(text("key"), &endpoint)?, Spoken::NoSql),
        };
        Ok(Options {
            key,
            api,
            endpoint,
            kinds,
            until,
            connections: if in_process.is_some() { 1 } else { number("connections", 1, 10_000)? as usize },
            in_flight,
            items: number("items", 1, 1_000_000_000)?,
            size_bytes: size_bytes as usize,
            partitions: number("partitions", 1, 1_000_000_000)?,
            zipf,
            throughput: number("throughput", 400, 1_000_000_000)? as u32,
            made,
            keep: matches.get_flag("keep"),
            authority: matches.get_one::<PathBuf>("ca").cloned(),
            insecure: matches.get_flag("insecure"),
            json: matches.get_flag("json"),
            seed: number("seed", 0, u64::MAX)?,
            direct,
            in_process,
        })
    }
}

/// The account that an endpoint of tables names: behind the host, or in front of its domain.
fn account_of(endpoint: &Uri) -> String {
    let behind = endpoint.path().trim_matches('/');
    let host = endpoint.host().unwrap_or_default();
    let is_address = host.starts_with('[') || host.parse::<std::net::IpAddr>().is_ok();
    match host.split_once('.') {
        _ if !behind.is_empty() => behind.to_owned(),
        Some((first, _)) if !is_address => first.to_owned(),
        _ => ACCOUNT.to_owned(),
    }
}

/// The `--endpoint` of a command.
pub fn endpoint_of(text: &str) -> Result<Uri> {
    let endpoint: Uri = text.parse().context("--endpoint is no URL")?;
    if !matches!(endpoint.scheme_str(), Some("http" | "https")) || endpoint.host().is_none() {
        let problem = "--endpoint: allowed: http://HOST:PORT or https://HOST:PORT";
        return Err(Usage(problem.into()).into());
    }
    Ok(endpoint)
}

/// A connection string of MongoDB.
fn mongo_endpoint(text: &str) -> Result<Uri> {
    let endpoint: Uri = text.parse().context("--endpoint is no URL")?;
    if endpoint.scheme_str() != Some("mongodb") || endpoint.host().is_none() {
        return Err(Usage("--endpoint: allowed: mongodb://[USER:KEY@]HOST:PORT[/?tls=true]".into()).into());
    }
    Ok(endpoint)
}

/// Whether a connection string asks for TLS.
pub fn wants_tls(endpoint: &Uri) -> bool {
    let query = endpoint.query().unwrap_or_default();
    query.split('&').any(|option| matches!(option, "tls=true" | "ssl=true"))
}

/// User and password of a connection string, or the account and its key; and the key.
fn credentials_of(flag: Option<&str>, endpoint: &Uri) -> Result<(Credentials, Vec<u8>)> {
    let authority = endpoint.authority().map_or("", |authority| authority.as_str());
    let own = authority.rsplit_once('@').map(|(own, _)| own.split_once(':').unwrap_or((own, "")));
    let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = own.map_or_else(|| ACCOUNT.to_owned(), |(user, _)| plain(user));
    match own.filter(|(_, password)| !password.is_empty() && flag.is_none()) {
        Some((_, password)) => Ok((Credentials { user, password: plain(password) }, Vec::new())),
        None => {
            let key = key_of(flag, endpoint)?;
            let password = base64::engine::general_purpose::STANDARD.encode(&key);
            Ok((Credentials { user, password }, key))
        }
    }
}

/// The `--key` of a command, or what takes its place.
pub fn key_of(flag: Option<&str>, endpoint: &Uri) -> Result<Vec<u8>> {
    let loopback = matches!(endpoint.host(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let given = flag.map(str::to_owned).or_else(|| std::env::var("ORRERY_KEY").ok());
    let text = match given {
        Some(text) => text,
        None if loopback => EMULATOR_KEY.to_owned(),
        None => {
            return Err(Usage("--key is needed for an endpoint that is not on this machine".into()).into());
        }
    };
    let decoded = base64::engine::general_purpose::STANDARD.decode(text.trim());
    decoded.map_err(|_| Usage("--key: the key is not base64".into()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_string_names_user_and_password() {
        let of = |text: &str| credentials_of(None, &mongo_endpoint(text).unwrap()).unwrap().0;
        let given = of("mongodb://ann:a%2Bb%3D%3D@127.0.0.1:10255/?tls=true");
        assert_eq!((given.user.as_str(), given.password.as_str()), ("ann", "a+b=="));
        let default = of("mongodb://127.0.0.1:10255");
        assert_eq!((default.user.as_str(), default.password.as_str()), ("orrery", EMULATOR_KEY));
        assert!(wants_tls(&"mongodb://h:1/?ssl=true".parse().unwrap()));
        assert!(mongo_endpoint("http://127.0.0.1:10255").is_err());
    }

    #[test]
    fn an_endpoint_of_tables_names_its_account() {
        for (endpoint, account) in [
            ("http://127.0.0.1:8902/orrery", "orrery"),
            ("http://127.0.0.1:10002/devstoreaccount1/", "devstoreaccount1"),
            ("http://127.0.0.1:8902", "orrery"),
            ("http://[::1]:8902", "orrery"),
            ("http://localhost:8902/", "orrery"),
            ("https://shop.table.cosmos.azure.com:443/", "shop"),
        ] {
            assert_eq!(account_of(&endpoint.parse().unwrap()), account, "{endpoint}");
        }
    }
}
