//! What the service keeps besides data: stored access policies and the account's properties.
//!
//! It lies in items of a container of its own next to the tables, which no table can be called like. So it is as
//! durable as they are, is saved and restored with them, and needs nothing of the catalog.

use std::sync::Arc;

use orrery_engine::{
    Container, ContainerDefinition, KeyKinds, Kind, Operation, ReadOptions, Ref, Write, block_on,
};
use orrery_model::{DocWriter, KeyComponent, PartitionKey, Raw};
use serde_json::json;

use crate::config::DATABASE;
use crate::errors::{Result, TableError};
use crate::names::SERVICE_CONTAINER;
use crate::service::TableService;
use crate::tables;

/// The logical partition of what belongs to the account.
pub const ACCOUNT: &str = "account";
/// Largest text that is kept.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

const OWNER: &str = "owner";
const TEXT: &str = "text";

pub fn key(value: &str) -> PartitionKey {
    PartitionKey([KeyComponent::String(value.to_owned())].into_iter().collect())
}

fn container(service: &TableService) -> Option<Arc<Container>> {
    let database = service.account.database(Ref::Name(DATABASE)).ok()?;
    database.container(Ref::Name(SERVICE_CONTAINER)).ok()
}

/// A kept text; `None` where nothing was set. Waits for it on the caller's thread where its partition is elsewhere.
pub fn read(service: &TableService, owner: &str, id: &str) -> Result<Option<String>> {
    let Some(container) = container(service) else { return Ok(None) };
    match block_on(container.read_item(&key(owner), id, &ReadOptions::default())) {
        Ok(reply) => Ok(reply.item.body().get(TEXT).and_then(Raw::as_str).map(str::to_owned)),
        Err(error) if matches!(error.kind, Kind::NotFound | Kind::OwnerNotFound) => Ok(None),
        Err(error) => Err(TableError::of_entity(error)),
    }
}

/// Keeps a text.
pub async fn set(service: &TableService, owner: &str, id: &str, text: &str) -> Result<()> {
    let container = match container(service) {
        Some(container) => container,
        None => create(service).await?,
    };
    let mut out = DocWriter::new();
    out.begin_object();
    for (name, value) in [("id", id), (OWNER, owner), (TEXT, text)] {
        out.key(name);
        out.string(value);
    }
    out.end_object();
    let operation = Operation::Upsert { id: id.to_owned(), document: out.finish().into() };
    container.write_item(&key(owner), Write::new(operation)).await.map_err(TableError::of_entity)?;
    Ok(())
}

/// Forgets a text, if there is one.
pub async fn remove(service: &TableService, owner: &str, id: &str) {
    if let Some(container) = container(service) {
        let operation = Operation::Delete { id: id.to_owned() };
        // Numbers of tables are not used again, so what stays behind belongs to nobody.
        drop(container.write_item(&key(owner), Write::new(operation)).await);
    }
}

async fn create(service: &TableService) -> Result<Arc<Container>> {
    let database = tables::database(service).await?;
    let definition = json!({
        "id": SERVICE_CONTAINER,
        "partitionKey": {"paths": [format!("/{OWNER}")], "kind": "Hash", "version": 2},
        "indexingPolicy": {"indexingMode": "none", "automatic": false},
    });
    let definition = ContainerDefinition::parse(&definition, KeyKinds::All).map_err(TableError::of_table)?;
    match service.account.create_container(&database, definition, None).await {
        Ok(container) => Ok(container),
        Err(error) if error.kind == Kind::AlreadyExists => {
            database.container(Ref::Name(SERVICE_CONTAINER)).map_err(TableError::of_table)
        }
        Err(error) => Err(TableError::of_table(error)),
    }
}
