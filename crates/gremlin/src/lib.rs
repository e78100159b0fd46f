//! The Gremlin language: text or bytecode in, results out, over any [`Graph`].
//!
//! ```text
//! script + bindings --parse--> Bytecode --build--> pipelines of operators --execute--> results, a batch at a time
//! bytecode of a driver ----------^
//! ```
//!
//! Pure and synchronous: knows no wire, no store and no runtime. Memory, steps, time and cancellation are the request's
//! [`Budget`](orrery_budget::Budget).

// An element's properties are filled in later; its hash and equality are those of its id and partition, which stay.
#![allow(clippy::mutable_key_type)]

mod arithmetic;
mod build;
pub mod bytecode;
pub mod compare;
pub mod datetime;
pub mod decimal;
pub mod element;
pub mod error;
mod evaluate;
pub mod graph;
mod lowering;
mod materialize;
pub mod memory;
mod parser;
pub mod path;
pub mod predicate;
mod profile;
pub mod random;
mod run;
mod shorten;
mod steps;
mod strategies;
pub mod text;
pub mod tokens;
mod traverser;
pub mod value;

pub use error::{Error, ErrorKind, Position, Result};
pub use graph::Graph;
pub use memory::MemoryGraph;
pub use run::{Flow, Options, Script, Sink, execute, from_bytecode, parse};
pub use steps::{Kind, Known, StepDef};
pub use value::Value;

/// Every step, with its documentation.
pub fn steps() -> &'static [StepDef] {
    steps::STEPS
}
