//! No range may leave out an item that the filter keeps: filters made at random, over items with every kind of key.

use orrery_model::{ParseOptions, PartitionKeyDefinition, Raw, Value, parse_json};
use orrery_query::plan::QueryRange;
use orrery_query::{Prepared, QueryEnv, RowView};
use orrery_sql::parse_query;
use proptest::prelude::*;

use crate::{FEATURES, definition, plan_of};

/// Keys as JSON; the empty text is a missing property.
const KEYS: &[&str] =
    &["", "null", "false", "true", "0", "1", "-1", "2.5", "\"\"", "\"a\"", "\"ä\"", "[1]", "{\"x\":1}"];

fn items() -> Vec<Vec<u8>> {
    let mut items = Vec::new();
    for first in KEYS {
        for second in KEYS {
            let member = |name: &str, value: &str| match value {
                "" => String::new(),
                value => format!(r#","{name}":{value}"#),
            };
            let text =
                format!(r#"{{"id":"i","list":[1,"a",null]{}{}}}"#, member("a", first), member("b", second));
            items.push(parse_json(text.as_bytes(), &ParseOptions::default()).expect("an item"));
        }
    }
    items
}

fn holds(range: &QueryRange, item: &[u8], definition: &PartitionKeyDefinition) -> bool {
    let key = definition.extract(Raw::document(item).expect("an item"));
    let key = definition.effective(&key);
    range.min <= key && (key < range.max || (range.max_inclusive && key == range.max))
}

fn check(filter: &str, source: &str, paths: &[&str]) {
    let definition = definition(paths);
    let text = format!("SELECT * FROM {source} WHERE {filter}");
    let plan = plan_of(&text, &[], &definition, FEATURES, &QueryEnv::default()).expect(&text);
    let query = parse_query(&text).expect(&text);
    let prepared = Prepared::new(&query, &[], &QueryEnv::default()).expect(&text);
    assert!(plan.ranges.is_sorted(), "{text}");
    for item in items() {
        let row = RowView::plain(Raw::document(&item).expect("an item"));
        // A filter whose evaluation fails keeps nothing.
        if prepared.matches(row, &Default::default()).unwrap_or(false) {
            let kept = plan.ranges.iter().any(|range| holds(range, &item, &definition));
            assert!(kept, "{text} loses {}", String::from_utf8_lossy(&item));
        }
    }
}

fn value() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(KEYS).prop_map(|key| match key {
        "" => "undefined".to_string(),
        key => key.to_string(),
    });
    prop_oneof![8 => plain, 1 => Just("[1]".to_string()), 1 => Just("-0.0".to_string())]
}

fn filter() -> impl Strategy<Value = String> {
    let path = || prop::sample::select(vec!["c.a", "c.b", "c[\"a\"]"]);
    let leaf = prop_oneof![
        (path(), prop::sample::select(vec!["=", "!=", "<", ">="]), value())
            .prop_map(|(path, op, value)| format!("{path} {op} {value}")),
        (value(), path()).prop_map(|(value, path)| format!("{value} = {path}")),
        (path(), prop::sample::select(vec!["IN", "NOT IN"]), prop::collection::vec(value(), 1..4))
            .prop_map(|(path, word, values)| format!("{path} {word} ({})", values.join(", "))),
        (
            prop::sample::select(vec!["IS_NULL", "IS_BOOL", "IS_DEFINED", "IS_STRING", "NOT IS_DEFINED"]),
            path()
        )
            .prop_map(|(function, path)| format!("{function}({path})")),
        (path(), value()).prop_map(|(path, value)| format!("ABS({path}) = {value}")),
        (path(), path(), value()).prop_map(|(path, inner, value)| {
            format!("{path} = (SELECT VALUE {path} FROM t IN c.list WHERE t = 1 AND {inner} = {value})")
        }),
        (path(), value()).prop_map(|(path, value)| format!(
            "EXISTS(SELECT VALUE t FROM t IN c.list WHERE {path} = {value})"
        )),
        (path(), value()).prop_map(|(path, value)| format!(
            "1 > (SELECT VALUE COUNT(1) FROM t IN c.list WHERE {path} = {value})"
        )),
        path().prop_map(String::from),
        Just("true".to_string()),
        Just("false".to_string()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("({})", all.join(" AND "))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|any| format!("({})", any.join(" OR "))),
            inner.prop_map(|filter| format!("(NOT ({filter}))")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn ranges_hold_every_item_the_filter_keeps(filter in filter()) {
        check(&filter, "c", &["/a"]);
        check(&filter, "c", &["/a", "/b"]);
        check(&filter, "(SELECT VALUE c FROM c) AS c", &["/b"]);
    }
}

#[test]
fn a_long_list_of_keys_reads_everything_rather_than_thousands_of_points() {
    let keys: Vec<String> = (0..5000).map(|key| key.to_string()).collect();
    let text = format!("SELECT * FROM c WHERE c.a IN ({})", keys.join(", "));
    let plan = plan_of(&text, &[], &definition(&["/a"]), FEATURES, &QueryEnv::default()).unwrap();
    assert_eq!(plan.ranges, [QueryRange::full()]);
}

#[test]
fn a_parameter_fixes_the_key_like_a_literal() {
    let definition = definition(&["/a"]);
    let plan_for = |text: &str, parameters: &[(String, Value)]| {
        plan_of(text, parameters, &definition, FEATURES, &QueryEnv::default()).unwrap().ranges
    };
    let literal = plan_for("SELECT * FROM c WHERE c.a = 'x'", &[]);
    assert!(literal[0].is_point());
    assert_eq!(plan_for("SELECT * FROM c WHERE @p = c.a", &[("@p".into(), "x".into())]), literal);
}
