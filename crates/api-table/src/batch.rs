//! `$batch`: up to a hundred changes of one partition, all or none; or one query.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, IF_MATCH};
use http::{HeaderName, HeaderValue, StatusCode};
use orrery_engine::{BatchReply, Container, Item, Kind};

use crate::actions::{self, Action};
use crate::date_time;
use crate::dialect::Dialect;
use crate::entities::{self, Attempt, Change, Preference, TRIES_MAX, was_overtaken};
use crate::errors::{Code, Result, TableError};
use crate::multipart::{self, Operation, Part};
use crate::params::Params;
use crate::render::Metadata;
use crate::routes::{self, Resource};
use crate::service::{Answer, Context};
use crate::service_store::key;
use crate::{names, query, tables, timestamp};

/// Largest batch.
const COSMOS_BYTES_MAX: usize = 2 * 1024 * 1024;
const STORAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

pub async fn execute(context: &Context<'_>) -> Result<Answer> {
    let max = match context.dialect {
        Dialect::Cosmos => COSMOS_BYTES_MAX,
        Dialect::Storage => STORAGE_BYTES_MAX,
    };
    if context.body.len() > max {
        return Err(Code::ContentLengthExceeded.into());
    }
    let content_type = context.header(CONTENT_TYPE).unwrap_or("");
    let batch = match multipart::parse(content_type, context.body) {
        Ok(batch) => batch,
        // One operation too many is an error of the changeset.
        Err(error) if error.operation.is_some() => return Ok(failed(context, &error)),
        Err(error) => return Err(error),
    };
    if batch.operations.is_empty() {
        return Err(TableError::new(
            Code::InvalidInput,
            "One of the request inputs is not valid. The batch holds no operations. Request url is invalid.",
        ));
    }
    if !batch.changeset {
        return query_alone(context, &batch.operations[0]).await;
    }
    match changeset(context, &batch.operations).await {
        Ok(answer) => Ok(answer),
        // Who may not do it, or cannot, is told as in single requests.
        Err(error) => Ok(failed(context, &error)),
    }
}

/// The path and the query string of an address inside of a batch, without the account.
fn local_path<'o>(context: &Context<'_>, address: &'o str) -> (&'o str, &'o str) {
    let path = match address.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => address,
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    (routes::under_account(path, context.account_name).map_or(path, |(rest, _)| rest), query)
}

/// An operation with what its address means.
async fn target<'o>(
    context: &Context<'_>,
    operation: &'o Operation<'_>,
) -> Result<(Action, Resource, Params<'o>)> {
    let (path, query) = local_path(context, operation.address);
    let resource = routes::parse(path)?;
    let params = Params::parse(query);
    let tunnelled = operation.headers.get("x-http-method").and_then(|method| method.to_str().ok());
    let conditional = operation.headers.contains_key(IF_MATCH);
    let action = actions::decide(&operation.method, tunnelled, &resource, &params, conditional)?;
    context.caller.permits(context.account(), action, &resource, context.dialect).await?;
    Ok((action, resource, params))
}

async fn query_alone(context: &Context<'_>, operation: &Operation<'_>) -> Result<Answer> {
    let (action, resource, params) = target(context, operation).await?;
    let accept = operation.headers.get("accept").and_then(|accept| accept.to_str().ok());
    let inner = Context {
        action,
        params: &params,
        headers: &operation.headers,
        metadata: Metadata::of_accept(accept.unwrap_or("")),
        body: &[],
        ..*context
    };
    let answered = match (action, &resource) {
        (Action::QueryEntities, Resource::Entities(table)) => query::execute(&inner, table),
        (Action::ReadEntity, Resource::Entity(name)) => entities::read(&inner, name).await,
        _ => return Err(TableError::new(Code::InvalidInput, "A batch without changeset holds one query.")),
    };
    let (part, charge_ru, budget) = match answered {
        Ok(answer) => {
            let headers = answer.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            let part = Part { status: answer.status, headers, content_id: None, body: answer.body };
            (part, answer.charge_ru, answer.budget)
        }
        Err(error) => {
            let charge_ru = error.charge_ru;
            (error_part(context, &error), charge_ru, None)
        }
    };
    let mut answer = accepted(context, &[part], false).charge(charge_ru);
    answer.budget = budget;
    Ok(answer)
}

fn accepted(context: &Context<'_>, parts: &[Part], changeset: bool) -> Answer {
    let id = context.service.random_id().hyphenated().to_string();
    let (content_type, body) = multipart::write(parts, changeset, &id);
    Answer { body, ..Answer::new(StatusCode::ACCEPTED).set(CONTENT_TYPE, content_type) }
}

fn error_part(context: &Context<'_>, error: &TableError) -> Part {
    let time = date_time::text(date_time::of_unix_seconds(context.account().env().now_ms() / 1000));
    let id = context.service.random_id().hyphenated().to_string();
    let json = HeaderValue::from_static("application/json;odata=minimalmetadata");
    Part {
        status: error.status(),
        headers: vec![(CONTENT_TYPE, json)],
        content_id: None,
        body: error.body(context.dialect, &id, &time),
    }
}

/// A changeset that failed has one answer, which names the culprit.
fn failed(context: &Context<'_>, error: &TableError) -> Answer {
    accepted(context, &[error_part(context, error)], true).charge(error.charge_ru)
}

async fn changeset(context: &Context<'_>, operations: &[Operation<'_>]) -> Result<Answer> {
    let mut changes: Vec<Change<'_>> = Vec::with_capacity(operations.len());
    let mut table: Option<String> = None;
    for (index, operation) in operations.iter().enumerate() {
        let (change, named) = change(context, operation).await.map_err(|error| error.of_operation(index))?;
        let other = |code: Code| TableError::from(code).of_operation(index);
        match &table {
            Some(first) if !names::same_table(first, &named, context.dialect) => {
                return Err(other(Code::CommandsInBatchActOnDifferentPartitions));
            }
            Some(_) => {}
            None => table = Some(named),
        }
        if changes.first().is_some_and(|first| first.partition_key != change.partition_key) {
            return Err(other(Code::CommandsInBatchActOnDifferentPartitions));
        }
        if changes.iter().any(|known| known.row_key == change.row_key) {
            return Err(other(Code::InvalidDuplicateRow));
        }
        changes.push(change);
    }
    let table = tables::find(context.account(), table.as_deref().unwrap_or(""), context.dialect);
    let table = table.map_err(|error| match (error.code, context.dialect) {
        (Code::TableNotFound, Dialect::Cosmos) => TableError::from(Code::ResourceNotFound).of_operation(0),
        (Code::TableNotFound, Dialect::Storage) => error.of_operation(0),
        _ => error,
    })?;
    let (items, charge_ru) = commit(&table, &changes).await?;
    let parts: Vec<Part> = operations
        .iter()
        .zip(&changes)
        .zip(&items)
        .map(|((operation, change), item)| part(context, &table, operation, change, item.as_ref()))
        .collect();
    Ok(accepted(context, &parts, true).charge(charge_ru))
}

/// The change that an operation means, and the table it is about.
async fn change<'o>(context: &Context<'_>, operation: &'o Operation<'_>) -> Result<(Change<'o>, String)> {
    let (action, resource, _) = target(context, operation).await?;
    let if_match = operation.headers.get(IF_MATCH).and_then(|condition| condition.to_str().ok());
    match (action, resource) {
        (Action::InsertEntity, Resource::Entities(table)) => {
            Ok((Change::insert(context, operation.body)?, table))
        }
        (
            Action::ReplaceEntity
            | Action::InsertOrReplaceEntity
            | Action::MergeEntity
            | Action::InsertOrMergeEntity
            | Action::DeleteEntity,
            Resource::Entity(name),
        ) => {
            let change = Change::new(context, action, &name, if_match, operation.body)?;
            Ok((change, name.table))
        }
        _ => Err(TableError::new(Code::InvalidInput, "A changeset holds changes of entities only.")),
    }
}

/// Makes all changes or none. What depends on versions that others changed meanwhile is made anew.
async fn commit(table: &Arc<Container>, changes: &[Change<'_>]) -> Result<(Vec<Option<Item>>, f64)> {
    let Some(first) = changes.first() else { return Ok((Vec::new(), 0.0)) };
    let key = key(&first.partition_key);
    for _ in 0..TRIES_MAX {
        let mut writes = Vec::with_capacity(changes.len());
        let mut again = Vec::with_capacity(changes.len());
        for (index, change) in changes.iter().enumerate() {
            let Attempt { write, again: bound } =
                change.attempt(table).await.map_err(|error| error.of_operation(index))?;
            writes.push(write);
            again.push(bound);
        }
        let reply: BatchReply = table.write_batch(&key, writes).await.map_err(TableError::of_entity)?;
        let charge_ru = reply.charge_ru;
        if reply.committed {
            return Ok((reply.results.into_iter().map(|result| result.item).collect(), charge_ru));
        }
        let culprit = reply.results.into_iter().enumerate().find_map(|(index, result)| match result.status {
            Err(error) if error.kind != Kind::FailedDependency => Some((index, error)),
            _ => None,
        });
        match culprit {
            Some((index, error)) if again[index] && was_overtaken(error.kind) => {}
            Some((index, error)) => {
                let error = TableError::of_entity(error).of_operation(index);
                return Err(TableError { charge_ru, ..error });
            }
            None => return Err(Code::InternalError.into()),
        }
    }
    Err(TableError::new(
        Code::ServerBusy,
        "Others change the entities all the time. Please retry your request.",
    ))
}

fn part(
    context: &Context<'_>,
    table: &Container,
    operation: &Operation<'_>,
    change: &Change<'_>,
    item: Option<&Item>,
) -> Part {
    let prefers_content = operation
        .headers
        .get("prefer")
        .and_then(|wish| wish.to_str().ok())
        .is_some_and(|wish| wish.trim() == Preference::Content.name());
    let answer = match (change.action, item) {
        (Action::InsertEntity, Some(item)) => {
            let preference = if prefers_content { Preference::Content } else { Preference::NoContent };
            let answer = entities::inserted(context, table.name(), change, item, Some(preference));
            match operation.headers.contains_key("prefer") {
                true => answer,
                false => without(answer, entities::PREFERENCE_APPLIED),
            }
        }
        (_, Some(item)) => Answer::new(StatusCode::NO_CONTENT)
            .set(http::header::ETAG, timestamp::etag(timestamp::of_item(item))),
        (_, None) => Answer::new(StatusCode::NO_CONTENT),
    };
    Part {
        status: answer.status,
        headers: answer.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        content_id: operation.content_id.map(str::to_owned),
        body: answer.body,
    }
}

fn without(mut answer: Answer, name: HeaderName) -> Answer {
    answer.headers.remove(name);
    answer
}
