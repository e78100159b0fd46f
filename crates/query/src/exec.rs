//! Execution: items in, rows out, without any input or output of its own.
//!
//! The caller pushes items in whatever order its storage yields them and gets each [`Row`] through a sink, which writes it
//! down. Plans that only filter and project emit rows at once; sorting, grouping and aggregates hold what
//! they must, within the budget of the request, and emit in `finish`. Either side can stop: the sink when its page
//! is full, the execution when TOP or LIMIT is reached.
//!
//! The partial form of a query (`partial`) is executed the same way: its sorted rows tell where they stand, and its groups
//! come as they are, for [`Execution::absorb`] of another execution to put together.
//!
//! Items may come in any order. Each has a number by which equal rows are told apart: rows with equal sort keys
//! come out by number, and groups by the lowest number in them, so that the result does not depend on the order in
//! which storage yields items.
//!
//! A page ends anywhere, also in the middle of an item that a JOIN multiplies. [`Execution::progress`] says
//! how to go on: from which item, and what [`Execution::resume`] must know about the rows delivered before. Sorted
//! queries go on after a [`SortPosition`], wherever their items come from then.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::rc::Rc;

use orrery_model::Value;
use orrery_sql::SqlError;

use crate::compare::canonical_key;
use crate::compile::{ITEM_SLOT, OrderKey};
use crate::direct::Direct;
use crate::eval::{Frame, GroupPart, Groups, bind_group};
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::node::Grouping;
use crate::output::{Content, JsonText, Row, RowFormat};
use crate::prepared::Prepared;
use crate::rank::{RankState, Signal};
use crate::row::RowView;
use crate::value::{Eval, value_bytes};

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
    /// Rows that passed everything but OFFSET, LIMIT and TOP.
    passed: u64,
    /// Rows to swallow because they were delivered before.
    swallow: u64,
    seen: HashSet<Vec<u8>>,
    groups: Option<Groups>,
    direct: Option<Direct>,
    sorted: Vec<SortedRow>,
    /// The keys and the number of the last row that a limited sort still keeps.
    cutoff: Option<(Vec<Value>, u64)>,
    /// Items come in the order of the sort keys already, equal ones by number.
    presorted: bool,
    /// Rows up to here were counted by the pages before.
    after: Option<SortPosition>,
    /// Rows of the item at `after` that have been seen again.
    after_rows: u64,
    last: Option<SortPosition>,
    /// Rows that earlier pages counted.
    passed_before: u64,
    /// The number of the item pushed last.
    number: u64,
    /// Items that passed the filter.
    matched: u64,
    /// Rows that have all that is sorted by, if that is not paths alone, and rows behind `after` that lack some of it.
    keyed: u64,
    keyless: u64,
    scratch: Vec<u8>,
    scratch_bytes: usize,
    ranked: Option<RankState>,
    signals: Vec<Vec<Signal>>,
    finished: bool,
    done: bool,
    /// How things stood when the item pushed last came, and how many of its rows were delivered.
    item_passed: u64,
    item_rows: u64,
    item_open: bool,
    delivered: u64,
}

struct SortedRow {
    keys: Vec<Value>,
    number: u64,
    /// In the format of the execution.
    written: Vec<u8>,
    mark: Vec<u8>,
    carried: Vec<Value>,
}

impl SortedRow {
    fn size_bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|key| size_of::<Value>() + value_bytes(key)).sum();
        let carried = self.carried.len() * size_of::<Value>();
        self.written.len() + keys + self.mark.len() + carried + ROW_OVERHEAD_BYTES
    }
}

impl<'p> Execution<'p> {
    pub fn new(prepared: &'p Prepared) -> Execution<'p> {
        let compiled = &prepared.compiled;
        Execution {
            prepared,
            meter: Rc::default(),
            format: &JsonText,
            passed: 0,
            swallow: 0,
            seen: HashSet::new(),
            groups: compiled.block.grouping.as_ref().map(Groups::new),
            direct: Direct::of(compiled),
            sorted: Vec::new(),
            cutoff: None,
            presorted: false,
            after: None,
            after_rows: 0,
            last: None,
            passed_before: 0,
            number: 0,
            matched: 0,
            keyed: 0,
            keyless: 0,
            scratch: Vec::new(),
            scratch_bytes: 0,
            ranked: compiled.rank.as_ref().map(RankState::new),
            signals: Vec::new(),
            finished: false,
            done: false,
            item_passed: 0,
            item_rows: 0,
            item_open: false,
            delivered: 0,
        }
    }

    /// Continues where an earlier execution of the same query stopped, as its [`Execution::progress`] said:
    /// `passed` rows counted before the next item, the first `swallow` rows from there on delivered already.
    pub fn resume(prepared: &'p Prepared, passed: u64, swallow: u64) -> Execution<'p> {
        let delivered = if prepared.needs().is_resumable() { 0 } else { swallow };
        Execution { passed, swallow, delivered, ..Execution::new(prepared) }
    }

    /// Continues a sorted query after the row at which an earlier execution of it stopped, with `passed` rows counted.
    pub fn resume_sorted(prepared: &'p Prepared, passed: u64, after: SortPosition) -> Execution<'p> {
        Execution { passed, passed_before: passed, after: Some(after), ..Execution::new(prepared) }
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

    /// Adds a part of a group that another execution has found. Groups come out in the order in which they were first added.
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
        self.presorted = true;
        self
    }

    /// The last row that was counted, of a sorted query.
    pub fn sort_position(&self) -> Option<&SortPosition> {
        self.last.as_ref().or(self.after.as_ref())
    }

    /// Rows counted against OFFSET, LIMIT and TOP so far.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Items that passed the filter so far.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// Rows so far that have all that the query sorts by, those of earlier pages that came again included; not of a query that
    /// sorts by paths alone.
    pub fn keyed(&self) -> u64 {
        self.keyed
    }

    /// Rows of this page or later ones so far that lack something that the query sorts by.
    pub fn keyless(&self) -> u64 {
        self.keyless
    }

    /// Where this execution stands.
    pub fn progress(&self) -> Progress {
        if !self.prepared.needs().is_resumable() {
            return Progress { passed: 0, swallow: self.delivered, repeat_item: false };
        }
        if self.item_open {
            return Progress { passed: self.item_passed, swallow: self.item_rows, repeat_item: true };
        }
        Progress { passed: self.passed, swallow: 0, repeat_item: false }
    }

    /// Whether no further row can come, so that no continuation is needed.
    pub fn is_done(&self) -> bool {
        self.done || self.wanted().is_some_and(|wanted| self.passed >= wanted)
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
        self.sorted.len()
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
        (self.item_passed, self.item_rows, self.item_open) = (self.passed, 0, true);
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
        self.item_open = flow == Flow::Stop;
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
        let mut keys = Vec::with_capacity(compiled.order.len());
        let mut keyed = true;
        for key in &compiled.order {
            let mut value = frame.eval(&key.node)?.to_value();
            if value.is_undefined() {
                keyed = false;
                value = key.missing.map_or(Value::Undefined, Value::from);
            }
            keys.push(value);
        }
        if let Some(after) = &self.after {
            let place =
                compare_keys(&keys, &after.keys, &compiled.order).then(self.number.cmp(&after.number));
            // Values that are no row were not counted as rows of the item either.
            if place.is_eq()
                && compiled.block.value
                && compiled.block.sources.len() > 1
                && frame.eval(&compiled.block.projection)?.is_undefined()
            {
                return Ok(Flow::More);
            }
            if place.is_lt() || place.is_eq() && self.after_rows < after.rows {
                self.after_rows += u64::from(place.is_eq());
                // Only orders that an index of values does not have ask for this count.
                let asked = keyed && compiled.order.iter().any(|key| key.path.is_none());
                let is_row = asked
                    && !(compiled.block.value && frame.eval(&compiled.block.projection)?.is_undefined());
                self.keyed += u64::from(is_row);
                return Ok(Flow::More);
            }
        }
        // A row that sorts behind all that can be emitted is not even projected.
        if let Some((worst, number)) = &self.cutoff
            && compare_keys(&keys, worst, &compiled.order).then(self.number.cmp(number)).is_ge()
        {
            (self.keyed, self.keyless) = (self.keyed + u64::from(keyed), self.keyless + u64::from(!keyed));
            return Ok(Flow::More);
        }
        let row = frame.eval(&compiled.block.projection)?;
        if compiled.block.value && row.is_undefined() {
            return Ok(Flow::More);
        }
        (self.keyed, self.keyless) = (self.keyed + u64::from(keyed), self.keyless + u64::from(!keyed));
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
        if compiled.rank.is_none() && (compiled.order.is_empty() || self.presorted) {
            self.counted(keys);
            return self.emit(Content::Value(&row, self.format), &mark, &carried, sink);
        }
        let mut written = Vec::new();
        self.format.write(&row, &mut written)?;
        written.shrink_to_fit();
        let row = SortedRow { keys, number: self.number, written, mark, carried };
        self.meter.take(row.size_bytes() + size_of_val(signals))?;
        self.sorted.push(row);
        if compiled.rank.is_some() {
            self.signals.push(signals.to_vec());
        }
        self.keep_best();
        Ok(Flow::More)
    }

    /// Remembers the row about to be emitted as the one to go on after.
    fn counted(&mut self, keys: Vec<Value>) {
        if keys.is_empty() {
            return;
        }
        let before = self.last.as_ref().or(self.after.as_ref());
        let again = before.filter(|last| last.number == self.number && last.keys == keys);
        let rows = again.map_or(0, |last| last.rows).saturating_add(1);
        self.last = Some(SortPosition { keys, number: self.number, rows });
    }

    /// With a limit only the best rows can ever be emitted; the others are dropped from time to time.
    fn keep_best(&mut self) {
        let Some(wanted) = self.wanted() else { return };
        let wanted = wanted.saturating_sub(self.passed_before);
        let slack = wanted.saturating_mul(2).max(SORTED_ROWS_SLACK);
        if wanted == 0 || self.ranked.is_some() || (self.sorted.len() as u64) < slack {
            return;
        }
        self.sort();
        for dropped in self.sorted.drain(wanted as usize..) {
            self.meter.give_back(dropped.size_bytes());
        }
        self.cutoff = self.sorted.last().map(|row| (row.keys.clone(), row.number));
    }

    /// By the keys, then by number; stable, so that the rows of one item stay in order.
    fn sort(&mut self) {
        let order = &self.prepared.compiled.order;
        self.sorted.sort_by(|left, right| {
            compare_keys(&left.keys, &right.keys, order).then(left.number.cmp(&right.number))
        });
    }

    /// How many rows, in order, the query looks at; `None` for all.
    fn wanted(&self) -> Option<u64> {
        let compiled = &self.prepared.compiled;
        let offset = compiled.offset.unwrap_or(0);
        let limit = match (compiled.top, compiled.limit) {
            (Some(top), Some(limit)) => top.min(limit),
            (Some(count), None) | (None, Some(count)) => count,
            (None, None) => return None,
        };
        Some(offset.saturating_add(limit))
    }

    fn is_complete(&self) -> bool {
        let waiting = self.groups.is_some()
            || !self.prepared.compiled.order.is_empty() && !self.presorted
            || self.prepared.compiled.rank.is_some();
        !waiting && self.wanted().is_some_and(|wanted| self.passed >= wanted)
    }

    fn emit(
        &mut self,
        content: Content<'_>,
        mark: &[u8],
        carried: &[Value],
        sink: &mut Sink<'_>,
    ) -> Result<Flow, SqlError> {
        if self.wanted().is_some_and(|wanted| self.passed >= wanted) {
            return Ok(Flow::Stop);
        }
        self.passed += 1;
        if self.passed <= self.prepared.compiled.offset.unwrap_or(0) {
            self.check(&content)?;
            return Ok(Flow::More);
        }
        self.item_rows += 1;
        let mut flow = Flow::More;
        if self.swallow > 0 {
            self.check(&content)?;
            self.swallow -= 1;
        } else {
            self.delivered += 1;
            flow = sink(Row { content, place: self.last.as_ref(), mark, carried })?;
        }
        // The last row that counts is known to be the last.
        Ok(if self.wanted().is_some_and(|wanted| self.passed >= wanted) { Flow::Stop } else { flow })
    }

    /// A row that cannot be written is an error of the query, also where nobody gets to see it.
    fn check(&mut self, content: &Content<'_>) -> Result<(), SqlError> {
        if let Content::Value(row, format) = content {
            self.scratch.clear();
            format.write(row, &mut self.scratch)?;
            if self.scratch.capacity() > self.scratch_bytes {
                self.meter.take(self.scratch.capacity() - self.scratch_bytes)?;
                self.scratch_bytes = self.scratch.capacity();
            }
        }
        Ok(())
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
                self.delivered += 1;
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
                let mut order: Vec<usize> = (0..self.sorted.len()).collect();
                order.sort_by(|left, right| {
                    let by_score = scores[*right].total_cmp(&scores[*left]);
                    by_score.then(self.sorted[*left].number.cmp(&self.sorted[*right].number))
                });
                let mut rows: Vec<Option<SortedRow>> =
                    std::mem::take(&mut self.sorted).into_iter().map(Some).collect();
                self.sorted = order.into_iter().filter_map(|at| rows[at].take()).collect();
            }
            _ => self.sort(),
        }
        let mut rows = std::mem::take(&mut self.sorted).into_iter();
        while let Some(row) = rows.next() {
            self.number = row.number;
            self.counted(row.keys);
            if self.emit(Content::Written(&row.written), &row.mark, &row.carried, sink)? == Flow::Stop {
                self.done = rows.len() == 0;
                return Ok(Flow::Stop);
            }
        }
        self.done = true;
        Ok(Flow::More)
    }
}

/// Rows a limited sort holds at least before it drops the worst; sorting a few at a time would cost more.
const SORTED_ROWS_SLACK: u64 = 256;

pub(crate) fn compare_keys(left: &[Value], right: &[Value], order: &[OrderKey]) -> Ordering {
    for ((left, right), key) in left.iter().zip(right).zip(order) {
        let by_key = left.compare(right);
        let by_key = if key.descending { by_key.reverse() } else { by_key };
        if by_key.is_ne() {
            return by_key;
        }
    }
    Ordering::Equal
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
