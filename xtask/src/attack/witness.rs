//! The other client: a process of its own that reads and writes at a fixed pace while somebody else attacks.
//!
//! It is another process so that what it measures is the server and not the threads of the attackers beside it. A
//! latency is counted from the moment the request was *due*: whoever waits for a stalled server is late with the next
//! ones too, and all of that time counts. Four clients, each with a connection of its own:
//!
//! ```text
//! reader     a point read every 5 ms                         the latency that is judged
//! writer     a small upsert every 50 ms                      none may be refused or lost
//! uploader   an item of 600 KB every second                  none may be refused
//! newcomer   connects, reads and leaves four times a second  reported
//! ```
//!
//! The parent says `phase NAME` on standard input; each phase ends with one line of JSON. `end`, or the end of the
//! input, ends the process.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use orrery_testkit::{Client, Reply};
use serde_json::{Value, json};

/// Where the witness keeps its items.
const DOCS: &str = "dbs/witness/colls/items/docs";
const COLLECTION: &str = "dbs/witness/colls/items";
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);
const READ_EVERY: Duration = Duration::from_millis(5);
const WRITE_EVERY: Duration = Duration::from_millis(50);
const UPLOAD_EVERY: Duration = Duration::from_secs(1);
const NEWCOMER_EVERY: Duration = Duration::from_millis(250);
const UPLOAD_BYTES: usize = 600_000;
/// Reasons of refusals that are kept.
const REASONS_MAX: usize = 3;

/// What one client saw in one phase.
#[derive(Debug, Default, Clone)]
pub struct Series {
    pub count: u64,
    pub p99_us: u64,
    pub max_us: u64,
    pub refused: u64,
    pub reasons: Vec<String>,
}

/// What the witness saw in one phase.
#[derive(Debug, Default, Clone)]
pub struct Phase {
    pub reader: Series,
    pub writer: Series,
    pub uploader: Series,
    pub newcomer: Series,
    /// Acknowledged writes that could not be read back.
    pub lost: u64,
}

/// The parent's side.
pub struct Witness {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Witness {
    pub fn start(address: SocketAddr) -> Result<Witness> {
        prepare(address)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["attack-witness", &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the witness")?;
        let answers = BufReader::new(child.stdout.take().context("no output of the witness")?);
        let orders = child.stdin.take();
        Ok(Witness { child, orders, answers })
    }

    pub fn begin(&mut self, phase: &str) -> Result<()> {
        let orders = self.orders.as_mut().context("the witness has ended")?;
        Ok(writeln!(orders, "phase {phase}")?)
    }

    /// Ends the phase and gives what was seen.
    pub fn finish(&mut self) -> Result<Phase> {
        self.begin("none")?;
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            bail!("the witness ended");
        }
        let value: Value = serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?;
        Ok(Phase {
            reader: Series::read(&value["reader"]),
            writer: Series::read(&value["writer"]),
            uploader: Series::read(&value["uploader"]),
            newcomer: Series::read(&value["newcomer"]),
            lost: value["lost"].as_u64().unwrap_or(0),
        })
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

fn prepare(address: SocketAddr) -> Result<()> {
    let mut client = Client::new(address);
    let taken = |reply: Reply| match reply.status {
        201 | 409 => Ok(()),
        status => bail!("the witness's container: {status} {}", reply.text()),
    };
    taken(client.post("dbs", "", "dbs", &[], r#"{"id":"witness"}"#)?)?;
    let container = r#"{"id":"items","partitionKey":{"paths":["/id"],"kind":"Hash"}}"#;
    taken(client.post("dbs/witness/colls", "dbs/witness", "colls", &[], container)?)?;
    upsert(&mut client, "read", 1, "")?.expect_status_of(&[200, 201])?;
    Ok(())
}

trait ExpectStatus {
    fn expect_status_of(self, statuses: &[u16]) -> Result<Reply>;
}

impl ExpectStatus for Reply {
    fn expect_status_of(self, statuses: &[u16]) -> Result<Reply> {
        if !statuses.contains(&self.status) {
            bail!("{}: {}", self.status, self.text().chars().take(200).collect::<String>());
        }
        Ok(self)
    }
}

fn read(client: &mut Client, id: &str) -> Result<Reply> {
    let path = format!("{DOCS}/{id}");
    let key = format!("[\"{id}\"]");
    client.get(&path, &path, "docs", &[("x-ms-documentdb-partitionkey", &key)])?.expect_status_of(&[200])
}

fn upsert(client: &mut Client, id: &str, number: u64, filler: &str) -> Result<Reply> {
    let key = format!("[\"{id}\"]");
    let headers = [("x-ms-documentdb-partitionkey", key.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    let body = format!(r#"{{"id":"{id}","number":{number},"filler":"{filler}"}}"#);
    client.post(DOCS, COLLECTION, "docs", &headers, &body)?.expect_status_of(&[200, 201])
}

/// A point read and a write on a connection that is made for them: how a health check of ours looks.
pub fn probe(address: SocketAddr, patience: Duration) -> Result<()> {
    let mut client = Client::new(address).with_timeout(patience);
    read(&mut client, "read")?;
    upsert(&mut client, "probe", 1, "").map(|_| ())
}

/// Latencies as they are collected.
#[derive(Default)]
struct Record {
    latencies_us: Vec<u64>,
    refused: u64,
    reasons: Vec<String>,
}

impl Record {
    fn json(mut self) -> Value {
        self.latencies_us.sort_unstable();
        let place = |part: f64| {
            let last = self.latencies_us.len().saturating_sub(1);
            self.latencies_us.get((last as f64 * part).round() as usize).copied().unwrap_or(0)
        };
        json!({
            "count": self.latencies_us.len(), "p99_us": place(0.99), "max_us": place(1.0),
            "refused": self.refused, "reasons": self.reasons,
        })
    }
}

impl Series {
    fn read(value: &Value) -> Series {
        let number = |name: &str| value[name].as_u64().unwrap_or(0);
        let reasons = value["reasons"].as_array().cloned().unwrap_or_default();
        Series {
            count: number("count"),
            p99_us: number("p99_us"),
            max_us: number("max_us"),
            refused: number("refused"),
            reasons: reasons.iter().filter_map(|reason| reason.as_str().map(str::to_owned)).collect(),
        }
    }
}

/// The child's side: `xtask attack-witness ADDRESS`.
pub fn main(address: &str) -> Result<()> {
    let address: SocketAddr = address.parse()?;
    let mut lines = std::io::stdin().lock().lines();
    let mut current = lines.next().transpose()?;
    let filler = "u".repeat(UPLOAD_BYTES);
    while let Some(order) = current {
        match order.strip_prefix("phase ") {
            Some("none") => {
                current = lines.next().transpose()?;
                continue;
            }
            Some(_) => {}
            None => return Ok(()),
        }
        let over = AtomicBool::new(false);
        // Numbers of a later phase are larger than those of any before it.
        let base = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let mut written = 0;
        let (next, [reader, writer, uploader, newcomer]) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut client = Client::new(address).with_timeout(ANSWER_TIME_MAX);
                paced(&over, READ_EVERY, |_| read(&mut client, "read").map(drop))
            });
            let writer = scope.spawn(|| {
                let mut client = Client::new(address).with_timeout(ANSWER_TIME_MAX);
                paced(&over, WRITE_EVERY, |number| {
                    upsert(&mut client, "written", base + number, "")?;
                    written = base + number;
                    Ok(())
                })
            });
            let uploader = scope.spawn(|| {
                let mut client = Client::new(address).with_timeout(ANSWER_TIME_MAX);
                paced(&over, UPLOAD_EVERY, |number| upsert(&mut client, "large", number, &filler).map(drop))
            });
            let newcomer = scope.spawn(|| {
                let mut client = Client::new(address).with_timeout(ANSWER_TIME_MAX);
                paced(&over, NEWCOMER_EVERY, |_| {
                    client.disconnect();
                    read(&mut client, "read").map(drop)
                })
            });
            let next = lines.next().transpose();
            over.store(true, Relaxed);
            (next, [reader, writer, uploader, newcomer].map(|thread| thread.join().expect("no panic")))
        });
        let lost = u64::from(written > 0 && !holds(address, written));
        let answer = json!({
            "reader": reader.json(), "writer": writer.json(), "uploader": uploader.json(),
            "newcomer": newcomer.json(), "lost": lost,
        });
        println!("{answer}");
        current = next?;
    }
    Ok(())
}

/// Calls `act` at a fixed pace until it is over; a stall delays what follows, and that counts.
fn paced(over: &AtomicBool, every: Duration, mut act: impl FnMut(u64) -> Result<()>) -> Record {
    let mut record = Record::default();
    let started = Instant::now();
    let mut number = 0;
    while !over.load(Relaxed) {
        let due = started + every.mul_f64(number as f64);
        number += 1;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        if let Err(error) = act(number) {
            // No answer in time is no refusal: it is a latency, and judged as one.
            record.refused += u64::from(!is_late(&error));
            let reason = format!("{error:#}");
            if record.reasons.len() < REASONS_MAX && !record.reasons.contains(&reason) {
                record.reasons.push(reason);
            }
        }
        record.latencies_us.push(due.elapsed().as_micros() as u64);
    }
    record
}

fn is_late(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

/// Whether the last acknowledged write is there. One that was cut may have been carried out after it; a server that is
/// still recovering is asked again.
fn holds(address: SocketAddr, written: u64) -> bool {
    let deadline = Instant::now() + ANSWER_TIME_MAX;
    loop {
        let mut client = Client::new(address).with_timeout(ANSWER_TIME_MAX);
        match read(&mut client, "written").and_then(|reply| reply.json()) {
            Ok(item) => return item["number"].as_u64().is_some_and(|number| number >= written),
            Err(_) if Instant::now() < deadline => std::thread::sleep(NEWCOMER_EVERY),
            // Nobody can say; that it does not answer is found elsewhere.
            Err(_) => return true,
        }
    }
}
