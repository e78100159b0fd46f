//! `$substr`, `$substrBytes`, `$substrCP`.

use super::coerce::text;
use crate::error::{Error, Result};
use crate::expression::Call;
use crate::expression::number::{self, NumberRef};
use crate::expression::table::{Operator, values};
use crate::expression::value::{show, type_name};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$substr", (3, 3), bytes, "{$substr: [text, start, length]}", "The same as $substrBytes."),
    values(
        "$substrBytes",
        (3, 3),
        bytes,
        "{$substrBytes: [text, start, length]}",
        "A part of a text, by bytes of UTF-8.",
    ),
    values(
        "$substrCP",
        (3, 3),
        code_points,
        "{$substrCP: [text, start, length]}",
        "A part of a text, by code points.",
    ),
];

fn bytes(call: &Call<'_>) -> Result<Option<Bson>> {
    let text = text(call.arguments[0].as_ref())?;
    let numeric = |at: usize, what: &str, code: i32| {
        let value = call.arguments[at].as_ref();
        value.and_then(number::of).map(|number| number.to_i64_saturated(false)).ok_or_else(|| {
            Error::new(
                code,
                format!("$substrBytes:  {what} must be a numeric type (is BSON type {})", type_name(value)),
            )
        })
    };
    let start = numeric(1, "starting index", 16034)?;
    let length = numeric(2, "length", 16035)?;
    let Ok(start) = usize::try_from(start) else {
        let text = format!("$substrBytes: starting index must be non-negative (got: {start})");
        return Err(Error::new(50752, text));
    };
    let inside = |at: usize| text.as_bytes().get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    if inside(start) {
        return Err(Error::new(
            28656,
            "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.",
        ));
    }
    if start >= text.len() {
        return Ok(Some("".into()));
    }
    let end =
        usize::try_from(length).map_or(text.len(), |length| start.saturating_add(length).min(text.len()));
    match text.get(start..end) {
        Some(part) => Ok(Some(part.into())),
        None => Err(Error::new(
            28657,
            "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.",
        )),
    }
}

fn code_points(call: &Call<'_>) -> Result<Option<Bson>> {
    let text = text(call.arguments[0].as_ref())?;
    let integer = |at: usize, what: &str, kind_code: i32, whole_code: i32| {
        let value = call.arguments[at].as_ref();
        let Some(number) = value.and_then(number::of) else {
            let text =
                format!("$substrCP: {what} must be a numeric type (is BSON type {})", type_name(value));
            return Err(Error::new(kind_code, text));
        };
        NumberRef::to_i32(number).ok_or_else(|| {
            let text = format!(
                "$substrCP: {what} cannot be represented as a 32-bit integral value: {}",
                show(value)
            );
            Error::new(whole_code, text)
        })
    };
    let start = integer(1, "starting index", 34450, 34451)?;
    let length = integer(2, "length", 34452, 34453)?;
    let Ok(length) = usize::try_from(length) else {
        if start < 0 {
            return Err(Error::new(34455, "$substrCP: the starting index must be nonnegative integer."));
        }
        return Err(Error::new(34454, "$substrCP: length must be a nonnegative integer."));
    };
    let Ok(start) = usize::try_from(start) else {
        return Err(Error::new(34455, "$substrCP: the starting index must be nonnegative integer."));
    };
    let part: String = text.chars().skip(start).take(length).collect();
    Ok(Some(part.into()))
}
