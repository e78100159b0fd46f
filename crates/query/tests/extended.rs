//! What SQL makes of values that only other APIs can store: printed, never of a type of the language, ordered, grouped.

use orrery_model::{ParseOptions, Raw, parse_extended_json};
use orrery_query::{Prepared, QueryEnv, RowView, run_all};

const ITEMS: [&str; 12] = [
    r#"{"id":1,"x":{"$oid":"507f1f77bcf86cd799439011"}}"#,
    r#"{"id":2,"x":{"$date":"2024-01-01T00:00:00Z"}}"#,
    r#"{"id":3,"x":{"$date":"2023-01-01T00:00:00Z"}}"#,
    r#"{"id":4,"x":{"$numberDecimal":"1.50"}}"#,
    r#"{"id":5,"x":{"$numberDecimal":"1.5"}}"#,
    r#"{"id":6,"x":{"$minKey":1}}"#,
    r#"{"id":7,"x":{"$maxKey":1}}"#,
    r#"{"id":8,"x":{"$numberLong":"1"}}"#,
    r#"{"id":9,"x":2}"#,
    r#"{"id":10,"x":null}"#,
    r#"{"id":11,"x":{"a":{"$code":"f"}}}"#,
    r#"{"id":12}"#,
];

fn rows(text: &str) -> Vec<String> {
    let documents = ITEMS.map(|item| parse_extended_json(item.as_bytes(), &ParseOptions::default()).unwrap());
    let query = orrery_sql::parse_query(text).unwrap_or_else(|error| panic!("{text}: {}", error.message));
    let prepared = Prepared::new(&query, &[], &QueryEnv::default()).unwrap();
    let items = documents.iter().map(|document| RowView::plain(Raw::document(document).unwrap()));
    let found = run_all(&prepared, items).unwrap_or_else(|error| panic!("{text}: {}", error.message));
    found.into_iter().map(|row| String::from_utf8(row.to_vec()).unwrap()).collect()
}

fn ids(filter: &str) -> String {
    rows(&format!("SELECT VALUE c.id FROM c WHERE {filter}")).join(" ")
}

#[test]
fn they_print_as_extended_json_wherever_they_come_from() {
    assert_eq!(rows("SELECT * FROM c WHERE c.id = 1"), [ITEMS[0]]);
    assert_eq!(rows("SELECT VALUE c.x FROM c WHERE c.id = 2"), [r#"{"$date":"2024-01-01T00:00:00Z"}"#]);
    assert_eq!(rows("SELECT VALUE [c.x] FROM c WHERE c.id = 4"), [r#"[{"$numberDecimal":"1.50"}]"#]);
    assert_eq!(rows("SELECT VALUE c.x FROM c WHERE c.id = 8"), ["1"]);
    assert_eq!(rows("SELECT VALUE c.x.a FROM c WHERE c.id = 11"), [r#"{"$code":"f"}"#]);
    assert_eq!(rows("SELECT c.x[\"$oid\"] AS m FROM c WHERE c.id = 1"), ["{}"]);
}

#[test]
fn they_are_defined_and_of_no_type_of_the_language() {
    assert_eq!(ids("IS_DEFINED(c.x)"), "1 2 3 4 5 6 7 8 9 10 11");
    assert_eq!(ids("IS_NUMBER(c.x)"), "8 9");
    assert_eq!(ids("IS_OBJECT(c.x)"), "11");
    assert_eq!(ids("IS_NULL(c.x)"), "10");
    assert_eq!(ids("IS_PRIMITIVE(c.x)"), "8 9 10");
    assert_eq!(ids("IS_STRING(c.x) OR IS_BOOL(c.x) OR IS_ARRAY(c.x)"), "");
    assert_eq!(rows("SELECT VALUE LENGTH(c.x) FROM c WHERE c.id = 1"), Vec::<String>::new());
}

#[test]
fn they_compare_with_their_own_type_only() {
    assert_eq!(ids("c.x > 0"), "8 9");
    assert_eq!(ids("c.x = 1.5"), "");
    assert_eq!(ids("c.x != 2"), "1 2 3 4 5 6 7 8 10 11");
    assert_eq!(ids("c.x = {\"$oid\":\"507f1f77bcf86cd799439011\"}"), "");
    let own = "SELECT VALUE [c.x = c.x, c.x <= c.x, c.x < c.x, c.x = 1] FROM c WHERE c.id";
    for id in [1, 2, 4, 6, 7] {
        assert_eq!(rows(&format!("{own} = {id}")), ["[true,true,false,false]"], "{id}");
    }
}

#[test]
fn they_are_sorted_grouped_and_counted() {
    assert_eq!(rows("SELECT VALUE c.id FROM c ORDER BY c.x").join(" "), "12 6 10 8 4 5 9 11 1 3 2 7");
    assert_eq!(rows("SELECT VALUE c.id FROM c ORDER BY c.x DESC").join(" "), "7 2 3 1 11 9 4 5 8 10 6 12");
    assert_eq!(
        rows("SELECT DISTINCT VALUE c.x FROM c WHERE c.id IN (4, 5, 8)"),
        [r#"{"$numberDecimal":"1.50"}"#, "1"]
    );
    assert_eq!(
        rows("SELECT c.x, COUNT(1) AS n FROM c WHERE c.id IN (3, 4, 5) GROUP BY c.x"),
        [r#"{"x":{"$date":"2023-01-01T00:00:00Z"},"n":1}"#, r#"{"x":{"$numberDecimal":"1.50"},"n":2}"#,]
    );
    assert_eq!(rows("SELECT VALUE COUNT(c.x) FROM c"), ["11"]);
    assert_eq!(rows("SELECT VALUE MAX(c.x) FROM c WHERE c.id IN (4, 8)"), [r#"{"$numberDecimal":"1.50"}"#]);
    assert_eq!(rows("SELECT VALUE MIN(c.x) FROM c WHERE c.id IN (2, 8)"), Vec::<String>::new());
    assert_eq!(rows("SELECT VALUE SUM(c.x) FROM c WHERE c.id IN (4, 8)"), Vec::<String>::new());
}
