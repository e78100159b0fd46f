//! Documents in a container: how they are found, read and written.
//!
//! ```text
//! find, match ── filter ── point reads, or a statement of SQL that selects what may match ── exact filter ── rows
//! insert, update, delete ── item with an id derived from `_id` ── write bound to the version that was read
//! ```

pub mod grouping;
pub mod host;
pub mod id_text;
mod in_order;
mod item_form;
mod lowering;
pub mod past;
pub mod read;
pub mod rows;
pub mod rules;
mod scan;
mod statement;
#[cfg(test)]
mod tests;
pub mod transaction;
pub mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use orrery_engine::Container;
use orrery_model::{DocWriter, PartitionKey, Raw};
use orrery_mongo::stored::{DOCUMENT_ID, ITEM_ID, OWN_ID, OWN_TTL, stored_name};
use orrery_mongo::{Bson, Document, Error, Result, ValueRef, codec, error::code};
use parking_lot::Mutex;

use crate::catalog::Meta;
use crate::service::Core;
use crate::sessions::SessionId;
use crate::wire::DOCUMENT_BYTES_MAX;
use transaction::Transaction;

pub use item_form::Found;

/// What a command has spent so far.
#[derive(Debug, Default)]
pub struct Spent(AtomicU64);

impl Spent {
    pub fn add(&self, charge_ru: f64) {
        let _ =
            self.0.fetch_update(Relaxed, Relaxed, |bits| Some((f64::from_bits(bits) + charge_ru).to_bits()));
    }

    pub fn charge_ru(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

/// On whose account a collection is read and written.
#[derive(Clone)]
pub struct Scope {
    pub core: Arc<Core>,
    pub spent: Arc<Spent>,
    pub transaction: Option<(SessionId, Arc<Mutex<Transaction>>)>,
    /// Collections are read as they were at this moment.
    pub moment: Option<Arc<past::Moment>>,
}

/// A collection that exists.
#[derive(Clone)]
pub struct Collection {
    pub database: Arc<str>,
    pub name: Arc<str>,
    pub container: Arc<Container>,
    pub meta: Arc<Meta>,
}

/// A document on its way into a container.
pub struct NewItem {
    pub key: PartitionKey,
    pub id: String,
    pub document: Bytes,
}

impl Collection {
    pub fn namespace(&self) -> String {
        format!("{}.{}", self.database, self.name)
    }

    /// The path of the shard key, if there is one.
    pub fn shard_key(&self) -> Option<String> {
        shard_key(&self.container)
    }

    /// The key of the logical partition that an item lies in.
    pub fn key_of(&self, item: Raw<'_>) -> PartitionKey {
        self.container.definition().partition_key.extract(item)
    }

    /// The item of a document. `_id` is there.
    pub fn item_of(&self, document: &Document) -> Result<NewItem> {
        let id = document
            .get(DOCUMENT_ID)
            .ok_or_else(|| Error::new(code::NO_SUCH_KEY, "a document has no _id"))?;
        check_id(id)?;
        let id_text = id_text::id_text(id);
        let mut writer = DocWriter::keeping_widths(256);
        writer.begin_object();
        writer.key(DOCUMENT_ID);
        codec::write_stored(ValueRef::Owned(id), &mut writer);
        writer.key(ITEM_ID);
        writer.string(&id_text);
        // A second `_id` is none.
        for (name, value) in document.iter().filter(|(name, _)| &***name != DOCUMENT_ID) {
            if matches!(&**name, OWN_ID | OWN_TTL) {
                return Err(Error::new(
                    code::DOLLAR_PREFIXED_FIELD_NAME,
                    format!(
                        "The dollar ($) prefixed field '{name}' in '{name}' is not allowed in the context of an insert or \
                         update: it is where a field named '{}' is kept.",
                        &name[1..]
                    ),
                ));
            }
            writer.key(stored_name(name, value));
            codec::write_stored(ValueRef::Owned(value), &mut writer);
        }
        writer.end_object();
        let bytes = Bytes::from(writer.finish());
        if bytes.len() > DOCUMENT_BYTES_MAX - DOCUMENT_BYTES_MAX / 16 {
            check_size(document)?;
        }
        let raw = Raw::document(&bytes)
            .map_err(|_| Error::new(code::INTERNAL_ERROR, "a document could not be stored"))?;
        Ok(NewItem { key: self.key_of(raw), id: id_text, document: bytes })
    }

    /// The shard key must be somewhere to lie by.
    pub fn check_shard_key(&self, document: &Document) -> Result<()> {
        let Some(path) = self.shard_key() else { return Ok(()) };
        let mut value = None;
        let mut at = document;
        for (n, name) in path.split('.').enumerate() {
            if n > 0 {
                match value.and_then(Bson::as_document) {
                    Some(inner) => at = inner,
                    None => return Err(missing_shard_key(&path)),
                }
            }
            value = at.get(name);
        }
        match value {
            Some(Bson::Array(_)) => Err(Error::new(
                code::SHARD_KEY_NOT_FOUND,
                format!("Shard key cannot contain array values: {path}"),
            )),
            Some(_) => Ok(()),
            None => Err(missing_shard_key(&path)),
        }
    }
}

/// A document is measured in its own form.
fn check_size(document: &Document) -> Result<()> {
    let mut bytes = Vec::new();
    codec::write_document(ValueRef::OwnedDocument(document), &mut bytes);
    match bytes.len() {
        ..=DOCUMENT_BYTES_MAX => Ok(()),
        size => Err(Error::new(
            code::BSON_OBJECT_TOO_LARGE,
            format!(
                "BSONObj size: {size} is invalid. Size must be between 0 and {DOCUMENT_BYTES_MAX} (16MB)"
            ),
        )),
    }
}

fn missing_shard_key(path: &str) -> Error {
    Error::new(
        code::SHARD_KEY_NOT_FOUND,
        format!(
            "document does not contain shard key. Please include the field '{path}', by which the collection is partitioned."
        ),
    )
}

/// The path of a container's partition key as MongoDB writes paths.
pub fn shard_key(container: &Container) -> Option<String> {
    let definition = container.definition();
    let key = &definition.partition_key;
    if key.system_key {
        return None;
    }
    key.paths.first().map(|path| path.segments().join("."))
}

/// What an `_id` may not be.
pub fn check_id(id: &Bson) -> Result<()> {
    let refused = |what: &str| {
        Err(Error::new(code::INVALID_ID_FIELD, format!("The '_id' value cannot be of type {what}")))
    };
    match id {
        Bson::Array(_) => refused("array"),
        Bson::Regex(_) => refused("regex"),
        Bson::Undefined => refused("undefined"),
        Bson::Document(document) if document.first().is_some_and(|(name, _)| name.starts_with('$')) => {
            let name = document.first().map(|(name, _)| name.to_string()).unwrap_or_default();
            Err(Error::new(
                code::DOLLAR_PREFIXED_FIELD_NAME,
                format!("_id fields may not contain '$'-prefixed fields: {name} is not valid for storage."),
            ))
        }
        _ => Ok(()),
    }
}

/// A document without what is given out first: an `_id` in front, zero timestamps filled in.
pub fn prepared(core: &Core, document: &Document) -> Document {
    let mut document = document.clone();
    match document.get(DOCUMENT_ID) {
        None => document.push_front(DOCUMENT_ID, Bson::ObjectId(core.new_object_id())),
        Some(_) if document.first().is_some_and(|(name, _)| &**name == DOCUMENT_ID) => {}
        Some(_) => {
            if let Some(id) = document.remove(DOCUMENT_ID) {
                document.push_front(DOCUMENT_ID, id);
            }
        }
    }
    let zero = |value: &Bson| matches!(value, Bson::Timestamp { seconds: 0, increment: 0 });
    if document.iter().any(|(name, value)| &**name != DOCUMENT_ID && zero(value)) {
        for (name, value) in document.members_mut() {
            if &**name != DOCUMENT_ID && zero(value) {
                let (seconds, increment) = core.clock.tick(core.account.env().now_s());
                *value = Bson::Timestamp { seconds, increment };
            }
        }
    }
    document
}
