//! Snapshots under flushes and compactions: none may be torn, none may change.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Random, SPACE, open, small, temporary};
use crate::embedded::EmbeddedOptions;
use crate::store::{Commit, Direction, Durability, KeyRange, Snapshot, Store, TABLES, Table};
use crate::suite::rows;

const KEYS: u64 = 40;
const TIME: Duration = Duration::from_secs(3);

/// Every commit writes its number under one key of all three tables, and moves a marker from one key to another: so in
/// any state the tables agree and there is exactly one marker.
fn check(snapshot: &dyn Snapshot) -> Vec<crate::store::Row> {
    let all = TABLES.map(|table| rows(snapshot, table, KeyRange::prefix(b"key"), Direction::Forward));
    assert!(all[0] == all[1] && all[1] == all[2], "a torn snapshot");
    let markers = rows(snapshot, Table::Index, KeyRange::prefix(b"marker"), Direction::Reverse);
    assert_eq!(markers.len(), 1, "a torn snapshot");
    all.into_iter().flatten().chain(markers).collect()
}

#[test]
fn snapshots_are_whole_and_stay_as_they_are_beside_flushes_and_compactions() {
    let directory = temporary();
    let options =
        EmbeddedOptions { memtable_bytes: [8 * 1024, 12 * 1024, 4 * 1024], l0_threshold: 2, ..small() };
    let store = open(&directory, options);
    let space = store.open_space(SPACE).expect("opens");
    let mut first = Commit::default();
    first.put(Table::Index, "marker 0", "");
    space.commit(first, Durability::Strict).expect("commits");
    let stop = AtomicBool::new(false);
    let checked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut marker = 0u64;
            let mut random = Random::seeded("stress");
            let start = Instant::now();
            while start.elapsed() < TIME {
                let mut commit = Commit::default();
                let (key, length) =
                    (format!("key {:02}", random.below(KEYS)), 50 + random.below(200) as usize);
                let value = random.bytes(length);
                for table in TABLES {
                    commit.put(table, key.clone(), value.clone());
                }
                commit.delete(Table::Index, format!("marker {marker}"));
                marker = marker.wrapping_add(1 + random.below(7));
                commit.put(Table::Index, format!("marker {marker}"), "");
                space.commit(commit, Durability::Relaxed).expect("commits");
            }
            stop.store(true, Ordering::Relaxed);
        });
        for seed in 0..2 {
            let (space, stop, checked) = (&space, &stop, &checked);
            scope.spawn(move || {
                let mut random = Random(seed);
                while !stop.load(Ordering::Relaxed) {
                    let snapshot = space.snapshot().expect("snapshot");
                    let before = check(&*snapshot);
                    std::thread::sleep(Duration::from_millis(random.below(60)));
                    assert!(check(&*snapshot) == before, "a snapshot has changed");
                    checked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let stats = store.stats();
    println!(
        "{} commits, {} flushes, {} compactions, {} snapshots",
        stats.commits,
        stats.flushes,
        stats.compactions,
        checked.load(Ordering::Relaxed)
    );
    assert!(stats.flushes > 10 && stats.compactions > 3 && checked.load(Ordering::Relaxed) > 20, "{stats:?}");
    assert!(!stats.writes_stopped);
}
