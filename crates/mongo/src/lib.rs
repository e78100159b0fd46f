//! The MongoDB query language: filters, projections, updates, expressions and pipelines, over stored bytes.
//!
//! Pure: no input or output, no clock, no protocol beyond BSON itself. Whoever calls gives documents and gets
//! documents; a pipeline that reads or writes other collections asks the [`pipeline::Collections`] it was given.
//!
//! - `value`: [`Bson`] and [`Document`], owned. `value_ref`: [`ValueRef`], borrowed from an owned value or from the
//!   bytes of a stored item, so that a filter reads an item without decoding it.
//! - `codec`: BSON bytes to and from both. `stored`: what an item of a container looks like as a document.
//! - `order`: MongoDB's order and equality of values; `collation` that of texts. `ext_json`: values as JSON text.
//! - `filter`, `projection`, `update`, `sort`: what commands on single documents mean.
//! - `expression/`, `pipeline/`: aggregation.
//! - `index_keys`: the keys that a document has in an index.
//! - `error`: codes and texts as drivers know them.
#![forbid(unsafe_code)]

pub mod accumulator;
pub mod codec;
pub mod collation;
pub mod context;
pub mod decimal;
pub mod error;
pub mod expression;
pub mod ext_json;
pub mod filter;
#[doc(hidden)]
pub mod fuzzing;
pub mod index_keys;
#[doc(hidden)]
pub mod memory;
pub mod order;
pub mod pattern;
pub mod pipeline;
pub mod projection;
pub mod sort;
pub mod stored;
pub mod update;
pub mod value;
pub mod value_ref;

pub use context::Context;
pub use error::{Error, Result};
pub use value::{Bson, Document, Kind};
pub use value_ref::ValueRef;
