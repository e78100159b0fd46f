//! The condition of a patch: a predicate over the stored version, tested before anything changes.
//!
//! A [`Condition`] is data: its text, and the clock and the dice of the request that it belongs to, so that it means
//! the same wherever it is tested. Whoever has compiled it already, in order to refuse a bad one before anything is
//! touched, adds the compiled form ([`Condition::compiled`]), which stays in this process; a partition that gets the
//! data alone compiles it, with what the api has registered for its containers ([`QueryHost`](crate::QueryHost)).

use std::rc::Rc;
use std::sync::Arc;

use orrery_budget::{Budget, Limits, Remaining};
use orrery_model::Value;
use orrery_query::{Meter, Prepared, QueryEnv};

use crate::container::ContainerCore;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::query::{SystemOf, SystemProperties};
use crate::query_host::SQL_HOST;

/// Decides on the stored version whether a patch may go ahead: `from c where c.n = 1`.
#[derive(Clone)]
pub struct Condition {
    pub text: String,
    /// The time of the request, in 100-nanosecond steps since 1970.
    pub now_ticks: i64,
    /// The seed of RAND.
    pub random_seed: u64,
    compiled: Option<Arc<CompiledCondition>>,
    /// What its request had left, where that is on another node.
    left: Option<Remaining>,
}

impl Condition {
    /// A condition that is compiled where it is tested.
    pub fn new(text: impl Into<String>, now_ticks: i64, random_seed: u64) -> Condition {
        Condition { text: text.into(), now_ticks, random_seed, compiled: None, left: None }
    }

    /// The same, tested here with what was compiled already.
    pub fn compiled(self, compiled: CompiledCondition) -> Condition {
        Condition { compiled: Some(Arc::new(compiled)), ..self }
    }

    /// The same, with what its request has left for it.
    pub(crate) fn within(self, left: Option<Remaining>) -> Condition {
        Condition { left, ..self }
    }

    /// What its request has left.
    pub(crate) fn left(&self) -> Option<Remaining> {
        self.compiled.as_ref().map(|compiled| compiled.budget.remaining()).or(self.left)
    }

    /// The form that can be tested, made now if it was not before.
    pub(crate) fn prepare(&self, container: &Arc<ContainerCore>) -> Result<Arc<CompiledCondition>> {
        if let Some(compiled) = &self.compiled {
            return Ok(compiled.clone());
        }
        let host = container.hosts().query(SQL_HOST);
        let limits = self.left.map_or_else(Limits::default, |left| left.limits());
        let budget = host.as_ref().map_or_else(Budget::unlimited, |host| host.budget(limits, None));
        let env = match &host {
            Some(host) => host.env(container, &budget),
            None => container.definition().query_env(),
        };
        let env = QueryEnv {
            now_ticks: self.now_ticks,
            random_seed: self.random_seed,
            budget: Some(budget.clone()),
            ..env
        };
        let prepared = orrery_sql::parse_condition(&self.text)
            .and_then(|parsed| Prepared::condition(&parsed, &env))
            .map_err(|error| Error::bad_request(error.message))?;
        let system = host.map_or_else(|| Arc::new(NoMembers) as _, |host| host.system(container));
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
    pub system: Arc<dyn SystemProperties>,
    pub budget: Budget,
}

impl CompiledCondition {
    pub(crate) fn matches(&self, item: &Item) -> Result<bool> {
        let meter = Rc::new(Meter::new(&self.budget));
        let row = SystemOf { item, system: self.system.as_ref() };
        self.prepared.matches(row.row(), &meter).map_err(|error| Error::bad_request(error.message))
    }
}

/// Items as they are stored, where no api says otherwise.
struct NoMembers;

impl SystemProperties for NoMembers {
    fn to_shared(&self) -> Arc<dyn SystemProperties> {
        Arc::new(NoMembers)
    }

    fn host(&self) -> &'static str {
        SQL_HOST
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
