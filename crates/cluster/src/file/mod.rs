//! A log in a directory: one machine, one process. For trying out what a log gives, for tests, and as the measure of
//! what the network adds.
//!
//! ```text
//! DIR/IDENTITY                        names the log, and is locked by who has it open
//! DIR/0000000000000001.log, …         segments: entries of all spaces in the order of their appending
//! DIR/chunk-<space>-<at>-<number>     a chunk of a checkpoint
//! ```
//!
//! One write and one sync per append, whatever number of spaces it is for. Where entries are is kept in memory, 40
//! bytes each. Every segment begins with the state of all spaces, so a segment whose entries are all cut can go. What
//! was being written when the process died ends the last segment and is cut off at the next start: it was never
//! acknowledged. Anything else that is not as it was written is damage, and refused. A failed sync is final for the
//! process, because nobody knows then what the disk holds.

mod record;
mod segments;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use orrery_storage::{Claim, Epoch, SpaceId, StoreError};
use parking_lot::Mutex;

use self::segments::{Segments, SpaceLog};
use crate::log::{Checkpoint, ENTRY_BYTES_MAX, Entry, Frame, Log, LogStats, Session, SpaceState, Taken};
use crate::seal::{Kind, Place, sealed, unsealed};

/// A segment of this size is ended.
const SEGMENT_BYTES: u64 = 16 * 1024 * 1024;
/// How many chunk files one `cut` removes.
const CUT_CHUNKS: usize = 32;

/// A handle on a log. `another` makes a second one in this process; another process is refused.
pub struct FileLog {
    core: Arc<Core>,
    closed: AtomicBool,
}

struct Core {
    path: PathBuf,
    identity: String,
    /// Released when the file is closed.
    _lock: File,
    state: Mutex<State>,
    appends: AtomicU64,
    append_bytes: AtomicU64,
}

struct State {
    segments: Segments,
    spaces: BTreeMap<SpaceId, SpaceLog>,
    /// Every chunk that has a file: space, place of the checkpoint, number.
    chunks: BTreeSet<(SpaceId, u64, u32)>,
}

impl FileLog {
    /// Opens the log in a directory, making both when they are not there.
    pub fn open(path: impl AsRef<Path>) -> Result<FileLog, StoreError> {
        FileLog::open_with(path.as_ref(), SEGMENT_BYTES)
    }

    fn open_with(path: &Path, segment_bytes: u64) -> Result<FileLog, StoreError> {
        let failed = |error: io::Error| StoreError::Io(format!("{}: {error}", path.display()).into());
        create_private(path).map_err(failed)?;
        let (identity, lock) = identify(path)?;
        let mut chunks = BTreeSet::new();
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            chunks.extend(parse_chunk_name(&name));
            names.push(name);
        }
        let mut spaces = BTreeMap::new();
        let segments = Segments::open(path, &names, segment_bytes, &mut spaces)?;
        let core = Core {
            path: path.to_owned(),
            identity,
            _lock: lock,
            state: Mutex::new(State { segments, spaces, chunks }),
            appends: AtomicU64::new(0),
            append_bytes: AtomicU64::new(0),
        };
        Ok(FileLog { core: Arc::new(core), closed: AtomicBool::new(false) })
    }

    /// Another handle on the same log.
    pub fn another(&self) -> FileLog {
        FileLog { core: self.core.clone(), closed: AtomicBool::new(false) }
    }

    fn refuse_closed(&self) -> Result<(), StoreError> {
        match self.closed.load(Ordering::Acquire) {
            true => Err(StoreError::Closed),
            false => Ok(()),
        }
    }

    fn chunk_path(&self, (space, at, number): (SpaceId, u64, u32)) -> PathBuf {
        self.core.path.join(format!("chunk-{}-{at}-{number}", space.0))
    }

    fn failed(&self, error: &io::Error) -> StoreError {
        let text = format!("{}: {error}", self.core.path.display()).into();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::NoRoom(text),
            _ => StoreError::Io(text),
        }
    }
}

impl State {
    /// The space, if this epoch is its owner's.
    fn owned(&mut self, space: SpaceId, epoch: Epoch) -> Result<&mut SpaceLog, StoreError> {
        match self.spaces.get_mut(&space) {
            Some(found) if found.state.epoch == epoch => Ok(found),
            _ => Err(StoreError::Fenced(space)),
        }
    }

    /// Writes how a space is to be from now on, and when that is durable makes it so.
    fn change(
        &mut self,
        space: SpaceId,
        state: SpaceState,
        end: u64,
        marker: Option<&Bytes>,
    ) -> Result<(), StoreError> {
        let mut batch = self.segments.begin(&self.spaces)?;
        batch.push_space(space, &state, end);
        let epoch = state.epoch;
        let place = marker.map(|marker| batch.push_entry((space, epoch, end), marker));
        self.segments.write(batch)?;
        let found = self.spaces.entry(space).or_insert_with(|| SpaceLog::new(state.clone(), end));
        found.state = state;
        found.end = end;
        found.entries.extend(place.map(|place| (end, place)));
        Ok(())
    }
}

impl Log for FileLog {
    fn identity(&self) -> &str {
        &self.core.identity
    }

    fn take(&self, space: SpaceId, claim: Claim, owner: &str, marker: &Bytes) -> Result<Taken, StoreError> {
        self.refuse_closed()?;
        let mut state = self.core.state.lock();
        let found = state.spaces.get(&space);
        let epoch = match (found, claim) {
            (None, Claim::Renew(_)) => None,
            (None, Claim::Take(_)) => claim.granted(Epoch(0)),
            (Some(found), Claim::Renew(mine))
                if found.state.epoch.0 == mine.0.saturating_add(1) && found.state.owner == owner =>
            {
                Claim::Renew(found.state.epoch).granted(found.state.epoch)
            }
            (Some(found), _) => claim.granted(found.state.epoch),
        };
        let epoch = epoch.ok_or(StoreError::Fenced(space))?;
        let (checkpoint, log_from, end) =
            found.map_or((None, 1, 0), |found| (found.state.checkpoint, found.state.log_from, found.end));
        let new = SpaceState { epoch, owner: owner.to_owned(), checkpoint, log_from };
        let end = end + 1;
        state.change(space, new, end, Some(marker))?;
        Ok(Taken { session: Session(1), epoch, checkpoint, log_from, end })
    }

    fn append(&self, _: Session, frames: &[Frame]) -> Result<Vec<SpaceId>, StoreError> {
        self.refuse_closed()?;
        let mut state = self.core.state.lock();
        let state = &mut *state;
        let mut batch = state.segments.begin(&state.spaces)?;
        let (mut fenced, mut places, mut bytes) = (Vec::new(), Vec::with_capacity(frames.len()), 0);
        for frame in frames {
            if frame.data.len() > ENTRY_BYTES_MAX {
                return Err(StoreError::Limit(format!("entry of {} bytes", frame.data.len()).into()));
            }
            match state.spaces.get(&frame.space) {
                Some(space) if space.state.epoch == frame.epoch => {
                    if frame.number != space.end + 1 {
                        let (number, end) = (frame.number, space.end);
                        let text = format!("entry {number} of space {} follows {end}", frame.space.0);
                        return Err(StoreError::Refused(text.into()));
                    }
                    bytes += frame.data.len() as u64;
                    let place = batch.push_entry((frame.space, frame.epoch, frame.number), &frame.data);
                    places.push((frame.space, frame.number, place));
                }
                _ => fenced.push(frame.space),
            }
        }
        if !places.is_empty() {
            state.segments.write(batch)?;
        }
        for (space, number, place) in places {
            if let Some(space) = state.spaces.get_mut(&space) {
                space.entries.insert(number, place);
                space.end = number;
            }
        }
        self.core.appends.fetch_add(1, Ordering::Relaxed);
        self.core.append_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(fenced)
    }

    fn read(&self, space: SpaceId, from: u64, bytes_max: usize) -> Result<Vec<Entry>, StoreError> {
        let mut state = self.core.state.lock();
        let state = &mut *state;
        let Some(found) = state.spaces.get(&space) else { return Ok(Vec::new()) };
        let (mut entries, mut bytes) = (Vec::new(), 0);
        for (number, place) in found.entries.range(from.max(found.state.log_from)..) {
            bytes += place.data_bytes as usize;
            if !entries.is_empty() && bytes > bytes_max {
                break;
            }
            let data = state.segments.read(place)?;
            entries.push(Entry { number: *number, epoch: place.epoch, data });
        }
        Ok(entries)
    }

    fn state(&self, space: SpaceId) -> Result<Option<SpaceState>, StoreError> {
        Ok(self.core.state.lock().spaces.get(&space).map(|found| found.state.clone()))
    }

    fn spaces(&self) -> Result<Vec<SpaceId>, StoreError> {
        Ok(self.core.state.lock().spaces.keys().copied().collect())
    }

    fn write_chunk(
        &self,
        space: SpaceId,
        epoch: Epoch,
        at: u64,
        number: u32,
        data: &Bytes,
    ) -> Result<(), StoreError> {
        self.refuse_closed()?;
        self.core.state.lock().owned(space, epoch)?;
        let place = Place { kind: Kind::Chunk, space, at, with: number.into() };
        let write = || {
            let mut options = File::options();
            private(&mut options);
            let path = self.chunk_path((space, at, number));
            let mut file = options.write(true).create(true).truncate(true).open(path)?;
            file.write_all(&sealed(place, data))?;
            file.sync_all()
        };
        let written = write();
        self.core.state.lock().chunks.insert((space, at, number));
        written.map_err(|error| self.failed(&error))
    }

    fn set_checkpoint(&self, space: SpaceId, epoch: Epoch, checkpoint: Checkpoint) -> Result<(), StoreError> {
        self.refuse_closed()?;
        // The names of the chunks, before anything relies on them.
        sync_directory(&self.core.path).map_err(|error| self.failed(&error))?;
        let mut state = self.core.state.lock();
        let found = state.owned(space, epoch)?;
        if checkpoint.at < found.state.log_from || checkpoint.at > found.end {
            let text = format!("a checkpoint at {} of space {}", checkpoint.at, space.0);
            return Err(StoreError::Refused(text.into()));
        }
        let (mut new, end) = (found.state.clone(), found.end);
        new.checkpoint = Some(checkpoint);
        new.log_from = checkpoint.at;
        state.change(space, new, end, None)
    }

    fn read_chunk(&self, space: SpaceId, at: u64, number: u32) -> Result<Bytes, StoreError> {
        let bytes = std::fs::read(self.chunk_path((space, at, number))).map_err(|error| {
            let text = format!("chunk {number} of checkpoint {at} of space {}: {error}", space.0);
            match error.kind() {
                io::ErrorKind::NotFound => StoreError::Damaged(text.into()),
                _ => StoreError::Io(text.into()),
            }
        })?;
        unsealed(Place { kind: Kind::Chunk, space, at, with: number.into() }, bytes.into())
    }

    fn cut(&self, space: SpaceId) -> Result<bool, StoreError> {
        let mut state = self.core.state.lock();
        let state = &mut *state;
        let Some(found) = state.spaces.get_mut(&space) else { return Ok(false) };
        let kept = found.entries.split_off(&found.state.log_from);
        for place in std::mem::replace(&mut found.entries, kept).into_values() {
            state.segments.forget(&place);
        }
        let failed = |error: io::Error| self.failed(&error);
        state.segments.remove_unused().map_err(failed)?;
        let of_space = (space, 0, 0)..(space, found.state.log_from, 0);
        let garbage: Vec<_> = state.chunks.range(of_space).take(CUT_CHUNKS).copied().collect();
        for chunk in &garbage {
            match std::fs::remove_file(self.chunk_path(*chunk)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => state.chunks.remove(chunk),
            };
        }
        Ok(garbage.len() == CUT_CHUNKS)
    }

    fn drop_space(&self, space: SpaceId) -> Result<(), StoreError> {
        self.refuse_closed()?;
        let mut state = self.core.state.lock();
        let Some(found) = state.spaces.get(&space) else { return Ok(()) };
        let end = found.end;
        let new = SpaceState {
            epoch: Epoch(found.state.epoch.0 + 1),
            owner: String::new(),
            checkpoint: None,
            log_from: end + 1,
        };
        state.change(space, new, end, None)
    }

    fn stats(&self) -> LogStats {
        LogStats {
            appends: self.core.appends.load(Ordering::Relaxed),
            append_bytes: self.core.append_bytes.load(Ordering::Relaxed),
            connections: 1,
            unknown_outcomes: 0,
            connected: !self.closed.load(Ordering::Acquire),
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }
}

const IDENTITY_FILE: &str = "IDENTITY";

/// Locks the directory and reads what the log is called, naming it when it is new.
fn identify(path: &Path) -> Result<(String, File), StoreError> {
    let shown = path.display();
    let failed = |error: io::Error| StoreError::Io(format!("{shown}: {error}").into());
    let mut options = File::options();
    private(&mut options);
    let mut file = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path.join(IDENTITY_FILE))
        .map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(StoreError::Refused(format!("another process has the log in {shown} open").into()));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    match text.strip_prefix("orrery log 1 ").and_then(|rest| rest.strip_suffix('\n')) {
        Some(identity) if !identity.is_empty() => return Ok((identity.to_owned(), file)),
        // A crash while it was made leaves a part of it, and nothing else.
        _ if std::fs::read_dir(path).map_err(failed)?.count() > 1 => {
            let text =
                format!("{shown} is not empty and holds no log of this version: name another directory");
            return Err(StoreError::Refused(text.into()));
        }
        _ => {}
    }
    let identity = crate::log::new_identity()?;
    file.set_len(0).map_err(failed)?;
    io::Seek::rewind(&mut file).map_err(failed)?;
    file.write_all(format!("orrery log 1 {identity}\n").as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    sync_directory(path).map_err(failed)?;
    Ok((identity, file))
}

fn parse_chunk_name(name: &str) -> Option<(SpaceId, u64, u32)> {
    let mut numbers = name.strip_prefix("chunk-")?.split('-');
    let chunk = (
        SpaceId(numbers.next()?.parse().ok()?),
        numbers.next()?.parse().ok()?,
        numbers.next()?.parse().ok()?,
    );
    numbers.next().is_none().then_some(chunk)
}

fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Files that are made with these options are their owner's alone.
fn private(options: &mut std::fs::OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Waits until the names in a directory are durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    // Directories cannot be opened as files on Windows, where names are durable with their files.
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
