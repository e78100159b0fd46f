//! Forks of databases: everything comes along, nothing is shared from there on, all of one moment, and nothing is left.

mod items_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use items_support::*;
use orrery_engine::{
    Account, ChangesFrom, Container, Database, EngineConfig, Kind, OfferOwner, PageRequest, Ref, Scope,
    ScriptDefinition, ScriptKind, TestEnv, Throughput,
};
use orrery_storage::doubles::Counting;
use orrery_storage::{MemoryStore, Store};
use serde_json::json;

fn item(pk: &str, id: usize, n: usize) -> String {
    format!(r#"{{"id":"{id}","pk":"{pk}","n":{n},"mail":"{id}@{pk}"}}"#)
}

fn fork(fixture: &Fixture, name: &str) -> (Arc<Database>, Fixture) {
    let database = wait(fixture.account.fork_database(Ref::Name("d"), name, false)).unwrap();
    let container = database.container(Ref::Name("c")).unwrap();
    (database, of(fixture, container))
}

/// Another container with the short ways of a fixture.
fn of(fixture: &Fixture, container: Arc<Container>) -> Fixture {
    let Fixture { store, env, config, account, .. } = fixture;
    Fixture::of(store.clone(), env.clone(), config.clone(), account.clone(), container)
}

fn both(test: impl Fn(Fixture)) {
    let definition = json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}, "defaultTtl": 3600});
    test(Fixture::new(definition.clone()));
    test(Fixture::embedded(definition));
}

fn texts(fixture: &Fixture) -> Vec<String> {
    let mut texts: Vec<String> = fixture
        .try_items()
        .unwrap()
        .iter()
        .map(|item| format!("{} {} {} {} {}", item.number, item.lsn, item.ts, item.etag, text_of(item)))
        .collect();
    texts.sort();
    texts
}

fn split(fixture: &Fixture) {
    wait(fixture.account.split_partition(&fixture.container, None).unwrap().done()).unwrap();
}

#[test]
fn everything_comes_along_and_goes_its_own_way() {
    both(|fixture| {
        (0..200).for_each(|n| drop(fixture.create(&item(&format!("k{}", n % 20), n, 0)).unwrap()));
        split(&fixture);
        (0..20).for_each(|n| drop(fixture.replace(&item(&format!("k{n}"), n, 1)).unwrap()));
        let script = ScriptDefinition {
            kind: ScriptKind::Procedure,
            id: "p".into(),
            body: "function () {}".into(),
            trigger: None,
            spelling: Default::default(),
        };
        wait(fixture.account.create_script(&fixture.container, script)).unwrap();
        let (database, forked) = fork(&fixture, "f");
        assert_eq!(database.forked_from(), Some("d"));
        assert_eq!(texts(&forked), texts(&fixture));
        let ranges = |of: &Fixture| -> Vec<(u32, _)> {
            of.container.ranges().into_iter().map(|range| (range.id, range.min)).collect()
        };
        assert_eq!(ranges(&forked), ranges(&fixture));
        assert_eq!(forked.container.usage(), fixture.container.usage());
        assert!(forked.container.core().scripts().by_id(ScriptKind::Procedure, "p").is_some());
        let offer = |of: &Container, number| {
            let owner = OfferOwner::Container(number, of.number());
            fixture.account.offer_of(owner).map(|offer| (offer.throughput, offer.number))
        };
        let origin = fixture.account.database(Ref::Name("d")).unwrap();
        let (theirs, ours) = (
            offer(&fixture.container, origin.number).unwrap(),
            offer(&forked.container, database.number).unwrap(),
        );
        assert_eq!(theirs.0, ours.0);
        assert_ne!(theirs.1, ours.1, "each has an offer of its own");

        // The feed begins as it was, unique keys are taken as they were, and both go on apart.
        let changes = |of: &Fixture| -> usize {
            let ranges = of.container.ranges();
            ranges.iter().map(|range| of.try_changes(&Scope::Range(range.id)).unwrap().0.len()).sum()
        };
        assert_eq!(changes(&forked), changes(&fixture));
        assert_eq!(kind(forked.create(r#"{"id":"x","pk":"k1","mail":"1@k1"}"#)), Kind::UniqueKeyViolated);
        forked.delete("k1", "1").unwrap();
        forked.create(r#"{"id":"x","pk":"k1","mail":"1@k1"}"#).unwrap();
        fixture.replace(&item("k2", 2, 7)).unwrap();
        assert_eq!((fixture.text("k1", "x"), forked.text("k1", "1")), (None, None));
        assert!(fixture.text("k1", "1").is_some());
        assert!(forked.text("k2", "2").unwrap().contains("\"n\":1"));
        assert_eq!(kind(fixture.create(r#"{"id":"x","pk":"k1","mail":"1@k1"}"#)), Kind::UniqueKeyViolated);

        // What is over goes in both, each by itself.
        fixture.env.advance_ms(7_200_000);
        fixture.sweep();
        assert_eq!((fixture.stored_items(), forked.try_items().unwrap().len()), (0, 0));
        forked.sweep();
        assert_eq!(forked.stored_items(), 0);
    });
}

#[test]
fn a_fork_is_split_scaled_and_given_containers_like_any_database() {
    both(|fixture| {
        (0..100).for_each(|n| drop(fixture.create(&item(&format!("k{}", n % 20), n, 0)).unwrap()));
        let (database, forked) = fork(&fixture, "f");
        split(&forked);
        assert_eq!((forked.container.ranges().len(), fixture.container.ranges().len()), (2, 1));
        let ids = |of: &Fixture| {
            let mut ids = of.list(&Scope::All, 1000);
            ids.sort();
            ids
        };
        assert_eq!(ids(&forked), ids(&fixture));
        let definition = definition(json!({"id": "second"}));
        let second = wait(fixture.account.create_container(&database, definition, None)).unwrap();
        let second = of(&fixture, second);
        second.create(&item("a", 1, 1)).unwrap();
        assert_eq!(second.try_items().unwrap().len(), 1);

        // A fork of the fork has all of it, and outlives it.
        let again = wait(fixture.account.fork_database(Ref::Name("f"), "g", false)).unwrap();
        wait(fixture.account.delete_database(Ref::Name("f"), None)).unwrap();
        assert_eq!(kind(forked.try_items()), Kind::OwnerNotFound);
        let again_container = of(&fixture, again.container(Ref::Name("c")).unwrap());
        assert_eq!(ids(&again_container), ids(&fixture));
        let second = of(&fixture, again.container(Ref::Name("second")).unwrap());
        assert_eq!(second.try_items().unwrap().len(), 1);
        // So does one whose origin goes.
        wait(fixture.account.delete_database(Ref::Name("d"), None)).unwrap();
        assert_eq!(ids(&again_container).len(), 100);
    });
}

#[test]
fn names_that_are_taken_are_refused_and_only_forks_replaced() {
    both(|fixture| {
        fixture.create(&item("a", 1, 1)).unwrap();
        wait(fixture.account.create_database("other", None)).unwrap();
        let fork =
            |origin, name, replace| wait(fixture.account.fork_database(Ref::Name(origin), name, replace));
        let first = fork("d", "f", false).unwrap();
        for (name, replace) in [("f", false), ("other", false), ("other", true), ("d", true)] {
            assert_eq!(kind(fork("d", name, replace)), Kind::AlreadyExists, "{name}");
        }
        assert_eq!(kind(fork("f", "f", true)), Kind::AlreadyExists);
        assert_eq!(kind(fork("none", "g", false)), Kind::NotFound);
        assert_eq!(kind(fork("d", "a/b", false)), Kind::BadRequest);
        let held = of(&fixture, first.container(Ref::Name("c")).unwrap());
        held.create(&item("a", 2, 2)).unwrap();
        let second = fork("d", "f", true).unwrap();
        assert_ne!(first.number, second.number);
        assert_eq!(kind(held.try_items()), Kind::OwnerNotFound, "handles of the one before end");
        let second = of(&fixture, second.container(Ref::Name("c")).unwrap());
        assert_eq!(second.try_items().unwrap().len(), 1);
        assert_eq!(fixture.account.databases().len(), 3);
    });
}

#[test]
fn forks_end_with_the_process_and_leave_nothing() {
    both(|mut fixture| {
        fixture.create(&item("a", 1, 1)).unwrap();
        let (database, forked) = fork(&fixture, "f");
        forked.create(&item("a", 2, 2)).unwrap();
        wait(fixture.account.create_user(database.number, "u")).unwrap();
        let extra = definition(json!({"id": "more"}));
        wait(fixture.account.create_container(&database, extra, Some(Throughput::Manual(500)))).unwrap();
        // A change that waits for the disk takes along everything before it.
        wait(fixture.account.create_database("later", None)).unwrap();
        drop((database, forked));
        for _ in 0..2 {
            fixture.reopen();
            let names: Vec<String> = fixture.account.databases().iter().map(|it| it.name.clone()).collect();
            assert_eq!(names, ["d", "later"]);
            assert_eq!(fixture.account.offers().len(), 1);
            assert_eq!(fixture.try_items().unwrap().len(), 1);
            // Behind the removal of what was left, on the same thread.
            let made = wait(fixture.account.create_database("f", None)).unwrap();
            assert!(made.forked_from().is_none() && made.containers().is_empty());
            wait(fixture.account.delete_database(Ref::Name("f"), None)).unwrap();
        }
    });
}

/// A writer writes to one key and then, when that is done, to others, in other partitions and in another container.
/// Whatever a fork has of the later, it has of the earlier.
#[test]
fn a_fork_is_of_one_moment_and_writers_do_not_notice() {
    both(|fixture| {
        (0..50).for_each(|n| drop(fixture.create(&item(&format!("k{n}"), 1000 + n, 0)).unwrap()));
        split(&fixture);
        let database = fixture.account.database(Ref::Name("d")).unwrap();
        let second =
            wait(fixture.account.create_container(&database, definition(json!({"id": "second"})), None));
        let second = of(&fixture, second.unwrap());
        let (stop, written) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) && n < 20_000 {
                    fixture.upsert(&item("first", n, n)).unwrap();
                    second.upsert(&item("second", n, n)).unwrap();
                    fixture.upsert(&item(&format!("third{}", n % 7), n, n)).unwrap();
                    n += 1;
                    written.store(n, Ordering::Release);
                }
            });
            for round in 0..8 {
                // Lets the writer come on, and a split happen in between.
                let until = written.load(Ordering::Acquire) + 5;
                while written.load(Ordering::Acquire) < until && !writer.is_finished() {
                    std::thread::yield_now();
                }
                if round == 4 {
                    split(&fixture);
                }
                let before = written.load(Ordering::Acquire);
                let (forked_database, forked) = fork(&fixture, &format!("f{round}"));
                let after = written.load(Ordering::Acquire) + 1;
                let forked_second = of(&fixture, forked_database.container(Ref::Name("second")).unwrap());
                let count = |of: &Fixture, key: &str| {
                    let items = of.try_items().unwrap();
                    items.iter().filter(|item| text_of(item).contains(&format!("\"pk\":\"{key}"))).count()
                };
                let counts =
                    [count(&forked, "first"), count(&forked_second, "second"), count(&forked, "third")];
                assert!(counts[0] >= counts[1] && counts[1] >= counts[2], "{counts:?}");
                assert!(counts[0] - counts[2] <= 1, "{counts:?}");
                assert!(counts[2] >= before && counts[0] <= after, "{counts:?}: {before} to {after}");
                wait(fixture.account.delete_database(Ref::Number(forked_database.number), None)).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            writer.join().unwrap();
        });
    });
}

#[test]
fn a_fork_costs_the_same_whatever_is_in_the_origin() {
    let store = Arc::new(Counting::new(MemoryStore::new()));
    // Without background work, which would be counted too.
    let env = Arc::new(TestEnv::new(NOW_MS, 7));
    let account = Account::open_idle(store.clone(), EngineConfig::default(), env.clone()).unwrap();
    let database = wait(account.create_database("d", None)).unwrap();
    let container = wait(account.create_container(&database, definition(json!({})), None)).unwrap();
    let fixture = Fixture::of(store.clone(), env, EngineConfig::default(), account, container);
    for round in 0..3 {
        (0..100).for_each(|n| drop(fixture.create(&item("a", round * 100 + n, n)).unwrap()));
        let before = store.counted();
        wait(fixture.account.fork_database(Ref::Name("d"), &format!("f{round}"), false)).unwrap();
        let after = store.counted();
        assert_eq!((after.commits - before.commits, after.scans - before.scans), (1, 0));
    }
}

#[test]
fn a_store_without_forks_says_so() {
    let store: Arc<dyn Store> = Arc::new(Handle(Arc::new(MemoryStore::new())));
    let env = Arc::new(TestEnv::new(NOW_MS, 7));
    let account = Account::open(store, EngineConfig::default(), env).unwrap();
    let database = wait(account.create_database("d", None)).unwrap();
    wait(account.create_container(&database, definition(json!({})), None)).unwrap();
    let refused = wait(account.fork_database(Ref::Name("d"), "f", false)).err().unwrap();
    assert_eq!(refused.kind, Kind::BadRequest);
    assert!(refused.message.contains("no forks"));
    assert_eq!(account.databases().len(), 1);
    // Nothing is in the way of what comes next.
    wait(account.create_database("f", None)).unwrap();
}

#[test]
fn the_change_feed_goes_on_in_a_fork_from_where_it_was_in_the_origin() {
    both(|fixture| {
        (0..10).for_each(|n| drop(fixture.create(&item("a", n, 0)).unwrap()));
        let (_, position) = fixture.try_changes(&Scope::All).unwrap();
        let (_, forked) = fork(&fixture, "f");
        forked.upsert(&item("a", 3, 1)).unwrap();
        let (changes, lsn) = forked.try_changes(&Scope::All).unwrap();
        assert_eq!((changes.len(), lsn), (10, position + 1));
        let page = PageRequest::new(100);
        let from = ChangesFrom::Beginning;
        assert_eq!(wait(fixture.container.read_changes(&Scope::All, from, &page)).unwrap().items.len(), 10);
    });
}
