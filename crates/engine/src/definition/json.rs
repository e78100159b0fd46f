//! Reading JSON of a known shape: wrong types get the service's one text, and null counts as absent.

use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// What the service says about a member of a wrong type, without naming it.
const INVALID_INPUT: &str = "One of the specified inputs is invalid";

pub(super) fn invalid_input() -> Error {
    Error::bad_request(INVALID_INPUT)
}

/// A member that is there and not null.
pub(super) fn member<'j>(object: &'j Map<String, Value>, name: &str) -> Option<&'j Value> {
    object.get(name).filter(|value| !value.is_null())
}

pub(super) fn object(value: &Value) -> Result<&Map<String, Value>> {
    value.as_object().ok_or_else(invalid_input)
}

pub(super) fn object_member<'j>(
    from: &'j Map<String, Value>,
    name: &str,
) -> Result<Option<&'j Map<String, Value>>> {
    member(from, name).map(object).transpose()
}

pub(super) fn array_member<'j>(from: &'j Map<String, Value>, name: &str) -> Result<Option<&'j Vec<Value>>> {
    member(from, name).map(|value| value.as_array().ok_or_else(invalid_input)).transpose()
}

pub(super) fn text_member<'j>(from: &'j Map<String, Value>, name: &str) -> Result<Option<&'j str>> {
    member(from, name).map(|value| value.as_str().ok_or_else(invalid_input)).transpose()
}

pub(super) fn required_text<'j>(from: &'j Map<String, Value>, name: &str) -> Result<&'j str> {
    text_member(from, name)?.ok_or_else(invalid_input)
}

/// An integer, also when it is written as `5.0`.
pub(super) fn integer_member(from: &Map<String, Value>, name: &str) -> Result<Option<i64>> {
    let Some(value) = member(from, name) else { return Ok(None) };
    let whole = || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 2f64.powi(53));
    value.as_i64().or_else(|| whole().map(|number| number as i64)).map(Some).ok_or_else(invalid_input)
}

pub(super) fn bool_member(from: &Map<String, Value>, name: &str) -> Result<Option<bool>> {
    member(from, name).map(|value| value.as_bool().ok_or_else(invalid_input)).transpose()
}

/// The entry of `allowed` that equals `text` in any case.
pub(super) fn one_of(text: &str, allowed: &[&'static str]) -> Option<&'static str> {
    allowed.iter().copied().find(|name| name.eq_ignore_ascii_case(text))
}
