//! What the server is told: one table of settings, four places to give them, one result.
//!
//! A setting has one name everywhere: `--data-dir`, `ORRERY_DATA_DIR`, `data-dir = "…"` in the TOML file. The table
//! in [`settings`] says for each name what it means, its default, and how its text becomes a field of [`Config`];
//! flags, environment, file, help text and documentation are all made from it. [`resolve`] takes what each place gave
//! and picks per setting: flag, then environment, then file, then default.
//!
//! ```text
//! flag --durability relaxed   env ORRERY_DURABILITY=strict   file consistency = "strong"
//!   => durability relaxed (flag), consistency strong (file), everything else by default
//! ```
//!
//! Deliberately missing: reloading while running, and settings that only one of the places understands.

mod api_listen;
mod defaults;
pub mod file;
pub mod settings;
mod store_address;
pub mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use api_listen::ApiListen;
pub use defaults::defaults;
pub use settings::{SETTINGS, Setting};
pub use store_address::StoreAddress;

use orrery_api_gremlin::Results;
use orrery_api_mongo::{AuthMode, ServerVersion};
use orrery_api_nosql::CrossPartition;
pub use orrery_api_nosql::EMULATOR_KEY;
use orrery_api_table::DialectChoice;
pub use orrery_api_table::{DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY};
use orrery_engine::{ConsistencyLevel, Durability};

use crate::memory;

/// Prefix of the environment variables.
pub const ENVIRONMENT_PREFIX: &str = "ORRERY_";

#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub listen: Vec<SocketAddr>,
    pub table_listen: ApiListen,
    pub table_dialect: DialectChoice,
    pub gremlin_listen: ApiListen,
    pub gremlin_results: Results,
    pub mongo_listen: ApiListen,
    pub mongo_auth: AuthMode,
    pub mongo_version: ServerVersion,
    pub data_dir: PathBuf,
    /// In memory; gone when the process ends.
    pub ephemeral: bool,
    /// The log that holds everything, of which the data directory has a copy; without one that directory is all.
    pub store: Option<StoreAddress>,
    /// A dump of an account to begin with.
    pub import: Option<PathBuf>,
    /// Where to leave a dump at the end.
    pub export_on_exit: Option<PathBuf>,
    pub keys: Keys,
    pub partition_throughput_limit: u32,
    pub partition_size_limit_bytes: u64,
    pub logical_partition_size_limit_bytes: u64,
    /// Refuse what exceeds the provisioned throughput.
    pub throttling: bool,
    /// Let idle partitions save throughput for later.
    pub burst: bool,
    /// No offers; a fixed rate for every partition.
    pub serverless: bool,
    /// A file of fault rules that are in force from the start.
    pub faults: Option<PathBuf>,
    /// Whether the clock can be moved and the account emptied.
    pub test_controls: bool,
    /// Where requests are written down.
    pub record: Option<PathBuf>,
    pub cache_size_bytes: u64,
    /// What the process may take in memory; of what caches and store leave, requests take theirs.
    pub memory_limit_bytes: u64,
    /// How long one page of a query may take that could go on later.
    pub query_page_time: Duration,
    pub script_timeout: Duration,
    pub script_memory_bytes: u64,
    pub gremlin_memory_bytes: u64,
    pub durability: Durability,
    pub consistency: ConsistencyLevel,
    pub cross_partition_queries: CrossPartition,
    /// Whether clients are told addresses for direct mode.
    pub direct_mode: bool,
    /// Names beside the loopback ones under which requests are served while the well-known key is in force.
    pub allowed_hosts: Vec<String>,
    /// Whether the metrics need a key.
    pub metrics_auth: bool,
    pub portal: PortalMode,
    pub account_name: String,
    pub region: String,
    pub tls: TlsMode,
    pub tls_names: Vec<String>,
    /// Certificate chain and key of the operator, instead of the self-made pair.
    pub tls_files: Option<(PathBuf, PathBuf)>,
    pub workers: usize,
    pub connections_max: usize,
    pub request_timeout: Duration,
    pub idle_timeout: Duration,
    pub shutdown_timeout: Duration,
    pub log: LogConfig,
}

/// The account's master keys, as given (base64). Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Keys {
    pub primary: String,
    pub secondary: Option<String>,
    pub readonly: Option<String>,
    pub secondary_readonly: Option<String>,
}

impl Keys {
    /// Whether the publicly known key opens this account.
    pub fn well_known(&self) -> bool {
        self.all().any(|key| key == EMULATOR_KEY)
    }

    /// Whether this is one of them; takes as long for a wrong one as for a right one of its length.
    pub fn has(&self, shown: &str) -> bool {
        self.all().fold(false, |found, key| {
            let differs = |(a, b): (u8, u8)| a ^ b;
            let same = key.len() == shown.len()
                && key.bytes().zip(shown.bytes()).map(differs).fold(0, |all, bits| all | bits) == 0;
            found | same
        })
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.primary.as_str()).chain(
            [&self.secondary, &self.readonly, &self.secondary_readonly]
                .into_iter()
                .flatten()
                .map(String::as_str),
        )
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys(well_known: {})", self.well_known())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Plain and TLS connections on the same port.
    Optional,
    /// Plain connections are told to use https.
    Required,
    /// TLS connections are closed.
    Off,
}

/// Whether there are web pages at `/_explorer/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortalMode {
    On,
    Off,
    /// Read from here instead of from the binary, for work on them.
    FromDirectory(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    pub format: LogFormat,
    /// A level (`info`) with optional exceptions per module (`info,orrery_storage=debug`).
    pub level: String,
    pub requests: LogRequests,
    /// Most request lines per second; the rest are counted and summed up in one line. 0: no limit.
    pub requests_rate_max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRequests {
    On,
    /// Answers with a status of 400 and above.
    Errors,
    Off,
}

/// What one place gave: setting name → its texts (several for a setting that repeats).
pub type Given = BTreeMap<&'static str, Vec<String>>;

/// Where a value came from; ordered, the later wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Default,
    File,
    Environment,
    Flag,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// Picks each setting from the strongest place that gave it, and checks the whole.
pub fn resolve(flags: &Given, environment: &Given, file: &Given) -> Result<Config, ConfigError> {
    let mut config = defaults();
    let mut sources = BTreeMap::new();
    for setting in SETTINGS {
        let places = [(Source::Flag, flags), (Source::Environment, environment), (Source::File, file)];
        let Some((source, texts)) =
            places.iter().find_map(|(source, given)| given.get(setting.name).map(|texts| (*source, texts)))
        else {
            continue;
        };
        let texts = setting.split(texts);
        (setting.set)(&mut config, &texts)
            .map_err(|problem| ConfigError(format!("{}: {problem}", setting.named_in(source))))?;
        sources.insert(setting.name, source);
    }
    settle_data_place(&mut config, &sources)?;
    settle_store(&mut config, &sources)?;
    if !sources.contains_key("cache-size") {
        config.cache_size_bytes = memory::cache_default_bytes(config.memory_limit_bytes);
    }
    check_whole(&config, &sources)?;
    Ok(config)
}

/// The settings among the process's variables, and the `ORRERY_…` names that are no setting (a warning, not an error:
/// orchestrators make such names by themselves, `ORRERY_SERVICE_HOST` for one).
pub fn from_environment(variables: impl Iterator<Item = (String, String)>) -> (Given, Vec<String>) {
    let mut given = Given::new();
    let mut unknown = Vec::new();
    for (name, value) in variables {
        let Some(rest) = name.strip_prefix(ENVIRONMENT_PREFIX) else { continue };
        match SETTINGS.iter().find(|setting| setting.environment() == name) {
            Some(setting) => drop(given.insert(setting.name, vec![value])),
            None if rest == "CONFIG" || rest.starts_with("SERVICE_") || rest.starts_with("PORT") => {}
            None => unknown.push(name),
        }
    }
    unknown.sort();
    (given, unknown)
}

/// `--ephemeral` and `--store` exclude each other as well.
fn settle_store(config: &mut Config, sources: &BTreeMap<&str, Source>) -> Result<(), ConfigError> {
    if !config.ephemeral || config.store.is_none() {
        return Ok(());
    }
    if sources.get("store") == sources.get("ephemeral") {
        let text = "--ephemeral keeps everything in memory and --store names what keeps it: give one of them";
        return Err(ConfigError(text.into()));
    }
    config.ephemeral = sources.get("ephemeral") > sources.get("store");
    if config.ephemeral {
        config.store = None;
    }
    Ok(())
}

/// `--ephemeral` and `--data-dir` exclude each other; given in different places, the stronger place wins.
fn settle_data_place(config: &mut Config, sources: &BTreeMap<&str, Source>) -> Result<(), ConfigError> {
    let directory = sources.get("data-dir");
    if !config.ephemeral || directory.is_none() {
        return Ok(());
    }
    if directory == sources.get("ephemeral") {
        return Err(ConfigError(
            "--ephemeral keeps everything in memory and --data-dir names a directory: give one of them"
                .into(),
        ));
    }
    config.ephemeral = sources.get("ephemeral") > directory;
    Ok(())
}

fn check_whole(config: &Config, sources: &BTreeMap<&str, Source>) -> Result<(), ConfigError> {
    if sources.contains_key("tls-certificate") != sources.contains_key("tls-key") {
        return Err(ConfigError(
            "--tls-certificate and --tls-key belong together: give both or neither".into(),
        ));
    }
    if sources.contains_key("memory-limit") || sources.contains_key("cache-size") {
        memory::check(config).map_err(ConfigError)?;
    }
    if config.mongo_auth == AuthMode::Off
        && let Some((flag, open)) =
            listened(config).into_iter().find(|(_, address)| !address.ip().is_loopback())
    {
        return Err(ConfigError(format!(
            "--mongo-auth off lets everybody in who reaches the server, and --{flag} {open} is not only this machine: listen on \
             loopback addresses, or leave --mongo-auth required"
        )));
    }
    if config.keys.well_known()
        && let Some((flag, open)) =
            listened(config).into_iter().find(|(_, address)| !address.ip().is_loopback())
    {
        return Err(ConfigError(format!(
            "refusing to listen on {open} with the well-known emulator key: anyone who reaches this address could read \
             and change everything.\nMake a key of your own and start again with it:\n\n    \
             export ORRERY_KEY=$(orrery key new)\n    orrery serve --{flag} {open}\n\n\
             or listen on loopback only: --{flag} 127.0.0.1:{}",
            open.port()
        )));
    }
    Ok(())
}

/// Every address that somebody named, with the name of the setting.
fn listened(config: &Config) -> Vec<(&'static str, SocketAddr)> {
    let own = |flag: &'static str, listen: &ApiListen| match listen {
        ApiListen::At(addresses) => addresses.iter().map(|address| (flag, *address)).collect(),
        ApiListen::Usual | ApiListen::Off => Vec::new(),
    };
    let mut all: Vec<_> = config.listen.iter().map(|address| ("listen", *address)).collect();
    all.extend(own("table-listen", &config.table_listen));
    all.extend(own("gremlin-listen", &config.gremlin_listen));
    all.extend(own("mongo-listen", &config.mongo_listen));
    all
}

#[cfg(test)]
mod tests;
