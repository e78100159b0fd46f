//! Splits and merges: nothing is lost, nothing changes its identity, positions carry over, and nobody has to stop.

mod items_support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use items_support::*;
use orrery_engine::{
    Account, ChangesFrom, ContainerDefinition, EngineConfig, KeyKinds, Kind, Operation, PageRequest,
    ReadOptions, Ref, Scope, TestEnv,
};
use orrery_model::Epk;
use orrery_storage::doubles::FailAfter;
use orrery_storage::{Claim, MemoryStore, Space, SpaceId, Store, StoreError, StoreStats};
use serde_json::json;

fn item(pk: &str, id: usize, n: usize) -> String {
    format!(r#"{{"id":"{id}","pk":"{pk}","n":{n},"fill":"{}"}}"#, "x".repeat(100))
}

fn fill(fixture: &Fixture, keys: usize, items_per_key: usize) {
    for n in 0..keys * items_per_key {
        fixture.create(&item(&format!("k{}", n % keys), n, 0)).unwrap();
    }
}

fn split(fixture: &Fixture, range: Option<u32>) -> Vec<u32> {
    wait(fixture.account.split_partition(&fixture.container, range).unwrap().done()).unwrap()
}

fn merge(fixture: &Fixture, range: Option<u32>) -> Vec<u32> {
    wait(fixture.account.merge_partitions(&fixture.container, range).unwrap().done()).unwrap()
}

fn ids(fixture: &Fixture) -> Vec<u32> {
    fixture.container.ranges().iter().map(|range| range.id).collect()
}

/// Everything that identifies a version.
fn identities(fixture: &Fixture) -> BTreeMap<String, (u64, u64, u8, u32, String, String)> {
    let page = wait(fixture.container.read_feed(&Scope::All, &PageRequest::new(100_000))).unwrap();
    assert!(page.continuation.is_none());
    let identity = |item: &orrery_engine::Item| {
        (item.number, item.lsn, item.sub, item.ts, item.etag.to_string(), text_of(item))
    };
    page.items.iter().map(|item| (item.id().to_owned(), identity(item))).collect()
}

#[test]
fn a_split_keeps_every_item_as_it_was_and_halves_the_bytes() {
    let fixture = Fixture::embedded(json!({}));
    fill(&fixture, 100, 5);
    fixture.replace(&item("k3", 3, 1)).unwrap();
    let (before, usage) = (identities(&fixture), fixture.container.usage());
    let lsn = fixture.only_partition().lsn();
    assert_eq!(split(&fixture, None), [1, 2]);
    assert_eq!(identities(&fixture), before);
    assert_eq!(fixture.container.usage(), usage);
    let ranges = fixture.container.ranges();
    assert_eq!(ranges.iter().map(|range| range.id).collect::<Vec<_>>(), [1, 2]);
    assert!(
        ranges
            .iter()
            .all(|range| range.parents == [0] && range.lsn == lsn && range.throughput_fraction == 0.5)
    );
    assert_eq!((&ranges[0].min, &ranges[1].max, &ranges[0].max), (&Epk::MIN, &Epk::max(), &ranges[1].min));
    for range in &ranges {
        let half = fixture.container.partition(range.id).unwrap();
        let share = half.usage().size_bytes as f64 / usage.size_bytes as f64;
        assert!((0.45..0.55).contains(&share), "{share}");
        assert_eq!(half.lsn(), lsn);
    }
    assert_eq!(kind(fixture.container.partition(0)), Kind::RangeGone);
}

#[test]
fn a_split_survives_a_restart_and_can_be_split_again() {
    let mut fixture = Fixture::embedded(json!({}));
    fill(&fixture, 40, 3);
    let before = identities(&fixture);
    split(&fixture, Some(0));
    fixture.reopen();
    assert_eq!(identities(&fixture), before);
    assert_eq!(split(&fixture, Some(2)), [3, 4]);
    fixture.upsert(&item("k1", 1, 7)).unwrap();
    fixture.reopen();
    assert_eq!(ids(&fixture), [1, 3, 4]);
    assert_eq!(fixture.container.ranges()[1].parents, [0, 2]);
    assert_eq!(identities(&fixture).len(), before.len());
}

#[test]
fn rows_of_search_indexes_are_made_again() {
    let fixture = Fixture::new(json!({
        "indexingPolicy": {
            "spatialIndexes": [{"path": "/at/?"}],
            "fullTextIndexes": [{"path": "/text"}],
            "vectorIndexes": [{"path": "/v", "type": "flat"}, {"path": "/w", "type": "quantizedFlat"}],
        },
        "fullTextPolicy": {"fullTextPaths": [{"path": "/text"}]},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "cosine"},
            {"path": "/w", "dataType": "float32", "dimensions": 2, "distanceFunction": "cosine"},
        ]},
    }));
    for n in 0..60 {
        let text = json!({
            "id": n.to_string(), "pk": format!("k{n}"), "text": format!("word{} and more", n % 3), "v": [n, 1], "w": [1, n],
            "at": {"type": "Point", "coordinates": [n, n]},
        });
        fixture.create(&text.to_string()).unwrap();
    }
    split(&fixture, None);
    for partition in fixture.container.partitions().unwrap() {
        assert!(partition.usage().items > 0);
        assert_eq!(partition.check_index().unwrap(), [""; 0]);
    }
}

#[test]
fn new_items_never_meet_the_numbers_and_lsns_of_old_ones() {
    let fixture = Fixture::new(json!({}));
    fill(&fixture, 20, 1);
    let old: BTreeSet<u64> = identities(&fixture).values().map(|identity| identity.0).collect();
    let lsn = fixture.only_partition().lsn();
    split(&fixture, None);
    for n in 100..140 {
        let reply = fixture.create(&item(&format!("k{n}"), n, 0)).unwrap();
        assert!(reply.at.lsn > lsn && !old.contains(&reply.item.unwrap().number));
    }
}

#[test]
fn one_logical_partition_is_never_cut() {
    let fixture = Fixture::new(json!({}));
    for n in 0..50 {
        fixture.create(&item("only", n, 0)).unwrap();
    }
    let job = fixture.account.split_partition(&fixture.container, None).unwrap();
    let error = wait(job.done()).unwrap_err();
    assert_eq!(error.kind, Kind::BadRequest);
    assert!(error.message.contains("same partition key"), "{error}");
    assert_eq!(ids(&fixture), [0]);
    fixture.create(&item("other", 99, 0)).unwrap();
    split(&fixture, None);
    let shares: Vec<u64> = fixture.container.partitions().unwrap().iter().map(|p| p.usage().items).collect();
    assert!(shares == [50, 1] || shares == [1, 50], "{shares:?}");
}

#[test]
fn an_empty_partition_is_cut_in_the_middle_of_its_range() {
    let fixture = Fixture::new(json!({}));
    split(&fixture, None);
    split(&fixture, None);
    split(&fixture, None);
    let bounds: Vec<String> = fixture.container.ranges().iter().map(|range| range.max.to_hex()).collect();
    assert_eq!(bounds.len(), 4);
    assert!(
        bounds[0].starts_with("0FFF") && bounds[1].starts_with("1FFF") && bounds[2].starts_with("2FFF"),
        "{bounds:?}"
    );
}

#[test]
fn a_container_without_a_key_is_not_split() {
    let fixture = Fixture::new(json!({"partitionKey": null}));
    assert_eq!(kind(fixture.account.split_partition(&fixture.container, None)), Kind::BadRequest);
}

#[test]
fn lists_go_on_where_they_were_through_splits_and_merges() {
    let fixture = Fixture::new(json!({}));
    fill(&fixture, 30, 4);
    let mut seen: Vec<String> = Vec::new();
    let mut page = PageRequest::new(7);
    let mut pages = 0;
    loop {
        let found = wait(fixture.container.read_feed(&Scope::All, &page)).unwrap();
        seen.extend(found.items.iter().map(|item| item.id().to_owned()));
        let Some(next) = found.continuation else { break };
        page.continuation = orrery_engine::FeedContinuation::decode(&next.encode());
        pages += 1;
        match pages {
            3 => drop(split(&fixture, None)),
            5 => drop(split(&fixture, None)),
            8 => drop(merge(&fixture, None)),
            10 => drop(merge(&fixture, None)),
            12 => drop(split(&fixture, None)),
            _ => {}
        }
    }
    assert_eq!(seen.len(), 120);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 120);
}

/// Reads what is new for one part of the hash space.
fn changes(fixture: &Fixture, min: &Epk, max: &Epk, after: u64) -> (Vec<String>, u64) {
    let scope = Scope::Epk { min: min.clone(), max: max.clone(), range: None };
    let page = PageRequest::new(1000);
    let found = wait(fixture.container.read_changes(&scope, ChangesFrom::After(after), &page)).unwrap();
    (found.items.iter().map(|item| item.id().to_owned()).collect(), found.lsn)
}

#[test]
fn a_position_in_the_feed_means_the_same_after_a_split_and_after_a_merge() {
    let fixture = Fixture::new(json!({}));
    fill(&fixture, 20, 1);
    let (_, seen) = changes(&fixture, &Epk::MIN, &Epk::max(), 0);
    for n in [2, 5, 11] {
        fixture.replace(&item(&format!("k{n}"), n, 1)).unwrap();
    }
    split(&fixture, None);
    let ranges = fixture.container.ranges();
    let mut positions = Vec::new();
    let mut found = Vec::new();
    for range in &ranges {
        let (ids, lsn) = changes(&fixture, &range.min, &range.max, seen);
        found.extend(ids);
        positions.push(lsn);
    }
    found.sort();
    assert_eq!(found, ["11", "2", "5"]);
    // The two sides go on at their own pace, so their LSNs overlap; then they are one again.
    for n in 0..20 {
        fixture.replace(&item(&format!("k{n}"), n, 2)).unwrap();
    }
    let expected: Vec<BTreeSet<String>> = ranges
        .iter()
        .zip(&positions)
        .map(|(range, position)| changes(&fixture, &range.min, &range.max, *position).0.into_iter().collect())
        .collect();
    let before = identities(&fixture);
    assert_eq!(merge(&fixture, None), [3]);
    assert_eq!(identities(&fixture), before);
    for ((range, position), expected) in ranges.iter().zip(&positions).zip(&expected) {
        let (ids, _) = changes(&fixture, &range.min, &range.max, *position);
        assert_eq!(ids.into_iter().collect::<BTreeSet<_>>(), *expected);
    }
    let (all, lsn) = changes(&fixture, &Epk::MIN, &Epk::max(), 0);
    assert_eq!(all.len(), 20);
    assert_eq!(lsn, fixture.container.partition(3).unwrap().lsn());
    // What was merged can be changed, deleted and split like anything else.
    for n in 0..10 {
        fixture.replace(&item(&format!("k{n}"), n, 3)).unwrap();
    }
    for n in 10..15 {
        fixture.delete(&format!("k{n}"), &n.to_string()).unwrap();
    }
    assert_eq!(changes(&fixture, &Epk::MIN, &Epk::max(), 0).0.len(), 15);
    assert_eq!(changes(&fixture, &Epk::MIN, &Epk::max(), lsn).0.len(), 10);
    split(&fixture, None);
    assert_eq!(identities(&fixture).len(), 15);
}

#[test]
fn a_session_token_of_a_parent_is_no_obstacle_in_a_child() {
    let fixture = Fixture::new(json!({}));
    fill(&fixture, 10, 1);
    let lsn = fixture.only_partition().lsn();
    split(&fixture, None);
    for range in [0, 1, 2] {
        let options = ReadOptions { session: vec![(range, lsn)], ..ReadOptions::default() };
        wait(fixture.container.read_item(&key("k3"), "3", &options)).unwrap();
    }
}

#[test]
fn merging_is_refused_where_it_would_be_undone() {
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), EngineConfig::default(), json!({}), 20_000);
    assert_eq!(kind(fixture.account.merge_partitions(&fixture.container, None)), Kind::BadRequest);
    let one = Fixture::new(json!({}));
    assert_eq!(kind(one.account.merge_partitions(&one.container, None)), Kind::BadRequest);
}

/// A store that several accounts open one after the other, as processes open a directory.
struct Again(Arc<MemoryStore>);

impl Store for Again {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        self.0.claim_space(id, claim)
    }

    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        self.0.drop_space(id)
    }

    fn blocking(&self) -> bool {
        false
    }

    fn stats(&self) -> StoreStats {
        self.0.stats()
    }

    fn close(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

#[test]
fn a_failed_write_at_any_step_of_a_split_leaves_one_owner_for_every_key() {
    let memory = Arc::new(MemoryStore::new());
    let again = || -> Arc<dyn Store> { Arc::new(Again(memory.clone())) };
    let config = EngineConfig::default();
    let env = Arc::new(TestEnv::new(NOW_MS, 7));
    let json = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2},
                      "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}, "defaultTtl": -1});
    {
        let account = Account::open(again(), config.clone(), env.clone()).unwrap();
        let database = wait(account.create_database("d", None)).unwrap();
        let definition = ContainerDefinition::parse(&json, KeyKinds::All).unwrap();
        let container = wait(account.create_container(&database, definition, None)).unwrap();
        for n in 0..300 {
            let text = format!(r#"{{"id":"{n}","pk":"k{}","u":{n},"ttl":1000}}"#, n % 50);
            let (pk, id, document) = parts(&text);
            wait(container.write_item(&key(&pk), Operation::Create { id, document }.into())).unwrap();
        }
        account.close().unwrap();
    }
    let mut failed = 0;
    let mut succeeded = 0;
    for commits in 1..40 {
        let store: Arc<dyn Store> = Arc::new(FailAfter::new(Again(memory.clone()), commits));
        let Ok(account) = Account::open(store, config.clone(), env.clone()) else { continue };
        let container = account.database(Ref::Name("d")).unwrap().container(Ref::Name("c")).unwrap();
        let outcome = match account.split_partition(&container, None) {
            Ok(job) => wait(job.done()),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(_) => succeeded += 1,
            Err(_) => failed += 1,
        }
        let _ = account.close();
        drop((account, container));
        let account = Account::open(again(), config.clone(), env.clone()).unwrap();
        let container = account.database(Ref::Name("d")).unwrap().container(Ref::Name("c")).unwrap();
        // Opening checks that the ranges cover the hash space exactly once.
        for n in 0..300 {
            wait(container.read_item(&key(&format!("k{}", n % 50)), &n.to_string(), &ReadOptions::default()))
                .unwrap();
        }
        assert_eq!(container.usage().items, 300);
        account.close().unwrap();
    }
    assert!(failed >= 5 && succeeded >= 5, "{failed} failed, {succeeded} succeeded");
}

#[test]
fn writers_readers_and_followers_go_on_through_splits_and_merges() {
    const WRITERS: usize = 4;
    const KEYS: usize = 60;
    let fixture = Fixture::embedded(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}));
    let stop = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    let container = &fixture.container;
    let written: Vec<BTreeMap<String, u64>> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut latest = BTreeMap::new();
                    let mut n = 0u64;
                    while !stop.load(Ordering::Relaxed) {
                        n += 1;
                        let id = format!("w{writer}-{}", n % 500);
                        let pk = format!("k{}", n % 500 % KEYS as u64);
                        if n.is_multiple_of(13) && latest.remove(&id).is_some() {
                            wait(container.write_item(&key(&pk), Operation::Delete { id }.into())).unwrap();
                            continue;
                        }
                        let text = format!(r#"{{"id":"{id}","pk":"{pk}","n":{n},"u":"{id}"}}"#);
                        let write = Operation::Upsert { id: id.clone(), document: document(&text) };
                        wait(container.write_item(&key(&pk), write.into())).unwrap();
                        latest.insert(id, n);
                    }
                    latest
                })
            })
            .collect();
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for n in 0..KEYS {
                    match wait(container.read_item(
                        &key(&format!("k{n}")),
                        &format!("w0-{n}"),
                        &ReadOptions::default(),
                    )) {
                        Ok(_) => {}
                        Err(error) => assert_eq!(error.kind, Kind::NotFound),
                    }
                    wait(container.read_feed(&Scope::Key(key(&format!("k{n}"))), &PageRequest::new(10)))
                        .unwrap();
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        for round in 0..24 {
            std::thread::sleep(std::time::Duration::from_millis(30));
            let job = match round % 4 {
                3 => fixture.account.merge_partitions(container, None),
                _ => fixture.account.split_partition(container, None),
            };
            wait(job.unwrap().done()).unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(ids(&fixture).len(), 13);
    assert!(reads.load(Ordering::Relaxed) > 100);
    let expected: BTreeMap<String, u64> = written.into_iter().flatten().collect();
    let found: BTreeMap<String, u64> = identities(&fixture)
        .into_iter()
        .map(|(id, identity)| {
            let text: serde_json::Value = serde_json::from_str(&identity.5).unwrap();
            (id, text["n"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(found, expected);
    // The feed of each range tells exactly its items, in the order of their commits.
    let mut told = BTreeSet::new();
    for id in ids(&fixture) {
        let page = PageRequest::new(100_000);
        let found = wait(container.read_changes(&Scope::Range(id), ChangesFrom::Beginning, &page)).unwrap();
        assert!(found.items.is_sorted_by_key(|item| item.lsn));
        told.extend(found.items.iter().map(|item| item.id().to_owned()));
    }
    assert_eq!(told, expected.keys().cloned().collect());
    // Unique claims moved with their items.
    let (id, _) = expected.iter().next().unwrap();
    let number: usize = id.rsplit('-').next().unwrap().parse().unwrap();
    let copy = format!(r#"{{"id":"copy","pk":"k{}","u":"{id}"}}"#, number % KEYS);
    assert_eq!(kind(fixture.create(&copy)), Kind::UniqueKeyViolated);
}
