//! Scans over index entries: forward or backward, within a part of the partition, from a position on, with a seek.
//!
//! A scan covers a range of values of one path, or a range of one composite index, and within it the items of a span.
//! When the range is a single value its rows are in the order of their items, so that a span is a sub-range of them
//! and two scans can be merged with [`Entries::seek`]; when it is not, rows of other spans are read and passed over.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use bytes::Bytes;
use orrery_index as encoding;
use orrery_model::{PartitionKey, PartitionKeyDefinition, Value};
use orrery_storage::{Direction, KeyRange, RowIterator, Table, keys, prefix_end};

use super::super::rows::damaged;
use super::super::scan::Span;
use super::postings::{Filling, Known, List, value_hash};
use super::view::PartitionView;
use crate::error::Result;

/// Rows that a seek reads before it starts over from where it wants to be: opening a scan costs about as much.
const SEEK_ROWS: usize = 24;

/// One index entry: a value, and the item that has it.
#[derive(Debug, Clone)]
pub struct Entry {
    key: Bytes,
    /// Where the reference to the item begins.
    reference: usize,
    /// What a row of a search index says about the item.
    payload: Bytes,
}

impl Entry {
    /// The encoded value, or the components of a composite index.
    pub fn value(&self) -> &[u8] {
        &self.key[keys::index::HEAD_BYTES..self.reference]
    }

    /// Which item it is. References of one partition sort like each other in all scans, and nearly like items.
    pub fn reference(&self) -> &[u8] {
        &self.key[self.reference..]
    }

    /// The same without a copy.
    pub fn reference_bytes(&self) -> Bytes {
        self.key.slice(self.reference..)
    }

    /// What the row says besides. For entries of search indexes.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Whether the entry tells its value exactly. For entries of one path.
    pub fn is_exact(&self) -> bool {
        encoding::is_exact(self.value())
    }

    /// The value, where the entry alone tells it. For entries of one path.
    pub fn decode(&self) -> Option<Value> {
        encoding::decode(self.value())
    }

    /// Where a later scan over the same range goes on. Holds no number of this partition, so it stays good after a
    /// restart or a split.
    pub fn position(&self) -> Bytes {
        self.key.slice(keys::index::HEAD_BYTES..)
    }
}

/// An entry that belongs to another, as visitors see it.
#[derive(Debug, Clone, Copy)]
pub struct EntryView<'e> {
    value: &'e [u8],
    reference: &'e [u8],
}

impl<'e> EntryView<'e> {
    /// Which item it is.
    pub fn reference(&self) -> &'e [u8] {
        self.reference
    }

    /// Whether the entry tells its value exactly. For entries of one path.
    pub fn is_exact(&self) -> bool {
        encoding::is_exact(self.value)
    }

    /// The value, where the entry alone tells it. For entries of one path.
    pub fn decode(&self) -> Option<Value> {
        encoding::decode(self.value)
    }
}

/// What separates the value of a row from the reference behind it.
pub(super) enum Shape {
    Value,
    Composite(Vec<bool>),
    /// So many bytes.
    Fixed(usize),
}

impl Shape {
    /// Where the reference begins in a row's key.
    fn reference(&self, key: &[u8]) -> Option<usize> {
        let body = key.get(keys::index::HEAD_BYTES..)?;
        let rest = match self {
            Shape::Value => encoding::split(body)?.1,
            Shape::Composite(descending) => {
                let mut rest = body;
                for descending in descending {
                    rest = encoding::split_component(rest, *descending)?.1;
                }
                rest
            }
            Shape::Fixed(bytes) => body.get(*bytes..)?,
        };
        Some(key.len() - rest.len())
    }
}

/// Which references belong to a span.
enum Filter {
    All,
    /// Of one logical partition.
    Starts(Vec<u8>),
    Epk {
        min: Vec<u8>,
        max: Vec<u8>,
    },
}

impl Filter {
    fn new(span: &Span) -> Filter {
        match span {
            Span::All => Filter::All,
            Span::Epk { min, max } => {
                Filter::Epk { min: min.as_bytes().to_vec(), max: max.as_bytes().to_vec() }
            }
            Span::Key { epk, key } => Filter::Starts(reference_prefix(epk.as_bytes(), key)),
        }
    }

    /// Whether a reference belongs to the span. The cut hash decides, except at the edges.
    fn takes(&self, reference: &[u8], definition: &PartitionKeyDefinition) -> Option<bool> {
        let (min, max) = match self {
            Filter::All => return Some(true),
            Filter::Starts(prefix) => return Some(reference.starts_with(prefix)),
            Filter::Epk { min, max } => (min, max),
        };
        let start = reference.first_chunk::<{ keys::index::REFERENCE_EPK_BYTES }>()?;
        let (first, last) = (keys::index::reference_epk(min), keys::index::reference_epk(max));
        if *start > first && *start < last {
            return Some(true);
        }
        if *start < first || *start > last {
            return Some(false);
        }
        let key = PartitionKey::decode(&keys::index::reference_partition_key(reference)?)?;
        let epk = definition.effective(&key);
        Some(epk.as_bytes() >= &min[..] && epk.as_bytes() < &max[..])
    }
}

/// Whether an item lies in a span.
pub(super) fn is_inside(view: &PartitionView, span: &Span, reference: &[u8]) -> Result<bool> {
    Filter::new(span).takes(reference, view.key_definition()).ok_or_else(|| damaged("index"))
}

fn reference_prefix(epk: &[u8], key: &PartitionKey) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(32);
    key.encode(&mut encoded);
    let item_key = keys::logical_partition(epk, &encoded);
    keys::index::reference(epk, &item_key)
}

/// A running scan.
pub struct Entries<'v> {
    view: &'v PartitionView,
    rows: Option<Box<dyn RowIterator>>,
    range: KeyRange,
    direction: Direction,
    shape: Shape,
    filter: Filter,
    /// All rows have one value, which ends here in their keys.
    point: Option<usize>,
    /// A row that was read ahead.
    next: Option<Entry>,
    rows_read: u64,
    listed: Listed,
}

/// Whether a scan over one value goes by a list that is kept in memory.
enum Listed {
    /// Not asked yet.
    Unknown,
    /// The scan is none that lists are made of, or the list would be too long.
    No,
    /// Read from here on.
    List(Arc<List>, usize),
    /// To be kept when all rows have been seen.
    Filling { filling: Filling, start: Bytes },
}

impl<'v> Entries<'v> {
    /// `head`: what all rows start with; `start` and `end` follow it. `point`: there is but one value.
    #[expect(clippy::too_many_arguments)]
    pub(super) fn new(
        view: &'v PartitionView,
        head: &[u8],
        (start, end): (&[u8], &[u8]),
        point: bool,
        shape: Shape,
        span: &Span,
        direction: Direction,
        after: Option<&[u8]>,
    ) -> Entries<'v> {
        let filter = Filter::new(span);
        let behind = |tail: &[u8]| Bytes::from([head, tail].concat());
        let mut range = KeyRange::half_open(behind(start), behind(end));
        let mut point_end = None;
        if point {
            let value = behind(start);
            point_end = Some(value.len());
            match &filter {
                Filter::All => {}
                Filter::Starts(prefix) => range = KeyRange::prefix(&[&value[..], prefix].concat()),
                Filter::Epk { min, max } => {
                    // The edges are shared with other spans; their rows are looked at one by one.
                    let edge = |epk: &[u8]| [&value[..], &keys::index::reference_epk(epk)].concat();
                    range.start = Bound::Included(edge(min).into());
                    range.end = prefix_end(&edge(max));
                }
            }
        }
        if let Some(after) = after {
            let after = behind(after);
            match direction {
                Direction::Forward if !starts_after(&range, &after) => range.start = Bound::Excluded(after),
                Direction::Reverse if !ends_before(&range, &after) => range.end = Bound::Excluded(after),
                _ => {}
            }
        }
        let of_value = point && after.is_none() && matches!(shape, Shape::Value);
        Entries {
            view,
            rows: None,
            range,
            direction,
            shape,
            filter,
            point: point_end,
            next: None,
            rows_read: 0,
            listed: if of_value { Listed::Unknown } else { Listed::No },
        }
    }

    /// A scan that finds nothing.
    pub(super) fn nothing(view: &'v PartitionView) -> Entries<'v> {
        Entries {
            view,
            rows: None,
            range: KeyRange::half_open(Bytes::from_static(&[0]), Bytes::from_static(&[0])),
            direction: Direction::Forward,
            shape: Shape::Value,
            filter: Filter::All,
            point: None,
            next: None,
            rows_read: 0,
            listed: Listed::No,
        }
    }

    /// The next entry; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        if let Some(entry) = self.next.take() {
            return Ok(Some(entry));
        }
        loop {
            if self.rows.is_none() {
                if self.range.is_empty() {
                    return Ok(None);
                }
                self.rows = Some(self.view.snapshot().scan(Table::Index, self.range.clone(), self.direction));
            }
            let Some(rows) = &mut self.rows else { return Ok(None) };
            let Some(row) = rows.next_row().transpose()? else { return Ok(None) };
            self.rows_read += 1;
            let reference = match self.point {
                Some(end) if end <= row.key.len() => Some(end),
                Some(_) => None,
                None => self.shape.reference(&row.key),
            };
            let reference = reference.ok_or_else(|| damaged("index"))?;
            let entry = Entry { reference, key: row.key, payload: row.value };
            let taken = self.filter.takes(entry.reference(), self.view.key_definition());
            if taken.ok_or_else(|| damaged("index"))? {
                return Ok(Some(entry));
            }
        }
    }

    /// Shows entries to a visitor, forward, until it has seen enough or so many rows were read. True: those were all.
    /// Goes on where it stopped; not to be mixed with `next_entry`.
    pub fn visit(
        &mut self,
        rows_max: u64,
        visit: &mut dyn FnMut(EntryView<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        if self.range.is_empty() {
            return Ok(true);
        }
        if let Listed::Unknown = self.listed {
            self.listed = self.find_list();
        }
        if let Listed::List(list, next) = &mut self.listed {
            let (Bound::Included(start), Some(end)) = (&self.range.start, self.point) else {
                return Ok(true);
            };
            let value = &start[keys::index::HEAD_BYTES..end];
            let (mut rows, mut stopped) = (0, false);
            while !stopped && rows < rows_max && *next < list.len() {
                let reference = list.reference(*next);
                *next += 1;
                rows += 1;
                stopped = visit(EntryView { value, reference }).is_break();
            }
            let ended = !stopped && *next == list.len();
            // Whether from memory or not, a scan has read the same rows.
            self.rows_read += if ended { rows + list.passed_over } else { rows };
            return Ok(ended);
        }
        let Entries { view, shape, filter, point, listed, range, .. } = &mut *self;
        let (mut rows, mut failed, mut stopped_at) = (0, false, None);
        let mut look = |key: &[u8], _: &[u8]| {
            rows += 1;
            let reference = match *point {
                Some(end) => Some(end).filter(|end| *end <= key.len()),
                None => shape.reference(key),
            };
            let entry = reference.map(|reference| {
                let value = key.get(keys::index::HEAD_BYTES..reference).unwrap_or_default();
                EntryView { value, reference: &key[reference..] }
            });
            let taken = entry.and_then(|entry| filter.takes(entry.reference(), view.key_definition()));
            if let (Listed::Filling { filling, .. }, Some(entry), Some(true)) = (&mut *listed, entry, taken)
                && !filling.push(entry.reference())
            {
                *listed = Listed::No;
            }
            let flow = match entry.zip(taken) {
                Some((entry, true)) => visit(entry),
                Some((_, false)) => ControlFlow::Continue(()),
                None => {
                    failed = true;
                    ControlFlow::Break(())
                }
            };
            if flow.is_break() || rows >= rows_max {
                stopped_at = Some(Bytes::copy_from_slice(key));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        view.snapshot().visit(Table::Index, range.clone(), &mut look)?;
        self.rows_read += rows;
        if failed {
            return Err(damaged("index"));
        }
        let ended = stopped_at.is_none();
        if ended
            && let Listed::Filling { filling, start } = std::mem::replace(&mut self.listed, Listed::No)
            && let Bound::Excluded(end) = &self.range.end
        {
            self.view.learn(&start, end, filling, self.rows_read);
        }
        if let Some(key) = stopped_at {
            self.range.start = Bound::Excluded(key);
        }
        Ok(ended)
    }

    /// What is kept of the scan, before its first row.
    fn find_list(&self) -> Listed {
        let (Bound::Included(start), Bound::Excluded(end)) = (&self.range.start, &self.range.end) else {
            return Listed::No;
        };
        let Some(value) = self.point.and_then(|value_end| start.get(..value_end)) else { return Listed::No };
        match self.view.known(value_hash(value), start, end) {
            Known::List(list) => Listed::List(list, 0),
            Known::Again => Listed::Filling { filling: Filling::default(), start: start.clone() },
            Known::Nothing => Listed::No,
        }
    }

    /// The next entry, without going past it.
    pub fn peek_entry(&mut self) -> Result<Option<&Entry>> {
        if self.next.is_none() {
            self.next = self.next_entry()?;
        }
        Ok(self.next.as_ref())
    }

    /// Goes on at the first entry whose item is not before `reference` (not behind it, when the scan runs backward).
    /// Only for scans over a single value; others are in the order of their values.
    pub fn seek(&mut self, reference: &[u8]) -> Result<()> {
        let Some(end) = self.point else { return Ok(()) };
        for _ in 0..SEEK_ROWS {
            let Some(entry) = self.next_entry()? else { return Ok(()) };
            let reached = match self.direction {
                Direction::Forward => entry.reference() >= reference,
                Direction::Reverse => entry.reference() <= reference,
            };
            if reached {
                self.next = Some(entry);
                return Ok(());
            }
        }
        let head = match (&self.range.start, &self.range.end) {
            (Bound::Included(key) | Bound::Excluded(key), _) if key.len() >= end => &key[..end],
            _ => return Ok(()),
        };
        let wanted = Bytes::from([head, reference].concat());
        match self.direction {
            Direction::Forward => self.range.start = Bound::Included(wanted),
            Direction::Reverse => self.range.end = Bound::Included(wanted),
        }
        self.rows = None;
        Ok(())
    }

    /// Whether entries come in the order of their items.
    pub fn is_in_item_order(&self) -> bool {
        self.point.is_some()
    }

    /// Rows read so far, with those that were passed over.
    pub fn rows_read(&self) -> u64 {
        self.rows_read
    }
}

fn starts_after(range: &KeyRange, key: &[u8]) -> bool {
    match &range.start {
        Bound::Included(start) | Bound::Excluded(start) => &start[..] > key,
        Bound::Unbounded => false,
    }
}

fn ends_before(range: &KeyRange, key: &[u8]) -> bool {
    match &range.end {
        Bound::Included(end) | Bound::Excluded(end) => &end[..] < key,
        Bound::Unbounded => false,
    }
}
