//! Mathematics. Whole numbers stay whole where the result is one.

use orrery_model::Number;

use super::{Function, entry};
use crate::value::Eval;

/// A function of one double.
fn real<'a>(arguments: &[Eval<'a>], function: fn(f64) -> f64) -> Eval<'a> {
    arguments[0].as_f64().map_or(Eval::Undefined, |value| Eval::double(function(value)))
}

/// A function that leaves integers alone.
fn rounding<'a>(arguments: &[Eval<'a>], function: fn(f64) -> f64) -> Eval<'a> {
    match arguments[0].as_number() {
        Some(Number::Int(value)) => Eval::integer(value),
        _ => real(arguments, function),
    }
}

fn two<'a>(arguments: &[Eval<'a>], function: fn(f64, f64) -> f64) -> Eval<'a> {
    match (arguments[0].as_f64(), arguments[1].as_f64()) {
        (Some(first), Some(second)) => Eval::double(function(first, second)),
        _ => Eval::Undefined,
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "ABS",
        1,
        1,
        "number",
        "The absolute value.",
        &[("ABS(-1)", "1"), ("ABS(2.5)", "2.5"), ("ABS('1')", "undefined")],
        |_, arguments| match arguments[0].as_number() {
            Some(Number::Int(value)) => {
                value.checked_abs().map_or_else(|| Eval::double((value as f64).abs()), Eval::integer)
            }
            _ => real(arguments, f64::abs),
        },
    ),
    entry("ACOS", 1, 1, "number", "The arc cosine, in radians.", &[("ACOS(1)", "0")], |_, arguments| {
        real(arguments, f64::acos)
    }),
    entry("ASIN", 1, 1, "number", "The arc sine, in radians.", &[("ASIN(0)", "0")], |_, arguments| {
        real(arguments, f64::asin)
    }),
    entry("ATAN", 1, 1, "number", "The arc tangent, in radians.", &[("ATAN(0)", "0")], |_, arguments| {
        real(arguments, f64::atan)
    }),
    entry(
        "ATN2",
        2,
        2,
        "y, x",
        "The angle, in radians, of the ray from the origin to (x, y).",
        &[("ATN2(0, 1)", "0")],
        |_, arguments| two(arguments, f64::atan2),
    ),
    entry(
        "CEILING",
        1,
        1,
        "number",
        "The smallest whole number that is not less.",
        &[("CEILING(1.1)", "2"), ("CEILING(-1.1)", "-1")],
        |_, arguments| rounding(arguments, f64::ceil),
    ),
    entry("COS", 1, 1, "radians", "The cosine.", &[("COS(0)", "1")], |_, arguments| {
        real(arguments, f64::cos)
    }),
    entry("COT", 1, 1, "radians", "The cotangent.", &[("ROUND(COT(PI() / 4))", "1")], |_, arguments| {
        real(arguments, |value| 1.0 / value.tan())
    }),
    entry("DEGREES", 1, 1, "radians", "An angle in degrees.", &[("DEGREES(PI())", "180")], |_, arguments| {
        real(arguments, f64::to_degrees)
    }),
    entry("EXP", 1, 1, "number", "The exponential.", &[("EXP(0)", "1")], |_, arguments| {
        real(arguments, f64::exp)
    }),
    entry(
        "FLOOR",
        1,
        1,
        "number",
        "The largest whole number that is not greater.",
        &[("FLOOR(1.9)", "1"), ("FLOOR(-1.1)", "-2")],
        |_, arguments| rounding(arguments, f64::floor),
    ),
    entry(
        "LOG",
        1,
        2,
        "number [, base]",
        "The natural logarithm, or the logarithm to a base.",
        &[("LOG(1)", "0"), ("LOG(8, 2)", "3")],
        |_, arguments| {
            if arguments.len() == 1 {
                real(arguments, f64::ln)
            } else {
                two(arguments, |value, base| value.ln() / base.ln())
            }
        },
    ),
    entry("LOG10", 1, 1, "number", "The decimal logarithm.", &[("LOG10(100)", "2")], |_, arguments| {
        real(arguments, f64::log10)
    }),
    entry(
        "NUMBERBIN",
        1,
        2,
        "number [, size]",
        "The number rounded down to a multiple of `size`, 1 if it is left out.",
        &[
            ("NUMBERBIN(37.752)", "37"),
            ("NUMBERBIN(37.752, 10)", "30"),
            ("NUMBERBIN(37.752, -100)", "100"),
            ("NUMBERBIN(1, 0)", "undefined"),
        ],
        |_, arguments| {
            let Some(value) = arguments[0].as_f64() else { return Eval::Undefined };
            match arguments.get(1).map_or(Some(1.0), Eval::as_f64) {
                Some(size) if size != 0.0 => Eval::double((value / size).floor() * size),
                _ => Eval::Undefined,
            }
        },
    ),
    entry("PI", 0, 0, "", "The number π.", &[("PI()", "3.1415926535897931")], |_, _| {
        Eval::double(std::f64::consts::PI)
    }),
    entry("POWER", 2, 2, "number, exponent", "A power.", &[("POWER(2, 3)", "8")], |_, arguments| {
        two(arguments, f64::powf)
    }),
    entry(
        "RADIANS",
        1,
        1,
        "degrees",
        "An angle in radians.",
        &[("RADIANS(180) = PI()", "true")],
        |_, arguments| real(arguments, f64::to_radians),
    ),
    entry(
        "RAND",
        0,
        0,
        "",
        "A random number, at least 0 and less than 1.",
        &[("RAND() < 1", "true")],
        |context, _| Eval::double(context.random()),
    )
    .changes(),
    entry(
        "ROUND",
        1,
        1,
        "number",
        "The nearest whole number; halves go away from zero.",
        &[("ROUND(2.5)", "3"), ("ROUND(-2.5)", "-3"), ("ROUND(2.4)", "2")],
        |_, arguments| rounding(arguments, f64::round),
    ),
    entry(
        "SIGN",
        1,
        1,
        "number",
        "-1, 0 or 1.",
        &[("SIGN(-2)", "-1"), ("SIGN(0)", "0"), ("SIGN(0.1)", "1")],
        |_, arguments| {
            arguments[0].as_f64().map_or(Eval::Undefined, |value| {
                Eval::integer(i64::from(value > 0.0) - i64::from(value < 0.0))
            })
        },
    ),
    entry("SIN", 1, 1, "radians", "The sine.", &[("SIN(0)", "0")], |_, arguments| real(arguments, f64::sin)),
    entry("SQRT", 1, 1, "number", "The square root.", &[("SQRT(9)", "3")], |_, arguments| {
        real(arguments, f64::sqrt)
    }),
    entry("SQUARE", 1, 1, "number", "The square.", &[("SQUARE(3)", "9")], |_, arguments| {
        real(arguments, |value| value * value)
    }),
    entry("TAN", 1, 1, "radians", "The tangent.", &[("TAN(0)", "0")], |_, arguments| {
        real(arguments, f64::tan)
    }),
    entry(
        "TRUNC",
        1,
        1,
        "number",
        "The number without its fraction.",
        &[("TRUNC(2.9)", "2"), ("TRUNC(-2.9)", "-2")],
        |_, arguments| rounding(arguments, f64::trunc),
    ),
];
