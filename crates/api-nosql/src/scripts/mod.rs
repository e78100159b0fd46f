//! Scripts: procedures, triggers and user-defined functions.
//!
//! - `resources`: creating, reading, replacing and deleting them.
//! - `execute`: running a procedure. `triggers`: running triggers around the write of an item. Both are calls that
//!   the node answers which has the partition (`job`): they run on the pool's threads there, over a draft of the
//!   logical partition (`transaction`), again when somebody else was faster.
//! - `collection`: what a script may do there. `query`: its queries. `identity`: names that changed with the commit.
//! - `udfs`: functions inside of queries.

mod collection;
pub mod execute;
mod failures;
mod identity;
pub mod job;
mod query;
pub mod resources;
mod transaction;
pub mod triggers;
pub mod udfs;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use orrery_engine::{ContainerCore, Etag, Script};
use orrery_script::{Failure, Limits, Pool, PoolLimits, Program};

/// Compiled scripts that are kept.
const PROGRAMS_MAX: usize = 1_024;

/// The numbers of a database, a container and a script.
type ScriptName = (u32, u32, u64);

/// What became of one version of a script.
type Compiled = (Etag, Result<Program, Failure>);

/// What runs scripts: one per service.
pub struct ScriptHost {
    pub pool: Pool,
    pub limits: Limits,
    programs: Mutex<HashMap<ScriptName, Compiled>>,
}

impl ScriptHost {
    pub fn new(limits: Limits) -> ScriptHost {
        ScriptHost { pool: Pool::new(PoolLimits::default()), limits, programs: Mutex::default() }
    }

    /// The compiled form of a script, made when it is first needed and again when the script changes; or why there is
    /// none, which is kept too: a text may be written to keep a parser busy.
    pub fn program(&self, container: &ContainerCore, script: &Script) -> Result<Program, Failure> {
        let key = (container.database().number, container.number(), script.number);
        // A panic while the lock is held leaves a map that is still a map.
        let known = || self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((etag, program)) = known().get(&key)
            && *etag == script.etag
        {
            return program.clone();
        }
        let program = Program::compile(&script.definition.id, &script.definition.body);
        let mut programs = known();
        if programs.len() >= PROGRAMS_MAX
            && let Some(victim) = programs.keys().next().copied()
        {
            programs.remove(&victim);
        }
        programs.insert(key, (script.etag, program.clone()));
        program
    }
}

/// What a job on a script thread takes along.
pub(crate) type Host = Arc<ScriptHost>;
