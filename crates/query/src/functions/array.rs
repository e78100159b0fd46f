//! Arrays, and objects as arrays.

use std::borrow::Cow;
use std::cmp::Ordering;

use orrery_model::Number;

use super::{Function, entry};
use crate::compare::{equals, order};
use crate::operators::add;
use crate::value::{Eval, Type};

/// Whether `part` is in `whole`: equal, or with every member of an object equal to the whole's.
fn is_part(whole: &Eval<'_>, part: &Eval<'_>) -> bool {
    match (whole.kind(), part.members()) {
        (Type::Object, Some(members)) => members.iter().all(|(name, value)| {
            let found = whole.member(name);
            !found.is_undefined() && is_part(&found, value)
        }),
        _ => equals(whole, part),
    }
}

fn contains(array: &Eval<'_>, wanted: &Eval<'_>) -> bool {
    array.elements().into_iter().flatten().any(|element| equals(&element, wanted))
}

/// ARRAY_CONTAINS of several values, as OR (`any`) or AND, with undefined as in logic.
fn contains_many<'a>(arguments: &[Eval<'a>], any: bool) -> Eval<'a> {
    if arguments[0].kind() != Type::Array {
        return Eval::Undefined;
    }
    let mut known = true;
    for wanted in &arguments[1..] {
        if wanted.is_undefined() {
            known = false;
        } else if contains(&arguments[0], wanted) == any {
            return Eval::Bool(any);
        }
    }
    if known { Eval::Bool(!any) } else { Eval::Undefined }
}

/// The numbers of an array; `None` if it holds anything else.
fn numbers(array: &Eval<'_>) -> Option<Vec<Number>> {
    array.elements()?.map(|element| element.as_number()).collect()
}

/// The least or greatest element by type and value; arrays and objects have none.
fn extreme<'a>(array: &Eval<'a>, wanted: Ordering) -> Eval<'a> {
    let mut best = Eval::Undefined;
    for element in array.elements().into_iter().flatten() {
        if !element.kind().has_extremes() {
            return Eval::Undefined;
        }
        if best.is_undefined() || order(&element, &best) == wanted {
            best = element;
        }
    }
    best
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "ARRAY_CONCAT",
        2,
        2,
        "a, b, …",
        "The arrays one after the other.",
        &[("ARRAY_CONCAT([1], [2], [3])", "[1,2,3]"), ("ARRAY_CONCAT([1], 2)", "undefined")],
        |caller, a| {
            let elements = a.iter().map(Eval::len).sum::<usize>();
            if !caller.has_room(elements.saturating_mul(size_of::<Eval<'_>>())) {
                return Eval::Undefined;
            }
            let mut all = Vec::with_capacity(elements);
            for array in a {
                match array.elements() {
                    Some(elements) => all.extend(elements),
                    None => return Eval::Undefined,
                }
            }
            Eval::array(all)
        },
    )
    .any_number(),
    entry(
        "ARRAY_CONTAINS",
        2,
        3,
        "array, value [, partial]",
        "Whether the array holds the value; with `partial`, whether it holds an object with at least these members.",
        &[
            ("ARRAY_CONTAINS([1, 2], 2)", "true"),
            ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1})", "false"),
            ("ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1}, true)", "true"),
            ("ARRAY_CONTAINS('no array', 1)", "undefined"),
        ],
        |_, a| {
            if a[0].kind() != Type::Array {
                return Eval::Undefined;
            }
            match a.get(2) {
                None | Some(Eval::Bool(false)) => Eval::Bool(contains(&a[0], &a[1])),
                Some(Eval::Bool(true)) => {
                    Eval::Bool(a[0].elements().into_iter().flatten().any(|element| is_part(&element, &a[1])))
                }
                Some(_) => Eval::Undefined,
            }
        },
    ),
    entry(
        "ARRAY_CONTAINS_ANY",
        2,
        2,
        "array, value, …",
        "Whether the array holds one of the values.",
        &[("ARRAY_CONTAINS_ANY([1, 2], 3, 2)", "true")],
        |_, a| contains_many(a, true),
    )
    .any_number()
    .takes_undefined(),
    entry(
        "ARRAY_CONTAINS_ALL",
        2,
        2,
        "array, value, …",
        "Whether the array holds all of the values.",
        &[("ARRAY_CONTAINS_ALL([1, 2], 1, 2)", "true"), ("ARRAY_CONTAINS_ALL([1, 2], 1, 3)", "false")],
        |_, a| contains_many(a, false),
    )
    .any_number()
    .takes_undefined(),
    entry(
        "ARRAY_LENGTH",
        1,
        1,
        "array",
        "How many elements.",
        &[("ARRAY_LENGTH([1, 2])", "2"), ("ARRAY_LENGTH('ab')", "undefined")],
        |_, a| if a[0].kind() == Type::Array { Eval::integer(a[0].len() as i64) } else { Eval::Undefined },
    ),
    entry(
        "ARRAY_SLICE",
        2,
        3,
        "array, start [, count]",
        "`count` elements from `start`, which counts from the end if negative.",
        &[
            ("ARRAY_SLICE([1, 2, 3], 1)", "[2,3]"),
            ("ARRAY_SLICE([1, 2, 3], -2, 1)", "[2]"),
            ("ARRAY_SLICE([1, 2, 3], 0, -1)", "[]"),
        ],
        |_, a| {
            let (Some(elements), Some(start)) = (a[0].elements(), a[1].as_i64()) else {
                return Eval::Undefined;
            };
            let count = match a.get(2) {
                None => usize::MAX,
                Some(count) => match count.as_i64() {
                    Some(count) => usize::try_from(count).unwrap_or(0),
                    None => return Eval::Undefined,
                },
            };
            let length = a[0].len() as i64;
            let start = if start < 0 { length.saturating_add(start).max(0) } else { start };
            Eval::array(elements.skip(start as usize).take(count).collect())
        },
    ),
    entry(
        "ARRAY_AVG",
        1,
        1,
        "array",
        "The mean of an array of numbers.",
        &[("ARRAY_AVG([1, 2, 3, 4])", "2.5"), ("ARRAY_AVG(['a'])", "undefined")],
        |_, a| match numbers(&a[0]) {
            Some(numbers) if !numbers.is_empty() => {
                let sum = numbers.iter().map(|number| number.as_f64()).sum::<f64>();
                Eval::double(sum / numbers.len() as f64)
            }
            _ => Eval::Undefined,
        },
    ),
    entry(
        "ARRAY_SUM",
        1,
        1,
        "array",
        "The sum of an array of numbers.",
        &[("ARRAY_SUM([1, 2.5])", "3.5")],
        |_, a| match numbers(&a[0]) {
            Some(numbers) => Eval::Number(numbers.into_iter().fold(Number::Int(0), add)),
            None => Eval::Undefined,
        },
    ),
    entry(
        "ARRAY_MEDIAN",
        1,
        1,
        "array",
        "The median of an array of numbers.",
        &[("ARRAY_MEDIAN([3, 1, 2])", "2"), ("ARRAY_MEDIAN([1, 2, 3, 4])", "2.5")],
        |_, a| match numbers(&a[0]) {
            Some(mut numbers) if !numbers.is_empty() => {
                numbers.sort_by(|left, right| left.compare(*right));
                let middle = numbers.len() / 2;
                if numbers.len() % 2 == 1 {
                    Eval::Number(numbers[middle])
                } else {
                    Eval::double((numbers[middle - 1].as_f64() + numbers[middle].as_f64()) / 2.0)
                }
            }
            _ => Eval::Undefined,
        },
    ),
    entry(
        "ARRAY_MIN",
        1,
        1,
        "array",
        "The least element: null before booleans, numbers and strings.",
        &[("ARRAY_MIN([2, 1, 'a'])", "1")],
        |_, a| extreme(&a[0], Ordering::Less),
    ),
    entry(
        "ARRAY_MAX",
        1,
        1,
        "array",
        "The greatest element: strings after numbers, booleans and null.",
        &[("ARRAY_MAX([2, 1, 'a'])", "\"a\"")],
        |_, a| extreme(&a[0], Ordering::Greater),
    ),
    entry(
        "CHOOSE",
        2,
        2,
        "index, value, …",
        "The value at `index`, which counts from 1.",
        &[("CHOOSE(2, 'a', 'b')", "\"b\""), ("CHOOSE(3, 'a', 'b')", "undefined")],
        |_, a| match a[0].as_i64().map(usize::try_from) {
            Some(Ok(index)) if index > 0 => a.get(index).cloned().unwrap_or(Eval::Undefined),
            _ => Eval::Undefined,
        },
    )
    .any_number()
    .takes_undefined(),
    entry(
        "OBJECTTOARRAY",
        1,
        3,
        "object [, keyName [, valueName]]",
        "The members as an array of objects with a key and a value, named `k` and `v` unless told otherwise.",
        &[
            ("OBJECTTOARRAY({a: 1})", r#"[{"k":"a","v":1}]"#),
            ("OBJECTTOARRAY({a: 1}, 'name', 'is')", r#"[{"name":"a","is":1}]"#),
        ],
        |caller, a| {
            let names = (a.get(1).map_or(Some("k"), Eval::as_str), a.get(2).map_or(Some("v"), Eval::as_str));
            let (Some(members), (Some(key), Some(value))) = (a[0].members(), names) else {
                return Eval::Undefined;
            };
            let pair_bytes = 4 * size_of::<Eval<'_>>() + key.len() + value.len();
            if !caller.has_room(members.len().saturating_mul(pair_bytes)) {
                return Eval::Undefined;
            }
            let pair = |(name, member): (Cow<'_, str>, _)| {
                let name = Eval::text(name.into_owned());
                Eval::object(vec![
                    (Cow::Owned(key.to_string()), name),
                    (Cow::Owned(value.to_string()), member),
                ])
            };
            Eval::array(members.into_iter().map(pair).collect())
        },
    ),
];
