//! Room that is kept back for the moment when the disk is full.
//!
//! Deleting takes room before it gives any back: the deletion goes into the log, the memtable that holds it into a
//! table, and only the merge of that table frees what was deleted. So a file, RESERVE, takes up some room while there
//! is plenty. When a write finds the disk full, a piece of the file is cut off and the write tried again; nobody
//! notices but those who want to add something. They are refused (`StoreError::NoRoom`) until the file has its size
//! again, which is tried every second. Deletions, drops, flushes and compactions go on.
//!
//! The log may use all of the reserve, tables all but a quarter: what they write is in the log or in other tables
//! already, and they can wait. When less than an eighth is left, deletions are refused too, because a log that cannot
//! be written any more would end all writes for good.
//!
//! The size follows the log's: what is in memtables must fit when it becomes tables. A store that is hardly used keeps
//! little.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::files::private;
use crate::store::{Commit, StoreError, Table};

pub(super) const FILE: &str = "RESERVE";
const SIZE_BYTES_MIN: u64 = 1024 * 1024;
/// Cut off at a time for the log.
const LOG_STEP_BYTES: u64 = 256 * 1024;
/// What was given to tables is not taken back at once: the next try comes after a pause.
const LENT_FOR: Duration = Duration::from_secs(15);
/// Beside the reserve itself, so much must be free before things may be added again.
const SLACK_BYTES: u64 = 4 * 1024 * 1024;

pub(super) struct Reserve {
    directory: PathBuf,
    /// 0 turns the reserve off.
    size_bytes_max: u64,
    wanted: AtomicU64,
    size_bytes: AtomicU64,
    /// The disk was full, and the file does not have its size again.
    short: AtomicBool,
    /// Somebody has to look after the file.
    unattended: AtomicBool,
    /// Held while the file changes. Until this moment tables may use what was given to them.
    lent_until: Mutex<Option<Instant>>,
}

/// Who needs room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Log,
    Flush,
    Compaction,
}

impl Reserve {
    pub(super) fn open(directory: &Path, size_bytes_max: u64) -> Reserve {
        let size_bytes = std::fs::metadata(directory.join(FILE)).map_or(0, |metadata| metadata.len());
        let wanted = size_bytes.clamp(SIZE_BYTES_MIN.min(size_bytes_max), size_bytes_max);
        Reserve {
            directory: directory.to_owned(),
            size_bytes_max,
            wanted: AtomicU64::new(wanted),
            size_bytes: AtomicU64::new(size_bytes),
            short: AtomicBool::new(false),
            unattended: AtomicBool::new(false),
            lent_until: Mutex::new(None),
        }
    }

    /// The log has this size. True when the file has to grow with it or to be filled again, which is the background's
    /// work.
    pub(super) fn follow(&self, log_bytes: u64) -> bool {
        let wanted = self.wanted.load(Ordering::Relaxed);
        if log_bytes.saturating_mul(2) > wanted && wanted < self.size_bytes_max {
            let wanted = (log_bytes * 2).next_power_of_two().min(self.size_bytes_max);
            self.wanted.store(wanted, Ordering::Relaxed);
            return true;
        }
        self.unattended.load(Ordering::Relaxed) && self.unattended.swap(false, Ordering::Relaxed)
    }

    pub(super) fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Whether a commit may be made: one that adds items only while there is room, one that removes them until the
    /// last.
    pub(super) fn check(&self, commit: &Commit) -> Result<(), StoreError> {
        if self.is_short() {
            let adds =
                |change: &&crate::store::Change| change.table == Table::Items && change.value.is_some();
            let (left, wanted) =
                (self.size_bytes.load(Ordering::Relaxed), self.wanted.load(Ordering::Relaxed));
            return match commit.changes.iter().find(adds) {
                Some(_) => Err(no_room("only deletes are possible until there is room again")),
                None if left < wanted / 8 => Err(no_room("it must get room from outside")),
                None => Ok(()),
            };
        }
        // What is larger than the reserve could not be saved by it.
        let size_bytes = commit.size_bytes() as u64;
        if size_bytes > SIZE_BYTES_MIN / 2 && self.size_bytes_max > 0 {
            match available_bytes(&self.directory) {
                Some(available) if available < size_bytes.saturating_mul(2) => {
                    return Err(no_room("a change of this size does not fit"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Gives up a part of the file. False when nothing is left to give.
    pub(super) fn release(&self, whom: For) -> bool {
        if self.size_bytes_max == 0 {
            return false;
        }
        let mut lent_until = self.lent_until.lock();
        // A merge that needs more room than there is must not close a store that has some.
        if whom == For::Compaction && !self.is_short() {
            return false;
        }
        let (size_bytes, wanted) =
            (self.size_bytes.load(Ordering::Relaxed), self.wanted.load(Ordering::Relaxed));
        let left = match whom {
            For::Log => size_bytes.saturating_sub(LOG_STEP_BYTES),
            For::Flush | For::Compaction => (size_bytes / 2).max(wanted / 4),
        };
        if whom != For::Log {
            *lent_until = Some(Instant::now() + LENT_FOR);
        }
        self.unattended.store(true, Ordering::Relaxed);
        if !self.short.swap(true, Ordering::Relaxed) {
            tracing::warn!(reserve_bytes = size_bytes, "the disk is full: only deletes are accepted");
        }
        if left >= size_bytes {
            return false;
        }
        let cut = || OpenOptions::new().write(true).open(self.directory.join(FILE))?.set_len(left);
        match cut() {
            Ok(()) => {
                self.size_bytes.store(left, Ordering::Relaxed);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "could not use the reserve");
                false
            }
        }
    }

    /// Gives the file its size, if there is room for it. Takes as long as writing that much takes.
    pub(super) fn fill(&self) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        if self.size_bytes.load(Ordering::Relaxed) >= wanted {
            return;
        }
        let mut lent_until = self.lent_until.lock();
        let missing = wanted - self.size_bytes.load(Ordering::Relaxed);
        let mut slack = if self.is_short() { SLACK_BYTES.min(wanted) } else { 0 };
        // Whoever got something is about to use it; only where there is much more, it need not come from here.
        match lent_until.filter(|time| *time > Instant::now()) {
            Some(_) => slack += 2 * wanted,
            None => *lent_until = None,
        }
        if available_bytes(&self.directory).is_some_and(|available| available < missing + slack) {
            if !self.short.swap(true, Ordering::Relaxed) {
                tracing::warn!("the disk is nearly full: only deletes are accepted");
            }
            return;
        }
        let before = self.size_bytes.load(Ordering::Relaxed);
        match self.extend(before, wanted) {
            Ok(()) => {
                self.size_bytes.store(wanted, Ordering::Relaxed);
                if self.short.swap(false, Ordering::Relaxed) {
                    tracing::info!("there is room on the disk again");
                }
            }
            Err(error) => {
                let cut = || OpenOptions::new().write(true).open(self.directory.join(FILE))?.set_len(before);
                let _ = cut();
                let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
                if full && !self.short.swap(true, Ordering::Relaxed) {
                    tracing::warn!("the disk is nearly full: only deletes are accepted");
                }
            }
        }
    }

    fn extend(&self, from: u64, to: u64) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file: File =
            private(options.create(true).truncate(false).write(true)).open(self.directory.join(FILE))?;
        file.set_len(from)?;
        if allocate(&file, from, to)? {
            return file.sync_data();
        }
        io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
        // A file system that compresses would keep no room for zeros.
        let mut noise = [0; 64 * 1024];
        let mut state = from ^ 0x9E37_79B9_7F4A_7C15;
        let mut left = to - from;
        while left > 0 {
            for word in noise.chunks_exact_mut(8) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                word.copy_from_slice(&state.to_le_bytes());
            }
            let length = left.min(noise.len() as u64);
            file.write_all(&noise[..length as usize])?;
            left -= length;
        }
        file.sync_data()
    }
}

/// Has the file system keep room for a part of a file without anything being written there. False where it cannot do
/// that.
#[cfg(target_os = "linux")]
fn allocate(file: &File, from: u64, to: u64) -> io::Result<bool> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), from, to - from) {
        Ok(()) => Ok(true),
        Err(full @ (Errno::NOSPC | Errno::DQUOT)) => Err(full.into()),
        Err(_) => Ok(false),
    }
}

#[cfg(not(target_os = "linux"))]
fn allocate(_file: &File, _from: u64, _to: u64) -> io::Result<bool> {
    Ok(false)
}

fn no_room(what: &str) -> StoreError {
    StoreError::NoRoom(what.into())
}

/// What this process may still write here, where that can be asked.
#[cfg(unix)]
fn available_bytes(path: &Path) -> Option<u64> {
    let figures = rustix::fs::statvfs(path).ok()?;
    figures.f_bavail.checked_mul(figures.f_frsize)
}

#[cfg(not(unix))]
fn available_bytes(_path: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adding() -> Commit {
        let mut commit = Commit::default();
        commit.put(Table::Items, "key", "value");
        commit
    }

    fn deleting() -> Commit {
        let mut commit = Commit::default();
        commit.delete(Table::Items, "key");
        commit.put(Table::Feed, "change", "deleted");
        commit
    }

    #[test]
    fn what_is_given_up_is_taken_back_when_there_is_room() {
        let directory = tempfile::tempdir().expect("a directory");
        let reserve = Reserve::open(directory.path(), 2 * SIZE_BYTES_MIN);
        reserve.fill();
        let size = || std::fs::metadata(directory.path().join(FILE)).expect("there").len();
        assert_eq!(size(), SIZE_BYTES_MIN);
        reserve.check(&adding()).expect("room");
        assert!(reserve.release(For::Flush));
        assert_eq!(size(), SIZE_BYTES_MIN / 2);
        assert!(matches!(reserve.check(&adding()), Err(StoreError::NoRoom(_))));
        reserve.check(&deleting()).expect("deletes go on");
        reserve.fill();
        assert_eq!(size(), SIZE_BYTES_MIN);
        reserve.check(&adding()).expect("room again");
    }

    #[test]
    fn a_merge_without_room_changes_nothing_for_those_who_write() {
        let directory = tempfile::tempdir().expect("a directory");
        let reserve = Reserve::open(directory.path(), SIZE_BYTES_MIN);
        reserve.fill();
        assert!(!reserve.release(For::Compaction));
        reserve.check(&adding()).expect("room");
        assert!(reserve.release(For::Log));
        assert!(reserve.release(For::Compaction), "where the disk is full anyway, it makes room");
    }

    #[test]
    fn tables_leave_a_quarter_and_the_log_takes_all_but_then_nothing_is_accepted() {
        let directory = tempfile::tempdir().expect("a directory");
        let reserve = Reserve::open(directory.path(), SIZE_BYTES_MIN);
        reserve.fill();
        while reserve.release(For::Flush) {}
        assert_eq!(reserve.size_bytes.load(Ordering::Relaxed), SIZE_BYTES_MIN / 4);
        reserve.check(&deleting()).expect("deletes go on");
        while reserve.release(For::Log) {}
        assert_eq!(reserve.size_bytes.load(Ordering::Relaxed), 0);
        assert!(matches!(reserve.check(&deleting()), Err(StoreError::NoRoom(_))));
    }

    #[test]
    fn the_size_follows_the_log_and_is_found_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let reserve = Reserve::open(directory.path(), 8 * SIZE_BYTES_MIN);
        assert!(!reserve.follow(1000));
        assert!(reserve.follow(SIZE_BYTES_MIN + 1));
        reserve.fill();
        let again = Reserve::open(directory.path(), 8 * SIZE_BYTES_MIN);
        assert_eq!(again.wanted.load(Ordering::Relaxed), 4 * SIZE_BYTES_MIN);
        assert!(again.follow(u64::MAX / 4));
        assert_eq!(again.wanted.load(Ordering::Relaxed), 8 * SIZE_BYTES_MIN);
    }
}
