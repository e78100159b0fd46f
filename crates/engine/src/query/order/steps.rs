//! What a walk goes through: entries of an index, or rows of columns in the order of one of them.
//!
//! Both give the same items in the same order, apart from the order within one value, which the items decide. Rows of
//! columns know beforehand whether they pass the filter; items that are not in the columns as they are now stand
//! between the rows, where their values belong.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use orrery_index::ValueRange;
use orrery_model::Value;
use orrery_query::SortPosition;
use orrery_query::columns::{Column, ColumnOrder, SortRun};

use super::index_order::{IndexOrder, keys_of};
use super::top_k::as_queries_see_them;
use super::walk::Members;
use crate::columns::ColumnSet;
use crate::item::Item;
use crate::partition::index::{Entries, Entry};
use crate::query::access_path::{ItemPlace, ItemReader, STEP_ROWS};
use crate::query::page::Ran;

/// Rows of which it is found out at once whether they pass, at first and at most.
const BLOCK_ROWS_MIN: usize = 64;
const BLOCK_ROWS_MAX: usize = 1_024;

pub(super) enum Steps<'v> {
    Entries { entries: Box<Entries<'v>>, walk: &'v IndexOrder },
    Columns(Box<ColumnSteps<'v>>),
}

/// One step: an entry, a row, or an item in its place.
pub(super) enum Step {
    Entry(Entry),
    Row {
        /// In the order.
        at: usize,
        passes: bool,
    },
    Placed(Box<Placed>),
}

/// An item that the columns do not have as it is now.
pub(super) struct Placed {
    /// The places in the order of rows with the same value, or between which it belongs.
    same: Range<usize>,
    value: Value,
    key: Bytes,
    item: Item,
    passes: bool,
}

pub(super) struct ColumnSteps<'c> {
    set: &'c ColumnSet,
    column: &'c Column,
    order: &'c ColumnOrder,
    filter: SortRun<'c>,
    descending: bool,
    /// Rows to come, of the order.
    rest: Range<usize>,
    block_rows: usize,
    /// Rows that were looked at.
    block: VecDeque<(usize, bool)>,
    /// Rows in whose place the items themselves are asked.
    passed_over: HashSet<u32>,
    /// In the order of the walk.
    placed: VecDeque<Box<Placed>>,
    read: u64,
}

impl<'c> Steps<'c> {
    /// Steps through rows from a position on; `None` where the walk is none of a single path.
    pub fn of_columns(
        reader: &mut ItemReader<'_>,
        walk: &IndexOrder,
        after: Option<&SortPosition>,
        (set, column, order): (&'c ColumnSet, &'c Column, &'c ColumnOrder),
        filter: SortRun<'c>,
        places: Vec<ItemPlace>,
    ) -> Ran<Option<Steps<'c>>> {
        let Some((range, descending)) = walk.values(after) else { return Ok(None) };
        let first = |bound: &[u8]| order.partition_point(column, &mut |value| &encoded(value)[..] < bound);
        let rest = match range == ValueRange::defined() {
            true => 0..order.len(),
            false => first(&range.start)..first(&range.end),
        };
        let paths = reader.query.prepared.order_paths();
        let passed_over = places.iter().filter(|place| place.stored).map(|place| place.row as u32).collect();
        let mut placed = Vec::new();
        for place in places {
            let Some(item) = place.item else { continue };
            let value = as_queries_see_them(keys_of(&item, &paths)).pop().unwrap_or_default();
            let encoded = encoded(&value);
            if !orrery_index::is_exact(&encoded) {
                return Ok(None);
            }
            if value.is_undefined() || !range.contains(&encoded) {
                continue;
            }
            let start = order.partition_point(column, &mut |other| other.compare(&value).is_lt());
            let end = order.partition_point(column, &mut |other| other.compare(&value).is_le());
            let passes = reader.passes(&item)?;
            placed.push(Box::new(Placed { same: start..end, value, key: place.key, item, passes }));
        }
        placed.sort_by(|left, right| {
            let order = left.value.compare(&right.value);
            if descending { order.reverse() } else { order }
        });
        Ok(Some(Steps::Columns(Box::new(ColumnSteps {
            set,
            column,
            order,
            filter,
            descending,
            rest: rest.start..rest.end.max(rest.start),
            block_rows: BLOCK_ROWS_MIN,
            block: VecDeque::new(),
            passed_over,
            placed: placed.into(),
            read: 0,
        }))))
    }

    pub fn next_step(&mut self, reader: &mut ItemReader<'_>) -> Ran<Option<Step>> {
        match self {
            Steps::Entries { entries, .. } => Ok(entries.next_entry()?.map(Step::Entry)),
            Steps::Columns(columns) => columns.next_step(reader),
        }
    }

    /// Whether two steps have values that cannot be told apart.
    pub fn is_same_run(&self, first: &Step, other: &Step) -> bool {
        match (self, first, other) {
            (Steps::Entries { walk, .. }, Step::Entry(first), Step::Entry(other)) => {
                other.value().starts_with(walk.run_of(first))
            }
            (Steps::Columns(columns), first, other) => columns.is_same_run(first, other),
            _ => false,
        }
    }

    /// Whether the item of a step may pass the filter.
    pub fn passes(&self, reader: &mut ItemReader<'_>, members: &Members<'_>, step: &Step) -> Ran<bool> {
        match step {
            Step::Entry(entry) => members.has(reader, entry.reference()),
            Step::Row { passes, .. } => Ok(*passes),
            Step::Placed(placed) => Ok(placed.passes),
        }
    }

    fn key(&self, reader: &ItemReader<'_>, step: &Step) -> Ran<Bytes> {
        Ok(match (self, step) {
            (_, Step::Entry(entry)) => reader.view.item_key(entry.reference())?,
            (_, Step::Placed(placed)) => placed.key.clone(),
            (Steps::Columns(columns), Step::Row { at, .. }) => columns.set.key(columns.order.row(*at)).into(),
            // Entries have no rows.
            (Steps::Entries { .. }, Step::Row { .. }) => Bytes::new(),
        })
    }

    /// What entries call the item of a step.
    pub fn reference(&self, reader: &ItemReader<'_>, step: &Step) -> Ran<Bytes> {
        Ok(match step {
            Step::Entry(entry) => entry.reference_bytes(),
            step => reader.view.reference_of(&self.key(reader, step)?)?,
        })
    }

    /// The item of a step, with its key. `counted`: as loaded.
    pub fn load(
        &self,
        reader: &mut ItemReader<'_>,
        step: &Step,
        counted: bool,
    ) -> Ran<Option<(Bytes, Item)>> {
        let key = self.key(reader, step)?;
        let item = match step {
            Step::Placed(placed) => Some(placed.item.clone()),
            _ => reader.look_at(&key)?,
        };
        if let Some(item) = &item
            && counted
        {
            reader.count_loaded(item.document.len());
        }
        Ok(item.map(|item| (key, item)))
    }

    /// Entries read so far, or those that would have been.
    pub fn rows_read(&self) -> u64 {
        match self {
            Steps::Entries { entries, .. } => entries.rows_read(),
            Steps::Columns(columns) => columns.read,
        }
    }
}

impl ColumnSteps<'_> {
    fn next_step(&mut self, reader: &mut ItemReader<'_>) -> Ran<Option<Step>> {
        if self.block.is_empty() {
            self.fill(reader)?;
        }
        let row = self.block.front().map(|(at, _)| *at);
        let placed_first = self.placed.front().is_some_and(|placed| match (row, self.descending) {
            (None, _) => true,
            (Some(at), false) => at >= placed.same.start,
            (Some(at), true) => at < placed.same.end,
        });
        let step = match placed_first {
            true => self.placed.pop_front().map(Step::Placed),
            false => self.block.pop_front().map(|(at, passes)| Step::Row { at, passes }),
        };
        self.read += u64::from(step.is_some());
        Ok(step)
    }

    /// Finds out of the next rows whether they pass.
    fn fill(&mut self, reader: &mut ItemReader<'_>) -> Ran<()> {
        while self.block.is_empty() && !self.rest.is_empty() {
            let count = self.block_rows.min(self.rest.len());
            self.block_rows = (2 * self.block_rows).min(BLOCK_ROWS_MAX);
            reader.allowance.spend(1 + (count / STEP_ROWS) as u64)?;
            let part = match self.descending {
                false => self.rest.start..self.rest.start + count,
                true => self.rest.end - count..self.rest.end,
            };
            match self.descending {
                false => self.rest.start = part.end,
                true => self.rest.end = part.start,
            }
            let in_turn = |place: usize| match self.descending {
                false => part.start + place,
                true => part.end - 1 - place,
            };
            let places = || (0..count).map(in_turn);
            let is_current = |at: &usize| !self.passed_over.contains(&(self.order.row(*at) as u32));
            let mut passing: Vec<u32> =
                places().filter(is_current).map(|at| self.order.row(at) as u32).collect();
            self.filter.retain(&mut passing)?;
            let mut passing = passing.into_iter().peekable();
            for at in places().filter(is_current) {
                let row = self.order.row(at) as u32;
                let passes = passing.next_if_eq(&row).is_some();
                self.block.push_back((at, passes));
            }
        }
        Ok(())
    }

    fn is_same_run(&self, first: &Step, other: &Step) -> bool {
        match (first, other) {
            (Step::Row { at: first, .. }, Step::Row { at: other, .. }) => {
                self.column.compare(self.order.row(*first), self.order.row(*other)).is_eq()
            }
            (Step::Row { at, .. }, Step::Placed(placed)) | (Step::Placed(placed), Step::Row { at, .. }) => {
                placed.same.contains(at)
            }
            (Step::Placed(first), Step::Placed(other)) => first.value.compare(&other.value).is_eq(),
            _ => false,
        }
    }
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut encoded = Vec::new();
    orrery_index::encode_value(&mut encoded, value);
    encoded
}
