//! The catalog's promises: what is acknowledged is there after a restart, what failed left nothing, numbers are never
//! given twice, and deleted containers leave no rows behind.

mod catalog_support;

use std::sync::Arc;

use catalog_support::{World, database, definition, eventually, plain, wait};
use orrery_engine::testing::{PartitionsHere as _, open_partitions};
use orrery_engine::{Kind, OfferOwner, Ref, Throughput};
use orrery_model::{Epk, KeyComponent, PartitionKey};
use orrery_storage::doubles::FailAfter;
use orrery_storage::{
    Claim, Commit, Direction, Durability, KeyRange, MemoryStore, SpaceId, Store, StoreError, Table,
};
use serde_json::json;

fn key(text: &str) -> PartitionKey {
    PartitionKey([KeyComponent::String(text.to_owned())].into_iter().collect())
}

fn kind<T>(result: orrery_engine::Result<T>) -> Kind {
    result.err().expect("must fail").kind
}

fn message<T>(result: orrery_engine::Result<T>) -> String {
    result.err().expect("must fail").message
}

#[test]
fn databases_are_listed_in_creation_order_and_found_by_name_and_number() {
    let world = World::new();
    let account = world.open();
    let zoo = wait(account.create_database("zoo", None)).unwrap();
    let ant = wait(account.create_database("ant", None)).unwrap();
    assert!(zoo.number < ant.number);
    let names: Vec<String> = account.databases().iter().map(|db| db.name.clone()).collect();
    assert_eq!(names, ["zoo", "ant"]);
    assert_eq!(account.database(Ref::Number(ant.number)).unwrap().name, "ant");
    assert_eq!(kind(account.database(Ref::Name("cow"))), Kind::NotFound);
    assert_eq!(kind(wait(account.create_database("zoo", None))), Kind::AlreadyExists);
    assert_ne!(zoo.etag, ant.etag);
    assert_eq!(u64::from(zoo.ts), catalog_support::NOW_MS / 1000);
}

#[test]
fn a_restart_finds_everything_as_it_was() {
    let world = World::new();
    let (before, etag) = {
        let account = world.open();
        let db = wait(account.create_database("db", Some(Throughput::Manual(1_000)))).unwrap();
        let own = Throughput::Autoscale { max: 20_000, increment_percent: Some(7) };
        let container = wait(account.create_container(&db, plain("a"), Some(own))).unwrap();
        wait(account.create_container(&db, plain("b"), None)).unwrap();
        (container.ranges(), container.etag())
    };
    let account = world.open();
    let db = database(&account, "db");
    let names: Vec<String> = db.containers().iter().map(|c| c.name().to_owned()).collect();
    assert_eq!(names, ["a", "b"]);
    let container = db.container(Ref::Name("a")).unwrap();
    assert_eq!(container.ranges(), before);
    assert_eq!(before.len(), 2);
    assert_eq!(container.etag(), etag);
    assert_eq!(*container.definition(), plain("a"));
    let offer = account.offer_of(OfferOwner::Container(db.number, container.number())).unwrap();
    assert_eq!(offer.throughput, Throughput::Autoscale { max: 20_000, increment_percent: Some(7) });
    let shared = db.container(Ref::Name("b")).unwrap();
    assert!(account.offer_of(OfferOwner::Container(db.number, shared.number())).is_none());
    assert_eq!(account.offers().len(), 2);
}

#[test]
fn the_account_keeps_its_number_and_another_store_has_another() {
    let world = World::new();
    let number = world.open().number();
    assert_eq!(world.open().number(), number);
    let other = World::new();
    other.env.set_now_ms(5);
    orrery_engine::Env::random_u64(other.env.as_ref());
    assert_ne!(other.open().number(), number);
}

#[test]
fn throughput_decides_the_number_of_ranges_and_they_divide_the_hash_space_evenly() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    for (ru, count) in [(400, 1), (10_000, 1), (10_100, 2), (12_000, 2), (30_000, 3), (50_000, 5)] {
        let container =
            wait(account.create_container(&db, plain(&format!("c{ru}")), Some(Throughput::Manual(ru))))
                .unwrap();
        let ranges = container.ranges();
        assert_eq!(ranges.len(), count, "{ru}");
        assert_eq!(ranges[0].min, Epk::MIN);
        assert_eq!(ranges[count - 1].max, Epk::max());
        assert!(ranges.windows(2).all(|pair| pair[0].max == pair[1].min && pair[0].min < pair[0].max));
        assert_eq!(
            ranges.iter().map(|range| range.id as usize).collect::<Vec<_>>(),
            (0..count).collect::<Vec<_>>()
        );
        let whole: f64 = ranges.iter().map(|range| range.throughput_fraction).sum();
        assert!((whole - 1.0).abs() < 1e-9);
        for text in ["a", "b", "redmond", ""] {
            let epk = container.definition().partition_key.effective(&key(text));
            let range = ranges.iter().find(|range| range.min <= epk && epk < range.max).unwrap();
            assert_eq!(container.partition_of(&key(text)).unwrap().range_id(), range.id);
        }
    }
    let five = database(&account, "db").container(Ref::Name("c50000")).unwrap();
    let mins: Vec<String> = five.ranges().iter().map(|range| range.min.to_hex()).collect();
    let digits = |text: &str| text.repeat(16)[..32].to_owned();
    assert_eq!(mins[1], format!("0{}", &digits("CC")[..31]));
    assert_eq!(mins[0], "");
}

#[test]
fn a_key_with_too_few_or_too_many_values_belongs_nowhere() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let container = wait(account.create_container(&db, plain("c"), None)).unwrap();
    assert_eq!(kind(container.partition_of(&PartitionKey::default())), Kind::PartitionKeyTooShort);
    let two = PartitionKey([KeyComponent::Null, KeyComponent::Null].into_iter().collect());
    assert_eq!(kind(container.partition_of(&two)), Kind::PartitionKeyTooLong);
    assert_eq!(kind(container.partition(9)), Kind::RangeGone);

    let fixed = wait(account.create_container(&db, definition(json!({ "id": "fixed" })), None)).unwrap();
    assert_eq!(fixed.partition_of(&PartitionKey::default()).unwrap().range_id(), 0);
}

#[test]
fn a_container_without_a_key_has_one_range_and_limited_throughput() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let fixed = || definition(json!({ "id": "fixed" }));
    let refused = wait(account.create_container(&db, fixed(), Some(Throughput::Manual(10_100))));
    assert!(message(refused).contains("between 400 and 10000 inclusive"));
    let container = wait(account.create_container(&db, fixed(), Some(Throughput::Manual(10_000)))).unwrap();
    assert_eq!(container.ranges().len(), 1);
    let shared = wait(account.create_database("shared", Some(Throughput::Manual(400)))).unwrap();
    let refused = wait(account.create_container(&shared, fixed(), None));
    assert_eq!(message(refused), "Shared throughput collection should have a partition key");
}

#[test]
fn a_recreated_container_is_another_container() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let first = wait(account.create_container(&db, plain("c"), None)).unwrap();
    wait(account.delete_container(&first, None)).unwrap();
    drop(account);
    let account = world.open();
    let db = database(&account, "db");
    let second = wait(account.create_container(&db, plain("c"), None)).unwrap();
    assert!(second.number() > first.number());
    assert_eq!(kind(db.container(Ref::Number(first.number()))), Kind::NotFound);
    // The old handle cannot touch the new container.
    assert_eq!(kind(wait(account.delete_container(&first, None))), Kind::NotFound);
    assert_eq!(kind(wait(account.replace_container(&first, plain("c"), None))), Kind::NotFound);
    assert!(db.container(Ref::Name("c")).is_ok());
    wait(account.delete_database(Ref::Name("db"), None)).unwrap();
    let again = wait(account.create_database("db", None)).unwrap();
    assert!(again.number > db.number);
}

#[test]
fn a_deleted_database_takes_its_containers_and_offers_with_it() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", Some(Throughput::Manual(400)))).unwrap();
    let container = wait(account.create_container(&db, plain("c"), Some(Throughput::Manual(400)))).unwrap();
    let keep = wait(account.create_database("keep", Some(Throughput::Manual(500)))).unwrap();
    wait(account.delete_database(Ref::Number(db.number), None)).unwrap();
    assert!(db.containers().is_empty());
    assert_eq!(account.offers().len(), 1);
    assert_eq!(
        account.offer_of(OfferOwner::Database(keep.number)).unwrap().throughput,
        Throughput::Manual(500)
    );
    assert_eq!(kind(container.partition_of(&key("x"))), Kind::OwnerNotFound);
    let late = wait(account.create_container(&db, plain("late"), None));
    assert_eq!(kind(late), Kind::OwnerNotFound);
    drop(account);
    let account = world.open();
    assert_eq!(account.databases().len(), 1);
    assert_eq!(account.offers().len(), 1);
}

fn rows_of(store: &dyn Store, space: u32) -> usize {
    let snapshot = store.open_space(SpaceId(space)).unwrap().snapshot().unwrap();
    let mut count = 0;
    for table in [Table::Items, Table::Index, Table::Feed] {
        let mut rows = snapshot.scan(table, KeyRange::all(), Direction::Forward);
        while let Some(row) = rows.next_row() {
            row.unwrap();
            count += 1;
        }
    }
    count
}

fn put_row(store: &dyn Store, space: u32) {
    let mut commit = Commit::default();
    commit.put(Table::Items, vec![1], vec![2]);
    store.open_space(SpaceId(space)).unwrap().commit(commit, Durability::Strict).unwrap();
}

#[test]
fn the_rows_of_a_deleted_container_are_dropped_in_the_background() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let container =
        wait(account.create_container(&db, plain("c"), Some(Throughput::Manual(20_000)))).unwrap();
    // The first spaces of an account belong to its first container.
    put_row(world.store.as_ref(), 1);
    put_row(world.store.as_ref(), 2);
    wait(account.delete_container(&container, None)).unwrap();
    eventually(|| rows_of(world.store.as_ref(), 1) == 0 && rows_of(world.store.as_ref(), 2) == 0);
    drop(account);
    // The meta row and the database are all that is left. Looking takes the space away from its owner, who may have
    // been about to remove the last drop row; the next start does it then.
    eventually(|| {
        drop(world.open());
        rows_of(world.store.as_ref(), 0) == 2
    });
}

/// A store whose drops fail, as when the process dies right after the delete was acknowledged.
struct NoDrops(Arc<MemoryStore>);

impl Store for NoDrops {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn orrery_storage::Space>, StoreError> {
        self.0.claim_space(id, claim)
    }
    fn drop_space(&self, _: SpaceId) -> Result<(), StoreError> {
        Err(StoreError::Io("no drops today".into()))
    }
    fn blocking(&self) -> bool {
        self.0.blocking()
    }
    fn stats(&self) -> orrery_storage::StoreStats {
        self.0.stats()
    }
    fn close(&self) -> Result<(), StoreError> {
        self.0.close()
    }
}

#[test]
fn a_drop_that_a_crash_interrupted_is_resumed_at_the_next_start() {
    let memory = Arc::new(MemoryStore::new());
    {
        let account = World::over(Arc::new(NoDrops(memory.clone()))).open();
        let db = wait(account.create_database("db", None)).unwrap();
        let container = wait(account.create_container(&db, plain("c"), None)).unwrap();
        put_row(memory.as_ref(), 1);
        wait(account.delete_container(&container, None)).unwrap();
        // Changes go on although the drop cannot.
        wait(account.create_database("other", None)).unwrap();
    }
    assert_eq!(rows_of(memory.as_ref(), 1), 1);
    let world = World::over(memory.clone());
    let account = world.open();
    eventually(|| rows_of(memory.as_ref(), 1) == 0);
    let db = database(&account, "db");
    assert!(db.containers().is_empty());
    let container = wait(account.create_container(&db, plain("c"), None)).unwrap();
    container.partition(0).unwrap();
    drop(account);
    // Meta, two databases, container, range and offer; and no drop row.
    eventually(|| {
        drop(world.open());
        rows_of(memory.as_ref(), 0) == 6
    });
}

#[test]
fn etags_guard_deletes_and_replaces() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let container = wait(account.create_container(&db, plain("c"), None)).unwrap();
    let old = container.etag().to_string();
    let with_ttl = || {
        definition(json!({ "id": "c", "defaultTtl": 60,
            "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } }))
    };
    world.env.advance_ms(5_000);
    let replaced = wait(account.replace_container(&container, with_ttl(), Some(&old))).unwrap();
    assert!(Arc::ptr_eq(&replaced, &container));
    assert_eq!(container.definition().default_ttl, Some(60));
    assert_ne!(container.etag().to_string(), old);
    assert_eq!(u64::from(container.ts()), catalog_support::NOW_MS / 1000 + 5);
    assert_eq!(
        kind(wait(account.replace_container(&container, plain("c"), Some(&old)))),
        Kind::PreconditionFailed
    );
    assert_eq!(kind(wait(account.delete_container(&container, Some(&old)))), Kind::PreconditionFailed);
    assert_eq!(kind(wait(account.delete_database(Ref::Name("db"), Some("\"x\"")))), Kind::PreconditionFailed);
    drop((account, container, replaced));
    let account = world.open();
    let container = database(&account, "db").container(Ref::Name("c")).unwrap();
    assert_eq!(container.definition().default_ttl, Some(60));
    wait(account.delete_container(&container, Some(&container.etag().to_string()))).unwrap();
}

#[test]
fn a_partition_opens_when_it_is_needed_and_only_once() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let container =
        wait(account.create_container(&db, plain("c"), Some(Throughput::Manual(30_000)))).unwrap();
    assert!(open_partitions(&account).is_empty());
    let found: Vec<_> = std::thread::scope(|scope| {
        let tasks: Vec<_> =
            (0..8).map(|_| scope.spawn(|| container.partition_of(&key("a")).unwrap())).collect();
        tasks.into_iter().map(|task| task.join().unwrap()).collect()
    });
    assert!(found.iter().all(|partition| Arc::ptr_eq(partition, &found[0])));
    assert_eq!(open_partitions(&account).len(), 1);
}

#[test]
fn offers_follow_the_rules_of_their_mode_and_history() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    for ru in [300, 450, 1_000_100] {
        let refused = wait(account.create_container(&db, plain("c"), Some(Throughput::Manual(ru))));
        assert!(message(refused).contains("inclusive in increments of 100"));
    }
    let container =
        wait(account.create_container(&db, plain("c"), Some(Throughput::Manual(80_000)))).unwrap();
    let offer = account.offer_of(OfferOwner::Container(db.number, container.number())).unwrap();
    assert_eq!((offer.minimum, offer.throughput_max_ever), (800, 80_000));
    let refused = wait(account.replace_offer(offer.number, Throughput::Manual(700), None));
    assert!(message(refused).contains("between 800 and 1000000 inclusive"));
    let lower = wait(account.replace_offer(offer.number, Throughput::Manual(800), None)).unwrap();
    assert_eq!((lower.throughput, lower.throughput_max_ever), (Throughput::Manual(800), 80_000));
    assert_ne!(lower.etag, offer.etag);
    let stale =
        wait(account.replace_offer(offer.number, Throughput::Manual(900), Some(&offer.etag.to_string())));
    assert_eq!(kind(stale), Kind::PreconditionFailed);
    let moved = Throughput::Autoscale { max: 8_000, increment_percent: None };
    assert_eq!(wait(account.replace_offer(offer.number, moved, None)).unwrap().throughput, moved);
    assert_eq!(kind(wait(account.replace_offer(999, Throughput::Manual(400), None))), Kind::NotFound);
    drop(account);
    assert_eq!(world.open().offer(offer.number).unwrap().throughput, moved);
}

#[test]
fn twenty_five_containers_may_share_a_databases_throughput() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", Some(Throughput::Manual(30_000)))).unwrap();
    for index in 0..25 {
        let container = wait(account.create_container(&db, plain(&format!("c{index}")), None)).unwrap();
        assert_eq!(container.ranges().len(), 3);
    }
    assert_eq!(kind(wait(account.create_container(&db, plain("c25"), None))), Kind::BadRequest);
    wait(account.create_container(&db, plain("own"), Some(Throughput::Manual(400)))).unwrap();
    assert_eq!(account.offers().len(), 2);
}

#[test]
fn names_are_checked_before_anything_is_written() {
    let world = World::new();
    let account = world.open();
    let lsn = account.catalog_lsn();
    for name in ["", "a/b", "a ", &"x".repeat(256)] {
        assert_eq!(kind(wait(account.create_database(name, None))), Kind::BadRequest);
    }
    assert_eq!(account.catalog_lsn(), lsn);
}

/// Everything a client can see of an account.
fn picture(account: &orrery_engine::Account) -> Vec<String> {
    let mut lines = Vec::new();
    for db in account.databases() {
        lines.push(format!("{} {} {}", db.number, db.name, db.etag));
        for container in db.containers() {
            let (etag, json) = (container.etag(), container.definition().json.clone());
            lines.push(format!(
                "  {} {} {etag} {json} {:?}",
                container.number(),
                container.name(),
                container.ranges()
            ));
        }
    }
    lines.extend(account.offers().iter().map(|offer| format!("{offer:?}")));
    lines
}

#[test]
fn a_failed_commit_changes_nothing_in_memory_and_nothing_on_disk() {
    let memory = Arc::new(MemoryStore::new());
    {
        let account = World::over(memory.clone()).open();
        let db = wait(account.create_database("db", Some(Throughput::Manual(400)))).unwrap();
        wait(account.create_container(&db, plain("c"), Some(Throughput::Manual(500)))).unwrap();
    }
    let world = World::over(Arc::new(FailAfter::new(Again(memory.clone()), 0)));
    let account = world.open();
    let before = picture(&account);
    let db = database(&account, "db");
    let container = db.container(Ref::Name("c")).unwrap();
    let offer = account.offers()[0].clone();
    assert_eq!(kind(wait(account.create_database("new", None))), Kind::WritesStopped);
    assert_eq!(kind(wait(account.create_container(&db, plain("new"), None))), Kind::WritesStopped);
    let ttl = definition(json!({ "id": "c", "defaultTtl": 1,
        "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } }));
    assert_eq!(kind(wait(account.replace_container(&container, ttl, None))), Kind::WritesStopped);
    assert_eq!(
        kind(wait(account.replace_offer(offer.number, Throughput::Manual(900), None))),
        Kind::WritesStopped
    );
    assert_eq!(kind(wait(account.delete_container(&container, None))), Kind::WritesStopped);
    assert_eq!(kind(wait(account.delete_database(Ref::Name("db"), None))), Kind::WritesStopped);
    assert_eq!(picture(&account), before);
    assert!(container.partition_of(&key("a")).is_ok());
    drop(account);
    let account = World::over(memory).open();
    assert_eq!(picture(&account), before);
    // Numbers that the failed changes had taken are free again: nothing that used them exists.
    let next = wait(account.create_database("new", None)).unwrap();
    assert_eq!(next.number, db.number + 1);
}

/// The same store behind another handle.
struct Again(Arc<MemoryStore>);

impl Store for Again {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn orrery_storage::Space>, StoreError> {
        self.0.claim_space(id, claim)
    }
    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        self.0.drop_space(id)
    }
    fn blocking(&self) -> bool {
        self.0.blocking()
    }
    fn stats(&self) -> orrery_storage::StoreStats {
        self.0.stats()
    }
    fn close(&self) -> Result<(), StoreError> {
        self.0.close()
    }
}

#[test]
fn a_catalog_that_cannot_be_read_is_refused_by_name() {
    let damage = |key: Vec<u8>, value: Option<Vec<u8>>| {
        let world = World::new();
        {
            let account = world.open();
            let db = wait(account.create_database("db", None)).unwrap();
            wait(account.create_container(&db, plain("c"), None)).unwrap();
        }
        let mut commit = Commit::default();
        match value {
            Some(value) => commit.put(Table::Feed, key, value),
            None => commit.delete(Table::Feed, key),
        }
        world.store.open_space(SpaceId(0)).unwrap().commit(commit, Durability::Strict).unwrap();
        message(world.try_open())
    };
    assert!(damage(vec![0], Some(vec![1, 2, 3])).contains("a meta row cannot be decoded"));
    assert!(damage(vec![0], None).contains("its first row is missing"));
    assert!(damage(vec![0], Some(vec![9])).contains("written by a newer program"));
    assert!(damage(vec![99, 1], Some(vec![1])).contains("unknown key"));
    assert!(
        damage(vec![3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], Some(vec![1]))
            .contains("belongs to no container")
    );
}

#[test]
fn after_closing_changes_are_refused() {
    let world = World::new();
    let account = world.open();
    wait(account.create_database("db", None)).unwrap();
    account.close().unwrap();
    assert_eq!(kind(wait(account.create_database("late", None))), Kind::WritesStopped);
    assert_eq!(account.databases().len(), 1);
}

#[test]
fn many_callers_change_the_catalog_at_once_and_each_change_happens_once() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let created: usize = std::thread::scope(|scope| {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let names = (0..20).map(|index| format!("c{index}"));
                    names
                        .filter(|name| wait(account.create_container(&db, plain(name), None)).is_ok())
                        .count()
                })
            })
            .collect();
        tasks.into_iter().map(|task| task.join().unwrap()).sum()
    });
    assert_eq!(created, 20);
    let numbers: Vec<u32> = db.containers().iter().map(|container| container.number()).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    assert_eq!(account.offers().len(), 20);
}
