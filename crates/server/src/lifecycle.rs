//! From a configuration to a running server, and its end: runtime, log, signals, start-up block.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context, Result};
use orrery_engine::Durability;
use tokio::signal::unix::{Signal, SignalKind, signal};

use orrery_api_mongo::AuthMode;

use crate::config::{ApiListen, Config, LogFormat, PortalMode, TlsMode};
use crate::limits::POLLS_BETWEEN_EVENTS;
use crate::log::{self, LogSink};
use crate::open_files;
use crate::server::{Bound, Server};
use crate::service;

/// Where the emulator has its Table API.
pub const TABLE_PORT: u16 = 8902;
/// Where the emulator has its Gremlin API.
pub const GREMLIN_PORT: u16 = 8901;
/// Where Cosmos DB has its MongoDB API.
pub const MONGO_PORT: u16 = 10255;
/// Exit code of a second signal, as shells use for an interrupted program.
const EXIT_INTERRUPTED: i32 = 130;

/// Something that is done through the server's own port, at this address.
pub type Step = Box<dyn FnOnce(SocketAddr) -> Pin<Box<dyn Future<Output = Result<()>> + Send>> + Send>;

/// What is done beside serving.
#[derive(Default)]
pub struct Steps {
    /// Before the server is announced: it answers already, but nobody has been told.
    pub before_announcing: Option<Step>,
    /// After the signal, while requests are still answered.
    pub before_stopping: Option<Step>,
}

/// Runs a server until SIGTERM or SIGINT. `warnings` go to the log.
pub fn serve(config: &Config, warnings: &[String], steps: Steps) -> Result<()> {
    let sink = LogSink::start(std::io::stderr()).context("cannot start the log")?;
    log::install(&config.log, &sink);
    log_panics();
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    keep_files_private();
    let (connections_max, warning) =
        open_files::connections_max(open_files::raise_limit(), config.connections_max);
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
    let config = &Config { connections_max, ..config.clone() };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.workers)
        .enable_io()
        .enable_time()
        .thread_name("worker")
        .event_interval(POLLS_BETWEEN_EVENTS)
        .build()
        .context("cannot start the worker threads")?;
    let result = runtime.block_on(run(config, &sink, steps));
    // Reads that a client no longer waits for must not hold up the end.
    runtime.shutdown_background();
    sink.close();
    result
}

async fn run(config: &Config, sink: &LogSink, steps: Steps) -> Result<()> {
    let mut signals = Signals::new()?;
    let bound = Bound::new(&config.listen, "listen")?;
    let tables_bound = bound_api(&config.table_listen, TABLE_PORT, "table-listen", &config.listen)?;
    let graphs_bound = bound_api(&config.gremlin_listen, GREMLIN_PORT, "gremlin-listen", &config.listen)?;
    let documents_bound = bound_api(&config.mongo_listen, MONGO_PORT, "mongo-listen", &config.listen)?;
    let at = Addresses {
        tables: tables_bound.addresses.clone(),
        graphs: graphs_bound.addresses.clone(),
        documents: documents_bound.addresses.clone(),
    };
    let service::Served { main, tables, graphs, documents, backend } = service::open(config)?;
    let server =
        Server::new(bound, config, main, Arc::clone(&backend), sink.clone()).with_port(tables_bound, tables);
    let server = server.with_port(graphs_bound, graphs).with_port(documents_bound, documents);
    let addresses = server.addresses().to_vec();
    let own = addresses.first().map(|address| browsable(*address)).context("no address to listen on")?;
    let mut failed = None;
    let unfinished = server.run(async {
        if let Some(step) = steps.before_announcing {
            let done = tokio::select! {
                done = step(own) => done,
                _ = signals.next() => Err(anyhow::anyhow!("stopped before everything was loaded")),
            };
            if let Err(error) = done {
                failed = Some(error);
                return;
            }
        }
        if let Err(error) = announce(config, &addresses, &at) {
            failed = Some(error);
            return;
        }
        let name = signals.next().await;
        tracing::info!(signal = name, "stopping; a second signal stops at once");
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(EXIT_INTERRUPTED);
        });
        if let Some(step) = steps.before_stopping
            && let Err(error) = step(own).await
        {
            failed = Some(error);
        }
    });
    let unfinished = unfinished.await;
    if unfinished > 0 {
        tracing::warn!(connections = unfinished, "closed connections that did not finish in time");
    }
    backend.close().context("cannot close the store")?;
    match failed {
        Some(error) => Err(error),
        None => {
            tracing::info!("stopped");
            Ok(())
        }
    }
}

/// Binds the port of an api. The usual one may be taken by a server that was here first; the api is on the shared
/// port too, so that costs a warning. One that somebody named must be free.
fn bound_api(listen: &ApiListen, usual_port: u16, flag: &str, shared: &[SocketAddr]) -> Result<Bound> {
    match Bound::new(&listen.addresses(usual_port, shared), flag) {
        Err(error) if *listen == ApiListen::Usual => {
            tracing::warn!(error = format!("{error:#}"), "going on without a port of its own for an API");
            Ok(Bound::default())
        }
        bound => bound,
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Signals> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Signals {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Where apis listen that have ports of their own.
#[derive(Default)]
struct Addresses {
    tables: Vec<SocketAddr>,
    graphs: Vec<SocketAddr>,
    documents: Vec<SocketAddr>,
}

fn websocket_scheme(scheme: &str) -> &'static str {
    if scheme == "https" { "wss" } else { "ws" }
}

/// The start-up block on stdout: for people, or as one JSON object for scripts.
fn announce(config: &Config, addresses: &[SocketAddr], at: &Addresses) -> Result<()> {
    let text = match config.log.format {
        LogFormat::Text => block(config, addresses, at),
        LogFormat::Json => json_line(config, addresses, at),
    };
    let mut stdout = std::io::stdout().lock();
    // Somebody who closed stdout does not want to read it.
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if config.durability == Durability::Relaxed && !config.ephemeral {
        tracing::warn!("durability is relaxed: a crash may lose the last moments of acknowledged writes");
    }
    Ok(())
}

fn block(config: &Config, addresses: &[SocketAddr], at: &Addresses) -> String {
    let schemes: &[&str] = match config.tls {
        TlsMode::Optional => &["http", "https"],
        TlsMode::Required => &["https"],
        TlsMode::Off => &["http"],
    };
    let mut text = format!("Orrery {}\n", env!("CARGO_PKG_VERSION"));
    let mut row = |name: &str, value: String| text.push_str(&format!("  {name:<13} {value}\n"));
    for address in addresses {
        let urls: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://{address}")).collect();
        row("listening on", urls.join("  "));
    }
    if config.portal != PortalMode::Off
        && let Some(address) = addresses.first()
    {
        row("portal", format!("{}://{}/_explorer/", schemes[0], browsable(*address)));
    }
    for address in &at.tables {
        let urls: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://{address}")).collect();
        row("tables on", urls.join("  "));
    }
    for address in &at.graphs {
        let urls: Vec<String> =
            schemes.iter().map(|scheme| format!("{}://{address}", websocket_scheme(scheme))).collect();
        row("graphs on", urls.join("  "));
    }
    for address in &at.documents {
        row("documents on", format!("mongodb://{address}"));
    }
    match (&config.store, config.ephemeral) {
        (_, true) => row("store", "memory (gone when the server stops)".into()),
        (Some(store), false) => {
            row("store", format!("{store}, with a copy in {}", service::copy_directory(config).display()));
        }
        (None, false) => row("store", format!("embedded, in {}", config.data_dir.display())),
    }
    let durability = match (config.ephemeral, config.durability) {
        (true, _) => "none",
        (false, _) if config.store.is_some() => "strict (a write is answered when the store has it)",
        (false, Durability::Strict) => "strict (a write is answered when it is on disk)",
        (false, Durability::Relaxed) => "relaxed (a crash may lose the last moments)",
    };
    row("durability", durability.into());
    let throttling = match (config.throttling, config.serverless) {
        (true, false) => "on (requests beyond the provisioned throughput get 429)",
        (true, true) => "on (serverless: 5000 RU/s for each physical partition)",
        (false, _) => "off (charges are reported, nothing is refused; --throttling on)",
    };
    row("throttling", throttling.into());
    match config.keys.well_known() {
        true => {
            row("key", "the emulator's well-known one (loopback only)".into());
            if let Some(address) = addresses.first() {
                let (scheme, key) = (schemes[0], &config.keys.primary);
                row("connect with", format!("AccountEndpoint={scheme}://{address}/;AccountKey={key};"));
            }
            // By name: clients take a server at an address for storage's, and one at a name for Cosmos DB.
            if let Some(port) = at.tables.first().map(SocketAddr::port) {
                let (scheme, key, name) = (schemes[0], &config.keys.primary, &config.account_name);
                row(
                    "tables with",
                    format!(
                        "DefaultEndpointsProtocol={scheme};AccountName={name};AccountKey={key};TableEndpoint={scheme}://localhost:{port}/{name};"
                    ),
                );
            }
            if let Some(address) = at.graphs.first() {
                let (scheme, key) = (websocket_scheme(schemes[0]), &config.keys.primary);
                row(
                    "graphs with",
                    format!(
                        "url {scheme}://{address}/, user name /dbs/DATABASE/colls/CONTAINER, password {key}"
                    ),
                );
            }
        }
        false => row("key", "as configured".into()),
    }
    if let Some(address) = at.documents.first()
        && (config.keys.well_known() || config.mongo_auth == AuthMode::Off)
    {
        row("documents with", mongo_connection_string(config, *address));
    }
    text
}

/// How a driver of MongoDB connects.
pub fn mongo_connection_string(config: &Config, address: SocketAddr) -> String {
    let tls = if config.tls == TlsMode::Required { "&tls=true&tlsAllowInvalidCertificates=true" } else { "" };
    let who = match config.mongo_auth {
        AuthMode::Off => String::new(),
        AuthMode::Required => {
            let key = config.keys.primary.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
            format!("{}:{key}@", config.account_name)
        }
    };
    format!("mongodb://{who}{address}/?directConnection=true{tls}")
}

/// The address as a browser on this machine finds it: a server that listens everywhere is here too.
fn browsable(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
        IpAddr::V6(ip) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
        _ => address,
    }
}

fn json_line(config: &Config, addresses: &[SocketAddr], at: &Addresses) -> String {
    let line = serde_json::json!({
        "message": "listening on",
        "version": env!("CARGO_PKG_VERSION"),
        "listen": addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
        "table_listen": at.tables.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
        "mongo_listen": at.documents.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
        "gremlin_listen": at.graphs.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
        "tls": match config.tls { TlsMode::Optional => "optional", TlsMode::Required => "required", TlsMode::Off => "off" },
        "store": match (&config.store, config.ephemeral) {
            (_, true) => "memory".to_owned(),
            (Some(store), false) => store.to_string(),
            (None, false) => "embedded".to_owned(),
        },
        "data_dir": (!config.ephemeral).then(|| config.data_dir.display().to_string()),
        "durability": match config.durability { Durability::Strict => "strict", Durability::Relaxed => "relaxed" },
        "throttling": if config.throttling { "on" } else { "off" },
        "key": if config.keys.well_known() { "well-known" } else { "configured" },
        "pid": std::process::id(),
    });
    format!("{line}\n")
}

/// A panic is a defect; it belongs in the log, in the log's format.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let message = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(message, location, %backtrace, "panic");
    }));
}

/// Whatever the server makes, the tables of the store among it, is its owner's alone.
fn keep_files_private() {
    #[cfg(unix)]
    #[allow(unsafe_code)]
    // SAFETY: `umask` takes no pointer, cannot fail, and sets one number of the process.
    unsafe {
        libc::umask(0o077);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::defaults;

    fn at(tables: &str, graphs: &str) -> Addresses {
        let address = |text: &str| vec![text.parse().expect("an address")];
        Addresses { tables: address(tables), graphs: address(graphs), documents: address("127.0.0.1:4714") }
    }

    #[test]
    fn the_block_says_where_what_and_with_which_key() {
        let config = Config { data_dir: "/data".into(), ..defaults() };
        let text =
            block(&config, &["127.0.0.1:4711".parse().unwrap()], &at("127.0.0.1:4712", "127.0.0.1:4713"));
        for part in [
            "http://127.0.0.1:4711  https://127.0.0.1:4711",
            "portal        http://127.0.0.1:4711/_explorer/",
            "embedded, in /data",
            "strict",
            "throttling    off",
            "AccountEndpoint=http://127.0.0.1:4711/",
            "tables on     http://127.0.0.1:4712  https://127.0.0.1:4712",
            "TableEndpoint=http://localhost:4712/",
            "graphs on     ws://127.0.0.1:4713  wss://127.0.0.1:4713",
            "user name /dbs/DATABASE/colls/CONTAINER",
            "documents on  mongodb://127.0.0.1:4714",
            "documents with mongodb://orrery:C2y6yDjf5%2FR",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[tokio::test]
    async fn a_usual_port_that_is_taken_is_done_without_and_a_named_one_is_an_error() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = taken.local_addr().unwrap();
        let shared = ["127.0.0.1:8081".parse().unwrap()];
        let bound = bound_api(&ApiListen::Usual, at.port(), "table-listen", &shared).unwrap();
        assert!(bound.addresses.is_empty());
        let refused = bound_api(&ApiListen::At(vec![at]), 8902, "table-listen", &shared).err().unwrap();
        assert!(format!("{refused:#}").contains("--table-listen"), "{refused:#}");
        drop(taken);
        let bound = bound_api(&ApiListen::At(vec![at]), 8902, "table-listen", &shared).unwrap();
        assert_eq!(bound.addresses, [at]);
        assert!(bound_api(&ApiListen::Off, 8902, "table-listen", &shared).unwrap().addresses.is_empty());
    }

    #[test]
    fn a_key_of_ones_own_is_not_printed() {
        let mut config = Config { ephemeral: true, ..defaults() };
        config.keys.primary = "c2VjcmV0IHNlY3JldCBzZWNyZXQ=".into();
        for text in [
            block(&config, &["127.0.0.1:1".parse().unwrap()], &at("127.0.0.1:2", "127.0.0.1:3")),
            json_line(&config, &[], &Addresses::default()),
        ] {
            assert!(!text.contains("c2VjcmV0"), "{text}");
        }
    }

    #[test]
    fn the_json_line_is_one_object() {
        let line = json_line(&defaults(), &["[::1]:8081".parse().unwrap()], &Addresses::default());
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((line.lines().count(), value["listen"][0].as_str()), (1, Some("[::1]:8081")));
    }
}
