//! A stream of rows: segments, and in each of them records, which have a head with their length and checksum.

use super::row::{Cell, read, write};
use super::schemas::{RECORD, SEGMENT, record, segment};
use super::{HEADER_BYTES, Malformed, Result, VERSION};

/// A segment without a comment or a schema: header, bits, length.
const SEGMENT_BYTES_MIN: usize = HEADER_BYTES + 1 + 4;
/// The head of a record is always as long: header, length, checksum.
const RECORD_BYTES: usize = HEADER_BYTES + 4 + 4;

pub fn is_stream(body: &[u8]) -> bool {
    body.first() == Some(&VERSION)
}

/// The rows of a stream, each as its bytes; of a longer one, one more than `count_max`, so that the caller can say
/// so.
pub fn records(mut body: &[u8], count_max: usize) -> Result<Vec<&[u8]>> {
    let mut rows = Vec::new();
    let mut in_segment = false;
    while !body.is_empty() && rows.len() <= count_max {
        let schema = body.get(1..HEADER_BYTES).ok_or(Malformed)?;
        if schema == SEGMENT.id.to_le_bytes() {
            body = after_segment(body)?;
            in_segment = true;
        } else if in_segment {
            let (row, rest) = record_row(body)?;
            rows.push(row);
            body = rest;
        } else {
            return Err(Malformed);
        }
    }
    if in_segment { Ok(rows) } else { Err(Malformed) }
}

fn after_segment(body: &[u8]) -> Result<&[u8]> {
    // Its length is in the part that every segment has.
    let least = read(&SEGMENT, body.get(..SEGMENT_BYTES_MIN).ok_or(Malformed)?)?;
    let length = least[segment::LENGTH].and_then(Cell::as_i32).ok_or(Malformed)?;
    let length = usize::try_from(length).map_err(|_| Malformed)?;
    if length < SEGMENT_BYTES_MIN {
        return Err(Malformed);
    }
    // A comment or a schema of its own says nothing to us: rows have one of our schemas or are refused.
    let (_, rest) = body.split_at_checked(length).ok_or(Malformed)?;
    Ok(rest)
}

fn record_row(body: &[u8]) -> Result<(&[u8], &[u8])> {
    let (head, rest) = body.split_at_checked(RECORD_BYTES).ok_or(Malformed)?;
    let head = read(&RECORD, head)?;
    let length = head[record::LENGTH].and_then(Cell::as_i32).ok_or(Malformed)?;
    let length = usize::try_from(length).map_err(|_| Malformed)?;
    let (row, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
    let checksum = head[record::CRC32].and_then(Cell::as_u32).ok_or(Malformed)?;
    if crc32fast::hash(row) == checksum { Ok((row, rest)) } else { Err(Malformed) }
}

/// A stream in the making.
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub fn with_capacity(bytes: usize) -> Writer {
        let mut out = Vec::with_capacity(bytes + SEGMENT_BYTES_MIN);
        write(&SEGMENT, &[Some(Cell::Int32(SEGMENT_BYTES_MIN as i32))], &mut out);
        Writer { out }
    }

    /// Appends the row that `make` appends.
    pub fn record(&mut self, make: impl FnOnce(&mut Vec<u8>)) {
        let head = self.out.len();
        self.out.resize(head + RECORD_BYTES, 0);
        make(&mut self.out);
        let row = &self.out[head + RECORD_BYTES..];
        let (length, checksum) = (row.len() as i32, crc32fast::hash(row));
        let mut bytes = Vec::with_capacity(RECORD_BYTES);
        write(&RECORD, &[Some(Cell::Int32(length)), Some(Cell::UInt32(checksum))], &mut bytes);
        self.out[head..head + RECORD_BYTES].copy_from_slice(&bytes);
    }

    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}
