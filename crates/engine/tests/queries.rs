//! Queries inside a partition: whatever plan finds the items, the rows are those of the naive evaluator.
//!
//! Each case makes a container with a random policy, fills it, changes some of it, and asks random queries, whole and in
//! pages of random sizes. A failure prints its seed; `ORRERY_SEED=n` runs that case alone, `ORRERY_CASES=n` that many.

mod items_support;
mod query_support;

use std::collections::BTreeMap;

use orrery_engine::query::Progress;
use orrery_engine::{QueryPosition, Scope};
use query_support::{Case, Dice, VALUES, check_case};

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
            case.tuning.created_items_max = 10;
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
    case.tuning.created_items_max = 10;
    let (rows, read, _) = read_to_the_end(&case, "SELECT DISTINCT VALUE c.kind FROM c", 100);
    assert_eq!(rows, ["\"k0\"", "\"k1\"", "\"k2\"", "\"k3\""]);
    assert!(read < 400, "{read} entries of 4,000");
    let (rows, ..) =
        read_to_the_end(&case, "SELECT DISTINCT TOP 2 VALUE c.kind FROM c WHERE c.kind > 'k1'", 1);
    assert_eq!(rows, ["\"k2\"", "\"k3\""]);
}
