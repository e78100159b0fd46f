//! What the index costs: bytes on disk for each item, and CPU for each write, with and without it.
//!
//! `cargo run --release -p orrery-engine --example index_bench DIR [ITEMS]`: loads items of about a kilobyte with
//! fifteen values into empty directories under `DIR`, one for each policy, with relaxed durability, so that what is
//! measured is work and not the disk. CPU is that of the whole process, background work included.

mod bench_support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bench_support::{Failure, cpu_seconds, directory_bytes, mix, write_all};
use orrery_engine::block_on as wait;
use orrery_engine::{
    Account, ContainerDefinition, Durability, EngineConfig, KeyKinds, SystemEnv, Throughput,
};
use orrery_storage::Store;
use orrery_storage::embedded::{EmbeddedOptions, EmbeddedStore};
use serde_json::json;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let items: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let policies = [
        ("nothing indexed", json!({"indexingMode": "none", "automatic": false})),
        ("everything", json!({"indexingMode": "consistent"})),
        (
            "everything but the time",
            json!({"indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/_ts/?"}]}),
        ),
    ];
    println!("{items} items of {} bytes of JSON", text(1, 0).len());
    let mut bare = 0.0;
    for (number, (name, policy)) in policies.into_iter().enumerate() {
        let path = Path::new(&directory).join(format!("{number}"));
        std::fs::create_dir_all(&path)?;
        let per_item = measure(&path, items, policy, name)?;
        if number == 0 {
            bare = per_item;
        } else {
            println!("  item and index are {:.2} times the item", per_item / bare);
        }
    }
    Ok(())
}

/// Bytes of tables for each item after the load.
fn measure(path: &Path, items: usize, policy: serde_json::Value, name: &str) -> Result<f64, Failure> {
    let json = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "indexingPolicy": policy});
    let definition = ContainerDefinition::parse(&json, KeyKinds::All)?;
    let open = || -> Result<_, Failure> {
        let store = Arc::new(EmbeddedStore::open(path, EmbeddedOptions::default())?);
        let config = EngineConfig { durability: Durability::Relaxed, ..EngineConfig::default() };
        Ok((store.clone(), Account::open(store, config, Arc::new(SystemEnv::new()))?))
    };
    let (store, account) = open()?;
    let database = wait(account.create_database("bench", None))?;
    let container = wait(account.create_container(&database, definition, Some(Throughput::Manual(400))))?;
    println!("{name}");
    let per_write = |what: &str, cpu: f64, writes: usize| {
        println!("  {:>7.1} µs CPU  {what}", cpu * 1e6 / writes as f64);
    };
    let before = cpu_seconds();
    write_all(&container, (0..items).map(|n| item(n, 0)))?;
    rest(store.as_ref());
    account.close()?;
    per_write("create, with all that follows from it in the background", cpu_seconds() - before, items);
    drop((container, database, account, store));
    let tables = |tree: &str| directory_bytes(&path.join(tree)).map(|bytes| bytes as f64 / items as f64);
    let (rows, index, feed) = (tables("items")?, tables("index")?, tables("feed")?);
    println!(
        "  {rows:>7.0} bytes on disk for an item, {index:.0} for its index rows, {feed:.0} for its feed row"
    );

    let (store, account) = open()?;
    let database = account.database(orrery_engine::Ref::Name("bench"))?;
    let container = database.container(orrery_engine::Ref::Name("c"))?;
    let before = cpu_seconds();
    write_all(&container, (0..items).step_by(4).map(|n| item(n, 1)))?;
    rest(store.as_ref());
    per_write("upsert that changes three values, likewise", cpu_seconds() - before, items / 4);
    account.close()?;
    Ok(rows + index + feed)
}

/// Partition key, id and document.
fn item(n: usize, revision: usize) -> (String, String, String) {
    (format!("p{:09}", n / 10), format!("i{n:010}"), text(n, revision))
}

/// Waits until nothing is compacted any more.
fn rest(store: &EmbeddedStore) {
    let mut seen = (u64::MAX, 0);
    let mut quiet = 0;
    while quiet < 8 {
        std::thread::sleep(Duration::from_millis(500));
        let stats = store.stats();
        let now = (stats.compactions, stats.disk_bytes);
        quiet = if now == seen { quiet + 1 } else { 0 };
        seen = now;
    }
}

/// One of so many made-up words of two to six letters: as compressible as prose.
fn word(number: u64) -> String {
    let h = mix(number);
    let pair = |at: u64| {
        let letters = h >> (at * 8);
        let (consonants, vowels) = (b"bdfgklmnprstvz", b"aeiou");
        [consonants[(letters % 14) as usize], vowels[(letters / 14 % 5) as usize]]
    };
    (0..=h % 3).flat_map(pair).map(char::from).collect()
}

fn text(n: usize, revision: usize) -> String {
    let word = |n: u64| word(n % 512);
    let h = mix(n as u64);
    let filler: Vec<String> = (0..130).map(|i| word(mix((n * 130 + i + revision * 7) as u64))).collect();
    format!(
        r#"{{"id":"i{n:010}","pk":"p{:09}","n":{},"city":"city-{:02}","email":"u{n:010}@example.com","rev":{revision},"hits":0,"address":{{"street":"{} street {}","zip":"{:05}","floor":{},"lat":{}.{:04},"owner":{}}},"tags":["{}","{}","{}"],"ts":"2026-11-{:02}T{:02}:{:02}:{:02}.000Z","text":"{}"}}"#,
        n / 10,
        h % 1_000_000,
        n % 50,
        word(h >> 8),
        h % 997,
        h % 99_991,
        h % 40,
        h % 90,
        h % 10_000,
        h & 1 == 0,
        word(h >> 12),
        word(h >> 16),
        word(h >> 20),
        1 + h % 28,
        h % 24,
        h % 60,
        revision % 60,
        filler.join(" ")
    )
}
