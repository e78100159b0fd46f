//! Torn tails are cut, damage is refused: rule 2, and the rest of rule 3.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Random, SPACE, get, image, open, small, temporary};
use crate::embedded::files::{LogDirectory, OsDirectory};
use crate::embedded::frame::{Frame, HEADER_BYTES, Header};
use crate::embedded::{EmbeddedOptions, EmbeddedStore, recovery};
use crate::store::{Commit, Durability, Store, StoreError, Table};

const STRICT: usize = 5;
const RELAXED: usize = 5;

fn value(number: usize) -> String {
    format!("value {number} ").repeat(20)
}

/// A crash image whose one segment holds `STRICT` synced frames and `RELAXED` unsynced ones.
fn written(options: EmbeddedOptions) -> TempDir {
    let directory = temporary();
    let store = open(&directory, options);
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..STRICT + RELAXED {
        let mut commit = Commit::default();
        commit.put(Table::Items, number.to_string(), value(number));
        let durability = if number < STRICT { Durability::Strict } else { Durability::Relaxed };
        space.commit(commit, durability).expect("commits");
    }
    image(directory.path())
}

/// The log's files, oldest first.
pub(super) fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut segments: Vec<PathBuf> = std::fs::read_dir(directory.join("log"))
        .expect("readable")
        .map(|entry| entry.expect("entry").path())
        .collect();
    segments.sort();
    segments
}

/// A segment without the zeros behind its last frame.
pub(super) fn read_frames(segment: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(segment).expect("readable");
    let end = frames(&bytes).last().map_or(HEADER_BYTES, |frame| frame.1);
    assert!(bytes[end..].iter().all(|byte| *byte == 0), "something follows the last frame");
    bytes.truncate(end);
    bytes
}

/// Start and end of each frame.
fn frames(segment: &[u8]) -> Vec<(usize, usize)> {
    let base = Header::decode(segment).expect("valid").base;
    let mut frames = Vec::new();
    let mut offset = HEADER_BYTES;
    while let Some(frame) = Frame::decode(segment, base, offset) {
        frames.push((offset, frame.end));
        offset = frame.end;
    }
    frames
}

/// The first pass of recovery over a log of one segment with these bytes; how long the segment then is.
fn check(name: &Path, bytes: &[u8]) -> Result<usize, StoreError> {
    let directory = temporary();
    let path = directory.path().join(name.file_name().expect("named"));
    std::fs::write(&path, bytes).expect("writable");
    let recovered = recovery::check(&OsDirectory { path: directory.path().into() }, None)?;
    let Some(segment) = recovered.segments.front() else { return Ok(0) };
    let size_bytes = segment.size_bytes as usize;
    let left = std::fs::read(&path).expect("there");
    assert!(left[size_bytes..].iter().all(|byte| *byte == 0), "the tail is cut for good");
    Ok(size_bytes)
}

#[test]
fn rule_2_a_tail_cut_anywhere_loses_only_what_was_not_synced() {
    let directory = written(small());
    let name = &segments(directory.path())[0];
    let bytes = read_frames(name);
    let frames = frames(&bytes);
    assert_eq!(frames.len(), STRICT + RELAXED);
    let synced_end = frames[STRICT - 1].1;
    for cut in synced_end..bytes.len() {
        let expected =
            frames.iter().rev().map(|frame| frame.1).find(|end| *end <= cut).expect("the synced ones");
        assert_eq!(check(name, &bytes[..cut]).expect("recovers"), expected, "cut at {cut}");
        let mut grown = bytes[..cut].to_vec();
        grown.resize(bytes.len() + 5000, 0);
        assert_eq!(check(name, &grown).expect("recovers"), expected, "cut at {cut}, then zeros");
    }
}

#[test]
fn rule_2_zeroed_pages_and_garbage_in_the_tail_are_cut() {
    let directory = written(small());
    let name = &segments(directory.path())[0];
    let bytes = read_frames(name);
    let frames = frames(&bytes);
    let mut random = Random::seeded("zeroed pages and garbage");
    for _ in 0..300 {
        // Pages reach the disk in any order, so a hole may lie before frames that are whole.
        let start = frames[STRICT - 1].1 + random.below((bytes.len() - frames[STRICT - 1].1) as u64) as usize;
        let length = 1 + random.below(600) as usize;
        let mut torn = bytes.clone();
        let end = (start + length).min(torn.len());
        let garbage = random.below(2) == 0;
        for byte in &mut torn[start..end] {
            *byte = if garbage { random.next() as u8 } else { 0 };
        }
        if random.below(2) == 0 {
            torn.extend_from_slice(&random.bytes(300));
        }
        if random.below(2) == 0 {
            torn.resize(torn.len() + 5000, 0);
        }
        let touched = frames.iter().find(|frame| torn[frame.0..frame.1] != bytes[frame.0..frame.1]);
        let expected = touched.map_or(bytes.len(), |frame| frame.0);
        assert_eq!(check(name, &torn).expect("recovers"), expected, "{length} bytes at {start}");
    }
}

#[test]
fn rule_2_a_flipped_byte_in_the_synced_part_is_refused() {
    let directory = written(small());
    let name = &segments(directory.path())[0];
    let bytes = read_frames(name);
    let synced_end = frames(&bytes)[STRICT - 1].1;
    for place in 0..synced_end {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x40;
        let refused = check(name, &damaged);
        assert!(matches!(refused, Err(StoreError::Damaged(_))), "byte {place}: {refused:?}");
    }
}

#[test]
fn a_store_opens_with_a_torn_tail_and_says_why_when_it_does_not() {
    let directory = written(small());
    let name = segments(directory.path()).remove(0);
    let bytes = read_frames(&name);
    let frames = frames(&bytes);

    let torn = image(directory.path());
    std::fs::write(&segments(torn.path())[0], &bytes[..frames[STRICT].1 + 7]).expect("writable");
    for _ in 0..2 {
        let store = open(&torn, small());
        let space = store.open_space(SPACE).expect("opens");
        for number in 0..STRICT + RELAXED {
            let expected = (number <= STRICT).then(|| value(number).into());
            assert_eq!(get(&space, Table::Items, &number.to_string()), expected, "commit {number}");
        }
    }

    let damaged = image(directory.path());
    let mut flipped = bytes.clone();
    flipped[frames[1].0 + 30] ^= 1;
    std::fs::write(&segments(damaged.path())[0], flipped).expect("writable");
    let refused = EmbeddedStore::open(damaged.path(), small()).err().expect("refused");
    let file = name.file_name().expect("named").to_string_lossy().into_owned();
    assert!(matches!(refused, StoreError::Damaged(_)) && refused.to_string().contains(&file), "{refused}");
}

/// A log of several full segments.
fn several() -> TempDir {
    let directory = temporary();
    // Nothing is flushed, so every segment stays.
    let options = EmbeddedOptions { segment_bytes: 4096, memtable_bytes: [u64::MAX; 3], ..small() };
    let store = open(&directory, options);
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..80 {
        let mut commit = Commit::default();
        commit.put(Table::Items, number.to_string(), value(number));
        space.commit(commit, Durability::Strict).expect("commits");
    }
    let copy = image(directory.path());
    assert!(segments(copy.path()).len() > 3);
    copy
}

fn check_all(directory: &Path) -> Result<usize, StoreError> {
    recovery::check(&OsDirectory { path: directory.join("log") }, None)
        .map(|recovered| recovered.segments.len())
}

#[test]
fn rule_2_an_older_segment_that_is_cut_flipped_or_missing_is_refused() {
    let directory = several();
    let count = segments(directory.path()).len();
    check_all(image(directory.path()).path()).expect("whole as it is");
    for index in 0..count - 1 {
        let bytes = read_frames(&segments(directory.path())[index]);
        let at_a_frame = frames(&bytes).last().expect("frames").0;
        let mut flipped = bytes.clone();
        flipped[bytes.len() - 5] ^= 1;
        let mut zeroed = bytes.clone();
        zeroed[at_a_frame..].fill(0);
        for damaged in [
            &bytes[..bytes.len() - 3],
            &bytes[..at_a_frame],
            &bytes[..HEADER_BYTES],
            &bytes[..10],
            &flipped,
            &zeroed,
        ] {
            let copy = image(directory.path());
            std::fs::write(&segments(copy.path())[index], damaged).expect("writable");
            let refused = check_all(copy.path());
            assert!(matches!(refused, Err(StoreError::Damaged(_))), "segment {index}: {refused:?}");
            let left = std::fs::read(&segments(copy.path())[index]).expect("readable");
            assert!(left == damaged, "segment {index} was changed although it was refused");
        }
        let copy = image(directory.path());
        std::fs::remove_file(&segments(copy.path())[index]).expect("removable");
        match check_all(copy.path()) {
            // The oldest is removed in the normal course of things.
            Ok(left) => assert_eq!((index, left), (0, count - 1)),
            Err(refused) => assert!(index > 0 && matches!(refused, StoreError::Damaged(_)), "{refused}"),
        }
    }
}

#[test]
fn rule_2_sequence_numbers_that_do_not_ascend_are_refused() {
    use crate::embedded::frame::FrameBuilder;
    let mut bytes = Header { base: 10, previous_base: 0, previous_bytes: 0 }.encode().to_vec();
    let mut builder = FrameBuilder::new();
    for seqno in [10, 12, 11] {
        builder.clear();
        builder.push_commit(seqno, SPACE, &Commit::default());
        let offset = bytes.len() as u64;
        bytes.extend_from_slice(builder.finish(10, offset, offset));
    }
    let refused = check(Path::new("000000000000000a.log"), &bytes);
    assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
}

#[test]
fn rule_3_a_newest_segment_without_a_header_is_removed() {
    for header in [vec![], vec![1, 2, 3], vec![0; HEADER_BYTES], vec![0; 5000], vec![7; HEADER_BYTES]] {
        let directory = written(small());
        let unfinished = directory.path().join("log/00000000000fffff.log");
        std::fs::write(&unfinished, &header).expect("writable");
        let store = open(&directory, small());
        let space = store.open_space(SPACE).expect("opens");
        assert_eq!(get(&space, Table::Items, "4"), Some(value(4).into()));
        assert!(!unfinished.exists(), "a header of {} bytes", header.len());
    }
}

#[test]
fn rule_3_the_segment_before_an_unfinished_one_must_be_whole() {
    let directory = written(small());
    let newest = &segments(directory.path())[0];
    let bytes = read_frames(newest);
    std::fs::write(newest, &bytes[..bytes.len() - 3]).expect("writable");
    std::fs::write(directory.path().join("log/00000000000fffff.log"), b"").expect("writable");
    let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
}

#[test]
fn rule_3_frames_behind_a_damaged_header_are_refused() {
    let directory = written(small());
    let newest = &segments(directory.path())[0];
    let mut bytes = std::fs::read(newest).expect("readable");
    bytes[..HEADER_BYTES].fill(0);
    std::fs::write(newest, &bytes).expect("writable");
    let refused = EmbeddedStore::open(directory.path(), small()).err().expect("refused");
    assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
}

#[test]
fn a_segment_grows_ahead_of_its_frames_and_a_sync_then_changes_no_length() {
    let directory = temporary();
    let store = open(&directory, EmbeddedOptions::default());
    let space = store.open_space(SPACE).expect("opens");
    let length = || std::fs::metadata(&segments(directory.path())[0]).expect("there").len();
    super::put(&space, Table::Items, "first", value(0));
    let grown = length();
    assert!(grown > 32 * 1024, "{grown} bytes");
    for number in 0..50 {
        super::put(&space, Table::Items, &number.to_string(), value(number));
        assert_eq!(length(), grown);
    }
    let mut random = Random(1);
    for number in 0..300 {
        super::put(&space, Table::Items, &number.to_string(), random.bytes(10_000));
    }
    let frames = read_frames(&segments(directory.path())[0]).len() as u64;
    assert!(
        frames > 3_000_000 && length() > frames && length() < frames + 2_000_000,
        "{frames}, {}",
        length()
    );
    let copy = image(directory.path());
    let space = open(&copy, small()).open_space(SPACE).expect("opens");
    assert_eq!(get(&space, Table::Items, "first"), Some(value(0).into()));
}

#[test]
fn rule_3_opening_again_and_again_leaves_one_segment() {
    let directory = temporary();
    for _ in 0..5 {
        open(&directory, small());
        assert_eq!(segments(directory.path()).len(), 1);
    }
    let log = OsDirectory { path: directory.path().join("log") };
    assert_eq!(log.list().expect("readable").len(), 1);
}
