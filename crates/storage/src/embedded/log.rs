//! The write-ahead log while it is written: the current segment, and which older ones are still needed.
//!
//! Owned by the committer thread alone. A group is one frame, appended with one write and made durable with one sync.
//! When the current segment is full it is synced and the next one created, header and name durable before its first
//! frame. A failed write or sync is final: the caller stops accepting writes and never tries the sync again, because
//! after a failed sync the operating system may have dropped the pages and report success.
//!
//! The file grows ahead of its frames, in steps of zeros. A frame that only overwrites them changes neither the
//! length of the file nor where its blocks lie, so its sync writes data and nothing else: half the work and a third
//! of the time of a sync that must make a new length durable too. Recovery takes zeros up to the end of a file for
//! what they are.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::files::{LogDirectory, LogFile};
use super::frame::{FrameBuilder, HEADER_BYTES, Header};
use super::log_end::{EndFile, LogEnd};
use super::reserve::{For, Reserve};
use super::setback::{is_full, is_passing};

/// A segment that is no longer written.
#[derive(Debug, Clone)]
pub(super) struct OldSegment {
    pub(super) base: u64,
    /// The last seqno in it, or `base - 1` when it has no record.
    pub(super) last_seqno: u64,
    pub(super) size_bytes: u64,
}

pub(super) struct Log {
    directory: Arc<dyn LogDirectory>,
    /// Gives room when the disk is full.
    reserve: Arc<Reserve>,
    /// Where it is said what the log holds.
    end_file: EndFile,
    /// Oldest first.
    old: VecDeque<OldSegment>,
    /// Segments that are no longer needed but that `end_file` may still call for.
    released: Vec<String>,
    file: Box<dyn LogFile>,
    base: u64,
    last_seqno: u64,
    end: u64,
    synced_end: u64,
    /// How long the file is: frames up to `end`, then zeros.
    allocated: u64,
    /// Frames are appended until the segment is this long; it is not made longer ahead of them.
    segment_bytes_max: u64,
    syncs: u64,
}

/// The first step by which a file grows ahead of its frames. Later steps double it, up to `GROWTH_BYTES_MAX`: a store
/// that is hardly used stays small, a busy one rarely waits for more than its own frame.
const GROWTH_BYTES_MIN: u64 = 64 * 1024;
const GROWTH_BYTES_MAX: u64 = 1024 * 1024;
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

pub(super) fn segment_name(base: u64) -> String {
    format!("{base:016x}.log")
}

pub(super) fn segment_base(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log")?;
    let base = u64::from_str_radix(digits, 16).ok()?;
    // Only the spelling that we write: anything else is no file of ours.
    (segment_name(base) == name).then_some(base)
}

impl Log {
    /// Starts a segment after the old ones, which are complete and durable.
    pub(super) fn start(
        directory: Arc<dyn LogDirectory>,
        end_file: EndFile,
        reserve: Arc<Reserve>,
        old: VecDeque<OldSegment>,
        base: u64,
        segment_bytes_max: u64,
    ) -> io::Result<Log> {
        let file = create_segment(&*directory, old.back(), base)?;
        let end = HEADER_BYTES as u64;
        let mut log = Log {
            directory,
            reserve,
            end_file,
            old,
            released: Vec::new(),
            file,
            base,
            last_seqno: base - 1,
            end,
            synced_end: end,
            allocated: end,
            segment_bytes_max,
            syncs: 2,
        };
        log.note_end(true)?;
        Ok(log)
    }

    /// Says what the log holds. What was said before stays true when this fails, except that a segment may no longer be
    /// needed: that must be durable before the segment is removed.
    fn note_end(&mut self, durable: bool) -> io::Result<()> {
        let oldest = self.old.front().map_or(self.base, |segment| segment.base);
        self.end_file.note(&LogEnd { oldest, newest: self.base, synced_end: self.synced_end })?;
        if durable { self.end_file.sync() } else { Ok(()) }
    }

    /// Appends a frame whose last record has `last_seqno`. Not durable before `sync`.
    pub(super) fn append(&mut self, frame: &mut FrameBuilder, last_seqno: u64) -> io::Result<()> {
        let bytes = frame.finish(self.base, self.end, self.synced_end);
        let mut written = write_all(&mut *self.file, bytes, self.end);
        // Nobody has been told of this frame, and the next try writes over what there is of it.
        while written.as_ref().is_err_and(is_full) && self.reserve.release(For::Log) {
            written = write_all(&mut *self.file, bytes, self.end);
        }
        if let Err(error) = written {
            // The commits in it are answered with an error. Cutting what was written of them is worth a try, so that
            // they do not appear after a restart; recovery copes when the cut fails too.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += bytes.len() as u64;
        self.last_seqno = self.last_seqno.max(last_seqno);
        if self.end > self.allocated {
            self.grow()?;
        }
        Ok(())
    }

    /// Adds zeros behind the frames, which become durable with the frame that made the file longer. A disk without
    /// room for them may still have room for frames: that is not the failure of a frame.
    fn grow(&mut self) -> io::Result<()> {
        self.allocated = self.end;
        let step = self.end.clamp(GROWTH_BYTES_MIN, GROWTH_BYTES_MAX);
        let wanted = (self.end + step).min(self.segment_bytes_max);
        while self.allocated < wanted {
            let length = (wanted - self.allocated).min(ZEROS.len() as u64);
            match write_all(&mut *self.file, &ZEROS[..length as usize], self.allocated) {
                Ok(()) => self.allocated += length,
                Err(error) if is_full(&error) || error.kind() == io::ErrorKind::FileTooLarge => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes everything appended durable.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.synced_end < self.end {
            self.syncs += 1;
            self.file.sync()?;
            self.synced_end = self.end;
            let _ = self.note_end(false);
        }
        Ok(())
    }

    /// Ends the current segment and starts the next one. An error for which `is_passing` says yes leaves everything
    /// as it was: the current segment goes on, and another try may succeed.
    pub(super) fn roll(&mut self, base: u64) -> io::Result<()> {
        self.sync()?;
        let ended = OldSegment { base: self.base, last_seqno: self.last_seqno, size_bytes: self.end };
        let mut created = create_segment(&*self.directory, Some(&ended), base);
        while let Err(error) = &created
            && is_passing(error)
        {
            // Recovery takes a segment that has a successor for complete, and this one is not: no trace of the next
            // may stay.
            remove_unfinished(&*self.directory, base)?;
            if !is_full(error) || !self.reserve.release(For::Log) {
                break;
            }
            created = create_segment(&*self.directory, Some(&ended), base);
        }
        self.file = created?;
        self.old.push_back(ended);
        self.base = base;
        self.last_seqno = base - 1;
        self.end = HEADER_BYTES as u64;
        self.synced_end = self.end;
        self.allocated = self.end;
        self.syncs += 2;
        let _ = self.note_end(true);
        Ok(())
    }

    /// Forgets the old segments in which every record is older than `seqno`, oldest first, and returns the names of
    /// those that may be removed.
    pub(super) fn release(&mut self, seqno: u64) -> Vec<String> {
        while let Some(segment) = self.old.front().filter(|segment| segment.last_seqno < seqno) {
            self.released.push(segment_name(segment.base));
            self.old.pop_front();
        }
        if self.released.is_empty() {
            return Vec::new();
        }
        match self.note_end(true) {
            Ok(()) => std::mem::take(&mut self.released),
            Err(error) => {
                tracing::warn!(%error, "old log segments stay: it could not be said that they are not needed");
                Vec::new()
            }
        }
    }

    /// The last seqno of the oldest segment that is not the current one.
    pub(super) fn oldest_last_seqno(&self) -> Option<u64> {
        self.old.front().map(|segment| segment.last_seqno)
    }

    pub(super) fn segment_bytes(&self) -> u64 {
        self.end
    }

    pub(super) fn is_segment_empty(&self) -> bool {
        self.end == HEADER_BYTES as u64
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.end + self.old.iter().map(|segment| segment.size_bytes).sum::<u64>()
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn syncs(&self) -> u64 {
        self.syncs
    }
}

fn create_segment(
    directory: &dyn LogDirectory,
    previous: Option<&OldSegment>,
    base: u64,
) -> io::Result<Box<dyn LogFile>> {
    let header = Header {
        base,
        previous_base: previous.map_or(0, |segment| segment.base),
        previous_bytes: previous.map_or(0, |segment| segment.size_bytes),
    };
    let mut file = directory.create(&segment_name(base))?;
    write_all(&mut *file, &header.encode(), 0)?;
    file.sync()?;
    directory.sync()?;
    Ok(file)
}

/// Fails with an error that is not passing.
fn remove_unfinished(directory: &dyn LogDirectory, base: u64) -> io::Result<()> {
    let final_error = |error: io::Error| io::Error::other(format!("an unfinished segment stays: {error}"));
    match directory.remove(&segment_name(base)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(final_error(error)),
        Ok(()) => directory.sync().map_err(final_error),
    }
}

fn write_all(file: &mut dyn LogFile, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
