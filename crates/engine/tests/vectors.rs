//! How many of the nearest vectors an index of codes finds, against all of them compared as they are.

mod items_support;
mod query_support;

use std::collections::HashSet;

use items_support::Fixture;
use orrery_engine::Scope;
use query_support::{Case, Dice};
use serde_json::json;

const ITEMS: usize = 1_000;
const QUERIES: usize = 12;
const WANTED: usize = 10;
const DIMENSIONS: usize = 48;
/// Groups that vectors gather in.
const CENTRES: u64 = 20;

fn policy(index: serde_json::Value, distance: &str) -> serde_json::Value {
    json!({
        "indexingPolicy": {
            "includedPaths": [{"path": "/n/?"}],
            "excludedPaths": [{"path": "/*"}],
            "vectorIndexes": [index],
        },
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": distance}
        ]},
    })
}

fn vector(dice: &mut Dice) -> String {
    let centre = dice.below(CENTRES as usize) as u64;
    let mut around = Dice(centre * 7_919 + 1);
    let parts: Vec<String> = (0..DIMENSIONS)
        .map(|_| {
            let middle = around.below(2_000) as f64 / 1_000.0 - 1.0;
            format!("{:.4}", middle + 0.4 * (dice.below(2_000) as f64 / 1_000.0 - 1.0))
        })
        .collect();
    format!("[{}]", parts.join(","))
}

fn filled(policy: serde_json::Value) -> Case {
    let fixture = Fixture::new(policy);
    let mut dice = Dice(42);
    for at in 0..ITEMS {
        let v = vector(&mut dice);
        let n = at % 7;
        fixture.create(&format!(r#"{{"id":"i{at}","pk":"p{}","n":{n},"v":{v}}}"#, at % 20)).unwrap();
    }
    Case::of(fixture)
}

/// The rows of a query, and whether it went by the index.
fn ask(case: &Case, text: &str) -> (Vec<String>, bool) {
    let prepared = case.prepare(text).unwrap();
    let partition = case.partitions().remove(0);
    let (rows, page) = case.page(&partition, &Scope::All, &prepared, None, 100).unwrap();
    (rows, page.report.to_string().contains("vectors of /v"))
}

/// The share of the nearest that is found, over queries with and without a filter.
fn recall(case: &Case, filter: &str) -> f64 {
    let mut dice = Dice(7);
    let mut found = 0;
    for _ in 0..QUERIES {
        let wanted = vector(&mut dice);
        let query = |options: &str| {
            format!(
                "SELECT TOP {WANTED} VALUE c.id FROM c{filter} ORDER BY VectorDistance(c.v, {wanted}{options})"
            )
        };
        let (exact, by_index) = ask(case, &query(", true"));
        assert!(!by_index, "brute force looks at the items");
        let (rows, by_index) = ask(case, &query(""));
        assert!(by_index);
        assert_eq!((exact.len(), rows.len()), (WANTED, WANTED));
        let exact: HashSet<String> = exact.into_iter().collect();
        found += rows.iter().filter(|row| exact.contains(*row)).count();
    }
    found as f64 / (QUERIES * WANTED) as f64
}

#[test]
fn codes_find_nearly_all_of_the_nearest() {
    for (index, distance) in [
        (json!({"path": "/v", "type": "quantizedFlat"}), "cosine"),
        (json!({"path": "/v", "type": "quantizedFlat", "quantizationByteSize": 12}), "euclidean"),
        (json!({"path": "/v", "type": "diskANN"}), "euclidean"),
        (json!({"path": "/v", "type": "diskANN"}), "dotproduct"),
    ] {
        let case = filled(policy(index.clone(), distance));
        for filter in ["", " WHERE c.n % 2 = 1"] {
            let recall = recall(&case, filter);
            println!("{index} {distance}{filter}: {recall}");
            assert!(recall >= 0.95, "{index} {distance}{filter}: {recall}");
        }
    }
}

#[test]
fn a_flat_index_finds_all_of_them() {
    let case = filled(policy(json!({"path": "/v", "type": "flat"}), "cosine"));
    let bare = filled(json!({}));
    let mut dice = Dice(9);
    for filter in ["", " WHERE c.n % 3 = 1", " WHERE c.n = 2"] {
        let wanted = vector(&mut dice);
        let query = format!("SELECT TOP 20 VALUE c.id FROM c{filter} ORDER BY VectorDistance(c.v, {wanted})");
        let (rows, by_index) = ask(&case, &query);
        assert!(by_index || filter.contains("= 2"), "{query}");
        assert_eq!(rows, ask(&bare, &query).0, "{query}");
    }
}

#[test]
fn a_longer_list_finds_more_among_short_codes() {
    let index = json!({"path": "/v", "type": "quantizedFlat", "quantizationByteSize": 3});
    let case = filled(policy(index, "cosine"));
    let mut dice = Dice(11);
    let mut found = [0, 0];
    for _ in 0..QUERIES {
        let wanted = vector(&mut dice);
        let query = |options: &str| {
            format!("SELECT TOP {WANTED} VALUE c.id FROM c ORDER BY VectorDistance(c.v, {wanted}{options})")
        };
        let exact: HashSet<String> = ask(&case, &query(", true")).0.into_iter().collect();
        for (at, many) in [1, 20].into_iter().enumerate() {
            let options = format!(", false, {{\"quantizedVectorListMultiplier\": {many}}}");
            found[at] += ask(&case, &query(&options)).0.iter().filter(|row| exact.contains(*row)).count();
        }
    }
    assert!(found[1] > found[0], "{found:?}");
}
