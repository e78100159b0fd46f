//! Numbers in one order: integers of 64 bits exactly, doubles, and both against each other.
//!
//! The magnitude of a number is 77 bits: the 63 bits of the double that is the number rounded towards zero, whose
//! order is numeric order, and 14 bits for what rounding took from an integer above 2^53 (at most 11). They are
//! written seven bits to a byte, with the lowest bit saying whether more follows, and end at the last group that is
//! not zero: 42 takes three bytes, a time in seconds six. A number that ends earlier has only zeros left, so it is
//! less, as it should be. Negative numbers have every bit turned over.
//!
//! Decimals of 128 bits lie among them. All eleven groups of the number that is the decimal rounded towards zero, each
//! saying that more follows, then two groups for the power of ten of its first digit and up to 17 for its 34 digits. So
//! a decimal sorts behind the number that it is or was rounded to and before every number that is farther from zero,
//! and decimals that share the groups of a number sort by their digits. Equal decimals are equal bytes; a decimal and a
//! number never are.

use orrery_model::{Decimal128, Magnitude, Number};

const GROUPS: u32 = 11;
const GROUP_BITS: u32 = 7;
const RESIDUE_BITS: u32 = 14;
/// Of a decimal: groups for the power of ten of the first digit, and for the digits.
const POWER_GROUPS: u32 = 2;
const DIGIT_GROUPS: u32 = 17;
/// Powers of ten begin at this one, which zero is given, too.
const POWER_MIN: i32 = -6176;
const POWER_INFINITE: u128 = 0x3FFF;
/// Bits of the 34 digits, and of what fills their last group.
const DIGIT_BITS: u32 = 113;
const DIGIT_SHIFT: u32 = DIGIT_GROUPS * GROUP_BITS - DIGIT_BITS;
/// Bits of a double's significand.
const DOUBLE_BITS: u32 = 53;

const DECIMAL_GROUPS_MAX: usize = (GROUPS + POWER_GROUPS + DIGIT_GROUPS) as usize;

/// The first double beyond all integers.
const TWO_64: f64 = 18_446_744_073_709_551_616.0;
/// Below this, integers and doubles without a fraction are printed alike, so an entry need not say which it was.
const SAME_SPELLING_MAX: f64 = 1e15;

/// Appends the groups. The sign is the caller's.
pub(crate) fn encode(out: &mut Vec<u8>, number: Number) {
    let (magnitude, turn) = match number {
        Number::Int(value) => (integer(value.unsigned_abs()), if value < 0 { 0xFF } else { 0 }),
        Number::UInt(value) => (integer(value), 0),
        // Minus zero is zero.
        Number::Double(value) => {
            (u128::from(value.abs().to_bits()) << RESIDUE_BITS, if value < 0.0 { 0xFF } else { 0 })
        }
    };
    push_groups(out, magnitude, GROUPS, turn);
}

/// Appends the groups of a decimal. The sign is the caller's, for whom NaN is below zero.
pub(crate) fn encode_decimal(out: &mut Vec<u8>, decimal: Decimal128) {
    let double = decimal.toward_zero().abs();
    let magnitude = match decimal.whole_part() {
        Some(whole) if double < TWO_64 && whole >> DOUBLE_BITS != 0 => integer(whole),
        // A NaN's bits are above those of infinity, so below all when they are turned over.
        _ => u128::from(double.to_bits()) << RESIDUE_BITS,
    };
    let (power, digits) = match decimal.magnitude() {
        Magnitude::Zero => (0, 0),
        Magnitude::Finite { power, digits } => ((power - POWER_MIN) as u128, digits),
        Magnitude::Infinite => (POWER_INFINITE, 0),
    };
    let turn = if is_turned(decimal) { 0xFF } else { 0 };
    for (bits, groups) in [(magnitude, GROUPS), (power, POWER_GROUPS)] {
        for group in (0..groups).rev() {
            out.push(((bits >> (group * GROUP_BITS)) as u8 & 0x7F) << 1 ^ 1 ^ turn);
        }
    }
    push_groups(out, digits << DIGIT_SHIFT, DIGIT_GROUPS, turn);
}

/// Whether a decimal is written as a negative number.
pub(crate) fn is_turned(decimal: Decimal128) -> bool {
    decimal.is_negative() || decimal.is_nan()
}

/// Appends the groups up to the last that is not zero.
#[inline]
fn push_groups(out: &mut Vec<u8>, bits: u128, groups: u32, turn: u8) {
    let mut left = groups * GROUP_BITS;
    loop {
        left -= GROUP_BITS;
        let group = (bits >> left) as u8 & 0x7F;
        let more = bits & ((1 << left) - 1) != 0;
        out.push((group << 1 | u8::from(more)) ^ turn);
        if !more {
            return;
        }
    }
}

fn integer(magnitude: u64) -> u128 {
    let significant = u64::BITS - magnitude.leading_zeros();
    let dropped = significant.saturating_sub(DOUBLE_BITS);
    let kept = magnitude >> dropped << dropped;
    u128::from((kept as f64).to_bits()) << RESIDUE_BITS | u128::from(magnitude - kept)
}

/// How many bytes the groups take; `None` when they do not end.
pub(crate) fn length(bytes: &[u8], negative: bool) -> Option<usize> {
    let last = if negative { 1 } else { 0 };
    let end = bytes.iter().take(DECIMAL_GROUPS_MAX).position(|byte| byte & 1 == last)?;
    // Between a number and the digits of a decimal nothing ends.
    (end < GROUPS as usize || end >= (GROUPS + POWER_GROUPS) as usize).then_some(end + 1)
}

/// Whether the groups, which end with the bytes, are those of a decimal.
#[inline]
pub(crate) fn is_decimal(bytes: &[u8]) -> bool {
    bytes.len() > GROUPS as usize
}

/// The number, unless it is a decimal, which does not tell its zeros at the end, or unless an integer and a double
/// would both be written like this but printed differently.
pub(crate) fn decode(bytes: &[u8], negative: bool) -> Option<Number> {
    if is_decimal(bytes) {
        return None;
    }
    let turn = if negative { 0xFF } else { 0 };
    let mut magnitude: u128 = 0;
    for group in 0..GROUPS as usize {
        let byte = bytes.get(group).map_or(0, |byte| byte ^ turn);
        magnitude = magnitude << GROUP_BITS | u128::from(byte >> 1);
    }
    let residue = magnitude & ((1 << RESIDUE_BITS) - 1);
    let double = f64::from_bits((magnitude >> RESIDUE_BITS) as u64);
    let signed = if negative { -double } else { double };
    if double.fract() != 0.0 || !double.is_finite() {
        return (residue == 0).then_some(Number::Double(signed));
    }
    if double < SAME_SPELLING_MAX && residue == 0 {
        return Some(Number::Int(signed as i64));
    }
    if double >= TWO_64 {
        return (residue == 0).then_some(Number::Double(signed));
    }
    if residue == 0 {
        return None;
    }
    // What rounding took can only have been an integer's.
    let whole = double as u128 + residue;
    match negative {
        true => i64::try_from(-(whole as i128)).ok().map(Number::Int),
        false => u64::try_from(whole).ok().map(Number::from_u64),
    }
}
