//! Sums, products, quotients, remainders, roots and rounding, exact before they are rounded.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::Zero;
use orrery_model::Decimal128;

use super::{
    DIGITS, EXPONENT_MIN, Parts, Rounding, count_digits, infinity, is_signed, of_parts, parts, power_of_ten,
    round,
};

pub fn negate(value: Decimal128) -> Decimal128 {
    let mut bytes = value.to_le_bytes();
    bytes[15] ^= 0x80;
    Decimal128::from_le_bytes(bytes)
}

pub fn subtract(a: Decimal128, b: Decimal128) -> Decimal128 {
    if b.is_nan() { Decimal128::NAN } else { add(a, negate(b)) }
}

pub fn add(a: Decimal128, b: Decimal128) -> Decimal128 {
    let (a, b) = match (parts(a), parts(b)) {
        (Parts::NaN, _) | (_, Parts::NaN) => return Decimal128::NAN,
        (Parts::Infinity { negative }, Parts::Infinity { negative: other }) => {
            return if negative == other { infinity(negative) } else { Decimal128::NAN };
        }
        (Parts::Infinity { negative }, _) | (_, Parts::Infinity { negative }) => return infinity(negative),
        (
            Parts::Finite { negative: na, coefficient: ca, exponent: ea },
            Parts::Finite { negative: nb, coefficient: cb, exponent: eb },
        ) => ((na, ca, ea), (nb, cb, eb)),
    };
    let ((high_negative, high, high_exponent), (low_negative, low, low_exponent)) =
        if a.2 >= b.2 { (a, b) } else { (b, a) };
    let ideal = low_exponent;
    if high == 0 && low == 0 {
        return of_parts(a.0 && b.0, 0, ideal);
    }
    if high == 0 {
        return round(low_negative, low.into(), ideal, false);
    }
    // No more than this many places can matter; what lies below them only tells on which side of a half the sum is.
    const SHIFT_MAX: i64 = 3 * DIGITS as i64;
    let shift = high_exponent - low_exponent;
    let signed = |negative: bool, size: BigUint| {
        BigInt::from_biguint(if negative { Sign::Minus } else { Sign::Plus }, size)
    };
    let high = |shift: i64| signed(high_negative, BigUint::from(high) * power_of_ten(shift as u32));
    let (sum, exponent) = if shift <= SHIFT_MAX {
        (high(shift) + signed(low_negative, low.into()), ideal)
    } else if low == 0 {
        (high(SHIFT_MAX), high_exponent - SHIFT_MAX)
    } else {
        (high(SHIFT_MAX) + signed(low_negative, 1u32.into()), high_exponent - SHIFT_MAX)
    };
    if sum.is_zero() {
        return of_parts(false, 0, ideal);
    }
    round(sum.sign() == Sign::Minus, sum.magnitude().clone(), exponent, false)
}

pub fn multiply(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = is_signed(a) != is_signed(b);
    match (parts(a), parts(b)) {
        (Parts::NaN, _) | (_, Parts::NaN) => Decimal128::NAN,
        (Parts::Infinity { .. }, Parts::Finite { coefficient: 0, .. })
        | (Parts::Finite { coefficient: 0, .. }, Parts::Infinity { .. }) => Decimal128::NAN,
        (Parts::Infinity { .. }, _) | (_, Parts::Infinity { .. }) => infinity(negative),
        (
            Parts::Finite { coefficient: ca, exponent: ea, .. },
            Parts::Finite { coefficient: cb, exponent: eb, .. },
        ) => round(negative, BigUint::from(ca) * BigUint::from(cb), ea + eb, false),
    }
}

pub fn divide(a: Decimal128, b: Decimal128) -> Decimal128 {
    let negative = is_signed(a) != is_signed(b);
    let (ca, ea, cb, eb) = match (parts(a), parts(b)) {
        (Parts::NaN, _) | (_, Parts::NaN) | (Parts::Infinity { .. }, Parts::Infinity { .. }) => {
            return Decimal128::NAN;
        }
        (Parts::Infinity { .. }, _) => return infinity(negative),
        (_, Parts::Infinity { .. }) => return of_parts(negative, 0, EXPONENT_MIN),
        (
            Parts::Finite { coefficient: ca, exponent: ea, .. },
            Parts::Finite { coefficient: cb, exponent: eb, .. },
        ) => (ca, ea, cb, eb),
    };
    let ideal = ea - eb;
    if cb == 0 {
        return if ca == 0 { Decimal128::NAN } else { infinity(negative) };
    }
    if ca == 0 {
        return of_parts(negative, 0, ideal.clamp(EXPONENT_MIN, super::EXPONENT_MAX));
    }
    // Enough places that the quotient has more digits than a decimal.
    let shift = 2 * DIGITS + 2;
    let numerator = BigUint::from(ca) * power_of_ten(shift);
    let divisor = BigUint::from(cb);
    let mut quotient = &numerator / &divisor;
    let exact = (&numerator - &quotient * &divisor).is_zero();
    let mut exponent = ideal - i64::from(shift);
    if exact {
        strip_zeros(&mut quotient, &mut exponent, ideal);
    }
    round(negative, quotient, exponent, !exact)
}

/// Takes zeros away from the end until the exponent is the ideal one.
fn strip_zeros(coefficient: &mut BigUint, exponent: &mut i64, ideal: i64) {
    let ten = BigUint::from(10u32);
    while *exponent < ideal {
        let quotient = &*coefficient / &ten;
        if &quotient * &ten != *coefficient {
            break;
        }
        *coefficient = quotient;
        *exponent += 1;
    }
}

/// What is left after dividing by a whole number of times, with the sign of the dividend.
pub fn remainder(a: Decimal128, b: Decimal128) -> Decimal128 {
    let (negative, ca, ea, cb, eb) = match (parts(a), parts(b)) {
        (Parts::NaN | Parts::Infinity { .. }, _) | (_, Parts::NaN) => return Decimal128::NAN,
        (_, Parts::Infinity { .. }) => return a,
        (_, Parts::Finite { coefficient: 0, .. }) => return Decimal128::NAN,
        (
            Parts::Finite { negative, coefficient: ca, exponent: ea },
            Parts::Finite { coefficient: cb, exponent: eb, .. },
        ) => (negative, ca, ea, cb, eb),
    };
    let exponent = ea.min(eb);
    let divisor = BigUint::from(cb);
    let rest = if ea >= eb {
        // (ca * 10^n) mod cb, without the power in full.
        let power = BigUint::from(10u32).modpow(&BigUint::from((ea - eb) as u64), &divisor);
        BigUint::from(ca) * power % divisor
    } else if eb - ea > i64::from(2 * DIGITS) {
        // The divisor is larger than any coefficient.
        return a;
    } else {
        BigUint::from(ca) % (divisor * power_of_ten((eb - ea) as u32))
    };
    round(negative, rest, exponent, false)
}

/// The value with that exponent; `None` where its digits have no room.
pub fn quantize(value: Decimal128, exponent: i64, rounding: Rounding) -> Option<Decimal128> {
    let Parts::Finite { negative, coefficient, exponent: has } = parts(value) else { return Some(value) };
    if coefficient == 0 {
        return Some(of_parts(negative, 0, exponent));
    }
    if has >= exponent {
        if has == exponent {
            return Some(value);
        }
        let shift = u32::try_from(has - exponent).ok().filter(|shift| *shift < DIGITS)?;
        let wider = coefficient.checked_mul(10u128.pow(shift))?;
        return (wider <= super::COEFFICIENT_MAX).then(|| of_parts(negative, wider, exponent));
    }
    let drop = exponent - has;
    let (kept, rest_order, odd) = if drop > i64::from(DIGITS) {
        (0, std::cmp::Ordering::Less, false)
    } else {
        let power = 10u128.pow(drop as u32);
        let (kept, rest) = (coefficient / power, coefficient % power);
        if rest == 0 {
            return Some(of_parts(negative, kept, exponent));
        }
        (kept, (rest * 2).cmp(&power), kept % 2 == 1)
    };
    let up = match rounding {
        Rounding::HalfEven => rest_order.is_gt() || (rest_order.is_eq() && odd),
        Rounding::TowardZero => false,
        Rounding::Floor => negative,
        Rounding::Ceiling => !negative,
    };
    let kept = kept + u128::from(up);
    if kept > super::COEFFICIENT_MAX {
        return Some(round(negative, kept.into(), exponent, false));
    }
    Some(of_parts(negative, kept, exponent))
}

/// Rounds to decimal places; as many as there is room for where that is fewer.
pub fn round_to_places(value: Decimal128, places: i64, rounding: Rounding) -> Decimal128 {
    if let Some(exact) = quantize(value, -places, rounding) {
        return exact;
    }
    let Parts::Finite { negative, coefficient, exponent } = parts(value) else { return value };
    let room = i64::from(DIGITS - coefficient.checked_ilog10().map_or(0, |log| log + 1));
    let shift = room.min(exponent - EXPONENT_MIN).max(0);
    of_parts(negative, coefficient * 10u128.pow(shift as u32), exponent - shift)
}

pub fn sqrt(value: Decimal128) -> Decimal128 {
    let (coefficient, exponent) = match parts(value) {
        Parts::NaN => return Decimal128::NAN,
        Parts::Infinity { negative: false } => return infinity(false),
        Parts::Finite { negative, coefficient: 0, exponent } => {
            return of_parts(negative, 0, exponent.div_euclid(2));
        }
        Parts::Finite { negative: false, coefficient, exponent } => (BigUint::from(coefficient), exponent),
        _ => return Decimal128::NAN,
    };
    let ideal = exponent.div_euclid(2);
    let odd = exponent.rem_euclid(2);
    let wanted = 2 * (DIGITS + 3);
    let shift = wanted.saturating_sub(count_digits(&coefficient)) / 2 * 2 + 2;
    let scaled = coefficient * power_of_ten(shift + odd as u32);
    let mut root = scaled.sqrt();
    let exact = &root * &root == scaled;
    let mut exponent = ideal - i64::from(shift / 2);
    if exact {
        strip_zeros(&mut root, &mut exponent, ideal);
    }
    round(false, root, exponent, !exact)
}
