//! Users and permissions: who, besides the holders of the account's keys, has been granted what.
//!
//! A user is a name under a database; a permission belongs to a user and names a resource, a mode and, if it is
//! narrower than the resource, a partition key. The engine keeps them, one row each, and makes sure that names are
//! unique and that a user has at most one permission for the same resource and key. The resource is kept as the client
//! wrote it, because that is how it wants to read it; whoever reads a link makes a `Resource` of it for a token, and
//! what that opens is decided in `permit`.
//!
//! Users are kept apart from the containers of their database and are as immutable as everything that readers see: a
//! change makes a new [`User`], which shares what has not changed with the one before.

use std::sync::Arc;

use imbl::{HashMap, OrdMap};
use orrery_model::PartitionKey;

use crate::account::Ref;
use crate::definition::names;
use crate::error::{Error, Result};
use crate::etag::Etag;

/// Most users of a database, as the service's quota states.
pub const USERS_MAX: usize = 500_000;
/// Most permissions of a database. Deleting the database removes all of them in one commit, whose size bounds them.
pub const PERMISSIONS_MAX: usize = 500_000;
/// Longest name of a resource in a permission: names of databases and containers and an item's id, all at their
/// longest.
pub const RESOURCE_BYTES_MAX: usize = 4 * 1024;
/// Longest partition key in a permission, in its stored form; keys of items end at 2 KB.
pub const PERMISSION_KEY_BYTES_MAX: usize = 4 * 1024;

/// What a permission allows with its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PermissionMode {
    Read,
    /// Reading, writing, deleting and executing.
    All,
}

/// What a client says about a permission.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionDefinition {
    pub name: String,
    pub mode: PermissionMode,
    /// The mode as the client wrote it, which is how it wants to read it.
    pub mode_name: String,
    /// A link, as the client wrote it.
    pub resource: String,
    /// Whether the link is percent-encoded. A name may look as if it were.
    pub escaped: bool,
    /// `None`: every key of the resource.
    pub partition_key: Option<PartitionKey>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Permission {
    /// Counts from 1 within the user; never used again after a delete.
    pub number: u32,
    pub definition: PermissionDefinition,
    pub etag: Etag,
    pub ts: u32,
}

/// A user at one moment, with its permissions.
#[derive(Debug, Clone)]
pub struct User {
    /// Shares its counter with the containers of the database; never used again after a delete.
    pub number: u32,
    pub name: String,
    pub etag: Etag,
    pub ts: u32,
    /// The catalog's change that the etag stands for.
    pub(crate) lsn: u64,
    pub(crate) next_permission: u32,
    permissions: OrdMap<u32, Arc<Permission>>,
    by_name: HashMap<String, u32>,
    /// One permission for each resource and key.
    by_grant: HashMap<Vec<u8>, u32>,
}

/// The users of one database at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Users {
    by_number: OrdMap<u32, Arc<User>>,
    by_name: HashMap<String, u32>,
    /// Of all users together.
    permissions: usize,
}

impl PermissionMode {
    /// Clients write `All`, `all` and `ALL`.
    pub fn parse(name: &str) -> Option<PermissionMode> {
        match name {
            name if name.eq_ignore_ascii_case("read") => Some(PermissionMode::Read),
            name if name.eq_ignore_ascii_case("all") => Some(PermissionMode::All),
            _ => None,
        }
    }
}

impl PermissionDefinition {
    pub(crate) fn check(&self) -> Result<()> {
        names::check(&self.name)?;
        let key_bytes = self.partition_key.as_ref().map_or(0, |key| key_bytes(key).len());
        if self.resource.is_empty()
            || self.resource.len() > RESOURCE_BYTES_MAX
            || key_bytes > PERMISSION_KEY_BYTES_MAX
        {
            return Err(Error::bad_request("One of the specified inputs is invalid"));
        }
        Ok(())
    }

    /// What no two permissions of a user have in common. Slashes around a link do not make it another one.
    fn grant(&self) -> Vec<u8> {
        let mut grant = self.resource.trim_matches('/').as_bytes().to_vec();
        if let Some(key) = &self.partition_key {
            grant.push(0);
            key.encode(&mut grant);
        }
        grant
    }
}

pub(crate) fn key_bytes(key: &PartitionKey) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.encode(&mut bytes);
    bytes
}

impl User {
    pub(crate) fn new(number: u32, name: String, lsn: u64, ts: u32, next_permission: u32) -> User {
        User {
            number,
            name,
            etag: Etag::new(lsn, ts),
            ts,
            lsn,
            next_permission,
            permissions: OrdMap::new(),
            by_name: HashMap::new(),
            by_grant: HashMap::new(),
        }
    }

    /// A new version of the user itself.
    pub(crate) fn written(&mut self, lsn: u64, ts: u32) {
        (self.etag, self.lsn, self.ts) = (Etag::new(lsn, ts), lsn, ts);
    }

    /// Those with a number above `after`, in creation order.
    pub fn permissions_after(&self, after: u32) -> impl Iterator<Item = &Arc<Permission>> {
        self.permissions.range(after.saturating_add(1)..).map(|(_, permission)| permission)
    }

    pub fn permission_count(&self) -> usize {
        self.permissions.len()
    }

    pub fn permission(&self, by: Ref<'_>) -> Result<Arc<Permission>> {
        let number = match by {
            Ref::Name(name) => self.by_name.get(name).copied(),
            Ref::Number(number) => Some(number),
        };
        number.and_then(|number| self.permissions.get(&number)).cloned().ok_or_else(Error::not_found)
    }

    /// Whether the definition may become permission `number` of this user, or a new one.
    pub(crate) fn check_free(&self, definition: &PermissionDefinition, number: Option<u32>) -> Result<()> {
        let taken = |holder: Option<&u32>| holder.is_some_and(|holder| Some(*holder) != number);
        if taken(self.by_name.get(&definition.name)) || taken(self.by_grant.get(&definition.grant())) {
            return Err(Error::already_exists());
        }
        Ok(())
    }

    pub(crate) fn insert(&mut self, permission: Arc<Permission>) {
        self.remove(permission.number);
        self.by_name.insert(permission.definition.name.clone(), permission.number);
        self.by_grant.insert(permission.definition.grant(), permission.number);
        self.permissions.insert(permission.number, permission);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(old) = self.permissions.remove(&number) {
            self.by_name.remove(&old.definition.name);
            self.by_grant.remove(&old.definition.grant());
        }
    }
}

impl Users {
    /// Those with a number above `after`, in creation order.
    pub(crate) fn after(&self, after: u32) -> impl Iterator<Item = &Arc<User>> {
        self.by_number.range(after.saturating_add(1)..).map(|(_, user)| user)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn permission_count(&self) -> usize {
        self.permissions
    }

    pub(crate) fn get(&self, by: Ref<'_>) -> Result<Arc<User>> {
        let number = match by {
            Ref::Name(name) => self.by_name.get(name).copied(),
            Ref::Number(number) => Some(number),
        };
        number.and_then(|number| self.by_number.get(&number)).cloned().ok_or_else(Error::not_found)
    }

    pub(crate) fn insert(&mut self, user: Arc<User>) {
        self.remove(user.number);
        self.permissions += user.permission_count();
        self.by_name.insert(user.name.clone(), user.number);
        self.by_number.insert(user.number, user);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(old) = self.by_number.remove(&number) {
            self.permissions -= old.permission_count();
            self.by_name.remove(&old.name);
        }
    }
}
