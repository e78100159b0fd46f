//! Commands as messages of MongoDB's protocol, one at a time over a connection that has said who it is
//! (SCRAM-SHA-256). What the report wants of a reply is given as the status and the headers of HTTP.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use http::{HeaderMap, HeaderValue};
use orrery_mongo::{Bson, Document, ValueRef, codec, doc};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::Answer;
use super::direct::Wire;

const OP_MSG: i32 = 2013;
const HEADER_BYTES: usize = 16;
/// Flags and the kind of the one section.
const SECTION_BYTES: usize = 5;
/// No server sends a longer message.
const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// Rounds of hashing that a server may ask for.
const ITERATIONS_MAX: u32 = 1_000_000;
/// Too many requests.
const THROTTLED: i64 = 16_500;

/// Who asks; without a user nobody is asked who it is.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

pub struct MongoConnection {
    wire: Box<dyn Wire>,
    requests: AtomicU32,
}

impl MongoConnection {
    pub async fn open(wire: Box<dyn Wire>, credentials: &Credentials) -> Result<MongoConnection> {
        let mut connection = MongoConnection { wire, requests: AtomicU32::new(1) };
        connection.authenticate(credentials).await?;
        Ok(connection)
    }

    /// Sends a command and waits for its reply.
    pub async fn exchange(&mut self, command: &[u8]) -> Result<Answer> {
        let reply = self.round(command).await?;
        Ok(answer_of(&read(&reply)?, reply))
    }

    /// The bytes of the reply's document.
    async fn round(&mut self, command: &[u8]) -> Result<Bytes> {
        let number = self.requests.fetch_add(1, Relaxed);
        let length = HEADER_BYTES + SECTION_BYTES + command.len();
        let mut message = Vec::with_capacity(length);
        message.extend_from_slice(&(length as u32).to_le_bytes());
        message.extend_from_slice(&number.to_le_bytes());
        message.extend_from_slice(&0u32.to_le_bytes());
        message.extend_from_slice(&OP_MSG.to_le_bytes());
        message.extend_from_slice(&[0; SECTION_BYTES]);
        message.extend_from_slice(command);
        self.wire.write_all(&message).await?;
        self.wire.flush().await?;
        let mut head = [0; HEADER_BYTES];
        self.wire.read_exact(&mut head).await.context("the connection has ended before the reply")?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if !(HEADER_BYTES + SECTION_BYTES..=MESSAGE_BYTES_MAX).contains(&length) {
            bail!("the server announced {length} bytes");
        }
        let mut rest = vec![0; length - HEADER_BYTES];
        self.wire.read_exact(&mut rest).await?;
        if head[12..] != OP_MSG.to_le_bytes() {
            bail!("the server does not answer with OP_MSG");
        }
        Ok(Bytes::from(rest).slice(SECTION_BYTES..))
    }

    async fn authenticate(&mut self, credentials: &Credentials) -> Result<()> {
        let mut nonce = [0; 18];
        getrandom::fill(&mut nonce).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
        let user = credentials.user.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={user},r={}", STANDARD.encode(nonce));
        let start = doc! {
            "saslStart" => 1,
            "mechanism" => "SCRAM-SHA-256",
            "payload" => binary(&format!("n,,{bare}")),
            "options" => doc! { "skipEmptyExchange" => true },
            "$db" => "admin",
        };
        let reply = self.said(&start).await?;
        let first = payload(&reply)?;
        let field = |name: &str| {
            let found = first.split(',').find_map(|part| part.strip_prefix(name));
            found.context("the server's first word lacks something")
        };
        let salt = STANDARD.decode(field("s=")?).context("the salt is not base64")?;
        let iterations: u32 = field("i=")?.parse().context("the number of rounds is no number")?;
        if iterations > ITERATIONS_MAX {
            bail!("the server asks for {iterations} rounds");
        }
        let without_proof = format!("c=biws,r={}", field("r=")?);
        let salted = salted(credentials.password.as_bytes(), &salt, iterations);
        let client_key = hmac(&salted, b"Client Key");
        let stored_key = Sha256::digest(client_key);
        let signature = hmac(&stored_key, format!("{bare},{first},{without_proof}").as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(key, sign)| key ^ sign).collect();
        let last = doc! {
            "saslContinue" => 1,
            "conversationId" => reply.get("conversationId").cloned().unwrap_or(Bson::Int32(1)),
            "payload" => binary(&format!("{without_proof},p={}", STANDARD.encode(proof))),
            "$db" => "admin",
        };
        self.said(&last).await.map(drop)
    }

    async fn said(&mut self, command: &Document) -> Result<Document> {
        let mut bytes = Vec::new();
        codec::write_document(ValueRef::OwnedDocument(command), &mut bytes);
        let bytes = self.round(&bytes).await?;
        let reply = read(&bytes)?;
        let answer = answer_of(&reply, bytes);
        if !answer.is_success() {
            bail!("the server does not let us in: {}", answer.message());
        }
        Ok(reply)
    }
}

/// The document of a reply.
pub fn read(bytes: &[u8]) -> Result<Document> {
    codec::read_document(bytes).map_err(|error| anyhow::anyhow!("a reply cannot be read: {}", error.message))
}

fn binary(text: &str) -> Bson {
    Bson::Binary { subtype: 0, bytes: text.as_bytes().into() }
}

fn payload(reply: &Document) -> Result<String> {
    match reply.get("payload") {
        Some(Bson::Binary { bytes, .. }) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => bail!("the server said nothing to begin with"),
    }
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("any length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

/// PBKDF2 with one block.
fn salted(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    let mut block = hmac(password, &[salt, &[0, 0, 0, 1]].concat());
    let mut out = block;
    for _ in 1..iterations {
        block = hmac(password, &block);
        out.iter_mut().zip(block).for_each(|(sum, part)| *sum ^= part);
    }
    out
}

/// What became of a command. Where it was done the body is the reply, else the reason.
fn answer_of(reply: &Document, bytes: Bytes) -> Answer {
    let mut failure = Some(reply).filter(|reply| reply.get("ok").and_then(Bson::as_i64) != Some(1));
    if failure.is_none()
        && let Some([first, ..]) = reply.get("writeErrors").and_then(Bson::as_array)
    {
        failure = first.as_document();
    }
    let Some(failure) = failure else {
        return Answer { status: 200, headers: HeaderMap::new(), body: bytes };
    };
    let text = failure.get("errmsg").and_then(Bson::as_str).unwrap_or("no reason given").to_owned();
    let throttled = failure.get("code").and_then(Bson::as_i64) == Some(THROTTLED);
    let mut headers = HeaderMap::new();
    if let Some((_, after)) = text.split_once("RetryAfterMs=") {
        let ms: String = after.chars().take_while(char::is_ascii_digit).collect();
        if let Ok(ms) = ms.parse::<u64>() {
            headers.insert("x-ms-retry-after-ms", HeaderValue::from(ms));
        }
    }
    Answer { status: if throttled { 429 } else { 400 }, headers, body: Bytes::from(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_become_answers() {
        let status = |reply: &Document| answer_of(reply, Bytes::new()).status;
        assert_eq!(status(&doc! { "ok" => 1.0, "n" => 1 }), 200);
        assert_eq!(status(&doc! { "ok" => 0.0, "code" => 59, "errmsg" => "no such command" }), 400);
        let throttled =
            doc! { "index" => 0, "code" => 16_500, "errmsg" => "Error=16500, RetryAfterMs=34, Details=''" };
        let answer = answer_of(&doc! { "ok" => 1.0, "writeErrors" => vec![throttled.into()] }, Bytes::new());
        assert_eq!((answer.status, answer.retry_after().as_millis()), (429, 34));
    }

    #[test]
    fn passwords_are_salted_as_the_standard_says() {
        // RFC 7914, section 11.
        let made = salted(b"passwd", b"salt", 1);
        assert_eq!(made[..8], [0x55, 0xac, 0x04, 0x6e, 0x56, 0xe3, 0x08, 0x9f]);
    }
}
