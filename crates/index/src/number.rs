//! Numbers in one order: integers of 64 bits exactly, doubles, and both against each other.
//!
//! The magnitude of a number is 77 bits: the 63 bits of the double that is the number rounded towards zero, whose
//! order is numeric order, and 14 bits for what rounding took from an integer above 2^53 (at most 11). They are
//! written seven bits to a byte, with the lowest bit saying whether more follows, and end at the last group that is
//! not zero: 42 takes three bytes, a time in seconds six. A number that ends earlier has only zeros left, so it is
//! less, as it should be. Negative numbers have every bit turned over.

use orrery_model::Number;

const GROUPS: u32 = 11;
const GROUP_BITS: u32 = 7;
const RESIDUE_BITS: u32 = 14;
/// Bits of a double's significand.
const DOUBLE_BITS: u32 = 53;

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
    let mut left = GROUPS * GROUP_BITS;
    loop {
        left -= GROUP_BITS;
        let group = (magnitude >> left) as u8 & 0x7F;
        let more = magnitude & ((1 << left) - 1) != 0;
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
    let end = bytes.iter().take(GROUPS as usize).position(|byte| byte & 1 == last)?;
    Some(end + 1)
}

/// The number, unless an integer and a double would both be written like this but printed differently.
pub(crate) fn decode(bytes: &[u8], negative: bool) -> Option<Number> {
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
