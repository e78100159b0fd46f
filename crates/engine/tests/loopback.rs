//! A container whose partitions are called through a pipe answers like one whose partitions are called directly.

mod items_support;

use std::sync::Arc;

use items_support::*;
use orrery_engine::{
    ChangeMode, ChangePositions, ChangeStart, ChangesFrom, Condition, EngineConfig, Operation, PageRequest,
    PartitionCalls, ReadOptions, Result, Scope, Write,
};
use orrery_model::{Number, PatchOp, Pointer, Value as ModelValue};
use orrery_storage::MemoryStore;
use serde_json::json;

fn config(partition_calls: PartitionCalls) -> EngineConfig {
    EngineConfig { partition_calls, ..EngineConfig::default() }
}

/// Four partitions.
fn fixture(partition_calls: PartitionCalls) -> Fixture {
    Fixture::over(Arc::new(MemoryStore::new()), config(partition_calls), json!({}), 40_000)
}

/// Everything that an answer says, or everything that an error says.
fn told<T: std::fmt::Debug>(answer: Result<T>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(error) => {
            let cause = error.cause.map(|cause| cause.to_string());
            format!("{:?} {} {cause:?} {} {:?}", error.kind, error.message, error.charge_ru, error.at)
        }
    }
}

fn patch(n: i64, condition: Option<&str>) -> Write {
    let path = Pointer::parse("/n").unwrap();
    Write::new(Operation::Patch {
        id: "1".into(),
        operations: vec![PatchOp::Set { path, value: ModelValue::Number(Number::Int(n)) }],
        condition: condition.map(|text| Condition::new(text, 0, 0)),
    })
}

/// What a container answers to a bit of everything.
fn transcript(fixture: &Fixture) -> Vec<String> {
    let container = &fixture.container;
    let mut said = Vec::new();
    for n in 0..40 {
        said.push(told(fixture.create(&format!(r#"{{"id":"{n}","pk":"k{n}","n":{n}}}"#))));
    }
    said.push(told(fixture.create(r#"{"id":"1","pk":"k1"}"#)));
    said.push(told(fixture.write("k1", patch(5, None))));
    said.push(told(fixture.write("k1", patch(6, Some("from c where c.n = 5")))));
    said.push(told(fixture.write("k1", patch(7, Some("from c where c.n = 5")))));
    said.push(told(fixture.write("k1", patch(7, Some("from c where ((")))));
    said.push(told(fixture.write("k1", patch(8, None).if_match("\"old\""))));
    let read = |id: &str, options: ReadOptions| told(wait(container.read_item(&key("k1"), id, &options)));
    said.push(read("1", ReadOptions::default()));
    said.push(read("2", ReadOptions::default()));
    let range = container.position_of(&key("k1")).unwrap().range_id;
    said.push(read("1", ReadOptions { session: vec![(range, 99)], ..ReadOptions::default() }));
    let number = fixture.read("k1", "1").unwrap().number;
    said.push(told(wait(container.item_id(&key("k1"), number))));
    said.push(told(wait(container.item_id(&key("k1"), number + 1))));
    let operations = |id: &str| {
        let read = Write::new(Operation::Read { id: id.into() });
        let (_, id, document) = parts(r#"{"id":"new","pk":"k1"}"#);
        vec![Write::new(Operation::Upsert { id, document }), read]
    };
    said.push(told(wait(container.write_batch(&key("k1"), operations("new")))));
    said.push(told(wait(container.write_batch(&key("k1"), operations("none")))));
    said.push(told(wait(container.write_batch(&key("k1"), Vec::new()))));
    let bulk = |id| operations(id).into_iter().map(|write| (key("k1"), write)).collect::<Vec<_>>();
    said.push(told(wait(container.write_bulk(range, bulk("none"), true))));
    said.push(told(wait(container.write_bulk(99, bulk("none"), true))));
    said.push(told(wait(container.delete_partition_key(&key("k2")))));
    let mut page = PageRequest::new(7);
    loop {
        let found = wait(container.read_feed(&Scope::All, &page)).unwrap();
        said.push(format!("{found:?}"));
        match found.continuation {
            Some(next) => page.continuation = Some(next),
            None => break,
        }
    }
    let start = ChangeStart { positions: ChangePositions::None, otherwise: ChangesFrom::Beginning };
    for mode in [ChangeMode::LatestVersion, ChangeMode::AllVersions] {
        said.push(format!(
            "{:?}",
            wait(container.read_change_feed(&Scope::All, &start, mode, &PageRequest::new(30)))
        ));
    }
    said.push(told(wait(container.read_versions(&Scope::Range(range), Some(1), &PageRequest::new(9)))));
    said.push(format!("{:?} {}", container.usage(), container.index_progress()));
    said.push(told(container.position_for(range, &[(range, 99)])));
    said.push(told(fixture.account.insights(None, None, 3)));
    said
}

#[test]
fn a_pipe_in_between_changes_nothing() {
    let direct = transcript(&fixture(PartitionCalls::Direct));
    let through = transcript(&fixture(PartitionCalls::Loopback));
    for (direct, through) in direct.iter().zip(&through) {
        assert_eq!(direct, through);
    }
    assert_eq!(direct.len(), through.len());
}

#[test]
fn writes_that_wait_hold_up_nobody() {
    let fixture = fixture(PartitionCalls::Loopback);
    // Submitted in the order of the calls, although nobody has waited for any of them yet.
    let write = |text: &str| {
        let (pk, id, document) = parts(text);
        fixture.container.write_item(&key(&pk), Operation::Upsert { id, document }.into())
    };
    let pending: Vec<_> = (0..100).map(|n| write(&format!(r#"{{"id":"1","pk":"a","n":{n}}}"#))).collect();
    let lsns: Vec<u64> = pending.into_iter().map(|write| wait(write).unwrap().at.lsn).collect();
    assert!(lsns.is_sorted_by(|a, b| a < b), "{lsns:?}");
    assert!(fixture.text("a", "1").unwrap().contains("\"n\":99"));
    // A write whose caller went away happens all the same.
    drop(write(r#"{"id":"2","pk":"a"}"#));
    assert!(fixture.create(r#"{"id":"2","pk":"a"}"#).is_err());
}
