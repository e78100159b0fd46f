//! Failures below the tables. The crate does its own I/O, so they are made by real means: a limit on file sizes in a
//! child process (every write beyond it fails, as on a full disk), a directory that is gone, bytes that are changed.
//!
//! Covered: failing writes of table files (flush and compaction), failing creation of files, flipped bytes met by
//! gets and scans and compaction, cut and missing tables at open, locks poisoned by a panic. Not covered: a failing
//! sync of a table or manifest, which nothing short of a special file system can produce; it takes the same path as
//! the rest.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lsm_tree::AbstractTree;

use super::{Random, SPACE, get, open, put, small, temporary, until};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::store::{Commit, Direction, Durability, KeyRange, Space, Store, StoreError, Table};

const CHILD: &str = "ORRERY_STORAGE_LIMITED_DIRECTORY";

fn number_rows(space: &Arc<dyn Space>, from: u64, count: u64) -> Result<u64, StoreError> {
    let mut random = Random(from);
    for number in from..from + count {
        let mut commit = Commit::default();
        commit.put(Table::Items, number.to_string(), random.bytes(2000));
        commit.put(Table::Feed, number.to_string(), "");
        if let Err(error) = space.commit(commit, Durability::Strict) {
            println!("failed {error}");
            return Ok(number);
        }
    }
    Ok(from + count)
}

/// Runs in a child process whose files may not grow beyond a limit that tables exceed and log segments do not.
#[test]
fn child_with_limited_files() {
    let Ok(directory) = std::env::var(CHILD) else { return };
    let options = EmbeddedOptions { memtable_bytes: [512 * 1024; 3], segment_bytes: 32 * 1024, ..small() };
    let options = EmbeddedOptions { log_bytes_max: 4 * 1024 * 1024, ..options };
    let store = EmbeddedStore::open(&directory, options).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let acknowledged = number_rows(&space, 0, 100_000).expect("runs");
    println!("acknowledged {acknowledged}");
    assert!(get(&space, Table::Items, "0").is_some_and(|value| value.len() == 2000), "reads go on");
    println!("close {:?}", store.close().err());
}

#[test]
#[cfg(unix)]
fn a_table_that_cannot_be_written_stops_writes_and_loses_nothing() {
    let directory = temporary();
    let binary = std::env::current_exe().expect("known");
    // The limit sends a signal that ends the process unless it is ignored; then the write fails.
    let script = format!(
        "trap '' XFSZ; ulimit -f 400; exec '{}' --exact embedded::tests::failing_tables::child_with_limited_files --nocapture",
        binary.display()
    );
    let output =
        Command::new("sh").args(["-c", &script]).env(CHILD, directory.path()).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("flushing failed"), "{said}");
    assert!(said.contains("close Some(WritesStopped"), "{said}");
    let acknowledged: u64 = said
        .lines()
        .find_map(|line| line.strip_prefix("acknowledged ")?.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!(acknowledged > 50, "{said}");
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..acknowledged {
        let (item, feed) =
            (get(&space, Table::Items, &number.to_string()), get(&space, Table::Feed, &number.to_string()));
        assert!(item.is_some() && feed.is_some(), "{number} of {acknowledged} is lost");
    }
    store.close().expect("closes");
}

fn tables(directory: &Path, tree: &str) -> Vec<PathBuf> {
    let mut tables: Vec<PathBuf> = std::fs::read_dir(directory.join(tree).join("tables"))
        .expect("readable")
        .map(|entry| entry.expect("entry").path())
        .collect();
    tables.sort();
    tables
}

#[test]
fn a_flush_into_a_directory_that_is_gone_stops_writes_and_the_log_keeps_everything() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    let gone = directory.path().join("items/tables");
    std::fs::remove_dir_all(&gone).expect("removable");
    let acknowledged = number_rows(&space, 0, 10_000).expect("runs");
    assert!(acknowledged < 10_000, "the flush did not fail");
    assert!(store.stats().writes_stopped);
    assert!(get(&space, Table::Items, "0").is_some(), "reads go on");
    drop((store, space));
    std::fs::create_dir(&gone).expect("creatable");
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    assert!((0..acknowledged).all(|number| get(&space, Table::Items, &number.to_string()).is_some()));
}

/// A closed store with some tables.
fn with_tables() -> tempfile::TempDir {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions { l0_threshold: 100, ..small() });
    let space = store.open_space(SPACE).expect("opens");
    number_rows(&space, 0, 200).expect("runs");
    store.close().expect("closes");
    directory
}

#[test]
fn a_flipped_byte_in_a_table_is_an_error_for_gets_scans_and_compaction_and_never_a_wrong_row() {
    let directory = with_tables();
    let mut flipped = 0u64;
    for table in tables(directory.path(), "items") {
        let mut bytes = std::fs::read(&table).expect("readable");
        let place = bytes.len() / 3;
        bytes[place] ^= 1;
        std::fs::write(&table, bytes).expect("writable");
        flipped += 1;
    }
    assert!(flipped > 3);
    let store = open(&directory, EmbeddedOptions { l0_threshold: 100, ..small() });
    let space = store.open_space(SPACE).expect("opens");
    let snapshot = space.snapshot().expect("snapshot");
    let (mut found, mut damaged) = (0, 0);
    for number in 0..200u64 {
        match snapshot.get(Table::Items, number.to_string().as_bytes()) {
            Ok(Some(value)) => found += usize::from(value.len() == 2000),
            Ok(None) => panic!("{number} is silently gone"),
            Err(error) => damaged += usize::from(matches!(error, StoreError::Damaged(_))),
        }
    }
    assert_eq!(found + damaged, 200);
    assert!(damaged > 0, "no get met a flipped byte");
    let mut rows = snapshot.scan(Table::Items, KeyRange::all(), Direction::Forward);
    let scanned: Vec<_> = std::iter::from_fn(|| rows.next_row()).collect();
    assert!(matches!(scanned.last(), Some(Err(StoreError::Damaged(_)))), "the scan ends with the error");
    drop((rows, snapshot, space, store));

    // With a lower threshold, opening starts a compaction, which meets the damage. Writes go on.
    let store = open(&directory, EmbeddedOptions { l0_threshold: 2, ..small() });
    until("the damage is known", || store.stats().damaged_tables == flipped);
    let space = store.open_space(SPACE).expect("opens");
    let acknowledged = number_rows(&space, 1000, 400).expect("runs");
    assert_eq!(acknowledged, 1400);
    assert!(!store.stats().writes_stopped);
    assert!((1000..1400).all(|number| get(&space, Table::Items, &number.to_string()).is_some()));
}

#[test]
fn a_cut_or_missing_table_is_refused_at_open() {
    for cut in [true, false] {
        let directory = with_tables();
        let table = tables(directory.path(), "items").remove(0);
        if cut {
            let bytes = std::fs::read(&table).expect("readable");
            std::fs::write(&table, &bytes[..bytes.len() / 2]).expect("writable");
        } else {
            std::fs::remove_file(&table).expect("removable");
        }
        let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
        assert!(
            matches!(refused, StoreError::Damaged(_)) && refused.to_string().contains("items"),
            "{refused}"
        );
    }
}

#[test]
fn a_damaged_manifest_is_refused_at_open() {
    let directory = with_tables();
    let current = directory.path().join("index/current");
    let mut bytes = std::fs::read(&current).expect("readable");
    bytes[0] ^= 1;
    std::fs::write(&current, bytes).expect("writable");
    let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
    assert!(matches!(refused, StoreError::Damaged(_) | StoreError::Io(_)), "{refused}");
}

#[test]
fn a_panic_that_poisons_a_tree_is_an_error_for_everyone_and_hangs_nobody() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    let core = store.owner.core.clone();
    let panicked = std::thread::spawn(move || {
        let _lock = core.trees.tree(Table::Items).get_version_history_lock();
        panic!("a test's panic, to be seen in the output");
    });
    panicked.join().expect_err("panicked");
    let read = space.snapshot().expect("snapshot").get(Table::Items, b"key");
    assert!(matches!(read, Err(StoreError::Damaged(_))), "{read:?}");
    let mut rows =
        space.snapshot().expect("snapshot").scan(Table::Items, KeyRange::all(), Direction::Forward);
    assert!(matches!(rows.next_row(), Some(Err(StoreError::Damaged(_)))));
    let acknowledged = number_rows(&space, 0, 1000).expect("runs");
    assert!(acknowledged < 1000, "writes go on into a tree that cannot flush");
    store.close().expect_err("not a clean close");
    drop((store, space));
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    assert!((0..acknowledged).all(|number| get(&space, Table::Items, &number.to_string()).is_some()));
}
