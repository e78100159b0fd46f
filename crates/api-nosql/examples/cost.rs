//! What a request costs inside the API and the engine, without any network: `cargo run --release --example cost`.
//!
//! Prints the time per point read and per upsert on a memory store, less the time it takes to build the request.

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
    let started = Instant::now();
    for _ in 0..ROUNDS {
        action();
    }
    started.elapsed()
}
