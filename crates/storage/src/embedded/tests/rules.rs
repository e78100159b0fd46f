//! The rules that the layer above the trees is built from, one test or more each.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use lsm_tree::AbstractTree;

use super::faults::{self, Call, Event, Faults};
use super::{Random, SPACE, get, image, open, put, small, temporary, until};
use crate::embedded::EmbeddedOptions;
use crate::store::{
    Commit, Direction, Durability, KeyRange, Space, SpaceId, Store, StoreError, TABLES, Table,
};
use crate::suite::rows;

fn one_row(key: &str) -> Commit {
    let mut commit = Commit::default();
    commit.put(Table::Items, key.to_owned(), "value");
    commit
}

fn submit(
    space: &Arc<dyn Space>,
    commit: Commit,
    durability: Durability,
) -> mpsc::Receiver<Result<(), StoreError>> {
    let (sender, receiver) = mpsc::channel();
    space.submit(commit, durability, Box::new(move |result| sender.send(result).unwrap_or_default()));
    receiver
}

#[test]
fn rule_1_a_commit_is_answered_and_visible_only_after_its_sync() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let blocked = faults.block_syncs();
    let answer = submit(&space, one_row("key"), Durability::Strict);
    until("the frame is written", || faults.count(|event| matches!(event, Event::Write(_, 36))) == 1);
    assert!(answer.recv_timeout(Duration::from_millis(30)).is_err(), "answered before its sync");
    assert_eq!(get(&space, Table::Items, "key"), None, "visible before its sync");
    drop(blocked);
    answer.recv().expect("answered").expect("commits");
    assert!(get(&space, Table::Items, "key").is_some());
}

#[test]
fn rule_1_commits_that_wait_share_one_frame_and_one_sync() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let spaces = [1, 2, 3].map(|id| store.open_space(SpaceId(id)).expect("opens"));
    let before = faults.events().len();
    let blocked = faults.block_syncs();
    let first = submit(&spaces[0], one_row("first"), Durability::Strict);
    until("the first frame is written", || faults.events().len() > before);
    let waiting: Vec<_> = (0..30)
        .map(|number| submit(&spaces[number % 3], one_row(&number.to_string()), Durability::Strict))
        .collect();
    drop(blocked);
    for answer in waiting.into_iter().chain([first]) {
        answer.recv().expect("answered").expect("commits");
    }
    let events = faults.events().split_off(before);
    let writes = events.iter().filter(|event| matches!(event, Event::Write(..))).count();
    let syncs = events.iter().filter(|event| matches!(event, Event::Sync(_))).count();
    assert_eq!((writes, syncs), (2, 2), "{events:?}");
}

#[test]
fn relaxed_commits_are_written_but_not_waited_for() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let syncs = |faults: &Faults| faults.count(|event| matches!(event, Event::Sync(_)));
    let before = syncs(&faults);
    space.commit(one_row("relaxed"), Durability::Relaxed).expect("commits");
    assert_eq!(syncs(&faults), before);
    // A process that dies has still written it.
    let copy = image(directory.path());
    let other = open(&copy, small());
    assert!(get(&other.open_space(SPACE).expect("opens"), Table::Items, "relaxed").is_some());
    // A strict commit, even of nothing, takes the earlier ones along.
    space.commit(Commit::default(), Durability::Strict).expect("commits");
    assert_eq!(syncs(&faults), before + 1);
}

#[test]
fn rule_3_a_segment_is_durable_before_its_first_frame_and_after_the_one_before() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let mut random = Random(1);
    for number in 0..60 {
        let mut commit = Commit::default();
        commit.put(Table::Items, format!("{number}"), random.bytes(5000));
        space.commit(commit, Durability::Relaxed).expect("commits");
    }
    let events = faults.events();
    let created: Vec<usize> =
        (0..events.len()).filter(|index| matches!(events[*index], Event::Create(_))).collect();
    assert!(created.len() > 3, "several segments were made");
    for at in created {
        let Event::Create(name) = &events[at] else { unreachable!("filtered") };
        let last_write = events[..at].iter().rposition(|event| matches!(event, Event::Write(..)));
        let last_sync = events[..at].iter().rposition(|event| matches!(event, Event::Sync(_)));
        assert!(last_write.is_none() || last_sync > last_write, "the segment before is not synced");
        let start: Vec<&Event> =
            events[at + 1..].iter().filter(|event| !matches!(event, Event::Remove(_))).take(4).collect();
        assert_eq!(*start[0], Event::Write(name.clone(), 0));
        assert_eq!(*start[1], Event::Sync(name.clone()));
        assert_eq!(*start[2], Event::SyncDirectory);
    }
}

#[test]
fn rule_4_a_failed_sync_is_final_and_never_tried_again() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "before", "value");
    faults.fail(Call::Sync, 0, libc::EIO);
    let failed = space.commit(one_row("failed"), Durability::Strict);
    assert!(matches!(failed, Err(StoreError::WritesStopped(_))), "{failed:?}");
    faults.heal();
    let syncs = faults.count(|event| matches!(event, Event::Sync(_)));
    for durability in [Durability::Strict, Durability::Relaxed] {
        let later = space.commit(one_row("later"), durability);
        assert!(matches!(later, Err(StoreError::WritesStopped(_))), "{later:?}");
    }
    assert!(matches!(store.drop_space(SPACE), Err(StoreError::WritesStopped(_))));
    assert!(get(&space, Table::Items, "before").is_some(), "reads go on");
    assert_eq!(get(&space, Table::Items, "failed"), None, "what may not be durable is not shown");
    let reader = store.open_space(SpaceId(9)).expect("a space can still be opened for reading");
    assert_eq!(get(&reader, Table::Items, "before"), None);
    assert!(store.stats().writes_stopped);
    assert!(matches!(store.close(), Err(StoreError::WritesStopped(_))));
    assert_eq!(faults.count(|event| matches!(event, Event::Sync(_))), syncs, "a sync was tried again");
    drop((store, space, reader));
    let space = open(&directory, small()).open_space(SPACE).expect("opens");
    assert!(get(&space, Table::Items, "before").is_some(), "nothing acknowledged is lost");
    assert_eq!(get(&space, Table::Items, "later"), None);
}

#[test]
fn rule_5_idle_readers_move_on_to_the_new_version_after_a_flush() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions { memtable_bytes: [1; 3], ..small() });
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "value");
    // No further commit: only the wake-up after the flush can publish a number above the new version's.
    until("the flush is seen", || store.stats().flushes > 0);
    let trees = &store.core().trees;
    until("old versions and their memtables are released", || {
        TABLES.iter().all(|table| trees.tree(*table).version_free_list_len() == 0)
    });
    assert!(get(&space, Table::Items, "key").is_some());
}

#[test]
fn rule_6_a_group_lies_in_one_memtable() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let options = EmbeddedOptions { memtable_bytes: [1; 3], ..small() };
    let store = faults::open(directory.path(), options, &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "first", "value");
    until("the first flush", || store.stats().flushes == 1);
    let before = faults.events().len();
    let blocked = faults.block_syncs();
    let first = submit(&space, one_row("a"), Durability::Strict);
    until("the frame is written", || faults.events().len() > before);
    let group: Vec<_> =
        (0..50).map(|number| submit(&space, one_row(&number.to_string()), Durability::Strict)).collect();
    drop(blocked);
    for answer in group.into_iter().chain([first]) {
        answer.recv().expect("answered").expect("commits");
    }
    until("all is flushed", || store.core().trees.tree(Table::Items).sealed_memtable_count() == 0);
    // One flush for the single commit (or none of its own, if it was flushed with the rest) and one for the group.
    assert!(store.stats().flushes <= 3, "{} flushes", store.stats().flushes);
}

#[test]
fn rule_6_a_memtable_is_sealed_only_when_the_log_has_its_rows_for_sure() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    let options = EmbeddedOptions { memtable_bytes: [1; 3], ..small() };
    let store = faults::open(directory.path(), options, &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let blocked = faults.block_syncs();
    space.commit(one_row("relaxed"), Durability::Relaxed).expect("commits");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(
        store.core().trees.tree(Table::Items).table_count(),
        0,
        "a table has rows that the log may lose"
    );
    drop(blocked);
    until("it is flushed", || store.core().trees.tree(Table::Items).table_count() == 1);
}

#[test]
fn rule_7_numbers_go_on_above_everything_and_only_missing_rows_are_replayed() {
    let directory = temporary();
    let options = EmbeddedOptions { memtable_bytes: [1, u64::MAX, u64::MAX], ..small() };
    let store = open(&directory, options.clone());
    let space = store.open_space(SPACE).expect("opens");
    put(&space, Table::Items, "key", "1");
    put(&space, Table::Feed, "key", "1");
    // The first item is in a table, the second waits for its flush, the feed row too; and the log has all three.
    until("the first flush", || store.stats().flushes == 1);
    let held = store.core().trees.tree(Table::Items).get_flush_lock();
    // The row takes this number or a higher one; the trees' own versions, which may take more, are not in the log.
    let numbered = store.core().trees.counter.get();
    put(&space, Table::Items, "key", "2");
    let copy = image(directory.path());
    drop(held);
    let other = open(&copy, small());
    assert!(other.core().trees.counter.get() > numbered, "a number may be given twice");
    let active = other.core().trees.active();
    assert_eq!(active[Table::Items as usize].len(), 1, "only the second row is missing");
    assert_eq!(active[Table::Feed as usize].len(), 1);
    let space = other.open_space(SPACE).expect("opens");
    assert_eq!(get(&space, Table::Items, "key").expect("there"), "2");
    assert_eq!(get(&space, Table::Feed, "key").expect("there"), "1");
    put(&space, Table::Items, "key", "3");
    assert_eq!(get(&space, Table::Items, "key").expect("there"), "3");
}

#[test]
fn rule_7_a_crash_between_flush_and_removal_of_the_segment_is_harmless() {
    let directory = temporary();
    let faults = Arc::new(Faults::default());
    faults.fail(Call::Remove, 0, libc::EIO);
    let store = faults::open(directory.path(), small(), &faults).expect("opens");
    let space = store.open_space(SPACE).expect("opens");
    let mut random = Random(7);
    for number in 0..200 {
        for table in TABLES {
            put(&space, table, &(number % 20).to_string(), format!("{number} {:?}", random.bytes(500)));
        }
    }
    store.close().expect("a segment that cannot be removed is no reason to fail");
    let log = std::fs::read_dir(directory.path().join("log")).expect("readable").count();
    assert!(log > 4, "{log} segments are still there");
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    for number in 180..200 {
        for table in TABLES {
            let value = get(&space, table, &(number % 20).to_string()).expect("there");
            assert!(value.starts_with(format!("{number} ").as_bytes()), "an older value came back");
        }
    }
    assert!(store.core().trees.active().iter().all(|memtable| memtable.is_empty()), "rows were replayed");
}

#[test]
fn rule_8_a_segment_stays_until_every_tree_has_flushed_it_and_the_log_stays_small() {
    let directory = temporary();
    let options = EmbeddedOptions { memtable_bytes: [64 * 1024, 64 * 1024, u64::MAX], ..small() };
    let store = open(&directory, options.clone());
    let space = store.open_space(SPACE).expect("opens");
    let mut random = Random(8);
    // The feed's memtable never fills by itself; only the size of the log makes it flush.
    put(&space, Table::Feed, "first", "value");
    let mut log_bytes_max = 0;
    for number in 0..600 {
        put(&space, Table::Items, &number.to_string(), random.bytes(3000));
        log_bytes_max = log_bytes_max.max(store.stats().log_bytes);
        if number == 60 {
            let copy = image(directory.path());
            let other = open(&copy, options.clone());
            let space = other.open_space(SPACE).expect("opens");
            assert!(get(&space, Table::Feed, "first").is_some(), "its segment was removed too early");
        }
    }
    assert!(store.core().trees.tree(Table::Feed).table_count() > 0, "the feed was never flushed");
    assert!(
        log_bytes_max <= options.log_bytes_max + options.segment_bytes,
        "the log grew to {log_bytes_max}"
    );
    assert!(log_bytes_max > options.log_bytes_max / 2, "the test has not filled the log");
}

#[test]
#[cfg(target_os = "linux")]
fn rule_9_writers_wait_without_spinning_when_flushes_fall_behind() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions { memtable_bytes: [1; 3], ..small() });
    let space = store.open_space(SPACE).expect("opens");
    let (sender, receiver) = mpsc::channel();
    let send_stat = Box::new(move |_| {
        let stat = std::fs::read_link("/proc/thread-self").expect("linux");
        sender.send(stat).unwrap_or_default();
    });
    space.submit(one_row("whose thread"), Durability::Strict, send_stat);
    let thread = std::path::Path::new("/proc").join(receiver.recv().expect("answered"));
    until("the first flush", || store.stats().flushes == 1);

    let trees = &store.core().trees;
    let held = trees.tree(Table::Items).get_flush_lock();
    for number in 0..3 {
        // Each is answered, although the last of them makes the store wait.
        space.commit(one_row(&number.to_string()), Durability::Strict).expect("commits");
    }
    let waiting = submit(&space, one_row("waits"), Durability::Strict);
    let cpu = || std::fs::read_to_string(thread.join("schedstat")).expect("linux");
    let cpu = || cpu().split(' ').next().and_then(|time| time.parse::<u64>().ok()).expect("nanoseconds");
    let before = cpu();
    assert!(waiting.recv_timeout(Duration::from_millis(400)).is_err(), "no back-pressure");
    let spent = cpu() - before;
    assert!(spent < 40_000_000, "{spent} ns of CPU while waiting");
    drop(held);
    waiting.recv_timeout(Duration::from_secs(10)).expect("answered").expect("commits");
}

#[test]
fn rule_10_a_snapshot_survives_flushes_and_compactions() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions { memtable_bytes: [4096; 3], ..small() });
    let space = store.open_space(SPACE).expect("opens");
    for key in 0..50 {
        put(&space, Table::Items, &format!("{key:02}"), "old");
    }
    let before = space.snapshot().expect("snapshot");
    let expected = rows(&*before, Table::Items, KeyRange::all(), Direction::Forward);
    for round in 0..40 {
        for key in 0..50 {
            put(&space, Table::Items, &format!("{key:02}"), format!("new {round}"));
        }
    }
    assert!(store.stats().compactions > 0, "the test has not compacted");
    assert_eq!(rows(&*before, Table::Items, KeyRange::all(), Direction::Forward), expected);
    assert_eq!(store.stats().snapshots_open, 1);
    drop(before);
    assert_eq!(store.stats().snapshots_open, 0);
}

#[test]
fn rule_10_a_snapshot_that_is_held_too_long_expires_with_an_error() {
    let directory = temporary();
    // Long enough for the first row to be read before, however busy the machine is.
    let options =
        EmbeddedOptions { memtable_bytes: [1; 3], snapshot_age_max: Duration::from_secs(3), ..small() };
    let store = open(&directory, options);
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..200 {
        put(&space, Table::Items, &format!("{number:03}"), "old");
    }
    let held = space.snapshot().expect("snapshot");
    let mut iterator = held.scan(Table::Items, KeyRange::all(), Direction::Forward);
    iterator.next_row().expect("row").expect("row");
    until("it expires", || {
        put(&space, Table::Items, "key", "new");
        matches!(held.get(Table::Items, b"000"), Err(StoreError::SnapshotExpired))
    });
    let rest: Vec<_> = std::iter::from_fn(|| iterator.next_row()).collect();
    assert!(matches!(rest.last(), Some(Err(StoreError::SnapshotExpired))), "the iterator ends with an error");
    let mut late = held.scan(Table::Items, KeyRange::all(), Direction::Forward);
    assert!(matches!(late.next_row(), Some(Err(StoreError::SnapshotExpired))));
    assert!(get(&space, Table::Items, "000").is_some(), "a new snapshot works");
}

#[test]
fn rule_12_a_second_open_is_refused_and_names_the_directory() {
    let directory = temporary();
    let store = open(&directory, small());
    let refused = crate::EmbeddedStore::open(directory.path(), small()).err().expect("refused");
    assert!(matches!(refused, StoreError::Refused(_)), "{refused:?}");
    let name = directory.path().file_name().expect("named").to_string_lossy().into_owned();
    assert!(refused.to_string().contains(&name) && refused.to_string().contains("in use"), "{refused}");
    drop(store);
    open(&directory, small());
}

#[test]
fn rule_12_after_a_clean_close_nothing_is_replayed_and_the_log_is_empty() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions::default());
    let space = store.open_space(SPACE).expect("opens");
    for table in TABLES {
        for number in 0..100 {
            put(&space, table, &number.to_string(), "value");
        }
    }
    let numbered = store.core().trees.counter.get();
    store.close().expect("closes");
    let log: u64 = std::fs::read_dir(directory.path().join("log"))
        .expect("readable")
        .map(|entry| entry.expect("entry").metadata().expect("metadata").len())
        .sum();
    assert_eq!(log, 36, "one header is left");
    let store = open(&directory, EmbeddedOptions::default());
    assert!(store.core().trees.active().iter().all(|memtable| memtable.is_empty()));
    assert!(store.core().trees.counter.get() >= numbered);
    let space = store.open_space(SPACE).expect("opens");
    assert!(TABLES.iter().all(|table| get(&space, *table, "99").is_some()));
}

#[test]
fn a_store_that_is_dropped_without_close_has_answered_everything() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    let answers: Vec<_> =
        (0..100).map(|number| submit(&space, one_row(&number.to_string()), Durability::Relaxed)).collect();
    drop((store, space));
    for answer in answers {
        answer.recv().expect("answered").expect("commits");
    }
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    assert!((0..100).all(|number| get(&space, Table::Items, &number.to_string()).is_some()));
}

#[test]
fn the_last_handle_may_be_dropped_by_a_callback() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    let (sender, receiver) = mpsc::channel();
    let last = space.clone();
    space.submit(
        one_row("key"),
        Durability::Strict,
        Box::new(move |_| {
            // Wait until the test has let go of its own.
            while Arc::strong_count(&last) > 1 {
                std::thread::yield_now();
            }
            drop(last);
            sender.send(()).unwrap_or_default();
        }),
    );
    drop((store, space));
    receiver.recv_timeout(Duration::from_secs(10)).expect("no deadlock");
}

#[test]
fn a_callback_that_panics_does_not_stop_the_store() {
    let directory = temporary();
    let store = open(&directory, small());
    let space = store.open_space(SPACE).expect("opens");
    space.submit(
        one_row("key"),
        Durability::Strict,
        Box::new(|_| panic!("a test's panic, to be seen in the output")),
    );
    put(&space, Table::Items, "after", "value");
    assert!(!store.core().closed.load(Ordering::Relaxed));
    assert!(get(&space, Table::Items, "key").is_some());
}
