//! Changes of users and permissions. Like every change of the catalog: check, prepare rows, commit, show.

use std::sync::Arc;

use crate::access::{PERMISSIONS_MAX, Permission, PermissionDefinition, USERS_MAX, User, Users};
use crate::account::{Database, Ref};
use crate::catalog::CONTAINER_NUMBER_MAX;
use crate::catalog::changes::{check_match, next};
use crate::catalog::rows::RowKey;
use crate::catalog::user_rows::{PermissionRow, UserRow};
use crate::catalog::writer::{CatalogChange, Writer};
use crate::definition::names;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;

/// Users.
impl Writer {
    pub(crate) fn create_user(&mut self, database: u32, name: String) -> Result<Arc<User>> {
        names::check(&name)?;
        let database = self.database(database).map_err(|_| Error::owner_not_found())?;
        let users = database.users.load_full();
        if users.get(Ref::Name(&name)).is_ok() {
            return Err(Error::already_exists());
        }
        if users.len() >= USERS_MAX {
            let message = format!("The database has reached its limit of {USERS_MAX} users.");
            return Err(Error::new(Kind::Forbidden, message));
        }
        let mut change = self.prepare();
        let mut database_row =
            self.databases.get(&database.number).cloned().ok_or_else(Error::owner_not_found)?;
        let number = next(&mut database_row.next_container, CONTAINER_NUMBER_MAX, "user")?;
        change.put(RowKey::Database(database.number), database_row.encode());
        let user = User::new(number, name, change.meta.lsn, change.ts, 1);
        put_user(&mut change, database.number, &user);
        self.commit(change)?;
        self.databases.insert(database.number, database_row);
        Ok(self.show_user(&database, user))
    }

    /// The user and whether it is new.
    pub(crate) fn upsert_user(
        &mut self,
        database: u32,
        name: String,
        if_match: Option<&str>,
    ) -> Result<(Arc<User>, bool)> {
        let present = self.database(database).map_err(|_| Error::owner_not_found())?;
        let present = present.users.load().get(Ref::Name(&name));
        match present {
            Ok(user) => Ok((self.replace_user(database, user.number, name, if_match)?, false)),
            Err(_) => Ok((self.create_user(database, name)?, true)),
        }
    }

    /// Gives a user another name, or only another etag. Its permissions stay.
    pub(crate) fn replace_user(
        &mut self,
        database: u32,
        number: u32,
        name: String,
        if_match: Option<&str>,
    ) -> Result<Arc<User>> {
        names::check(&name)?;
        let (database, old) = self.user(database, number)?;
        check_match(old.etag, if_match)?;
        let holder = database.users.load().get(Ref::Name(&name));
        if holder.is_ok_and(|holder| holder.number != number) {
            return Err(Error::already_exists());
        }
        let mut change = self.prepare();
        let mut user = User::clone(&old);
        user.name = name;
        user.written(change.meta.lsn, change.ts);
        put_user(&mut change, database.number, &user);
        self.commit(change)?;
        Ok(self.show_user(&database, user))
    }

    pub(crate) fn delete_user(&mut self, database: u32, number: u32, if_match: Option<&str>) -> Result<()> {
        let (database, user) = self.user(database, number)?;
        check_match(user.etag, if_match)?;
        let mut change = self.prepare();
        prepare_user_delete(&mut change, database.number, &user);
        self.commit(change)?;
        let mut users = Users::clone(&database.users.load());
        users.remove(number);
        database.users.store(Arc::new(users));
        self.publish(|_| ());
        Ok(())
    }

    /// The present user, which the caller's handle may no longer be.
    fn user(&self, database: u32, number: u32) -> Result<(Arc<Database>, Arc<User>)> {
        let database = self.database(database)?;
        let user = database.users.load().get(Ref::Number(number))?;
        Ok((database, user))
    }

    fn show_user(&self, database: &Database, user: User) -> Arc<User> {
        let user = Arc::new(user);
        let mut users = Users::clone(&database.users.load());
        users.insert(user.clone());
        database.users.store(Arc::new(users));
        self.publish(|_| ());
        user
    }
}

/// Permissions.
impl Writer {
    pub(crate) fn create_permission(
        &mut self,
        database: u32,
        user: u32,
        definition: PermissionDefinition,
    ) -> Result<Arc<Permission>> {
        definition.check()?;
        let (database, old) = self.user(database, user).map_err(|_| Error::owner_not_found())?;
        old.check_free(&definition, None)?;
        if database.users.load().permission_count() >= PERMISSIONS_MAX {
            let message = format!("The database has reached its limit of {PERMISSIONS_MAX} permissions.");
            return Err(Error::new(Kind::Forbidden, message));
        }
        let mut change = self.prepare();
        let mut user = User::clone(&old);
        let number = next(&mut user.next_permission, u32::MAX, "permission")?;
        // The counter moves, the user's own etag does not: nothing that a client sees of it has changed.
        put_user(&mut change, database.number, &user);
        self.put_permission(change, &database, user, number, definition)
    }

    /// The permission and whether it is new.
    pub(crate) fn upsert_permission(
        &mut self,
        database: u32,
        user: u32,
        definition: PermissionDefinition,
        if_match: Option<&str>,
    ) -> Result<(Arc<Permission>, bool)> {
        let (_, holder) = self.user(database, user).map_err(|_| Error::owner_not_found())?;
        match holder.permission(Ref::Name(&definition.name)) {
            Ok(old) => {
                let replaced = self.replace_permission(database, user, old.number, definition, if_match)?;
                Ok((replaced, false))
            }
            Err(_) => Ok((self.create_permission(database, user, definition)?, true)),
        }
    }

    pub(crate) fn replace_permission(
        &mut self,
        database: u32,
        user: u32,
        number: u32,
        definition: PermissionDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<Permission>> {
        definition.check()?;
        let (database, user) = self.user(database, user).map_err(|_| Error::owner_not_found())?;
        let old = user.permission(Ref::Number(number))?;
        check_match(old.etag, if_match)?;
        user.check_free(&definition, Some(number))?;
        let change = self.prepare();
        self.put_permission(change, &database, User::clone(&user), number, definition)
    }

    pub(crate) fn delete_permission(
        &mut self,
        database: u32,
        user: u32,
        number: u32,
        if_match: Option<&str>,
    ) -> Result<()> {
        let (database, user) = self.user(database, user).map_err(|_| Error::owner_not_found())?;
        check_match(user.permission(Ref::Number(number))?.etag, if_match)?;
        let mut change = self.prepare();
        change.delete(RowKey::Permission(database.number, user.number, number));
        self.commit(change)?;
        let mut user = User::clone(&user);
        user.remove(number);
        self.show_user(&database, user);
        Ok(())
    }

    fn put_permission(
        &mut self,
        mut change: CatalogChange,
        database: &Database,
        mut user: User,
        number: u32,
        definition: PermissionDefinition,
    ) -> Result<Arc<Permission>> {
        let (lsn, ts) = (change.meta.lsn, change.ts);
        let row = PermissionRow { lsn, ts, definition };
        change.put(RowKey::Permission(database.number, user.number, number), row.encode());
        self.commit(change)?;
        let permission = Arc::new(permission_of_row(number, row));
        user.insert(permission.clone());
        self.show_user(database, user);
        Ok(permission)
    }
}

pub(crate) fn permission_of_row(number: u32, row: PermissionRow) -> Permission {
    Permission { number, definition: row.definition, etag: Etag::new(row.lsn, row.ts), ts: row.ts }
}

pub(crate) fn user_of_row(number: u32, row: UserRow) -> User {
    User::new(number, row.name, row.lsn, row.ts, row.next_permission)
}

/// Removes a user with its permissions.
pub(crate) fn prepare_user_delete(change: &mut CatalogChange, database: u32, user: &User) {
    change.delete(RowKey::User(database, user.number));
    for permission in user.permissions_after(0) {
        change.delete(RowKey::Permission(database, user.number, permission.number));
    }
}

fn put_user(change: &mut CatalogChange, database: u32, user: &User) {
    let row = UserRow {
        lsn: user.lsn,
        ts: user.ts,
        next_permission: user.next_permission,
        name: user.name.clone(),
    };
    change.put(RowKey::User(database, user.number), row.encode());
}
