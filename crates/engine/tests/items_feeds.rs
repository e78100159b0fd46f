//! Lists of items, the change feed, and what stays in it.

mod items_support;

use std::sync::Arc;

use items_support::*;
use orrery_engine::testing::ORDERED_SCAN_ITEMS_MAX;
use orrery_engine::{ChangesFrom, EngineConfig, FeedContinuation, Kind, Operation, PageRequest, Scope};
use orrery_model::{KeyComponent, PartitionKey};
use orrery_storage::{MemoryStore, SpaceId, Table, keys};
use serde_json::json;

fn item(pk: &str, id: usize) -> String {
    format!(r#"{{"id":"{id}","pk":"{pk}"}}"#)
}

fn changes(fixture: &Fixture, scope: &Scope, from: ChangesFrom) -> (Vec<String>, u64) {
    let mut ids = Vec::new();
    let mut from = from;
    loop {
        let page = wait(fixture.container.read_changes(scope, from, &PageRequest::new(3))).unwrap();
        ids.extend(page.items.iter().map(|item| item.id().to_owned()));
        from = ChangesFrom::After(page.lsn);
        if !page.more {
            return (ids, page.lsn);
        }
    }
}

#[test]
fn a_small_partition_is_listed_in_the_order_of_creation() {
    let fixture = Fixture::new(json!({}));
    for n in 0..50 {
        fixture.create(&item(&format!("k{}", n % 7), n)).unwrap();
    }
    fixture.replace(&item("k3", 3)).unwrap();
    fixture.delete("k4", "4").unwrap();
    fixture.create(&item("k4", 4)).unwrap();
    let expected: Vec<String> = (0..50).filter(|n| *n != 4).chain([4]).map(|n| n.to_string()).collect();
    for page_items in [1, 7, 49, 50, 1000] {
        assert_eq!(fixture.list(&Scope::All, page_items), expected, "{page_items} a page");
    }
    let of_key: Vec<String> =
        expected.iter().filter(|id| id.parse::<usize>().unwrap() % 7 == 4).cloned().collect();
    assert_eq!(fixture.list(&Scope::Key(key("k4")), 2), of_key);
    assert_eq!(fixture.list(&Scope::Key(key("none")), 2), Vec::<String>::new());
}

#[test]
fn a_list_goes_through_all_partitions_and_ends_exactly() {
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), EngineConfig::default(), json!({}), 50_000);
    for n in 0..60 {
        fixture.create(&item(&format!("key{n}"), n)).unwrap();
    }
    let mut seen_in_ranges = 0;
    for range in fixture.container.ranges() {
        let in_range = fixture.list(&Scope::Range(range.id), 4);
        let by_hash = Scope::Epk { min: range.min.clone(), max: range.max.clone(), range: None };
        assert_eq!(fixture.list(&by_hash, 5), in_range);
        seen_in_ranges += in_range.len();
    }
    assert_eq!(seen_in_ranges, 60);
    for page_items in 1..=61 {
        let mut found = fixture.list(&Scope::All, page_items);
        assert_eq!(found.len(), 60, "{page_items} a page");
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 60);
    }
    assert_eq!(
        kind(wait(fixture.container.read_feed(&Scope::Range(99), &PageRequest::new(1)))),
        Kind::RangeGone
    );
}

#[test]
fn a_page_is_limited_in_bytes_and_has_at_least_one_item() {
    let fixture = Fixture::new(json!({}));
    for n in 0..4 {
        fixture.create(&format!(r#"{{"id":"{n}","pk":"a","s":"{}"}}"#, "x".repeat(1000))).unwrap();
    }
    let page = |max_bytes| PageRequest { max_bytes, ..PageRequest::new(100) };
    assert_eq!(wait(fixture.container.read_feed(&Scope::All, &page(2500))).unwrap().items.len(), 2);
    let one = wait(fixture.container.read_feed(&Scope::All, &page(10))).unwrap();
    assert_eq!((one.items.len(), one.continuation.is_some()), (1, true));
}

#[test]
fn a_large_partition_is_listed_by_hash_and_keeps_its_order_while_it_grows() {
    let fixture = Fixture::new(json!({}));
    let create = |from: usize, to: usize| {
        for chunk in (from..to).collect::<Vec<_>>().chunks(100) {
            let operations = chunk
                .iter()
                .map(|n| {
                    let (pk, id, document) = parts(&item(&format!("k{}", n % 97), *n));
                    (key(&pk), Operation::Create { id, document }.into())
                })
                .collect();
            let range = fixture.container.ranges()[0].id;
            assert!(wait(fixture.container.write_bulk(range, operations, false)).unwrap().committed);
        }
    };
    create(0, ORDERED_SCAN_ITEMS_MAX);
    let first = wait(fixture.container.read_feed(&Scope::All, &PageRequest::new(3000))).unwrap();
    let numbers: Vec<u64> = first.items.iter().map(|item| item.number).collect();
    assert!(numbers.is_sorted(), "few enough for the order of creation");
    create(ORDERED_SCAN_ITEMS_MAX, ORDERED_SCAN_ITEMS_MAX + 300);
    let mut page = PageRequest { continuation: first.continuation, ..PageRequest::new(3000) };
    let mut last = *numbers.last().unwrap();
    let mut count = numbers.len();
    while let Some(continuation) = page.continuation.take() {
        let bytes = continuation.encode();
        page.continuation = FeedContinuation::decode(&bytes);
        let found = wait(fixture.container.read_feed(&Scope::All, &page)).unwrap();
        assert!(found.items.iter().all(|item| item.number > last), "the order it began with");
        last = found.items.last().map_or(last, |item| item.number);
        count += found.items.len();
        page.continuation = found.continuation;
    }
    assert_eq!(count, ORDERED_SCAN_ITEMS_MAX + 300);
    // A list that begins now runs by hash, in pages that fit together.
    let ids = fixture.list(&Scope::All, 999);
    assert_eq!(ids.len(), ORDERED_SCAN_ITEMS_MAX + 300);
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
    assert_eq!(fixture.list(&Scope::Key(key("k5")), 10).first().map(String::as_str), Some("5"));
}

#[test]
fn a_prefix_of_a_hierarchical_key_lists_all_below_it() {
    let fixture = Fixture::over(
        Arc::new(MemoryStore::new()),
        EngineConfig::default(),
        json!({"partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}}),
        30_000,
    );
    let text = |text: &str| KeyComponent::String(text.into());
    for n in 0..30 {
        let (a, b) = (format!("a{}", n % 3), format!("b{n}"));
        let body = document(&format!(r#"{{"id":"{n}","a":"{a}","b":"{b}"}}"#));
        let full = PartitionKey([text(&a), text(&b)].into_iter().collect());
        wait(
            fixture
                .container
                .write_item(&full, Operation::Create { id: n.to_string(), document: body }.into()),
        )
        .unwrap();
    }
    let mut found = fixture.list(&Scope::Key(key("a1")), 4);
    found.sort_by_key(|id| id.parse::<usize>().unwrap());
    assert_eq!(found, (0..30).filter(|n| n % 3 == 1).map(|n| n.to_string()).collect::<Vec<_>>());
    let full = PartitionKey([text("a1"), text("b4")].into_iter().collect());
    assert_eq!(fixture.list(&Scope::Key(full), 4), ["4"]);
}

#[test]
fn a_foreign_continuation_is_refused() {
    let fixture = Fixture::new(json!({}));
    let part = orrery_engine::FeedPart {
        min: orrery_model::Epk::from_hex("05").unwrap(),
        max: orrery_model::Epk::max(),
        position: orrery_engine::ScanPosition::Start,
    };
    let continuation = FeedContinuation { parts: vec![part.clone(), part] };
    let page = PageRequest { continuation: Some(continuation), ..PageRequest::new(1) };
    let error = wait(fixture.container.read_feed(&Scope::All, &page)).unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (Kind::BadRequest, "Invalid Continuation Token"));
}

#[test]
fn changes_come_once_at_their_latest_in_the_order_of_commits() {
    let fixture = Fixture::new(json!({"defaultTtl": -1}));
    for n in 0..6 {
        fixture.create(&item("a", n)).unwrap();
    }
    let (ids, seen) = changes(&fixture, &Scope::All, ChangesFrom::Beginning);
    assert_eq!((ids.join(" ").as_str(), seen), ("0 1 2 3 4 5", 6));
    assert_eq!(changes(&fixture, &Scope::All, ChangesFrom::Now), (vec![], 6));
    fixture.replace(&item("a", 1)).unwrap();
    fixture.delete("a", "2").unwrap();
    fixture.create(&item("b", 9)).unwrap();
    fixture.create(r#"{"id":"short","pk":"a","ttl":1}"#).unwrap();
    fixture.env.advance_ms(5_000);
    assert_eq!(changes(&fixture, &Scope::All, ChangesFrom::After(seen)).0, ["1", "9"]);
    assert_eq!(changes(&fixture, &Scope::All, ChangesFrom::Beginning).0.join(" "), "0 3 4 5 1 9");
    assert_eq!(changes(&fixture, &Scope::Key(key("b")), ChangesFrom::Beginning).0, ["9"]);
    let half = orrery_model::Epk::from_hex("20").unwrap();
    let low = Scope::Epk { min: orrery_model::Epk::MIN, max: half.clone(), range: None };
    let high = Scope::Epk { min: half, max: orrery_model::Epk::max(), range: None };
    let (low, high) = (
        changes(&fixture, &low, ChangesFrom::Beginning).0,
        changes(&fixture, &high, ChangesFrom::Beginning).0,
    );
    assert_eq!(low.len() + high.len(), 6);
}

#[test]
fn changes_can_begin_at_a_time() {
    let fixture = Fixture::new(json!({}));
    for n in 0..40 {
        fixture.create(&item("a", n)).unwrap();
        fixture.env.advance_ms(500);
    }
    let start = (NOW_MS / 1000) as u32;
    assert_eq!(changes(&fixture, &Scope::All, ChangesFrom::Time(start)).0.len(), 40);
    assert_eq!(changes(&fixture, &Scope::All, ChangesFrom::Time(start + 5)).0.first().unwrap(), "10");
    assert_eq!(changes(&fixture, &Scope::All, ChangesFrom::Time(start + 19)).0, ["38", "39"]);
    assert_eq!(changes(&fixture, &Scope::All, ChangesFrom::Time(start + 999)).0.len(), 0);
}

#[test]
fn a_page_of_changes_never_ends_inside_a_commit() {
    let fixture = Fixture::new(json!({}));
    let operations = (0..10)
        .map(|n| {
            let (_, id, document) = parts(&item("a", n));
            Operation::Create { id, document }.into()
        })
        .collect();
    fixture.create(&item("a", 100)).unwrap();
    assert!(wait(fixture.container.write_batch(&key("a"), operations)).unwrap().committed);
    fixture.create(&item("a", 101)).unwrap();
    let page =
        wait(fixture.container.read_changes(&Scope::All, ChangesFrom::Beginning, &PageRequest::new(3)))
            .unwrap();
    assert_eq!((page.items.len(), page.lsn, page.more), (11, 2, true));
    let page = wait(fixture.container.read_changes(&Scope::All, ChangesFrom::After(2), &PageRequest::new(3)))
        .unwrap();
    assert_eq!((page.items.len(), page.lsn, page.more), (1, 3, false));
}

#[test]
fn old_deletes_leave_the_feed_but_the_newest_row_stays() {
    let store = Arc::new(MemoryStore::new());
    let mut fixture = Fixture::over(store, EngineConfig::default(), json!({}), 400);
    for n in 0..20 {
        fixture.create(&item("a", n)).unwrap();
    }
    for n in 0..19 {
        fixture.delete("a", &n.to_string()).unwrap();
    }
    let feed_rows = |fixture: &Fixture| -> usize {
        // Opening the space here would fence the account, so the rows are counted after it and before the next.
        let space = (1..100).map(SpaceId).find_map(|id| {
            let space = fixture.store.open_space(id).unwrap();
            let rows = count(space.snapshot().unwrap().as_ref());
            (rows > 0).then_some(rows)
        });
        space.unwrap_or(0)
    };
    fn count(snapshot: &dyn orrery_storage::Snapshot) -> usize {
        let mut rows = snapshot.scan(Table::Feed, keys::feed_after(0), orrery_storage::Direction::Forward);
        std::iter::from_fn(|| rows.next_row()).map(Result::unwrap).count()
    }
    fixture.sweep();
    assert_eq!(feed_rows(&fixture), 20, "young deletes stay");
    fixture.reopen();
    fixture.env.advance_ms(2 * 3600 * 1000);
    fixture.sweep();
    assert_eq!(feed_rows(&fixture), 2, "one live item, and the newest row");
    fixture.reopen();
    assert_eq!((fixture.only_partition().lsn(), fixture.stored_items()), (39, 1));
    fixture.create(&item("a", 50)).unwrap();
    assert_eq!(fixture.only_partition().lsn(), 40);
}
