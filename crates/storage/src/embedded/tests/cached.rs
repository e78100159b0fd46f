//! The item cache beside commits: whatever a snapshot is asked, through the cache or past it, it answers the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Random, SPACE, get, open, put, small, temporary};
use crate::embedded::EmbeddedOptions;
use crate::store::{Commit, Direction, Durability, KeyRange, Snapshot, Space, SpaceId, Store, Table};
use crate::suite::rows;

const KEYS: u64 = 60;
const TIME: Duration = Duration::from_secs(2);

fn key(number: u64) -> String {
    format!("key {number:02}")
}

/// A snapshot and what it has shown.
type Held = (Box<dyn Snapshot>, Vec<Option<Bytes>>);

/// Scans go past the cache, so they are what gets are held against.
fn scanned(snapshot: &dyn Snapshot) -> Vec<Option<Bytes>> {
    let mut values = vec![None; KEYS as usize];
    for row in rows(snapshot, Table::Items, KeyRange::all(), Direction::Forward) {
        let number: usize = std::str::from_utf8(&row.key[4..]).expect("text").parse().expect("a number");
        values[number] = Some(row.value);
    }
    values
}

fn run(cache_bytes: u64) {
    let directory = temporary();
    let memtable_bytes = [8 * 1024, 8 * 1024, 8 * 1024];
    let store = open(&directory, EmbeddedOptions { cache_bytes, memtable_bytes, ..small() });
    let space = store.open_space(SPACE).expect("opens");
    let stop = AtomicBool::new(false);
    let acknowledged: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let checked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let (space, stop, acknowledged, checked) = (&space, &stop, &acknowledged, &checked);
        // Each writer has its own keys, so that it knows what was acknowledged last.
        for writer in 0..2 {
            scope.spawn(move || {
                let mut random = Random::seeded("cached");
                let start = Instant::now();
                let mut version = 0u64;
                while start.elapsed() < TIME {
                    let number = random.below(KEYS / 2) * 2 + writer;
                    version += 1;
                    let mut commit = Commit::default();
                    if random.below(8) == 0 {
                        commit.delete(Table::Items, key(number));
                    }
                    let length = 20 + random.below(300) as usize;
                    let mut value = version.to_be_bytes().to_vec();
                    value.resize(length, number as u8);
                    // A commit may change a row twice; the last change counts.
                    if random.below(8) != 0 {
                        commit.put(Table::Items, key(number), value);
                    } else {
                        commit.put(Table::Items, key(number), value);
                        commit.delete(Table::Items, key(number));
                    }
                    let durability =
                        if random.below(20) == 0 { Durability::Strict } else { Durability::Relaxed };
                    space.commit(commit, durability).expect("commits");
                    acknowledged[number as usize].store(version, Ordering::Release);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
        for seed in 0..3 {
            scope.spawn(move || {
                let mut random = Random(seed);
                let mut held: Vec<Held> = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let known: Vec<u64> =
                        acknowledged.iter().map(|version| version.load(Ordering::Acquire)).collect();
                    let snapshot = space.snapshot().expect("snapshot");
                    let expected = scanned(&*snapshot);
                    for _ in 0..KEYS {
                        let number = random.below(KEYS) as usize;
                        let found = snapshot.get(Table::Items, key(number as u64).as_bytes()).expect("get");
                        assert_eq!(found, expected[number], "key {number}");
                        if let Some(value) = found {
                            let version = u64::from_be_bytes(*value.first_chunk().expect("a version"));
                            assert!(
                                version >= known[number],
                                "key {number} is older than what was acknowledged"
                            );
                        }
                    }
                    // Snapshots that others have left behind: they must neither see what is newer nor spoil it.
                    for (old, expected) in &held {
                        let number = random.below(KEYS) as usize;
                        let found = old.get(Table::Items, key(number as u64).as_bytes()).expect("get");
                        assert_eq!(found, expected[number], "key {number} of an older snapshot");
                    }
                    if held.len() == 4 {
                        held.remove(0);
                    }
                    held.push((snapshot, expected));
                    checked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let stats = store.stats();
    println!("{} snapshots, {stats:?}", checked.load(Ordering::Relaxed));
    assert!(stats.item_cache_hits > 100 && stats.item_cache_misses > 100 && stats.commits > 100, "{stats:?}");
    assert!(stats.item_cache_bytes <= cache_bytes / 2, "{stats:?}");
}

#[test]
fn gets_and_scans_of_a_snapshot_agree_beside_commits() {
    run(4 * 1024 * 1024);
}

#[test]
fn gets_and_scans_agree_when_the_cache_is_too_small_for_all_items() {
    run(16 * 1024);
}

#[test]
fn items_of_a_dropped_space_do_not_come_back_from_the_cache() {
    let directory = temporary();
    let store = open(&directory, small());
    let dropped = SpaceId(9);
    for round in 0..3 {
        let space = store.open_space(dropped).expect("opens");
        assert_eq!(get(&space, Table::Items, "key"), None, "round {round}");
        put(&space, Table::Items, "key", "value");
        for _ in 0..2 {
            assert_eq!(get(&space, Table::Items, "key"), Some("value".into()));
        }
        store.flush().expect("flushes");
        store.drop_space(dropped).expect("drops");
        assert_eq!(get(&space, Table::Items, "key"), None, "through the old handle");
    }
}

#[test]
fn only_point_reads_of_items_are_cached() {
    let directory = temporary();
    let store = open(&directory, small());
    let space: Arc<dyn Space> = store.open_space(SPACE).expect("opens");
    for table in crate::store::TABLES {
        put(&space, table, "key", "value");
    }
    let snapshot = space.snapshot().expect("snapshot");
    rows(&*snapshot, Table::Items, KeyRange::all(), Direction::Forward);
    assert!(snapshot.get(Table::Index, b"key").expect("get").is_some());
    assert!(snapshot.get(Table::Feed, b"key").expect("get").is_some());
    assert_eq!(store.stats().item_cache_bytes, 0);
    assert!(snapshot.get(Table::Items, b"key").expect("get").is_some());
    assert!(snapshot.get(Table::Items, b"none").expect("get").is_none());
    let stats = store.stats();
    assert!(
        stats.item_cache_bytes > 0 && (stats.item_cache_hits, stats.item_cache_misses) == (0, 2),
        "{stats:?}"
    );
}
