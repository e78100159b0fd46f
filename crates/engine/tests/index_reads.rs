//! Reading the index: spans, merges, positions, estimates, what is hidden, and what a change of policy shows while it
//! runs.

mod items_support;

use std::sync::Arc;

use items_support::*;
use orrery_engine::testing::{Entries, IndexedPath, PartitionView, PathNumber};
use orrery_engine::{EngineConfig, PathStep, Span};
use orrery_index::{CompositeRange, ValueRange};
use orrery_model::Value;
use orrery_storage::{Commit, Direction, Durability, KeyRange, MemoryStore, SpaceId, Store, Table, keys};
use serde_json::json;

fn path(view: &PartitionView, names: &[&str]) -> PathNumber {
    let steps: Vec<PathStep<'_>> = names
        .iter()
        .map(|name| if *name == "[]" { PathStep::Element } else { PathStep::Name(name) })
        .collect();
    match view.path(&steps) {
        IndexedPath::Entries(path) => path,
        other => panic!("{names:?}: {other:?}"),
    }
}

fn ids(view: &PartitionView, mut entries: Entries<'_>) -> Vec<String> {
    let mut ids = Vec::new();
    while let Some(entry) = entries.next_entry().unwrap() {
        if let Some(item) = view.referenced_item(entry.reference()).unwrap() {
            ids.push(item.id().to_owned());
        }
    }
    ids
}

/// 300 items under 30 keys: `n` counts, `even` and `third` divide.
fn filled(extra: serde_json::Value) -> Fixture {
    let fixture = Fixture::new(extra);
    for n in 0..300 {
        let text = json!({"id": format!("{n:03}"), "pk": format!("p{}", n % 30), "n": n, "even": n % 2 == 0,
                          "third": n % 3 == 0, "tags": [n % 5, n % 7, n % 5], "name": format!("name {}", n / 10)});
        fixture.create(&text.to_string()).unwrap();
    }
    fixture
}

fn view(fixture: &Fixture) -> PartitionView {
    fixture.only_partition().open_view(&[]).unwrap()
}

#[test]
fn entries_come_in_the_order_of_their_values_both_ways() {
    let fixture = filled(json!({}));
    let view = view(&fixture);
    let n = path(&view, &["n"]);
    let range =
        ValueRange::above(&Value::from(10i64), true).and(&ValueRange::below(&Value::from(13i64), false));
    assert_eq!(
        ids(&view, view.entries(n, &range, &Span::All, Direction::Forward, None)),
        ["010", "011", "012"]
    );
    assert_eq!(
        ids(&view, view.entries(n, &range, &Span::All, Direction::Reverse, None)),
        ["012", "011", "010"]
    );
    let name = path(&view, &["name"]);
    let range = ValueRange::starts_with("name 2");
    assert_eq!(ids(&view, view.entries(name, &range, &Span::All, Direction::Forward, None)).len(), 110);
    let nothing =
        ValueRange::above(&Value::from(5i64), true).and(&ValueRange::below(&Value::from(1i64), true));
    assert!(ids(&view, view.entries(n, &nothing, &Span::All, Direction::Forward, None)).is_empty());
    assert_eq!(view.path(&[PathStep::Name("nobody")]), IndexedPath::NoItem);
    assert_eq!(view.path(&[PathStep::Name("_rid")]), IndexedPath::NotIndexed);
}

#[test]
fn elements_of_arrays_have_one_entry_for_each_value() {
    let fixture = filled(json!({}));
    let view = view(&fixture);
    let tags = path(&view, &["tags", "[]"]);
    let range = ValueRange::equal(&Value::from(4i64));
    let found = ids(&view, view.entries(tags, &range, &Span::All, Direction::Forward, None));
    let wanted = (0..300).filter(|n| n % 5 == 4 || n % 7 == 4).count();
    assert_eq!(found.len(), wanted);
}

#[test]
fn a_span_is_what_it_is_for_items() {
    let fixture = filled(json!({}));
    let view = view(&fixture);
    let (even, n) = (path(&view, &["even"]), path(&view, &["n"]));
    let key = key("p4");
    let (epk, _) = fixture.container.span(&key).unwrap();
    let logical = Span::Key { epk: epk.clone(), key };
    let is_even = ValueRange::equal(&Value::from(true));
    let found = ids(&view, view.entries(even, &is_even, &logical, Direction::Forward, None));
    assert_eq!(found.len(), 10);
    let found = ids(&view, view.entries(n, &ValueRange::defined(), &logical, Direction::Reverse, None));
    assert_eq!(found.first().map(String::as_str), Some("274"));
    assert_eq!(found.len(), 10);
    // Two halves of the hash space hold everything once, also when the cut goes through a key that shares its hash's
    // start.
    let (min, max) = (view.bounds().0.clone(), view.bounds().1.clone());
    let halves = [Span::Epk { min, max: epk.clone() }, Span::Epk { min: epk, max }];
    for (path, range) in [(even, is_even), (n, ValueRange::defined())] {
        let count =
            |span: &Span| ids(&view, view.entries(path, &range, span, Direction::Forward, None)).len();
        assert_eq!(count(&halves[0]) + count(&halves[1]), count(&Span::All));
        assert!(count(&halves[0]) > 0 && count(&halves[1]) > 0);
    }
}

#[test]
fn scans_over_single_values_can_be_merged() {
    let fixture = filled(json!({}));
    let view = view(&fixture);
    let yes = ValueRange::equal(&Value::from(true));
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut even = view.entries(path(&view, &["even"]), &yes, &Span::All, direction, None);
        let mut third = view.entries(path(&view, &["third"]), &yes, &Span::All, direction, None);
        assert!(even.is_in_item_order());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (even.peek_entry().unwrap(), third.peek_entry().unwrap()) {
            if a.reference() == b.reference() {
                both.push(view.referenced_item(a.reference()).unwrap().unwrap().id().to_owned());
                even.next_entry().unwrap();
            } else if (a.reference() < b.reference()) == (direction == Direction::Forward) {
                even.seek(b.reference()).unwrap();
            } else {
                third.seek(a.reference()).unwrap();
            }
        }
        both.sort();
        let wanted: Vec<String> = (0..300).filter(|n| n % 6 == 0).map(|n| format!("{n:03}")).collect();
        assert_eq!(both, wanted);
    }
}

#[test]
fn a_far_seek_starts_over_and_finds_the_same() {
    let fixture = filled(json!({}));
    let view = view(&fixture);
    let yes = ValueRange::equal(&Value::from(true));
    let all = |direction| {
        let mut entries = view.entries(path(&view, &["even"]), &yes, &Span::All, direction, None);
        let mut references = Vec::new();
        while let Some(entry) = entries.next_entry().unwrap() {
            references.push(entry.reference_bytes());
        }
        references
    };
    for direction in [Direction::Forward, Direction::Reverse] {
        let references = all(direction);
        for at in [0, 1, 30, 100, 149] {
            let mut entries = view.entries(path(&view, &["even"]), &yes, &Span::All, direction, None);
            entries.seek(&references[at]).unwrap();
            assert_eq!(entries.next_entry().unwrap().unwrap().reference(), &references[at]);
            if at < 149 {
                assert_eq!(entries.next_entry().unwrap().unwrap().reference(), &references[at + 1]);
            }
        }
    }
}

#[test]
fn a_position_is_good_after_a_restart() {
    let mut fixture = filled(json!({}));
    for direction in [Direction::Forward, Direction::Reverse] {
        let mut found = Vec::new();
        let mut after: Option<Vec<u8>> = None;
        loop {
            let view = view(&fixture);
            let name = path(&view, &["name"]);
            let mut entries =
                view.entries(name, &ValueRange::defined(), &Span::All, direction, after.as_deref());
            let mut page = 0;
            while page < 37
                && let Some(entry) = entries.next_entry().unwrap()
            {
                found.push(view.item_key(entry.reference()).unwrap());
                after = Some(entry.position().to_vec());
                page += 1;
            }
            if page < 37 {
                break;
            }
            drop(entries);
            drop(view);
            fixture.reopen();
        }
        assert_eq!(found.len(), 300);
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 300);
    }
}

#[test]
fn estimates_are_exact_when_small_and_near_when_large() {
    let fixture = filled(json!({}));
    let view = view(&fixture);
    let (even, n) = (path(&view, &["even"]), path(&view, &["n"]));
    let yes = ValueRange::equal(&Value::from(true));
    let exact = view.estimate(even, &yes, &Span::All, 1000).unwrap();
    assert_eq!((exact.rows, exact.exact), (150, true));
    let judged = view.estimate(even, &yes, &Span::All, 50).unwrap();
    assert!(!judged.exact && (75..=300).contains(&judged.rows), "{judged:?}");
    let judged = view.estimate(n, &ValueRange::above(&Value::from(100i64), true), &Span::All, 20).unwrap();
    assert!(!judged.exact && (190..=210).contains(&judged.rows), "{judged:?}");
    let none = view.estimate(n, &ValueRange::equal(&Value::from(1000i64)), &Span::All, 20).unwrap();
    assert_eq!((none.rows, none.exact), (0, true));
}

#[test]
fn hidden_items_are_known_to_be_there() {
    let fixture = filled(json!({"defaultTtl": -1}));
    fixture.sweep();
    assert!(view(&fixture).hides_nothing().unwrap());
    fixture.upsert(r#"{"id":"x","pk":"p1","ttl":5}"#).unwrap();
    assert!(view(&fixture).hides_nothing().unwrap());
    fixture.env.advance_ms(10_000);
    let over = view(&fixture);
    // The account's own sweeper may have been there already.
    if !over.hides_nothing().unwrap() {
        let id = path(&over, &["id"]);
        let range = ValueRange::equal(&Value::from("x"));
        assert!(ids(&over, over.entries(id, &range, &Span::All, Direction::Forward, None)).is_empty());
    }
    fixture.sweep();
    assert!(view(&fixture).hides_nothing().unwrap());
}

#[test]
fn composite_indexes_sort_by_all_their_paths() {
    let composite = json!([[{"path": "/even", "order": "descending"}, {"path": "/n", "order": "ascending"}]]);
    let fixture =
        filled(json!({"indexingPolicy": {"indexingMode": "consistent", "compositeIndexes": composite}}));
    let view = view(&fixture);
    let composites = view.composites();
    let index = composites.first().unwrap();
    let all = CompositeRange::new(&[], &index.descending()).unwrap();
    let found = ids(&view, view.composite_entries(index, &all, &Span::All, Direction::Forward, None));
    assert_eq!((found[0].as_str(), found[149].as_str(), found[150].as_str()), ("000", "298", "001"));
    let ranges = [ValueRange::equal(&Value::from(false)), ValueRange::below(&Value::from(6i64), true)];
    let some = CompositeRange::new(&ranges, &index.descending()).unwrap();
    let found = ids(&view, view.composite_entries(index, &some, &Span::All, Direction::Reverse, None));
    assert_eq!(found, ["005", "003", "001"]);
}

#[test]
fn a_changed_policy_is_used_when_it_is_complete_and_not_before() {
    let all = json!({"indexingPolicy": {"indexingMode": "consistent"}});
    let some = json!({"indexingPolicy": {"indexingMode": "consistent", "includedPaths": [{"path": "/n/?"}],
                                         "excludedPaths": [{"path": "/*"}]}});
    let mut fixture = filled(all.clone());
    fixture.replace_definition(some);
    fixture.upsert(r#"{"id":"new","pk":"p1","n":1000,"even":true}"#).unwrap();
    let even = [PathStep::Name("even")];
    assert_eq!(view(&fixture).path(&even), IndexedPath::NotIndexed);
    let between = view(&fixture);
    let n = path(&between, &["n"]);
    let found =
        ids(&between, between.entries(n, &ValueRange::defined(), &Span::All, Direction::Forward, None));
    assert_eq!(found.len(), 301, "what both policies index stays readable");
    fixture.sweep();
    assert_eq!(fixture.container.index_progress(), 100);
    assert_eq!(view(&fixture).path(&even), IndexedPath::NotIndexed);
    fixture.replace_definition(all);
    assert!(fixture.container.index_progress() < 100);
    fixture.reopen();
    fixture.sweep();
    assert_eq!(fixture.container.index_progress(), 100);
    let complete = view(&fixture);
    let yes = ValueRange::equal(&Value::from(true));
    let even = path(&complete, &["even"]);
    assert_eq!(ids(&complete, complete.entries(even, &yes, &Span::All, Direction::Forward, None)).len(), 151);
    assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0]);
}

#[test]
fn data_from_before_the_index_is_taken_in() {
    let store = Arc::new(MemoryStore::new());
    let shared: Arc<dyn Store> = store.clone();
    let mut fixture = Fixture::over(shared, EngineConfig::default(), json!({}), 400);
    for n in 0..200 {
        fixture.create(&json!({"id": n.to_string(), "pk": "p", "n": n}).to_string()).unwrap();
    }
    // Everything that the index has written is taken away.
    for number in 1..8 {
        let space = store.open_space(SpaceId(number)).unwrap();
        let mut commit = Commit::default();
        let snapshot = space.snapshot().unwrap();
        let mut rows = snapshot.scan(Table::Index, KeyRange::all(), Direction::Forward);
        while let Some(row) = rows.next_row() {
            let row = row.unwrap();
            if keys::index::IndexKey::decode(&row.key).is_some() {
                commit.delete(Table::Index, row.key);
            }
        }
        if snapshot.get(Table::Feed, &keys::meta("index-scheme")).unwrap().is_some() {
            commit.delete(Table::Feed, keys::meta("index-scheme"));
        }
        if !commit.changes.is_empty() {
            space.commit(commit, Durability::Relaxed).unwrap();
        }
    }
    fixture.reopen();
    fixture.upsert(r#"{"id":"new","pk":"p","n":1000}"#).unwrap();
    fixture.sweep();
    assert_eq!(fixture.container.index_progress(), 100);
    assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0]);
    let view = view(&fixture);
    let n = path(&view, &["n"]);
    let found = ids(&view, view.entries(n, &ValueRange::defined(), &Span::All, Direction::Forward, None));
    assert_eq!(found.len(), 201);
}

#[test]
fn an_item_with_too_many_entries_turns_the_index_off_and_not_wrong() {
    let fixture = Fixture::new(json!({}));
    fixture.create(r#"{"id":"small","pk":"p","n":1}"#).unwrap();
    // Each element makes an entry with a copy of the long key.
    let pk = "k".repeat(1000);
    let elements: Vec<usize> = (0..20_000).collect();
    let large = |elements: &[usize]| json!({"id": "large", "pk": pk, "list": elements}).to_string();
    fixture.create(&large(&elements)).unwrap();
    assert_eq!(view(&fixture).path(&[PathStep::Name("n")]), IndexedPath::NotIndexed);
    assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0]);
    fixture.upsert(&large(&elements[..10])).unwrap();
    assert!(matches!(view(&fixture).path(&[PathStep::Name("n")]), IndexedPath::Entries(_)));
    fixture.upsert(&large(&elements)).unwrap();
    fixture.delete(&pk, "large").unwrap();
    assert!(matches!(view(&fixture).path(&[PathStep::Name("n")]), IndexedPath::Entries(_)));
    assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0]);
}
