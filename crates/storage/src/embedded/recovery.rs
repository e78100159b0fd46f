//! Reading the log when a store opens: what is whole, what is a torn tail, what is damage.
//!
//! Two passes. The first checks every segment and collects drops; the second replays rows into the trees. Two, because
//! a value must not be replayed when a later record drops its space: the drop may already have taken the tables that
//! would have told us that the row is old.
//!
//! Only the newest segment may end in a torn frame: the older ones were synced before the next was created, and the
//! next one's header says how long they are. In the newest, everything from the first bad frame on is cut, unless a
//! valid frame behind it says that the bad place was already durable. Then nothing acknowledged may be cut, and the
//! store refuses to open; likewise when it was known beside the log that more was durable (`log_end`). Zeros up to
//! the end of a file are no frames but room that was made for some; for an older segment, the next one's header says
//! whether that is where it ended.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::files::LogDirectory;
use super::frame::{Frame, HEADER_BYTES, Header, Kind};
use super::log::{OldSegment, segment_base, segment_name};
use super::log_end::LogEnd;
use crate::store::{Commit, SpaceId, StoreError, TABLES, Table};

/// What the log holds, after the first pass. Every segment in it is whole and durable.
pub(super) struct Recovered {
    pub(super) segments: VecDeque<OldSegment>,
    /// Segments without frames. They go when the next segment is there, so that the log is never without one.
    pub(super) obsolete: Vec<u64>,
    /// The highest seqno that the log knows of: of a record, or below the base of the newest segment.
    pub(super) last_seqno: u64,
    /// Spaces that were dropped, with the seqno of their last drop.
    drops: HashMap<SpaceId, u64>,
    /// Those of them whose rows may not all be removed yet.
    pub(super) unfinished_drops: HashMap<SpaceId, u64>,
}

/// The first pass. Cuts a torn tail and removes a segment whose creation was interrupted. Nothing is cut or removed
/// when the log does not hold what is known of it.
pub(super) fn check(directory: &dyn LogDirectory, known: Option<LogEnd>) -> Result<Recovered, StoreError> {
    let mut bases: Vec<u64> =
        directory.list().map_err(io)?.iter().filter_map(|name| segment_base(name)).collect();
    bases.sort_unstable();
    let mut recovered = Recovered {
        segments: VecDeque::new(),
        obsolete: Vec::new(),
        last_seqno: 0,
        drops: HashMap::new(),
        unfinished_drops: HashMap::new(),
    };

    // An unfinished newest segment is left out before anything else is judged. The one before it was synced before
    // this one was created, so it must be whole.
    let mut newest_may_be_torn = true;
    let mut unfinished = None;
    if let Some(&newest) = bases.last() {
        let bytes = directory.read(&segment_name(newest)).map_err(io)?;
        if is_unfinished_segment(&bytes) {
            unfinished = bases.pop();
            newest_may_be_torn = bases.is_empty();
        }
    }
    let known = known.filter(|known| !known.takes_anything());
    if let Some(known) = known {
        check_presence(&bases, &known)?;
    }
    match unfinished {
        // The log is never without a segment.
        Some(base) if bases.is_empty() => recovered.obsolete.push(base),
        Some(base) => {
            directory.remove(&segment_name(base)).map_err(io)?;
            directory.sync().map_err(io)?;
        }
        None => {}
    }

    // A segment without frames brings nothing but its base.
    let mut empty = Vec::new();
    for (index, &base) in bases.iter().enumerate() {
        let may_be_torn = newest_may_be_torn && index + 1 == bases.len();
        let durable = known.filter(|known| known.newest == base).map_or(0, |known| known.synced_end);
        let segment = recovered.check_segment(directory, base, may_be_torn, durable, &empty)?;
        // A segment may hold no frame, or nothing but repeated drops. Its base counts as used all the same, because the
        // next segment must not get its name.
        recovered.last_seqno = recovered.last_seqno.max(segment.last_seqno).max(segment.base);
        if segment.size_bytes == HEADER_BYTES as u64 {
            empty.push(segment.base);
        } else {
            recovered.segments.push_back(segment);
        }
    }
    recovered.obsolete.extend(empty);
    Ok(recovered)
}

/// Refuses a log that lacks a segment. Newer segments than the newest that is known come from a program that does not
/// say what it knows, which may also have removed older ones.
fn check_presence(bases: &[u64], known: &LogEnd) -> Result<(), StoreError> {
    let newest = bases.last().copied().unwrap_or(0);
    if newest < known.newest {
        let what = format!("it is missing, and {} bytes of it had been durable", known.synced_end);
        return Err(damaged(&segment_name(known.newest), &what));
    }
    if newest == known.newest && !bases.contains(&known.oldest) {
        return Err(damaged(&segment_name(known.oldest), "it is missing, and it was still needed"));
    }
    Ok(())
}

/// Whether a newest segment was never given its header: it cannot hold a frame.
fn is_unfinished_segment(bytes: &[u8]) -> bool {
    match Header::decode(bytes) {
        Some(_) => false,
        None => bytes.len() <= HEADER_BYTES || bytes.iter().all(|byte| *byte == 0),
    }
}

impl Recovered {
    fn check_segment(
        &mut self,
        directory: &dyn LogDirectory,
        base: u64,
        may_be_torn: bool,
        durable: u64,
        empty: &[u64],
    ) -> Result<OldSegment, StoreError> {
        let name = segment_name(base);
        let bytes = directory.read(&name).map_err(io)?;
        let header = Header::decode(&bytes).ok_or_else(|| damaged(&name, "its header is not valid"))?;
        if header.base != base {
            return Err(damaged(&name, "its header belongs to another segment"));
        }
        // The first segment's predecessor may have been removed; any other must be the one before it, whole. A segment
        // is only followed by another once it has frames, so an empty one has lost them.
        let previous = self.segments.back().map(|previous| (previous.base, previous.size_bytes));
        if previous.is_some_and(|previous| previous != (header.previous_base, header.previous_bytes))
            || empty.contains(&header.previous_base)
        {
            let previous = segment_name(header.previous_base);
            return Err(damaged(&previous, "it is missing or shorter than it was"));
        }

        let mut offset = HEADER_BYTES;
        let mut last_seqno = base.checked_sub(1).ok_or_else(|| damaged(&name, "its base is zero"))?;
        while offset < bytes.len() {
            let Some(frame) = Frame::decode(&bytes, base, offset) else {
                if bytes[offset..].iter().all(|byte| *byte == 0) {
                    break;
                }
                if !may_be_torn || (offset as u64) < durable {
                    return Err(damaged(&name, &format!("the frame at byte {offset} is not valid")));
                }
                self.cut(directory, &name, &bytes, base, offset)?;
                break;
            };
            for record in frame.records() {
                let record = record.ok_or_else(|| damaged(&name, "a record makes no sense"))?;
                if record.kind != Kind::DropPending {
                    if record.seqno <= last_seqno.max(self.last_seqno) {
                        return Err(damaged(&name, "sequence numbers do not ascend"));
                    }
                    last_seqno = record.seqno;
                }
                match record.kind {
                    Kind::Commit => {}
                    Kind::Drop | Kind::DropPending => {
                        let seqno = self.drops.entry(record.space).or_default();
                        *seqno = (*seqno).max(record.seqno);
                        self.unfinished_drops.insert(record.space, record.seqno);
                    }
                    Kind::DropFinished => drop(self.unfinished_drops.remove(&record.space)),
                }
            }
            offset = frame.end;
        }
        if (offset as u64) < durable {
            let what = format!("it ends at byte {offset}, and {durable} bytes had been durable");
            return Err(damaged(&name, &what));
        }
        Ok(OldSegment { base, last_seqno, size_bytes: offset as u64 })
    }

    fn cut(
        &self,
        directory: &dyn LogDirectory,
        name: &str,
        bytes: &[u8],
        base: u64,
        offset: usize,
    ) -> Result<(), StoreError> {
        let mut from = offset + 1;
        while let Some(frame) = Frame::find(bytes, base, from) {
            if frame.synced_end > offset as u64 {
                let what = format!("the frame at byte {offset} is not valid, and it had been durable");
                return Err(damaged(name, &what));
            }
            from = frame.end;
        }
        tracing::warn!(segment = name, offset, cut_bytes = bytes.len() - offset, "cut a torn end of the log");
        directory.truncate(name, offset as u64).map_err(io)
    }

    /// Whether the log has seen every commit that is in the tables. Its newest segment begins above everything before
    /// it, so this fails only when that segment is gone or was cut.
    pub(super) fn check_against(&self, persisted: [u64; TABLES.len()]) -> Result<(), StoreError> {
        match persisted.into_iter().max() {
            Some(highest) if highest > self.last_seqno => Err(StoreError::Damaged(
                format!(
                    "the tables hold commits up to number {highest} and the log ends at {}: its newest segment is \
                     missing or was cut",
                    self.last_seqno
                )
                .into(),
            )),
            _ => Ok(()),
        }
    }

    /// The second pass: hands over each commit with the rows that are not in the tables yet, in order.
    pub(super) fn replay(
        &self,
        directory: &Arc<dyn LogDirectory>,
        persisted: [u64; TABLES.len()],
        mut apply: impl FnMut(SpaceId, u64, Commit),
    ) -> Result<(), StoreError> {
        let persisted_by_all = persisted.iter().copied().min().unwrap_or(0);
        for segment in self.segments.iter().filter(|segment| segment.last_seqno > persisted_by_all) {
            let name = segment_name(segment.base);
            let bytes = directory.read(&name).map_err(io)?;
            let mut offset = HEADER_BYTES;
            while (offset as u64) < segment.size_bytes {
                let frame = Frame::decode(&bytes, segment.base, offset)
                    .ok_or_else(|| damaged(&name, "it changed while it was read"))?;
                for record in frame.records().flatten() {
                    let dropped = self.drops.get(&record.space).is_some_and(|seqno| record.seqno < *seqno);
                    if record.kind != Kind::Commit || record.seqno <= persisted_by_all {
                        continue;
                    }
                    let mut commit = record
                        .commit(|table: Table| record.seqno > persisted[table as usize])
                        .ok_or_else(|| damaged(&name, "a row makes no sense"))?;
                    if dropped {
                        // Deletions are replayed even so: the removal did not see what they hide, and an older value
                        // of theirs may lie in a table.
                        commit.changes.retain(|change| change.value.is_none());
                    }
                    apply(record.space, record.seqno, commit);
                }
                offset = frame.end;
            }
        }
        Ok(())
    }
}

fn damaged(segment: &str, what: &str) -> StoreError {
    StoreError::Damaged(format!("log segment {segment}: {what}").into())
}

fn io(error: std::io::Error) -> StoreError {
    StoreError::Io(format!("log: {error}").into())
}
