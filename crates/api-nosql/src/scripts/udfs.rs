//! User-defined functions inside of queries.
//!
//! Which functions a query calls is known when it has been compiled; only those are compiled themselves, when the first
//! of them is called.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use orrery_budget::Budget;
use orrery_engine::{ContainerCore, ScriptKind, Scripts};
use orrery_model::Value;
use orrery_query::Udfs;
use orrery_script::{Failure, FailureKind, Function, Functions};
use orrery_sql::SqlError;

use super::Host;

/// What the functions of one query may take; queries run on many threads at once.
const MEMORY_BYTES: usize = 32 * 1024 * 1024;

pub struct ContainerUdfs {
    host: Host,
    budget: Budget,
    container: Arc<ContainerCore>,
    scripts: Arc<Scripts>,
    asked: Mutex<BTreeSet<String>>,
    functions: OnceLock<Result<Functions, Failure>>,
}

/// The functions of a container, which work at the expense of the request; `None` when it has none.
pub fn of_container(host: &Host, container: &Arc<ContainerCore>, budget: &Budget) -> Option<Arc<dyn Udfs>> {
    let scripts = container.scripts();
    scripts.list(ScriptKind::Function).next()?;
    Some(Arc::new(ContainerUdfs {
        host: host.clone(),
        budget: budget.clone(),
        container: container.clone(),
        scripts,
        asked: Mutex::default(),
        functions: OnceLock::new(),
    }))
}

impl Udfs for ContainerUdfs {
    fn exists(&self, name: &str) -> bool {
        let exists = self.scripts.by_id(ScriptKind::Function, name).is_some();
        if exists {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        }
        exists
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, SqlError> {
        let functions = self.functions.get_or_init(|| self.compile());
        let result = match functions {
            Ok(functions) => functions.call(name, arguments),
            Err(failure) => Err(failure.clone()),
        };
        result.map_err(|Failure { kind, exception, stack, .. }| {
            let place = stack.lines().next().map(|frame| format!("\r\n{frame}")).unwrap_or_default();
            let doing = if kind == FailureKind::Compile { "compiling" } else { "executing" };
            let message = format!(
                "Encountered exception while {doing} function '{name}'. Exception = {exception}{place}"
            );
            SqlError::whole("", message)
        })
    }
}

impl ContainerUdfs {
    fn compile(&self) -> Result<Functions, Failure> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let scripts = asked.iter().filter_map(|name| self.scripts.by_id(ScriptKind::Function, name));
        let functions: Vec<Function> = scripts
            .map(|script| {
                let program = self.host.program(&self.container, script)?;
                Ok(Function { name: script.definition.id.clone(), program })
            })
            .collect::<Result<_, Failure>>()?;
        let limits = &self.host.limits;
        let memory_bytes = MEMORY_BYTES.min(limits.memory_bytes);
        Ok(Functions::new(functions.into(), memory_bytes, limits.time, self.budget.clone()))
    }
}
