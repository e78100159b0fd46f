//! Execution: items in, rows out, without any input or output of its own.
//!
//! The caller pushes items in whatever order its storage yields them and gets each [`Row`] through a sink, which
//! writes it down. Plans that only filter and project emit rows at once; sorting, grouping and aggregates hold what
//! they must, within the budget of the request, and emit in `finish`. Either side can stop: the sink when its page is
//! full, the execution when TOP or LIMIT is reached.
//!
//! The partial form of a query (`partial`) is executed the same way: its sorted rows tell where they stand, and its
//! groups come as they are, for [`Execution::absorb`] of another execution to put together.
//!
//! Items may come in any order. Each has a number by which equal rows are told apart: rows with equal sort keys
//! come out by number, and groups by the lowest number in them, so that the result does not depend on the order in
//! which storage yields items.
//!
//! A page ends anywhere, also in the middle of an item that a JOIN multiplies. [`Execution::progress`] says
//! how to go on: from which item, and what [`Execution::resume`] must know about the rows delivered before. Sorted
//! queries go on after a [`SortPosition`], wherever their items come from then.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::rc::Rc;

use orrery_model::Value;
use orrery_sql::SqlError;

use crate::compare::canonical_key;
use crate::compile::ITEM_SLOT;
use crate::direct::Direct;
use crate::eval::{Frame, GroupPart, Groups, bind_group};
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::node::Grouping;
use crate::output::{Content, JsonText, Row, RowFormat};
use crate::prepared::Prepared;
use crate::rank::{RankState, Signal};
use crate::row::RowView;
use crate::value::Eval;

mod delivery;
mod sorter;

use delivery::{Delivery, Outgoing};
pub(crate) use sorter::compare_keys;
use sorter::{SortedRow, Sorter};

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    More,
    Stop,
}

/// Where a query stopped, for a continuation token: two numbers that survive a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows counted against OFFSET, LIMIT and TOP before the item to go on with.
    pub passed: u64,
    /// Rows from there on that were delivered already.
    pub swallow: u64,
    /// Go on with the item pushed last, because more of its rows may come; otherwise with the one after
    /// it. Plans that are not resumable by item start again with the first item whatever this says.
    pub repeat_item: bool,
}

/// The last row that a sorted query has counted: where it goes on, even if the data has changed meanwhile.
#[derive(Clone, Debug, PartialEq)]
pub struct SortPosition {
    pub keys: Vec<Value>,
    pub number: u64,
    /// How many rows of that item were counted; a JOIN makes several.
    pub rows: u64,
}

/// Takes one row; answers whether it wants another, or why it could not be written.
pub type Sink<'s> = dyn FnMut(Row<'_>) -> Result<Flow, SqlError> + 's;

pub struct Execution<'p> {
    prepared: &'p Prepared,
    meter: Rc<Meter>,
    format: &'p dyn RowFormat,
    seen: HashSet<Vec<u8>>,
    groups: Option<Groups>,
    direct: Option<Direct>,
    sorter: Sorter<'p>,
    delivery: Delivery,
    ranked: Option<RankState>,
    signals: Vec<Vec<Signal>>,
    /// The number of the item pushed last.
    number: u64,
    /// Items that passed the filter.
    matched: u64,
    finished: bool,
    done: bool,
}

impl<'p> Execution<'p> {
    pub fn new(prepared: &'p Prepared) -> Execution<'p> {
        let compiled = &prepared.compiled;
        Execution {
            prepared,
            meter: Rc::default(),
            format: &JsonText,
            seen: HashSet::new(),
            groups: compiled.block.grouping.as_ref().map(Groups::new),
            direct: Direct::of(compiled),
            sorter: Sorter::new(&compiled.order),
            delivery: Delivery::new(compiled),
            ranked: compiled.rank.as_ref().map(RankState::new),
            signals: Vec::new(),
            number: 0,
            matched: 0,
            finished: false,
            done: false,
        }
    }

    /// Continues where an earlier execution of the same query stopped, as its [`Execution::progress`] said:
    /// `passed` rows counted before the next item, the first `swallow` rows from there on delivered already.
    pub fn resume(prepared: &'p Prepared, passed: u64, swallow: u64) -> Execution<'p> {
        let mut execution = Execution::new(prepared);
        let delivered = if prepared.needs().is_resumable() { 0 } else { swallow };
        let delivery = &mut execution.delivery;
        (delivery.passed, delivery.swallow, delivery.delivered) = (passed, swallow, delivered);
        execution
    }

    /// Continues a sorted query after the row at which an earlier execution of it stopped, with `passed` rows counted.
    pub fn resume_sorted(prepared: &'p Prepared, passed: u64, after: SortPosition) -> Execution<'p> {
        let mut execution = Execution::new(prepared);
        execution.delivery.passed = passed;
        execution.sorter.resume(passed, after);
        execution
    }

    /// Charges what it takes to this meter; otherwise the limit of one request holds.
    pub fn within(mut self, meter: &Rc<Meter>) -> Execution<'p> {
        self.meter = Rc::clone(meter);
        self
    }

    /// Writes rows that must wait in this format; JSON text, unless told.
    pub fn written_as(mut self, format: &'p dyn RowFormat) -> Execution<'p> {
        self.format = format;
        self
    }

    /// Adds a part of a group that another execution has found. Groups come out in the order in which they were first
    /// added.
    pub fn absorb(&mut self, part: GroupPart) -> Result<(), SqlError> {
        match &mut self.groups {
            Some(groups) => groups.absorb(part, &self.meter),
            None => Err(SqlError::whole("", "A query without groups was given a part of one.")),
        }
    }

    /// What the aggregates of a query without group keys come to, in their order.
    pub(crate) fn into_totals(self) -> Vec<Value> {
        self.groups
            .and_then(|groups| groups.into_results().next())
            .map_or_else(Vec::new, |(.., results)| results)
    }

    /// Says that items will come in the order of the sort keys, equal ones by number: rows are emitted at once.
    pub fn presorted(mut self) -> Execution<'p> {
        self.sorter.presorted = true;
        self
    }

    /// The last row that was counted, of a sorted query.
    pub fn sort_position(&self) -> Option<&SortPosition> {
        self.sorter.position()
    }

    /// Rows counted against OFFSET, LIMIT and TOP so far.
    pub fn passed(&self) -> u64 {
        self.delivery.passed
    }

    /// Items that passed the filter so far.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// Rows so far that have all that the query sorts by, those of earlier pages that came again included; not of a
    /// query that sorts by paths alone.
    pub fn keyed(&self) -> u64 {
        self.sorter.keyed
    }

    /// Rows of this page or later ones so far that lack something that the query sorts by.
    pub fn keyless(&self) -> u64 {
        self.sorter.keyless
    }

    /// Where this execution stands.
    pub fn progress(&self) -> Progress {
        if !self.prepared.needs().is_resumable() {
            return Progress { passed: 0, swallow: self.delivery.delivered, repeat_item: false };
        }
        self.delivery.progress()
    }

    /// Whether no further row can come, so that no continuation is needed.
    pub fn is_done(&self) -> bool {
        self.done || self.delivery.is_complete()
    }

    /// Takes one item, with the next number. `Stop` says that no further item can change the result, or that the
    /// sink is full.
    pub fn push(&mut self, row: RowView<'_>, sink: &mut Sink<'_>) -> Result<Flow, SqlError> {
        self.push_numbered(row, self.number + 1, sink)
    }

    /// Takes one item by its own number.
    pub fn push_numbered(
        &mut self,
        row: RowView<'_>,
        number: u64,
        sink: &mut Sink<'_>,
    ) -> Result<Flow, SqlError> {
        self.number = number;
        if self.prepared.needs().from {
            self.run(Eval::Item(row), sink)
        } else {
            // The one row of a query without FROM comes from no item.
            Ok(Flow::Stop)
        }
    }

    /// Counts items that passed the filter without looking at them, for a query that only counts.
    pub fn count_items(&mut self, items: u64) {
        self.matched += items;
        if let Some(groups) = &mut self.groups {
            groups.count(items);
        }
    }

    /// Says that items passed the filter which are added to the groups directly.
    pub(crate) fn add_matched(&mut self, items: u64) {
        self.matched += items;
    }

    /// The groups, for whoever adds to them directly.
    pub(crate) fn grouping(&mut self) -> Option<(&'p Grouping, &mut Groups, &Meter)> {
        let grouping = self.prepared.compiled.block.grouping.as_ref()?;
        Some((grouping, self.groups.as_mut()?, &self.meter))
    }

    /// Says what the aggregates of a query without groups come to, in their order, instead of pushing items.
    pub fn set_totals(&mut self, totals: &[u64]) {
        if let Some(groups) = &mut self.groups {
            groups.set_totals(totals);
        }
    }

    /// Says what the statistics of a query that ranks texts are over all items, so that only some need to be pushed.
    pub fn set_rank_statistics(&mut self, documents: u64, words: u64, matching: &[u64]) {
        if let Some(ranked) = &mut self.ranked {
            ranked.set_statistics(documents, words, matching);
        }
    }

    /// Rows that wait to be sorted.
    pub fn held(&self) -> usize {
        self.sorter.rows.len()
    }

    /// Takes one value in the place of an item, for a query that was rewritten to read it (see `pushdown::Cover`).
    pub fn push_value(&mut self, value: &Value, number: u64, sink: &mut Sink<'_>) -> Result<Flow, SqlError> {
        self.number = number;
        self.run(Eval::from_constant(value), sink)
    }

    fn run(&mut self, item: Eval<'_>, sink: &mut Sink<'_>) -> Result<Flow, SqlError> {
        if self.is_complete() {
            return Ok(Flow::Stop);
        }
        if let (Eval::Item(row), Some(direct), Some(groups), Some(grouping)) =
            (&item, &self.direct, &mut self.groups, &self.prepared.compiled.block.grouping)
        {
            groups.add_direct(grouping, direct, self.number, row, &self.meter)?;
            self.matched += 1;
            return Ok(Flow::More);
        }
        self.delivery.begin_item();
        let prepared = self.prepared;
        let compiled = &prepared.compiled;
        let mut frame = Frame::new(compiled.slot_count, &prepared.context, &self.meter);
        frame.slots[ITEM_SLOT] = item;
        let signals = match (&compiled.rank, &mut self.ranked) {
            (Some(rank), Some(state)) => {
                // The sources of a ranked query bind the item itself, so the scores can be read first.
                for source in &compiled.block.sources {
                    frame.slots[source.slot] = frame.slots[ITEM_SLOT].clone();
                }
                state.read(rank, &mut frame)?
            }
            _ => Vec::new(),
        };
        let mut flow = Flow::More;
        let mut matched = false;
        let result = frame.bindings(&compiled.block, &mut |frame| {
            matched = true;
            flow = self.bound(frame, &signals, sink)?;
            Ok(if flow == Flow::More { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        frame.release_all();
        let _ = result?;
        self.matched += u64::from(matched);
        self.delivery.end_item(flow);
        Ok(flow)
    }

    /// One combination of source values that passed the filter.
    fn bound<'a>(
        &mut self,
        frame: &mut Frame<'a>,
        signals: &[Signal],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, SqlError>
    where
        'p: 'a,
    {
        let block = &self.prepared.compiled.block;
        if let (Some(grouping), Some(groups)) = (&block.grouping, &mut self.groups) {
            groups.add(grouping, self.number, frame)?;
            return Ok(Flow::More);
        }
        self.project(frame, signals, sink)
    }

    /// Projects a row, or a finished group, and sorts or emits it.
    fn project<'a>(
        &mut self,
        frame: &mut Frame<'a>,
        signals: &[Signal],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, SqlError>
    where
        'p: 'a,
    {
        let compiled = &self.prepared.compiled;
        let keys = self.sorter.keys(frame)?;
        if let Some(place) = self.sorter.place(&keys, self.number) {
            // Values that are no row were not counted as rows of the item either.
            if place.is_eq()
                && compiled.block.value
                && compiled.block.sources.len() > 1
                && frame.eval(&compiled.block.projection)?.is_undefined()
            {
                return Ok(Flow::More);
            }
            if self.sorter.was_counted(place) {
                let is_row = self.sorter.counts_again(&keys)
                    && !(compiled.block.value && frame.eval(&compiled.block.projection)?.is_undefined());
                self.sorter.keyed += u64::from(is_row);
                return Ok(Flow::More);
            }
        }
        if self.sorter.is_cut_off(&keys, self.number) {
            self.sorter.count(&keys);
            return Ok(Flow::More);
        }
        let row = frame.eval(&compiled.block.projection)?;
        if compiled.block.value && row.is_undefined() {
            return Ok(Flow::More);
        }
        self.sorter.count(&keys);
        let keys = keys.values;
        let mut mark = Vec::new();
        if compiled.block.distinct || compiled.marked {
            let key = canonical_key(&row);
            if compiled.block.distinct {
                if self.seen.contains(&key) {
                    return Ok(Flow::More);
                }
                self.meter.take(key.len() + ROW_OVERHEAD_BYTES)?;
                if compiled.marked {
                    mark.clone_from(&key);
                }
                self.seen.insert(key);
            } else {
                mark = key;
            }
        }
        let mut carried = Vec::with_capacity(compiled.carried.len());
        for node in &compiled.carried {
            carried.push(frame.eval(node)?.to_value());
        }
        if compiled.rank.is_none() && !self.sorter.waits() {
            self.sorter.counted(keys, self.number);
            let (content, place) = (Content::Value(&row, self.format), self.sorter.last());
            let row = Outgoing { content, place, mark: &mark, carried: &carried };
            return self.delivery.emit(row, &self.meter, sink);
        }
        let mut written = Vec::new();
        self.format.write(&row, &mut written)?;
        written.shrink_to_fit();
        let row = SortedRow { keys, number: self.number, written, mark, carried };
        self.meter.take(row.size_bytes() + size_of_val(signals))?;
        self.sorter.rows.push(row);
        if compiled.rank.is_some() {
            self.signals.push(signals.to_vec());
        }
        if let Some(wanted) = self.delivery.wanted().filter(|_| self.ranked.is_none()) {
            self.sorter.keep_best(wanted, &self.meter);
        }
        Ok(Flow::More)
    }

    fn is_complete(&self) -> bool {
        let waiting = self.groups.is_some() || self.sorter.waits() || self.prepared.compiled.rank.is_some();
        !waiting && self.delivery.is_complete()
    }

    /// No more items: emits what had to wait.
    pub fn finish(&mut self, sink: &mut Sink<'_>) -> Result<Flow, SqlError> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(Flow::Stop);
        }
        if !self.prepared.needs().from {
            let flow = self.run(Eval::Undefined, sink)?;
            if flow == Flow::Stop {
                self.done = self.prepared.needs().is_resumable();
                return Ok(flow);
            }
        }
        if self.prepared.compiled.groups_apart {
            let parts = self.groups.take().map(Groups::into_parts).into_iter().flatten();
            for part in parts {
                self.delivery.delivered += 1;
                sink(Row { content: Content::Group(Box::new(part)), ..Row::written(&[]) })?;
            }
            self.done = true;
            return Ok(Flow::More);
        }
        if let (Some(grouping), Some(groups)) = (&self.prepared.compiled.block.grouping, self.groups.take()) {
            let prepared = self.prepared;
            let mut frame = Frame::new(prepared.compiled.slot_count, &prepared.context, &self.meter);
            let mut groups = groups.into_results().peekable();
            while let Some((first, keys, results)) = groups.next() {
                self.number = first;
                bind_group(grouping, &mut frame, keys, results);
                self.meter.step(1)?;
                frame.release_all();
                if self.project(&mut frame, &[], sink)? == Flow::Stop {
                    // A page that ends with the last row has no page after it.
                    self.done = groups.peek().is_none();
                    return Ok(Flow::Stop);
                }
            }
        }
        match (&self.prepared.compiled.rank, self.ranked.take()) {
            (Some(rank), Some(state)) => {
                let scores = state.scores(rank, &self.signals);
                self.sorter.sort_by_scores(&scores);
            }
            _ => self.sorter.sort(),
        }
        let mut rows = std::mem::take(&mut self.sorter.rows).into_iter();
        while let Some(SortedRow { keys, number, written, mark, carried }) = rows.next() {
            self.number = number;
            self.sorter.counted(keys, number);
            let (content, place) = (Content::Written(&written), self.sorter.last());
            let row = Outgoing { content, place, mark: &mark, carried: &carried };
            if self.delivery.emit(row, &self.meter, sink)? == Flow::Stop {
                self.done = rows.len() == 0;
                return Ok(Flow::Stop);
            }
        }
        self.done = true;
        Ok(Flow::More)
    }
}

/// Runs a query over items that are all at hand and collects the rows.
pub fn run_all<'r>(
    prepared: &Prepared,
    rows: impl IntoIterator<Item = RowView<'r>>,
) -> Result<Vec<Vec<u8>>, SqlError> {
    run_within(prepared, rows, &Rc::default())
}

/// The same, charged to a meter as long as that lives, the rows included.
pub fn run_within<'r>(
    prepared: &Prepared,
    rows: impl IntoIterator<Item = RowView<'r>>,
    meter: &Rc<Meter>,
) -> Result<Vec<Vec<u8>>, SqlError> {
    let mut output = Vec::new();
    let mut sink = |row: Row<'_>| {
        let mut written = Vec::new();
        row.write(&mut written)?;
        meter.take(written.capacity() + ROW_OVERHEAD_BYTES)?;
        output.push(written);
        Ok(Flow::More)
    };
    let mut execution = Execution::new(prepared).within(meter);
    for row in rows {
        if execution.push(row, &mut sink)? == Flow::Stop {
            break;
        }
    }
    execution.finish(&mut sink)?;
    Ok(output)
}
