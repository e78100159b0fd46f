//! Forks over the embedded store: right while everything below them is flushed, compacted and dropped; gone after a
//! crash.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{Random, SPACE, get, image, open, put, small, temporary, until};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::store::{
    Commit, Direction, Durability, Fork, KeyRange, Row, Space, SpaceId, Store, StoreError, TABLES, Table,
};
use crate::suite::rows;

/// The rows of a space by table and key.
type Model = BTreeMap<(Table, Bytes), Bytes>;

fn fork(store: &EmbeddedStore, origin: SpaceId, space: u32) -> Arc<dyn Space> {
    store.fork_spaces(&[Fork { origin: Some(origin), space: SpaceId(space) }]).expect("forks");
    store.open_space(SpaceId(space)).expect("opens")
}

fn change(random: &mut Random, space: &Arc<dyn Space>, model: &mut Model) {
    let mut commit = Commit::default();
    for _ in 0..1 + random.below(20) {
        let table = TABLES[random.below(3) as usize];
        let key = Bytes::from(format!("{:03}", random.below(200)));
        if random.below(3) == 0 {
            commit.delete(table, key.clone());
            model.remove(&(table, key));
        } else {
            let length = random.below(300) as usize;
            let value = random.bytes(length);
            commit.put(table, key.clone(), value.clone());
            model.insert((table, key), value);
        }
    }
    space.commit(commit, Durability::Relaxed).expect("commits");
}

fn compare(random: &mut Random, space: &Arc<dyn Space>, model: &Model) {
    let snapshot = space.snapshot().expect("snapshot");
    for table in TABLES {
        let within = |range: &KeyRange| -> Vec<Row> {
            let of_table = model.iter().filter(|((of, _), _)| *of == table);
            let rows = of_table.map(|((_, key), value)| Row { key: key.clone(), value: value.clone() });
            rows.filter(|row| {
                std::ops::RangeBounds::contains(&(range.start.clone(), range.end.clone()), &row.key)
            })
            .collect()
        };
        let some = KeyRange::half_open(
            format!("{:03}", random.below(100)),
            format!("{:03}", 100 + random.below(100)),
        );
        for range in [KeyRange::all(), some] {
            let expected = within(&range);
            // A visitor sees the same: `rows` looks.
            assert!(rows(&*snapshot, table, range.clone(), Direction::Forward) == expected);
            let mut backwards = rows(&*snapshot, table, range, Direction::Reverse);
            backwards.reverse();
            assert!(backwards == expected);
        }
        for _ in 0..20 {
            let key = Bytes::from(format!("{:03}", random.below(200)));
            let found = snapshot.get(table, &key).expect("get");
            assert_eq!(found.as_ref(), model.get(&(table, key)));
        }
    }
}

#[test]
fn forks_stay_as_they_were_whatever_becomes_of_the_trees() {
    let mut random = Random::seeded("forks");
    for round in 0..4 {
        let directory = temporary();
        // Flushes and compactions all the time, some of the time, and never.
        let memtable_bytes = [[2048; 3], [16 * 1024; 3], [1 << 20; 3]][round % 3];
        let options = EmbeddedOptions { memtable_bytes, ..small() };
        let store = open(&directory, options);
        let mut spaces = vec![(store.open_space(SPACE).expect("opens"), Model::new())];
        for step in 0..400 {
            let at = random.below(spaces.len() as u64) as usize;
            match random.below(40) {
                0 if spaces.len() < 6 => {
                    let forked = fork(&store, spaces[at].0.id(), 100 + step);
                    let model = spaces[at].1.clone();
                    spaces.push((forked, model));
                }
                1 if at > 0 => {
                    let (gone, _) = spaces.swap_remove(at);
                    store.drop_space(gone.id()).expect("drops");
                    assert_eq!(
                        gone.snapshot().expect("snapshot").get(Table::Items, b"000").expect("get"),
                        None
                    );
                }
                2 => store.flush().expect("flushes"),
                3 => {
                    let (space, model) = &spaces[at];
                    compare(&mut random, space, model);
                }
                _ => {
                    let (space, model) = &mut spaces[at];
                    change(&mut random, space, model);
                }
            }
        }
        // The first space goes, and its tables with it; what came from it stays.
        let (origin, _) = spaces.remove(0);
        store.drop_space(origin.id()).expect("drops");
        drop(origin);
        store.flush().expect("flushes");
        spaces.iter().for_each(|(space, model)| compare(&mut random, space, model));
    }
}

#[test]
fn a_fork_ends_with_the_process_and_leaves_nothing() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions { memtable_bytes: [2048; 3], ..small() });
    let space = store.open_space(SPACE).expect("opens");
    let mut random = Random(7);
    let mut model = Model::new();
    (0..200).for_each(|_| change(&mut random, &space, &mut model));
    let forked = fork(&store, SPACE, 50);
    (0..200).for_each(|_| change(&mut random, &forked, &mut Model::new()));
    (0..200).for_each(|_| change(&mut random, &space, &mut model));
    let crashed = image(directory.path());
    let files = |root: &std::path::Path| -> usize {
        let count = |tree: &str| std::fs::read_dir(root.join(tree).join("tables")).map_or(0, Iterator::count);
        super::TREE_NAMES.iter().map(|tree| count(tree)).sum()
    };
    let reopened = open(&crashed, small());
    let again = reopened.open_space(SPACE).expect("opens");
    compare(&mut random, &again, &model);
    let forgotten = reopened.open_space(SpaceId(50)).expect("opens");
    assert_eq!(
        rows(&*forgotten.snapshot().expect("snapshot"), Table::Items, KeyRange::all(), Direction::Forward),
        []
    );
    let in_use = || TABLES.iter().map(|table| reopened.core().trees.tables(*table).len()).sum::<usize>();
    until("tables that only the fork had are gone", || files(crashed.path()) == in_use());
}

#[test]
fn a_fork_is_not_bound_to_the_age_of_snapshots_and_holds_nothing_back() {
    let directory = temporary();
    let options =
        EmbeddedOptions { snapshot_age_max: std::time::Duration::ZERO, memtable_bytes: [2048; 3], ..small() };
    let store = open(&directory, options);
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "a", "1");
    let forked = fork(&store, SPACE, 50);
    for round in 0..50 {
        put(&space, Table::Items, "a", vec![round; 1000]);
    }
    store.flush().expect("flushes");
    assert_eq!(get(&forked, Table::Items, "a"), Some("1".into()));
    // Held snapshots keep versions of the trees; a fork has its own.
    let trees = &store.core().trees;
    until("old versions go", || {
        TABLES.iter().all(|table| {
            trees.release_versions(*table, store.core().snapshots.watermark()).is_ok_and(|left| !left)
        })
    });
    assert_eq!(get(&forked, Table::Items, "a"), Some("1".into()));
}

#[test]
fn what_forks_may_write_has_a_limit() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions { fork_bytes_max: 10_000, ..small() });
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "a", vec![1; 20_000]);
    let forked = fork(&store, SPACE, 50);
    let commit = |bytes| {
        let mut commit = Commit::default();
        commit.put(Table::Items, "b", vec![1; bytes]);
        commit
    };
    forked.check_room(&commit(5_000)).expect("room");
    forked.commit(commit(8_000), Durability::Strict).expect("commits");
    assert_eq!(store.stats().fork_bytes, 8_001);
    assert!(matches!(forked.check_room(&commit(5_000)), Err(StoreError::Exhausted(_))));
    let mut removal = Commit::default();
    removal.delete(Table::Items, "b");
    forked.check_room(&removal).expect("deletes are always possible");
    store.drop_space(SpaceId(50)).expect("drops");
    assert_eq!(store.stats().fork_bytes, 0);
    space.check_room(&commit(1_000_000)).expect("others are not limited");
}
