//! What a share answers: rows that are written, with what a merge needs to know of them beside, and parts of groups.

use orrery_model::Value;
use orrery_sql::SqlError;

use crate::eval::GroupPart;
use crate::exec::SortPosition;
use crate::output::{Content, Row, Rows};
use crate::prepared::Prepared;
use crate::value::value_bytes;

/// What the place of a row takes.
const PLACE_BYTES: usize = size_of::<(u64, u64)>();

/// The rows of one page of a share.
#[derive(Debug, Default)]
pub struct ShareRows {
    pub rows: Rows,
    /// Whether to keep what only a merge needs.
    pub(super) partial: bool,
    /// Sort keys of all rows, one row's after the other's; and the number of its item, with how many rows of it there
    /// were.
    pub(super) keys: Vec<Value>,
    pub(super) places: Vec<(u64, u64)>,
    pub(super) marks: Rows,
    pub(super) carried: Vec<Value>,
    pub(super) groups: Vec<GroupPart>,
}

impl ShareRows {
    /// For the rows of a query, of which there are none yet.
    pub fn of(query: &Prepared, rows: Rows) -> ShareRows {
        ShareRows { rows, partial: query.is_partial(), ..ShareRows::default() }
    }

    /// Takes a row, and says how much it is.
    pub fn take(&mut self, row: Row<'_>) -> Result<usize, SqlError> {
        if !self.partial {
            return self.rows.write(&row);
        }
        if row.is_group() {
            let Some(group) = row.into_group() else { return Ok(0) };
            let bytes = group.size_bytes();
            self.groups.push(group);
            return Ok(bytes);
        }
        let mut bytes = self.rows.write(&row)?;
        if let Some(place) = row.place {
            let keys: usize = place.keys.iter().map(|key| size_of::<Value>() + value_bytes(key)).sum();
            bytes += keys + PLACE_BYTES;
            self.keys.extend_from_slice(&place.keys);
            self.places.push((place.number, place.rows));
        }
        if !row.mark.is_empty() {
            bytes += row.mark.len();
            self.marks.push(row.mark);
        }
        bytes += size_of_val(row.carried);
        self.carried.extend_from_slice(row.carried);
        Ok(bytes)
    }

    /// Hands everything on, as whoever has computed it did.
    pub fn hand_out(self, sink: &mut dyn FnMut(Row<'_>) -> Result<usize, SqlError>) -> Result<(), SqlError> {
        for at in 0..self.len() {
            let place = (at < self.places.len()).then(|| self.place(at));
            let written = Row::written(self.rows.get(at).unwrap_or_default());
            sink(Row { place: place.as_ref(), mark: self.mark(at), carried: self.carried(at), ..written })?;
        }
        for group in self.groups {
            let content = Content::Group(Box::new(group));
            sink(Row { content, ..Row::written(&[]) })?;
        }
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The sort keys of a row.
    pub(super) fn keys(&self, at: usize) -> &[Value] {
        stride(&self.keys, at, self.len())
    }

    /// The number of its item.
    pub(super) fn number(&self, at: usize) -> u64 {
        self.places.get(at).map_or(0, |(number, _)| *number)
    }

    /// Where a row stands.
    pub(super) fn place(&self, at: usize) -> SortPosition {
        let (number, rows) = self.places.get(at).copied().unwrap_or_default();
        SortPosition { keys: self.keys(at).to_vec(), number, rows }
    }

    /// What is equal for equal rows.
    pub(super) fn mark(&self, at: usize) -> &[u8] {
        self.marks.get(at).unwrap_or_default()
    }

    pub(super) fn carried(&self, at: usize) -> &[Value] {
        stride(&self.carried, at, self.len())
    }

    pub(super) fn take_groups(&mut self) -> Vec<GroupPart> {
        std::mem::take(&mut self.groups)
    }
}

/// What belongs to one of so many rows, which all have as many values.
fn stride(values: &[Value], at: usize, rows: usize) -> &[Value] {
    let width = values.len() / rows.max(1);
    values.get(at * width..(at + 1) * width).unwrap_or_default()
}
