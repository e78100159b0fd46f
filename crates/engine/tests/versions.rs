//! All versions and deletes: every change by itself, for as long as the policy keeps it, through splits and merges.

mod items_support;

use items_support::*;
use orrery_engine::{ChangeKind, ItemVersion, Kind, Operation, PageRequest, Scope};
use serde_json::json;

fn kept(minutes: u64) -> serde_json::Value {
    json!({"changeFeedPolicy": {"retentionDuration": minutes}, "defaultTtl": -1})
}

fn item(pk: &str, id: &str, n: u32) -> String {
    format!(r#"{{"id":"{id}","pk":"{pk}","n":{n}}}"#)
}

/// What is new after a position, in words: the kind, the id, the version before.
fn versions(fixture: &Fixture, scope: &Scope, after: u64) -> Vec<String> {
    let page = wait(fixture.container.read_versions(scope, Some(after), &PageRequest::new(1000))).unwrap();
    page.versions.iter().map(told).collect()
}

fn told(version: &ItemVersion) -> String {
    let kind = match version.kind {
        ChangeKind::Create => "create",
        ChangeKind::Replace => "replace",
        ChangeKind::Delete => "delete",
        ChangeKind::Expire => "expire",
        other => panic!("{other:?} is no version"),
    };
    let of = version.current.as_ref().or(version.previous.as_ref()).unwrap();
    assert_eq!(version.current.is_none(), matches!(kind, "delete" | "expire"));
    format!("{kind} {} after {}", of.id(), version.previous_lsn)
}

#[test]
fn every_change_is_told_by_itself_with_what_was_before() {
    let fixture = Fixture::new(kept(10));
    assert!(fixture.container.keeps_versions());
    let now = wait(fixture.container.read_versions(&Scope::All, None, &PageRequest::new(10))).unwrap();
    assert!(now.versions.is_empty());
    fixture.create(&item("a", "1", 0)).unwrap();
    fixture.replace(&item("a", "1", 1)).unwrap();
    fixture.upsert(&item("a", "1", 2)).unwrap();
    fixture.delete("a", "1").unwrap();
    fixture.create(&item("b", "2", 0)).unwrap();
    let all = [
        "create 1 after 0",
        "replace 1 after 1",
        "replace 1 after 2",
        "delete 1 after 3",
        "create 2 after 0",
    ];
    assert_eq!(versions(&fixture, &Scope::All, now.lsn), all);
    assert_eq!(versions(&fixture, &Scope::Key(key("b")), 0), all[4..]);
    assert_eq!(versions(&fixture, &Scope::All, 3), all[3..]);
    // A delete shows what it deleted, a replace what it made.
    let page = wait(fixture.container.read_versions(&Scope::All, Some(0), &PageRequest::new(1000))).unwrap();
    let (replace, delete) = (&page.versions[2], &page.versions[3]);
    assert_eq!(text_of(replace.current.as_ref().unwrap()), item("a", "1", 2));
    assert!(replace.previous.is_none(), "only where the policy asks");
    assert_eq!(text_of(delete.previous.as_ref().unwrap()), item("a", "1", 2));
}

#[test]
fn replaced_versions_are_told_where_the_policy_asks() {
    let policy = json!({"changeFeedPolicy": {"retentionDuration": 5, "previousImages": true}});
    let fixture = Fixture::new(policy);
    fixture.create(&item("a", "1", 0)).unwrap();
    fixture.replace(&item("a", "1", 1)).unwrap();
    let page = wait(fixture.container.read_versions(&Scope::All, Some(0), &PageRequest::new(10))).unwrap();
    assert_eq!(text_of(page.versions[1].previous.as_ref().unwrap()), item("a", "1", 0));
}

#[test]
fn items_that_are_over_or_purged_or_renamed_are_told_as_what_they_are() {
    let fixture = Fixture::new(kept(60));
    fixture.create(r#"{"id":"short","pk":"a","ttl":2}"#).unwrap();
    fixture.create(&item("b", "gone", 0)).unwrap();
    fixture.create(&item("c", "old", 0)).unwrap();
    let (_, _, document) = parts(&item("c", "new", 1));
    fixture.write("c", Operation::Replace { id: "old".into(), document }).unwrap();
    let renamed = versions(&fixture, &Scope::Key(key("c")), 0);
    assert_eq!(renamed, ["create old after 0", "replace new after 3"]);
    let before = fixture.only_partition().lsn();
    wait(fixture.container.delete_partition_key(&key("b"))).unwrap();
    fixture.env.advance_ms(10_000);
    fixture.sweep();
    let mut told = versions(&fixture, &Scope::All, before);
    told.sort();
    assert_eq!(told, ["delete gone after 2", "expire short after 1"]);
}

#[test]
fn versions_leave_when_the_policy_no_longer_keeps_them() {
    let mut fixture = Fixture::embedded(kept(1));
    for n in 0..5 {
        fixture.create(&item("a", &n.to_string(), 0)).unwrap();
        fixture.env.advance_ms(20_000);
    }
    fixture.sweep();
    // 100 seconds have passed, 60 are kept: changes 3 to 5.
    assert_eq!(
        versions(&fixture, &Scope::All, 2),
        ["create 2 after 0", "create 3 after 0", "create 4 after 0"]
    );
    let too_old = wait(fixture.container.read_versions(&Scope::All, Some(1), &PageRequest::new(10)));
    assert_eq!(kind(too_old), Kind::BadRequest);
    fixture.reopen();
    assert_eq!(
        kind(wait(fixture.container.read_versions(&Scope::All, Some(1), &PageRequest::new(10)))),
        Kind::BadRequest
    );
    assert_eq!(versions(&fixture, &Scope::All, 2).len(), 3);
    fixture.replace_definition(json!({"defaultTtl": -1}));
    assert!(!fixture.container.keeps_versions());
    fixture.sweep();
    assert_eq!(versions(&fixture, &Scope::All, 5), Vec::<String>::new());
    assert_eq!(
        kind(wait(fixture.container.read_versions(&Scope::All, Some(4), &PageRequest::new(10)))),
        Kind::BadRequest
    );
}

#[test]
fn pages_end_between_commits_and_fit_together() {
    let fixture = Fixture::new(kept(10));
    for n in 0..10 {
        let batch = (0..3).map(|m| {
            let (_, id, document) = parts(&item("a", &format!("{n}-{m}"), 0));
            Operation::Create { id, document }.into()
        });
        wait(fixture.container.write_batch(&key("a"), batch.collect())).unwrap();
    }
    let (mut after, mut count) = (0, 0);
    loop {
        let page =
            wait(fixture.container.read_versions(&Scope::All, Some(after), &PageRequest::new(4))).unwrap();
        assert!(page.versions.len().is_multiple_of(3), "{}", page.versions.len());
        count += page.versions.len();
        after = page.lsn;
        if page.versions.is_empty() {
            break;
        }
    }
    assert_eq!(count, 30);
}

#[test]
fn versions_go_with_their_items_through_splits_and_merges() {
    let fixture = Fixture::new(kept(10));
    let keys: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    for pk in &keys {
        fixture.create(&item(pk, pk, 0)).unwrap();
        fixture.replace(&item(pk, pk, 1)).unwrap();
    }
    fixture.delete("k3", "k3").unwrap();
    let of_key = |fixture: &Fixture, pk: &str| versions(fixture, &Scope::Key(key(pk)), 0);
    let before: Vec<Vec<String>> = keys.iter().map(|pk| of_key(&fixture, pk)).collect();
    wait(fixture.account.split_partition(&fixture.container, None).unwrap().done()).unwrap();
    assert_eq!(fixture.container.ranges().len(), 2);
    assert_eq!(keys.iter().map(|pk| of_key(&fixture, pk)).collect::<Vec<_>>(), before);
    for pk in keys.iter().skip(5) {
        fixture.replace(&item(pk, pk, 2)).unwrap();
    }
    let before: Vec<Vec<String>> = keys.iter().map(|pk| of_key(&fixture, pk)).collect();
    wait(fixture.account.merge_partitions(&fixture.container, None).unwrap().done()).unwrap();
    assert_eq!(keys.iter().map(|pk| of_key(&fixture, pk)).collect::<Vec<_>>(), before);
    assert_eq!(versions(&fixture, &Scope::All, 0).len(), 41 + 15);
}
