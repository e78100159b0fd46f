//! Abuse of HTTP/1.1, TLS and TCP: what a stranger without a key can do.

use std::time::Duration;

use anyhow::{Result, bail};
use orrery_testkit::Client;

use super::attacker::{Attack, Attacker, Beside, Request, Trial, Wire};
use super::victim::{Setup, USUAL, Victim};
use super::{container, item};

/// Few connections, so that taking all of them is quick.
const FEW_CONNECTIONS: Setup = Setup { arguments: &["--connections-max", "200"], ..USUAL };

pub const ATTACKS: &[Attack] = &[
    Attack::beside("http-garbage", "bytes that are no request", Beside::new(4, garbage)),
    Attack::beside("http-half-requests", "heads and bodies that end in the middle", Beside::new(4, half)),
    Attack::beside("http-slow-heads", "300 heads, a byte at a time", Beside::new(3, slow_heads)),
    Attack::beside("http-slow-bodies", "100 signed bodies, a byte at a time", Beside::new(2, slow_bodies))
        .lasting(0, 15),
    Attack::beside("http-stalled-uploads", "4 MB announced 66 times, one byte sent", Beside::new(1, stalled)),
    Attack::beside("http-long-heads", "heads of many and of endless headers", Beside::new(4, long_heads))
        .lasting(0, 15),
    Attack::beside(
        "http-pipelining",
        "a thousand requests before the first answer",
        Beside::new(2, pipelined),
    )
    .lasting(0, 15),
    Attack::beside(
        "http-unread-answers",
        "100 readers of 4 MB pages that do not read",
        Beside::new(4, unread).prepared(large_items),
    )
    .lasting(4, 30),
    Attack::beside("http-churn", "connections that come and go", Beside::new(4, churn)).lasting(0, 15),
    Attack::beside(
        "http-vanishing",
        "clients that leave in the middle of an answer",
        Beside::new(4, vanishing).prepared(large_items),
    ),
    Attack::beside(
        "http-wrong-signatures",
        "thousands of wrong signatures",
        Beside::new(4, wrong_signatures),
    ),
    Attack::beside("tls-garbage", "half handshakes and bytes after a hello", Beside::new(4, tls_garbage))
        .lasting(0, 15),
    Attack::beside(
        "tcp-silence",
        "every connection that is allowed, and silence",
        Beside::new(1, silence).on(FEW_CONNECTIONS),
    )
    .lasting(0, 60),
    Attack::alone("http-foreign-host", "a web page that gives itself our address", foreign_host),
];

fn bytes(attacker: &mut Attacker, count: u64) -> Vec<u8> {
    (0..count).map(|_| attacker.random.next_u64() as u8).collect()
}

fn garbage(attacker: &mut Attacker) -> Result<()> {
    let count = 1 + attacker.random.below(10_000);
    let mut text = bytes(attacker, count);
    // Some begin as a request does, so that more than the first byte is looked at.
    for (byte, begin) in
        text.iter_mut().zip(*b"GET /dbs HTTP/1.1\r\n").take(attacker.random.below(20) as usize)
    {
        *byte = begin;
    }
    let mut wire = attacker.connect()?;
    wire.send(&text)?;
    attacker.pause(Duration::from_millis(attacker.random.clone().below(5)));
    attacker.tally.count(if wire.drain() { "still there" } else { "closed" });
    Ok(())
}

fn half(attacker: &mut Attacker) -> Result<()> {
    let body = r#"{"id":"x","pk":"p"}"#;
    let request = Request::upsert("dbs/attack/colls/items");
    let head =
        attacker.signer().head("POST", &request.path, &request.link, "docs", &request.headers, body.len());
    let whole = head + body;
    let length = attacker.random.below(whole.len() as u64) as usize;
    attacker.connect()?.send(&whole.as_bytes()[..length])?;
    attacker.tally.count("sent");
    Ok(())
}

/// Sends to many connections a byte each, again and again, until the attack is over.
fn drip(attacker: &Attacker, mut wires: Vec<Wire>, text: &[u8]) {
    for byte in text.iter().cycle() {
        wires.retain_mut(|wire| wire.send(&[*byte]).is_ok());
        attacker.pause(Duration::from_millis(100));
        if attacker.over() || wires.is_empty() {
            break;
        }
    }
    attacker.tally.count(format!("{} of them still there", wires.len()));
}

fn slow_heads(attacker: &mut Attacker) -> Result<()> {
    let wires = (0..100).map(|_| attacker.connect()).collect::<Result<Vec<_>>>()?;
    drip(attacker, wires, b"GET /dbs HTTP/1.1\r\nhost: localhost\r\nx-slow: aaaaaaaaaaaaaaaaaaaaaaaaaaa");
    Ok(())
}

fn slow_bodies(attacker: &mut Attacker) -> Result<()> {
    let request = Request::upsert("dbs/attack/colls/items");
    let head =
        attacker.signer().head("POST", &request.path, &request.link, "docs", &request.headers, 2_000_000);
    let mut wires = (0..50).map(|_| attacker.connect()).collect::<Result<Vec<_>>>()?;
    for wire in &mut wires {
        wire.send(head.as_bytes())?;
    }
    drip(attacker, wires, b" ");
    Ok(())
}

fn stalled(attacker: &mut Attacker) -> Result<()> {
    let head = b"POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4194304\r\n\r\n{";
    let mut wires = Vec::new();
    for _ in 0..66 {
        let mut wire = attacker.connect()?;
        wire.send(head)?;
        wires.push(wire);
    }
    attacker.linger();
    Ok(())
}

fn long_heads(attacker: &mut Attacker) -> Result<()> {
    let mut wire = attacker.connect()?;
    wire.send(b"GET /dbs HTTP/1.1\r\nhost: localhost\r\n")?;
    if attacker.random.chance(50) {
        let lines: String = (0..20_000).map(|number| format!("x-{number}: a\r\n")).collect();
        wire.send(lines.as_bytes())?;
    } else {
        wire.send(b"x-long: ")?;
        for _ in 0..100 {
            wire.send(&[b'a'; 65_536])?;
        }
    }
    wire.send(b"\r\n\r\n")?;
    let status = wire.answer()?;
    attacker.tally.count(status.to_string());
    Ok(())
}

fn pipelined(attacker: &mut Attacker) -> Result<()> {
    let head = attacker.signer().head("GET", "dbs", "", "dbs", &[], 0);
    let mut wire = attacker.connect()?;
    wire.send(head.repeat(1000).as_bytes())?;
    for _ in 0..1000 {
        let status = wire.answer()?;
        attacker.tally.count(status.to_string());
    }
    Ok(())
}

/// A page of several megabytes: as much as one answer holds.
fn large_page(attacker: &Attacker) -> Vec<u8> {
    let request = Request::query("dbs/attack/colls/large");
    let body = r#"{"query":"SELECT * FROM c","parameters":[]}"#;
    let head =
        attacker.signer().head("POST", &request.path, &request.link, "docs", &request.headers, body.len());
    (head + body).into_bytes()
}

pub fn large_items(client: &mut Client) -> Result<()> {
    container(
        client,
        r#"{"id":"large","partitionKey":{"paths":["/pk"],"kind":"Hash"},"indexingPolicy":{"indexingMode":"none","automatic":false}}"#,
    )?;
    let filler = "f".repeat(1_000_000);
    for number in 0..6 {
        item(client, "large", &format!(r#"{{"id":"{number}","pk":"p","filler":"{filler}"}}"#))?;
    }
    Ok(())
}

fn unread(attacker: &mut Attacker) -> Result<()> {
    let request = large_page(attacker);
    let mut wires = Vec::new();
    for _ in 0..25 {
        let mut wire = attacker.connect()?;
        wire.send(&request)?;
        wires.push(wire);
    }
    attacker.linger();
    Ok(())
}

fn churn(attacker: &mut Attacker) -> Result<()> {
    let mut wire = attacker.connect()?;
    if attacker.random.chance(50) {
        wire.send(b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let status = wire.answer()?;
        attacker.tally.count(status.to_string());
    }
    // Ports of connections that were closed here stay taken for a while; a machine has a few ten thousand.
    attacker.pause(Duration::from_millis(2));
    Ok(())
}

fn vanishing(attacker: &mut Attacker) -> Result<()> {
    let request = large_page(attacker);
    let mut wire = attacker.connect()?;
    wire.send(&request)?;
    if attacker.random.chance(70) {
        wire.receive()?;
        attacker.tally.count("left while reading");
    } else {
        attacker.tally.count("left at once");
    }
    Ok(())
}

fn wrong_signatures(attacker: &mut Attacker) -> Result<()> {
    let wrong = Request {
        method: "GET",
        path: "dbs/attack".to_owned(),
        link: format!("dbs/{}", attacker.random.below(1000)),
        kind: "dbs",
        headers: Vec::new(),
    };
    match attacker.ask(&wrong, b"")? {
        401 => Ok(()),
        status => bail!("a wrong signature was answered with {status}"),
    }
}

fn tls_garbage(attacker: &mut Attacker) -> Result<()> {
    // A record that says it is a handshake of a client's hello, and then what chance gives.
    let mut text = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let count = attacker.random.below(2_000);
    text.extend(bytes(attacker, count));
    let mut wire = attacker.connect()?;
    wire.send(&text)?;
    attacker.pause(Duration::from_millis(2));
    attacker.tally.count(if wire.drain() { "still there" } else { "closed" });
    Ok(())
}

fn silence(attacker: &mut Attacker) -> Result<()> {
    let wires: Vec<Wire> = (0..190).filter_map(|_| attacker.connect().ok()).collect();
    attacker.tally.count(format!("{} silent connections", wires.len()));
    attacker.linger();
    Ok(())
}

/// With the well-known key anybody can sign, a page in a browser too; only names of this machine may be served then.
fn foreign_host(trial: &Trial) -> Result<String> {
    let victim = Victim::start(trial.context, trial.binary, "foreign-host", USUAL)?;
    let mut refused = 0;
    for host in ["evil.example", "evil.example:8081", "<script>", "a b", "", "127.0.0.1.evil.example"] {
        let head = Client::new(victim.address).head("GET", "", "", "", &[], 0);
        let own = format!("host: {}\r\n", victim.address);
        let reply =
            Client::new(victim.address).exchange(head.replace(&own, &format!("host: {host}\r\n")).as_bytes());
        match reply {
            Ok(reply) if reply.status == 200 => bail!("the host `{host}` was served: {}", reply.text()),
            _ => refused += 1,
        }
    }
    for host in ["localhost", "127.0.0.1", "[::1]:8081"] {
        let head = Client::new(victim.address).head("GET", "", "", "", &[], 0);
        let own = format!("host: {}\r\n", victim.address);
        let reply = Client::new(victim.address)
            .exchange(head.replace(&own, &format!("host: {host}\r\n")).as_bytes())?;
        if reply.status != 200 {
            bail!("the host `{host}` was answered with {}", reply.status);
        }
    }
    Ok(format!("{refused} foreign names refused, ours served"))
}
