//! One set of columns.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use orrery_model::Raw;
use orrery_query::columns::{Column, ColumnBuilder, ColumnOrder, ColumnSource};
use parking_lot::Mutex;

use super::keys::Keys;

/// Rows for which a builder takes room at once.
const ROOM_ROWS_MAX: usize = 4 * 1024 * 1024;

/// Filters of which it is remembered how many rows pass.
const PASSING_MAX: usize = 1_024;

/// The items of a partition, as of its base and perhaps later; see the module.
pub(crate) struct ColumnSet {
    pub base: u64,
    keys: Keys,
    pub numbers: Vec<u64>,
    /// Of the documents.
    pub sizes: Vec<u32>,
    /// `None`: too many items have something there that no column holds.
    columns: Vec<(ColumnSource, Option<Column>)>,
    /// The rows in the order of each column, where that was asked for; `None` inside: it does not tell.
    orders: Vec<OnceLock<Option<ColumnOrder>>>,
    /// How many rows pass a filter, and the bytes of their documents, of filters that were asked for.
    passing: Mutex<HashMap<u128, (u64, u64)>>,
}

impl ColumnSet {
    pub fn rows(&self) -> usize {
        self.numbers.len()
    }

    /// The columns of sources, unless one is not here; inside, unless one is of no use.
    pub fn columns(&self, sources: &[ColumnSource]) -> Option<Option<Vec<&Column>>> {
        let found = sources.iter().map(|source| {
            self.columns.iter().find(|(known, _)| known == source).map(|(_, column)| column.as_ref())
        });
        let found: Vec<Option<&Column>> = found.collect::<Option<_>>()?;
        Some(found.into_iter().collect())
    }

    /// The rows in the order of a source's column, if that was made.
    pub fn order(&self, source: &ColumnSource) -> Option<Option<&ColumnOrder>> {
        let at = self.columns.iter().position(|(known, _)| known == source)?;
        self.orders[at].get().map(Option::as_ref)
    }

    /// Puts the rows in the order of a source's column.
    pub fn make_order(&self, source: &ColumnSource) {
        if let Some(at) = self.columns.iter().position(|(known, _)| known == source) {
            self.orders[at].get_or_init(|| self.columns[at].1.as_ref().and_then(Column::order));
        }
    }

    /// How many rows pass a filter, and the bytes of their documents, if that was found out.
    pub fn passing(&self, filter: u128) -> Option<(u64, u64)> {
        self.passing.lock().get(&filter).copied()
    }

    pub fn learn_passing(&self, filter: u128, passing: (u64, u64)) {
        let mut known = self.passing.lock();
        if known.len() >= PASSING_MAX {
            known.clear();
        }
        known.insert(filter, passing);
    }

    pub fn sources(&self) -> impl Iterator<Item = &ColumnSource> {
        self.columns.iter().map(|(source, _)| source)
    }

    /// The row of a key, or else the row before which it would be.
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.keys.find(key)
    }

    /// The first row whose key is not less than this.
    pub fn first_from(&self, key: &[u8]) -> usize {
        self.keys.find(key).unwrap_or_else(|at| at)
    }

    pub fn key(&self, row: usize) -> Vec<u8> {
        self.keys.from(row).step().unwrap_or_default().to_vec()
    }

    pub fn size_bytes(&self) -> usize {
        let columns = self.columns.iter().filter_map(|(_, column)| column.as_ref());
        self.keys.size_bytes()
            + 8 * self.numbers.capacity()
            + 4 * self.sizes.capacity()
            + columns.map(Column::size_bytes).sum::<usize>()
            + self
                .orders
                .iter()
                .filter_map(OnceLock::get)
                .flatten()
                .map(ColumnOrder::size_bytes)
                .sum::<usize>()
    }
}

/// A set in the making; rows come in the order of their keys.
pub(crate) struct SetBuilder {
    keys: Keys,
    numbers: Vec<u64>,
    sizes: Vec<u32>,
    columns: Vec<(ColumnSource, Option<ColumnBuilder>)>,
}

impl SetBuilder {
    pub fn new(sources: Vec<ColumnSource>, rows: usize) -> SetBuilder {
        let rows = rows.min(ROOM_ROWS_MAX);
        let column = |source| (source, Some(ColumnBuilder::with_capacity(rows)));
        SetBuilder {
            keys: Keys::default(),
            numbers: Vec::with_capacity(rows),
            sizes: Vec::with_capacity(rows),
            columns: sources.into_iter().map(column).collect(),
        }
    }

    /// For the same columns, with most rows taken over.
    pub fn like(set: &ColumnSet) -> SetBuilder {
        let rows = set.rows() + set.rows() / 64;
        let columns = set.columns.iter().map(|(source, column)| {
            (source.clone(), column.as_ref().map(|column| ColumnBuilder::like(column, rows)))
        });
        SetBuilder {
            keys: Keys::default(),
            numbers: Vec::with_capacity(rows),
            sizes: Vec::with_capacity(rows),
            columns: columns.collect(),
        }
    }

    pub fn push(&mut self, key: &[u8], number: u64, document_bytes: usize, document: Raw<'_>) {
        self.keys.push(key);
        self.numbers.push(number);
        self.sizes.push(document_bytes as u32);
        for (source, column) in &mut self.columns {
            if let Some(column) = column {
                column.push(&source.read(document));
            }
        }
    }

    /// Takes over rows of the set that this one was made [`like`](SetBuilder::like).
    pub fn append(&mut self, set: &ColumnSet, rows: Range<usize>) {
        let mut keys = set.keys.from(rows.start);
        for _ in rows.clone() {
            if let Some(key) = keys.step() {
                self.keys.push(key);
            }
        }
        self.numbers.extend_from_slice(&set.numbers[rows.clone()]);
        self.sizes.extend_from_slice(&set.sizes[rows.clone()]);
        for ((_, column), (_, other)) in self.columns.iter_mut().zip(&set.columns) {
            if let (Some(column), Some(other)) = (column, other) {
                column.append(other, rows.clone());
            }
        }
    }

    pub fn size_bytes(&self) -> usize {
        let columns = self.columns.iter().filter_map(|(_, column)| column.as_ref());
        self.keys.size_bytes()
            + 8 * self.numbers.capacity()
            + 4 * self.sizes.capacity()
            + columns.map(ColumnBuilder::size_bytes).sum::<usize>()
    }

    pub fn finish(mut self, base: u64) -> ColumnSet {
        self.keys.shrink();
        self.numbers.shrink_to_fit();
        self.sizes.shrink_to_fit();
        let columns = self.columns.into_iter();
        let columns = columns.map(|(source, column)| (source, column.and_then(ColumnBuilder::finish)));
        let columns: Vec<(ColumnSource, Option<Column>)> = columns.collect();
        ColumnSet {
            base,
            keys: self.keys,
            numbers: self.numbers,
            sizes: self.sizes,
            passing: Mutex::default(),
            orders: columns.iter().map(|_| OnceLock::new()).collect(),
            columns,
        }
    }
}
