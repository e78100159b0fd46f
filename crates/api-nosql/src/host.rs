//! What this api does on the node that has a partition, for requests that may have come from another: it runs
//! scripts, and says what conditions of patches are compiled with.

use std::sync::Arc;

use orrery_budget::{Budget, Limits, MemoryPool};
use orrery_engine::{
    ConditionHost, ContainerCore, Env, LogicalPartition, ScriptCall, ScriptFuture, SystemProperties,
};
use orrery_query::Udfs;
use orrery_query::limits::HELD_BYTES_MAX;

use crate::query::query_env::WireSystem;
use crate::rid::ContainerRid;
use crate::scripts::{self, ScriptHost};

pub struct Host {
    pub scripts: Arc<ScriptHost>,
    pub memory: Arc<MemoryPool>,
    pub env: Arc<dyn Env>,
}

impl Host {
    /// What a request may use that came from another node.
    fn own_budget(&self) -> Budget {
        let limits = Limits { memory_bytes: HELD_BYTES_MAX, ..Limits::default() };
        Budget::with(self.memory.clone(), limits, None)
    }
}

impl ConditionHost for Host {
    fn udfs(&self, container: &Arc<ContainerCore>, budget: &Budget) -> Option<Arc<dyn Udfs>> {
        scripts::udfs::of_container(&self.scripts, container, budget)
    }

    fn system(&self, container: &Arc<ContainerCore>) -> Box<dyn SystemProperties + Send + Sync> {
        Box::new(WireSystem(ContainerRid::new(container.database().number, container.number())))
    }

    fn budget(&self) -> Budget {
        self.own_budget()
    }
}

impl orrery_engine::ScriptHost for Host {
    fn run(&self, over: LogicalPartition, call: ScriptCall) -> ScriptFuture {
        let budget = call.budget.clone().unwrap_or_else(|| self.own_budget());
        let at = over.position();
        let job = scripts::job::Job::new(self.scripts.clone(), self.env.clone(), over, call, budget);
        let run = self.scripts.pool.run(self.scripts.limits.time, move |claim| job.run(claim));
        Box::pin(async move { run.await.unwrap_or_else(|why| scripts::job::not_run(why, at)) })
    }
}
