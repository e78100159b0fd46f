//! `$add`, `$subtract`, `$multiply`, `$divide`, `$mod`, `$abs`, `$ceil`, `$floor`, `$round`, `$trunc`.

use super::number::{self, NumberRef, Sum};
use super::table::{MANY, Operator, values};
use super::value::{is_nullish, show, type_name};
use super::{Call, number::int_or_long};
use crate::decimal::{self, Rounding};
use crate::error::{Error, Result, code};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$abs", (1, 1), abs, "{$abs: number}", "The size of a number."),
    values(
        "$add",
        (0, MANY),
        add,
        "{$add: [a, b, …]}",
        "The sum of numbers, or of one date and milliseconds.",
    ),
    values("$ceil", (1, 1), ceil, "{$ceil: number}", "The next whole number upwards."),
    values("$divide", (2, 2), divide, "{$divide: [a, b]}", "The quotient, a double or a decimal."),
    values("$floor", (1, 1), floor, "{$floor: number}", "The next whole number downwards."),
    values("$mod", (2, 2), modulo, "{$mod: [a, b]}", "What a division leaves, with the sign of a."),
    values("$multiply", (0, MANY), multiply, "{$multiply: [a, b, …]}", "The product of numbers."),
    values(
        "$round",
        (1, 2),
        round,
        "{$round: [number, places]}",
        "Rounded half to even, to places from -20 to 100.",
    ),
    values("$subtract", (2, 2), subtract, "{$subtract: [a, b]}", "The difference of numbers, or of dates."),
    values(
        "$trunc",
        (1, 2),
        trunc,
        "{$trunc: [number, places]}",
        "Cut off toward zero, at places from -20 to 100.",
    ),
];

fn add(call: &Call<'_>) -> Result<Option<Bson>> {
    let mut sum = Sum::default();
    let mut date = None;
    for argument in call.arguments {
        match argument {
            None | Some(Bson::Null | Bson::Undefined) => return Ok(Some(Bson::Null)),
            Some(Bson::Date(ms)) if date.is_some() => {
                let _ = ms;
                return Err(Error::new(16612, "only one date allowed in an $add expression"));
            }
            Some(Bson::Date(ms)) => date = Some(*ms),
            Some(value) => match number::of(value) {
                Some(number) => sum.add(number),
                None => {
                    let text =
                        format!("$add only supports numeric or date types, not {}", type_name(Some(value)));
                    return Err(Error::type_mismatch(text));
                }
            },
        }
    }
    let Some(date) = date else { return Ok(Some(sum.to_bson())) };
    shift_date(call.name, date, &sum.to_bson(), 1)
}

fn shift_date(name: &str, date: i64, by: &Bson, sign: i128) -> Result<Option<Bson>> {
    let overflow = || Error::new(code::OVERFLOW, format!("date overflow in {name}"));
    let by = match number::of(by) {
        // A double beyond all dates, or none at all, is refused; a decimal leads to the last one.
        Some(NumberRef::Double(by)) if by.is_nan() || by.abs() >= 9_223_372_036_854_774_784.0 => {
            return Err(overflow());
        }
        Some(by) => by.to_i64_saturated(true),
        None => 0,
    };
    let ms = i64::try_from(i128::from(date) + sign * i128::from(by)).map_err(|_| overflow())?;
    Ok(Some(Bson::Date(ms)))
}

fn subtract(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let (Some(a), Some(b)) = (a, b) else { return Ok(Some(Bson::Null)) };
    match (a, b) {
        (Bson::Date(a), Bson::Date(b)) => match a.checked_sub(*b) {
            Some(ms) => return Ok(Some(Bson::Int64(ms))),
            None => return Err(Error::new(code::OVERFLOW, "date overflow in $subtract")),
        },
        (Bson::Date(date), by) if by.is_number() => return shift_date(call.name, *date, by, -1),
        _ => {}
    }
    match (number::of(a), number::of(b)) {
        (Some(a), Some(b)) => Ok(Some(number::subtract(a, b))),
        _ => Err(Error::type_mismatch(format!(
            "can't $subtract {} from {}",
            type_name(Some(b)),
            type_name(Some(a))
        ))),
    }
}

fn multiply(call: &Call<'_>) -> Result<Option<Bson>> {
    let mut product = NumberRef::Int32(1);
    for argument in call.arguments {
        match argument {
            None | Some(Bson::Null | Bson::Undefined) => return Ok(Some(Bson::Null)),
            Some(value) => match number::of(value) {
                Some(number) => {
                    product = number::of(&number::multiply(product, number)).unwrap_or(product);
                }
                None => {
                    let text =
                        format!("$multiply only supports numeric types, not {}", type_name(Some(value)));
                    return Err(Error::type_mismatch(text));
                }
            },
        }
    }
    Ok(Some(product.to_bson()))
}

fn divide(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let (Some(x), Some(y)) = (a.and_then(number::of), b.and_then(number::of)) else {
        return Err(Error::type_mismatch(format!(
            "$divide only supports numeric types, not {} and {}",
            type_name(a),
            type_name(b)
        )));
    };
    if y.is_zero() {
        return Err(Error::bad_value("can't $divide by zero"));
    }
    Ok(Some(match (x, y) {
        (NumberRef::Decimal(_), _) | (_, NumberRef::Decimal(_)) => {
            Bson::Decimal(decimal::divide(x.to_decimal(), y.to_decimal()))
        }
        _ => Bson::Double(x.to_f64() / y.to_f64()),
    }))
}

fn modulo(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let (Some(x), Some(y)) = (a.and_then(number::of), b.and_then(number::of)) else {
        let text = format!("$mod only supports numeric types, not {} and {}", type_name(a), type_name(b));
        return Err(Error::new(16611, text));
    };
    if y.is_zero() {
        return Err(Error::new(16610, "can't $mod by zero"));
    }
    if matches!(x, NumberRef::Decimal(_)) || matches!(y, NumberRef::Decimal(_)) {
        return Ok(Some(Bson::Decimal(decimal::remainder(x.to_decimal(), y.to_decimal()))));
    }
    // A double that is whole divides like an int.
    let double = match (x, y) {
        (NumberRef::Double(_), _) => true,
        (_, NumberRef::Double(_)) => y.to_i32().is_none(),
        _ => false,
    };
    if double {
        return Ok(Some(Bson::Double(x.to_f64() % y.to_f64())));
    }
    let (left, right) = (x.to_i64().unwrap_or(0), y.to_i64().unwrap_or(1));
    let rest = left.checked_rem(right).unwrap_or(0);
    Ok(Some(match (x, y) {
        (NumberRef::Int64(_), _) | (_, NumberRef::Int64(_)) => Bson::Int64(rest),
        _ => int_or_long(rest),
    }))
}

fn numeric(call: &Call<'_>, code: i32) -> Result<Option<NumberRef>> {
    let value = call.arguments[0].as_ref();
    if is_nullish(value) {
        return Ok(None);
    }
    match value.and_then(number::of) {
        Some(number) => Ok(Some(number)),
        None => {
            let text = format!("{} only supports numeric types, not {}", call.name, type_name(value));
            Err(Error::new(code, text))
        }
    }
}

/// The one argument as a number; `None` where the result is null.
pub(super) fn numeric_argument(call: &Call<'_>) -> Result<Option<NumberRef>> {
    numeric(call, 28765)
}

fn abs(call: &Call<'_>) -> Result<Option<Bson>> {
    let Some(number) = numeric_argument(call)? else { return Ok(Some(Bson::Null)) };
    Ok(Some(match number {
        NumberRef::Int32(value) => int_or_long(i64::from(value).abs()),
        NumberRef::Int64(value) => match value.checked_abs() {
            Some(value) => Bson::Int64(value),
            None => return Err(Error::new(28680, "can't take $abs of long long min")),
        },
        NumberRef::Double(value) => Bson::Double(value.abs()),
        NumberRef::Decimal(value) if decimal::is_signed(value) && !value.is_nan() => {
            Bson::Decimal(decimal::negate(value))
        }
        NumberRef::Decimal(value) => Bson::Decimal(value),
    }))
}

fn ceil(call: &Call<'_>) -> Result<Option<Bson>> {
    whole(call, f64::ceil, Rounding::Ceiling)
}

fn floor(call: &Call<'_>) -> Result<Option<Bson>> {
    whole(call, f64::floor, Rounding::Floor)
}

fn whole(call: &Call<'_>, double: fn(f64) -> f64, rounding: Rounding) -> Result<Option<Bson>> {
    let Some(number) = numeric_argument(call)? else { return Ok(Some(Bson::Null)) };
    Ok(Some(match number {
        NumberRef::Double(value) => Bson::Double(double(value)),
        NumberRef::Decimal(value) => Bson::Decimal(whole_decimal(value, rounding)),
        whole => whole.to_bson(),
    }))
}

/// A decimal without fraction; one with an exponent above zero stays what it is.
fn whole_decimal(value: orrery_model::Decimal128, rounding: Rounding) -> orrery_model::Decimal128 {
    match decimal::parts(value) {
        decimal::Parts::Finite { exponent, .. } if exponent >= 0 => value,
        _ => decimal::round_to_places(value, 0, rounding),
    }
}

fn round(call: &Call<'_>) -> Result<Option<Bson>> {
    to_places(call, Rounding::HalfEven)
}

fn trunc(call: &Call<'_>) -> Result<Option<Bson>> {
    to_places(call, Rounding::TowardZero)
}

fn to_places(call: &Call<'_>, rounding: Rounding) -> Result<Option<Bson>> {
    let Some(number) = numeric(call, 51081)? else { return Ok(Some(Bson::Null)) };
    let places = match call.arguments.get(1) {
        None => 0,
        Some(None | Some(Bson::Null | Bson::Undefined)) => return Ok(Some(Bson::Null)),
        Some(Some(value)) => {
            let Some(places) = number::of(value) else {
                let text = format!("can't convert from BSON type {} to long", type_name(Some(value)));
                return Err(Error::new(16004, text));
            };
            let Some(places) = places.to_i64() else {
                return Err(Error::new(
                    51082,
                    format!("precision argument to {} must be a integral value", call.name),
                ));
            };
            if !(-20..=100).contains(&places) {
                let text = format!(
                    "cannot apply {} with precision value {} value must be in [-20, 100]",
                    call.name,
                    show(Some(value))
                );
                return Err(Error::new(51083, text));
            }
            places
        }
    };
    Ok(Some(match number {
        NumberRef::Int32(value) => int_or_long(round_whole(value.into(), places, rounding)?),
        NumberRef::Int64(value) => Bson::Int64(round_whole(value, places, rounding)?),
        NumberRef::Double(value) => Bson::Double(round_double(value, places, rounding)),
        NumberRef::Decimal(value) => Bson::Decimal(match call.arguments.len() {
            1 => whole_decimal(value, rounding),
            _ => decimal::round_to_places(value, places, rounding),
        }),
    }))
}

fn round_whole(value: i64, places: i64, rounding: Rounding) -> Result<i64> {
    if places >= 0 {
        return Ok(value);
    }
    let Some(power) = 10i128.checked_pow(places.unsigned_abs() as u32) else { return Ok(0) };
    let wide = i128::from(value);
    let (quotient, rest) = (wide / power, wide % power);
    let away = match rounding {
        Rounding::HalfEven => {
            let twice = rest.abs() * 2;
            twice > power || (twice == power && quotient % 2 != 0)
        }
        _ => false,
    };
    let rounded = (quotient + if away { wide.signum() } else { 0 }) * power;
    i64::try_from(rounded).map_err(|_| Error::new(51080, "Rounding overflowed the range of 64-bit integers"))
}

/// By the exact digits of the double, so that 2.675 rounds as the binary number that it is.
fn round_double(value: f64, places: i64, rounding: Rounding) -> f64 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    if places == 0 {
        return match rounding {
            Rounding::HalfEven => value.round_ties_even(),
            _ => value.trunc(),
        };
    }
    // A decimal of 34 digits holds all places of a double that can be seen.
    let exact = format!("{value:.33e}");
    let Some(exact) = decimal::parse(&exact) else { return value };
    let rounded = decimal::round_to_places(exact, places, rounding);
    decimal::to_f64(rounded)
}
