//! The store over a log: what every store promises, against memory, over lost connections and crashes of the copy.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_storage::doubles::Mirror;
use orrery_storage::{Commit, Direction, Durability, Epoch, KeyRange, MemoryStore, Snapshot, Table, suite};
use orrery_testkit::Random;

use super::*;
use crate::FileLog;
use crate::log::{Checkpoint, Entry, Frame, Session, SpaceState as LogSpaceState, Taken};

const SPACE: SpaceId = SpaceId(7);

fn small() -> ClusterOptions {
    ClusterOptions { checkpoint_bytes_min: 4 << 10, chunk_bytes: 512, ..ClusterOptions::default() }
}

/// A log and a copy in one directory.
fn open_at(path: &Path, options: ClusterOptions) -> ClusterStore {
    let log = FileLog::open(path.join("log")).expect("the log opens");
    open_over(Arc::new(log), &path.join("copy"), options)
}

/// Opens it. Where the last handle of the store before was dropped by a callback, on one of its own threads, its copy
/// is free a moment later.
fn open_over(log: Arc<dyn Log>, copy: &Path, options: ClusterOptions) -> ClusterStore {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match ClusterStore::open(log.clone(), copy, "test", options.clone()) {
            Err(StoreError::Refused(error))
                if error.to_string().contains("in use") && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            opened => return opened.expect("the store opens"),
        }
    }
}

fn put(space: &dyn Space, key: &str, value: &str) -> Result<(), StoreError> {
    let mut commit = Commit::default();
    commit.put(Table::Items, key.to_owned(), value.to_owned());
    space.commit(commit, Durability::Strict)
}

fn rows(snapshot: &dyn Snapshot) -> BTreeMap<Bytes, Bytes> {
    let rows = suite::rows(snapshot, Table::Items, KeyRange::all(), Direction::Forward);
    rows.into_iter().map(|row| (row.key, row.value)).collect()
}

fn rows_of(space: &dyn Space) -> BTreeMap<Bytes, Bytes> {
    rows(&*space.snapshot().expect("snapshot"))
}

/// A suite's stores, each in a directory of its own, which go when all is done.
fn with_directories(check: impl Fn(&dyn Fn() -> std::path::PathBuf)) {
    let directory = tempfile::tempdir().expect("a directory");
    let number = AtomicU32::new(0);
    check(&|| {
        let path = directory.path().join(number.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::create_dir(&path).expect("makes");
        path
    });
}

#[test]
fn the_store_over_a_log_is_a_store() {
    with_directories(|directory| {
        suite::suite(&|| Arc::new(open_at(&directory(), ClusterOptions::default())));
    });
}

/// Checkpoints all the time change nothing that anybody sees, and memory agrees.
#[test]
fn it_agrees_with_memory_while_checkpoints_are_written() {
    with_directories(|directory| {
        suite::suite(&|| Arc::new(Mirror::new(open_at(&directory(), small()), MemoryStore::new())));
    });
}

/// Random commits, restarts, lost and old copies, checkpoints and drops, compared with a map.
#[test]
fn what_was_acknowledged_is_there_whatever_becomes_of_the_copy() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seed.map_or(1..=12, |seed: u64| seed..=seed) {
        history(seed);
    }
}

fn history(seed: u64) {
    let random = &mut Random::new(seed);
    let directory = tempfile::tempdir().expect("a directory");
    let (path, old) = (directory.path(), directory.path().join("old"));
    let mut expected: [BTreeMap<Bytes, Bytes>; 2] = Default::default();
    for _ in 0..8 {
        let store = open_at(path, small());
        let mut spaces = [1, 2].map(|id| store.open_space(SpaceId(id)).expect("opens"));
        for (space, expected) in spaces.iter().zip(&expected) {
            assert_eq!(&rows_of(&**space), expected, "seed {seed}");
        }
        for _ in 0..random.below(60) {
            let which = random.below(2) as usize;
            match random.below(20) {
                0 => {
                    store.drop_space(spaces[which].id()).expect("drops");
                    expected[which].clear();
                    spaces[which] = store.open_space(spaces[which].id()).expect("opens");
                }
                1 => store.checkpoint(spaces[which].id()).expect("writes a checkpoint"),
                2 => {
                    let claim = Claim::Renew(spaces[which].epoch());
                    spaces[which] = store.claim_space(spaces[which].id(), claim).expect("renews");
                }
                _ => {
                    let mut commit = Commit::default();
                    for _ in 0..1 + random.below(6) {
                        let key = Bytes::from(format!("{:03}", random.below(100)));
                        match random.below(3) {
                            0 => {
                                expected[which].remove(&key);
                                commit.delete(Table::Items, key);
                            }
                            _ => {
                                let value =
                                    Bytes::from(vec![random.below(256) as u8; random.below(200) as usize]);
                                expected[which].insert(key.clone(), value.clone());
                                commit.put(Table::Items, key, value);
                            }
                        }
                    }
                    spaces[which].commit(commit, Durability::Strict).expect("commits");
                }
            }
        }
        for (space, expected) in spaces.iter().zip(&expected) {
            assert_eq!(&rows_of(&**space), expected, "seed {seed}");
        }
        drop(spaces);
        if random.below(2) == 0 {
            store.close().expect("closes");
        }
        drop(store);
        let copy = path.join("copy");
        match random.below(6) {
            0 => std::fs::remove_dir_all(&copy).expect("removes"),
            // A copy as it was some time ago, and one that lost its last moments.
            1 if old.exists() => {
                std::fs::remove_dir_all(&copy).expect("removes");
                std::fs::rename(&old, &copy).expect("renames");
            }
            2 if !old.exists() => copy_directory(&copy, &old),
            _ => {}
        }
    }
}

fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("makes");
    for entry in std::fs::read_dir(from).expect("lists") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_directory(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).expect("copies")),
        }
    }
}

#[test]
fn a_copy_of_the_same_history_is_used_and_any_other_is_thrown_away() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let write = |count: u32, value: &str| {
        let store = open_at(path, ClusterOptions::default());
        let space = store.open_space(SPACE).expect("opens");
        let stats = store.cluster_stats();
        (0..count).for_each(|number| put(&*space, &format!("{number}"), value).expect("commits"));
        let rows = rows_of(&*space);
        drop(space);
        store.close().expect("closes");
        (stats, rows)
    };
    write(50, "first");
    let (stats, _) = write(0, "");
    assert!(stats.replayed_entries <= 2, "the copy was used: {stats:?}");
    // The log goes back to an earlier moment, and another history begins there.
    copy_directory(&path.join("log"), &path.join("backup"));
    write(10, "lost");
    std::fs::remove_dir_all(path.join("log")).expect("removes");
    copy_directory(&path.join("backup"), &path.join("log"));
    let (stats, rows) = write(0, "");
    assert!(stats.replayed_entries > 50, "the copy was not used: {stats:?}");
    assert!(rows.len() == 50 && rows.values().all(|value| value == "first"), "{rows:?}");
    // Another log altogether.
    std::fs::remove_dir_all(path.join("log")).expect("removes");
    let (_, rows) = write(1, "new");
    assert_eq!(rows, BTreeMap::from([("0".into(), "new".into())]));
}

#[test]
fn a_restore_reads_the_checkpoint_and_what_is_behind_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path();
    let store = open_at(path, small());
    let space = store.open_space(SPACE).expect("opens");
    for number in 0..400 {
        put(&*space, &format!("{:02}", number % 40), &"v".repeat(100)).expect("commits");
    }
    store.checkpoint(SPACE).expect("writes");
    put(&*space, "last", "one").expect("commits");
    let (expected, stats) = (rows_of(&*space), store.cluster_stats());
    assert!(stats.checkpoints > 2, "they are written by themselves: {stats:?}");
    drop((space, store));
    std::fs::remove_dir_all(path.join("copy")).expect("removes");
    let store = open_at(path, small());
    let space = store.open_space(SPACE).expect("opens");
    assert_eq!(rows_of(&*space), expected);
    let stats = store.cluster_stats();
    assert!(stats.restores == 1 && stats.replayed_entries < 10, "{stats:?}");
}

/// A log whose connection breaks on command, before or after an append was done.
struct Breaking {
    log: FileLog,
    session: AtomicU64,
    mode: Mutex<Mode>,
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Fine,
    LoseBefore,
    LoseAfter,
    Away,
}

impl Breaking {
    fn check(&self) -> Result<(), StoreError> {
        match *self.mode.lock() {
            Mode::Away => Err(StoreError::Unavailable("away".into())),
            _ => Ok(()),
        }
    }
}

impl Log for Breaking {
    fn identity(&self) -> &str {
        self.log.identity()
    }

    fn take(&self, space: SpaceId, claim: Claim, owner: &str, marker: &Bytes) -> Result<Taken, StoreError> {
        self.check()?;
        let taken = self.log.take(space, claim, owner, marker)?;
        Ok(Taken { session: Session(self.session.load(Ordering::Relaxed)), ..taken })
    }

    fn append(&self, session: Session, frames: &[Frame]) -> Result<Vec<SpaceId>, StoreError> {
        self.check()?;
        if session.0 != self.session.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("another session".into()));
        }
        let mode = std::mem::replace(&mut *self.mode.lock(), Mode::Fine);
        if mode == Mode::Fine {
            return self.log.append(session, frames);
        }
        self.session.fetch_add(1, Ordering::Relaxed);
        if mode == Mode::LoseAfter {
            self.log.append(session, frames)?;
        }
        Err(StoreError::OutcomeUnknown("lost".into()))
    }

    fn read(&self, space: SpaceId, from: u64, bytes_max: usize) -> Result<Vec<Entry>, StoreError> {
        self.check().and_then(|()| self.log.read(space, from, bytes_max))
    }

    fn state(&self, space: SpaceId) -> Result<Option<LogSpaceState>, StoreError> {
        self.log.state(space)
    }

    fn spaces(&self) -> Result<Vec<SpaceId>, StoreError> {
        self.log.spaces()
    }

    fn write_chunk(&self, s: SpaceId, e: Epoch, at: u64, n: u32, data: &Bytes) -> Result<(), StoreError> {
        self.check().and_then(|()| self.log.write_chunk(s, e, at, n, data))
    }

    fn set_checkpoint(&self, s: SpaceId, e: Epoch, checkpoint: Checkpoint) -> Result<(), StoreError> {
        self.check().and_then(|()| self.log.set_checkpoint(s, e, checkpoint))
    }

    fn read_chunk(&self, space: SpaceId, at: u64, number: u32) -> Result<Bytes, StoreError> {
        self.log.read_chunk(space, at, number)
    }

    fn cut(&self, space: SpaceId) -> Result<bool, StoreError> {
        self.log.cut(space)
    }

    fn drop_space(&self, space: SpaceId) -> Result<(), StoreError> {
        self.log.drop_space(space)
    }

    fn stats(&self) -> LogStats {
        self.log.stats()
    }

    fn close(&self) {
        self.log.close();
    }
}

#[test]
fn a_lost_connection_costs_a_claim_and_the_log_says_what_was_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = FileLog::open(directory.path().join("log")).expect("opens");
    let log = Arc::new(Breaking { log: file, session: AtomicU64::new(1), mode: Mutex::new(Mode::Fine) });
    let store = open_over(log.clone(), &directory.path().join("copy"), small());
    let other = store.open_space(SpaceId(8)).expect("opens");
    let mut space = store.open_space(SPACE).expect("opens");
    for (mode, written) in [(Mode::LoseBefore, false), (Mode::LoseAfter, true)] {
        put(&*space, "before", "").expect("commits");
        *log.mode.lock() = mode;
        let key = format!("{written}");
        let lost = put(&*space, &key, "");
        assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
        assert!(!rows_of(&*space).contains_key(key.as_bytes()), "nobody sees what is not known");
        let behind = put(&*space, "behind", "");
        assert!(matches!(behind, Err(StoreError::Unavailable(_))), "nothing was written: {behind:?}");
        *log.mode.lock() = Mode::Away;
        for _ in 0..3 {
            let away = store.claim_space(SPACE, Claim::Renew(space.epoch()));
            assert!(matches!(away, Err(StoreError::Unavailable(_))));
        }
        *log.mode.lock() = Mode::Fine;
        space = store.claim_space(SPACE, Claim::Renew(space.epoch())).expect("renews");
        assert_eq!(rows_of(&*space).contains_key(key.as_bytes()), written);
        assert!(!rows_of(&*space).contains_key(&b"behind"[..]));
        put(&*space, "after", "").expect("commits");
    }
    // The session of this one was over without anything of it in flight.
    let refused = put(&*other, "key", "");
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let other = store.claim_space(SpaceId(8), Claim::Renew(other.epoch())).expect("renews");
    put(&*other, "key", "").expect("commits");
}

#[test]
fn another_process_takes_a_space_and_the_first_is_fenced() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = FileLog::open(directory.path().join("log")).expect("opens");
    let open = |copy: &str| open_over(Arc::new(log.another()), &directory.path().join(copy), small());
    let (one, two) = (open("one"), open("two"));
    let first = one.open_space(SPACE).expect("opens");
    put(&*first, "first", "").expect("commits");
    let second = two.open_space(SPACE).expect("opens");
    put(&*second, "second", "").expect("commits");
    let fenced = put(&*first, "late", "");
    assert!(matches!(fenced, Err(StoreError::Fenced(SPACE))), "{fenced:?}");
    let refused = one.claim_space(SPACE, Claim::Renew(first.epoch()));
    assert!(matches!(refused, Err(StoreError::Fenced(SPACE))));
    let back = one.open_space(SPACE).expect("takes");
    assert_eq!(rows_of(&*back).len(), 2, "with what the other has written");
    assert!(put(&*second, "late", "").is_err());
}
