//! Between strings and other types.

use orrery_model::{Number, NumberStyle, Value, parse_json_value, write_json_number};

use super::{Function, entry};
use crate::context::Caller;
use crate::limits::STRING_BYTES_MAX;
use crate::output::write_json;
use crate::value::Eval;

/// A byte of JSON becomes this much of a tree at most: `[[],[],…`.
const TREE_BYTES_PER_BYTE: usize = 24;

/// Parses JSON text, blanks around it allowed, if it is of the wanted kind.
fn parsed<'a>(caller: &Caller<'_>, arguments: &[Eval<'a>], wanted: fn(&Value) -> bool) -> Eval<'a> {
    let Some(text) = arguments[0].as_str() else { return Eval::Undefined };
    if !caller.has_room(text.len() * TREE_BYTES_PER_BYTE) {
        return Eval::Undefined;
    }
    match parse_json_value(text.trim_matches([' ', '\t', '\r', '\n']).as_bytes()) {
        Ok(value) if wanted(&value) => Eval::from_owned(value),
        _ => Eval::Undefined,
    }
}

/// A number as TOSTRING writes it.
pub fn number_text(number: Number) -> String {
    match number {
        Number::Double(value) if value.is_nan() => "NaN".to_string(),
        Number::Double(value) if value.is_infinite() => {
            if value > 0.0 { "Infinity" } else { "-Infinity" }.to_string()
        }
        // The shortest digits that read back as the same number.
        Number::Double(value) if (1e-5..1e15).contains(&value.abs()) => value.to_string(),
        other => {
            let mut out = Vec::new();
            write_json_number(&mut out, other, NumberStyle::Query);
            String::from_utf8_lossy(&out).into_owned()
        }
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "TOSTRING",
        1,
        1,
        "value",
        "The value as a string; arrays and objects as JSON.",
        &[
            ("TOSTRING(1.0)", "\"1\""),
            ("TOSTRING(0.1234)", "\"0.1234\""),
            ("TOSTRING(NaN)", "\"NaN\""),
            ("TOSTRING([1, 'a'])", r#""[1,\"a\"]""#),
        ],
        |_, a| match &a[0] {
            Eval::String(text) => Eval::String(text.clone()),
            Eval::Number(number) => Eval::text(number_text(*number)),
            other => {
                let mut out = Vec::new();
                match write_json(other, &mut out, STRING_BYTES_MAX) {
                    Ok(()) => Eval::text(String::from_utf8_lossy(&out).into_owned()),
                    Err(_) => Eval::Undefined,
                }
            }
        },
    ),
    entry(
        "STRINGTOARRAY",
        1,
        1,
        "text",
        "The array that the text is the JSON of.",
        &[("STRINGTOARRAY(' [1, \"a\"] ')", "[1,\"a\"]"), ("STRINGTOARRAY('1')", "undefined")],
        |caller, a| parsed(caller, a, |value| matches!(value, Value::Array(_))),
    ),
    entry(
        "STRINGTOBOOLEAN",
        1,
        1,
        "text",
        "The boolean that the text spells.",
        &[("STRINGTOBOOLEAN('true ')", "true"), ("STRINGTOBOOLEAN('TRUE')", "undefined")],
        |caller, a| parsed(caller, a, |value| matches!(value, Value::Bool(_))),
    ),
    entry(
        "STRINGTONULL",
        1,
        1,
        "text",
        "Null, if the text says so.",
        &[("STRINGTONULL('null')", "null")],
        |caller, a| parsed(caller, a, |value| matches!(value, Value::Null)),
    ),
    entry(
        "STRINGTONUMBER",
        1,
        1,
        "text",
        "The number that the text spells.",
        &[("STRINGTONUMBER(' 1.5 ')", "1.5"), ("STRINGTONUMBER('0xF')", "undefined")],
        |caller, a| parsed(caller, a, |value| matches!(value, Value::Number(_))),
    ),
    entry(
        "STRINGTOOBJECT",
        1,
        1,
        "text",
        "The object that the text is the JSON of.",
        &[(r#"STRINGTOOBJECT('{"a": 1}')"#, r#"{"a":1}"#), ("STRINGTOOBJECT('1')", "undefined")],
        |caller, a| parsed(caller, a, |value| matches!(value, Value::Object(_))),
    ),
];
