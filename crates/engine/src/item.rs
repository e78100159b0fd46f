//! Items as callers see them: what is stored, what can be asked, what comes back.
//!
//! An [`Item`] is one stored version: the document in its stored form plus what the row's header says about it. The
//! wire's system properties (`_rid`, `_etag`, `_ts` …) are made from these fields by whoever writes the answer; they
//! are never part of the document.

use std::sync::Arc;

use bytes::Bytes;
use orrery_model::{PatchOp, Raw};

use crate::attachment::{Attached, Attachment, AttachmentChange};
use crate::condition::Condition;
use crate::container::Usage;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::throughput::RequestClass;

/// The members that an item has without being sent them, in the order in which the service prints them; `_lsn` is
/// shown in change feeds alone.
pub const SYSTEM_PROPERTIES: [&str; 6] =
    ["_rid", "_self", ETAG_PROPERTY, "_attachments", TIME_PROPERTY, LSN_PROPERTY];
pub(crate) const ETAG_PROPERTY: &str = "_etag";
pub(crate) const TIME_PROPERTY: &str = "_ts";
const LSN_PROPERTY: &str = "_lsn";

/// Whether a member of an item is the server's. So is `id` in most respects, but it is sent and stored.
pub fn is_system_property(name: &str) -> bool {
    SYSTEM_PROPERTIES.contains(&name)
}

/// Largest item, as JSON text.
pub const ITEM_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Longest id, in bytes.
pub const ID_BYTES_MAX: usize = 1023;
/// Most operations in one patch.
pub const PATCH_OPERATIONS_MAX: usize = 10;

/// One stored version of an item.
#[derive(Debug, Clone)]
pub struct Item {
    /// Given at creation and kept by updates; grows with time within a partition. 60 bits.
    pub number: u64,
    /// The commit that wrote this version.
    pub lsn: u64,
    /// Which change of that commit it was.
    pub sub: u8,
    /// Second of the write.
    pub ts: u32,
    pub etag: Etag,
    /// The item's own time to live.
    pub ttl: Option<i32>,
    /// Trailing members of the document that patches added; they are printed after the system properties.
    pub late_members: u16,
    /// The version came through a merge of partitions; only its feed row's key differs for that.
    pub merged: bool,
    /// Almost no item has any.
    pub attached: Option<Arc<Attached>>,
    /// In stored form.
    pub document: Bytes,
}

impl Item {
    /// The document. A row that cannot be read as one is an empty string value, never a panic; the store's checksums
    /// make that a thing of bad memory, not of bad disks.
    pub fn body(&self) -> Raw<'_> {
        readable(&self.document)
    }

    pub fn id(&self) -> &str {
        self.body().get("id").and_then(Raw::as_str).unwrap_or_default()
    }

    /// In the order of their numbers, which is that of their creation.
    pub fn attachments(&self) -> Result<Vec<Attachment>> {
        self.attached.as_ref().map_or_else(|| Ok(Vec::new()), |attached| attached.attachments())
    }

    /// The same without its attachments, for whoever keeps many items: a piece of a row keeps all of it in memory.
    pub(crate) fn detached(mut self) -> Item {
        if self.attached.take().is_some() {
            self.document = Bytes::copy_from_slice(&self.document);
        }
        self
    }

    /// What the attachments add to the item's row.
    pub(crate) fn attached_bytes(&self) -> usize {
        self.attached.as_ref().map_or(0, |attached| attached.section.len())
    }
}

/// A stored document, or one without members where the bytes are none.
pub(crate) fn readable(document: &[u8]) -> Raw<'_> {
    Raw::document(document).unwrap_or_else(|_| unreadable())
}

/// A document that has no members, for rows that cannot be read.
fn unreadable() -> Raw<'static> {
    static EMPTY: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let empty = EMPTY.get_or_init(|| orrery_model::Value::Object(Vec::new()).to_document());
    Raw::document(empty).expect("just written by the same library")
}

/// What a client has seen so far: a partition that is behind any of these must not answer it.
pub type SessionRequirement = Vec<(u32, u64)>;

#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    pub if_none_match: Option<String>,
    pub session: SessionRequirement,
    pub class: RequestClass,
}

/// A write of one item, alone or inside a batch.
#[derive(Debug, Clone)]
pub struct Write {
    pub operation: Operation,
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    pub session: SessionRequirement,
    /// Of a batch, the class of its first operation counts.
    pub class: RequestClass,
}

impl Write {
    pub fn new(operation: Operation) -> Write {
        Write {
            operation,
            if_match: None,
            if_none_match: None,
            session: SessionRequirement::new(),
            class: RequestClass::default(),
        }
    }

    pub fn if_match(mut self, etag: impl Into<String>) -> Write {
        self.if_match = Some(etag.into());
        self
    }

    pub fn if_none_match(mut self, etag: impl Into<String>) -> Write {
        self.if_none_match = Some(etag.into());
        self
    }
}

impl From<Operation> for Write {
    fn from(operation: Operation) -> Write {
        Write::new(operation)
    }
}

/// `document` is in stored form and without system properties.
#[derive(Clone)]
pub enum Operation {
    Create {
        id: String,
        document: Bytes,
    },
    Upsert {
        id: String,
        document: Bytes,
    },
    Replace {
        id: String,
        document: Bytes,
    },
    Patch {
        id: String,
        operations: Vec<PatchOp>,
        condition: Option<Condition>,
    },
    Delete {
        id: String,
    },
    /// Only inside batches.
    Read {
        id: String,
    },
    /// A change of an attachment. The conditions of the write are about the attachment, not about the item.
    Attach {
        id: String,
        change: Box<AttachmentChange>,
    },
}

impl Operation {
    pub fn id(&self) -> &str {
        match self {
            Operation::Create { id, .. }
            | Operation::Upsert { id, .. }
            | Operation::Replace { id, .. }
            | Operation::Patch { id, .. }
            | Operation::Delete { id }
            | Operation::Read { id }
            | Operation::Attach { id, .. } => id,
        }
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self {
            Operation::Create { .. } => "Create",
            Operation::Upsert { .. } => "Upsert",
            Operation::Replace { .. } => "Replace",
            Operation::Patch { .. } => "Patch",
            Operation::Delete { .. } => "Delete",
            Operation::Read { .. } => "Read",
            Operation::Attach { .. } => "Attach",
        };
        write!(f, "{name}({:?})", self.id())
    }
}

/// Where an answer stands in the history of its partition, and what the partition holds there: every answer says so,
/// and nobody has to ask the partition again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    pub range_id: u32,
    /// The partition's last published commit; of a write, its own.
    pub lsn: u64,
    /// The commit that wrote the item the answer is about.
    pub item_lsn: u64,
    /// Of a write, with what it has written.
    pub usage: Usage,
}

#[derive(Debug, Clone)]
pub struct ItemReply {
    pub item: Item,
    pub charge_ru: f64,
    pub at: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Created,
    Replaced,
    Deleted,
    /// A read inside a batch.
    Read,
}

#[derive(Debug, Clone)]
pub struct WriteReply {
    pub outcome: Outcome,
    /// The version that was written; of a delete, nothing.
    pub item: Option<Item>,
    pub charge_ru: f64,
    pub at: Position,
}

#[derive(Debug, Clone, Copy)]
pub struct WriteAck {
    pub charge_ru: f64,
    pub at: Position,
}

pub(crate) const INVALID_INPUT: &str = "One of the specified inputs is invalid";

pub(crate) fn not_found() -> Error {
    Error::new(Kind::NotFound, "There is no such item.")
}

pub(crate) fn already_exists() -> Error {
    Error::new(Kind::AlreadyExists, "There is an item with this id already.")
}

pub(crate) fn unique_key_violated() -> Error {
    Error::new(Kind::UniqueKeyViolated, "There is an item with these values of a unique key already.")
}

pub(crate) fn precondition_failed() -> Error {
    Error::new(Kind::PreconditionFailed, "The item is another version than the request says.")
}

pub(crate) fn too_large() -> Error {
    Error::new(Kind::TooLarge, "Request size is too large")
}

/// The rules for ids of items, with the service's words.
pub(crate) fn check_id(id: &str) -> Result<()> {
    if id.is_empty() || id.len() > ID_BYTES_MAX {
        // A long id is not repeated whole: the message travels in logs.
        let shown: String = id.chars().take(64).collect();
        return Err(Error::bad_request(format!(
            "The input name '{shown}' is invalid. Ensure to provide a unique non-empty string less than '1024' characters."
        )));
    }
    Ok(())
}

/// The id inside a document.
pub(crate) fn document_id(document: Raw<'_>) -> Result<&str> {
    match document.get("id") {
        None if document.kind() != orrery_model::Kind::Object => Err(Error::bad_request(INVALID_INPUT)),
        None => Err(Error::bad_request(
            "The input content is invalid because the required properties - 'id; ' - are missing",
        )),
        Some(found) => {
            let id = found.as_str().ok_or_else(|| Error::bad_request(INVALID_INPUT))?;
            check_id(id).map(|()| id)
        }
    }
}

/// Refuses documents whose JSON text would be larger than an item may be, or, where an api has set another limit, whose
/// stored form is.
pub(crate) fn check_size(document: &[u8], body: Raw<'_>, stored_bytes_max: Option<usize>) -> Result<()> {
    if let Some(limit) = stored_bytes_max {
        return if document.len() > limit { Err(too_large()) } else { Ok(()) };
    }
    // Packed arrays of numbers are the densest stored form, less than a sixteenth of their text; the text of anything
    // smaller need not be measured.
    if document.len() <= ITEM_BYTES_MAX / 16 {
        return Ok(());
    }
    let mut text = Vec::with_capacity(document.len());
    body.write_json(&mut text, orrery_model::NumberStyle::Item);
    if text.len() > ITEM_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, expected: Option<&str>) {
        match (check_id(id), expected) {
            (Ok(()), None) => {}
            (Err(error), Some(text)) => assert!(error.message.contains(text), "{id}: {error}"),
            (result, expected) => panic!("{id:?}: {result:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn ids_follow_the_rules_of_the_service() {
        check("a", None);
        check("a b ", None);
        check("ünïcödé-💡", None);
        check(&"x".repeat(1023), None);
        check(&"x".repeat(1024), Some("less than '1024' characters"));
        check(&"é".repeat(512), Some("less than '1024' characters"));
        check("", Some("less than '1024' characters"));
        // Not for databases and containers, but items may have them: links to such items are percent-encoded.
        for of_urls in ["a/b", "a\\b", "a?b", "a#b", "/", "a%2Fb"] {
            check(of_urls, None);
        }
    }
}
