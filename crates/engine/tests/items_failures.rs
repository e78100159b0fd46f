//! A store that stops taking writes: what was acknowledged stays, what was not is never seen, nothing is written after.

mod items_support;

use std::sync::Arc;

use items_support::*;
use orrery_engine::{ChangesFrom, EngineConfig, Kind, Operation, PageRequest, Scope};
use orrery_storage::doubles::{Counting, FailAfter};
use orrery_storage::{MemoryStore, Store};
use serde_json::json;

/// Commits that making a database and a container takes.
fn commits_of_setup() -> u64 {
    let store = Arc::new(Counting::new(MemoryStore::new()));
    let shared: Arc<dyn Store> = store.clone();
    let fixture = Fixture::over(shared, EngineConfig::default(), json!({}), 400);
    fixture.only_partition();
    store.counted().commits
}

#[test]
fn after_a_failed_commit_only_what_was_acknowledged_is_seen_and_nothing_is_written() {
    let setup = commits_of_setup();
    for good in 0..12 {
        let inner = Handle(Arc::new(MemoryStore::new()));
        let store = Arc::new(FailAfter::new(inner.clone(), setup + good));
        let mut fixture = Fixture::over(store, EngineConfig::default(), json!({}), 400);
        // All are submitted before any is waited for, so later ones are prepared on top of those that will fail.
        let writes: Vec<_> = (0..20)
            .map(|n| {
                let text = format!(r#"{{"id":"{}","pk":"a","n":{n}}}"#, n % 5);
                let (pk, id, document) = parts(&text);
                fixture.container.write_item(&key(&pk), Operation::Upsert { id, document }.into())
            })
            .collect();
        let mut acknowledged = 0;
        for write in writes {
            match wait(write) {
                Ok(reply) => {
                    acknowledged += 1;
                    assert_eq!(reply.at.lsn, acknowledged);
                }
                Err(error) => assert_eq!(error.kind, Kind::WritesStopped),
            }
        }
        assert_eq!(acknowledged, good);
        let check = |fixture: &Fixture| {
            for id in 0..5u64 {
                let last = (0..good).filter(|n| n % 5 == id).max();
                let expected = last.map(|n| format!(r#"{{"id":"{id}","pk":"a","n":{n}}}"#));
                assert_eq!(fixture.text("a", &id.to_string()), expected, "{good} good commits");
            }
            assert_eq!(fixture.only_partition().lsn(), good);
            assert_eq!(fixture.stored_items(), good.min(5));
            let page = wait(fixture.container.read_changes(
                &Scope::All,
                ChangesFrom::Beginning,
                &PageRequest::new(100),
            ))
            .unwrap();
            assert_eq!((page.items.len() as u64, page.lsn), (good.min(5), good));
        };
        check(&fixture);
        let refused = fixture.create(r#"{"id":"later","pk":"a"}"#).unwrap_err();
        assert_eq!(refused.kind, Kind::WritesStopped);
        assert!(refused.message.contains("a test made it fail"), "{refused}");
        assert_eq!(kind(wait(fixture.container.delete_partition_key(&key("a")))), Kind::WritesStopped);
        assert_eq!(kind(fixture.delete("a", "0")), Kind::WritesStopped);
        assert!(!fixture.only_partition().upkeep_is_due());
        check(&fixture);
        // The same again after a restart on a store that works.
        fixture.store = Arc::new(inner);
        fixture.reopen();
        check(&fixture);
        fixture.create(r#"{"id":"later","pk":"a"}"#).unwrap();
        assert_eq!(fixture.only_partition().lsn(), good + 1);
    }
}

#[test]
fn a_refusal_that_rests_on_a_failed_write_is_not_told() {
    let setup = commits_of_setup();
    let store = Arc::new(FailAfter::new(MemoryStore::new(), setup));
    let fixture = Fixture::over(store, EngineConfig::default(), json!({}), 400);
    let create = || {
        let (pk, id, document) = parts(r#"{"id":"1","pk":"a"}"#);
        fixture.container.write_item(&key(&pk), Operation::Create { id, document }.into())
    };
    let (first, second) = (create(), create());
    assert_eq!(kind(wait(first)), Kind::WritesStopped);
    assert_eq!(kind(wait(second)), Kind::WritesStopped, "the item it would conflict with does not exist");
}

#[test]
fn a_newer_owner_of_the_space_ends_the_old_one() {
    let mut fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"1","pk":"a"}"#).unwrap();
    let old = (fixture.account.clone(), fixture.container.clone());
    fixture.reopen();
    fixture.create(r#"{"id":"2","pk":"a"}"#).unwrap();
    let (_, id, document) = parts(r#"{"id":"3","pk":"a"}"#);
    assert_eq!(
        kind(wait(old.1.write_item(&key("a"), Operation::Create { id, document }.into()))),
        Kind::RangeGone
    );
    assert_eq!(fixture.list(&Scope::All, 10), ["1", "2"]);
}
