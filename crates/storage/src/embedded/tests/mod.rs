//! Tests of the embedded store. Each of its rules, and each trap of the crate below it, has a test named after it.

mod cached;
mod creation;
mod damaged_tables;
mod drops;
mod failing_files;
mod failing_tables;
mod faults;
mod forks;
mod kill;
mod log_damage;
mod lost_log;
mod missing_parts;
mod model;
mod rules;
mod setbacks;
mod stress;
mod suite;
mod traps;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tempfile::TempDir;

use super::directory::TREE_NAMES;
use super::{EmbeddedOptions, EmbeddedStore, log_end};
use crate::store::{Commit, Durability, Space, SpaceId, Store, StoreError, Table};

pub(super) const SPACE: SpaceId = SpaceId(3);

pub(super) fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Small enough that flushes, compactions and new segments happen within a test.
pub(super) fn small() -> EmbeddedOptions {
    EmbeddedOptions {
        cache_bytes: 1024 * 1024,
        memtable_bytes: [64 * 1024, 64 * 1024, 16 * 1024],
        segment_bytes: 64 * 1024,
        log_bytes_max: 512 * 1024,
        reserve_bytes_max: 0,
        l0_threshold: 4,
        table_bytes: 128 * 1024,
        ..EmbeddedOptions::default()
    }
}

/// A store that was dropped without a close lets go of its directory when its threads have ended, a moment later.
pub(super) fn open(directory: &TempDir, options: EmbeddedOptions) -> EmbeddedStore {
    let start = Instant::now();
    loop {
        match EmbeddedStore::open(directory.path(), options.clone()) {
            Err(StoreError::Refused(_)) if start.elapsed() < Duration::from_secs(20) => {
                std::thread::sleep(Duration::from_millis(2));
            }
            opened => return opened.expect("opens"),
        }
    }
}

pub(super) fn put(space: &Arc<dyn Space>, table: Table, key: &str, value: impl Into<Bytes>) {
    let mut commit = Commit::default();
    commit.put(table, key.to_owned(), value);
    space.commit(commit, Durability::Strict).expect("commits");
}

pub(super) fn get(space: &Arc<dyn Space>, table: Table, key: &str) -> Option<Bytes> {
    space.snapshot().expect("snapshot").get(table, key.as_bytes()).expect("get")
}

/// Waits for the background, within reason.
pub(super) fn until(what: &str, condition: impl Fn() -> bool) {
    until_within(Duration::from_secs(20), what, condition);
}

pub(super) fn until_within(time: Duration, what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < time, "not within {time:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What a crash of the process would leave: a copy of the directory, taken while flushes, compactions and drops go on
/// but no commits come. The log is copied first, because a segment goes only after a flush. A tree whose `current`
/// has moved on meanwhile may have lost a table, and a log whose end has moved on (a drop that finishes writes to it)
/// may have got a segment after the others were copied: then everything is copied again.
pub(super) fn image(directory: &Path) -> TempDir {
    let currents = |root: &Path| {
        let trees = TREE_NAMES.map(|tree| std::fs::read(root.join(tree).join("current")).expect("a tree"));
        (trees, std::fs::read(root.join(log_end::FILE)).expect("an end of the log"))
    };
    for _ in 0..1000 {
        let before = currents(directory);
        let copy = temporary();
        let copied = copy_files(&directory.join("log"), &copy.path().join("log"))
            .and_then(|()| copy_files(directory, copy.path()));
        if copied.is_ok() && currents(copy.path()) == before && currents(directory) == before {
            return copy;
        }
    }
    panic!("files change faster than they can be copied");
}

/// Files that are there already are left as they are.
fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    let mut paths: Vec<_> =
        std::fs::read_dir(from)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.sort_by_key(|path| (path.is_dir(), !path.ends_with("current"), path.clone()));
    for path in paths {
        let target = to.join(path.file_name().expect("named"));
        if path.is_dir() && path.ends_with("log") && target.exists() {
            continue;
        } else if path.is_dir() {
            copy_files(&path, &target)?;
        } else {
            std::fs::copy(path, target)?;
        }
    }
    Ok(())
}

/// Small deterministic random numbers, so that a failure can be run again from its printed seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// From the environment, or the same as always: what a run judges is the change before it, not its luck.
    pub(super) fn seeded(test: &str) -> Random {
        let seed = std::env::var("ORRERY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_118);
        println!("{test}: ORRERY_SEED={seed}");
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Incompressible bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Bytes {
        (0..count).map(|_| self.next() as u8).collect::<Vec<u8>>().into()
    }
}

#[test]
fn a_closed_store_opens_again_with_its_rows() {
    let directory = temporary();
    for round in 0..3 {
        let store = open(&directory, small());
        let space = store.open_space(SPACE).expect("opens");
        for earlier in 0..round {
            assert!(get(&space, Table::Items, &format!("round {earlier}")).is_some());
        }
        put(&space, Table::Items, &format!("round {round}"), "value");
        store.close().expect("closes");
    }
}
