//! The evaluator: pipelines of operators that pull batches of traversers.
//!
//! A step of the text is one operator. The last operator of a pipeline is asked for a batch, asks the one before it,
//! and so on; `want` says how many would do, so that a limit stops the work behind it. Nested traversals are
//! pipelines inside of operators, begun anew for each traverser; what they will need of the graph is fetched for the
//! whole batch beforehand ([`Op::prefetch`]), so that evaluating one by one costs no request each.

mod context;
mod each;
mod modulator;
mod pipeline;

pub(crate) use context::{Cx, SackSpec};
pub(crate) use each::{Each, Parts};
pub(crate) use modulator::{By, Selector, column_of, token_of};
pub(crate) use pipeline::{BATCH_MAX, Batch, Child, Op, Pipeline, Stage, Upstream, merge, merge_alike};
