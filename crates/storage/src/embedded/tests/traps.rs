//! Traps of the crate below that the layer above must avoid.

use std::sync::Arc;
use std::time::Duration;

use lsm_tree::AbstractTree;

use super::faults::{self, Faults};
use super::{SPACE, get, open, put, small, temporary, until};
use crate::embedded::EmbeddedOptions;
use crate::store::{Commit, Durability, Store, TABLES, Table};

#[test]
fn trap_a_flush_does_not_publish_what_is_not_yet_durable() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let options = EmbeddedOptions { memtable_bytes: [1, u64::MAX, u64::MAX], ..small() };
    let store = faults::open(directory.path(), options, &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let core = store.core();
    // A sealed memtable waits; its flush will take a number above the commit that hangs in its sync.
    let held = core.trees.tree(Table::Items).get_flush_lock();
    put(&space, Table::Items, "before", "value");
    until("it is sealed", || core.trees.sealed_memtables() == 1);
    let events = faults.events().len();
    let blocked = faults.block_syncs();
    let mut commit = Commit::default();
    commit.put(Table::Feed, "hangs", "value");
    let (sender, receiver) = std::sync::mpsc::channel();
    space.submit(commit, Durability::Strict, Box::new(move |result| sender.send(result).unwrap_or_default()));
    until("its frame is written", || faults.events().len() > events);
    let visible = core.snapshots.visible();
    let numbered = core.trees.counter.get();
    drop(held);
    until("the flush is done", || store.stats().flushes == 1);
    assert!(core.trees.counter.get() > numbered, "the flush has taken a number");
    assert_eq!(core.snapshots.visible(), visible, "the flush has published");
    assert_eq!(get(&space, Table::Feed, "hangs"), None);
    drop(blocked);
    receiver.recv().expect("answered").expect("commits");
    assert!(get(&space, Table::Feed, "hangs").is_some());
}

#[test]
fn trap_numbers_never_fall_when_compaction_forgets_the_highest() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..100 {
        put(&space, Table::Items, &number.to_string(), "value");
    }
    let mut commit = Commit::default();
    (0..100).for_each(|number| commit.delete(Table::Items, number.to_string()));
    space.commit(commit, Durability::Strict).expect("commits");
    store.flush().expect("flushes");
    let core = store.core();
    core.publish();
    core.trees.tree(Table::Items).major_compact(1 << 20, core.snapshots.watermark()).expect("compacts");
    assert_eq!(core.trees.tree(Table::Items).get_highest_persisted_seqno(), None, "the trap is set");
    let numbered = core.trees.counter.get();
    drop(space);
    store.close().expect("closes");
    drop(store);
    for _ in 0..3 {
        let store = open(&directory, small());
        assert!(store.core().trees.counter.get() >= numbered, "numbers are given again");
    }
}

#[test]
fn trap_an_open_snapshot_pins_old_versions_and_its_release_frees_them_without_a_commit() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions { memtable_bytes: [1; 3], ..small() });
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "first", "value");
    until("the first flush", || store.stats().flushes == 1);
    let held = space.snapshot().expect("snapshot");
    for number in 0..10 {
        put(&space, Table::Items, &number.to_string(), "value");
    }
    let trees = &store.core().trees;
    let kept = || TABLES.iter().map(|table| trees.tree(*table).version_free_list_len()).sum::<usize>();
    std::thread::sleep(Duration::from_millis(1200));
    assert!(kept() > 0, "the snapshot pins nothing");
    assert!(held.get(Table::Items, b"0").expect("get").is_none());
    drop(held);
    until("old versions go", || kept() == 0);
}

#[test]
fn trap_a_first_commit_is_readable() {
    // Number 0 would read nothing.
    let directory = temporary();
    let store = open(&directory, small());
    assert!(store.core().snapshots.visible() >= 1);
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    assert!(get(&space, Table::Items, "key").is_some());
}

#[test]
fn trap_an_older_row_replayed_over_a_newer_table_does_not_win() {
    let directory = temporary();
    // Segments are not removed, so that the log still has every old value when the store opens again.
    let faults = Arc::new(Faults::default());
    faults.fail(faults::Call::Remove, 0, libc::EACCES);
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..50 {
        put(&space, Table::Items, "key", number.to_string());
        if number % 10 == 0 {
            store.flush().expect("flushes");
        }
    }
    drop((store, space));
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    assert_eq!(get(&space, Table::Items, "key").expect("there"), "49");
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn rule_13_an_idle_store_gives_memory_back_and_uses_no_cpu() {
    const CHILD: &str = "ORRERY_STORAGE_IDLE_DIRECTORY";
    let anonymous_kb = || -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").expect("linux");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("known");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    if let Ok(directory) = std::env::var(CHILD) {
        let store = crate::EmbeddedStore::open(directory, EmbeddedOptions::default()).expect("opens");
        let space = store.open_space(SPACE).expect("opens");
        let value = bytes::Bytes::from(vec![7; 1000]);
        for group in 0..400 {
            let mut commit = Commit::default();
            for number in 0..100 {
                commit.put(Table::Items, format!("{group}-{number}"), value.to_vec());
                for row in 0..10 {
                    commit.put(Table::Index, format!("{row}-{group}-{number}"), "");
                }
            }
            space.commit(commit, Durability::Relaxed).expect("commits");
        }
        println!("loaded {}", anonymous_kb());
        // What the load has left to be merged is merged first.
        let mut compactions = u64::MAX;
        while compactions != store.stats().compactions {
            compactions = store.stats().compactions;
            std::thread::sleep(Duration::from_millis(3500));
        }
        println!("idle {}", anonymous_kb());
        let cpu = || {
            let mut nanoseconds = 0;
            for task in std::fs::read_dir("/proc/self/task").expect("linux") {
                let stat =
                    std::fs::read_to_string(task.expect("entry").path().join("schedstat")).expect("linux");
                nanoseconds +=
                    stat.split(' ').next().and_then(|time| time.parse::<u64>().ok()).expect("a number");
            }
            nanoseconds
        };
        let before = cpu();
        std::thread::sleep(Duration::from_millis(1000));
        println!("cpu {}", (cpu() - before) / 1000);
        return;
    }
    let directory = temporary();
    let output = std::process::Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "embedded::tests::traps::rule_13_an_idle_store_gives_memory_back_and_uses_no_cpu"])
        .arg("--nocapture")
        .env(CHILD, directory.path())
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let figure = |name: &str| -> u64 {
        said.lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
            .unwrap_or_else(|| panic!("{said}"))
    };
    let (loaded, idle) = (figure("loaded"), figure("idle"));
    println!(
        "{loaded} kB after the load, {idle} kB when idle, {} µs of CPU in an idle second",
        figure("cpu")
    );
    // What is left is active memtables (18 MB at most) and what belongs to them.
    assert!(idle < 45_000 && idle < loaded, "{loaded} kB after the load, {idle} kB when idle");
    assert!(figure("cpu") < 5_000, "{} µs of CPU in an idle second", figure("cpu"));
}
