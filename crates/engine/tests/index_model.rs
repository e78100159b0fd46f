//! The index against a fresh walk over all items: after random writes, patches, renames, expiry, purges, restarts and
//! changes of policy, the rows are exactly those that the items should have, and a path that can be read has exactly
//! the entries that a naive look at every item gives, also while a change of policy is being worked off.

mod items_support;

use std::collections::BTreeSet;

use items_support::*;
use orrery_engine::testing::{IndexedPath, PartitionView};
use orrery_engine::{BatchOperation, Operation, PathStep, Span};
use orrery_index::{ValueRange, encode_raw, encode_value};
use orrery_model::{PatchOp, Pointer, Raw, Value};
use orrery_storage::Direction;
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Clone)]
enum Op {
    Upsert(u8, serde_json::Value),
    /// Replaces one id by another.
    Rename(u8, u8, serde_json::Value),
    Set(u8, serde_json::Value),
    Delete(u8),
}

#[derive(Debug, Clone)]
enum Step {
    Write(u8, Op),
    Batch(u8, Vec<Op>),
    Purge(u8),
    Advance(u64),
    Sweep,
    Reopen,
    Policy(usize),
}

fn scalar() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        (-3i64..3).prop_map(|value| json!(value)),
        (-3i64..3).prop_map(|value| json!(value as f64 / 2.0)),
        prop::sample::select(vec!["", "a", "b"]).prop_map(|value| json!(value)),
        (0u8..3).prop_map(|tail| json!(format!("{}{tail}", "long ".repeat(20)))),
        (0u8..3, -4i8..4).prop_map(|(x, y)| json!({"type": "Point", "coordinates": [x, y]})),
        (1u8..3).prop_map(|size| json!({"type": "LineString", "coordinates": [[0, 0], [size, 4]]})),
    ]
}

fn tree() -> impl Strategy<Value = serde_json::Value> {
    scalar().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|elements| json!(elements)),
            prop::collection::btree_map(prop::sample::select(vec!["x", "y", "z"]), inner, 0..4)
                .prop_map(|members| json!(members)),
        ]
    })
}

fn body() -> impl Strategy<Value = serde_json::Value> {
    let ttl = prop::sample::select(vec![None, None, Some(3)]);
    let names = prop::sample::select(vec!["a", "b", "c", "list"]);
    (prop::collection::btree_map(names, tree(), 0..4), ttl).prop_map(|(members, ttl)| {
        let mut body = json!(members);
        if let Some(ttl) = ttl {
            body["ttl"] = json!(ttl);
        }
        body
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0u8..4, body()).prop_map(|(id, body)| Op::Upsert(id, body)),
        1 => (0u8..4, 0u8..4, body()).prop_map(|(id, to, body)| Op::Rename(id, to, body)),
        2 => (0u8..4, tree()).prop_map(|(id, value)| Op::Set(id, value)),
        1 => (0u8..4).prop_map(Op::Delete),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0u8..3, op()).prop_map(|(pk, op)| Step::Write(pk, op)),
        3 => (0u8..3, prop::collection::vec(op(), 1..5)).prop_map(|(pk, ops)| Step::Batch(pk, ops)),
        1 => (0u8..3).prop_map(Step::Purge),
        1 => (1u64..3).prop_map(Step::Advance),
        2 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
        2 => (0..POLICIES).prop_map(Step::Policy),
    ]
}

const POLICIES: usize = 8;

fn policy(number: usize) -> serde_json::Value {
    let composite = |order: &str| {
        json!([[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": order}],
               [{"path": "/_ts", "order": "descending"}, {"path": "/a/x", "order": "descending"}]])
    };
    let indexing = match number {
        0 => json!({"indexingMode": "consistent"}),
        1 => {
            json!({"indexingMode": "consistent", "includedPaths": [{"path": "/a/*"}, {"path": "/list/[]/x/?"}],
                    "excludedPaths": [{"path": "/*"}]})
        }
        2 => json!({"indexingMode": "none", "automatic": false}),
        3 => json!({"indexingMode": "consistent", "includedPaths": [{"path": "/*"}],
                    "excludedPaths": [{"path": "/a/x/?"}, {"path": "/list/*"}], "compositeIndexes": composite("descending")}),
        4 => json!({"indexingMode": "consistent", "compositeIndexes": composite("ascending")}),
        5 => {
            json!({"indexingMode": "consistent", "spatialIndexes": [{"path": "/a/*"}, {"path": "/list/[]/?", "types": ["Polygon"]}],
                    "fullTextIndexes": [{"path": "/b"}]})
        }
        6 => {
            let plane = json!({"xmin": -180, "ymin": -90, "xmax": 180, "ymax": 90});
            json!({"indexingMode": "consistent", "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/a/*"}],
                    "spatialIndexes": [{"path": "/a/?", "boundingBox": plane}, {"path": "/*", "boundingBox": plane}],
                    "fullTextIndexes": [{"path": "/a/x"}, {"path": "/b"}]})
        }
        _ => json!({"indexingMode": "consistent", "includedPaths": [{"path": "/a/?"}, {"path": "/_ts/?"}],
                    "excludedPaths": [{"path": "/*"}], "compositeIndexes": composite("descending")}),
    };
    let texts = json!({"fullTextPaths": [{"path": "/b"}, {"path": "/a/x"}]});
    let space = if number == 6 { "Geometry" } else { "Geography" };
    json!({"defaultTtl": -1, "indexingPolicy": indexing, "fullTextPolicy": texts, "geospatialConfig": {"type": space}})
}

fn operation(pk: u8, op: &Op) -> Operation {
    let whole = |id: u8, body: &serde_json::Value| {
        let mut whole = body.clone();
        whole["id"] = json!(id.to_string());
        whole["pk"] = json!(format!("p{pk}"));
        document(&whole.to_string())
    };
    match op {
        Op::Upsert(id, body) => Operation::Upsert { id: id.to_string(), document: whole(*id, body) },
        Op::Rename(id, to, body) => Operation::Replace { id: id.to_string(), document: whole(*to, body) },
        Op::Set(id, value) => {
            let stored = document(&value.to_string());
            let value = Raw::document(&stored).unwrap().to_value();
            let operations = vec![PatchOp::Set { path: Pointer::parse("/a").unwrap(), value }];
            Operation::Patch { id: id.to_string(), operations, condition: None }
        }
        Op::Delete(id) => Operation::Delete { id: id.to_string() },
    }
}

const PATHS: [&[&str]; 12] = [
    &["id"],
    &["pk"],
    &["a"],
    &["a", "x"],
    &["a", "[]"],
    &["b"],
    &["b", "y", "z"],
    &["list"],
    &["list", "[]"],
    &["list", "[]", "x"],
    &["list", "[]", "[]"],
    &["_ts"],
];

/// Everything at a path of an item.
fn values<'d>(value: Raw<'d>, path: &[&str], found: &mut Vec<Raw<'d>>) {
    match path {
        [] => found.push(value),
        ["[]", rest @ ..] => value.elements().for_each(|element| values(element, rest, found)),
        [name, rest @ ..] => {
            if let Some(member) = value.get(name) {
                values(member, rest, found);
            }
        }
    }
}

fn check_paths(view: &PartitionView, readable: bool) {
    let mut items = Vec::new();
    let mut all = view.items(&Span::All, None);
    while let Some((key, item)) = all.next_item().unwrap() {
        items.push((key, item));
    }
    for path in PATHS {
        let steps: Vec<PathStep<'_>> = path
            .iter()
            .map(|step| if *step == "[]" { PathStep::Element } else { PathStep::Name(step) })
            .collect();
        let mut wanted: BTreeSet<(Vec<u8>, Vec<u8>)> = BTreeSet::new();
        for (key, item) in &items {
            if *path == ["_ts"] {
                let mut entry = Vec::new();
                encode_value(&mut entry, &Value::from(i64::from(item.ts)));
                wanted.insert((entry, key.to_vec()));
                continue;
            }
            let mut found = Vec::new();
            values(item.body(), path, &mut found);
            for value in found {
                let mut entry = Vec::new();
                encode_raw(&mut entry, value);
                wanted.insert((entry, key.to_vec()));
            }
        }
        let number = match view.path(&steps) {
            IndexedPath::NotIndexed => {
                assert!(!readable, "{path:?} should be readable");
                continue;
            }
            IndexedPath::NoItem => {
                assert!(wanted.is_empty(), "{path:?}: {wanted:?}");
                continue;
            }
            IndexedPath::Entries(number) => number,
        };
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut entries = view.entries(number, &ValueRange::defined(), &Span::All, direction, None);
            let mut found = Vec::new();
            while let Some(entry) = entries.next_entry().unwrap() {
                if view.referenced_item(entry.reference()).unwrap().is_some() {
                    let key = view.item_key(entry.reference()).unwrap();
                    found.push((entry.value().to_vec(), key.to_vec()));
                }
            }
            if direction == Direction::Reverse {
                found.reverse();
            }
            assert!(found.is_sorted_by(|a, b| a.0 <= b.0), "{path:?}");
            let found: BTreeSet<_> = found.into_iter().collect();
            assert_eq!(found, wanted, "{path:?}");
        }
    }
    for composite in view.composites() {
        let all = orrery_index::CompositeRange::new(&[], &composite.descending()).unwrap();
        let mut entries = view.composite_entries(&composite, &all, &Span::All, Direction::Forward, None);
        let mut found = 0;
        while let Some(entry) = entries.next_entry().unwrap() {
            found += usize::from(view.referenced_item(entry.reference()).unwrap().is_some());
        }
        assert_eq!(found, items.len());
    }
}

fn run(mut fixture: Fixture, steps: &[Step]) {
    let mut settled_default = true;
    for step in steps {
        match step {
            Step::Write(pk, op) => drop(fixture.write(&format!("p{pk}"), operation(*pk, op))),
            Step::Batch(pk, ops) => {
                let operations: Vec<BatchOperation> =
                    ops.iter().map(|op| operation(*pk, op).into()).collect();
                wait(fixture.container.write_batch(&key(&format!("p{pk}")), operations)).unwrap();
            }
            Step::Purge(pk) => {
                wait(fixture.container.delete_partition_key(&key(&format!("p{pk}")))).unwrap();
            }
            Step::Advance(seconds) => fixture.env.advance_ms(seconds * 1000),
            Step::Sweep => fixture.sweep(),
            Step::Reopen => fixture.reopen(),
            Step::Policy(number) => {
                fixture.replace_definition(policy(*number));
                settled_default = false;
            }
        }
        let partition = fixture.only_partition();
        assert_eq!(partition.check_index().unwrap(), [""; 0], "after {step:?}");
        check_paths(&partition.open_view(&[]).unwrap(), settled_default);
    }
    fixture.sweep();
    fixture.replace_definition(policy(0));
    fixture.sweep();
    let partition = fixture.only_partition();
    assert_eq!(partition.index_progress(), 100);
    assert_eq!(partition.check_index().unwrap(), [""; 0]);
    check_paths(&partition.open_view(&[]).unwrap(), true);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_index_is_what_a_fresh_walk_gives(steps in prop::collection::vec(step(), 1..50)) {
        run(Fixture::new(policy(0)), &steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn so_it_is_on_disk(steps in prop::collection::vec(step(), 30..100)) {
        run(Fixture::embedded(policy(0)), &steps);
    }
}
