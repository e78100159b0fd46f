//! `$split`.

use crate::error::{Error, Result};
use crate::expression::Call;
use crate::expression::size::charge;
use crate::expression::table::{Operator, values};
use crate::expression::value::{is_nullish, type_name};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[values(
    "$split",
    (2, 2),
    split,
    "{$split: [text, separator]}",
    "The parts of a text between separators.",
)];

fn split(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let wrong = |which: &str, value, code| {
        let kind = type_name(value);
        Error::new(
            code,
            format!(
                "$split requires an expression that evaluates to a string as a {which} argument, found: {kind}"
            ),
        )
    };
    let text = a.and_then(Bson::as_str).ok_or_else(|| wrong("first", a, 40085))?;
    let separator = b.and_then(Bson::as_str).ok_or_else(|| wrong("second", b, 40086))?;
    if separator.is_empty() {
        return Err(Error::new(40087, "$split requires a non-empty separator"));
    }
    charge(call.context, text.len() + text.matches(separator).count() * size_of::<Bson>())?;
    Ok(Some(Bson::array(text.split(separator).map(Bson::from).collect())))
}
