//! The store's directory: who has it open, and how an empty one becomes a store. What lies where: `inspection`.
//!
//! Nothing that Orrery did not make is ever removed. A directory is made into a store only when nothing is in it,
//! under a marker: CREATING is written and made durable before anything else, and renamed to FORMAT when everything
//! else is there. A crash in between leaves the marker; the next start removes what lies under it, by the names that
//! a creation makes, and begins again. Whatever else is found is refused as it is.
//!
//! Two locks, because the trees have none: a second process would open them without complaint and destroy them. LOCK is
//! the one that everybody tries first. It could be removed under a running server, and a second one would make and lock
//! another, so FORMAT (before: CREATING) is locked as well: without that file no server opens the directory at all.
//!
//! The directory is readable by its owner only, and so is what is in it. One that was there before is closed to others
//! unless somebody has already done so in another way.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::files::{private, sync_directory};
pub(super) use super::inspection::TREE_NAMES;
use super::inspection::{
    CREATING_FILE, FORMAT, FORMAT_FILE, Found as Inspected, LOCK_FILE, LOG, advice, inspect,
};
use super::log_end;
use crate::store::StoreError;

pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// Released when the files are closed.
    locks: [File; 2],
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
        // Before the first file of ours: a directory that is somebody else's gets none.
        refuse_unusable(path)?;
        create_private(path).map_err(failed)?;
        let path = path.canonicalize().map_err(failed)?;
        let first = lock(&path, LOCK_FILE, Create::Yes)?;
        let found = refuse_unusable(&path)?;
        close_to_others(&path);
        let (second, found) = match found {
            Inspected::Store => (lock(&path, FORMAT_FILE, Create::No)?, Found::Store),
            _ => (begin_creation(&path)?, Found::Empty),
        };
        Ok((Directory { path, locks: [first, second] }, found))
    }

    /// Locks a store that is to be looked at and not opened, whole or not.
    pub(super) fn hold(path: &Path) -> Result<Vec<File>, StoreError> {
        let mut locks = vec![lock(path, LOCK_FILE, Create::Yes)?];
        if path.join(FORMAT_FILE).exists() {
            locks.push(lock(path, FORMAT_FILE, Create::No)?);
        }
        Ok(locks)
    }

    /// Says that the trees and the log exist. After this, commits may be accepted.
    pub(super) fn finish_creation(&self) -> Result<(), StoreError> {
        let finish = || {
            std::fs::rename(self.path.join(CREATING_FILE), self.path.join(FORMAT_FILE))?;
            sync_directory(&self.path)?;
            // The directory itself may be new. Its parent may be one that we cannot open; then the system must do.
            let _ = self.path.parent().map(sync_directory);
            Ok(())
        };
        finish().map_err(|error| io_error(&self.path, &error))
    }

    /// What is damaged, with what can be done about it.
    pub(super) fn advise(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Damaged(what) => {
                StoreError::Damaged(format!("{what}. Nothing was removed. {}", advice(&self.path)).into())
            }
            error => error,
        }
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    pub(super) fn tree(&self, index: usize) -> PathBuf {
        self.path.join(TREE_NAMES[index])
    }

    /// Lets another process have the directory.
    pub(super) fn unlock(&self) {
        for file in self.locks.iter().rev() {
            let _ = file.unlock();
        }
    }
}

fn refuse_unusable(path: &Path) -> Result<Inspected, StoreError> {
    let inspection = inspect(path).map_err(|error| io_error(path, &error))?;
    match inspection.refusal() {
        None => Ok(inspection.found),
        Some(refusal) if inspection.missing.is_empty() => Err(StoreError::Refused(refusal.into())),
        Some(refusal) => Err(StoreError::Damaged(refusal.into())),
    }
}

/// Writes the marker, or takes the one that is there and removes what lies under it. The caller has looked: everything
/// under it was made by a creation.
fn begin_creation(path: &Path) -> Result<File, StoreError> {
    let marker = lock(path, CREATING_FILE, Create::Yes)?;
    let begin = || -> io::Result<()> {
        (&marker).write_all(FORMAT.as_bytes())?;
        marker.set_len(FORMAT.len() as u64)?;
        marker.sync_all()?;
        sync_directory(path)?;
        for name in [LOG].into_iter().chain(TREE_NAMES) {
            remove_unfinished(&path.join(name))?;
        }
        match std::fs::remove_file(path.join(log_end::FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => create_private(&path.join(LOG)),
        }
    };
    begin().map_err(|error| io_error(path, &error))?;
    Ok(marker)
}

/// Removes a directory that a creation has made: its files, its own `tables` when that is empty, itself when nothing is
/// left.
fn remove_unfinished(path: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => std::fs::remove_dir(entry.path())?,
            false => std::fs::remove_file(entry.path())?,
        }
    }
    std::fs::remove_dir(path)
}

fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// A directory that everybody may look into is as it was made by default. One that only a group may look into was set
/// up so, and one that is not ours cannot be changed: both stay as they are.
fn close_to_others(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let Ok(metadata) = std::fs::metadata(path) else { return };
        if metadata.permissions().mode() & 0o007 != 0
            && let Err(error) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
        {
            tracing::warn!(directory = %path.display(), %error, "other users can read the data directory");
        }
    }
    #[cfg(not(unix))]
    let _ = path;
}

#[derive(PartialEq, Eq)]
enum Create {
    Yes,
    No,
}

/// Opens and locks a file of the directory.
fn lock(path: &Path, name: &str, create: Create) -> Result<File, StoreError> {
    let place = path.join(name);
    loop {
        let file =
            private(OpenOptions::new().create(create == Create::Yes).truncate(false).read(true).write(true))
                .open(&place)
                .map_err(|error| io_error(path, &error))?;
        match file.try_lock() {
            // Removed or replaced in the meantime: what is locked is not what the next process would find.
            Ok(()) if !is_at(&file, &place) => {}
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Refused(
                    format!(
                        "{} is in use by another process; stop it or choose another directory",
                        path.display()
                    )
                    .into(),
                ));
            }
            Err(TryLockError::Error(error)) => return Err(io_error(path, &error)),
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(locked), Ok(found)) => (locked.dev(), locked.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

/// A file that is open cannot be removed there.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> bool {
    true
}

fn io_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{}: {error}", path.display()).into())
}
