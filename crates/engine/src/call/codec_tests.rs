//! Every request and every answer reads back as it was written, and what was not written reads as nothing.

use std::sync::Arc;

use bytes::Bytes;
use orrery_budget::{Exceeded, Remaining};
use orrery_model::{Epk, KeyComponent, Number, PartitionKey, PatchOp, Pointer, Value};
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::codec::{FRAME_BYTES_MAX, Frame, LENGTH_BYTES};
use super::wire::Wire;
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

const KINDS: [Kind; 27] = [
    Kind::NotFound,
    Kind::OwnerNotFound,
    Kind::AlreadyExists,
    Kind::UniqueKeyViolated,
    Kind::PreconditionFailed,
    Kind::PatchConditionFailed,
    Kind::NotModified,
    Kind::BadRequest,
    Kind::PartitionKeyMismatch,
    Kind::StaleContainer,
    Kind::RangeGone,
    Kind::SessionAhead,
    Kind::TooLarge,
    Kind::Forbidden,
    Kind::PartitionFull,
    Kind::Throttled { retry_after_ms: 77 },
    Kind::Conflict,
    Kind::FailedDependency,
    Kind::MethodNotAllowed,
    Kind::WritesStopped,
    Kind::NoRoom,
    Kind::Unavailable,
    Kind::Internal,
    Kind::PartitionKeyTooShort,
    Kind::PartitionKeyTooLong,
    Kind::AccessDenied,
    Kind::OutcomeUnknown,
];

/// What the values of a case are made from.
#[derive(Debug, Clone)]
pub(super) struct Seed {
    pub(super) number: u64,
    pub(super) small: u8,
    pub(super) float: f64,
    pub(super) text: String,
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
}

pub(super) fn seeds() -> impl Strategy<Value = Seed> {
    let bytes = prop::collection::vec(any::<u8>(), 0..60);
    (any::<u64>(), any::<u8>(), -1e9..1e9f64, ".{0,20}", bytes, 0..4usize).prop_map(
        |(number, small, float, text, bytes, count)| Seed { number, small, float, text, bytes, count },
    )
}

impl Seed {
    pub(super) fn times<T>(&self, make: impl Fn() -> T) -> Vec<T> {
        (0..self.count).map(|_| make()).collect()
    }

    pub(super) fn maybe<T>(&self, make: impl FnOnce() -> T) -> Option<T> {
        self.small.is_multiple_of(2).then(make)
    }

    fn blob(&self) -> Bytes {
        Bytes::from(self.bytes.clone())
    }

    fn epk(&self) -> Epk {
        Epk(self.bytes[..].into())
    }

    fn key(&self) -> PartitionKey {
        let components = [
            KeyComponent::Undefined,
            KeyComponent::Null,
            KeyComponent::Bool(self.small > 9),
            KeyComponent::Number(self.float),
            KeyComponent::String(self.text.clone()),
        ];
        PartitionKey(components.into_iter().take(self.count + 2).collect())
    }

    fn class(&self) -> RequestClass {
        let bucket = self.maybe(|| self.small);
        RequestClass { low_priority: self.small > 99, bucket, reads_twice: self.small < 50 }
    }

    pub(super) fn session(&self) -> Vec<(u32, u64)> {
        self.times(|| (u32::from(self.small), self.number))
    }

    pub(super) fn position(&self) -> Position {
        let usage = Usage { items: self.number, size_bytes: self.number / 3 };
        Position { range_id: u32::from(self.small), lsn: self.number, item_lsn: self.number / 2, usage }
    }

    pub(super) fn error(&self) -> Error {
        let error = Error::new(KINDS[usize::from(self.small) % KINDS.len()], self.text.clone());
        let error = Error { at: self.maybe(|| self.position()), ..error.charged(self.float) };
        if self.count > 1 { error.caused_by(self.text.clone()) } else { error }
    }

    fn item(&self) -> Item {
        let section = self.blob();
        Item {
            number: self.number,
            lsn: self.number / 5,
            sub: self.small,
            ts: self.number as u32,
            etag: Etag::of_change(self.number, self.small, 7),
            ttl: self.maybe(|| self.number as i32),
            late_members: u16::from(self.small),
            merged: self.count == 1,
            attached: self.maybe(|| Arc::new(Attached { lsn: 3, sub: self.small, section })),
            document: self.blob(),
        }
    }

    pub(super) fn value(&self) -> Value {
        let number = Value::Number(Number::Int(self.number as i64));
        Value::Object(vec![
            ("a".to_owned(), Value::Array(vec![Value::Null, number])),
            ("b".to_owned(), Value::from(&*self.text)),
        ])
    }

    fn patch(&self) -> Vec<PatchOp> {
        let path = || Pointer::parse("/a~1b/0/~0").unwrap();
        vec![
            PatchOp::Add { path: path(), value: self.value() },
            PatchOp::Set { path: path(), value: Value::Bool(true) },
            PatchOp::Replace { path: path(), value: Value::Null },
            PatchOp::Remove { path: path() },
            PatchOp::Increment { path: path(), by: Number::Double(self.float) },
            PatchOp::Increment { path: path(), by: Number::UInt(u64::MAX) },
            PatchOp::Move { from: path(), path: path() },
        ]
    }

    fn content(&self, media: Option<Media>) -> AttachmentContent {
        let text = || self.text.clone();
        AttachmentContent { id: text(), content_type: text(), members: text(), media }
    }

    fn writes(&self) -> Vec<Write> {
        let id = || self.text.clone();
        let attach = |change| Operation::Attach { id: id(), change: Box::new(change) };
        let left = self.maybe(|| Remaining { memory_bytes: self.count, steps: self.number, time: None });
        let condition =
            self.maybe(|| Condition::new(self.text.clone(), self.number as i64, self.number).within(left));
        let operations = vec![
            Operation::Create { id: id(), document: self.blob() },
            Operation::Upsert { id: id(), document: self.blob() },
            Operation::Replace { id: id(), document: self.blob() },
            Operation::Patch { id: id(), operations: self.patch(), condition },
            Operation::Delete { id: id() },
            Operation::Read { id: id() },
            attach(AttachmentChange::Create(self.content(Some(Media::Link(id()))))),
            attach(AttachmentChange::Upsert(self.content(Some(Media::Stored(self.blob()))))),
            attach(AttachmentChange::Replace(AttachmentName::Number(7), self.content(None))),
            attach(AttachmentChange::ReplaceMedia(AttachmentName::Id(id()), id(), self.blob())),
            attach(AttachmentChange::Delete(AttachmentName::Id(id()))),
        ];
        let write = |operation| Write {
            operation,
            if_match: self.maybe(id),
            if_none_match: self.maybe(id),
            session: self.session(),
            class: self.class(),
        };
        operations.into_iter().map(write).collect()
    }

    pub(super) fn spans(&self) -> [Span; 3] {
        let (epk, key) = (self.epk(), self.key());
        [Span::All, Span::Epk { min: self.epk(), max: Epk::max() }, Span::Key { epk, key }]
    }

    fn requests(&self) -> Vec<Request> {
        let (key, epk, id) = (|| self.key(), || self.epk(), || self.text.clone());
        let limits = PageLimits { items: self.count, bytes: usize::MAX };
        let options =
            ReadOptions { if_none_match: self.maybe(id), session: self.session(), class: self.class() };
        let positions = [
            ScanPosition::Start,
            ScanPosition::Created { after: self.number },
            ScanPosition::Keyed { after: self.blob() },
        ];
        let starts = [
            ChangesFrom::Beginning,
            ChangesFrom::Now,
            ChangesFrom::Time(self.number as u32),
            ChangesFrom::After(self.number),
        ];
        let bulk = self.writes().into_iter().map(|write| (key(), write)).collect();
        let mut requests = vec![
            Request::ReadItem { key: key(), epk: epk(), id: id(), options },
            Request::FindItem { epk: epk(), number: self.number },
            Request::StoredBytes { key: key(), epk: epk(), id: id() },
            Request::WriteBatch { key: key(), epk: epk(), operations: self.writes() },
            Request::WriteBulk { operations: bulk, continue_on_error: self.count == 2 },
            Request::DeletePartitionKey { key: key(), epk: epk() },
            Request::ReadStatus { session: self.maybe(|| self.session()) },
            Request::BuildClaims,
            Request::Admit { class: self.class() },
            Request::Charge { class: self.class(), charge_ru: self.float, key: self.maybe(key) },
            Request::ReadInsight { keys: self.count },
        ];
        let scripts = self.scripts().into_iter();
        requests.extend(scripts.map(|call| Request::RunScript {
            key: key(),
            epk: epk(),
            call: Box::new(call),
        }));
        let writes = self.writes().into_iter();
        requests.extend(writes.map(|write| Request::WriteItem { key: key(), epk: epk(), write }));
        for span in self.spans() {
            let session = || self.session();
            let scan = |from: &ScanPosition| Request::ScanItems {
                span: span.clone(),
                from: from.clone(),
                limits,
                session: session(),
            };
            requests.extend(positions.iter().map(scan));
            let changes = |from: &ChangesFrom| Request::ReadChanges {
                span: span.clone(),
                from: *from,
                limits,
                session: session(),
            };
            requests.extend(starts.iter().map(changes));
            let after = self.maybe(|| self.number);
            requests.push(Request::ReadVersions { span: span.clone(), after, limits, session: session() });
        }
        requests.extend(self.page_requests());
        requests
    }

    fn scripts(&self) -> Vec<ScriptCall> {
        let texts = || self.times(|| self.text.clone());
        let procedure = ScriptWork::Procedure { id: self.text.clone(), arguments: self.text.clone() };
        let triggers = self.writes().into_iter().map(|write| ScriptWork::Triggers {
            write: Box::new(write),
            pre: texts(),
            post: texts(),
        });
        let call = |work| ScriptCall {
            work,
            session: self.session(),
            class: self.class(),
            logging: self.count == 1,
            now_ticks: self.number as i64,
            random_seed: self.number,
            budget: None,
        };
        triggers.chain([procedure]).map(call).collect()
    }

    fn script_replies(&self) -> Vec<ScriptReply> {
        let (text, body) = (|| self.text.clone(), || self.maybe(|| self.text.clone()));
        let limit_bytes = self.count;
        let exceeded = [
            Exceeded::RequestMemory { limit_bytes },
            Exceeded::ProcessMemory { limit_bytes },
            Exceeded::Answer { limit_bytes },
            Exceeded::Steps { limit: self.number },
            Exceeded::Time,
            Exceeded::ClientGone,
        ];
        use ScriptFailureKind::{Compile, OutOfMemory, ResultTooLarge, Threw, TimedOut};
        let kinds = [Compile, Threw, OutOfMemory, TimedOut, ResultTooLarge];
        let kinds = kinds.into_iter().chain(exceeded.map(ScriptFailureKind::Exceeded));
        let failure = |kind| {
            let number = self.maybe(|| self.number as u32);
            Err(ScriptStop::Failed(ScriptFailure { kind, exception: text(), stack: text(), number }))
        };
        let mut results: Vec<_> = kinds.map(failure).collect();
        results.push(Ok(ScriptAnswer::Procedure { body: body() }));
        results.push(Ok(ScriptAnswer::Triggers { outcome: Outcome::Replaced, etag: body(), body: body() }));
        results.push(Err(ScriptStop::Engine(self.error())));
        results.extend([ScriptStop::Busy, ScriptStop::Stuck, ScriptStop::Closed].map(Err));
        let (at, charge_ru) = (self.position(), self.float);
        results
            .into_iter()
            .map(|result| ScriptReply { result, log: text(), charge_ru, at, held: None })
            .collect()
    }

    fn insight(&self) -> PartitionInsight {
        PartitionInsight {
            database: self.text.clone(),
            container: self.text.clone(),
            range_id: 3,
            min: Epk::MIN,
            max: self.epk(),
            items: self.number,
            size_bytes: 1,
            size_limit_bytes: 2,
            share_ru: self.float,
            shared: true,
            consumed_ru: 1.5,
            requests: 4,
            throttled: 5,
            rate_ru: 2.5,
            peak_ru: 3.5,
            hot: self.times(|| HotKey { key: self.key(), share: 0.5 }),
            largest: self.times(|| LargeKey { key: self.key(), size_bytes: 9, items: self.number }),
            surveyed: 1.0,
        }
    }

    fn answers(&self) -> Vec<Answer> {
        let (at, charge_ru, lsn) = (self.position(), self.float, self.number);
        let outcomes = [Outcome::Created, Outcome::Replaced, Outcome::Deleted, Outcome::Read];
        let mut results: Vec<_> = outcomes
            .map(|outcome| OperationResult {
                status: Ok(outcome),
                item: self.maybe(|| self.item()),
                charge_ru,
            })
            .into();
        results.push(OperationResult { status: Err(self.error()), item: None, charge_ru });
        use ChangeKind::{Create, Delete, Expire, Leave, Purge, Replace};
        let version = |kind| ItemVersion {
            kind,
            lsn,
            ts: 7,
            previous_lsn: lsn / 2,
            current: self.maybe(|| self.item()),
            previous: Some(self.item()),
        };
        let versions = [Create, Delete, Expire, Leave, Purge, Replace].map(version).into();
        let items = || self.times(|| self.item());
        let reply = WriteReply { outcome: Outcome::Created, item: self.maybe(|| self.item()), charge_ru, at };
        let next = self.maybe(|| ScanPosition::Keyed { after: self.blob() });
        let replies = vec![
            Reply::Item(ItemReply { item: self.item(), charge_ru, at }),
            Reply::ItemFound(self.key(), self.text.clone()),
            Reply::StoredBytes(self.count),
            Reply::Written(reply),
            Reply::BatchWritten(BatchReply { results, committed: self.count == 0, charge_ru, at }),
            Reply::PartitionKeyDeleted(WriteAck { charge_ru, at }),
            Reply::Items(PartitionPage { items: items(), next, at }),
            Reply::Changes(PartitionChanges { items: items(), lsn, more: self.count == 1, at }),
            Reply::Versions(PartitionVersions { versions, lsn, at }),
            Reply::Status(PartitionStatus { at, index_progress: self.small }),
            Reply::Done,
            Reply::Claims(ClaimsState {
                complete: self.count == 0,
                duplicate: self.maybe(|| (self.small.into(), self.text.clone())),
            }),
            Reply::Insight(Box::new(self.insight())),
        ];
        let scripts = self.script_replies().into_iter().map(|reply| Reply::ScriptRun(Box::new(reply)));
        let kinds = KINDS.map(|kind| Answer::Failed(Error { kind, ..self.error() }));
        let pages = self.page_replies();
        replies
            .into_iter()
            .chain(scripts)
            .chain(pages)
            .map(Answer::Done)
            .chain(kinds)
            .chain([Answer::Moved])
            .collect()
    }
}

/// Writes a value, reads it back, and writes that: the same text and the same bytes, and nothing that is shorter or
/// longer.
pub(super) fn round_trip<T: Wire + std::fmt::Debug>(body: T) {
    let bytes = Frame { call: 42, body: &Sent(&body) }.encode().unwrap();
    let frame = Bytes::from(bytes).split_off(LENGTH_BYTES);
    let read = Frame::<T>::decode(frame.clone()).unwrap_or_else(|_| panic!("{body:?} does not read"));
    assert_eq!(read.call, 42);
    assert_eq!(format!("{:?}", read.body), format!("{body:?}"));
    let again = Frame { call: 42, body: read.body }.encode().unwrap();
    assert_eq!(&again[LENGTH_BYTES..], &frame[..]);
    for length in 0..frame.len() {
        assert!(
            Frame::<T>::decode(frame.slice(..length)).is_err(),
            "cut at {length} of {}: {body:?}",
            frame.len()
        );
    }
    let mut longer = frame.to_vec();
    longer.push(0);
    assert!(Frame::<T>::decode(longer.into()).is_err());
}

/// A value that is still needed when it has been written.
struct Sent<'v, T>(&'v T);

impl<T: Wire> Wire for &Sent<'_, T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
    }

    fn take(_: &mut Bytes) -> Option<Self> {
        None
    }
}

const HOME: PartitionAddress = PartitionAddress { database: 1, container: 2, range: 3 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn requests_read_back_as_they_were_written(seed in seeds()) {
        seed.requests().into_iter().for_each(|request| round_trip(Call::Ask(HOME, Box::new(request))));
        round_trip(Call::Cancel);
    }

    #[test]
    fn answers_read_back_as_they_were_written(seed in seeds()) {
        seed.answers().into_iter().for_each(round_trip);
    }

    #[test]
    fn what_was_damaged_on_its_way_is_an_error_or_another_value(
        seed in seeds(), at: prop::sample::Index, bit in 0..8u8,
    ) {
        for request in seed.requests() {
            let mut bytes = Frame { call: 1, body: Call::Ask(HOME, Box::new(request)) }.encode().unwrap().split_off(LENGTH_BYTES);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let _ = Frame::<Call>::decode(bytes.into());
        }
        for answer in seed.answers() {
            let mut bytes = Frame { call: 1, body: answer }.encode().unwrap().split_off(LENGTH_BYTES);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let _ = Frame::<Answer>::decode(bytes.into());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn foreign_bytes_are_no_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200), known: bool) {
        if known && let Some(version) = bytes.first_mut() {
            *version = 2;
        }
        let bytes = Bytes::from(bytes);
        let _ = Frame::<Call>::decode(bytes.clone());
        let _ = Frame::<Answer>::decode(bytes);
    }
}

#[test]
fn a_frame_of_another_version_is_not_read() {
    let mut frame = Frame { call: 1, body: Answer::Moved }.encode().unwrap().split_off(LENGTH_BYTES);
    assert!(Frame::<Answer>::decode(frame.clone().into()).is_ok());
    frame[0] += 1;
    assert!(Frame::<Answer>::decode(frame.into()).is_err());
}

#[test]
fn the_form_of_a_version_never_changes() {
    let text = "text".to_owned();
    let seed = Seed { number: 7, small: 4, float: 1.5, text, bytes: vec![1, 2, 3], count: 2 };
    let mut hash = Sha256::new();
    for request in seed.requests() {
        hash.update(Frame { call: 1, body: Call::Ask(HOME, Box::new(request)) }.encode().unwrap());
    }
    for answer in seed.answers() {
        hash.update(Frame { call: 1, body: answer }.encode().unwrap());
    }
    let form: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        form, "63dca19aff19fce2",
        "another form is another version: raise VERSION, then write this down"
    );
}

#[test]
fn a_list_that_announces_more_than_there_is_takes_no_memory() {
    let mut body = Vec::new();
    u32::MAX.put(&mut body);
    body.extend_from_slice(&[0; 64]);
    assert!(Vec::<u8>::take(&mut body.into()).is_none());
}

#[test]
fn what_is_too_large_is_not_sent() {
    assert!(Frame { call: 1, body: Bytes::from(vec![0; FRAME_BYTES_MAX]) }.encode().is_none());
}
