//! Listing items: a page at a time, in the order of their creation.
//!
//! The order rows of one EPK sort by item number, so a logical partition is listed in creation order however large it
//! is. Across logical partitions creation order needs a sort: users expect it of small containers, and a partition of
//! at most `ORDERED_SCAN_ITEMS_MAX` items gives it to them; a larger one runs in (EPK, number) order. A scan stays in
//! the order it began with, its position says which.

use std::ops::Bound;

use bytes::Bytes;
use orrery_model::{Epk, PartitionKey};
use orrery_storage::{Direction, KeyRange, Snapshot, Table, keys};

use super::creation_order::{Earliest, Orders};
use super::item_key::ItemKey;
use super::rows::decode_detached;
use super::{Partition, View, rows};
use crate::error::Result;
use crate::item::{Item, Position};

/// Items that a listing sorts by creation.
pub const ORDERED_SCAN_ITEMS_MAX: usize = 10_000;

/// Which items of a partition.
#[derive(Debug, Clone)]
pub enum Span {
    All,
    /// `[min, max)` of the hash space.
    Epk {
        min: Epk,
        max: Epk,
    },
    Key {
        epk: Epk,
        key: PartitionKey,
    },
}

/// Where a scan of one partition goes on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ScanPosition {
    #[default]
    Start,
    /// In order of creation, after this number.
    Created { after: u64 },
    /// In order of (EPK, number), after this order row.
    Keyed { after: Bytes },
}

/// How much fits on a page. The first item always does.
#[derive(Debug, Clone, Copy)]
pub struct PageLimits {
    pub items: usize,
    pub bytes: usize,
}

#[derive(Debug)]
pub struct PartitionPage {
    pub items: Vec<Item>,
    /// `None`: there was nothing more.
    pub next: Option<ScanPosition>,
    pub at: Position,
}

impl Partition {
    /// The next page of items. Items that are over are passed by.
    pub fn scan_items(
        &self,
        span: &Span,
        from: &ScanPosition,
        limits: PageLimits,
        session: &[(u32, u64)],
    ) -> Result<PartitionPage> {
        let view = self.view(session)?;
        let by_creation = match from {
            ScanPosition::Created { .. } => true,
            ScanPosition::Keyed { .. } => false,
            ScanPosition::Start => {
                !matches!(span, Span::Key { .. }) && self.usage().items <= ORDERED_SCAN_ITEMS_MAX as u64
            }
        };
        let snapshot = self.snapshot()?;
        let page = Page { items: Vec::new(), bytes: 0, limits, last: None };
        let (items, next) = if by_creation {
            self.scan_by_creation(span, from, snapshot.as_ref(), &view, page)?
        } else {
            self.scan_by_key(span, from, snapshot.as_ref(), &view, page)?
        };
        let at = self.stands_at(view.lsn, 0);
        Ok(PartitionPage { items, next, at })
    }

    fn scan_by_creation(
        &self,
        span: &Span,
        from: &ScanPosition,
        snapshot: &dyn Snapshot,
        view: &View,
        mut page: Page,
    ) -> Result<(Vec<Item>, Option<ScanPosition>)> {
        let after = match from {
            ScanPosition::Created { after } => Some(*after),
            _ => None,
        };
        // The partition may have grown since the scan began.
        let mut earliest = Earliest::new(ORDERED_SCAN_ITEMS_MAX);
        let mut orders = Orders::of(snapshot, span);
        while let Some((number, key)) = orders.next_order()? {
            if after.is_none_or(|after| number > after) {
                earliest.push(number, key);
            }
        }
        let cut_off = earliest.is_cut_off();
        let mut last_number = after.unwrap_or(0);
        for (number, key) in earliest.into_sorted_vec() {
            let Some(item) = shown(snapshot, view, &key)? else {
                last_number = number;
                continue;
            };
            if !page.take(item) {
                return Ok((page.items, Some(ScanPosition::Created { after: last_number })));
            }
            last_number = number;
        }
        Ok((page.items, cut_off.then_some(ScanPosition::Created { after: last_number })))
    }

    fn scan_by_key(
        &self,
        span: &Span,
        from: &ScanPosition,
        snapshot: &dyn Snapshot,
        view: &View,
        mut page: Page,
    ) -> Result<(Vec<Item>, Option<ScanPosition>)> {
        let mut range = order_range(span);
        if let ScanPosition::Keyed { after } = from
            && starts_before(&range, after)
        {
            range.start = Bound::Excluded(after.clone());
        }
        let only = only_rows_of(span);
        let mut rows = snapshot.scan(Table::Index, range, Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            if only.as_ref().is_some_and(|prefix| !row.value.starts_with(prefix)) {
                continue;
            }
            let Some(item) = shown(snapshot, view, &row.value)? else { continue };
            if !page.take(item) {
                let after = page.last.take().unwrap_or_default();
                return Ok((page.items, Some(ScanPosition::Keyed { after })));
            }
            page.last = Some(row.key);
        }
        Ok((page.items, None))
    }
}

pub(super) fn order_range(span: &Span) -> KeyRange {
    match span {
        Span::All => keys::orders(),
        Span::Epk { min, max } => keys::order_in_epk_range(min.as_bytes(), max.as_bytes()),
        Span::Key { epk, .. } => keys::order_of_epk(epk.as_bytes()),
    }
}

/// Different keys can share an EPK; what the rows of a span begin with tells whose they are. A position comes from
/// outside, so no order of scanning may rely on the other one's having looked.
pub(super) fn only_rows_of(span: &Span) -> Option<Bytes> {
    match span {
        Span::Key { epk, key } => Some(ItemKey::new(epk, key, "").key),
        _ => None,
    }
}

pub(super) fn starts_before(range: &KeyRange, key: &[u8]) -> bool {
    match &range.start {
        Bound::Included(start) => start.as_ref() <= key,
        Bound::Excluded(start) => start.as_ref() < key,
        Bound::Unbounded => true,
    }
}

/// The item that an order row leads to, unless it is over.
fn shown(snapshot: &dyn Snapshot, view: &View, key: &[u8]) -> Result<Option<Item>> {
    let item = snapshot.get(Table::Items, key)?.map(decode_detached).transpose()?;
    // Order rows and items change in the same commits.
    let item = item.ok_or_else(|| rows::damaged("order"))?;
    Ok(Some(item).filter(|item| view.shows_row(key, item)))
}

struct Page {
    items: Vec<Item>,
    bytes: usize,
    limits: PageLimits,
    /// The order row of the last item taken.
    last: Option<Bytes>,
}

impl Page {
    /// Adds an item unless the page is full.
    fn take(&mut self, item: Item) -> bool {
        let bytes = self.bytes + item.document.len();
        if !self.items.is_empty() && (self.items.len() >= self.limits.items || bytes > self.limits.bytes) {
            return false;
        }
        self.bytes = bytes;
        self.items.push(item);
        true
    }
}
