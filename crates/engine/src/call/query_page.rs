//! A page of a query as a call: what is sent, what comes back, and how the node that has the partition answers.
//!
//! ```text
//! PartitionQuery ── PageCall ── … ── StatementCache, budget ── Partition::query ── PageReply ── … ── sink
//! ```
//!
//! The statement travels as text with its parameters and the form of it that is wanted; whoever answers compiles it
//! once and keeps it. Rows come back as the bytes that they were written as, with what a merge needs beside them.
//! What is left of the budget of the request goes along in amounts, so that memory, steps and time end the page there
//! as they would here; when nobody waits for the page any more its link says so, and the page ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_budget::{Budget, Exceeded, Held, IsGone, Remaining};
use orrery_query::Rows;
use orrery_query::merge::ShareRows;

use super::partition_ref::{RemotePartition, unexpected};
use super::wire::Wire;
use super::{Answer, AnswerFuture, Reply, Request};
use crate::block_on::block_on_while;
use crate::error::Error;
use crate::item::{Position, SessionRequirement};
use crate::partition::{Partition, Span, gone};
use crate::query::{
    Costs, IndexUse, PageSink, PartitionQuery, QueryFailure, QueryLimits, QueryMetrics, QueryPage,
    QueryPosition, Report, Statement,
};

/// Bytes of rows on a page that is sent; a page that was to be longer goes on with the next one.
const SENT_ROWS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Rows that take less are not worth charging.
const ROWS_FREE_BYTES: usize = 64 * 1024;

/// Told when nobody waits for an answer any more.
pub(crate) type Gone = Arc<AtomicBool>;

/// A page that is asked for.
#[derive(Debug)]
pub(crate) struct PageCall {
    /// A [`Statement`], in one piece, by which whoever answers finds what it has compiled already.
    pub(crate) statement: Bytes,
    /// Which api knows what it is compiled with, by the name of its `QueryHost`.
    pub(crate) host: String,
    /// The clock and the dice of the request.
    pub(crate) now_ticks: i64,
    pub(crate) random_seed: u64,
    pub(crate) span: Span,
    pub(crate) from: Option<QueryPosition>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// When a page that streams ends with what it has.
    pub(crate) time: Option<Duration>,
    pub(crate) budget: Remaining,
    pub(crate) session: SessionRequirement,
    /// Whether rows of later pages are kept.
    pub(crate) keeps: bool,
    /// The name of a `RowFormat`.
    pub(crate) format: String,
    pub(crate) timed: bool,
    pub(crate) explained: bool,
    /// Where they are not the usual ones.
    pub(crate) costs: Option<Costs>,
}

impl PageCall {
    fn new(query: &PartitionQuery<'_>) -> Result<PageCall, QueryFailure> {
        // Whoever has no statement has found the partition here; it has gone since.
        let source = query.statement.as_ref().ok_or_else(gone)?;
        let mut statement = Vec::new();
        Statement::new(source, query.prepared.form()).put(&mut statement);
        let (now_ticks, random_seed) = query.prepared.now_and_seed();
        let limits = &query.limits;
        Ok(PageCall {
            statement: statement.into(),
            host: query.system.host().to_owned(),
            now_ticks,
            random_seed,
            span: query.span.clone(),
            from: query.from.cloned(),
            rows: limits.rows,
            bytes: limits.bytes.min(SENT_ROWS_BYTES_MAX),
            time: limits.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            budget: query.budget.remaining(),
            session: query.session.to_vec(),
            keeps: query.result_cache.is_some(),
            format: query.format.name().to_owned(),
            timed: query.timed,
            explained: query.explained,
            costs: Some(query.costs).filter(|costs| *costs != Costs::default()),
        })
    }

    /// Makes the page where the partition is.
    pub(super) fn answer(self, partition: &Partition, gone: &Gone) -> Result<PageReply, QueryFailure> {
        let container = partition.owner();
        let unknown = || Error::internal("This node does not serve the api of the query.");
        let host = container.hosts().query(&self.host).ok_or_else(unknown)?;
        let format = host.format(&self.format).ok_or_else(unknown)?;
        let budget = host.budget(self.budget.limits(), Some(is_gone(gone)));
        let prepared = container.hosts().statements.prepared(&self, &*host, container, &budget)?;
        let system = host.system(container);
        let results = if self.keeps { host.results() } else { None };
        let deadline = self.time.and_then(|time| Instant::now().checked_add(time));
        let query = PartitionQuery {
            prepared: &prepared,
            statement: None,
            span: &self.span,
            from: self.from.as_ref(),
            limits: QueryLimits {
                rows: self.rows,
                bytes: self.bytes.min(SENT_ROWS_BYTES_MAX),
                deadline,
                steps: None,
                item_bytes_max: u64::MAX,
            },
            budget: &budget,
            session: &self.session,
            result_cache: results.as_deref(),
            system: &*system,
            format,
            timed: self.timed,
            explained: self.explained,
            costs: self.costs.unwrap_or_default(),
        };
        let mut rows = ShareRows::of(&prepared, Rows::default());
        let page = partition.query(&query, &mut |row| rows.take(row))?;
        let QueryPage { next, rows: count, charge_ru, metrics, report, at, held } = page;
        let mut encoded = Vec::with_capacity(rows.rows.size_bytes() + 64);
        rows.encode(&mut encoded);
        let explanation = self.explained.then(|| (report.to_string(), report.indexes));
        let steps = budget.steps();
        Ok(PageReply {
            rows: encoded.into(),
            count,
            next,
            charge_ru,
            metrics,
            explanation,
            at,
            steps,
            _held: held,
        })
    }
}

/// A page that was made elsewhere.
#[derive(Debug)]
pub(crate) struct PageReply {
    /// [`ShareRows`].
    pub(crate) rows: Bytes,
    pub(crate) count: usize,
    pub(crate) next: Option<QueryPosition>,
    pub(crate) charge_ru: f64,
    pub(crate) metrics: QueryMetrics,
    /// How the page was made, and by which indexes.
    pub(crate) explanation: Option<(String, IndexUse)>,
    pub(crate) at: Position,
    /// What it has taken out of the budget of the request.
    pub(crate) steps: u64,
    /// What the rows are charged with where they were made; it stays there.
    pub(crate) _held: Option<Held>,
}

/// A page that is on its way.
pub(crate) struct SentPage {
    answer: AnswerFuture,
    budget: Remaining,
}

impl RemotePartition {
    /// Asks for a page now. Where a page must be short it is not asked for: nobody knows how long the way is.
    pub(crate) fn send_page(&self, query: &PartitionQuery<'_>) -> Result<SentPage, QueryFailure> {
        if query.limits.steps.is_some() {
            return Err(QueryFailure::Lengthy);
        }
        let call = PageCall::new(query)?;
        let budget = call.budget;
        Ok(SentPage { answer: self.send(Request::QueryPage(Box::new(call))), budget })
    }
}

impl SentPage {
    /// Waits for the page on this thread as long as the budget allows, and hands its rows to the sink.
    pub(crate) fn receive(self, budget: &Budget, sink: &mut PageSink<'_>) -> Result<QueryPage, QueryFailure> {
        let SentPage { answer, budget: sent } = self;
        // The future ends when the budget does, and with it the page where it is made.
        let answer = block_on_while(answer, || budget.check()).map_err(QueryFailure::Exceeded)??;
        let reply = match answer {
            Answer::Done(Reply::QueryPage(reply)) => *reply,
            Answer::Done(Reply::QueryFailed(failure)) => return Err(translated(*failure, &sent, budget)),
            Answer::Done(_) => return Err(unexpected().into()),
            Answer::Failed(error) => return Err(error.into()),
            Answer::Moved => return Err(gone().into()),
        };
        budget.step(reply.steps).map_err(QueryFailure::Exceeded)?;
        let held = match reply.rows.len() {
            bytes if bytes > ROWS_FREE_BYTES => Some(budget.hold(bytes).map_err(QueryFailure::Exceeded)?),
            _ => None,
        };
        let rows = ShareRows::decode(&reply.rows).ok_or_else(unreadable)?;
        let (charge_ru, at) = (reply.charge_ru, reply.at);
        rows.hand_out(sink).map_err(|error| match error.exceeded {
            Some(exceeded) => QueryFailure::Exceeded(exceeded),
            None => QueryFailure::Query { error: Box::new(error), charge_ru, at },
        })?;
        let report =
            reply.explanation.map_or_else(Report::default, |(text, indexes)| Report::told(text, indexes));
        Ok(QueryPage {
            next: reply.next,
            rows: reply.count,
            charge_ru,
            metrics: reply.metrics,
            report,
            at,
            held,
        })
    }
}

/// A failure in the terms of the request: what was left to be used elsewhere was not its limit.
fn translated(failure: QueryFailure, sent: &Remaining, budget: &Budget) -> QueryFailure {
    match failure {
        QueryFailure::Exceeded(Exceeded::RequestMemory { limit_bytes })
            if limit_bytes == sent.memory_bytes =>
        {
            QueryFailure::Exceeded(Exceeded::RequestMemory { limit_bytes: budget.limits().memory_bytes })
        }
        failure => failure,
    }
}

/// Whether nobody waits any more, as a budget asks it.
pub(super) fn is_gone(gone: &Gone) -> IsGone {
    let gone = gone.clone();
    Box::new(move || gone.load(Ordering::Relaxed))
}

pub(super) fn unreadable() -> Error {
    Error::internal("What another node has sent of a query cannot be read.")
}
