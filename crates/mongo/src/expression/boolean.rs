//! `$and`, `$or`, `$not`.

use super::LazyCall;
use super::table::{MANY, Operator, lazy};
use crate::error::Result;
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    lazy(
        "$and",
        (0, MANY),
        and,
        "{$and: [a, b, …]}",
        "Whether all are true; the rest is not looked at after a false.",
    ),
    lazy("$not", (1, 1), not, "{$not: [a]}", "Whether it is false."),
    lazy(
        "$or",
        (0, MANY),
        or,
        "{$or: [a, b, …]}",
        "Whether any is true; the rest is not looked at after it.",
    ),
];

/// What counts as true: all but false, zeros, null, undefined and missing.
pub(crate) fn is_true(value: Option<ValueRef<'_>>) -> bool {
    let Some(value) = value else { return false };
    match value.kind() {
        Kind::Null | Kind::Undefined => false,
        Kind::Bool => value.as_bool().unwrap_or_default(),
        kind if kind.is_number() => value.as_number().is_some_and(|number| !number.is_zero()),
        _ => true,
    }
}

impl LazyCall<'_> {
    /// Whether an argument is true.
    pub(super) fn holds(&self, at: usize) -> Result<bool> {
        Ok(is_true(self.arguments[at].value_in(self.scope)?.get()))
    }
}

fn and(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    for at in 0..call.arguments.len() {
        if !call.holds(at)? {
            return Ok(Some(Bson::Bool(false)));
        }
    }
    Ok(Some(Bson::Bool(true)))
}

fn or(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    for at in 0..call.arguments.len() {
        if call.holds(at)? {
            return Ok(Some(Bson::Bool(true)));
        }
    }
    Ok(Some(Bson::Bool(false)))
}

fn not(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    Ok(Some(Bson::Bool(!call.holds(0)?)))
}
