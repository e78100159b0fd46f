//! What a request asks for: the table of verbs, paths and parameters.

use http::Method;

use crate::errors::{Code, Result, TableError};
use crate::params::Params;
use crate::routes::Resource;

macro_rules! actions {
    ($($name:ident $text:literal $fault:literal $kind:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action { $($name,)* }

        impl Action {
            /// For log and metrics.
            pub fn name(self) -> &'static str {
                match self { $(Action::$name => $text,)* }
            }

            /// The operation of the core that fault rules know it by.
            pub fn fault_name(self) -> &'static str {
                match self { $(Action::$name => $fault,)* }
            }

            pub fn is_read(self) -> bool {
                match self { $(Action::$name => is_read(stringify!($kind)),)* }
            }
        }
    };
}

fn is_read(kind: &str) -> bool {
    kind == "reads"
}

actions! {
    ListTables "list_tables" "list_containers" reads;
    CreateTable "create_table" "create_container" writes;
    ReadTable "read_table" "read_container" reads;
    DeleteTable "delete_table" "delete_container" writes;
    InsertEntity "insert_entity" "create_item" writes;
    ReadEntity "read_entity" "read_item" reads;
    QueryEntities "query_entities" "query_items" reads;
    ReplaceEntity "replace_entity" "replace_item" writes;
    InsertOrReplaceEntity "insert_or_replace_entity" "upsert_item" writes;
    MergeEntity "merge_entity" "patch_item" writes;
    InsertOrMergeEntity "insert_or_merge_entity" "upsert_item" writes;
    DeleteEntity "delete_entity" "delete_item" writes;
    Batch "batch" "batch" writes;
    ReadPolicies "read_policies" "read_container" reads;
    SetPolicies "set_policies" "replace_container" writes;
    ReadProperties "read_properties" "read_account" reads;
    SetProperties "set_properties" "read_account" writes;
    ReadStatistics "read_statistics" "read_account" reads;
    Preflight "preflight" "read_account" reads;
}

/// What a request wants. `tunnelled` is the method that `X-HTTP-Method` names.
pub fn decide(
    method: &Method,
    tunnelled: Option<&str>,
    resource: &Resource,
    params: &Params<'_>,
    conditional: bool,
) -> Result<Action> {
    let verb = match (method.as_str(), tunnelled) {
        ("POST", Some(tunnelled)) => tunnelled,
        (verb, _) => verb,
    };
    let comp = params.get("comp");
    Ok(match (resource, verb, comp) {
        (_, "OPTIONS", _) => Action::Preflight,
        (Resource::Service, "GET", Some("properties")) => Action::ReadProperties,
        (Resource::Service, "PUT", Some("properties")) => Action::SetProperties,
        (Resource::Service, "GET", Some("stats")) => Action::ReadStatistics,
        (Resource::Service, _, _) => return Err(TableError::url()),
        (Resource::Tables, "GET", _) => Action::ListTables,
        (Resource::Tables, "POST", _) => Action::CreateTable,
        (Resource::Table(_), "GET", _) => Action::ReadTable,
        (Resource::Table(_), "DELETE", _) => Action::DeleteTable,
        (Resource::Entities(_), "GET", Some("acl")) => Action::ReadPolicies,
        (Resource::Entities(_), "PUT", Some("acl")) => Action::SetPolicies,
        (Resource::Entities(_), _, Some("properties" | "stats")) => {
            return Err(Code::InvalidQueryParameterValue.into());
        }
        (Resource::Entities(_), "GET", None) => Action::QueryEntities,
        (Resource::Entities(_), "POST", None) => Action::InsertEntity,
        (Resource::Entity(_), "GET", _) => Action::ReadEntity,
        (Resource::Entity(_), "PUT", _) if conditional => Action::ReplaceEntity,
        (Resource::Entity(_), "PUT", _) => Action::InsertOrReplaceEntity,
        (Resource::Entity(_), "PATCH" | "MERGE", _) if conditional => Action::MergeEntity,
        (Resource::Entity(_), "PATCH" | "MERGE", _) => Action::InsertOrMergeEntity,
        (Resource::Entity(_), "DELETE", _) => Action::DeleteEntity,
        (Resource::Batch, "POST", _) => Action::Batch,
        _ => return Err(Code::MethodNotAllowed.into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes;

    #[test]
    fn verbs_and_paths_mean_actions() {
        for (verb, tunnelled, path, query, conditional, expected) in [
            ("POST", None, "/Tables", "", false, "create_table"),
            ("GET", None, "/Tables", "", false, "list_tables"),
            ("GET", None, "/Tables('t')", "", false, "read_table"),
            ("DELETE", None, "/Tables('t')", "", false, "delete_table"),
            ("POST", None, "/t", "", false, "insert_entity"),
            ("GET", None, "/t()", "", false, "query_entities"),
            ("GET", None, "/t", "comp=acl", false, "read_policies"),
            ("PUT", None, "/t", "comp=acl", false, "set_policies"),
            ("GET", None, "/t(PartitionKey='p',RowKey='r')", "", false, "read_entity"),
            ("PUT", None, "/t(PartitionKey='p',RowKey='r')", "", true, "replace_entity"),
            ("PUT", None, "/t(PartitionKey='p',RowKey='r')", "", false, "insert_or_replace_entity"),
            ("PATCH", None, "/t(PartitionKey='p',RowKey='r')", "", true, "merge_entity"),
            ("MERGE", None, "/t(PartitionKey='p',RowKey='r')", "", false, "insert_or_merge_entity"),
            ("POST", Some("MERGE"), "/t(PartitionKey='p',RowKey='r')", "", true, "merge_entity"),
            ("POST", Some("DELETE"), "/t(PartitionKey='p',RowKey='r')", "", true, "delete_entity"),
            ("POST", None, "/t(PartitionKey='p',RowKey='r')", "", true, "MethodNotAllowed"),
            ("POST", None, "/$batch", "", false, "batch"),
            ("GET", None, "/$batch", "", false, "MethodNotAllowed"),
            ("GET", None, "/", "restype=service&comp=properties", false, "read_properties"),
            ("PUT", None, "/", "restype=service&comp=properties", false, "set_properties"),
            ("GET", None, "/", "restype=service&comp=stats", false, "read_statistics"),
            ("GET", None, "/", "", false, "InvalidInput"),
            ("OPTIONS", None, "/t", "", false, "preflight"),
        ] {
            let resource = routes::parse(path).unwrap();
            let method = Method::from_bytes(verb.as_bytes()).unwrap();
            let decided = decide(&method, tunnelled, &resource, &Params::parse(query), conditional);
            let decided = decided.map_or_else(|error| error.code.name(), Action::name);
            assert_eq!(decided, expected, "{verb} {path}");
        }
    }
}
