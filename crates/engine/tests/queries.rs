//! Queries inside a partition: whatever plan finds the items, the rows are those of the naive evaluator.
//!
//! Each case makes a container with a random policy, fills it, changes some of it, and asks random queries, whole and
//! in pages of random sizes. A failure prints its seed; `ORRERY_SEED=n` runs that case alone, `ORRERY_CASES=n` that
//! many.

mod items_support;
mod query_support;

use std::collections::BTreeMap;

use orrery_engine::query::Progress;
use orrery_engine::{QueryPosition, Scope};
use query_support::{Case, Dice, EXTENDED, VALUES, check_case};

/// Cases of an ordinary run. Each asks dozens of queries.
const CASES: u64 = 60;

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn planned_queries_answer_as_the_naive_evaluator() {
    let mut ways = BTreeMap::new();
    if let Some(seed) = environment("ORRERY_SEED") {
        return check_case(seed, &VALUES, &mut ways);
    }
    for seed in 0..environment("ORRERY_CASES").unwrap_or(CASES) {
        check_case(seed, &VALUES, &mut ways);
    }
    // Items found, all of them, in order, counted, values: every way was gone, and none by chance alone.
    for way in ["items", "all", "in", "counted", "values"] {
        assert!(ways.get(way).is_some_and(|pages| *pages > 20), "{way}: {ways:?}");
    }
}

#[test]
fn planned_queries_over_values_of_other_apis_answer_as_the_naive_evaluator() {
    let mut ways = BTreeMap::new();
    if let Some(seed) = environment("ORRERY_SEED") {
        return check_case(seed, &EXTENDED, &mut ways);
    }
    for seed in 0..environment("ORRERY_CASES").unwrap_or(CASES) {
        check_case(seed, &EXTENDED, &mut ways);
    }
    for way in ["items", "all", "in", "counted", "values"] {
        assert!(ways.get(way).is_some_and(|pages| *pages > 20), "{way}: {ways:?}");
    }
}

#[test]
fn a_position_of_another_kind_of_query_is_refused() {
    let case = Case::new(&mut Dice(1));
    let query = case.prepare("SELECT * FROM c ORDER BY c.n").unwrap();
    let partition = case.partitions().remove(0);
    let from = QueryPosition::Created { from: 3, progress: Progress::default() };
    assert!(case.page(&partition, &Scope::All, &query, Some(&from), 10).is_err());
}

/// All rows of a query in pages, what reading them took, and how many pages there were.
fn read_to_the_end(case: &Case, text: &str, rows: usize) -> (Vec<String>, u64, usize) {
    let prepared = case.prepare(text).unwrap();
    let partition = case.partitions().remove(0);
    let (mut all, mut read, mut pages) = (Vec::new(), 0, 0);
    let mut from: Option<QueryPosition> = None;
    loop {
        let (found, page) = case.page(&partition, &Scope::All, &prepared, from.as_ref(), rows).unwrap();
        all.extend(found);
        read += page.metrics.index_entries + page.metrics.loaded_items;
        pages += 1;
        match page.next {
            None => return (all, read, pages),
            Some(next) => from = Some(QueryPosition::decode(&next.encode()).unwrap()),
        }
    }
}

#[test]
fn a_full_page_of_a_plain_scan_leaves_its_end_open() {
    let fixture = items_support::Fixture::new(serde_json::json!({}));
    for at in 0..6 {
        fixture.create(&format!(r#"{{"id":"i{at}","pk":"p","n":{at},"same":1}}"#)).unwrap();
    }
    let mut case = Case::of(fixture);
    let key = Scope::Key(items_support::key("p"));
    for stored in [false, true] {
        if stored {
            case.costs.created_items_max = 2;
        }
        for (text, open) in [
            ("SELECT * FROM c", true),
            ("SELECT VALUE c.n FROM c", true),
            ("SELECT * FROM c WHERE c.n >= 0", false),
            ("SELECT * FROM c WHERE c.n + 1 > 0", false),
            ("SELECT * FROM c ORDER BY c.n", false),
            ("SELECT * FROM c ORDER BY c.n DESC", false),
            ("SELECT * FROM c ORDER BY c.same", false),
            ("SELECT * FROM c ORDER BY c.absent DESC", false),
            ("SELECT * FROM c WHERE c.n >= 0 ORDER BY c.n", false),
            ("SELECT * FROM c WHERE c.same = 1 ORDER BY c.n DESC", false),
            ("SELECT * FROM c WHERE c.n + 1 > 0 ORDER BY c.n", false),
            ("SELECT * FROM c WHERE c.same = 1 AND c.n + 1 > 0 ORDER BY c.n", false),
            ("SELECT TOP 6 * FROM c", false),
            ("SELECT TOP 9 * FROM c", false),
            ("SELECT * FROM c OFFSET 0 LIMIT 6", false),
        ] {
            for (rows, pages) in [(6, 1), (3, 2), (2, 3), (1, 6), (4, 2), (7, 1)] {
                let empty = usize::from(open && 6 % rows == 0);
                let (found, _, read) = read_to_the_end(&case, text, rows);
                assert_eq!((found.len(), read), (6, pages + empty), "{text} in pages of {rows}, {stored}");
            }
            // A logical partition knows its end.
            let prepared = case.prepare(text).unwrap();
            let page = case.page(&case.partitions().remove(0), &key, &prepared, None, 6).unwrap().1;
            assert_eq!((page.rows, page.next), (6, None), "{text}");
        }
    }
}

#[test]
fn groups_and_distinct_rows_are_read_to_the_end_at_the_cost_of_few_runs() {
    const ITEMS: usize = 3_000;
    for small in [true, false] {
        let fixture = items_support::Fixture::new(serde_json::json!({}));
        for at in 0..ITEMS {
            let text = format!(r#"{{"id":"i{at}","pk":"p{}","g":{},"n":{at}}}"#, at % 20, at * 7 % 1_000);
            fixture.create(&text).unwrap();
        }
        let mut case = Case::of(fixture);
        if !small {
            case.costs.created_items_max = 10;
        }
        for (text, runs) in [
            ("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g", 1),
            ("SELECT c.g, SUM(c.n) AS n FROM c WHERE c.n >= 0 GROUP BY c.g", 1),
            ("SELECT VALUE COUNT(1) FROM c GROUP BY c.g", 1),
            ("SELECT DISTINCT VALUE c.g FROM c", 2),
            ("SELECT DISTINCT c.g, c.pk FROM c", 2),
            ("SELECT DISTINCT TOP 700 VALUE c.g FROM c WHERE c.n < 2900", 2),
        ] {
            let (rows, read, pages) = read_to_the_end(&case, text, 50);
            assert!(pages >= 14, "{text}: {pages} pages");
            assert!(read <= (runs * ITEMS * 2) as u64, "{text}: {read} items and entries for {pages} pages");
            // The same when nothing is kept, as after a restart.
            case.keep_nothing();
            assert_eq!(read_to_the_end(&case, text, 333).0, rows, "{text}");
            case.keep_rows();
        }
    }
}

#[test]
fn few_distinct_values_are_found_by_few_entries() {
    let fixture = items_support::Fixture::new(serde_json::json!({}));
    for at in 0..4_000 {
        fixture.create(&format!(r#"{{"id":"i{at}","pk":"p{}","kind":"k{}"}}"#, at % 20, at % 4)).unwrap();
    }
    let mut case = Case::of(fixture);
    case.costs.created_items_max = 10;
    let (rows, read, _) = read_to_the_end(&case, "SELECT DISTINCT VALUE c.kind FROM c", 100);
    assert_eq!(rows, ["\"k0\"", "\"k1\"", "\"k2\"", "\"k3\""]);
    assert!(read < 400, "{read} entries of 4,000");
    let (rows, ..) =
        read_to_the_end(&case, "SELECT DISTINCT TOP 2 VALUE c.kind FROM c WHERE c.kind > 'k1'", 1);
    assert_eq!(rows, ["\"k2\"", "\"k3\""]);
}

#[test]
fn sorting_costs_the_same_in_both_directions() {
    let fixture = items_support::Fixture::new(serde_json::json!({}));
    for at in 0..3_000 {
        let maybe = if at % 1_000 == 7 { "" } else { ",\"maybe\":1" };
        let text =
            format!(r#"{{"id":"i{at}","pk":"p{}","n":{}{maybe},"k":{at}}}"#, at % 20, at * 7919 % 100_003);
        fixture.create(&text).unwrap();
    }
    let case = Case::of(fixture);
    let loaded = |text: &str| {
        let prepared = case.prepare(text).unwrap();
        let partition = case.partitions().remove(0);
        let (rows, page) = case.page(&partition, &Scope::All, &prepared, None, 100).unwrap();
        assert_eq!(rows.len(), 10, "{text}");
        (page.metrics.loaded_items, page.charge_ru)
    };
    // Also the first time, when it has to be found out that every item has the path.
    for _ in 0..2 {
        let (rising, rising_ru) = loaded("SELECT TOP 10 * FROM c ORDER BY c.n");
        let (falling, falling_ru) = loaded("SELECT TOP 10 * FROM c ORDER BY c.n DESC");
        assert_eq!((rising, falling), (10, 10));
        assert!((rising_ru - falling_ru).abs() < 1e-9);
        // Some pass, and the three that lack a path are looked at.
        assert!(loaded("SELECT TOP 10 * FROM c WHERE c.k >= 100 ORDER BY c.n").0 < 100);
    }
}

#[test]
fn the_first_by_partition_key_and_id_are_all_that_is_loaded() {
    const PAGE: usize = 7;
    let keys = serde_json::json!([[{"path": "/pk"}, {"path": "/id"}]]);
    let policy = serde_json::json!({"indexingPolicy": {"compositeIndexes": keys}});
    let fixture = items_support::Fixture::new(policy);
    for at in 0..3_000 {
        let n = at * 7919 % 3_001;
        let half = if n % 4 == 0 { "yes" } else { "no" };
        let text = format!(r#"{{"id":"i{n}","pk":"p{}","kind":"k{}","half":"{half}"}}"#, n % 50, n % 20);
        fixture.create(&text).unwrap();
    }
    let case = Case::of(fixture);
    for (text, pages_max) in [
        ("SELECT * FROM c WHERE c.kind = 'k3' ORDER BY c.pk, c.id", 25),
        ("SELECT * FROM c WHERE c.kind = 'k3' ORDER BY c.pk DESC, c.id DESC", 25),
        ("SELECT * FROM c WHERE c.kind = 'k4' AND (c.half ?? 'no') != 'no' ORDER BY c.pk, c.id", 25),
        ("SELECT TOP 5 * FROM c WHERE c.kind = 'k3' ORDER BY c.pk, c.id", 1),
        ("SELECT * FROM c WHERE c.kind = 'k3' ORDER BY c.pk, c.id OFFSET 3 LIMIT 40", 7),
    ] {
        let (_, read, pages) = read_to_the_end(&case, text, PAGE);
        assert!(pages <= pages_max, "{text}: {pages} pages");
        // All candidates are read for each page, and hardly more items loaded than it has rows.
        assert!(read <= (pages * (160 + 3 * PAGE)) as u64, "{text}: {read} for {pages} pages");
        case.check_sorted(text, PAGE);
    }
    // What is named by both is looked up, whatever else is asked of it.
    for (text, rows) in [
        ("SELECT * FROM c WHERE c.pk = 'p3' AND c.id = 'i3' ORDER BY c.pk, c.id", 1),
        ("SELECT * FROM c WHERE c.id = 'i3' AND c.pk = 'p3'", 1),
        ("SELECT * FROM c WHERE c.id = 'i4' AND c.pk = 'p3'", 0),
        ("SELECT * FROM c WHERE c.pk = 'p3' AND c.id = 'i3' AND c.kind = 'k4'", 0),
        ("SELECT * FROM c WHERE c.pk = 'none' AND c.id = 'i3'", 0),
    ] {
        let (found, read, _) = read_to_the_end(&case, text, PAGE);
        assert!(found.len() == rows && read <= 1, "{text}: {found:?}, {read} read");
    }
    // Few of those that come first pass: another way is taken.
    case.check_sorted("SELECT * FROM c WHERE c.kind = 'k3' AND c.id LIKE '%77%' ORDER BY c.pk, c.id", PAGE);
}

#[test]
fn items_that_come_to_lack_a_path_and_get_it_again_are_sorted_where_they_belong() {
    for absent_items_max in [1_024, 6, 1] {
        lack_and_get_again(absent_items_max);
    }
}

/// With lists of at most so many items that lack a path.
fn lack_and_get_again(absent_items_max: usize) {
    let mut dice = Dice(environment("ORRERY_SEED").unwrap_or(3));
    let fixture = items_support::Fixture::new(serde_json::json!({}));
    let mut case = Case::of(fixture);
    case.costs.absent_items_max = absent_items_max;
    let item = |dice: &mut Dice, at: usize| match dice.below(3) {
        0 => format!(r#"{{"id":"i{at}","pk":"p{}"}}"#, at % 7),
        1 => format!(r#"{{"id":"i{at}","pk":"p{}","n":{{}}}}"#, at % 7),
        _ => format!(r#"{{"id":"i{at}","pk":"p{}","n":{},"o":{{"n":1}}}}"#, at % 7, dice.below(9)),
    };
    for at in 0..100 {
        case.fixture.create(&item(&mut dice, at)).unwrap();
    }
    for round in 0..80 {
        for text in [
            "SELECT TOP 4 * FROM c ORDER BY c.n",
            "SELECT VALUE [c.id, c.n] FROM c ORDER BY c.n",
            "SELECT VALUE [c.id, c.n] FROM c ORDER BY c.n DESC",
            "SELECT VALUE c.id FROM c WHERE c.id != 'i9' ORDER BY c.o.n OFFSET 3 LIMIT 20",
        ] {
            case.check_sorted(text, if round % 2 == 0 { 7 } else { 1_000 });
        }
        let at = dice.below(110);
        match dice.below(4) {
            0 => drop(case.fixture.delete(&format!("p{}", at % 7), &format!("i{at}"))),
            _ => drop(case.fixture.upsert(&item(&mut dice, at)).unwrap()),
        }
    }
}

#[test]
fn rows_that_no_index_has_in_order_are_put_in_order_once_for_many_pages() {
    const ITEMS: usize = 4_500;
    let fixture = items_support::Fixture::new(serde_json::json!({}));
    for at in 0..ITEMS {
        let maybe = if at % 3 == 0 { format!(",\"maybe\":{}", at % 10) } else { String::new() };
        let text = format!(r#"{{"id":"i{at}","pk":"p{}","kind":{}{maybe},"k":{at}}}"#, at % 20, at % 2);
        fixture.create(&text).unwrap();
    }
    let mut case = Case::of(fixture);
    let charge = |case: &Case, text: &str| {
        let prepared = case.prepare(text).unwrap();
        let page = case.page(&case.partitions().remove(0), &Scope::All, &prepared, None, 100).unwrap().1;
        (page.charge_ru, page.metrics.sifted_items)
    };
    for (text, windows) in [
        // Most items lack the path; every value is that of many.
        ("SELECT c.id, c.maybe FROM c ORDER BY c.maybe", 1),
        ("SELECT c.id, c.maybe FROM c ORDER BY c.maybe DESC", 2),
        ("SELECT c.id FROM c ORDER BY c.kind", 2),
        ("SELECT c.id FROM c WHERE c.kind = 1 ORDER BY c.kind", 1),
        ("SELECT c.id FROM c WHERE c.k >= 10 ORDER BY c.maybe OFFSET 5 LIMIT 3500", 1),
    ] {
        case.costs.run_entries_max = 1_000;
        let (rows, read, pages) = read_to_the_end(&case, text, 100);
        assert!(pages >= 20, "{text}: {pages} pages");
        let once = (ITEMS * (2 * windows + 1)) as u64;
        assert!(read <= once, "{text}: {read} items and entries for {pages} pages");
        // The same when nothing is kept, as after a restart, and as the evaluator says.
        case.keep_nothing();
        assert_eq!(read_to_the_end(&case, text, 1_700).0, rows, "{text}");
        case.keep_rows();
        case.check_sorted(text, 700);
    }
    // Looking for an order costs as much as counting, and is paid by the page that does it.
    let (charge_ru, sifted) = charge(&case, "SELECT c.id FROM c ORDER BY c.kind");
    assert_eq!(sifted, ITEMS as u64);
    assert!(charge_ru < 2.25 + 100.0 * 0.02 + 0.000_256 * ITEMS as f64, "{charge_ru}");
    // Of the many that lack a path the first are known.
    let (charge_ru, sifted) = charge(&case, "SELECT c.id FROM c ORDER BY c.maybe");
    assert_eq!(sifted, 0);
    assert!(charge_ru < 2.25 + 100.0 * 0.02, "{charge_ru}");
}

#[test]
fn a_window_shows_items_as_they_are_now_and_where_they_were() {
    let fixture = items_support::Fixture::new(serde_json::json!({}));
    let item = |at: usize, kind: usize, text: &str| {
        format!(r#"{{"id":"i{at}","pk":"p","kind":{kind},"text":"{text}"}}"#)
    };
    for at in 0..2_000 {
        fixture.create(&item(at, 1, "old")).unwrap();
    }
    let mut case = Case::of(fixture);
    case.costs.run_entries_max = 100;
    let prepared = case.prepare("SELECT c.id, c.text FROM c ORDER BY c.kind").unwrap();
    let partition = case.partitions().remove(0);
    let page =
        |from: Option<&QueryPosition>| case.page(&partition, &Scope::All, &prepared, from, 10).unwrap();
    let (rows, first) = page(None);
    assert!(rows[9].contains("i9"));
    case.fixture.upsert(&item(10, 1, "new")).unwrap();
    case.fixture.upsert(&item(11, 2, "moved")).unwrap();
    case.fixture.delete("p", "i12").unwrap();
    case.fixture.delete("p", "i13").unwrap();
    case.fixture.create(&item(13, 1, "another")).unwrap();
    let (rows, second) = page(first.next.as_ref());
    assert!(second.report.to_string().starts_with("rows that"), "{}", second.report);
    let ids: Vec<&str> = rows.iter().map(|row| row.split('"').nth(3).unwrap()).collect();
    assert_eq!(ids, ["i10", "i14", "i15", "i16", "i17", "i18", "i19", "i20", "i21", "i22"]);
    assert!(rows[0].contains("new"));
}

#[test]
fn a_fresh_container_with_a_time_to_live_counts_without_reading() {
    let fixture = items_support::Fixture::new(serde_json::json!({ "defaultTtl": 3600 }));
    for at in 0..20 {
        fixture.create(&format!(r#"{{"id":"i{at}","pk":"p"}}"#)).unwrap();
    }
    let case = Case::of(fixture);
    let (rows, read, _) = read_to_the_end(&case, "SELECT VALUE COUNT(1) FROM c", 10);
    assert_eq!((rows, read), (vec!["20".to_owned()], 0));
}
