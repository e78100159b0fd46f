//! Execution: items in, rows out, without any input or output of its own.
//!
//! The caller pushes items in whatever order its storage yields them and gets rows through a sink, as
//! JSON. Plans that only filter and project emit rows at once; sorting, grouping and aggregates hold what
//! they must, within `HELD_BYTES_MAX`, and emit in `finish`. Either side can stop: the sink when its page
//! is full, the execution when TOP or LIMIT is reached.
//!
//! A page ends anywhere, also in the middle of an item that a JOIN multiplies. [`Execution::progress`] says
//! how to go on: from which item, and what [`Execution::resume`] must know about the rows delivered before.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::ControlFlow;

use orrery_model::Value;
use orrery_sql::SqlError;

use crate::compare::canonical_key;
use crate::compile::{ITEM_SLOT, OrderKey};
use crate::eval::{Frame, Groups, bind_group};
use crate::limits::Budget;
use crate::output::write_json;
use crate::prepared::Prepared;
use crate::rank::{RankState, Signal};
use crate::row::RowView;
use crate::value::Eval;

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

/// Takes one row of JSON text; answers whether it wants another.
pub type Sink<'s> = dyn FnMut(&[u8]) -> Flow + 's;

pub struct Execution<'p> {
    prepared: &'p Prepared,
    budget: Budget,
    /// Rows that passed everything but OFFSET, LIMIT and TOP.
    passed: u64,
    /// Rows to swallow because they were delivered before.
    swallow: u64,
    seen: HashSet<Vec<u8>>,
    groups: Option<Groups>,
    sorted: Vec<SortedRow>,
    /// The keys of the last row that a limited sort still keeps.
    cutoff: Option<Vec<Value>>,
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
    json: Vec<u8>,
}

impl<'p> Execution<'p> {
    pub fn new(prepared: &'p Prepared) -> Execution<'p> {
        let compiled = &prepared.compiled;
        Execution {
            prepared,
            budget: Budget::default(),
            passed: 0,
            swallow: 0,
            seen: HashSet::new(),
            groups: compiled.plan.grouping.as_ref().map(Groups::new),
            sorted: Vec::new(),
            cutoff: None,
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

    /// Rows counted against OFFSET, LIMIT and TOP so far.
    pub fn passed(&self) -> u64 {
        self.passed
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

    /// Takes one item. `Stop` says that no further item can change the result, or that the sink is full.
    pub fn push(&mut self, row: RowView<'_>, sink: &mut Sink<'_>) -> Result<Flow, SqlError> {
        if self.prepared.needs().from {
            self.run(Eval::Item(row), sink)
        } else {
            // The one row of a query without FROM comes from no item.
            Ok(Flow::Stop)
        }
    }

    fn run(&mut self, item: Eval<'_>, sink: &mut Sink<'_>) -> Result<Flow, SqlError> {
        if self.is_complete() {
            return Ok(Flow::Stop);
        }
        (self.item_passed, self.item_rows, self.item_open) = (self.passed, 0, true);
        let prepared = self.prepared;
        let compiled = &prepared.compiled;
        let mut frame = Frame::new(compiled.slot_count, &prepared.context);
        frame.slots[ITEM_SLOT] = item;
        frame.budget = std::mem::take(&mut self.budget);
        let signals = match (&compiled.rank, &mut self.ranked) {
            (Some(rank), Some(state)) => {
                // The sources of a ranked query bind the item itself, so the scores can be read first.
                for source in &compiled.plan.sources {
                    frame.slots[source.slot] = frame.slots[ITEM_SLOT].clone();
                }
                state.read(rank, &mut frame)?
            }
            _ => Vec::new(),
        };
        let mut flow = Flow::More;
        let result = frame.bindings(&compiled.plan, &mut |frame| {
            flow = self.bound(frame, &signals, sink)?;
            Ok(if flow == Flow::More { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        });
        self.budget = std::mem::take(&mut frame.budget);
        let _ = result?;
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
        let plan = &self.prepared.compiled.plan;
        if let (Some(grouping), Some(groups)) = (&plan.grouping, &mut self.groups) {
            groups.add(grouping, frame)?;
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
        for key in &compiled.order {
            keys.push(frame.eval(&key.node)?.to_value());
        }
        // A row that sorts behind all that can be emitted is not even projected.
        if let Some(worst) = &self.cutoff
            && compare_keys(&keys, worst, &compiled.order).is_ge()
        {
            return Ok(Flow::More);
        }
        let row = frame.eval(&compiled.plan.projection)?;
        if compiled.plan.value && row.is_undefined() {
            return Ok(Flow::More);
        }
        if compiled.plan.distinct {
            let key = canonical_key(&row);
            let size = key.len();
            if !self.seen.insert(key) {
                return Ok(Flow::More);
            }
            frame.budget.hold(size)?;
        }
        let mut json = Vec::new();
        write_json(&row, &mut json)?;
        if compiled.order.is_empty() && compiled.rank.is_none() {
            return Ok(self.emit(&json, sink));
        }
        frame.budget.hold(json.len() + 32 * keys.len())?;
        self.sorted.push(SortedRow { keys, json });
        if compiled.rank.is_some() {
            self.signals.push(signals.to_vec());
        }
        self.keep_best(&mut frame.budget);
        Ok(Flow::More)
    }

    /// With a limit only the best rows can ever be emitted; the others are dropped from time to time.
    fn keep_best(&mut self, budget: &mut Budget) {
        let Some(wanted) = self.wanted() else { return };
        let slack = wanted.saturating_mul(2).max(SORTED_ROWS_SLACK);
        if wanted == 0 || self.ranked.is_some() || (self.sorted.len() as u64) < slack {
            return;
        }
        self.sort();
        for dropped in self.sorted.drain(wanted as usize..) {
            budget.release(dropped.json.len() + 32 * dropped.keys.len());
        }
        self.cutoff = self.sorted.last().map(|row| row.keys.clone());
    }

    /// Stable, so that equal keys keep the order of the items.
    fn sort(&mut self) {
        let order = &self.prepared.compiled.order;
        self.sorted.sort_by(|left, right| compare_keys(&left.keys, &right.keys, order));
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
            || !self.prepared.compiled.order.is_empty()
            || self.prepared.compiled.rank.is_some();
        !waiting && self.wanted().is_some_and(|wanted| self.passed >= wanted)
    }

    fn emit(&mut self, json: &[u8], sink: &mut Sink<'_>) -> Flow {
        if self.wanted().is_some_and(|wanted| self.passed >= wanted) {
            return Flow::Stop;
        }
        self.passed += 1;
        if self.passed <= self.prepared.compiled.offset.unwrap_or(0) {
            return Flow::More;
        }
        self.item_rows += 1;
        let mut flow = Flow::More;
        if self.swallow > 0 {
            self.swallow -= 1;
        } else {
            self.delivered += 1;
            flow = sink(json);
        }
        // The last row that counts is known to be the last.
        if self.wanted().is_some_and(|wanted| self.passed >= wanted) { Flow::Stop } else { flow }
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
        if let (Some(grouping), Some(groups)) = (&self.prepared.compiled.plan.grouping, self.groups.take()) {
            let prepared = self.prepared;
            let mut frame = Frame::new(prepared.compiled.slot_count, &prepared.context);
            frame.budget = std::mem::take(&mut self.budget);
            for (keys, results) in groups.into_results(grouping) {
                bind_group(grouping, &mut frame, keys, results);
                if self.project(&mut frame, &[], sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        match (&self.prepared.compiled.rank, self.ranked.take()) {
            (Some(rank), Some(state)) => {
                let scores = state.scores(rank, &self.signals);
                let mut order: Vec<usize> = (0..self.sorted.len()).collect();
                order.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
                let mut rows: Vec<Option<SortedRow>> =
                    std::mem::take(&mut self.sorted).into_iter().map(Some).collect();
                self.sorted = order.into_iter().filter_map(|at| rows[at].take()).collect();
            }
            _ => self.sort(),
        }
        for row in std::mem::take(&mut self.sorted) {
            if self.emit(&row.json, sink) == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        self.done = true;
        Ok(Flow::More)
    }
}

/// Rows a limited sort holds at least before it drops the worst; sorting a few at a time would cost more.
const SORTED_ROWS_SLACK: u64 = 256;

fn compare_keys(left: &[Value], right: &[Value], order: &[OrderKey]) -> Ordering {
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
    let mut output = Vec::new();
    let mut sink = |json: &[u8]| {
        output.push(json.to_vec());
        Flow::More
    };
    let mut execution = Execution::new(prepared);
    for row in rows {
        if execution.push(row, &mut sink)? == Flow::Stop {
            break;
        }
    }
    execution.finish(&mut sink)?;
    Ok(output)
}
