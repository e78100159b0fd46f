//! `$toLower`, `$toUpper`, `$strcasecmp`: of ASCII letters, as the server does it.

use super::coerce::text;
use crate::error::Result;
use crate::expression::Call;
use crate::expression::table::{Operator, values};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values(
        "$strcasecmp",
        (2, 2),
        compare,
        "{$strcasecmp: [a, b]}",
        "-1, 0 or 1: how texts compare, whatever their case.",
    ),
    values("$toLower", (1, 1), lower, "{$toLower: text}", "In small letters."),
    values("$toUpper", (1, 1), upper, "{$toUpper: text}", "In capital letters."),
];

fn lower(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(text(call.arguments[0].as_ref())?.to_ascii_lowercase().into()))
}

fn upper(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(text(call.arguments[0].as_ref())?.to_ascii_uppercase().into()))
}

fn compare(call: &Call<'_>) -> Result<Option<Bson>> {
    let a = text(call.arguments[0].as_ref())?.to_ascii_uppercase();
    let b = text(call.arguments[1].as_ref())?.to_ascii_uppercase();
    Ok(Some(Bson::Int32(a.cmp(&b) as i32)))
}
