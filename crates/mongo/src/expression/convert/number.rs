//! Conversions to numbers.

use super::failure;
use crate::decimal::{self, Rounding};
use crate::error::Result;
use crate::expression::number::{self, NumberRef};
use crate::expression::value::show;
use crate::value::{Bson, Kind};

/// A value as a number of that kind; `None` where there is no such conversion.
pub(super) fn convert(value: &Bson, kind: Kind) -> Option<Result<Bson>> {
    Some(match value {
        Bson::Bool(value) => Ok(narrow(NumberRef::Int32((*value).into()), kind)),
        Bson::Date(ms) if kind != Kind::Int32 => Ok(narrow(NumberRef::Int64(*ms), kind)),
        Bson::String(text) => of_text(text, kind),
        value => of_number(number::of(value)?, kind),
    })
}

/// A number that fits.
fn narrow(number: NumberRef, kind: Kind) -> Bson {
    match kind {
        Kind::Double => Bson::Double(number.to_f64()),
        Kind::Decimal => Bson::Decimal(number.to_decimal()),
        Kind::Int32 => Bson::Int32(number.to_i32().unwrap_or_default()),
        _ => Bson::Int64(number.to_i64().unwrap_or_default()),
    }
}

fn of_number(number: NumberRef, kind: Kind) -> Result<Bson> {
    let overflow = || {
        let shown = show(Some(&number.to_bson()));
        failure(format!("Conversion would overflow target type in $convert with no onError value: {shown}"))
    };
    match kind {
        Kind::Decimal => Ok(Bson::Decimal(number.to_decimal())),
        Kind::Double => {
            let double = number.to_f64();
            let fits = match number {
                NumberRef::Decimal(value) => decimal::is_infinite(value) || !double.is_infinite(),
                _ => true,
            };
            if fits { Ok(Bson::Double(double)) } else { Err(overflow()) }
        }
        _ => {
            let whole = match number {
                NumberRef::Int32(value) => Some(value.into()),
                NumberRef::Int64(value) => Some(value),
                _ if number.is_nan() => {
                    let text =
                        "Attempt to convert NaN value to integer type in $convert with no onError value";
                    return Err(failure(text.into()));
                }
                _ if number.to_f64().is_infinite() && is_infinite(number) => {
                    let text =
                        "Attempt to convert infinity value to integer type in $convert with no onError value";
                    return Err(failure(text.into()));
                }
                NumberRef::Double(value) => Bson::Double(value.trunc()).as_i64(),
                NumberRef::Decimal(value) => decimal::to_i64(value, Rounding::TowardZero),
            };
            match (whole, kind) {
                (Some(whole), Kind::Int32) => i32::try_from(whole).map(Bson::Int32).map_err(|_| overflow()),
                (Some(whole), _) => Ok(Bson::Int64(whole)),
                (None, _) => Err(overflow()),
            }
        }
    }
}

fn is_infinite(number: NumberRef) -> bool {
    match number {
        NumberRef::Decimal(value) => decimal::is_infinite(value),
        _ => number.to_f64().is_infinite(),
    }
}

fn of_text(text: &str, kind: Kind) -> Result<Bson> {
    let wrong = |why: &str| {
        failure(format!("Failed to parse number '{text}' in $convert with no onError value: {why}"))
    };
    if text.is_empty() {
        return Err(wrong("Empty string"));
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.starts_with("0x") || digits.starts_with("0X") {
        return Err(failure(format!("Illegal hexadecimal input in $convert with no onError value: {text}")));
    }
    match kind {
        Kind::Int32 | Kind::Int64 => {
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(wrong("Did not consume whole string."));
            }
            match kind {
                Kind::Int32 => text.parse().map(Bson::Int32).map_err(|_| wrong("Overflow")),
                _ => text.parse().map(Bson::Int64).map_err(|_| wrong("Overflow")),
            }
        }
        Kind::Double => {
            let value: f64 = text.parse().map_err(|_| wrong("Did not consume whole string."))?;
            if value.is_infinite() && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                return Err(wrong("Out of range"));
            }
            Ok(Bson::Double(value))
        }
        _ => {
            let value = decimal::parse(text).ok_or_else(|| wrong("Failed to parse string to decimal"))?;
            if decimal::is_infinite(value) && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
                return Err(wrong("Conversion from string to decimal would overflow"));
            }
            Ok(Bson::Decimal(value))
        }
    }
}
