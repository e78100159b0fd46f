//! What an api knows about its queries that the engine does not, on the node that has a partition.
//!
//! A request that came from another node brings its statement as text. Compiling and running it takes what its api
//! would have used: functions that users have added, the members that items are shown with, memory. An account is
//! given one host for each api at its start, and a request names the one it means. Conditions of patches are SQL, and
//! belong to the host of that name.

use std::sync::Arc;

use orrery_budget::{Budget, IsGone, Limits};
use orrery_query::{QueryEnv, RowFormat, format_named};
use parking_lot::RwLock;

use crate::call::StatementCache;
use crate::container::ContainerCore;
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

/// What the account was given to do work that the engine knows no more of than when it is due.
#[derive(Default)]
pub(crate) struct Hosts {
    query: RwLock<Vec<(&'static str, Arc<dyn QueryHost>)>>,
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

    pub(crate) fn set_script(&self, host: Arc<dyn ScriptHost>) {
        *self.script.write() = Some(host);
    }

    pub(crate) fn script(&self) -> Option<Arc<dyn ScriptHost>> {
        self.script.read().clone()
    }
}
