//! The store's directory: its lock, its format version, and the creation of an empty one.
//!
//! ```text
//! LOCK      held by the process that has the store open
//! FORMAT    version of everything below; written last when the directory is made
//! log/      segments of the write-ahead log
//! items/ index/ feed/   the three trees
//! ```
//!
//! The lock is needed because the trees have none: a second process would open them without complaint and destroy
//! them. Other files in the directory are left alone. A directory without FORMAT is empty or its creation was
//! interrupted; no commit was accepted in it, so what is there is removed. When its log has bytes beyond a header that
//! cannot be, and it is refused instead.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files::sync_directory;
use super::frame::HEADER_BYTES;
use crate::store::StoreError;

/// Raised with every change of what is on disk that an older or newer program would misread.
const FORMAT: &str = "orrery store 1\n";
pub(super) const TREE_NAMES: [&str; 3] = ["items", "index", "feed"];

pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// Released when the file is closed.
    lock: File,
}

/// What `open` found.
#[derive(PartialEq, Eq)]
pub(super) enum Found {
    Empty,
    Store,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<(Directory, Found), StoreError> {
        let failed = |error| io_error(path, &error);
        std::fs::create_dir_all(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let lock = lock(&path)?;
        let directory = Directory { path, lock };
        let found = directory.find()?;
        Ok((directory, found))
    }

    fn find(&self) -> Result<Found, StoreError> {
        let failed = |error| io_error(&self.path, &error);
        match std::fs::read_to_string(self.path.join("FORMAT")) {
            Ok(format) if format == FORMAT => Ok(Found::Store),
            Ok(format) => Err(StoreError::Refused(
                format!(
                    "{} has format {:?}; this program reads {:?}",
                    self.path.display(),
                    format.trim_end(),
                    FORMAT.trim_end()
                )
                .into(),
            )),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.remove_interrupted_creation()?;
                std::fs::create_dir_all(self.log()).map_err(failed)?;
                Ok(Found::Empty)
            }
            Err(error) => Err(failed(error)),
        }
    }

    fn remove_interrupted_creation(&self) -> Result<(), StoreError> {
        let failed = |error| io_error(&self.path, &error);
        if self.log().is_dir() {
            for entry in std::fs::read_dir(self.log()).map_err(failed)? {
                let size_bytes = entry.and_then(|entry| entry.metadata()).map_err(failed)?.len();
                if size_bytes > HEADER_BYTES as u64 {
                    let what = format!("{} has a log but no FORMAT file", self.path.display());
                    return Err(StoreError::Damaged(what.into()));
                }
            }
        }
        for name in TREE_NAMES.into_iter().chain(["log"]) {
            match std::fs::remove_dir_all(self.path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Says that the trees and the log exist. After this, commits may be accepted.
    pub(super) fn finish_creation(&self) -> Result<(), StoreError> {
        let write = || {
            let mut file = File::create(self.path.join("FORMAT"))?;
            file.write_all(FORMAT.as_bytes())?;
            file.sync_data()?;
            sync_directory(&self.path)?;
            // The directory itself may be new. Its parent may be one that we cannot open; then the system must do.
            let _ = self.path.parent().map(sync_directory);
            Ok(())
        };
        write().map_err(|error| io_error(&self.path, &error))
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    pub(super) fn tree(&self, index: usize) -> PathBuf {
        self.path.join(TREE_NAMES[index])
    }

    /// Lets another process have the directory.
    pub(super) fn unlock(&self) {
        let _ = self.lock.unlock();
    }
}

fn lock(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.join("LOCK"))
        .map_err(|error| io_error(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Refused(
            format!("{} is in use by another process; stop it or choose another directory", path.display())
                .into(),
        )),
        Err(TryLockError::Error(error)) => Err(io_error(path, &error)),
    }
}

fn io_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{}: {error}", path.display()).into())
}
