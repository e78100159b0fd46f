//! What an attack is, and what an attacker has at hand: connections that end with the attack, signatures, a seed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use orrery_testkit::{Client, Random};

use super::victim::{Setup, USUAL};
use crate::Context;

/// One line of the table: an attack, what it is tried on, who carries it out and how long.
pub struct Attack {
    pub name: &'static str,
    /// What the attackers do.
    pub purpose: &'static str,
    pub course: Course,
    /// Seconds in the short form; 0 leaves it to the long one.
    pub short_seconds: u64,
    pub long_seconds: u64,
}

pub enum Course {
    /// Attackers beside a witness, on a server that runs before, during and after.
    Beside(Beside),
    /// A trial of its own, such as starting servers on damaged files. Gives a line for the report, fails by error.
    Alone(fn(&Trial) -> Result<String>),
}

#[derive(Clone, Copy)]
pub struct Beside {
    pub setup: Setup,
    pub attackers: usize,
    /// Makes what the attack needs. The server may have seen other attacks before, or this one.
    pub prepare: fn(&mut Client) -> Result<()>,
    /// What each attacker does, over and over. Its errors are counted; being refused is the point of most.
    pub strike: fn(&mut Attacker) -> Result<()>,
    /// What must work again when it is over, besides reads and writes.
    pub check: fn(&mut Client) -> Result<()>,
}

impl Beside {
    pub const fn new(attackers: usize, strike: fn(&mut Attacker) -> Result<()>) -> Beside {
        Beside { setup: USUAL, attackers, prepare: nothing, strike, check: nothing }
    }

    pub const fn on(mut self, setup: Setup) -> Beside {
        self.setup = setup;
        self
    }

    pub const fn prepared(mut self, prepare: fn(&mut Client) -> Result<()>) -> Beside {
        self.prepare = prepare;
        self
    }

    pub const fn checked(mut self, check: fn(&mut Client) -> Result<()>) -> Beside {
        self.check = check;
        self
    }
}

fn nothing(_: &mut Client) -> Result<()> {
    Ok(())
}

impl Attack {
    /// An attack of the short form too.
    pub const fn beside(name: &'static str, purpose: &'static str, beside: Beside) -> Attack {
        Attack { name, purpose, course: Course::Beside(beside), short_seconds: 2, long_seconds: 15 }
    }

    pub const fn alone(
        name: &'static str,
        purpose: &'static str,
        trial: fn(&Trial) -> Result<String>,
    ) -> Attack {
        Attack { name, purpose, course: Course::Alone(trial), short_seconds: 2, long_seconds: 15 }
    }

    /// Seconds of the short form, 0 for none, and of the long one.
    pub const fn lasting(mut self, short: u64, long: u64) -> Attack {
        (self.short_seconds, self.long_seconds) = (short, long);
        self
    }
}

/// What a trial of its own is told.
pub struct Trial<'a> {
    pub context: &'a Context,
    pub binary: &'a Path,
    pub seed: u64,
    pub long: bool,
}

/// How often each status, or each way of being cut off, was met.
#[derive(Default)]
pub struct Tally(Mutex<BTreeMap<String, u64>>);

impl Tally {
    pub fn count(&self, what: impl Into<String>) {
        *self.0.lock().expect("no panic while counting").entry(what.into()).or_default() += 1;
    }

    pub fn text(&self) -> String {
        let counts = self.0.lock().expect("no panic while counting");
        counts.iter().map(|(what, count)| format!("{what} ×{count}")).collect::<Vec<_>>().join(", ")
    }
}

/// Lowers the priority of an attacker's thread. Real attackers have processors of their own; here they would take
/// from the server and from the witness what no attack over a network takes. They are left enough to keep the server
/// busy.
#[cfg(target_os = "linux")]
pub fn make_room() {
    const NICE: libc::c_int = 5;
    // SAFETY: system calls without pointers. On Linux they are about the calling thread alone.
    #[allow(unsafe_code)]
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, libc::getpriority(libc::PRIO_PROCESS, 0) + NICE);
    }
}

#[cfg(not(target_os = "linux"))]
pub fn make_room() {}

pub struct Attacker<'a> {
    pub address: SocketAddr,
    pub random: Random,
    pub until: Instant,
    pub tally: &'a Tally,
    client: Client,
    wire: Option<Wire>,
}

impl<'a> Attacker<'a> {
    pub fn new(
        address: SocketAddr,
        number: usize,
        seed: u64,
        until: Instant,
        tally: &'a Tally,
    ) -> Attacker<'a> {
        let random = Random::new(seed.wrapping_add(number as u64));
        Attacker { address, random, until, tally, client: Client::new(address), wire: None }
    }

    pub fn over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Waits until the attack is over.
    pub fn linger(&self) {
        std::thread::sleep(self.until.saturating_duration_since(Instant::now()));
    }

    /// Waits for a while, or until the attack is over.
    pub fn pause(&self, time: Duration) {
        std::thread::sleep(time.min(self.until.saturating_duration_since(Instant::now())));
    }

    pub fn connect(&self) -> Result<Wire> {
        Wire::connect(self.address, self.until)
    }

    /// The client whose signatures are used.
    pub fn signer(&self) -> &Client {
        &self.client
    }

    /// A signed request on the attacker's own connection, and the status of its answer, whose body is thrown away.
    pub fn ask(&mut self, request: &Request, body: &[u8]) -> Result<u16> {
        let Request { method, path, link, kind, headers } = request;
        let head = self.client.head(method, path, link, kind, headers, body.len());
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => self.connect()?,
        };
        wire.send(head.as_bytes())?;
        wire.send(body)?;
        let status = wire.answer()?;
        self.tally.count(status.to_string());
        self.wire = Some(wire);
        Ok(status)
    }

    /// A query over the container that most attacks use.
    pub fn query(&mut self, sql: &str, parameters: serde_json::Value) -> Result<u16> {
        let body = serde_json::json!({"query": sql, "parameters": parameters}).to_string();
        self.ask(&Request::query("dbs/attack/colls/items"), body.as_bytes())
    }
}

/// Where a request goes; what it says is extra.
pub struct Request {
    pub method: &'static str,
    pub path: String,
    pub link: String,
    pub kind: &'static str,
    pub headers: Vec<(&'static str, &'static str)>,
}

impl Request {
    /// A query of the partition key that all items of the attacks have, so that the server does all of it.
    pub fn query(container: &str) -> Request {
        Request {
            method: "POST",
            path: format!("{container}/docs"),
            link: container.to_owned(),
            kind: "docs",
            headers: vec![
                ("content-type", "application/query+json"),
                ("x-ms-documentdb-isquery", "true"),
                ("x-ms-documentdb-partitionkey", "[\"p\"]"),
                ("x-ms-max-item-count", "-1"),
            ],
        }
    }

    /// An upsert under one partition key for all.
    pub fn upsert(container: &str) -> Request {
        Request {
            headers: vec![("x-ms-documentdb-partitionkey", "[\"p\"]"), ("x-ms-documentdb-is-upsert", "true")],
            ..Request::query(container)
        }
    }
}

/// A connection that gives up when the attack is over.
pub struct Wire {
    stream: TcpStream,
    until: Instant,
    /// Read but not looked at.
    left: Vec<u8>,
}

const CONNECT_TIME_MAX: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 64 * 1024;

impl Wire {
    pub fn connect(address: SocketAddr, until: Instant) -> Result<Wire> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIME_MAX)?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, until, left: Vec::new() })
    }

    /// What is left of the attack, as a socket's timeout, which must not be zero.
    fn patience(&self) -> Option<Duration> {
        Some(self.until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.set_write_timeout(self.patience())?;
        Ok(self.stream.write_all(bytes)?)
    }

    /// Some bytes, or none at the end of the stream.
    pub fn receive(&mut self) -> Result<Vec<u8>> {
        if !self.left.is_empty() {
            return Ok(std::mem::take(&mut self.left));
        }
        self.stream.set_read_timeout(self.patience())?;
        let mut buffer = vec![0; READ_BYTES];
        let count = self.stream.read(&mut buffer)?;
        buffer.truncate(count);
        Ok(buffer)
    }

    /// Whatever has arrived, without waiting for more; false when the other side has gone.
    pub fn drain(&mut self) -> bool {
        self.left.clear();
        if self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let mut buffer = [0; READ_BYTES];
        let alive = loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => break false,
                Ok(_) => {}
                Err(error) => break error.kind() == ErrorKind::WouldBlock,
            }
        };
        self.stream.set_nonblocking(false).is_ok() && alive
    }

    /// The status of the next answer of HTTP/1.1; its body is read and thrown away.
    pub fn answer(&mut self) -> Result<u16> {
        let mut head = Vec::new();
        let end = loop {
            if let Some(end) = find(&head, b"\r\n\r\n") {
                break end + 4;
            }
            let bytes = self.receive()?;
            if bytes.is_empty() || head.len() > READ_BYTES {
                bail!("no head of an answer");
            }
            head.extend(bytes);
        };
        let body = head.split_off(end);
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
        let Some(status) = status else { bail!("no status: {text}") };
        let header = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
        };
        if let Some(length) = header("content-length:") {
            self.skip(body, length.parse()?)?;
        } else if header("transfer-encoding:").is_some() {
            // Only the end of the last chunk matters, and attackers send one request after the other.
            let mut tail = body;
            while !tail.ends_with(b"0\r\n\r\n") {
                let bytes = self.receive()?;
                if bytes.is_empty() {
                    bail!("cut off inside an answer");
                }
                tail.drain(..tail.len().saturating_sub(8));
                tail.extend(bytes);
            }
        }
        Ok(status)
    }

    fn skip(&mut self, mut bytes: Vec<u8>, length: u64) -> Result<()> {
        let mut missing = length;
        loop {
            let here = missing.min(bytes.len() as u64);
            missing -= here;
            if missing == 0 {
                self.left = bytes.split_off(here as usize);
                return Ok(());
            }
            bytes = self.receive()?;
            if bytes.is_empty() {
                bail!("cut off inside an answer");
            }
        }
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}
