//! Calls of a partition as data: what can be asked of it, what it answers, and asking without knowing where it is.
//!
//! ```text
//! Container ── PartitionRef ─┬─ Local   Arc<Partition>, called straight through: nothing is built, boxed or sent
//!                            └─ Remote  Request ── Link ── … bytes … ── serve ── Partition ── Answer ── back
//! ```
//!
//! - `container`: the calls of a container, routed. `partition_ref`: the facade that they go through.
//! - [`Request`], [`Reply`], [`Answer`]: plain values; this file. `codec`, `query_codec`, `wire`: the same as bytes,
//!   versioned.
//! - `query_page`: a page of a query, asked for elsewhere and made for others; `statement_cache`: what it was
//!   compiled to.
//! - `serve`: answers a request with the partition that it names. `loopback`: a [`Link`] that leads back into this
//!   process, through a pipe and as bytes, so that tests of the engine can be run as if every partition were
//!   elsewhere.
//!
//! What the owner of a partition does by itself is no call and stays with [`Partition`](crate::partition::Partition):
//! upkeep, splits and merges, checks.

mod codec;
#[cfg(test)]
mod codec_tests;
mod container;
mod loopback;
mod partition_ref;
mod query_codec;
#[cfg(test)]
mod query_codec_tests;
mod query_page;
mod serve;
mod statement_cache;
mod wire;

use std::future::Future;
use std::pin::Pin;

use orrery_model::{Epk, PartitionKey};

use crate::batch::{BatchOperation, BatchReply};
use crate::error::{Error, Result};
use crate::feed::ChangesFrom;
use crate::item::{ItemReply, Position, ReadOptions, SessionRequirement, Write, WriteAck, WriteReply};
use crate::partition::{
    ClaimsState, PageLimits, PartitionChanges, PartitionPage, PartitionVersions, ScanPosition, Span,
};
use crate::query::QueryFailure;
use crate::script_call::{ScriptCall, ScriptReply};
use crate::throughput::{PartitionInsight, RequestClass};

use query_page::{PageCall, PageReply};

pub(crate) use loopback::Loopback;
pub use loopback::PagesSent;
pub(crate) use partition_ref::PartitionRef;
pub(crate) use query_page::SentPage;
pub(crate) use statement_cache::StatementCache;

/// Which partition a call is for, in a cluster of which every node has the same catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PartitionAddress {
    /// The numbers of the database and of the container in it.
    pub(crate) database: u32,
    pub(crate) container: u32,
    pub(crate) range: u32,
}

/// Everything that can be asked of a partition. `epk` is where the key of the request lies in the hash space: whoever
/// routed the request has computed it.
#[derive(Debug)]
pub(crate) enum Request {
    ReadItem {
        key: PartitionKey,
        epk: Epk,
        id: String,
        options: ReadOptions,
    },
    /// The key and the id of the item with a number.
    FindItem {
        epk: Epk,
        number: u64,
    },
    /// How large the row of an item is.
    StoredBytes {
        key: PartitionKey,
        epk: Epk,
        id: String,
    },
    WriteItem {
        key: PartitionKey,
        epk: Epk,
        write: Write,
    },
    WriteBatch {
        key: PartitionKey,
        epk: Epk,
        operations: Vec<BatchOperation>,
    },
    WriteBulk {
        operations: Vec<(PartitionKey, BatchOperation)>,
        continue_on_error: bool,
    },
    DeletePartitionKey {
        key: PartitionKey,
        epk: Epk,
    },
    ScanItems {
        span: Span,
        from: ScanPosition,
        limits: PageLimits,
        session: SessionRequirement,
    },
    ReadChanges {
        span: Span,
        from: ChangesFrom,
        limits: PageLimits,
        session: SessionRequirement,
    },
    ReadVersions {
        span: Span,
        after: Option<u64>,
        limits: PageLimits,
        session: SessionRequirement,
    },
    /// Where the partition stands; for a session, if it is not ahead of that.
    ReadStatus {
        session: Option<SessionRequirement>,
    },
    /// Whether a request of this class is let in.
    Admit {
        class: RequestClass,
    },
    /// What a request that was let in has cost.
    Charge {
        class: RequestClass,
        charge_ru: f64,
        key: Option<PartitionKey>,
    },
    /// A script over a logical partition.
    RunScript {
        key: PartitionKey,
        epk: Epk,
        call: Box<ScriptCall>,
    },
    /// What the partition holds and spends, with so many of its hottest and largest keys.
    ReadInsight {
        keys: usize,
    },
    QueryPage(Box<PageCall>),
    /// Lets items claim what rules want that came after them.
    BuildClaims,
}

impl Request {
    /// Whether it may take so long that giving it up is worth a message.
    pub(crate) fn is_lengthy(&self) -> bool {
        matches!(self, Request::QueryPage(_) | Request::RunScript { .. })
    }

    /// Whether it may change something: then nobody knows whether it has, where no answer comes.
    pub(crate) fn may_write(&self) -> bool {
        matches!(
            self,
            Request::WriteItem { .. }
                | Request::WriteBatch { .. }
                | Request::WriteBulk { .. }
                | Request::DeletePartitionKey { .. }
                | Request::RunScript { .. }
                | Request::BuildClaims
        )
    }
}

/// What comes back: one variant for each of [`Request`], except that all that says no more than "done" is one.
#[derive(Debug)]
pub(crate) enum Reply {
    Item(ItemReply),
    ItemFound(PartitionKey, String),
    StoredBytes(usize),
    Written(WriteReply),
    BatchWritten(BatchReply),
    PartitionKeyDeleted(WriteAck),
    Items(PartitionPage),
    Changes(PartitionChanges),
    Versions(PartitionVersions),
    Status(PartitionStatus),
    Done,
    Insight(Box<PartitionInsight>),
    ScriptRun(Box<ScriptReply>),
    QueryPage(Box<PageReply>),
    QueryFailed(Box<QueryFailure>),
    Claims(ClaimsState),
}

/// Where a partition stands, what it holds and how far its index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionStatus {
    pub(crate) at: Position,
    /// How much of the index follows the present indexing policy, in percent.
    pub(crate) index_progress: u8,
}

/// How a call ended where the partition is.
#[derive(Debug)]
pub(crate) enum Answer {
    Done(Reply),
    Failed(Error),
    /// Nothing was done: the range has gone to other partitions. The caller routes the request again.
    Moved,
}

/// An answer on its way.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Result<Answer>> + Send>>;

/// What a node is sent.
#[derive(Debug)]
pub(crate) enum Call {
    Ask(PartitionAddress, Box<Request>),
    /// Nobody waits for the answer to the call of this number any more.
    Cancel,
}

/// A way to the node that has a partition.
pub(crate) trait Link: Send + Sync {
    /// Sends a request now; the future is ready when its answer has come, or when it is known that none will.
    /// Requests of one caller to one partition arrive in the order in which they were sent. A future that is dropped
    /// before tells the node so, where that can save it work.
    fn call(&self, to: PartitionAddress, request: Request) -> AnswerFuture;
}
