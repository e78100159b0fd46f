//! What the file log promises beyond the suite: another opening, torn ends, damage.

use super::*;
use crate::suite;

const SPACE: SpaceId = SpaceId(1);

fn take(log: &FileLog) -> Taken {
    log.take(SPACE, Claim::Take(Epoch(0)), "test", &Bytes::from_static(b"marker")).expect("takes")
}

fn append(log: &FileLog, taken: &Taken, ahead: u64, data: &[u8]) {
    let data = Bytes::copy_from_slice(data);
    let frame = Frame { space: SPACE, epoch: taken.epoch, number: taken.end + ahead, data };
    assert_eq!(log.append(taken.session, &[frame]).expect("appends"), []);
}

fn read(log: &FileLog) -> Vec<Entry> {
    let from = log.state(SPACE).expect("state").expect("taken").log_from;
    log.read(SPACE, from, usize::MAX).expect("reads")
}

fn segments(path: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(path).expect("lists").map(|file| file.expect("a file").path());
    let mut segments: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
    segments.sort();
    segments
}

#[test]
fn a_file_log_keeps_its_promises() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = FileLog::open(directory.path()).expect("opens");
    suite::suite(&|| Arc::new(log.another()));
}

#[test]
fn small_segments_keep_the_same_promises() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = FileLog::open_with(directory.path(), 200).expect("opens");
    suite::suite(&|| Arc::new(log.another()));
}

#[test]
fn what_was_appended_is_there_after_opening_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut expected = Vec::new();
    let mut identity = None;
    for round in 0..4 {
        let log = FileLog::open_with(directory.path(), 300).expect("opens");
        assert_eq!(*identity.get_or_insert(log.identity().to_owned()), log.identity());
        if round > 0 {
            assert_eq!(read(&log), expected);
        }
        let taken = take(&log);
        (1..20).for_each(|ahead| append(&log, &taken, ahead, format!("{round} {ahead}").as_bytes()));
        if round == 2 {
            let checkpoint = Checkpoint { at: taken.end + 10, chunks: 0 };
            log.set_checkpoint(SPACE, taken.epoch, checkpoint).expect("sets");
            while log.cut(SPACE).expect("cuts") {}
            assert!(segments(directory.path()).len() < 6, "old segments go");
        }
        expected = read(&log);
    }
    assert_eq!(expected.len(), 10 + 20);
}

#[test]
fn another_process_is_refused_and_so_is_a_directory_of_somebody_else() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = FileLog::open(directory.path()).expect("opens");
    let refused = FileLog::open(directory.path()).err().expect("refused");
    assert!(refused.to_string().contains("another process"), "{refused}");
    drop(log);
    FileLog::open(directory.path()).expect("opens");
    let other = tempfile::tempdir().expect("a directory");
    std::fs::write(other.path().join("letter.txt"), "dear").expect("writes");
    let refused = FileLog::open(other.path()).err().expect("refused");
    assert!(refused.to_string().contains("name another directory"), "{refused}");
}

/// A crash leaves any part of the last write: what was acknowledged before it stays, and it goes on from there.
#[test]
fn a_torn_end_is_cut_off_and_damage_before_the_end_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = FileLog::open(directory.path()).expect("opens");
    let taken = take(&log);
    append(&log, &taken, 1, b"first");
    let path = segments(directory.path()).remove(0);
    let before = std::fs::metadata(&path).expect("is there").len();
    append(&log, &taken, 2, b"second");
    let whole = std::fs::read(&path).expect("reads");
    drop(log);
    for cut in before..whole.len() as u64 {
        std::fs::write(&path, &whole[..cut as usize]).expect("writes");
        let log = FileLog::open(directory.path()).expect("opens");
        assert_eq!(read(&log).len(), 2, "cut at {cut}");
        assert_eq!(std::fs::metadata(&path).expect("is there").len(), before);
    }
    std::fs::write(&path, &whole).expect("writes");
    let log = FileLog::open(directory.path()).expect("opens");
    assert_eq!(read(&log).len(), 3);
    drop(log);
    for place in [20, before as usize - 1] {
        let mut flipped = whole.clone();
        flipped[place] ^= 1;
        std::fs::write(&path, &flipped).expect("writes");
        let refused = FileLog::open(directory.path()).err().expect("refused");
        assert!(matches!(refused, StoreError::Damaged(_)), "{refused}");
        assert_eq!(std::fs::read(&path).expect("reads"), flipped, "nothing was changed");
    }
}

#[test]
fn a_chunk_that_was_changed_is_damage() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = FileLog::open(directory.path()).expect("opens");
    let taken = take(&log);
    log.write_chunk(SPACE, taken.epoch, taken.end, 0, &Bytes::from_static(b"rows")).expect("writes");
    log.set_checkpoint(SPACE, taken.epoch, Checkpoint { at: taken.end, chunks: 1 }).expect("sets");
    let path = log.chunk_path((SPACE, taken.end, 0));
    let mut bytes = std::fs::read(&path).expect("reads");
    bytes[5] ^= 1;
    std::fs::write(&path, bytes).expect("writes");
    let refused = log.read_chunk(SPACE, taken.end, 0);
    assert!(matches!(refused, Err(StoreError::Damaged(_))), "{refused:?}");
}
