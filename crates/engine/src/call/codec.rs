//! Requests and answers as bytes.
//!
//! ```text
//! frame     length u32 of what follows | version u8 | call u64 | body
//! request   1 | database u32 | container u32 | range u32 | variant u8 | fields
//! cancel    2
//! answer    variant u8 | fields
//! ```
//!
//! The version is that of everything behind it: a field that comes or goes makes another. Nodes of one cluster may
//! differ by one version while it is being updated; a frame of a version that a node does not know ends the
//! connection, because nothing in it can be trusted to be where it seems.

use bytes::Bytes;
use orrery_budget::{Budget, Exceeded, MemoryPool, Remaining};

use super::wire::{Wire, record, variants};
use super::{Answer, Call, PartitionAddress, PartitionStatus, Reply, Request};
use crate::attachment::{Attached, AttachmentChange, AttachmentContent, AttachmentName, Media};
use crate::batch::{BatchReply, OperationResult};
use crate::condition::Condition;
use crate::container::Usage;
use crate::error::{Error, Kind};
use crate::etag::Etag;
use crate::feed::ChangesFrom;
use crate::item::{Item, ItemReply, Operation, Outcome, Position, ReadOptions, Write, WriteAck, WriteReply};
use crate::partition::{
    ChangeKind, ClaimsState, ItemVersion, PageLimits, PartitionChanges, PartitionPage, PartitionVersions,
    ScanPosition, Span,
};
use crate::script_call::{
    ScriptAnswer, ScriptCall, ScriptFailure, ScriptFailureKind, ScriptReply, ScriptStop, ScriptWork,
};
use crate::throughput::{HotKey, LargeKey, PartitionInsight, RequestClass};

const VERSION: u8 = 3;
/// The length in front of a frame.
pub(super) const LENGTH_BYTES: usize = 4;
/// Largest frame. A page of items ends after 4 MB and one item with all its attachments has less than 8 MB.
pub(super) const FRAME_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What stands in front of every body: which call it belongs to.
pub(super) struct Frame<T> {
    pub(super) call: u64,
    pub(super) body: T,
}

/// The bytes are no frame that this version knows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

impl<T: Wire> Frame<T> {
    /// The frame with its length in front; `None` when it is too large to be sent.
    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        let mut out = vec![0; LENGTH_BYTES];
        VERSION.put(&mut out);
        self.call.put(&mut out);
        self.body.put(&mut out);
        let length = out.len() - LENGTH_BYTES;
        if length > FRAME_BYTES_MAX {
            return None;
        }
        out[..LENGTH_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
        Some(out)
    }

    /// Reads what came behind the length: all of it, or it is no frame.
    pub(super) fn decode(mut bytes: Bytes) -> Result<Frame<T>, Unreadable> {
        let mut read = || {
            u8::take(&mut bytes).filter(|version| *version == VERSION)?;
            Some(Frame { call: Wire::take(&mut bytes)?, body: Wire::take(&mut bytes)? })
        };
        let frame = read().ok_or(Unreadable)?;
        if bytes.is_empty() { Ok(frame) } else { Err(Unreadable) }
    }
}

record! {
    PartitionAddress { database, container, range }
    RequestClass { low_priority, bucket, reads_twice }
    ReadOptions { if_none_match, session, class }
    Write { operation, if_match, if_none_match, session, class }
    AttachmentContent { id, content_type, members, media }
    PageLimits { items, bytes }
    Usage { items, size_bytes }
    Position { range_id, lsn, item_lsn, usage }
    Attached { lsn, sub, section }
    Item { number, lsn, sub, ts, etag, ttl, late_members, merged, attached, document }
    ItemReply { item, charge_ru, at }
    WriteReply { outcome, item, charge_ru, at }
    WriteAck { charge_ru, at }
    OperationResult { status, item, charge_ru }
    BatchReply { results, committed, charge_ru, at }
    PartitionPage { items, next, at }
    PartitionChanges { items, lsn, more, at }
    ItemVersion { kind, lsn, ts, previous_lsn, current, previous }
    PartitionVersions { versions, lsn, at }
    PartitionStatus { at, index_progress }
    ClaimsState { complete, duplicate }
    HotKey { key, share }
    LargeKey { key, size_bytes, items }
    ScriptFailure { kind, exception, stack, number }
    PartitionInsight {
        database, container, range_id, min, max, items, size_bytes, size_limit_bytes, share_ru, shared, consumed_ru,
        requests, throttled, rate_ru, peak_ru, hot, largest, surveyed,
    }
}

variants! {
    Request {
        1 => ReadItem { key, epk, id, options },
        2 => FindItem { epk, number },
        3 => StoredBytes { key, epk, id },
        4 => WriteItem { key, epk, write },
        5 => WriteBatch { key, epk, operations },
        6 => WriteBulk { operations, continue_on_error },
        7 => DeletePartitionKey { key, epk },
        8 => ScanItems { span, from, limits, session },
        9 => ReadChanges { span, from, limits, session },
        10 => ReadVersions { span, after, limits, session },
        11 => ReadStatus { session },
        12 => Admit { class },
        13 => Charge { class, charge_ru, key },
        14 => ReadInsight { keys },
        15 => RunScript { key, epk, call },
        16 => QueryPage(call),
        17 => BuildClaims,
    }
    Reply {
        1 => Item(item),
        2 => ItemFound(key, id),
        3 => StoredBytes(bytes),
        4 => Written(reply),
        5 => BatchWritten(reply),
        6 => PartitionKeyDeleted(ack),
        7 => Items(page),
        8 => Changes(page),
        9 => Versions(page),
        10 => Status(status),
        11 => Done,
        12 => Insight(insight),
        13 => ScriptRun(reply),
        14 => QueryPage(reply),
        15 => QueryFailed(failure),
        16 => Claims(state),
    }
    Answer { 1 => Done(reply), 2 => Failed(error), 3 => Moved }
    Call { 1 => Ask(to, request), 2 => Cancel }
    Operation {
        1 => Create { id, document },
        2 => Upsert { id, document },
        3 => Replace { id, document },
        4 => Patch { id, operations, condition },
        5 => Delete { id },
        6 => Read { id },
        7 => Attach { id, change },
    }
    AttachmentChange {
        1 => Create(content),
        2 => Upsert(content),
        3 => Replace(name, content),
        4 => ReplaceMedia(name, content_type, media),
        5 => Delete(name),
    }
    AttachmentName { 1 => Id(id), 2 => Number(number) }
    Media { 1 => Link(link), 2 => Stored(media) }
    Span { 1 => All, 2 => Epk { min, max }, 3 => Key { epk, key } }
    ScanPosition { 1 => Start, 2 => Created { after }, 3 => Keyed { after } }
    ChangesFrom { 1 => Beginning, 2 => Now, 3 => Time(second), 4 => After(lsn) }
    ScriptWork { 1 => Procedure { id, arguments }, 2 => Triggers { write, pre, post } }
    ScriptAnswer { 1 => Procedure { body }, 2 => Triggers { outcome, etag, body } }
    ScriptStop { 1 => Failed(failure), 2 => Engine(error), 3 => Busy, 4 => Stuck, 5 => Closed }
    ScriptFailureKind {
        1 => Compile,
        2 => Threw,
        3 => OutOfMemory,
        4 => TimedOut,
        5 => ResultTooLarge,
        6 => Exceeded(exceeded),
    }
    Exceeded {
        1 => RequestMemory { limit_bytes },
        2 => ProcessMemory { limit_bytes },
        3 => Answer { limit_bytes },
        4 => Steps { limit },
        5 => Time,
        6 => ClientGone,
    }
    Outcome { 1 => Created, 2 => Replaced, 3 => Deleted, 4 => Read }
    ChangeKind { 1 => Create, 2 => Replace, 3 => Delete, 4 => Expire, 5 => Purge, 6 => Leave }
    Kind {
        1 => NotFound,
        2 => OwnerNotFound,
        3 => AlreadyExists,
        4 => UniqueKeyViolated,
        5 => PreconditionFailed,
        6 => PatchConditionFailed,
        7 => NotModified,
        8 => BadRequest,
        9 => PartitionKeyMismatch,
        10 => StaleContainer,
        11 => RangeGone,
        12 => SessionAhead,
        13 => TooLarge,
        14 => Forbidden,
        15 => PartitionFull,
        16 => Throttled { retry_after_ms },
        17 => Conflict,
        18 => FailedDependency,
        19 => MethodNotAllowed,
        20 => WritesStopped,
        21 => NoRoom,
        22 => Unavailable,
        23 => Internal,
        24 => PartitionKeyTooShort,
        25 => PartitionKeyTooLong,
        26 => AccessDenied,
        27 => OutcomeUnknown,
    }
}

/// With what is left of the budget of the request. Whoever answers takes it out of its own memory.
impl Wire for ScriptCall {
    fn put(&self, out: &mut Vec<u8>) {
        self.work.put(out);
        self.session.put(out);
        self.class.put(out);
        self.logging.put(out);
        self.now_ticks.put(out);
        self.random_seed.put(out);
        self.budget.as_ref().map(Budget::remaining).put(out);
    }

    fn take(from: &mut Bytes) -> Option<ScriptCall> {
        Some(ScriptCall {
            work: Wire::take(from)?,
            session: Wire::take(from)?,
            class: Wire::take(from)?,
            logging: Wire::take(from)?,
            now_ticks: Wire::take(from)?,
            random_seed: Wire::take(from)?,
            budget: <Option<Remaining> as Wire>::take(from)?
                .map(|left| Budget::with(MemoryPool::unlimited(), left.limits(), None)),
        })
    }
}

/// Without what the request is charged for it where it was made.
impl Wire for ScriptReply {
    fn put(&self, out: &mut Vec<u8>) {
        self.result.put(out);
        self.log.put(out);
        self.charge_ru.put(out);
        self.at.put(out);
    }

    fn take(from: &mut Bytes) -> Option<ScriptReply> {
        Some(ScriptReply {
            result: Wire::take(from)?,
            log: Wire::take(from)?,
            charge_ru: Wire::take(from)?,
            at: Wire::take(from)?,
            held: None,
        })
    }
}

/// The data alone: what was compiled of it stays where it was compiled. What its request has left goes along.
impl Wire for Condition {
    fn put(&self, out: &mut Vec<u8>) {
        self.text.put(out);
        self.now_ticks.put(out);
        self.random_seed.put(out);
        self.left().put(out);
    }

    fn take(from: &mut Bytes) -> Option<Condition> {
        let text: String = Wire::take(from)?;
        Some(Condition::new(text, Wire::take(from)?, Wire::take(from)?).within(Wire::take(from)?))
    }
}

impl Wire for Etag {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }

    fn take(from: &mut Bytes) -> Option<Etag> {
        let etag = Etag::from_bytes(*from.first_chunk()?);
        bytes::Buf::advance(from, size_of::<Etag>());
        Some(etag)
    }
}

/// The cause is for the log, which is as well served with its text.
impl Wire for Error {
    fn put(&self, out: &mut Vec<u8>) {
        self.kind.put(out);
        self.message.put(out);
        self.cause.as_ref().map(ToString::to_string).put(out);
        self.charge_ru.put(out);
        self.at.put(out);
    }

    fn take(from: &mut Bytes) -> Option<Error> {
        let kind = Wire::take(from)?;
        let message = Wire::take(from)?;
        let cause: Option<String> = Wire::take(from)?;
        let (charge_ru, at) = (Wire::take(from)?, Wire::take(from)?);
        Some(Error { kind, message, cause: cause.map(Into::into), charge_ru, at })
    }
}
