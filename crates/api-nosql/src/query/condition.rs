//! The condition of a patch: `from c where c.n = 1`, tested on the stored version before anything changes.
//!
//! It is compiled here, so that a bad one is refused in the words of this api before anything is touched. What is
//! sent to a partition is its text; `host` tells a partition that gets no more than that what this api would have
//! compiled it with.

use orrery_engine::{CompiledCondition, Condition};
use orrery_query::Prepared;

use super::query_env::WireSystem;
use super::{query_env, request};
use crate::errors::Result;
use crate::service::{Context, Target};

pub fn compile(context: &Context<'_>, target: &Target, text: &str) -> Result<Condition> {
    let parsed = orrery_sql::parse_condition(text).map_err(|error| request::failed(&error, false))?;
    let env = query_env::of_container(context, target);
    let prepared = Prepared::condition(&parsed, &env).map_err(|error| request::failed(&error, false))?;
    let compiled = CompiledCondition {
        prepared,
        system: std::sync::Arc::new(WireSystem(target.rid)),
        budget: (*context.budget).clone(),
    };
    Ok(Condition::new(text, env.now_ticks, env.random_seed).compiled(compiled))
}
