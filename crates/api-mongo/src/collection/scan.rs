//! All items that a statement selects, page by page.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use orrery_budget::Budget;
use orrery_engine::{
    Container, DistributedFailure, DistributedPosition, DistributedQuery, IndexUse, QueryOptions, Resuming,
    Scope,
};
use orrery_mongo::Result;
use orrery_query::RowFormat;
use orrery_query::merge::{Merged, PageSize};

use super::Spent;
use super::host::SYSTEM;
use super::item_form::{self, Found, ItemForm};
use super::statement::Statement;
use crate::errors::of_query;

/// Items of a page: few at first, for whoever wants no more.
const FIRST_PAGE_ROWS: usize = 128;
const PAGE_ROWS_MAX: usize = 2_000;
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How a page was made.
#[derive(Debug, Default)]
pub struct Explained {
    pub indexes: IndexUse,
    /// By range, in the words of its partition.
    pub partitions: Vec<(u32, String)>,
}

pub struct Pages {
    container: Arc<Container>,
    scope: Scope,
    statement: Statement,
    position: Option<DistributedPosition>,
    begun: bool,
    page_rows: usize,
    rows: VecDeque<Bytes>,
    budget: Budget,
    spent: Arc<Spent>,
    format: &'static dyn RowFormat,
    /// Somebody wants to know how the page is made.
    explained: Option<Explained>,
}

impl Pages {
    pub fn new(
        container: Arc<Container>,
        scope: Scope,
        statement: Statement,
        budget: Budget,
        spent: Arc<Spent>,
        wanted: Option<u64>,
    ) -> Pages {
        let page_rows = wanted.and_then(|wanted| usize::try_from(wanted).ok()).unwrap_or(FIRST_PAGE_ROWS);
        let page_rows = page_rows.clamp(1, PAGE_ROWS_MAX);
        let rows = VecDeque::new();
        Pages {
            container,
            scope,
            statement,
            position: None,
            begun: false,
            page_rows,
            rows,
            budget,
            spent,
            format: &ItemForm,
            explained: None,
        }
    }

    /// Rows that are no items, in another form.
    pub fn in_form(self, format: &'static dyn RowFormat) -> Pages {
        Pages { format, ..self }
    }

    pub fn next(&mut self) -> Result<Option<Found>> {
        while let Some(row) = self.next_row()? {
            if let Some(found) = item_form::read(row) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    pub fn next_row(&mut self) -> Result<Option<Bytes>> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                self.budget.step(1)?;
                return Ok(Some(row));
            }
            if self.begun && self.position.is_none() {
                return Ok(None);
            }
            self.budget.check()?;
            self.fetch().map_err(of_query)?;
        }
    }

    /// The statement as text.
    pub fn text(&self) -> String {
        self.statement.query.to_string()
    }

    /// Makes the first page and tells how that was done.
    pub fn explain(&mut self) -> Result<Explained> {
        self.explained = Some(Explained::default());
        self.fetch().map_err(of_query)?;
        Ok(self.explained.take().unwrap_or_default())
    }

    fn fetch(&mut self) -> std::result::Result<(), DistributedFailure> {
        let position = self.position.take();
        self.begun = true;
        let (container, budget, statement, scope, format) =
            (&self.container, &self.budget, &self.statement, &self.scope, self.format);
        let rows = self.page_rows;
        let explains = self.explained.is_some();
        let read = || {
            let shares = container.shares_of(scope)?;
            let mut options = QueryOptions::new(budget, &SYSTEM, format, statement.source());
            options.page_bytes = PAGE_BYTES_MAX;
            options.explained = explains;
            let mut query = DistributedQuery::new(container, shares, options);
            let merged = Merged::new(&statement.plan);
            let resuming = Resuming { skips: false, sorts: merged.is_sorted() };
            let start = position.clone().map(|position| query.go_on(position, resuming)).transpose()?;
            let (rows, next) = query.page(&merged, start, PageSize { rows, bytes: PAGE_BYTES_MAX })?;
            let next = next.map(|next| query.distributed_position(&next));
            let insight = explains.then(|| {
                let insight = query.insight();
                Explained { indexes: insight.indexes.clone(), partitions: insight.explained.clone() }
            });
            Ok((rows, next, query.charge_ru(), insight))
        };
        let (found, next, charge_ru, insight) =
            container.routed(scope, DistributedFailure::is_range_gone, read)?;
        self.spent.add(charge_ru);
        self.explained = insight;
        self.position = next;
        self.page_rows = (self.page_rows * 4).clamp(FIRST_PAGE_ROWS, PAGE_ROWS_MAX);
        // All rows lie in one piece of memory, of which each is a part.
        let mut ends = Vec::with_capacity(found.len());
        let mut end = 0;
        for row in found.iter() {
            // A sign stands between two rows.
            let start = end + usize::from(!ends.is_empty());
            end = start + row.len();
            ends.push((start, end));
        }
        let bytes = Bytes::from(found.into_bytes());
        self.rows = ends
            .into_iter()
            .filter(|(_, end)| *end <= bytes.len())
            .map(|(start, end)| bytes.slice(start..end))
            .collect();
        Ok(())
    }
}
