//! The store against a model that is a few ordered maps, with crashes at random moments. `ORRERY_MODEL_ROUNDS` sets how
//! often; `ORRERY_SEED` runs a failure again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{Random, image, open, small, temporary};
use crate::embedded::EmbeddedOptions;
use crate::store::{Commit, Direction, Durability, KeyRange, Row, Space, SpaceId, Store, TABLES, Table};
use crate::suite::rows;

const SPACES: u32 = 3;

type Model = BTreeMap<(SpaceId, Table), BTreeMap<Bytes, Bytes>>;

fn options(random: &mut Random) -> EmbeddedOptions {
    EmbeddedOptions {
        memtable_bytes: std::array::from_fn(|_| 1 << (9 + random.below(8))),
        segment_bytes: 1 << (10 + random.below(7)),
        log_bytes_max: 1 << 18,
        l0_threshold: 2 + random.below(6) as u8,
        table_bytes: 1 << (14 + random.below(4)),
        ..small()
    }
}

fn random_commit(random: &mut Random) -> Commit {
    let mut commit = Commit::default();
    for _ in 0..random.below(12) {
        let table = TABLES[random.below(3) as usize];
        let key = format!("{:02}", random.below(60));
        if random.below(3) == 0 {
            commit.delete(table, key);
        } else {
            let length = random.below(300) as usize;
            commit.put(table, key, random.bytes(length));
        }
    }
    commit
}

fn apply(model: &mut Model, space: SpaceId, commit: &Commit) {
    for change in &commit.changes {
        let rows = model.entry((space, change.table)).or_default();
        match &change.value {
            Some(value) => rows.insert(change.key.clone(), value.clone()),
            None => rows.remove(&change.key),
        };
    }
}

fn compare(model: &Model, spaces: &[Arc<dyn Space>], random: &mut Random) {
    for space in spaces {
        let snapshot = space.snapshot().expect("snapshot");
        for table in TABLES {
            let expected: Vec<Row> = model
                .get(&(space.id(), table))
                .into_iter()
                .flatten()
                .map(|(key, value)| Row { key: key.clone(), value: value.clone() })
                .collect();
            let found = rows(&*snapshot, table, KeyRange::all(), Direction::Forward);
            assert_eq!(found.len(), expected.len(), "{:?} {table:?}", space.id());
            assert!(found == expected, "{:?} {table:?}", space.id());
            let range =
                KeyRange::half_open(format!("{:02}", random.below(60)), format!("{:02}", random.below(60)));
            let mut within = rows(&*snapshot, table, range.clone(), Direction::Reverse);
            within.reverse();
            assert!(within == rows(&*snapshot, table, range, Direction::Forward), "both directions agree");
            let key = format!("{:02}", random.below(60));
            let value = expected.iter().find(|row| row.key == key).map(|row| row.value.clone());
            assert_eq!(snapshot.get(table, key.as_bytes()).expect("get"), value);
        }
    }
}

#[test]
fn the_store_is_an_ordered_map_through_crashes_drops_and_restarts() {
    let mut random = Random::seeded("model");
    let rounds =
        std::env::var("ORRERY_MODEL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1);
    for _ in 0..rounds {
        let mut directory = temporary();
        let mut model = Model::new();
        let mut store = open(&directory, options(&mut random));
        let open_spaces = |store: &crate::EmbeddedStore| -> Vec<Arc<dyn Space>> {
            (0..SPACES).map(|id| store.open_space(SpaceId(id)).expect("opens")).collect()
        };
        let mut spaces = open_spaces(&store);
        let mut restarts = 0;
        for _ in 0..600 {
            let index = random.below(u64::from(SPACES)) as usize;
            match random.below(100) {
                0..94 => {
                    let commit = random_commit(&mut random);
                    apply(&mut model, spaces[index].id(), &commit);
                    let durability =
                        if random.below(4) == 0 { Durability::Strict } else { Durability::Relaxed };
                    spaces[index].commit(commit, durability).expect("commits");
                }
                94 => {
                    let id = spaces[index].id();
                    store.drop_space(id).expect("drops");
                    model.retain(|(space, _), _| *space != id);
                    // Sometimes the owner comes back only after the next restart.
                    if random.below(2) == 0 {
                        spaces[index] = store.open_space(id).expect("opens");
                    } else {
                        spaces = open_spaces(&store);
                    }
                }
                95 => {
                    spaces.clear();
                    store.close().expect("closes");
                    drop(store);
                    store = open(&directory, options(&mut random));
                    spaces = open_spaces(&store);
                    restarts += 1;
                }
                96 | 97 => {
                    let copy = image(directory.path());
                    if random.below(2) == 0 {
                        tear_tail(copy.path(), &mut random);
                    }
                    spaces.clear();
                    drop(store);
                    directory = copy;
                    store = open(&directory, options(&mut random));
                    spaces = open_spaces(&store);
                    restarts += 1;
                }
                _ => compare(&model, &spaces, &mut random),
            }
        }
        assert!(restarts > 0);
        compare(&model, &spaces, &mut random);
    }
}

/// Adds what a frame that was being written may leave.
fn tear_tail(directory: &std::path::Path, random: &mut Random) {
    let newest = std::fs::read_dir(directory.join("log"))
        .expect("readable")
        .map(|entry| entry.expect("entry").path())
        .max()
        .expect("a segment");
    let mut bytes = std::fs::read(&newest).expect("readable");
    let length = 1 + random.below(200) as usize;
    if random.below(2) == 0 {
        bytes.resize(bytes.len() + length, 0);
    } else {
        bytes.extend_from_slice(&random.bytes(length));
    }
    std::fs::write(&newest, bytes).expect("writable");
}
