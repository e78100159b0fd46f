//! The items of a span by number, whether they are shown or not: how feeds and queries list a small span in order of
//! creation.

use std::collections::BinaryHeap;

use bytes::Bytes;
use orrery_storage::{Direction, RowIterator, Snapshot, Table, keys};

use super::index::PartitionView;
use super::scan::{only_rows_of, order_range};
use super::{Span, rows};
use crate::error::Result;

impl PartitionView {
    /// Number and key of the stored items of a span; by hash, then by number.
    pub(crate) fn orders(&self, span: &Span) -> Orders {
        Orders::of(self.snapshot(), span)
    }
}

pub(crate) struct Orders {
    rows: Box<dyn RowIterator>,
    only: Option<Bytes>,
}

impl Orders {
    pub(super) fn of(snapshot: &dyn Snapshot, span: &Span) -> Orders {
        Orders {
            rows: snapshot.scan(Table::Index, order_range(span), Direction::Forward),
            only: only_rows_of(span),
        }
    }

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

/// The items with the smallest numbers, up to so many of them: a span may have grown beyond that since somebody found
/// it small.
pub(crate) struct Earliest {
    heap: BinaryHeap<(u64, Bytes)>,
    items_max: usize,
    cut_off: bool,
}

impl Earliest {
    pub(crate) fn new(items_max: usize) -> Earliest {
        Earliest { heap: BinaryHeap::new(), items_max, cut_off: false }
    }

    pub(crate) fn push(&mut self, number: u64, key: Bytes) {
        self.heap.push((number, key));
        if self.heap.len() > self.items_max {
            self.heap.pop();
            self.cut_off = true;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether others come behind those that are kept.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    pub(crate) fn into_sorted_vec(self) -> Vec<(u64, Bytes)> {
        self.heap.into_sorted_vec()
    }
}
