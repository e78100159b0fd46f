//! The way to the items of one page: by index, from columns, in a row, or one by one.
//!
//! A [`ItemReader`] is all that finding and loading items changes: what was read is counted, how it was found is
//! noted, and steps are taken from the page's allowance. It writes no row; functions that do are given the page's
//! `Output` besides.
//!
//! - `lookup`: a filter bound to index paths, and the candidates that it leads to. `search`, `terms`: the same by
//!   shapes and words. `named`: the one item that a filter names by its keys.
//! - `lists`: items in order of creation or of storage. `columns`: what reading all items would give, without reading
//!   them.
//! - `key_test`: a filter asked of one item, by the keys of its entries.
//! - `index_only`: how many items there are and which values they have, by entries alone.
//! - `allowance`: what the page may still use.

mod allowance;
mod columns;
mod index_only;
mod key_test;
mod lists;
pub(super) mod lookup;
mod named;
mod search;
mod terms;

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use orrery_query::pushdown::Filter;
use orrery_query::{Execution, Flow};

pub(super) use allowance::Allowance;
pub(super) use columns::{ItemPlace, Part, STEP_ROWS};
pub(super) use key_test::{KeyTest, Told};
pub(super) use lists::{List, Listed};
pub(super) use lookup::{Candidate, candidates_max};
pub(super) use search::{is_searchable, text};
pub(super) use terms::TermHits;

use super::output::Report;
use super::page::Ran;
use super::{PartitionQuery, QueryMetrics, SystemOf};
use crate::item::Item;
use crate::partition::Span;
use crate::partition::index::PartitionView;

/// Steps of a page that finding an item takes, and as many bytes of it as are another step.
const LOAD_STEPS: u64 = 4;
pub(super) const STEP_BYTES: u64 = 512;

/// Reads items and index entries for one page.
pub(super) struct ItemReader<'q> {
    pub query: &'q PartitionQuery<'q>,
    pub view: &'q PartitionView,
    pub filter: &'q Filter,
    pub allowance: Allowance<'q>,
    /// Which way was taken.
    pub report: Report,
    metrics: QueryMetrics,
}

/// Sees the key of an item, the item without its document, and the document.
type Look<'q, 'v> = dyn FnMut(&mut ItemReader<'q>, &[u8], &Item, &[u8]) -> Ran<Flow> + 'v;

impl<'q> ItemReader<'q> {
    pub fn new(query: &'q PartitionQuery<'q>, view: &'q PartitionView) -> ItemReader<'q> {
        ItemReader {
            query,
            view,
            filter: query.prepared.filter(),
            allowance: Allowance::new(query.budget, &query.limits),
            report: Report::default(),
            metrics: QueryMetrics::default(),
        }
    }

    /// What was read, and how.
    pub fn into_figures(self) -> (QueryMetrics, Report) {
        (self.metrics, self.report)
    }

    /// An execution that uses the memory and steps of this page and writes rows as it wants them.
    pub fn bounded<'e>(&self, execution: Execution<'e>) -> Execution<'e>
    where
        'q: 'e,
    {
        execution.within(&self.allowance.meter).written_as(self.query.format)
    }

    // ---- items

    /// An item by its key.
    pub fn load(&mut self, key: &[u8]) -> Ran<Option<Item>> {
        let item = self.look_at(key)?;
        if let Some(item) = &item {
            self.count_loaded(item.document.len());
        }
        Ok(item)
    }

    /// An item that does not count as loaded.
    pub fn look_at(&mut self, key: &[u8]) -> Ran<Option<Item>> {
        let started = self.query.timed.then(Instant::now);
        let item = self.view.item(key)?;
        self.metrics.document_load += started.map_or(Duration::ZERO, |started| started.elapsed());
        if let Some(item) = &item {
            self.allowance.spend(LOAD_STEPS + item.document.len() as u64 / STEP_BYTES)?;
        }
        Ok(item)
    }

    /// Whether an item passes the filter.
    pub fn passes(&self, item: &Item) -> Ran<bool> {
        let system = SystemOf { item, system: self.query.system };
        Ok(self.query.prepared.matches(system.row(), &self.allowance.meter)?)
    }

    /// Shows all items of the span, in storage order, until there is nothing more to see. Whether they count as
    /// loaded is up to the visitor.
    pub fn visit(&mut self, visit: &mut Look<'q, '_>) -> Ran<()> {
        let (view, span) = (self.view, self.query.span);
        let mut failed = None;
        view.visit_items(span, &mut |key, item, document| match self
            .allowance
            .check()
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

    /// Whether the span holds few enough items to be shown in order of creation.
    pub fn is_small(&self) -> Ran<bool> {
        let items_max = self.query.costs.created_items_max;
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

    /// Gives up at once, rather than halfway, before all items of the partition are looked at.
    pub fn foresee_all(&self) -> Ran<()> {
        let all = matches!(self.query.span, Span::All);
        if all { self.allowance.foresee(self.view.item_count()) } else { Ok(()) }
    }

    /// Whether so many items were loaded for so few rows that reading all of them in a row is better.
    pub fn is_tedious(&self, tried: u64, held: usize) -> bool {
        let costs = &self.query.costs;
        let idle = tried.saturating_sub(held as u64);
        idle.saturating_mul(costs.load_cost) > self.view.item_count().saturating_mul(costs.scan_cost)
    }

    // ---- what was read

    /// Counts an item as loaded.
    pub fn count_loaded(&mut self, document_bytes: usize) {
        self.count_all_loaded(1, document_bytes as u64);
    }

    pub fn count_all_loaded(&mut self, items: u64, bytes: u64) {
        self.metrics.loaded_items += items;
        self.metrics.loaded_bytes += bytes;
    }

    /// Counts an item whose sort keys were read.
    pub fn count_sifted(&mut self) {
        self.metrics.sifted_items += 1;
    }

    pub fn count_entries(&mut self, entries: u64) {
        self.metrics.index_entries += entries;
    }

    /// What was read so far, to go back to where a way turns out to be none.
    pub fn mark(&self) -> QueryMetrics {
        self.metrics.clone()
    }

    pub fn back_to(&mut self, mark: QueryMetrics) {
        self.metrics = mark;
    }
}
