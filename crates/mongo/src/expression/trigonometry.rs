//! Sines, cosines and their like, of doubles and decimals; degrees and radians.

use orrery_model::Decimal128;

use super::Call;
use super::arithmetic::numeric_argument;
use super::number::{self, NumberRef};
use super::table::{Operator, values};
use super::value::{is_nullish, show, type_name};
use crate::decimal;
use crate::error::{Error, Result};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$acos", (1, 1), acos, "{$acos: number}", "The arc cosine of a number from -1 to 1."),
    values(
        "$acosh",
        (1, 1),
        acosh,
        "{$acosh: number}",
        "The inverse hyperbolic cosine of a number from 1 on.",
    ),
    values("$asin", (1, 1), asin, "{$asin: number}", "The arc sine of a number from -1 to 1."),
    values("$asinh", (1, 1), asinh, "{$asinh: number}", "The inverse hyperbolic sine."),
    values("$atan", (1, 1), atan, "{$atan: number}", "The arc tangent."),
    values("$atan2", (2, 2), atan2, "{$atan2: [y, x]}", "The angle of a point."),
    values(
        "$atanh",
        (1, 1),
        atanh,
        "{$atanh: number}",
        "The inverse hyperbolic tangent of a number from -1 to 1.",
    ),
    values("$cos", (1, 1), cos, "{$cos: radians}", "The cosine."),
    values("$cosh", (1, 1), cosh, "{$cosh: number}", "The hyperbolic cosine."),
    values("$degreesToRadians", (1, 1), to_radians, "{$degreesToRadians: degrees}", "Degrees in radians."),
    values("$radiansToDegrees", (1, 1), to_degrees, "{$radiansToDegrees: radians}", "Radians in degrees."),
    values("$sin", (1, 1), sin, "{$sin: radians}", "The sine."),
    values("$sinh", (1, 1), sinh, "{$sinh: number}", "The hyperbolic sine."),
    values("$tan", (1, 1), tan, "{$tan: radians}", "The tangent."),
    values("$tanh", (1, 1), tanh, "{$tanh: number}", "The hyperbolic tangent."),
];

/// Where a function is defined.
enum Domain {
    All,
    Finite,
    /// From -1 to 1.
    Unit,
    FromOne,
}

fn function(
    call: &Call<'_>,
    domain: &Domain,
    double: fn(f64) -> f64,
    exact: fn(Decimal128) -> Decimal128,
) -> Result<Option<Bson>> {
    let Some(number) = numeric_argument(call)? else { return Ok(Some(Bson::Null)) };
    if number.is_nan() {
        return Ok(Some(match number {
            NumberRef::Decimal(value) => Bson::Decimal(value),
            _ => Bson::Double(f64::NAN),
        }));
    }
    let outside = |range: &str| {
        let shown = show(Some(&number.to_bson()));
        let text = format!("cannot apply {} to {shown}, value must be in {range}", call.name);
        Err(Error::new(50989, text))
    };
    let size = match number {
        NumberRef::Decimal(value) => {
            // The decimal may be a little outside where its double is not.
            let one = decimal::of_i64(1);
            let size = if decimal::is_signed(value) { decimal::negate(value) } else { value };
            if size.compare(one).is_gt() { number.to_f64().abs().max(1.1) } else { number.to_f64().abs() }
        }
        _ => number.to_f64().abs(),
    };
    match domain {
        Domain::Finite if size.is_infinite() => return outside("(-inf,inf)"),
        Domain::Unit if size > 1.0 => return outside("[-1,1]"),
        Domain::FromOne if number.to_f64() < 1.0 => return outside("[1,inf]"),
        _ => {}
    }
    Ok(Some(match number {
        NumberRef::Decimal(value) => Bson::Decimal(exact(value)),
        _ => Bson::Double(double(number.to_f64())),
    }))
}

/// By the size of the number: the standard library's loses digits near -1.
fn atanh_double(x: f64) -> f64 {
    let size = x.abs();
    (0.5 * (2.0 * size / (1.0 - size)).ln_1p()).copysign(x)
}

fn atanh(call: &Call<'_>) -> Result<Option<Bson>> {
    function(call, &Domain::Unit, atanh_double, decimal::atanh)
}

macro_rules! functions {
    ($($name:ident $domain:ident)*) => {
        $(fn $name(call: &Call<'_>) -> Result<Option<Bson>> {
            function(call, &Domain::$domain, f64::$name, decimal::$name)
        })*
    };
}

functions! {
    acos Unit
    asin Unit
    acosh FromOne
    asinh All
    atan All
    cosh All
    sinh All
    tanh All
    cos Finite
    sin Finite
    tan Finite
}

fn atan2(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let (Some(y), Some(x)) = (a.and_then(number::of), b.and_then(number::of)) else {
        let text = format!("$atan2 only supports numeric types, not {} and {}", type_name(a), type_name(b));
        return Err(Error::new(51044, text));
    };
    Ok(Some(match (y, x) {
        (NumberRef::Decimal(_), _) | (_, NumberRef::Decimal(_)) => {
            Bson::Decimal(decimal::atan2(y.to_decimal(), x.to_decimal()))
        }
        _ => Bson::Double(y.to_f64().atan2(x.to_f64())),
    }))
}

/// Pi as services of DocumentDB have it for this: the double's 15 digits.
fn pi() -> Decimal128 {
    decimal::of_f64(std::f64::consts::PI)
}

fn to_radians(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(match numeric_argument(call)? {
        None => Bson::Null,
        Some(NumberRef::Decimal(value)) => {
            let factor = decimal::divide(pi(), decimal::of_i64(180));
            Bson::Decimal(decimal::multiply(value, factor))
        }
        Some(number) => Bson::Double(number.to_f64() * (std::f64::consts::PI / 180.0)),
    }))
}

fn to_degrees(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(match numeric_argument(call)? {
        None => Bson::Null,
        Some(NumberRef::Decimal(value)) => {
            let factor = decimal::divide(decimal::of_i64(180), pi());
            Bson::Decimal(decimal::multiply(value, factor))
        }
        Some(number) => Bson::Double(number.to_f64() * (180.0 / std::f64::consts::PI)),
    }))
}
