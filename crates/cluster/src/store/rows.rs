//! What an entry and a chunk of a checkpoint are made of.
//!
//! ```text
//! entry: version 1 | kind 1 | term 8 | change*       kind 0: a marker, 1: changes of one group of commits
//! chunk: version 1 | change*                         puts alone, in the order of tables and keys
//! change: table and whether it deletes 1 | key length 2 | value length 4 | key | value
//! ```
//!
//! A *term* is a random number that an owner draws when it takes a space. Two histories of a log that went apart (one
//! of them was restored from a backup) may count the same epochs, but never have the same term.

use bytes::{Bytes, BytesMut};
use orrery_storage::{ByteReader, Change, KEY_BYTES_MAX, StoreError, Table};

const VERSION: u8 = 1;
const KIND_MARKER: u8 = 0;
const KIND_CHANGES: u8 = 1;
const DELETED: u8 = 0x80;
const ENTRY_PREFIX_BYTES: usize = 1 + 1 + 8;

/// An entry in the making.
pub(super) struct EntryBuilder(BytesMut);

impl EntryBuilder {
    pub(super) fn new(term: u64) -> EntryBuilder {
        let mut bytes = BytesMut::with_capacity(4096);
        bytes.extend_from_slice(&[VERSION, KIND_CHANGES]);
        bytes.extend_from_slice(&term.to_le_bytes());
        EntryBuilder(bytes)
    }

    pub(super) fn push(&mut self, changes: &[Change]) {
        changes.iter().for_each(|change| push_change(&mut self.0, change));
    }

    pub(super) fn finish(self) -> Bytes {
        self.0.freeze()
    }
}

pub(super) fn marker(term: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity(ENTRY_PREFIX_BYTES);
    bytes.extend_from_slice(&[VERSION, KIND_MARKER]);
    bytes.extend_from_slice(&term.to_le_bytes());
    bytes.freeze()
}

pub(super) struct DecodedEntry {
    pub(super) term: u64,
    pub(super) changes: Vec<Change>,
}

pub(super) fn decode_entry(data: &Bytes) -> Result<DecodedEntry, StoreError> {
    let mut reader = ByteReader(data);
    let prefix = (reader.u8(), reader.u8(), reader.u64());
    match prefix {
        (Some(VERSION), Some(KIND_MARKER | KIND_CHANGES), Some(term)) => {
            Ok(DecodedEntry { term, changes: decode_changes(data, ENTRY_PREFIX_BYTES)? })
        }
        (Some(version), ..) if version != VERSION => Err(newer(version)),
        _ => Err(damaged()),
    }
}

/// A chunk in the making.
pub(super) struct ChunkBuilder(BytesMut);

impl ChunkBuilder {
    pub(super) fn new() -> ChunkBuilder {
        ChunkBuilder(BytesMut::from(&[VERSION][..]))
    }

    pub(super) fn push(&mut self, change: &Change) {
        push_change(&mut self.0, change);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.len() == 1
    }

    pub(super) fn finish(&mut self) -> Bytes {
        std::mem::replace(self, ChunkBuilder::new()).0.freeze()
    }
}

pub(super) fn decode_chunk(data: &Bytes) -> Result<Vec<Change>, StoreError> {
    match data.first() {
        Some(&VERSION) => decode_changes(data, 1),
        Some(version) => Err(newer(*version)),
        None => Err(damaged()),
    }
}

fn push_change(out: &mut BytesMut, change: &Change) {
    let value = change.value.as_deref().unwrap_or_default();
    out.extend_from_slice(&[change.table as u8 | if change.value.is_none() { DELETED } else { 0 }]);
    // `Commit::check` has bounded both lengths.
    out.extend_from_slice(&(change.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
    out.extend_from_slice(&change.key);
    out.extend_from_slice(value);
}

fn decode_changes(data: &Bytes, from: usize) -> Result<Vec<Change>, StoreError> {
    let mut changes = Vec::new();
    let mut reader = ByteReader(&data[from..]);
    while !reader.0.is_empty() {
        changes.push(decode_change(data, &mut reader).ok_or_else(damaged)?);
    }
    Ok(changes)
}

/// Keys and values are parts of the entry, not copies.
fn decode_change(data: &Bytes, reader: &mut ByteReader<'_>) -> Option<Change> {
    let first = reader.u8()?;
    let table = match first & !DELETED {
        0 => Table::Items,
        1 => Table::Index,
        2 => Table::Feed,
        _ => return None,
    };
    let key_bytes = reader.u16()? as usize;
    let value_bytes = reader.u32()? as usize;
    let (key, value) = (reader.bytes(key_bytes)?, reader.bytes(value_bytes)?);
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        return None;
    }
    let value = (first & DELETED == 0).then(|| data.slice_ref(value));
    Some(Change { table, key: data.slice_ref(key), value })
}

fn damaged() -> StoreError {
    StoreError::Damaged("an entry or a chunk in the log makes no rows".into())
}

fn newer(version: u8) -> StoreError {
    let text = format!("the log has rows of version {version}, which this version of orrery does not know");
    StoreError::Refused(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> Vec<Change> {
        let change = |table, key: &'static str, value: Option<&'static str>| Change {
            table,
            key: key.into(),
            value: value.map(Bytes::from),
        };
        vec![
            change(Table::Items, "key", Some("value")),
            change(Table::Index, "empty", Some("")),
            change(Table::Feed, "gone", None),
        ]
    }

    #[test]
    fn entries_and_chunks_are_read_as_they_were_written() {
        let mut entry = EntryBuilder::new(7);
        entry.push(&changes());
        let decoded = decode_entry(&entry.finish()).expect("decodes");
        assert_eq!((decoded.term, decoded.changes), (7, changes()));
        let decoded = decode_entry(&marker(8)).expect("decodes");
        assert_eq!((decoded.term, decoded.changes), (8, vec![]));
        let mut chunk = ChunkBuilder::new();
        changes()[..2].iter().for_each(|change| chunk.push(change));
        assert_eq!(decode_chunk(&chunk.finish()).expect("decodes"), changes()[..2]);
        assert!(chunk.is_empty());
    }

    #[test]
    fn bytes_that_make_no_rows_are_refused_without_a_panic() {
        let mut entry = EntryBuilder::new(7);
        entry.push(&changes());
        let good = entry.finish();
        for place in 0..good.len() {
            let _ = decode_entry(&good.slice(..place));
            for value in [0, 1, 3, 0x7F, 0xFF] {
                let mut bad = good.to_vec();
                bad[place] = value;
                let _ = decode_entry(&bad.into());
            }
        }
        assert!(matches!(decode_entry(&Bytes::from_static(&[9])), Err(StoreError::Refused(_))));
        assert!(matches!(decode_chunk(&Bytes::new()), Err(StoreError::Damaged(_))));
    }
}
