//! Single items through a container: creating, reading, replacing, patching, deleting, and every refusal.

mod items_support;

use std::sync::Arc;

use items_support::*;
use orrery_engine::{Condition, EngineConfig, Kind, Operation, Outcome, ReadOptions, Scope, Write};
use orrery_model::{Number, PatchOp, Pointer, Value as ModelValue};
use orrery_storage::doubles::Counting;
use orrery_storage::{MemoryStore, Store};
use serde_json::json;

const D1: &str = r#"{"id":"d1","pk":"a","n":1,"s":"x1"}"#;

fn pointer(text: &str) -> Pointer {
    Pointer::parse(text).unwrap()
}

fn set(path: &str, value: i64) -> PatchOp {
    PatchOp::Set { path: pointer(path), value: ModelValue::Number(Number::Int(value)) }
}

fn patch(id: &str, operations: Vec<PatchOp>) -> Operation {
    Operation::Patch { id: id.into(), operations, condition: None }
}

#[test]
fn an_item_lives_from_create_to_delete() {
    let fixture = Fixture::new(json!({}));
    let created = fixture.create(D1).unwrap();
    assert_eq!((created.outcome, created.at.lsn), (Outcome::Created, 1));
    assert_eq!(fixture.text("a", "d1").as_deref(), Some(D1));
    let replaced = fixture.replace(r#"{"id":"d1","pk":"a","n":5,"s":"y"}"#).unwrap();
    let (old, new) = (created.item.unwrap(), replaced.item.unwrap());
    assert_eq!((replaced.outcome, replaced.at.lsn), (Outcome::Replaced, 2));
    assert_eq!(old.number, new.number, "an update keeps the item's number");
    assert_ne!(old.etag, new.etag);
    assert_eq!(outcome(fixture.upsert(D1)), Outcome::Replaced);
    assert_eq!(outcome(fixture.delete("a", "d1")), Outcome::Deleted);
    assert_eq!(fixture.text("a", "d1"), None);
    assert_eq!(kind(fixture.delete("a", "d1")), Kind::NotFound);
    let again = fixture.upsert(D1).unwrap();
    assert_eq!(again.outcome, Outcome::Created);
    assert_ne!(again.item.unwrap().number, new.number, "a new item has a new number");
}

#[test]
fn a_read_tells_where_the_partition_stands() {
    let fixture = Fixture::new(json!({}));
    fixture.create(D1).unwrap();
    fixture.create(r#"{"id":"d2","pk":"a"}"#).unwrap();
    let reply = wait(fixture.container.read_item(&key("a"), "d1", &ReadOptions::default())).unwrap();
    assert_eq!((reply.at.lsn, reply.at.item_lsn), (2, 1));
    assert_eq!(reply.charge_ru, 1.0);
}

#[test]
fn the_same_id_is_another_item_under_another_key() {
    let fixture = Fixture::new(json!({}));
    fixture.create(D1).unwrap();
    fixture.create(r#"{"id":"d1","pk":"b"}"#).unwrap();
    assert_eq!(fixture.text("b", "d1").as_deref(), Some(r#"{"id":"d1","pk":"b"}"#));
    fixture.delete("b", "d1").unwrap();
    assert_eq!(fixture.text("a", "d1").as_deref(), Some(D1));
}

#[test]
fn a_taken_id_is_refused_and_changes_nothing() {
    let fixture = Fixture::new(json!({}));
    fixture.create(D1).unwrap();
    let error = fixture.create(r#"{"id":"d1","pk":"a"}"#).unwrap_err();
    assert_eq!(error.kind, Kind::AlreadyExists);
    assert!((error.charge_ru - 1.476_190_476_190_476).abs() < 1e-9);
    assert_eq!(fixture.text("a", "d1").as_deref(), Some(D1));
    assert_eq!(fixture.only_partition().lsn(), 1);
}

#[test]
fn a_condition_on_an_upsert_that_finds_nothing_does_not_matter() {
    let fixture = Fixture::new(json!({}));
    let upsert = Operation::Upsert { id: "d1".into(), document: document(D1) };
    fixture.write("a", Write::new(upsert).if_match("\"no such version\"")).unwrap();
    assert!(fixture.read("a", "d1").is_ok());
}

#[test]
fn a_replace_may_give_an_item_another_id() {
    let fixture = Fixture::new(json!({ "uniqueKeyPolicy": { "uniqueKeys": [{ "paths": ["/u"] }] } }));
    let before = fixture.create(r#"{"id":"d1","pk":"a","u":1}"#).unwrap().item.unwrap();
    fixture.create(r#"{"id":"d2","pk":"a","u":2}"#).unwrap();
    let rename = |text: &str| {
        fixture.write("a", Write::new(Operation::Replace { id: "d1".into(), document: document(text) }))
    };
    assert_eq!(kind(rename(r#"{"id":"d2","pk":"a","u":1}"#)), Kind::AlreadyExists);
    assert_eq!(kind(rename(r#"{"id":"d3","pk":"a","u":2}"#)), Kind::UniqueKeyViolated);
    assert!(fixture.read("a", "d1").is_ok(), "a refused rename changes nothing");
    let after = rename(r#"{"id":"d3","pk":"a","u":1}"#).unwrap().item.unwrap();
    assert_eq!((after.id(), after.number), ("d3", before.number));
    assert_eq!(kind(fixture.read("a", "d1")), Kind::NotFound);
    assert!(fixture.read("a", "d3").is_ok());
    fixture.create(r#"{"id":"d1","pk":"a","u":3}"#).unwrap();
}

#[test]
fn conditions_are_held_against_the_present_version() {
    let fixture = Fixture::new(json!({}));
    let first = fixture.create(D1).unwrap().item.unwrap().etag.to_string();
    let replace = || Operation::Replace { id: "d1".into(), document: document(D1) };
    let second =
        fixture.write("a", Write::new(replace()).if_match(&first)).unwrap().item.unwrap().etag.to_string();
    let refused = |write: Write| {
        let error = fixture.write("a", write).unwrap_err();
        assert_eq!(error.kind, Kind::PreconditionFailed);
        assert!((error.charge_ru - 1.238_095_238).abs() < 1e-6);
    };
    refused(Write::new(replace()).if_match(&first));
    refused(Write::new(Operation::Upsert { id: "d1".into(), document: document(D1) }).if_match(&first));
    refused(Write::new(Operation::Upsert { id: "d1".into(), document: document(D1) }).if_none_match("*"));
    refused(Write::new(Operation::Delete { id: "d1".into() }).if_match(&first));
    refused(Write::new(patch("d1", vec![set("/n", 2)])).if_match(&first));

    assert_eq!(
        kind(fixture.write("a", Write::new(Operation::Delete { id: "d9".into() }).if_match("*"))),
        Kind::NotFound
    );
    assert_eq!(
        kind(fixture.write(
            "a",
            Write::new(Operation::Create { id: "d1".into(), document: document(D1) }).if_none_match("*")
        )),
        Kind::AlreadyExists
    );
    fixture.write("a", Write::new(replace()).if_match("*")).unwrap();
    let etag = fixture.read("a", "d1").unwrap().etag.to_string();
    let read = |condition: &str| {
        let options = ReadOptions { if_none_match: Some(condition.into()), ..ReadOptions::default() };
        wait(fixture.container.read_item(&key("a"), "d1", &options)).map(|_| ())
    };
    assert_eq!(kind(read(&etag)), Kind::NotModified);
    assert_eq!(kind(read("*")), Kind::NotModified);
    read(&second).unwrap();
    read("\"x\"").unwrap();
}

#[test]
fn bad_documents_are_refused_with_the_services_words() {
    let fixture = Fixture::new(json!({}));
    let refused = |text: &str, id: &str, expected: Kind, words: &str| {
        let operation = Operation::Create { id: id.into(), document: document(text) };
        let error = fixture.write("a", operation).unwrap_err();
        assert_eq!(error.kind, expected, "{text}");
        assert!(error.message.contains(words), "{text}: {error}");
    };
    refused(r#"{"pk":"a"}"#, "x", Kind::BadRequest, "'id; ' - are missing");
    refused(r#"{"id":7,"pk":"a"}"#, "7", Kind::BadRequest, "invalid");
    refused(r#"{"id":"other","pk":"a"}"#, "x", Kind::BadRequest, "invalid");
    refused(r#"{"id":"x","pk":"b"}"#, "x", Kind::PartitionKeyMismatch, "doesn't match the one specified");
    refused(r#"{"id":"x"}"#, "x", Kind::PartitionKeyMismatch, "doesn't match");
    refused(r#"{"id":"x","pk":{"y":1}}"#, "x", Kind::PartitionKeyMismatch, "doesn't match");
    refused(r#"{"id":"x","pk":"a","ttl":0}"#, "x", Kind::BadRequest, "The input ttl '0' is invalid");
    refused(r#"[1]"#, "x", Kind::BadRequest, "One of the specified inputs is invalid");
    assert_eq!(fixture.only_partition().lsn(), 0);
}

#[test]
fn an_item_is_at_most_two_megabytes_of_text() {
    let fixture = Fixture::new(json!({}));
    let of_size = |bytes: usize| {
        let frame = r#"{"id":"x","pk":"a","s":""}"#;
        format!(r#"{{"id":"x","pk":"a","s":"{}"}}"#, "y".repeat(bytes - frame.len()))
    };
    fixture.create(&of_size(2 * 1024 * 1024)).unwrap();
    assert_eq!(kind(fixture.upsert(&of_size(2 * 1024 * 1024 + 1))), Kind::TooLarge);
    let half = ModelValue::String("z".repeat(1024 * 1024));
    let growing = patch("x", vec![PatchOp::Add { path: pointer("/t"), value: half }]);
    assert_eq!(kind(fixture.write("a", growing)), Kind::TooLarge);
    assert_eq!(fixture.text("a", "x").unwrap().len(), 2 * 1024 * 1024);
}

#[test]
fn a_patch_changes_what_it_names_and_adds_at_the_end() {
    let fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"d1","pk":"a","n":5,"s":"y"}"#).unwrap();
    let operations = vec![
        set("/n", 7),
        PatchOp::Increment { path: pointer("/n"), by: Number::Int(3) },
        PatchOp::Add { path: pointer("/new"), value: ModelValue::String("v".into()) },
    ];
    let reply = fixture.write("a", patch("d1", operations)).unwrap();
    let item = reply.item.unwrap();
    assert_eq!(text_of(&item), r#"{"id":"d1","pk":"a","n":10,"s":"y","new":"v"}"#);
    assert_eq!(item.late_members, 1);
    assert_eq!((reply.charge_ru * 100.0).round(), 1142.0);
    assert_eq!(fixture.read("a", "d1").unwrap().late_members, 1);
    // Later patches keep what is late, add to it, and forget what they remove.
    let item = fixture.write("a", patch("d1", vec![set("/m", 1), set("/new", 2)])).unwrap().item.unwrap();
    assert_eq!(item.late_members, 2);
    let item = fixture
        .write("a", patch("d1", vec![PatchOp::Remove { path: pointer("/new") }]))
        .unwrap()
        .item
        .unwrap();
    assert_eq!(
        (text_of(&item).as_str(), item.late_members),
        (r#"{"id":"d1","pk":"a","n":10,"s":"y","m":1}"#, 1)
    );
    assert_eq!(fixture.replace(D1).unwrap().item.unwrap().late_members, 0);
}

#[test]
fn a_patch_may_not_touch_the_identity_of_an_item() {
    let fixture = Fixture::new(json!({"partitionKey": {"paths": ["/k/pk"], "kind": "Hash", "version": 2}}));
    let body = document(r#"{"id":"d1","k":{"pk":"a","z":1},"n":1}"#);
    fixture.write("a", Operation::Create { id: "d1".into(), document: body }).unwrap();
    for path in ["/id", "/k/pk", "/k", "/_etag", "/_ts", "/_rid/x", "/k/pk/deep"] {
        let error = fixture.write("a", patch("d1", vec![set("/n", 2), set(path, 1)])).unwrap_err();
        assert_eq!(error.kind, Kind::BadRequest, "{path}");
        assert!(error.message.contains("For Operation(2)"), "{error}");
    }
    let from = PatchOp::Move { from: pointer("/id"), path: pointer("/x") };
    assert_eq!(kind(fixture.write("a", patch("d1", vec![from]))), Kind::BadRequest);
    fixture.write("a", patch("d1", vec![set("/k/z", 2)])).unwrap();
    assert_eq!(kind(fixture.write("a", patch("d1", vec![]))), Kind::BadRequest);
    fixture.write("a", patch("d1", (0..10).map(|n| set("/n", n)).collect())).unwrap();
    assert_eq!(
        kind(fixture.write("a", patch("d1", (0..11).map(|n| set("/n", n)).collect()))),
        Kind::BadRequest
    );
    assert_eq!(kind(fixture.write("a", patch("d1", vec![set("/ttl", 0)]))), Kind::BadRequest);
    let absent = PatchOp::Remove { path: pointer("/nope") };
    assert_eq!(kind(fixture.write("a", patch("d1", vec![set("/n", 99), absent]))), Kind::BadRequest);
    assert_eq!(
        fixture.read("a", "d1").unwrap().body().get("n").unwrap().as_number().unwrap().as_i64(),
        Some(9)
    );
}

#[test]
fn a_patch_with_a_condition_looks_at_the_stored_version() {
    let fixture = Fixture::new(json!({}));
    fixture.create(D1).unwrap();
    let when = |wanted: i64| Operation::Patch {
        id: "d1".into(),
        operations: vec![set("/n", 2)],
        condition: Some(Condition::new(format!("from c where c.n = {wanted}"), 0, 0)),
    };
    assert_eq!(kind(fixture.write("a", when(5))), Kind::PatchConditionFailed);
    fixture.write("a", when(1)).unwrap();
    assert_eq!(kind(fixture.write("a", when(1))), Kind::PatchConditionFailed);
    let nonsense = Some(Condition::new("from c where ((", 0, 0));
    let unreadable =
        Operation::Patch { id: "d1".into(), operations: vec![set("/n", 3)], condition: nonsense };
    assert_eq!(kind(fixture.write("a", unreadable)), Kind::BadRequest);
}

#[test]
fn unique_keys_hold_within_their_logical_partition() {
    let fixture = Fixture::new(
        json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/email"]}, {"paths": ["/a", "/b"]}]}}),
    );
    let violated = |text: &str| assert_eq!(kind(fixture.upsert(text)), Kind::UniqueKeyViolated, "{text}");
    fixture.create(r#"{"id":"1","pk":"p","email":"x","a":1,"b":1}"#).unwrap();
    violated(r#"{"id":"2","pk":"p","email":"x","a":1,"b":2}"#);
    violated(r#"{"id":"2","pk":"p","email":"y","a":1,"b":1}"#);
    fixture.create(r#"{"id":"2","pk":"q","email":"x","a":1,"b":1}"#).unwrap();
    fixture.create(r#"{"id":"2","pk":"p","email":"y","a":1,"b":2}"#).unwrap();
    violated(r#"{"id":"2","pk":"p","email":"x","a":1,"b":2}"#);
    fixture.replace(r#"{"id":"2","pk":"p","email":"y","a":1,"b":2,"more":true}"#).unwrap();
    fixture.replace(r#"{"id":"1","pk":"p","email":"z","a":1,"b":1}"#).unwrap();
    fixture.create(r#"{"id":"3","pk":"p","email":"x","a":3,"b":3}"#).unwrap();
    fixture.delete("p", "3").unwrap();
    fixture.create(r#"{"id":"4","pk":"p","email":"x","a":3,"b":3}"#).unwrap();
    // A missing value counts as null.
    fixture.create(r#"{"id":"5","pk":"p","a":5}"#).unwrap();
    violated(r#"{"id":"6","pk":"p","email":null,"a":6}"#);
    violated(r#"{"id":"6","pk":"p","email":"6","a":5,"b":null}"#);
}

#[test]
fn an_expired_item_is_gone_for_everyone_at_once() {
    let fixture =
        Fixture::new(json!({"defaultTtl": 10, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/email"]}]}}));
    let first = fixture.create(r#"{"id":"1","pk":"p","email":"x"}"#).unwrap().item.unwrap();
    fixture.create(r#"{"id":"2","pk":"p","email":"y","ttl":-1}"#).unwrap();
    fixture.create(r#"{"id":"3","pk":"p","email":"z","ttl":100}"#).unwrap();
    fixture.env.advance_ms(10_000);
    assert!(fixture.text("p", "1").is_some());
    fixture.env.advance_ms(1_000);
    assert_eq!(fixture.text("p", "1"), None);
    assert_eq!(kind(fixture.delete("p", "1")), Kind::NotFound);
    assert_eq!(kind(fixture.replace(r#"{"id":"1","pk":"p","email":"x"}"#)), Kind::NotFound);
    assert_eq!(fixture.list(&Scope::All, 10), ["2", "3"]);
    // Its unique key is free, and its id can be created anew.
    fixture.create(r#"{"id":"4","pk":"p","email":"x"}"#).unwrap();
    assert_eq!(kind(fixture.create(r#"{"id":"1","pk":"p","email":"x"}"#)), Kind::UniqueKeyViolated);
    let again = fixture.create(r#"{"id":"1","pk":"p","email":"w"}"#).unwrap();
    assert_eq!(again.outcome, Outcome::Created);
    assert_ne!(again.item.unwrap().number, first.number);
    assert_eq!(kind(fixture.create(r#"{"id":"5","pk":"p","email":"x"}"#)), Kind::UniqueKeyViolated);
    fixture.env.advance_ms(200_000);
    assert_eq!(fixture.list(&Scope::All, 10), ["2"]);
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 1);
    assert_eq!(fixture.list(&Scope::All, 10), ["2"]);
    fixture.create(r#"{"id":"5","pk":"p","email":"x"}"#).unwrap();
}

#[test]
fn the_sweeper_comes_by_itself() {
    let fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"1","pk":"p"}"#).unwrap();
    fixture.create(r#"{"id":"2","pk":"p"}"#).unwrap();
    fixture.replace_definition(json!({"defaultTtl": 5}));
    wait(fixture.container.delete_partition_key(&key("q"))).unwrap();
    fixture.env.advance_ms(60_000);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while fixture.stored_items() > 0 {
        assert!(std::time::Instant::now() < deadline, "nothing was swept");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn changing_the_default_ttl_replans_what_is_stored() {
    let mut fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"1","pk":"p"}"#).unwrap();
    fixture.create(r#"{"id":"2","pk":"p","ttl":5}"#).unwrap();
    fixture.create(r#"{"id":"3","pk":"p","ttl":-1}"#).unwrap();
    fixture.env.advance_ms(60_000);
    assert_eq!(fixture.list(&Scope::All, 10), ["1", "2", "3"], "without a default nothing expires");
    fixture.replace_definition(json!({"defaultTtl": -1}));
    assert_eq!(fixture.list(&Scope::All, 10), ["1", "3"], "at once");
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 2);
    fixture.replace_definition(json!({"defaultTtl": 100}));
    fixture.reopen();
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 2);
    fixture.env.advance_ms(60_000);
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 1);
    assert_eq!(fixture.list(&Scope::All, 10), ["3"]);
    fixture.replace_definition(json!({}));
    fixture.create(r#"{"id":"4","pk":"p","ttl":1}"#).unwrap();
    fixture.env.advance_ms(60_000);
    fixture.sweep();
    assert_eq!(fixture.list(&Scope::All, 10), ["3", "4"]);
}

#[test]
fn deleting_a_partition_key_hides_its_items_at_once_and_removes_them_later() {
    let mut fixture = Fixture::new(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}));
    for n in 0..250 {
        fixture.create(&format!(r#"{{"id":"{n}","pk":"gone","u":{n}}}"#)).unwrap();
    }
    fixture.create(r#"{"id":"1","pk":"kept","u":1}"#).unwrap();
    wait(fixture.container.delete_partition_key(&key("gone"))).unwrap();
    assert_eq!(fixture.text("gone", "7"), None);
    assert_eq!(fixture.list(&Scope::All, 100), ["1"]);
    assert_eq!(kind(fixture.delete("gone", "7")), Kind::NotFound);
    // New items of the key live on, with ids and unique values of purged ones.
    assert_eq!(outcome(fixture.upsert(r#"{"id":"7","pk":"gone","u":8}"#)), Outcome::Created);
    assert_eq!(kind(fixture.create(r#"{"id":"new","pk":"gone","u":8}"#)), Kind::UniqueKeyViolated);
    fixture.reopen();
    assert_eq!(fixture.text("gone", "8"), None, "a purge outlives a restart");
    assert_eq!(fixture.list(&Scope::All, 100), ["1", "7"]);
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 2);
    assert_eq!(fixture.list(&Scope::All, 100), ["1", "7"]);
    fixture.create(r#"{"id":"9","pk":"gone","u":9}"#).unwrap();
    fixture.reopen();
    assert_eq!(fixture.list(&Scope::Key(key("gone")), 100), ["7", "9"]);
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 3);
}

#[test]
fn a_logical_partition_has_a_size_limit_of_its_own() {
    let config = EngineConfig { logical_partition_size_limit: 20_000, ..EngineConfig::default() };
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), config, json!({}), 400);
    let item = |pk: &str, n: usize| format!(r#"{{"id":"{n}","pk":"{pk}","s":"{}"}}"#, "x".repeat(900));
    let mut stored = 0;
    while fixture.create(&item("a", stored)).is_ok() {
        stored += 1;
        fixture.create(&item("b", stored)).unwrap();
    }
    assert!((18..22).contains(&stored), "{stored}");
    let error = fixture.create(&item("a", stored)).unwrap_err();
    assert_eq!(error.kind, Kind::PartitionFull);
    assert_eq!(error.message, "Partition key reached maximum size of 20000 bytes");
    // What does not grow is still possible, and room that is made can be used.
    fixture.replace(&item("a", 0)).unwrap();
    fixture.delete("a", "0").unwrap();
    fixture.create(&item("a", stored)).unwrap();
    assert_eq!(kind(fixture.create(&item("a", stored + 1))), Kind::PartitionFull);
    fixture.create(&item("c", 0)).unwrap();
}

#[test]
fn a_container_without_a_key_is_one_partition_with_a_limit() {
    let config = EngineConfig { fixed_container_size_limit: 5_000, ..EngineConfig::default() };
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), config, json!({"partitionKey": null}), 400);
    let none = orrery_model::PartitionKey::default();
    let create = |n: usize| {
        let text = format!(r#"{{"id":"{n}","s":"{}"}}"#, "x".repeat(900));
        let operation = Operation::Create { id: n.to_string(), document: document(&text) };
        wait(fixture.container.write_item(&none, operation.into()))
    };
    let stored = (0..).take_while(|n| create(*n).is_ok()).count();
    assert_eq!(stored, 5);
    assert_eq!(kind(create(9)), Kind::PartitionFull);
    wait(fixture.container.read_item(&none, "3", &ReadOptions::default())).unwrap();
    assert_eq!(kind(create(3)), Kind::AlreadyExists);
}

#[test]
fn a_session_that_is_ahead_is_told_so() {
    let fixture = Fixture::new(json!({}));
    let at = fixture.create(D1).unwrap().at;
    let read = |lsn| {
        let options = ReadOptions { session: vec![(at.range_id, lsn)], ..ReadOptions::default() };
        wait(fixture.container.read_item(&key("a"), "d1", &options)).map(|_| ())
    };
    read(at.lsn).unwrap();
    assert_eq!(kind(read(at.lsn + 1)), Kind::SessionAhead);
}

#[test]
fn a_point_read_is_one_look_up_and_an_upsert_one_look_up_and_the_rows_that_differ() {
    let store = Arc::new(Counting::new(MemoryStore::new()));
    let shared: Arc<dyn Store> = store.clone();
    let fixture = Fixture::over(shared, EngineConfig::default(), json!({}), 400);
    fixture.create(D1).unwrap();
    let before = store.counted();
    fixture.read("a", "d1").unwrap();
    let read = store.counted();
    assert_eq!(
        (read.snapshots - before.snapshots, read.gets - before.gets, read.scans - before.scans),
        (1, 1, 0)
    );
    fixture.upsert(r#"{"id":"d1","pk":"a","n":2}"#).unwrap();
    let wrote = store.counted();
    // The item, its old and its new place in the feed; of its index entries `s` goes and `n` changes, the others stay.
    assert_eq!((wrote.commits - read.commits, wrote.rows_written - read.rows_written), (1, 3 + 3));
    assert_eq!(
        (wrote.snapshots - read.snapshots, wrote.gets - read.gets, wrote.scans - read.scans),
        (1, 1, 0)
    );
}

#[test]
fn a_deleted_container_takes_no_writes_through_old_handles() {
    let fixture = Fixture::new(json!({}));
    fixture.create(D1).unwrap();
    wait(fixture.account.delete_container(&fixture.container, None)).unwrap();
    assert_eq!(kind(fixture.upsert(D1)), Kind::OwnerNotFound);
    assert_eq!(kind(fixture.read("a", "d1")), Kind::OwnerNotFound);
}
