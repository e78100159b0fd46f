//! Arithmetic with decimals of 128 bits: 34 digits, rounded half to even, as IEEE 754-2008 defines it.
//!
//! `orrery_model` reads, prints and compares decimals; here they are computed with. Sums, products, quotients and
//! roots are exact before they are rounded (`arithmetic`). Exponentials, logarithms and trigonometry are computed in
//! binary numbers of 384 bits (`float`, `functions`), of which 34 decimal digits are a third. Written here and not
//! taken from a crate: the ones that bind libdecnumber bring C, and those of arbitrary precision know neither
//! exponents nor the quanta of decimals.

mod arithmetic;
mod float;
mod functions;

pub use arithmetic::{add, divide, multiply, negate, quantize, remainder, round_to_places, sqrt, subtract};
pub use functions::{
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, exp, ln, log10, pow, sin, sinh, tan, tanh,
};

use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};
use orrery_model::Decimal128;

/// Digits of a coefficient.
pub const DIGITS: u32 = 34;
const EXPONENT_BIAS: i64 = 6176;
pub const EXPONENT_MIN: i64 = -EXPONENT_BIAS;
pub const EXPONENT_MAX: i64 = 6111;
const COEFFICIENT_BITS: u32 = 113;
const COEFFICIENT_MAX: u128 = 10u128.pow(DIGITS) - 1;

/// What a decimal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    NaN,
    Infinity { negative: bool },
    Finite { negative: bool, coefficient: u128, exponent: i64 },
}

/// How digits that have no room are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    HalfEven,
    TowardZero,
    Floor,
    Ceiling,
}

pub fn parts(value: Decimal128) -> Parts {
    let bits = u128::from_le_bytes(value.to_le_bytes());
    let negative = bits >> 127 == 1;
    if value.is_nan() {
        return Parts::NaN;
    }
    let high = bits >> 122 & 0b11111;
    if high == 0b11110 {
        return Parts::Infinity { negative };
    }
    if high >> 3 == 0b11 {
        // A coefficient that is too large counts as zero.
        let exponent = (bits >> (COEFFICIENT_BITS - 2) & 0x3FFF) as i64 - EXPONENT_BIAS;
        return Parts::Finite { negative, coefficient: 0, exponent };
    }
    let exponent = (bits >> COEFFICIENT_BITS & 0x3FFF) as i64 - EXPONENT_BIAS;
    let coefficient = bits & ((1 << COEFFICIENT_BITS) - 1);
    let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
    Parts::Finite { negative, coefficient, exponent }
}

pub fn zero() -> Decimal128 {
    of_parts(false, 0, 0)
}

pub fn infinity(negative: bool) -> Decimal128 {
    let bits = u128::from_le_bytes(Decimal128::INFINITY.to_le_bytes()) | u128::from(negative) << 127;
    Decimal128::from_le_bytes(bits.to_le_bytes())
}

/// Parts that fit.
fn of_parts(negative: bool, coefficient: u128, exponent: i64) -> Decimal128 {
    let biased = exponent.clamp(EXPONENT_MIN, EXPONENT_MAX) + EXPONENT_BIAS;
    let bits = u128::from(negative) << 127 | (biased as u128) << COEFFICIENT_BITS | coefficient;
    Decimal128::from_le_bytes(bits.to_le_bytes())
}

pub fn is_infinite(value: Decimal128) -> bool {
    matches!(parts(value), Parts::Infinity { .. })
}

pub fn is_finite(value: Decimal128) -> bool {
    matches!(parts(value), Parts::Finite { .. })
}

pub fn is_zero(value: Decimal128) -> bool {
    matches!(parts(value), Parts::Finite { coefficient: 0, .. })
}

/// The sign bit, of zeros too.
pub fn is_signed(value: Decimal128) -> bool {
    value.to_le_bytes()[15] & 0x80 != 0
}

pub fn of_i64(value: i64) -> Decimal128 {
    of_parts(value < 0, u128::from(value.unsigned_abs()), 0)
}

/// A double with 15 significant digits, as MongoDB turns doubles into decimals.
pub fn of_f64(value: f64) -> Decimal128 {
    if value.is_nan() {
        return Decimal128::NAN;
    }
    if value.is_infinite() {
        return infinity(value < 0.0);
    }
    if value == 0.0 {
        return of_parts(value.is_sign_negative(), 0, 0);
    }
    let text = format!("{value:.14e}");
    Decimal128::parse(&text).unwrap_or(Decimal128::NAN)
}

/// The nearest double.
pub fn to_f64(value: Decimal128) -> f64 {
    value.to_string().parse().unwrap_or(f64::NAN)
}

/// The whole number, where it fits and nothing is cut off by `rounding` other than a fraction.
pub fn to_i64(value: Decimal128, rounding: Rounding) -> Option<i64> {
    let Parts::Finite { .. } = parts(value) else { return None };
    let Parts::Finite { negative, coefficient, exponent } = parts(quantize(value, 0, rounding)?) else {
        return None;
    };
    let whole = if exponent == 0 {
        coefficient
    } else {
        coefficient.checked_mul(10u128.checked_pow(u32::try_from(exponent).ok()?)?)?
    };
    let whole = i128::try_from(whole).ok()?;
    i64::try_from(if negative { -whole } else { whole }).ok()
}

/// Whether it has no fraction.
pub fn is_whole(value: Decimal128) -> bool {
    match parts(value) {
        Parts::Finite { coefficient: 0, .. } => true,
        Parts::Finite { coefficient, exponent, .. } => {
            exponent >= 0 || (exponent > -35 && coefficient % 10u128.pow((-exponent) as u32) == 0)
        }
        _ => false,
    }
}

/// Reads a text, rounding what has more digits than there is room for. `None` where it is no number.
pub fn parse(text: &str) -> Option<Decimal128> {
    if let Some(exact) = Decimal128::parse(text) {
        return Some(exact);
    }
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (number, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((number, exponent)) => {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            (number, exponent.parse::<i64>().ok()?)
        }
        None => (unsigned, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 10_000 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let coefficient = BigUint::parse_bytes(digits.as_bytes(), 10)?;
    Some(round(negative, coefficient, exponent - fraction.len() as i64, false))
}

/// Rounds to 34 digits and into the range of exponents. `beyond` says that more follows behind the last digit.
fn round(negative: bool, coefficient: BigUint, exponent: i64, beyond: bool) -> Decimal128 {
    let digits = count_digits(&coefficient);
    let mut drop = i64::from(digits) - i64::from(DIGITS);
    drop = drop.max(EXPONENT_MIN - exponent);
    let (mut coefficient, mut exponent, mut beyond) = (coefficient, exponent, beyond);
    if drop > 0 {
        if drop > i64::from(digits) + 2 {
            beyond |= !coefficient.is_zero();
            coefficient = BigUint::zero();
        } else {
            (coefficient, beyond) = round_half_even(coefficient, drop as u32, beyond);
        }
        exponent += drop;
    } else if beyond {
        // There is room for more digits than are known: callers give enough of them.
        debug_assert!(drop == 0 || digits >= DIGITS, "digits are missing");
    }
    let _ = beyond;
    let mut coefficient = coefficient.to_u128().unwrap_or(0);
    if coefficient > COEFFICIENT_MAX {
        // Rounding up has led to the next power of ten.
        (coefficient, exponent) = (coefficient / 10, exponent + 1);
    }
    if coefficient == 0 {
        return of_parts(negative, 0, exponent.clamp(EXPONENT_MIN, EXPONENT_MAX));
    }
    while exponent > EXPONENT_MAX {
        match coefficient.checked_mul(10).filter(|longer| *longer <= COEFFICIENT_MAX) {
            Some(longer) => (coefficient, exponent) = (longer, exponent - 1),
            None => return infinity(negative),
        }
    }
    of_parts(negative, coefficient, exponent)
}

/// Drops decimal digits. Says whether anything was lost.
fn round_half_even(coefficient: BigUint, drop: u32, beyond: bool) -> (BigUint, bool) {
    let power = power_of_ten(drop);
    let quotient = &coefficient / &power;
    let rest = coefficient - &quotient * &power;
    let twice = &rest * 2u32;
    let odd = quotient.bit(0);
    let up = twice > power || (twice == power && (beyond || odd));
    let lost = beyond || !rest.is_zero();
    (if up { quotient + 1u32 } else { quotient }, lost)
}

fn power_of_ten(power: u32) -> BigUint {
    if power <= 38 { BigUint::from(10u128.pow(power)) } else { BigUint::from(10u32).pow(power) }
}

fn count_digits(value: &BigUint) -> u32 {
    if let Some(small) = value.to_u128() {
        return small.checked_ilog10().map_or(0, |log| log + 1);
    }
    // 1233 / 4096 is just below the logarithm of 2, so this is right or one too few.
    let estimate = ((value.bits() - 1) * 1233 / 4096) as u32;
    let mut digits = estimate;
    let mut power = power_of_ten(digits);
    while *value >= power {
        power *= 10u32;
        digits += 1;
    }
    digits
}

#[cfg(test)]
mod tests;
