//! A log that lacks what it is known to have held is refused after a crash, whatever else it looks like.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::log_damage::{read_frames, segments};
use super::{Random, SPACE, get, image, open, small, temporary};
use crate::EmbeddedStore;
use crate::embedded::frame::HEADER_BYTES;
use crate::embedded::{EmbeddedOptions, take_log_as_it_is};
use crate::store::{Commit, Durability, Store, StoreError, TABLES, Table};

/// Memtables that are never full: nothing is flushed, everything is in the log.
fn unflushed() -> EmbeddedOptions {
    EmbeddedOptions { memtable_bytes: [64 << 20; 3], log_bytes_max: 64 << 20, ..small() }
}

/// What a kill leaves after this many acknowledged commits.
fn killed(options: EmbeddedOptions, commits: u64) -> TempDir {
    let directory = temporary();
    let store = open(&directory, options);
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..commits {
        let mut commit = Commit::default();
        for table in TABLES {
            commit.put(table, number.to_string(), Random(number).bytes(1000));
        }
        space.commit(commit, Durability::Strict).expect("commits");
    }
    image(directory.path())
}

fn newest(directory: &Path) -> PathBuf {
    segments(directory).pop().expect("a segment")
}

fn refusal(directory: &Path) -> String {
    let refused = EmbeddedStore::open(directory, unflushed()).err().expect("refused");
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains("orrery repair"), "{said}");
    said
}

/// How many of the commits are there, from the first on.
fn found(directory: &TempDir) -> u64 {
    let space = open(directory, unflushed()).open_space(SPACE).expect("opens");
    (0..).take_while(|number| get(&space, Table::Items, &number.to_string()).is_some()).count() as u64
}

#[test]
fn a_newest_segment_that_is_gone_is_missed() {
    for commits in [5, 100] {
        let directory = killed(unflushed(), commits);
        let path = newest(directory.path());
        std::fs::remove_file(&path).expect("removable");
        let said = refusal(directory.path());
        let name = path.file_name().expect("named").to_string_lossy().into_owned();
        assert!(commits == 5 || said.contains(&name) && said.contains("is missing"), "{said}");
    }
}

#[test]
fn a_newest_segment_that_was_cut_is_noticed_wherever_it_was_cut() {
    let directory = killed(unflushed(), 100);
    let path = newest(directory.path());
    let (whole, frames) = (std::fs::read(&path).expect("there"), read_frames(&path));
    for tenths in 0..10 {
        let cut = HEADER_BYTES + (frames.len() - HEADER_BYTES) * tenths / 10;
        for zeros in [0, whole.len() - cut] {
            let mut bytes = whole[..cut].to_vec();
            bytes.resize(cut + zeros, 0);
            std::fs::write(&path, &bytes).expect("writable");
            let said = refusal(directory.path());
            assert!(said.contains("durable") || said.contains("not valid"), "{said}");
            assert_eq!(std::fs::read(&path).expect("there"), bytes, "nothing more is cut");
        }
    }
    // The room behind the last frame was never more than that.
    std::fs::write(&path, &frames).expect("writable");
    assert_eq!(found(&directory), 100);
}

#[test]
fn an_older_segment_that_is_gone_is_missed() {
    let directory = killed(unflushed(), 100);
    let count = segments(directory.path()).len();
    assert!(count > 2, "{count} segments");
    for index in 0..count {
        let path = segments(directory.path()).remove(index);
        let away = directory.path().join("away");
        std::fs::rename(&path, &away).expect("movable");
        assert!(refusal(directory.path()).contains("missing"));
        std::fs::rename(&away, &path).expect("movable");
    }
    assert_eq!(found(&directory), 100);
}

#[test]
fn segments_that_were_flushed_and_removed_are_not_missed() {
    let directory = killed(small(), 300);
    assert_eq!(found(&directory), 300);
    assert_eq!(found(&directory), 300);
}

#[test]
fn without_that_file_the_tables_still_know_of_commits_that_the_log_lacks() {
    let directory = killed(small(), 300);
    std::fs::remove_file(directory.path().join("LOGEND")).expect("removable");
    for path in segments(directory.path()).into_iter().skip(1) {
        std::fs::remove_file(path).expect("removable");
    }
    let path = newest(directory.path());
    let bytes = std::fs::read(&path).expect("there");
    std::fs::write(path, &bytes[..HEADER_BYTES]).expect("writable");
    let said = refusal(directory.path());
    assert!(said.contains("the tables hold commits up to number"), "{said}");
}

#[test]
fn a_store_of_an_earlier_version_opens_and_is_known_from_then_on() {
    let directory = killed(unflushed(), 20);
    std::fs::remove_file(directory.path().join("LOGEND")).expect("removable");
    assert_eq!(found(&directory), 20);
    std::fs::remove_file(newest(directory.path())).expect("removable");
    refusal(directory.path());
}

#[test]
fn an_earlier_version_that_wrote_in_between_makes_nobody_miss_anything() {
    let directory = killed(unflushed(), 20);
    let known = std::fs::read(directory.path().join("LOGEND")).expect("there");
    // Opens, writes, flushes and removes segments, and never says so.
    open(&directory, small()).close().expect("closes");
    std::fs::write(directory.path().join("LOGEND"), known).expect("writable");
    assert_eq!(found(&directory), 20);
}

#[test]
fn an_operator_can_go_on_with_the_log_as_it_is() {
    let directory = killed(small(), 300);
    let lost = newest(directory.path());
    let bytes = std::fs::read(&lost).expect("there");
    std::fs::write(&lost, &bytes[..HEADER_BYTES]).expect("writable");
    refusal(directory.path());
    take_log_as_it_is(directory.path()).expect("writes");
    assert!(found(&directory) < 300);
    let store = open(&directory, small());
    super::put(&store.open_space(SPACE).expect("opens"), Table::Items, "more", "value");
    store.close().expect("closes");
    drop(store);
    std::fs::remove_file(newest(directory.path())).expect("removable");
    EmbeddedStore::open(directory.path(), small()).err().expect("once means once");
}

#[test]
fn a_file_that_says_nonsense_is_refused_and_an_unfinished_one_says_nothing() {
    let directory = killed(unflushed(), 20);
    let path = directory.path().join("LOGEND");
    std::fs::write(&path, "nonsense").expect("writable");
    let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
    assert!(refused.to_string().contains("LOGEND"), "{refused}");
    for unfinished in [&[][..], &[0; 36]] {
        std::fs::write(&path, unfinished).expect("writable");
        assert_eq!(found(&directory), 20);
    }
}

#[test]
fn what_was_never_synced_may_be_torn() {
    let directory = temporary();
    let store = open(&directory, unflushed());
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..10 {
        let mut commit = Commit::default();
        commit.put(Table::Items, number.to_string(), Random(number).bytes(1000));
        let durability = if number < 5 { Durability::Strict } else { Durability::Relaxed };
        space.commit(commit, durability).expect("commits");
    }
    let image = image(directory.path());
    let path = newest(image.path());
    let frames = read_frames(&path);
    std::fs::write(&path, &frames[..frames.len() - 500]).expect("writable");
    assert_eq!(found(&image), 9);
}
