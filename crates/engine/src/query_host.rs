//! What an api knows about its queries that the engine does not, on the node that has a partition.
//!
//! A request that came from another node brings its statement as text. Compiling and running it takes what its api
//! would have used: functions that users have added, the members that items are shown with, memory. An account is
//! given one host for each api at its start, and a request names the one it means. Conditions of patches are SQL, and
//! belong to the host of that name.
//!
//! An api whose statements need nothing but an environment has a [`PlainHost`], and where its items show nothing but
//! their version, [`VersionMembers`].

use std::sync::Arc;

use orrery_budget::{Budget, IsGone, Limits, MemoryPool};
use orrery_model::{Number, NumberStyle, Value};
use orrery_query::{QueryEnv, RowFormat, format_named};
use parking_lot::RwLock;

use crate::call::StatementCache;
use crate::container::ContainerCore;
use crate::item::{ETAG_PROPERTY, Item, TIME_PROPERTY};
use crate::item_rules::RuleHost;
use crate::query::{ResultCache, SystemProperties};
use crate::script_call::ScriptHost;

/// The host of the api whose language conditions are written in.
pub const SQL_HOST: &str = "sql";

pub trait QueryHost: Send + Sync {
    /// What statements of a container are compiled with, at the expense of a budget: all but the clock and the dice,
    /// which are those of the request.
    fn env(&self, container: &Arc<ContainerCore>, budget: &Budget) -> QueryEnv;

    /// The members that items of a container are shown with.
    fn system(&self, container: &Arc<ContainerCore>) -> Arc<dyn SystemProperties>;

    /// The budget of a request that came from another node: what it has left there, and no more than one may have here.
    fn budget(&self, limits: Limits, is_gone: Option<IsGone>) -> Budget;

    /// Where rows of later pages are kept.
    fn results(&self) -> Option<Arc<ResultCache>> {
        None
    }

    /// How rows are written, by the name of the format.
    fn format(&self, name: &str) -> Option<&'static dyn RowFormat> {
        format_named(name)
    }
}

/// A host without functions of users and without kept rows.
pub struct PlainHost {
    pub env: fn() -> QueryEnv,
    pub system: Arc<dyn SystemProperties>,
    /// The api's own way to write rows, besides those that all have.
    pub format: Option<&'static dyn RowFormat>,
    pub memory: Arc<MemoryPool>,
    /// The most memory that one request may hold.
    pub memory_bytes: usize,
}

impl QueryHost for PlainHost {
    fn env(&self, _: &Arc<ContainerCore>, _: &Budget) -> QueryEnv {
        (self.env)()
    }

    fn system(&self, _: &Arc<ContainerCore>) -> Arc<dyn SystemProperties> {
        self.system.clone()
    }

    fn budget(&self, limits: Limits, is_gone: Option<IsGone>) -> Budget {
        let limits = Limits { memory_bytes: limits.memory_bytes.min(self.memory_bytes), ..limits };
        Budget::with(self.memory.clone(), limits, is_gone)
    }

    fn format(&self, name: &str) -> Option<&'static dyn RowFormat> {
        self.format.filter(|own| own.name() == name).or_else(|| format_named(name))
    }
}

/// The version of an item as members of it: its etag, and the second of its write. Named by the host that shows them.
pub struct VersionMembers(pub &'static str);

impl SystemProperties for VersionMembers {
    fn to_shared(&self) -> Arc<dyn SystemProperties> {
        Arc::new(VersionMembers(self.0))
    }

    fn host(&self) -> &'static str {
        self.0
    }

    fn count(&self) -> usize {
        2
    }

    fn name(&self, at: usize) -> &'static str {
        [ETAG_PROPERTY, TIME_PROPERTY][at.min(1)]
    }

    fn value(&self, item: &Item, at: usize) -> Value {
        match at {
            0 => item.etag.to_string().into(),
            _ => Value::Number(Number::Int(i64::from(item.ts))),
        }
    }

    fn write_json(&self, item: &Item, at: usize, out: &mut Vec<u8>) {
        self.value(item, at).write_json(out, NumberStyle::Query);
    }
}

/// What the account was given to do work that the engine knows no more of than when it is due.
#[derive(Default)]
pub(crate) struct Hosts {
    query: RwLock<Vec<(&'static str, Arc<dyn QueryHost>)>>,
    rules: RwLock<Vec<(&'static str, Arc<dyn RuleHost>)>>,
    script: RwLock<Option<Arc<dyn ScriptHost>>>,
    pub(crate) statements: StatementCache,
}

impl Hosts {
    pub(crate) fn set_query(&self, name: &'static str, host: Arc<dyn QueryHost>) {
        let mut hosts = self.query.write();
        hosts.retain(|(known, _)| *known != name);
        hosts.push((name, host));
    }

    pub(crate) fn query(&self, name: &str) -> Option<Arc<dyn QueryHost>> {
        let hosts = self.query.read();
        hosts.iter().find(|(known, _)| *known == name).map(|(_, host)| host.clone())
    }

    pub(crate) fn set_rules(&self, name: &'static str, host: Arc<dyn RuleHost>) {
        let mut hosts = self.rules.write();
        hosts.retain(|(known, _)| *known != name);
        hosts.push((name, host));
    }

    pub(crate) fn rules(&self, name: &str) -> Option<Arc<dyn RuleHost>> {
        let hosts = self.rules.read();
        hosts.iter().find(|(known, _)| *known == name).map(|(_, host)| host.clone())
    }

    pub(crate) fn set_script(&self, host: Arc<dyn ScriptHost>) {
        *self.script.write() = Some(host);
    }

    pub(crate) fn script(&self) -> Option<Arc<dyn ScriptHost>> {
        self.script.read().clone()
    }
}
