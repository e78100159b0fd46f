//! Rule 11: a dropped space stays dropped, whatever is in the tables, in the log, and half done.

use std::sync::Arc;
use std::time::Duration;

use lsm_tree::AbstractTree;
use tempfile::TempDir;

use super::log_damage::{read_frames, segments};
use super::{Random, SPACE, get, image, open, put, small, temporary, until, until_within};
use crate::embedded::files::{LogDirectory, OsDirectory};
use crate::embedded::frame::{Frame, FrameBuilder, HEADER_BYTES, Header, Kind};
use crate::embedded::log::Log;
use crate::embedded::log_end::EndFile;
use crate::embedded::reserve::Reserve;
use crate::embedded::{EmbeddedOptions, recovery};
use crate::store::{Commit, Direction, Durability, KeyRange, Space, SpaceId, Store, TABLES, Table};
use crate::suite::rows;

const DROPPED: SpaceId = SpaceId(5);
const KEPT: SpaceId = SpaceId(6);

fn count(space: &Arc<dyn Space>, table: Table) -> usize {
    rows(&*space.snapshot().expect("snapshot"), table, KeyRange::all(), Direction::Forward).len()
}

fn fill(space: &Arc<dyn Space>, rows: usize, seed: u64) {
    let mut random = Random(seed);
    for number in 0..rows {
        let mut commit = Commit::default();
        for table in TABLES {
            commit.put(table, format!("{number:05}"), random.bytes(100));
        }
        space.commit(commit, Durability::Relaxed).expect("commits");
    }
}

#[test]
fn rule_11_a_dropped_space_stays_dropped_after_a_crash_at_any_moment() {
    let directory = temporary();
    let store = open(&directory, small());
    let (dropped, kept) = (store.open_space(DROPPED).expect("opens"), store.open_space(KEPT).expect("opens"));
    fill(&dropped, 3000, 1);
    fill(&kept, 300, 2);
    store.drop_space(DROPPED).expect("drops");
    let mut images = Vec::new();
    for _ in 0..6 {
        // The removal goes on meanwhile: its commits make some images impossible, which is noticed below as a store
        // that does not open; `image` gives up on those by itself.
        images.push(image(directory.path()));
    }
    for copy in images {
        let store = open(&copy, small());
        let dropped = store.open_space(DROPPED).expect("opens");
        let kept = store.open_space(KEPT).expect("opens");
        for table in TABLES {
            assert_eq!((count(&dropped, table), count(&kept, table)), (0, 300), "{table:?}");
        }
        put(&dropped, Table::Items, "new", "life");
        drop((store, dropped, kept));
        let space = open(&copy, small()).open_space(DROPPED).expect("opens");
        assert_eq!(count(&space, Table::Items), 1, "the new owner's rows are not dropped");
    }
}

#[test]
fn rule_11_replay_skips_rows_whose_tables_the_drop_has_taken() {
    let directory = temporary();
    // Nothing leaves the log by itself, so all rows would be replayed again once their tables are gone.
    let options = EmbeddedOptions { memtable_bytes: [u64::MAX; 3], log_bytes_max: u64::MAX, ..small() };
    let store = open(&directory, options.clone());
    let dropped = store.open_space(DROPPED).expect("opens");
    fill(&dropped, 100, 3);
    store.flush().expect("flushes");
    assert!(store.core().trees.persisted().iter().all(|seqno| *seqno > 0));
    store.drop_space(DROPPED).expect("drops");
    store.open_space(DROPPED).expect("the drop has finished");
    let persisted = store.core().trees.persisted();
    assert!(persisted.iter().all(|seqno| *seqno == 0), "drop_range has lowered what counts as persisted");
    let other = open(&image(directory.path()), options);
    let space = other.open_space(DROPPED).expect("opens");
    for table in TABLES {
        assert_eq!(count(&space, table), 0, "rows of dropped tables came back");
    }
}

/// A crash image whose log ends with a drop that has not removed a single row yet.
fn with_unfinished_drop() -> TempDir {
    let directory = temporary();
    let store = open(&directory, small());
    fill(&store.open_space(DROPPED).expect("opens"), 50, 4);
    fill(&store.open_space(KEPT).expect("opens"), 50, 5);
    store.flush().expect("flushes");
    fill(&store.open_space(DROPPED).expect("opens"), 60, 6);
    let seqno = store.core().trees.counter.get();
    let copy = image(directory.path());
    let newest = segments(copy.path()).pop().expect("a segment");
    let mut bytes = read_frames(&newest);
    let base = Header::decode(&bytes).expect("valid").base;
    let mut frame = FrameBuilder::new();
    frame.clear();
    frame.push_mark(Kind::Drop, seqno, DROPPED);
    let end = bytes.len() as u64;
    bytes.extend_from_slice(frame.finish(base, end, end));
    std::fs::write(&newest, bytes).expect("writable");
    copy
}

/// Opens the store, and the dropped space, which must not take for ever.
fn check_dropped(directory: &TempDir) {
    let store = Arc::new(open(directory, small()));
    let (sender, receiver) = std::sync::mpsc::channel();
    let opener = store.clone();
    std::thread::spawn(move || sender.send(opener.open_space(DROPPED)).unwrap_or_default());
    let dropped =
        receiver.recv_timeout(Duration::from_secs(20)).expect("the drop is resumed").expect("opens");
    let kept = store.open_space(KEPT).expect("opens");
    for table in TABLES {
        assert_eq!((count(&dropped, table), count(&kept, table)), (0, 50), "{table:?}");
    }
}

#[test]
fn rule_11_an_unfinished_drop_is_resumed() {
    let directory = with_unfinished_drop();
    check_dropped(&directory);
    check_dropped(&directory);
}

#[test]
fn rule_11_an_unfinished_drop_outlives_the_segment_of_its_record() {
    let directory = with_unfinished_drop();
    let before = segments(directory.path());
    drop(open(&directory, small()));
    // A crash in the first moment of that second life, after the older segments could be removed: what is left of the
    // log is the new segment's first frame.
    let copy = image(directory.path());
    let after = segments(copy.path());
    let newest = after.last().expect("a segment");
    let mut bytes = std::fs::read(newest).expect("readable");
    let base = Header::decode(&bytes).expect("valid").base;
    let first = Frame::decode(&bytes, base, HEADER_BYTES).expect("the new segment has a frame");
    assert!(
        first.records().flatten().any(|record| record.kind == Kind::DropPending && record.space == DROPPED)
    );
    bytes.truncate(first.end);
    std::fs::write(newest, bytes).expect("writable");
    // It may have been told of frames that came after the first.
    std::fs::remove_file(copy.path().join("LOGEND")).expect("removable");
    for old in &after[..after.len() - 1] {
        assert!(before.iter().any(|segment| segment.file_name() == old.file_name()));
        std::fs::remove_file(old).expect("removable");
    }
    check_dropped(&copy);
}

/// A segment is named after its base. One that holds only repeated drops has used up no number, and the next one must
/// not take its name: it would empty the file, and remove itself when the older one goes.
#[test]
fn rule_11_a_segment_of_repeated_drops_keeps_its_name_to_itself() {
    let directory = with_unfinished_drop();
    drop(open(&directory, small()));
    let copy = image(directory.path());
    let mut names = Vec::new();
    for _ in 0..3 {
        // A crash right after the drop was said again.
        let segments = segments(copy.path());
        let newest = segments.last().expect("a segment");
        assert!(!names.contains(newest), "{newest:?} was used before");
        names.push(newest.clone());
        let mut bytes = std::fs::read(newest).expect("readable");
        let base = Header::decode(&bytes).expect("valid").base;
        let first = Frame::decode(&bytes, base, HEADER_BYTES).expect("the new segment has a frame");
        assert!(first.records().flatten().all(|record| record.kind == Kind::DropPending));
        bytes.truncate(first.end);
        std::fs::write(newest, bytes).expect("writable");
        // Opened but for the removal, which would take numbers.
        let log: Arc<dyn LogDirectory> = Arc::new(OsDirectory { path: copy.path().join("log") });
        let recovered = recovery::check(&*log, None).expect("recovers");
        let seqno = recovered.unfinished_drops[&DROPPED];
        let next = recovered.last_seqno + 1;
        let end_file = EndFile::open(copy.path()).expect("opens");
        let reserve = Arc::new(Reserve::open(copy.path(), 0));
        let mut log = Log::start(log, end_file, reserve, recovered.segments, next, 4096).expect("starts");
        let mut frame = FrameBuilder::new();
        frame.clear();
        frame.push_mark(Kind::DropPending, seqno, DROPPED);
        log.append(&mut frame, next - 1).and_then(|()| log.sync()).expect("appends");
    }
    check_dropped(&copy);
}

#[test]
fn rule_11_a_deletion_in_a_dropped_table_does_not_bring_its_row_back() {
    let directory = temporary();
    let options = EmbeddedOptions { memtable_bytes: [u64::MAX; 3], l0_threshold: 100, ..small() };
    let store = open(&directory, options.clone());
    let (dropped, kept) = (store.open_space(DROPPED).expect("opens"), store.open_space(KEPT).expect("opens"));
    // The value lies in a table that also holds another space's row, its deletion in a table of its own.
    put(&dropped, Table::Items, "row", "value");
    put(&kept, Table::Items, "row", "value");
    store.flush().expect("flushes");
    let mut commit = Commit::default();
    commit.delete(Table::Items, "row");
    dropped.commit(commit, Durability::Strict).expect("commits");
    store.flush().expect("flushes");
    assert_eq!(store.core().trees.tree(Table::Items).table_count(), 2);
    store.drop_space(DROPPED).expect("drops");
    let dropped = store.open_space(DROPPED).expect("opens");
    assert_eq!(get(&dropped, Table::Items, "row"), None, "the row came back");
    assert!(get(&kept, Table::Items, "row").is_some());
    let again = open(&image(directory.path()), options).open_space(DROPPED).expect("opens");
    assert_eq!(get(&again, Table::Items, "row"), None, "the row came back after a restart");
}

#[test]
fn rule_11_a_deletion_that_is_only_in_the_log_still_hides_its_row_after_a_drop() {
    let directory = temporary();
    let options = EmbeddedOptions { memtable_bytes: [u64::MAX; 3], ..small() };
    let store = open(&directory, options.clone());
    let (dropped, kept) = (store.open_space(DROPPED).expect("opens"), store.open_space(KEPT).expect("opens"));
    // The value lies in a table that the drop cannot take; its deletion was never flushed. The removal does not see
    // the row, so nothing but the old deletion keeps it hidden.
    put(&dropped, Table::Items, "row", "value");
    put(&kept, Table::Items, "row", "value");
    store.flush().expect("flushes");
    let mut commit = Commit::default();
    commit.delete(Table::Items, "row");
    dropped.commit(commit, Durability::Strict).expect("commits");
    store.drop_space(DROPPED).expect("drops");
    store.open_space(DROPPED).expect("the drop has finished");
    let again = open(&image(directory.path()), options).open_space(DROPPED).expect("opens");
    assert_eq!(get(&again, Table::Items, "row"), None, "the row came back after a restart");
}

#[test]
fn space_on_disk_returns_after_a_drop() {
    let directory = temporary();
    let store = open(&directory, small());
    let dropped = store.open_space(DROPPED).expect("opens");
    fill(&dropped, 4000, 6);
    store.flush().expect("flushes");
    let before = store.stats().disk_bytes;
    assert!(dropped.stats().size_bytes_estimate > before / 2, "the space's size is known");
    store.drop_space(DROPPED).expect("drops");
    until("most of it is back", || store.stats().disk_bytes < before / 2);
    let dropped = store.open_space(DROPPED).expect("opens");
    assert!(dropped.stats().size_bytes_estimate < before / 2);
}

#[test]
fn many_spaces_can_be_dropped_at_once_and_the_store_closed_meanwhile() {
    let directory = temporary();
    let store = open(&directory, small());
    for id in 0..20 {
        fill(&store.open_space(SpaceId(id)).expect("opens"), 100, 7);
    }
    for id in 0..20 {
        store.drop_space(SpaceId(id)).expect("drops");
    }
    store.close().expect("closes");
    let store = open(&directory, small());
    for id in 0..20 {
        let space = store.open_space(SpaceId(id)).expect("opens");
        assert!(TABLES.iter().all(|table| count(&space, *table) == 0));
    }
}

#[test]
fn space_on_disk_returns_after_many_deletes_and_then_nothing() {
    let directory = temporary();
    let store =
        open(&directory, EmbeddedOptions { segment_bytes: 1024 * 1024, ..EmbeddedOptions::default() });
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..3000u64 {
        let mut commit = Commit::default();
        commit.put(Table::Items, format!("{number:05}"), vec![number as u8; 3000]);
        space.commit(commit, Durability::Relaxed).expect("commits");
    }
    store.flush().expect("flushes");
    for number in 0..3000u64 {
        let mut commit = Commit::default();
        commit.delete(Table::Items, format!("{number:05}"));
        // Deletes of real items say more to the log.
        commit.put(Table::Feed, format!("{number:05}"), vec![0; 1600]);
        space.commit(commit, Durability::Relaxed).expect("commits");
    }
    let before = store.stats();
    assert!(before.log_bytes > 4 * 1024 * 1024, "{before:?}");
    until_within(Duration::from_secs(40), "the log is trimmed and the items are gone", || {
        let stats = store.stats();
        stats.log_bytes < 1024 && store.owner.core.trees.table_bytes(Table::Items) < 1024
    });
    assert_eq!(count(&space, Table::Items), 0);
    assert_eq!(count(&space, Table::Feed), 3000);
}
