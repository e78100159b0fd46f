//! One page: where items come from, and where the page ends.
//!
//! Three shapes of queries, by what a page can begin with:
//! - *streams* (filters, projections, joins, TOP, OFFSET LIMIT) begin anywhere and end when the page is full or out of time;
//! - *sorted* ones begin after the last row that was delivered;
//! - *whole* ones (groups, aggregates, DISTINCT, ranks) see everything again and leave out what was delivered.

use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_query::{AggregateKind, Execution, Flow, Prepared, SortPosition};
use orrery_sql::SqlError;

use super::position::{SORT_KEYS_BYTES_MAX, stored_keys};
use super::{
    PartitionQuery, Progress, QueryFailure, QueryLimits, QueryMetrics, QueryPage, QueryPosition, SystemOf,
    charge,
};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::partition::{ORDERED_SCAN_ITEMS_MAX, Reader, Span};

/// Items between two looks at the clock.
const CLOCK_ITEMS: u64 = 32;
/// Bytes of items that are read to filter a small span before it is put in order of creation; with larger items it is
/// cheaper to take them in that order from the start.
const PREFILTER_BYTES_MAX: usize = 64 * 1024 * 1024;

const CONTINUATION_INVALID: &str = "Invalid Continuation Token";

pub(super) fn page(
    query: &PartitionQuery<'_>,
    reader: &Reader,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<QueryPage, QueryFailure> {
    let started = Instant::now();
    let out = Out { sink, rows: 0, bytes: 0, limits: query.limits };
    let mut run = Run { query, reader, out, metrics: QueryMetrics::default(), seen: 0 };
    let next = match run.run() {
        Ok(next) => next,
        Err(Failed::Engine(error)) => return Err(QueryFailure::Engine(error)),
        Err(Failed::Query(error)) => {
            let charge_ru = charge::page(run.out.rows as u64);
            return Err(QueryFailure::Query { error, charge_ru, at: reader.position() });
        }
    };
    let Run { out, mut metrics, .. } = run;
    metrics.output_rows = out.rows as u64;
    metrics.output_bytes = out.bytes as u64;
    metrics.total = started.elapsed();
    let charge_ru = charge::page(metrics.output_rows);
    Ok(QueryPage { next, rows: out.rows, charge_ru, metrics, at: reader.position() })
}

/// The rows of the page.
struct Out<'s> {
    sink: &'s mut dyn FnMut(&[u8]),
    rows: usize,
    bytes: usize,
    limits: QueryLimits,
}

impl Out<'_> {
    fn take(&mut self, json: &[u8]) -> Flow {
        (self.sink)(json);
        self.rows += 1;
        self.bytes += json.len() + 1;
        let full = self.rows >= self.limits.rows || self.bytes >= self.limits.bytes;
        if full { Flow::Stop } else { Flow::More }
    }
}

enum Failed {
    Engine(Error),
    Query(Box<SqlError>),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Engine(error)
    }
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Failed {
        Failed::Query(Box::new(error))
    }
}

type Ran<T> = Result<T, Failed>;

struct Run<'q> {
    query: &'q PartitionQuery<'q>,
    reader: &'q Reader,
    out: Out<'q>,
    metrics: QueryMetrics,
    seen: u64,
}

/// Items in order of creation, and whether there may be more behind them.
struct Created {
    items: Vec<(u64, Bytes)>,
    cut_off: bool,
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
            None if needs.is_resumable() && self.is_small()? => self.created(0, Progress::default()),
            None if needs.is_resumable() => self.stored(None, Progress::default()),
            Some(QueryPosition::Created { from, progress }) if needs.is_resumable() => {
                self.created(*from, *progress)
            }
            Some(QueryPosition::Stored { from, progress }) if needs.is_resumable() => {
                self.stored(Some(from), *progress)
            }
            None if sorted => self.sorted(Execution::new(prepared)),
            Some(QueryPosition::Sorted { after, passed })
                if sorted && after.keys.len() == prepared.order_count() =>
            {
                self.sorted(Execution::resume_sorted(prepared, *passed, after.clone()))
            }
            Some(QueryPosition::Delivered { rows, created: false }) if sorted => {
                self.sorted(Execution::resume(prepared, 0, *rows))
            }
            None if !needs.is_resumable() => {
                let created = order_matters(prepared) && self.is_small()?;
                self.whole(0, created)
            }
            Some(QueryPosition::Delivered { rows, created }) if !needs.is_resumable() => {
                self.whole(*rows, *created)
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
        Execution::new(prepared).finish(&mut |json| out.take(json))?;
        Ok(None)
    }

    // ---- streams

    /// Goes through the items in order of creation.
    fn created(&mut self, from: u64, progress: Progress) -> Ran<Option<QueryPosition>> {
        let list = self.list_created(from)?;
        let mut execution =
            self.resume(progress, |first| first == Some(from), list.items.first().map(|i| i.0));
        let last = list.items.len().saturating_sub(1);
        for (at, (number, key)) in list.items.iter().enumerate() {
            if self.is_out_of_time()? {
                return Ok(Some(QueryPosition::Created { from: *number, progress: counted(&execution) }));
            }
            let Some(item) = self.load(key)? else { continue };
            if self.push(&mut execution, &item)? == Flow::More {
                continue;
            }
            if execution.is_done() {
                return Ok(None);
            }
            return Ok(match self.open_item(&execution) {
                Some(progress) => Some(QueryPosition::Created { from: *number, progress }),
                None if at == last && !list.cut_off => None,
                None => Some(QueryPosition::Created { from: number + 1, progress: counted(&execution) }),
            });
        }
        match (list.cut_off, list.items.last()) {
            (true, Some((number, _))) => {
                Ok(Some(QueryPosition::Created { from: number + 1, progress: counted(&execution) }))
            }
            _ => Ok(None),
        }
    }

    /// Goes through the items in storage order.
    fn stored(&mut self, from: Option<&Bytes>, progress: Progress) -> Ran<Option<QueryPosition>> {
        let reader = self.reader;
        let mut items = reader.stored_items(self.query.span, from);
        let mut next = items.next_item()?;
        let first = next.as_ref().map(|(key, _)| key.clone());
        let mut execution = self.resume(progress, |first: Option<&Bytes>| first == from, first.as_ref());
        while let Some((key, item)) = next {
            if self.is_out_of_time()? {
                return Ok(Some(QueryPosition::Stored { from: key, progress: counted(&execution) }));
            }
            self.count(&item);
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
                let progress = counted(&execution);
                return Ok(next.map(|(key, _)| QueryPosition::Stored { from: key, progress }));
            }
        }
        Ok(None)
    }

    /// An execution that goes on after a page. Rows that were delivered belong to the item at which the page begins; if
    /// it has gone meanwhile, there is nothing to leave out.
    fn resume<T>(
        &self,
        progress: Progress,
        begins_there: impl Fn(Option<T>) -> bool,
        first: Option<T>,
    ) -> Execution<'q> {
        let swallow = if begins_there(first) { progress.swallow } else { 0 };
        Execution::resume(self.query.prepared, progress.passed, swallow)
    }

    /// How to begin with the same item again, if more of its rows may come.
    fn open_item(&self, execution: &Execution<'_>) -> Option<Progress> {
        let progress = execution.progress();
        let open = self.query.prepared.needs().joins && progress.repeat_item;
        open.then_some(Progress { passed: progress.passed, swallow: progress.swallow })
    }

    // ---- sorted and whole queries

    fn sorted(&mut self, mut execution: Execution<'q>) -> Ran<Option<QueryPosition>> {
        self.push_all(&mut execution, false)?;
        self.finish(&mut execution)?;
        if execution.is_done() {
            return Ok(None);
        }
        Ok(Some(sorted_position(&execution, self.query.prepared)))
    }

    fn whole(&mut self, delivered: u64, created: bool) -> Ran<Option<QueryPosition>> {
        let mut execution = Execution::resume(self.query.prepared, 0, delivered);
        if self.push_all(&mut execution, created)? == Flow::More {
            self.finish(&mut execution)?;
        }
        let rows = execution.progress().swallow;
        Ok((!execution.is_done()).then_some(QueryPosition::Delivered { rows, created }))
    }

    fn push_all(&mut self, execution: &mut Execution<'q>, created: bool) -> Ran<Flow> {
        if created {
            for (_, key) in self.list_created(0)?.items {
                self.check_cancelled()?;
                let Some(item) = self.load(&key)? else { continue };
                if self.push(execution, &item)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            return Ok(Flow::More);
        }
        let reader = self.reader;
        let mut items = reader.stored_items(self.query.span, None);
        while let Some((_, item)) = items.next_item()? {
            self.check_cancelled()?;
            self.count(&item);
            if self.push(execution, &item)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }

    fn finish(&mut self, execution: &mut Execution<'q>) -> Ran<Flow> {
        let out = &mut self.out;
        Ok(execution.finish(&mut |json| out.take(json))?)
    }

    // ---- items

    fn push(&mut self, execution: &mut Execution<'q>, item: &Item) -> Ran<Flow> {
        let system = SystemOf { item, system: self.query.system };
        let out = &mut self.out;
        let before = execution.matched();
        let flow = execution.push_numbered(system.row(), item.number, &mut |json| out.take(json))?;
        self.metrics.matched_items += execution.matched() - before;
        Ok(flow)
    }

    fn load(&mut self, key: &[u8]) -> Ran<Option<Item>> {
        let started = self.query.timed.then(Instant::now);
        let item = self.reader.item(key)?;
        self.metrics.document_load += started.map_or(Duration::ZERO, |started| started.elapsed());
        if let Some(item) = &item {
            self.count(item);
        }
        Ok(item)
    }

    fn count(&mut self, item: &Item) {
        self.metrics.loaded_items += 1;
        self.metrics.loaded_bytes += item.document.len() as u64;
    }

    /// Whether the span holds few enough items to be shown in order of creation.
    fn is_small(&self) -> Ran<bool> {
        if self.reader.items <= ORDERED_SCAN_ITEMS_MAX as u64 {
            return Ok(true);
        }
        if !matches!(self.query.span, Span::Key { .. }) {
            return Ok(false);
        }
        let mut orders = self.reader.orders(self.query.span);
        for _ in 0..ORDERED_SCAN_ITEMS_MAX {
            if orders.next_order()?.is_none() {
                return Ok(true);
            }
        }
        Ok(orders.next_order()?.is_none())
    }

    /// The items of the span from a number on, in order of creation; those that cannot pass the filter may be left out.
    fn list_created(&mut self, from: u64) -> Ran<Created> {
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
        if !self.prefilter(&mut keep)? {
            let mut orders = self.reader.orders(self.query.span);
            while let Some((number, key)) = orders.next_order()? {
                keep(number, key);
            }
        }
        let mut items = earliest.into_sorted_vec();
        items.dedup_by_key(|(number, _)| *number);
        Ok(Created { items, cut_off })
    }

    /// Reads the span in storage order, which is much faster than by number, and keeps what passes the filter. False: it
    /// has no filter that can be asked twice, or its items are large; all of them are to be kept.
    fn prefilter(&mut self, keep: &mut dyn FnMut(u64, Bytes)) -> Ran<bool> {
        if !self.query.prepared.filters_purely() {
            return Ok(false);
        }
        let reader = self.reader;
        let mut items = reader.stored_items(self.query.span, None);
        let mut bytes = 0;
        while let Some((key, item)) = items.next_item()? {
            self.check_cancelled()?;
            bytes += item.document.len();
            if bytes > PREFILTER_BYTES_MAX {
                return Ok(false);
            }
            self.count(&item);
            let system = SystemOf { item: &item, system: self.query.system };
            if self.query.prepared.matches(system.row())? {
                keep(item.number, key);
            }
        }
        Ok(true)
    }

    // ---- time

    fn check_cancelled(&mut self) -> Ran<()> {
        self.seen += 1;
        if self.seen.is_multiple_of(CLOCK_ITEMS) {
            self.query.check_cancelled()?;
        }
        Ok(())
    }

    /// Whether the page should end before the next item. Never before the first.
    fn is_out_of_time(&mut self) -> Ran<bool> {
        self.check_cancelled()?;
        let look = self.seen.is_multiple_of(CLOCK_ITEMS);
        Ok(look && self.query.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline))
    }
}

fn counted(execution: &Execution<'_>) -> Progress {
    Progress { passed: execution.passed(), swallow: 0 }
}

/// After the last sorted row; or after a number of rows, where the keys are too long to be carried around.
fn sorted_position(execution: &Execution<'_>, prepared: &Prepared) -> QueryPosition {
    let passed = execution.passed();
    let delivered = || {
        let rows = passed.saturating_sub(prepared.needs().offset.unwrap_or(0));
        QueryPosition::Delivered { rows, created: false }
    };
    match execution.sort_position() {
        Some(after) if is_short(after) => QueryPosition::Sorted { after: after.clone(), passed },
        _ => delivered(),
    }
}

fn is_short(after: &SortPosition) -> bool {
    stored_keys(&after.keys).len() <= SORT_KEYS_BYTES_MAX
}

/// Whether the result depends on the order in which items come.
fn order_matters(prepared: &Prepared) -> bool {
    let needs = prepared.needs();
    let lists = |kind: &AggregateKind| matches!(kind, AggregateKind::MakeList | AggregateKind::MakeSet);
    needs.distinct || needs.aggregates.iter().any(lists)
}
