//! Damage is contained: one bad block stops what it holds, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::{get, open, small, temporary, until};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::store::{Commit, Durability, Space, SpaceId, Store, StoreError, Table};

const HURT: SpaceId = SpaceId(5);
const OTHER: SpaceId = SpaceId(7);
const ROWS: u64 = 300;

fn key(number: u64) -> String {
    format!("{number:06}")
}

fn value(number: u64, round: u64) -> Bytes {
    let mut bytes = vec![0; 1000];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..16].copy_from_slice(&round.to_le_bytes());
    bytes.into()
}

fn write(space: &Arc<dyn Space>, round: u64) {
    for number in 0..ROWS {
        let mut commit = Commit::default();
        commit.put(Table::Items, key(number), value(number, round));
        space.commit(commit, Durability::Relaxed).expect("commits");
    }
}

fn tables(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory.join("items/tables")).expect("readable");
    let mut tables: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    tables.sort_by_key(|path| path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok()));
    tables
}

fn flip(table: &Path) {
    let mut bytes = std::fs::read(table).expect("readable");
    let place = bytes.len() / 3;
    bytes[place] ^= 1;
    std::fs::write(table, bytes).expect("writable");
}

/// Every row is there in its newest version, or is an error; and some are errors.
fn check(space: &Arc<dyn Space>, round: u64, may_fail: bool) -> usize {
    let snapshot = space.snapshot().expect("snapshot");
    let mut failed = 0;
    for number in 0..ROWS {
        match snapshot.get(Table::Items, key(number).as_bytes()) {
            Ok(found) => assert_eq!(found, Some(value(number, round)), "row {number}"),
            Err(StoreError::Damaged(_)) if may_fail => failed += 1,
            Err(error) => panic!("row {number}: {error}"),
        }
    }
    failed
}

fn rounds(store: &EmbeddedStore, rounds: std::ops::Range<u64>) {
    let other = store.open_space(OTHER).expect("opens");
    for round in rounds {
        write(&other, round);
        store.flush().expect("flushes");
    }
}

/// A store of two spaces whose rows lie in common tables, one of them damaged: in the last level, or in the first
/// above others.
fn damaged(first_level: bool) -> tempfile::TempDir {
    let directory = temporary();
    let store = open(&directory, small());
    let (hurt, other) = (store.open_space(HURT).expect("opens"), store.open_space(OTHER).expect("opens"));
    write(&hurt, 1);
    write(&other, 1);
    store.flush().expect("flushes");
    until("merged", || store.stats().compactions > 0);
    store.close().expect("closes");
    drop((store, hurt, other));
    let mut victims = tables(directory.path());
    if first_level {
        let lower = victims.len();
        let store = open(&directory, EmbeddedOptions { l0_threshold: 100, ..small() });
        let hurt = store.open_space(HURT).expect("opens");
        write(&hurt, 2);
        store.close().expect("closes");
        victims = tables(directory.path()).split_off(lower.min(1));
        victims.reverse();
    }
    flip(&victims[0]);
    directory
}

#[test]
fn writes_go_on_in_newest_versions_around_a_damaged_table_in_any_level_and_after_restarts() {
    for first_level in [false, true] {
        let directory = damaged(first_level);
        for restart in 0..3 {
            let store = open(&directory, small());
            rounds(&store, restart * 20 + 2..restart * 20 + 22);
            let (hurt, other) =
                (store.open_space(HURT).expect("opens"), store.open_space(OTHER).expect("opens"));
            assert_eq!(check(&other, restart * 20 + 21, false), 0);
            let failed = check(&hurt, if first_level { 2 } else { 1 }, true);
            until("the damage is known", || store.stats().damaged_tables > 0);
            rounds(&store, restart * 20 + 22..restart * 20 + 32);
            assert_eq!(check(&other, restart * 20 + 31, false), 0);
            assert!(failed > 0 && failed < ROWS as usize, "{failed} rows of the damaged space are errors");
            let runs = store.owner.core.trees.tree(Table::Items);
            assert!(lsm_tree::AbstractTree::l0_run_count(runs) < 12, "what is flushed is merged");
            assert!(!store.stats().writes_stopped);
            store.close().expect("closes");
        }
    }
}

#[test]
fn dropping_what_a_damaged_table_holds_leads_back_to_health() {
    for first_level in [false, true] {
        let directory = damaged(first_level);
        let store = open(&directory, small());
        rounds(&store, 2..12);
        assert!(check(&store.open_space(HURT).expect("opens"), if first_level { 2 } else { 1 }, true) > 0);
        until("the damage is known", || store.stats().damaged_tables > 0);
        store.drop_space(HURT).expect("drops");
        // Opening waits until the rows are removed.
        let hurt = store.open_space(HURT).expect("opens");
        assert_eq!(get(&hurt, Table::Items, &key(0)), None);
        rounds(&store, 12..22);
        let other = store.open_space(OTHER).expect("opens");
        assert_eq!(check(&other, 21, false), 0);
        assert!(!store.stats().writes_stopped);
    }
}

#[test]
fn a_flipped_bit_in_a_manifest_is_refused_wherever_it_is() {
    let directory = damaged(false);
    let tree = directory.path().join("items");
    let (manifest, _) = crate::embedded::manifest::current(&tree).expect("readable").expect("a manifest");
    let whole = std::fs::read(&manifest).expect("readable");
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x10;
        std::fs::write(&manifest, &bytes).expect("writable");
        let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
        let text = refused.to_string();
        assert!(text.contains("manifest") || text.contains("items/"), "{text}");
    }
}
