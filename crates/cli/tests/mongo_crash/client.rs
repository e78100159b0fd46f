//! As little of a driver as the test needs: commands over one connection that has said who it is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use orrery_mongo::{Bson, Document, ValueRef, codec, doc};
use orrery_server::config::EMULATOR_KEY;
use sha2::{Digest, Sha256};

const OP_MSG: u32 = 2013;
const HEAD_BYTES: usize = 21;
const MESSAGE_BYTES_MAX: usize = 48 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Mongo {
    stream: TcpStream,
    requests: u32,
}

impl Mongo {
    pub fn connect(address: SocketAddr) -> Result<Mongo> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut client = Mongo { stream, requests: 0 };
        client.authenticate()?;
        Ok(client)
    }

    /// Sends a command; its reply, whatever it says. An error is one of the connection.
    pub fn command(&mut self, database: &str, mut command: Document) -> Result<Document> {
        command.push("$db", database);
        let mut message = vec![0; HEAD_BYTES];
        codec::write_document(ValueRef::OwnedDocument(&command), &mut message);
        self.requests += 1;
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_le_bytes());
        message[4..8].copy_from_slice(&self.requests.to_le_bytes());
        message[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
        self.stream.write_all(&message)?;
        let mut head = [0; HEAD_BYTES];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        ensure!((HEAD_BYTES..MESSAGE_BYTES_MAX).contains(&length), "a message of {length} bytes");
        let mut body = vec![0; length - HEAD_BYTES];
        self.stream.read_exact(&mut body)?;
        codec::read_document(&body)
            .map_err(|error| anyhow::anyhow!("a reply cannot be read: {}", error.message))
    }

    fn authenticate(&mut self) -> Result<()> {
        let bare = "n=orrery,r=clientnonce";
        let start = doc! {
            "saslStart" => 1, "mechanism" => "SCRAM-SHA-256", "payload" => binary(&format!("n,,{bare}")),
            "options" => doc! { "skipEmptyExchange" => true },
        };
        let reply = self.command("admin", start)?;
        let first = match reply.get("payload") {
            Some(Bson::Binary { bytes, .. }) => String::from_utf8_lossy(bytes).into_owned(),
            _ => anyhow::bail!("not let in: {reply:?}"),
        };
        let field = |name: &str| {
            first.split(',').find_map(|part| part.strip_prefix(name)).context("the server's first word")
        };
        let salt = STANDARD.decode(field("s=")?)?;
        let mut block = hmac(EMULATOR_KEY.as_bytes(), &[&salt[..], &[0, 0, 0, 1]].concat());
        let mut salted = block;
        for _ in 1..field("i=")?.parse::<u32>()? {
            block = hmac(EMULATOR_KEY.as_bytes(), &block);
            salted.iter_mut().zip(block).for_each(|(sum, part)| *sum ^= part);
        }
        let key = hmac(&salted, b"Client Key");
        let unproved = format!("c=biws,r={}", field("r=")?);
        let signature = hmac(&Sha256::digest(key), format!("{bare},{first},{unproved}").as_bytes());
        let proof: Vec<u8> = key.iter().zip(signature).map(|(key, sign)| key ^ sign).collect();
        let go_on = doc! {
            "saslContinue" => 1,
            "conversationId" => reply.get("conversationId").cloned().unwrap_or(Bson::Int32(1)),
            "payload" => binary(&format!("{unproved},p={}", STANDARD.encode(proof))),
        };
        let reply = self.command("admin", go_on)?;
        ensure!(is_ok(&reply), "not let in: {reply:?}");
        Ok(())
    }
}

pub fn is_ok(reply: &Document) -> bool {
    reply.get("ok").and_then(Bson::as_i64) == Some(1) && !reply.contains("writeErrors")
}

/// A reply that must say that all was done.
pub fn done(reply: Document) -> Result<Document> {
    ensure!(is_ok(&reply), "{reply:?}");
    Ok(reply)
}

fn binary(text: &str) -> Bson {
    Bson::Binary { subtype: 0, bytes: text.as_bytes().into() }
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("any length");
    mac.update(text);
    mac.finalize().into_bytes().into()
}
