//! Scripts as resources: create, upsert, read, list, query, replace, delete.
//!
//! Any text is stored. Whether it is a script shows when somebody first runs it, as on the service.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH};
use orrery_engine::{Container, Script, ScriptDefinition, ScriptKind, TriggerOperation, TriggerTime};
use orrery_model::PartitionKey;
use serde_json::Value;

use crate::actions::Action;
use crate::errors::{ApiError, INPUT_INVALID, Plane, Result};
use crate::headers::{self, Answer, At};
use crate::resource_feed::{Entry, Feed};
use crate::rid::Rid;
use crate::routes::Resource;
use crate::service::{Context, Target};
use crate::write::{push_json_string, push_u64};
use crate::{body, items};

/// What the service charges for storing and for removing a script, and for looking at one.
const WRITE_RU: f64 = 4.95;
const READ_RU: f64 = 1.0;

/// How a kind of script is called on the wire.
struct Words {
    keyword: &'static str,
    feed: &'static str,
    quota: &'static str,
}

fn words(kind: ScriptKind) -> Words {
    match kind {
        ScriptKind::Procedure => {
            Words { keyword: "sprocs", feed: "StoredProcedures", quota: "storedProcedures" }
        }
        ScriptKind::Trigger => Words { keyword: "triggers", feed: "Triggers", quota: "triggers" },
        ScriptKind::Function => Words { keyword: "udfs", feed: "UserDefinedFunctions", quota: "functions" },
    }
}

const TIMES: [(&str, TriggerTime); 2] = [("Pre", TriggerTime::Pre), ("Post", TriggerTime::Post)];
const OPERATIONS: [(&str, TriggerOperation); 6] = [
    ("All", TriggerOperation::All),
    ("Create", TriggerOperation::Create),
    ("Update", TriggerOperation::Update),
    ("Delete", TriggerOperation::Delete),
    ("Replace", TriggerOperation::Replace),
    ("Upsert", TriggerOperation::Upsert),
];

/// The wire's word for a value of a table.
pub fn word<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}

pub fn time_word(time: TriggerTime) -> &'static str {
    word(&TIMES, time)
}

pub fn operation_word(operation: TriggerOperation) -> &'static str {
    word(&OPERATIONS, operation)
}

pub async fn create_or_upsert(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let definition = definition(context)?;
    let known = target.container.scripts().by_id(definition.kind, &definition.id).cloned();
    let stored = match known {
        Some(known) if context.action == Action::UpsertScript => {
            let if_match = context.text(IF_MATCH);
            let replaced =
                context.account().replace_script(&target.container, known.number, definition, if_match).await;
            replaced.map(|script| (StatusCode::OK, script))
        }
        _ => {
            let created = context.account().create_script(&target.container, definition).await;
            created.map(|script| (StatusCode::CREATED, script))
        }
    };
    let (status, script) = stored.map_err(|error| refused(&target, error))?;
    Ok(one(context, &target, status, &script).charge(WRITE_RU))
}

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let script = find(context, &target, kind(context))?;
    if context.text(IF_NONE_MATCH).is_some_and(|etag| script.etag.matches(etag)) {
        let answer = context.answer(StatusCode::NOT_MODIFIED).at(position(&target)).charge(READ_RU);
        return Ok(answer.etag(&script.etag.to_string()));
    }
    Ok(one(context, &target, StatusCode::OK, &script).charge(READ_RU))
}

pub async fn replace(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let definition = definition(context)?;
    let script = find(context, &target, definition.kind)?;
    let if_match = context.text(IF_MATCH);
    let replaced =
        context.account().replace_script(&target.container, script.number, definition, if_match).await;
    let script = replaced.map_err(|error| refused(&target, error))?;
    Ok(one(context, &target, StatusCode::OK, &script).charge(WRITE_RU))
}

pub async fn delete(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let script = find(context, &target, kind(context))?;
    let (kind, number) = (script.definition.kind, script.number);
    let deleted =
        context.account().delete_script(&target.container, kind, number, context.text(IF_MATCH)).await;
    deleted.map_err(|error| refused(&target, error))?;
    let mut answer = context
        .answer(StatusCode::NO_CONTENT)
        .at(position(&target))
        .charge(WRITE_RU)
        .owner(target.alt_path(), target.rid.as_str());
    answer.headers.remove(CONTENT_TYPE);
    Ok(answer)
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.list(context))
}

pub fn query(context: &Context<'_>) -> Result<Answer> {
    feed(context, |feed| feed.query(context))
}

fn feed(context: &Context<'_>, answer: impl FnOnce(Feed<'_>) -> Result<Answer>) -> Result<Answer> {
    let target = context.container_inside()?;
    let kind = kind(context);
    let scripts = target.container.scripts();
    let entries = scripts.list(kind).map(|script| Entry {
        // Numbers of scripts are LSNs of the catalog; it has room for four billion changes.
        number: u32::try_from(script.number).unwrap_or(u32::MAX),
        json: json(&target, script),
    });
    let entries = entries.collect();
    let answer = answer(Feed { key: words(kind).feed, rid: target.rid.as_str(), entries })?;
    Ok(answer.at(position(&target)).owner(target.alt_path(), target.rid.as_str()))
}

/// The script that the path names, by id or by rid.
pub fn find(context: &Context<'_>, target: &Target, kind: ScriptKind) -> Result<Arc<Script>> {
    let found = by_link(&target.container, kind, context.path.id(2));
    found.ok_or_else(|| refused(target, orrery_engine::Error::not_found()))
}

/// The script that a link calls by its id or its rid.
pub fn by_link(container: &Container, kind: ScriptKind, name: &str) -> Option<Arc<Script>> {
    let scripts = container.scripts();
    let named = scripts.by_id(kind, name).cloned();
    named.or_else(|| match Rid::parse(name) {
        Some(Rid::Script { database, container: owner, kind: of, number })
            if of == kind && database == container.database().number && owner == container.number() =>
        {
            scripts.by_number(kind, number).cloned()
        }
        _ => None,
    })
}

fn kind(context: &Context<'_>) -> ScriptKind {
    match context.path.resource {
        Resource::Scripts(kind) | Resource::Script(kind) => kind,
        // The router sends nothing else here.
        _ => ScriptKind::Procedure,
    }
}

fn definition(context: &Context<'_>) -> Result<ScriptDefinition> {
    let given = body::object(context)?;
    let kind = kind(context);
    let id = body::id(&given)?.to_owned();
    let text = |name: &str| match given.get(name) {
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(ApiError::bad_request(INPUT_INVALID)),
        None => Err(ApiError::bad_request(format!(
            "The input content is invalid because the required properties - '{name}; ' - are missing"
        ))),
    };
    let (trigger, spelling) = match kind {
        ScriptKind::Trigger => {
            let (time, operation) = (text("triggerType")?, text("triggerOperation")?);
            let trigger = (choice(time, &TIMES)?, choice(operation, &OPERATIONS)?);
            (Some(trigger), (time.to_owned(), operation.to_owned()))
        }
        _ => (None, Default::default()),
    };
    Ok(ScriptDefinition { kind, id, body: text("body")?.to_owned(), trigger, spelling })
}

fn choice<T: Copy>(text: &str, table: &[(&'static str, T)]) -> Result<T> {
    let found = table.iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| ApiError::bad_request(INPUT_INVALID))
}

fn one(context: &Context<'_>, target: &Target, status: StatusCode, script: &Script) -> Answer {
    let kind = script.definition.kind;
    let quota = words(kind).quota;
    let count = target.container.scripts().count(kind);
    let text = |number: usize| headers::text_value(&format!("{quota}={number};"));
    context
        .answer(status)
        .at(position(target))
        .etag(&script.etag.to_string())
        .owner(target.alt_path(), target.rid.as_str())
        .set(headers::RESOURCE_QUOTA, text(kind.count_max()))
        .set(headers::RESOURCE_USAGE, text(count))
        .body(json(target, script))
}

/// How many scripts of each kind a container has and may have, for its quota headers.
pub fn usage_text(container: &orrery_engine::Container) -> (String, String) {
    let scripts = container.scripts();
    let mut texts = (String::new(), String::new());
    for kind in ScriptKind::ALL {
        let quota = words(kind).quota;
        texts.0.push_str(&format!("{quota}={};", kind.count_max()));
        texts.1.push_str(&format!("{quota}={};", scripts.count(kind)));
    }
    texts
}

/// Clients continue their session with the token of this answer, so it must be one that a partition can honour.
fn position(target: &Target) -> At {
    items::place(target, &PartitionKey::default())
}

fn refused(target: &Target, error: orrery_engine::Error) -> ApiError {
    ApiError::from_engine(error, Plane::Resources).at(position(target))
}

fn json(target: &Target, script: &Script) -> Vec<u8> {
    let ScriptDefinition { kind, id, body, trigger, spelling } = &script.definition;
    let rid = target.rid.script(*kind, script.number);
    let mut out = Vec::with_capacity(body.len() + 256);
    out.extend_from_slice(b"{\"id\":");
    push_json_string(&mut out, id);
    out.extend_from_slice(b",\"body\":");
    push_json_string(&mut out, body);
    if trigger.is_some() {
        out.extend_from_slice(b",\"triggerOperation\":");
        push_json_string(&mut out, &spelling.1);
        out.extend_from_slice(b",\"triggerType\":");
        push_json_string(&mut out, &spelling.0);
    }
    out.extend_from_slice(b",\"_rid\":\"");
    out.extend_from_slice(&rid);
    out.extend_from_slice(b"\",\"_self\":\"");
    target.rid.write_self(&mut out);
    out.extend_from_slice(words(*kind).keyword.as_bytes());
    out.push(b'/');
    out.extend_from_slice(&rid);
    out.extend_from_slice(b"/\",\"_etag\":");
    push_json_string(&mut out, &script.etag.to_string());
    out.extend_from_slice(b",\"_ts\":");
    push_u64(&mut out, u64::from(script.ts));
    out.push(b'}');
    out
}
