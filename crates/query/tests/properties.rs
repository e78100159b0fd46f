//! Properties of the evaluator over random items and queries.

use orrery_model::{
    KeyComponent, KeyKind, KeyVersion, ParseOptions, PartitionKey, PartitionKeyDefinition, PropertyPath, Raw,
    Value, parse_json,
};
use orrery_query::plan::ranges;
use orrery_query::{Execution, Flow, Prepared, Progress, QueryEnv, Row, RowView, run_all};
use orrery_sql::parse_query;
use proptest::prelude::*;

/// Small JSON values from few alternatives, so that items often agree.
fn json(depth: u32) -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        Just("null".to_string()),
        any::<bool>().prop_map(|value| value.to_string()),
        (-3i64..4).prop_map(|value| value.to_string()),
        prop::sample::select(vec!["0.5", "-1.0", "9223372036854775807", "18446744073709551615", "1e300"])
            .prop_map(String::from),
        prop::sample::select(vec!["\"\"", "\"a\"", "\"ab\"", "\"é😀\"", "\"2024-02-29T00:00:00Z\""])
            .prop_map(String::from),
    ];
    leaf.prop_recursive(depth, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|items| format!("[{}]", items.join(","))),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{{\"a\":{a},\"b\":{b}}}")),
        ]
    })
    .boxed()
}

fn items() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let member = prop::option::weighted(0.8, json(2));
    let item = (member.clone(), member.clone(), member).prop_map(|(k, x, y)| {
        let mut members = Vec::new();
        for (name, value) in [("k", k), ("x", x), ("y", y)] {
            members.extend(value.map(|value| format!("\"{name}\":{value}")));
        }
        parse_json(format!("{{{}}}", members.join(",")).as_bytes(), &ParseOptions::default()).unwrap()
    });
    prop::collection::vec(item, 0..12)
}

fn scalar() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["c.k", "c.x", "c.y", "c.x.a", "c.y[0]", "c['y'].b"]).prop_map(String::from),
        2 => prop::sample::select(vec![
            "1", "0", "-1", "2.5", "'a'", "'ab'", "true", "false", "null", "undefined", "[]", "[1, 'a']", "{a: 1}",
        ]).prop_map(String::from),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let operators = vec![
            "+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">=", "AND", "OR", "&", "|", "^", "||", "??", "<<",
            ">>", ">>>", "LIKE",
        ];
        prop_oneof![
            4 => (two.clone(), prop::sample::select(operators)).prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            1 => two.clone().prop_map(|(a, b)| format!("({a} IN ({b}, 1, 'a'))")),
            1 => two.clone().prop_map(|(a, b)| format!("({a} NOT BETWEEN {b} AND 3)")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            1 => two.clone().prop_map(|(a, b)| format!("[{a}, {b}]")),
            1 => two.clone().prop_map(|(a, b)| format!("{{p: {a}, q: {b}}}")),
            1 => inner.clone().prop_map(|a| format!("(NOT {a})")),
            2 => (inner.clone(), prop::sample::select(vec![
                "ABS", "FLOOR", "LENGTH", "UPPER", "REVERSE", "TOSTRING", "IS_DEFINED", "IS_NUMBER", "ARRAY_LENGTH",
                "STRINGTONUMBER", "YEAR", "ARRAY_MAX", "OBJECTTOARRAY", "SIGN", "ST_ISVALID",
            ])).prop_map(|(a, name)| format!("{name}({a})")),
            1 => (two.clone(), prop::sample::select(vec![
                "CONCAT", "CONTAINS", "POWER", "LEFT", "INTADD", "SETUNION", "ARRAY_CONTAINS", "STRINGSPLIT",
            ])).prop_map(|((a, b), name)| format!("{name}({a}, {b})")),
            1 => inner.clone().prop_map(|a| format!("EXISTS(SELECT VALUE i FROM i IN c.x WHERE i = {a})")),
            1 => inner.prop_map(|a| format!("ARRAY(SELECT VALUE [i, {a}] FROM i IN c.y)")),
        ]
    })
}

fn prepare(text: &str) -> Option<Prepared> {
    let query = parse_query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    Prepared::new(&query, &[], &QueryEnv::default()).ok()
}

fn views(items: &[Vec<u8>]) -> Vec<RowView<'_>> {
    items.iter().map(|item| RowView::plain(Raw::document(item).unwrap())).collect()
}

/// Runs a query in pages of `size` rows, each page a new execution, as a server does.
fn paged(prepared: &Prepared, items: &[RowView<'_>], size: usize) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut progress = Progress::default();
    let mut next = 0;
    loop {
        let mut page = Vec::new();
        let mut execution = Execution::resume(prepared, progress.passed, progress.swallow);
        let mut sink = |row: Row<'_>| {
            let mut written = Vec::new();
            row.write(&mut written)?;
            page.push(written);
            Ok(if page.len() == size { Flow::Stop } else { Flow::More })
        };
        let mut stopped = false;
        for (position, item) in items.iter().enumerate().skip(next) {
            if execution.push(*item, &mut sink).unwrap() == Flow::Stop {
                next = position;
                stopped = true;
                break;
            }
        }
        if !stopped {
            next = items.len();
            execution.finish(&mut sink).unwrap();
        }
        progress = execution.progress();
        if !prepared.needs().is_resumable() {
            next = 0;
        } else if stopped && !progress.repeat_item {
            next += 1;
        }
        let full = page.len() == size;
        all.append(&mut page);
        if !full {
            return all;
        }
        assert!(all.len() < 100_000, "pages never end");
    }
}

#[test]
fn the_deepest_queries_fit_the_stack() {
    let item = parse_json(br#"{"x":[1,2],"b":true}"#, &ParseOptions::default()).unwrap();
    let levels = orrery_sql::NESTING_MAX - 4;
    for text in [
        format!("SELECT VALUE {}c.b FROM c", "NOT ".repeat(levels)),
        format!("SELECT VALUE {} FROM c", vec!["c.x[0]"; levels].join(" + ")),
        format!("SELECT VALUE {}c.x{} FROM c", "[".repeat(levels), "]".repeat(levels)),
        format!("SELECT VALUE {}c.b{} FROM c", "IIF(true, ".repeat(levels), ", 1)".repeat(levels)),
        format!("SELECT VALUE {}c.b{} FROM c", "(SELECT VALUE ".repeat(levels / 2), ")".repeat(levels / 2)),
        format!(
            "SELECT VALUE r FROM {}c{} AS r",
            "(SELECT VALUE z FROM ".repeat(levels / 3),
            " AS z)".repeat(levels / 3)
        ),
    ] {
        let prepared = prepare(&text).unwrap_or_else(|| panic!("refused {text}"));
        let rows = run_all(&prepared, views(std::slice::from_ref(&item))).unwrap();
        assert_eq!(rows.len(), 1, "{text}");
    }
}

#[test]
fn a_limited_sort_over_many_items_is_the_start_of_the_whole_sort() {
    let items: Vec<Vec<u8>> = (0..3000u64)
        .map(|n| {
            let key = n.wrapping_mul(2_654_435_761) % 500;
            parse_json(format!("{{\"n\":{n},\"k\":{key}}}").as_bytes(), &ParseOptions::default()).unwrap()
        })
        .collect();
    let items = views(&items);
    let rows = |text: &str| run_all(&prepare(text).unwrap(), items.iter().copied()).unwrap();
    let all = rows("SELECT VALUE c.n FROM c ORDER BY c.k DESC");
    assert_eq!(rows("SELECT TOP 10 VALUE c.n FROM c ORDER BY c.k DESC"), all[..10]);
    assert_eq!(rows("SELECT VALUE c.n FROM c ORDER BY c.k DESC OFFSET 700 LIMIT 9"), all[700..709]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_query_answers_or_refuses(items in items(), value in scalar(), filter in scalar()) {
        let items = views(&items);
        for text in [
            format!("SELECT VALUE {value} FROM c WHERE {filter}"),
            format!("SELECT {value} AS v, t FROM c JOIN t IN c.x WHERE {filter}"),
            format!("SELECT DISTINCT {value} AS v FROM c"),
            format!("SELECT COUNT({value}) AS n, MIN({value}), MAKESET({value}) FROM c WHERE {filter}"),
            format!("SELECT TOP 3 * FROM c WHERE {filter} ORDER BY c.k DESC"),
        ] {
            if let Some(prepared) = prepare(&text) {
                let _ = run_all(&prepared, items.iter().copied());
            }
        }
    }

    #[test]
    fn the_filter_keeps_what_matches(items in items(), filter in scalar()) {
        let items = views(&items);
        let prepared = prepare(&format!("SELECT VALUE 1 FROM c WHERE {filter}")).unwrap();
        let rows = run_all(&prepared, items.iter().copied()).unwrap();
        let matching = items.iter().filter(|item| prepared.matches(**item, &Default::default()).unwrap()).count();
        prop_assert_eq!(rows.len(), matching);
        // A row is kept exactly when the expression is true.
        let values = prepare(&format!("SELECT VALUE ({filter}) = true FROM c")).unwrap();
        let kept = run_all(&values, items.iter().copied()).unwrap();
        prop_assert_eq!(kept.iter().filter(|row| row.as_slice() == b"true").count(), matching);
    }

    #[test]
    fn conjuncts_may_be_tested_in_any_order(items in items(), a in scalar(), b in scalar()) {
        let items = views(&items);
        let rows = |text: String| {
            let prepared = prepare(&text).unwrap();
            let mut rows = run_all(&prepared, items.iter().copied()).unwrap();
            rows.sort();
            rows
        };
        let joined = "SELECT VALUE [c.k, t] FROM c JOIN t IN c.x WHERE";
        prop_assert_eq!(rows(format!("{joined} {a} AND {b} AND t = t")), rows(format!("{joined} t = t AND {b} AND {a}")));
    }

    #[test]
    fn pages_of_any_size_give_the_same_rows(items in items(), filter in scalar(), size in 1usize..5) {
        let items = views(&items);
        for text in [
            format!("SELECT c.k, t FROM c JOIN t IN c.y WHERE {filter}"),
            format!("SELECT VALUE c.k FROM c WHERE {filter} OFFSET 1 LIMIT 4"),
            format!("SELECT TOP 5 VALUE t FROM c JOIN t IN c.x WHERE {filter}"),
            format!("SELECT VALUE c.x FROM c WHERE {filter} ORDER BY c.k"),
            "SELECT DISTINCT VALUE c.k FROM c".to_string(),
            "SELECT c.k, COUNT(1) AS n FROM c GROUP BY c.k".to_string(),
        ] {
            let prepared = prepare(&text).unwrap();
            let whole = run_all(&prepared, items.iter().copied()).unwrap();
            prop_assert_eq!(paged(&prepared, &items, size), whole, "{} in pages of {}", text, size);
        }
    }

    #[test]
    fn the_first_rows_are_the_first_of_all(items in items(), count in 0usize..6) {
        let items = views(&items);
        let sorted = "FROM c ORDER BY c.k DESC";
        let all = run_all(&prepare(&format!("SELECT * {sorted}")).unwrap(), items.iter().copied()).unwrap();
        let top = prepare(&format!("SELECT TOP {count} * {sorted}")).unwrap();
        let first = run_all(&top, items.iter().copied()).unwrap();
        prop_assert_eq!(&first[..], &all[..count.min(all.len())]);
    }

    #[test]
    fn groups_hold_every_row_once(items in items()) {
        let items = views(&items);
        let counts = prepare("SELECT VALUE COUNT(1) FROM c GROUP BY c.k").unwrap();
        let groups = run_all(&counts, items.iter().copied()).unwrap();
        let total: usize = groups.iter().map(|row| String::from_utf8_lossy(row).parse::<usize>().unwrap()).sum();
        prop_assert_eq!(total, items.len());
        let distinct = run_all(&prepare("SELECT DISTINCT c.k FROM c").unwrap(), items.iter().copied()).unwrap();
        prop_assert_eq!(groups.len(), distinct.len());
    }

    #[test]
    fn routing_never_loses_an_item(items in items(), a in scalar(), b in scalar(), c in 0usize..4) {
        let items = views(&items);
        let filter = [
            format!("c.k = 1 AND {a}"), format!("(c.k = 1 OR c.k = 'a') AND {a}"),
            format!("c.k IN (1, 'a', null) OR ({a} AND c.k = 2)"), format!("{a} AND {b}"),
        ][c].clone();
        let prepared = prepare(&format!("SELECT VALUE 1 FROM c WHERE {filter}")).unwrap();
        let definition = PartitionKeyDefinition {
            paths: vec![PropertyPath::parse("/k").unwrap()],
            kind: KeyKind::Hash,
            version: KeyVersion::V2,
            system_key: false,
        };
        let ranges = ranges(&prepared, &definition);
        for item in &items {
            if !prepared.matches(*item, &Default::default()).unwrap() {
                continue;
            }
            let key = item.document.get("k").map_or(Value::Undefined, Raw::to_value);
            let component = match &key {
                Value::Null => KeyComponent::Null,
                Value::Bool(value) => KeyComponent::Bool(*value),
                Value::Number(number) => KeyComponent::Number(number.as_f64()),
                Value::String(text) => KeyComponent::String(text.clone()),
                Value::Undefined | Value::Array(_) | Value::Object(_) | Value::Extended(_) => KeyComponent::Undefined,
            };
            let hash = definition.effective(&PartitionKey::from([component]));
            let covered = |range: &orrery_query::plan::QueryRange| {
                range.min <= hash && (hash < range.max || (range.max_inclusive && hash == range.max))
            };
            prop_assert!(ranges.iter().any(covered), "{} lost {:?}", filter, key);
        }
    }
}
