//! What the index costs: bytes on disk for each item, and CPU for each write, with and without it.
//!
//! `cargo run --release -p orrery-engine --example index_bench DIR [ITEMS]`: loads items of about a kilobyte with
//! fifteen values into empty directories under `DIR`, one for each policy, with relaxed durability, so that what is
//! measured is work and not the disk. CPU is that of the whole process, background work included.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use orrery_engine::partition::wait;
use orrery_engine::{
    Account, Container, ContainerDefinition, Durability, EngineConfig, Operation, SystemEnv, Throughput,
};
use orrery_model::{KeyComponent, ParseOptions, PartitionKey, parse_json};
use orrery_storage::Store;
use orrery_storage::embedded::{EmbeddedOptions, EmbeddedStore};
use serde_json::json;

type Failure = Box<dyn std::error::Error>;

/// Writes that may be under way at the same time.
const IN_FLIGHT: usize = 64;

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
    let definition = ContainerDefinition::parse(&json, "2020-07-15")?;
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
    write(&container, 0..items, 0)?;
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
    write(&container, (0..items).step_by(4), 1)?;
    rest(store.as_ref());
    per_write("upsert that changes three values, likewise", cpu_seconds() - before, items / 4);
    account.close()?;
    Ok(rows + index + feed)
}

fn directory_bytes(directory: &Path) -> Result<u64, Failure> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { directory_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

fn write(
    container: &Arc<Container>,
    items: impl Iterator<Item = usize>,
    revision: usize,
) -> Result<(), Failure> {
    let mut under_way = std::collections::VecDeque::new();
    for n in items {
        let document: Bytes = parse_json(text(n, revision).as_bytes(), &ParseOptions::default())?.into();
        let id = format!("i{n:010}");
        let key = PartitionKey([KeyComponent::String(format!("p{:09}", n / 10))].into_iter().collect());
        under_way.push_back(container.write_item(&key, Operation::Upsert { id, document }.into()));
        if under_way.len() >= IN_FLIGHT
            && let Some(first) = under_way.pop_front()
        {
            wait(first)?;
        }
    }
    under_way.into_iter().try_for_each(|write| wait(write).map(|_| ()))?;
    Ok(())
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

fn mix(n: usize) -> u64 {
    let n = (n as u64).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (n ^ n >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) ^ n >> 32
}

/// One of so many made-up words of two to six letters: as compressible as prose.
fn word(number: u64) -> String {
    let h = mix(number as usize);
    let pair = |at: u64| {
        let letters = h >> (at * 8);
        let (consonants, vowels) = (b"bdfgklmnprstvz", b"aeiou");
        [consonants[(letters % 14) as usize], vowels[(letters / 14 % 5) as usize]]
    };
    (0..=h % 3).flat_map(pair).map(char::from).collect()
}

fn text(n: usize, revision: usize) -> String {
    let word = |n: u64| word(n % 512);
    let h = mix(n);
    let filler: Vec<String> = (0..130).map(|i| word(mix(n * 130 + i + revision * 7))).collect();
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

/// CPU time of this process, where the system tells (Linux).
fn cpu_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let fields: Vec<f64> = after_name.split(' ').map(|field| field.parse().unwrap_or_default()).collect();
    fields.get(11..13).map_or(0.0, |times| times.iter().sum::<f64>() / TICKS_PER_SECOND)
}
