//! `$in`, `$indexOfArray`.

use crate::error::{Error, Result};
use crate::expression::comparison::compare;
use crate::expression::number;
use crate::expression::table::{Operator, lazy, values};
use crate::expression::value::{is_nullish, show, type_name};
use crate::expression::{Call, LazyCall};
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    lazy("$in", (2, 2), within, "{$in: [value, array]}", "Whether an array has an element of that value."),
    values(
        "$indexOfArray",
        (2, 4),
        index_of,
        "{$indexOfArray: [array, value, start, end]}",
        "Where an array has its first element of that value; -1 where it has none.",
    ),
];

fn within(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    let array = call.arguments[1].value_in(call.scope)?;
    let Some(array) = array.get().filter(|array| array.kind() == Kind::Array) else {
        let kind = array.get().map_or("missing", |value| value.kind().name());
        let text = format!("$in requires an array as a second argument, found: {kind}");
        return Err(Error::new(40081, text));
    };
    let found =
        array.elements().any(|element| compare(value.get(), Some(element), call.scope.context).is_eq());
    Ok(Some(Bson::Bool(found)))
}

/// A place to begin or end at.
pub(crate) fn bound(call: &Call<'_>, at: usize, which: &str) -> Result<Option<usize>> {
    let Some(value) = call.arguments.get(at) else { return Ok(None) };
    let value = value.as_ref();
    let Some(number) = value.and_then(number::of).and_then(number::NumberRef::to_i32) else {
        let text = format!(
            "{} requires an integral {which} index, found a value of type: {}, with value: \"{}\"",
            call.name,
            type_name(value),
            show(value)
        );
        return Err(Error::new(40096, text));
    };
    usize::try_from(number).map(Some).map_err(|_| {
        Error::new(40097, format!("{} requires a nonnegative {which} index, found: {number}", call.name))
    })
}

fn index_of(call: &Call<'_>) -> Result<Option<Bson>> {
    let array = call.arguments[0].as_ref();
    if is_nullish(array) {
        return Ok(Some(Bson::Null));
    }
    let Some(Bson::Array(elements)) = array else {
        let text =
            format!("$indexOfArray requires an array as a first argument, found: {}", type_name(array));
        return Err(Error::new(40090, text));
    };
    let start = bound(call, 2, "starting")?.unwrap_or(0);
    let end = bound(call, 3, "ending")?.unwrap_or(usize::MAX).min(elements.len());
    let wanted = call.arguments[1].as_ref().map(ValueRef::Owned);
    let found = elements
        .iter()
        .enumerate()
        .take(end)
        .skip(start)
        .find(|(_, element)| compare(wanted, Some(ValueRef::Owned(element)), call.context).is_eq());
    Ok(Some(found.map_or(Bson::Int32(-1), |(at, _)| number::int_or_long(at as i64))))
}
