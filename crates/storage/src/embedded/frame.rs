//! Bytes of the log: segment headers and frames.
//!
//! A segment is a header followed by frames. A frame holds one group of commits:
//!
//! ```text
//! header  magic 8 | base seqno 8 | base of previous segment 8 | length of previous segment 8 | crc32c 4
//! frame   magic 4 | length of rest 4 | crc32c 4 | rest: synced_end 8, records
//! record  length of rest 4 | kind 1 | seqno 8 | space 4 | rows (kind 1 only)
//! row     table 1 (+ 80 when deleted) | key length 2 | value length 4 | key | value
//! ```
//!
//! Numbers are little-endian. The checksum of a frame also covers the segment's base and the frame's offset, so a frame
//! left over from another file in a reused block is no valid frame here. `synced_end` is the offset up to which the
//! segment was known to be durable when the frame was made; recovery tells damage from a torn tail by it.
//!
//! Decoding believes nothing: a length outside its buffer is `None`, never a panic.

use bytes::Bytes;

use crate::byte_reader::ByteReader;
use crate::store::{Change, Commit, KEY_BYTES_MAX, SpaceId, Table};

const HEADER_MAGIC: [u8; 8] = *b"ORRLOG\0\x01";
const FRAME_MAGIC: [u8; 4] = *b"\xF5Ofr";
pub(crate) const HEADER_BYTES: usize = 36;
/// Magic, length and checksum.
pub(crate) const FRAME_PREFIX_BYTES: usize = 12;
const SYNCED_END_BYTES: usize = 8;
/// Length, kind, seqno and space.
const RECORD_PREFIX_BYTES: usize = 17;
const ROW_PREFIX_BYTES: usize = 7;
const DELETED: u8 = 0x80;

/// The first bytes of a segment. The previous segment's length makes a cut or missing one visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// No record of this segment has a lower seqno.
    pub(crate) base: u64,
    /// 0 when there was none.
    pub(crate) previous_base: u64,
    pub(crate) previous_bytes: u64,
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&HEADER_MAGIC);
        bytes[8..16].copy_from_slice(&self.base.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.previous_base.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.previous_bytes.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(segment: &[u8]) -> Option<Header> {
        let mut reader = ByteReader(segment.get(..HEADER_BYTES)?);
        let magic = reader.array::<8>()?;
        let header =
            Header { base: reader.u64()?, previous_base: reader.u64()?, previous_bytes: reader.u64()? };
        let crc = reader.u32()?;
        (magic == HEADER_MAGIC && crc == crc32c::crc32c(&segment[..32])).then_some(header)
    }
}

/// What a record says. Kind numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Rows that become visible together.
    Commit = 1,
    /// Every older row of the space is gone. The rows are removed later.
    Drop = 2,
    /// A `Drop` whose rows are not all removed, said again in a new segment so that the old one may go. It carries the
    /// seqno of the original.
    DropPending = 3,
    /// The rows of a dropped space are removed.
    DropFinished = 4,
}

/// Builds one frame in a buffer that is used again and again.
pub(crate) struct FrameBuilder {
    bytes: Vec<u8>,
    records: usize,
}

/// A buffer that one huge commit has made larger than this is given back.
const BUFFER_KEPT_BYTES: usize = 1024 * 1024;

impl FrameBuilder {
    pub(crate) fn new() -> FrameBuilder {
        FrameBuilder { bytes: Vec::new(), records: 0 }
    }

    pub(crate) fn clear(&mut self) {
        if self.bytes.capacity() > BUFFER_KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.bytes.resize(FRAME_PREFIX_BYTES + SYNCED_END_BYTES, 0);
        self.records = 0;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn push_commit(&mut self, seqno: u64, space: SpaceId, commit: &Commit) {
        let start = self.push_record_prefix(Kind::Commit, seqno, space);
        for change in &commit.changes {
            let deleted = if change.value.is_none() { DELETED } else { 0 };
            let value = change.value.as_deref().unwrap_or_default();
            self.bytes.push(change.table as u8 | deleted);
            // `Commit::check` has bounded both lengths.
            self.bytes.extend_from_slice(&(change.key.len() as u16).to_le_bytes());
            self.bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(&change.key);
            self.bytes.extend_from_slice(value);
        }
        self.end_record(start);
    }

    pub(crate) fn push_mark(&mut self, kind: Kind, seqno: u64, space: SpaceId) {
        let start = self.push_record_prefix(kind, seqno, space);
        self.end_record(start);
    }

    fn push_record_prefix(&mut self, kind: Kind, seqno: u64, space: SpaceId) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.bytes.push(kind as u8);
        self.bytes.extend_from_slice(&seqno.to_le_bytes());
        self.bytes.extend_from_slice(&space.0.to_le_bytes());
        self.records += 1;
        start
    }

    fn end_record(&mut self, start: usize) {
        let length = (self.bytes.len() - start - 4) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }

    /// The finished frame, for this place in this segment.
    pub(crate) fn finish(&mut self, base: u64, offset: u64, synced_end: u64) -> &[u8] {
        let rest = FRAME_PREFIX_BYTES;
        let length = (self.bytes.len() - rest) as u32;
        self.bytes[rest..rest + SYNCED_END_BYTES].copy_from_slice(&synced_end.to_le_bytes());
        let crc = checksum(base, offset, &self.bytes[rest..]);
        self.bytes[..4].copy_from_slice(&FRAME_MAGIC);
        self.bytes[4..8].copy_from_slice(&length.to_le_bytes());
        self.bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        &self.bytes
    }
}

fn checksum(base: u64, offset: u64, rest: &[u8]) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&base.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), rest)
}

/// A frame whose checksum is right.
pub(crate) struct Frame<'b> {
    pub(crate) start: usize,
    pub(crate) synced_end: u64,
    /// Offset of the first byte after the frame.
    pub(crate) end: usize,
    records: &'b [u8],
}

impl<'b> Frame<'b> {
    /// The frame at `offset` of a segment, or `None` when there is no whole and valid one.
    pub(crate) fn decode(segment: &'b [u8], base: u64, offset: usize) -> Option<Frame<'b>> {
        let mut reader = ByteReader(segment.get(offset..)?);
        if reader.array::<4>()? != FRAME_MAGIC {
            return None;
        }
        let length = reader.u32()? as usize;
        let crc = reader.u32()?;
        let rest = reader.0.get(..length)?;
        if crc != checksum(base, offset as u64, rest) {
            return None;
        }
        let mut reader = ByteReader(rest);
        let synced_end = reader.u64()?;
        Some(Frame {
            start: offset,
            synced_end,
            end: offset + FRAME_PREFIX_BYTES + length,
            records: reader.0,
        })
    }

    /// The first valid frame that starts at or after `from`, found by its magic.
    pub(crate) fn find(segment: &'b [u8], base: u64, from: usize) -> Option<Frame<'b>> {
        let mut offset = from;
        loop {
            let rest = segment.get(offset..)?;
            offset += rest.windows(FRAME_MAGIC.len()).position(|window| window == FRAME_MAGIC)?;
            if let Some(frame) = Frame::decode(segment, base, offset) {
                return Some(frame);
            }
            offset += 1;
        }
    }

    pub(crate) fn records(&self) -> Records<'b> {
        Records(ByteReader(self.records))
    }
}

/// Iterates over the records of a frame; an item is `None` when the bytes make no record.
pub(crate) struct Records<'b>(ByteReader<'b>);

#[derive(Debug)]
pub(crate) struct Record<'b> {
    pub(crate) kind: Kind,
    pub(crate) seqno: u64,
    pub(crate) space: SpaceId,
    rows: &'b [u8],
}

impl<'b> Iterator for Records<'b> {
    type Item = Option<Record<'b>>;

    fn next(&mut self) -> Option<Option<Record<'b>>> {
        if self.0.0.is_empty() {
            return None;
        }
        let record = self.read();
        if record.is_none() {
            // Nothing after a broken record can be trusted to start where it seems to.
            self.0 = ByteReader(&[]);
        }
        Some(record)
    }
}

impl<'b> Records<'b> {
    fn read(&mut self) -> Option<Record<'b>> {
        let length = self.0.u32()? as usize;
        if length < RECORD_PREFIX_BYTES - 4 {
            return None;
        }
        let mut reader = ByteReader(self.0.bytes(length)?);
        let kind = match reader.u8()? {
            1 => Kind::Commit,
            2 => Kind::Drop,
            3 => Kind::DropPending,
            4 => Kind::DropFinished,
            _ => return None,
        };
        Some(Record { kind, seqno: reader.u64()?, space: SpaceId(reader.u32()?), rows: reader.0 })
    }
}

impl Record<'_> {
    /// The rows for which `wanted` says yes, copied; `None` when the bytes make no rows.
    pub(crate) fn commit(&self, wanted: impl Fn(Table) -> bool) -> Option<Commit> {
        let mut commit = Commit::default();
        let mut reader = ByteReader(self.rows);
        while !reader.0.is_empty() {
            let (table, deleted) = {
                let byte = reader.u8()?;
                let table = match byte & !DELETED {
                    0 => Table::Items,
                    1 => Table::Index,
                    2 => Table::Feed,
                    _ => return None,
                };
                (table, byte & DELETED != 0)
            };
            let key_bytes = reader.u16()? as usize;
            let value_bytes = reader.u32()? as usize;
            let key = reader.bytes(key_bytes)?;
            let value = reader.bytes(value_bytes)?;
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return None;
            }
            if wanted(table) {
                let value = (!deleted).then(|| Bytes::copy_from_slice(value));
                commit.changes.push(Change { table, key: Bytes::copy_from_slice(key), value });
            }
        }
        Some(commit)
    }
}

// The row prefix is written in three pieces above; this keeps the figure and the pieces together.
const _: () = assert!(ROW_PREFIX_BYTES == 1 + 2 + 4 && KEY_BYTES_MAX <= u16::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    fn commit() -> Commit {
        let mut commit = Commit::default();
        commit.put(Table::Items, "key", "value");
        commit.put(Table::Index, "empty", "");
        commit.delete(Table::Feed, "gone");
        commit
    }

    #[test]
    fn a_frame_decodes_to_what_was_built() {
        let mut builder = FrameBuilder::new();
        builder.clear();
        builder.push_commit(7, SpaceId(3), &commit());
        builder.push_mark(Kind::Drop, 8, SpaceId(4));
        let bytes = builder.finish(5, 0, 36).to_vec();
        let frame = Frame::decode(&bytes, 5, 0).expect("valid");
        assert_eq!((frame.synced_end, frame.end), (36, bytes.len()));
        let records: Vec<_> = frame.records().map(|record| record.expect("valid")).collect();
        assert_eq!((records[0].kind, records[0].seqno, records[0].space), (Kind::Commit, 7, SpaceId(3)));
        assert_eq!((records[1].kind, records[1].seqno, records[1].space), (Kind::Drop, 8, SpaceId(4)));
        assert_eq!(records[0].commit(|_| true).expect("valid").changes, commit().changes);
        assert_eq!(records[0].commit(|table| table == Table::Feed).expect("valid").changes.len(), 1);
    }

    #[test]
    fn a_frame_is_valid_only_in_its_own_place() {
        let mut builder = FrameBuilder::new();
        builder.clear();
        builder.push_commit(7, SpaceId(3), &commit());
        let mut bytes = vec![0; 10];
        bytes.extend_from_slice(builder.finish(5, 10, 36));
        assert!(Frame::decode(&bytes, 5, 10).is_some());
        assert!(Frame::decode(&bytes, 6, 10).is_none(), "another segment's frame");
        assert!(Frame::decode(&bytes[1..], 5, 9).is_none(), "another offset");
        assert!(Frame::find(&bytes, 5, 0).is_some());
    }

    #[test]
    fn no_cut_or_flipped_frame_is_valid_and_none_panics() {
        let mut builder = FrameBuilder::new();
        builder.clear();
        builder.push_commit(7, SpaceId(3), &commit());
        let bytes = builder.finish(5, 0, 36).to_vec();
        for cut in 0..bytes.len() {
            assert!(Frame::decode(&bytes[..cut], 5, 0).is_none());
        }
        for place in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[place] ^= 0x10;
            assert!(Frame::decode(&flipped, 5, 0).is_none(), "byte {place}");
        }
    }

    #[test]
    fn records_that_make_no_sense_are_refused_without_a_panic() {
        let mut builder = FrameBuilder::new();
        builder.clear();
        builder.push_commit(7, SpaceId(3), &commit());
        let bytes = builder.finish(5, 0, 36).to_vec();
        let good = &bytes[FRAME_PREFIX_BYTES + SYNCED_END_BYTES..];
        for place in 0..good.len() {
            for value in [0u8, 1, 3, 0x7F, 0xFF] {
                let mut bad = good.to_vec();
                bad[place] = value;
                for record in Records(ByteReader(&bad)).flatten() {
                    let _ = record.commit(|_| true);
                }
            }
        }
    }

    #[test]
    fn a_header_decodes_only_when_whole() {
        let header = Header { base: 9, previous_base: 4, previous_bytes: 77 };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Some(header));
        assert_eq!(Header::decode(&bytes[..35]), None);
        for place in 0..bytes.len() {
            let mut flipped = bytes;
            flipped[place] ^= 1;
            assert_eq!(Header::decode(&flipped), None);
        }
    }
}
