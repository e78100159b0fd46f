//! Permissions of a user: create, upsert, read, list, query, replace, delete.
//!
//! Every answer about a permission holds a new resource token in `_token`, good for as long as the request asks (an
//! hour if it does not). What the permission names need not exist: it is looked for when the token is used.

use std::sync::Arc;

use http::StatusCode;
use http::header::{IF_MATCH, IF_NONE_MATCH};
use orrery_engine::access::{Grant, TOKEN_LIFETIME_S, TOKEN_LIFETIME_S_DEFAULT};
use orrery_engine::charge::catalog::{CHANGE_RU, READ_RU};
use orrery_engine::{Database, PERMISSIONS_MAX, Permission, PermissionDefinition, PermissionMode, Ref, User};
use orrery_model::PartitionKey;
use serde_json::Value;

use crate::access;
use crate::actions::Action;
use crate::errors::{ApiError, INPUT_INVALID, Result};
use crate::headers::{self, Answer, At, EXPIRY_SECONDS};
use crate::resource_feed::{Entry, Feed, list_after};
use crate::rid::{Rid, database_rid, permission_rid, user_rid};
use crate::service::Context;
use crate::users::{self, failed};
use crate::write::{push_json_string, push_u64};
use crate::{body, scope};

pub async fn create_or_upsert(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = users::find(context)?;
    let issuer = Issuer::of_request(context, &database, &user)?;
    let definition = parse(context).await?;
    let account = context.account();
    let made = if context.action == Action::UpsertPermission {
        account.upsert_permission(database.number, user.number, definition, context.text(IF_MATCH)).await
    } else {
        let created = account.create_permission(database.number, user.number, definition).await;
        created.map(|permission| (permission, true))
    };
    let (permission, new) = made.map_err(failed)?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(issuer.one(status, &permission)?.charge(CHANGE_RU))
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = users::find(context)?;
    let issuer = Issuer::of_request(context, &database, &user)?;
    let permission = find(context, &database, &user)?;
    if context.text(IF_NONE_MATCH).is_some_and(|etag| permission.etag.matches(etag)) {
        let answer = context.answer(StatusCode::NOT_MODIFIED).at(context.catalog_at()).charge(READ_RU);
        return Ok(answer.etag(&permission.etag.to_string()));
    }
    Ok(issuer.one(StatusCode::OK, &permission)?.charge(READ_RU))
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = users::find(context)?;
    let issuer = Issuer::of_request(context, &database, &user)?;
    let rid = user_rid(database.number, user.number);
    let answer = list_after(context, "Permissions", &rid, |after, limit| {
        user.permissions_after(after).take(limit).map(|permission| issuer.entry(permission)).collect()
    })?;
    Ok(issuer.owned(answer))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = users::find(context)?;
    let issuer = Issuer::of_request(context, &database, &user)?;
    let entries = user.permissions_after(0).map(|permission| issuer.entry(permission)).collect();
    let feed = Feed { key: "Permissions", rid: &user_rid(database.number, user.number), entries };
    Ok(issuer.owned(feed.query(context)?))
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = users::find(context)?;
    let issuer = Issuer::of_request(context, &database, &user)?;
    let permission = find(context, &database, &user)?;
    let definition = parse(context).await?;
    let account = context.account();
    let if_match = context.text(IF_MATCH);
    let replaced = account
        .replace_permission(database.number, user.number, permission.number, definition, if_match)
        .await;
    Ok(issuer.one(StatusCode::OK, &*replaced.map_err(failed)?)?.charge(CHANGE_RU))
}

pub async fn delete(context: &Context<'_>) -> Result<Answer> {
    let (database, user) = users::find(context)?;
    let permission = find(context, &database, &user)?;
    let account = context.account();
    let if_match = context.text(IF_MATCH);
    let deleted = account.delete_permission(database.number, user.number, permission.number, if_match).await;
    deleted.map_err(failed)?;
    let answer = context.answer(StatusCode::NO_CONTENT).at(context.catalog_at()).charge(CHANGE_RU);
    Ok(owned(answer, &database, &user))
}

/// The permission that the path names, by name or by rid.
fn find(context: &Context<'_>, database: &Database, user: &User) -> Result<Arc<Permission>> {
    let id = context.path.id(2);
    let found = match (user.permission(Ref::Name(id)), Rid::parse(id)) {
        (Err(_), Some(Rid::Permission { database: owner, user: holder, permission }))
            if owner == database.number && holder == user.number =>
        {
            user.permission(Ref::Number(permission))
        }
        (named, _) => named,
    };
    found.map_err(failed)
}

async fn parse(context: &Context<'_>) -> Result<PermissionDefinition> {
    let body = body::object(context)?;
    let missing: String = ["id", "permissionMode", "resource"]
        .iter()
        .filter(|name| body.get(**name).is_none_or(Value::is_null))
        .map(|name| format!("{name}; "))
        .collect();
    if !missing.is_empty() {
        return Err(ApiError::bad_request(format!(
            "The input content is invalid because the required properties - '{missing}' - are missing"
        )));
    }
    let text = |name: &str| body[name].as_str().ok_or_else(|| ApiError::bad_request(INPUT_INVALID));
    let mode_name = text("permissionMode")?;
    let mode = PermissionMode::parse(mode_name).ok_or_else(|| ApiError::bad_request(INPUT_INVALID))?;
    let resource = text("resource")?;
    if access::granted(resource, false).is_none() {
        return Err(ApiError::bad_request(INPUT_INVALID));
    }
    let partition_key = partition_key(&body)?;
    Ok(PermissionDefinition {
        name: text("id")?.to_owned(),
        mode,
        mode_name: mode_name.to_owned(),
        resource: resource.to_owned(),
        escaped: access::is_escaped(context.account(), resource, partition_key.as_ref()).await,
        partition_key,
    })
}

fn partition_key(body: &Value) -> Result<Option<PartitionKey>> {
    match body.get("resourcePartitionKey") {
        None | Some(Value::Null) => Ok(None),
        Some(key) => scope::parse_key(&key.to_string()).map(Some),
    }
}

/// Writes permissions with tokens that the caller's own key vouches for.
struct Issuer<'a> {
    context: &'a Context<'a>,
    database: &'a Database,
    user: &'a User,
    start_s: u32,
    expiry_s: u32,
}

impl<'a> Issuer<'a> {
    fn of_request(context: &'a Context<'a>, database: &'a Database, user: &'a User) -> Result<Issuer<'a>> {
        let lifetime_s = lifetime_s(context.text(EXPIRY_SECONDS))?;
        let start_s = context.account().env().now_s();
        Ok(Issuer { context, database, user, start_s, expiry_s: start_s.saturating_add(lifetime_s) })
    }

    fn one(&self, status: StatusCode, permission: &Permission) -> Result<Answer> {
        let lsn = self.context.catalog_at().lsn;
        let answer = self
            .context
            .answer(status)
            .at(At { item_lsn: Some(lsn), ..At::catalog(lsn) })
            .etag(&permission.etag.to_string())
            .body(self.json(permission));
        Ok(self.owned(answer))
    }

    fn entry(&self, permission: &Permission) -> Entry {
        Entry { number: permission.number, json: self.json(permission) }
    }

    fn owned(&self, answer: Answer) -> Answer {
        owned(answer, self.database, self.user)
    }

    /// A token for the permission; empty for a caller that can make none, and none such comes this far.
    fn token(&self, permission: &Permission) -> String {
        let definition = &permission.definition;
        let granted = access::granted(&definition.resource, definition.escaped).map(|resource| Grant {
            database: self.database.number,
            user: self.user.number,
            permission: permission.number,
            mode: definition.mode,
            start_s: self.start_s,
            expiry_s: self.expiry_s,
            resource,
            partition_key: definition.partition_key.clone(),
        });
        let random = self.context.account().env().random_u64() as u32;
        let authorizer = &self.context.service.authorizer;
        granted.and_then(|grant| authorizer.issue(self.context.principal, &grant, random)).unwrap_or_default()
    }

    /// The service's members.
    fn json(&self, permission: &Permission) -> Vec<u8> {
        let rid = permission_rid(self.database.number, self.user.number, permission.number);
        let definition = &permission.definition;
        let mut out = Vec::with_capacity(640);
        out.extend_from_slice(b"{\"id\":");
        push_json_string(&mut out, &definition.name);
        out.extend_from_slice(b",\"permissionMode\":");
        push_json_string(&mut out, &definition.mode_name);
        out.extend_from_slice(b",\"resource\":");
        push_json_string(&mut out, &definition.resource);
        if let Some(key) = &definition.partition_key {
            out.extend_from_slice(b",\"resourcePartitionKey\":");
            key.write_json(&mut out);
        }
        out.extend_from_slice(b",\"_rid\":\"");
        out.extend_from_slice(rid.as_bytes());
        out.extend_from_slice(b"\",\"_self\":\"dbs/");
        out.extend_from_slice(database_rid(self.database.number).as_bytes());
        out.extend_from_slice(b"/users/");
        out.extend_from_slice(user_rid(self.database.number, self.user.number).as_bytes());
        out.extend_from_slice(b"/permissions/");
        out.extend_from_slice(rid.as_bytes());
        out.extend_from_slice(b"/\",\"_etag\":");
        push_json_string(&mut out, &permission.etag.to_string());
        out.extend_from_slice(b",\"_ts\":");
        push_u64(&mut out, u64::from(permission.ts));
        out.extend_from_slice(b",\"_token\":");
        push_json_string(&mut out, &self.token(permission));
        out.push(b'}');
        out
    }
}

fn owned(answer: Answer, database: &Database, user: &User) -> Answer {
    answer
        .owner(format!("dbs/{}/users/{}", database.name, user.name), &user_rid(database.number, user.number))
        .set(headers::RESOURCE_QUOTA, headers::text_value(&format!("permissions={PERMISSIONS_MAX};")))
        .set(
            headers::RESOURCE_USAGE,
            headers::text_value(&format!("permissions={};", database.permission_count())),
        )
}

/// How long the tokens of a request are to be good for. The service's gateway refuses what is too long or no number,
/// and its catalog what is too short, each in its own words.
fn lifetime_s(header: Option<&str>) -> Result<u32> {
    let Some(text) = header else { return Ok(TOKEN_LIFETIME_S_DEFAULT) };
    match text.trim().parse::<u32>() {
        Ok(seconds) if TOKEN_LIFETIME_S.contains(&seconds) => Ok(seconds),
        Ok(seconds) if seconds < *TOKEN_LIFETIME_S.start() => Err(ApiError::bad_request(INPUT_INVALID)),
        _ => Err(ApiError::refused(format!(
            "Value '{text}' specified for the header 'x-ms-documentdb-expiry-seconds' is invalid."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_ten_minutes_to_five_hours() {
        assert_eq!(lifetime_s(None).unwrap(), 3_600);
        for (text, seconds) in [("600", 600), ("18000", 18_000), (" 700 ", 700)] {
            assert_eq!(lifetime_s(Some(text)).unwrap(), seconds);
        }
        for text in ["599", "0", "10"] {
            assert_eq!(lifetime_s(Some(text)).unwrap_err().message, INPUT_INVALID);
        }
        for text in ["18001", "86400", "-1", "1.5", "", "x", "99999999999"] {
            let message = lifetime_s(Some(text)).unwrap_err().message.clone();
            assert!(message.contains("x-ms-documentdb-expiry-seconds' is invalid."), "{message}");
        }
    }
}
