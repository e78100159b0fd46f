//! Signed requests over one keep-alive connection, which is opened again when it ends.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use orrery_server::in_process::InProcess;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::pki_types::ServerName;
use sha2::Sha256;
use tokio::net::TcpStream;

use super::direct::{DirectConnection, Wire};
use super::mongo_wire::{Credentials, MongoConnection};

/// No answer for this long is an error.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(65);
pub const API_VERSION: &str = "2020-07-15";
const TABLE_VERSION: &str = "2019-02-02";

/// What all connections share.
pub struct Target {
    pub endpoint: Uri,
    /// Requests are signed as those of tables are, under this name of the account.
    table_account: Option<String>,
    keyed: Hmac<Sha256>,
    tls: Option<Arc<rustls::ClientConfig>>,
    /// Whether calls about items go in frames of the direct protocol.
    direct: bool,
    /// Answers instead of the endpoint.
    in_process: Option<Arc<InProcess>>,
    /// Calls are commands of MongoDB, whose connections begin with who this is.
    mongo: Option<Credentials>,
}

/// One request, without date and signature.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    /// Without a leading slash. Names here are plain ASCII, so path and signed link need no escaping.
    pub path: String,
    /// What the signature names: the resource, or the parent of a feed.
    pub link: String,
    pub kind: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Bytes,
}

pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A connection of the direct protocol that several clients share, once it is open.
pub type SharedDirect = Arc<tokio::sync::Mutex<Option<Arc<DirectConnection>>>>;

pub struct Client {
    target: Arc<Target>,
    sender: Option<SendRequest<Full<Bytes>>>,
    direct: SharedDirect,
    mongo: Option<MongoConnection>,
}

impl Target {
    pub fn new(endpoint: Uri, key: &[u8], tls: Option<Arc<rustls::ClientConfig>>) -> Result<Target> {
        let keyed = Hmac::new_from_slice(key).context("the key has a wrong length")?;
        Ok(Target { endpoint, table_account: None, keyed, tls, direct: false, in_process: None, mongo: None })
    }

    /// The same for the Table protocol.
    pub fn for_tables(self, account: &str) -> Target {
        Target { table_account: Some(account.to_owned()), ..self }
    }

    /// The same for the MongoDB protocol.
    pub fn for_mongo(self, credentials: Credentials) -> Target {
        Target { mongo: Some(credentials), ..self }
    }

    /// The same, with calls about items in frames of the direct protocol.
    pub fn with_direct(self, direct: bool) -> Target {
        Target { direct, ..self }
    }

    /// The same, with calls that never leave this process.
    pub fn with_in_process(self, in_process: Option<Arc<InProcess>>) -> Target {
        Target { in_process, ..self }
    }

    fn sign(&self, call: &Call, date: &str) -> String {
        let mut mac = self.keyed.clone();
        if let Some(account) = &self.table_account {
            let content_type = call.headers.iter().find(|(name, _)| *name == "content-type");
            let content_type = content_type.map_or("", |(_, value)| value);
            let text = format!("{}\n\n{content_type}\n{date}\n/{account}/{}", call.method, call.link);
            mac.update(text.as_bytes());
            return format!("SharedKey {account}:{}", STANDARD.encode(mac.finalize().into_bytes()));
        }
        for part in [
            &call.method.as_str().to_ascii_lowercase(),
            call.kind,
            &call.link,
            &date.to_ascii_lowercase(),
            "",
        ] {
            mac.update(part.as_bytes());
            mac.update(b"\n");
        }
        let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()));
        utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
    }

    /// The request for a call, with date and signature.
    pub fn request(&self, call: &Call) -> Result<Request<Bytes>> {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let host = self.endpoint.authority().context("no host")?.as_str();
        let version = if self.table_account.is_some() { TABLE_VERSION } else { API_VERSION };
        let mut request = Request::builder()
            .method(&call.method)
            .uri(format!("/{}", call.path))
            .header(header::HOST, host)
            .header("x-ms-version", version)
            .header(header::AUTHORIZATION, self.sign(call, &date))
            .header("x-ms-date", date);
        for (name, value) in &call.headers {
            request = request.header(*name, HeaderValue::from_str(value)?);
        }
        Ok(request.body(call.body.clone())?)
    }
}

impl Client {
    pub fn new(target: Arc<Target>) -> Client {
        Client::sharing(target, SharedDirect::default())
    }

    /// A client whose frames go over a connection that others use too.
    pub fn sharing(target: Arc<Target>, direct: SharedDirect) -> Client {
        Client { target, sender: None, direct, mongo: None }
    }

    pub async fn send(&mut self, call: &Call) -> Result<Answer> {
        let sent = tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(call)).await;
        let result = sent.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {ANSWER_TIMEOUT:?}")));
        if result.is_err() {
            self.sender = None;
            self.mongo = None;
            *self.direct.lock().await = None;
        }
        result
    }

    async fn exchange(&mut self, call: &Call) -> Result<Answer> {
        if let Some(credentials) = &self.target.mongo {
            let connection = match &mut self.mongo {
                Some(connection) => connection,
                None => {
                    let opened = MongoConnection::open(wire(&self.target).await?, credentials).await?;
                    self.mongo.insert(opened)
                }
            };
            return connection.exchange(&call.body).await;
        }
        if self.target.direct && call.kind == "docs" {
            let date = httpdate::fmt_http_date(SystemTime::now());
            let authorization = self.target.sign(call, &date);
            let connection = {
                let mut open = self.direct.lock().await;
                match &*open {
                    Some(connection) => connection.clone(),
                    None => {
                        let opened = DirectConnection::open(wire(&self.target).await?).await?;
                        open.insert(Arc::new(opened)).clone()
                    }
                }
            };
            return connection.exchange(call, &authorization, &date).await;
        }
        let request = self.target.request(call)?;
        if let Some(server) = &self.target.in_process {
            return Ok(Answer::of(server.answer(request).await));
        }
        if let Some(sender) = &mut self.sender
            && sender.ready().await.is_err()
        {
            self.sender = None; // The server closed it meanwhile.
        }
        let sender = match &mut self.sender {
            Some(sender) => sender,
            None => self.sender.insert(connect(&self.target).await?),
        };
        let response = sender.send_request(request.map(Full::new)).await?;
        let (head, body) = response.into_parts();
        Ok(Answer::of(Response::from_parts(head, body.collect().await?.to_bytes())))
    }
}

async fn connect(target: &Target) -> Result<SendRequest<Full<Bytes>>> {
    handshake(TokioIo::new(wire(target).await?)).await
}

async fn wire(target: &Target) -> Result<Box<dyn Wire>> {
    let host = target.endpoint.host().context("no host")?.trim_matches(['[', ']']);
    let port = target.endpoint.port_u16().unwrap_or(if target.tls.is_some() { 443 } else { 80 });
    let tcp =
        TcpStream::connect((host, port)).await.with_context(|| format!("cannot connect to {host}:{port}"))?;
    tcp.set_nodelay(true)?;
    let Some(tls) = &target.tls else { return Ok(Box::new(tcp)) };
    let name = ServerName::try_from(host.to_owned()).context("the endpoint's host is no host name")?;
    let stream =
        tokio_rustls::TlsConnector::from(tls.clone()).connect(name, tcp).await.with_context(|| {
            format!(
                "no TLS with {host}:{port} (a self-signed certificate? give it with --ca, or try --insecure)"
            )
        })?;
    Ok(Box::new(stream))
}

async fn handshake<S>(stream: S) -> Result<SendRequest<Full<Bytes>>>
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + Send + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    // Its end shows at the next request.
    tokio::spawn(async move { drop(connection.await) });
    Ok(sender)
}

impl Answer {
    pub fn of(response: Response<Bytes>) -> Answer {
        let (head, body) = response.into_parts();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    /// Whether all was done. Batches may say inside that they were not.
    pub fn is_success(&self) -> bool {
        let inner = || String::from_utf8_lossy(&self.body).contains("HTTP/1.1 2");
        match self.status {
            202 => self.body.is_empty() || inner(),
            207 => false,
            status => status < 300,
        }
    }

    pub fn charge_ru(&self) -> f64 {
        self.header("x-ms-request-charge").and_then(|text| text.parse().ok()).unwrap_or(0.0)
    }

    /// How long the server asks to wait before trying again.
    pub fn retry_after(&self) -> Duration {
        const WAIT_MS_MAX: u64 = 30_000;
        let ms =
            self.header("x-ms-retry-after-ms").and_then(|text| text.parse::<f64>().ok()).unwrap_or(100.0);
        Duration::from_millis((ms.max(1.0) as u64).min(WAIT_MS_MAX))
    }

    pub fn message(&self) -> String {
        const MESSAGE_CHARS_MAX: usize = 300;
        let text = String::from_utf8_lossy(&self.body);
        format!("{} {}", self.status, text.chars().take(MESSAGE_CHARS_MAX).collect::<String>())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
