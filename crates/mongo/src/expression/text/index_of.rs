//! `$indexOfBytes`, `$indexOfCP`.

use crate::error::{Error, Result};
use crate::expression::Call;
use crate::expression::number::{self, int_or_long};
use crate::expression::table::{Operator, values};
use crate::expression::value::{is_nullish, show, type_name};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values(
        "$indexOfBytes",
        (2, 4),
        bytes,
        "{$indexOfBytes: [text, part, start, end]}",
        "At which byte a part begins; -1 where it does not occur.",
    ),
    values(
        "$indexOfCP",
        (2, 4),
        code_points,
        "{$indexOfCP: [text, part, start, end]}",
        "At which code point a part begins; -1 where it does not occur.",
    ),
];

fn texts<'a>(call: &'a Call<'_>, codes: (i32, i32)) -> Result<Option<(&'a str, &'a str)>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) {
        return Ok(None);
    }
    let wrong = |which: &str, value, code| {
        Error::new(
            code,
            format!("{} requires a string as the {which} argument, found: {}", call.name, type_name(value)),
        )
    };
    let a = a.and_then(Bson::as_str).ok_or_else(|| wrong("first", a, codes.0))?;
    let b = b.and_then(Bson::as_str).ok_or_else(|| wrong("second", b, codes.1))?;
    Ok(Some((a, b)))
}

fn bound(call: &Call<'_>, at: usize, which: &str) -> Result<Option<usize>> {
    let Some(value) = call.arguments.get(at) else { return Ok(None) };
    let value = value.as_ref();
    let Some(number) = value.and_then(number::of).and_then(number::NumberRef::to_i64) else {
        let text = format!(
            "{} requires an integral {which} index, found a value of type: {}, with value: {}",
            call.name,
            type_name(value),
            show(value)
        );
        return Err(Error::new(40096, text));
    };
    match i32::try_from(number).ok().and_then(|number| usize::try_from(number).ok()) {
        Some(index) => Ok(Some(index)),
        None => Err(Error::new(
            40097,
            format!("{} requires a nonnegative {which} index, found: {number}", call.name),
        )),
    }
}

fn bytes(call: &Call<'_>) -> Result<Option<Bson>> {
    let Some((text, part)) = texts(call, (40091, 40092))? else { return Ok(Some(Bson::Null)) };
    let start = bound(call, 2, "starting")?.unwrap_or(0);
    let end = bound(call, 3, "ending")?.unwrap_or(usize::MAX).min(text.len());
    if start > text.len() || end < start {
        return Ok(Some(Bson::Int32(-1)));
    }
    // Bytes, so that a bound may lie within a character.
    let haystack = &text.as_bytes()[start..end];
    let found = if part.is_empty() {
        Some(0)
    } else {
        haystack.windows(part.len()).position(|window| window == part.as_bytes())
    };
    Ok(Some(found.map_or(Bson::Int32(-1), |at| int_or_long((at + start) as i64))))
}

fn code_points(call: &Call<'_>) -> Result<Option<Bson>> {
    let Some((text, part)) = texts(call, (40093, 40094))? else { return Ok(Some(Bson::Null)) };
    let start = bound(call, 2, "starting")?.unwrap_or(0);
    let end = bound(call, 3, "ending")?.unwrap_or(usize::MAX);
    let byte_of = |index: usize| text.char_indices().nth(index).map(|(at, _)| at);
    let count = || text.chars().count();
    let first = match byte_of(start) {
        Some(at) => at,
        None if start == count() => text.len(),
        None => return Ok(Some(Bson::Int32(-1))),
    };
    if end < start {
        return Ok(Some(Bson::Int32(-1)));
    }
    let last = byte_of(end).unwrap_or(text.len());
    let found = text[first..last].find(part).map(|at| start + text[first..first + at].chars().count());
    Ok(Some(found.map_or(Bson::Int32(-1), |at| int_or_long(at as i64))))
}
