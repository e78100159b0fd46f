//! Several operations in one request: transactional batches and bulks, in their JSON form.
//!
//! ```text
//! [{"operationType":"Create","resourceBody":{…}}, {"operationType":"Delete","id":"b","ifMatch":"…"}, …]
//! [{"statusCode":201,"requestCharge":6.29,"eTag":"…","resourceBody":{…}}, {"statusCode":204,"requestCharge":6.1}, …]
//! ```
//!
//! An atomic batch names its partition key in the header, a bulk names a range and gives each operation its key as a
//! JSON string. The status is 200 when every operation succeeded, else 207 and the operations say more. The body is
//! parsed once into the stored form; documents are then copied out of it as bytes.

use bytes::Bytes;
use http::StatusCode;
use orrery_engine::{BATCH_OPERATIONS_MAX, BatchReply, Kind, Operation, OperationResult, Outcome, Write};
use orrery_model::{DocWriter, Kind as ValueKind, ParseOptions, PartitionKey, Raw, parse_json};

use crate::errors::{
    ApiError, INPUT_INVALID, KEY_MISMATCH, PAYLOAD_INVALID, Plane, Result, status_of, substatus, words,
};
use crate::headers::{self, Answer, BATCH_ATOMIC, BATCH_CONTINUE, RANGE_ID};
use crate::item_json::{SYSTEM_PROPERTIES, size_hint, write_etag, write_item};
use crate::items::{ITEM_IN_PLACE_BYTES, at, failed, id_of, place, wants_body};
use crate::service::{Context, Target};
use crate::write::{push_full_charge, push_json_string, push_u64};
use crate::{consistency, paging, patch, query, request_class, scope};

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
    if context.body.len() > BATCH_BYTES_MAX {
        let error = orrery_engine::Error::new(Kind::TooLarge, "Request size is too large");
        return Err(ApiError::from_engine(error, Plane::Items));
    }
    // Errors about the batch as a whole carry no charge, as on the service.
    let whole = |mut error: ApiError| {
        error.charge_ru = None;
        error
    };
    let operations = decode(context, &target).map_err(whole)?;
    let atomic = context.flag(BATCH_ATOMIC);
    for operation in &operations {
        // A batch is written under the key of the request, whatever its operations say; bulk operations have their own.
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
    Ok(encode(context, &target, &reply, &minimal))
}

fn decode(context: &Context<'_>, target: &Target) -> Result<Vec<Decoded>> {
    let options = ParseOptions::default();
    let stored = parse_json(context.body, &options).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))?;
    let root = Raw::document(&stored).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))?;
    if root.kind() != ValueKind::Array {
        return Err(ApiError::bad_request(INPUT_INVALID));
    }
    // The engine says what is wrong with an empty or a long list; decoding a long one would be wasted work.
    if root.len() > BATCH_OPERATIONS_MAX {
        return Err(ApiError::bad_request("Batch request has more operations than what is supported."));
    }
    let session = consistency::session(context)?;
    let class = request_class::class(context)?;
    let quiet = !wants_body(context);
    let mut operations = Vec::with_capacity(root.len());
    for (n, element) in root.elements().enumerate() {
        let mut decoded = operation(context, n, element, target)?;
        decoded.minimal |= quiet;
        if n == 0 {
            decoded.write.session.clone_from(&session);
            decoded.write.class = class;
        }
        operations.push(decoded);
    }
    Ok(operations)
}

fn operation(context: &Context<'_>, place: usize, element: Raw<'_>, target: &Target) -> Result<Decoded> {
    let fail = |what: &str| ApiError::bad_request(format!("Batch operation {place} is invalid: {what}"));
    let text = |name: &str| element.get(name).and_then(Raw::as_str);
    let named = || text("id").map(str::to_owned).ok_or_else(|| fail("'id' is missing."));
    let body = || {
        let body = element.get("resourceBody").ok_or_else(|| fail("'resourceBody' is missing."))?;
        if body.kind() == ValueKind::Object {
            Ok(body)
        } else {
            Err(fail("'resourceBody' must be an object."))
        }
    };
    let kind = text("operationType").ok_or_else(|| fail("'operationType' is missing."))?;
    let operation = match kind.to_ascii_lowercase().as_str() {
        "create" => {
            let document = document_of(body()?);
            Operation::Create { id: id_of(&document)?, document }
        }
        "upsert" => {
            let document = document_of(body()?);
            Operation::Upsert { id: id_of(&document)?, document }
        }
        "replace" => {
            let document = document_of(body()?);
            let id = text("id").map_or_else(|| id_of(&document), |id| Ok(id.to_owned()))?;
            Operation::Replace { id, document }
        }
        "patch" => {
            let request = element.get("resourceBody").ok_or_else(|| fail("'resourceBody' is missing."))?;
            let compile = |text: &str| query::condition::compile(context, target, text);
            let request = patch::from_value(&request.to_value(), &compile)?;
            Operation::Patch { id: named()?, operations: request.operations, condition: request.condition }
        }
        "delete" => Operation::Delete { id: named()? },
        "read" => Operation::Read { id: named()? },
        _ => return Err(fail(&format!("'{kind}' is not an operation."))),
    };
    let mut write = Write::new(operation);
    write.if_match = text("ifMatch").map(str::to_owned);
    write.if_none_match = text("ifNoneMatch").map(str::to_owned);
    let key = text("partitionKey").map(scope::parse_key).transpose()?;
    let minimal = element.get("minimalReturnPreference").and_then(Raw::as_bool).unwrap_or(false);
    Ok(Decoded { write, key, minimal })
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

fn encode(context: &Context<'_>, target: &Target, reply: &BatchReply, minimal: &[bool]) -> Answer {
    let every = reply.results.iter().all(|result| result.status.is_ok());
    let status = if every { StatusCode::OK } else { StatusCode::MULTI_STATUS };
    let shown = |n: usize| !minimal.get(n).copied().unwrap_or(false);
    let size: usize = reply.results.iter().flat_map(|result| &result.item).map(size_hint).sum();
    // What was written is written, so a lack of memory is no reason to say otherwise; it is charged if it can be.
    let _held = paging::hold(context, 2 * size).ok();
    let mut out = Vec::with_capacity(size + reply.results.len() * 100);
    out.push(b'[');
    for (n, result) in reply.results.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        encode_result(&mut out, target, result, shown(n));
    }
    out.push(b']');
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
    answer
}

fn encode_result(out: &mut Vec<u8>, target: &Target, result: &OperationResult, shown: bool) {
    let (status, substatus, message, retry_after_ms) = match &result.status {
        Ok(Outcome::Created) => (201, 0, None, None),
        Ok(Outcome::Deleted) => (204, 0, None, None),
        Ok(Outcome::Replaced | Outcome::Read) => (200, 0, None, None),
        Err(error) => {
            let (status, substatus) = status_of(error.kind);
            let retry_after_ms = match error.kind {
                Kind::Throttled { retry_after_ms } => Some(retry_after_ms),
                _ => None,
            };
            // A bad operation says what is bad about it; the other codes speak for themselves.
            let words = match error.kind {
                // About the key of an operation, which does not come in a header.
                Kind::PartitionKeyTooShort | Kind::PartitionKeyTooLong => Some(KEY_MISMATCH),
                kind => words(kind, Plane::Items),
            };
            let message = (status == StatusCode::BAD_REQUEST).then_some(words.unwrap_or(&error.message));
            (status.as_u16(), substatus, message, retry_after_ms)
        }
    };
    out.extend_from_slice(b"{\"statusCode\":");
    push_u64(out, u64::from(status));
    if substatus != 0 {
        out.extend_from_slice(b",\"subStatusCode\":");
        push_u64(out, u64::from(substatus));
    }
    out.extend_from_slice(b",\"requestCharge\":");
    push_full_charge(out, result.charge_ru);
    if let Some(retry_after_ms) = retry_after_ms {
        out.extend_from_slice(b",\"retryAfterMilliseconds\":");
        push_u64(out, retry_after_ms);
    }
    if let Some(message) = message {
        out.extend_from_slice(b",\"message\":");
        push_json_string(out, message);
    }
    if result.status.is_ok()
        && let Some(item) = &result.item
    {
        out.extend_from_slice(b",\"eTag\":");
        write_etag(out, item.etag);
        if shown {
            out.extend_from_slice(b",\"resourceBody\":");
            write_item(out, &target.rid, item);
        }
    }
    out.push(b'}');
}
