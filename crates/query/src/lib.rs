//! Queries over items: compiling, evaluating, executing and merging, without any input or output.
//!
//! [`Prepared::new`] compiles a parsed query with its parameters; an [`Execution`] takes items one by one
//! and hands out rows of borrowed values. Nothing here knows where items are stored or how pages travel: the naive
//! evaluator in this crate says what a query means, and whatever is faster must agree with it.
//!
//! - `compile/`, `node`: syntax tree to blocks of nested loops. `eval`, `operators`, `functions/`: what expressions
//!   mean.
//! - `exec`, `row`, `output`: items in, rows out, sorted, grouped and limited.
//! - `pushdown/`: what of a query index entries can decide. `columns/`: the same query over columns instead of items.
//! - `plan/`: what a client that asks the partitions itself is told. `partial`, `merge/`: the form of a query that
//!   partitions run, and their rows put together.
//!
//! ```
//! use orrery_model::{ParseOptions, Raw, parse_json};
//! use orrery_query::{Prepared, QueryEnv, RowView, run_all};
//!
//! let query = orrery_sql::parse_query("SELECT VALUE c.n + 1 FROM c WHERE c.kind = @kind").unwrap();
//! let parameters = [("@kind".to_string(), "a".into())];
//! let prepared = Prepared::new(&query, &parameters, &QueryEnv::default()).unwrap();
//! let item = parse_json(br#"{"kind":"a","n":41}"#, &ParseOptions::default()).unwrap();
//! let rows = run_all(&prepared, [RowView::plain(Raw::document(&item).unwrap())]).unwrap();
//! assert_eq!(rows, [b"42"]);
//! ```
#![forbid(unsafe_code)]

mod aggregate;
pub mod columns;
mod compare;
mod compile;
mod context;
mod datetime;
mod direct;
mod env;
mod eval;
mod exec;
pub mod fulltext;
pub mod functions;
mod geo;
mod language;
mod like;
pub mod limits;
pub mod merge;
mod meter;
mod node;
mod operators;
mod output;
mod partial;
pub mod plan;
mod prepared;
pub mod pushdown;
mod rank;
mod row;
pub mod spatial;
mod value;

pub use aggregate::AggregateKind;
pub use context::Context;
pub use env::{ComputedProperty, DistanceFunction, QueryEnv, Udfs};
pub use eval::GroupPart;
pub use exec::{Execution, Flow, Progress, Sink, SortPosition, run_all, run_within};
pub use language::{ANALYSER, Language};
pub use like::LikePattern;
pub use meter::Meter;
pub use output::{JsonText, Row, RowFormat, Rows, StoredForm, format_named};
pub use partial::{Form, RankedRows};
pub use prepared::{Prepared, QueryShape, Selected};
pub use row::{RowView, SystemMembers};
pub use value::{Eval, Type};
