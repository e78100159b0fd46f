//! Runs a file of plan cases, one JSON object per line, through the planner.
//!
//! A line has a `query`, `parameters`, a `partitionKeyDefinition` and what is `expected`: `queryInfo`,
//! `hybridSearchQueryInfo` and `queryRanges`, whose bounds are key values, or an `error`. Prints what differs and a
//! score; the text of rewritten queries is counted by itself.
//!
//! ```text
//! cargo run -p orrery-query --example plans -- cases.jsonl [part of an id]
//! ```

use orrery_model::{
    KeyComponent, KeyKind, KeyVersion, PartitionKey, PartitionKeyDefinition, PropertyPath, Value,
    parse_json_value,
};
use orrery_query::plan::{Features, PlanContext, plan};
use orrery_query::{DistanceFunction, QueryEnv};
use orrery_sql::{SqlError, parse_query};
use serde_json::Value as Json;

/// Everything a client of today may be able to do, but for the form of hybrid plans that skips the rewrite.
const FEATURES: &str = "Aggregate, CompositeAggregate, Distinct, GroupBy, MultipleAggregates, MultipleOrderBy, \
    NonValueAggregate, OffsetAndLimit, OrderBy, Top, NonStreamingOrderBy, HybridSearch, WeightedRankFusion, CountIf, \
    DCount, ListAndSetAggregate";

const COMPARED: &[&str] = &[
    "distinctType",
    "top",
    "offset",
    "limit",
    "groupByExpressions",
    "orderBy",
    "orderByExpressions",
    "aggregates",
    "groupByAliasToAggregateType",
    "groupByAliases",
    "hasSelectValue",
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else {
        eprintln!("usage: plans FILE.jsonl [part of an id]");
        std::process::exit(2);
    };
    let wanted = arguments.next().unwrap_or_default();
    let text = std::fs::read_to_string(&file).expect("the file can be read");
    let (mut passed, mut failed, mut skipped, mut spelled) = (0, 0, 0, 0);
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let case: Json = serde_json::from_str(line).expect("each line is a JSON object");
        let id = case["id"].as_str().unwrap_or("?");
        if !id.contains(&wanted) {
            continue;
        }
        if case["partitionKeyDefinition"]["kind"] != "Hash" {
            skipped += 1;
            continue;
        }
        let mut differences = Vec::new();
        let same_text = check(&case, &mut differences);
        if differences.is_empty() {
            passed += 1;
        } else {
            failed += 1;
            println!("FAIL {id} | {} | {}", case["query"].as_str().unwrap_or(""), differences.join("; "));
        }
        match same_text {
            Ok(()) => spelled += 1,
            Err(difference) => println!("TEXT {id}\n{difference}"),
        }
    }
    println!("SCORE passed={passed} failed={failed} total={} skipped={skipped}", passed + failed);
    println!("the text of rewritten queries agrees in {spelled}");
}

/// Collects what differs in the members of the plan; the result is about the text of the rewritten query.
fn check(case: &Json, differences: &mut Vec<String>) -> Result<(), String> {
    let definition = definition(&case["partitionKeyDefinition"]);
    let env = environment(case);
    let context = PlanContext { partition_key: &definition, features: Features::parse(FEATURES), env: &env };
    let parameters: Vec<(String, Value)> = case["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| {
            (parameter["name"].as_str().unwrap_or("").to_string(), value_of(&parameter["value"]))
        })
        .collect();
    let planned = parse_query(case["query"].as_str().unwrap_or(""))
        .and_then(|query| plan(&query, &parameters, &context));
    let expected = &case["expected"];
    if let Some(errors) = expected.get("error") {
        match planned {
            Ok(_) => differences.push("accepted".into()),
            Err(error) => check_error(&error, errors, differences),
        }
        return Ok(());
    }
    let plan = match planned {
        Ok(plan) => plan,
        Err(error) => {
            differences.push(format!("refused: {} {error}", error.code));
            return Ok(());
        }
    };
    if let Some(refusal) = plan.refusal(context.features) {
        differences.push(refusal);
    }
    let json: Json = serde_json::from_str(&plan.to_json()).expect("a plan is JSON");
    check_ranges(&json["queryRanges"], &expected["queryRanges"], &definition, differences);
    if let Some(info) = expected.get("queryInfo") {
        check_info(&json["queryInfo"], info, differences);
        return same_text(&json["queryInfo"]["rewrittenQuery"], &info["rewrittenQuery"]);
    }
    let (ours, theirs) = (&json["hybridSearchQueryInfo"], &expected["hybridSearchQueryInfo"]);
    for member in ["skip", "take", "requiresGlobalStatistics"] {
        if ours[member] != theirs[member] {
            differences.push(format!("{member}: {}, wanted {}", ours[member], theirs[member]));
        }
    }
    same_text(&ours["globalStatisticsQuery"], &theirs["globalStatisticsQuery"])?;
    let theirs = theirs["componentQueryInfos"].as_array().expect("components");
    if ours["componentQueryInfos"].as_array().map(Vec::len) != Some(theirs.len()) {
        differences.push("another number of components".into());
    }
    for (position, theirs) in theirs.iter().enumerate() {
        let ours = &ours["componentQueryInfos"][position];
        check_info(ours, theirs, differences);
        same_text(&ours["rewrittenQuery"], &theirs["rewrittenQuery"])?;
    }
    Ok(())
}

/// The errors that were found must be wanted; a query may have more of them.
fn check_error(error: &SqlError, errors: &Json, differences: &mut Vec<String>) {
    for (wanted, found) in errors.as_array().into_iter().flatten().zip(error.all()) {
        if wanted["message"].as_str() != Some(&found.message) {
            differences.push(format!("{} {}, wanted {wanted}", found.code, found.message));
        } else if let Some(code) = wanted.get("code").and_then(Json::as_str)
            && (code != found.code || wanted["location"]["start"] != found.start)
        {
            differences.push(format!("{} at {}, wanted {wanted}", found.code, found.start));
        }
    }
}

fn check_info(ours: &Json, theirs: &Json, differences: &mut Vec<String>) {
    for member in COMPARED {
        let (ours, theirs) = (&ours[member], &theirs[member]);
        // Objects are equal whatever the order of their members.
        let same = match (ours.as_object(), theirs.as_object()) {
            (Some(ours), Some(theirs)) => {
                ours.len() == theirs.len() && ours.iter().all(|(name, value)| theirs.get(name) == Some(value))
            }
            _ => ours == theirs,
        };
        if !same {
            differences.push(format!("{member}: {ours}, wanted {theirs}"));
        }
    }
}

fn check_ranges(
    ours: &Json,
    theirs: &Json,
    definition: &PartitionKeyDefinition,
    differences: &mut Vec<String>,
) {
    let bound = |bound: &Json| match bound.as_array() {
        None => "FF".to_string(),
        Some(components) => {
            definition.effective(&PartitionKey(components.iter().map(component).collect())).to_hex()
        }
    };
    let mut wanted: Vec<[String; 4]> = theirs
        .as_array()
        .expect("ranges")
        .iter()
        .map(|range| {
            let flag = |name: &str| range[name].to_string();
            [bound(&range["min"]), bound(&range["max"]), flag("isMinInclusive"), flag("isMaxInclusive")]
        })
        .collect();
    wanted.sort();
    let found: Vec<[String; 4]> = ours
        .as_array()
        .expect("ranges")
        .iter()
        .map(|range| {
            ["min", "max", "isMinInclusive", "isMaxInclusive"]
                .map(|name| range[name].as_str().map_or_else(|| range[name].to_string(), String::from))
        })
        .collect();
    if wanted != found {
        differences.push(format!("ranges {found:?}, wanted {wanted:?}"));
    }
}

fn component(json: &Json) -> KeyComponent {
    match json {
        Json::Null => KeyComponent::Null,
        Json::Bool(value) => KeyComponent::Bool(*value),
        Json::Number(number) => KeyComponent::Number(number.as_f64().expect("a number")),
        Json::String(text) => KeyComponent::String(text.clone()),
        _ => KeyComponent::Undefined,
    }
}

fn same_text(ours: &Json, theirs: &Json) -> Result<(), String> {
    match ours == theirs {
        true => Ok(()),
        false => Err(format!("  ours   {ours}\n  wanted {theirs}")),
    }
}

fn definition(json: &Json) -> PartitionKeyDefinition {
    let paths = json["paths"].as_array().into_iter().flatten();
    PartitionKeyDefinition {
        paths: paths.map(|path| PropertyPath::parse(path.as_str().unwrap_or("")).expect("a path")).collect(),
        kind: KeyKind::Hash,
        version: KeyVersion::V2,
        system_key: false,
    }
}

/// The policies of a case. Vector cases tell theirs only in their description.
fn environment(case: &Json) -> QueryEnv {
    let description = case["description"].as_str().unwrap_or("");
    let euclidean = description.starts_with("Euclidean");
    let function = if euclidean { DistanceFunction::Euclidean } else { DistanceFunction::Cosine };
    QueryEnv {
        geometry: case["geospatialType"] == "Geometry",
        vectors: vec![(PropertyPath::parse("/embedding").expect("a path"), function)],
        ..QueryEnv::default()
    }
}

fn value_of(json: &Json) -> Value {
    parse_json_value(json.to_string().as_bytes()).expect("JSON is JSON")
}
