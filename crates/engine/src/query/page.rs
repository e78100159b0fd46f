//! One page of one partition: which order its rows come in, and what it comes to.
//!
//! A page has three rooms, and a function can change only what it is given of them: the way to the items
//! (`access_path`, a `ItemReader`), the order of the rows (`order`, one type for each), and what leaves the page
//! (`output`, an `Output`).
//!
//! Three shapes of queries, by what a page can begin with:
//! - *streams* (filters, projections, joins, TOP, OFFSET LIMIT) begin anywhere and end when the page is full or out
//!   of time (`order::streamed`);
//! - *sorted* ones begin after the last row that was delivered (`order::sorted`);
//! - *whole* ones (groups, aggregates, DISTINCT, ranks) see everything at once, unless the index answers them alone
//!   (`order::by_value`), and keep what is left for the next page (`order::materialized`).

use std::time::Instant;

use orrery_budget::Exceeded;
use orrery_query::Execution;
use orrery_sql::SqlError;

use super::access_path::ItemReader;
use super::order::{Materialized, Sorted, Streamed};
use super::output::{Output, charge};
use super::{PageSink, PartitionQuery, QueryFailure, QueryPage, QueryPosition};
use crate::error::{Error, Result};
use crate::partition::index::PartitionView;

pub(super) const CONTINUATION_INVALID: &str = "Invalid Continuation Token";

pub(super) fn page<'s>(
    query: &'s PartitionQuery<'s>,
    view: &'s PartitionView,
    sink: &'s mut PageSink<'s>,
) -> Result<QueryPage, QueryFailure> {
    let started = Instant::now();
    let mut reader = ItemReader::new(query, view);
    let mut output = Output::new(query, sink);
    let ran = run(query, &mut reader, &mut output);
    let filter = reader.filter;
    let rows = output.rows();
    let (mut metrics, mut report) = reader.into_figures();
    let held = output.into_figures(&mut metrics);
    metrics.total = started.elapsed();
    report.finish(query.prepared, filter, view, &metrics, query.explained);
    let charge_ru =
        charge::page(query.prepared, filter, report.is_answered(), report.counted_entries(), &metrics);
    match ran {
        Ok(next) => Ok(QueryPage { next, rows, charge_ru, metrics, report, at: view.position(), held }),
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

/// Makes the rows, in the order that the query and the position ask for, and says where the next page begins.
fn run<'q>(
    query: &'q PartitionQuery<'q>,
    reader: &mut ItemReader<'q>,
    output: &mut Output<'q>,
) -> Ran<Option<QueryPosition>> {
    let prepared = query.prepared;
    let needs = prepared.needs();
    if !needs.from {
        // A query without FROM has one row, of no item.
        output.finish(&mut reader.bounded(Execution::new(prepared)))?;
        return Ok(None);
    }
    let sorted = needs.order_by && !needs.distinct && !needs.group_by && needs.aggregates.is_empty();
    match query.from {
        None if needs.is_resumable() => Streamed { reader, output }.begin(),
        Some(QueryPosition::Created { from, progress }) if needs.is_resumable() => {
            Streamed { reader, output }.go_on_created(*from, *progress)
        }
        Some(QueryPosition::Stored { from, progress }) if needs.is_resumable() => {
            Streamed { reader, output }.go_on_stored(from, *progress)
        }
        None if sorted => Sorted { reader, output, after: None, passed: 0 }.page(),
        Some(QueryPosition::Sorted { after, passed, window })
            if sorted && after.keys.len() == prepared.order_count() =>
        {
            Sorted { reader, output, after: Some(after), passed: *passed }.go_on(*window)
        }
        None if !needs.is_resumable() => Materialized { reader, output, delivered: 0 }.begin(),
        Some(QueryPosition::Delivered { rows, order, cached }) if !needs.is_resumable() => {
            Materialized { reader, output, delivered: *rows }.go_on(*order, *cached)
        }
        // The position belongs to a query of another kind.
        Some(_) => Err(Error::bad_request(CONTINUATION_INVALID).into()),
        // Every query has one of the shapes above.
        None => Err(Error::internal("The query has no shape that can be run.").into()),
    }
}
