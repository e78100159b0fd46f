//! How a connection begins: `hello`, what the server is, who the client is.

use std::sync::Arc;

use orrery_mongo::{Bson, Document, Error, Result, ValueRef, codec, doc, error::code};

use super::{Call, options};
use crate::auth::{Identity, role_reads, role_writes};
use crate::config::AuthMode;
use crate::reply::Reply;
use crate::sessions::TIMEOUT_MINUTES;
use crate::wire::{Compressor, DOCUMENT_BYTES_MAX, MESSAGE_BYTES_MAX, WRITE_BATCH_MAX};

/// The name of the replica set, as Cosmos DB has it.
pub const SET_NAME: &str = "globaldb";
/// Longest description of a client.
const METADATA_BYTES_MAX: usize = 512;

pub fn hello(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    if let Some(metadata) = options::document(body, "client")? {
        if call.client.described {
            return Err(Error::new(
                code::CLIENT_METADATA_CANNOT_BE_MUTATED,
                "The client metadata document may only be sent in the first hello",
            ));
        }
        let mut bytes = Vec::new();
        codec::write_document(ValueRef::OwnedDocument(metadata), &mut bytes);
        if bytes.len() > METADATA_BYTES_MAX {
            return Err(Error::bad_value(format!(
                "The client metadata document must be less then or equal to {METADATA_BYTES_MAX} bytes"
            )));
        }
        call.client.described = true;
        let name = metadata
            .get("application")
            .and_then(Bson::as_document)
            .and_then(|application| application.get("name"));
        call.client.app_name = name.and_then(Bson::as_str).map(Into::into);
    }
    let wanted = options::array(body, "compression")?.unwrap_or_default();
    let common: Vec<Compressor> =
        wanted.iter().filter_map(Bson::as_str).filter_map(Compressor::named).collect();
    let core = call.core;
    let here = call.client.local.to_string();
    let (seconds, increment) = core.cluster_time();
    let op_time = doc! { "ts" => Bson::Timestamp { seconds, increment }, "t" => 1i64 };
    let modern = body.first().is_some_and(|(name, _)| &**name == "hello");
    let mut reply = Document::new();
    if body.get("helloOk").is_some_and(Bson::is_truthy) {
        reply.push("helloOk", true);
    }
    reply.push(if modern { "isWritablePrimary" } else { "ismaster" }, true);
    let members = doc! {
        "secondary" => false,
        "setName" => SET_NAME,
        "setVersion" => 1,
        "hosts" => Bson::array(vec![here.as_str().into()]),
        "primary" => here.as_str(),
        "me" => here.as_str(),
        "electionId" => Bson::ObjectId([0x7F, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1]),
        "lastWrite" => doc! {
            "opTime" => op_time.clone(),
            "lastWriteDate" => Bson::Date(i64::from(seconds) * 1000),
            "majorityOpTime" => op_time,
            "majorityWriteDate" => Bson::Date(i64::from(seconds) * 1000),
        },
        "maxBsonObjectSize" => DOCUMENT_BYTES_MAX as i32,
        "maxMessageSizeBytes" => MESSAGE_BYTES_MAX as i32,
        "maxWriteBatchSize" => WRITE_BATCH_MAX as i32,
        "localTime" => Bson::Date(core.now_ms()),
        "logicalSessionTimeoutMinutes" => TIMEOUT_MINUTES,
        "connectionId" => call.client.number,
        "minWireVersion" => 0,
        "maxWireVersion" => core.config.version.wire(),
        "readOnly" => false,
    };
    members.iter().for_each(|(name, value)| reply.push(name.clone(), value.clone()));
    if !common.is_empty() {
        let names: Vec<Bson> = common.iter().map(|compressor| compressor.name().into()).collect();
        reply.push("compression", Bson::array(names));
        call.client.compressors = common;
    }
    if let Some(user) = options::text(body, "saslSupportedMechs")? {
        let (database, user) = user.split_once('.').unwrap_or(("admin", user));
        let names = core.authenticator.mechanisms(core, user, database);
        reply.push("saslSupportedMechs", Bson::array(names.into_iter().map(Bson::from).collect()));
    }
    if let Some(start) = options::document(body, "speculativeAuthenticate")?
        && start.first().is_some_and(|(name, _)| &**name == "saslStart")
    {
        let database = start.get("db").and_then(Bson::as_str).unwrap_or("admin");
        // One that goes wrong is left out; the client then begins anew.
        if let Ok((conversation, step)) = core.authenticator.start(core, start, database) {
            call.client.conversation = Some(conversation);
            reply.push("speculativeAuthenticate", step);
        }
    }
    Ok(reply.into())
}

pub fn ping(_: &mut Call<'_>) -> Result<Reply> {
    Ok(Document::new().into())
}

pub fn build_info(call: &mut Call<'_>) -> Result<Reply> {
    let version = call.core.config.version;
    let numbers: Vec<Bson> = version.numbers().into_iter().map(Bson::from).collect();
    Ok(doc! {
        "version" => version.text(),
        "gitVersion" => "unknown",
        "modules" => Bson::array(Vec::new()),
        "allocator" => "mimalloc",
        "javascriptEngine" => "none",
        "sysInfo" => "deprecated",
        "versionArray" => Bson::array(numbers),
        "openssl" => doc! { "running" => "disabled", "compiled" => "disabled" },
        "buildEnvironment" => doc! { "target_arch" => std::env::consts::ARCH, "target_os" => std::env::consts::OS },
        "bits" => 64,
        "debug" => cfg!(debug_assertions),
        "maxBsonObjectSize" => DOCUMENT_BYTES_MAX as i32,
        "storageEngines" => Bson::array(vec!["orrery".into()]),
        "orrery" => doc! { "version" => env!("CARGO_PKG_VERSION") },
    }
    .into())
}

pub fn whats_my_uri(call: &mut Call<'_>) -> Result<Reply> {
    Ok(doc! { "you" => call.client.peer.to_string() }.into())
}

pub fn sasl_start(call: &mut Call<'_>) -> Result<Reply> {
    let core = call.core;
    let (conversation, reply) = core.authenticator.start(core, call.body, call.database)?;
    call.client.conversation = Some(conversation);
    Ok(reply.into())
}

pub fn sasl_continue(call: &mut Call<'_>) -> Result<Reply> {
    let mut conversation = call
        .client
        .conversation
        .take()
        .ok_or_else(|| Error::new(code::PROTOCOL_ERROR, "No SASL session state found"))?;
    let (identity, reply) = conversation.go_on(call.body)?;
    match identity {
        Some(identity) => call.client.identity = Some(identity),
        None => call.client.conversation = Some(conversation),
    }
    Ok(reply.into())
}

pub fn logout(call: &mut Call<'_>) -> Result<Reply> {
    call.client.identity = None;
    Ok(Document::new().into())
}

pub fn get_nonce(call: &mut Call<'_>) -> Result<Reply> {
    Ok(doc! { "nonce" => format!("{:016x}", call.core.random_u64()) }.into())
}

pub fn connection_status(call: &mut Call<'_>) -> Result<Reply> {
    let everybody = Identity {
        user: "".into(),
        database: "admin".into(),
        roles: Arc::from([crate::auth::Role::new("root", "admin")]),
    };
    let identity = match (&call.client.identity, call.core.config.auth) {
        (Some(identity), _) => Some(identity.clone()),
        (None, AuthMode::Off) => Some(everybody),
        (None, AuthMode::Required) => None,
    };
    let users: Vec<Bson> = (call.client.identity.iter())
        .map(|identity| {
            doc! { "user" => identity.user.to_string(), "db" => identity.database.to_string() }.into()
        })
        .collect();
    let named = call.client.identity.iter().flat_map(|identity| identity.roles.iter());
    let roles: Vec<Bson> = named
        .map(|role| doc! { "role" => role.name.to_string(), "db" => role.database.to_string() }.into())
        .collect();
    let mut info =
        doc! { "authenticatedUsers" => Bson::array(users), "authenticatedUserRoles" => Bson::array(roles) };
    if options::flag(call.body, "showPrivileges", false)? {
        let privileges = identity.iter().flat_map(|identity| identity.roles.iter()).map(|role| {
            let mut actions: Vec<Bson> = Vec::new();
            if role_reads(&role.name) {
                actions.extend(["find", "listCollections", "listIndexes", "collStats", "dbStats", "changeStream"].map(Bson::from));
            }
            if role_writes(&role.name) {
                let names = [
                    "insert", "update", "remove", "createCollection", "createIndex", "dropCollection", "dropIndex",
                    "dropDatabase", "collMod",
                ];
                actions.extend(names.map(Bson::from));
            }
            Bson::from(doc! { "resource" => doc! { "db" => "", "collection" => "" }, "actions" => Bson::array(actions) })
        });
        info.push("authenticatedUserPrivileges", Bson::array(privileges.collect()));
    }
    Ok(doc! { "authInfo" => info }.into())
}
