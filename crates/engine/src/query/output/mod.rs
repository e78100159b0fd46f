//! What leaves a page: its rows, how many items they came from, what the page did, and what it costs.
//!
//! [`Output`] is all that a row changes. It takes what items and values become when a query is run over them, counts
//! and limits it (`rows`), and pays for it out of the page's allowance. `metrics` and `explain` say what a page did,
//! `charge` what it costs.

pub(crate) mod charge;
mod explain;
mod metrics;
mod rows;

use orrery_budget::Held;
use orrery_model::{Raw, Value};
use orrery_query::merge::CachedRows;
use orrery_query::{Execution, Flow, Row};

pub(in crate::query) use explain::Estimated;
pub use explain::{IndexUse, Report};
pub use metrics::QueryMetrics;

use super::access_path::Allowance;
use super::page::Ran;
use super::{PageSink, PartitionQuery, SystemOf};
use crate::item::Item;
use rows::PageRows;

/// Bytes of rows that are a step: they are written into new memory, put together to an answer, and sent.
const ROW_STEP_BYTES: u64 = 128;
/// A row that is an item of this size is paid for before it is written.
const LARGE_ROW_BYTES: usize = 64 * 1024;

/// The rows of one page, and the items that gave them.
pub(super) struct Output<'q> {
    query: &'q PartitionQuery<'q>,
    rows: PageRows<'q>,
    matched_items: u64,
}

impl<'q> Output<'q> {
    pub fn new(query: &'q PartitionQuery<'q>, sink: &'q mut PageSink<'q>) -> Output<'q> {
        let rows = PageRows::new(sink, query.limits, query.budget);
        Output { query, rows, matched_items: 0 }
    }

    /// Rows of the page so far.
    pub fn rows(&self) -> usize {
        self.rows.count()
    }

    // ---- rows

    /// Runs a query over an item.
    pub fn push(
        &mut self,
        execution: &mut Execution<'_>,
        item: &Item,
        allowance: &mut Allowance<'_>,
    ) -> Ran<Flow> {
        self.push_document(execution, item, item.body(), allowance)
    }

    /// The same where the item's document lies elsewhere.
    pub fn push_document(
        &mut self,
        execution: &mut Execution<'_>,
        item: &Item,
        document: Raw<'_>,
        allowance: &mut Allowance<'_>,
    ) -> Ran<Flow> {
        let large = item.document.len() > LARGE_ROW_BYTES && self.query.prepared.is_whole_item();
        if large {
            allowance.spend(item.document.len() as u64 / ROW_STEP_BYTES)?;
        }
        let system = SystemOf { item, system: self.query.system };
        let rows = &mut self.rows;
        let written = rows.size_bytes();
        let before = execution.matched();
        let row = system.row_of(document);
        let began = allowance.meter.steps();
        allowance.meter.allow_steps(allowance.steps_left());
        let flow = execution.push_numbered(row, item.number, &mut |row| rows.take(row))?;
        let written = if large { 0 } else { self.rows.size_bytes() - written };
        self.rows.check()?;
        allowance.spend(allowance.meter.steps() - began + written as u64 / ROW_STEP_BYTES)?;
        self.matched_items += execution.matched() - before;
        Ok(flow)
    }

    /// Runs a query over a value that stands for an item.
    pub fn push_value(&mut self, execution: &mut Execution<'_>, value: &Value, number: u64) -> Ran<Flow> {
        let rows = &mut self.rows;
        let flow = execution.push_value(value, number, &mut |row| rows.take(row))?;
        self.unless_refused(flow)
    }

    /// Takes a row that an earlier page has written.
    pub fn push_written(&mut self, row: &[u8]) -> Ran<Flow> {
        let flow = self.rows.take(Row::written(row))?;
        self.unless_refused(flow)
    }

    /// A page that ends because a row was refused has failed.
    fn unless_refused(&self, flow: Flow) -> Ran<Flow> {
        if flow == Flow::Stop {
            self.rows.check()?;
        }
        Ok(flow)
    }

    /// Takes the rows that come when all items were seen.
    pub fn finish(&mut self, execution: &mut Execution<'_>) -> Ran<Flow> {
        let rows = &mut self.rows;
        let flow = execution.finish(&mut |row| rows.take(row))?;
        self.rows.check()?;
        Ok(flow)
    }

    /// Collects the rows behind the page from now on, as long as they fit.
    pub fn spill(&mut self) {
        self.rows.spill();
    }

    /// The rows behind the page.
    pub fn take_spilled(&mut self) -> Option<CachedRows> {
        self.rows.take_spilled().filter(|spilled| !spilled.rows.is_empty())
    }

    // ---- figures

    /// Items that gave at least one row.
    pub fn matched_items(&self) -> u64 {
        self.matched_items
    }

    pub fn count_matched(&mut self, items: u64) {
        self.matched_items += items;
    }

    /// Sets it to what is known better: items may be pushed that were counted before, or stand for more than
    /// themselves.
    pub fn set_matched(&mut self, items: u64) {
        self.matched_items = items;
    }

    /// Adds what went out to what the page did, and returns what the rows are charged with.
    pub fn into_figures(self, metrics: &mut QueryMetrics) -> Option<Held> {
        metrics.matched_items = self.matched_items;
        metrics.output_rows = self.rows.count() as u64;
        metrics.output_bytes = self.rows.size_bytes() as u64;
        self.rows.into_held()
    }
}
