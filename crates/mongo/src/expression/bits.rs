//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot`: of ints and longs.

use super::Call;
use super::table::{MANY, Operator, values};
use super::value::{is_nullish, type_name};
use crate::error::{Error, Result};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values("$bitAnd", (0, MANY), and, "{$bitAnd: [a, b, …]}", "Bits that are set in all."),
    values("$bitNot", (1, 1), not, "{$bitNot: number}", "The bits turned round."),
    values("$bitOr", (0, MANY), or, "{$bitOr: [a, b, …]}", "Bits that are set in any."),
    values("$bitXor", (0, MANY), xor, "{$bitXor: [a, b, …]}", "Bits that are set in an odd number of them."),
];

fn and(call: &Call<'_>) -> Result<Option<Bson>> {
    fold(call, -1, |a, b| a & b)
}

fn or(call: &Call<'_>) -> Result<Option<Bson>> {
    fold(call, 0, |a, b| a | b)
}

fn xor(call: &Call<'_>) -> Result<Option<Bson>> {
    fold(call, 0, |a, b| a ^ b)
}

fn fold(call: &Call<'_>, start: i64, combine: fn(i64, i64) -> i64) -> Result<Option<Bson>> {
    let (mut bits, mut long, mut null) = (start, false, false);
    for argument in call.arguments {
        match argument {
            None | Some(Bson::Null | Bson::Undefined) => null = true,
            Some(Bson::Int32(value)) => bits = combine(bits, i64::from(*value)),
            Some(Bson::Int64(value)) => {
                long = true;
                bits = combine(bits, *value);
            }
            Some(_) => {
                let text = format!("{} only supports int and long operands.", call.name);
                return Err(Error::type_mismatch(text));
            }
        }
    }
    Ok(Some(match (null, long) {
        (true, _) => Bson::Null,
        (false, true) => Bson::Int64(bits),
        (false, false) => Bson::Int32(bits as i32),
    }))
}

fn not(call: &Call<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].as_ref();
    match value {
        _ if is_nullish(value) => Ok(Some(Bson::Null)),
        Some(Bson::Int32(bits)) => Ok(Some(Bson::Int32(!bits))),
        Some(Bson::Int64(bits)) => Ok(Some(Bson::Int64(!bits))),
        Some(Bson::Double(_) | Bson::Decimal(_)) => Err(Error::type_mismatch(format!(
            "$bitNot only supports int and long, not: {}.",
            type_name(value)
        ))),
        _ => {
            let text = format!("$bitNot only supports numeric types, not {}", type_name(value));
            Err(Error::new(28765, text))
        }
    }
}
