//! What the log is known to hold, kept beside it in the file LOGEND, so that a segment that is missing or was cut
//! after a crash is told from one that simply ends there.
//!
//! ```text
//! magic 8 | base of the oldest segment still needed 8 | base of the newest 8 | its durable bytes 8 | crc32c 4
//! ```
//!
//! Written in place after every sync of the log, without a sync of its own: a killed process leaves exactly what it
//! knew, a power cut perhaps something older, which is still true. Only where a segment begins or ceases to be needed
//! is it synced, the latter before the segment is removed.
//!
//! What can be noticed at the next open, and is then refused:
//! - the newest segment, or any that was still needed, is gone;
//! - the newest segment ends before what had been synced, so that acknowledged commits are missing, or its frames
//!   there are not valid. After a kill this is exact; after a power cut it holds for what the last LOGEND to reach
//!   the disk said;
//! - an older segment was cut: its successor's header knows its length. Frames inside a segment carry what was durable
//!   when they were written (`frame`), so damage in the middle is noticed without this file;
//! - the tables hold commits that the log has never seen: without this file too.
//!
//! What cannot be noticed: the loss of commits that were never synced (`--durability relaxed`), of the newest ones
//! together with LOGEND, and a whole directory that was replaced by an older copy of itself. A store of an earlier
//! version has no LOGEND and gets one when it is opened. If an earlier version has written to the store since, its
//! segments are newer than LOGEND, which then says nothing.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use super::files::private;
use crate::store::StoreError;

pub(super) const FILE: &str = "LOGEND";
const MAGIC: [u8; 8] = *b"ORREND\0\x01";
const BYTES: usize = 36;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogEnd {
    pub(super) oldest: u64,
    pub(super) newest: u64,
    pub(super) synced_end: u64,
}

/// Said instead of what is known by an operator who goes on with the log as it is.
const AS_IT_IS: LogEnd = LogEnd { oldest: 0, newest: 0, synced_end: 0 };

impl LogEnd {
    /// Whether whatever the log holds is to be taken for all of it.
    pub(super) fn takes_anything(&self) -> bool {
        *self == AS_IT_IS
    }

    /// `None` when nothing is known.
    pub(super) fn read(directory: &Path) -> Result<Option<LogEnd>, StoreError> {
        let path = directory.join(FILE);
        let bytes = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::Io(format!("{}: {error}", path.display()).into())),
            Ok(bytes) => bytes,
        };
        // A power cut while it was made.
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        LogEnd::decode(&bytes).map(Some).ok_or_else(|| {
            let what = format!(
                "{} is not valid. Remove it to open the store without knowing where its log ended",
                path.display()
            );
            StoreError::Damaged(what.into())
        })
    }

    fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.oldest.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.newest.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.synced_end.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<LogEnd> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let crc = crc32c::crc32c(&bytes[..32]).to_le_bytes();
        (bytes[..8] == MAGIC && bytes[32..] == crc).then_some(())?;
        Some(LogEnd { oldest: number(8)?, newest: number(16)?, synced_end: number(24)? })
    }
}

/// The log of this directory, which is not open, is to be taken as it is at the next open: an operator has decided to
/// go on without what is missing.
pub fn take_log_as_it_is(directory: &Path) -> io::Result<()> {
    let mut file = EndFile::open(directory)?;
    file.note(&AS_IT_IS)?;
    file.sync()
}

/// The file while the store is open.
pub(super) struct EndFile {
    file: File,
}

impl EndFile {
    pub(super) fn open(directory: &Path) -> io::Result<EndFile> {
        let mut options = OpenOptions::new();
        let file = private(options.write(true).create(true).truncate(false)).open(directory.join(FILE))?;
        super::files::sync_directory(directory)?;
        Ok(EndFile { file })
    }

    pub(super) fn note(&mut self, end: &LogEnd) -> io::Result<()> {
        let bytes = end.encode();
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_at(&self.file, &bytes, 0)?;
        #[cfg(windows)]
        let written = std::os::windows::fs::FileExt::seek_write(&self.file, &bytes, 0)?;
        if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_decodes_only_when_whole() {
        let end = LogEnd { oldest: 3, newest: 9, synced_end: 77 };
        let bytes = end.encode();
        assert_eq!(LogEnd::decode(&bytes), Some(end));
        assert_eq!(LogEnd::decode(&bytes[..35]), None);
        for place in 0..bytes.len() {
            let mut flipped = bytes;
            flipped[place] ^= 1;
            assert_eq!(LogEnd::decode(&flipped), None);
        }
    }
}
