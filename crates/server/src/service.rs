//! Puts the parts together: store, engine, api. The only file here that knows them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use orrery_api::{Either, StreamApi};
use orrery_api_gremlin::{GremlinConfig, GremlinService};
pub use orrery_api_mongo::register_rules;
use orrery_api_mongo::{MongoConfig, MongoService};
use orrery_api_nosql::{
    AccountKeys, CLOCK_SKEW_S_DEFAULT, DirectApi, OPERATIONS, Recorder, ScriptLimits, Service, ServiceConfig,
};
use orrery_api_table::{TableConfig, TableKeys, TableService};
use orrery_budget::MemoryPool;
use orrery_cluster::{ClusterOptions, ClusterStore, FileLog, Log, PostgresLog};
use orrery_engine::faults::Set;
use orrery_engine::{Account, EngineConfig, SystemEnv};
use orrery_storage::{EmbeddedOptions, EmbeddedStore, MemoryStore, Store};

use crate::api::{Apis, Backend, SharedBackend};
use crate::cluster_metrics;
use crate::config::file;
use crate::config::{Config, Keys, StoreAddress, TlsMode};
use crate::hosts::Hosts;
use crate::lengthy;
use crate::memory;
use crate::metrics::StoreFigures;
use crate::pages;
use crate::partition_metrics;

/// The HTTP apis of the main port: tables in path style, under the account's name; scripts of graphs and commands of
/// MongoDB under paths of their own; everything else is the NoSQL API's.
pub type MainApi =
    Either<Arc<TableService>, Either<Arc<GremlinService>, Either<Arc<MongoService>, Arc<Service>>>>;

/// The most that one command, or one cursor, of the MongoDB API may hold of the memory that requests share.
const MONGO_MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What a server serves.
pub struct Served {
    pub main: Apis<MainApi>,
    /// The Table API for a port of its own.
    pub tables: Apis<Arc<TableService>>,
    /// The Gremlin API for a port of its own.
    pub graphs: Apis<Arc<GremlinService>>,
    /// The MongoDB API for a port of its own.
    pub documents: Apis<Arc<MongoService>>,
    pub backend: SharedBackend,
}

/// Opens the store and the account in it, and makes the apis that serve it.
pub fn open(config: &Config) -> Result<Served> {
    let mut cluster = None;
    let store: Arc<dyn Store> = match (&config.store, config.ephemeral) {
        (_, true) => Arc::new(MemoryStore::default()),
        (Some(address), false) => {
            let store = Arc::new(open_cluster(config, address)?);
            cluster = Some(store.clone());
            store
        }
        (None, false) => Arc::new(open_directory(config)?),
    };
    let memory = MemoryPool::new(memory::requests_bytes(config));
    let engine_config = EngineConfig {
        partition_throughput_limit: config.partition_throughput_limit,
        partition_size_limit: config.partition_size_limit_bytes,
        logical_partition_size_limit: config.logical_partition_size_limit_bytes,
        throttling: config.throttling.into(),
        burst: config.burst,
        serverless: config.serverless,
        column_bytes_max: column_bytes(config),
        durability: config.durability,
        ..EngineConfig::default()
    };
    let env = SystemEnv::new().with_movable_clock(config.test_controls);
    let account =
        Account::open(store.clone(), engine_config, Arc::new(env)).map_err(|error| match error.cause {
            Some(cause) => anyhow::anyhow!("cannot read the catalog (in feed/): {} ({cause})", error.message),
            None => anyhow::anyhow!("cannot read the catalog (in feed/): {}", error.message),
        })?;
    // A scan would hold up every connection of its thread; another thread takes them over meanwhile.
    lengthy::set_workers(config.workers);
    let recorder = config.record.as_deref().map(|path| {
        Recorder::start(path).with_context(|| format!("--record: cannot write {}", path.display()))
    });
    let service = Service::new(account.clone(), service_config(config, memory.clone())?)
        .with_lengthy(lengthy::run)
        .with_recorder(recorder.transpose()?);
    let tables =
        TableService::new(account.clone(), table_config(config, memory.clone())?).with_lengthy(lengthy::run);
    let graphs = GremlinService::new(account.clone(), gremlin_config(config, memory.clone())?, lengthy::run);
    let documents = MongoService::new(account.clone(), mongo_config(config, memory.clone())?, lengthy::run);
    if let Some(path) = &config.faults {
        account.faults().replace(read_faults(path)?);
    }
    let (tables, graphs) = (Arc::new(tables), Arc::new(graphs));
    let service = Arc::new(service);
    let websockets: Arc<dyn StreamApi> = graphs.clone();
    let documents = Arc::new(documents);
    let messages: Arc<dyn StreamApi> = documents.clone();
    let mut streams = vec![websockets.clone(), messages.clone()];
    if config.direct_mode {
        streams.push(Arc::new(DirectApi(service.clone())));
    }
    let limit_bytes = config.memory_limit_bytes;
    Ok(Served {
        main: Apis {
            http: Either(tables.clone(), Either(graphs.clone(), Either(documents.clone(), service))),
            streams,
            portal: pages::portal(config),
        },
        tables: Apis::http(tables),
        graphs: Apis { http: graphs, streams: vec![websockets], portal: None },
        documents: Apis { http: documents, streams: vec![messages], portal: None },
        backend: Arc::new(Opened { account, store, cluster, memory, limit_bytes }),
    })
}

/// The part of the cache that columns may take; blocks and items have what is left.
fn column_bytes(config: &Config) -> u64 {
    config.cache_size_bytes / 4
}

/// The part of the cache that vertices and the ways between them may take.
fn graph_bytes(config: &Config) -> u64 {
    config.cache_size_bytes / 8
}

fn embedded_options(config: &Config) -> EmbeddedOptions {
    let cache_bytes = config.cache_size_bytes - column_bytes(config) - graph_bytes(config);
    EmbeddedOptions { cache_bytes, ..EmbeddedOptions::default() }
}

/// Where the copy of a store lies that is somewhere else.
pub fn copy_directory(config: &Config) -> PathBuf {
    config.data_dir.join("copy")
}

fn open_cluster(config: &Config, address: &StoreAddress) -> Result<ClusterStore> {
    let directory = config.data_dir.display();
    if config.data_dir.join("FORMAT").exists() {
        anyhow::bail!(
            "{directory} holds the data of a server without --store: name another --data-dir, and take the data over \
             with `orrery export --all` there and `--import` here"
        );
    }
    let log: Arc<dyn Log> = match address {
        StoreAddress::Directory(path) => Arc::new(
            FileLog::open(path).with_context(|| format!("cannot open the log in {}", path.display()))?,
        ),
        StoreAddress::Postgres(_) => Arc::new(
            PostgresLog::open(address.whole()).with_context(|| format!("cannot open the store {address}"))?,
        ),
    };
    let options = ClusterOptions { copy: embedded_options(config), ..ClusterOptions::default() };
    ClusterStore::open(log, copy_directory(config), "orrery", options).with_context(|| {
        let copy = copy_directory(config);
        format!("cannot open the copy in {} (it may be removed: it is filled again)", copy.display())
    })
}

fn open_directory(config: &Config) -> Result<EmbeddedStore> {
    let path = config.data_dir.as_path();
    EmbeddedStore::open(path, embedded_options(config))
        .with_context(|| format!("cannot open the data directory {}", path.display()))
}

/// The fault rules of a file, in TOML or, by its name, in JSON.
fn read_faults(path: &Path) -> Result<Set> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("--faults: cannot read {shown}"))?;
    let value =
        file::json_or_toml(path, &text).map_err(|error| anyhow::anyhow!("--faults: {shown}: {error}"))?;
    Set::parse(&value, OPERATIONS).map_err(|error| anyhow::anyhow!("--faults: {shown}: {error}"))
}

fn account_keys(config: &Config) -> Result<AccountKeys> {
    let Keys { primary, secondary, readonly, secondary_readonly } = &config.keys;
    let bytes =
        |key: Option<&String>| STANDARD.decode(key.map_or("", String::as_str)).context("a key is not base64");
    Ok(AccountKeys {
        primary: bytes(Some(primary))?,
        secondary: bytes(secondary.as_ref())?,
        primary_readonly: bytes(readonly.as_ref())?,
        secondary_readonly: bytes(secondary_readonly.as_ref())?,
    })
}

fn service_config(config: &Config, memory: Arc<MemoryPool>) -> Result<ServiceConfig> {
    Ok(ServiceConfig {
        scripts: ScriptLimits {
            time: config.script_timeout,
            memory_bytes: usize::try_from(config.script_memory_bytes).unwrap_or(usize::MAX),
            ..ScriptLimits::default()
        },
        keys: account_keys(config)?,
        consistency: config.consistency,
        account_name: config.account_name.clone(),
        region: config.region.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        auth_clock_skew_s: CLOCK_SKEW_S_DEFAULT,
        query_page_time: config.query_page_time,
        request_time: config.request_timeout,
        memory,
        cross_partition: config.cross_partition_queries,
        direct_mode: config.direct_mode && config.tls != TlsMode::Off,
    })
}

fn table_config(config: &Config, memory: Arc<MemoryPool>) -> Result<TableConfig> {
    let Keys { primary, secondary, readonly, secondary_readonly } = &config.keys;
    let keys = |keys: [Option<&String>; 2]| {
        let bytes = |key: &String| STANDARD.decode(key).context("a key is not base64");
        keys.into_iter().flatten().map(bytes).collect::<Result<Vec<_>>>()
    };
    Ok(TableConfig {
        account_name: config.account_name.clone(),
        keys: TableKeys {
            full: keys([Some(primary), secondary.as_ref()])?,
            read_only: keys([readonly.as_ref(), secondary_readonly.as_ref()])?,
        },
        development: config.keys.well_known(),
        dialect: config.table_dialect,
        clock_skew_s: CLOCK_SKEW_S_DEFAULT,
        query_page_time: config.query_page_time,
        request_time: config.request_timeout,
        memory,
    })
}

fn gremlin_config(config: &Config, memory: Arc<MemoryPool>) -> Result<GremlinConfig> {
    let hosts = Hosts::new(config);
    Ok(GremlinConfig {
        keys: account_keys(config)?,
        results: config.gremlin_results,
        clock_skew_s: CLOCK_SKEW_S_DEFAULT,
        request_time: config.request_timeout,
        memory_bytes: usize::try_from(config.gremlin_memory_bytes).unwrap_or(usize::MAX),
        memory,
        cache_bytes: graph_bytes(config),
        hosts: Arc::new(move |headers, uri| hosts.check(headers, uri)),
    })
}

fn mongo_config(config: &Config, memory: Arc<MemoryPool>) -> Result<MongoConfig> {
    Ok(MongoConfig {
        account_name: config.account_name.clone(),
        keys: account_keys(config)?,
        auth: config.mongo_auth,
        version: config.mongo_version,
        request_time: config.request_timeout,
        clock_skew_s: CLOCK_SKEW_S_DEFAULT,
        memory_bytes: MONGO_MEMORY_BYTES_MAX,
        memory,
    })
}

struct Opened {
    account: Arc<Account>,
    store: Arc<dyn Store>,
    /// The same store, where it is one over a log.
    cluster: Option<Arc<ClusterStore>>,
    memory: Arc<MemoryPool>,
    limit_bytes: u64,
}

impl Backend for Opened {
    fn memory(&self) -> &Arc<MemoryPool> {
        &self.memory
    }

    fn figures(&self) -> StoreFigures {
        StoreFigures {
            store: self.store.stats(),
            memory_limit_bytes: self.limit_bytes,
            request_memory_limit_bytes: self.memory.limit_bytes() as u64,
            request_memory_bytes: self.memory.taken_bytes() as u64,
            request_memory_peak_bytes: self.memory.peak_bytes() as u64,
            request_memory_refusals: self.memory.refusals(),
        }
    }

    fn account_metrics(&self, text: &mut String, with_names: bool) {
        partition_metrics::render(text, &self.account.open_partition_figures(), with_names);
        partition_metrics::render_splits(text, &self.account.split_figures());
        partition_metrics::render_outages(text, &self.account.outage_figures());
        if let Some(cluster) = &self.cluster {
            cluster_metrics::render(text, &cluster.cluster_stats());
        }
        partition_metrics::render_columns(text, self.account.column_bytes());
        partition_metrics::render_faults(text, &self.account.faults().counts());
    }

    fn close(&self) -> Result<()> {
        // Closes the store too, after the engine's own writers have ended.
        self.account.close().map_err(|error| anyhow::anyhow!("{}", error.message))
    }
}
