//! One page: which way to the items, and where the page ends.
//!
//! Three shapes of queries, by what a page can begin with:
//! - *streams* (filters, projections, joins, TOP, OFFSET LIMIT) begin anywhere and end when the page is full or out of time;
//! - *sorted* ones begin after the last row that was delivered (`sorted`);
//! - *whole* ones (groups, aggregates, DISTINCT, ranks) see everything at once, unless the index answers them alone (`index_only`),
//!   and keep what is left for the next page (`materialized`).

use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_budget::Exceeded;
use orrery_model::Raw;
use orrery_query::access::Filter;
use orrery_query::{Execution, Flow, Meter, Prepared};
use orrery_sql::SqlError;

use super::explain::Report;
use super::lookup::{self, Candidate, Found};
use super::out::Out;
use super::{
    PageSink, PartitionQuery, Progress, QueryFailure, QueryMetrics, QueryPage, QueryPosition, SystemOf,
    charge,
};
use crate::error::{Error, Result};
use crate::item::{Item, readable};
use crate::partition::index::PartitionView;
use crate::partition::{ORDERED_SCAN_ITEMS_MAX, Span};

/// Items between two looks at the clock.
const CLOCK_ITEMS: u64 = 32;
/// Bytes of items that are read to filter a small span before it is put in order of creation; with larger items it is
/// cheaper to take them in that order from the start.
pub(super) const PREFILTER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of items that are kept while candidates are put in order of creation; the others are loaded again.
const KEPT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Steps of a page that finding an item takes, and as many bytes of it as are another step.
const LOAD_STEPS: u64 = 4;
const STEP_BYTES: u64 = 512;
/// Bytes of rows that are a step: they are written into new memory, put together to an answer, and sent.
const ROW_STEP_BYTES: u64 = 128;
/// A row that is an item of this size is paid for before it is written.
const LARGE_ROW_BYTES: usize = 64 * 1024;

pub(super) const CONTINUATION_INVALID: &str = "Invalid Continuation Token";

pub(super) fn page<'s>(
    query: &'s PartitionQuery<'s>,
    view: &'s PartitionView,
    sink: &'s mut PageSink<'s>,
) -> Result<QueryPage, QueryFailure> {
    let started = Instant::now();
    let filter = query.prepared.filter();
    let mut run = Run {
        query,
        view,
        filter,
        meter: Rc::new(Meter::new(query.budget)),
        out: Out::new(sink, query.limits, query.budget),
        metrics: QueryMetrics::default(),
        report: Report::default(),
        exact: false,
        seen: 0,
        steps_left: query.limits.steps.unwrap_or(u64::MAX),
    };
    let ran = run.run();
    let Run { out, mut metrics, mut report, .. } = run;
    metrics.output_rows = out.rows as u64;
    metrics.output_bytes = out.size_bytes() as u64;
    metrics.total = started.elapsed();
    report.finish(query.prepared, filter, view, &metrics, query.explained);
    let charge_ru =
        charge::page(query.prepared, filter, report.is_answered(), report.counted_entries(), &metrics);
    match ran {
        Ok(next) => {
            let (at, rows, held) = (view.position(), out.rows, out.into_held());
            Ok(QueryPage { next, rows, charge_ru, metrics, report, at, held })
        }
        Err(Failed::Exceeded(exceeded)) => Err(QueryFailure::Exceeded(exceeded)),
        Err(Failed::Engine(error)) => Err(QueryFailure::Engine(error)),
        Err(Failed::Lengthy) => Err(QueryFailure::Lengthy),
        Err(Failed::Query(error)) => Err(QueryFailure::Query { error, charge_ru, at: view.position() }),
    }
}

pub(super) enum Failed {
    Engine(Error),
    Query(Box<SqlError>),
    Lengthy,
    Exceeded(Exceeded),
}

impl From<Exceeded> for Failed {
    fn from(exceeded: Exceeded) -> Failed {
        match exceeded {
            // Only pages that are tried where they must be short count steps.
            Exceeded::Steps { .. } => Failed::Lengthy,
            exceeded => Failed::Exceeded(exceeded),
        }
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Engine(error)
    }
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Failed {
        match error.exceeded {
            Some(exceeded) => exceeded.into(),
            None => Failed::Query(Box::new(error)),
        }
    }
}

pub(super) type Ran<T> = Result<T, Failed>;

pub(super) struct Run<'q> {
    pub query: &'q PartitionQuery<'q>,
    pub view: &'q PartitionView,
    pub filter: &'q Filter,
    pub meter: Rc<Meter>,
    pub out: Out<'q>,
    pub metrics: QueryMetrics,
    pub report: Report,
    /// Whether candidates that are certain pass the whole filter.
    pub exact: bool,
    seen: u64,
    pub steps_left: u64,
}

/// Sees the key of an item, the item without its document, and the document.
type Look<'q, 'v> = dyn FnMut(&mut Run<'q>, &[u8], &Item, &[u8]) -> Ran<Flow> + 'v;

/// What collecting candidates asks from time to time: whether so many entries are too many, and whether anybody waits.
pub(super) fn tick<'q>(query: &'q PartitionQuery<'q>, steps: u64) -> impl FnMut(u64) -> Ran<()> + use<'q> {
    move |read| if read > steps { Err(Failed::Lengthy) } else { Ok(query.budget.check()?) }
}

/// What an item on a list takes, with its key.
const LISTED_BYTES: usize = 192;

/// An item on a list, loaded or not.
struct Listed {
    number: u64,
    key: Bytes,
    item: Option<Item>,
}

/// Items in the order of the page, and whether there may be more behind them.
struct List {
    items: Vec<Listed>,
    cut_off: bool,
    /// In order of creation, not of storage.
    created: bool,
}

impl List {
    /// Where the page goes on that begins with this item.
    fn position(&self, at: &Listed, progress: Progress) -> QueryPosition {
        match self.created {
            true => QueryPosition::Created { from: at.number, progress },
            false => QueryPosition::Stored { from: at.key.clone(), progress },
        }
    }
}

impl<'q> Run<'q> {
    fn run(&mut self) -> Ran<Option<QueryPosition>> {
        let prepared = self.query.prepared;
        let needs = prepared.needs();
        if !needs.from {
            return self.constant(prepared);
        }
        let sorted = needs.order_by && !needs.distinct && !needs.group_by && needs.aggregates.is_empty();
        match self.query.from {
            None if needs.is_resumable() => self.begin(),
            Some(QueryPosition::Created { from, progress }) if needs.is_resumable() => {
                self.go_on_created(*from, *progress)
            }
            Some(QueryPosition::Stored { from, progress }) if needs.is_resumable() => {
                self.go_on_stored(from, *progress)
            }
            None if sorted => self.sorted(None, 0),
            Some(QueryPosition::Sorted { after, passed, window })
                if sorted && after.keys.len() == prepared.order_count() =>
            {
                let ready = window.map(|window| self.kept_window(after, *passed, window));
                match ready.transpose()?.flatten() {
                    Some(page) => Ok(page),
                    None => self.sorted(Some(after), *passed),
                }
            }
            None if !needs.is_resumable() => self.begin_whole(),
            Some(QueryPosition::Delivered { rows, order, held }) if !needs.is_resumable() => {
                self.go_on_whole(*rows, *order, *held)
            }
            // The position belongs to a query of another kind.
            Some(_) => Err(Error::bad_request(CONTINUATION_INVALID).into()),
            // Every query has one of the shapes above.
            None => Err(Error::internal("The query has no shape that can be run.").into()),
        }
    }

    /// A query without FROM has one row, of no item.
    fn constant(&mut self, prepared: &Prepared) -> Ran<Option<QueryPosition>> {
        let out = &mut self.out;
        let mut execution = Execution::new(prepared).within(&self.meter).written_as(self.query.format);
        execution.finish(&mut |row| out.take(row))?;
        Ok(None)
    }

    // ---- candidates

    /// The items that the index leads to; `None` where reading the whole span is better.
    pub fn candidates(&mut self) -> Ran<Option<Vec<Candidate>>> {
        if matches!(self.query.span, Span::Key { .. }) && self.has_at_most(self.query.tuning.few_items)? {
            return Ok(None);
        }
        self.candidates_up_to(lookup::candidates_max(&self.query.tuning, self.view.item_count()))
    }

    /// The same however many there are, up to so many.
    pub fn candidates_up_to(&mut self, most: usize) -> Ran<Option<Vec<Candidate>>> {
        let Some(bound) = lookup::bind(self.filter, self.view, self.query.span, false) else {
            return Ok(None);
        };
        self.exact = bound.exact;
        let started = self.query.timed.then(Instant::now);
        let PartitionQuery { span, prepared, .. } = *self.query;
        let found = lookup::collect(
            &bound.lookup,
            lookup::Reading { view: self.view, span, prepared, meter: &self.meter },
            most,
            &mut self.metrics.index_entries,
            &mut tick(self.query, self.steps_left),
        )?;
        self.metrics.index_lookup += started.map_or(Duration::ZERO, |started| started.elapsed());
        Ok(match found {
            Found::Candidates(candidates) => {
                self.report.candidates(candidates.len() as u64);
                Some(candidates)
            }
            Found::TooMany => {
                self.report.gave_up();
                None
            }
        })
    }

    // ---- streams

    fn begin(&mut self) -> Ran<Option<QueryPosition>> {
        match self.candidates()? {
            Some(candidates)
                if candidates.len() <= self.query.tuning.created_found_max || self.is_small()? =>
            {
                let list = self.by_creation(candidates, 0)?;
                self.stream(list, Progress::default())
            }
            Some(candidates) => {
                let list = self.by_key(&candidates, None)?;
                self.stream(list, Progress::default())
            }
            None if self.is_small()? => {
                let list = self.list_created(0)?;
                self.stream(list, Progress::default())
            }
            None => self.stored(None, Progress::default()),
        }
    }

    fn go_on_created(&mut self, from: u64, progress: Progress) -> Ran<Option<QueryPosition>> {
        let list = match self.candidates()? {
            Some(candidates) => self.by_creation(candidates, from)?,
            None => self.list_created(from)?,
        };
        let begins_there = list.items.first().is_some_and(|first| first.number == from);
        self.stream(list, if begins_there { progress } else { Progress { swallow: 0, ..progress } })
    }

    fn go_on_stored(&mut self, from: &Bytes, progress: Progress) -> Ran<Option<QueryPosition>> {
        match self.candidates()? {
            Some(candidates) => {
                let list = self.by_key(&candidates, Some(from))?;
                let begins_there = list.items.first().is_some_and(|first| first.key == *from);
                self.stream(list, if begins_there { progress } else { Progress { swallow: 0, ..progress } })
            }
            None => self.stored(Some(from), progress),
        }
    }

    /// Goes through a list of items.
    fn stream(&mut self, mut list: List, progress: Progress) -> Ran<Option<QueryPosition>> {
        let mut execution = Execution::resume(self.query.prepared, progress.passed, progress.swallow)
            .within(&self.meter)
            .written_as(self.query.format);
        let last = list.items.len().saturating_sub(1);
        for at in 0..list.items.len() {
            if self.is_out_of_time()? {
                return Ok(Some(list.position(&list.items[at], counted(&execution))));
            }
            let item = match list.items[at].item.take() {
                Some(item) => item,
                None => match self.load(&list.items[at].key)? {
                    Some(item) => item,
                    None => continue,
                },
            };
            if self.push(&mut execution, &item)? == Flow::More {
                continue;
            }
            if execution.is_done() {
                return Ok(None);
            }
            if let Some(progress) = self.open_item(&execution) {
                return Ok(Some(list.position(&list.items[at], progress)));
            }
            return Ok(match list.items.get(at + 1) {
                Some(next) => Some(list.position(next, counted(&execution))),
                None if at == last && list.cut_off || self.leaves_end_open() => {
                    Some(behind(&list.items[at], &execution))
                }
                None => None,
            });
        }
        Ok(match list.items.last() {
            Some(last) if list.cut_off => Some(behind(last, &execution)),
            _ => None,
        })
    }

    /// Goes through the whole span in storage order.
    fn stored(&mut self, from: Option<&Bytes>, progress: Progress) -> Ran<Option<QueryPosition>> {
        self.report.scan();
        let view = self.view;
        let mut items = match from {
            Some(from) => view.items_from(self.query.span, from),
            None => view.items(self.query.span, None),
        };
        let mut next = items.next_item()?;
        let begins_there = next.as_ref().map(|(key, _)| key) == from;
        let swallow = if begins_there { progress.swallow } else { 0 };
        let mut execution = Execution::resume(self.query.prepared, progress.passed, swallow)
            .within(&self.meter)
            .written_as(self.query.format);
        while let Some((key, item)) = next {
            if self.is_out_of_time()? {
                return Ok(Some(QueryPosition::Stored { from: key, progress: counted(&execution) }));
            }
            self.count(item.document.len());
            self.spend(item.document.len() as u64 / STEP_BYTES)?;
            let flow = self.push(&mut execution, &item)?;
            if flow == Flow::Stop && execution.is_done() {
                return Ok(None);
            }
            if flow == Flow::Stop
                && let Some(progress) = self.open_item(&execution)
            {
                return Ok(Some(QueryPosition::Stored { from: key, progress }));
            }
            next = items.next_item()?;
            if flow == Flow::Stop {
                let from = match next {
                    Some((next, _)) => Some(next),
                    None => self.leaves_end_open().then(|| after(&key)),
                };
                let progress = counted(&execution);
                return Ok(from.map(|from| QueryPosition::Stored { from, progress }));
            }
        }
        Ok(None)
    }

    /// Whether a page that is full goes on although nothing is left. As on the service, a plain scan of a partition does not
    /// look beyond its page, and the next one is empty; what is filtered, sorted or in one logical partition knows its end.
    fn leaves_end_open(&self) -> bool {
        let full = self.out.rows >= self.query.limits.rows;
        full && matches!(self.query.span, Span::All) && self.query.prepared.is_plain_scan()
    }

    /// How to begin with the same item again, if more of its rows may come.
    fn open_item(&self, execution: &Execution<'_>) -> Option<Progress> {
        let progress = execution.progress();
        let open = self.query.prepared.needs().joins && progress.repeat_item;
        open.then_some(Progress { passed: progress.passed, swallow: progress.swallow })
    }

    // ---- everything at once

    /// Pushes all candidates, or everything if there are none to be had.
    pub fn push_all(
        &mut self,
        execution: &mut Execution<'q>,
        candidates: Option<Vec<Candidate>>,
        created: bool,
    ) -> Ran<Flow> {
        let mut list = match candidates {
            Some(candidates) if created => self.by_creation(candidates, 0)?,
            Some(candidates) => self.by_key(&candidates, None)?,
            None if created => self.list_created(0)?,
            None => return self.push_stored(execution),
        };
        for at in &mut list.items {
            self.check_cancelled()?;
            let item = match at.item.take() {
                Some(item) => Some(item),
                None => self.load(&at.key)?,
            };
            let Some(item) = item else { continue };
            if self.push(execution, &item)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }

    fn push_stored(&mut self, execution: &mut Execution<'q>) -> Ran<Flow> {
        self.report.scan();
        if let Some(flow) = self.push_columns(execution)? {
            return Ok(flow);
        }
        self.foresee_all()?;
        let mut making = self.make_columns(self.query.prepared.column_query())?;
        let mut flow = Flow::More;
        self.visit(&mut |run, key, item, document| {
            run.count(document.len());
            making.push(run, key, item.number, document);
            flow = run.push_row(execution, item, readable(document))?;
            Ok(flow)
        })?;
        if flow == Flow::More {
            self.keep_columns(making);
        }
        Ok(flow)
    }

    /// Shows all items of the span, in storage order, until there is nothing more to see. Whether they count as loaded is up
    /// to the visitor.
    pub fn visit(&mut self, visit: &mut Look<'q, '_>) -> Ran<()> {
        let (view, span) = (self.view, self.query.span);
        let mut failed = None;
        view.visit_items(span, &mut |key, item, document| match self
            .check_cancelled()
            .and_then(|()| visit(self, key, item, document))
        {
            Ok(Flow::More) => ControlFlow::Continue(()),
            Ok(Flow::Stop) => ControlFlow::Break(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    pub fn finish(&mut self, execution: &mut Execution<'q>) -> Ran<Flow> {
        let out = &mut self.out;
        let flow = execution.finish(&mut |row| out.take(row))?;
        self.check_out()?;
        Ok(flow)
    }

    /// Fails if a row was not taken for want of memory.
    pub fn check_out(&mut self) -> Ran<()> {
        self.out.exceeded().map_or(Ok(()), |exceeded| Err(exceeded.into()))
    }

    // ---- items

    pub fn push(&mut self, execution: &mut Execution<'q>, item: &Item) -> Ran<Flow> {
        self.push_row(execution, item, item.body())
    }

    fn push_row(&mut self, execution: &mut Execution<'q>, item: &Item, document: Raw<'_>) -> Ran<Flow> {
        let large = item.document.len() > LARGE_ROW_BYTES && self.query.prepared.is_whole_item();
        if large {
            self.spend(item.document.len() as u64 / ROW_STEP_BYTES)?;
        }
        let system = SystemOf { item, system: self.query.system };
        let out = &mut self.out;
        let written = out.size_bytes();
        let before = execution.matched();
        let row = system.row_of(document);
        let began = self.meter.steps();
        self.meter.allow_steps(self.steps_left);
        let flow = execution.push_numbered(row, item.number, &mut |row| out.take(row))?;
        let written = if large { 0 } else { self.out.size_bytes() - written };
        self.check_out()?;
        self.spend(self.meter.steps() - began + written as u64 / ROW_STEP_BYTES)?;
        self.metrics.matched_items += execution.matched() - before;
        Ok(flow)
    }

    pub fn load(&mut self, key: &[u8]) -> Ran<Option<Item>> {
        let item = self.look_at(key)?;
        if let Some(item) = &item {
            self.count(item.document.len());
        }
        Ok(item)
    }

    /// An item that does not count as loaded.
    pub fn look_at(&mut self, key: &[u8]) -> Ran<Option<Item>> {
        let started = self.query.timed.then(Instant::now);
        let item = self.view.item(key)?;
        self.metrics.document_load += started.map_or(Duration::ZERO, |started| started.elapsed());
        if let Some(item) = &item {
            self.spend(LOAD_STEPS + item.document.len() as u64 / STEP_BYTES)?;
        }
        Ok(item)
    }

    /// Counts an item as loaded.
    pub fn count(&mut self, document_bytes: usize) {
        self.metrics.loaded_items += 1;
        self.metrics.loaded_bytes += document_bytes as u64;
    }

    /// Whether the span holds few enough items to be shown in order of creation.
    pub fn is_small(&self) -> Ran<bool> {
        let items_max = self.query.tuning.created_items_max;
        if self.view.item_count() <= items_max as u64 {
            return Ok(true);
        }
        Ok(matches!(self.query.span, Span::Key { .. }) && self.has_at_most(items_max)?)
    }

    pub fn has_at_most(&self, items: usize) -> Ran<bool> {
        let mut orders = self.view.orders(self.query.span);
        for _ in 0..items {
            if orders.next_order()?.is_none() {
                return Ok(true);
            }
        }
        Ok(orders.next_order()?.is_none())
    }

    /// Candidates in order of creation, from a number on. Only the items tell their numbers, so all are loaded.
    fn by_creation(&mut self, candidates: Vec<Candidate>, from: u64) -> Ran<List> {
        self.meter.take(candidates.len() * LISTED_BYTES)?;
        let mut items = Vec::with_capacity(candidates.len());
        let mut kept_bytes = 0;
        for candidate in candidates {
            self.check_cancelled()?;
            let key = self.view.item_key(&candidate.reference)?;
            let Some(item) = self.load(&key)? else { continue };
            if item.number < from {
                continue;
            }
            kept_bytes += item.document.len();
            if kept_bytes <= KEPT_BYTES_MAX {
                self.meter.take(item.document.len())?;
            }
            let number = item.number;
            items.push(Listed { number, key, item: (kept_bytes <= KEPT_BYTES_MAX).then_some(item) });
        }
        items.sort_unstable_by_key(|listed| listed.number);
        Ok(List { items, cut_off: false, created: true })
    }

    /// Candidates in storage order, from a key on.
    fn by_key(&mut self, candidates: &[Candidate], from: Option<&Bytes>) -> Ran<List> {
        self.meter.take(candidates.len() * LISTED_BYTES)?;
        let mut items = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            self.check_cancelled()?;
            let key = self.view.item_key(&candidate.reference)?;
            if from.is_none_or(|from| key >= *from) {
                items.push(Listed { number: 0, key, item: None });
            }
        }
        items.sort_unstable_by(|left, right| left.key.cmp(&right.key));
        Ok(List { items, cut_off: false, created: false })
    }

    /// The items of the span from a number on, in order of creation; those that cannot pass the filter may be left out.
    fn list_created(&mut self, from: u64) -> Ran<List> {
        self.report.scan();
        // The span may have grown since the query began; the heap keeps the earliest items and stays bounded.
        let mut earliest: BinaryHeap<(u64, Bytes)> = BinaryHeap::new();
        let mut cut_off = false;
        let mut keep = |number: u64, key: Bytes| {
            if number < from {
                return;
            }
            earliest.push((number, key));
            if earliest.len() > ORDERED_SCAN_ITEMS_MAX {
                earliest.pop();
                cut_off = true;
            }
        };
        if !self.prefilter_columns(&mut keep)? && !self.prefilter(&mut keep)? {
            let mut orders = self.view.orders(self.query.span);
            while let Some((number, key)) = orders.next_order()? {
                self.check_cancelled()?;
                keep(number, key);
            }
        }
        self.meter.take(earliest.len() * LISTED_BYTES)?;
        let mut items = earliest.into_sorted_vec();
        items.dedup_by_key(|(number, _)| *number);
        let listed = |(number, key)| Listed { number, key, item: None };
        Ok(List { items: items.into_iter().map(listed).collect(), cut_off, created: true })
    }

    /// Reads the span in storage order, which is much faster than by number, and keeps what passes the filter. False: it
    /// has no filter that can be asked twice, or its items are large; all of them are to be kept.
    fn prefilter(&mut self, keep: &mut dyn FnMut(u64, Bytes)) -> Ran<bool> {
        self.foresee_all()?;
        if !self.query.prepared.filters_purely() {
            return Ok(false);
        }
        let mut making = self.make_columns(self.query.prepared.column_filter())?;
        let mut bytes = 0;
        self.visit(&mut |run, key, item, document| {
            bytes += document.len();
            if bytes > PREFILTER_BYTES_MAX {
                return Ok(Flow::Stop);
            }
            making.push(run, key, item.number, document);
            let system = SystemOf { item, system: run.query.system };
            if run.query.prepared.matches(system.row_of(readable(document)), &run.meter)? {
                // Counted when it is loaded again for its row.
                keep(item.number, Bytes::copy_from_slice(key));
            } else {
                run.count(document.len());
            }
            Ok(Flow::More)
        })?;
        let all = bytes <= PREFILTER_BYTES_MAX;
        if all {
            self.keep_columns(making);
        }
        Ok(all)
    }

    // ---- time

    /// Takes steps from those that the page was given.
    pub fn spend(&mut self, steps: u64) -> Ran<()> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Failed::Lengthy)?;
        Ok(())
    }

    /// Gives up at once, rather than halfway, before all items of the partition are looked at.
    pub fn foresee_all(&self) -> Ran<()> {
        let all = matches!(self.query.span, Span::All);
        if all && self.view.item_count() > self.steps_left { Err(Failed::Lengthy) } else { Ok(()) }
    }

    /// Counts an item or an entry, and every few of them asks whether to go on.
    pub fn check_cancelled(&mut self) -> Ran<()> {
        self.seen += 1;
        self.spend(1)?;
        if self.seen.is_multiple_of(CLOCK_ITEMS) {
            self.query.budget.check()?;
        }
        Ok(())
    }

    /// Whether the page should end before the next item. Never before the first.
    pub fn is_out_of_time(&mut self) -> Ran<bool> {
        self.check_cancelled()?;
        let look = self.seen.is_multiple_of(CLOCK_ITEMS);
        Ok(look && self.query.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline))
    }
}

fn counted(execution: &Execution<'_>) -> Progress {
    Progress { passed: execution.passed(), swallow: 0 }
}

/// The least key after this one.
fn after(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}

fn behind(last: &Listed, execution: &Execution<'_>) -> QueryPosition {
    QueryPosition::Created { from: last.number + 1, progress: counted(execution) }
}
