//! Bytes as a query.

use orrery_model::{
    KeyKind, KeyVersion, ParseOptions, PartitionKeyDefinition, PropertyPath, Raw, Value, parse_json,
    parse_json_value,
};
use orrery_query::merge::features;
use orrery_query::plan::{PlanContext, plan, ranges};
use orrery_query::{Prepared, QueryEnv, RowView, run_all};
use orrery_sql::{Query, parse_condition, parse_query};

/// Longer texts take longer without finding more.
const TEXT_BYTES_MAX: usize = 4096;
/// Loops within loops run for seconds, which is their right; a fuzzer has no time for that.
const LOOPS_MAX: usize = 4;

const ITEMS: [&str; 4] = [
    r#"{"id":"1","g":"x","v":1,"a":[1,2,[3]],"t":"2024-02-29T12:00:00.0000000Z"}"#,
    r#"{"id":"2","g":"é😀","v":-2.5e300,"a":["b",null,{"k":true}],"o":{"k":{"k":1}}}"#,
    r#"{"id":"3","g":null,"v":9223372036854775807,"p":{"type":"Point","coordinates":[31.9,-4.8]}}"#,
    r#"{"id":"4","a":{},"v":0,"vector":[0.1,0.2,0.3],"text":"The quick brown fox"}"#,
];

pub fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if text.len() > TEXT_BYTES_MAX {
        return;
    }
    let _ = parse_condition(text);
    let Ok(query) = parse_query(text) else { return };
    let printed = query.to_string();
    // Printing adds parentheses, so a text at the limit of nesting may lie beyond it when it is printed.
    match parse_query(&printed) {
        Ok(again) => assert_eq!(again, query, "printed as {printed}"),
        Err(error) => assert!(nests_deeply(text), "printed as {printed}, which is refused: {error}"),
    }
    answer(&query, loops(text) <= LOOPS_MAX);
}

/// Whether a text has so many brackets open that a limit may be met.
fn nests_deeply(text: &str) -> bool {
    text.bytes().filter(|byte| b"([{".contains(byte)).count() > 30 || text.len() > 1000
}

/// Words that begin a loop over an array.
fn loops(text: &str) -> usize {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.filter(|word| ["IN", "JOIN", "SELECT"].iter().any(|loops| word.eq_ignore_ascii_case(loops))).count()
}

fn answer(query: &Query, whole: bool) {
    let parameters = [("@p".to_string(), Value::from(2)), ("@q".to_string(), Value::Undefined)];
    let definition = PartitionKeyDefinition {
        paths: vec![PropertyPath::parse("/g").expect("a path")],
        kind: KeyKind::Hash,
        version: KeyVersion::V2,
        system_key: false,
    };
    let env = QueryEnv::default();
    let context = PlanContext { partition_key: &definition, features: features(), env: &env };
    if let Ok(plan) = plan(query, &parameters, &context) {
        let _ = plan.to_json();
    }
    let Ok(prepared) = Prepared::new(query, &parameters, &env) else { return };
    let _ = (prepared.filter(), ranges(&prepared, &definition));
    if !whole {
        return;
    }
    let items = ITEMS.map(|text| parse_json(text.as_bytes(), &ParseOptions::default()).expect("good JSON"));
    let rows = items.iter().map(|item| RowView::plain(Raw::document(item).expect("a good document")));
    for row in run_all(&prepared, rows).unwrap_or_default() {
        assert!(parse_json_value(&row).is_ok(), "a row is no JSON: {}", String::from_utf8_lossy(&row));
    }
}
