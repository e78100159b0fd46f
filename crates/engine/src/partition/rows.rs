//! What the rows of a physical partition hold, byte for byte. Their keys are in `orrery_storage::keys`.
//!
//! ```text
//! item  format 1 | flags | lsn u64 | sub u8 | ts u32 | number u64 | [ttl i32] | [late members u16] | [attached] | body
//! feed    format 1 | kind  | ts u32 | items u64 | bytes u64 | number u64 | key of the item
//! order   key of the item
//! expiry  -
//! unique  id of the item that holds the values
//! purge   lsn u64
//! version see `versions`
//!
//! attached    lsn u64 | sub u8 (of the change that wrote the document) | length u32 | section, see `attachment`
//! ```
//!
//! Numbers are little-endian. A feed row repeats the partition's totals after its change, so the newest feed row
//! tells everything that must be known at open and no counter is written per commit.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use orrery_storage::{ByteReader, keys};

use crate::attachment::Attached;
use crate::error::{Error, Result};
use crate::etag::Etag;
use crate::item::Item;

const FORMAT: u8 = 1;
const FLAG_TTL: u8 = 1;
const FLAG_LATE_MEMBERS: u8 = 2;
const FLAG_MERGED: u8 = 4;
const FLAG_ATTACHED: u8 = 8;
const FLAGS_KNOWN: u8 = FLAG_TTL | FLAG_LATE_MEMBERS | FLAG_MERGED | FLAG_ATTACHED;
const ITEM_HEADER_BYTES: usize = 2 + 8 + 1 + 4 + 8;
/// What the section of attachments has around it.
pub(super) const ATTACHED_HEADER_BYTES: usize = 8 + 1 + 4;
const FEED_HEADER_BYTES: usize = 2 + 4 + 8 + 8 + 8;

/// What a version is besides its document.
#[derive(Debug, Clone)]
pub(super) struct ItemHeader {
    pub(super) lsn: u64,
    pub(super) sub: u8,
    pub(super) ts: u32,
    pub(super) number: u64,
    pub(super) ttl: Option<i32>,
    pub(super) late_members: u16,
    /// The version came through a merge of partitions, see `feed_key`.
    pub(super) merged: bool,
    pub(super) attached: Option<Arc<Attached>>,
}

impl ItemHeader {
    pub(super) fn of(item: &Item) -> ItemHeader {
        ItemHeader {
            lsn: item.lsn,
            sub: item.sub,
            ts: item.ts,
            number: item.number,
            ttl: item.ttl,
            late_members: item.late_members,
            merged: item.merged,
            attached: item.attached.clone(),
        }
    }

    /// The row's value and the item that reading it would give; they share the document's bytes.
    pub(super) fn encode(self, document: &[u8]) -> (Bytes, Item) {
        let attached_bytes =
            self.attached.as_ref().map_or(0, |attached| ATTACHED_HEADER_BYTES + attached.section.len());
        let mut row = BytesMut::with_capacity(ITEM_HEADER_BYTES + 6 + attached_bytes + document.len());
        let mut flags = 0;
        if self.ttl.is_some() {
            flags |= FLAG_TTL;
        }
        if self.late_members > 0 {
            flags |= FLAG_LATE_MEMBERS;
        }
        if self.merged {
            flags |= FLAG_MERGED;
        }
        if self.attached.is_some() {
            flags |= FLAG_ATTACHED;
        }
        row.put_u8(FORMAT);
        row.put_u8(flags);
        row.put_u64_le(self.lsn);
        row.put_u8(self.sub);
        row.put_u32_le(self.ts);
        row.put_u64_le(self.number);
        if let Some(ttl) = self.ttl {
            row.put_i32_le(ttl);
        }
        if self.late_members > 0 {
            row.put_u16_le(self.late_members);
        }
        if let Some(attached) = &self.attached {
            row.put_u64_le(attached.lsn);
            row.put_u8(attached.sub);
            row.put_u32_le(attached.section.len() as u32);
            row.put_slice(&attached.section);
        }
        let header_bytes = row.len();
        row.put_slice(document);
        let row = row.freeze();
        let item = self.item(row.slice(header_bytes..));
        (row, item)
    }

    fn item(self, document: Bytes) -> Item {
        // A change of attachments is none of the document.
        let (lsn, sub) =
            self.attached.as_ref().map_or((self.lsn, self.sub), |attached| (attached.lsn, attached.sub));
        Item {
            number: self.number,
            lsn: self.lsn,
            sub: self.sub,
            ts: self.ts,
            etag: Etag::of_change(lsn, sub, self.ts),
            ttl: self.ttl,
            late_members: self.late_members,
            merged: self.merged,
            attached: self.attached,
            document,
        }
    }
}

/// The item in a row. The document stays where the store has it.
pub(super) fn decode_item(row: Bytes) -> Result<Item> {
    let (mut header, section_bytes, document) = decode_header(&row)?;
    let start = row.len() - document.len();
    if let Some(attached) = header.attached.as_mut().and_then(Arc::get_mut) {
        // The section ends where the document begins.
        attached.section = row.slice(start - section_bytes..start);
    }
    Ok(header.item(row.slice(start..)))
}

/// The same for readers of many items, who have no use for attachments.
pub(super) fn decode_detached(row: Bytes) -> Result<Item> {
    decode_item(row).map(Item::detached)
}

/// The same of a row that belongs to another: an item without its document and its attachments, and the document.
pub(super) fn decode_borrowed(row: &[u8]) -> Result<(Item, &[u8])> {
    let (header, _, document) = decode_header(row)?;
    Ok((header.item(Bytes::new()), document))
}

/// The header, how many bytes of attachments follow it, and the document.
fn decode_header(row: &[u8]) -> Result<(ItemHeader, usize, &[u8])> {
    let mut reader = ByteReader(row);
    let mut section_bytes = 0;
    let header = (|| {
        let (FORMAT, flags) = (reader.u8()?, reader.u8()?) else { return None };
        if flags & !FLAGS_KNOWN != 0 {
            return None;
        }
        let mut header = ItemHeader {
            lsn: reader.u64()?,
            sub: reader.u8()?,
            ts: reader.u32()?,
            number: reader.u64()?,
            ttl: if flags & FLAG_TTL != 0 { Some(reader.u32()? as i32) } else { None },
            late_members: if flags & FLAG_LATE_MEMBERS != 0 { reader.u16()? } else { 0 },
            merged: flags & FLAG_MERGED != 0,
            attached: None,
        };
        if flags & FLAG_ATTACHED != 0 {
            let (lsn, sub) = (reader.u64()?, reader.u8()?);
            section_bytes = reader.u32()? as usize;
            reader.0 = reader.0.get(section_bytes..)?;
            header.attached = Some(Arc::new(Attached { lsn, sub, section: Bytes::new() }));
        }
        Some(header)
    })();
    header.map(|header| (header, section_bytes, reader.0)).ok_or_else(|| damaged("item"))
}

/// What happened to an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ChangeKind {
    Create = 1,
    Replace = 2,
    Delete = 3,
    /// Deleted because its time was over.
    Expire = 4,
    /// A whole logical partition was deleted; the key is the logical partition's.
    Purge = 5,
    /// The item was given another id; the key is the one it left. Readers of the feed pass it by, a partition that is
    /// being built from this one must not.
    Leave = 6,
}

/// Set in the position of a `Leave` row: the change itself, under the new id, has the plain position.
pub(super) const LEAVE_POSITION: u8 = 0x80;

impl ChangeKind {
    pub(super) fn from_u8(kind: u8) -> Option<ChangeKind> {
        use ChangeKind::{Create, Delete, Expire, Leave, Purge, Replace};
        [Create, Replace, Delete, Expire, Purge, Leave].into_iter().find(|known| *known as u8 == kind)
    }

    /// Whether the change left an item behind.
    pub(super) fn leaves_item(self) -> bool {
        matches!(self, ChangeKind::Create | ChangeKind::Replace)
    }
}

/// The key of the feed row that a version has.
pub(super) fn feed_key(item: &Item) -> Bytes {
    if item.merged {
        keys::feed_merged(item.lsn, item.sub, item.number)
    } else {
        keys::feed(item.lsn, item.sub)
    }
}

/// How much a partition holds: its item rows, keys and values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) items: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FeedRow {
    pub(super) kind: ChangeKind,
    pub(super) ts: u32,
    pub(super) totals: Totals,
    pub(super) number: u64,
    pub(super) key: Bytes,
}

impl FeedRow {
    pub(super) fn encode(&self) -> Bytes {
        let mut row = BytesMut::with_capacity(FEED_HEADER_BYTES + self.key.len());
        row.put_u8(FORMAT);
        row.put_u8(self.kind as u8);
        row.put_u32_le(self.ts);
        row.put_u64_le(self.totals.items);
        row.put_u64_le(self.totals.bytes);
        row.put_u64_le(self.number);
        row.put_slice(&self.key);
        row.freeze()
    }

    pub(super) fn decode(row: &Bytes) -> Result<FeedRow> {
        let mut reader = ByteReader(row);
        let header = (|| {
            let (FORMAT, kind) = (reader.u8()?, reader.u8()?) else { return None };
            let kind = ChangeKind::from_u8(kind)?;
            let ts = reader.u32()?;
            let totals = Totals { items: reader.u64()?, bytes: reader.u64()? };
            Some((kind, ts, totals, reader.u64()?))
        })();
        let (kind, ts, totals, number) = header.ok_or_else(|| damaged("feed"))?;
        Ok(FeedRow { kind, ts, totals, number, key: row.slice(row.len() - reader.0.len()..) })
    }
}

/// Where a partition stood when it was made from others, in the meta row `BASE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Base {
    pub(super) lsn: u64,
    pub(super) totals: Totals,
}

/// Name of the meta row with a partition's [`Base`]. Its feed may hold no row at that LSN.
pub(super) const BASE: &str = "base";

impl Base {
    pub(super) fn encode(&self) -> Bytes {
        let mut row = BytesMut::with_capacity(25);
        row.put_u8(FORMAT);
        row.put_u64_le(self.lsn);
        row.put_u64_le(self.totals.items);
        row.put_u64_le(self.totals.bytes);
        row.freeze()
    }

    pub(super) fn decode(row: &[u8]) -> Result<Base> {
        let mut reader = ByteReader(row);
        let base = (|| {
            let FORMAT = reader.u8()? else { return None };
            Some(Base { lsn: reader.u64()?, totals: Totals { items: reader.u64()?, bytes: reader.u64()? } })
        })();
        base.filter(|_| reader.0.is_empty()).ok_or_else(|| damaged("base"))
    }
}

pub(super) fn encode_lsn(lsn: u64) -> Bytes {
    Bytes::copy_from_slice(&lsn.to_le_bytes())
}

pub(super) fn decode_lsn(row: &[u8]) -> Result<u64> {
    row.try_into().map(u64::from_le_bytes).map_err(|_| damaged("lsn"))
}

pub(super) fn damaged(what: &str) -> Error {
    Error::internal("The store could not read its data.").caused_by(format!("a stored {what} row is damaged"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_item_row_reads_back_as_it_was_written(
            lsn in 0u64..1 << 37, sub in 0u8..128, ts: u32, number in 0u64..1 << 60,
            ttl: Option<i32>, late_members: u16, merged: bool, document: Vec<u8>,
            attached: Option<(u64, u8, Vec<u8>)>,
        ) {
            let attached = attached
                .map(|(lsn, sub, section)| Arc::new(Attached { lsn, sub, section: section.into() }));
            let header = ItemHeader { lsn, sub, ts, number, ttl, late_members, merged, attached: attached.clone() };
            let (row, written) = header.encode(&document);
            let read = decode_item(row).unwrap();
            prop_assert_eq!((read.lsn, read.sub, read.ts, read.number), (lsn, sub, ts, number));
            prop_assert_eq!(&read.attached, &attached);
            prop_assert_eq!(&written.attached, &attached);
            prop_assert_eq!((read.ttl, read.late_members, &read.document[..]), (ttl, late_members, &document[..]));
            prop_assert_eq!((written.etag, &written.document), (read.etag, &read.document));
            prop_assert_eq!(read.merged, merged);
        }

        #[test]
        fn damaged_rows_are_errors_not_panics(row: Vec<u8>) {
            let row = Bytes::from(row);
            let _ = decode_item(row.clone());
            let _ = FeedRow::decode(&row);
            let _ = decode_lsn(&row);
            let _ = Base::decode(&row);
        }
    }

    #[test]
    fn a_feed_row_reads_back_as_it_was_written() {
        let row = FeedRow {
            kind: ChangeKind::Expire,
            ts: 7,
            totals: Totals { items: 3, bytes: u64::MAX },
            number: 9,
            key: Bytes::from_static(b"\x01\0\0k"),
        };
        assert_eq!(FeedRow::decode(&row.encode()).unwrap(), row);
    }

    #[test]
    fn a_row_of_a_later_format_is_refused() {
        let header = ItemHeader {
            lsn: 1,
            sub: 0,
            ts: 2,
            number: 3,
            ttl: None,
            late_members: 0,
            merged: false,
            attached: None,
        };
        let mut row = header.encode(b"x").0.to_vec();
        row[0] = 2;
        assert!(decode_item(row.clone().into()).is_err());
        row[0] = 1;
        row[1] = 0x80;
        assert!(decode_item(row.into()).is_err());
    }
}
