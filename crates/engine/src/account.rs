//! Everything one server holds: databases, containers, offers and users, and the calls that change them.
//!
//! Reading never waits: names and numbers resolve in an immutable view that each change replaces. Changing goes to
//! the catalog's one writer (see `catalog::writer`) and comes back as a future; when it is ready the change is
//! durable and visible, when it failed nothing has changed, unless the store could not say (`Kind::OutcomeUnknown`).

use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use futures_channel::oneshot;
use orrery_storage::{SpaceId, Store};
use parking_lot::Mutex;

use crate::access::{Permission, PermissionDefinition, User, Users};
use crate::call::{Loopback, PagesSent};
use crate::catalog::view::{Containers, View};
use crate::catalog::writer::{Mailbox, Writer};
use crate::catalog::{CATALOG_SPACE, load};
use crate::columns::ColumnBudget;
use crate::config::{EngineConfig, PartitionCalls};
use crate::container::Container;
use crate::definition::ContainerDefinition;
use crate::encryption_key::{EncryptionKey, EncryptionKeyDefinition, EncryptionKeys};
use crate::env::Env;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::faults::Faults;
use crate::item_rules::RuleHost;
use crate::offer::{Offer, OfferChange, OfferOwner, Throughput};
use crate::outages::Outages;
use crate::partition::Partition;
use crate::query_host::{Hosts, QueryHost};
use crate::script::{Script, ScriptDefinition, ScriptKind};
use crate::script_call::ScriptHost;
use crate::split::Splits;
use crate::sweeper::Sweeper;
use crate::throughput::Pool;

/// A resource by its name or by the number inside its rid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ref<'n> {
    Name(&'n str),
    Number(u32),
}

/// What containers remember of their database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseIdentity {
    pub number: u32,
    pub name: String,
}

/// A database. Its own properties never change; its containers do, and every handle sees the present ones.
pub struct Database {
    pub number: u32,
    pub name: String,
    pub etag: Etag,
    pub ts: u32,
    pub(crate) identity: Arc<DatabaseIdentity>,
    pub(crate) containers: ArcSwap<Containers>,
    pub(crate) users: ArcSwap<Users>,
    pub(crate) encryption_keys: ArcSwap<EncryptionKeys>,
    /// What its containers share; empty without an offer.
    pub(crate) pool: Arc<Pool>,
    forked_from: Option<String>,
}

impl Database {
    pub(crate) fn new(number: u32, name: String, etag: Etag, ts: u32) -> Database {
        let identity = Arc::new(DatabaseIdentity { number, name: name.clone() });
        Database {
            number,
            name,
            etag,
            ts,
            identity,
            containers: ArcSwap::default(),
            users: ArcSwap::default(),
            encryption_keys: ArcSwap::default(),
            pool: Arc::new(Pool::new()),
            forked_from: None,
        }
    }

    /// The same, as a fork of a database of this name.
    pub(crate) fn into_fork_of(self, origin: String) -> Database {
        Database { forked_from: Some(origin), ..self }
    }

    /// The name that its origin had, if it is a fork.
    pub fn forked_from(&self) -> Option<&str> {
        self.forked_from.as_deref()
    }

    /// In creation order.
    pub fn containers(&self) -> Vec<Arc<Container>> {
        self.containers.load().by_number.values().cloned().collect()
    }

    pub fn container(&self, by: Ref<'_>) -> Result<Arc<Container>> {
        let containers = self.containers.load();
        let found = match by {
            Ref::Name(name) => containers.by_name.get(name),
            Ref::Number(number) => containers.by_number.get(&number),
        };
        found.cloned().ok_or_else(Error::not_found)
    }

    /// Up to `limit` users with a number above `after`, in creation order.
    pub fn users(&self, after: u32, limit: usize) -> Vec<Arc<User>> {
        self.users.load().after(after).take(limit).cloned().collect()
    }

    pub fn user_count(&self) -> usize {
        self.users.load().len()
    }

    /// Of all its users together.
    pub fn permission_count(&self) -> usize {
        self.users.load().permission_count()
    }

    pub fn user(&self, by: Ref<'_>) -> Result<Arc<User>> {
        self.users.load().get(by)
    }

    /// In creation order.
    pub fn encryption_keys(&self) -> Vec<Arc<EncryptionKey>> {
        self.encryption_keys.load().iter().cloned().collect()
    }

    pub fn encryption_key(&self, by: Ref<'_>) -> Result<Arc<EncryptionKey>> {
        self.encryption_keys.load().get(by)
    }
}

/// What every part of an account uses. Containers hold it, so it must not hold the view that holds them.
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) config: Arc<EngineConfig>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) columns: Arc<ColumnBudget>,
    pub(crate) outages: Outages,
    pub(crate) hosts: Arc<Hosts>,
    /// Where partitions are called as if they were elsewhere.
    pub(crate) loopback: Option<Arc<Loopback>>,
}

/// Everything one server holds.
pub struct Account {
    this: Weak<Account>,
    number: u32,
    shared: Arc<Shared>,
    view: Arc<ArcSwap<View>>,
    mailbox: Mailbox,
    /// Taken by `close`.
    sweeper: Mutex<Option<Sweeper>>,
    splits: OnceLock<Splits>,
    faults: Faults,
}

impl Account {
    /// Reads the catalog, goes on with drops that a crash interrupted, and starts the background work.
    pub fn open(store: Arc<dyn Store>, config: EngineConfig, env: Arc<dyn Env>) -> Result<Arc<Account>> {
        let account = Account::open_idle(store, config, env)?;
        account.splits();
        account.tell(Writer::remove_stale_forks)?;
        *account.sweeper.lock() = Some(Sweeper::start(Arc::downgrade(&account)));
        Ok(account)
    }

    /// The same without background work: for whoever checks and mends.
    pub fn open_idle(store: Arc<dyn Store>, config: EngineConfig, env: Arc<dyn Env>) -> Result<Arc<Account>> {
        let space = store.open_space(SpaceId(CATALOG_SPACE))?;
        let columns = Arc::new(ColumnBudget::new(config.column_bytes_max));
        let loopback = match config.partition_calls {
            PartitionCalls::Direct => None,
            PartitionCalls::Loopback => {
                tracing::warn!("partitions are called through a pipe, which is for tests and slow");
                Some(Loopback::start()?)
            }
        };
        let shared = Arc::new(Shared {
            store,
            config: Arc::new(config),
            env,
            columns,
            outages: Outages::default(),
            hosts: Arc::default(),
            loopback,
        });
        let loaded = load::load(&shared, space.as_ref(), &View::default())?;
        let number = loaded.meta.account;
        let writer = Writer::new(shared.clone(), space, loaded);
        let view = writer.view.clone();
        let mailbox = Mailbox::start(writer)?;
        let account = Arc::new_cyclic(|this| Account {
            this: this.clone(),
            number,
            shared,
            view,
            mailbox,
            sweeper: Mutex::new(None),
            splits: OnceLock::new(),
            faults: Faults::default(),
        });
        Ok(account)
    }

    /// The fault rules, which may be changed at any time.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Registers what an api knows about its queries; the last one of a name counts.
    pub fn set_query_host(&self, name: &'static str, host: Arc<dyn QueryHost>) {
        self.shared.hosts.set_query(name, host);
    }

    /// Registers what reads the rules of an api; before the first partition is opened.
    pub fn set_rule_host(&self, name: &'static str, host: Arc<dyn RuleHost>) {
        self.shared.hosts.set_rules(name, host);
    }

    /// Registers what runs the scripts of partitions that are here; the last one counts.
    pub fn set_script_host(&self, host: Arc<dyn ScriptHost>) {
        self.shared.hosts.set_script(host);
    }

    /// Pages of queries that went through the loopback, if there is one.
    pub(crate) fn pages_sent(&self) -> Option<PagesSent> {
        self.shared.loopback.as_ref().map(|loopback| loopback.pages())
    }

    /// Ends the background work and closes the store. Changes that were already accepted are finished first.
    pub fn close(&self) -> Result<()> {
        let sweeper = self.sweeper.lock().take();
        if let Some(sweeper) = sweeper {
            sweeper.stop();
        }
        self.splits().stop();
        self.mailbox.stop();
        Ok(self.shared.store.close()?)
    }

    /// A number that tells this account from others.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Memory that columns of all partitions take.
    pub fn column_bytes(&self) -> u64 {
        self.shared.columns.size_bytes()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub fn env(&self) -> &Arc<dyn Env> {
        &self.shared.env
    }

    pub fn config(&self) -> &EngineConfig {
        &self.shared.config
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// Every partition that has been opened so far.
    pub(crate) fn open_partitions(&self) -> Vec<Arc<Partition>> {
        let mut partitions = Vec::new();
        for database in self.view.load().databases_by_number.values() {
            for container in database.containers.load().by_number.values() {
                partitions.extend(container.open_partitions());
            }
        }
        partitions
    }

    /// Opens partitions again that have lost their store, as far as it is back.
    pub(crate) fn reopen_lost(&self) {
        for database in self.view.load().databases_by_number.values() {
            for container in database.containers.load().by_number.values() {
                container.reopen_lost();
            }
        }
    }

    /// The number of the catalog's last change.
    pub fn catalog_lsn(&self) -> u64 {
        self.view.load().lsn
    }

    pub(crate) fn splits(&self) -> &Splits {
        self.splits.get_or_init(|| Splits::start(&self.this))
    }

    pub(crate) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox.send(Box::new(move |writer| {
            // A caller that has gone away changes nothing: the catalog's change is made or not by itself.
            drop(reply.send(writer.ready().and_then(|()| change(writer))));
        }))?;
        answer.await.unwrap_or_else(|_| Err(Error::new(Kind::WritesStopped, "The server is shutting down.")))
    }

    /// Tells the catalog's writer something that it has to know even while it cannot write.
    pub(crate) fn tell(&self, message: impl FnOnce(&mut Writer) + Send + 'static) -> Result<()> {
        self.mailbox.send(Box::new(message))
    }
}

/// Databases.
impl Account {
    pub async fn create_database(&self, name: &str, throughput: Option<Throughput>) -> Result<Arc<Database>> {
        let name = name.to_owned();
        self.change(move |writer| writer.create_database(name, throughput)).await
    }

    /// Makes a database that begins with everything that another holds at this moment. It lives as long as the server:
    /// see `catalog::forks`.
    pub async fn fork_database(&self, origin: Ref<'_>, name: &str, replace: bool) -> Result<Arc<Database>> {
        let (origin, name) = (self.database(origin)?.number, name.to_owned());
        self.change(move |writer| writer.fork_database(origin, name, replace)).await
    }

    /// In creation order.
    pub fn databases(&self) -> Vec<Arc<Database>> {
        self.view.load().databases_by_number.values().cloned().collect()
    }

    pub fn database(&self, by: Ref<'_>) -> Result<Arc<Database>> {
        self.view.load().database(by).cloned().ok_or_else(Error::not_found)
    }

    /// Deletes a database with everything in it.
    pub async fn delete_database(&self, by: Ref<'_>, if_match: Option<&str>) -> Result<()> {
        let number = self.database(by)?.number;
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.delete_database(number, if_match.as_deref())).await
    }
}

/// Containers.
impl Account {
    /// `throughput: None` means the database's, when it has some, else the lowest manual one.
    pub async fn create_container(
        &self,
        database: &Arc<Database>,
        definition: ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        let database = database.number;
        self.change(move |writer| writer.create_container(database, definition, throughput)).await
    }

    /// Changes what may be changed about a container; the handle stays the same.
    pub async fn replace_container(
        &self,
        container: &Arc<Container>,
        definition: ContainerDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<Container>> {
        let container = container.clone();
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.replace_container(&container, definition, if_match.as_deref())).await
    }

    pub async fn delete_container(&self, container: &Arc<Container>, if_match: Option<&str>) -> Result<()> {
        let container = container.clone();
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.delete_container(&container, if_match.as_deref())).await
    }
}

/// Client encryption keys.
impl Account {
    pub async fn create_encryption_key(
        &self,
        database: u32,
        definition: EncryptionKeyDefinition,
    ) -> Result<Arc<EncryptionKey>> {
        self.change(move |writer| writer.create_encryption_key(database, definition)).await
    }

    pub async fn replace_encryption_key(
        &self,
        database: u32,
        key: u32,
        definition: EncryptionKeyDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<EncryptionKey>> {
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| {
            writer.replace_encryption_key(database, key, definition, if_match.as_deref())
        })
        .await
    }
}

/// Users and their permissions. Both are named by number: a handle may be older than the change it asks for.
impl Account {
    pub async fn create_user(&self, database: u32, name: &str) -> Result<Arc<User>> {
        let name = name.to_owned();
        self.change(move |writer| writer.create_user(database, name)).await
    }

    /// The user and whether it is new.
    pub async fn upsert_user(
        &self,
        database: u32,
        name: &str,
        if_match: Option<&str>,
    ) -> Result<(Arc<User>, bool)> {
        let (name, if_match) = (name.to_owned(), if_match.map(str::to_owned));
        self.change(move |writer| writer.upsert_user(database, name, if_match.as_deref())).await
    }

    pub async fn replace_user(
        &self,
        database: u32,
        user: u32,
        name: &str,
        if_match: Option<&str>,
    ) -> Result<Arc<User>> {
        let (name, if_match) = (name.to_owned(), if_match.map(str::to_owned));
        self.change(move |writer| writer.replace_user(database, user, name, if_match.as_deref())).await
    }

    /// Deletes a user with its permissions.
    pub async fn delete_user(&self, database: u32, user: u32, if_match: Option<&str>) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.delete_user(database, user, if_match.as_deref())).await
    }

    pub async fn create_permission(
        &self,
        database: u32,
        user: u32,
        definition: PermissionDefinition,
    ) -> Result<Arc<Permission>> {
        self.change(move |writer| writer.create_permission(database, user, definition)).await
    }

    /// The permission and whether it is new.
    pub async fn upsert_permission(
        &self,
        database: u32,
        user: u32,
        definition: PermissionDefinition,
        if_match: Option<&str>,
    ) -> Result<(Arc<Permission>, bool)> {
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.upsert_permission(database, user, definition, if_match.as_deref()))
            .await
    }

    pub async fn replace_permission(
        &self,
        database: u32,
        user: u32,
        permission: u32,
        definition: PermissionDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<Permission>> {
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| {
            writer.replace_permission(database, user, permission, definition, if_match.as_deref())
        })
        .await
    }

    pub async fn delete_permission(
        &self,
        database: u32,
        user: u32,
        permission: u32,
        if_match: Option<&str>,
    ) -> Result<()> {
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.delete_permission(database, user, permission, if_match.as_deref()))
            .await
    }
}

/// Scripts.
impl Account {
    pub async fn create_script(
        &self,
        container: &Arc<Container>,
        definition: ScriptDefinition,
    ) -> Result<Arc<Script>> {
        let container = container.clone();
        self.change(move |writer| writer.create_script(&container, definition)).await
    }

    /// Changes the script with this number; its kind stays.
    pub async fn replace_script(
        &self,
        container: &Arc<Container>,
        number: u64,
        definition: ScriptDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<Script>> {
        let container = container.clone();
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.replace_script(&container, number, definition, if_match.as_deref()))
            .await
    }

    pub async fn delete_script(
        &self,
        container: &Arc<Container>,
        kind: ScriptKind,
        number: u64,
        if_match: Option<&str>,
    ) -> Result<()> {
        let container = container.clone();
        let if_match = if_match.map(str::to_owned);
        self.change(move |writer| writer.delete_script(&container, kind, number, if_match.as_deref())).await
    }
}

/// Offers.
impl Account {
    /// In creation order.
    pub fn offers(&self) -> Vec<Arc<Offer>> {
        self.view.load().offers.values().cloned().collect()
    }

    pub fn offer(&self, number: u32) -> Result<Arc<Offer>> {
        self.view.load().offers.get(&number).cloned().ok_or_else(Error::not_found)
    }

    /// The owner's own offer; a container that shares its database's throughput has none.
    pub fn offer_of(&self, owner: OfferOwner) -> Option<Arc<Offer>> {
        let view = self.view.load();
        view.offers.get(view.offers_by_owner.get(&owner)?).cloned()
    }

    pub async fn replace_offer(
        &self,
        number: u32,
        change: impl Into<OfferChange>,
        if_match: Option<&str>,
    ) -> Result<Arc<Offer>> {
        let (change, if_match) = (change.into(), if_match.map(str::to_owned));
        self.change(move |writer| writer.replace_offer(number, change, if_match.as_deref())).await
    }
}
