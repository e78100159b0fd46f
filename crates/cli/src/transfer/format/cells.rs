//! Cells of text tables as JSON values, and back: the type rules of CSV.
//!
//! | cell | value |
//! |---|---|
//! | nothing | the property is left out |
//! | `null`, `true`, `false` | null, a boolean |
//! | a number as JSON writes it, whole ones up to 2⁵³, others of at most 17 digits | a number |
//! | `{…}`, `[…]` that is JSON | an object, an array |
//! | `"…"` that is a JSON string | that string |
//! | anything else, `007`, `+1`, `1e999`, `12345678901234567890` | a string |
//!
//! A string that would be read as something else is written as a JSON string, so what was exported comes back as it
//! was.

use super::super::raw_json;

/// More digits than a double can have.
const DIGITS_MAX: usize = 17;
/// Whole numbers up to here are doubles, every one.
const WHOLE_MAX: u64 = 1 << 53;

/// The JSON of a cell; `None` leaves the property out.
pub fn value(cell: &str) -> Option<String> {
    match cell {
        "" => None,
        "null" | "true" | "false" => Some(cell.to_owned()),
        _ if is_number(cell) => Some(cell.to_owned()),
        _ if is_json(cell) => Some(cell.to_owned()),
        _ => Some(raw_json::quoted(cell)),
    }
}

/// The cell of a JSON value.
pub fn cell(value: &str) -> String {
    match value.as_bytes().first() {
        Some(b'"') => match raw_json::unquoted(value) {
            Some(text)
                if !text.is_empty()
                    && self::value(&text).is_some_and(|read| read.starts_with('"') && !is_json(&text)) =>
            {
                text.into_owned()
            }
            // Would be read as something else, or not at all.
            _ => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}

/// The cell of an id, which is text whatever it looks like: a number is read back as the text that it was.
pub fn id_cell(value: &str) -> String {
    match raw_json::unquoted(value) {
        Some(text) if value.starts_with('"') && is_number(&text) => text.into_owned(),
        _ => cell(value),
    }
}

fn is_number(cell: &str) -> bool {
    if !cell.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    if let Ok(whole) = cell.parse::<i64>() {
        return whole.unsigned_abs() <= WHOLE_MAX && serde_json::from_str::<i64>(cell).is_ok();
    }
    let digits = cell.bytes().take_while(|byte| !b"eE".contains(byte)).filter(u8::is_ascii_digit);
    // Zeros in front are none that count.
    let digits = digits.skip_while(|digit| *digit == b'0').count();
    let fraction = cell.bytes().any(|byte| b".eE".contains(&byte));
    fraction && digits <= DIGITS_MAX && serde_json::from_str::<f64>(cell).is_ok_and(f64::is_finite)
}

fn is_json(cell: &str) -> bool {
    let bracketed = matches!(
        (cell.as_bytes().first(), cell.as_bytes().last()),
        (Some(b'{'), Some(b'}')) | (Some(b'['), Some(b']')) | (Some(b'"'), Some(b'"'))
    );
    bracketed && serde_json::from_str::<serde::de::IgnoredAny>(cell).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_is_a_number_needs_no_quotes() {
        for (id, cell) in [("\"17\"", "17"), ("\"007\"", "007"), ("\"a\"", "a"), ("\"true\"", "\"true\"")] {
            assert_eq!(id_cell(id), cell);
        }
    }

    #[test]
    fn cells_have_the_types_of_the_rules() {
        for (cell, json) in [
            ("", None),
            ("null", Some("null")),
            ("true", Some("true")),
            ("-1.5e3", Some("-1.5e3")),
            ("0.30000000000000004", Some("0.30000000000000004")),
            ("007", Some("\"007\"")),
            ("+1", Some("\"+1\"")),
            ("1.", Some("\"1.\"")),
            ("1e999", Some("\"1e999\"")),
            ("12345678901234567890", Some("\"12345678901234567890\"")),
            ("{\"a\":1}", Some("{\"a\":1}")),
            ("{a}", Some("\"{a}\"")),
            ("\"12\"", Some("\"12\"")),
            ("True", Some("\"True\"")),
            ("a\"b", Some("\"a\\\"b\"")),
        ] {
            assert_eq!(value(cell).as_deref(), json, "{cell}");
        }
    }

    #[test]
    fn strings_come_back_as_strings() {
        for text in ["a", "12", "true", "null", "", "{}", "\"x\"", " 1", "007", "[1", "ü\n"] {
            let json = raw_json::quoted(text);
            let back = value(&cell(&json)).expect("it is there");
            assert_eq!(serde_json::from_str::<String>(&back).unwrap(), text);
        }
    }
}
