//! The function table: every case in it holds, and the reference page is printed from it.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use orrery_query::functions::{FAMILIES, Function};
use orrery_query::{Prepared, QueryEnv, run_all};

fn all() -> impl Iterator<Item = &'static Function> {
    FAMILIES.iter().flat_map(|(_, functions)| functions.iter())
}

fn evaluate(expression: &str) -> String {
    let query = orrery_sql::parse_query(&format!("SELECT VALUE {expression}")).expect(expression);
    let prepared = Prepared::new(&query, &[], &QueryEnv::default()).expect(expression);
    match run_all(&prepared, []).expect(expression).pop() {
        Some(row) => String::from_utf8(row).expect("rows are UTF-8"),
        None => "undefined".to_string(),
    }
}

#[test]
fn every_case_of_every_function_holds() {
    for function in all() {
        for (expression, expected) in function.cases {
            assert_eq!(evaluate(expression), *expected, "{expression}");
        }
    }
}

#[test]
fn names_are_unique_and_counts_make_sense() {
    let mut seen = HashSet::new();
    for function in all() {
        assert!(seen.insert(function.name), "{} is there twice", function.name);
        assert_eq!(function.name, function.name.to_uppercase());
        assert!(function.most.is_none_or(|most| most >= function.least), "{}", function.name);
        assert!(!function.summary.is_empty() && function.summary.ends_with('.'), "{}", function.name);
    }
    assert!(seen.len() > 130, "only {} functions", seen.len());
}

#[test]
fn functions_answer_any_argument_without_panicking() {
    let values = [
        "undefined",
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e300",
        "9223372036854775807",
        "NaN",
        "-Infinity",
        "''",
        "'abc'",
        "'😀é'",
        "'2024-02-29T00:00:00'",
        "'['",
        "[]",
        "[1, 'a', [2]]",
        "{}",
        "{a: {b: 1}}",
        "{type: 'Point', coordinates: [0, 91]}",
    ];
    for function in all() {
        let most = function.most.unwrap_or(function.least + 1).min(5);
        for count in function.least..=most {
            for shift in 0..values.len() {
                let arguments: Vec<&str> =
                    (0..count).map(|at| values[(shift * (at + 1) + at) % values.len()]).collect();
                let text = format!("SELECT {}({})", function.name, arguments.join(", "));
                let query = orrery_sql::parse_query(&text).expect(&text);
                // NaN and infinities cannot be printed; every other answer is fine.
                if let Ok(prepared) = Prepared::new(&query, &[], &QueryEnv::default()) {
                    let _ = run_all(&prepared, []);
                }
            }
        }
    }
}

/// Set `UPDATE_REFERENCE=1` to write the page again.
#[test]
fn the_reference_page_is_up_to_date() {
    let mut page = String::from(
        "# SQL functions\n\nThis page is printed from the function table by \
         `UPDATE_REFERENCE=1 cargo test -p orrery-query --test functions`; the examples are its tests.\n\n\
         Unless said otherwise a function answers undefined for an undefined argument and for types it does \
         not take. Names are not case-sensitive. Names that begin with an underscore are used by clients in \
         queries they rewrite.\n",
    );
    for (family, functions) in FAMILIES {
        let _ = write!(page, "\n## {family}\n");
        for function in *functions {
            let _ = write!(page, "\n### {}({})\n\n{}\n", function.name, function.arguments, function.summary);
            if !function.cases.is_empty() {
                page.push_str("\n```sql\n");
                for (expression, result) in function.cases {
                    let _ = writeln!(page, "{expression}  -- {result}");
                }
                page.push_str("```\n");
            }
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/sql-functions.md");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("the directory can be made");
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/reference/sql-functions.md differs from the table; set UPDATE_REFERENCE=1");
}
