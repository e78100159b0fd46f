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
use orrery_budget::MemoryPool;
use orrery_server::api::{Api, Backend, Client, ConnectionInfo, Summary};
use orrery_server::config::{Config, settings};
use orrery_server::log::LogSink;
use orrery_server::metrics::StoreFigures;
use orrery_server::server::{Bound, Server};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::sync::oneshot;

pub const BODY_BYTES_MAX: usize = 100_000;

/// Answers with the body; `/slow` after a while, `/busy` when the client has gone, `/never` not at all, `/panic` with a defect,
/// `/where` with the connection, `/large` with four megabytes. Knows nobody who sends `authorization: wrong`.
struct Echo {
    pool: Arc<MemoryPool>,
}

#[derive(Clone)]
struct Came(ConnectionInfo);

impl Api for Echo {
    const NAME: &'static str = "echo";

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn attach(&self, request: &mut Request<Bytes>, connection: ConnectionInfo, client: Client) {
        request.extensions_mut().insert(Came(connection));
        request.extensions_mut().insert(client);
    }

    fn memory(&self) -> &Arc<MemoryPool> {
        &self.pool
    }

    fn may_take_long(&self, _: &Method, uri: &Uri, headers: &HeaderMap) -> bool {
        headers.contains_key("content-length") || uri.path() == "/large"
    }

    fn refuse_head(&self, head: &Parts) -> Option<Response<Bytes>> {
        head.headers.get("authorization").filter(|value| *value == "wrong")?;
        let mut refusal = Response::new(Bytes::from_static(b"who are you?"));
        *refusal.status_mut() = StatusCode::UNAUTHORIZED;
        Some(refusal)
    }

    async fn handle(&self, request: Request<Bytes>) -> Response<Bytes> {
        match request.uri().path() {
            "/slow" => tokio::time::sleep(Duration::from_millis(300)).await,
            "/never" => std::future::pending().await,
            "/large" => {
                LARGE_MADE.fetch_add(1, Relaxed);
                return Response::new(vec![b'x'; LARGE_BYTES].into());
            }
            "/panic" => panic!("a defect on purpose"),
            "/busy" => tokio::task::block_in_place(|| work_until_gone(&request)),
            "/where" => {
                let tls = request.extensions().get::<Came>().map(|came| came.0.tls);
                return Response::new(format!("{tls:?} {:?}", request.version()).into());
            }
            _ => {}
        }
        Response::new(request.into_body())
    }

    fn summary(&self, _: &Response<Bytes>) -> Summary {
        Summary { operation: "echo", charge_ru: 1.0, ..Summary::default() }
    }
}

/// Large answers that were made.
pub static LARGE_MADE: AtomicUsize = AtomicUsize::new(0);
pub const LARGE_BYTES: usize = 4 * 1024 * 1024;

/// Requests whose clients went while they were worked for.
pub static ABANDONED: AtomicUsize = AtomicUsize::new(0);

/// Works for a second, or until the client has gone.
fn work_until_gone(request: &Request<Bytes>) {
    let client = request.extensions().get::<Client>().unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(1) {
        if client.is_gone() {
            ABANDONED.fetch_add(1, Relaxed);
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[derive(Default)]
pub struct Store {
    pub writes_stopped: AtomicBool,
}

impl Backend for Store {
    fn figures(&self) -> StoreFigures {
        StoreFigures { writes_stopped: self.writes_stopped.load(Relaxed), ..StoreFigures::default() }
    }

    fn close(&self) -> anyhow::Result<()> {
        Ok(())
    }
}

/// A server in this process; dropped with the runtime it runs on.
pub struct Running {
    pub address: SocketAddr,
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
        let mut config = settings::defaults();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.ephemeral = true;
        change(&mut config);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let store = Arc::new(Store::default());
        let _inside = runtime.enter();
        let bound = Bound::new(&config.listen).unwrap();
        let log = LogSink::start(std::io::sink()).unwrap();
        let server = Server::new(bound, &config, Echo { pool: pool.clone() }, store.clone(), log);
        let address = server.addresses()[0];
        let (stop, stopped) = oneshot::channel::<()>();
        let (report, done) = oneshot::channel();
        runtime.spawn(async move {
            let unfinished = server.run(async { drop(stopped.await) }).await;
            let _ = report.send(unfinished);
        });
        drop(_inside);
        Running { address, pool, store, stop: Some(stop), done, runtime }
    }

    /// Sends bytes on a connection of their own and reads until the server closes, or a while passed.
    pub fn exchange(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(request);
        read_available(&mut stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
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
