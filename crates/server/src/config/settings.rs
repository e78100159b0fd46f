//! The table of settings. To add one: a field in [`Config`], a default below, a line here; flag, environment variable,
//! file key, help and documentation follow.

use std::borrow::Cow;
use std::path::PathBuf;

use orrery_api_gremlin::Results;
use orrery_api_mongo::{AuthMode, ServerVersion};
use orrery_api_nosql::CrossPartition;
use orrery_api_table::DialectChoice;
use orrery_engine::{ConsistencyLevel, Durability};

use super::values::{
    address, choice, duration, host_name, key, last, log_filter, number, put, size_bytes, switch,
};
use super::{
    ApiListen, Config, ENVIRONMENT_PREFIX, LogFormat, LogRequests, PortalMode, Source, StoreAddress, TlsMode,
};

pub struct Setting {
    /// As in `--name` and in the file.
    pub name: &'static str,
    /// What stands for the value in the help; empty for a switch.
    pub value: &'static str,
    /// Shown in the help; the effective default is in `defaults`, and a test compares them.
    pub default: &'static str,
    /// May be given several times (or with commas).
    pub repeats: bool,
    pub help: &'static str,
    /// Heading in the help.
    pub group: &'static str,
    pub set: fn(&mut Config, &[String]) -> Result<(), String>,
}

impl Setting {
    pub fn environment(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// How a message names it, by where the value came from.
    pub fn named_in(&self, source: Source) -> String {
        match source {
            Source::Flag | Source::Default => format!("--{}", self.name),
            Source::Environment => self.environment(),
            Source::File => format!("`{}` in the configuration file", self.name),
        }
    }

    pub(super) fn split<'a>(&self, texts: &'a [String]) -> Cow<'a, [String]> {
        match self.repeats {
            false => Cow::Borrowed(texts),
            true => {
                let parts = texts
                    .iter()
                    .flat_map(|text| text.split(','))
                    .map(str::trim)
                    .filter(|part| !part.is_empty());
                Cow::Owned(parts.map(str::to_owned).collect())
            }
        }
    }
}

pub const CONSISTENCIES: [(&str, ConsistencyLevel); 5] = [
    ("strong", ConsistencyLevel::Strong),
    ("bounded-staleness", ConsistencyLevel::BoundedStaleness),
    ("session", ConsistencyLevel::Session),
    ("consistent-prefix", ConsistencyLevel::ConsistentPrefix),
    ("eventual", ConsistencyLevel::Eventual),
];

const ON_OFF: [(&str, bool); 2] = [("on", true), ("off", false)];

const PLACE: &str = "Where";
/// For work on the server itself; the help does not list these.
pub const HIDDEN: &str = "";
const ACCESS: &str = "Access";
const LIMITS: &str = "The account";
const RESOURCES: &str = "Resources";
const LOG: &str = "Log";

pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "listen",
        value: "ADDR",
        default: "127.0.0.1:8081",
        repeats: true,
        group: PLACE,
        help: "Address to listen on, plain and TLS alike; may be repeated; port 0 takes a free port",
        set: |config, texts| {
            config.listen = texts.iter().map(|text| address(text)).collect::<Result<_, _>>()?;
            if config.listen.is_empty() { Err("no address given; allowed: IP:PORT".into()) } else { Ok(()) }
        },
    },
    Setting {
        name: "table-listen",
        value: "ADDR|off",
        default: "port 8902 beside the first --listen",
        repeats: true,
        group: PLACE,
        help: "Address of the Table API's own port; on the shared one it is served under /ACCOUNT/ too; may be repeated",
        set: |config, texts| put(&mut config.table_listen, ApiListen::parse(texts)),
    },
    Setting {
        name: "gremlin-listen",
        value: "ADDR|off",
        default: "port 8901 beside the first --listen",
        repeats: true,
        group: PLACE,
        help: "Address of the Gremlin API's own port; on the shared one every WebSocket is its own too; may be repeated",
        set: |config, texts| put(&mut config.gremlin_listen, ApiListen::parse(texts)),
    },
    Setting {
        name: "mongo-listen",
        value: "ADDR|off",
        default: "port 10255 beside the first --listen",
        repeats: true,
        group: PLACE,
        help: "Address of the MongoDB API's own port; on the shared one it is known by its first bytes; may be repeated",
        set: |config, texts| put(&mut config.mongo_listen, ApiListen::parse(texts)),
    },
    Setting {
        name: "data-dir",
        value: "DIR",
        default: "$XDG_DATA_HOME/orrery, else ~/.local/share/orrery, else ./orrery-data",
        repeats: false,
        group: PLACE,
        help: "Directory that holds everything; made when absent; used by one server at a time",
        set: |config, texts| {
            config.data_dir = PathBuf::from(last(texts)?);
            if config.data_dir.as_os_str().is_empty() {
                Err("the name is empty; allowed: a directory".into())
            } else {
                Ok(())
            }
        },
    },
    Setting {
        name: "ephemeral",
        value: "",
        default: "false",
        repeats: false,
        group: PLACE,
        help: "Keep everything in memory and nothing on disk; gone when the server stops",
        set: |config, texts| put(&mut config.ephemeral, switch(last(texts)?)),
    },
    Setting {
        name: "store",
        value: "ADDRESS",
        default: "",
        repeats: false,
        group: PLACE,
        help: "What holds everything, while --data-dir is a copy that may be lost: postgres://USER:PASSWORD@HOST,HOST/DATABASE?sslmode=verify-full (or PGPASSWORD), or file:DIR",
        set: |config, texts| put(&mut config.store, StoreAddress::parse(last(texts)?).map(Some)),
    },
    Setting {
        name: "import",
        value: "DIR",
        default: "",
        repeats: false,
        group: PLACE,
        help: "Load the account in this directory before the first request, see `orrery export --all`; nothing if there is none yet",
        set: |config, texts| put(&mut config.import, Ok(Some(PathBuf::from(last(texts)?)))),
    },
    Setting {
        name: "export-on-exit",
        value: "DIR",
        default: "",
        repeats: false,
        group: PLACE,
        help: "Write the account to this directory when the server is told to stop; may be the one of --import",
        set: |config, texts| put(&mut config.export_on_exit, Ok(Some(PathBuf::from(last(texts)?)))),
    },
    Setting {
        name: "durability",
        value: "HOW",
        default: "strict",
        repeats: false,
        group: PLACE,
        help: "strict: a write is answered when it is on disk; relaxed: before that, a crash may lose the last moments (for tests)",
        set: |config, texts| {
            put(
                &mut config.durability,
                choice(last(texts)?, &[("strict", Durability::Strict), ("relaxed", Durability::Relaxed)]),
            )
        },
    },
    Setting {
        name: "key",
        value: "BASE64",
        default: "the emulator's well-known key, on loopback only",
        repeats: false,
        group: ACCESS,
        help: "Primary master key; `orrery key new` makes one",
        set: |config, texts| put(&mut config.keys.primary, key(last(texts)?)),
    },
    Setting {
        name: "secondary-key",
        value: "BASE64",
        default: "",
        repeats: false,
        group: ACCESS,
        help: "Secondary master key, for changing keys without a pause",
        set: |config, texts| put(&mut config.keys.secondary, key(last(texts)?).map(Some)),
    },
    Setting {
        name: "readonly-key",
        value: "BASE64",
        default: "",
        repeats: false,
        group: ACCESS,
        help: "Primary read-only key: reads and queries, no changes",
        set: |config, texts| put(&mut config.keys.readonly, key(last(texts)?).map(Some)),
    },
    Setting {
        name: "secondary-readonly-key",
        value: "BASE64",
        default: "",
        repeats: false,
        group: ACCESS,
        help: "Secondary read-only key",
        set: |config, texts| put(&mut config.keys.secondary_readonly, key(last(texts)?).map(Some)),
    },
    Setting {
        name: "allowed-hosts",
        value: "NAME",
        default: "",
        repeats: true,
        group: ACCESS,
        help: "Further host name by which clients may address the server while the well-known key is in force (loopback names always may); *.NAME for those below it; may be repeated",
        set: |config, texts| {
            config.allowed_hosts = texts.to_vec();
            match texts.iter().find(|name| *name != "*" && !host_name(&name.replace('_', "-"))) {
                Some(wrong) => Err(format!(
                    "`{wrong}` is no host name; allowed: a name or an IP address without a port, `*.` and a name, or `*` for all"
                )),
                None => Ok(()),
            }
        },
    },
    Setting {
        name: "metrics-auth",
        value: "on|off",
        default: "off",
        repeats: false,
        group: ACCESS,
        help: "on: /metrics needs `Authorization: Bearer` with one of the keys; off: without one it has no names of databases and containers",
        set: |config, texts| put(&mut config.metrics_auth, choice(last(texts)?, &ON_OFF)),
    },
    Setting {
        name: "portal",
        value: "on|off",
        default: "on",
        repeats: false,
        group: ACCESS,
        help: "Web pages at /_explorer/ on the main port; they hold no data and sign requests as any client does",
        set: |config, texts| match choice(last(texts)?, &ON_OFF)? {
            false => put(&mut config.portal, Ok(PortalMode::Off)),
            true if config.portal == PortalMode::Off => put(&mut config.portal, Ok(PortalMode::On)),
            true => Ok(()),
        },
    },
    Setting {
        name: "portal-dir",
        value: "DIR",
        default: "",
        repeats: false,
        group: HIDDEN,
        help: "Read the web pages from this directory at every request, for work on them",
        set: |config, texts| put(&mut config.portal, Ok(PortalMode::FromDirectory(last(texts)?.into()))),
    },
    Setting {
        name: "tls",
        value: "MODE",
        default: "optional",
        repeats: false,
        group: ACCESS,
        help: "optional: plain and TLS on the same port; required: TLS only; off: plain only",
        set: |config, texts| {
            put(
                &mut config.tls,
                choice(
                    last(texts)?,
                    &[
                        ("optional", TlsMode::Optional),
                        ("required", TlsMode::Required),
                        ("off", TlsMode::Off),
                    ],
                ),
            )
        },
    },
    Setting {
        name: "tls-name",
        value: "NAME",
        default: "",
        repeats: true,
        group: ACCESS,
        help: "Further host name or IP address in the self-signed certificate; may be repeated",
        set: |config, texts| {
            config.tls_names = texts.to_vec();
            match texts.iter().find(|name| !host_name(name)) {
                Some(wrong) => Err(format!(
                    "`{wrong}` is no host name; allowed: letters, digits, `-`, `.`, a leading `*.`, or an IP address"
                )),
                None => Ok(()),
            }
        },
    },
    Setting {
        name: "tls-certificate",
        value: "FILE",
        default: "a self-signed one, see `orrery cert`",
        repeats: false,
        group: ACCESS,
        help: "Certificate chain of your own, PEM; needs --tls-key",
        set: |config, texts| put(&mut tls_files(config).0, Ok(PathBuf::from(last(texts)?))),
    },
    Setting {
        name: "tls-key",
        value: "FILE",
        default: "",
        repeats: false,
        group: ACCESS,
        help: "Private key of --tls-certificate, PEM",
        set: |config, texts| put(&mut tls_files(config).1, Ok(PathBuf::from(last(texts)?))),
    },
    Setting {
        name: "partition-throughput-limit",
        value: "RU",
        default: "10000",
        repeats: false,
        group: LIMITS,
        help: "Request units per second that one physical partition may be given; T RU/s make ceil(T / limit) partitions",
        set: |config, texts| {
            put(
                &mut config.partition_throughput_limit,
                number(last(texts)?, 100, 1_000_000_000).map(|number| number as u32),
            )
        },
    },
    Setting {
        name: "partition-size-limit",
        value: "BYTES",
        default: "50GB",
        repeats: false,
        group: LIMITS,
        help: "Size of a physical partition; accepts 10MB, 10MiB and the like",
        set: |config, texts| put(&mut config.partition_size_limit_bytes, size_bytes(last(texts)?)),
    },
    Setting {
        name: "logical-partition-size-limit",
        value: "BYTES",
        default: "20GB",
        repeats: false,
        group: LIMITS,
        help: "Size of a logical partition (all items of one partition key value)",
        set: |config, texts| put(&mut config.logical_partition_size_limit_bytes, size_bytes(last(texts)?)),
    },
    Setting {
        name: "throttling",
        value: "on|off",
        default: "off",
        repeats: false,
        group: LIMITS,
        help: "on: requests beyond the provisioned throughput are refused with 429, as on the service; off: charges are reported and nothing is refused",
        set: |config, texts| put(&mut config.throttling, choice(last(texts)?, &ON_OFF)),
    },
    Setting {
        name: "burst",
        value: "on|off",
        default: "off",
        repeats: false,
        group: LIMITS,
        help: "on: partitions below 3000 RU/s save up to 5 minutes of unused throughput and spend it at up to 3000 RU/s; needs --throttling on",
        set: |config, texts| put(&mut config.burst, choice(last(texts)?, &ON_OFF)),
    },
    Setting {
        name: "capacity",
        value: "MODE",
        default: "provisioned",
        repeats: false,
        group: LIMITS,
        help: "provisioned: throughput by offers; serverless: no offers, 5000 RU/s for every physical partition",
        set: |config, texts| {
            put(&mut config.serverless, choice(last(texts)?, &[("provisioned", false), ("serverless", true)]))
        },
    },
    Setting {
        name: "faults",
        value: "FILE",
        default: "",
        repeats: false,
        group: LIMITS,
        help: "Fault rules for tests (TOML, or JSON in a .json file): errors, delays and lost connections on purpose; see `orrery faults`",
        set: |config, texts| put(&mut config.faults, Ok(Some(PathBuf::from(last(texts)?)))),
    },
    Setting {
        name: "test-controls",
        value: "on|off",
        default: "off",
        repeats: false,
        group: LIMITS,
        help: "on: tests may move the server's clock and empty the account; see `orrery clock` and `orrery reset`",
        set: |config, texts| put(&mut config.test_controls, choice(last(texts)?, &ON_OFF)),
    },
    Setting {
        name: "record",
        value: "FILE",
        default: "",
        repeats: false,
        group: LIMITS,
        help: "Append every request about items to this file, with bodies and charges, for `orrery advise`",
        set: |config, texts| put(&mut config.record, Ok(Some(PathBuf::from(last(texts)?)))),
    },
    Setting {
        name: "consistency",
        value: "LEVEL",
        default: "session",
        repeats: false,
        group: LIMITS,
        help: "Default consistency of the account: strong, bounded-staleness, session, consistent-prefix, eventual; a request may only weaken it",
        set: |config, texts| put(&mut config.consistency, choice(last(texts)?, &CONSISTENCIES)),
    },
    Setting {
        name: "cross-partition-queries",
        value: "WHO",
        default: "sdk",
        repeats: false,
        group: LIMITS,
        help: "Who merges a query over several partitions: sdk (400 with a plan, as on the service) or server (for clients without a query engine)",
        set: |config, texts| {
            put(
                &mut config.cross_partition_queries,
                choice(last(texts)?, &[("sdk", CrossPartition::Sdk), ("server", CrossPartition::Server)]),
            )
        },
    },
    Setting {
        name: "direct-mode",
        value: "on|off",
        default: "on",
        repeats: false,
        group: LIMITS,
        help: "Whether clients in direct mode (RNTBD, the default of Java and .NET) are told where to connect; needs TLS",
        set: |config, texts| put(&mut config.direct_mode, choice(last(texts)?, &ON_OFF)),
    },
    Setting {
        name: "account-name",
        value: "NAME",
        default: "orrery",
        repeats: false,
        group: LIMITS,
        help: "Name of the account in its account document",
        set: |config, texts| {
            config.account_name = last(texts)?.to_owned();
            match host_name(&config.account_name) {
                true => Ok(()),
                false => Err("allowed: letters, digits and `-`".into()),
            }
        },
    },
    Setting {
        name: "gremlin-results",
        value: "HOW",
        default: "cosmos",
        repeats: false,
        group: LIMITS,
        help: "What clients of GraphSON 2 get: cosmos: plain JSON, as from Cosmos DB; typed: values with their types, as from other Gremlin servers",
        set: |config, texts| {
            put(
                &mut config.gremlin_results,
                choice(last(texts)?, &[("cosmos", Results::Cosmos), ("typed", Results::Typed)]),
            )
        },
    },
    Setting {
        name: "mongo-auth",
        value: "HOW",
        default: "required",
        repeats: false,
        group: LIMITS,
        help: "Whether clients of the MongoDB API must log in: required: with the account's name and a key, or as a user; off: not at all, on loopback only",
        set: |config, texts| {
            put(
                &mut config.mongo_auth,
                choice(last(texts)?, &[("required", AuthMode::Required), ("off", AuthMode::Off)]),
            )
        },
    },
    Setting {
        name: "mongo-version",
        value: "N",
        default: "7.0",
        repeats: false,
        group: LIMITS,
        help: "The release of MongoDB that drivers take the server for: 4.2, 5.0, 6.0, 7.0 or 8.0",
        set: |config, texts| put(&mut config.mongo_version, choice(last(texts)?, &ServerVersion::ALL)),
    },
    Setting {
        name: "table-dialect",
        value: "HOW",
        default: "auto",
        repeats: false,
        group: LIMITS,
        help: "Whose rules and errors the Table API has: cosmos; storage; auto: storage's for clients that call the server by an address instead of a name, or as storage's emulator",
        set: |config, texts| {
            put(
                &mut config.table_dialect,
                choice(
                    last(texts)?,
                    &[
                        ("cosmos", DialectChoice::Cosmos),
                        ("storage", DialectChoice::Storage),
                        ("auto", DialectChoice::Auto),
                    ],
                ),
            )
        },
    },
    Setting {
        name: "region",
        value: "NAME",
        default: "Local",
        repeats: false,
        group: LIMITS,
        help: "Name of the account's only region in its account document",
        set: |config, texts| {
            config.region = last(texts)?.to_owned();
            let plain = |c: char| c.is_ascii_alphanumeric() || c == ' ' || c == '-';
            match !config.region.is_empty() && config.region.len() <= 64 && config.region.chars().all(plain) {
                true => Ok(()),
                false => Err("allowed: letters, digits, spaces and `-`, at most 64".into()),
            }
        },
    },
    Setting {
        name: "memory-limit",
        value: "BYTES",
        default: "half of the machine's memory, or 80 % of what a container may have if that is less",
        repeats: false,
        group: RESOURCES,
        help: "Memory of the process; what caches and store leave of it is for requests, which get 503 when it is used up",
        set: |config, texts| put(&mut config.memory_limit_bytes, size_bytes(last(texts)?)),
    },
    Setting {
        name: "cache-size",
        value: "BYTES",
        default: "256MB, or an eighth of --memory-limit if that is less",
        repeats: false,
        group: RESOURCES,
        help: "Memory for recently read data; taken as it is needed",
        set: |config, texts| put(&mut config.cache_size_bytes, size_bytes(last(texts)?)),
    },
    Setting {
        name: "query-page-time",
        value: "TIME",
        default: "5s",
        repeats: false,
        group: RESOURCES,
        help: "Time after which a page of a query ends with what it has",
        set: |config, texts| put(&mut config.query_page_time, duration(last(texts)?)),
    },
    Setting {
        name: "script-timeout",
        value: "TIME",
        default: "5s",
        repeats: false,
        group: RESOURCES,
        help: "How long a stored procedure, or a write with its triggers, may run",
        set: |config, texts| put(&mut config.script_timeout, duration(last(texts)?)),
    },
    Setting {
        name: "script-memory",
        value: "BYTES",
        default: "64MB",
        repeats: false,
        group: RESOURCES,
        help: "Memory that one running script may take",
        set: |config, texts| put(&mut config.script_memory_bytes, size_bytes(last(texts)?)),
    },
    Setting {
        name: "gremlin-memory",
        value: "BYTES",
        default: "256MB",
        repeats: false,
        group: RESOURCES,
        help: "Memory that one traversal of a graph may take, out of --memory-limit",
        set: |config, texts| put(&mut config.gremlin_memory_bytes, size_bytes(last(texts)?)),
    },
    Setting {
        name: "workers",
        value: "N",
        default: "one per core",
        repeats: false,
        group: RESOURCES,
        help: "Threads that answer requests",
        set: |config, texts| {
            put(&mut config.workers, number(last(texts)?, 1, 1024).map(|number| number as usize))
        },
    },
    Setting {
        name: "connections-max",
        value: "N",
        default: "10000",
        repeats: false,
        group: RESOURCES,
        help: "Connections open at one time; further ones are answered with 503 and closed",
        set: |config, texts| {
            put(&mut config.connections_max, number(last(texts)?, 1, 1_000_000).map(|number| number as usize))
        },
    },
    Setting {
        name: "request-timeout",
        value: "TIME",
        default: "60s",
        repeats: false,
        group: RESOURCES,
        help: "Longest time to receive a request's body, and to answer it; then 408",
        set: |config, texts| put(&mut config.request_timeout, duration(last(texts)?)),
    },
    Setting {
        name: "idle-timeout",
        value: "TIME",
        default: "10m",
        repeats: false,
        group: RESOURCES,
        help: "A connection without a request for this long is closed",
        set: |config, texts| put(&mut config.idle_timeout, duration(last(texts)?)),
    },
    Setting {
        name: "shutdown-timeout",
        value: "TIME",
        default: "10s",
        repeats: false,
        group: RESOURCES,
        help: "How long a stop waits for requests in flight",
        set: |config, texts| put(&mut config.shutdown_timeout, duration(last(texts)?)),
    },
    Setting {
        name: "log-format",
        value: "FORMAT",
        default: "text",
        repeats: false,
        group: LOG,
        help: "text or json; the log goes to stderr, the start-up block to stdout",
        set: |config, texts| {
            put(
                &mut config.log.format,
                choice(last(texts)?, &[("text", LogFormat::Text), ("json", LogFormat::Json)]),
            )
        },
    },
    Setting {
        name: "log-level",
        value: "LEVEL",
        default: "info",
        repeats: false,
        group: LOG,
        help: "error, warn, info, debug or trace; with exceptions per module: info,orrery_storage=debug",
        set: |config, texts| put(&mut config.log.level, log_filter(last(texts)?)),
    },
    Setting {
        name: "log-requests",
        value: "WHICH",
        default: "on",
        repeats: false,
        group: LOG,
        help: "One line per request: on, errors (status 400 and above) or off",
        set: |config, texts| {
            put(
                &mut config.log.requests,
                choice(
                    last(texts)?,
                    &[("on", LogRequests::On), ("errors", LogRequests::Errors), ("off", LogRequests::Off)],
                ),
            )
        },
    },
    Setting {
        name: "log-requests-rate",
        value: "N",
        default: "1000",
        repeats: false,
        group: LOG,
        help: "Most request lines per second, the rest are counted and summed up in one line; 0: no limit",
        set: |config, texts| {
            put(
                &mut config.log.requests_rate_max,
                number(last(texts)?, 0, 10_000_000).map(|number| number as u32),
            )
        },
    },
];

fn tls_files(config: &mut Config) -> &mut (PathBuf, PathBuf) {
    config.tls_files.get_or_insert_default()
}
