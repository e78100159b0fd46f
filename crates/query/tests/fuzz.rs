//! Queries that nobody would write: texts changed at random, every function with any arguments, nesting without end.
//!
//! Whatever comes in is refused or answered, within a time and within memory, and never a panic; what parses is
//! printed, planned and run. Seeds are the golden queries (`tests/golden/sql`), so that adding a golden case adds to
//! this as well. A failure prints its seed: `ORRERY_SEED=n` runs that case alone, `ORRERY_CASES=n` that many of each
//! kind.

use std::path::Path;
use std::time::{Duration, Instant};

use orrery_model::{
    KeyKind, KeyVersion, ParseOptions, PartitionKeyDefinition, PropertyPath, Raw, Value, parse_json,
};
use orrery_query::functions::FAMILIES;
use orrery_query::merge::features;
use orrery_query::plan::{PlanContext, plan, ranges};
use orrery_query::{Prepared, QueryEnv, RowView, run_all};
use orrery_sql::{Query, parse_condition, parse_query};

/// Cases of each kind in an ordinary run.
const CASES: u64 = 2_000;
/// What one case may take, on a slow machine and without optimisation.
const CASE_TIME_MAX: Duration = Duration::from_secs(20);

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'t, T>(&mut self, list: &'t [T]) -> &'t T {
        &list[self.below(list.len())]
    }
}

/// Runs `case` for each seed, or for the one that is asked for.
fn for_each_seed(case: impl Fn(&mut Dice) -> String) {
    let environment = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let seeds = match environment("ORRERY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..environment("ORRERY_CASES").unwrap_or(CASES),
    };
    let (mut ran, mut parsed) = (0, 0u64);
    for seed in seeds {
        let text = case(&mut Dice(seed));
        let began = Instant::now();
        let outcome = std::panic::catch_unwind(|| try_text(&text));
        let shown: String = text.chars().take(2_000).collect();
        match outcome {
            Ok(answered) => parsed += u64::from(answered),
            Err(_) => panic!("seed {seed} panicked on {shown}"),
        }
        assert!(began.elapsed() < CASE_TIME_MAX, "seed {seed} took {:?}: {shown}", began.elapsed());
        ran += 1;
    }
    println!("{ran} cases, {parsed} of them queries that parse");
}

/// Parses, prints, plans and runs a text; returns whether it is a query at all.
fn try_text(text: &str) -> bool {
    let _ = parse_condition(text);
    let Ok(query) = parse_query(text) else { return false };
    assert_eq!(parse_query(&query.to_string()).as_ref(), Ok(&query), "printed as {query}");
    try_query(&query);
    true
}

fn try_query(query: &Query) {
    let parameters = [("@p".to_string(), Value::from(2)), ("@q".to_string(), Value::Undefined)];
    let definition = PartitionKeyDefinition {
        paths: vec![PropertyPath::parse("/g").unwrap()],
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
    let items = ITEMS.map(|text| parse_json(text.as_bytes(), &ParseOptions::default()).unwrap());
    let rows: Vec<RowView<'_>> =
        items.iter().map(|item| RowView::plain(Raw::document(item).unwrap())).collect();
    let all = run_all(&prepared, rows.iter().copied());
    // What an index would be asked for holds at least what the query finds.
    for row in &rows {
        let _ = prepared.matches(*row, &Default::default());
    }
    if let Some(cover) = prepared.cover() {
        let _ = cover.is_extreme();
    }
    for row in all.unwrap_or_default() {
        assert!(serde_like(&row), "{}", String::from_utf8_lossy(&row));
    }
}

/// A row is JSON, or a NaN was refused before.
fn serde_like(row: &[u8]) -> bool {
    orrery_model::parse_json_value(row).is_ok()
}

const ITEMS: [&str; 6] = [
    r#"{"id":"1","g":"x","v":1,"mix":1,"a":[1,2,[3]],"t":"2024-02-29T12:00:00.0000000Z"}"#,
    r#"{"id":"2","g":"é😀","v":-2.5e300,"mix":"a","a":["b",null,{"k":true}],"o":{"k":{"k":1}}}"#,
    r#"{"id":"3","g":null,"v":9223372036854775807,"mix":[],"p":{"type":"Point","coordinates":[31.9,-4.8]}}"#,
    r#"{"id":"4","a":{},"v":0,"vector":[0.1,0.2,0.3],"text":"The quick brown fox"}"#,
    r#"{"id":"5","g":true,"mix":-0.0,"a":[[],[[]],""],"s":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
    r#"{}"#,
];

fn golden_queries() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sql");
    let mut queries = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        queries.extend(text.lines().filter_map(|line| line.strip_prefix("> ")).map(str::to_owned));
    }
    assert!(queries.len() > 100);
    queries
}

const TOKENS: &[&str] = &[
    "SELECT",
    "VALUE",
    "DISTINCT",
    "TOP",
    "FROM",
    "JOIN",
    "IN",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "ESCAPE",
    "EXISTS",
    "ARRAY",
    "ORDER BY",
    "GROUP BY",
    "ASC",
    "DESC",
    "OFFSET",
    "LIMIT",
    "AS",
    "RANK",
    "ALL",
    "FIRST",
    "c",
    "c.a",
    "c.v",
    "c.a[0]",
    "c['g']",
    "@p",
    "@q",
    "@none",
    "0",
    "1",
    "-1",
    "2147483648",
    "9223372036854775808",
    "1e308",
    "0x7F",
    "'x'",
    "\"y\"",
    "''",
    "null",
    "true",
    "undefined",
    "NaN",
    "Infinity",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "?",
    "??",
    "=",
    "!=",
    "<",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "|",
    "||",
    "&",
    "^",
    "~",
    "<<",
    ">>>",
    "COUNT(1)",
    "SUM(c.v)",
    "AVG(c.v)",
    "MIN(c.mix)",
    "MAKESET(c.g)",
    "udf.f(",
    "VectorDistance(",
    "FullTextScore(",
    "RRF(",
    "--",
    "\u{0}",
    "😀",
    "\\u0041",
    "'",
    "\"",
];

/// A golden query with some of its words exchanged, dropped, doubled or cut, or with words of another.
#[test]
fn changed_queries_are_answered_or_refused() {
    let queries = golden_queries();
    for_each_seed(|dice| {
        let mut words: Vec<&str> = dice.pick(&queries).split(' ').collect();
        let other: Vec<&str> = dice.pick(&queries).split(' ').collect();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(words.len());
            match dice.below(6) {
                0 => words[at] = *dice.pick(TOKENS),
                1 => words.insert(at, *dice.pick(TOKENS)),
                2 if words.len() > 1 => drop(words.remove(at)),
                3 => words.insert(at, words[at]),
                4 => words.truncate(at.max(1)),
                _ => words.splice(at.., other[dice.below(other.len())..].iter().copied()).for_each(drop),
            }
            if words.is_empty() {
                words.push("SELECT");
            }
        }
        words.join(" ")
    });
}

/// A golden query with some of its bytes changed.
#[test]
fn damaged_texts_are_answered_or_refused() {
    let queries = golden_queries();
    for_each_seed(|dice| {
        let mut bytes = dice.pick(&queries).clone().into_bytes();
        for _ in 0..1 + dice.below(6) {
            if bytes.is_empty() {
                bytes.push(b'S');
            }
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] = dice.next() as u8,
                1 => bytes.insert(at, *dice.pick(b"()[]{}'\"\\.,-*@#$ \n\t\0%_")),
                2 if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
}

/// Words in any order.
#[test]
fn strings_of_words_are_answered_or_refused() {
    for_each_seed(|dice| {
        let words: Vec<&str> = (0..dice.below(60)).map(|_| *dice.pick(TOKENS)).collect();
        format!("SELECT {}", words.join(" "))
    });
}

fn argument(dice: &mut Dice, depth: usize) -> String {
    let leaves = [
        "c.v",
        "c.mix",
        "c.a",
        "c.a[1]",
        "c.o",
        "c.g",
        "c.t",
        "c.p",
        "c.s",
        "c.vector",
        "c.text",
        "c.missing",
        "c",
        "@p",
        "@q",
        "0",
        "1",
        "-1",
        "3.7",
        "1e300",
        "-1e300",
        "9223372036854775807",
        "-9223372036854775808",
        "4294967296",
        "''",
        "'a'",
        "'é😀'",
        "'['",
        "'(a+)+$'",
        "'\\\\'",
        "'2024-13-45'",
        "'yyyy'",
        "null",
        "true",
        "false",
        "undefined",
        "[]",
        "[1,[2]]",
        "{}",
        "{'k':1}",
        "{'type':'Polygon','coordinates':[[[0,0],[1,1],[0,1],[0,0]]]}",
    ];
    match dice.below(if depth == 0 { 1 } else { 3 }) {
        0 | 1 => (*dice.pick(&leaves)).to_owned(),
        _ => call(dice, depth - 1),
    }
}

fn call(dice: &mut Dice, depth: usize) -> String {
    let (_, family) = dice.pick(FAMILIES);
    if family.is_empty() {
        return "PI()".to_owned();
    }
    let name = dice.pick(family).name;
    let arguments: Vec<String> = (0..dice.below(5)).map(|_| argument(dice, depth)).collect();
    format!("{name}({})", arguments.join(", "))
}

/// Every function, with any number of arguments of any kind.
#[test]
fn functions_take_whatever_they_get() {
    for_each_seed(|dice| {
        let (value, filter) = (call(dice, 3), call(dice, 2));
        match dice.below(4) {
            0 => format!("SELECT VALUE {value} FROM c"),
            1 => format!("SELECT {value} AS x, COUNT(1) AS n FROM c GROUP BY {value}"),
            2 => format!("SELECT VALUE {value} FROM c WHERE {filter} OR {filter} = {value}"),
            _ => {
                format!("SELECT DISTINCT VALUE [{value}, {filter}] FROM c JOIN t IN c.a WHERE {filter} != t")
            }
        }
    });
}

/// Nesting of every kind, far beyond what is allowed: an error, not the end of the stack.
#[test]
fn nesting_ends_at_its_limit() {
    let pairs = [
        ("(", ")"),
        ("[", "]"),
        ("{'k':", "}"),
        ("NOT ", ""),
        ("-", ""),
        ("~", ""),
        ("ABS(", ")"),
        ("c.", "c"),
        ("c[", "]"),
        ("(SELECT VALUE ", ")"),
        ("EXISTS(SELECT VALUE ", ")"),
        ("ARRAY(SELECT VALUE ", " FROM c)"),
        ("1 + ", ""),
        ("1 ?? ", ""),
        ("true ? 1 : ", ""),
        ("true AND ", ""),
        ("c.v IN (", ")"),
        ("c.v BETWEEN 1 AND ", ""),
        ("IIF(true, ", ", 1)"),
    ];
    for depth in [1usize, 20, 99, 100, 101, 500, 10_000] {
        for (open, close) in pairs {
            // Some parts grow with their nesting; a text has a limit of its own.
            let text = format!("SELECT VALUE {}1{} FROM c", open.repeat(depth), close.repeat(depth));
            if text.len() < orrery_sql::QUERY_TEXT_BYTES_MAX {
                try_text(&text);
            }
        }
    }
    for_each_seed(|dice| {
        let mut text = "1".to_owned();
        for _ in 0..dice.below(250) {
            let (open, close) = dice.pick(&pairs);
            text = format!("{open}{text}{close}");
        }
        format!("SELECT VALUE {text} FROM c")
    });
}
