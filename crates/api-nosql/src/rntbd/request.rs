//! From a frame to the request that HTTP would have made of it: names become a path, tokens become fields.
//!
//! ```text
//! Document Read  DatabaseName d  CollectionName c  DocumentName i  PartitionKey ["a"]
//!   = GET dbs/d/colls/c/docs/i, of which clients sign verb, type and link as over HTTP
//! ```
//!
//! Nothing is written as text to be parsed again: a path is made of the names, values are slices of the frame.

use std::borrow::Cow;

use http::header::{IF_MATCH, IF_NONE_MATCH};
use http::{Method, StatusCode};

use super::frame::{HEAD_BYTES, RequestHead};
use super::token::{Tokens, Value};
use super::tokens::{self, Meaning, request as id};
use crate::actions::{Action, Post, decide_as};
use crate::addresses;
use crate::errors::{ApiError, Result, Voice};
use crate::fields::Field;
use crate::formats::{COSMOS_BINARY, COSMOS_BINARY_UINT64};
use crate::headers::{
    A_IM, CONSISTENCY_LEVEL, CONTENT_FORMAT, ENABLE_CROSS_PARTITION, END_EPK, PREFER, PRIORITY_LEVEL,
    READ_KEY_TYPE, START_EPK, SUPPORTED_FORMATS,
};
use crate::rid;
use crate::routes::Path;
use crate::service::Direct;

/// Where the effective partition keys end.
const EPK_END: &[u8] = b"FF";
/// The bits of binary JSON among the forms, and of large whole numbers among its features.
const FORMAT_BINARY: i64 = 2;
const FEATURE_UINT64: i64 = 4;
/// Rid bytes of a database, of what is in one, and of what is in a container.
const RID_LEVELS: [usize; 4] = [4, 8, 16, 20];

/// What kinds of resources there are: the type in a frame, the keywords of its path, the token with its own name, and
/// the one with that of its parent below the database.
struct ResourceKind {
    number: u16,
    keywords: &'static [&'static str],
    names: &'static [u16],
}

const CONTAINER: u16 = 2;

#[rustfmt::skip]
const RESOURCES: &[ResourceKind] = &[
    kind(0x03, &["dbs", "colls", "docs"], &[id::DATABASE_NAME, id::COLLECTION_NAME, id::DOCUMENT_NAME]),
    kind(0x01, &["dbs"], &[id::DATABASE_NAME]),
    kind(CONTAINER, &["dbs", "colls"], &[id::DATABASE_NAME, id::COLLECTION_NAME]),
    kind(0x04, &["dbs", "colls", "docs", "attachments"], &[id::DATABASE_NAME, id::COLLECTION_NAME, id::DOCUMENT_NAME, id::ATTACHMENT_NAME]),
    kind(0x05, &["dbs", "users"], &[id::DATABASE_NAME, id::USER_NAME]),
    kind(0x06, &["dbs", "users", "permissions"], &[id::DATABASE_NAME, id::USER_NAME, id::PERMISSION_NAME]),
    kind(0x07, &["dbs", "colls", "sprocs"], &[id::DATABASE_NAME, id::COLLECTION_NAME, id::STORED_PROCEDURE_NAME]),
    kind(0x08, &["dbs", "colls", "conflicts"], &[id::DATABASE_NAME, id::COLLECTION_NAME, id::CONFLICT_NAME]),
    kind(0x09, &["dbs", "colls", "triggers"], &[id::DATABASE_NAME, id::COLLECTION_NAME, id::TRIGGER_NAME]),
    kind(0x0A, &["dbs", "colls", "udfs"], &[id::DATABASE_NAME, id::COLLECTION_NAME, id::USER_DEFINED_FUNCTION_NAME]),
    kind(0x16, &["dbs", "colls", "pkranges"], &[id::DATABASE_NAME, id::COLLECTION_NAME, id::PARTITION_KEY_RANGE_NAME]),
    kind(0x23, &["dbs", "clientencryptionkeys"], &[id::DATABASE_NAME, id::CLIENT_ENCRYPTION_KEY_NAME]),
];

const fn kind(number: u16, keywords: &'static [&'static str], names: &'static [u16]) -> ResourceKind {
    ResourceKind { number, keywords, names }
}

/// What an operation is over HTTP: verb, whether it is about a feed, what a POST means.
#[rustfmt::skip]
const OPERATIONS: &[(u16, Method, bool, Post)] = &[
    (0x03, Method::GET, false, Post::Create),     // Read
    (0x01, Method::POST, true, Post::Create),     // Create
    (0x02, Method::PATCH, false, Post::Create),   // Patch
    (0x04, Method::GET, true, Post::Create),      // ReadFeed
    (0x05, Method::DELETE, false, Post::Create),  // Delete
    (0x06, Method::PUT, false, Post::Create),     // Replace
    (0x08, Method::POST, false, Post::Create),    // ExecuteJavaScript
    (0x09, Method::POST, true, Post::Query),      // SqlQuery
    (0x0F, Method::POST, true, Post::Query),      // Query
    (0x11, Method::HEAD, false, Post::Create),    // Head
    (0x12, Method::HEAD, true, Post::Create),     // HeadFeed
    (0x13, Method::POST, true, Post::Upsert),     // Upsert
    (0x25, Method::POST, true, Post::Batch),      // Batch
];

/// A request, decoded. Borrows from its frame.
pub struct FrameRequest<'f> {
    pub action: Action,
    pub method: &'static Method,
    pub path: Path<'f>,
    pub fields: Vec<Field<'f>>,
    pub direct: Direct<'f>,
}

/// What of a frame is needed for its answer, whether or not it can be carried out.
#[derive(Clone, Copy, Default)]
pub struct Return<'f> {
    pub transport_id: u32,
    pub replica_path: &'f str,
    pub session: Option<&'f str>,
    /// `x-ms-version` of this request.
    pub version: Option<&'f str>,
}

/// The tokens of a frame that the path is made of.
#[derive(Default)]
struct Names<'f> {
    names: [Option<(u16, &'f str)>; 5],
    count: usize,
    resource_id: &'f [u8],
}

impl<'f> Names<'f> {
    fn put(&mut self, id: u16, name: &'f str) {
        if let Some(free) = self.names.get_mut(self.count) {
            *free = Some((id, name));
            self.count += 1;
        }
    }

    fn get(&self, wanted: u16) -> Option<&'f str> {
        self.names.iter().flatten().find(|(id, _)| *id == wanted).map(|(_, name)| *name)
    }
}

/// Reads a whole frame. What is needed for the answer is put aside first, so that a refusal finds its way too.
pub fn read<'f>(head: &RequestHead, frame: &'f [u8], answer: &mut Return<'f>) -> Result<FrameRequest<'f>> {
    let operation = OPERATIONS.iter().find(|(number, ..)| *number == head.operation);
    let reads = matches!(operation, Some((_, Method::GET, ..)));
    let mut names = Names::default();
    let mut fields = Vec::with_capacity(12);
    let mut direct = Direct::default();
    let mut span = Span::default();
    let mut level = None;
    let (mut takes_binary, mut takes_uint64) = (false, false);
    for token in Tokens::new(frame.get(HEAD_BYTES..).unwrap_or_default()) {
        let (number, value) = token.map_err(|_| ApiError::refused("The tokens of the frame are broken."))?;
        let Some(token) = tokens::of_request(number) else { continue };
        match &token.meaning {
            Meaning::NoEffect(_) => {}
            Meaning::Text(name) => {
                let text = text(token, value)?;
                if number == id::SESSION_TOKEN {
                    answer.session = Some(text);
                }
                fields.push((name.clone(), Cow::Borrowed(text.as_bytes())));
            }
            Meaning::Flag(name) => {
                if self::number(token, value)? != 0 {
                    fields.push((name.clone(), Cow::Borrowed(b"True")));
                }
            }
            Meaning::Number(name) => {
                let digits = match self::number(token, value)? {
                    unlimited if unlimited == i64::from(u32::MAX) => Cow::Borrowed(&b"-1"[..]),
                    number => Cow::Owned(number.to_string().into_bytes()),
                };
                fields.push((name.clone(), digits));
            }
            Meaning::Own(_) => match number {
                id::RESOURCE_ID => names.resource_id = value.blob().ok_or_else(|| unfit(token))?,
                id::MATCH => {
                    let name = if reads { IF_NONE_MATCH } else { IF_MATCH };
                    fields.push((name, Cow::Borrowed(text(token, value)?.as_bytes())));
                }
                id::CONSISTENCY_LEVEL => level = Some(consistency(self::number(token, value)?)?),
                id::REPLICA_PATH => answer.replica_path = text(token, value)?,
                id::CLIENT_VERSION => answer.version = Some(text(token, value)?),
                id::COLLECTION_RID => direct.container_rid = Some(text(token, value)?),
                id::TRANSPORT_REQUEST_ID => answer.transport_id = self::number(token, value)? as u32,
                id::START_EPK => span.start = value.blob().ok_or_else(|| unfit(token))?,
                id::END_EPK => span.end = Some(value.blob().ok_or_else(|| unfit(token))?),
                id::READ_FEED_KEY_TYPE => span.key_type = self::number(token, value)?,
                id::RETURN_PREFERENCE => {
                    if self::number(token, value)? == 1 {
                        fields.push((PREFER, Cow::Borrowed(b"return=minimal")));
                    }
                }
                id::PRIORITY_LEVEL => {
                    let level: &[u8] = if self::number(token, value)? == 2 { b"Low" } else { b"High" };
                    fields.push((PRIORITY_LEVEL, Cow::Borrowed(level)));
                }
                id::CONTENT_SERIALIZATION_FORMAT => {
                    if self::number(token, value)? == 1 {
                        fields.push((CONTENT_FORMAT, Cow::Borrowed(COSMOS_BINARY.as_bytes())));
                    }
                }
                id::SUPPORTED_SERIALIZATION_FORMATS => {
                    takes_binary = self::number(token, value)? & FORMAT_BINARY != 0
                }
                id::SUPPORTED_SERIALIZATION_FEATURES => {
                    takes_uint64 = self::number(token, value)? & FEATURE_UINT64 != 0
                }
                id::PAYLOAD_PRESENT => {}
                _ => names.put(number, text(token, value)?),
            },
        }
    }
    direct.range = addresses::range_of(answer.replica_path);
    let kind = RESOURCES.iter().find(|kind| kind.number == head.resource_type);
    let (Some(kind), Some((_, method, is_feed, meaning))) = (kind, operation) else {
        return Err(not_offered(head));
    };
    span.put(&mut fields);
    if takes_binary {
        let form = if takes_uint64 { COSMOS_BINARY_UINT64 } else { COSMOS_BINARY };
        fields.push((SUPPORTED_FORMATS, Cow::Borrowed(form.as_bytes())));
    }
    if kind.keywords.get(1) == Some(&"colls") && kind.number != CONTAINER {
        // Lists, users and databases are always read as strong, whatever the account promises.
        fields.extend(level.map(|level| (CONSISTENCY_LEVEL, Cow::Borrowed(level))));
    }
    if *meaning == Post::Query {
        // There is no token for it: a client that asks partitions knows what it does.
        fields.push((ENABLE_CROSS_PARTITION, Cow::Borrowed(b"True")));
    }
    let path = path(kind, *is_feed, &names)?;
    let changes = fields.iter().any(|(name, _)| *name == A_IM);
    let action = decide_as(path.resource, method, *meaning, changes).ok_or_else(|| not_offered(head))?;
    Ok(FrameRequest { action, method, path, fields, direct })
}

/// Whether an operation may have much to do or to say, whatever it is about: everything but single items and resources.
pub fn takes_long(operation: u16) -> bool {
    let known = OPERATIONS.iter().find(|(number, ..)| *number == operation);
    known.is_some_and(|(_, method, is_feed, meaning)| Action::takes_long(method, *is_feed, *meaning))
}

/// A span of effective partition keys, which some queries and feeds are about.
#[derive(Default)]
struct Span<'f> {
    start: &'f [u8],
    end: Option<&'f [u8]>,
    key_type: i64,
}

impl<'f> Span<'f> {
    fn put(self, fields: &mut Vec<Field<'f>>) {
        let name: &[u8] = match self.key_type {
            0 => return,
            1 => b"ResourceId",
            2 => b"EffectivePartitionKey",
            _ => b"EffectivePartitionKeyRange",
        };
        // An empty start is not sent. The keys are in hexadecimal digits.
        fields.push((READ_KEY_TYPE, Cow::Borrowed(name)));
        fields.push((START_EPK, Cow::Borrowed(self.start)));
        fields.push((END_EPK, Cow::Borrowed(self.end.unwrap_or(EPK_END))));
    }
}

fn path<'f>(kind: &ResourceKind, is_feed: bool, names: &Names<'f>) -> Result<Path<'f>> {
    let wanted = kind.names.len() - usize::from(is_feed);
    let by_rid = names.get(id::DATABASE_NAME).is_none();
    let mut ids: [Cow<'f, str>; 4] = Default::default();
    for (n, free) in ids.iter_mut().take(wanted).enumerate() {
        *free = match by_rid {
            false => names.get(kind.names[n]).map(Cow::Borrowed),
            true => names.resource_id.get(..RID_LEVELS[n]).map(|bytes| Cow::Owned(rid::text_of(bytes))),
        }
        .ok_or_else(|| ApiError::refused("The frame does not name what it is about."))?;
    }
    Path::of_names(kind.keywords, &ids[..wanted])
        .map_err(|_| ApiError::refused("The frame does not name what it is about."))
}

fn text<'f>(token: &tokens::Token, value: Value<'f>) -> Result<&'f str> {
    value.text().ok_or_else(|| unfit(token))
}

fn number(token: &tokens::Token, value: Value<'_>) -> Result<i64> {
    value.number().ok_or_else(|| unfit(token))
}

fn unfit(token: &tokens::Token) -> ApiError {
    ApiError::refused(format!("The token {} has a value that is no {:?}.", token.name, token.kind))
}

fn consistency(number: i64) -> Result<&'static [u8]> {
    const LEVELS: [&[u8]; 5] = [b"Strong", b"BoundedStaleness", b"Session", b"Eventual", b"ConsistentPrefix"];
    let level = usize::try_from(number).ok().and_then(|number| LEVELS.get(number).copied());
    level.ok_or_else(|| ApiError::refused(format!("The consistency level {number} is none.")))
}

fn not_offered(head: &RequestHead) -> ApiError {
    let RequestHead { resource_type, operation, .. } = head;
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        Voice::Gateway,
        format!("There is no operation {operation:#04x} on resources of type {resource_type:#04x} here."),
    )
}
