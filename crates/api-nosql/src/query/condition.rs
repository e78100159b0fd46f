//! The condition of a patch: `from c where c.n = 1`, tested on the stored version before anything changes.
//!
//! It is compiled here, so that a bad one is refused in the words of this api before anything is touched. What is sent to a
//! partition is its text; [`Host`] tells a partition that gets no more than that what this api would have compiled it with.

use std::sync::Arc;

use orrery_budget::{Budget, Limits, MemoryPool};
use orrery_engine::{CompiledCondition, Condition, ConditionHost, ContainerCore, SystemProperties};
use orrery_query::limits::HELD_BYTES_MAX;
use orrery_query::{Prepared, Udfs};

use super::query_env::WireSystem;
use super::{query_env, request};
use crate::errors::Result;
use crate::rid::ContainerRid;
use crate::scripts::{self, ScriptHost};
use crate::service::{Context, Target};

pub fn compile(context: &Context<'_>, target: &Target, text: &str) -> Result<Condition> {
    let parsed = orrery_sql::parse_condition(text).map_err(|error| request::failed(&error, false))?;
    let env = query_env::of_container(context, target);
    let prepared = Prepared::condition(&parsed, &env).map_err(|error| request::failed(&error, false))?;
    let compiled = CompiledCondition {
        prepared,
        system: Box::new(WireSystem(target.rid)),
        budget: (*context.budget).clone(),
    };
    Ok(Condition::new(text, env.now_ticks, env.random_seed).compiled(compiled))
}

/// What partitions of this node need for conditions that came from another one.
pub struct Host {
    pub scripts: Arc<ScriptHost>,
    pub memory: Arc<MemoryPool>,
}

impl ConditionHost for Host {
    fn udfs(&self, container: &Arc<ContainerCore>, budget: &Budget) -> Option<Arc<dyn Udfs>> {
        scripts::udfs::of_container(&self.scripts, container, budget)
    }

    fn system(&self, container: &Arc<ContainerCore>) -> Box<dyn SystemProperties + Send + Sync> {
        Box::new(WireSystem(ContainerRid::new(container.database().number, container.number())))
    }

    fn budget(&self) -> Budget {
        let limits = Limits { memory_bytes: HELD_BYTES_MAX, ..Limits::default() };
        Budget::with(self.memory.clone(), limits, None)
    }
}
