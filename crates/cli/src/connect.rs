//! `orrery connect`: how clients reach a server with these settings, as lines that a shell can read.
//!
//! The names are those that the samples of the SDKs read. A client of tables takes a server at a name for Cosmos DB
//! and one at an address for storage, and so gets a line for each. While the emulator's well-known key is in force
//! there is one more, for clients of storage's emulator.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use anyhow::Result;
use clap::{Arg, ArgMatches, Command};
use orrery_server::config::{Config, DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, SETTINGS, TlsMode};
use orrery_server::lifecycle::{GREMLIN_PORT, MONGO_PORT, TABLE_PORT, mongo_connection_string};

use crate::Usage;
use crate::serve::{configure, flag};

/// Of the settings of `serve`, those that clients have to know.
const NAMES: [&str; 8] =
    ["listen", "table-listen", "gremlin-listen", "mongo-listen", "mongo-auth", "key", "tls", "account-name"];

/// Where `UseDevelopmentStorage=true` looks for tables.
const EMULATOR_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 10_002);

pub fn command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(clap::value_parser!(std::path::PathBuf))
        .help("TOML file with settings [env: ORRERY_CONFIG]");
    Command::new("connect")
        .about("Print how to connect to a server with these settings, for each API, as lines for a shell")
        .args(SETTINGS.iter().filter(|setting| NAMES.contains(&setting.name)).map(flag))
        .arg(config)
        .after_help("To have them in this shell: eval \"$(orrery connect)\". The lines hold the key.")
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (config, _) = configure(matches)?;
    print!("{}", lines(&config)?);
    Ok(())
}

fn lines(config: &Config) -> Result<String, Usage> {
    let scheme = if config.tls == TlsMode::Required { "https" } else { "http" };
    let (key, account) = (&config.keys.primary, &config.account_name);
    let mut text = String::new();
    let mut section = |heading: &str, lines: &[(&str, String)]| {
        let _ = writeln!(text, "# {heading}");
        for (name, value) in lines {
            let _ = writeln!(text, "export {name}='{value}'");
        }
    };
    if let Some(at) = config.listen.first() {
        let endpoint = format!("{scheme}://{}/", reachable(*at, "listen")?);
        section(
            "NoSQL API",
            &[
                ("COSMOS_ENDPOINT", endpoint.clone()),
                ("COSMOS_KEY", key.clone()),
                ("COSMOS_CONNECTION_STRING", format!("AccountEndpoint={endpoint};AccountKey={key};")),
            ],
        );
    }
    if let Some(at) = config.table_listen.addresses(TABLE_PORT, &config.listen).first() {
        let at = reachable(*at, "table-listen")?;
        let connection = |host: String, account: &str, key: &str| {
            format!(
                "DefaultEndpointsProtocol={scheme};AccountName={account};AccountKey={key};TableEndpoint={scheme}://{host}/{account};"
            )
        };
        let by_name = if at.ip().is_loopback() { format!("localhost:{}", at.port()) } else { at.to_string() };
        section(
            "Table API, by the rules of Cosmos DB",
            &[("TABLES_COSMOS_CONNECTION_STRING", connection(by_name, account, key))],
        );
        section(
            "Table API, by the rules of storage",
            &[("AZURE_STORAGE_CONNECTION_STRING", connection(at.to_string(), account, key))],
        );
        if config.keys.well_known() {
            section(
                "Table API, as the emulator of storage",
                &[("TABLES_EMULATOR_CONNECTION_STRING", emulator(at, scheme, connection))],
            );
        }
    }
    if let Some(at) = config.gremlin_listen.addresses(GREMLIN_PORT, &config.listen).first() {
        let scheme = if config.tls == TlsMode::Required { "wss" } else { "ws" };
        let endpoint = format!("{scheme}://{}/", reachable(*at, "gremlin-listen")?);
        section(
            "Gremlin API; the user name is the graph: /dbs/DATABASE/colls/CONTAINER",
            &[("GREMLIN_ENDPOINT", endpoint), ("GREMLIN_PASSWORD", key.clone())],
        );
    }
    if let Some(at) = config.mongo_listen.addresses(MONGO_PORT, &config.listen).first() {
        let connection = mongo_connection_string(config, reachable(*at, "mongo-listen")?);
        section("MongoDB API", &[("MONGODB_CONNECTION_STRING", connection)]);
    }
    Ok(text)
}

/// How clients of storage's emulator connect: by its account, or by a word where it listens.
fn emulator(at: SocketAddr, scheme: &str, connection: impl Fn(String, &str, &str) -> String) -> String {
    match scheme == "http" && at == EMULATOR_ADDRESS {
        true => "UseDevelopmentStorage=true".to_owned(),
        false => connection(at.to_string(), DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY),
    }
}

/// An address that clients can use.
fn reachable(at: SocketAddr, setting: &str) -> Result<SocketAddr, Usage> {
    if at.port() == 0 {
        return Err(Usage(format!(
            "--{setting} has port 0, which is another one at every start: name the port that the server has printed"
        )));
    }
    let ip = match at {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => std::net::Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        other => other.ip(),
    };
    Ok(SocketAddr::new(ip, at.port()))
}
