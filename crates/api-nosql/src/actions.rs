//! What a request wants: one action per resource, verb and header.
//!
//! A POST on a feed means, in this order: a query plan, a query, a batch, an upsert, a creation. The order matters,
//! because clients send plan requests with the headers of queries, and some queries without the content type of one.
//! Knowing the action before anything is looked up lets a caller be judged by what the request does instead of by its
//! verb: whether it only reads, and what kind of grant comes near it (`Demand` and `Reach`, see the engine's `access`).

use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};
use orrery_engine::ScriptKind;
use orrery_engine::access::{Demand, Reach};

use crate::errors::{ApiError, Result, Voice};
use crate::headers::{A_IM, IS_BATCH, IS_PLAN, IS_QUERY, IS_UPSERT};
use crate::routes::Resource;

macro_rules! actions {
    ($($action:ident = $name:literal, $access:ident, $reach:ident;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Action { $($action,)* }

        impl Action {
            /// The name in logs and metrics.
            pub fn name(self) -> &'static str {
                match self { $(Action::$action => $name,)* }
            }

            /// Whether a key that only reads is enough.
            pub fn is_read(self) -> bool {
                match self { $(Action::$action => actions!(@ $access),)* }
            }

            /// What it asks of whoever sends it.
            pub fn demand(self) -> Demand {
                let reach = match self { $(Action::$action => Reach::$reach,)* };
                Demand { reach, reads: self.is_read() }
            }
        }

        /// The name of everything that a request can want, as it stands in logs and metrics.
        pub const OPERATIONS: &[&str] = &[$($name,)*];
    };
    (@ reads) => { true };
    (@ writes) => { false };
}

actions! {
    ReadAccount = "read_account", reads, Account;
    ListDatabases = "list_databases", reads, Keys;
    QueryDatabases = "query_databases", reads, Keys;
    CreateDatabase = "create_database", writes, Keys;
    ReadDatabase = "read_database", reads, Keys;
    DeleteDatabase = "delete_database", writes, Keys;
    ListContainers = "list_containers", reads, Keys;
    QueryContainers = "query_containers", reads, Keys;
    CreateContainer = "create_container", writes, Keys;
    ReadContainer = "read_container", reads, Properties;
    ReplaceContainer = "replace_container", writes, Container;
    DeleteContainer = "delete_container", writes, Container;
    ReadItem = "read_item", reads, OneItem;
    CreateItem = "create_item", writes, UnderKey;
    UpsertItem = "upsert_item", writes, UnderKey;
    ReplaceItem = "replace_item", writes, OneItem;
    PatchItem = "patch_item", writes, OneItem;
    DeleteItem = "delete_item", writes, OneItem;
    Batch = "batch", writes, Batch;
    DeletePartitionKey = "delete_partition_key", writes, UnderKey;
    ListItems = "list_items", reads, Feed;
    ReadChanges = "read_changes", reads, Feed;
    QueryItems = "query_items", reads, Feed;
    PlanQuery = "plan_query", reads, Plan;
    ListRanges = "list_ranges", reads, Properties;
    QueryRanges = "query_ranges", reads, Properties;
    ListConflicts = "list_conflicts", reads, Container;
    QueryConflicts = "query_conflicts", reads, Container;
    ReadConflict = "read_conflict", reads, Container;
    DeleteConflict = "delete_conflict", writes, Container;
    ListOffers = "list_offers", reads, Keys;
    QueryOffers = "query_offers", reads, Keys;
    ReadOffer = "read_offer", reads, Keys;
    ReplaceOffer = "replace_offer", writes, Keys;
    ListSplits = "list_splits", reads, Keys;
    StartSplit = "start_split", writes, Keys;
    ReadPartitions = "read_partitions", reads, Keys;
    ReadIdentity = "read_identity", reads, Account;
    CheckQuery = "check_query", reads, Account;
    ReadFaults = "read_faults", reads, Keys;
    ReplaceFaults = "replace_faults", writes, Keys;
    ClearFaults = "clear_faults", writes, Keys;
    ReadThrottling = "read_throttling", reads, Keys;
    SwitchThrottling = "switch_throttling", writes, Keys;
    ReadClock = "read_clock", reads, Keys;
    MoveClock = "move_clock", writes, Keys;
    ResetAccount = "reset_account", writes, Keys;
    ReadAdvice = "read_advice", reads, Keys;
    ListForks = "list_forks", reads, Keys;
    CreateFork = "create_fork", writes, Keys;
    DropForks = "drop_forks", writes, Keys;
    ListUsers = "list_users", reads, Keys;
    QueryUsers = "query_users", reads, Keys;
    CreateUser = "create_user", writes, Keys;
    UpsertUser = "upsert_user", writes, Keys;
    ReadUser = "read_user", reads, Keys;
    ReplaceUser = "replace_user", writes, Keys;
    DeleteUser = "delete_user", writes, Keys;
    ListPermissions = "list_permissions", reads, Permissions;
    QueryPermissions = "query_permissions", reads, Permissions;
    CreatePermission = "create_permission", writes, Permissions;
    UpsertPermission = "upsert_permission", writes, Permissions;
    ReadPermission = "read_permission", reads, Permissions;
    ReplacePermission = "replace_permission", writes, Permissions;
    DeletePermission = "delete_permission", writes, Permissions;
    ListEncryptionKeys = "list_encryption_keys", reads, Keys;
    QueryEncryptionKeys = "query_encryption_keys", reads, Keys;
    CreateEncryptionKey = "create_encryption_key", writes, Keys;
    ReadEncryptionKey = "read_encryption_key", reads, Keys;
    ReplaceEncryptionKey = "replace_encryption_key", writes, Keys;
    ListScripts = "list_scripts", reads, Script;
    QueryScripts = "query_scripts", reads, Script;
    CreateScript = "create_script", writes, Script;
    UpsertScript = "upsert_script", writes, Script;
    ReadScript = "read_script", reads, Script;
    ReplaceScript = "replace_script", writes, Script;
    DeleteScript = "delete_script", writes, Script;
    ExecuteProcedure = "execute_procedure", writes, Run;
    ListAttachments = "list_attachments", reads, OneItem;
    QueryAttachments = "query_attachments", reads, OneItem;
    CreateAttachment = "create_attachment", writes, OneItem;
    UpsertAttachment = "upsert_attachment", writes, OneItem;
    ReadAttachment = "read_attachment", reads, OneItem;
    ReplaceAttachment = "replace_attachment", writes, OneItem;
    DeleteAttachment = "delete_attachment", writes, OneItem;
    ReadMedia = "read_media", reads, OneItem;
    ReplaceMedia = "replace_media", writes, OneItem;
    ReadAddresses = "read_addresses", reads, Properties;
    ReadCatalogAddresses = "read_catalog_addresses", reads, Account;
    // How far a partition is, or the catalog, without anything of what it holds.
    HeadContainer = "head_container", reads, Properties;
    HeadCatalog = "head_catalog", reads, Keys;
}

/// What a POST on a feed means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Post {
    Plan,
    Query,
    Batch,
    Upsert,
    Create,
}

/// What a request over HTTP wants.
pub fn decide(resource: Resource, method: &Method, headers: &HeaderMap) -> Result<Action> {
    let meaning = if *method == Method::POST { meaning_of_post(headers) } else { Post::Create };
    let changes = resource == Resource::Items && headers.contains_key(A_IM);
    decide_as(resource, method, meaning, changes).ok_or_else(|| method_not_allowed(method))
}

/// The same where it is known what a POST means, and whether changes are wanted instead of items.
pub fn decide_as(resource: Resource, method: &Method, meaning: Post, changes: bool) -> Option<Action> {
    let post = |table: &dyn Fn(Post) -> Option<Action>| table(meaning);
    match (resource, method) {
        (Resource::Account, &Method::GET) => Some(Action::ReadAccount),
        (Resource::Databases, &Method::GET) => Some(Action::ListDatabases),
        (Resource::Databases, &Method::POST) => post(&|meaning| match meaning {
            Post::Query => Some(Action::QueryDatabases),
            Post::Create => Some(Action::CreateDatabase),
            _ => None,
        }),
        (Resource::Database, &Method::GET) => Some(Action::ReadDatabase),
        (Resource::Database, &Method::DELETE) => Some(Action::DeleteDatabase),
        (Resource::Containers, &Method::GET) => Some(Action::ListContainers),
        (Resource::Containers, &Method::POST) => post(&|meaning| match meaning {
            Post::Query => Some(Action::QueryContainers),
            Post::Create => Some(Action::CreateContainer),
            _ => None,
        }),
        (Resource::Container, &Method::GET) => Some(Action::ReadContainer),
        (Resource::Container, &Method::PUT) => Some(Action::ReplaceContainer),
        (Resource::Container, &Method::DELETE) => Some(Action::DeleteContainer),
        (Resource::Items, &Method::GET) if changes => Some(Action::ReadChanges),
        (Resource::Items, &Method::GET) => Some(Action::ListItems),
        (Resource::Items, &Method::POST) => Some(match meaning {
            Post::Plan => Action::PlanQuery,
            Post::Query => Action::QueryItems,
            Post::Batch => Action::Batch,
            Post::Upsert => Action::UpsertItem,
            Post::Create => Action::CreateItem,
        }),
        (Resource::Item, &Method::GET) => Some(Action::ReadItem),
        (Resource::Item, &Method::PUT) => Some(Action::ReplaceItem),
        (Resource::Item, &Method::PATCH) => Some(Action::PatchItem),
        (Resource::Item, &Method::DELETE) => Some(Action::DeleteItem),
        (Resource::Ranges, &Method::GET) => Some(Action::ListRanges),
        (Resource::Ranges, &Method::POST) if meaning == Post::Query => Some(Action::QueryRanges),
        (Resource::Conflicts, &Method::GET) => Some(Action::ListConflicts),
        (Resource::Conflicts, &Method::POST) if meaning == Post::Query => Some(Action::QueryConflicts),
        (Resource::Conflict, &Method::GET) => Some(Action::ReadConflict),
        (Resource::Conflict, &Method::DELETE) => Some(Action::DeleteConflict),
        (Resource::PartitionKeyDelete, &Method::POST) => Some(Action::DeletePartitionKey),
        (Resource::Offers, &Method::GET) => Some(Action::ListOffers),
        (Resource::Offers, &Method::POST) if meaning == Post::Query => Some(Action::QueryOffers),
        (Resource::Offer, &Method::GET) => Some(Action::ReadOffer),
        (Resource::Offer, &Method::PUT) => Some(Action::ReplaceOffer),
        (Resource::Splits, &Method::GET) => Some(Action::ListSplits),
        (Resource::Splits, &Method::POST) => Some(Action::StartSplit),
        (Resource::Partitions, &Method::GET) => Some(Action::ReadPartitions),
        (Resource::Identity, &Method::GET) => Some(Action::ReadIdentity),
        (Resource::QueryCheck, &Method::POST) => Some(Action::CheckQuery),
        (Resource::Faults, &Method::GET) => Some(Action::ReadFaults),
        (Resource::Faults, &Method::PUT) => Some(Action::ReplaceFaults),
        (Resource::Faults, &Method::DELETE) => Some(Action::ClearFaults),
        (Resource::Throttling, &Method::GET) => Some(Action::ReadThrottling),
        (Resource::Throttling, &Method::PUT) => Some(Action::SwitchThrottling),
        (Resource::Clock, &Method::GET) => Some(Action::ReadClock),
        (Resource::Clock, &Method::POST) => Some(Action::MoveClock),
        (Resource::Reset, &Method::POST) => Some(Action::ResetAccount),
        (Resource::Advice, &Method::POST) => Some(Action::ReadAdvice),
        (Resource::Forks, &Method::GET) => Some(Action::ListForks),
        (Resource::Forks, &Method::POST) => Some(Action::CreateFork),
        (Resource::Forks, &Method::DELETE) => Some(Action::DropForks),
        (Resource::Users, &Method::GET) => Some(Action::ListUsers),
        (Resource::Users, &Method::POST) => post(&|meaning| match meaning {
            Post::Query => Some(Action::QueryUsers),
            Post::Create => Some(Action::CreateUser),
            Post::Upsert => Some(Action::UpsertUser),
            _ => None,
        }),
        (Resource::User, &Method::GET) => Some(Action::ReadUser),
        (Resource::User, &Method::PUT) => Some(Action::ReplaceUser),
        (Resource::User, &Method::DELETE) => Some(Action::DeleteUser),
        (Resource::Permissions, &Method::GET) => Some(Action::ListPermissions),
        (Resource::Permissions, &Method::POST) => post(&|meaning| match meaning {
            Post::Query => Some(Action::QueryPermissions),
            Post::Create => Some(Action::CreatePermission),
            Post::Upsert => Some(Action::UpsertPermission),
            _ => None,
        }),
        (Resource::Permission, &Method::GET) => Some(Action::ReadPermission),
        (Resource::Permission, &Method::PUT) => Some(Action::ReplacePermission),
        (Resource::Permission, &Method::DELETE) => Some(Action::DeletePermission),
        (Resource::Scripts(_), &Method::GET) => Some(Action::ListScripts),
        (Resource::Scripts(_), &Method::POST) => post(&|meaning| match meaning {
            Post::Query => Some(Action::QueryScripts),
            Post::Upsert => Some(Action::UpsertScript),
            Post::Create => Some(Action::CreateScript),
            _ => None,
        }),
        (Resource::EncryptionKeys, &Method::GET) => Some(Action::ListEncryptionKeys),
        (Resource::EncryptionKeys, &Method::POST) => post(&|meaning| match meaning {
            Post::Query => Some(Action::QueryEncryptionKeys),
            Post::Create => Some(Action::CreateEncryptionKey),
            _ => None,
        }),
        (Resource::EncryptionKey, &Method::GET) => Some(Action::ReadEncryptionKey),
        (Resource::EncryptionKey, &Method::PUT) => Some(Action::ReplaceEncryptionKey),
        (Resource::Script(_), &Method::GET) => Some(Action::ReadScript),
        (Resource::Script(_), &Method::PUT) => Some(Action::ReplaceScript),
        (Resource::Script(_), &Method::DELETE) => Some(Action::DeleteScript),
        (Resource::Script(ScriptKind::Procedure), &Method::POST) => Some(Action::ExecuteProcedure),
        (Resource::Attachments, &Method::GET) => Some(Action::ListAttachments),
        (Resource::Attachments, &Method::POST) => post(&|meaning| match meaning {
            Post::Query => Some(Action::QueryAttachments),
            Post::Upsert => Some(Action::UpsertAttachment),
            Post::Create => Some(Action::CreateAttachment),
            _ => None,
        }),
        (Resource::Attachment, &Method::GET) => Some(Action::ReadAttachment),
        (Resource::Attachment, &Method::PUT) => Some(Action::ReplaceAttachment),
        (Resource::Attachment, &Method::DELETE) => Some(Action::DeleteAttachment),
        (Resource::Media, &Method::GET) => Some(Action::ReadMedia),
        (Resource::Media, &Method::PUT) => Some(Action::ReplaceMedia),
        (Resource::Container, &Method::HEAD) => Some(Action::HeadContainer),
        (Resource::Databases, &Method::HEAD) => Some(Action::HeadCatalog),
        (Resource::Addresses, &Method::GET) => Some(Action::ReadAddresses),
        (Resource::CatalogAddresses, &Method::GET) => Some(Action::ReadCatalogAddresses),
        _ => None,
    }
}

/// Whether a request is a query, by its headers alone.
pub fn is_query(headers: &HeaderMap) -> bool {
    meaning_of_post(headers) == Post::Query
}

/// Whether a request may have much to do or to say: everything but reading and writing single items and resources.
/// Told by verb, path and headers alone, before anything is decoded.
pub fn may_take_long(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let steps = steps(path);
    match *method {
        // An odd number of steps ends in a kind: a feed.
        Method::GET => !steps.is_multiple_of(2),
        // On one resource it runs a procedure.
        Method::POST => {
            steps.is_multiple_of(2) || !matches!(meaning_of_post(headers), Post::Create | Post::Upsert)
        }
        _ => false,
    }
}

impl Action {
    /// Whether it may have much to do or to say, as [`may_take_long`] tells by verb, path and headers.
    pub fn takes_long(method: &Method, is_feed: bool, meaning: Post) -> bool {
        match *method {
            Method::GET => is_feed,
            Method::POST => !is_feed || !matches!(meaning, Post::Create | Post::Upsert),
            _ => false,
        }
    }
}

/// How many steps a path has; slashes in a row are one. Asked for every request.
fn steps(path: &str) -> usize {
    let (mut count, mut between) = (0, true);
    for byte in path.bytes() {
        count += usize::from(between && byte != b'/');
        between = byte == b'/';
    }
    count
}

fn meaning_of_post(headers: &HeaderMap) -> Post {
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let query_type = b"application/query+json";
    if flag(headers, IS_PLAN) {
        Post::Plan
    } else if flag(headers, IS_QUERY) && !content_type.eq_ignore_ascii_case(b"application/json")
        || content_type.len() >= query_type.len()
            && content_type[..query_type.len()].eq_ignore_ascii_case(query_type)
    {
        Post::Query
    } else if flag(headers, IS_BATCH) {
        Post::Batch
    } else if flag(headers, IS_UPSERT) {
        Post::Upsert
    } else {
        Post::Create
    }
}

/// Clients write `True`, `true` and `TRUE`.
pub fn flag(headers: &HeaderMap, name: http::HeaderName) -> bool {
    headers.get(name).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true"))
}

/// The service answers with the name of the handler it does not have.
fn method_not_allowed(method: &Method) -> ApiError {
    let verb = method.as_str();
    let (first, rest) = verb.split_at(verb.len().min(1));
    let message = format!("RequestHandler.{first}{}", rest.to_ascii_lowercase());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, Voice::Gateway, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_take_long_shows_in_verb_path_and_headers() {
        let none = HeaderMap::new();
        let with =
            |name: http::HeaderName| HeaderMap::from_iter([(name, http::HeaderValue::from_static("True"))]);
        for (method, path, headers, long) in [
            (Method::GET, "/", &none, false),
            (Method::GET, "/dbs/d/colls/c/docs/a", &none, false),
            (Method::GET, "//dbs/d/colls/c/docs/a/", &none, false),
            (Method::GET, "/dbs/d/colls/c/docs", &none, true),
            (Method::POST, "/dbs/d/colls/c/docs", &none, false),
            (Method::POST, "/dbs/d/colls/c/docs", &with(IS_UPSERT), false),
            (Method::POST, "/dbs/d/colls/c/docs", &with(IS_QUERY), true),
            (Method::POST, "/dbs/d/colls/c/docs", &with(IS_PLAN), true),
            (Method::POST, "/dbs/d/colls/c/docs", &with(IS_BATCH), true),
            (Method::POST, "/dbs/d/colls/c/sprocs/p", &none, true),
            (Method::PUT, "/dbs/d/colls/c/docs/a", &none, false),
            (Method::DELETE, "/dbs/d", &none, false),
        ] {
            assert_eq!(may_take_long(&method, path, headers), long, "{method} {path}");
        }
    }
    use http::HeaderValue;

    fn post(headers: &[(&'static str, &'static str)]) -> Action {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        decide(Resource::Items, &Method::POST, &map).unwrap()
    }

    #[test]
    fn a_post_is_judged_in_the_services_order() {
        let (plan, query) = ("x-ms-cosmos-is-query-plan-request", "x-ms-documentdb-isquery");
        let (batch, upsert) = ("x-ms-cosmos-is-batch-request", "x-ms-documentdb-is-upsert");
        assert_eq!(
            post(&[(plan, "True"), (query, "true"), ("content-type", "application/query+json")]),
            Action::PlanQuery
        );
        assert_eq!(post(&[(plan, "True"), ("content-type", "application/json")]), Action::PlanQuery);
        assert_eq!(post(&[(query, "True")]), Action::QueryItems);
        assert_eq!(post(&[("content-type", "application/query+json; charset=utf-8")]), Action::QueryItems);
        assert_eq!(post(&[(batch, "TRUE"), (upsert, "true")]), Action::Batch);
        assert_eq!(post(&[(upsert, "true")]), Action::UpsertItem);
        assert_eq!(post(&[(upsert, "false")]), Action::CreateItem);
    }

    #[test]
    fn the_content_type_of_an_item_outweighs_the_query_flag() {
        let action = post(&[("x-ms-documentdb-isquery", "True"), ("content-type", "application/json")]);
        assert_eq!(action, Action::CreateItem);
    }

    #[test]
    fn a_verb_without_a_handler_is_405_with_its_name() {
        let error = decide(Resource::Item, &Method::POST, &HeaderMap::new()).unwrap_err();
        assert_eq!((error.status.as_u16(), error.message.as_str()), (405, "RequestHandler.Post"));
    }

    #[test]
    fn queries_and_plans_are_reads() {
        for action in [Action::QueryItems, Action::PlanQuery, Action::ReadChanges, Action::QueryOffers] {
            assert!(action.is_read(), "{}", action.name());
        }
        for action in [Action::Batch, Action::UpsertItem, Action::DeletePartitionKey, Action::ReplaceOffer] {
            assert!(!action.is_read(), "{}", action.name());
        }
    }
}
