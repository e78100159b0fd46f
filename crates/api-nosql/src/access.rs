//! What a recognised caller may do: the one gate between who asks and what is asked.
//!
//! `auth` says who asks: the holder of a key, or of a resource token. Every action says by its [`Reach`] which kinds of
//! grant come near it at all; a new action does not compile without one. What a token leaves open beyond the yes or no
//! of the gate (a container, but one partition key of it) travels with the request as [`Limits`] and is applied where the
//! request's key is read: in `scope`, so no handler can get at a key or a scope without it.
//!
//! Nothing is answered about what a token does not grant. The gate judges the request by its path and headers, and says
//! 403 before anything is looked up; only what the token covers can be found missing.
//!
//! | granted | mode | reaches |
//! |---|---|---|
//! | container | Read | its properties and ranges, items, feeds, queries, scripts: all that reads |
//! | container | All | the same and all that writes, the container itself included |
//! | container with a key | either | its properties and ranges, query plans, and items, feeds, queries, batches and procedures under the key |
//! | item | Read, All | the container's properties and ranges; the item, but no new ones and no other id |
//! | script | Read, All | the container's properties and ranges; the script; with All also running a procedure |

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use orrery_engine::{Account, Container, PermissionMode, ReadOptions, ScriptKind};
use orrery_model::PartitionKey;
use percent_encoding::percent_decode_str;

use crate::actions::{Action, Reach};
use crate::auth::{Caller, Grant};
use crate::errors::{ApiError, Result, Voice};
use crate::headers::{END_EPK, PARTITION_KEY, START_EPK};
use crate::rid::Rid;
use crate::routes::{Path, Resource};
use crate::scope;
use crate::scripts;
use crate::service::{find_container, find_database};

/// No permission is about anything deeper than `dbs/{}/colls/{}/docs/{}`.
const SEGMENTS_MAX: usize = 6;
const INSUFFICIENT: &str = "Insufficient permissions provided in the authorization header for the corresponding request. Please retry with another authorization header.";

/// What of a request is still restricted after the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Only items under this key, which may be the beginning of a hierarchical one.
    key: Option<PartitionKey>,
    /// Only the item that the path names: it keeps its id.
    one_item: bool,
}

impl Limits {
    /// The key that everything must lie under.
    pub fn key(&self) -> Option<&PartitionKey> {
        self.key.as_ref()
    }

    pub fn permits_key(&self, key: &PartitionKey) -> Result<()> {
        match &self.key {
            Some(granted) if !key.0.starts_with(&granted.0) => Err(insufficient()),
            _ => Ok(()),
        }
    }

    /// Whether a write may give the item that is `named` by its path another id.
    pub fn permits_id(&self, named: &str, id: Option<&str>) -> Result<()> {
        match id {
            Some(id) if self.one_item && id != named => Err(insufficient()),
            _ => Ok(()),
        }
    }
}

pub fn insufficient() -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, Voice::Gateway, INSUFFICIENT)
}

/// What a request is judged by.
pub struct Request<'a> {
    pub action: Action,
    pub path: &'a Path<'a>,
    pub headers: &'a HeaderMap,
}

impl Request<'_> {
    /// The key that the request names. None at all is `[]`, as everywhere.
    fn key(&self) -> Result<PartitionKey> {
        let text = self.headers.get(PARTITION_KEY).map(|value| std::str::from_utf8(value.as_bytes()));
        scope::parse_key(text.unwrap_or(Ok("[]")).unwrap_or(""))
    }

    /// Whether the request says where in the container it reads; `scope` looks at where that is.
    fn has_place(&self) -> bool {
        let has = |name| self.headers.contains_key(name);
        has(PARTITION_KEY) || has(START_EPK) && has(END_EPK)
    }
}

/// `Ok` when the caller may go on, within the limits.
pub fn permit(account: &Account, caller: &Caller, request: &Request<'_>) -> Result<Limits> {
    let (reach, reads) = (request.action.reach(), request.action.is_read());
    let grant = match caller {
        Caller::Token(grant) => grant,
        Caller::Key { writes: true, .. } | Caller::Directory => return Ok(Limits::default()),
        // Reading a permission makes a token, and a key that only reads must not make one that writes.
        Caller::Key { writes: false, .. } if !reads || reach == Reach::Permissions => {
            return Err(insufficient());
        }
        Caller::Key { .. } => return Ok(Limits::default()),
    };
    if reach == Reach::Account {
        return Ok(Limits::default());
    }
    if grant.mode == PermissionMode::Read && !reads {
        return Err(insufficient());
    }
    covered(account, grant, request)?.ok_or_else(insufficient)
}

/// The limits under which the grant covers the request; `None` when it does not.
fn covered(account: &Account, grant: &Grant, request: &Request<'_>) -> Result<Option<Limits>> {
    let Some(link) = GrantedLink::parse(&grant.resource) else { return Ok(None) };
    let Some(place) = link.place(account, grant.database, request.path) else { return Ok(None) };
    // An empty key is the beginning of every key.
    let limits = Limits { key: grant.partition_key.clone().filter(|key| !key.0.is_empty()), one_item: false };
    let whole = limits.key.is_none();
    let under_key = || limits.permits_key(&place.key(request)?);
    let covers = match (request.action.reach(), &link.leaf) {
        // Clients read these before anything else, with whatever token they have for the container.
        (Reach::Properties, _) => true,
        (Reach::Container | Reach::Script, None) => whole,
        // A plan reads no item. A batch names a key for each operation, which `batch` compares.
        (Reach::Plan | Reach::Batch, None) => true,
        (Reach::Feed, None) => whole || request.has_place(),
        (Reach::UnderKey | Reach::OneItem | Reach::Run, None) => under_key().map(|()| true)?,
        (Reach::OneItem, Some(leaf)) if leaf.keyword == "docs" => {
            under_key()?;
            return Ok(place.is_item(&leaf.id, request).then_some(Limits { one_item: true, ..limits }));
        }
        (Reach::Script, Some(leaf)) => whole && place.is_script(leaf, request.path),
        (Reach::Run, Some(leaf)) => {
            under_key()?;
            place.is_script(leaf, request.path)
        }
        _ => false,
    };
    Ok(covers.then_some(limits))
}

/// The link of a permission, taken apart: a container, or something in one.
///
/// Clients write links as names or as URLs, and a name may look like a URL: `b%20c`. What a permission means is decided
/// once, by what exists when it is written ([`is_escaped`]), and its tokens carry the link percent-encoded in any case
/// ([`of_token`]). So a token is decoded once and compared exactly, whatever comes and goes later.
#[derive(Debug, PartialEq)]
pub struct GrantedLink<'l> {
    database: Cow<'l, str>,
    container: Cow<'l, str>,
    leaf: Option<Leaf<'l>>,
}

#[derive(Debug, PartialEq)]
struct Leaf<'l> {
    keyword: &'l str,
    id: Cow<'l, str>,
}

/// The link of a token to what a permission is about.
pub fn of_token(resource: &str, escaped: bool) -> String {
    match GrantedLink::literal(resource) {
        Some(link) if !escaped => link.encoded(),
        _ => resource.to_owned(),
    }
}

/// Whether a permission's link is percent-encoded: what it says as it stands does not exist, what it says decoded does.
pub fn is_escaped(account: &Account, resource: &str, key: Option<&PartitionKey>) -> bool {
    let exists = |link: Option<GrantedLink<'_>>| link.is_some_and(|link| link.exists(account, key));
    resource.contains('%') && !exists(GrantedLink::literal(resource)) && exists(GrantedLink::parse(resource))
}

impl<'l> GrantedLink<'l> {
    /// Reads the link of a token, whose segments are percent-encoded.
    pub fn parse(link: &'l str) -> Option<GrantedLink<'l>> {
        let literal = GrantedLink::literal(link)?;
        let leaf = match literal.leaf {
            // Slashes of an id are encoded; others make it something inside of the item.
            Some(leaf) if leaf.id.contains('/') => return None,
            Some(leaf) => Some(Leaf { keyword: leaf.keyword, id: decoded(leaf.id) }),
            None => None,
        };
        Some(GrantedLink { database: decoded(literal.database), container: decoded(literal.container), leaf })
    }

    /// Reads a link as it stands. `None` for one to something that no permission can be about; whether it exists does not
    /// matter here.
    pub fn literal(link: &'l str) -> Option<GrantedLink<'l>> {
        let segments: Vec<&str> = link.trim_matches('/').splitn(SEGMENTS_MAX, '/').collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            return None;
        }
        let of = |database, container, leaf: Option<(&'l str, &'l str)>| GrantedLink {
            database: Cow::Borrowed(database),
            container: Cow::Borrowed(container),
            leaf: leaf.map(|(keyword, id)| Leaf { keyword, id: Cow::Borrowed(id) }),
        };
        match segments[..] {
            ["dbs", database, "colls", container] => Some(of(database, container, None)),
            ["dbs", database, "colls", container, keyword @ "docs", id] if !is_attachment(id) => {
                Some(of(database, container, Some((keyword, id))))
            }
            ["dbs", database, "colls", container, keyword @ ("sprocs" | "triggers" | "udfs"), id]
                if !id.contains('/') =>
            {
                Some(of(database, container, Some((keyword, id))))
            }
            _ => None,
        }
    }

    fn encoded(&self) -> String {
        let encode = |segment: &str| segment.replace('%', "%25").replace('/', "%2F");
        let mut link = format!("dbs/{}/colls/{}", encode(&self.database), encode(&self.container));
        if let Some(leaf) = &self.leaf {
            link.push_str(&format!("/{}/{}", leaf.keyword, encode(&leaf.id)));
        }
        link
    }

    fn exists(&self, account: &Account, key: Option<&PartitionKey>) -> bool {
        let Some(container) = find(account, &self.database, &self.container) else { return false };
        let Some(leaf) = &self.leaf else { return true };
        let script = |kind| scripts::resources::by_link(&container, kind, &leaf.id).is_some();
        match leaf.keyword {
            "sprocs" => script(ScriptKind::Procedure),
            "triggers" => script(ScriptKind::Trigger),
            "udfs" => script(ScriptKind::Function),
            _ => key.is_some_and(|key| is_there(&container, key, &leaf.id)),
        }
    }

    /// Where grant and request meet, if the request is in the container of this link.
    fn place(&self, account: &Account, database: u32, path: &Path<'_>) -> Option<Place> {
        let requested = find(account, path.id(0), path.id(1));
        let Some(requested) = requested else {
            // What is missing may be called missing to those who hold a token for that very name.
            let named = self.database == path.id(0) && self.container == path.id(1);
            let elsewhere = find_database(account, path.id(0)).is_ok_and(|found| found.number != database);
            return (named && !elsewhere).then_some(Place { container: None, granted_by_name: true });
        };
        let granted = find(account, &self.database, &self.container)?;
        let granted_by_name = granted.name() == self.container;
        let same = granted.database().number == requested.database().number
            && granted.number() == requested.number();
        // A user's permissions end where its database does, whatever they name.
        let inside = requested.database().number == database;
        (same && inside).then_some(Place { container: Some(requested), granted_by_name })
    }
}

/// A container that both a grant and a request are about. `None`: it does not exist, under the very name of the grant.
struct Place {
    container: Option<Arc<Container>>,
    granted_by_name: bool,
}

/// An item as a link names it: by its id, or by the number in its rid.
enum ItemName<'t> {
    Id(&'t str),
    Number(u64),
}

impl Place {
    /// The key that the request is under. Media are asked for without one, their id leads to it.
    fn key(&self, request: &Request<'_>) -> Result<PartitionKey> {
        match (&request.path.media_epk, &self.container, Rid::parse(request.path.id(2))) {
            (Some(epk), Some(container), Some(Rid::Item { number, .. })) => {
                container.item_at(epk, number).map(|(key, _)| key).map_err(|_| insufficient())
            }
            _ => request.key(),
        }
    }

    fn is_item(&self, granted: &str, request: &Request<'_>) -> bool {
        let named = request.path.id(2);
        let Some(container) = &self.container else { return granted == named };
        let Ok(key) = self.key(request) else { return false };
        let granted_name = item_name(container, self.granted_by_name, granted);
        let requested_name = item_name(container, request.path.id(1) == container.name(), named);
        // Which id a number stands for is known under the key alone; without one there is no such item.
        let id_of = |number| container.item_id(&key, number).ok();
        match (granted_name, requested_name) {
            (ItemName::Id(granted), ItemName::Id(named)) => granted == named,
            (ItemName::Number(granted), ItemName::Number(named)) => granted == named,
            (ItemName::Id(id), ItemName::Number(number)) | (ItemName::Number(number), ItemName::Id(id)) => {
                id_of(number).is_some_and(|found| found == id)
            }
        }
    }

    /// Whether the request is about the granted script, whichever of its names either of them uses.
    fn is_script(&self, granted: &Leaf<'_>, path: &Path<'_>) -> bool {
        let (Resource::Script(kind), named) = (path.resource, path.id(2)) else { return false };
        if granted.keyword != path.resource_type {
            return false;
        }
        let found = |name: &str| {
            let container = self.container.as_ref()?;
            scripts::resources::by_link(container, kind, name).map(|script| script.number)
        };
        match (found(&granted.id), found(named)) {
            (Some(granted), Some(named)) => granted == named,
            // What is missing may be called missing to those who hold a token for that very name.
            (None, None) => granted.id == named,
            _ => false,
        }
    }
}

fn item_name<'t>(container: &Container, by_name: bool, text: &'t str) -> ItemName<'t> {
    match Rid::parse(text) {
        Some(Rid::Item { database, container: owner, number })
            if !by_name && database == container.database().number && owner == container.number() =>
        {
            ItemName::Number(number)
        }
        _ => ItemName::Id(text),
    }
}

fn is_there(container: &Container, key: &PartitionKey, id: &str) -> bool {
    container.read_item(key, id, &ReadOptions::default()).is_ok()
}

fn find(account: &Account, database: &str, container: &str) -> Option<Arc<Container>> {
    let database = find_database(account, database).ok()?;
    find_container(&database, container).ok()
}

fn decoded(segment: Cow<'_, str>) -> Cow<'_, str> {
    match percent_decode_str(&segment).decode_utf8() {
        Ok(Cow::Owned(text)) => Cow::Owned(text),
        _ => segment,
    }
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
            assert!(GrantedLink::literal(link).is_some(), "{link}");
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
            "colls/c",
        ] {
            assert!(GrantedLink::literal(link).is_none(), "{link}");
        }
    }

    #[test]
    fn the_link_of_a_token_says_exactly_what_its_permission_meant() {
        let check = |resource: &str, escaped: bool, container: &str, item: &str| {
            let link = of_token(resource, escaped);
            let read = GrantedLink::parse(&link).unwrap_or_else(|| panic!("{link} is a link"));
            let id = read.leaf.map(|leaf| leaf.id.into_owned()).unwrap_or_default();
            assert_eq!((&*read.container, id.as_str()), (container, item), "{resource} as {link}");
        };
        check("dbs/d/colls/b%20c", false, "b%20c", "");
        check("dbs/d/colls/b%20c", true, "b c", "");
        check("/dbs/d/colls/c/docs/a/b/", false, "c", "a/b");
        check("dbs/d/colls/c/docs/a%2Fb", true, "c", "a/b");
        check("dbs/d/colls/c/docs/a%2F", true, "c", "a/");
        check("dbs/d/colls/c/docs/a%252Fb", true, "c", "a%2Fb");
        check("dbs/d/colls/c/docs/50%", false, "c", "50%");
    }

    #[test]
    fn a_key_is_under_itself_and_under_its_beginnings() {
        let key = |text: &str| PartitionKey::parse_header(text).unwrap();
        let limits = |text: &str| Limits { key: Some(key(text)), one_item: false };
        assert!(limits(r#"["a"]"#).permits_key(&key(r#"["a"]"#)).is_ok());
        assert!(limits(r#"["a"]"#).permits_key(&key(r#"["a","b"]"#)).is_ok());
        for other in ["[]", r#"["b"]"#, "[null]", "[{}]", r#"["A"]"#] {
            assert!(limits(r#"["a"]"#).permits_key(&key(other)).is_err(), "{other}");
        }
        assert!(limits(r#"["a","b"]"#).permits_key(&key(r#"["a"]"#)).is_err());
        assert!(Limits::default().permits_key(&key("[]")).is_ok());
    }
}
