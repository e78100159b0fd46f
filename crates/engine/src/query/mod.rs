//! Queries inside one partition: a page at a time, on one snapshot.
//!
//! ```text
//! Prepared query ── access plan ── items by key | in storage order | by creation | in index order ── Execution ── rows
//! ```
//!
//! The evaluator of `orrery-query` decides what a query means; what is here finds the items it has to look at, in an
//! order that the result allows, and stops in time. Rows that are not sorted come in order of creation where the span
//! is small or few items were found, else in storage order (see `costs`).
//!
//! - `page`: one page, made in three rooms. `access_path`: the way to the items, by index, from columns or in a row.
//!   `order`: the order of the rows, streamed, sorted or materialized. `output`: the rows, what the page did and what
//!   it costs.
//! - `result_cache`: pages that are ready already. `position`: where the next page begins. `costs`: by which figures
//!   ways are chosen.
//! - `distributed`: the same over several partitions.
//! - `statement`: what a query was compiled from, for pages that are made on another node (`crate::call::query_page`).

mod access_path;
mod costs;
pub mod distributed;
mod order;
mod output;
mod page;
mod position;
pub mod result_cache;
mod statement;

use std::sync::Arc;
use std::time::Instant;

use orrery_budget::{Budget, Exceeded, Held};
use orrery_model::{Raw, Value};
use orrery_query::{Prepared, Row, RowFormat, RowView, SystemMembers};
use orrery_sql::SqlError;

use crate::columns;
use crate::error::{Error, Result};
use crate::item::{Item, Position};
use crate::partition::{Partition, Span};

pub(crate) use output::charge;

pub use charge::cached_page_charge;
pub use costs::Costs;
pub use distributed::{
    DistributedFailure, DistributedPosition, DistributedQuery, QueryInsight, QueryOptions, Resuming, Share,
};
pub use output::{IndexUse, QueryMetrics, Report};
pub use position::{Order, Progress, QueryPosition, WindowPosition, decode_keys, encode_keys};
pub use result_cache::{RESULT_CACHE_BYTES_MAX, ResultCache, ResultCachePlace};
pub(crate) use statement::Statement;
pub use statement::{StatementSource, StatementText};

/// A query over one partition.
pub struct PartitionQuery<'q> {
    pub prepared: &'q Prepared,
    /// What it was compiled from, where the partition may be elsewhere.
    pub statement: Option<StatementSource<'q>>,
    pub span: &'q Span,
    pub from: Option<&'q QueryPosition>,
    pub limits: QueryLimits,
    /// What the request may use: memory, time, and whether anybody waits. Asked every few items and thousand steps.
    pub budget: &'q Budget,
    pub session: &'q [(u32, u64)],
    /// Where rows of later pages are kept that are known already.
    pub result_cache: Option<&'q ResultCache>,
    pub system: &'q dyn SystemProperties,
    /// How rows are written that wait for their page.
    pub format: &'q dyn RowFormat,
    /// Take times for the metrics.
    pub timed: bool,
    /// Tell how the page was made; otherwise the report is left empty.
    pub explained: bool,
    pub costs: Costs,
}

#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Rows of a page. The first always fits.
    pub rows: usize,
    /// A page ends after the row that crosses this size.
    pub bytes: usize,
    /// A page that streams ends then with what it has; one that must see everything first goes on, until the budget of
    /// the request ends it.
    pub deadline: Option<Instant>,
    /// A page that takes more steps than this gives up with [`QueryFailure::Lengthy`]: entries read, items looked at,
    /// rounds of the loops inside them. It can then be run again where it holds up nobody.
    pub steps: Option<u64>,
    /// With `steps`: where items are larger than this on average, the page gives up before it begins.
    pub item_bytes_max: u64,
}

/// Takes a row of a page, writes it down where it is sent from, and says how many bytes it has become.
pub type PageSink<'s> = dyn FnMut(Row<'_>) -> Result<usize, SqlError> + 's;

/// The members that the wire adds to an item, in the order in which they are printed.
pub trait SystemProperties: Send + Sync {
    /// The same for another thread.
    fn to_shared(&self) -> Arc<dyn SystemProperties>;

    /// The api whose view of items this is, by the name of its [`QueryHost`](crate::QueryHost).
    fn host(&self) -> &'static str;

    fn count(&self) -> usize;

    fn name(&self, at: usize) -> &'static str;

    fn value(&self, item: &Item, at: usize) -> Value;

    /// Appends the value as JSON.
    fn write_json(&self, item: &Item, at: usize, out: &mut Vec<u8>);
}

/// The system members of one item. Its document may be elsewhere.
pub struct SystemOf<'i> {
    pub item: &'i Item,
    pub system: &'i dyn SystemProperties,
}

impl SystemOf<'_> {
    /// The item as queries see it.
    pub fn row(&self) -> RowView<'_> {
        self.row_of(self.item.body())
    }

    /// The same with a document that lies elsewhere.
    pub fn row_of<'r>(&'r self, document: Raw<'r>) -> RowView<'r> {
        RowView { document, system: self, appended: usize::from(self.item.late_members) }
    }
}

impl SystemMembers for SystemOf<'_> {
    fn count(&self) -> usize {
        self.system.count()
    }

    fn name(&self, at: usize) -> &'static str {
        self.system.name(at)
    }

    fn value(&self, at: usize) -> Value {
        self.system.value(self.item, at)
    }

    fn write_json(&self, at: usize, out: &mut Vec<u8>) {
        self.system.write_json(self.item, at, out);
    }
}

/// A page of one partition; its rows went to the sink.
#[derive(Debug)]
pub struct QueryPage {
    /// `None`: this was the last page of the partition.
    pub next: Option<QueryPosition>,
    pub rows: usize,
    pub charge_ru: f64,
    pub metrics: QueryMetrics,
    pub report: Report,
    pub at: Position,
    /// What the rows are charged with; to be kept as long as they are.
    pub held: Option<Held>,
}

#[derive(Debug)]
pub enum QueryFailure {
    Engine(Error),
    /// The page takes more steps than it was given.
    Lengthy,
    /// The request has used up its budget.
    Exceeded(Exceeded),
    /// The query itself went wrong while it ran: a result JSON cannot hold, a limit, a failing script.
    Query {
        error: Box<SqlError>,
        charge_ru: f64,
        at: Position,
    },
}

impl From<Error> for QueryFailure {
    fn from(error: Error) -> QueryFailure {
        QueryFailure::Engine(error)
    }
}

impl Partition {
    /// Runs one page. `sink` gets each row.
    pub fn query(
        &self,
        query: &PartitionQuery<'_>,
        sink: &mut PageSink<'_>,
    ) -> Result<QueryPage, QueryFailure> {
        if query.limits.steps.is_some() {
            let usage = self.usage();
            if usage.size_bytes / usage.items.max(1) > query.limits.item_bytes_max {
                return Err(QueryFailure::Lengthy);
            }
        }
        let view = self.open_view(query.session)?;
        let page = page::page(query, &view, sink);
        if let Some(work) = view.columns().take_put_off() {
            columns::begin(view, work);
        }
        page
    }
}
