//! `$exp`, `$ln`, `$log`, `$log10`, `$pow`, `$sqrt`.

use super::Call;
use super::arithmetic::numeric_argument;
use super::number::{self, NumberRef};
use super::table::{Operator, values};
use super::value::{is_nullish, show, type_name};
use crate::decimal;
use crate::error::{Error, Result};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$exp", (1, 1), exp, "{$exp: number}", "e to the power of a number."),
    values("$ln", (1, 1), ln, "{$ln: number}", "The natural logarithm."),
    values("$log", (2, 2), log, "{$log: [number, base]}", "The logarithm to a base."),
    values("$log10", (1, 1), log10, "{$log10: number}", "The logarithm to base 10."),
    values(
        "$pow",
        (2, 2),
        pow,
        "{$pow: [base, exponent]}",
        "A power; whole where both are whole and it fits.",
    ),
    values("$sqrt", (1, 1), sqrt, "{$sqrt: number}", "The square root."),
];

fn is_positive(number: NumberRef) -> bool {
    match number {
        NumberRef::Decimal(value) => !decimal::is_signed(value) && !decimal::is_zero(value),
        _ => number.to_f64() > 0.0,
    }
}

fn exp(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(match numeric_argument(call)? {
        None => Bson::Null,
        Some(NumberRef::Decimal(value)) => Bson::Decimal(decimal::exp(value)),
        Some(number) => Bson::Double(number.to_f64().exp()),
    }))
}

fn ln(call: &Call<'_>) -> Result<Option<Bson>> {
    logarithm(call, 28766, f64::ln, decimal::ln)
}

fn log10(call: &Call<'_>) -> Result<Option<Bson>> {
    logarithm(call, 28761, f64::log10, decimal::log10)
}

fn logarithm(
    call: &Call<'_>,
    code: i32,
    double: fn(f64) -> f64,
    exact: fn(orrery_model::Decimal128) -> orrery_model::Decimal128,
) -> Result<Option<Bson>> {
    let Some(number) = numeric_argument(call)? else { return Ok(Some(Bson::Null)) };
    if number.is_nan() {
        return Ok(Some(Bson::Double(f64::NAN)));
    }
    if !is_positive(number) {
        let text = format!(
            "{}'s argument must be a positive number, but is {}",
            call.name,
            show(Some(&number.to_bson()))
        );
        return Err(Error::new(code, text));
    }
    Ok(Some(match number {
        NumberRef::Decimal(value) => Bson::Decimal(exact(value)),
        _ => Bson::Double(double(number.to_f64())),
    }))
}

fn log(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let Some(x) = a.and_then(number::of) else {
        return Err(Error::new(28756, format!("$log's argument must be numeric, not {}", type_name(a))));
    };
    let Some(base) = b.and_then(number::of) else {
        return Err(Error::new(28757, format!("$log's base must be numeric, not {}", type_name(b))));
    };
    if x.is_nan() || base.is_nan() {
        return Ok(Some(Bson::Double(f64::NAN)));
    }
    if !is_positive(x) {
        let text = format!("$log's argument must be a positive number, but is {}", show(a));
        return Err(Error::new(28758, text));
    }
    if !is_positive(base) || base.to_f64() == 1.0 {
        let text = format!("$log's base must be a positive number not equal to 1, but is {}", show(b));
        return Err(Error::new(28759, text));
    }
    Ok(Some(match (x, base) {
        (NumberRef::Decimal(_), _) | (_, NumberRef::Decimal(_)) => {
            Bson::Decimal(decimal::divide(decimal::ln(x.to_decimal()), decimal::ln(base.to_decimal())))
        }
        _ => Bson::Double(x.to_f64().ln() / base.to_f64().ln()),
    }))
}

fn sqrt(call: &Call<'_>) -> Result<Option<Bson>> {
    let Some(number) = numeric_argument(call)? else { return Ok(Some(Bson::Null)) };
    if !number.is_nan() && !number.is_zero() && !is_positive(number) {
        return Err(Error::new(28714, "$sqrt's argument must be greater than or equal to 0"));
    }
    Ok(Some(match number {
        NumberRef::Decimal(value) => Bson::Decimal(decimal::sqrt(value)),
        _ => Bson::Double(number.to_f64().sqrt()),
    }))
}

fn pow(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let Some(base) = a.and_then(number::of) else {
        return Err(Error::new(28762, format!("$pow's base must be numeric, not {}", type_name(a))));
    };
    let Some(exponent) = b.and_then(number::of) else {
        return Err(Error::new(28763, format!("$pow's exponent must be numeric, not {}", type_name(b))));
    };
    let below = match exponent {
        NumberRef::Decimal(value) => decimal::is_signed(value) && !decimal::is_zero(value) && !value.is_nan(),
        _ => exponent.to_f64() < 0.0,
    };
    if base.is_zero() && below {
        return Err(Error::new(28764, "$pow cannot take a base of 0 and a negative exponent"));
    }
    if matches!(base, NumberRef::Decimal(_)) || matches!(exponent, NumberRef::Decimal(_)) {
        return Ok(Some(Bson::Decimal(decimal::pow(base.to_decimal(), exponent.to_decimal()))));
    }
    if matches!(base, NumberRef::Double(_)) || matches!(exponent, NumberRef::Double(_)) {
        return Ok(Some(Bson::Double(base.to_f64().powf(exponent.to_f64()))));
    }
    let ints = matches!((base, exponent), (NumberRef::Int32(_), NumberRef::Int32(_)));
    let (b, e) = (base.to_i64().unwrap_or(0), exponent.to_i64().unwrap_or(0));
    let whole = match (b, e) {
        (1, _) => Some(1),
        (-1, _) => Some(if e % 2 == 0 { 1 } else { -1 }),
        (_, 0..) => u32::try_from(e).ok().and_then(|e| b.checked_pow(e)).or((b == 0).then_some(0)),
        _ => None,
    };
    Ok(Some(match whole {
        Some(whole) if ints => number::int_or_long(whole),
        Some(whole) => Bson::Int64(whole),
        None => Bson::Double((b as f64).powf(e as f64)),
    }))
}
