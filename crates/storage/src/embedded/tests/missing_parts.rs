//! A store that misses a part of itself is refused with the part's name; a missing part is never taken for an empty
//! one.

use std::path::Path;

use super::{Random, SPACE, get, open, put, small, temporary};
use crate::EmbeddedStore;
use crate::embedded::directory::TREE_NAMES;
use crate::embedded::inspect;
use crate::store::{Commit, Durability, Store, StoreError, TABLES, Table};

/// A store with tables in every tree, closed.
fn filled(directory: &tempfile::TempDir) {
    let store = open(directory, small());
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..20 {
        let mut commit = Commit::default();
        for table in TABLES {
            commit.put(table, format!("key {number}"), Random(number).bytes(100));
        }
        space.commit(commit, Durability::Strict).expect("commits");
    }
    store.close().expect("closes");
}

fn refusal(path: &Path) -> String {
    let refused = EmbeddedStore::open(path, small()).err().expect("refused");
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused:?}");
    refused.to_string()
}

/// Moves a part away, looks at the refusal, and puts it back: nothing may have changed.
fn refused_without(directory: &tempfile::TempDir, part: &str) {
    let (path, away) = (directory.path().join(part), directory.path().join("LOCK.away"));
    std::fs::rename(&path, &away).expect("movable");
    let missing = inspect(directory.path()).expect("looks").missing;
    assert_eq!(missing.iter().map(|missing| missing.part.as_str()).collect::<Vec<_>>(), [part]);
    let said = refusal(directory.path());
    assert!(said.contains(&format!("{part} is missing")) && said.contains("orrery repair"), "{said}");
    assert!(!path.exists(), "{part} was made anew");
    std::fs::rename(&away, &path).expect("movable");
}

#[test]
fn every_part_of_every_tree_is_missed() {
    let directory = temporary();
    filled(&directory);
    for tree in TREE_NAMES {
        let folder = directory.path().join(tree);
        let manifest = u64::from_le_bytes(
            std::fs::read(folder.join("current")).expect("there")[..8].try_into().expect("eight bytes"),
        );
        let table =
            std::fs::read_dir(folder.join("tables")).expect("there").next().expect("one").expect("entry");
        let table = table.file_name().to_string_lossy().into_owned();
        refused_without(&directory, tree);
        refused_without(&directory, &format!("{tree}/current"));
        refused_without(&directory, &format!("{tree}/v{manifest}"));
        refused_without(&directory, &format!("{tree}/tables/{table}"));
    }
    refused_without(&directory, "log");
    let space = open(&directory, small()).open_space(SPACE).expect("opens");
    for table in TABLES {
        assert!(get(&space, table, "key 7").is_some());
    }
}

#[test]
fn a_log_without_a_segment_is_refused() {
    let directory = temporary();
    filled(&directory);
    for entry in std::fs::read_dir(directory.path().join("log")).expect("readable") {
        std::fs::remove_file(entry.expect("entry").path()).expect("removable");
    }
    let said = refusal(directory.path());
    assert!(said.contains("log holds no segment"), "{said}");
}

#[test]
fn parts_that_cannot_be_read_are_named() {
    for (part, bytes) in [("items/current", &b"abc"[..]), ("feed/current", b"")] {
        let directory = temporary();
        filled(&directory);
        std::fs::write(directory.path().join(part), bytes).expect("writable");
        let said = refusal(directory.path());
        assert!(said.contains(&format!("{part} cannot be read")), "{said}");
    }
}

#[test]
fn a_copy_that_keeps_only_files_loses_no_part() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    store.close().expect("closes");
    drop((store, space));
    std::fs::remove_dir(directory.path().join("index/tables")).expect("it is empty");
    let space = open(&directory, small()).open_space(SPACE).expect("opens");
    assert!(get(&space, Table::Items, "key").is_some());
}
