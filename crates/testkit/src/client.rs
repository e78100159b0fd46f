//! A blocking client for one keep-alive connection, signed as the SDKs sign. It knows just enough HTTP/1.1 for this
//! server.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
pub use orrery_api::EMULATOR_KEY;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Largest answer a test expects.
const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;

pub struct Client {
    address: SocketAddr,
    key: Vec<u8>,
    timeout: Duration,
    stream: Option<BufReader<TcpStream>>,
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Client {
        let key = STANDARD.decode(EMULATOR_KEY).expect("a constant");
        Client { address, key, timeout: ANSWER_TIMEOUT, stream: None }
    }

    pub fn with_key(mut self, key: &[u8]) -> Client {
        self.key = key.to_vec();
        self
    }

    /// How long it waits for bytes of an answer.
    pub fn with_timeout(mut self, timeout: Duration) -> Client {
        self.timeout = timeout;
        self
    }

    /// The next request begins a connection of its own.
    pub fn disconnect(&mut self) {
        self.stream = None;
    }

    /// A signed request. `link` is what the signature names: the resource, or a feed's parent; `kind` its type
    /// (`docs`).
    pub fn send(
        &mut self,
        method: &str,
        path: &str,
        link: &str,
        kind: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Reply> {
        let mut request = self.head(method, path, link, kind, headers, body.len());
        request.push_str(body);
        self.exchange(request.as_bytes())
    }

    /// The head of a signed request that announces `length` bytes of body, with the blank line.
    pub fn head(
        &self,
        method: &str,
        path: &str,
        link: &str,
        kind: &str,
        headers: &[(&str, &str)],
        length: usize,
    ) -> String {
        let mut text = format!("{method} /{path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        for (name, value) in self.signed(method, link, kind) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {length}\r\n"));
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text
    }

    /// The headers that every signed request has, whatever the version of HTTP.
    pub fn signed(&self, method: &str, link: &str, kind: &str) -> [(&'static str, String); 3] {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let authorization = self.sign(method, kind, link, &date);
        [("x-ms-date", date), ("x-ms-version", "2020-07-15".to_owned()), ("authorization", authorization)]
    }

    pub fn get(&mut self, path: &str, link: &str, kind: &str, headers: &[(&str, &str)]) -> Result<Reply> {
        self.send("GET", path, link, kind, headers, "")
    }

    pub fn post(
        &mut self,
        path: &str,
        link: &str,
        kind: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Reply> {
        self.send("POST", path, link, kind, headers, body)
    }

    pub fn put(&mut self, path: &str, kind: &str, headers: &[(&str, &str)], body: &str) -> Result<Reply> {
        self.send("PUT", path, path, kind, headers, body)
    }

    pub fn delete(&mut self, path: &str, kind: &str, headers: &[(&str, &str)]) -> Result<Reply> {
        self.send("DELETE", path, path, kind, headers, "")
    }

    /// Bytes as they are, and the answer to them.
    pub fn exchange(&mut self, request: &[u8]) -> Result<Reply> {
        let result = self.try_exchange(request);
        if result.is_err() {
            // Whatever was on this connection cannot be matched to a request any more.
            self.stream = None;
        }
        result
    }

    fn try_exchange(&mut self, request: &[u8]) -> Result<Reply> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect_timeout(&self.address, self.timeout)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(self.timeout))?;
                stream.set_write_timeout(Some(self.timeout))?;
                self.stream.insert(BufReader::new(stream))
            }
        };
        stream.get_mut().write_all(request)?;
        let head_request = request.starts_with(b"HEAD ");
        let reply = read_reply(stream, head_request)?;
        if reply.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.stream = None;
        }
        Ok(reply)
    }

    fn sign(&self, method: &str, kind: &str, link: &str, date: &str) -> String {
        let text = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("any length is a key");
        mac.update(text.as_bytes());
        let token = format!("type=master&ver=1.0&sig={}", STANDARD.encode(mac.finalize().into_bytes()));
        utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
    }
}

fn read_reply(stream: &mut impl BufRead, head_request: bool) -> Result<Reply> {
    let mut line = String::new();
    let mut next_line = |stream: &mut dyn BufRead| -> Result<String> {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            bail!("the connection ended");
        }
        Ok(line.trim_end().to_owned())
    };
    let first = next_line(stream)?;
    let status = first
        .split(' ')
        .nth(1)
        .and_then(|text| text.parse().ok())
        .with_context(|| format!("no status: {first}"))?;
    let mut headers = Vec::new();
    loop {
        let line = next_line(stream)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut reply = Reply { status, headers, body: Vec::new() };
    let length = reply.header("content-length").map(str::parse::<usize>).transpose()?;
    if head_request || status == 204 || status == 304 {
        return Ok(reply);
    }
    match length {
        Some(length) if length <= BODY_BYTES_MAX => {
            reply.body.resize(length, 0);
            stream.read_exact(&mut reply.body)?;
        }
        Some(length) => bail!("an answer of {length} bytes"),
        None if reply.header("transfer-encoding").is_some() => loop {
            let size = usize::from_str_radix(&next_line(stream)?, 16)?;
            if reply.body.len() + size > BODY_BYTES_MAX {
                bail!("an answer beyond {BODY_BYTES_MAX} bytes");
            }
            let start = reply.body.len();
            reply.body.resize(start + size, 0);
            stream.read_exact(&mut reply.body[start..])?;
            next_line(stream)?;
            if size == 0 {
                break;
            }
        },
        None => drop(stream.read_to_end(&mut reply.body)?),
    }
    Ok(reply)
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(has, _)| has == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body).with_context(|| format!("not JSON: {}", self.text()))
    }

    pub fn expect_status(self, status: u16) -> Result<Reply> {
        if self.status != status {
            bail!("expected {status}, got {}: {}", self.status, self.text());
        }
        Ok(self)
    }
}
