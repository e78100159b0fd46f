//! Elements and parts of arrays: `$arrayElemAt`, `$first`, `$last`, `$slice`, `$size`, `$isArray`, `$reverseArray`.

use crate::error::{Error, Result};
use crate::expression::number::{self, NumberRef};
use crate::expression::table::{Operator, lazy, values};
use crate::expression::value::{is_nullish, show, type_name};
use crate::expression::{Call, LazyCall};
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    lazy(
        "$arrayElemAt",
        (2, 2),
        at,
        "{$arrayElemAt: [array, index]}",
        "An element; from the end where below zero.",
    ),
    lazy("$first", (1, 1), first, "{$first: array}", "The first element."),
    lazy("$isArray", (1, 1), is_array, "{$isArray: [value]}", "Whether it is an array."),
    lazy("$last", (1, 1), last, "{$last: array}", "The last element."),
    values("$reverseArray", (1, 1), reverse, "{$reverseArray: array}", "The array backwards."),
    lazy("$size", (1, 1), size, "{$size: array}", "How many elements it has."),
    values("$slice", (2, 3), slice, "{$slice: [array, position, n]}", "A part of an array."),
];

fn at(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let array = call.arguments[0].value_in(call.scope)?;
    let index = call.arguments[1].evaluate_in(call.scope)?;
    let nullish =
        |value: Option<ValueRef<'_>>| value.is_none_or(|v| matches!(v.kind(), Kind::Null | Kind::Undefined));
    if nullish(array.get()) || is_nullish(index.as_ref()) {
        return Ok(Some(Bson::Null));
    }
    let Some(array) = array.get().filter(|array| array.kind() == Kind::Array) else {
        let kind = array.get().map_or("missing", |value| value.kind().name());
        let text = format!("$arrayElemAt's first argument must be an array, but is {kind}");
        return Err(Error::new(28689, text));
    };
    let Some(number) = index.as_ref().and_then(number::of) else {
        let text = format!(
            "$arrayElemAt's second argument must be a numeric value, but is {}",
            type_name(index.as_ref())
        );
        return Err(Error::new(28690, text));
    };
    let Some(index) = number.to_i32() else {
        let text = format!(
            "$arrayElemAt's second argument must be representable as a 32-bit integer: {}",
            show(index.as_ref())
        );
        return Err(Error::new(28691, text));
    };
    let index = if index < 0 { array.len() as i64 + i64::from(index) } else { index.into() };
    Ok(usize::try_from(index).ok().and_then(|index| array.at(index)).map(ValueRef::to_bson))
}

fn end(call: &LazyCall<'_>, last: bool) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    match value.get() {
        None => Ok(Some(Bson::Null)),
        Some(array) => match array.kind() {
            Kind::Null | Kind::Undefined => Ok(Some(Bson::Null)),
            Kind::Array => {
                let at = if last { array.len().checked_sub(1) } else { Some(0) };
                Ok(at.and_then(|at| array.at(at)).map(ValueRef::to_bson))
            }
            other => {
                let text = format!("{}'s argument must be an array, but is {}", call.name, other.name());
                Err(Error::new(28689, text))
            }
        },
    }
}

fn first(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    end(call, false)
}

fn last(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    end(call, true)
}

fn is_array(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    Ok(Some(Bson::Bool(value.get().is_some_and(|value| value.kind() == Kind::Array))))
}

fn size(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    match value.get() {
        Some(array) if array.kind() == Kind::Array => Ok(Some(number::int_or_long(array.len() as i64))),
        other => {
            let kind = other.map_or("missing", |value| value.kind().name());
            let text = format!("The argument to $size must be an array, but was of type: {kind}");
            Err(Error::new(17124, text))
        }
    }
}

fn reverse(call: &Call<'_>) -> Result<Option<Bson>> {
    match &call.arguments[0] {
        None | Some(Bson::Null | Bson::Undefined) => Ok(Some(Bson::Null)),
        Some(Bson::Array(elements)) => Ok(Some(Bson::array(elements.iter().rev().cloned().collect()))),
        Some(other) => {
            let text = format!(
                "The argument to $reverseArray must be an array, but was of type: {}",
                other.kind().name()
            );
            Err(Error::new(34435, text))
        }
    }
}

fn slice(call: &Call<'_>) -> Result<Option<Bson>> {
    if call.arguments.iter().any(|argument| is_nullish(argument.as_ref())) {
        return Ok(Some(Bson::Null));
    }
    let Some(Bson::Array(elements)) = &call.arguments[0] else {
        let kind = type_name(call.arguments[0].as_ref());
        return Err(Error::new(
            28724,
            format!("First argument to $slice must be an array, but is of type: {kind}"),
        ));
    };
    let integer = |at: usize, which: &str, kind_code: i32, whole_code: i32| {
        let value = call.arguments[at].as_ref();
        let Some(number) = value.and_then(number::of) else {
            let text = format!(
                "{which} argument to $slice must be a numeric value, but is of type: {}",
                type_name(value)
            );
            return Err(Error::new(kind_code, text));
        };
        NumberRef::to_i32(number).ok_or_else(|| {
            let text = format!(
                "{which} argument to $slice can't be represented as a 32-bit integer: {}",
                show(value)
            );
            Error::new(whole_code, text)
        })
    };
    let length = elements.len() as i64;
    let second = i64::from(integer(1, "Second", 28725, 28726)?);
    let (start, count) = if call.arguments.len() == 2 {
        if second >= 0 { (0, second) } else { ((length + second).max(0), -second) }
    } else {
        let count = i64::from(integer(2, "Third", 28727, 28728)?);
        if count <= 0 {
            return Err(Error::new(28729, format!("Third argument to $slice must be positive: {count}")));
        }
        (if second < 0 { (length + second).max(0) } else { second.min(length) }, count)
    };
    let end = (start + count).min(length);
    Ok(Some(Bson::array(elements[start as usize..end.max(start) as usize].to_vec())))
}
