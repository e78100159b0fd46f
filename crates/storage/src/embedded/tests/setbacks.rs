//! What fails for lack of descriptors or room is tried again, and writes come back without another open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::faults::{self, Call, Faults};
use super::{Random, SPACE, get, open, put, small, temporary, until};
use crate::store::{Commit, Durability, Space, Store, StoreError, Table};

fn row(number: usize) -> Commit {
    let mut commit = Commit::default();
    commit.put(Table::Items, number.to_string(), Random(number as u64).bytes(4000));
    commit
}

/// Submits what the store has room for, and says how many that were.
fn submit_until_refused(space: &Arc<dyn Space>, acknowledged: &Arc<AtomicUsize>) -> (usize, StoreError) {
    for number in 0..100_000 {
        if let Err(error) = space.check_room(&row(number)) {
            return (number, error);
        }
        let acknowledged = acknowledged.clone();
        let done = move |result: Result<(), StoreError>| {
            result.expect("no commit fails");
            acknowledged.fetch_add(1, Ordering::Relaxed);
        };
        space.submit(row(number), Durability::Strict, Box::new(done));
        std::thread::sleep(std::time::Duration::from_micros(200));
    }
    panic!("never refused");
}

#[test]
fn a_segment_that_cannot_be_started_is_tried_again_and_no_commit_fails() {
    for errno in [libc::EMFILE, libc::ENFILE, libc::ENOSPC, libc::ENOMEM] {
        let directory = temporary();
        let faults = Arc::new(Faults::default());
        let store = faults::open(directory.path(), small(), &faults).expect("opens");
        let space = store.open_space(SPACE).expect("opens");
        faults.fail(Call::Create, 0, errno);
        for number in 0..30 {
            put(&space, Table::Index, &number.to_string(), Random(number).bytes(4000));
        }
        assert!(!store.stats().writes_stopped, "a long segment is no reason to stop");
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let (submitted, error) = submit_until_refused(&space, &acknowledged);
        assert!(matches!(error, StoreError::Exhausted(_)), "{error:?}");
        let said = std::io::Error::from_raw_os_error(errno).to_string();
        assert!(error.to_string().contains(&said), "{error} does not say {said}");
        assert!(get(&space, Table::Index, "0").is_some(), "reads go on");

        faults.heal();
        until("every commit is answered", || acknowledged.load(Ordering::Relaxed) == submitted);
        until("commits are accepted", || space.check_room(&row(0)).is_ok());
        put(&space, Table::Items, "later", "value");
        assert!(!store.stats().writes_stopped);
        store.close().expect("closes");
        drop((store, space));
        let space = open(&directory, small()).open_space(SPACE).expect("opens");
        assert!((0..submitted).all(|number| get(&space, Table::Items, &number.to_string()).is_some()));
    }
}

#[test]
fn a_full_disk_is_bridged_by_the_reserve() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let options = super::EmbeddedOptions { reserve_bytes_max: 1024 * 1024, ..small() };
    let store = faults::open(directory.path(), options, &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let reserve = directory.path().join("RESERVE");
    let size = || std::fs::metadata(&reserve).map_or(0, |metadata| metadata.len());
    until("there is a reserve", || size() == 1024 * 1024);
    put(&space, Table::Items, "before", "value");
    // The next write finds the disk full, the one after it has the room of the reserve.
    faults.fail_once(Call::Write, libc::ENOSPC);
    put(&space, Table::Items, "while", "value");
    assert!(get(&space, Table::Items, "while").is_some(), "nobody notices");
    // The file system of this test has room, so all is well in a moment.
    until("there is a reserve again", || size() == 1024 * 1024 && !store.stats().disk_full);
    space.check_room(&row(0)).expect("room");
}
