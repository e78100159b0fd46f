//! The files under the log, behind a small trait so that tests can make every call fail.
//!
//! Only what the log needs: whole-file reads at recovery, positioned writes that may be short, and the three kinds of
//! sync (data, truncation, directory). The log above decides what a failure means; nothing here retries.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;

/// The directory of the log's segments.
pub(crate) trait LogDirectory: Send + Sync {
    /// Names of all files, in any order.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes an empty file, emptying an existing one.
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>>;
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Cuts a file and waits until the cut is durable.
    fn truncate(&self, name: &str, size_bytes: u64) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Waits until created and removed names are durable.
    fn sync(&self) -> io::Result<()>;
}

/// A segment that is being written.
pub(crate) trait LogFile: Send {
    /// Writes some of the bytes, as the operating system may, and says how many.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Waits until everything written is durable.
    fn sync(&mut self) -> io::Result<()>;
    fn set_len(&mut self, size_bytes: u64) -> io::Result<()>;
}

/// The real thing.
pub(crate) struct OsDirectory {
    pub(crate) path: PathBuf,
}

impl LogDirectory for OsDirectory {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let mut options = OpenOptions::new();
        let file = private(options.write(true).create(true).truncate(true)).open(self.path.join(name))?;
        Ok(Box::new(OsFile { file }))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.path.join(name))
    }

    fn truncate(&self, name: &str, size_bytes: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.path.join(name))?;
        file.set_len(size_bytes)?;
        file.sync_all()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        sync_directory(&self.path)
    }
}

/// Waits until the names in a directory are durable.
pub(crate) fn sync_directory(path: &std::path::Path) -> io::Result<()> {
    // Directories cannot be opened as files on Windows, where names are durable with their files.
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// Files that are made with these options are their owner's alone.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

struct OsFile {
    file: File,
}

impl LogFile for OsFile {
    #[cfg(unix)]
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.file, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(&self.file, bytes, offset)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn set_len(&mut self, size_bytes: u64) -> io::Result<()> {
        self.file.set_len(size_bytes)
    }
}
