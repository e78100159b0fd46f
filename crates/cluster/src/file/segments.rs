//! The segments of a file log: written at the end of the newest, read anywhere, removed when nothing in them counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use orrery_storage::{Epoch, SpaceId, StoreError};

use super::record::{
    Record, SEGMENT_PREFIX_BYTES, any_after, decode, push_entry, push_space, segment_prefix,
};
use crate::log::SpaceState;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryPlace {
    pub(super) epoch: Epoch,
    pub(super) data_bytes: u32,
    segment: u64,
    data_at: u64,
}

/// A space, and where its entries are.
pub(super) struct SpaceLog {
    pub(super) state: SpaceState,
    pub(super) end: u64,
    pub(super) entries: BTreeMap<u64, EntryPlace>,
}

impl SpaceLog {
    pub(super) fn new(state: SpaceState, end: u64) -> SpaceLog {
        SpaceLog { state, end, entries: BTreeMap::new() }
    }
}

struct Segment {
    file: File,
    /// Entries in it that were not cut.
    live: u64,
}

pub(super) struct Segments {
    path: PathBuf,
    segment_bytes: u64,
    segments: BTreeMap<u64, Segment>,
    /// The newest, and how far it is written.
    newest: u64,
    end: u64,
    /// Why nothing is written any more, once that is so.
    stopped: Option<StoreError>,
}

/// Records that are to be written together.
pub(super) struct Batch {
    bytes: Vec<u8>,
    segment: u64,
    start: u64,
    entries: u64,
}

impl Batch {
    pub(super) fn push_entry(&mut self, name: (SpaceId, Epoch, u64), data: &Bytes) -> EntryPlace {
        let offset = self.start + self.bytes.len() as u64;
        let data_at = push_entry(&mut self.bytes, self.segment, offset, name, data);
        self.entries += 1;
        EntryPlace { epoch: name.1, data_bytes: data.len() as u32, segment: self.segment, data_at }
    }

    pub(super) fn push_space(&mut self, space: SpaceId, state: &SpaceState, end: u64) {
        let offset = self.start + self.bytes.len() as u64;
        push_space(&mut self.bytes, self.segment, offset, space, state, end);
    }
}

fn segment_name(number: u64) -> String {
    format!("{number:016x}.log")
}

fn parse_segment_name(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".log").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok()
}

impl Segments {
    /// Reads every segment among the files of the directory into `spaces`.
    pub(super) fn open(
        path: &Path,
        names: &[String],
        segment_bytes: u64,
        spaces: &mut BTreeMap<SpaceId, SpaceLog>,
    ) -> Result<Segments, StoreError> {
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| parse_segment_name(name)).collect();
        numbers.sort_unstable();
        let mut segments = Segments {
            path: path.to_owned(),
            segment_bytes,
            segments: BTreeMap::new(),
            newest: 0,
            end: 0,
            stopped: None,
        };
        for number in &numbers {
            segments.load(*number, numbers.last() == Some(number), spaces)?;
        }
        for (id, space) in spaces.iter_mut() {
            space.entries = space.entries.split_off(&space.state.log_from);
            let expected = space.state.log_from..=space.end;
            if !space.entries.keys().copied().eq(expected) {
                let text = format!("entries of space {} are missing in {}", id.0, path.display());
                return Err(StoreError::Damaged(text.into()));
            }
            for place in space.entries.values() {
                if let Some(segment) = segments.segments.get_mut(&place.segment) {
                    segment.live += 1;
                }
            }
        }
        Ok(segments)
    }

    fn load(
        &mut self,
        number: u64,
        last: bool,
        spaces: &mut BTreeMap<SpaceId, SpaceLog>,
    ) -> Result<(), StoreError> {
        let path = self.path.join(segment_name(number));
        let failed = |error: io::Error| StoreError::Io(format!("{}: {error}", path.display()).into());
        let file = File::options().read(true).write(true).open(&path).map_err(failed)?;
        let bytes = std::fs::read(&path).map_err(failed)?;
        let mut offset = SEGMENT_PREFIX_BYTES;
        if bytes.get(..SEGMENT_PREFIX_BYTES) != Some(&segment_prefix(number)[..]) {
            // Made, and not yet written to, when the process died.
            offset = 0;
        }
        while offset > 0 && offset < bytes.len() {
            let Some((record, next)) = decode(&bytes, number, offset) else { break };
            match record {
                Record::Space { space, state, end } => {
                    let found = spaces.entry(space).or_insert_with(|| SpaceLog::new(state.clone(), end));
                    found.state = state;
                    found.end = end;
                }
                Record::Entry { space, epoch, number: entry, data_at, data_bytes } => {
                    if let Some(found) = spaces.get_mut(&space) {
                        let place = EntryPlace { epoch, data_bytes, segment: number, data_at };
                        found.entries.insert(entry, place);
                        found.end = found.end.max(entry);
                    }
                }
            }
            offset = next;
        }
        if offset < bytes.len() {
            if !last || any_after(&bytes, number, offset) {
                let text = format!("{} is damaged at byte {offset}. Nothing was removed", path.display());
                return Err(StoreError::Damaged(text.into()));
            }
            tracing::info!(bytes = bytes.len() - offset, "cut off what was never acknowledged from the log");
            file.set_len(offset as u64).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        if offset > 0 {
            self.segments.insert(number, Segment { file, live: 0 });
            self.end = offset as u64;
        }
        // An empty one is used again by its number.
        self.newest = if offset > 0 { number } else { number.saturating_sub(1) };
        Ok(())
    }

    /// A batch for the end of the newest segment, or for a new one, which begins with the state of all spaces.
    pub(super) fn begin(&self, spaces: &BTreeMap<SpaceId, SpaceLog>) -> Result<Batch, StoreError> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.clone());
        }
        if self.end < self.segment_bytes && self.segments.contains_key(&self.newest) {
            return Ok(Batch { bytes: Vec::new(), segment: self.newest, start: self.end, entries: 0 });
        }
        let segment = self.newest + 1;
        let mut batch = Batch { bytes: segment_prefix(segment).to_vec(), segment, start: 0, entries: 0 };
        for (id, space) in spaces {
            batch.push_space(*id, &space.state, space.end);
        }
        Ok(batch)
    }

    /// Makes a batch durable. If that fails nothing of it counts.
    pub(super) fn write(&mut self, batch: Batch) -> Result<(), StoreError> {
        let path = self.path.join(segment_name(batch.segment));
        if batch.segment != self.newest || !self.segments.contains_key(&batch.segment) {
            let mut options = File::options();
            super::private(&mut options);
            let made = options.read(true).write(true).create(true).truncate(true).open(&path);
            let file = made.map_err(|error| StoreError::Unavailable(describe(&path, &error).into()))?;
            self.segments.insert(batch.segment, Segment { file, live: 0 });
            self.newest = batch.segment;
            self.end = 0;
            if let Err(error) = super::sync_directory(&self.path) {
                return Err(self.stop(&path, &error));
            }
        }
        let Some(segment) = self.segments.get_mut(&self.newest) else {
            return Err(StoreError::Io("the newest segment is not open".into()));
        };
        if let Err(error) = write_all_at(&segment.file, &batch.bytes, batch.start) {
            // What was written of it is taken away again: the next batch goes to the same place.
            let undone = segment.file.set_len(batch.start).and_then(|()| segment.file.sync_all());
            return match undone {
                Ok(()) if error.kind() == io::ErrorKind::StorageFull => {
                    self.forget_unwritten();
                    Err(StoreError::NoRoom(describe(&path, &error).into()))
                }
                _ => Err(self.stop(&path, &error)),
            };
        }
        if let Err(error) = segment.file.sync_data() {
            return Err(self.stop(&path, &error));
        }
        segment.live += batch.entries;
        self.end = batch.start + batch.bytes.len() as u64;
        Ok(())
    }

    /// A segment without its first batch is made anew.
    fn forget_unwritten(&mut self) {
        if self.end == 0 {
            self.segments.remove(&self.newest);
            self.newest -= 1;
        }
    }

    fn stop(&mut self, path: &Path, error: &io::Error) -> StoreError {
        let stopped = StoreError::WritesStopped(describe(path, error).into());
        tracing::error!(error = %stopped, "the log takes nothing any more; restart the server");
        self.stopped.get_or_insert(stopped).clone()
    }

    pub(super) fn read(&self, place: &EntryPlace) -> Result<Bytes, StoreError> {
        let Some(segment) = self.segments.get(&place.segment) else {
            return Err(StoreError::Damaged(format!("segment {} is gone", place.segment).into()));
        };
        let mut data = vec![0; place.data_bytes as usize];
        let path = self.path.join(segment_name(place.segment));
        let read = read_exact_at(&segment.file, &mut data, place.data_at);
        read.map_err(|error| StoreError::Io(describe(&path, &error).into()))?;
        Ok(data.into())
    }

    pub(super) fn forget(&mut self, place: &EntryPlace) {
        if let Some(segment) = self.segments.get_mut(&place.segment) {
            segment.live = segment.live.saturating_sub(1);
        }
    }

    /// Removes the oldest segments as long as nothing in them counts. Only from the front: an older segment might
    /// else be read without what replaced it.
    pub(super) fn remove_unused(&mut self) -> io::Result<()> {
        while let Some((number, segment)) = self.segments.first_key_value()
            && segment.live == 0
            && *number != self.newest
        {
            let number = *number;
            std::fs::remove_file(self.path.join(segment_name(number)))?;
            self.segments.remove(&number);
        }
        Ok(())
    }
}

fn describe(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

#[cfg(unix)]
fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn write_all_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

#[cfg(not(unix))]
fn read_exact_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}
