//! Arrays as sets: no element twice, in the order they first appear.

use std::collections::HashSet;

use super::{Function, entry};
use crate::compare::canonical_key;
use crate::context::Caller;
use crate::value::Eval;

/// The elements of the first array that `keep` wants, and their keys only once.
fn filtered<'a>(
    array: &Eval<'a>,
    keep: impl Fn(&[u8]) -> bool,
    seen: &mut HashSet<Vec<u8>>,
) -> Vec<Eval<'a>> {
    let wanted = |element: &Eval<'a>| {
        let key = canonical_key(element);
        keep(&key) && seen.insert(key)
    };
    array.elements().into_iter().flatten().filter(wanted).collect()
}

fn keys(array: &Eval<'_>) -> HashSet<Vec<u8>> {
    array.elements().into_iter().flatten().map(|element| canonical_key(&element)).collect()
}

/// What an element takes in a set of keys, and once more in the result.
const ELEMENT_BYTES: usize = 128;

fn both_arrays(caller: &Caller<'_>, arguments: &[Eval<'_>]) -> bool {
    let elements = arguments.iter().map(Eval::len).sum::<usize>();
    arguments.iter().all(|argument| argument.elements().is_some())
        && caller.has_room(elements.saturating_mul(ELEMENT_BYTES))
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "SETINTERSECT",
        2,
        2,
        "a, b",
        "What is in both arrays.",
        &[("SETINTERSECT([1, 2, 2], [2, 3])", "[2]"), ("SETINTERSECT([1], 1)", "undefined")],
        |caller, a| {
            if !both_arrays(caller, a) {
                return Eval::Undefined;
            }
            let other = keys(&a[1]);
            Eval::array(filtered(&a[0], |key| other.contains(key), &mut HashSet::new()))
        },
    ),
    entry(
        "SETUNION",
        2,
        2,
        "a, b",
        "What is in either array.",
        &[("SETUNION([1, 2], [2, 3])", "[1,2,3]")],
        |caller, a| {
            if !both_arrays(caller, a) {
                return Eval::Undefined;
            }
            let mut seen = HashSet::new();
            let mut all = filtered(&a[0], |_| true, &mut seen);
            all.extend(filtered(&a[1], |_| true, &mut seen));
            Eval::array(all)
        },
    ),
    entry(
        "SETDIFFERENCE",
        2,
        2,
        "a, b",
        "What is in the first array and not in the second.",
        &[("SETDIFFERENCE([1, 2], [2, 3])", "[1]")],
        |caller, a| {
            if !both_arrays(caller, a) {
                return Eval::Undefined;
            }
            let other = keys(&a[1]);
            Eval::array(filtered(&a[0], |key| !other.contains(key), &mut HashSet::new()))
        },
    ),
    entry(
        "SETEQUAL",
        2,
        2,
        "a, b",
        "Whether two arrays hold the same, however often and in whatever order.",
        &[("SETEQUAL([1, 2, 2], [2, 1])", "true"), ("SETEQUAL([1], [2])", "false")],
        |caller, a| {
            if both_arrays(caller, a) { Eval::Bool(keys(&a[0]) == keys(&a[1])) } else { Eval::Undefined }
        },
    ),
];
