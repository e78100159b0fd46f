//! Result rows as JSON text.
//!
//! Undefined members and elements are left out. A NaN or infinity that reaches a result is refused, as
//! JSON cannot spell it; inside a query they are legal.

use orrery_budget::Exceeded;
use orrery_model::{Number, NumberStyle, write_json_number, write_json_string};
use orrery_sql::SqlError;

use crate::value::Eval;

/// Appends `value` as JSON. A value of many parts ends where `out` has become longer than `limit_bytes`; each of the
/// parts is no longer than an item or the query.
pub fn write_json(value: &Eval<'_>, out: &mut Vec<u8>, limit_bytes: usize) -> Result<(), SqlError> {
    if out.len() > limit_bytes {
        return Err(Exceeded::Answer { limit_bytes }.into());
    }
    match value {
        Eval::Undefined | Eval::Null => out.extend_from_slice(b"null"),
        Eval::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Eval::Number(number) => write_number(*number, out)?,
        Eval::String(text) => write_json_string(out, text),
        Eval::Item(row) => row.write_json(out),
        Eval::Raw(node) => node.0.write_json(out, NumberStyle::Query),
        Eval::Constant(value) => value.write_json(out, NumberStyle::Query),
        Eval::Extended(value) => value.write_json(out, NumberStyle::Query),
        Eval::Array(elements) => {
            out.push(b'[');
            let mut first = true;
            for element in elements.iter().filter(|element| !element.is_undefined()) {
                separate(&mut first, out);
                write_json(element, out, limit_bytes)?;
            }
            out.push(b']');
        }
        Eval::Object(members) => {
            out.push(b'{');
            let mut first = true;
            for (name, value) in members.iter().filter(|(_, value)| !value.is_undefined()) {
                separate(&mut first, out);
                write_json_string(out, name);
                out.push(b':');
                write_json(value, out, limit_bytes)?;
            }
            out.push(b'}');
        }
    }
    if out.len() > limit_bytes { Err(Exceeded::Answer { limit_bytes }.into()) } else { Ok(()) }
}

fn separate(first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(first) {
        out.push(b',');
    }
}

fn write_number(number: Number, out: &mut Vec<u8>) -> Result<(), SqlError> {
    if let Number::Double(value) = number
        && !value.is_finite()
    {
        return Err(SqlError::whole(
            "4001",
            "The response content contains a numeric value that cannot be represented in JSON \
             (e.g. Infinity and NaN).",
        ));
    }
    write_json_number(out, number, NumberStyle::Query);
    Ok(())
}
