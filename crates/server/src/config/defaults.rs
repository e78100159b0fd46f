//! What holds when nobody says anything.

use std::path::PathBuf;
use std::time::Duration;

use orrery_api_gremlin::Results;
use orrery_api_mongo::{AuthMode, ServerVersion};
use orrery_api_nosql::CrossPartition;
use orrery_api_table::DialectChoice;
use orrery_engine::{ConsistencyLevel, Durability};

use super::{ApiListen, Config, EMULATOR_KEY, Keys, LogConfig, LogFormat, LogRequests, PortalMode, TlsMode};
use crate::memory;

/// What holds when nobody says anything.
pub fn defaults() -> Config {
    Config {
        listen: vec![([127, 0, 0, 1], 8081).into()],
        table_listen: ApiListen::default(),
        table_dialect: DialectChoice::default(),
        gremlin_listen: ApiListen::default(),
        gremlin_results: Results::default(),
        mongo_listen: ApiListen::default(),
        mongo_auth: AuthMode::default(),
        mongo_version: ServerVersion::default(),
        data_dir: default_data_dir(|name| std::env::var_os(name).map(PathBuf::from)),
        ephemeral: false,
        store: None,
        import: None,
        export_on_exit: None,
        keys: Keys {
            primary: EMULATOR_KEY.into(),
            secondary: None,
            readonly: None,
            secondary_readonly: None,
        },
        partition_throughput_limit: 10_000,
        partition_size_limit_bytes: 50_000_000_000,
        logical_partition_size_limit_bytes: 20_000_000_000,
        cache_size_bytes: memory::cache_default_bytes(memory::limit_default_bytes()),
        memory_limit_bytes: memory::limit_default_bytes(),
        query_page_time: Duration::from_secs(5),
        script_timeout: Duration::from_secs(5),
        script_memory_bytes: 64_000_000,
        gremlin_memory_bytes: 256_000_000,
        durability: Durability::Strict,
        consistency: ConsistencyLevel::Session,
        cross_partition_queries: CrossPartition::Sdk,
        direct_mode: true,
        faults: None,
        record: None,
        test_controls: false,
        throttling: false,
        burst: false,
        serverless: false,
        allowed_hosts: Vec::new(),
        metrics_auth: false,
        portal: PortalMode::On,
        account_name: "orrery".into(),
        region: "Local".into(),
        tls: TlsMode::Optional,
        tls_names: Vec::new(),
        tls_files: None,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        connections_max: 10_000,
        request_timeout: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(600),
        shutdown_timeout: Duration::from_secs(10),
        log: LogConfig {
            format: LogFormat::Text,
            level: "info".into(),
            requests: LogRequests::On,
            requests_rate_max: 1000,
        },
    }
}

/// The platform's usual place for a user's data; a process without a home (some containers) gets a directory beside it.
pub fn default_data_dir(variable: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map_or_else(|| PathBuf::from("orrery-data"), |base| base.join("orrery"))
}
