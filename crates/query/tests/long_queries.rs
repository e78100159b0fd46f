//! Texts as long as they may be are made ready in a time that grows with their length, whatever they repeat.
//!
//! The limit is on seconds, and far from what any of them takes: work that grows with the square of the terms took
//! minutes.

use std::time::{Duration, Instant};

use orrery_model::{
    KeyKind, KeyVersion, ParseOptions, PartitionKeyDefinition, PropertyPath, Raw, parse_json,
};
use orrery_query::plan::{Features, PlanContext, plan, ranges};
use orrery_query::pushdown::Filter;
use orrery_query::{Prepared, QueryEnv, RowView, run_all};

const TEXT_BYTES: usize = 500 * 1024;
const TIME_MAX: Duration = Duration::from_secs(20);

/// `begin`, then as many terms as fit with `between` in between, then `end`. `#` in a term is its number.
fn long(begin: &str, term: &str, between: &str, end: &str) -> String {
    let mut text = begin.to_string();
    for number in 0.. {
        let term = term.replace('#', &number.to_string());
        if text.len() + term.len() + between.len() + end.len() > TEXT_BYTES {
            break;
        }
        text.push_str(if number == 0 { "" } else { between });
        text.push_str(&term);
    }
    text + end
}

fn check(name: &str, text: &str) {
    let began = Instant::now();
    let definition = PartitionKeyDefinition {
        paths: vec![PropertyPath::parse("/pk").unwrap()],
        kind: KeyKind::Hash,
        version: KeyVersion::V2,
        system_key: false,
    };
    let env = QueryEnv::default();
    let query = orrery_sql::parse_query(text).unwrap_or_else(|error| panic!("{name}: {}", error.message));
    let context = PlanContext { partition_key: &definition, features: Features::parse(""), env: &env };
    if let Ok(plan) = plan(&query, &[], &context) {
        plan.to_json();
    }
    // Some are refused by their meaning, which must not take long either.
    if let Ok(prepared) = Prepared::new(&query, &[], &env) {
        let _ = (prepared.filter(), ranges(&prepared, &definition), prepared.order_fingerprint());
        let _ = prepared.cover().is_some();
        let _ = (prepared.column_query(), prepared.column_filter(), prepared.column_sort());
        let item = parse_json(br#"{"n":-1,"pk":-1,"s":"abc","a":[-1]}"#, &ParseOptions::default()).unwrap();
        let _ = run_all(&prepared, [RowView::plain(Raw::document(&item).unwrap())]);
    }
    let took = began.elapsed();
    println!("{name}: {took:?} for {} bytes", text.len());
    assert!(took < TIME_MAX, "{name} took {took:?}");
}

#[test]
fn long_texts_take_time_by_their_length() {
    let filter = "SELECT * FROM c WHERE ";
    let cases = [
        ("equal or equal", long(filter, "c.n=#", " OR ", "")),
        ("unequal and unequal", long(filter, "c.n!=#", " AND ", "")),
        ("not equal and not equal", long(filter, "NOT c.n=#", " AND ", "")),
        ("ranges or ranges", long(filter, "(c.n>#.1 AND c.n<#.2)", " OR ", "")),
        ("not between", long(filter, "c.n NOT BETWEEN #.1 AND #.2", " AND ", "")),
        ("partition keys", long(filter, "c.pk='#'", " OR ", "")),
        ("other paths or", long(filter, "c.p#=1", " OR ", "")),
        ("other paths and", long(filter, "c.p#=1", " AND ", "")),
        ("contains or contains", long(filter, "CONTAINS(c.s,'#')", " OR ", "")),
        ("contains and contains", long(filter, "CONTAINS(c.s,'#')", " AND ", "")),
        ("like or like", long(filter, "c.s LIKE '%#%'", " OR ", "")),
        ("in", long("SELECT * FROM c WHERE c.n IN (", "#", ",", ")")),
        ("not in", long("SELECT * FROM c WHERE c.n NOT IN (", "#", ",", ")")),
        ("two ins", {
            let list = long("(", "#", ",", ")");
            let list = &list[..list.len() / 2 - 20];
            let list = &list[..list.rfind(',').unwrap()];
            format!("SELECT * FROM c WHERE c.n IN {list}) AND c.n IN {list})")
        }),
        ("exists", long(filter, "EXISTS(SELECT VALUE t FROM t IN c.a WHERE t=#)", " OR ", "")),
        ("any of", long("SELECT * FROM c WHERE ARRAY_CONTAINS_ANY(c.a,", "#", ",", ")")),
        ("all of", long("SELECT * FROM c WHERE ARRAY_CONTAINS_ALL(c.a,", "#", ",", ")")),
        ("columns", long("SELECT ", "c.n AS c#", ",", " FROM c")),
        ("members", long("SELECT VALUE {", "m#:c.n", ",", "} FROM c")),
        ("elements", long("SELECT VALUE [", "c.n", ",", "] FROM c")),
        ("columns of columns", {
            let inner = long("SELECT ", "c.n AS c#", ",", " FROM c");
            let inner = &inner[..inner.len() / 2];
            let inner = &inner[..inner.rfind(',').unwrap()];
            let outer = inner.replace("c.n AS ", "x.");
            format!("{outer} FROM ({inner} FROM c) x")
        }),
        ("order", long("SELECT * FROM c ORDER BY ", "c.p#", ",", "")),
        ("groups", long("SELECT COUNT(1) AS n FROM c GROUP BY ", "c.p#", ",", "")),
        ("groups and columns", {
            let keys = long("", "c.p#", ",", "");
            let keys = &keys[..keys.len() / 2];
            let keys = &keys[..keys.rfind(',').unwrap()];
            format!("SELECT {keys} FROM c GROUP BY {keys}")
        }),
        ("aggregates", long("SELECT ", "MAX(c.p#) AS m#", ",", " FROM c")),
        ("concat", long("SELECT VALUE CONCAT(", "c.s", ",", ") FROM c")),
        ("numbers added", long("SELECT VALUE [", "1+#", ",", "] FROM c")),
        ("subqueries", long("SELECT VALUE [", "(SELECT VALUE c.n)", ",", "] FROM c")),
    ];
    for (name, text) in &cases {
        check(name, text);
    }
}

#[test]
fn a_chain_over_one_path_is_one_scan() {
    let read = |text: &str| {
        let query = orrery_sql::parse_query(text).unwrap();
        let prepared = Prepared::new(&query, &[], &QueryEnv::default()).unwrap();
        match prepared.filter() {
            Filter::Scan(scan) => {
                (scan.ranges.len(), scan.ranges.iter().filter(|range| range.is_point()).count())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(&long("SELECT * FROM c WHERE ", "c.n=#", " OR ", "")).0, 40_237);
    assert_eq!(read("SELECT * FROM c WHERE c.n=1 OR c.n=2 OR c.n=1"), (2, 2));
    assert_eq!(read("SELECT * FROM c WHERE c.n!=1 AND c.n!=2 AND c.n>=0 AND c.n<=2"), (2, 0));
    assert_eq!(read("SELECT * FROM c WHERE c.n IN (1,2,3) AND c.n IN (2,3,4) AND c.n<=3"), (2, 2));
    assert_eq!(read("SELECT * FROM c WHERE (c.n=1 OR c.n>5) AND (c.n=1 OR c.n>7)"), (2, 1));
}
