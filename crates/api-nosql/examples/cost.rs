//! What a request costs inside the API and the engine, without any network: `cargo run --release --example cost`.
//!
//! Prints the processor time per point read and per upsert on a memory store, all threads counted, less what it takes
//! to build the request. Where the system does not tell the processor time of a process, elapsed time stands in.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use serde_json::Value;
use support::Client;

const ROUNDS: u32 = 200_000;

fn main() {
    let client = Client::new(&Value::Null);
    client.send("POST", "/dbs", &[], br#"{"id":"d"}"#.to_vec(), "primary");
    let container = br#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#.to_vec();
    client.send("POST", "/dbs/d/colls", &[], container, "primary");
    let key = [("x-ms-documentdb-partitionkey".to_owned(), r#"["a"]"#.to_owned())];
    let filler = "x".repeat(900);
    let item = format!(r#"{{"id":"item-1","pk":"a","n":1,"filler":"{filler}"}}"#).into_bytes();
    client.send("POST", "/dbs/d/colls/c/docs", &key, item.clone(), "primary");

    measure(&client, "point read, 1 KB", "GET", "/dbs/d/colls/c/docs/item-1", &key, Vec::new());
    let upsert = [key[0].clone(), ("x-ms-documentdb-is-upsert".to_owned(), "true".to_owned())];
    measure(&client, "upsert, 1 KB", "POST", "/dbs/d/colls/c/docs", &upsert, item);
}

fn measure(
    client: &Client,
    what: &str,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: Vec<u8>,
) {
    let request = client.request(method, path, headers, body, "primary");
    let build = time(|| drop(std::hint::black_box(support::again(&request))));
    let whole = time(|| {
        let reply = client.answer(support::again(&request));
        assert!(reply.status().is_success(), "{}", reply.status());
    });
    let each = (whole.saturating_sub(build)).as_nanos() as f64 / f64::from(ROUNDS) / 1000.0;
    println!("{what}: {each:.2} µs");
}

fn time(mut action: impl FnMut()) -> Duration {
    let started = now();
    for _ in 0..ROUNDS {
        action();
    }
    now().saturating_sub(started)
}

/// Processor time of this process so far, from the fields of `/proc/self/stat` (hundredths of a second).
fn now() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold spaces; the fields after it are numbers.
    let mut fields = stat.rsplit(')').next().unwrap_or("").split_whitespace().skip(11);
    let mut ticks = || fields.next().and_then(|field| field.parse::<u64>().ok());
    match (ticks(), ticks()) {
        (Some(user), Some(system)) => Duration::from_millis((user + system) * 10),
        _ => START.get_or_init(Instant::now).elapsed(),
    }
}

static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
