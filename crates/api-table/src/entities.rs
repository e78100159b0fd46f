//! Entities: insert, read, replace, merge, delete, with and without conditions.
//!
//! Etags of this protocol are times, so a condition is held against the version that was read, and the write itself
//! is bound to that version by the engine's own etag. A merge is bound to the version that it was made from in the
//! same way. Whoever was overtaken reads and tries again, unless the client named the version.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ETAG, IF_MATCH, LOCATION};
use http::{HeaderName, StatusCode};
use orrery_engine::{Container, Item, Kind, Operation, ReadOptions, Write};

use crate::actions::Action;
use crate::dialect::Dialect;
use crate::entity::Entity;
use crate::errors::{Code, Result, TableError};
use crate::render::entity_address;
use crate::routes::EntityName;
use crate::service::{Answer, Context};
use crate::service_store::key;
use crate::stored::{self, StoredEntity};
use crate::{names, query, tables, timestamp};

pub const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");
pub const DATA_SERVICE_ID: HeaderName = HeaderName::from_static("dataserviceid");
const PREFER: HeaderName = HeaderName::from_static("prefer");

/// How often a change is tried anew because another one came first.
pub const TRIES_MAX: usize = 64;

/// An item larger than this is changed where that holds up nobody.
const ITEM_IN_PLACE_BYTES: usize = 32 * 1024;

/// What a client wants to see of what it created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    Content,
    NoContent,
}

impl Preference {
    pub fn of(context: &Context<'_>) -> Option<Preference> {
        context.header(PREFER).and_then(Preference::parse)
    }

    fn parse(text: &str) -> Option<Preference> {
        match text.trim() {
            "return-content" => Some(Preference::Content),
            "return-no-content" => Some(Preference::NoContent),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Preference::Content => "return-content",
            Preference::NoContent => "return-no-content",
        }
    }
}

/// A change of one entity, alone or in a batch.
pub struct Change<'a> {
    pub action: Action,
    pub partition_key: String,
    pub row_key: String,
    pub entity: Entity<'a>,
    /// The version that the client wants to change; `None` for any, or none at all.
    pub if_match: Option<&'a str>,
}

/// A write that carries out a change, as far as is known.
pub struct Attempt {
    pub write: Write,
    /// Bound to a version that the client did not name: overtaken, it is tried anew.
    pub again: bool,
}

impl<'a> Change<'a> {
    /// The change that an action on a named entity means.
    pub fn new(
        context: &Context<'_>,
        action: Action,
        name: &EntityName,
        if_match: Option<&'a str>,
        body: &'a [u8],
    ) -> Result<Change<'a>> {
        names::check_keys(&name.partition_key, &name.row_key, context.dialect)?;
        context.caller.permits_entity(&name.partition_key, &name.row_key)?;
        let entity = match action {
            Action::DeleteEntity if if_match.is_none() => return Err(Code::MissingRequiredHeader.into()),
            Action::DeleteEntity => Entity::default(),
            _ => Entity::parse(body, context.dialect)?,
        };
        // Storage goes by the address alone.
        if entity.keys_typed && context.dialect == Dialect::Cosmos {
            return Err(Code::InvalidInput.into());
        }
        Ok(Change {
            action,
            partition_key: name.partition_key.clone(),
            row_key: name.row_key.clone(),
            entity,
            if_match,
        })
    }

    /// The change that an insert means, whose entity brings its keys along.
    pub fn insert(context: &Context<'_>, body: &'a [u8]) -> Result<Change<'a>> {
        let mut entity = Entity::parse(body, context.dialect)?;
        if entity.keys_typed {
            return Err(Code::InvalidInput.into());
        }
        let (Some(partition_key), Some(row_key)) = (entity.partition_key.take(), entity.row_key.take())
        else {
            return Err(Code::PropertiesNeedValue.into());
        };
        let (partition_key, row_key) = (partition_key.into_owned(), row_key.into_owned());
        names::check_keys(&partition_key, &row_key, context.dialect)?;
        context.caller.permits_entity(&partition_key, &row_key)?;
        Ok(Change { action: Action::InsertEntity, partition_key, row_key, entity, if_match: None })
    }

    fn id(&self) -> String {
        stored::id(&self.row_key).to_owned()
    }

    fn document(&self) -> Bytes {
        stored::write(&self.partition_key, &self.row_key, &self.entity)
    }

    /// The write to try next. What it depends on is read now.
    pub async fn attempt(&self, table: &Arc<Container>) -> Result<Attempt> {
        let write = |operation, again| Attempt { write: Write::new(operation), again };
        let named = self.if_match.filter(|condition| condition.trim() != "*");
        let merges = matches!(self.action, Action::MergeEntity | Action::InsertOrMergeEntity);
        if named.is_none() && !merges {
            let (id, document) = (self.id(), || self.document());
            return Ok(write(
                match self.action {
                    Action::InsertEntity => Operation::Create { id, document: document() },
                    Action::InsertOrReplaceEntity => Operation::Upsert { id, document: document() },
                    Action::DeleteEntity => Operation::Delete { id },
                    _ => Operation::Replace { id, document: document() },
                },
                false,
            ));
        }
        let read = table.read_item(&key(&self.partition_key), &self.id(), &ReadOptions::default()).await;
        let present = match read {
            Ok(reply) => Some(reply.item),
            Err(error) if error.kind == Kind::NotFound => None,
            Err(error) => return Err(TableError::of_entity(error)),
        };
        let Some(present) = present else {
            return match self.action {
                Action::InsertOrMergeEntity => {
                    Ok(write(Operation::Create { id: self.id(), document: self.document() }, true))
                }
                _ => Err(Code::ResourceNotFound.into()),
            };
        };
        if named.is_some_and(|condition| !timestamp::matches(condition, timestamp::of_item(&present))) {
            return Err(Code::UpdateConditionNotSatisfied.into());
        }
        let operation = match self.action {
            Action::DeleteEntity => Operation::Delete { id: self.id() },
            _ => Operation::Replace { id: self.id(), document: self.changed(&present) },
        };
        let bound = Write::new(operation).if_match(present.etag.to_string());
        Ok(Attempt { write: bound, again: named.is_none() })
    }

    fn changed(&self, present: &Item) -> Bytes {
        match self.action {
            Action::MergeEntity | Action::InsertOrMergeEntity => {
                stored::merge(present.body(), &self.partition_key, &self.row_key, &self.entity)
            }
            _ => self.document(),
        }
    }
}

/// Whether a failure means that another writer came first.
pub fn was_overtaken(kind: Kind) -> bool {
    matches!(kind, Kind::PreconditionFailed | Kind::AlreadyExists | Kind::NotFound)
}

/// Carries out a change. Returns the new version, if there is one, and the charge.
async fn carry_out(
    context: &Context<'_>,
    table: &Arc<Container>,
    change: &Change<'_>,
) -> Result<(Option<Item>, f64)> {
    let key = key(&change.partition_key);
    for _ in 0..TRIES_MAX {
        let Attempt { write, again } = change.attempt(table).await?;
        let written = match table.stored_bytes(&key, &write.operation) > ITEM_IN_PLACE_BYTES {
            true => context.lengthy(|| table.write_item(&key, write)),
            false => table.write_item(&key, write),
        };
        match written.await {
            Ok(reply) => return Ok((reply.item, reply.charge_ru)),
            Err(error) if again && was_overtaken(error.kind) => {}
            Err(error) => return Err(TableError::of_entity(error)),
        }
    }
    Err(TableError::new(
        Code::ServerBusy,
        "Others change the entity all the time. Please retry your request.",
    ))
}

pub async fn read(context: &Context<'_>, name: &EntityName) -> Result<Answer> {
    let table = tables::find(context.account(), &name.table, context.dialect)?;
    context.caller.permits_entity(&name.partition_key, &name.row_key)?;
    let id = stored::id(&name.row_key);
    let (key, options) = (key(&name.partition_key), ReadOptions::default());
    let reply = table.read_item(&key, id, &options).await.map_err(TableError::of_entity)?;
    let entity =
        StoredEntity::of(reply.item.body()).ok_or_else(|| TableError::from(Code::ResourceNotFound))?;
    let ticks = timestamp::of_item(&reply.item);
    let select = query::selection(context)?;
    let mut body = Vec::with_capacity(reply.item.document.len() + 512);
    context.rendering().entity(table.name(), entity, ticks, select.as_deref(), true, &mut body);
    Ok(context.json(StatusCode::OK, body).set(ETAG, timestamp::etag(ticks)).charge(reply.charge_ru))
}

pub async fn insert(context: &Context<'_>, table: &str) -> Result<Answer> {
    let table = tables::find(context.account(), table, context.dialect)?;
    let change = Change::insert(context, context.body)?;
    let (item, charge_ru) = carry_out(context, &table, &change).await?;
    let item = item.ok_or_else(|| TableError::from(Code::InternalError))?;
    let answer = inserted(context, table.name(), &change, &item, Preference::of(context));
    Ok(answer.charge(charge_ru))
}

/// The answer to an insert, alone or in a batch.
pub fn inserted(
    context: &Context<'_>,
    table: &str,
    change: &Change<'_>,
    item: &Item,
    preference: Option<Preference>,
) -> Answer {
    let ticks = timestamp::of_item(item);
    let address =
        format!("{}/{}", context.endpoint, entity_address(table, &change.partition_key, &change.row_key));
    let shown = StoredEntity::of(item.body()).filter(|_| preference != Some(Preference::NoContent));
    let answer = match shown {
        Some(entity) => {
            let mut body = Vec::with_capacity(item.document.len() + 512);
            context.rendering().entity(table, entity, ticks, None, true, &mut body);
            context.json(StatusCode::CREATED, body)
        }
        None => Answer::new(StatusCode::NO_CONTENT).set(DATA_SERVICE_ID, &address),
    };
    let answer = match preference {
        Some(preference) => answer.set(PREFERENCE_APPLIED, preference.name()),
        None => answer,
    };
    answer.set(LOCATION, &address).set(ETAG, timestamp::etag(ticks))
}

pub async fn change(context: &Context<'_>, name: &EntityName) -> Result<Answer> {
    let table = tables::find(context.account(), &name.table, context.dialect)?;
    let change = Change::new(context, context.action, name, context.header(IF_MATCH), context.body)?;
    let (item, charge_ru) = carry_out(context, &table, &change).await?;
    let answer = Answer::new(StatusCode::NO_CONTENT).charge(charge_ru);
    Ok(match item {
        Some(item) => answer.set(ETAG, timestamp::etag(timestamp::of_item(&item))),
        None => answer,
    })
}
