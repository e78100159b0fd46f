//! A catalog whose store goes away and comes back: a change is made or it is not, whoever asked may not know, but the
//! catalog does as soon as it can read its rows; handles stay, and partitions of a split serve on one side only.

mod items_support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use items_support::*;
use orrery_engine::{Account, EngineConfig, Kind, Ref, TestEnv};
use orrery_storage::doubles::{Fault, Flaky, Line};
use orrery_storage::{Direction, KeyRange, MemoryStore, SpaceId, Store, TABLES};
use serde_json::json;

fn flaky() -> (Fixture, Line) {
    let store = Flaky::new(MemoryStore::new(), 1);
    let line = store.line();
    (Fixture::over(Arc::new(store), EngineConfig::default(), json!({}), 400), line)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Asks until the store is back.
fn eventually<T>(mut ask: impl FnMut() -> orrery_engine::Result<T>) -> T {
    let mut found = None;
    until("the store is back and the account is not", || match ask() {
        Ok(value) => {
            found = Some(value);
            true
        }
        Err(error) => {
            assert!(matches!(error.kind, Kind::Unavailable | Kind::RangeGone), "{error:?}");
            false
        }
    });
    found.unwrap()
}

#[test]
fn what_became_of_a_change_is_found_out_at_once_where_the_store_answers() {
    for (fault, made) in [
        (Fault::Refuse, false),
        (Fault::LoseRequest, false),
        (Fault::LoseAnswer, true),
        (Fault::LoseOwnership, false),
    ] {
        let (fixture, line) = flaky();
        let account = &fixture.account;
        line.fail_next(fault);
        match (wait(account.create_database("new", None)), made) {
            (Ok(database), true) => assert_eq!(database.name, "new"),
            (Err(error), false) => assert_eq!(error.kind, Kind::Unavailable, "{fault:?}"),
            (result, _) => panic!("{fault:?}: {:?}", result.err()),
        }
        assert_eq!(account.database(Ref::Name("new")).is_ok(), made, "{fault:?}");
        let next = eventually(|| wait(account.create_database("next", None)));
        assert_eq!(account.databases().len(), if made { 3 } else { 2 }, "{fault:?}");
        assert!(account.databases().iter().filter(|other| other.number == next.number).count() == 1);
        let database = account.database(Ref::Name("d")).unwrap();
        assert!(Arc::ptr_eq(&database.container(Ref::Name("c")).unwrap(), &fixture.container));
        fixture.create(r#"{"id":"1","pk":"a"}"#).unwrap();
    }
}

#[test]
fn while_the_store_is_away_changes_are_refused_and_afterwards_the_catalog_shows_what_was_made() {
    for (fault, made) in [(Fault::LoseAnswer, true), (Fault::LoseRequest, false)] {
        let (fixture, line) = flaky();
        let account = &fixture.account;
        let database = account.database(Ref::Name("d")).unwrap();
        line.cut_after(0, fault);
        let json = json!({"id": "late", "partitionKey": {"paths": ["/pk"], "version": 2}, "defaultTtl": 7});
        let late = || wait(account.create_container(&database, definition(json.clone()), None));
        assert_eq!(kind(late()), Kind::OutcomeUnknown, "{fault:?}");
        assert_eq!(kind(late()), Kind::Unavailable);
        assert!(account.outage_figures().catalog_lost);
        assert_eq!(kind(wait(account.delete_container(&fixture.container, None))), Kind::Unavailable);
        line.mend();
        if made {
            until("the change shows by itself", || database.container(Ref::Name("late")).is_ok());
            assert_eq!(kind(late()), Kind::AlreadyExists);
        } else {
            eventually(late);
        }
        let found = account.database(Ref::Name("d")).unwrap();
        assert!(Arc::ptr_eq(&found, &database));
        assert!(Arc::ptr_eq(&found.container(Ref::Name("c")).unwrap(), &fixture.container));
        assert_eq!(found.container(Ref::Name("late")).unwrap().definition().default_ttl, Some(7));
        assert_eq!(found.containers().len(), 2);
        assert!(!account.outage_figures().catalog_lost);
    }
}

#[test]
fn a_replace_and_a_delete_that_were_made_unnoticed_reach_the_handles_that_are_held() {
    let (fixture, line) = flaky();
    let account = &fixture.account;
    fixture.create(r#"{"id":"1","pk":"a"}"#).unwrap();
    line.cut_after(0, Fault::LoseAnswer);
    let replaced = definition(json!({"defaultTtl": 9}));
    assert_eq!(
        kind(wait(account.replace_container(&fixture.container, replaced, None))),
        Kind::OutcomeUnknown
    );
    assert_eq!(fixture.read("a", "1").unwrap().id(), "1", "partitions that have their store go on");
    line.mend();
    until("the definition follows", || fixture.container.definition().default_ttl == Some(9));
    assert_eq!(fixture.read("a", "1").unwrap().id(), "1");

    line.cut_after(0, Fault::LoseAnswer);
    assert_eq!(kind(wait(account.delete_container(&fixture.container, None))), Kind::OutcomeUnknown);
    line.mend();
    until("the container is gone", || account.database(Ref::Name("d")).unwrap().containers().is_empty());
    until("its handle refuses", || kind_of(fixture.read("a", "1")) == Some(Kind::OwnerNotFound));
}

fn kind_of<T>(result: orrery_engine::Result<T>) -> Option<Kind> {
    result.err().map(|error| error.kind)
}

/// Two accounts over one store: the one that lost the catalog sees what the other does, and takes it back when asked.
#[test]
fn a_catalog_that_another_owner_has_taken_is_followed() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let fixture = Fixture::over(store.clone(), EngineConfig::default(), json!({}), 400);
    let env = Arc::new(TestEnv::new(NOW_MS, 8));
    let other = Account::open(store, EngineConfig::default(), env).unwrap();
    wait(other.create_database("first", None)).unwrap();
    assert_eq!(kind(wait(fixture.account.create_database("second", None))), Kind::Unavailable);
    until("what the other has made shows", || fixture.account.database(Ref::Name("first")).is_ok());
    let third = wait(other.create_database("third", None)).unwrap();
    wait(other.create_container(&third, definition(json!({"id": "x"})), None)).unwrap();
    until("and what it makes later", || {
        fixture.account.database(Ref::Name("third")).is_ok_and(|third| !third.containers().is_empty())
    });
    wait(other.delete_database(Ref::Name("first"), None)).unwrap();
    until("and what it deletes", || fixture.account.database(Ref::Name("first")).is_err());
    // Asked for a change, it takes the catalog back.
    wait(fixture.account.create_database("second", None)).unwrap();
    assert_eq!(kind(wait(other.create_database("fourth", None))), Kind::Unavailable);
    until("the other follows", || other.database(Ref::Name("second")).is_ok());
}

/// After a restart every row is as it should be, and spaces that belong to no range become empty.
fn check_left_overs(store: &Handle) {
    let env = Arc::new(TestEnv::new(NOW_MS, 9));
    let account = Account::open(Arc::new(store.clone()), EngineConfig::default(), env).unwrap();
    let check = account.check(&mut |_, _| ());
    assert!(check.findings.is_empty(), "{:?}", check.findings);
    let used: Vec<u32> = account.spaces().iter().map(|owner| owner.space).collect();
    let is_empty = |space: u32| {
        let snapshot = store.open_space(SpaceId(space)).unwrap().snapshot().unwrap();
        let row = |table| snapshot.scan(table, KeyRange::all(), Direction::Forward).next_row();
        TABLES.into_iter().all(|table| row(table).is_none())
    };
    // More than were ever given out.
    let unused = || (1..40).filter(|space| !used.contains(space));
    until("what a split has left behind is dropped", || unused().all(is_empty));
}

/// Whatever commit of a split is lost or written unnoticed, and whatever can be reached afterwards: every item is there
/// once, on one side, and the container goes on.
#[test]
fn a_split_is_made_or_undone_whichever_of_its_commits_nobody_answers() {
    let mut made = 0;
    for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::Refuse, Fault::LoseOwnership] {
        for nth in 0.. {
            let inner = Handle(Arc::new(MemoryStore::new()));
            let store = Flaky::new(inner.clone(), 1);
            let line = store.line();
            let fixture = Fixture::over(Arc::new(store), EngineConfig::default(), json!({}), 400);
            for n in 0..30 {
                fixture.create(&format!(r#"{{"id":"{n}","pk":"k{n}"}}"#)).unwrap();
            }
            line.cut_after(nth, fault);
            let job = fixture.account.split_partition(&fixture.container, None).unwrap();
            let split = wait(job.done());
            let met = !line.is_waiting();
            line.mend();
            if let Err(error) = &split {
                let passing = matches!(
                    error.kind,
                    Kind::Unavailable | Kind::OutcomeUnknown | Kind::RangeGone | Kind::Conflict
                );
                assert!(passing, "{fault:?} {nth}: {error:?}");
            }
            let items = eventually(|| fixture.try_items());
            let mut ids: Vec<u32> = items.iter().map(|item| item.id().parse().unwrap()).collect();
            ids.sort_unstable();
            assert_eq!(ids, (0..30).collect::<Vec<_>>(), "{fault:?} {nth}");
            let ranges = fixture.container.ranges().len();
            assert!(split.is_err() || ranges == 2, "{fault:?} {nth}");
            made += usize::from(split.is_err() && ranges == 2);
            for n in 30..60 {
                eventually(|| fixture.create(&format!(r#"{{"id":"{n}","pk":"k{n}"}}"#)));
            }
            for partition in eventually(|| fixture.container.partitions()) {
                assert_eq!(partition.check_index().unwrap(), [""; 0], "{fault:?} {nth}");
            }
            assert_eq!(fixture.container.usage().items, 60, "{fault:?} {nth}");
            // The next one succeeds, and what an undone one has left is dropped.
            eventually(|| wait(fixture.account.split_partition(&fixture.container, None)?.done()));
            assert_eq!(fixture.container.ranges().len(), ranges + 1, "{fault:?} {nth}");
            let ids: std::collections::BTreeSet<u32> = {
                let items = eventually(|| fixture.try_items());
                items.iter().map(|item| item.id().parse().unwrap()).collect()
            };
            assert_eq!(ids.len(), 60, "{fault:?} {nth}");
            drop(fixture);
            check_left_overs(&inner);
            if !met {
                break;
            }
        }
    }
    assert!(made > 0, "no split was found to have been made after all");
}
