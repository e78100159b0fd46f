//! How many of the nearest vectors an index of codes finds, against all of them compared as they are.

mod items_support;
mod query_support;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use items_support::{Fixture, key, parts};
use orrery_engine::block_on as wait;
use orrery_engine::{Operation, Scope, Write};
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

/// Containers of every kind of index, and of none, by a distance.
fn kinds(distance: &str) -> Vec<Case> {
    let embedding =
        json!({"path": "/v", "dataType": "float32", "dimensions": 3, "distanceFunction": distance});
    let kinds = [Some("flat"), Some("quantizedFlat"), Some("diskANN"), None];
    let case = |kind: Option<&str>| {
        let indexes: Vec<_> = kind.map(|kind| json!({"path": "/v", "type": kind})).into_iter().collect();
        let fixture = Fixture::new(json!({
            "indexingPolicy": {"vectorIndexes": indexes},
            "vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]},
        }));
        Case::of(fixture)
    };
    kinds.into_iter().map(case).collect()
}

#[test]
fn what_cannot_be_compared_is_last_by_likeness_and_first_by_distance() {
    let rows = |ids: &[&str]| ids.iter().map(|id| format!("\"{id}\"")).collect::<Vec<_>>();
    for distance in ["cosine", "dotproduct", "euclidean"] {
        for mut case in kinds(distance) {
            // By the index, however few items there are.
            case.costs.load_cost = 0;
            for (id, v) in
                [("a", ",\"v\":[1,0,0]"), ("b", ",\"v\":[0,1,0]"), ("c", ",\"v\":[1,0]"), ("d", "")]
            {
                case.fixture.create(&format!(r#"{{"id":"{id}","pk":"p"{v}}}"#)).unwrap();
            }
            let order = if distance == "euclidean" { ["c", "d", "a", "b"] } else { ["a", "b", "c", "d"] };
            for top in 1..=5 {
                let query =
                    format!("SELECT TOP {top} VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1,0.1,0])");
                assert_eq!(ask(&case, &query).0, rows(&order[..top.min(4)]), "{distance} {query}");
                case.check_sorted(&query, 1);
            }
            let from = "FROM c ORDER BY VectorDistance(c.v, [1,0.1,0]) OFFSET 1 LIMIT 2";
            assert_eq!(ask(&case, &format!("SELECT VALUE c.id {from}")).0, rows(&order[1..3]));
            // As clients ask for it: there is nothing to compare by.
            let query = "SELECT TOP 4 c.id, [{\"item\": VectorDistance(c.v, [1,0.1,0])}] AS orderByItems FROM c \
                         ORDER BY VectorDistance(c.v, [1,0.1,0])";
            assert_eq!(
                ask(&case, query).0.iter().filter(|row| row.contains(r#""orderByItems":[{}]"#)).count(),
                2
            );
            // A component of a hybrid query wants the best of what there is, in any case.
            let query = "SELECT TOP 4 VALUE c.id FROM c ORDER BY _VectorScore(c.v, [1,0.1,0])";
            assert_eq!(ask(&case, query).0, rows(&["a", "b", "c", "d"]), "{distance}");
            // What comes and goes.
            case.fixture.upsert(r#"{"id":"c","pk":"p","v":[1,0.1,0]}"#).unwrap();
            case.fixture.upsert(r#"{"id":"b","pk":"p","v":null}"#).unwrap();
            case.fixture.delete("p", "d").unwrap();
            let order = if distance == "euclidean" { ["b", "c", "a"] } else { ["c", "a", "b"] };
            let query = "SELECT TOP 3 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1,0.1,0])";
            let by_length = distance == "dotproduct";
            let order = if by_length { ["c", "a", "b"] } else { order };
            assert_eq!(ask(&case, query).0, rows(&order), "{distance}");
        }
    }
}

#[test]
fn many_items_without_a_vector_are_not_all_read() {
    const MANY: usize = 3_000;
    for distance in ["cosine", "euclidean"] {
        for case in kinds(distance).into_iter().take(3) {
            let mut dice = Dice(3);
            for at in 0..MANY {
                let (n, m) = (at % 2, at % 30);
                // Every second one is of another kind.
                let v = match n {
                    0 => format!(",\"v\":[{},{},{}]", dice.below(99), dice.below(99), 1 + dice.below(99)),
                    _ => String::new(),
                };
                let text = format!(r#"{{"id":"i{at}","pk":"p{}","n":{n},"m":{m}{v}}}"#, at % 20);
                case.fixture.create(&text).unwrap();
            }
            let partition = case.partitions().remove(0);
            let check = |query: &str, loads_max: u64| {
                let prepared = case.prepare(query).unwrap();
                // The first looks for what has none.
                for _ in 0..2 {
                    let (_, page) = case.page(&partition, &Scope::All, &prepared, None, 100).unwrap();
                    let loaded = page.metrics.loaded_items;
                    assert!(loaded <= loads_max, "{distance} {query} {} {loaded}", page.report);
                }
                case.check_sorted(query, 100);
            };
            for filter in ["", " WHERE c.n = 0", " WHERE c.n = 1 AND c.m < 25", " WHERE IS_DEFINED(c.v)"] {
                let order =
                    "ORDER BY VectorDistance(c.v, [5,6,7], false, {\"quantizedVectorListMultiplier\":12})";
                // By likeness the vectors are tried first, and none of them passes.
                let in_vain = filter.contains("n = 1") && distance == "cosine";
                let loads_max = if in_vain { 2 * MANY as u64 } else { 70 };
                check(&format!("SELECT TOP 5 VALUE c.id FROM c{filter} {order}"), loads_max);
            }
        }
    }
}

#[test]
fn who_has_no_vector_is_known_while_others_write() {
    const PAIRS: usize = 4;
    const ROUNDS: usize = 150;
    for mut case in kinds("euclidean").into_iter().take(3) {
        // By the index, and with lists that are shortened and made anew all the time.
        case.costs.load_cost = 0;
        case.costs.absent_items_max = PAIRS + 1;
        let text = |pair: usize, id: &str, vector: bool| {
            let v = if vector { ",\"v\":[1,2,3]" } else { "" };
            format!(r#"{{"id":"{id}{pair}","pk":"p{pair}"{v}}}"#)
        };
        for pair in 0..PAIRS {
            case.fixture.create(&text(pair, "x", true)).unwrap();
            case.fixture.create(&text(pair, "y", false)).unwrap();
        }
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..PAIRS)
                .map(|pair| {
                    let (case, text) = (&case, &text);
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            // In one commit one item of a pair gets what the other loses.
                            let writes =
                                [("x", round % 2 == 1), ("y", round % 2 == 0)].map(|(id, vector)| {
                                    let (_, id, document) = parts(&text(pair, id, vector));
                                    Write::new(Operation::Upsert { id, document })
                                });
                            let to = key(&format!("p{pair}"));
                            wait(case.fixture.container.write_batch(&to, writes.to_vec())).unwrap();
                        }
                    })
                })
                .collect();
            let query = "SELECT TOP 8 c.pk, c.v FROM c ORDER BY VectorDistance(c.v, [1,2,3])";
            let reader = scope.spawn(|| {
                let mut asked = 0;
                while !done.load(Ordering::Relaxed) || asked < 20 {
                    let rows = ask(&case, query).0;
                    let (first, last) = rows.split_at(PAIRS);
                    assert!(first.iter().all(|row| !row.contains("\"v\"")), "{rows:?}");
                    assert!(last.iter().all(|row| row.contains("\"v\"")), "{rows:?}");
                    assert_eq!(first.iter().collect::<HashSet<_>>().len(), PAIRS, "{rows:?}");
                    assert_eq!(rows.len(), 2 * PAIRS, "{rows:?}");
                    asked += 1;
                }
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
    }
}
