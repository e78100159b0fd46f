//! Users: create, upsert, read, list, query, replace, delete. A user is a name that permissions belong to.

use std::sync::Arc;

use http::StatusCode;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use orrery_engine::charge::catalog::{CHANGE_RU, READ_RU};
use orrery_engine::{Database, Ref, USERS_MAX, User};

use crate::actions::Action;
use crate::body;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{self, Answer, At};
use crate::resource_feed::{Entry, Feed, list_after};
use crate::rid::{Rid, database_rid, user_rid};
use crate::service::Context;
use crate::write::{push_json_string, push_u64};

pub async fn create_or_upsert(context: &Context<'_>) -> Result<Answer> {
    let database = context.database()?;
    let body = body::object(context)?;
    let name = body::id(&body)?;
    let account = context.account();
    let made = if context.action == Action::UpsertUser {
        account.upsert_user(database.number, name, context.text(IF_MATCH)).await
    } else {
        account.create_user(database.number, name).await.map(|user| (user, true))
    };
    let (user, new) = made.map_err(failed)?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(one(context, status, &database, &user).charge(CHANGE_RU))
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = find(context)?;
    if context.text(IF_NONE_MATCH).is_some_and(|etag| user.etag.matches(etag)) {
        let answer = context.answer(StatusCode::NOT_MODIFIED).at(context.catalog_at()).charge(READ_RU);
        return Ok(answer.etag(&user.etag.to_string()));
    }
    Ok(one(context, StatusCode::OK, &database, &user).charge(READ_RU))
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    let database = context.database()?;
    let rid = database_rid(database.number);
    let answer = list_after(context, "Users", &rid, |after, limit| {
        database.users(after, limit).iter().map(|user| entry(&database, user)).collect()
    })?;
    Ok(owned(answer, &database))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    let database = context.database()?;
    let entries = database.users(0, USERS_MAX).iter().map(|user| entry(&database, user)).collect();
    let feed = Feed { key: "Users", rid: &database_rid(database.number), entries };
    Ok(owned(feed.query(context)?, &database))
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = find(context)?;
    let body = body::object(context)?;
    let name = body::id(&body)?;
    let account = context.account();
    let replaced = account.replace_user(database.number, user.number, name, context.text(IF_MATCH)).await;
    Ok(one(context, StatusCode::OK, &database, &*replaced.map_err(failed)?).charge(CHANGE_RU))
}

pub async fn delete(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = find(context)?;
    let deleted = context.account().delete_user(database.number, user.number, context.text(IF_MATCH)).await;
    deleted.map_err(failed)?;
    let answer = context.answer(StatusCode::NO_CONTENT).at(context.catalog_at()).charge(CHANGE_RU);
    Ok(owned(answer, &database))
}

/// The user that the path names, by name or by rid.
pub fn find(context: &Context<'_>) -> Result<(Arc<Database>, Arc<User>)> {
    let database = context.database()?;
    let id = context.path.id(1);
    let found = match (database.user(Ref::Name(id)), Rid::parse(id)) {
        (Err(_), Some(Rid::User { database: owner, user })) if owner == database.number => {
            database.user(Ref::Number(user))
        }
        (named, _) => named,
    };
    Ok((database, found.map_err(failed)?))
}

pub fn failed(error: orrery_engine::Error) -> ApiError {
    ApiError::from_engine(error, Plane::Resources)
}

fn one(context: &Context<'_>, status: StatusCode, database: &Database, user: &User) -> Answer {
    let lsn = context.catalog_at().lsn;
    let answer = context
        .answer(status)
        .at(At { item_lsn: Some(lsn), ..At::catalog(lsn) })
        .etag(&user.etag.to_string())
        .body(json(database, user));
    owned(answer, database)
}

fn owned(answer: Answer, database: &Database) -> Answer {
    answer
        .owner(format!("dbs/{}", database.name), &database_rid(database.number))
        .set(headers::RESOURCE_QUOTA, headers::text_value(&format!("users={USERS_MAX};")))
        .set(headers::RESOURCE_USAGE, headers::text_value(&format!("users={};", database.user_count())))
}

fn entry(database: &Database, user: &User) -> Entry {
    Entry { number: user.number, json: json(database, user) }
}

/// The service's members.
fn json(database: &Database, user: &User) -> Vec<u8> {
    let rid = user_rid(database.number, user.number);
    let mut out = Vec::with_capacity(220);
    out.extend_from_slice(b"{\"id\":");
    push_json_string(&mut out, &user.name);
    out.extend_from_slice(b",\"_rid\":\"");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"\",\"_self\":\"dbs/");
    out.extend_from_slice(database_rid(database.number).as_bytes());
    out.extend_from_slice(b"/users/");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"/\",\"_etag\":");
    push_json_string(&mut out, &user.etag.to_string());
    out.extend_from_slice(b",\"_permissions\":\"permissions/\",\"_ts\":");
    push_u64(&mut out, u64::from(user.ts));
    out.push(b'}');
    out
}
