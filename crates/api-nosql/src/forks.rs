//! Forks, under `/_orrery`: databases that begin with what another holds at this moment, made and dropped in
//! milliseconds, whatever is in it.
//!
//! ```text
//! POST   /_orrery/forks  {"database": "shop", "name": "test-7", "replace": true}
//!                                     201 {"id": "test-7", "origin": "shop", "containers": 3, "partitions": 8, …}
//! GET    /_orrery/forks               {"forks": [{"id": "test-7", "origin": "shop", …}], "heldBytes": 4096}
//! DELETE /_orrery/forks               204; no forks are left
//! ```
//!
//! `name` may be left out, and is then the first of `shop-fork-1`, `shop-fork-2`, … that is free. A fork is a database
//! like any other from there on, and one of them is dropped as a database is. It ends with the server
//! (`engine::catalog::forks`).

use std::time::Instant;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use orrery_engine::{Database, Error, Kind, Ref};
use serde_json::{Value, json};

use crate::body;
use crate::errors::{ApiError, Plane, Result, Voice};
use crate::headers::Answer;
use crate::rid::database_rid;
use crate::service::Context;

const SHAPE: &str =
    "The body must be {\"database\": NAME} with, if wanted, \"name\": NAME and \"replace\": true.";

pub async fn create(context: &Context<'_>) -> Result<Answer> {
    let wanted = body::object(context)?;
    let text = |member: &str| match wanted.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(ApiError::refused(SHAPE.to_owned())),
    };
    let origin = text("database")?.ok_or_else(|| ApiError::refused(SHAPE.to_owned()))?;
    let replace = match wanted.get("replace") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(replace)) => *replace,
        Some(_) => return Err(ApiError::refused(SHAPE.to_owned())),
    };
    let name = match text("name")? {
        Some(name) => name.to_owned(),
        None => free_name(context, origin),
    };
    let started = Instant::now();
    let made = context.account().fork_database(Ref::Name(origin), &name, replace).await;
    let database = made.map_err(|error| refusal(error, origin, &name, replace))?;
    let took_us = started.elapsed().as_micros() as u64;
    tracing::info!(origin, fork = database.name, took_us, "a database was forked");
    let mut answer = describe(&database);
    answer["tookUs"] = took_us.into();
    Ok(context.answer(StatusCode::CREATED).body(answer.to_string().into_bytes()))
}

pub fn list(context: &Context<'_>) -> Result<Answer> {
    let databases = context.account().databases();
    let forks = databases.iter().filter(|database| database.forked_from().is_some());
    let forks: Vec<Value> = forks.map(|database| describe(database)).collect();
    let held = context.account().store().stats().fork_bytes;
    let answer = json!({"forks": forks, "heldBytes": held});
    Ok(context.answer(StatusCode::OK).body(answer.to_string().into_bytes()))
}

pub async fn drop_all(context: &Context<'_>) -> Result<Answer> {
    for database in context.account().databases() {
        if database.forked_from().is_some() {
            let deleted = context.account().delete_database(Ref::Number(database.number), None).await;
            deleted.map_err(|error| ApiError::from_engine(error, Plane::Resources))?;
        }
    }
    let mut answer = context.answer(StatusCode::NO_CONTENT);
    answer.headers.remove(CONTENT_TYPE);
    Ok(answer)
}

/// In words of our own: this route is no service's.
fn refusal(error: Error, origin: &str, name: &str, replace: bool) -> ApiError {
    let (status, message) = match error.kind {
        Kind::NotFound => (StatusCode::NOT_FOUND, format!("There is no database '{origin}'.")),
        Kind::AlreadyExists if replace => (StatusCode::CONFLICT, error.message),
        Kind::AlreadyExists => {
            (StatusCode::CONFLICT, format!("There is a database '{name}' already; a fork can be replaced."))
        }
        _ => return ApiError::from_engine(error, Plane::Resources),
    };
    ApiError::new(status, Voice::Gateway, message)
}

fn free_name(context: &Context<'_>, origin: &str) -> String {
    let names = (1u32..).map(|number| format!("{origin}-fork-{number}"));
    let free = |name: &String| context.account().database(Ref::Name(name)).is_err();
    // There are fewer databases than numbers.
    names.into_iter().find(free).unwrap_or_default()
}

fn describe(database: &Database) -> Value {
    let containers = database.containers();
    let partitions: usize = containers.iter().map(|container| container.ranges().len()).sum();
    json!({
        "id": database.name,
        "_rid": database_rid(database.number),
        "_ts": database.ts,
        "origin": database.forked_from(),
        "containers": containers.len(),
        "partitions": partitions,
    })
}
