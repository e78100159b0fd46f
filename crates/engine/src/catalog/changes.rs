//! The changes of the catalog: each checks, prepares its rows, commits them, and then shows the result.
//!
//! Everything is checked against the writer's own state, which nobody else changes; what the caller saw when it
//! asked may be old by now.

use std::collections::BTreeSet;
use std::sync::Arc;

use orrery_model::PartitionKeyDefinition;

use crate::account::{Database, Ref};
use crate::catalog::load::{map_of_rows, offer_of_row};
use crate::catalog::rows::{ContainerRow, DatabaseRow, OfferRow, RangeRow, RangeStatus, RowKey, drop_value};
use crate::catalog::users::prepare_user_delete;
use crate::catalog::view::Containers;
use crate::catalog::writer::{CatalogChange, Writer};
use crate::catalog::{
    CONTAINER_NUMBER_MAX, CONTAINERS_MAX, DATABASES_MAX, OFFER_NUMBER_MAX, PARTITIONS_MAX,
    SHARED_CONTAINERS_MAX,
};
use crate::container::{Container, Version};
use crate::definition::{ContainerDefinition, names};
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::offer::{MANUAL_MIN, Offer, OfferChange, OfferOwner, Throughput};
use crate::throughput::{BUCKET_UNLIMITED, BUCKETS_MAX, Supply};

/// The service's words for throughput on an account that has none to give.
const SERVERLESS_CONTAINER: &str =
    "Setting offer throughput or autopilot on container is not supported for serverless accounts.";
const SERVERLESS_DATABASE: &str =
    "Setting offer throughput or autopilot on database is not supported for serverless accounts.";

/// Databases.
impl Writer {
    pub(crate) fn create_database(
        &mut self,
        name: String,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Database>> {
        names::check(&name)?;
        if let Some(throughput) = throughput {
            if self.shared.config.serverless {
                return Err(Error::bad_request(SERVERLESS_DATABASE));
            }
            throughput.check_new()?;
        }
        let view = self.view.load();
        if view.databases_by_name.contains_key(&name) {
            return Err(Error::already_exists());
        }
        if view.databases_by_number.len() >= DATABASES_MAX {
            let message = format!("The account has reached its limit of {DATABASES_MAX} databases.");
            return Err(Error::new(Kind::Forbidden, message));
        }
        let mut change = self.prepare();
        let number = next(&mut change.meta.next_database, u32::MAX, "database")?;
        let (lsn, ts) = (change.meta.lsn, change.ts);
        let row = DatabaseRow { lsn, ts, next_container: 1, name };
        change.put(RowKey::Database(number), row.encode());
        let offer = match throughput {
            Some(throughput) => Some(prepare_offer(&mut change, OfferOwner::Database(number), throughput)?),
            None => None,
        };
        self.commit(change)?;
        let database = Arc::new(Database::new(number, row.name.clone(), Etag::new(lsn, ts), ts));
        if let Some(offer) = &offer {
            database.pool.set(offer.throughput.ceiling(), offer.buckets, &self.shared.config);
        }
        self.databases.insert(number, row);
        self.publish(|view| {
            view.insert_database(database.clone());
            offer.into_iter().for_each(|offer| view.insert_offer(offer));
        });
        Ok(database)
    }

    pub(crate) fn delete_database(&mut self, number: u32, if_match: Option<&str>) -> Result<()> {
        let database = self.database(number)?;
        check_match(database.etag, if_match)?;
        let mut change = self.prepare();
        self.prepare_database_delete(&mut change, &database);
        let durability = self.durability_in(&database);
        self.commit_as(change, durability)?;
        self.publish(|view| view.forget_databases(&BTreeSet::from([number])));
        self.end_database(&database);
        Ok(())
    }

    pub(super) fn prepare_database_delete(&self, change: &mut CatalogChange, database: &Database) {
        let number = database.number;
        change.delete(RowKey::Database(number));
        self.prepare_offer_delete(change, OfferOwner::Database(number));
        for container in &database.containers() {
            self.prepare_container_delete(change, container);
        }
        for user in database.users.load().after(0) {
            prepare_user_delete(change, number, user);
        }
        for key in database.encryption_keys.load().iter() {
            change.delete(RowKey::EncryptionKey(number, key.number));
        }
        if database.forked_from().is_some() {
            change.delete(RowKey::Fork(number));
        }
    }

    /// After the delete is committed and shown.
    pub(super) fn end_database(&mut self, database: &Database) {
        let containers = database.containers();
        self.databases.remove(&database.number);
        database.containers.store(Arc::new(Containers::default()));
        database.users.store(Arc::default());
        database.encryption_keys.store(Arc::default());
        containers.iter().for_each(|container| self.end(container));
    }

    /// The present database, which the caller's handle may no longer be.
    pub(crate) fn database(&self, number: u32) -> Result<Arc<Database>> {
        self.view.load().database(Ref::Number(number)).cloned().ok_or_else(Error::not_found)
    }
}

/// Containers.
impl Writer {
    pub(crate) fn create_container(
        &mut self,
        database: u32,
        definition: ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        let database = self.database(database).map_err(|_| Error::owner_not_found())?;
        let containers = database.containers.load_full();
        if containers.by_name.contains_key(&definition.id) {
            return Err(Error::already_exists());
        }
        if containers.by_number.len() >= CONTAINERS_MAX {
            let message = format!("The database has reached its limit of {CONTAINERS_MAX} containers.");
            return Err(Error::new(Kind::Forbidden, message));
        }
        let grant = self.grant(&database, &definition, throughput)?;
        let partitions = self.partition_count(&definition.partition_key, grant.throughput())?;

        let mut change = self.prepare();
        let (lsn, ts) = (change.meta.lsn, change.ts);
        let mut database_row =
            self.databases.get(&database.number).cloned().ok_or_else(Error::owner_not_found)?;
        let number = next(&mut database_row.next_container, CONTAINER_NUMBER_MAX, "container")?;
        change.put(RowKey::Database(database.number), database_row.encode());
        let row = ContainerRow { lsn, ts, next_range: partitions, definition: definition.json.to_string() };
        change.put(RowKey::Container(database.number, number), row.encode());
        let mut ranges = Vec::with_capacity(partitions as usize);
        let boundaries = definition.partition_key.boundaries(partitions);
        for (id, bounds) in boundaries.windows(2).enumerate() {
            let id = id as u32;
            let range = RangeRow {
                lsn,
                ts,
                start_lsn: 0,
                space: change.new_space()?,
                status: RangeStatus::Online,
                owner: 0,
                epoch: 0,
                min: bounds[0].clone(),
                max: bounds[1].clone(),
                parents: Vec::new(),
            };
            change.put(RowKey::Range(database.number, number, id), range.encode());
            ranges.push((id, range));
        }
        let spaces: Vec<u32> = ranges.iter().map(|(_, range)| range.space).collect();
        self.make_fork_spaces(&database, &spaces)?;
        let offer = match grant {
            Grant::Own(throughput) => {
                Some(prepare_offer(&mut change, OfferOwner::Container(database.number, number), throughput)?)
            }
            Grant::Shared(_) | Grant::Serverless => None,
        };
        if let Err(error) = self.commit(change) {
            self.forget_fork_spaces(&database, &spaces);
            return Err(error);
        }

        self.databases.insert(database.number, database_row);
        let version = Version::new(definition, lsn, ts);
        let map = map_of_rows(&ranges, row.next_range);
        let identity = database.identity.clone();
        let config = self.shared.config.clone();
        let supply = match grant {
            Grant::Own(_) | Grant::Serverless => {
                let fixed = version.definition.partition_key.system_key;
                Supply::own(config, grant.throughput().ceiling(), fixed)
            }
            Grant::Shared(_) => Supply::shared(config, database.pool.clone()),
        };
        let container = Arc::new(Container::new(number, identity, version, map, self.shared.clone(), supply));
        self.publish(|view| offer.into_iter().for_each(|offer| view.insert_offer(offer)));
        let mut containers = Containers::clone(&containers);
        containers.insert(container.clone());
        database.containers.store(Arc::new(containers));
        Ok(container)
    }

    pub(crate) fn replace_container(
        &mut self,
        container: &Arc<Container>,
        definition: ContainerDefinition,
        if_match: Option<&str>,
    ) -> Result<Arc<Container>> {
        self.check_present(container)?;
        let old = container.core().version();
        check_match(old.etag, if_match)?;
        let definition = old.definition.replaced_by(definition)?;
        let mut change = self.prepare();
        let (lsn, ts) = (change.meta.lsn, change.ts);
        let next_range = container.map().history.next_range;
        let row = ContainerRow { lsn, ts, next_range, definition: definition.json.to_string() };
        change.put(RowKey::Container(container.database().number, container.number()), row.encode());
        self.commit(change)?;
        container.set_version(Version::new(definition, lsn, ts));
        self.publish(|_| ());
        Ok(container.clone())
    }

    pub(crate) fn delete_container(
        &mut self,
        container: &Arc<Container>,
        if_match: Option<&str>,
    ) -> Result<()> {
        let database = self.check_present(container)?;
        check_match(container.etag(), if_match)?;
        let mut change = self.prepare();
        self.prepare_container_delete(&mut change, container);
        self.commit(change)?;
        let mut containers = Containers::clone(&database.containers.load());
        containers.remove(container);
        database.containers.store(Arc::new(containers));
        self.publish(|view| view.remove_offer_of(owner_of(container)));
        self.end(container);
        Ok(())
    }

    fn prepare_container_delete(&self, change: &mut CatalogChange, container: &Container) {
        let (database, number) = (container.database().number, container.number());
        change.delete(RowKey::Container(database, number));
        for (range, space) in &container.map().history.rows {
            change.delete(RowKey::Range(database, number, *range));
            // A space that is already gone is dropped once more, which does no harm.
            change.put(RowKey::Drop(space.0), drop_value());
        }
        for script in container.core().scripts().numbers() {
            change.delete(RowKey::script(database, number, script));
        }
        self.prepare_offer_delete(change, owner_of(container));
    }

    /// After the delete is durable: refuses what is still on its way to the container and frees its spaces.
    fn end(&mut self, container: &Container) {
        container.mark_deleted();
        self.queue_drops(container.map().history.rows.iter().map(|(_, space)| space.0));
    }

    /// Fails when the container was deleted, also when a new one has its name.
    pub(crate) fn check_present(&self, container: &Container) -> Result<Arc<Database>> {
        let database = self.database(container.database().number)?;
        match database.containers.load().by_number.contains_key(&container.number()) {
            true => Ok(database),
            false => Err(Error::not_found()),
        }
    }

    /// Which throughput a new container gets, and whether it is its own.
    fn grant(
        &self,
        database: &Database,
        definition: &ContainerDefinition,
        throughput: Option<Throughput>,
    ) -> Result<Grant> {
        if self.shared.config.serverless {
            return match throughput {
                None => Ok(Grant::Serverless),
                Some(_) => Err(Error::bad_request(SERVERLESS_CONTAINER)),
            };
        }
        let view = self.view.load();
        let shared = view.offer_of(OfferOwner::Database(database.number));
        match (throughput, shared) {
            (Some(throughput), _) => {
                match definition.partition_key.system_key {
                    true => throughput.check_new_fixed()?,
                    false => throughput.check_new()?,
                }
                Ok(Grant::Own(throughput))
            }
            (None, Some(_)) if definition.partition_key.system_key => {
                Err(Error::bad_request("Shared throughput collection should have a partition key"))
            }
            (None, Some(offer)) => {
                let containers = database.containers.load();
                let sharing = containers.by_number.values().filter(|c| view.offer_of(owner_of(c)).is_none());
                if sharing.count() >= SHARED_CONTAINERS_MAX {
                    return Err(Error::bad_request(format!(
                        "The database already has {SHARED_CONTAINERS_MAX} collections that share its throughput. \
                         Create this collection with its own throughput."
                    )));
                }
                Ok(Grant::Shared(offer.throughput))
            }
            (None, None) => Ok(Grant::Own(Throughput::Manual(MANUAL_MIN))),
        }
    }

    /// `ceil(T / t)`, and one for a container that has no key to divide by.
    fn partition_count(&self, key: &PartitionKeyDefinition, throughput: Throughput) -> Result<u32> {
        if key.system_key {
            return Ok(1);
        }
        let count =
            throughput.ceiling().div_ceil(self.shared.config.partition_throughput_limit.max(1)).max(1);
        if count > PARTITIONS_MAX {
            return Err(Error::bad_request(format!(
                "{count} physical partitions would be needed; a container can be created with at most {PARTITIONS_MAX}."
            )));
        }
        Ok(count)
    }
}

/// Offers.
impl Writer {
    pub(crate) fn replace_offer(
        &mut self,
        number: u32,
        wanted: OfferChange,
        if_match: Option<&str>,
    ) -> Result<Arc<Offer>> {
        let throughput = wanted.throughput;
        let view = self.view.load_full();
        let old = view.offers.get(&number).ok_or_else(Error::not_found)?;
        check_match(old.etag, if_match)?;
        let (fixed, size_bytes, containers) = self.owner_facts(old.owner);
        let storage_max_ever_kb = old.storage_max_ever_kb.max(size_bytes / 1024);
        throughput.check_replace(old.throughput_max_ever, storage_max_ever_kb, fixed, containers)?;
        let mut change = self.prepare();
        let row = OfferRow {
            lsn: change.meta.lsn,
            ts: change.ts,
            owner: old.owner,
            throughput,
            throughput_max_ever: old.throughput_max_ever.max(throughput.ceiling()),
            storage_max_ever_kb,
            buckets: wanted.buckets.unwrap_or(old.buckets),
        };
        change.put(RowKey::Offer(number), row.encode());
        self.commit(change)?;
        let offer = Arc::new(offer_of_row(number, &row));
        self.publish(|view| view.insert_offer(offer.clone()));
        self.put_into_force(&offer);
        Ok(offer)
    }

    /// Divides the throughput of an offer anew.
    pub(super) fn put_into_force(&self, offer: &Offer) {
        let (OfferOwner::Database(number) | OfferOwner::Container(number, _)) = offer.owner;
        let Ok(database) = self.database(number) else { return };
        let total_ru = offer.throughput.ceiling();
        match offer.owner {
            OfferOwner::Database(_) => database.pool.set(total_ru, offer.buckets, &self.shared.config),
            OfferOwner::Container(_, number) => {
                if let Ok(container) = database.container(Ref::Number(number)) {
                    container.throughput_changed(total_ru, offer.buckets);
                }
            }
        }
    }

    /// Whether the owner is a container without a key, the bytes it holds, and how many containers share its
    /// throughput.
    fn owner_facts(&self, owner: OfferOwner) -> (bool, u64, usize) {
        let (OfferOwner::Database(number) | OfferOwner::Container(number, _)) = owner;
        let Ok(database) = self.database(number) else { return (false, 0, 0) };
        match owner {
            OfferOwner::Database(_) => {
                let mut sharing = database.containers();
                sharing.retain(|container| container.core().supply().is_shared());
                (false, sharing.iter().map(|container| container.usage().size_bytes).sum(), sharing.len())
            }
            OfferOwner::Container(_, number) => match database.container(Ref::Number(number)) {
                Ok(container) => {
                    (container.definition().partition_key.system_key, container.usage().size_bytes, 0)
                }
                Err(_) => (false, 0, 0),
            },
        }
    }

    fn prepare_offer_delete(&self, change: &mut CatalogChange, owner: OfferOwner) {
        if let Some(offer) = self.view.load().offer_of(owner) {
            change.delete(RowKey::Offer(offer.number));
        }
    }
}

/// The throughput behind a new container.
enum Grant {
    Own(Throughput),
    Shared(Throughput),
    /// The account has no offers.
    Serverless,
}

impl Grant {
    fn throughput(&self) -> Throughput {
        match self {
            Grant::Own(throughput) | Grant::Shared(throughput) => *throughput,
            Grant::Serverless => Throughput::Manual(MANUAL_MIN),
        }
    }
}

impl CatalogChange {
    pub(crate) fn new_space(&mut self) -> Result<u32> {
        next(&mut self.meta.next_space, u32::MAX, "space")
    }
}

fn prepare_offer(
    change: &mut CatalogChange,
    owner: OfferOwner,
    throughput: Throughput,
) -> Result<Arc<Offer>> {
    let number = next(&mut change.meta.next_offer, OFFER_NUMBER_MAX, "offer")?;
    let row = OfferRow {
        lsn: change.meta.lsn,
        ts: change.ts,
        owner,
        throughput,
        throughput_max_ever: throughput.ceiling(),
        storage_max_ever_kb: 0,
        buckets: [BUCKET_UNLIMITED; BUCKETS_MAX],
    };
    change.put(RowKey::Offer(number), row.encode());
    Ok(Arc::new(offer_of_row(number, &row)))
}

pub(super) fn owner_of(container: &Container) -> OfferOwner {
    OfferOwner::Container(container.database().number, container.number())
}

pub(crate) fn check_match(etag: Etag, if_match: Option<&str>) -> Result<()> {
    match if_match {
        Some(header) if !etag.matches(header) => Err(Error::precondition_failed()),
        _ => Ok(()),
    }
}

/// Takes the next number; the last one of all is never given, so that a counter cannot wrap.
pub(crate) fn next(counter: &mut u32, max: u32, what: &str) -> Result<u32> {
    let number = *counter;
    if number >= max {
        return Err(Error::new(Kind::Forbidden, format!("This account has used up its {what} numbers.")));
    }
    *counter = number + 1;
    Ok(number)
}
