//! What a durable commit costs: the embedded store, one over a log in a directory, and one over PostgreSQL, in one run.
//!
//! ```sh
//! cargo run --profile fast -p orrery-cluster --example commit_bench -- postgres://orrery@127.0.0.1:5432/bench
//! ```
//!
//! A commit is what an insert of a document of 1 KB comes to with everything indexed: 17 rows. CPU is user and system
//! time of this process and, for PostgreSQL, of all its processes on this machine.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use orrery_cluster::{ClusterOptions, ClusterStore, FileLog, Log, PostgresLog};
use orrery_storage::{Commit, Durability, EmbeddedOptions, EmbeddedStore, Space, SpaceId, Store, Table};

const ROWS_OF_INDEX: u64 = 14;
const DOCUMENT_BYTES: usize = 1094;
const CLOCK_TICKS_PER_SECOND: f64 = 100.0;

fn main() {
    let address = std::env::args().nth(1);
    let directory = tempfile::tempdir().expect("a directory");
    let embedded = EmbeddedStore::open(directory.path().join("embedded"), EmbeddedOptions::default());
    let mut stores: Vec<(&str, Box<dyn Store>)> = vec![("embedded", Box::new(embedded.expect("opens")))];
    let over = |log: Arc<dyn Log>, copy: &Path| {
        Box::new(ClusterStore::open(log, copy, "bench", ClusterOptions::default()).expect("opens"))
    };
    let file = FileLog::open(directory.path().join("log")).expect("opens");
    stores.push(("log in a directory", over(Arc::new(file), &directory.path().join("copy of log"))));
    if let Some(address) = &address {
        let log = PostgresLog::open(address).expect("opens");
        stores.push(("PostgreSQL", over(Arc::new(log), &directory.path().join("copy of postgres"))));
    }
    println!("{:<20} {:>9} {:>12} {:>12} {:>9}", "store", "in flight", "here µs", "postgres µs", "wall µs");
    for in_flight in [1, 10, 100] {
        for (name, store) in &stores {
            let space = store.open_space(SpaceId(in_flight)).expect("opens");
            run(&*space, in_flight.into(), 200);
            let commits = 1500 * u64::from(in_flight).min(20);
            let (here, postgres, began) = (cpu_us(is_me), cpu_us(is_postgres), Instant::now());
            run(&*space, in_flight.into(), commits);
            let each = |total: f64| total / commits as f64;
            println!(
                "{name:<20} {in_flight:>9} {:>12.1} {:>12.1} {:>9.1}",
                each(cpu_us(is_me) - here),
                each(cpu_us(is_postgres) - postgres),
                each(began.elapsed().as_micros() as f64),
            );
        }
    }
}

fn run(space: &dyn Space, in_flight: u64, commits: u64) {
    let (sender, receiver) = mpsc::channel();
    for number in 0..commits {
        if number >= in_flight {
            receiver.recv().expect("answered");
        }
        let sender = sender.clone();
        let done = move |result: Result<(), _>| {
            result.expect("commits");
            sender.send(()).expect("awaited");
        };
        space.submit(insert(number), Durability::Strict, Box::new(done));
    }
    (0..in_flight.min(commits)).for_each(|_| receiver.recv().expect("answered"));
}

fn insert(number: u64) -> Commit {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let key = format!("{spread:016x}-item-key-of-usual-size");
    let mut commit = Commit::with_capacity(17);
    commit.put(Table::Items, key.clone(), vec![b'd'; DOCUMENT_BYTES]);
    commit.put(Table::Feed, number.to_be_bytes().to_vec(), key.clone());
    commit.put(Table::Feed, format!("order-{number:016x}"), key.clone());
    for path in 0..ROWS_OF_INDEX {
        commit.put(Table::Index, format!("{path:02}{:08x}{key}", spread >> (path + 8)), "");
    }
    commit
}

fn is_me(stat: &str, process: &str) -> bool {
    let _ = stat;
    process == std::process::id().to_string()
}

fn is_postgres(stat: &str, _: &str) -> bool {
    stat.contains("(postgres)")
}

/// User and system time of the processes that are meant.
fn cpu_us(meant: fn(&str, &str) -> bool) -> f64 {
    let ticks = |entry: std::fs::DirEntry| -> Option<u64> {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        if !meant(&stat, entry.file_name().to_str()?) {
            return None;
        }
        let rest: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(rest.get(11)?.parse::<u64>().ok()? + rest.get(12)?.parse::<u64>().ok()?)
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(ticks).sum::<u64>() as f64 * 1e6 / CLOCK_TICKS_PER_SECOND
}
