//! The condition of a patch: a predicate over the stored version, tested before anything changes.
//!
//! A [`Condition`] is data: its text, and the clock and the dice of the request that it belongs to, so that it means
//! the same wherever it is tested. Whoever has compiled it already, in order to refuse a bad one before anything is
//! touched, adds the compiled form ([`Condition::compiled`]), which stays in this process; a partition that gets the
//! data alone compiles it, with what the api has registered for its containers ([`ConditionHost`]).

use std::rc::Rc;
use std::sync::Arc;

use orrery_budget::Budget;
use orrery_model::Value;
use orrery_query::{Meter, Prepared, QueryEnv, Udfs};
use parking_lot::RwLock;

use crate::container::ContainerCore;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::query::{SystemOf, SystemProperties};
use crate::script_call::ScriptHost;

/// Decides on the stored version whether a patch may go ahead: `from c where c.n = 1`.
#[derive(Clone)]
pub struct Condition {
    pub text: String,
    /// The time of the request, in 100-nanosecond steps since 1970.
    pub now_ticks: i64,
    /// The seed of RAND.
    pub random_seed: u64,
    compiled: Option<Arc<CompiledCondition>>,
}

impl Condition {
    /// A condition that is compiled where it is tested.
    pub fn new(text: impl Into<String>, now_ticks: i64, random_seed: u64) -> Condition {
        Condition { text: text.into(), now_ticks, random_seed, compiled: None }
    }

    /// The same, tested here with what was compiled already.
    pub fn compiled(self, compiled: CompiledCondition) -> Condition {
        Condition { compiled: Some(Arc::new(compiled)), ..self }
    }

    /// The form that can be tested, made now if it was not before.
    pub(crate) fn prepare(&self, container: &Arc<ContainerCore>) -> Result<Arc<CompiledCondition>> {
        if let Some(compiled) = &self.compiled {
            return Ok(compiled.clone());
        }
        let host = container.hosts().condition();
        let budget = host.as_ref().map_or_else(Budget::unlimited, |host| host.budget());
        let env = QueryEnv {
            now_ticks: self.now_ticks,
            random_seed: self.random_seed,
            udfs: host.as_ref().and_then(|host| host.udfs(container, &budget)),
            budget: Some(budget.clone()),
            ..container.definition().query_env()
        };
        let prepared = orrery_sql::parse_condition(&self.text)
            .and_then(|parsed| Prepared::condition(&parsed, &env))
            .map_err(|error| Error::bad_request(error.message))?;
        let system = host.map_or_else(|| Box::new(NoMembers) as _, |host| host.system(container));
        Ok(Arc::new(CompiledCondition { prepared, system, budget }))
    }
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Condition({:?})", self.text)
    }
}

/// A condition that is ready to be tested, at the expense of a request.
pub struct CompiledCondition {
    pub prepared: Prepared,
    pub system: Box<dyn SystemProperties + Send + Sync>,
    pub budget: Budget,
}

impl CompiledCondition {
    pub(crate) fn matches(&self, item: &Item) -> Result<bool> {
        let meter = Rc::new(Meter::new(&self.budget));
        let row = SystemOf { item, system: self.system.as_ref() };
        self.prepared.matches(row.row(), &meter).map_err(|error| Error::bad_request(error.message))
    }
}

/// What an api knows about the conditions of its containers that the engine does not.
pub trait ConditionHost: Send + Sync {
    /// The functions that users have added to a container, at the expense of a budget; `None` when there are none.
    fn udfs(&self, container: &Arc<ContainerCore>, budget: &Budget) -> Option<Arc<dyn Udfs>>;

    /// The members that items of a container are shown with.
    fn system(&self, container: &Arc<ContainerCore>) -> Box<dyn SystemProperties + Send + Sync>;

    /// What a condition that came from another node may use.
    fn budget(&self) -> Budget;
}

/// What the account was given to do work that the engine knows no more of than when it is due.
#[derive(Default)]
pub(crate) struct Hosts {
    condition: RwLock<Option<Arc<dyn ConditionHost>>>,
    script: RwLock<Option<Arc<dyn ScriptHost>>>,
}

impl Hosts {
    pub(crate) fn set_condition(&self, host: Arc<dyn ConditionHost>) {
        *self.condition.write() = Some(host);
    }

    fn condition(&self) -> Option<Arc<dyn ConditionHost>> {
        self.condition.read().clone()
    }

    pub(crate) fn set_script(&self, host: Arc<dyn ScriptHost>) {
        *self.script.write() = Some(host);
    }

    pub(crate) fn script(&self) -> Option<Arc<dyn ScriptHost>> {
        self.script.read().clone()
    }
}

/// Items as they are stored, where no api says otherwise.
struct NoMembers;

impl SystemProperties for NoMembers {
    fn to_shared(&self) -> Arc<dyn SystemProperties> {
        Arc::new(NoMembers)
    }

    fn count(&self) -> usize {
        0
    }

    fn name(&self, _: usize) -> &'static str {
        ""
    }

    fn value(&self, _: &Item, _: usize) -> Value {
        Value::Null
    }

    fn write_json(&self, _: &Item, _: usize, _: &mut Vec<u8>) {}
}
