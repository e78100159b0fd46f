//! Costs of the embedded store, beside the figures to reach.
//!
//! `cargo run --release -p orrery-storage --example store_bench [items] [directory]`
//!
//! One insert is what an item of about 1 KB costs the engine: the item, 15 index rows with random keys of 30 bytes, a
//! feed row. CPU is that of the whole process, flushes and compactions included. Figures to reach: measured on two
//! quiet cores with 300,000 items. A loaded machine shows up to a quarter more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_storage::{
    Commit, Direction, Durability, EmbeddedOptions, EmbeddedStore, KeyRange, Space, SpaceId, Store, Table,
};

const SPACES: u64 = 10;
const INDEX_ROWS: u64 = 15;
const WORDS: [&str; 16] = [
    "amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "harbor", "indigo", "juniper",
    "krypton", "lagoon", "meadow", "nectar", "onyx", "prairie",
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// A bijection, so that keys come in random order and each once.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).swap_bytes()
}

fn item(random: &mut Random) -> Bytes {
    let mut text = String::with_capacity(1200);
    while text.len() < 1050 {
        let word = WORDS[(random.next() % 16) as usize];
        text.push_str(&format!("\"{word}\":\"{:x}\",", random.next()));
    }
    text.into()
}

fn item_key(number: u64) -> Vec<u8> {
    scatter(number).to_be_bytes().to_vec()
}

fn index_key(path: u64, number: u64) -> Vec<u8> {
    let mut key = (path as u16).to_be_bytes().to_vec();
    key.extend_from_slice(&scatter(number * 31 + path).to_be_bytes());
    key.extend_from_slice(&[b'v'; 10]);
    key.extend_from_slice(&item_key(number));
    key
}

fn insert(commit: &mut Commit, number: u64, random: &mut Random) {
    commit.put(Table::Items, item_key(number), item(random));
    for path in 0..INDEX_ROWS {
        commit.put(Table::Index, index_key(path, number), Bytes::new());
    }
    commit.put(Table::Feed, number.to_be_bytes().to_vec(), item_key(number));
}

/// User and system time of the process.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<u64> = after_name.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
    Duration::from_millis(fields.iter().sum::<u64>() * 10)
}

fn anonymous_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

/// Prints CPU and wall time per operation.
fn measure(what: &str, operations: u64, goal: &str, run: impl FnOnce()) {
    let (start, before) = (Instant::now(), cpu());
    run();
    let (wall, cpu) = (start.elapsed().as_secs_f64(), (cpu() - before).as_secs_f64());
    let per = 1e6 / operations as f64;
    println!(
        "{what:<44} {:>8.2} µs cpu {:>8.2} µs wall {:>9.0} /s   to reach: {goal}",
        cpu * per,
        wall * per,
        operations as f64 / wall
    );
}

fn load(spaces: &[Arc<dyn Space>], items: std::ops::Range<u64>, per_commit: u64, durability: Durability) {
    let mut random = Random(items.start);
    let mut next = items.start;
    while next < items.end {
        let mut commit = Commit::default();
        let space = &spaces[(next / per_commit % SPACES) as usize];
        for number in next..(next + per_commit).min(items.end) {
            insert(&mut commit, number, &mut random);
        }
        next += per_commit;
        space.commit(commit, durability).expect("commits");
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let items: u64 = arguments.next().and_then(|items| items.parse().ok()).unwrap_or(300_000);
    let directory = arguments.next().unwrap_or_else(|| {
        std::env::temp_dir().join(format!("orrery-bench-{}", std::process::id())).display().to_string()
    });
    let synced = items / 10;
    println!("{items} items in {directory}");

    let start = Instant::now();
    let store = EmbeddedStore::open(&directory, EmbeddedOptions::default()).expect("opens");
    println!("open, empty directory {:>36.1} ms   to reach: 5-10", start.elapsed().as_secs_f64() * 1e3);
    println!("anonymous memory, empty {:>34} MB   to reach: 0-1", anonymous_mb());
    let spaces: Vec<_> =
        (0..SPACES).map(|id| store.open_space(SpaceId(id as u32 + 1)).expect("opens")).collect();
    // Which space holds an item follows from the commit that brought it: 8 to a commit throughout.
    let space_of = |number: u64| &spaces[(number / 8 % SPACES) as usize];

    measure("insert, 8 per commit, no sync", items, "92-97 cpu, 15,000 /s", || {
        load(&spaces, 0..items, 8, Durability::Relaxed);
        store.flush().expect("flushes");
    });
    println!("anonymous memory after load {:>30} MB   to reach: 110", anonymous_mb());
    let stats = store.stats();
    println!("{stats:?}");
    println!("disk per item {:>44.0} B   to reach: 1,057", stats.disk_bytes as f64 / items as f64);
    measure("insert, 8 per commit, synced", synced, "121-126 cpu, 7,850-8,840 /s", || {
        load(&spaces, items..items + synced, 8, Durability::Strict);
    });
    measure("insert, 16 writers, 1 per commit, synced", synced, "10,950 /s", || {
        std::thread::scope(|scope| {
            for writer in 0..16 {
                let spaces = &spaces;
                scope.spawn(move || {
                    let first = items + synced + synced / 16 * writer;
                    load(spaces, first..first + synced / 16, 1, Durability::Strict);
                });
            }
        });
    });
    measure("update, 8 per commit, synced", synced, "73-76 cpu", || {
        let mut random = Random(5);
        for group in 0..synced / 8 {
            let first = random.next() % (items / 8) * 8;
            let space = space_of(first);
            let mut commit = Commit::default();
            let snapshot = space.snapshot().expect("snapshot");
            for number in first..first + 8 {
                let old = snapshot.get(Table::Items, &item_key(number)).expect("get");
                assert!(old.is_some(), "item {number} of group {group}");
                commit.put(Table::Items, item_key(number), item(&mut random));
                for path in 0..3 {
                    commit.delete(Table::Index, index_key(path, number));
                    commit.put(Table::Index, index_key(path, number + items * 10), Bytes::new());
                }
                commit.delete(Table::Feed, number.to_be_bytes().to_vec());
                commit.put(Table::Feed, (number + items * 10).to_be_bytes().to_vec(), item_key(number));
            }
            space.commit(commit, Durability::Strict).expect("commits");
        }
    });
    store.flush().expect("flushes");
    std::thread::sleep(Duration::from_secs(4));
    println!("anonymous memory when idle {:>31} MB   to reach: 10 and the cache", anonymous_mb());

    let mut random = Random(9);
    let reads = 200_000;
    measure("snapshot open + close", 1_000_000, "0.05", || {
        for _ in 0..1_000_000 {
            drop(spaces[0].snapshot().expect("snapshot"));
        }
    });
    let get = |number: u64| {
        let snapshot = space_of(number).snapshot().expect("snapshot");
        snapshot.get(Table::Items, &item_key(number)).expect("get")
    };
    (0..2000).for_each(|number| drop(get(number)));
    measure("get, hot 2,000 items", reads, "1.6-1.9", || {
        (0..reads).for_each(|_| assert!(get(random.next() % 2000).is_some()));
    });
    measure("get, whole set", reads, "7.2-7.6", || {
        (0..reads).for_each(|_| assert!(get(random.next() % items).is_some()));
    });
    measure("get, miss", reads, "0.4", || {
        (0..reads).for_each(|_| assert!(get(items * 50 + random.next() % items).is_none()));
    });
    let mut scan = |rows: u64, direction| {
        let number = random.next() % items;
        let snapshot = space_of(number).snapshot().expect("snapshot");
        let (start, end) = (index_key(7, number), vec![0, 8]);
        let range = match direction {
            Direction::Forward => KeyRange::half_open(start, end),
            Direction::Reverse => KeyRange::half_open(vec![0, 7], start),
        };
        let mut iterator = snapshot.scan(Table::Index, range, direction);
        (0..rows).map_while(|_| iterator.next_row()).for_each(|row| drop(row.expect("row")));
    };
    for (rows, direction, goal) in [
        (10, Direction::Forward, "12"),
        (10, Direction::Reverse, "13"),
        (100, Direction::Forward, "36"),
        (100, Direction::Reverse, "39"),
    ] {
        measure(&format!("index scan, {rows} rows, {direction:?}"), 20_000, goal, || {
            (0..20_000).for_each(|_| scan(rows, direction));
        });
    }
    let mut rows = 0;
    measure("full scan of items, per item", items, "1.5", || {
        for space in &spaces {
            let snapshot = space.snapshot().expect("snapshot");
            let mut iterator = snapshot.scan(Table::Items, KeyRange::all(), Direction::Forward);
            while let Some(row) = iterator.next_row() {
                drop(row.expect("row"));
                rows += 1;
            }
        }
    });
    println!("{rows} items scanned; {:?}", store.stats());
    drop(spaces);
    let start = Instant::now();
    store.close().expect("closes");
    println!("close {:>52.1} ms", start.elapsed().as_secs_f64() * 1e3);
    drop(store);
    let start = Instant::now();
    drop(EmbeddedStore::open(&directory, EmbeddedOptions::default()).expect("opens"));
    println!("open, after a clean close {:>32.1} ms   to reach: 4-19", start.elapsed().as_secs_f64() * 1e3);
    std::fs::remove_dir_all(&directory).expect("removable");
}
