//! Failing files under the log: short writes, a full disk, failing reads, writes and syncs. Each ends in a clear error
//! with nothing acknowledged lost, and the store opens again once the files are well.

use std::sync::Arc;

use super::faults::{self, Call, Faults};
use super::log_damage::read_frames;
use super::{Random, SPACE, get, open, put, small, temporary};
use crate::store::{Commit, Durability, Store, StoreError, Table};

#[test]
fn short_writes_are_continued() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    faults.write_short();
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let mut random = Random(1);
    let values: Vec<_> = (0..50).map(|_| random.bytes(4000)).collect();
    for (number, value) in values.iter().enumerate() {
        put(&space, Table::Items, &number.to_string(), value.clone());
    }
    drop((store, space));
    let space = open(&directory, small()).open_space(SPACE).expect("opens");
    for (number, value) in values.iter().enumerate() {
        assert_eq!(get(&space, Table::Items, &number.to_string()).as_ref(), Some(value));
    }
}

#[test]
fn a_disk_without_room_to_grow_ahead_still_takes_frames() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    faults.refuse_growth();
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..50 {
        put(&space, Table::Items, &number.to_string(), Random(number).bytes(4000));
    }
    drop((store, space));
    let space = open(&directory, small()).open_space(SPACE).expect("opens");
    for number in 0..50 {
        assert_eq!(get(&space, Table::Items, &number.to_string()), Some(Random(number).bytes(4000)));
    }
}

/// Commits until one fails, then heals the files, opens again and looks for what was acknowledged.
fn fails_cleanly(call: Call, after: u32, errno: i32) {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    faults.fail(call, after, errno);
    let mut random = Random(u64::from(after));
    let mut acknowledged = Vec::new();
    let error = loop {
        assert!(acknowledged.len() < 1000, "{call:?} never failed");
        let mut commit = Commit::default();
        let (key, value) = (acknowledged.len().to_string(), random.bytes(3000));
        for table in crate::store::TABLES {
            commit.put(table, key.clone(), value.clone());
        }
        match space.commit(commit, Durability::Strict) {
            Ok(()) => acknowledged.push(value),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::WritesStopped(_)), "{error:?}");
    let said = std::io::Error::from_raw_os_error(errno).to_string();
    assert!(error.to_string().contains(&said), "{error} does not say {said}");
    faults.heal();
    assert!(matches!(space.commit(Commit::default(), Durability::Strict), Err(StoreError::WritesStopped(_))));
    assert!(matches!(store.close(), Err(StoreError::WritesStopped(_))));
    drop((store, space));

    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    for (number, value) in acknowledged.iter().enumerate() {
        for table in crate::store::TABLES {
            assert_eq!(
                get(&space, table, &number.to_string()).as_ref(),
                Some(value),
                "{call:?}: {number} is lost"
            );
        }
    }
    // The commit that failed is there whole or not at all.
    let failed = crate::store::TABLES.map(|table| get(&space, table, &acknowledged.len().to_string()));
    assert!(failed.iter().all(Option::is_some) || failed.iter().all(Option::is_none), "a torn commit");
    put(&space, Table::Items, "again", "writable");
    store.close().expect("closes");
}

#[test]
fn a_full_disk_stops_writes_and_loses_nothing() {
    for after in [0, 1, 7, 20] {
        fails_cleanly(Call::Write, after, libc::ENOSPC);
    }
}

#[test]
fn a_failing_write_stops_writes_and_loses_nothing() {
    fails_cleanly(Call::Write, 3, libc::EIO);
}

#[test]
fn a_failing_sync_stops_writes_and_loses_nothing() {
    for after in [0, 1, 9] {
        fails_cleanly(Call::Sync, after, libc::EIO);
    }
}

#[test]
fn a_segment_that_cannot_be_created_stops_writes_and_loses_nothing() {
    fails_cleanly(Call::Create, 0, libc::EACCES);
    fails_cleanly(Call::SyncDirectory, 0, libc::EIO);
}

#[test]
fn a_failed_write_leaves_no_trace_of_its_commit() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "before", "value");
    let segment = std::fs::read_dir(directory.path().join("log")).expect("readable").next().expect("one");
    let segment = segment.expect("entry").path();
    let before = read_frames(&segment).len() as u64;
    faults.fail(Call::Write, 0, libc::ENOSPC);
    let mut commit = Commit::default();
    commit.put(Table::Items, "failed", "value");
    space.commit(commit, Durability::Strict).expect_err("fails");
    assert_eq!(std::fs::metadata(&segment).expect("there").len(), before, "half a frame is left");
}

#[test]
fn files_that_fail_at_opening_are_an_error_and_not_a_loss() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    drop((store, space));
    for call in [Call::List, Call::Read, Call::Create, Call::Write, Call::Sync, Call::SyncDirectory] {
        for after in 0..2 {
            faults.fail(call, after, libc::EIO);
            match faults::open(directory.path(), small(), &faults) {
                Ok(_) => assert!(after > 0, "{call:?} did not matter"),
                Err(error) => assert!(matches!(error, StoreError::Io(_)), "{call:?}: {error:?}"),
            }
            faults.heal();
        }
    }
    let space =
        faults::open(directory.path(), small(), &faults).expect("opens").open_space(SPACE).expect("opens");
    assert!(get(&space, Table::Items, "key").is_some());
}

#[test]
fn a_torn_tail_that_cannot_be_cut_is_an_error() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    drop((store, space));
    let segment = std::fs::read_dir(directory.path().join("log")).expect("readable").next().expect("one");
    let segment = segment.expect("entry").path();
    let mut bytes = std::fs::read(&segment).expect("readable");
    bytes.extend_from_slice(b"torn");
    std::fs::write(&segment, bytes).expect("writable");
    let faults = Arc::new(Faults::default());
    faults.fail(Call::Truncate, 0, libc::EIO);
    let refused = faults::open(directory.path(), small(), &faults).err().expect("refused");
    assert!(matches!(refused, StoreError::Io(_)), "{refused:?}");
    faults.heal();
    let space =
        faults::open(directory.path(), small(), &faults).expect("opens").open_space(SPACE).expect("opens");
    assert!(get(&space, Table::Items, "key").is_some());
}
