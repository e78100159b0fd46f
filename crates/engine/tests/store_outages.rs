//! A store that goes away and comes back: a partition that has lost it is opened again and shows what is there. What
//! was acknowledged always is, what was not is there as a whole or not at all, and nobody has to restart anything.

mod items_support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use items_support::*;
use orrery_engine::{EngineConfig, Kind, Operation, Scope};
use orrery_storage::MemoryStore;
use orrery_storage::doubles::{Fault, FaultRates, Flaky, Line};
use serde_json::json;

fn flaky() -> (Fixture, Line) {
    let store = Flaky::new(MemoryStore::new(), 1);
    let line = store.line();
    (Fixture::over(Arc::new(store), EngineConfig::default(), json!({}), 400), line)
}

/// Asks until the store is back.
fn eventually<T>(mut ask: impl FnMut() -> orrery_engine::Result<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match ask() {
            Ok(value) => return value,
            Err(error) => {
                assert_eq!(error.kind, Kind::Unavailable, "{error:?}");
                assert!(Instant::now() < deadline, "the store is back and the partition is not");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

fn changes(fixture: &Fixture) -> (Vec<String>, u64) {
    let (items, lsn) = eventually(|| fixture.try_changes(&Scope::All));
    (items.iter().map(|item| item.id().to_owned()).collect(), lsn)
}

#[test]
fn after_each_fault_the_partition_is_opened_again_by_the_next_request() {
    for (fault, told, written) in [
        (Fault::Refuse, Kind::Unavailable, false),
        (Fault::LoseRequest, Kind::OutcomeUnknown, false),
        (Fault::LoseAnswer, Kind::OutcomeUnknown, true),
        (Fault::LoseOwnership, Kind::RangeGone, false),
    ] {
        let (fixture, line) = flaky();
        fixture.create(r#"{"id":"1","pk":"a"}"#).unwrap();
        let lost = fixture.only_partition();
        line.fail_next(fault);
        assert_eq!(kind(fixture.create(r#"{"id":"2","pk":"a"}"#)), told, "{fault:?}");
        // Whoever still has the old partition is not shown anything that may be old.
        let asked = lost.read_item(
            &key("a"),
            &fixture.container.definition().partition_key.effective(&key("a")),
            "1",
            &Default::default(),
        );
        assert_eq!(kind(asked), Kind::Unavailable, "{fault:?}");
        let after = eventually(|| fixture.try_items());
        let expected: &[&str] = if written { &["1", "2"] } else { &["1"] };
        assert_eq!(after.iter().map(|item| item.id()).collect::<Vec<_>>(), expected, "{fault:?}");
        assert!(!Arc::ptr_eq(&lost, &fixture.only_partition()));
        let reply = fixture.create(r#"{"id":"3","pk":"a"}"#).unwrap();
        assert_eq!(reply.at.lsn, expected.len() as u64 + 1, "{fault:?}");
        let (ids, lsn) = changes(&fixture);
        assert_eq!((ids.len(), lsn), (expected.len() + 1, reply.at.lsn));
        assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0]);
        assert_eq!(fixture.stored_items(), expected.len() as u64 + 1);
    }
}

#[test]
fn while_the_store_is_away_everything_is_refused_for_now_and_afterwards_it_goes_on() {
    let (fixture, line) = flaky();
    fixture.create(r#"{"id":"1","pk":"a"}"#).unwrap();
    line.cut();
    assert_eq!(kind(fixture.create(r#"{"id":"2","pk":"a"}"#)), Kind::OutcomeUnknown);
    for _ in 0..10 {
        assert_eq!(kind(fixture.read("a", "1")), Kind::Unavailable);
        assert_eq!(kind(fixture.create(r#"{"id":"3","pk":"a"}"#)), Kind::Unavailable);
        assert_eq!(kind(wait(fixture.container.delete_partition_key(&key("a")))), Kind::Unavailable);
        assert_eq!(kind(fixture.try_items()), Kind::Unavailable);
        std::thread::sleep(Duration::from_millis(3));
    }
    assert_eq!(fixture.container.usage().items, 0, "a partition that cannot be opened is not counted");
    let figures = fixture.account.outage_figures();
    assert_eq!((figures.partitions_lost, figures.partitions_reopened, figures.catalog_lost), (1, 0, false));
    line.mend();
    assert_eq!(eventually(|| fixture.read("a", "1")).id(), "1");
    assert_eq!(kind(fixture.read("a", "2")), Kind::NotFound);
    fixture.create(r#"{"id":"2","pk":"a"}"#).unwrap();
    assert_eq!(fixture.container.usage().items, 2);
    let figures = fixture.account.outage_figures();
    assert_eq!((figures.partitions_lost, figures.partitions_reopened, figures.catalog_lost), (0, 1, false));
}

/// Writes are submitted before any is waited for, so later ones are prepared on top of those that fail; the last ones
/// may find the partition open again, and some may have been routed again and come after others.
#[test]
fn of_writes_in_a_row_every_acknowledged_one_is_there_once_and_where_its_lsn_says() {
    for (seed, fault) in (0..60).zip([Fault::LoseAnswer, Fault::LoseRequest, Fault::Refuse].iter().cycle()) {
        let store = Flaky::new(MemoryStore::new(), seed);
        let line = store.line();
        let fixture = Fixture::over(Arc::new(store), EngineConfig::default(), json!({}), 400);
        let submit = |n: usize| {
            let (pk, id, document) = parts(&format!(r#"{{"id":"{n}","pk":"a"}}"#));
            fixture.container.write_item(&key(&pk), Operation::Create { id, document }.into())
        };
        let first: Vec<_> = (0..5).map(submit).collect();
        let mut acknowledged: Vec<(usize, u64)> =
            first.into_iter().enumerate().map(|(n, write)| (n, wait(write).unwrap().at.lsn)).collect();
        line.fail_next(*fault);
        let writes: Vec<_> = (5..60).map(|n| (n, submit(n))).collect();
        for (n, write) in writes {
            match wait(write) {
                Ok(reply) => acknowledged.push((n, reply.at.lsn)),
                Err(error) => assert!(
                    matches!(error.kind, Kind::OutcomeUnknown | Kind::Unavailable | Kind::RangeGone),
                    "{error:?}"
                ),
            }
        }
        let (ids, lsn) = changes(&fixture);
        let there: Vec<usize> = ids.iter().map(|id| id.parse().unwrap()).collect();
        assert_eq!(there.iter().collect::<BTreeSet<_>>().len(), there.len(), "seed {seed}: {there:?}");
        // Every commit is one item here, so an LSN is a place in the feed.
        for (n, lsn) in &acknowledged {
            assert_eq!(there.get(*lsn as usize - 1), Some(n), "seed {seed}: {there:?} {acknowledged:?}");
        }
        assert_eq!(there.contains(&5), *fault == Fault::LoseAnswer, "seed {seed}: {there:?}");
        assert_eq!(lsn, there.len() as u64, "seed {seed}");
        assert_eq!(eventually(|| fixture.create(r#"{"id":"next","pk":"a"}"#)).at.lsn, lsn + 1);
        assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0]);
    }
}

#[test]
fn the_sweeper_opens_a_lost_partition_again_when_nobody_asks() {
    let (fixture, line) = flaky();
    line.fail_next(Fault::Refuse);
    assert_eq!(kind(fixture.create(r#"{"id":"1","pk":"a"}"#)), Kind::Unavailable);
    let deadline = Instant::now() + Duration::from_secs(20);
    while fixture.account.outage_figures().partitions_lost > 0 {
        assert!(Instant::now() < deadline, "nobody opened the partition");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_sweeper_takes_nothing_back_that_another_owner_has_taken() {
    let (fixture, line) = flaky();
    line.fail_next(Fault::LoseOwnership);
    assert_eq!(kind(fixture.create(r#"{"id":"1","pk":"a"}"#)), Kind::RangeGone);
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(fixture.account.outage_figures().partitions_lost, 1);
    eventually(|| fixture.create(r#"{"id":"1","pk":"a"}"#));
    assert_eq!(fixture.account.outage_figures().partitions_lost, 0);
}

/// A script's changes are a commit like any other, and are told the same way.
#[test]
fn a_script_whose_answer_is_lost_is_not_told_that_nothing_happened() {
    let (fixture, line) = flaky();
    fixture.create(r#"{"id":"1","pk":"a"}"#).unwrap();
    line.fail_next(Fault::LoseAnswer);
    let drafted = fixture.container.draft(&key("a"), &Vec::new(), Default::default(), |draft| {
        let (_, id, document) = parts(r#"{"id":"2","pk":"a"}"#);
        draft.write(Operation::Create { id, document }.into())
    });
    assert_eq!(kind(drafted), Kind::OutcomeUnknown);
    assert_eq!(eventually(|| fixture.read("a", "2")).id(), "2");
}

/// An index that is made anew and items that expire are work of many commits; whichever of them fails, it goes on from
/// where the rows say it is.
#[test]
fn background_work_goes_on_in_the_partition_that_is_opened_next() {
    let mut faults = 0;
    for seed in 0..4 {
        let store = Flaky::new(MemoryStore::new(), seed);
        let line = store.line();
        let json = json!({"defaultTtl": -1, "indexingPolicy": {"excludedPaths": [{"path": "/*"}], "includedPaths": []}});
        let fixture = Fixture::over(Arc::new(store), EngineConfig::default(), json, 400);
        for n in 0..400 {
            let ttl = if n % 2 == 0 { r#","ttl":5"# } else { "" };
            fixture.create(&format!(r#"{{"id":"{n}","pk":"k{n}","a":{n},"b":"{n}"{ttl}}}"#)).unwrap();
        }
        fixture.replace_definition(json!({"defaultTtl": -1}));
        fixture.env.advance_ms(60_000);
        line.set(FaultRates { commits: 500, claims: 200, ..FaultRates::default() });
        let deadline = Instant::now() + Duration::from_secs(60);
        while fixture.container.index_progress() < 100 || fixture.stored_items() != 200 {
            // Whatever it could not do is done the next time, by this sweep or by the account's own.
            drop(fixture.try_sweep());
            assert!(Instant::now() < deadline, "seed {seed}: the work does not come to an end");
            std::thread::sleep(Duration::from_millis(2));
        }
        faults += line.faults();
        line.set(FaultRates::default());
        eventually(|| fixture.try_sweep());
        assert_eq!(fixture.container.index_progress(), 100, "seed {seed}");
        assert_eq!(fixture.stored_items(), 200, "seed {seed}");
        assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0], "seed {seed}");
        let check = fixture.account.check(&mut |_, _| ());
        assert!(check.findings.is_empty(), "seed {seed}: {:?}", check.findings);
    }
    assert!(faults > 0);
}
