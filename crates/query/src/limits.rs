//! What one query may use. Everything that grows with data or nests has its limit here; what grows within the limits is
//! charged to the budget of the request (`meter`).

/// How many loop steps the sources and subqueries of a query may take for a single item. A cross
/// product of ten arrays would otherwise never end.
pub const ITEM_STEPS_MAX: u64 = 10_000_000;

/// How much one request may hold: rows to sort, group or deduplicate, values under construction, pages.
pub const HELD_BYTES_MAX: usize = 256 * 1024 * 1024;

/// How much of a finished result is kept for the pages that follow.
pub const CACHED_RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Sources after the first in one FROM clause.
pub const JOINS_MAX: usize = 10;

/// Expressions in one GROUP BY clause. Everything that is selected is compared with each of them.
pub const GROUP_KEYS_MAX: usize = 1_000;

/// Calls of user-defined functions in one query.
pub const UDF_CALLS_MAX: usize = 10;

/// Longest string a function may build (REPLICATE is held to 10,000 by the language itself).
pub const STRING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Compiled regular expressions kept during a query.
pub const REGEX_CACHE_MAX: usize = 64;

/// Longest row of a result as JSON. A page ends with the row that crosses its size, so this bounds pages too.
pub const ROW_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What a held row costs beyond its bytes.
pub(crate) const ROW_OVERHEAD_BYTES: usize = 64;
