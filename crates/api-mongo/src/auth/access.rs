//! What a user may do, by roles.

use std::sync::Arc;

use orrery_mongo::{Bson, Document, Error, Result, error::code};

/// What a command asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing: it may come before the client has said who it is.
    Nobody,
    /// To be somebody.
    Somebody,
    Read,
    Write,
    /// Of users and of the server itself.
    Administer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    pub name: Arc<str>,
    pub database: Arc<str>,
}

impl Role {
    pub fn new(name: &str, database: &str) -> Role {
        Role { name: name.into(), database: database.into() }
    }
}

/// Who has logged in.
#[derive(Clone, Debug)]
pub struct Identity {
    pub user: Arc<str>,
    pub database: Arc<str>,
    pub roles: Arc<[Role]>,
}

/// The roles there are, and what they open.
pub const ROLES: [&str; 15] = [
    "read",
    "readWrite",
    "dbAdmin",
    "dbOwner",
    "userAdmin",
    "readAnyDatabase",
    "readWriteAnyDatabase",
    "dbAdminAnyDatabase",
    "userAdminAnyDatabase",
    "clusterAdmin",
    "clusterMonitor",
    "clusterManager",
    "hostManager",
    "backup",
    "root",
];

pub fn role_reads(role: &str) -> bool {
    !matches!(role, "userAdmin" | "userAdminAnyDatabase" | "hostManager" | "clusterManager")
}

pub fn role_writes(role: &str) -> bool {
    matches!(
        role,
        "readWrite"
            | "dbAdmin"
            | "dbOwner"
            | "readWriteAnyDatabase"
            | "dbAdminAnyDatabase"
            | "root"
            | "__system"
    )
}

fn role_administers(role: &str) -> bool {
    matches!(role, "dbOwner" | "userAdmin" | "userAdminAnyDatabase" | "clusterAdmin" | "root" | "__system")
}

/// A role of one database, and not of all of them.
fn is_of_one(role: &str) -> bool {
    matches!(role, "read" | "readWrite" | "dbAdmin" | "dbOwner" | "userAdmin")
}

impl Identity {
    pub fn permits(&self, access: Access, database: &str) -> bool {
        let grants: fn(&str) -> bool = match access {
            Access::Nobody | Access::Somebody => return true,
            Access::Read => role_reads,
            Access::Write => role_writes,
            Access::Administer => role_administers,
        };
        let here = |role: &Role| !is_of_one(&role.name) || *role.database == *database;
        self.roles.iter().any(|role| here(role) && grants(&role.name))
    }
}

/// The roles of a stored user.
pub fn roles_of(stored: &Document, database: &str) -> Vec<Role> {
    let roles = stored.get("roles").and_then(Bson::as_array).unwrap_or_default();
    let role = |role: &Bson| match role {
        Bson::String(name) => Some(Role::new(name, database)),
        Bson::Document(role) => Some(Role::new(role.get("role")?.as_str()?, role.get("db")?.as_str()?)),
        _ => None,
    };
    roles.iter().filter_map(role).collect()
}

/// Refuses what a caller may not do.
pub fn check(identity: Option<&Identity>, access: Access, command: &str, database: &str) -> Result<()> {
    match identity {
        _ if access == Access::Nobody => Ok(()),
        None => Err(Error::new(code::UNAUTHORIZED, format!("Command {command} requires authentication"))),
        Some(identity) if identity.permits(access, database) => Ok(()),
        Some(_) => Err(Error::new(
            code::UNAUTHORIZED,
            format!("not authorized on {database} to execute command {command}"),
        )),
    }
}
