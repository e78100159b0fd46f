//! Items, one at a time: read, create, upsert, replace, patch, delete.
//!
//! A handler turns headers and body into an engine operation and the engine's reply into an answer. Failed requests
//! cost something too; the engine says how much, except for bodies that never reach it.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use http::{HeaderName, HeaderValue, StatusCode};
use orrery_engine::charge::{LOOK_UP_RU, REFUSED_WRITE_RU};
use orrery_engine::{
    Error as EngineError, ITEM_BYTES_MAX, Item, Kind, Operation, Outcome, Position, ReadOptions, Usage,
    Write, WriteReply, block_on,
};
use orrery_model::{Kind as ValueKind, PartitionKey, Raw, parse_json};

use crate::body::text;
use crate::errors::{ApiError, INPUT_INVALID, PAYLOAD_INVALID, Plane, Result};
use crate::headers::{self, Answer, At};
use crate::item_json::{parse_options, size_hint, write_item};
use crate::rid::Rid;
use crate::service::{Context, Target};
use crate::write::push_u64;
use crate::{consistency, patch as patch_request, query, request_class, scope, scripts};

/// What the service allows in one partition key value, in kilobytes; -1 is no limit.
pub const QUOTA: &str =
    "documentSize=10240;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;";

pub async fn read(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::key(context)?;
    let options = ReadOptions {
        if_none_match: context.text(IF_NONE_MATCH).map(str::to_owned),
        session: consistency::session(context)?,
        class: request_class::class(context)?,
    };
    let id = item_id(context, &target, &key)?;
    match target.container.read_item(&key, &id, &options).await {
        Ok(reply) => {
            let mut body = Vec::with_capacity(size_hint(&reply.item));
            write_item(&mut body, &target.rid, &reply.item);
            let at = At { item_lsn: Some(reply.at.item_lsn), ..at(reply.at) };
            let answer = answer(context, &target, StatusCode::OK, at, reply.charge_ru);
            Ok(etag_of(answer, &reply.item).body(body))
        }
        Err(error) if error.kind == Kind::NotModified => {
            let at = place_of(&target, &key, &error);
            let answer = answer(context, &target, StatusCode::NOT_MODIFIED, at, error.charge_ru);
            // The client's own etag is the current one, or the item would have been sent.
            let known = context.text(IF_NONE_MATCH).filter(|etag| *etag != "*");
            Ok(match known {
                Some(etag) => answer.etag(etag),
                None => answer,
            })
        }
        Err(error) => Err(failed(&target, &key, error)),
    }
}

/// An item larger than this is changed where that holds up nobody: its values are compared with those of the index.
pub const ITEM_IN_PLACE_BYTES: usize = 32 * 1024;

pub async fn create_or_upsert(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::key(context)?;
    // The key is checked before the body, so that a request without one is not charged for reading it.
    check_routable(&target, &key)?;
    let document = sent_document(context).map_err(|error| refused_write(error, place(&target, &key)))?;
    let id = id_of(&document).map_err(|error| refused_write(error, place(&target, &key)))?;
    let operation = if context.action == crate::actions::Action::UpsertItem {
        Operation::Upsert { id, document }
    } else {
        Operation::Create { id, document }
    };
    write(context, &target, &key, operation).await
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::key(context)?;
    check_routable(&target, &key)?;
    let document = sent_document(context).map_err(|error| refused_write(error, place(&target, &key)))?;
    let id = item_id(context, &target, &key)?.into_owned();
    // Even the question whether another id is taken is beyond a token for one item.
    context.limits.permits_id(&id, id_of(&document).ok().as_deref())?;
    write(context, &target, &key, Operation::Replace { id, document }).await
}

pub async fn patch(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::key(context)?;
    check_routable(&target, &key)?;
    let request = check_size(context.body)
        .and_then(|()| {
            patch_request::parse(context.body, &|text| query::condition::compile(context, &target, text))
        })
        .map_err(|error| refused_write(error, place(&target, &key)))?;
    let id = item_id(context, &target, &key)?.into_owned();
    let operation = Operation::Patch { id, operations: request.operations, condition: request.condition };
    write(context, &target, &key, operation).await
}

pub async fn delete(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::key(context)?;
    let id = item_id(context, &target, &key)?.into_owned();
    write(context, &target, &key, Operation::Delete { id }).await
}

async fn write(
    context: &Context<'_>,
    target: &Target,
    key: &PartitionKey,
    operation: Operation,
) -> Result<Answer> {
    let write = Write {
        operation,
        if_match: context.text(IF_MATCH).map(str::to_owned),
        if_none_match: context.text(IF_NONE_MATCH).map(str::to_owned),
        session: consistency::session(context)?,
        class: request_class::class(context)?,
    };
    if let Some(triggers) = scripts::triggers::of_request(context, target, &write.operation)? {
        return scripts::triggers::write(context, target, key, write, triggers).await;
    }
    let container = &target.container;
    let written_to = match container.stored_bytes(key, &write.operation) > ITEM_IN_PLACE_BYTES {
        true => context.lengthy(|| container.write_item(key, write)),
        false => container.write_item(key, write),
    };
    match written_to.await {
        Ok(reply) => Ok(written(context, target, &reply)),
        Err(error) => Err(failed(target, key, error)),
    }
}

fn written(context: &Context<'_>, target: &Target, reply: &WriteReply) -> Answer {
    let status = match reply.outcome {
        Outcome::Created => StatusCode::CREATED,
        Outcome::Replaced | Outcome::Read => StatusCode::OK,
        Outcome::Deleted => StatusCode::NO_CONTENT,
    };
    let mut answer = answer(context, target, status, at(reply.at), reply.charge_ru);
    match &reply.item {
        Some(item) => {
            answer = etag_of(answer, item);
            if wants_body(context) {
                let mut body = Vec::with_capacity(size_hint(item));
                write_item(&mut body, &target.rid, item);
                answer = answer.body(body);
            }
        }
        None => {
            answer.headers.remove(CONTENT_TYPE);
        }
    }
    answer
}

/// Whether the client wants to see what it wrote.
pub fn wants_body(context: &Context<'_>) -> bool {
    !context.text(headers::PREFER).is_some_and(|wish| wish.trim().eq_ignore_ascii_case("return=minimal"))
}

/// The headers that every answer of the item plane has.
pub fn answer(context: &Context<'_>, target: &Target, status: StatusCode, at: At, charge_ru: f64) -> Answer {
    let [quota, usage] = usage_headers(target, at);
    context
        .answer(status)
        .at(at)
        .charge(charge_ru)
        .owner(target.alt_path(), target.rid.as_str())
        .set(quota.0, quota.1)
        .set(usage.0, usage.1)
}

/// What the partition of an answer may hold, and what it holds.
pub fn usage_headers(target: &Target, at: At) -> [(HeaderName, HeaderValue); 2] {
    let usage = match (at.usage, at.range) {
        (Some(usage), _) => usage,
        (None, Some(range)) => target.container.usage_of_range(range),
        (None, None) => Usage::default(),
    };
    [
        (headers::RESOURCE_QUOTA, HeaderValue::from_static(QUOTA)),
        (headers::RESOURCE_USAGE, headers::short(|text| push_usage(text, usage))),
    ]
}

pub fn push_usage(text: &mut Vec<u8>, usage: Usage) {
    let size_kb = usage.size_bytes.div_ceil(1024);
    text.extend_from_slice(b"documentSize=0;documentsSize=");
    push_u64(text, size_kb);
    text.extend_from_slice(b";documentsCount=");
    push_u64(text, usage.items);
    text.extend_from_slice(b";collectionSize=");
    push_u64(text, size_kb);
    text.push(b';');
}

fn etag_of(answer: Answer, item: &Item) -> Answer {
    answer.set(ETAG, headers::short(|text| text.extend_from_slice(&item.etag.text())))
}

pub fn at(position: Position) -> At {
    At { usage: Some(position.usage), ..At::range(position.range_id, position.lsn) }
}

/// Where a request stood that the engine has refused: it says so, unless it got to no partition.
pub fn place_of(target: &Target, key: &PartitionKey, error: &EngineError) -> At {
    error.at.map_or_else(|| place(target, key), at)
}

/// Where a failed request stood: its partition if the key leads to one, else the first.
pub fn place(target: &Target, key: &PartitionKey) -> At {
    let container = &target.container;
    container.position_of(key).ok().or_else(|| container.first_position()).map_or(At::range(0, 0), at)
}

/// An engine error about an item, with its place.
pub fn failed(target: &Target, key: &PartitionKey, error: EngineError) -> ApiError {
    let plane = if error.kind == Kind::OwnerNotFound { Plane::Resources } else { Plane::Items };
    let at = place_of(target, key, &error);
    ApiError::from_engine(error, plane).at(at)
}

/// Refuses a key that leads to no partition.
pub fn check_routable(target: &Target, key: &PartitionKey) -> Result<()> {
    match target.container.position_of(key) {
        Ok(_) => Ok(()),
        Err(error) => Err(failed(target, key, error)),
    }
}

/// A write that is refused for what it brings is charged for having been read; one that is too large was not.
fn refused_write(error: ApiError, at: At) -> ApiError {
    match error.status {
        StatusCode::PAYLOAD_TOO_LARGE => error.at(at),
        _ => error.charge(REFUSED_WRITE_RU).at(at),
    }
}

/// The document that a request brings.
fn sent_document(context: &Context<'_>) -> Result<Bytes> {
    check_size(context.body)?;
    document(context.body)
}

/// The stored form of a body, which is JSON text or the binary form of it.
pub fn document(body: &[u8]) -> Result<Bytes> {
    let stored =
        parse_json(&text(body)?, &parse_options()).map_err(|_| ApiError::bad_request(PAYLOAD_INVALID))?;
    match Raw::document(&stored) {
        Ok(root) if root.kind() == ValueKind::Object => Ok(Bytes::from(stored)),
        _ => Err(ApiError::bad_request(INPUT_INVALID)),
    }
}

/// Refuses a body that is larger than an item may be. What is measured is what was sent: escapes can make it longer
/// than the item that it is about, whose own size is the engine's business.
fn check_size(body: &[u8]) -> Result<()> {
    if body.len() > ITEM_BYTES_MAX {
        let error = EngineError::new(Kind::TooLarge, "Request size is too large");
        return Err(ApiError::from_engine(error, Plane::Items));
    }
    Ok(())
}

/// The id inside a document. Whether it is a good one is for the engine to say.
pub fn id_of(document: &[u8]) -> Result<String> {
    let id = Raw::document(document).ok().and_then(|root| root.get("id"));
    match id {
        None => Err(ApiError::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        )),
        Some(id) => id.as_str().map(str::to_owned).ok_or_else(|| ApiError::bad_request(INPUT_INVALID)),
    }
}

/// The id of the item that the path names. A path of rids names the item by the number in its own; only a client that
/// addresses the container by rid does that, so an id that merely looks like a rid stays an id.
pub fn item_id<'a>(context: &'a Context<'_>, target: &Target, key: &PartitionKey) -> Result<Cow<'a, str>> {
    let id = context.path.id(2);
    if context.path.id(1) == target.container.name() {
        return Ok(Cow::Borrowed(id));
    }
    match Rid::parse(id) {
        Some(Rid::Item { database, container, number })
            if database == target.container.database().number && container == target.container.number() =>
        {
            let found = block_on(target.container.item_id(key, number));
            found.map(Cow::Owned).map_err(|error| failed(target, key, error).charge(LOOK_UP_RU))
        }
        _ => Ok(Cow::Borrowed(id)),
    }
}
