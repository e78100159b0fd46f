//! An api that only echoes behind a real server in this process, and clients made of bare sockets.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use orrery_api::{
    Answered, Attendant, ByteStream, Claim, Client, Connection, Either, HttpApi, Refusal, StreamApi,
    StreamFuture, Summary,
};
use orrery_budget::MemoryPool;
use orrery_server::api::{Apis, Backend};
use orrery_server::config::{Config, defaults};
use orrery_server::log::LogSink;
use orrery_server::metrics::StoreFigures;
use orrery_server::server::{Bound, Server};
use orrery_storage::StoreStats;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::oneshot;

pub const BODY_BYTES_MAX: usize = 100_000;

/// Answers with the body; `/slow` after a while, `/busy` when the client has gone, `/never` not at all, `/panic` with
/// a defect, `/where` with the connection, `/large` with four megabytes. Knows nobody who sends `authorization:
/// wrong`.
struct Echo;

impl HttpApi for Echo {
    fn name(&self, _: &Uri) -> &'static str {
        "echo"
    }

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn may_take_long(&self, _: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        headers.contains_key("content-length") || uri.path() == "/large"
    }

    fn refuse_head(&self, head: &Parts, _: &Connection) -> Option<Answered> {
        head.headers.get("authorization").filter(|value| *value == "wrong")?;
        let mut refusal = Response::new(Bytes::from_static(b"who are you?"));
        *refusal.status_mut() = StatusCode::UNAUTHORIZED;
        Some(echoed(refusal))
    }

    async fn handle(&self, request: Request<Bytes>, connection: Connection) -> Answered {
        match request.uri().path() {
            "/slow" => tokio::time::sleep(Duration::from_millis(300)).await,
            "/never" => std::future::pending().await,
            "/large" => {
                LARGE_MADE.fetch_add(1, Relaxed);
                return echoed(Response::new(vec![b'x'; LARGE_BYTES].into()));
            }
            "/panic" => panic!("a defect on purpose"),
            "/busy" => tokio::task::block_in_place(|| work_until_gone(&connection.client)),
            "/where" => {
                return echoed(Response::new(format!("{:?} {:?}", connection.tls, request.version()).into()));
            }
            _ => {}
        }
        echoed(Response::new(request.into_body()))
    }
}

fn echoed(response: Response<Bytes>) -> Answered {
    Answered::new(response, Summary { operation: "echo", charge_ru: 1.0, ..Summary::default() })
}

/// Shouts: answers for everything below `/shout`, beside the echo.
struct Shout;

impl HttpApi for Shout {
    fn name(&self, _: &Uri) -> &'static str {
        "shout"
    }

    fn claims(&self, uri: &Uri) -> bool {
        uri.path().starts_with("/shout")
    }

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    async fn handle(&self, request: Request<Bytes>, _: Connection) -> Answered {
        let text = String::from_utf8_lossy(request.body()).to_uppercase();
        Answered::new(Response::new(text.into()), Summary::of("shout"))
    }

    fn refuse(&self, refusal: Refusal, _: &Uri) -> Response<Bytes> {
        let (status, _, name) = refusal.parts();
        let mut response = Response::new(name.to_uppercase().into());
        *response.status_mut() = status;
        response
    }
}

/// A protocol of lines on a connection of its own: begins with `LINES`, answers each line backwards, and says goodbye
/// when the server ends. A line `loss` is answered with a status of 500.
struct Lines;

impl StreamApi for Lines {
    fn name(&self) -> &'static str {
        "lines"
    }

    fn claims(&self, first: &[u8]) -> Claim {
        let begins = b"LINES\n";
        match first.starts_with(begins) {
            true => Claim::Mine,
            false if begins.starts_with(first) => Claim::Undecided,
            false => Claim::NotMine,
        }
    }

    fn serve<'a>(
        &'a self,
        stream: Box<dyn ByteStream>,
        connection: Connection,
        attendant: Arc<dyn Attendant>,
    ) -> StreamFuture<'a> {
        Box::pin(async move {
            let (reading, mut writing) = tokio::io::split(stream);
            let mut lines = BufReader::new(reading).lines();
            loop {
                let line = tokio::select! {
                    line = lines.next_line() => line?,
                    () = attendant.ended() => {
                        writing.write_all(b"goodbye\n").await?;
                        return writing.shutdown().await;
                    }
                };
                let Some(line) = line else { return Ok(()) };
                attendant.request_began();
                let answer = match &*line {
                    "LINES" => format!("tls {}\n", connection.tls),
                    line => format!("{}\n", line.chars().rev().collect::<String>()),
                };
                writing.write_all(answer.as_bytes()).await?;
                let status = if line == "loss" { 500 } else { 200 };
                attendant.request_ended(&Summary::of("line"), status, Duration::from_millis(1));
            }
        })
    }
}

/// Large answers that were made.
pub static LARGE_MADE: AtomicUsize = AtomicUsize::new(0);
pub const LARGE_BYTES: usize = 4 * 1024 * 1024;

/// Requests whose clients went while they were worked for.
pub static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Works for a second, or until the client has gone.
fn work_until_gone(client: &Client) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        if client.is_gone() {
            ABANDONED.fetch_add(1, Relaxed);
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub struct Store {
    pub writes_stopped: AtomicBool,
    pool: Arc<MemoryPool>,
}

impl Backend for Store {
    fn memory(&self) -> &Arc<MemoryPool> {
        &self.pool
    }

    fn figures(&self) -> StoreFigures {
        let store = StoreStats { writes_stopped: self.writes_stopped.load(Relaxed), ..StoreStats::default() };
        StoreFigures { store, ..StoreFigures::default() }
    }

    fn close(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A server in this process; dropped with the runtime it runs on.
pub struct Running {
    pub address: SocketAddr,
    /// Where [`Shout`] has a port to itself.
    pub own_address: SocketAddr,
    pub pool: Arc<MemoryPool>,
    pub store: Arc<Store>,
    stop: Option<oneshot::Sender<()>>,
    done: oneshot::Receiver<usize>,
    pub runtime: tokio::runtime::Runtime,
}

impl Running {
    pub fn start(change: impl FnOnce(&mut Config)) -> Running {
        Running::with_memory(1 << 30, change)
    }

    /// A server whose requests share this much memory.
    pub fn with_memory(pool_bytes: usize, change: impl FnOnce(&mut Config)) -> Running {
        let pool = MemoryPool::new(pool_bytes);
        let mut config = defaults();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.ephemeral = true;
        change(&mut config);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = Arc::new(Store { writes_stopped: AtomicBool::new(false), pool: pool.clone() });
        let _inside = runtime.enter();
        let bound = Bound::new(&config.listen, "listen").unwrap();
        let log = LogSink::start(std::io::sink()).unwrap();
        let apis = Apis { http: Either(Shout, Echo), streams: vec![Arc::new(Lines)], portal: None };
        let own = Bound::new(&["127.0.0.1:0".parse().unwrap()], "shout-listen").unwrap();
        let own_address = own.addresses[0];
        let server =
            Server::new(bound, &config, apis, store.clone(), log).with_port(own, Apis::http(Arc::new(Shout)));
        let address = server.addresses()[0];
        let (stop, stopped) = oneshot::channel::<()>();
        let (report, done) = oneshot::channel();
        runtime.spawn(async move {
            let unfinished = server.run(async { drop(stopped.await) }).await;
            let _ = report.send(unfinished);
        });
        drop(_inside);
        Running { address, own_address, pool, store, stop: Some(stop), done, runtime }
    }

    /// Sends bytes on a connection of their own and reads until the server closes, or a while passed.
    pub fn exchange(&self, request: &[u8]) -> String {
        self.exchange_at(self.address, request)
    }

    pub fn exchange_at(&self, address: SocketAddr, request: &[u8]) -> String {
        let mut stream = connect(address);
        let _ = stream.write_all(request);
        read_available(&mut stream)
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    pub fn get(&self, path: &str) -> String {
        self.exchange(
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").as_bytes(),
        )
    }

    pub fn stop(&mut self) -> usize {
        drop(self.stop.take());
        self.runtime.block_on(async { (&mut self.done).await.unwrap() })
    }
}

pub fn read_available(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn client_config(certificate_pem: &str, alpn: &[&[u8]]) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(certificate_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Arc::new(config)
}

pub async fn text(response: Response<hyper::body::Incoming>) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

pub fn request(path: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .uri(format!("http://localhost{path}"))
        .header("host", "localhost")
        .body(Full::default())
        .unwrap()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}
