//! Sorting by columns: which rows pass the filter, and their sort keys.

use std::ops::Range;

use orrery_model::Value;
use orrery_sql::SqlError;

use super::column::Column;
use super::query::ColumnQuery;
use super::source::ColumnSource;
use super::test::Test;
use crate::eval::Frame;
use crate::prepared::Prepared;

/// Rows that are filtered before the next ones.
const BLOCK_ROWS: usize = 1_024;

/// The filter and the order of a query over columns.
#[derive(Debug)]
pub struct ColumnSort(pub(super) ColumnQuery);

impl ColumnSort {
    pub fn sources(&self) -> &[ColumnSource] {
        self.0.sources()
    }

    /// Calls `found` with each row of a range that passes the filter, and its sort keys. None of them may be deferred.
    pub fn visit(
        &self,
        prepared: &Prepared,
        columns: &[&Column],
        ranges: impl Iterator<Item = Range<usize>>,
        found: &mut dyn FnMut(usize, Vec<Value>),
    ) -> Result<(), SqlError> {
        let query = &self.0;
        let mut tests: Vec<Test<'_>> =
            query.filters.iter().map(|node| Test::new(node, query, columns)).collect();
        let keys: Vec<usize> = query.keys.iter().filter_map(|node| query.column(node)).collect();
        let mut frame = Frame::new(query.first_slot + columns.len(), &prepared.context);
        let mut rows: Vec<u32> = Vec::with_capacity(BLOCK_ROWS);
        for mut rest in ranges {
            while !rest.is_empty() {
                let end = rest.end.min(rest.start + BLOCK_ROWS);
                rows.clear();
                rows.extend(rest.start as u32..end as u32);
                rest.start = end;
                for test in &mut tests {
                    test.retain(&mut rows, query, columns, &mut frame)?;
                }
                for row in rows.drain(..) {
                    let row = row as usize;
                    found(row, keys.iter().map(|column| columns[*column].eval(row).to_value()).collect());
                }
            }
        }
        Ok(())
    }
}
