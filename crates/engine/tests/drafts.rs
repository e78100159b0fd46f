//! Drafts: transactions of scripts, which see a logical partition as it was, change it as one, and hold up nobody.

mod items_support;

use std::sync::atomic::{AtomicUsize, Ordering};

use items_support::*;
use orrery_engine::{
    ChangesFrom, Draft, Drafted, Error, Kind, Operation, Outcome, PageRequest, RequestClass, Result, Scope,
    ScriptDefinition, ScriptKind, TriggerOperation, TriggerTime, Write,
};
use serde_json::json;

fn create(text: &str) -> Write {
    let (_, id, document) = parts(text);
    Operation::Create { id, document }.into()
}

fn replace(text: &str) -> Write {
    let (_, id, document) = parts(text);
    Operation::Replace { id, document }.into()
}

fn draft<T>(fixture: &Fixture, work: impl FnOnce(&mut Draft<'_>) -> Result<T>) -> Result<Drafted<T>> {
    fixture.container.draft(&key("a"), &Vec::new(), RequestClass::default(), work)
}

fn ids(draft: &Draft<'_>, after: Option<u64>) -> Vec<String> {
    let mut ids = Vec::new();
    draft
        .scan(after, &mut |item| {
            ids.push(item.id().to_owned());
            Ok(true)
        })
        .unwrap();
    ids
}

/// How many changes the feed shows, read in pages.
fn changes(fixture: &Fixture) -> usize {
    let (mut count, mut from) = (0, ChangesFrom::Beginning);
    loop {
        let page = wait(fixture.container.read_changes(&Scope::All, from, &PageRequest::new(70))).unwrap();
        count += page.items.len();
        from = ChangesFrom::After(page.lsn);
        if !page.more {
            return count;
        }
    }
}

#[test]
fn what_a_draft_does_is_seen_by_itself_and_by_others_when_it_is_done() {
    for fixture in [Fixture::new(json!({})), Fixture::embedded(json!({}))] {
        fixture.create(r#"{"id":"old","pk":"a"}"#).unwrap();
        fixture.create(r#"{"id":"elsewhere","pk":"b"}"#).unwrap();
        let drafted = draft(&fixture, |draft| {
            let (outcome, item) = draft.write(create(r#"{"id":"new","pk":"a"}"#))?;
            assert_eq!((outcome, item.unwrap().id().to_owned()), (Outcome::Created, "new".to_owned()));
            draft.write(replace(r#"{"id":"old","pk":"a","n":1}"#))?;
            assert_eq!(text_of(&draft.read("old", None)?), r#"{"id":"old","pk":"a","n":1}"#);
            assert_eq!(ids(draft, None), ["old", "new"]);
            let (_, gone) = draft.write(Operation::Delete { id: "old".into() }.into())?;
            assert!(gone.is_none());
            assert_eq!(draft.read("old", None).unwrap_err().kind, Kind::NotFound);
            assert_eq!(ids(draft, None), ["new"]);
            assert_eq!(fixture.text("a", "new"), None, "nobody else sees a draft");
            assert!(fixture.text("a", "old").is_some());
            Ok(draft.charge_ru())
        })
        .unwrap();
        assert!(drafted.charge_ru > 15.0 && drafted.value == drafted.charge_ru);
        assert!(drafted.rewritten.is_empty());
        assert!(fixture.text("a", "new").is_some() && fixture.text("a", "old").is_none());
        assert_eq!(fixture.list(&Scope::All, 10), ["elsewhere", "new"]);
    }
}

#[test]
fn a_draft_that_fails_leaves_nothing() {
    let fixture = Fixture::new(json!({}));
    let before = fixture.only_partition().lsn();
    let failed = draft(&fixture, |draft| {
        draft.write(create(r#"{"id":"x","pk":"a"}"#))?;
        Err::<(), _>(Error::bad_request("no"))
    });
    assert_eq!(failed.unwrap_err().message, "no");
    assert_eq!((fixture.text("a", "x"), fixture.only_partition().lsn()), (None, before));
}

#[test]
fn an_operation_that_fails_leaves_the_draft_as_it_was() {
    let fixture = Fixture::new(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}));
    fixture.create(r#"{"id":"x","pk":"a","u":1}"#).unwrap();
    draft(&fixture, |draft| {
        assert_eq!(draft.write(create(r#"{"id":"x","pk":"a"}"#)).unwrap_err().kind, Kind::AlreadyExists);
        assert_eq!(
            draft.write(create(r#"{"id":"y","pk":"a","u":1}"#)).unwrap_err().kind,
            Kind::UniqueKeyViolated
        );
        assert_eq!(
            draft.write(create(r#"{"id":"y","pk":"b"}"#)).unwrap_err().kind,
            Kind::PartitionKeyMismatch
        );
        let stale = replace(r#"{"id":"x","pk":"a","u":2}"#).if_match("\"0\"");
        assert_eq!(draft.write(stale).unwrap_err().kind, Kind::PreconditionFailed);
        draft.write(create(r#"{"id":"z","pk":"a","u":3}"#))?;
        assert_eq!(
            draft.write(create(r#"{"id":"w","pk":"a","u":3}"#)).unwrap_err().kind,
            Kind::UniqueKeyViolated
        );
        Ok(())
    })
    .unwrap();
    assert_eq!(fixture.list(&Scope::All, 10), ["x", "z"]);
}

#[test]
fn a_write_in_between_is_a_conflict_and_one_elsewhere_is_not() {
    let fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"x","pk":"a"}"#).unwrap();
    let lost = draft(&fixture, |draft| {
        draft.read("x", None)?;
        fixture.replace(r#"{"id":"x","pk":"a","by":"other"}"#).unwrap();
        assert_eq!(text_of(&draft.read("x", None)?), r#"{"id":"x","pk":"a"}"#, "the snapshot stays");
        draft.write(create(r#"{"id":"y","pk":"a"}"#))
    });
    assert_eq!(lost.unwrap_err().kind, Kind::Conflict);
    assert_eq!(fixture.text("a", "y"), None);

    let drafted = draft(&fixture, |draft| {
        let (_, item) = draft.write(create(r#"{"id":"y","pk":"a"}"#))?;
        fixture.create(r#"{"id":"busy","pk":"b"}"#).unwrap();
        let etag = item.as_ref().unwrap().etag.to_string();
        draft.write(replace(r#"{"id":"y","pk":"a","n":2}"#).if_match(etag))?;
        Ok(item.unwrap())
    })
    .unwrap();
    let stored = fixture.read("a", "y").unwrap();
    let last = drafted.rewritten.last().unwrap();
    assert_eq!((last.after.etag, last.after.number), (stored.etag, stored.number));
    assert_eq!(drafted.rewritten[0].before.etag, drafted.value.etag);
    assert_ne!(stored.etag, drafted.value.etag);
    assert_eq!(drafted.at.lsn, stored.lsn);
}

#[test]
fn a_create_that_somebody_else_made_first_is_a_conflict() {
    let fixture = Fixture::new(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}));
    for other in [r#"{"id":"x","pk":"a","u":9}"#, r#"{"id":"o","pk":"a","u":1}"#] {
        let lost = draft(&fixture, |draft| {
            draft.write(create(r#"{"id":"x","pk":"a","u":1}"#))?;
            fixture.create(other).unwrap();
            Ok(())
        });
        assert_eq!(lost.unwrap_err().kind, Kind::Conflict);
        fixture.delete("a", if other.contains("\"o\"") { "o" } else { "x" }).unwrap();
    }
}

#[test]
fn a_draft_may_have_more_changes_than_one_lsn_has_positions() {
    for busy in [false, true] {
        let mut fixture = Fixture::embedded(json!({}));
        fixture.create(r#"{"id":"first","pk":"a"}"#).unwrap();
        let before = fixture.only_partition().lsn();
        let drafted = draft(&fixture, |draft| {
            for n in 0..300 {
                draft.write(create(&format!(r#"{{"id":"{n}","pk":"a"}}"#)))?;
            }
            if busy {
                fixture.create(r#"{"id":"busy","pk":"b"}"#).unwrap();
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(drafted.at.lsn, before + 3 + u64::from(busy));
        assert_eq!(fixture.stored_items(), 301 + u64::from(busy));
        fixture.create(r#"{"id":"last","pk":"a"}"#).unwrap();
        fixture.reopen();
        let ids = fixture.list(&Scope::Key(key("a")), 50);
        assert_eq!(
            (ids.len(), ids[0].as_str(), ids[150].as_str(), ids[301].as_str()),
            (302, "first", "149", "last")
        );
        let etags: std::collections::HashSet<_> =
            ids.iter().map(|id| fixture.read("a", id).unwrap().etag).collect();
        assert_eq!(etags.len(), 302, "every version has an etag of its own");
        assert_eq!(changes(&fixture), 302 + usize::from(busy));
    }
}

#[test]
fn a_scan_goes_on_where_it_was_also_among_its_own_changes() {
    let fixture = Fixture::new(json!({}));
    for id in ["1", "2", "3"] {
        fixture.create(&format!(r#"{{"id":"{id}","pk":"a"}}"#)).unwrap();
    }
    draft(&fixture, |draft| {
        draft.write(create(r#"{"id":"4","pk":"a"}"#))?;
        draft.write(Operation::Delete { id: "2".into() }.into())?;
        draft.write(replace(r#"{"id":"3","pk":"a","n":1}"#))?;
        assert_eq!(ids(draft, None), ["1", "3", "4"]);
        let first = draft.read("1", None)?.number;
        assert_eq!(ids(draft, Some(first)), ["3", "4"]);
        let fourth = draft.read("4", None)?.number;
        assert_eq!(draft.id_of(fourth)?.as_deref(), Some("4"));
        assert_eq!(draft.id_of(first)?.as_deref(), Some("1"));
        Ok(())
    })
    .unwrap();
}

#[test]
fn items_that_are_over_are_not_there() {
    let fixture = Fixture::new(json!({"defaultTtl": 10}));
    fixture.create(r#"{"id":"x","pk":"a"}"#).unwrap();
    fixture.env.advance_ms(20_000);
    draft(&fixture, |draft| {
        assert!(ids(draft, None).is_empty());
        assert_eq!(draft.read("x", None).unwrap_err().kind, Kind::NotFound);
        draft.write(create(r#"{"id":"x","pk":"a","again":1}"#)).map(drop)
    })
    .unwrap();
    assert!(fixture.text("a", "x").is_some());
}

#[test]
fn counters_raised_by_many_drafts_lose_no_step() {
    let fixture = Fixture::embedded(json!({}));
    fixture.create(r#"{"id":"n","pk":"a","n":0}"#).unwrap();
    let conflicts = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    loop {
                        let step = draft(&fixture, |draft| {
                            let item = draft.read("n", None)?;
                            let n = item.body().get("n").unwrap().as_number().unwrap().as_f64() as u64 + 1;
                            draft.write(replace(&format!(r#"{{"id":"n","pk":"a","n":{n}}}"#)))
                        });
                        match step {
                            Ok(_) => break,
                            Err(error) => assert_eq!(error.kind, Kind::Conflict, "{error}"),
                        }
                        conflicts.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(fixture.text("a", "n").unwrap(), r#"{"id":"n","pk":"a","n":200}"#);
}

#[test]
fn scripts_are_kept_found_and_go_with_their_container() {
    let mut fixture = Fixture::new(json!({}));
    let define = |kind, id: &str, body: &str| ScriptDefinition {
        kind,
        id: id.to_owned(),
        body: body.to_owned(),
        trigger: (kind == ScriptKind::Trigger).then_some((TriggerTime::Pre, TriggerOperation::All)),
        spelling: Default::default(),
    };
    let account = fixture.account.clone();
    let first =
        wait(account.create_script(&fixture.container, define(ScriptKind::Procedure, "p", "1"))).unwrap();
    wait(account.create_script(&fixture.container, define(ScriptKind::Trigger, "p", "2"))).unwrap();
    let again = wait(account.create_script(&fixture.container, define(ScriptKind::Procedure, "p", "3")));
    assert_eq!(again.unwrap_err().kind, Kind::AlreadyExists);
    let renamed = define(ScriptKind::Procedure, "q", "4");
    let stale = account.replace_script(&fixture.container, first.number, renamed.clone(), Some("\"no\""));
    assert_eq!(wait(stale).unwrap_err().kind, Kind::PreconditionFailed);
    let second = wait(account.replace_script(&fixture.container, first.number, renamed, None)).unwrap();
    assert_eq!(second.number, first.number);
    assert_ne!(second.etag, first.etag);
    drop(account);
    fixture.reopen();
    let scripts = fixture.container.scripts();
    assert!(scripts.by_id(ScriptKind::Procedure, "p").is_none());
    assert_eq!(scripts.by_id(ScriptKind::Procedure, "q"), Some(&second));
    assert_eq!(scripts.by_number(ScriptKind::Procedure, first.number), Some(&second));
    assert_eq!(scripts.by_id(ScriptKind::Trigger, "p").unwrap().definition.body, "2");
    let kind = ScriptKind::Trigger;
    let number = scripts.by_id(kind, "p").unwrap().number;
    wait(fixture.account.delete_script(&fixture.container, kind, number, None)).unwrap();
    assert_eq!(fixture.container.scripts().count(kind), 0);
    for n in 0..kind.count_max() {
        wait(fixture.account.create_script(&fixture.container, define(kind, &n.to_string(), ""))).unwrap();
    }
    let more = wait(fixture.account.create_script(&fixture.container, define(kind, "more", "")));
    assert_eq!(more.unwrap_err().kind, Kind::Forbidden);
    wait(fixture.account.delete_container(&fixture.container, None)).unwrap();
    let store = fixture.store.clone();
    let rows = store.open_space(orrery_storage::SpaceId(0)).unwrap().snapshot().unwrap();
    let all = orrery_storage::KeyRange::all();
    let mut rows = rows.scan(orrery_storage::Table::Feed, all, orrery_storage::Direction::Forward);
    while let Some(row) = rows.next_row() {
        assert_ne!(row.unwrap().key[0], 0x20, "a script outlived its container");
    }
}
