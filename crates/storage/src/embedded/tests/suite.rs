//! The store suite, run by every store and by pairs of them.

use std::cell::RefCell;
use std::sync::Arc;

use super::{SPACE, get, small, temporary};
use crate::doubles::{Counted, Counting, FailAfter, Mirror};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::memory::MemoryStore;
use crate::store::{Commit, Direction, Durability, KeyRange, Store, StoreError, Table};
use crate::suite::{rows, suite};

#[test]
fn the_memory_store_passes_the_suite() {
    suite(&|| Arc::new(MemoryStore::new()));
}

/// Runs the suite on embedded stores whose directories live until it ends.
fn embedded_suite(options: EmbeddedOptions, wrap: impl Fn(EmbeddedStore) -> Arc<dyn Store>) {
    let directories = RefCell::new(Vec::new());
    suite(&|| {
        let directory = temporary();
        let store = EmbeddedStore::open(directory.path(), options.clone()).expect("opens");
        directories.borrow_mut().push(directory);
        wrap(store)
    });
}

#[test]
fn the_embedded_store_passes_the_suite() {
    embedded_suite(EmbeddedOptions::default(), |store| Arc::new(store));
}

#[test]
fn the_embedded_store_passes_the_suite_while_it_flushes_all_the_time() {
    let options = EmbeddedOptions { memtable_bytes: [2048; 3], segment_bytes: 4096, ..small() };
    embedded_suite(options, |store| Arc::new(store));
}

#[test]
fn memory_and_embedded_agree() {
    embedded_suite(small(), |store| Arc::new(Mirror::new(MemoryStore::new(), store)));
}

#[test]
fn counting_changes_nothing() {
    suite(&|| Arc::new(Counting::new(MemoryStore::new())));
}

#[test]
fn fail_after_fails_the_next_commit_and_all_later_ones() {
    let store = FailAfter::new(MemoryStore::new(), 2);
    let space = store.open_space(SPACE).expect("opens");
    let results: Vec<bool> = ["a", "b", "c", "d"]
        .map(|key| {
            let mut commit = Commit::default();
            commit.put(Table::Items, key, "");
            space.commit(commit, Durability::Strict).is_ok()
        })
        .into();
    assert_eq!(results, [true, true, false, false]);
    assert!(get(&space, Table::Items, "b").is_some() && get(&space, Table::Items, "c").is_none());
    assert!(matches!(store.drop_space(SPACE), Err(StoreError::WritesStopped(_))));
    assert!(store.stats().writes_stopped);
}

#[test]
fn counting_counts() {
    let store = Counting::new(MemoryStore::new());
    let space = store.open_space(SPACE).expect("opens");
    let mut commit = Commit::default();
    commit.put(Table::Items, "a", "");
    commit.put(Table::Items, "b", "");
    space.commit(commit, Durability::Strict).expect("commits");
    let snapshot = space.snapshot().expect("snapshot");
    snapshot.get_many(Table::Items, &["a".into(), "x".into()]).expect("get_many");
    assert_eq!(rows(&*snapshot, Table::Items, KeyRange::all(), Direction::Reverse).len(), 2);
    let counted = store.counted();
    let expected = Counted { commits: 1, rows_written: 2, snapshots: 1, gets: 2, scans: 1, rows_scanned: 2 };
    assert_eq!(counted, expected);
}

#[test]
fn a_mirror_notices_a_difference() {
    let b = MemoryStore::new();
    // A row that only one of them has.
    let space = b.open_space(SPACE).expect("opens");
    let mut commit = Commit::default();
    commit.put(Table::Items, "only here", "");
    space.commit(commit, Durability::Strict).expect("commits");
    let mirror = Mirror::new(MemoryStore::new(), b);
    let snapshot = mirror.open_space(SPACE).expect("opens").snapshot().expect("snapshot");
    let differs = |read: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err();
    assert!(differs(&|| drop(snapshot.get(Table::Items, b"only here"))));
    assert!(differs(&|| drop(rows(&*snapshot, Table::Items, KeyRange::all(), Direction::Forward))));
    assert!(!differs(&|| drop(snapshot.get(Table::Items, b"nowhere"))));
}
