//! Sorting by columns: which rows pass the filter, and their sort keys.

use std::ops::Range;
use std::rc::Rc;

use orrery_model::Value;
use orrery_sql::SqlError;

use super::column::Column;
use super::query::ColumnQuery;
use super::source::ColumnSource;
use super::test::Test;
use crate::eval::Frame;
use crate::meter::Meter;
use crate::prepared::{Prepared, hash};

/// Rows that are filtered before the next ones.
const BLOCK_ROWS: usize = 1_024;

/// The filter and the order of a query over columns.
#[derive(Debug)]
pub struct ColumnSort {
    query: ColumnQuery,
    filter: u128,
}

impl ColumnSort {
    pub(super) fn new(query: ColumnQuery) -> ColumnSort {
        let filter = hash(format!("{:?}{:?}", query.sources(), query.filters).as_bytes());
        ColumnSort { query, filter }
    }

    pub fn sources(&self) -> &[ColumnSource] {
        self.query.sources()
    }

    /// Tells the filter from others.
    pub fn filter_fingerprint(&self) -> u128 {
        self.filter
    }

    /// The column by which rows are sorted, where it is one.
    pub fn key(&self) -> Option<usize> {
        match self.query.keys.as_slice() {
            [key] => self.query.column(key),
            _ => None,
        }
    }

    /// A run over columns of the sources, in their order.
    pub fn run<'c>(
        &'c self,
        prepared: &'c Prepared,
        columns: Vec<&'c Column>,
        meter: &Rc<Meter>,
    ) -> SortRun<'c> {
        let query = &self.query;
        SortRun {
            query,
            tests: query.filters.iter().map(|node| Test::new(node, query, &columns)).collect(),
            keys: query.keys.iter().filter_map(|node| query.column(node)).collect(),
            frame: Frame::new(query.first_slot + columns.len(), &prepared.context, meter),
            rows: Vec::with_capacity(BLOCK_ROWS),
            columns,
        }
    }
}

/// A filter and sort keys over one set of columns.
pub struct SortRun<'c> {
    query: &'c ColumnQuery,
    columns: Vec<&'c Column>,
    tests: Vec<Test<'c>>,
    /// The columns that are sort keys.
    keys: Vec<usize>,
    frame: Frame<'c>,
    rows: Vec<u32>,
}

impl SortRun<'_> {
    /// Keeps the rows that pass the filter.
    pub fn retain(&mut self, rows: &mut Vec<u32>) -> Result<(), SqlError> {
        for test in &mut self.tests {
            test.retain(rows, self.query, &self.columns, &mut self.frame)?;
        }
        Ok(())
    }

    /// Calls `found` with each row that passes the filter, and its sort keys. None of them may be deferred.
    pub fn visit(
        &mut self,
        mut rest: Range<usize>,
        found: &mut dyn FnMut(usize, Vec<Value>),
    ) -> Result<(), SqlError> {
        while !rest.is_empty() {
            let end = rest.end.min(rest.start + BLOCK_ROWS);
            self.rows.clear();
            self.rows.extend(rest.start as u32..end as u32);
            rest.start = end;
            for test in &mut self.tests {
                test.retain(&mut self.rows, self.query, &self.columns, &mut self.frame)?;
            }
            for row in &self.rows {
                let row = *row as usize;
                found(row, self.keys.iter().map(|key| self.columns[*key].eval(row).to_value()).collect());
            }
        }
        Ok(())
    }
}
