//! The Gremlin language: text or bytecode in, results out, over any [`Graph`].
//!
//! ```text
//! script + bindings --parse--> Bytecode --plan--> steps --run--> results, a batch at a time
//! bytecode of a driver ----------^
//! ```
//!
//! Pure and synchronous: knows no wire, no store and no runtime. Memory, steps, time and cancellation are the request's
//! [`Budget`](orrery_budget::Budget).

pub mod bytecode;
pub mod datetime;
pub mod decimal;
pub mod element;
pub mod error;
pub mod graph;
pub mod path;
pub mod predicate;
pub mod tokens;
pub mod value;

mod run;

pub use error::{Error, ErrorKind, Position, Result};
pub use graph::Graph;
pub use run::{Flow, Options, Script, Sink, execute, from_bytecode, parse};
pub use value::Value;
