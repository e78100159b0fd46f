//! Client encryption keys: create, read, list, query, replace. Clients that encrypt what they store (Always
//! Encrypted) keep their wrapped keys here; the server stores what it is given and could not unwrap it.

use std::sync::Arc;

use http::StatusCode;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use orrery_engine::charge::catalog::{CHANGE_RU, READ_RU};
use orrery_engine::{Database, EncryptionKey, EncryptionKeyDefinition, Ref};

use crate::body;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::{Answer, At};
use crate::resource_feed::{Entry, Feed};
use crate::rid::{Rid, database_rid, encryption_key_rid};
use crate::service::Context;
use crate::write::{push_json_string, push_u64};

pub async fn create(context: &Context<'_>) -> Result<Answer> {
    let database = context.database()?;
    let definition = definition(context)?;
    let created = context.account().create_encryption_key(database.number, definition).await;
    Ok(one(context, StatusCode::CREATED, &database, &*created.map_err(failed)?).charge(CHANGE_RU))
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let (database, key) = find(context)?;
    if context.text(IF_NONE_MATCH).is_some_and(|etag| key.etag.matches(etag)) {
        let answer = context.answer(StatusCode::NOT_MODIFIED).at(context.catalog_at()).charge(READ_RU);
        return Ok(answer.etag(&key.etag.to_string()));
    }
    Ok(one(context, StatusCode::OK, &database, &key).charge(READ_RU))
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.list(context))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.query(context))
}

/// A key is replaced when it is wrapped anew.
pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let (database, key) = find(context)?;
    let (definition, if_match) = (definition(context)?, context.text(IF_MATCH));
    let account = context.account();
    let replaced = account.replace_encryption_key(database.number, key.number, definition, if_match).await;
    Ok(one(context, StatusCode::OK, &database, &*replaced.map_err(failed)?).charge(CHANGE_RU))
}

fn definition(context: &Context<'_>) -> Result<EncryptionKeyDefinition> {
    EncryptionKeyDefinition::parse(&body::object(context)?).map_err(failed)
}

/// The key that the path names, by name or by rid.
fn find(context: &Context<'_>) -> Result<(Arc<Database>, Arc<EncryptionKey>)> {
    let database = context.database()?;
    let id = context.path.id(1);
    let found = match (database.encryption_key(Ref::Name(id)), Rid::parse(id)) {
        (Err(_), Some(Rid::EncryptionKey { database: owner, key })) if owner == database.number => {
            database.encryption_key(Ref::Number(key))
        }
        (named, _) => named,
    };
    Ok((database, found.map_err(failed)?))
}

fn failed(error: orrery_engine::Error) -> ApiError {
    ApiError::from_engine(error, Plane::Resources)
}

fn feed(context: &Context<'_>, answer: impl FnOnce(Feed<'_>) -> Result<Answer>) -> Result<Answer> {
    let database = context.database()?;
    let entry = |key: &Arc<EncryptionKey>| Entry { number: key.number, json: json(&database, key) };
    let entries = database.encryption_keys().iter().map(entry).collect();
    let rid = database_rid(database.number);
    let answer = answer(Feed { key: "ClientEncryptionKeys", rid: &rid, entries })?;
    Ok(answer.owner(format!("dbs/{}", database.name), &rid))
}

fn one(context: &Context<'_>, status: StatusCode, database: &Database, key: &EncryptionKey) -> Answer {
    let lsn = context.catalog_at().lsn;
    context
        .answer(status)
        .at(At { item_lsn: Some(lsn), ..At::catalog(lsn) })
        .etag(&key.etag.to_string())
        .owner(format!("dbs/{}", database.name), &database_rid(database.number))
        .body(json(database, key))
}

/// The canonical definition and the system properties.
fn json(database: &Database, key: &EncryptionKey) -> Vec<u8> {
    let rid = encryption_key_rid(database.number, key.number);
    let definition = key.definition.text().as_bytes();
    let mut out = Vec::with_capacity(definition.len() + 200);
    // The definition is an object with members; the system's go on inside its last brace.
    out.extend_from_slice(&definition[..definition.len() - 1]);
    out.extend_from_slice(b",\"_rid\":\"");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"\",\"_self\":\"dbs/");
    out.extend_from_slice(database_rid(database.number).as_bytes());
    out.extend_from_slice(b"/clientencryptionkeys/");
    out.extend_from_slice(rid.as_bytes());
    out.extend_from_slice(b"/\",\"_etag\":");
    push_json_string(&mut out, &key.etag.to_string());
    out.extend_from_slice(b",\"_ts\":");
    push_u64(&mut out, u64::from(key.ts));
    out.push(b'}');
    out
}
