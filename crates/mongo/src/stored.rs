//! What an item of a container looks like as a document, and the reverse.
//!
//! An item has an `id`, which is a text; a document has an `_id`, which is nearly anything. A document is stored with
//! both:
//!
//! | stored item | seen by MongoDB |
//! |---|---|
//! | `{"_id": ObjectId(…), "id": "507f…", "a": 1}` | `{_id: ObjectId(…), a: 1}` |
//! | `{"_id": 7, "id": "…", "$id": "mine"}`: the document had a member `id` of its own | `{_id: 7, id: "mine"}` |
//! | `{"_id": 7, "id": "…", "$ttl": "soon"}`: its `ttl` is no time to live | `{_id: 7, ttl: "soon"}` |
//! | `{"id": "x", "a": 1}`, written through SQL | `{_id: "x", a: 1}` |

use orrery_model::{Members, Raw};

use crate::value::Bson;

/// What SQL knows an item by.
pub const ITEM_ID: &str = "id";
pub const DOCUMENT_ID: &str = "_id";
/// Where a document's own member `id` is kept.
pub const OWN_ID: &str = "$id";
/// What an item lives for, in seconds.
pub const TTL: &str = "ttl";
/// Where a document's own member `ttl` is kept that is no time to live.
pub const OWN_TTL: &str = "$ttl";

/// The name that a member of a document is stored under.
pub fn stored_name<'n>(name: &'n str, value: &Bson) -> &'n str {
    match name {
        ITEM_ID => OWN_ID,
        TTL => match value.as_i64().and_then(|seconds| i32::try_from(seconds).ok()) {
            Some(seconds) if seconds > 0 || seconds == -1 => TTL,
            _ => OWN_TTL,
        },
        name => name,
    }
}

/// A member of an item, by the name that clients of MongoDB know it by.
pub fn member<'a>(item: Raw<'a>, name: &str) -> Option<Raw<'a>> {
    match name {
        DOCUMENT_ID => item.get(DOCUMENT_ID).or_else(|| item.get(ITEM_ID)),
        ITEM_ID => item.get(OWN_ID),
        TTL => item.get(TTL).or_else(|| item.get(OWN_TTL)),
        OWN_ID | OWN_TTL => None,
        _ => item.get(name),
    }
}

/// The members of an item as clients of MongoDB see them: `_id` first.
pub fn members(item: Raw<'_>) -> StoredMembers<'_> {
    StoredMembers { id: member(item, DOCUMENT_ID), members: item.members() }
}

pub struct StoredMembers<'a> {
    /// The `_id` that has not been handed out.
    id: Option<Raw<'a>>,
    members: Members<'a>,
}

impl<'a> Iterator for StoredMembers<'a> {
    type Item = (&'a str, Raw<'a>);

    fn next(&mut self) -> Option<(&'a str, Raw<'a>)> {
        if let Some(id) = self.id.take() {
            return Some((DOCUMENT_ID, id));
        }
        loop {
            let (name, value) = self.members.next()?;
            match name {
                DOCUMENT_ID | ITEM_ID => {}
                OWN_ID => return Some((ITEM_ID, value)),
                OWN_TTL => return Some((TTL, value)),
                _ => return Some((name, value)),
            }
        }
    }
}
