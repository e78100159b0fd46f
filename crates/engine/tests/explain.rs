//! Golden files of plans: `tests/golden/explain/*.txt`, which anyone can add to.
//!
//! ```text
//! policy {"compositeIndexes":[…]}        the indexing policy; the default where there is none
//! beside {"fullTextPolicy":{…}}          other members of the container
//! fill 2000                              so many items: id, pk of 20, n, city of 50, email, tags, sometimes rare
//! fill 2000 searched                     id, pk of 20, n, a point at, a text of 5 words of 100, a vector v of 3
//! fill 600 linked                        the same, with graphs over vectors, complete and asked however small they are
//!
//! > SELECT …                             a query, and what its first page did
//! …
//! ```
//!
//! `ORRERY_SNAPSHOTS=write` writes what is found instead of comparing.

mod items_support;
mod query_support;

use std::path::Path;
use std::sync::Arc;

use items_support::Fixture;
use orrery_engine::{EngineConfig, Scope};
use orrery_storage::MemoryStore;
use query_support::Case;
use serde_json::{Value, json};

fn item(at: usize) -> String {
    let rare = if at % 500 == 7 { ",\"rare\":true" } else { "" };
    format!(
        r#"{{"id":"i{at}","pk":"p{}","n":{},"city":"c{}","email":"user{at}@example.org","tags":["t{}","t{}"]{rare}}}"#,
        at % 20,
        at * 7919 % 100_003,
        at % 50,
        at % 10,
        at % 7,
    )
}

fn searched_item(at: usize) -> String {
    let words: Vec<String> =
        (0..5).map(|word| format!("word{}", (at * 31 + word * 17 + at / 7) % 100)).collect();
    let (x, y) = (at * 7919 % 3_600, at * 104_729 % 1_800);
    format!(
        r#"{{"id":"i{at}","pk":"p{}","n":{},"at":{{"type":"Point","coordinates":[{},{}]}},"text":"{}","v":[{},{},{}]}}"#,
        at % 20,
        at % 100,
        x as f64 / 10.0 - 180.0,
        y as f64 / 10.0 - 90.0,
        words.join(" "),
        at % 13,
        at % 17,
        at % 19,
    )
}

fn explained(file: &str) -> String {
    let mut policy = json!({});
    let mut beside = json!({});
    let mut out = String::new();
    let mut case: Option<Case> = None;
    let mut answering = false;
    for line in file.lines() {
        if let Some(text) = line.strip_prefix("policy ") {
            let parsed: Value = serde_json::from_str(text).unwrap();
            policy = json!({ "indexingPolicy": parsed });
        } else if let Some(text) = line.strip_prefix("beside ") {
            beside = serde_json::from_str(text).unwrap();
        } else if let Some(count) = line.strip_prefix("fill ") {
            let mut definition = beside.clone();
            definition.as_object_mut().unwrap().extend(policy.as_object().unwrap().clone());
            let (count, kind) = count.split_once(' ').unwrap_or((count, ""));
            let item: fn(usize) -> String = if kind.is_empty() { item } else { searched_item };
            let count: usize = count.parse().unwrap();
            // A graph that is begun when all items are there is always the same.
            let items_min = if kind == "linked" { count as u64 } else { u64::MAX };
            let config = EngineConfig { graph_items_min: items_min, ..EngineConfig::default() };
            let fixture = Fixture::over(Arc::new(MemoryStore::new()), config, definition, 400);
            for at in 0..count {
                fixture.create(&item(at)).unwrap();
            }
            let mut filled = Case::of(fixture);
            if kind == "linked" {
                filled.fixture.sweep();
                filled.costs.graph_nodes_min = 0;
            }
            case = Some(filled);
        } else if let Some(query) = line.strip_prefix("> ") {
            let case = case.as_ref().expect("fill comes before queries");
            let prepared = case.prepare(query).unwrap_or_else(|error| panic!("{query}: {error}"));
            let partition = case.partitions().remove(0);
            let (_, page) = case.page(&partition, &Scope::All, &prepared, None, 100).unwrap();
            out.push_str(&format!("> {query}\n{}\n\n", page.report));
            answering = true;
            continue;
        } else if answering {
            continue;
        }
        answering = false;
        out.push_str(line);
        out.push('\n');
    }
    out
}

#[test]
fn plans_are_as_the_golden_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/explain");
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for path in files {
        let written = std::fs::read_to_string(&path).unwrap();
        let found = explained(&written);
        if std::env::var("ORRERY_SNAPSHOTS").is_ok_and(|mode| mode == "write") {
            std::fs::write(&path, found).unwrap();
        } else {
            assert_eq!(found, written, "{}", path.display());
        }
    }
}
