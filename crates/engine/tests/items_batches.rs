//! Atomic batches and bulks.

mod items_support;

use items_support::*;
use orrery_engine::{BatchReply, EngineConfig, Kind, Operation, Outcome, Scope, Write};
use orrery_model::{Number, PatchOp, Pointer, Value as ModelValue};
use orrery_storage::MemoryStore;
use serde_json::json;
use std::sync::Arc;

fn create(text: &str) -> Write {
    let (_, id, document) = parts(text);
    Operation::Create { id, document }.into()
}

fn upsert(text: &str) -> Write {
    let (_, id, document) = parts(text);
    Operation::Upsert { id, document }.into()
}

fn replace(text: &str) -> Write {
    let (_, id, document) = parts(text);
    Operation::Replace { id, document }.into()
}

fn read(id: &str) -> Write {
    Operation::Read { id: id.into() }.into()
}

fn delete(id: &str) -> Write {
    Operation::Delete { id: id.into() }.into()
}

fn set_n(id: &str, n: i64) -> Write {
    let path = Pointer::parse("/n").unwrap();
    let operations = vec![PatchOp::Set { path, value: ModelValue::Number(Number::Int(n)) }];
    Operation::Patch { id: id.into(), operations, condition: None }.into()
}

fn batch(fixture: &Fixture, pk: &str, operations: Vec<Write>) -> BatchReply {
    wait(fixture.container.write_batch(&key(pk), operations)).unwrap()
}

/// What each operation came to: its outcome or its error.
fn statuses(reply: &BatchReply) -> Vec<Result<Outcome, Kind>> {
    reply
        .results
        .iter()
        .map(|result| result.status.as_ref().map(|ok| *ok).map_err(|error| error.kind))
        .collect()
}

#[test]
fn later_operations_see_what_earlier_ones_did() {
    let fixture = Fixture::new(json!({}));
    let reply = batch(
        &fixture,
        "b",
        vec![create(r#"{"id":"b1","pk":"b","n":10}"#), create(r#"{"id":"b2","pk":"b","n":11}"#)],
    );
    assert!(reply.committed);
    assert_eq!((reply.charge_ru * 100.0).round(), 1257.0);
    let reply = batch(
        &fixture,
        "b",
        vec![
            read("b1"),
            upsert(r#"{"id":"b1","pk":"b","n":99}"#),
            replace(r#"{"id":"b2","pk":"b","n":98}"#),
            set_n("b2", 1),
            delete("b2"),
        ],
    );
    assert_eq!(
        statuses(&reply),
        [Outcome::Read, Outcome::Replaced, Outcome::Replaced, Outcome::Replaced, Outcome::Deleted].map(Ok)
    );
    assert_eq!((reply.charge_ru * 100.0).round(), 3903.0, "what the service charged for these five");
    assert_eq!(text_of(reply.results[3].item.as_ref().unwrap()), r#"{"id":"b2","pk":"b","n":1}"#);
    assert_eq!((reply.at.lsn, fixture.only_partition().lsn()), (2, 2), "a batch is one commit");
    assert_eq!(fixture.list(&Scope::All, 10), ["b1"]);
    let reply = batch(
        &fixture,
        "b",
        vec![create(r#"{"id":"x","pk":"b"}"#), delete("x"), create(r#"{"id":"x","pk":"b","n":2}"#)],
    );
    assert!(reply.committed);
    assert_eq!(fixture.text("b", "x").as_deref(), Some(r#"{"id":"x","pk":"b","n":2}"#));
    assert_eq!(fixture.stored_items(), 2);
}

#[test]
fn a_failed_batch_changes_nothing_and_names_its_culprit() {
    let fixture = Fixture::new(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}));
    fixture.create(r#"{"id":"b1","pk":"b","u":1}"#).unwrap();
    let reply = batch(
        &fixture,
        "b",
        vec![
            create(r#"{"id":"b9","pk":"b","u":9}"#),
            delete("b1"),
            create(r#"{"id":"b9","pk":"b","u":10}"#),
            create(r#"{"id":"b10","pk":"b","u":10}"#),
        ],
    );
    assert!(!reply.committed);
    let dependent = Err(Kind::FailedDependency);
    assert_eq!(statuses(&reply), [dependent, dependent, Err(Kind::AlreadyExists), dependent]);
    assert!(reply.results[0].charge_ru > 6.0 && reply.results[3].charge_ru == 0.0);
    assert_eq!(reply.at.lsn, 1);
    assert_eq!(fixture.list(&Scope::All, 10), ["b1"]);
    for (operations, culprit) in [
        (
            vec![upsert(r#"{"id":"b2","pk":"b","u":2}"#), upsert(r#"{"id":"b3","pk":"b","u":2}"#)],
            Kind::UniqueKeyViolated,
        ),
        (vec![set_n("b1", 4), upsert(r#"{"id":"b2","pk":"zzz","u":3}"#)], Kind::PartitionKeyMismatch),
        (vec![delete("b1"), read("b1")], Kind::NotFound),
        (vec![delete("b1"), set_n("nope", 1).if_match("*")], Kind::NotFound),
        (vec![set_n("b1", 4), set_n("b1", 5).if_match("\"old\"")], Kind::PreconditionFailed),
    ] {
        let reply = batch(&fixture, "b", operations);
        assert_eq!(statuses(&reply), [dependent, Err(culprit)]);
    }
    assert_eq!(fixture.only_partition().lsn(), 1);
    assert_eq!(fixture.text("b", "b1").as_deref(), Some(r#"{"id":"b1","pk":"b","u":1}"#));
}

#[test]
fn a_batch_may_pass_a_unique_value_on() {
    let fixture = Fixture::new(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}}));
    fixture.create(r#"{"id":"1","pk":"b","u":1}"#).unwrap();
    let reply = batch(
        &fixture,
        "b",
        vec![replace(r#"{"id":"1","pk":"b","u":2}"#), create(r#"{"id":"2","pk":"b","u":1}"#)],
    );
    assert!(reply.committed);
    assert_eq!(kind(fixture.create(r#"{"id":"3","pk":"b","u":1}"#)), Kind::UniqueKeyViolated);
    assert_eq!(kind(fixture.create(r#"{"id":"3","pk":"b","u":2}"#)), Kind::UniqueKeyViolated);
}

#[test]
fn a_batch_has_one_to_a_hundred_operations() {
    let fixture = Fixture::new(json!({}));
    let of = |length: usize| {
        (0..length).map(|n| create(&format!(r#"{{"id":"{n}","pk":"b"}}"#))).collect::<Vec<_>>()
    };
    let error = wait(fixture.container.write_batch(&key("b"), of(101))).unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (Kind::BadRequest, "Batch request has more operations than what is supported.")
    );
    let error = wait(fixture.container.write_batch(&key("b"), of(0))).unwrap_err();
    assert_eq!(error.message, "Batch request has no operations.");
    let reply = batch(&fixture, "b", of(100));
    assert!(reply.committed);
    let etags: std::collections::HashSet<String> =
        reply.results.iter().map(|result| result.item.as_ref().unwrap().etag.to_string()).collect();
    assert_eq!((etags.len(), fixture.only_partition().lsn(), fixture.stored_items()), (100, 1, 100));
}

#[test]
fn a_batch_of_reads_is_no_commit() {
    let fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"1","pk":"b"}"#).unwrap();
    let reply = batch(&fixture, "b", vec![read("1"), read("1")]);
    assert_eq!((reply.charge_ru, reply.at.lsn, fixture.only_partition().lsn()), (2.0, 1, 1));
    let etag = reply.results[0].item.as_ref().unwrap().etag.to_string();
    let reply = batch(&fixture, "b", vec![read("1").if_none_match(etag)]);
    assert_eq!(statuses(&reply), [Err(Kind::NotModified)]);
}

#[test]
fn a_bulk_writes_what_it_can() {
    let fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"b1","pk":"b"}"#).unwrap();
    let range = fixture.container.ranges()[0].id;
    let operations = || {
        vec![
            (key("b"), create(r#"{"id":"b9","pk":"b"}"#)),
            (key("b"), create(r#"{"id":"b1","pk":"b"}"#)),
            (key("c"), create(r#"{"id":"b9","pk":"zzz"}"#)),
            (key("c"), create(r#"{"id":"b10","pk":"c"}"#)),
        ]
    };
    let reply = wait(fixture.container.write_bulk(range, operations(), false)).unwrap();
    let dependent = Err(Kind::FailedDependency);
    assert_eq!(statuses(&reply), [Ok(Outcome::Created), Err(Kind::AlreadyExists), dependent, dependent]);
    fixture.delete("b", "b9").unwrap();
    let reply = wait(fixture.container.write_bulk(range, operations(), true)).unwrap();
    assert_eq!(
        statuses(&reply),
        [
            Ok(Outcome::Created),
            Err(Kind::AlreadyExists),
            Err(Kind::PartitionKeyMismatch),
            Ok(Outcome::Created)
        ]
    );
    assert!(!reply.committed);
    let mut found = fixture.list(&Scope::All, 10);
    found.sort();
    assert_eq!(found, ["b1", "b10", "b9"]);
}

#[test]
fn a_bulk_for_another_partition_is_sent_back() {
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), EngineConfig::default(), json!({}), 30_000);
    let ranges = fixture.container.ranges();
    assert_eq!(ranges.len(), 3);
    let home = fixture.container.partition_of(&key("b")).unwrap().range_id();
    for range in ranges {
        let operations = vec![(key("b"), create(r#"{"id":"1","pk":"b"}"#))];
        let reply = wait(fixture.container.write_bulk(range.id, operations, true));
        if range.id == home {
            assert!(reply.unwrap().committed);
        } else {
            assert_eq!(kind(reply), Kind::RangeGone);
        }
    }
}

#[test]
fn an_answer_that_would_be_too_long_is_refused_before_anything_is_written() {
    let fixture = Fixture::new(json!({}));
    let text = "x".repeat(1_900_000);
    batch(&fixture, "b", vec![create(&format!(r#"{{"id":"big","pk":"b","n":1,"text":"{text}"}}"#))]);
    // Three of them cross the limit; the one that crosses it is still answered.
    let few = batch(&fixture, "b", vec![read("big"), read("big"), read("big")]);
    assert!(few.committed && few.results.iter().all(|result| result.item.is_some()));
    let mut many = vec![create(r#"{"id":"small","pk":"b"}"#)];
    many.extend((0..99).map(|_| read("big")));
    let reply = batch(&fixture, "b", many);
    let statuses = statuses(&reply);
    assert!(!reply.committed && statuses.contains(&Err(Kind::TooLarge)), "{statuses:?}");
    assert!(reply.results.iter().all(|result| result.item.is_none()), "nothing is answered but the refusals");
    // Patches answer with the whole item however small they are.
    let patched = batch(&fixture, "b", (0..50).map(|n| set_n("big", n)).collect());
    assert!(!patched.committed);
    let after = batch(&fixture, "b", vec![read("big"), upsert(r#"{"id":"small","pk":"b"}"#)]);
    assert_eq!(self::statuses(&after)[1], Ok(Outcome::Created), "the create was undone with its batch");
    // In a bulk the operations stand for themselves.
    let reads = (0..10).map(|_| (key("b"), read("big"))).collect();
    let bulk = wait(fixture.container.write_bulk(0, reads, true)).unwrap();
    let answered = bulk.results.iter().filter(|result| result.item.is_some()).count();
    let refused = self::statuses(&bulk).iter().filter(|status| **status == Err(Kind::TooLarge)).count();
    assert_eq!((answered, refused), (3, 7));
}
