//! What the segments of a file log are made of: records with a checksum over themselves and their place.
//!
//! ```text
//! segment: magic 8 | segment number 8 | record*
//! record:  length 4 | crc 4 | kind 1 | space 4 | epoch 8 | number 8 | rest (length bytes from kind on)
//! ```

use bytes::Bytes;
use orrery_storage::{ByteReader, Epoch, SpaceId};

use crate::log::{Checkpoint, ENTRY_BYTES_MAX, SpaceState};

pub(super) const SEGMENT_MAGIC: [u8; 8] = *b"orrlog01";
pub(super) const SEGMENT_PREFIX_BYTES: usize = 16;
/// Length and checksum.
pub(super) const RECORD_PREFIX_BYTES: usize = 8;
const RECORD_HEAD_BYTES: usize = 1 + 4 + 8 + 8;
const RECORD_BYTES_MAX: usize = RECORD_HEAD_BYTES + ENTRY_BYTES_MAX + 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    /// An entry. The data is not kept in memory: it is at `data_at` of the segment.
    Entry { space: SpaceId, epoch: Epoch, number: u64, data_at: u64, data_bytes: u32 },
    /// How a space is from here on. `end` is its last entry, which may have been cut.
    Space { space: SpaceId, state: SpaceState, end: u64 },
}

const KIND_ENTRY: u8 = 1;
const KIND_SPACE: u8 = 2;

/// Appends a record that lies at `offset` of a segment, and says where its data begin.
pub(super) fn push_entry(
    out: &mut Vec<u8>,
    segment: u64,
    offset: u64,
    (space, epoch, number): (SpaceId, Epoch, u64),
    data: &Bytes,
) -> u64 {
    push(out, segment, offset, KIND_ENTRY, (space, epoch, number), &[data]);
    offset + (RECORD_PREFIX_BYTES + RECORD_HEAD_BYTES) as u64
}

pub(super) fn push_space(
    out: &mut Vec<u8>,
    segment: u64,
    offset: u64,
    space: SpaceId,
    state: &SpaceState,
    end: u64,
) {
    let checkpoint = state.checkpoint.unwrap_or(Checkpoint { at: 0, chunks: 0 });
    let mut rest = vec![u8::from(state.checkpoint.is_some())];
    rest.extend_from_slice(&checkpoint.at.to_le_bytes());
    rest.extend_from_slice(&checkpoint.chunks.to_le_bytes());
    rest.extend_from_slice(&state.log_from.to_le_bytes());
    push(out, segment, offset, KIND_SPACE, (space, state.epoch, end), &[&rest, state.owner.as_bytes()]);
}

fn push(
    out: &mut Vec<u8>,
    segment: u64,
    offset: u64,
    kind: u8,
    (space, epoch, number): (SpaceId, Epoch, u64),
    rest: &[&[u8]],
) {
    let start = out.len();
    out.extend_from_slice(&[0; RECORD_PREFIX_BYTES]);
    out.push(kind);
    out.extend_from_slice(&space.0.to_le_bytes());
    out.extend_from_slice(&epoch.0.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    rest.iter().for_each(|part| out.extend_from_slice(part));
    let body = start + RECORD_PREFIX_BYTES;
    // The limits of entries and owners keep this far below 4 GiB.
    let length = (out.len() - body) as u32;
    let crc = checksum(segment, offset, &out[body..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..body].copy_from_slice(&crc.to_le_bytes());
}

fn checksum(segment: u64, offset: u64, body: &[u8]) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&segment.to_le_bytes());
    place[8..].copy_from_slice(&offset.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), body)
}

pub(super) fn segment_prefix(segment: u64) -> [u8; SEGMENT_PREFIX_BYTES] {
    let mut bytes = [0; SEGMENT_PREFIX_BYTES];
    bytes[..8].copy_from_slice(&SEGMENT_MAGIC);
    bytes[8..].copy_from_slice(&segment.to_le_bytes());
    bytes
}

/// The record at `offset`, and where the next one begins. `None` when there is no whole and valid one.
pub(super) fn decode(bytes: &[u8], segment: u64, offset: usize) -> Option<(Record, usize)> {
    let mut reader = ByteReader(bytes.get(offset..)?);
    let length = reader.u32()? as usize;
    let crc = reader.u32()?;
    if !(RECORD_HEAD_BYTES..=RECORD_BYTES_MAX).contains(&length) {
        return None;
    }
    let body = reader.bytes(length)?;
    // First what costs nothing: this is asked at every byte of a damaged segment.
    if ![KIND_ENTRY, KIND_SPACE].contains(&body[0]) || crc != checksum(segment, offset as u64, body) {
        return None;
    }
    let next = offset + RECORD_PREFIX_BYTES + length;
    let mut reader = ByteReader(body);
    let kind = reader.u8()?;
    let space = SpaceId(reader.u32()?);
    let epoch = Epoch(reader.u64()?);
    let number = reader.u64()?;
    let record = match kind {
        KIND_ENTRY => Record::Entry {
            space,
            epoch,
            number,
            data_at: (offset + RECORD_PREFIX_BYTES + RECORD_HEAD_BYTES) as u64,
            data_bytes: reader.0.len() as u32,
        },
        KIND_SPACE => {
            let has_checkpoint = reader.u8()? != 0;
            let checkpoint = Checkpoint { at: reader.u64()?, chunks: reader.u32()? };
            let log_from = reader.u64()?;
            let owner = std::str::from_utf8(reader.0).ok()?.to_owned();
            let checkpoint = has_checkpoint.then_some(checkpoint);
            Record::Space { space, state: SpaceState { epoch, owner, checkpoint, log_from }, end: number }
        }
        _ => return None,
    };
    Some((record, next))
}

/// Whether a valid record begins anywhere after `from`: then what is at `from` is damage, and not an end.
pub(super) fn any_after(bytes: &[u8], segment: u64, from: usize) -> bool {
    (from + 1..bytes.len()).any(|offset| decode(bytes, segment, offset).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_no_cut_or_flipped_one_is() {
        let data = Bytes::from_static(b"data");
        let mut bytes = segment_prefix(9).to_vec();
        let data_at = push_entry(&mut bytes, 9, 16, (SpaceId(1), Epoch(2), 3), &data);
        let second = bytes.len();
        let state = SpaceState {
            epoch: Epoch(4),
            owner: "somebody".into(),
            checkpoint: Some(Checkpoint { at: 5, chunks: 6 }),
            log_from: 6,
        };
        push_space(&mut bytes, 9, second as u64, SpaceId(7), &state, 8);
        let (record, next) = decode(&bytes, 9, 16).expect("valid");
        let entry = Record::Entry { space: SpaceId(1), epoch: Epoch(2), number: 3, data_at, data_bytes: 4 };
        assert_eq!((record, next), (entry, second));
        assert_eq!(&bytes[data_at as usize..][..4], b"data");
        let (record, next) = decode(&bytes, 9, second).expect("valid");
        assert_eq!((record, next), (Record::Space { space: SpaceId(7), state, end: 8 }, bytes.len()));
        assert!(decode(&bytes, 8, 16).is_none(), "another segment's");
        assert!(any_after(&bytes, 9, 16) && !any_after(&bytes, 9, second));
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut], 9, second).is_none());
        }
        for place in second..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[place] ^= 0x10;
            assert!(decode(&flipped, 9, second).is_none(), "byte {place}");
        }
    }
}
