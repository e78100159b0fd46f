//! Runs a file of query cases, one JSON object per line, through parser and evaluator.
//!
//! Three kinds of lines are known by their members: `expected` (documents and a query, and the rows it
//! must give), `expectError` (the query must be refused, with one of these codes) and `valid` (the text
//! parses, or does not). Prints what failed and a score.
//!
//! ```text
//! cargo run -p orrery-query --example conformance -- cases.jsonl [part of an id or category]
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use orrery_model::{ParseOptions, PropertyPath, Raw, Value, parse_json, parse_json_value};
use orrery_query::{ComputedProperty, DistanceFunction, Prepared, QueryEnv, RowView, run_all};
use orrery_sql::{Direction, SqlError, parse_query};
use serde_json::Value as Json;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: conformance FILE.jsonl [part of an id or category]");
        std::process::exit(2);
    };
    let wanted = arguments.next().unwrap_or_default();
    let text = std::fs::read_to_string(&file).expect("the file can be read");
    let base = file.parent().unwrap_or(Path::new(".")).to_path_buf();
    let (mut passed, mut failed, mut left_out) = (0, 0, 0);
    let mut categories: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Json = serde_json::from_str(line).expect("each line is a JSON object");
        let id = case["id"].as_str().unwrap_or("?");
        let category = case["category"].as_str().unwrap_or("?").to_string();
        if !id.contains(&wanted) && !category.contains(&wanted) {
            continue;
        }
        if case.get("contested").is_some() || case.get("nondeterministic").is_some() {
            left_out += 1;
            continue;
        }
        let result = check(&case, &base);
        let counts = categories.entry(category).or_default();
        match result {
            Ok(()) => {
                passed += 1;
                counts.0 += 1;
            }
            Err(why) => {
                failed += 1;
                counts.1 += 1;
                println!("FAIL {id} | {} | {why}", case["query"].as_str().unwrap_or("").replace('\n', " "));
            }
        }
    }
    for (category, (good, bad)) in categories.iter().filter(|(_, (_, bad))| *bad > 0) {
        println!("{category:40} {good}/{}", good + bad);
    }
    println!("SCORE passed={passed} failed={failed} total={} left_out={left_out}", passed + failed);
}

fn check(case: &Json, base: &Path) -> Result<(), String> {
    if let Some(expected) = case.get("expectError") {
        return check_error(case, expected);
    }
    if let Some(valid) = case.get("valid").and_then(Json::as_bool)
        && case.get("expected").is_none()
    {
        return match prepare(case) {
            Ok(_) if valid => Ok(()),
            Ok(_) => Err("accepted".into()),
            Err(_) if !valid => Ok(()),
            Err(error) if ["SC1001", "SC1002", "SC1010", "SC1011", "SC1012"].contains(&error.code) => {
                Err(shown(&error))
            }
            Err(_) => Ok(()),
        };
    }
    check_rows(case, base)
}

fn shown(error: &SqlError) -> String {
    format!("{} {}", error.code, error.message)
}

fn check_error(case: &Json, expected: &Json) -> Result<(), String> {
    let codes: Vec<String> =
        expected["codes"].as_array().into_iter().flatten().map(|code| text_of(code).to_string()).collect();
    match prepare(case).and_then(|prepared| prepared.merge_refusal().map_or(Ok(prepared), Err)) {
        Ok(_) => Err(format!("accepted, wanted {codes:?}")),
        Err(error) => {
            let found: Vec<&str> = error.all().map(|error| error.code).collect();
            if codes.is_empty() || codes.iter().any(|code| found.contains(&code.as_str())) {
                Ok(())
            } else {
                Err(format!("wanted {codes:?}, got {}", shown(&error)))
            }
        }
    }
}

fn text_of(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), String::from)
}

fn prepare(case: &Json) -> Result<Prepared, SqlError> {
    let query = parse_query(case["query"].as_str().unwrap_or(""))?;
    Prepared::new(&query, &parameters(case), &environment(&case["container"]))
}

fn parameters(case: &Json) -> Vec<(String, Value)> {
    let parameters = case["parameters"].as_array().into_iter().flatten();
    parameters.map(|parameter| (text_of(&parameter["name"]), value_of(&parameter["value"]))).collect()
}

fn value_of(json: &Json) -> Value {
    parse_json_value(json.to_string().as_bytes()).expect("JSON is JSON")
}

fn environment(container: &Json) -> QueryEnv {
    let computed = container["computedProperties"].as_array().into_iter().flatten();
    let vectors = container["vectorEmbeddingPolicy"]["vectorEmbeddings"].as_array().into_iter().flatten();
    let composites = container["indexingPolicy"]["compositeIndexes"].as_array().into_iter().flatten();
    let path = |json: &Json| PropertyPath::parse(&text_of(json)).expect("a path");
    QueryEnv {
        now_ticks: 17_000_000_000_000_000,
        computed_properties: computed
            .map(|property| ComputedProperty {
                name: text_of(&property["name"]),
                query: parse_query(&text_of(&property["query"])).expect("a query"),
            })
            .collect(),
        vectors: vectors
            .map(|vector| {
                let function = DistanceFunction::parse(&text_of(&vector["distanceFunction"]));
                (path(&vector["path"]), function.expect("a distance function"))
            })
            .collect(),
        composite_indexes: Some(
            composites
                .map(|index| {
                    let part = |part: &Json| {
                        let down = part["order"].as_str() == Some("descending");
                        (path(&part["path"]), if down { Direction::Descending } else { Direction::Ascending })
                    };
                    index.as_array().into_iter().flatten().map(part).collect()
                })
                .collect(),
        ),
        ..QueryEnv::default()
    }
}

fn check_rows(case: &Json, base: &Path) -> Result<(), String> {
    let loaded;
    let documents = match case["documents"].get("$ref").and_then(Json::as_str) {
        Some(name) => {
            let text = std::fs::read_to_string(base.join(name)).map_err(|error| error.to_string())?;
            loaded = serde_json::from_str(&text).map_err(|error| error.to_string())?;
            &loaded
        }
        None => &case["documents"],
    };
    let stored: Vec<Vec<u8>> = documents
        .as_array()
        .into_iter()
        .flatten()
        .map(|document| {
            parse_json(document.to_string().as_bytes(), &ParseOptions::default()).expect("a document")
        })
        .collect();
    let system = [
        ("_rid", Value::from("AAAAAAAAAAABAAAAAAAAAA==")),
        ("_self", Value::from("dbs/x/")),
        ("_etag", Value::from("\"0\"")),
        ("_attachments", Value::from("attachments/")),
        ("_ts", Value::Number(1_700_000_000i64.into())),
    ];
    let rows = stored.iter().map(|bytes| RowView {
        document: Raw::document(bytes).expect("a document"),
        system: &system,
        appended: 0,
    });
    let prepared = prepare(case).map_err(|error| shown(&error))?;
    let output = run_all(&prepared, rows).map_err(|error| shown(&error))?;
    let actual: Vec<Json> =
        output.iter().map(|row| strip(serde_json::from_slice(row).expect("rows are JSON"))).collect();
    let alternatives = match case.get("expectedAnyOf").and_then(Json::as_array) {
        Some(alternatives) => alternatives.clone(),
        None => vec![case["expected"].clone()],
    };
    let compare = Comparison {
        tolerance: case["relTol"].as_f64().unwrap_or(1e-9),
        bags: case["unorderedArrays"].as_bool().unwrap_or(false),
        loose: case["looseStringKeys"].as_array().into_iter().flatten().map(text_of).collect(),
    };
    let ordered = case["ordered"].as_bool().unwrap_or(false);
    let fits = |expected: &Json| {
        let expected = expected.as_array().map_or(&[][..], Vec::as_slice);
        if ordered { compare.lists(expected, &actual) } else { compare.bag(expected, &actual) }
    };
    if alternatives.iter().any(fits) {
        return Ok(());
    }
    let limit = |text: String| text.chars().take(300).collect::<String>();
    Err(format!(
        "expected {} got {}",
        limit(case["expected"].to_string()),
        limit(Json::Array(actual).to_string())
    ))
}

/// Takes system members out of whole items.
fn strip(json: Json) -> Json {
    match json {
        Json::Object(members) => {
            let whole = members.contains_key("_self");
            let keep =
                |name: &str| !(whole && ["_rid", "_self", "_etag", "_attachments", "_ts"].contains(&name));
            Json::Object(
                members
                    .into_iter()
                    .filter(|(name, _)| keep(name))
                    .map(|(name, value)| (name, strip(value)))
                    .collect(),
            )
        }
        Json::Array(elements) => Json::Array(elements.into_iter().map(strip).collect()),
        other => other,
    }
}

struct Comparison {
    tolerance: f64,
    bags: bool,
    loose: Vec<String>,
}

impl Comparison {
    fn same(&self, a: &Json, b: &Json) -> bool {
        match (a, b) {
            (Json::Number(a), Json::Number(b)) => {
                let (a, b) = (a.as_f64().unwrap_or(f64::NAN), b.as_f64().unwrap_or(f64::NAN));
                a == b || (a - b).abs() <= self.tolerance * a.abs().max(b.abs())
            }
            (Json::Array(a), Json::Array(b)) => {
                if self.bags {
                    self.bag(a, b)
                } else {
                    self.lists(a, b)
                }
            }
            (Json::Object(a), Json::Object(b)) => {
                a.len() == b.len()
                    && a.iter().all(|(name, value)| {
                        b.get(name).is_some_and(|other| {
                            (self.loose.contains(name) && value.is_string() && other.is_string())
                                || self.same(value, other)
                        })
                    })
            }
            _ => a == b,
        }
    }

    fn lists(&self, a: &[Json], b: &[Json]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same(a, b))
    }

    fn bag(&self, a: &[Json], b: &[Json]) -> bool {
        let mut left: Vec<&Json> = b.iter().collect();
        a.len() == b.len()
            && a.iter().all(|wanted| match left.iter().position(|found| self.same(wanted, found)) {
                Some(at) => {
                    left.swap_remove(at);
                    true
                }
                None => false,
            })
    }
}
