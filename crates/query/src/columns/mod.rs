//! Queries over columns: the values of a few paths of many items, side by side, instead of the items.
//!
//! ```text
//! SELECT c.city, AVG(c.n) FROM c WHERE LENGTH(c.text) > 9 GROUP BY c.city
//!
//! sources   /city   /n   LENGTH(/text)          what each item is asked for, once, when columns are made
//! columns   0 1 0…  7 3 5…  812 4 96…           strings as numbers of a dictionary
//! ```
//!
//! A [`ColumnQuery`] is the same query with columns in the place of paths. A [`ColumnRun`] adds rows of columns to
//! the same [`Execution`](crate::Execution) that takes items, so both can be mixed in one result: what a column does
//! not hold (arrays, objects, long strings) is *deferred*, and whoever has the item pushes that instead. Values,
//! their order and the sums are those of the evaluator.
//!
//! - `source`: what a column is made of. `column`: how it is kept. `query`: from paths to columns. `run`: groups and
//!   aggregates. `sort`: ORDER BY. `order`: rows by the values of a column. `test`: filters.

mod column;
mod order;
mod query;
mod run;
mod sort;
mod source;
mod test;

pub use column::{Column, ColumnBuilder};
pub use order::ColumnOrder;
pub use query::ColumnQuery;
pub use run::{ColumnRun, LookedUp};
pub use sort::{ColumnSort, SortRun};
pub use source::ColumnSource;
