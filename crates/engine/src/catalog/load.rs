//! Reading the catalog, at the start and whenever it has to be read again, and founding it in an empty store.
//!
//! Rows come back by kind and then by number, so each row finds what it belongs to already there; a row that does
//! not is damage and ends the reading with its name. Nothing but space 0 is touched: partitions open when needed.
//! Databases that are known already keep their handles, and nothing in them is changed before `follow` does so.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use orrery_storage::{Commit, Direction, Epoch, KeyRange, Space, SpaceId, Table};

use crate::access::{User, Users};
use crate::account::{Database, Ref, Shared};
use crate::catalog::encryption_keys::{EncryptionKeyRow, key_of_row};
use crate::catalog::rows::{
    ContainerRow, DatabaseRow, MetaRow, OfferRow, RangeRow, RangeStatus, RowKey, ScriptRow, damaged,
};
use crate::catalog::user_rows::{PermissionRow, UserRow};
use crate::catalog::users::{permission_of_row, user_of_row};
use crate::catalog::view::{Containers, View};
use crate::container::{Container, Version};
use crate::definition::ContainerDefinition;
use crate::encryption_key::EncryptionKeys;
use crate::error::{Error, Result};
use crate::etag::Etag;
use crate::offer::{MANUAL_MIN, Offer, OfferOwner};
use crate::ranges::{Ownership, RangeHistory, RangeInfo, RangeMap, Slot};
use crate::script::{Script, Scripts};
use crate::throughput::Supply;

/// The catalog as it was stored.
pub(crate) struct Loaded {
    pub(crate) meta: MetaRow,
    pub(crate) view: View,
    pub(crate) databases: HashMap<u32, DatabaseRow>,
    pub(crate) drops: BTreeSet<u32>,
    /// Databases that were forks of an earlier process. They are not in anything else of this.
    pub(crate) stale_forks: BTreeSet<u32>,
    /// What the databases hold, by their numbers.
    pub(crate) containers: HashMap<u32, Containers>,
    pub(crate) users: HashMap<u32, Users>,
    pub(crate) encryption_keys: HashMap<u32, EncryptionKeys>,
}

/// The rows of a container's ranges, by range id.
type RangeRows = Vec<(u32, RangeRow)>;

/// Reads all rows. `present` is what is known already: nothing at the start.
pub(crate) fn load(shared: &Arc<Shared>, space: &dyn Space, present: &View) -> Result<Loaded> {
    let mut meta = None;
    let mut view = View::default();
    let mut databases = HashMap::new();
    let mut containers: BTreeMap<(u32, u32), (ContainerRow, RangeRows)> = BTreeMap::new();
    let mut drops = BTreeSet::new();
    let mut stale_forks = BTreeSet::new();
    let mut users: BTreeMap<(u32, u32), User> = BTreeMap::new();
    let mut encryption_keys: HashMap<u32, EncryptionKeys> = HashMap::new();
    let mut scripts: HashMap<(u32, u32), Scripts> = HashMap::new();

    let mut rows = space.snapshot()?.scan(Table::Feed, KeyRange::all(), Direction::Forward);
    while let Some(row) = rows.next_row() {
        let row = row?;
        match RowKey::decode(&row.key).ok_or_else(|| damaged("a row has an unknown key"))? {
            RowKey::Meta => meta = Some(MetaRow::decode(&row.value)?),
            RowKey::Database(number) => {
                let row = DatabaseRow::decode(&row.value)?;
                // What a database is never changes, and a number is never given twice.
                let database = present.database(Ref::Number(number)).cloned().unwrap_or_else(|| {
                    let etag = Etag::new(row.lsn, row.ts);
                    Arc::new(Database::new(number, row.name.clone(), etag, row.ts))
                });
                view.insert_database(database);
                databases.insert(number, row);
            }
            RowKey::Container(database, number) => {
                containers.insert((database, number), (ContainerRow::decode(&row.value)?, RangeRows::new()));
            }
            RowKey::Range(database, container, id) => containers
                .get_mut(&(database, container))
                .ok_or_else(|| damaged(&format!("range {id} belongs to no container")))?
                .1
                .push((id, RangeRow::decode(&row.value)?)),
            RowKey::Offer(number) => {
                view.insert_offer(Arc::new(offer_of_row(number, &OfferRow::decode(&row.value)?)))
            }
            RowKey::Drop(space) => drop(drops.insert(space)),
            RowKey::Fork(database) => {
                if present.database(Ref::Number(database)).is_none() {
                    stale_forks.insert(database);
                }
            }
            RowKey::User(database, number) => {
                users.insert((database, number), user_of_row(number, UserRow::decode(&row.value)?));
            }
            RowKey::Permission(database, user, number) => users
                .get_mut(&(database, user))
                .ok_or_else(|| damaged(&format!("permission {number} belongs to no user")))?
                .insert(Arc::new(permission_of_row(number, PermissionRow::decode(&row.value)?))),
            RowKey::EncryptionKey(database, number) => {
                let key = key_of_row(number, EncryptionKeyRow::decode(&row.value)?);
                encryption_keys.entry(database).or_default().insert(Arc::new(key));
            }
            RowKey::Script(database, container, high, low) => {
                let ScriptRow { lsn, ts, definition } = ScriptRow::decode(&row.value)?;
                let number = u64::from(high) << 32 | u64::from(low);
                let script = Script { number, definition, etag: Etag::new(lsn, ts), ts };
                scripts.entry((database, container)).or_default().insert(Arc::new(script));
            }
        }
    }

    if !stale_forks.is_empty() {
        view.forget_databases(&stale_forks);
        databases.retain(|number, _| !stale_forks.contains(number));
        containers.retain(|(database, _), _| !stale_forks.contains(database));
        scripts.retain(|(database, _), _| !stale_forks.contains(database));
        users.retain(|(database, _), _| !stale_forks.contains(database));
        encryption_keys.retain(|database, _| !stale_forks.contains(database));
    }
    for offer in view.offers.values() {
        if let OfferOwner::Database(number) = offer.owner
            && let Some(database) = view.database(Ref::Number(number))
        {
            database.pool.set(offer.throughput.ceiling(), offer.buckets, &shared.config);
        }
    }
    let mut by_database: HashMap<u32, Containers> = HashMap::new();
    for ((database, number), (row, ranges)) in containers {
        let owner = view
            .database(Ref::Number(database))
            .ok_or_else(|| damaged(&format!("container {number} belongs to no database")))?;
        let definition = ContainerDefinition::parse_stored(&row.definition)
            .map_err(|error| damaged(&format!("the definition of container {number}: {error}")))?;
        let version = Version::new(definition, row.lsn, row.ts);
        let map = map_of_rows(&ranges, row.next_range);
        check_cover(&map).map_err(|what| damaged(&format!("container {number}: {what}")))?;
        let supply = supply_of(shared, &view, owner, number, &version.definition);
        let identity = owner.identity.clone();
        let container = Container::new(number, identity, version, map, shared.clone(), supply);
        if let Some(scripts) = scripts.remove(&(database, number)) {
            container.core().set_scripts(scripts);
        }
        by_database.entry(database).or_default().insert(Arc::new(container));
    }
    if let Some((_, number)) = scripts.into_keys().next() {
        return Err(damaged(&format!("a script belongs to no container: {number}")));
    }
    let mut users_by_database: HashMap<u32, Users> = HashMap::new();
    for ((database, _), user) in users {
        users_by_database.entry(database).or_default().insert(Arc::new(user));
    }
    check_owners(&view, users_by_database.keys(), "users")?;
    check_owners(&view, encryption_keys.keys(), "encryption keys")?;

    let meta = match meta {
        Some(meta) => meta,
        None if databases.is_empty() && drops.is_empty() && stale_forks.is_empty() && present.lsn == 0 => {
            found(shared, space)?
        }
        None => return Err(damaged("its first row is missing")),
    };
    view.lsn = meta.lsn;
    Ok(Loaded {
        meta,
        view,
        databases,
        drops,
        stale_forks,
        containers: by_database,
        users: users_by_database,
        encryption_keys,
    })
}

fn check_owners<'n>(view: &View, numbers: impl Iterator<Item = &'n u32>, what: &str) -> Result<()> {
    for number in numbers {
        if view.database(Ref::Number(*number)).is_none() {
            return Err(damaged(&format!("{what} belong to database {number}, which is none")));
        }
    }
    Ok(())
}

/// The catalog's first row as it is stored now.
pub(crate) fn stored_meta(space: &dyn Space) -> Result<MetaRow> {
    let row = space.snapshot()?.get(Table::Feed, &RowKey::Meta.encode())?;
    MetaRow::decode(&row.ok_or_else(|| damaged("its first row is missing"))?)
}

pub(crate) fn offer_of_row(number: u32, row: &OfferRow) -> Offer {
    Offer {
        number,
        owner: row.owner,
        throughput: row.throughput,
        minimum: row.throughput.minimum(row.throughput_max_ever, row.storage_max_ever_kb),
        throughput_max_ever: row.throughput_max_ever,
        storage_max_ever_kb: row.storage_max_ever_kb,
        buckets: row.buckets,
        etag: Etag::new(row.lsn, row.ts),
        ts: row.ts,
    }
}

/// The throughput of a container: its own offer's, else its database's.
pub(crate) fn supply_of(
    shared: &Shared,
    view: &View,
    database: &Database,
    container: u32,
    definition: &ContainerDefinition,
) -> Supply {
    let config = shared.config.clone();
    let own = view.offer_of(OfferOwner::Container(database.number, container));
    match own {
        None if database.pool.total_ru() > 0 => Supply::shared(config, database.pool.clone()),
        own => {
            let total_ru = own.map_or(MANUAL_MIN, |offer| offer.throughput.ceiling());
            let supply = Supply::own(config, total_ru, definition.partition_key.system_key);
            if let Some(offer) = own {
                supply.set_throughput(total_ru, offer.buckets);
            }
            supply
        }
    }
}

/// The map of ranges that clients may use: those that serve.
pub(crate) fn map_of_rows(ranges: &[(u32, RangeRow)], next_range: u32) -> RangeMap {
    let serving = ranges.iter().filter(|(_, row)| row.status != RangeStatus::Gone);
    let slots = serving
        .map(|(id, row)| {
            Arc::new(Slot::new(info_of_row(*id, row), SpaceId(row.space), ownership_of_row(row)))
        })
        .collect();
    let rows = ranges.iter().map(|(id, row)| (*id, SpaceId(row.space))).collect();
    let gone = ranges.iter().filter(|(_, row)| row.status == RangeStatus::Gone);
    let gone = gone.map(|(id, row)| (*id, row.min.clone(), row.max.clone())).collect();
    RangeMap::new(slots, RangeHistory { rows, gone, next_range })
}

pub(crate) fn ownership_of_row(row: &RangeRow) -> Ownership {
    Ownership { owner: row.owner, epoch: Epoch(row.epoch) }
}

pub(crate) fn info_of_row(id: u32, row: &RangeRow) -> RangeInfo {
    RangeInfo {
        id,
        min: row.min.clone(),
        max: row.max.clone(),
        parents: row.parents.clone(),
        lsn: row.start_lsn,
        throughput_fraction: 1.0,
        etag: Etag::new(row.lsn, row.ts),
        ts: row.ts,
    }
}

/// Ranges must cover the hash space without gap or overlap; anything else would lose keys.
fn check_cover(map: &RangeMap) -> Result<(), &'static str> {
    let slots = map.slots();
    let starts = slots.first().is_some_and(|slot| *slot.min() == orrery_model::Epk::MIN);
    let ends = slots.last().is_some_and(|slot| *slot.max() == orrery_model::Epk::max());
    let joined = slots.windows(2).all(|pair| pair[0].max() == pair[1].min());
    if starts && ends && joined { Ok(()) } else { Err("its ranges do not cover the hash space") }
}

/// Writes the first row of a new account.
fn found(shared: &Shared, space: &dyn Space) -> Result<MetaRow> {
    let random = shared.env.random_u64();
    let meta = MetaRow {
        account: ((random >> 32) as u32).max(1),
        lsn: 1,
        // Not 1: a client that outlives an in-memory server must not take the next server's first database for the
        // one it knew. Thirty bits leave room to count upwards for ever.
        next_database: (random as u32 & 0x3FFF_FFFF) | 0x0100_0000,
        next_offer: 1,
        next_space: 1,
    };
    let mut commit = Commit::default();
    commit.put(Table::Feed, RowKey::Meta.encode(), meta.encode());
    space.commit(commit, shared.config.durability).map_err(Error::from)?;
    Ok(meta)
}

#[cfg(test)]
mod tests {
    use orrery_model::Epk;
    use orrery_storage::{Claim, MemoryStore, Store};

    use super::*;
    use crate::account::Account;
    use crate::block_on;
    use crate::config::EngineConfig;
    use crate::definition::KeyKinds;
    use crate::env::TestEnv;
    use crate::error::Kind;

    fn open(store: &Arc<dyn Store>) -> Arc<Account> {
        Account::open(store.clone(), EngineConfig::default(), Arc::new(TestEnv::new(0, 1))).unwrap()
    }

    /// A container whose range 0 was split into 1 and 2, as rows say it.
    fn split(store: &Arc<dyn Store>) {
        let account = open(store);
        let database = block_on(account.create_database("db", None)).unwrap();
        let json = serde_json::json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "version": 2 } });
        let definition = ContainerDefinition::parse(&json, KeyKinds::All).unwrap();
        block_on(account.create_container(&database, definition, None)).unwrap();
        let number = database.number;
        drop((account, database));
        let middle = Epk::from_hex("1FFFFFFF").unwrap();
        let row = |min: &Epk, max: &Epk, space, status, parents: &[u32]| RangeRow {
            lsn: 9,
            ts: 1,
            start_lsn: if parents.is_empty() { 0 } else { 40 },
            space,
            status,
            owner: 0,
            epoch: 0,
            min: min.clone(),
            max: max.clone(),
            parents: parents.to_vec(),
        };
        let rows = [
            row(&Epk::MIN, &Epk::max(), 1, RangeStatus::Gone, &[]),
            row(&Epk::MIN, &middle, 2, RangeStatus::Online, &[0]),
            row(&middle, &Epk::max(), 3, RangeStatus::Splitting, &[0]),
        ];
        let mut commit = Commit::default();
        for (id, row) in rows.iter().enumerate() {
            commit.put(Table::Feed, RowKey::Range(number, 1, id as u32).encode(), row.encode());
        }
        let space = store.open_space(SpaceId(0)).unwrap();
        space.commit(commit, orrery_storage::Durability::Strict).unwrap();
    }

    #[test]
    fn a_range_that_was_split_is_gone_and_its_children_serve() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        split(&store);
        let account = open(&store);
        let container = account.database(Ref::Name("db")).unwrap().container(Ref::Name("c")).unwrap();
        let ranges = container.ranges();
        assert_eq!(ranges.iter().map(|range| range.id).collect::<Vec<_>>(), [1, 2]);
        assert!(ranges.iter().all(|range| range.parents == [0] && range.lsn == 40));
        assert_eq!(container.partition(0).err().unwrap().kind, Kind::RangeGone);
        assert_eq!(container.partition(2).unwrap().range_id(), 2);
    }

    #[test]
    fn deleting_a_container_that_was_split_leaves_no_rows_of_any_range() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        split(&store);
        let account = open(&store);
        let container = account.database(Ref::Name("db")).unwrap().container(Ref::Name("c")).unwrap();
        block_on(account.delete_container(&container, None)).unwrap();
        drop(account);
        let rows = store.open_space(SpaceId(0)).unwrap().snapshot().unwrap();
        let mut rows = rows.scan(Table::Feed, KeyRange::all(), Direction::Forward);
        while let Some(row) = rows.next_row() {
            let key = RowKey::decode(&row.unwrap().key).unwrap();
            assert!(!matches!(key, RowKey::Range(..) | RowKey::Container(..)), "{key:?} is left");
        }
        assert!(open(&store).database(Ref::Name("db")).unwrap().containers().is_empty());
    }

    #[test]
    fn a_range_is_opened_above_its_epoch_and_not_while_another_node_owns_it() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        split(&store);
        let number = open(&store).databases()[0].number;
        let space = store.open_space(SpaceId(0)).unwrap();
        for (range, owner) in [(1, 0), (2, 7)] {
            let key = RowKey::Range(number, 1, range).encode();
            let row = space.snapshot().unwrap().get(Table::Feed, &key).unwrap().unwrap();
            let row = RangeRow { owner, epoch: 41, ..RangeRow::decode(&row).unwrap() };
            let mut commit = Commit::default();
            commit.put(Table::Feed, key, row.encode());
            space.commit(commit, orrery_storage::Durability::Strict).unwrap();
        }
        let account = open(&store);
        let container = account.database(Ref::Name("db")).unwrap().container(Ref::Name("c")).unwrap();
        assert_eq!(container.partition(1).unwrap().next_claim(), Claim::Renew(Epoch(42)));
        assert_eq!(container.partition(2).err().unwrap().kind, Kind::Unavailable);
    }

    #[test]
    fn ranges_with_a_gap_are_refused() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        split(&store);
        let number = open(&store).databases()[0].number;
        let mut commit = Commit::default();
        commit.delete(Table::Feed, RowKey::Range(number, 1, 2).encode());
        let space = store.open_space(SpaceId(0)).unwrap();
        space.commit(commit, orrery_storage::Durability::Strict).unwrap();
        let error =
            Account::open(store, EngineConfig::default(), Arc::new(TestEnv::new(0, 1))).err().unwrap();
        assert!(error.message.contains("do not cover the hash space"), "{error}");
    }
}
