//! The items of a span by number, whether they are shown or not: how queries list a small span in order of creation.

use bytes::Bytes;
use orrery_storage::{Direction, RowIterator, Table, keys};

use super::index::PartitionView;
use super::item_key::ItemKey;
use super::scan::order_range;
use super::{Span, rows};
use crate::error::Result;

impl PartitionView {
    /// Number and key of the stored items of a span; by hash, then by number.
    pub(crate) fn orders(&self, span: &Span) -> Orders {
        // Different keys can share a hash; the rows of one tell which is whose.
        let only = match span {
            Span::Key { epk, key } => Some(ItemKey::new(epk, key, "").key),
            _ => None,
        };
        Orders { rows: self.snapshot().scan(Table::Index, order_range(span), Direction::Forward), only }
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
