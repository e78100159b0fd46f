//! Calls about items as frames of the direct protocol, one at a time over one connection.
//!
//! The frames go to the endpoint itself, which is where this server gives its addresses; everything that is not about items
//! goes over HTTP as always. What the report wants of an answer is given under the names of the headers.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::client::{API_VERSION, Answer, Call};

const DOCUMENT: u16 = 3;
/// Tokens of requests.
const AUTHORIZATION: u16 = 0x01;
const PAYLOAD_PRESENT: u16 = 0x02;
const DATE: u16 = 0x03;
const PAGE_SIZE: u16 = 0x04;
const REPLICA_PATH: u16 = 0x13;
const NAMES: [u16; 3] = [0x15, 0x16, 0x17];
const PARTITION_KEY: u16 = 0x2B;
const TRANSPORT_REQUEST_ID: u16 = 0x4D;
const IS_BATCH_ATOMIC: u16 = 0x73;
/// Tokens of answers.
const RETRY_AFTER: u16 = 0x0C;
const CHARGE: u16 = 0x15;
/// No answer of this server has a longer frame, or a longer payload.
const FRAME_BYTES_MAX: usize = 1024 * 1024;
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Both directions of a connection.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire for S {}

pub struct DirectConnection {
    wire: Box<dyn Wire>,
    requests: u32,
}

impl DirectConnection {
    pub async fn open(mut wire: Box<dyn Wire>) -> Result<DirectConnection> {
        let mut hello = Frame::new(0, 0);
        hello.number(0, 1);
        hello.short(1, API_VERSION);
        hello.short(2, concat!("orrery-workload/", env!("CARGO_PKG_VERSION")));
        wire.write_all(&hello.finish(&[])).await?;
        wire.flush().await?;
        let length = wire.read_u32_le().await.context("the server does not speak the direct protocol")?;
        let status = wire.read_u32_le().await?;
        let mut rest = vec![0; bounded(length, FRAME_BYTES_MAX)?.saturating_sub(8)];
        wire.read_exact(&mut rest).await?;
        if status != 200 {
            bail!("the server refused the connection with {status}");
        }
        Ok(DirectConnection { wire, requests: 0 })
    }

    /// Sends a call and waits for its answer.
    pub async fn exchange(&mut self, call: &Call, authorization: &str, date: &str) -> Result<Answer> {
        self.requests = self.requests.wrapping_add(1);
        let bytes = request(call, authorization, date, self.requests)?;
        self.wire.write_all(&bytes).await?;
        self.wire.flush().await?;
        let length = bounded(self.wire.read_u32_le().await?, FRAME_BYTES_MAX)?;
        let status = self.wire.read_u32_le().await?;
        let mut rest = vec![0; length.saturating_sub(8)];
        self.wire.read_exact(&mut rest).await?;
        let (headers, has_payload) = read_tokens(rest.get(16..).unwrap_or_default())?;
        let mut body = Vec::new();
        if has_payload {
            body = vec![0; bounded(self.wire.read_u32_le().await?, PAYLOAD_BYTES_MAX)?];
            self.wire.read_exact(&mut body).await?;
        }
        Ok(Answer { status: u16::try_from(status).unwrap_or(0), headers, body: Bytes::from(body) })
    }
}

fn bounded(length: u32, max: usize) -> Result<usize> {
    let length = length as usize;
    if length > max {
        bail!("the server announced {length} bytes");
    }
    Ok(length)
}

fn request(call: &Call, authorization: &str, date: &str, number: u32) -> Result<Vec<u8>> {
    let header =
        |name: &str| call.headers.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str());
    let is_feed = call.path.ends_with("/docs");
    let operation = match call.method {
        Method::GET if is_feed => 0x04,
        Method::GET => 0x03,
        Method::PUT => 0x06,
        Method::PATCH => 0x02,
        Method::DELETE => 0x05,
        _ if header("x-ms-documentdb-isquery").is_some() => 0x0F,
        _ if header("x-ms-cosmos-is-batch-request").is_some() => 0x25,
        _ if header("x-ms-documentdb-is-upsert").is_some() => 0x13,
        _ => 0x01,
    };
    let mut frame = Frame::new(DOCUMENT, operation);
    frame.text(AUTHORIZATION, authorization);
    frame.byte(PAYLOAD_PRESENT, u8::from(!call.body.is_empty()));
    frame.short(DATE, date);
    frame.text(REPLICA_PATH, "/apps/orrery/services/workload/partitions/0/replicas/1p");
    // dbs/{}/colls/{}/docs/{}
    for (id, name) in NAMES.into_iter().zip(call.path.split('/').skip(1).step_by(2)) {
        frame.text(id, name);
    }
    if let Some(key) = header("x-ms-documentdb-partitionkey") {
        frame.text(PARTITION_KEY, key);
    }
    if let Some(count) = header("x-ms-max-item-count") {
        frame.number(PAGE_SIZE, count.parse().context("a page size is no number")?);
    }
    if header("x-ms-cosmos-batch-atomic").is_some() {
        frame.byte(IS_BATCH_ATOMIC, 1);
    }
    frame.number(TRANSPORT_REQUEST_ID, number);
    Ok(frame.finish(&call.body))
}

/// A request in the making.
struct Frame(Vec<u8>);

impl Frame {
    fn new(resource_type: u16, operation: u16) -> Frame {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&resource_type.to_le_bytes());
        bytes.extend_from_slice(&operation.to_le_bytes());
        bytes.extend_from_slice(&[0; 16]);
        Frame(bytes)
    }

    fn token(&mut self, id: u16, kind: u8) {
        self.0.extend_from_slice(&id.to_le_bytes());
        self.0.push(kind);
    }

    fn byte(&mut self, id: u16, value: u8) {
        self.token(id, 0x00);
        self.0.push(value);
    }

    fn number(&mut self, id: u16, value: u32) {
        self.token(id, 0x02);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Of texts that are always short.
    fn short(&mut self, id: u16, text: &str) {
        self.token(id, 0x07);
        self.0.push(text.len() as u8);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn text(&mut self, id: u16, text: &str) {
        self.token(id, 0x08);
        self.0.extend_from_slice(&(text.len() as u16).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn finish(mut self, payload: &[u8]) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        if !payload.is_empty() {
            self.0.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            self.0.extend_from_slice(payload);
        }
        self.0
    }
}

/// What the report wants, and whether a payload follows.
fn read_tokens(mut rest: &[u8]) -> Result<(HeaderMap, bool)> {
    let (mut headers, mut has_payload) = (HeaderMap::new(), false);
    while let [low, high, kind, after @ ..] = rest {
        let (width, counted) = match kind {
            0x00 => (1, 0),
            0x01 => (2, 0),
            0x02 | 0x03 | 0x0D => (4, 0),
            0x04 | 0x05 | 0x0E => (8, 0),
            0x06 => (16, 0),
            0x07 | 0x0A => (0, 1),
            0x08 | 0x0B => (0, 2),
            0x09 | 0x0C => (0, 4),
            _ => bail!("an answer has a token of the unknown type {kind}"),
        };
        let count = after.get(..counted).context("an answer ends within a token")?;
        let length = width + count.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let end = counted.checked_add(length).context("an answer has a token without end")?;
        let value = after.get(counted..end).context("an answer ends within a token")?;
        match (u16::from_le_bytes([*low, *high]), value) {
            (0, [present]) => has_payload = *present != 0,
            (CHARGE, value) if value.len() == 8 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(value);
                let charge = f64::from_le_bytes(bytes).to_string();
                headers.insert("x-ms-request-charge", HeaderValue::from_str(&charge)?);
            }
            (RETRY_AFTER, [a, b, c, d]) => {
                let ms = u32::from_le_bytes([*a, *b, *c, *d]);
                headers.insert("x-ms-retry-after-ms", HeaderValue::from(ms));
            }
            _ => {}
        }
        rest = &after[end..];
    }
    Ok((headers, has_payload))
}
