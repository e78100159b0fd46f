//! Forks: databases that begin with everything another holds at one moment, and end with the process.
//!
//! ```text
//! catalog    database, containers, ranges, scripts, throughput, keys: rows of their own, in one commit
//! store      a space for each range, which shares its rows with the range of the origin (`Store::fork_spaces`)
//! ```
//!
//! Nothing else of the catalog happens meanwhile, because this is its thread, and the spaces are all of one moment; so
//! a fork fits together whatever is being written, split or scaled. Partitions are opened from their space as after a
//! start. Numbers of containers, ranges and items stay, the number of the database is a new one: rids and etags of a
//! fork are not those of its origin. Users and permissions stay behind: their tokens are for the origin.
//!
//! The rows of a fork are in memory, those of the catalog in its space like all others. So a fork needs no wait for
//! the disk, and the next start finds databases that are marked as forks: it leaves them out and removes their rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use orrery_storage::{Direction, Durability, Fork, KeyRange, SpaceId, StoreError, Table};

use crate::account::Database;
use crate::catalog::changes::{next, owner_of};
use crate::catalog::encryption_keys::{EncryptionKeyRow, key_of_row};
use crate::catalog::load::{map_of_rows, offer_of_row, supply_of};
use crate::catalog::rows::{
    ContainerRow, DatabaseRow, OfferRow, RangeRow, RangeStatus, RowKey, ScriptRow, damaged, drop_value,
};
use crate::catalog::view::{Containers, View};
use crate::catalog::writer::{CatalogChange, Writer};
use crate::catalog::{DATABASES_MAX, OFFER_NUMBER_MAX};
use crate::container::{Container, Version};
use crate::definition::{ContainerDefinition, names};
use crate::encryption_key::EncryptionKeys;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::offer::{Offer, OfferOwner};
use crate::script::{Script, Scripts};

/// A container of a fork in the making.
struct Copied {
    number: u32,
    row: ContainerRow,
    definition: ContainerDefinition,
    ranges: Vec<(u32, RangeRow)>,
    scripts: Scripts,
}

impl Writer {
    pub(crate) fn fork_database(
        &mut self,
        origin: u32,
        name: String,
        replace: bool,
    ) -> Result<Arc<Database>> {
        names::check(&name)?;
        let origin = self.database(origin)?;
        let view = self.view.load_full();
        let replaced = view.databases_by_name.get(&name).cloned();
        if let Some(present) = &replaced {
            if !replace {
                return Err(Error::already_exists());
            }
            if present.forked_from().is_none() || present.number == origin.number {
                let message =
                    "Only another fork is replaced: the database of this name is none, or the origin.";
                return Err(Error::new(Kind::AlreadyExists, message));
            }
        }
        if view.databases_by_number.len() >= DATABASES_MAX + usize::from(replaced.is_some()) {
            let message = format!("The account has reached its limit of {DATABASES_MAX} databases.");
            return Err(Error::new(Kind::Forbidden, message));
        }

        let mut change = self.prepare();
        let number = next(&mut change.meta.next_database, u32::MAX, "database")?;
        let (lsn, ts) = (change.meta.lsn, change.ts);
        let next_container = self.databases.get(&origin.number).map_or(1, |row| row.next_container);
        let row = DatabaseRow { lsn, ts, next_container, name };
        change.put(RowKey::Database(number), row.encode());
        change.put(RowKey::Fork(number), drop_value());
        let mut offers = Vec::new();
        if let Some(offer) = view.offer_of(OfferOwner::Database(origin.number)) {
            offers.push(copy_offer(&mut change, offer, OfferOwner::Database(number))?);
        }
        let mut forks = Vec::new();
        let mut copied = Vec::new();
        for container in origin.containers() {
            if let Some(offer) = view.offer_of(owner_of(&container)) {
                let owner = OfferOwner::Container(number, container.number());
                offers.push(copy_offer(&mut change, offer, owner)?);
            }
            copied.push(copy_container(&mut change, number, &container, &mut forks)?);
        }
        let mut keys = EncryptionKeys::default();
        for key in origin.encryption_keys.load().iter() {
            let row = EncryptionKeyRow { lsn, ts, definition: key.definition.clone() };
            change.put(RowKey::EncryptionKey(number, key.number), row.encode());
            keys.insert(Arc::new(key_of_row(key.number, row)));
        }
        if let Some(replaced) = &replaced {
            self.prepare_database_delete(&mut change, replaced);
        }

        self.shared.store.fork_spaces(&forks).map_err(not_forked)?;
        // Nothing of it is there after a crash, so there is nothing to wait for.
        if let Err(error) = self.commit_as(change, Durability::Relaxed) {
            forks.iter().for_each(|fork| self.forget_space(fork.space));
            return Err(error);
        }

        let database = Database::new(number, row.name.clone(), Etag::new(lsn, ts), ts);
        let database = Arc::new(database.into_fork_of(origin.name.clone()));
        let mut view = view.as_ref().clone();
        if let Some(replaced) = &replaced {
            view.forget_databases(&BTreeSet::from([replaced.number]));
        }
        for offer in offers {
            if offer.owner == OfferOwner::Database(number) {
                database.pool.set(offer.throughput.ceiling(), offer.buckets, &self.shared.config);
            }
            view.insert_offer(Arc::new(offer));
        }
        let mut containers = Containers::default();
        for Copied { number, row, definition, ranges, scripts } in copied {
            let version = Version::new(definition, lsn, ts);
            let map = map_of_rows(&ranges, row.next_range);
            let supply = supply_of(&self.shared, &view, &database, number, &version.definition);
            let identity = database.identity.clone();
            let container = Container::new(number, identity, version, map, self.shared.clone(), supply);
            container.core().set_scripts(scripts);
            containers.insert(Arc::new(container));
        }
        database.containers.store(Arc::new(containers));
        database.encryption_keys.store(Arc::new(keys));
        view.insert_database(database.clone());
        self.databases.insert(number, row);
        self.publish(|shown| *shown = View { lsn: shown.lsn, ..view });
        if let Some(replaced) = &replaced {
            self.end_database(replaced);
        }
        Ok(database)
    }

    /// How changes of a database are committed: what ends with the process need not be on the disk.
    pub(super) fn durability_in(&self, database: &Database) -> Durability {
        match database.forked_from() {
            Some(_) => Durability::Relaxed,
            None => self.shared.config.durability,
        }
    }

    /// Makes new spaces of a database that is a fork, where its others are. For another database, nothing: its spaces
    /// are made when they are first opened.
    pub(super) fn make_fork_spaces(&self, database: &Database, spaces: &[u32]) -> Result<()> {
        if database.forked_from().is_none() {
            return Ok(());
        }
        let empty = |space: &u32| Fork { origin: None, space: SpaceId(*space) };
        let forks: Vec<Fork> = spaces.iter().map(empty).collect();
        self.shared.store.fork_spaces(&forks).map_err(not_forked)
    }

    /// Takes that back.
    pub(super) fn forget_fork_spaces(&self, database: &Database, spaces: &[u32]) {
        if database.forked_from().is_some() {
            spaces.iter().for_each(|space| self.forget_space(SpaceId(*space)));
        }
    }

    fn forget_space(&self, space: SpaceId) {
        if let Err(error) = self.shared.store.drop_space(space) {
            tracing::warn!(space = space.0, %error, "a fork that was not made keeps its memory");
        }
    }

    /// Removes the rows of forks that an earlier process had.
    pub(crate) fn remove_stale_forks(&mut self) {
        let stale = std::mem::take(&mut self.stale_forks);
        if stale.is_empty() || self.is_lost() {
            return;
        }
        match self.remove_forks(&stale) {
            Ok(()) => tracing::info!(forks = stale.len(), "forks of an earlier run were removed"),
            // They are left out again at the next start.
            Err(error) => tracing::warn!(%error, "forks of an earlier run could not be removed"),
        }
    }

    fn remove_forks(&mut self, stale: &BTreeSet<u32>) -> Result<()> {
        let mut change = self.prepare();
        let mut spaces = Vec::new();
        let mut rows = self.space.snapshot()?.scan(Table::Feed, KeyRange::all(), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let key = RowKey::decode(&row.key).ok_or_else(|| damaged("a row has an unknown key"))?;
            let database = match key {
                RowKey::Meta | RowKey::Drop(_) => continue,
                RowKey::Offer(_) => OfferRow::decode(&row.value)?.owner.database(),
                RowKey::Database(database)
                | RowKey::Container(database, _)
                | RowKey::Range(database, ..)
                | RowKey::Fork(database)
                | RowKey::User(database, _)
                | RowKey::Permission(database, ..)
                | RowKey::EncryptionKey(database, _)
                | RowKey::Script(database, ..) => database,
            };
            if !stale.contains(&database) {
                continue;
            }
            if let RowKey::Range(..) = key {
                spaces.push(RangeRow::decode(&row.value)?.space);
            }
            change.delete(key);
        }
        // Theirs were in memory, but who knows what a later version will put there.
        spaces.iter().for_each(|space| change.put(RowKey::Drop(*space), drop_value()));
        self.commit(change)?;
        self.queue_drops(spaces);
        Ok(())
    }
}

fn copy_container(
    change: &mut CatalogChange,
    database: u32,
    origin: &Container,
    forks: &mut Vec<Fork>,
) -> Result<Copied> {
    let (lsn, ts, number) = (change.meta.lsn, change.ts, origin.number());
    let definition = origin.definition();
    let map = origin.map();
    let text = definition.json.to_string();
    let row = ContainerRow { lsn, ts, next_range: map.history.next_range, definition: text };
    change.put(RowKey::Container(database, number), row.encode());
    let mut ranges = Vec::new();
    for slot in map.slots() {
        slot.check()?;
        let space = change.new_space()?;
        forks.push(Fork { origin: Some(slot.space), space: SpaceId(space) });
        let range = RangeRow {
            lsn,
            ts,
            start_lsn: slot.start_lsn(),
            space,
            status: RangeStatus::Online,
            owner: 0,
            epoch: 0,
            min: slot.min().clone(),
            max: slot.max().clone(),
            parents: slot.parents().to_vec(),
        };
        change.put(RowKey::Range(database, number, slot.id()), range.encode());
        ranges.push((slot.id(), range));
    }
    let mut scripts = Scripts::default();
    for script in origin.core().scripts().all() {
        let (number_of_script, definition) = (script.number, script.definition.clone());
        let row = ScriptRow { lsn, ts, definition: definition.clone() };
        change.put(RowKey::script(database, number, number_of_script), row.encode());
        let etag = Etag::new(lsn, ts);
        scripts.insert(Arc::new(Script { number: number_of_script, definition, etag, ts }));
    }
    let definition = definition.as_ref().clone();
    Ok(Copied { number, row, definition, ranges, scripts })
}

fn copy_offer(change: &mut CatalogChange, origin: &Offer, owner: OfferOwner) -> Result<Offer> {
    let number = next(&mut change.meta.next_offer, OFFER_NUMBER_MAX, "offer")?;
    let row = OfferRow {
        lsn: change.meta.lsn,
        ts: change.ts,
        owner,
        throughput: origin.throughput,
        throughput_max_ever: origin.throughput_max_ever,
        storage_max_ever_kb: origin.storage_max_ever_kb,
        buckets: origin.buckets,
    };
    change.put(RowKey::Offer(number), row.encode());
    Ok(offer_of_row(number, &row))
}

fn not_forked(error: StoreError) -> Error {
    match &error {
        StoreError::Refused(_) => {
            let message = "Databases of this server cannot be forked: its store has no forks.";
            Error::bad_request(message).caused_by(error)
        }
        _ => error.into(),
    }
}
