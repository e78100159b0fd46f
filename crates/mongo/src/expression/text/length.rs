//! `$strLenBytes`, `$strLenCP`.

use crate::error::{Error, Result};
use crate::expression::Call;
use crate::expression::number::int_or_long;
use crate::expression::table::{Operator, values};
use crate::expression::value::type_name;
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$strLenBytes", (1, 1), bytes, "{$strLenBytes: text}", "How many bytes a text has in UTF-8."),
    values("$strLenCP", (1, 1), code_points, "{$strLenCP: text}", "How many code points a text has."),
];

fn length(call: &Call<'_>, code: i32, of: fn(&str) -> usize) -> Result<Option<Bson>> {
    match &call.arguments[0] {
        Some(Bson::String(text) | Bson::Symbol(text)) => Ok(Some(int_or_long(of(text) as i64))),
        other => {
            let text =
                format!("{} requires a string argument, found: {}", call.name, type_name(other.as_ref()));
            Err(Error::new(code, text))
        }
    }
}

fn bytes(call: &Call<'_>) -> Result<Option<Bson>> {
    length(call, 34473, str::len)
}

fn code_points(call: &Call<'_>) -> Result<Option<Bson>> {
    length(call, 34471, |text| text.chars().count())
}
