//! Running scripts over a logical partition: what is asked, what comes of it, and who does it.
//!
//! The engine knows no language. An account is given a [`ScriptHost`] at its start, and a call is answered by the
//! host of the node that has the partition: the script runs there, over drafts of its [`LogicalPartition`], and what
//! it has done is one commit. A call and its reply are data, except for the budget of a request that is here.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use orrery_budget::{Budget, Exceeded, Held};
use orrery_model::{Epk, PartitionKey};

use crate::container::ContainerCore;
use crate::error::{Error, Result};
use crate::item::{Outcome, Position, SessionRequirement, Write};
use crate::partition::{Draft, Drafted, Partition};
use crate::throughput::RequestClass;

/// A script that is to run.
#[derive(Debug, Clone)]
pub struct ScriptCall {
    pub work: ScriptWork,
    pub session: SessionRequirement,
    pub class: RequestClass,
    /// Whether its console is asked for.
    pub logging: bool,
    /// The time of the request, in 100-nanosecond steps since 1970, and the seed of its RAND.
    pub now_ticks: i64,
    pub random_seed: u64,
    /// Of the request, where it is in this process.
    pub budget: Option<Budget>,
}

#[derive(Debug, Clone)]
pub enum ScriptWork {
    /// Arguments are an array in JSON.
    Procedure { id: String, arguments: String },
    /// A write with triggers before and after it, by their ids.
    Triggers { write: Box<Write>, pre: Vec<String>, post: Vec<String> },
}

/// What came of a script.
#[derive(Debug)]
pub struct ScriptReply {
    pub result: Result<ScriptAnswer, ScriptStop>,
    /// What it wrote to its console.
    pub log: String,
    pub charge_ru: f64,
    pub at: Position,
    /// What the request is charged for the answer, where it is in this process.
    pub held: Option<Held>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptAnswer {
    /// JSON; `None` when the procedure set none.
    Procedure {
        body: Option<String>,
    },
    Triggers {
        outcome: Outcome,
        etag: Option<String>,
        body: Option<String>,
    },
}

/// Why nothing has happened.
#[derive(Debug)]
pub enum ScriptStop {
    Failed(ScriptFailure),
    Engine(Error),
    /// Too many scripts wait already.
    Busy,
    /// It did not stop when its time was over.
    Stuck,
    /// The node is shutting down.
    Closed,
}

/// What went wrong in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFailure {
    pub kind: ScriptFailureKind,
    pub exception: String,
    pub stack: String,
    /// The number that a thrown error carries.
    pub number: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptFailureKind {
    Compile,
    Threw,
    OutOfMemory,
    TimedOut,
    ResultTooLarge,
    Exceeded(Exceeded),
}

pub type ScriptFuture = Pin<Box<dyn Future<Output = ScriptReply> + Send>>;

/// What runs scripts on a node.
pub trait ScriptHost: Send + Sync {
    /// Begins to run a script, on a thread of its own. Where nobody waits for the future any more the script has no
    /// effect.
    ///
    /// Another writer that was faster (`Kind::Conflict`) is a reason to run it again; a partition that has gone
    /// (`Kind::RangeGone`) is told as it is.
    fn run(&self, over: LogicalPartition, call: ScriptCall) -> ScriptFuture;
}

/// The items of one partition key, for a script.
pub struct LogicalPartition {
    partition: Arc<Partition>,
    key: PartitionKey,
    epk: Epk,
}

impl LogicalPartition {
    pub(crate) fn new(partition: Arc<Partition>, key: PartitionKey, epk: Epk) -> LogicalPartition {
        LogicalPartition { partition, key, epk }
    }

    pub fn container(&self) -> &Arc<ContainerCore> {
        self.partition.owner()
    }

    /// Where its partition stands.
    pub fn position(&self) -> Position {
        self.partition.position()
    }

    /// Runs `work` on a draft and commits what it did, on this thread and until it is durable. When `work` fails
    /// nothing has happened. `Kind::Conflict` says that running it again may succeed.
    pub fn draft<T>(
        &self,
        session: &SessionRequirement,
        class: RequestClass,
        work: impl FnOnce(&mut Draft<'_>) -> Result<T>,
    ) -> Result<Drafted<T>> {
        self.partition.draft(&self.key, &self.epk, session, class, work)
    }
}
