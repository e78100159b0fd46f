//! For all texts: the parser answers without panicking, and what it printed it reads back the same.

use orrery_sql::{parse_condition, parse_query};
use proptest::prelude::*;

/// Fragments that make syntactically interesting texts when strung together at random.
const FRAGMENTS: &[&str] = &[
    "SELECT",
    "VALUE",
    "DISTINCT",
    "TOP",
    "5",
    "*",
    "FROM",
    "c",
    "c.a",
    "JOIN",
    "x IN c.y",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "ESCAPE '!'",
    "IN",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'k':",
    ",",
    "=",
    "<>",
    "<",
    "??",
    "?",
    ":",
    "+",
    "-",
    "--",
    "|",
    "||",
    "~",
    ">>>",
    "1.5e3",
    "0x1F",
    "'a\\n'",
    "\"b\"",
    "@p",
    "null",
    "undefined",
    "GROUP BY",
    "ORDER BY",
    "RANK",
    "ASC",
    "DESC",
    "OFFSET 1 LIMIT 2",
    "EXISTS(",
    "ARRAY(",
    "FIRST(",
    "udf.f(",
    "ABS(",
    "LEFT(",
    ".",
    "AS",
    "é",
    "'",
    "\"",
    "\\",
    "\0",
    ";",
];

fn scalar() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_filter("finite", |v| v.is_finite()).prop_map(|value| format!("{value:e}")),
        "[ -~é😀]{0,6}".prop_map(|text| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))),
        prop::sample::select(vec![
            "c",
            "c.a.b",
            "c['x y'][0]",
            "@p",
            "null",
            "true",
            "undefined",
            "[]",
            "{}"
        ])
        .prop_map(String::from),
    ];
    leaf.prop_recursive(6, 40, 4, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            (
                pair.clone(),
                prop::sample::select(vec![
                    "+", "-", "*", "/", "%", "=", "!=", "<", ">=", "AND", "OR", "&", "|", "^", "||", "??",
                    "<<", ">>>", "LIKE",
                ])
            )
                .prop_map(|((left, right), op)| format!("{left} {op} {right}")),
            pair.clone().prop_map(|(left, right)| format!("({left} IN ({right}, 1))")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            pair.clone().prop_map(|(a, b)| format!("({a} NOT BETWEEN {b} AND 9)")),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(", "))),
            pair.clone().prop_map(|(a, b)| format!("{{'k': {a}, l: {b}}}")),
            inner.clone().prop_map(|a| format!("ABS({a})")),
            inner.clone().prop_map(|a| format!("NOT {a}")),
            inner.clone().prop_map(|a| format!("-({a})")),
            inner.clone().prop_map(|a| format!("EXISTS(SELECT VALUE x FROM x IN c.y WHERE {a})")),
            inner.prop_map(|a| format!("({a}).m")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in "\\PC{0,80}") {
        let _ = parse_query(&text);
        let _ = parse_condition(&text);
    }

    #[test]
    fn any_string_of_fragments_is_answered(parts in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..40)) {
        let text = format!("SELECT {}", parts.join(" "));
        if let Ok(query) = parse_query(&text) {
            prop_assert_eq!(parse_query(&query.to_string()).unwrap(), query);
        }
    }

    #[test]
    fn printing_and_parsing_again_changes_nothing(value in scalar(), filter in scalar()) {
        let text = format!("SELECT VALUE {value} FROM c WHERE {filter}");
        if let Ok(query) = parse_query(&text) {
            let printed = query.to_string();
            let again = parse_query(&printed);
            prop_assert_eq!(again.as_ref(), Ok(&query), "{} printed as {}", text, printed);
        }
    }
}
