//! From a request to what the engine judges it by, and from links of permissions to what they grant.
//!
//! What a principal may do is decided in the engine (`orrery_engine::access`). Here is what of it is this protocol's
//! own: where in path and headers a request says what it is about, how the links of permissions are written, and the
//! words of a refusal. Every action says by its `Reach` what kind of grant comes near it; a new action does not compile
//! without one. The limits that come back are applied where the request's key is read, in `scope`, so no handler can
//! get at a key or a scope without them.
//!
//! Clients write links as names or as URLs, and a name may look like a URL: `b%20c`. What a permission means is decided
//! once, by what exists when it is written ([`is_escaped`]), and its tokens carry the names themselves. So a token is
//! compared exactly, whatever comes and goes later.

use std::borrow::Cow;

use http::StatusCode;
use orrery_engine::access::{self, Denied, Limits, Part, Principal, ResourceId, ResourceName, Subject};
use orrery_engine::{Account, ScriptKind};
use orrery_model::PartitionKey;
use percent_encoding::percent_decode_str;

use crate::actions::Action;
use crate::errors::{ApiError, Result, Voice};
use crate::fields::Fields;
use crate::headers::{END_EPK, PARTITION_KEY, START_EPK};
use crate::rid::Rid;
use crate::routes::{Path, Resource};
use crate::scope;

/// No permission is about anything deeper than `dbs/{}/colls/{}/docs/{}`.
const SEGMENTS_MAX: usize = 6;
const INSUFFICIENT: &str = "Insufficient permissions provided in the authorization header for the corresponding request. Please retry with another authorization header.";

pub fn insufficient() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, Voice::Gateway, INSUFFICIENT)
}

/// Where limits are applied the key has been read; so there is one thing left to say.
impl From<Denied> for ApiError {
    fn from(denied: Denied) -> ApiError {
        match denied {
            Denied::Insufficient | Denied::KeyUnreadable => insufficient(),
        }
    }
}

/// What a request is judged by.
pub struct Request<'a> {
    pub action: Action,
    pub path: &'a Path<'a>,
    pub fields: Fields<'a>,
}

/// `Ok` when the caller may go on, within the limits.
pub async fn permit(account: &Account, principal: &Principal, request: &Request<'_>) -> Result<Limits> {
    let permitted = access::permit(account, principal, request.action.demand(), || request.subject());
    permitted.await.map_err(|denied| match (denied, request.key()) {
        (Denied::KeyUnreadable, Err(unreadable)) => unreadable,
        (denied, _) => denied.into(),
    })
}

impl<'a> Request<'a> {
    fn subject(&self) -> Subject<'a> {
        let path = self.path;
        let part = match path.resource {
            Resource::Script(kind) => Part::Script(kind, name(path.id(2))),
            // What is attached to an item goes with it.
            Resource::Item | Resource::Attachments | Resource::Attachment | Resource::Media => {
                Part::Item(name(path.id(2)))
            }
            _ => Part::Whole,
        };
        // Media are asked for without a key, their id leads to it.
        let item_at = match (&path.media_epk, Rid::parse(path.id(2))) {
            (Some(epk), Some(Rid::Item { number, .. })) => Some((Cow::Borrowed(&**epk), number)),
            _ => None,
        };
        Subject {
            resource: access::Resource { database: name(path.id(0)), container: name(path.id(1)), part },
            key: self.key().ok(),
            item_at,
            has_scope: self.has_scope(),
        }
    }

    /// The key that the request names. None at all is `[]`, as everywhere.
    fn key(&self) -> Result<PartitionKey> {
        let text = self.fields.get(&PARTITION_KEY).map(std::str::from_utf8);
        scope::parse_key(text.unwrap_or(Ok("[]")).unwrap_or(""))
    }

    fn has_scope(&self) -> bool {
        let has = |name| self.fields.has(&name);
        has(PARTITION_KEY) || has(START_EPK) && has(END_EPK)
    }
}

/// What a segment of a path or link calls something: its name, or its rid.
pub fn name<'t>(text: impl Into<Cow<'t, str>>) -> ResourceName<'t> {
    let name = text.into();
    let id = match Rid::parse(&name) {
        Some(Rid::Database(number)) => Some(ResourceId::Database(number)),
        Some(Rid::Container { database, container }) => Some(ResourceId::Container { database, container }),
        Some(Rid::Item { database, container, number }) => {
            Some(ResourceId::Item { database, container, number })
        }
        Some(Rid::Script { database, container, kind, number }) => {
            Some(ResourceId::Script { database, container, kind, number })
        }
        _ => None,
    };
    ResourceName { name, id }
}

/// What a permission with this link grants. `None` for a link to something that no permission can be about; whether it
/// exists does not matter here.
pub fn granted(link: &str, escaped: bool) -> Option<access::Resource<'static>> {
    let link = Link::parse(link)?;
    // Slashes of an id are encoded; others make it something inside of the item.
    if escaped && link.leaf.is_some_and(|(_, id)| id.contains('/')) {
        return None;
    }
    let name = |text: &str| match escaped {
        true => name(decoded(text)),
        false => name(text.to_owned()),
    };
    let part = match link.leaf {
        None => Part::Whole,
        Some((Leaf::Item, id)) => Part::Item(name(id)),
        Some((Leaf::Script(kind), id)) => Part::Script(kind, name(id)),
    };
    Some(access::Resource { database: name(link.database), container: name(link.container), part })
}

/// Whether a permission's link is percent-encoded: what it says as it stands does not exist, what it says decoded does.
pub async fn is_escaped(account: &Account, link: &str, key: Option<&PartitionKey>) -> bool {
    let exists = async |escaped| match granted(link, escaped) {
        Some(resource) => resource.exists(account, key).await,
        None => false,
    };
    link.contains('%') && !exists(false).await && exists(true).await
}

/// The link of a permission, taken apart as it stands: a container, or something in one.
struct Link<'l> {
    database: &'l str,
    container: &'l str,
    leaf: Option<(Leaf, &'l str)>,
}

#[derive(Clone, Copy)]
enum Leaf {
    Item,
    Script(ScriptKind),
}

impl<'l> Link<'l> {
    fn parse(link: &'l str) -> Option<Link<'l>> {
        let segments: Vec<&str> = link.trim_matches('/').splitn(SEGMENTS_MAX, '/').collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            return None;
        }
        let (database, container, leaf) = match segments[..] {
            ["dbs", database, "colls", container] => (database, container, None),
            ["dbs", database, "colls", container, "docs", id] if !is_attachment(id) => {
                (database, container, Some((Leaf::Item, id)))
            }
            ["dbs", database, "colls", container, keyword, id] if !id.contains('/') => {
                (database, container, Some((Leaf::Script(script_kind(keyword)?), id)))
            }
            _ => return None,
        };
        Some(Link { database, container, leaf })
    }
}

fn script_kind(keyword: &str) -> Option<ScriptKind> {
    match keyword {
        "sprocs" => Some(ScriptKind::Procedure),
        "triggers" => Some(ScriptKind::Trigger),
        "udfs" => Some(ScriptKind::Function),
        _ => None,
    }
}

fn decoded(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8().map_or_else(|_| segment.to_owned(), Cow::into_owned)
}

/// Whether what follows `docs/` is a link to an attachment, and not the id of an item.
fn is_attachment(rest: &str) -> bool {
    let segments: Vec<&str> = rest.splitn(4, '/').collect();
    matches!(segments[..], [_, "attachments"] | [_, "attachments", _])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_about_a_container_or_something_in_one() {
        for link in ["dbs/d/colls/c", "/dbs/d/colls/c/", "dbs/d/colls/c/docs/i", "dbs/d/colls/c/sprocs/s/"] {
            assert!(granted(link, false).is_some(), "{link}");
        }
        for link in [
            "",
            "/",
            "dbs",
            "dbs/d",
            "dbs/d/colls",
            "dbs//colls/c",
            "dbs/d/users/u",
            "dbs/d/colls/c/docs",
            "dbs/d/colls/c/pkranges/0",
            "dbs/d/colls/c/docs/i/attachments/a",
            "dbs/d/colls/c/docs/",
            "dbs/d/colls/c/sprocs/a/b",
            "colls/c",
        ] {
            assert!(granted(link, false).is_none(), "{link}");
        }
    }

    #[test]
    fn a_token_grants_exactly_what_its_permission_meant() {
        let check = |link: &str, escaped: bool, container: &str, item: &str| {
            let resource = granted(link, escaped).unwrap_or_else(|| panic!("{link} is a link"));
            let id = match &resource.part {
                Part::Whole => "",
                Part::Item(name) | Part::Script(_, name) => &*name.name,
            };
            assert_eq!((&*resource.container.name, id), (container, item), "{link}");
        };
        check("dbs/d/colls/b%20c", false, "b%20c", "");
        check("dbs/d/colls/b%20c", true, "b c", "");
        check("/dbs/d/colls/c/docs/a/b/", false, "c", "a/b");
        check("dbs/d/colls/c/docs/a%2Fb", true, "c", "a/b");
        check("dbs/d/colls/c/docs/a%2F", true, "c", "a/");
        check("dbs/d/colls/c/docs/a%252Fb", true, "c", "a%2Fb");
        check("dbs/d/colls/c/docs/50%", false, "c", "50%");
        check("dbs/d/colls/c/triggers/t%20u", true, "c", "t u");
        assert!(granted("dbs/d/colls/c/docs/a/b", true).is_none());
    }

    #[test]
    fn a_rid_is_a_name_and_an_id() {
        let resource = granted("dbs/AAAAAQ==/colls/AAAAAYAAAAI=", false).unwrap();
        assert_eq!(resource.database.id, Some(ResourceId::Database(1)));
        assert_eq!(resource.container.id, Some(ResourceId::Container { database: 1, container: 2 }));
        assert_eq!(&*resource.container.name, "AAAAAYAAAAI=");
        assert_eq!(granted("dbs/d/colls/c", false).unwrap().database.id, None);
    }
}
