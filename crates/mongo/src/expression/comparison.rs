//! `$cmp`, `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`: the order of values, over all types.

use std::cmp::Ordering;

use super::table::{Operator, lazy};
use super::{LazyCall, Value};
use crate::context::Context;
use crate::error::Result;
use crate::order;
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    lazy("$cmp", (2, 2), cmp, "{$cmp: [a, b]}", "-1, 0 or 1: how two values compare."),
    lazy("$eq", (2, 2), eq, "{$eq: [a, b]}", "Whether two values are equal."),
    lazy("$gt", (2, 2), gt, "{$gt: [a, b]}", "Whether a is greater than b."),
    lazy("$gte", (2, 2), gte, "{$gte: [a, b]}", "Whether a is greater than b, or equal."),
    lazy("$lt", (2, 2), lt, "{$lt: [a, b]}", "Whether a is less than b."),
    lazy("$lte", (2, 2), lte, "{$lte: [a, b]}", "Whether a is less than b, or equal."),
    lazy("$ne", (2, 2), ne, "{$ne: [a, b]}", "Whether two values are not equal."),
];

/// The order of values that may be missing, which is below null and above min key.
pub fn compare(a: Option<ValueRef<'_>>, b: Option<ValueRef<'_>>, context: &Context) -> Ordering {
    let below = |value: ValueRef<'_>| value.kind() == Kind::MinKey;
    let same = |value: ValueRef<'_>| value.kind() == Kind::Undefined;
    match (a, b) {
        (Some(a), Some(b)) => order::compare(a, b, context.collation.as_deref()),
        (None, None) => Ordering::Equal,
        (None, Some(b)) if below(b) => Ordering::Greater,
        (Some(a), None) if below(a) => Ordering::Less,
        (None, Some(b)) if same(b) => Ordering::Equal,
        (Some(a), None) if same(a) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
    }
}

fn order_of(call: &LazyCall<'_>) -> Result<Ordering> {
    let a: Value<'_> = call.arguments[0].value_in(call.scope)?;
    let b = call.arguments[1].value_in(call.scope)?;
    Ok(compare(a.get(), b.get(), call.scope.context))
}

fn cmp(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    Ok(Some(Bson::Int32(order_of(call)? as i32)))
}

macro_rules! comparisons {
    ($($name:ident $test:ident)*) => {
        $(fn $name(call: &LazyCall<'_>) -> Result<Option<Bson>> {
            Ok(Some(Bson::Bool(order_of(call)?.$test())))
        })*
    };
}

comparisons! {
    eq is_eq
    ne is_ne
    gt is_gt
    gte is_ge
    lt is_lt
    lte is_le
}
