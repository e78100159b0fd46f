//! Arithmetic on 64-bit integers, wrapping at the ends; any argument that is no such integer gives
//! undefined.

use super::{Function, entry};
use crate::value::Eval;

fn two<'a>(arguments: &[Eval<'a>], function: fn(i64, i64) -> Option<i64>) -> Eval<'a> {
    match (arguments[0].as_i64(), arguments[1].as_i64()) {
        (Some(first), Some(second)) => function(first, second).map_or(Eval::Undefined, Eval::integer),
        _ => Eval::Undefined,
    }
}

/// Shifts count to 63; a larger count has moved every bit out.
fn shift(count: i64) -> Option<u32> {
    u32::try_from(count).ok()
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "INTADD",
        2,
        2,
        "a, b",
        "The sum.",
        &[("INTADD(20, 10)", "30"), ("INTADD(1.5, 1)", "undefined")],
        |_, a| two(a, |a, b| Some(a.wrapping_add(b))),
    ),
    entry("INTSUB", 2, 2, "a, b", "The difference.", &[("INTSUB(20, 30)", "-10")], |_, a| {
        two(a, |a, b| Some(a.wrapping_sub(b)))
    }),
    entry("INTMUL", 2, 2, "a, b", "The product.", &[("INTMUL(5, -2)", "-10")], |_, a| {
        two(a, |a, b| Some(a.wrapping_mul(b)))
    }),
    entry(
        "INTDIV",
        2,
        2,
        "a, b",
        "The quotient without its fraction.",
        &[("INTDIV(7, 2)", "3"), ("INTDIV(-7, 2)", "-3"), ("INTDIV(1, 0)", "undefined")],
        |_, a| two(a, |a, b| if b == 0 { None } else { Some(a.wrapping_div(b)) }),
    ),
    entry(
        "INTMOD",
        2,
        2,
        "a, b",
        "The remainder, with the sign of `a`.",
        &[("INTMOD(7, 2)", "1"), ("INTMOD(-7, 2)", "-1"), ("INTMOD(1, 0)", "undefined")],
        |_, a| two(a, |a, b| if b == 0 { None } else { Some(a.wrapping_rem(b)) }),
    ),
    entry("INTBITAND", 2, 2, "a, b", "Bits set in both.", &[("INTBITAND(12, 10)", "8")], |_, a| {
        two(a, |a, b| Some(a & b))
    }),
    entry("INTBITOR", 2, 2, "a, b", "Bits set in either.", &[("INTBITOR(12, 10)", "14")], |_, a| {
        two(a, |a, b| Some(a | b))
    }),
    entry("INTBITXOR", 2, 2, "a, b", "Bits set in one of them.", &[("INTBITXOR(12, 10)", "6")], |_, a| {
        two(a, |a, b| Some(a ^ b))
    }),
    entry("INTBITNOT", 1, 1, "a", "All bits turned.", &[("INTBITNOT(65535)", "-65536")], |_, a| {
        a[0].as_i64().map_or(Eval::Undefined, |value| Eval::integer(!value))
    }),
    entry(
        "INTBITLEFTSHIFT",
        2,
        2,
        "a, count",
        "Bits moved to the left.",
        &[("INTBITLEFTSHIFT(16, 4)", "256")],
        |_, a| two(a, |a, count| Some(a.checked_shl(shift(count)?).unwrap_or(0))),
    ),
    entry(
        "INTBITRIGHTSHIFT",
        2,
        2,
        "a, count",
        "Bits moved to the right, keeping the sign.",
        &[("INTBITRIGHTSHIFT(256, 4)", "16")],
        |_, a| two(a, |a, count| Some(a.checked_shr(shift(count)?).unwrap_or(if a < 0 { -1 } else { 0 }))),
    ),
];
