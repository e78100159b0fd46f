//! What this api does on the node that has a partition, for requests that may have come from another: it runs
//! scripts, and says what queries and conditions of patches are compiled with.

use std::sync::Arc;

use orrery_budget::{Budget, IsGone, Limits, MemoryPool};
use orrery_engine::{
    ContainerCore, Env, LogicalPartition, QueryHost, ResultCache, ScriptCall, ScriptFuture, SystemProperties,
};
use orrery_query::QueryEnv;
use orrery_query::limits::HELD_BYTES_MAX;

use crate::query::query_env::WireSystem;
use crate::rid::ContainerRid;
use crate::scripts::{self, ScriptHost};

pub struct Host {
    pub scripts: Arc<ScriptHost>,
    pub memory: Arc<MemoryPool>,
    pub env: Arc<dyn Env>,
    pub result_cache: Arc<ResultCache>,
}

impl QueryHost for Host {
    fn env(&self, container: &Arc<ContainerCore>, budget: &Budget) -> QueryEnv {
        let udfs = scripts::udfs::of_container(&self.scripts, container, budget);
        QueryEnv { udfs, ..container.definition().query_env() }
    }

    fn system(&self, container: &Arc<ContainerCore>) -> Arc<dyn SystemProperties> {
        Arc::new(WireSystem(ContainerRid::new(container.database().number, container.number())))
    }

    fn budget(&self, limits: Limits, is_gone: Option<IsGone>) -> Budget {
        let limits = Limits { memory_bytes: limits.memory_bytes.min(HELD_BYTES_MAX), ..limits };
        Budget::with(self.memory.clone(), limits, is_gone)
    }

    fn results(&self) -> Option<Arc<ResultCache>> {
        Some(self.result_cache.clone())
    }
}

impl orrery_engine::ScriptHost for Host {
    fn run(&self, over: LogicalPartition, call: ScriptCall) -> ScriptFuture {
        let budget = call.budget.clone().unwrap_or_else(|| self.budget(Limits::default(), None));
        let at = over.position();
        let job = scripts::job::Job::new(self.scripts.clone(), self.env.clone(), over, call, budget);
        let run = self.scripts.pool.run(self.scripts.limits.time, move |claim| job.run(claim));
        Box::pin(async move { run.await.unwrap_or_else(|why| scripts::job::not_run(why, at)) })
    }
}
