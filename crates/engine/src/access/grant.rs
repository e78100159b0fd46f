//! What a permission has granted to whoever holds its token.
//!
//! A grant says everything that a request has to be judged by, so no table of tokens is kept and nothing is looked up
//! in the catalog: deleting or changing the permission does not take back what was handed out before
//! ([ADR 11](../../../../docs/adr/0011-resource-tokens-without-state.md)).

use orrery_model::PartitionKey;

use super::resource::Resource;
use super::users::PermissionMode;

/// What the holder of a resource token may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The database, user and permission behind it. Nothing outside this database is ever granted.
    pub database: u32,
    pub user: u32,
    pub permission: u32,
    pub mode: PermissionMode,
    /// From when until when, in seconds since 1970.
    pub start_s: u32,
    pub expiry_s: u32,
    /// What it is about. By name: whatever has the name when the grant is used.
    pub resource: Resource<'static>,
    /// Only what is under this key, which may be the beginning of a hierarchical one. `None` and `[]`: every key.
    pub partition_key: Option<PartitionKey>,
}
