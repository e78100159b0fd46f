//! What items cost inside the engine, without a network: nanoseconds per operation on the calling thread.
//!
//! `cargo run --release -p orrery-engine --example items_bench [ITEMS] [DIR]`: a store in memory, or the embedded one
//! in `DIR` (an empty directory) with relaxed durability, so that what is measured is work and not the disk.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use orrery_engine::block_on as wait;
use orrery_engine::{
    Account, ContainerDefinition, Durability, EngineConfig, KeyKinds, Operation, PageRequest, ReadOptions,
    Scope, SystemEnv, Throughput,
};
use orrery_model::{KeyComponent, ParseOptions, PartitionKey, parse_json};
use orrery_storage::embedded::{EmbeddedOptions, EmbeddedStore};
use orrery_storage::{MemoryStore, Store};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let items: usize = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let store: Arc<dyn Store> = match arguments.next() {
        Some(dir) => Arc::new(EmbeddedStore::open(dir, EmbeddedOptions::default())?),
        None => Arc::new(MemoryStore::new()),
    };
    let config = EngineConfig { durability: Durability::Relaxed, ..EngineConfig::default() };
    let account = Account::open(store, config, Arc::new(SystemEnv::new()))?;
    let database = wait(account.create_database("bench", None))?;
    let json =
        serde_json::json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let definition = ContainerDefinition::parse(&json, KeyKinds::All)?;
    let container = wait(account.create_container(&database, definition, Some(Throughput::Manual(400))))?;

    let key =
        |n: usize| PartitionKey([KeyComponent::String(format!("key-{}", n % 1000))].into_iter().collect());
    let document = |n: usize, value: usize| -> Bytes {
        let filler: String =
            (0..12).map(|i| format!(r#","field{i}":"{n:08}-{value:08}-some text of an item""#)).collect();
        let text = format!(
            r#"{{"id":"item-{n}","pk":"key-{}","n":{value},"flag":true{filler},"tags":["a","b","c"]}}"#,
            n % 1000
        );
        parse_json(text.as_bytes(), &ParseOptions::default()).expect("valid JSON").into()
    };
    println!("{items} items of {} stored bytes", document(1, 1).len());
    let upsert = |n: usize, document: Bytes| {
        container.write_item(&key(n), Operation::Upsert { id: format!("item-{n}"), document }.into())
    };

    let documents: Vec<Bytes> = (0..items).map(|n| document(n, 1)).collect();
    report("create, prepared and submitted", items, || {
        let writes: Vec<_> =
            documents.iter().enumerate().map(|(n, document)| upsert(n, document.clone())).collect();
        for write in writes {
            wait(write).expect("written");
        }
    });
    let documents: Vec<Bytes> = (0..items).map(|n| document(n, 2)).collect();
    report("upsert of an existing item, prepared and submitted", items, || {
        let writes: Vec<_> =
            documents.iter().enumerate().map(|(n, document)| upsert(n, document.clone())).collect();
        for write in writes {
            wait(write).expect("written");
        }
    });
    report("upsert, each awaited", items.min(5000), || {
        for (n, document) in documents.iter().enumerate().take(5000) {
            wait(upsert(n, document.clone())).expect("written");
        }
    });
    let options = ReadOptions::default();
    report("point read", items, || {
        for n in 0..items {
            let item =
                wait(container.read_item(&key(n), &format!("item-{n}"), &options)).expect("there").item;
            assert_eq!(item.late_members, 0);
        }
    });
    let mut listed = 0;
    report("listed, a thousand a page", items, || {
        let mut page = PageRequest::new(1000);
        loop {
            let found = wait(container.read_feed(&Scope::All, &page)).expect("listed");
            listed += found.items.len();
            page.continuation = found.continuation;
            if page.continuation.is_none() {
                break;
            }
        }
    });
    assert_eq!(listed, items);
    account.close()?;
    Ok(())
}

fn report(what: &str, operations: usize, run: impl FnOnce()) {
    let (start, cpu) = (Instant::now(), thread_cpu_ns());
    run();
    let per = |ns: u128| ns as f64 / operations as f64;
    let cpu = thread_cpu_ns().zip(cpu).map(|(after, before)| per(u128::from(after - before)));
    match cpu {
        Some(cpu) => println!("{cpu:>8.0} ns CPU {:>8.0} ns wall  {what}", per(start.elapsed().as_nanos())),
        None => println!("{:>8.0} ns wall  {what}", per(start.elapsed().as_nanos())),
    }
}

/// CPU time of this thread, where the system tells (Linux): on a busy machine the wall clock says little.
fn thread_cpu_ns() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}
