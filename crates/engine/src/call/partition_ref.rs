//! A partition that is here or elsewhere.
//!
//! Here, a call goes straight through on the caller's thread and its future is ready when it is first polled.
//! Elsewhere, the arguments are put into a [`Request`] and the future waits for the answer. What has failed says
//! where the partition stood.

use std::sync::Arc;

use orrery_model::{Epk, PartitionKey};

use super::{Answer, AnswerFuture, Link, PartitionAddress, PartitionStatus, Reply, Request};
use crate::batch::{BatchOperation, BatchReply};
use crate::error::{Error, Kind, Result};
use crate::feed::ChangesFrom;
use crate::item::{ItemReply, Position, ReadOptions, Write, WriteAck, WriteReply};
use crate::partition::{
    ClaimsState, PageLimits, Partition, PartitionChanges, PartitionPage, PartitionVersions, ScanPosition,
    Span, Submitted, gone, settle,
};
use crate::query::{PageSink, PartitionQuery, QueryFailure, QueryPage};
use crate::script_call::{LogicalPartition, ScriptCall, ScriptReply, ScriptStop};
use crate::throughput::{PartitionInsight, RequestClass};

/// Bytes of documents on a page that is sent; a page that was to be longer goes on with the next one.
const SENT_PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

#[derive(Clone)]
pub(crate) enum PartitionRef {
    Local(Arc<Partition>),
    Remote(Arc<RemotePartition>),
}

/// A partition that another node has.
pub(crate) struct RemotePartition {
    pub(crate) address: PartitionAddress,
    pub(crate) min: Epk,
    pub(crate) max: Epk,
    pub(crate) link: Arc<dyn Link>,
}

impl RemotePartition {
    pub(super) fn send(&self, request: Request) -> AnswerFuture {
        self.link.call(self.address, request)
    }

    async fn ask<T>(&self, request: Request, reply: impl FnOnce(Reply) -> Option<T>) -> Result<T> {
        match self.send(request).await? {
            Answer::Done(found) => reply(found).ok_or_else(unexpected),
            Answer::Failed(error) => Err(error),
            Answer::Moved => Err(gone()),
        }
    }
}

/// A node that answers another question than the one that was asked is not to be trusted with either.
pub(super) fn unexpected() -> Error {
    Error::internal("The node that has the partition answered something else.")
}

/// Takes the value out of the reply that a request is answered with.
macro_rules! only {
    ($variant:ident) => {
        |reply| if let Reply::$variant(value) = reply { Some(value) } else { None }
    };
}

impl PartitionRef {
    pub(crate) fn range_id(&self) -> u32 {
        match self {
            PartitionRef::Local(partition) => partition.range_id(),
            PartitionRef::Remote(partition) => partition.address.range,
        }
    }

    /// The range of the hash space, `[min, max)`.
    pub(crate) fn bounds(&self) -> (&Epk, &Epk) {
        match self {
            PartitionRef::Local(partition) => partition.bounds(),
            PartitionRef::Remote(partition) => (&partition.min, &partition.max),
        }
    }

    pub(crate) async fn read_item(
        &self,
        key: &PartitionKey,
        epk: &Epk,
        id: &str,
        options: &ReadOptions,
    ) -> Result<ItemReply> {
        match self {
            PartitionRef::Local(partition) => {
                partition.read_item(key, epk, id, options).map_err(|error| placed(partition, error))
            }
            PartitionRef::Remote(partition) => {
                let (key, epk) = (key.clone(), epk.clone());
                let request = Request::ReadItem { key, epk, id: id.to_owned(), options: options.clone() };
                partition.ask(request, only!(Item)).await
            }
        }
    }

    /// The partition key and the id of the item with a number.
    pub(crate) async fn find_item(&self, epk: &Epk, number: u64) -> Result<(PartitionKey, String)> {
        match self {
            PartitionRef::Local(partition) => {
                partition.item_at(epk, number).map_err(|error| placed(partition, error))
            }
            PartitionRef::Remote(partition) => {
                let found = |reply| match reply {
                    Reply::ItemFound(key, id) => Some((key, id)),
                    _ => None,
                };
                partition.ask(Request::FindItem { epk: epk.clone(), number }, found).await
            }
        }
    }

    /// How large the row of an item is; 0 without one.
    pub(crate) async fn stored_bytes(&self, key: &PartitionKey, epk: &Epk, id: &str) -> Result<usize> {
        match self {
            PartitionRef::Local(partition) => partition.stored_bytes(key, epk, id),
            PartitionRef::Remote(partition) => {
                let (key, epk) = (key.clone(), epk.clone());
                let request = Request::StoredBytes { key, epk, id: id.to_owned() };
                partition.ask(request, only!(StoredBytes)).await
            }
        }
    }

    pub(crate) async fn scan_items(
        &self,
        span: &Span,
        from: &ScanPosition,
        limits: PageLimits,
        session: &[(u32, u64)],
    ) -> Result<PartitionPage> {
        match self {
            PartitionRef::Local(partition) => {
                partition.scan_items(span, from, limits, session).map_err(|error| placed(partition, error))
            }
            PartitionRef::Remote(partition) => {
                let (span, from, limits) = (span.clone(), from.clone(), sendable(limits));
                let request = Request::ScanItems { span, from, limits, session: session.to_vec() };
                partition.ask(request, only!(Items)).await
            }
        }
    }

    pub(crate) async fn read_changes(
        &self,
        span: &Span,
        from: ChangesFrom,
        limits: PageLimits,
        session: &[(u32, u64)],
    ) -> Result<PartitionChanges> {
        match self {
            PartitionRef::Local(partition) => {
                partition.read_changes(span, from, limits, session).map_err(|error| placed(partition, error))
            }
            PartitionRef::Remote(partition) => {
                let (span, limits) = (span.clone(), sendable(limits));
                let request = Request::ReadChanges { span, from, limits, session: session.to_vec() };
                partition.ask(request, only!(Changes)).await
            }
        }
    }

    pub(crate) async fn read_versions(
        &self,
        span: &Span,
        after: Option<u64>,
        limits: PageLimits,
        session: &[(u32, u64)],
    ) -> Result<PartitionVersions> {
        match self {
            PartitionRef::Local(partition) => partition
                .read_versions(span, after, limits, session)
                .map_err(|error| placed(partition, error)),
            PartitionRef::Remote(partition) => {
                let (span, limits) = (span.clone(), sendable(limits));
                let request = Request::ReadVersions { span, after, limits, session: session.to_vec() };
                partition.ask(request, only!(Versions)).await
            }
        }
    }

    /// A page of a query, with its rows for `sink`; where the partition is elsewhere, waited for on this thread.
    pub(crate) fn query_page(
        &self,
        query: &PartitionQuery<'_>,
        sink: &mut PageSink<'_>,
    ) -> Result<QueryPage, QueryFailure> {
        match self {
            PartitionRef::Local(partition) => partition.query(query, sink),
            PartitionRef::Remote(partition) => partition.send_page(query)?.receive(query.budget, sink),
        }
    }

    /// Where the partition stands, whether it is open or not.
    pub(crate) async fn position(&self) -> Result<Position> {
        match self {
            PartitionRef::Local(partition) => Ok(partition.position()),
            PartitionRef::Remote(_) => self.status(None).await.map(|status| status.at),
        }
    }

    /// Where the partition stands; for a session, if it is open and not behind that.
    pub(crate) async fn status(&self, session: Option<&[(u32, u64)]>) -> Result<PartitionStatus> {
        match self {
            PartitionRef::Local(partition) => {
                let at = match session {
                    Some(session) => {
                        partition.position_for(session).map_err(|error| placed(partition, error))?
                    }
                    None => partition.position(),
                };
                Ok(PartitionStatus { at, index_progress: partition.index_progress() })
            }
            PartitionRef::Remote(partition) => {
                let session = session.map(<[_]>::to_vec);
                partition.ask(Request::ReadStatus { session }, only!(Status)).await
            }
        }
    }

    /// Lets items claim what rules want that came after them, some at a time.
    pub(crate) async fn build_claims(&self) -> Result<ClaimsState> {
        match self {
            PartitionRef::Local(partition) => partition.build_claims(),
            PartitionRef::Remote(partition) => partition.ask(Request::BuildClaims, only!(Claims)).await,
        }
    }

    /// Lets a request in, or refuses it with the time to wait.
    pub(crate) async fn admit(&self, class: RequestClass) -> Result<()> {
        match self {
            PartitionRef::Local(partition) => {
                partition.admit(class).map_err(|error| placed(partition, error))
            }
            PartitionRef::Remote(partition) => partition.ask(Request::Admit { class }, done).await,
        }
    }

    /// Takes what a request cost out of the budget.
    pub(crate) async fn charge(
        &self,
        class: RequestClass,
        charge_ru: f64,
        key: Option<&PartitionKey>,
    ) -> Result<()> {
        match self {
            PartitionRef::Local(partition) => {
                partition.charge(class, charge_ru, key);
                Ok(())
            }
            PartitionRef::Remote(partition) => {
                partition.ask(Request::Charge { class, charge_ru, key: key.cloned() }, done).await
            }
        }
    }

    /// What the partition holds and spends, with so many of its hottest and largest keys.
    pub(crate) async fn insight(&self, keys: usize) -> Result<PartitionInsight> {
        match self {
            PartitionRef::Local(partition) => PartitionInsight::with_keys(partition, keys),
            PartitionRef::Remote(partition) => {
                partition.ask(Request::ReadInsight { keys }, only!(Insight)).await.map(|insight| *insight)
            }
        }
    }

    /// Checks and submits a bulk now; the future waits until it is durable. A handover that is under way is waited
    /// for: if it fails it leaves the range as it was, and if it succeeds the range is gone, which the request is
    /// told because it named the range.
    pub(crate) fn write_bulk(
        self,
        operations: Vec<(PartitionKey, BatchOperation)>,
        continue_on_error: bool,
    ) -> impl Future<Output = Result<BatchReply>> + Send + use<> {
        let begun = match self {
            PartitionRef::Local(partition) => {
                let submitted = partition.submit_bulk(&operations, continue_on_error);
                Ok((partition, submitted, operations))
            }
            PartitionRef::Remote(partition) => {
                Err(partition.send(Request::WriteBulk { operations, continue_on_error }))
            }
        };
        async move {
            match begun {
                Ok((partition, mut submitted, operations)) => {
                    if matches!(&submitted, (None, Err(error)) if error.kind == Kind::RangeGone)
                        && let Some(pause_end) = partition.pause_end()
                    {
                        // The sender is dropped, not used; either way the pause is over.
                        let _ = pause_end.await;
                        submitted = partition.submit_bulk(&operations, continue_on_error);
                    }
                    durable(&partition, submitted).await
                }
                Err(sent) => match sent.await? {
                    Answer::Done(Reply::BatchWritten(reply)) => Ok(reply),
                    Answer::Done(_) => Err(unexpected()),
                    Answer::Failed(error) => Err(error),
                    Answer::Moved => Err(gone()),
                },
            }
        }
    }

    /// Runs a script; `None` when nothing was done because the range has gone to other partitions.
    pub(crate) async fn run_script(
        &self,
        key: &PartitionKey,
        epk: &Epk,
        call: ScriptCall,
    ) -> Result<Option<ScriptReply>> {
        match self {
            PartitionRef::Local(partition) => {
                let host = partition.owner().hosts().script();
                let host = host.ok_or_else(|| Error::internal("This node has nothing that runs scripts."))?;
                let over = LogicalPartition::new(partition.clone(), key.clone(), epk.clone());
                let reply = host.run(over, call).await;
                // Also of a handover that has failed since: the script runs once more where it was.
                if !matches!(&reply.result, Err(ScriptStop::Engine(error)) if error.kind == Kind::RangeGone) {
                    return Ok(Some(reply));
                }
                if let Some(pause_end) = partition.pause_end() {
                    // The sender is dropped, not used; either way the pause is over.
                    let _ = pause_end.await;
                }
                Ok(None)
            }
            PartitionRef::Remote(partition) => {
                let call = Box::new(call);
                let request = Request::RunScript { key: key.clone(), epk: epk.clone(), call };
                match partition.send(request).await? {
                    Answer::Done(Reply::ScriptRun(reply)) => Ok(Some(*reply)),
                    Answer::Done(_) => Err(unexpected()),
                    Answer::Failed(error) => Err(error),
                    Answer::Moved => Ok(None),
                }
            }
        }
    }

    /// Begins a write of one key now.
    pub(crate) fn write<C: WriteCall>(self, call: &C, key: &PartitionKey, epk: &Epk) -> Written<C::Reply> {
        match self {
            PartitionRef::Local(partition) => {
                let submitted = call.submit(&partition, key, epk);
                if begins_elsewhere(&partition, &submitted) {
                    return Written::Moved(partition);
                }
                Written::Submitted(partition, submitted)
            }
            PartitionRef::Remote(partition) => Written::Sent(partition.send(call.request(key, epk))),
        }
    }
}

fn done(reply: Reply) -> Option<()> {
    matches!(reply, Reply::Done).then_some(())
}

fn sendable(limits: PageLimits) -> PageLimits {
    PageLimits { bytes: limits.bytes.min(SENT_PAGE_BYTES_MAX), ..limits }
}

/// Says where the partition stood that refused. A range that has gone stands nowhere any more.
fn placed(partition: &Partition, error: Error) -> Error {
    match (error.kind, error.at) {
        (Kind::RangeGone, _) | (_, Some(_)) => error,
        _ => error.at(partition.position()),
    }
}

/// What came of beginning a write.
pub(crate) enum Written<T> {
    Submitted(Arc<Partition>, Submitted<T>),
    Sent(AnswerFuture),
    /// Nothing was done: the partition pauses for a handover, or has gone.
    Moved(Arc<Partition>),
}

/// Whether nothing was done because the partition pauses for a handover, or has gone.
pub(super) fn begins_elsewhere<T>(partition: &Partition, submitted: &Submitted<T>) -> bool {
    matches!(submitted, (None, Err(error)) if error.kind == Kind::RangeGone) && !partition.takes_writes()
}

/// The answer to a write once it is durable, with what the partition holds by then.
pub(crate) async fn durable<T: Standing>(partition: &Partition, (ticket, answer): Submitted<T>) -> Result<T> {
    match settle(ticket, answer).await {
        Ok(mut reply) => {
            reply.position().usage = partition.usage();
            Ok(reply)
        }
        Err(error) => Err(placed(partition, error)),
    }
}

/// An answer that says where its partition stands.
pub(crate) trait Standing {
    fn position(&mut self) -> &mut Position;
}

impl Standing for WriteReply {
    fn position(&mut self) -> &mut Position {
        &mut self.at
    }
}

impl Standing for BatchReply {
    fn position(&mut self) -> &mut Position {
        &mut self.at
    }
}

impl Standing for WriteAck {
    fn position(&mut self) -> &mut Position {
        &mut self.at
    }
}

/// A write of one key: how it is done here, how it is asked for elsewhere, and what answers it.
pub(crate) trait WriteCall: Send {
    type Reply: Standing + Send;

    fn submit(&self, partition: &Partition, key: &PartitionKey, epk: &Epk) -> Submitted<Self::Reply>;

    fn request(&self, key: &PartitionKey, epk: &Epk) -> Request;

    fn reply(reply: Reply) -> Option<Self::Reply>;
}

impl WriteCall for Write {
    type Reply = WriteReply;

    fn submit(&self, partition: &Partition, key: &PartitionKey, epk: &Epk) -> Submitted<WriteReply> {
        partition.submit_item(key, epk, self)
    }

    fn request(&self, key: &PartitionKey, epk: &Epk) -> Request {
        Request::WriteItem { key: key.clone(), epk: epk.clone(), write: self.clone() }
    }

    fn reply(reply: Reply) -> Option<WriteReply> {
        only!(Written)(reply)
    }
}

/// All operations or none.
impl WriteCall for Vec<BatchOperation> {
    type Reply = BatchReply;

    fn submit(&self, partition: &Partition, key: &PartitionKey, epk: &Epk) -> Submitted<BatchReply> {
        partition.submit_batch(key, epk, self)
    }

    fn request(&self, key: &PartitionKey, epk: &Epk) -> Request {
        Request::WriteBatch { key: key.clone(), epk: epk.clone(), operations: self.clone() }
    }

    fn reply(reply: Reply) -> Option<BatchReply> {
        only!(BatchWritten)(reply)
    }
}

/// Removes every item of a logical partition.
pub(crate) struct DeletePartitionKey;

impl WriteCall for DeletePartitionKey {
    type Reply = WriteAck;

    fn submit(&self, partition: &Partition, key: &PartitionKey, epk: &Epk) -> Submitted<WriteAck> {
        partition.submit_purge(key, epk)
    }

    fn request(&self, key: &PartitionKey, epk: &Epk) -> Request {
        Request::DeletePartitionKey { key: key.clone(), epk: epk.clone() }
    }

    fn reply(reply: Reply) -> Option<WriteAck> {
        only!(PartitionKeyDeleted)(reply)
    }
}
