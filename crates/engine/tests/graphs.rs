//! Graphs over vectors: at any moment, however far upkeep is, a query finds what is there, and nothing that is not.
//!
//! A failure prints its seed; `ORRERY_SEED=n` runs that case alone, `ORRERY_CASES=n` that many.

mod items_support;
mod query_support;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use items_support::*;
use orrery_engine::{Account, EngineConfig, Kind, QueryPage, Ref, Scope, TestEnv};
use orrery_storage::MemoryStore;
use orrery_storage::doubles::FailAfter;
use query_support::{Case, Dice};
use serde_json::{Value, json};

const CASES: u64 = 6;
const DISTANCES: [&str; 3] = ["cosine", "euclidean", "dotproduct"];

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Graphs from the first item on.
fn config() -> EngineConfig {
    EngineConfig { graph_items_min: 1, ..EngineConfig::default() }
}

fn policy(dimensions: usize, distance: &str, data_type: &str, mode: &str) -> Value {
    json!({
        "indexingPolicy": {
            "indexingMode": mode,
            "includedPaths": if mode == "none" { json!([]) } else { json!([{"path": "/n/?"}]) },
            "excludedPaths": if mode == "none" { json!([]) } else { json!([{"path": "/*"}]) },
            "vectorIndexes": [{"path": "/v", "type": "diskANN", "indexingSearchListSize": 40}],
        },
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": data_type, "dimensions": dimensions, "distanceFunction": distance}
        ]},
        "defaultTtl": -1,
    })
}

fn case(extra: Value) -> Case {
    walking(Fixture::over(Arc::new(MemoryStore::new()), config(), extra, 400))
}

/// Asks the graph, however small it is.
fn walking(fixture: Fixture) -> Case {
    let mut case = Case::of(fixture);
    case.costs.graph_nodes_min = 0;
    case.costs.load_cost = 0;
    case
}

fn vector(dice: &mut Dice, dimensions: usize) -> String {
    let centre = dice.below(12) as u64;
    let mut around = Dice(centre * 7_919 + 1);
    let parts: Vec<String> = (0..dimensions)
        .map(|_| {
            let middle = around.below(200) as i64 - 100;
            format!("{}", middle + dice.below(60) as i64 - 30)
        })
        .collect();
    format!("[{}]", parts.join(","))
}

fn ask(case: &Case, text: &str) -> (Vec<String>, QueryPage) {
    let prepared = case.prepare(text).unwrap();
    let (mut rows, mut last) = (Vec::new(), None);
    for partition in case.partitions() {
        let (found, page) = case.page(&partition, &Scope::All, &prepared, None, 10_000).unwrap();
        rows.extend(found);
        last = Some(page);
    }
    (rows, last.unwrap())
}

/// The same in pages of so many rows.
fn paged(case: &Case, text: &str, rows: usize) -> Vec<String> {
    let prepared = case.prepare(text).unwrap();
    let mut all = Vec::new();
    for partition in case.partitions() {
        let mut from = None;
        loop {
            let (found, page) = case.page(&partition, &Scope::All, &prepared, from.as_ref(), rows).unwrap();
            all.extend(found);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
    }
    all
}

fn by_graph(page: &QueryPage) -> bool {
    page.report.to_string().contains("a graph of vectors of /v")
}

/// How the ids of a query compare with those of brute force. With as long a list as there are items, they are the same.
fn compare(case: &Case, filter: &str, wanted: &str, top: usize, items: usize) -> (usize, usize, bool) {
    let query = |options: &str| {
        format!("SELECT TOP {top} VALUE c.id FROM c{filter} ORDER BY VectorDistance(c.v, {wanted}{options})")
    };
    let (exact, _) = ask(case, &query(", true"));
    let many = (items / top + 1).min(100);
    let (all, page) = ask(case, &query(&format!(", false, {{\"searchListSizeMultiplier\": {many}}}")));
    if many * top >= items && case.partitions().len() == 1 {
        assert_eq!(all, exact, "{} {}", query(""), page.report);
    }
    let (rows, page) = ask(case, &query(""));
    assert_eq!(rows.len(), exact.len(), "{} {}", query(""), page.report);
    assert_eq!(paged(case, &query(""), 1 + top / 3), rows, "{} {}", query(""), page.report);
    // What has no distance is no matter of luck.
    let defined = format!(", VectorDistance(c.v, {wanted}) AS d FROM");
    let incomparable = |options: &str| -> Vec<String> {
        let text = query(options).replace("VALUE c.id", "c.id").replace(" FROM", &defined);
        ask(case, &text).0.into_iter().filter(|row| !row.contains("\"d\":")).collect()
    };
    assert_eq!(incomparable(""), incomparable(", true"), "{} {}", query(""), page.report);
    let exact: HashSet<&String> = exact.iter().collect();
    let distinct: BTreeSet<&String> = rows.iter().collect();
    assert_eq!(distinct.len(), rows.len(), "no row twice");
    (rows.iter().filter(|row| exact.contains(row)).count(), rows.len(), by_graph(&page))
}

#[test]
fn queries_are_right_whatever_is_written_and_however_far_upkeep_is() {
    let seeds = match environment("ORRERY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..environment("ORRERY_CASES").unwrap_or(CASES),
    };
    let (mut walks, mut queries) = (0, 0);
    for seed in seeds {
        println!("seed {seed}");
        let mut dice = Dice(seed * 7_919 + 1);
        let dimensions = [3, 8, 16][dice.below(3)];
        let types = ["float32", "float16", "int8", "uint8"];
        let (distance, data_type) = (DISTANCES[seed as usize % 3], types[dice.below(4)]);
        let mut case = case(policy(dimensions, distance, data_type, "consistent"));
        let (mut found, mut wanted_rows) = (0, 0);
        // Of those without a vector at times only the first are on the list.
        case.costs.absent_items_max = if seed % 4 == 1 { 2 } else { 1_024 };
        for round in 0..25 {
            for _ in 0..dice.below(40) {
                let at = dice.below(150);
                let (pk, id) = (format!("p{}", at % 5), format!("i{at}"));
                let v = match dice.below(30) {
                    0 => "\"none\"".to_owned(),
                    1 => format!("[{}]", vec!["0"; dimensions].join(",")),
                    2 => "[1,2]".to_owned(),
                    7 => "{}".to_owned(),
                    // The same vector many times over.
                    3..7 => format!("[{}]", vec!["7"; dimensions].join(",")),
                    _ => vector(&mut dice, dimensions),
                };
                let ttl = if dice.one_in(15) { ",\"ttl\":1" } else { "" };
                let n = dice.below(4);
                if dice.one_in(4) {
                    let _ = case.fixture.delete(&pk, &id);
                } else {
                    // Some have no such member at all.
                    let name = if dice.one_in(40) { "w" } else { "v" };
                    let text = format!(r#"{{"id":"{id}","pk":"{pk}","n":{n},"{name}":{v}{ttl}}}"#);
                    case.fixture.upsert(&text).unwrap();
                }
            }
            match dice.below(5) {
                0 => case.fixture.sweep(),
                1 => drop(case.fixture.only_partition().upkeep().unwrap()),
                2 => case.fixture.env.advance_ms(1_500),
                3 if round % 4 == 0 => case.fixture.reopen(),
                _ => {}
            }
            let partition = case.fixture.only_partition();
            assert_eq!(partition.check_index().unwrap(), [""; 0], "seed {seed}");
            let items = case.fixture.stored_items() as usize;
            for filter in ["", " WHERE c.n = 2", " WHERE c.n % 2 = 1"] {
                let wanted = vector(&mut dice, dimensions);
                let (hits, rows, walked) = compare(&case, filter, &wanted, 1 + dice.below(30), items);
                (found, wanted_rows) = (found + hits, wanted_rows + rows);
                (walks, queries) = (walks + u64::from(walked), queries + 1);
            }
        }
        let recall = found as f64 / wanted_rows as f64;
        println!("seed {seed}: {dimensions} {distance} {data_type}: recall {recall}");
        assert!(recall >= 0.9, "seed {seed}: {recall}");
    }
    assert!(walks * 5 > queries, "{walks} of {queries} walked");
}

#[test]
fn a_graph_finds_nearly_all_of_the_nearest_and_looks_at_few() {
    const ITEMS: usize = 2_500;
    let case = case(policy(24, "cosine", "float32", "consistent"));
    let mut dice = Dice(5);
    for at in 0..ITEMS {
        let v = vector(&mut dice, 24);
        case.fixture
            .create(&format!(r#"{{"id":"i{at}","pk":"p{}","n":{},"v":{v}}}"#, at % 50, at % 7))
            .unwrap();
    }
    let text =
        format!("SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, {})", vector(&mut dice, 24));
    let before = ask(&case, &text).1;
    case.fixture.sweep();
    assert_eq!(case.fixture.only_partition().check_index().unwrap(), [""; 0]);
    let after = ask(&case, &text).1;
    assert!(by_graph(&after));
    assert_eq!(before.metrics.loaded_items, after.metrics.loaded_items);
    assert!((before.charge_ru - after.charge_ru).abs() < 0.2, "{} {}", before.charge_ru, after.charge_ru);
    let (mut found, mut entries) = (0, 0);
    for _ in 0..20 {
        let wanted = vector(&mut dice, 24);
        let (hits, rows, walked) = compare(&case, "", &wanted, 10, ITEMS);
        assert!(walked && rows == 10);
        found += hits;
        let text = format!("SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, {wanted})");
        entries += ask(&case, &text).1.metrics.index_entries;
    }
    assert!(found >= 195, "{found} of 200");
    assert!(entries / 20 < ITEMS as u64 / 2, "{} entries for each query", entries / 20);
}

#[test]
fn a_container_filled_before_gets_its_graph_and_loses_it_with_the_index() {
    let with = |mode| policy(8, "euclidean", "float32", mode);
    let case = case(json!({"vectorEmbeddingPolicy": with("consistent")["vectorEmbeddingPolicy"]}));
    let mut dice = Dice(3);
    let mut put = |case: &Case, at: usize| {
        let v = vector(&mut dice, 8);
        case.fixture.upsert(&format!(r#"{{"id":"i{at}","pk":"p","n":1,"v":{v}}}"#)).unwrap();
    };
    (0..200).for_each(|at| put(&case, at));
    let query = "SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1,2,3,4,5,6,7,8])";
    assert!(!by_graph(&ask(&case, query).1));
    let graph_rows = |case: &Case| {
        assert_eq!(case.fixture.only_partition().check_index().unwrap(), [""; 0]);
        case.fixture.only_partition().graph_rows().unwrap()
    };
    case.fixture.replace_definition(with("consistent"));
    case.fixture.sweep();
    assert!(by_graph(&ask(&case, query).1));
    compare(&case, "", "[1,2,3,4,5,6,7,8]", 10, 200);
    assert!(graph_rows(&case) > 600);
    case.fixture.replace_definition(with("none"));
    (190..210).for_each(|at| put(&case, at));
    case.fixture.sweep();
    assert!(!by_graph(&ask(&case, query).1));
    assert_eq!(graph_rows(&case), 0);
    // Back, away and back again before anything is worked off.
    case.fixture.replace_definition(with("consistent"));
    put(&case, 5);
    case.fixture.sweep();
    for (mode, at) in [("none", 7), ("consistent", 8)] {
        case.fixture.replace_definition(with(mode));
        put(&case, at);
        case.fixture.delete("p", &format!("i{}", at + 100)).unwrap();
    }
    case.fixture.sweep();
    assert!(by_graph(&ask(&case, query).1));
    compare(&case, "", "[1,2,3,4,5,6,7,8]", 10, 208);
    assert!(graph_rows(&case) > 600);
}

#[test]
fn children_of_a_split_make_graphs_of_their_own() {
    let case = case(policy(8, "dotproduct", "int8", "consistent"));
    let mut dice = Dice(13);
    let mut put = |case: &Case, at: usize| {
        let v = vector(&mut dice, 8);
        case.fixture.upsert(&format!(r#"{{"id":"i{at}","pk":"p{}","n":1,"v":{v}}}"#, at % 40)).unwrap();
    };
    (0..300).for_each(|at| put(&case, at));
    case.fixture.sweep();
    (0..30).for_each(|at| put(&case, at));
    for linked in [false, true] {
        if !linked {
            let split = case.fixture.account.split_partition(&case.fixture.container, None).unwrap();
            wait(split.done()).unwrap();
        } else {
            case.fixture.sweep();
        }
        (30..60).for_each(|at| put(&case, at));
        assert_eq!(case.partitions().len(), 2);
        for partition in case.partitions() {
            assert_eq!(partition.check_index().unwrap(), [""; 0]);
        }
        let query = "SELECT TOP 200 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1,2,3,4,5,6,7,8])";
        let (rows, page) = ask(&case, query);
        assert_eq!((rows.len(), rows.iter().collect::<BTreeSet<_>>().len()), (300, 300));
        assert!(by_graph(&page) || !linked, "{}", page.report);
    }
    wait(case.fixture.account.merge_partitions(&case.fixture.container, None).unwrap().done()).unwrap();
    case.fixture.sweep();
    compare(&case, "", "[1,2,3,4,5,6,7,8]", 10, 300);
    assert_eq!(case.fixture.only_partition().check_index().unwrap(), [""; 0]);
}

#[test]
fn a_failed_write_at_any_step_leaves_a_graph_that_is_right() {
    let mut dice = Dice(21);
    let vectors: Vec<String> = (0..60).map(|_| vector(&mut dice, 3)).collect();
    for good in (4..110).step_by(3) {
        let inner = Handle(Arc::new(MemoryStore::new()));
        let store = Arc::new(FailAfter::new(inner.clone(), good));
        let env = Arc::new(TestEnv::new(NOW_MS, 7));
        let Ok(account) = Account::open(store, config(), env.clone()) else { continue };
        let made = wait(account.create_database("d", None)).and_then(|database| {
            let definition = definition(policy(3, "cosine", "float32", "consistent"));
            wait(account.create_container(&database, definition, None))
        });
        let mut written = BTreeSet::new();
        if let Ok(container) = &made {
            for (at, v) in vectors.iter().enumerate() {
                let (pk, id, document) = parts(&format!(r#"{{"id":"i{at}","pk":"p","v":{v}}}"#));
                let write = orrery_engine::Operation::Upsert { id, document };
                if wait(container.write_item(&key(&pk), write.into())).is_ok() {
                    written.insert(format!("\"i{at}\""));
                }
                if at % 3 == 0 {
                    let _ = container.partitions().unwrap()[0].upkeep();
                }
            }
        }
        drop((made, account));
        let account = Account::open(Arc::new(inner), config(), env.clone()).unwrap();
        let Ok(database) = account.database(Ref::Name("d")) else { continue };
        let container = match database.container(Ref::Name("c")) {
            Ok(container) => container,
            Err(error) => {
                assert_eq!(error.kind, Kind::NotFound);
                continue;
            }
        };
        let fixture = Fixture::of(Arc::new(MemoryStore::new()), env, config(), account, container);
        let case = walking(fixture);
        for swept in [false, true] {
            assert_eq!(case.fixture.only_partition().check_index().unwrap(), [""; 0], "{good} {swept}");
            let (rows, _) =
                ask(&case, "SELECT TOP 60 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1,2,3])");
            assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), written, "{good} {swept}");
            case.fixture.sweep();
        }
    }
}
