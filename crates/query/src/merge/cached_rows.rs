//! Rows of a result that are known before the pages they belong to are asked for.

use crate::limits::CACHED_RESULT_BYTES_MAX;
use crate::output::Rows;

/// What a kept row takes beside its text, and a kept result beside its rows.
const ROW_BYTES: usize = size_of::<usize>();
const RESULT_BYTES: usize = 256;

/// Rows of a result, from the row with the number `first` on.
#[derive(Debug, Default)]
pub struct CachedRows {
    pub first: u64,
    pub rows: Rows,
    /// No row comes after these.
    pub ends: bool,
}

impl CachedRows {
    /// Whether another row fits.
    pub fn has_room(&self) -> bool {
        self.size_bytes() < CACHED_RESULT_BYTES_MAX
    }

    /// The rows after so many of the result.
    pub fn after(&self, delivered: u64) -> impl Iterator<Item = &[u8]> {
        let skipped = delivered.checked_sub(self.first).and_then(|skipped| usize::try_from(skipped).ok());
        let from = skipped.unwrap_or(self.rows.len());
        (from..self.rows.len()).filter_map(|at| self.rows.get(at))
    }

    /// The memory that the rows take.
    pub fn size_bytes(&self) -> usize {
        self.rows.size_bytes() + self.rows.len() * ROW_BYTES + RESULT_BYTES
    }
}
