//! SQL over feeds: queries of items and of resources, conditions of patches, and plans for clients that merge
//! themselves.
//!
//! The language and its evaluation live in their own crates; what is here is the wire around them: the body of a query
//! (`request`), its syntax tree (`parse_cache`), the same made ready to run (`statements`), what it may know about its
//! container (`query_env`), its answers (`items`), continuations (`position`) and what pages tell about themselves
//! (`query_metrics`), and which queries the gateway leaves to the client (`plan`). The engine runs them over the
//! partitions.

pub mod check;
pub mod condition;
pub mod items;
mod parse_cache;
pub mod plan;
mod position;
pub mod query_env;
mod query_metrics;
pub mod request;
pub mod resources;
mod statements;

pub use statements::Statements;

use crate::errors::Result;
use crate::headers::Answer;
use crate::service::Context;

/// A longer body is parsed and compiled where it holds up nobody. This much takes less than a millisecond.
const BODY_IN_PLACE_BYTES: usize = 8 * 1024;

/// Runs a query on the thread of its request only if its text is short; how long it then runs is another question.
pub fn by_length(
    context: &Context<'_>,
    run: impl FnOnce(&Context<'_>) -> Result<Answer> + Send,
) -> Result<Answer> {
    if context.body.len() > BODY_IN_PLACE_BYTES { context.lengthy(|| run(context)) } else { run(context) }
}
