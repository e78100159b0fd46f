//! Several operations in one request: transactional batches and bulks.
//!
//! A body is in one of two forms, and its answer is in the same: JSON (`json_form`), or rows (`row_form`), which is
//! what .NET sends. Both become the same list of operations.
//!
//! An atomic batch names its partition key in the header, a bulk names a range and gives each operation its key as
//! text. The status is 200 when every operation succeeded, else 207 and the operations say more.

mod json_form;
mod row_form;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use orrery_engine::{BatchReply, Item, Kind, Operation, OperationResult, Outcome, Write};
use orrery_model::{DocWriter, Kind as ValueKind, PartitionKey, Raw};

use crate::errors::{ApiError, KEY_MISMATCH, Plane, Result, status_of, substatus, words};
use crate::headers::{self, Answer, BATCH_ATOMIC, BATCH_CONTINUE, RANGE_ID};
use crate::item_json::{SYSTEM_PROPERTIES, size_hint};
use crate::items::{self, ITEM_IN_PLACE_BYTES, at, failed, id_of, place, wants_body};
use crate::service::{Context, Target};
use crate::{consistency, hybrid_row, paging, patch, query, request_class, scope};

/// The service's limit for the body of a batch.
const BATCH_BYTES_MAX: usize = 2 * 1024 * 1024;

/// An operation as it was sent.
struct Decoded {
    write: Write,
    /// Bulk operations carry their own key.
    key: Option<PartitionKey>,
    minimal: bool,
}

pub async fn execute(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::header_key(context)?;
    let form = if hybrid_row::is_stream(context.body) { Form::Rows } else { Form::Json };
    if context.body.len() > BATCH_BYTES_MAX {
        let error = orrery_engine::Error::new(Kind::TooLarge, "Request size is too large");
        return Err(ApiError::from_engine(error, Plane::Items));
    }
    // Errors about the batch as a whole carry no charge, as on the service.
    let whole = |mut error: ApiError| {
        error.charge_ru = None;
        error
    };
    let operations = decode(context, &target, form).map_err(whole)?;
    let atomic = context.flag(BATCH_ATOMIC);
    for operation in &operations {
        // A batch is written under the key of the request, whatever its operations say; bulk operations have their
        // own.
        let own = operation.key.as_ref().filter(|_| !atomic);
        context.limits.permits_key(own.unwrap_or(&key))?;
    }
    let minimal: Vec<bool> = operations.iter().map(|operation| operation.minimal).collect();
    let reply = if atomic {
        let partial = key.0.len() < target.container.definition().partition_key.paths.len();
        if partial && !target.container.definition().partition_key.system_key {
            let error = ApiError::bad_request(KEY_MISMATCH).substatus(substatus::PARTITION_KEY_MISMATCH);
            return Err(error.at(place(&target, &key)));
        }
        let writes: Vec<_> = operations.into_iter().map(|operation| operation.write).collect();
        let container = &target.container;
        let stored = writes.iter().map(|write| container.stored_bytes(&key, &write.operation));
        let written = match stored.sum::<usize>() > ITEM_IN_PLACE_BYTES {
            true => context.lengthy(|| container.write_batch(&key, writes)),
            false => container.write_batch(&key, writes),
        };
        written.await
    } else {
        let range = match context.text(RANGE_ID) {
            Some(text) => scope::range_id(text)?,
            None => place(&target, &key).range.unwrap_or(0),
        };
        let writes: Vec<_> = operations
            .into_iter()
            .map(|operation| (operation.key.unwrap_or_else(|| key.clone()), operation.write))
            .collect();
        let (container, go_on) = (&target.container, context.flag(BATCH_CONTINUE));
        let stored = writes.iter().map(|(key, write)| container.stored_bytes(key, &write.operation));
        let written = match stored.sum::<usize>() > ITEM_IN_PLACE_BYTES {
            true => context.lengthy(|| container.write_bulk(range, writes, go_on)),
            false => container.write_bulk(range, writes, go_on),
        };
        written.await
    };
    let reply = reply.map_err(|error| whole(failed(&target, &key, error)))?;
    Ok(encode(context, &target, &reply, &minimal, form))
}

/// The forms that a batch can have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Rows,
}

#[derive(Clone, Copy)]
enum Verb {
    Create,
    Upsert,
    Replace,
    Patch,
    Delete,
    Read,
}

/// An operation as its form says it.
struct Sent<'a> {
    verb: Verb,
    id: Option<&'a str>,
    body: Option<SentBody<'a>>,
    key: Option<&'a str>,
    if_match: Option<&'a str>,
    if_none_match: Option<&'a str>,
    minimal: bool,
}

enum SentBody<'a> {
    /// A part of a larger document.
    Value(Raw<'a>),
    /// JSON of its own, as text or in the binary form.
    Bytes(&'a [u8]),
}

fn decode(context: &Context<'_>, target: &Target, form: Form) -> Result<Vec<Decoded>> {
    let stored;
    let sent: Vec<Result<Sent<'_>>> = match form {
        Form::Rows => row_form::operations(context.body)?,
        Form::Json => {
            stored = json_form::stored(context.body)?;
            json_form::operations(&stored)?
        }
    };
    let session = consistency::session(context)?;
    let class = request_class::class(context)?;
    let quiet = !wants_body(context);
    let mut operations = Vec::with_capacity(sent.len());
    for (n, sent) in sent.into_iter().enumerate() {
        let mut decoded = operation(context, n, sent?, target)?;
        decoded.minimal |= quiet;
        if n == 0 {
            decoded.write.session.clone_from(&session);
            decoded.write.class = class;
        }
        operations.push(decoded);
    }
    Ok(operations)
}

/// A long list is not even decoded; what is wrong with an empty one is for the engine to say.
fn too_many() -> ApiError {
    ApiError::bad_request("Batch request has more operations than what is supported.")
}

fn invalid(place: usize, what: &str) -> ApiError {
    ApiError::bad_request(format!("Batch operation {place} is invalid: {what}"))
}

fn operation(context: &Context<'_>, place: usize, sent: Sent<'_>, target: &Target) -> Result<Decoded> {
    let named = || sent.id.map(str::to_owned).ok_or_else(|| invalid(place, "'id' is missing."));
    let body = || sent.body.as_ref().ok_or_else(|| invalid(place, "'resourceBody' is missing."));
    let document = || match body()? {
        SentBody::Value(value) if value.kind() == ValueKind::Object => Ok(document_of(*value)),
        SentBody::Value(_) => Err(invalid(place, "'resourceBody' must be an object.")),
        SentBody::Bytes(bytes) => items::document(bytes),
    };
    let operation = match sent.verb {
        Verb::Create => {
            let document = document()?;
            Operation::Create { id: id_of(&document)?, document }
        }
        Verb::Upsert => {
            let document = document()?;
            Operation::Upsert { id: id_of(&document)?, document }
        }
        Verb::Replace => {
            let document = document()?;
            let id = sent.id.map_or_else(|| id_of(&document), |id| Ok(id.to_owned()))?;
            Operation::Replace { id, document }
        }
        Verb::Patch => {
            let compile = |text: &str| query::condition::compile(context, target, text);
            let request = match body()? {
                SentBody::Value(value) => patch::from_value(&value.to_value(), &compile)?,
                SentBody::Bytes(bytes) => patch::parse(bytes, &compile)?,
            };
            Operation::Patch { id: named()?, operations: request.operations, condition: request.condition }
        }
        Verb::Delete => Operation::Delete { id: named()? },
        Verb::Read => Operation::Read { id: named()? },
    };
    let mut write = Write::new(operation);
    write.if_match = sent.if_match.map(str::to_owned);
    write.if_none_match = sent.if_none_match.map(str::to_owned);
    let key = sent.key.map(scope::parse_key).transpose()?;
    Ok(Decoded { write, key, minimal: sent.minimal })
}

/// A document of its own, without the members that belong to the server.
fn document_of(body: Raw<'_>) -> Bytes {
    let mut writer = DocWriter::new();
    writer.begin_object();
    for (name, value) in body.members() {
        if !SYSTEM_PROPERTIES.contains(&name) {
            writer.key(name);
            writer.raw(value);
        }
    }
    writer.end_object();
    Bytes::from(writer.finish())
}

fn encode(
    context: &Context<'_>,
    target: &Target,
    reply: &BatchReply,
    minimal: &[bool],
    form: Form,
) -> Answer {
    let every = reply.results.iter().all(|result| result.status.is_ok());
    let status = if every { StatusCode::OK } else { StatusCode::MULTI_STATUS };
    let shown = |n: usize| !minimal.get(n).copied().unwrap_or(false);
    let size: usize = reply.results.iter().flat_map(|result| &result.item).map(size_hint).sum();
    // What was written is written, so a lack of memory is no reason to say otherwise; it is charged if it can be.
    let _held = paging::hold(context, 2 * size).ok();
    let results = reply.results.iter().enumerate().map(|(n, result)| Told::of(result, shown(n)));
    let out = match form {
        Form::Json => json_form::results(target, results, size),
        Form::Rows => row_form::results(target, results, size),
    };
    let mut answer = context
        .answer(status)
        .at(at(reply.at))
        .charge(reply.charge_ru)
        .owner(target.alt_path(), target.rid.as_str())
        .count(reply.results.len())
        .body(out);
    // The first failure that has a substatus speaks for the whole.
    let substatus = reply.results.iter().find_map(|result| match &result.status {
        Err(error) => Some(status_of(error.kind).1).filter(|substatus| *substatus != 0),
        Ok(_) => None,
    });
    if let Some(substatus) = substatus {
        answer = answer.set(headers::SUBSTATUS, headers::number(u64::from(substatus)));
        answer.substatus = substatus;
    }
    if form == Form::Rows {
        answer = answer.set(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    }
    answer
}

/// What a result says.
struct Told<'r> {
    status: u16,
    substatus: u32,
    /// A bad operation says what is bad about it; the other codes speak for themselves.
    message: Option<&'r str>,
    retry_after_ms: Option<u64>,
    charge_ru: f64,
    item: Option<&'r Item>,
    /// Whether the item itself is shown, not only its etag.
    shown: bool,
}

impl<'r> Told<'r> {
    fn of(result: &'r OperationResult, shown: bool) -> Told<'r> {
        let told = Told {
            status: 200,
            substatus: 0,
            message: None,
            retry_after_ms: None,
            charge_ru: result.charge_ru,
            item: result.item.as_ref(),
            shown,
        };
        match &result.status {
            Ok(Outcome::Created) => Told { status: 201, ..told },
            Ok(Outcome::Deleted) => Told { status: 204, ..told },
            Ok(Outcome::Replaced | Outcome::Read) => told,
            Err(error) => {
                let (status, substatus) = status_of(error.kind);
                let retry_after_ms = match error.kind {
                    Kind::Throttled { retry_after_ms } => Some(retry_after_ms),
                    _ => None,
                };
                let words = match error.kind {
                    // About the key of an operation, which does not come in a header.
                    Kind::PartitionKeyTooShort | Kind::PartitionKeyTooLong => Some(KEY_MISMATCH),
                    kind => words(kind, Plane::Items),
                };
                let message = (status == StatusCode::BAD_REQUEST).then_some(words.unwrap_or(&error.message));
                Told { status: status.as_u16(), substatus, message, retry_after_ms, item: None, ..told }
            }
        }
    }
}
