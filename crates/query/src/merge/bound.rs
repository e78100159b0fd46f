//! The condition under which rows can come at or after a sort key, as SQL text.
//!
//! A sorted query that goes on after `5` needs no row that sorts before it: `c.n >= 5`, and everything of a type that
//! sorts behind numbers. The condition may let too much pass but never too little; the merge compares exactly.

use orrery_model::{NumberStyle, Value};
use orrery_sql::Direction;

/// Types in their sort order, with the test for each.
const TYPES: [(&str, usize); 6] =
    [("IS_NULL", 1), ("IS_BOOL", 2), ("IS_NUMBER", 3), ("IS_STRING", 4), ("IS_ARRAY", 5), ("IS_OBJECT", 6)];

/// The condition for rows whose `expression` is at or after `key` in `direction`.
pub fn at_or_after(expression: &str, key: &Value, direction: Direction) -> String {
    if let Value::Extended(_) = key {
        // The language has no test for the types that only other APIs store.
        return "true".to_string();
    }
    let ascending = direction == Direction::Ascending;
    let rank = rank(key);
    let later = |other: usize| if ascending { other > rank } else { other < rank };
    let mut parts = Vec::new();
    match comparable(key) {
        Some(literal) => {
            parts.push(format!("{expression} {} {literal}", if ascending { ">=" } else { "<=" }))
        }
        None => parts.extend(test_of(rank).map(|test| format!("{test}({expression})"))),
    }
    for (test, _) in TYPES.iter().filter(|(_, other)| later(*other)) {
        parts.push(format!("{test}({expression})"));
    }
    if rank == 0 || later(0) {
        parts.push(format!("NOT IS_DEFINED({expression})"));
    }
    if parts.len() > TYPES.len() {
        // Every type, and undefined.
        return "true".to_string();
    }
    parts.join(" OR ")
}

fn rank(key: &Value) -> usize {
    match key {
        Value::Undefined => 0,
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) | Value::Extended(_) => 6,
    }
}

fn test_of(rank: usize) -> Option<&'static str> {
    TYPES.iter().find(|(_, of)| *of == rank).map(|(test, _)| *test)
}

/// The literal that the language compares as the sort does. Arrays and objects have no `<`, and beyond ASCII
/// strings are compared by UTF-16 units but sorted by code points.
fn comparable(key: &Value) -> Option<String> {
    match key {
        Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) if text.is_ascii() => {}
        _ => return None,
    }
    let mut out = Vec::new();
    key.write_json(&mut out, NumberStyle::Query);
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_sort_behind_the_key_pass_whole() {
        let check = |key: Value, direction, want: &str| assert_eq!(at_or_after("c.x", &key, direction), want);
        check(
            5.into(),
            Direction::Ascending,
            "c.x >= 5 OR IS_STRING(c.x) OR IS_ARRAY(c.x) OR IS_OBJECT(c.x)",
        );
        check(
            5.into(),
            Direction::Descending,
            "c.x <= 5 OR IS_NULL(c.x) OR IS_BOOL(c.x) OR NOT IS_DEFINED(c.x)",
        );
        check("it's".into(), Direction::Ascending, "c.x >= \"it's\" OR IS_ARRAY(c.x) OR IS_OBJECT(c.x)");
        check("ü".into(), Direction::Ascending, "IS_STRING(c.x) OR IS_ARRAY(c.x) OR IS_OBJECT(c.x)");
        check(Value::Undefined, Direction::Ascending, "true");
        check(Value::Undefined, Direction::Descending, "NOT IS_DEFINED(c.x)");
        check(Value::Null, Direction::Descending, "IS_NULL(c.x) OR NOT IS_DEFINED(c.x)");
        check(Value::Object(vec![]), Direction::Descending, "true");
    }
}
