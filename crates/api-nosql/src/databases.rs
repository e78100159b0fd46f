//! Databases: create, read, list, query, delete.

use http::StatusCode;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use orrery_engine::charge::catalog::{CHANGE_RU, CREATE_RU, READ_RU};
use orrery_engine::{Database, Ref};

use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer, At};
use crate::resource_feed::{Entry, Feed};
use crate::rid::database_rid;
use crate::service::Context;
use crate::write::{push_json_string, push_u64};
use crate::{body, throughput};

const QUOTA: &str = "databases=1000;";
const FEED_QUOTA: &str = "databases=1000;collections=5000;users=500000;permissions=2000000;clientEncryptionKeys=20;interopUsers=2000;authPolicyElements=1000;roleDefinitions=100;roleAssignments=2000;azureRbac=200000;";

pub async fn create(context: &Context<'_>) -> Result<Answer> {
    let body = body::object(context)?;
    let throughput = throughput::of_creation(context)?;
    let created = context.account().create_database(body::id(&body)?, throughput).await;
    let database = created.map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
    Ok(one(context, StatusCode::CREATED, &database).charge(CREATE_RU))
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let database = context.database()?;
    let known = context.text(IF_NONE_MATCH).is_some_and(|etag| database.etag.matches(etag));
    if known {
        let answer = context.answer(StatusCode::NOT_MODIFIED).at(context.catalog_at()).charge(READ_RU);
        return Ok(answer.etag(&database.etag.to_string()));
    }
    Ok(one(context, StatusCode::OK, &database).charge(READ_RU))
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    Ok(with_feed_quota(context, feed(context).list(context)?))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    Ok(with_feed_quota(context, feed(context).query(context)?))
}

pub async fn delete(context: &Context<'_>) -> Result<Answer> {
    let database = context.database()?;
    let deleted =
        context.account().delete_database(Ref::Number(database.number), context.text(IF_MATCH)).await;
    deleted.map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
    let answer = context.answer(StatusCode::NO_CONTENT).at(context.catalog_at()).charge(CHANGE_RU);
    Ok(answer)
}

fn feed<'a>(context: &Context<'_>) -> Feed<'a> {
    let databases = context.account().databases();
    let entries =
        databases.iter().map(|database| Entry { number: database.number, json: json(database) }).collect();
    Feed { key: "Databases", rid: "", entries }
}

fn one(context: &Context<'_>, status: StatusCode, database: &Database) -> Answer {
    let lsn = context.catalog_at().lsn;
    context
        .answer(status)
        .at(At { item_lsn: Some(lsn), ..At::catalog(lsn) })
        .etag(&database.etag.to_string())
        .set(headers::RESOURCE_QUOTA, http::HeaderValue::from_static(QUOTA))
        .set(headers::RESOURCE_USAGE, usage(context))
        .body(json(database))
}

fn with_feed_quota(context: &Context<'_>, answer: Answer) -> Answer {
    answer
        .set(headers::RESOURCE_QUOTA, http::HeaderValue::from_static(FEED_QUOTA))
        .set(headers::RESOURCE_USAGE, usage(context))
}

fn usage(context: &Context<'_>) -> http::HeaderValue {
    headers::text_value(&format!("databases={};", context.account().databases().len()))
}

/// The service's member order.
pub fn json(database: &Database) -> Vec<u8> {
    let rid = database_rid(database.number);
    let mut out = Vec::with_capacity(200);
    out.extend_from_slice(b"{\"id\":");
    push_json_string(&mut out, &database.name);
    out.extend_from_slice(b",\"_rid\":\"");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"\",\"_self\":\"dbs/");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"/\",\"_etag\":");
    push_json_string(&mut out, &database.etag.to_string());
    out.extend_from_slice(b",\"_colls\":\"colls/\",\"_users\":\"users/\",\"_ts\":");
    push_u64(&mut out, u64::from(database.ts));
    out.push(b'}');
    out
}
