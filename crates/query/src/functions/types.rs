//! Type tests. They answer true or false for every argument, undefined included.

use super::date::parse_datetime;
use super::{Function, entry};
use crate::value::{Eval, Type};

fn is<'a>(arguments: &[Eval<'a>], kind: Type) -> Eval<'a> {
    Eval::Bool(arguments[0].kind() == kind)
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry("IS_ARRAY", 1, 1, "value", "Whether it is an array.", &[("IS_ARRAY([])", "true")], |_, a| {
        is(a, Type::Array)
    })
    .takes_undefined(),
    entry("IS_BOOL", 1, 1, "value", "Whether it is a boolean.", &[("IS_BOOL(false)", "true")], |_, a| {
        is(a, Type::Bool)
    })
    .takes_undefined(),
    entry(
        "IS_DATETIME",
        1,
        1,
        "value",
        "Whether it is a string that date functions accept.",
        &[("IS_DATETIME('2024-02-29')", "true"), ("IS_DATETIME('2023-02-29')", "false")],
        |_, a| Eval::Bool(a[0].as_str().is_some_and(|text| parse_datetime(text).is_some())),
    )
    .takes_undefined(),
    entry(
        "IS_DEFINED",
        1,
        1,
        "value",
        "Whether it is there at all.",
        &[("IS_DEFINED(null)", "true"), ("IS_DEFINED(undefined)", "false")],
        |_, a| Eval::Bool(!a[0].is_undefined()),
    )
    .takes_undefined(),
    entry(
        "IS_FINITE_NUMBER",
        1,
        1,
        "value",
        "Whether it is a number other than NaN and the infinities.",
        &[("IS_FINITE_NUMBER(1)", "true"), ("IS_FINITE_NUMBER(1 / 0)", "false")],
        |_, a| Eval::Bool(a[0].as_f64().is_some_and(f64::is_finite)),
    )
    .takes_undefined(),
    entry(
        "IS_INTEGER",
        1,
        1,
        "value",
        "Whether it is a 64-bit integer.",
        &[("IS_INTEGER(9223372036854775807)", "true"), ("IS_INTEGER(1.5)", "false")],
        |_, a| Eval::Bool(a[0].as_i64().is_some()),
    )
    .takes_undefined(),
    entry("IS_NULL", 1, 1, "value", "Whether it is null.", &[("IS_NULL(undefined)", "false")], |_, a| {
        is(a, Type::Null)
    })
    .takes_undefined(),
    entry("IS_NUMBER", 1, 1, "value", "Whether it is a number.", &[("IS_NUMBER(1)", "true")], |_, a| {
        is(a, Type::Number)
    })
    .takes_undefined(),
    entry("IS_OBJECT", 1, 1, "value", "Whether it is an object.", &[("IS_OBJECT({})", "true")], |_, a| {
        is(a, Type::Object)
    })
    .takes_undefined(),
    entry(
        "IS_PRIMITIVE",
        1,
        1,
        "value",
        "Whether it is null, a boolean, a number or a string.",
        &[("IS_PRIMITIVE('a')", "true"), ("IS_PRIMITIVE([])", "false")],
        |_, a| Eval::Bool(matches!(a[0].kind(), Type::Null | Type::Bool | Type::Number | Type::String)),
    )
    .takes_undefined(),
    entry("IS_STRING", 1, 1, "value", "Whether it is a string.", &[("IS_STRING('')", "true")], |_, a| {
        is(a, Type::String)
    })
    .takes_undefined(),
];
