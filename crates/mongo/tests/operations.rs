//! Operations as data: documents, a command, what comes of it. `tests/golden/mongo` has ours; where a larger
//! collection of such cases lies beside the checkout, or `ORRERY_MONGO_CASES` names one, it is run too, and its score
//! must not fall.
//!
//! `ORRERY_MONGO_ONLY=expr/` runs the categories or ids that hold the text and shows what fails.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use orrery_mongo::ext_json::{Reading, Style, from_json, to_text};
use orrery_mongo::memory::Memory;
use orrery_mongo::order::Collation;
use orrery_mongo::{Bson, Context, Document, Error, ValueRef};
use serde_json::Value as Json;

/// How many of the cases beside the checkout pass at least.
const FLOOR: usize = 3_800;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document(json: &Json, reading: Reading) -> Document {
    match from_json(json, reading) {
        Ok(Bson::Document(document)) => document,
        other => panic!("no document: {json}: {other:?}"),
    }
}

fn documents(json: &Json) -> Vec<Document> {
    json.as_array().into_iter().flatten().map(|one| document(one, Reading::Data)).collect()
}

/// What an operation came to, in the words of `expected`.
enum Outcome {
    Rows(Vec<Document>),
    Values(Vec<Bson>),
    Count(usize),
}

fn run(case: &Json, memory: &Arc<Memory>, collection: &str) -> Result<Outcome, Error> {
    let mut arguments = document(&case["args"], Reading::Query);
    let mut context = Context::for_tests();
    if let Some(Bson::Document(given)) = arguments.remove("let") {
        context.variables = orrery_mongo::pipeline::evaluate_let(&given, &context)?;
    }
    if let Some(Bson::Document(given)) = arguments.remove("collation") {
        context.collation = Collation::parse(&given)?.map(Arc::new);
    }
    let operation = case["op"].as_str().expect("an operation");
    Ok(match operation {
        "find" => Outcome::Rows(memory.find(collection, &arguments, &context)?),
        "aggregate" => {
            let collection = (!arguments.contains("dbLevel")).then_some(collection);
            let Some(Bson::Array(stages)) = arguments.get("pipeline") else {
                return Err(Error::type_mismatch("'pipeline' option must be specified as an array"));
            };
            Outcome::Rows(memory.aggregate(collection, stages, &context)?)
        }
        "updateOne" | "updateMany" | "replaceOne" => {
            Outcome::Count(memory.update(collection, &arguments, operation == "updateMany", &context)?.0)
        }
        "deleteOne" | "deleteMany" => {
            Outcome::Count(memory.delete(collection, &arguments, operation == "deleteMany", &context)?)
        }
        "count" => {
            let mut find = Document::new();
            find.push("filter", arguments.get("query").cloned().unwrap_or(Bson::Document(Document::new())));
            for name in ["skip", "limit"] {
                if let Some(value) = arguments.get(name) {
                    find.push(name, value.clone());
                }
            }
            Outcome::Count(memory.find(collection, &find, &context)?.len())
        }
        "distinct" => Outcome::Values(memory.distinct(collection, &arguments, &context)?),
        _ => return Err(Error::new(0, "needs a server")),
    })
}

fn same(wanted: &Bson, got: &Bson, loose: bool) -> bool {
    match (wanted, got) {
        (Bson::Double(a), Bson::Double(b)) => {
            a.to_bits() == b.to_bits()
                || a == b
                || a.is_nan() && b.is_nan()
                || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
        }
        (Bson::Document(a), Bson::Document(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b.iter())
                    .all(|((a_name, a), (b_name, b))| a_name == b_name && same(a, b, loose))
        }
        (Bson::Array(a), Bson::Array(b)) => {
            a.len() == b.len()
                && (a.iter().zip(b.iter()).all(|(a, b)| same(a, b, loose)) || loose && same_bag(a, b, loose))
        }
        (Bson::Decimal(a), Bson::Decimal(b)) => {
            let (a, b) = (a.to_string(), b.to_string());
            a == b || a.len().max(b.len()) > 30 && a.get(..28) == b.get(..28)
        }
        _ => {
            wanted.kind() == got.kind()
                && to_text(wanted.into(), Style::Canonical) == to_text(got.into(), Style::Canonical)
        }
    }
}

fn same_bag(wanted: &[Bson], got: &[Bson], loose: bool) -> bool {
    let mut left: Vec<&Bson> = got.iter().collect();
    wanted.len() == got.len()
        && wanted.iter().all(|wanted| {
            let at = left.iter().position(|got| same(wanted, got, loose));
            at.map(|at| left.swap_remove(at)).is_some()
        })
}

/// Operators whose arrays have no promised order.
const LOOSE: &[&str] = &[
    "$setUnion",
    "$setIntersection",
    "$setDifference",
    "$addToSet",
    "$push",
    "$lookup",
    "$graphLookup",
    "$facet",
];

fn check(case: &Json) -> Result<(), String> {
    let memory = Arc::new(Memory::default());
    let collection = case["collection"].as_str().unwrap_or("c");
    memory.fill(collection, documents(&case["documents"]));
    for (name, content) in case["collections"].as_object().into_iter().flatten() {
        memory.fill(name, documents(content));
    }
    let expected = &case["expected"];
    let result = run(case, &memory, collection);
    let outcome = match (result, expected["error"]["code"].as_i64()) {
        (Err(error), Some(code)) if i64::from(error.code) == code => return Ok(()),
        (Err(error), Some(code)) => return Err(format!("code {code} wanted, got {} {error}", error.code)),
        (Err(error), None) => return Err(format!("error {} {error}", error.code)),
        (Ok(_), Some(code)) => {
            return Err(format!("no error, {code} wanted: {}", expected["error"]["message"]));
        }
        (Ok(outcome), None) => outcome,
    };
    let text = case["args"].to_string();
    let loose = LOOSE.iter().any(|operator| text.contains(&format!("\"{operator}\"")));
    let compare = |wanted: &Json, got: Vec<Bson>, ordered: bool| {
        let Ok(Bson::Array(wanted)) = from_json(wanted, Reading::Data) else {
            return Err("no list".to_owned());
        };
        let equal = match ordered {
            true => wanted.len() == got.len() && wanted.iter().zip(&got).all(|(a, b)| same(a, b, loose)),
            false => same_bag(&wanted, &got, loose),
        };
        match equal {
            true => Ok(()),
            false => Err(format!(
                "\n  wanted {}\n  got    {}",
                to_text(ValueRef::Owned(&Bson::Array(wanted)), Style::Canonical),
                to_text(ValueRef::Owned(&Bson::array(got)), Style::Canonical)
            )),
        }
    };
    if let Some(wanted) = expected.get("documents") {
        let Outcome::Rows(rows) = outcome else { return Err("no rows".into()) };
        let rows = rows.into_iter().map(Bson::Document).collect();
        return compare(wanted, rows, case["ordered"].as_bool().unwrap_or(false));
    }
    if let (Some(wanted), Outcome::Values(values)) = (expected.get("values"), &outcome) {
        return compare(wanted, values.clone(), false);
    }
    if let (Some(wanted), Outcome::Count(count)) = (expected.get("n").and_then(Json::as_u64), &outcome)
        && wanted as usize != *count
    {
        return Err(format!("n {wanted} wanted, got {count}"));
    }
    match expected.get("after") {
        Some(wanted) => {
            compare(wanted, memory.stored(collection).into_iter().map(Bson::Document).collect(), false)
        }
        None => Ok(()),
    }
}

fn cases(path: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect()
}

/// JSON, and the numbers that it has no word for as some programs write them: outside of texts.
fn parsed(line: &str) -> serde_json::Result<Json> {
    let is_json = serde_json::from_str(line);
    if is_json.is_ok() {
        return is_json;
    }
    let (mut made, mut within_text, mut escaped) = (String::new(), false, false);
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| rest.starts_with(word));
        if let (Some(word), false) = (word, within_text) {
            made += &format!(r#"{{"$numberDouble":"{word}"}}"#);
            rest = &rest[word.len()..];
            continue;
        }
        within_text ^= character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        made.push(character);
        rest = &rest[character.len_utf8()..];
    }
    serde_json::from_str(&made)
}

/// Runs a case on a thread of its own stack, and takes a panic for a failure.
fn judged(case: &Json) -> Result<(), String> {
    std::panic::catch_unwind(|| check(case)).unwrap_or_else(|_| Err("PANIC".into()))
}

#[test]
fn golden_operations() {
    let folder = root().join("tests/golden/mongo");
    let mut failures = Vec::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).expect("golden files").map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "jsonl")) {
        for case in cases(file) {
            if let Err(why) = judged(&case) {
                failures.push(format!(
                    "{} {}: {why}",
                    file.file_name().unwrap().to_string_lossy(),
                    case["id"]
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn operations_beside_the_checkout() {
    let named = std::env::var_os("ORRERY_MONGO_CASES").map(PathBuf::from);
    let path = named.unwrap_or_else(|| root().join("../shared/conformance/mongo/ops.jsonl"));
    if !path.exists() {
        println!("SKIPPED: there are no cases beside the checkout");
        return;
    }
    let only = std::env::var("ORRERY_MONGO_ONLY").ok();
    let mut scores: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut passed = 0;
    for case in cases(&path) {
        let category = case["category"].as_str().unwrap_or_default().to_owned();
        if let Some(only) = &only
            && !category.contains(only.as_str())
            && !case["id"].as_str().is_some_and(|id| id.contains(only.as_str()))
        {
            continue;
        }
        if matches!(case["op"].as_str(), Some("command" | "findAndModify")) {
            continue;
        }
        let result = judged(&case);
        let score = scores.entry(category.clone()).or_default();
        score.1 += 1;
        match result {
            Ok(()) => {
                score.0 += 1;
                passed += 1;
            }
            Err(why) if only.is_some() => {
                println!(
                    "FAIL {} {category} {}\n  docs {}: {why}",
                    case["id"], case["args"], case["documents"]
                );
            }
            Err(_) => {}
        }
    }
    for (category, (passed, total)) in scores.iter().filter(|(_, (passed, total))| passed < total) {
        println!("{category}: {passed} of {total}");
    }
    let total: usize = scores.values().map(|(_, total)| total).sum();
    println!("SCORE {passed} of {total}");
    assert!(only.is_some() || passed >= FLOOR, "{passed} of {total} pass, and {FLOOR} did");
}
