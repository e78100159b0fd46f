//! What one query may use. Everything that grows with data or nests is counted here.

use orrery_sql::SqlError;

/// How many loop steps the sources and subqueries of a query may take for a single item. A cross
/// product of ten arrays would otherwise never end.
pub const ITEM_STEPS_MAX: u64 = 10_000_000;

/// How much a query that must hold rows (sorting, grouping, DISTINCT, MAKELIST) may hold.
pub const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How much of a finished result is kept for the pages that follow.
pub const HELD_RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Sources after the first in one FROM clause.
pub const JOINS_MAX: usize = 10;

/// Calls of user-defined functions in one query.
pub const UDF_CALLS_MAX: usize = 10;

/// Longest string a function may build (REPLICATE is held to 10,000 by the language itself).
pub const STRING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Compiled regular expressions kept during a query.
pub const REGEX_CACHE_MAX: usize = 64;

/// Said of a query that needs to hold more.
pub fn held_too_much() -> SqlError {
    SqlError::whole(
        "",
        format!(
            "The query needs to hold more than {} MB to sort, group or deduplicate its rows.",
            HELD_BYTES_MAX / (1024 * 1024)
        ),
    )
}

/// Counts what a query holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    held_bytes: usize,
}

/// What a held row costs beyond its bytes.
const ROW_OVERHEAD_BYTES: usize = 64;

impl Budget {
    pub fn hold(&mut self, bytes: usize) -> Result<(), SqlError> {
        self.held_bytes = self.held_bytes.saturating_add(bytes + ROW_OVERHEAD_BYTES);
        if self.held_bytes > HELD_BYTES_MAX {
            return Err(held_too_much());
        }
        Ok(())
    }

    pub fn release(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_sub(bytes + ROW_OVERHEAD_BYTES);
    }
}
