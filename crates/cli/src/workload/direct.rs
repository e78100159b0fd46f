//! Calls about items as frames of the direct protocol, several at a time over one connection.
//!
//! Whoever calls writes its frame and waits; a task reads the answers, which come in any order, and hands each to the
//! call whose number it has.
//!
//! The frames go to the endpoint itself, which is where this server gives its addresses; everything that is not about
//! items goes over HTTP as always. What the report wants of an answer is given under the names of the headers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::oneshot;

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
const ANSWERED_REQUEST: u16 = 0x35;
const RETRY_AFTER: u16 = 0x0C;
const CHARGE: u16 = 0x15;
/// No answer of this server has a longer frame, or a longer payload.
const FRAME_BYTES_MAX: usize = 1024 * 1024;
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Both directions of a connection.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Wire for S {}

/// The calls that wait for an answer, by their numbers; `None` when the connection has ended.
type Waiting = Arc<Mutex<Option<HashMap<u32, oneshot::Sender<Answer>>>>>;

pub struct DirectConnection {
    writer: tokio::sync::Mutex<WriteHalf<Box<dyn Wire>>>,
    waiting: Waiting,
    requests: AtomicU32,
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
        let (reader, writer) = tokio::io::split(wire);
        let waiting: Waiting = Arc::new(Mutex::new(Some(HashMap::new())));
        let hearing = waiting.clone();
        tokio::spawn(async move {
            // Its end, whatever the reason, shows to those who wait.
            let _ = hear(reader, &hearing).await;
            *hearing.lock().unwrap_or_else(PoisonError::into_inner) = None;
        });
        Ok(DirectConnection { writer: writer.into(), waiting, requests: AtomicU32::new(0) })
    }

    /// Sends a call and waits for its answer.
    pub async fn exchange(&self, call: &Call, authorization: &str, date: &str) -> Result<Answer> {
        let number = self.requests.fetch_add(1, Relaxed);
        let bytes = request(call, authorization, date, number)?;
        let (sender, answered) = oneshot::channel();
        match &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(waiting) => drop(waiting.insert(number, sender)),
            None => bail!("the connection has ended"),
        }
        {
            let mut writer = self.writer.lock().await;
            writer.write_all(&bytes).await?;
            writer.flush().await?;
        }
        answered.await.context("the connection has ended before the answer")
    }
}

/// Hands out answers until the connection ends.
async fn hear(reader: ReadHalf<Box<dyn Wire>>, waiting: &Waiting) -> Result<()> {
    let mut reader = tokio::io::BufReader::new(reader);
    loop {
        let length = bounded(reader.read_u32_le().await?, FRAME_BYTES_MAX)?;
        let status = reader.read_u32_le().await?;
        let mut rest = vec![0; length.saturating_sub(8)];
        reader.read_exact(&mut rest).await?;
        let Told { headers, has_payload, request } = read_tokens(rest.get(16..).unwrap_or_default())?;
        let mut body = Vec::new();
        if has_payload {
            body = vec![0; bounded(reader.read_u32_le().await?, PAYLOAD_BYTES_MAX)?];
            reader.read_exact(&mut body).await?;
        }
        let answer = Answer { status: u16::try_from(status).unwrap_or(0), headers, body: Bytes::from(body) };
        let waiting = &mut *waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = waiting.as_mut().and_then(|waiting| waiting.remove(&request)) {
            let _ = sender.send(answer);
        }
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

/// What the tokens of an answer say: what the report wants, whether a payload follows, which call it is for.
#[derive(Default)]
struct Told {
    headers: HeaderMap,
    has_payload: bool,
    request: u32,
}

fn read_tokens(mut rest: &[u8]) -> Result<Told> {
    let mut told = Told::default();
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
            (0, [present]) => told.has_payload = *present != 0,
            (ANSWERED_REQUEST, [a, b, c, d]) => told.request = u32::from_le_bytes([*a, *b, *c, *d]),
            (CHARGE, value) if value.len() == 8 => {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(value);
                let charge = f64::from_le_bytes(bytes).to_string();
                told.headers.insert("x-ms-request-charge", HeaderValue::from_str(&charge)?);
            }
            (RETRY_AFTER, [a, b, c, d]) => {
                let ms = u32::from_le_bytes([*a, *b, *c, *d]);
                told.headers.insert("x-ms-retry-after-ms", HeaderValue::from(ms));
            }
            _ => {}
        }
        rest = &after[end..];
    }
    Ok(told)
}
