//! A directory becomes a store only when nothing is in it, and nothing that Orrery did not make is ever removed.

use std::path::Path;

use super::{SPACE, get, open, put, small, temporary};
use crate::EmbeddedStore;
use crate::embedded::{Found, inspect};
use crate::store::{Store, StoreError, Table};

/// Every path below, with the content of files.
fn everything(path: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).expect("readable") {
        let path = entry.expect("entry").path();
        let shown = path.display().to_string();
        if path.is_dir() {
            found.push((shown, None));
            found.extend(everything(&path));
        } else {
            found.push((shown, Some(std::fs::read(&path).expect("readable"))));
        }
    }
    found.sort();
    found
}

fn refusal(path: &Path) -> String {
    let before = everything(path);
    let refused = EmbeddedStore::open(path, small()).err().expect("refused");
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    assert_eq!(everything(path), before, "a refused directory stays as it was");
    refused.to_string()
}

#[test]
fn somebody_elses_files_are_refused_by_name_and_left_alone() {
    for name in ["items/precious.txt", "index/a", "feed/a", "log/a", "notes.txt", "items/current.bak"] {
        let directory = temporary();
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("has one")).expect("makes");
        std::fs::write(&path, "precious").expect("writes");
        let said = refusal(directory.path());
        let first = name.split('/').next().expect("has one");
        assert!(said.contains(first) && said.contains("--data-dir"), "{said}");
    }
}

#[test]
fn a_store_without_its_format_file_is_refused_and_left_alone() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    store.close().expect("closes");
    drop((store, space));
    let format = std::fs::read(directory.path().join("FORMAT")).expect("there");
    std::fs::remove_file(directory.path().join("FORMAT")).expect("removable");
    let said = refusal(directory.path());
    assert!(said.contains("no FORMAT file") && said.contains("orrery repair"), "{said}");
    assert!(matches!(inspect(directory.path()).expect("looks").found, Found::StoreWithoutFormat { .. }));

    std::fs::write(directory.path().join("FORMAT"), format).expect("writable");
    let space = open(&directory, small()).open_space(SPACE).expect("opens");
    assert!(get(&space, Table::Items, "key").is_some());
}

#[test]
fn an_empty_directory_and_what_comes_before_a_store_are_no_hindrance() {
    let directory = temporary();
    std::fs::create_dir(directory.path().join("lost+found")).expect("makes");
    std::fs::write(directory.path().join("LOCK"), "").expect("writes");
    std::fs::write(directory.path().join("tls.pem"), "a certificate").expect("writes");
    std::fs::write(directory.path().join("tls.pem.new-7-0"), "half a certi").expect("writes");
    open(&directory, small());
    assert_eq!(std::fs::read(directory.path().join("tls.pem")).expect("there"), b"a certificate");
    assert_eq!(inspect(directory.path()).expect("looks").found, Found::Store);
}

#[test]
fn an_interrupted_creation_starts_over_wherever_it_was_interrupted() {
    // What a creation makes, in its order.
    let steps = [
        "CREATING",
        "log/",
        "items/tables/",
        "items/v0",
        "items/.tmpx7Yz",
        "items/current",
        "log/0000000000000001.log",
    ];
    for done in 1..=steps.len() {
        let directory = temporary();
        for step in &steps[..done] {
            let path = directory.path().join(step);
            match step.ends_with('/') {
                true => std::fs::create_dir_all(path).expect("makes"),
                false => std::fs::write(path, "half").expect("writes"),
            }
        }
        assert_eq!(inspect(directory.path()).expect("looks").found, Found::InterruptedCreation);
        let store = open(&directory, small());
        let space = store.open_space(SPACE).expect("opens");
        put(&space, Table::Items, "key", "value");
        assert!(!directory.path().join("CREATING").exists());
        assert_eq!(inspect(directory.path()).expect("looks").found, Found::Store);
    }
}

#[test]
fn what_no_creation_makes_is_not_removed_even_under_the_marker() {
    for name in ["items/tables/7", "items/notes", "log/notes", "log/0000000000000001.log", "notes"] {
        let directory = temporary();
        std::fs::write(directory.path().join("CREATING"), "orrery store 1\n").expect("writes");
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().expect("has one")).expect("makes");
        std::fs::write(&path, [7; 100]).expect("writes");
        let said = refusal(directory.path());
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn another_format_is_refused_by_name() {
    let directory = temporary();
    drop(open(&directory, small()));
    std::fs::write(directory.path().join("FORMAT"), "orrery store 99\n").expect("writable");
    let said = refusal(directory.path());
    assert!(said.contains("99"), "{said}");
}

#[test]
fn a_removed_lock_file_lets_nobody_in() {
    let directory = temporary();
    let store = open(&directory, small());
    std::fs::remove_file(directory.path().join("LOCK")).expect("removable");
    let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
    assert!(refused.to_string().contains("in use"), "{refused}");
    // The attempt has made a lock file of its own, which changes nothing.
    let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
    assert!(refused.to_string().contains("in use"), "{refused}");
    store.close().expect("closes");
    drop(store);
    open(&directory, small());
}

#[cfg(unix)]
#[test]
fn a_store_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let directory = temporary();
    let new = directory.path().join("new");
    drop(EmbeddedStore::open(&new, small()).expect("opens"));
    for (name, expected) in [("", 0o700), ("log", 0o700), ("FORMAT", 0o600), ("LOCK", 0o600)] {
        assert_eq!(mode(&new.join(name)), expected, "{name:?}");
    }
    let segment = std::fs::read_dir(new.join("log")).expect("readable").next().expect("one").expect("entry");
    assert_eq!(mode(&segment.path()), 0o600);
    // One that was made before is closed to others; one that somebody has shared with a group is as they want it.
    for (before, after) in [(0o755, 0o700), (0o777, 0o700), (0o750, 0o750)] {
        let given = directory.path().join(format!("{before:o}"));
        std::fs::create_dir(&given).expect("makes");
        std::fs::set_permissions(&given, std::fs::Permissions::from_mode(before)).expect("sets");
        drop(EmbeddedStore::open(&given, small()).expect("opens"));
        assert_eq!(mode(&given), after, "{before:o}");
    }
}
