//! What queries read from: one snapshot of a partition, and only what it shows.
//!
//! Items are found by key, in storage order (hash, partition key, id) by one sequential scan, or in order of creation by
//! way of the order rows. Whatever has expired or been purged is passed by, so callers never see it.

use std::ops::Bound;

use bytes::Bytes;
use orrery_storage::{Direction, KeyRange, RowIterator, Snapshot, Table, keys};

use super::rows::decode_item;
use super::scan::{order_range, starts_before};
use super::target::Target;
use super::{Partition, Span, View, rows};
use crate::error::Result;
use crate::item::{Item, Position};

pub(crate) struct Reader {
    snapshot: Box<dyn Snapshot>,
    view: View,
    range_id: u32,
    /// Items of the partition, as of about now, with what is over but not swept.
    pub(crate) items: u64,
}

impl Partition {
    /// A view of the last published state, or the error that the session or the container's end asks for.
    pub(crate) fn reader(&self, session: &[(u32, u64)]) -> Result<Reader> {
        let view = self.view(session)?;
        let snapshot = self.snapshot()?;
        Ok(Reader { snapshot, view, range_id: self.range_id, items: self.usage().items })
    }
}

impl Reader {
    pub(crate) fn position(&self) -> Position {
        Position { range_id: self.range_id, lsn: self.view.lsn, item_lsn: 0 }
    }

    /// The item of a key, if it is shown.
    pub(crate) fn item(&self, key: &[u8]) -> Result<Option<Item>> {
        let found = self.snapshot.get(Table::Items, key)?.map(decode_item).transpose()?;
        Ok(found.filter(|item| self.view.shows_row(key, item)))
    }

    /// The items of a span in storage order, from a key on.
    pub(crate) fn stored_items(&self, span: &Span, from: Option<&Bytes>) -> StoredItems<'_> {
        let mut range = match span {
            Span::All => KeyRange::all(),
            Span::Epk { min, max } => keys::items_in_epk_range(min.as_bytes(), max.as_bytes()),
            Span::Key { epk, key } => KeyRange::prefix(&Target::new(epk, key, "").key),
        };
        if let Some(from) = from
            && starts_before(&range, from)
        {
            range.start = Bound::Included(from.clone());
        }
        StoredItems { rows: self.snapshot.scan(Table::Items, range, Direction::Forward), view: &self.view }
    }

    /// Number and key of the stored items of a span, whether they are shown or not; by hash, then by number.
    pub(crate) fn orders(&self, span: &Span) -> Orders {
        // Different keys can share a hash; the rows of one tell which is whose.
        let only = match span {
            Span::Key { epk, key } => Some(Target::new(epk, key, "").key),
            _ => None,
        };
        Orders { rows: self.snapshot.scan(Table::Index, order_range(span), Direction::Forward), only }
    }
}

pub(crate) struct StoredItems<'r> {
    rows: Box<dyn RowIterator>,
    view: &'r View,
}

impl StoredItems<'_> {
    pub(crate) fn next_item(&mut self) -> Result<Option<(Bytes, Item)>> {
        while let Some(row) = self.rows.next_row().transpose()? {
            let item = decode_item(row.value)?;
            if self.view.shows_row(&row.key, &item) {
                return Ok(Some((row.key, item)));
            }
        }
        Ok(None)
    }
}

pub(crate) struct Orders {
    rows: Box<dyn RowIterator>,
    only: Option<Bytes>,
}

impl Orders {
    pub(crate) fn next_order(&mut self) -> Result<Option<(u64, Bytes)>> {
        while let Some(row) = self.rows.next_row().transpose()? {
            if self.only.as_ref().is_some_and(|prefix| !row.value.starts_with(prefix)) {
                continue;
            }
            let number = keys::order_number(&row.key).ok_or_else(|| rows::damaged("order"))?;
            return Ok(Some((number, row.value)));
        }
        Ok(None)
    }
}
