//! Containers: create, read, list, query, replace, delete, and what may be asked about their size.
//!
//! What a container may look like is the engine's business (`ContainerDefinition`): it validates, fills in defaults
//! and keeps the canonical object, to which only the system properties are added here.

use std::borrow::Cow;

use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{HeaderValue, StatusCode};
use orrery_engine::charge::catalog::{
    CHANGE_RU, CREATE_RU, READ_RU, REFUSED_REPLACE_RU, REPLACE_CONTAINER_RU,
};
use orrery_engine::{Container, ContainerDefinition, KeyKinds, OfferOwner};
use serde_json::Value;

use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer, At};
use crate::resource_feed::{Entry, Feed};
use crate::rid::{ContainerRid, database_rid};
use crate::service::Context;
use crate::write::{push_json_string, push_u64};
use crate::{body, throughput};

const ITEM_BYTES_MAX: HeaderValue = HeaderValue::from_static("2097152");
const MAX_CONTENT_LENGTH: http::HeaderName = http::HeaderName::from_static("x-ms-cosmos-max-content-length");

pub async fn create(context: &Context<'_>) -> Result<Answer> {
    let database = context.database()?;
    let body = body::object(context)?;
    let throughput = throughput::of_creation(context)?;
    let shared =
        throughput.is_none() && context.account().offer_of(OfferOwner::Database(database.number)).is_some();
    if shared && body.get("partitionKey").is_none_or(Value::is_null) {
        return Err(ApiError::refused("Shared throughput collection should have a partition key"));
    }
    let definition = parse(context, &body)?;
    let created = context.account().create_container(&database, definition, throughput).await;
    let container = created.map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
    Ok(one(context, StatusCode::CREATED, &container).charge(CREATE_RU))
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let container = context.container()?;
    if context.text(IF_NONE_MATCH).is_some_and(|etag| container.etag().matches(etag)) {
        let answer = context.answer(StatusCode::NOT_MODIFIED).at(position(context)).charge(READ_RU);
        return Ok(answer.etag(&container.etag().to_string()));
    }
    let mut answer = one(context, StatusCode::OK, &container).charge(READ_RU);
    if context.flag(headers::POPULATE_QUOTA) {
        let usage = container.usage();
        let (scripts_quota, scripts_usage) = crate::scripts::resources::usage_text(&container);
        answer = answer
            .set(
                headers::RESOURCE_QUOTA,
                headers::text_value(&format!("{}{scripts_quota}", crate::items::QUOTA)),
            )
            .set(
                headers::RESOURCE_USAGE,
                headers::short(|text| {
                    crate::items::push_usage(text, usage);
                    text.extend_from_slice(scripts_usage.as_bytes());
                }),
            )
            .set(headers::INDEX_PROGRESS, headers::number(u64::from(container.index_progress())));
    }
    if context.flag(headers::POPULATE_STATISTICS) {
        answer = answer.body(json(context, &container, Some(&statistics(&container)?)));
    }
    Ok(answer)
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.list(context))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.query(context))
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let container = context.container()?;
    let body = body::object(context)?;
    let definition = parse(context, &body)?;
    let replaced = context.account().replace_container(&container, definition, context.text(IF_MATCH)).await;
    let container = replaced
        .map_err(|error| ApiError::from_engine(error, Plane::Resources).charge(REFUSED_REPLACE_RU))?;
    Ok(one(context, StatusCode::OK, &container).charge(REPLACE_CONTAINER_RU))
}

pub async fn delete(context: &Context<'_>) -> Result<Answer> {
    let container = context.container()?;
    let deleted = context.account().delete_container(&container, context.text(IF_MATCH)).await;
    deleted.map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
    Ok(owned(context.answer(StatusCode::NO_CONTENT).at(position(context)), &container).charge(CHANGE_RU))
}

fn parse(context: &Context<'_>, body: &Value) -> Result<ContainerDefinition> {
    let kinds = match context.generation.has_hierarchical_keys() {
        true => KeyKinds::All,
        false => KeyKinds::HashOnly,
    };
    ContainerDefinition::parse(body, kinds).map_err(|error| ApiError::from_engine(error, Plane::Resources))
}

fn feed(context: &Context<'_>, answer: impl FnOnce(Feed<'_>) -> Result<Answer>) -> Result<Answer> {
    let database = context.database()?;
    let entries = database
        .containers()
        .iter()
        .map(|container| Entry { number: container.number(), json: json(context, container, None) })
        .collect();
    let rid = database_rid(database.number);
    let answer = answer(Feed { key: "DocumentCollections", rid: &rid, entries })?;
    Ok(answer.owner(format!("dbs/{}", database.name), &rid))
}

fn one(context: &Context<'_>, status: StatusCode, container: &Container) -> Answer {
    let at = position(context);
    let answer = context
        .answer(status)
        .at(At { item_lsn: Some(at.lsn), ..at })
        .etag(&container.etag().to_string())
        .set(MAX_CONTENT_LENGTH, ITEM_BYTES_MAX)
        .body(json(context, container, None));
    owned(answer, container)
}

fn owned(answer: Answer, container: &Container) -> Answer {
    let database = container.database();
    answer.owner(format!("dbs/{}", database.name), &database_rid(database.number))
}

/// The service names range 0 on answers about containers.
fn position(context: &Context<'_>) -> At {
    At::container(context.catalog_at().lsn)
}

/// The canonical definition and the system properties, in the service's member order. Clients that know containers
/// without a key see them so.
fn json(context: &Context<'_>, container: &Container, statistics: Option<&[u8]>) -> Vec<u8> {
    let definition = container.definition();
    let mut shown = Cow::Borrowed(&definition.json);
    if definition.partition_key.system_key && !context.generation.shows_system_keys() {
        shown.to_mut().as_object_mut().and_then(|members| members.shift_remove("partitionKey"));
    }
    // Serialising a tree of strings and numbers into a vector cannot fail.
    let mut out = serde_json::to_vec(&shown).unwrap_or_else(|_| b"{}".to_vec());
    let rid = ContainerRid::new(container.database().number, container.number());
    out.pop();
    if out.len() > 1 {
        out.push(b',');
    }
    out.extend_from_slice(b"\"_rid\":\"");
    out.extend_from_slice(rid.as_str().as_bytes());
    out.extend_from_slice(b"\",\"_ts\":");
    push_u64(&mut out, u64::from(container.ts()));
    out.extend_from_slice(b",\"_self\":\"");
    rid.write_self(&mut out);
    out.extend_from_slice(b"\",\"_etag\":");
    push_json_string(&mut out, &container.etag().to_string());
    if let Some(statistics) = statistics {
        out.extend_from_slice(b",\"statistics\":");
        out.extend_from_slice(statistics);
    }
    out.extend_from_slice(
        b",\"_docs\":\"docs/\",\"_sprocs\":\"sprocs/\",\"_triggers\":\"triggers/\",\"_udfs\":\"udfs/\",\"_conflicts\":\"conflicts/\"}",
    );
    out
}

/// Items and kilobytes of every partition. Counting distinct keys would mean reading every item, so that figure and
/// the largest keys stay empty.
fn statistics(container: &Container) -> Result<Vec<u8>> {
    let mut out = vec![b'['];
    for (n, range) in container.ranges().iter().enumerate() {
        container.check_range(range.id).map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
        let usage = container.usage_of_range(range.id);
        if n > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"id\":\"");
        push_u64(&mut out, u64::from(range.id));
        out.extend_from_slice(b"\",\"sizeInKB\":");
        push_u64(&mut out, usage.size_bytes.div_ceil(1024));
        out.extend_from_slice(b",\"documentCount\":");
        push_u64(&mut out, usage.items);
        out.extend_from_slice(b",\"sampledDistinctPartitionKeyCount\":0,\"partitionKeys\":[]}");
    }
    out.push(b']');
    Ok(out)
}
