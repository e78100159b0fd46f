//! Exponentials, logarithms, trigonometry.
//!
//! Arguments are brought near zero, where a short series gives all bits: `exp` by halving, `ln` by square roots of two,
//! `sin` and `cos` by quarters of a turn, `atan` by halving the angle.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use orrery_model::Decimal128;

use super::float::{Float, PRECISION};
use super::{Parts, infinity, is_signed, is_zero, of_parts, parts};

/// Below 2^-this the next term of a series is beyond every digit of the result.
const TINY: i64 = -220;

fn float(value: Decimal128) -> Float {
    Float::of_decimal(value, PRECISION)
}

fn one() -> Float {
    Float::of_i64(1, PRECISION)
}

/// `arctan(1 / n)` by its series.
fn arctan_inverse(n: i64, precision: u64) -> Float {
    let (square, mut power) = (n * n, Float::of_i64(1, precision).divide_by(n));
    let (mut sum, mut k, mut negative) = (power.clone(), 1, false);
    loop {
        power = power.divide_by(square);
        k += 2;
        negative = !negative;
        let term = power.divide_by(k);
        if term.magnitude() < sum.magnitude() - precision as i64 - 2 {
            return sum;
        }
        sum = if negative { sum.subtract(&term) } else { sum.add(&term) };
    }
}

/// Machin: pi / 4 = 4 arctan(1/5) - arctan(1/239).
fn pi_of(precision: u64) -> Float {
    arctan_inverse(5, precision).scaled(2).subtract(&arctan_inverse(239, precision)).scaled(2)
}

fn pi() -> Float {
    static PI: std::sync::OnceLock<Float> = std::sync::OnceLock::new();
    PI.get_or_init(|| pi_of(PRECISION)).clone()
}

fn ln2() -> Float {
    static LN2: std::sync::OnceLock<Float> = std::sync::OnceLock::new();
    // 2 artanh(1/3)
    LN2.get_or_init(|| artanh_series(&one().divide_by(3)).scaled(1)).clone()
}

fn ln10() -> Float {
    static LN10: std::sync::OnceLock<Float> = std::sync::OnceLock::new();
    LN10.get_or_init(|| ln_of(&Float::of_i64(10, PRECISION))).clone()
}

/// `x + x^3/3 + x^5/5 …`
fn artanh_series(x: &Float) -> Float {
    let square = x.multiply(x);
    let (mut power, mut sum, mut k) = (x.clone(), x.clone(), 1);
    loop {
        power = power.multiply(&square);
        k += 2;
        let term = power.divide_by(k);
        if term.is_zero() || term.magnitude() < sum.magnitude() - PRECISION as i64 - 2 {
            return sum;
        }
        sum = sum.add(&term);
    }
}

fn exp_of(x: &Float) -> Float {
    let turns = x.divide(&ln2()).nearest();
    let rest = x.subtract(&Float::of_big(turns.clone(), PRECISION).multiply(&ln2()));
    const HALVINGS: i64 = 12;
    let small = rest.scaled(-HALVINGS);
    let (mut term, mut sum, mut k) = (one(), one(), 0);
    loop {
        k += 1;
        term = term.multiply(&small).divide_by(k);
        if term.is_zero() || term.magnitude() < -(PRECISION as i64) - 2 {
            break;
        }
        sum = sum.add(&term);
    }
    for _ in 0..HALVINGS {
        sum = sum.multiply(&sum);
    }
    sum.scaled(turns.to_i64().unwrap_or(0))
}

/// `e^x - 1`, exact near zero.
fn expm1_of(x: &Float) -> Float {
    if x.magnitude() > -2 {
        return exp_of(x).subtract(&one());
    }
    let (mut term, mut sum, mut k) = (x.clone(), x.clone(), 1);
    loop {
        k += 1;
        term = term.multiply(x).divide_by(k);
        if term.is_zero() || term.magnitude() < sum.magnitude() - PRECISION as i64 - 2 {
            return sum;
        }
        sum = sum.add(&term);
    }
}

/// The logarithm of what is positive.
fn ln_of(x: &Float) -> Float {
    // x = m * 2^k with m from 3/4 to 3/2, and ln m = 2 artanh((m - 1) / (m + 1)), after roots that bring m near 1.
    let mut power = x.magnitude();
    let mut m = x.scaled(-power);
    if m.subtract(&Float::of_i64(3, PRECISION).scaled(-2)).is_negative() {
        power -= 1;
        m = m.scaled(1);
    }
    ln1p_of(&m.subtract(&one())).add(&Float::of_i64(power, PRECISION).multiply(&ln2()))
}

/// `ln(1 + x)`, exact near zero.
fn ln1p_of(x: &Float) -> Float {
    if x.magnitude() > 0 {
        return ln_of(&one().add(x));
    }
    artanh_series(&x.divide(&x.add(&Float::of_i64(2, PRECISION)))).scaled(1)
}

/// Sine and cosine.
fn sin_cos(value: Decimal128) -> (Float, Float) {
    // A large argument needs as many more digits of pi as it has before its point, and those that cancel.
    let rough = float(value);
    let precision = PRECISION + 256 + rough.magnitude().clamp(0, 30_000) as u64;
    let x = Float::of_decimal(value, precision);
    let (quarter, rest) = if x.magnitude() < -1 {
        (BigInt::from(0), x)
    } else {
        let half_pi = if precision > PRECISION + 300 { pi_of(precision) } else { wide_pi() }.scaled(-1);
        let quarter = x.divide(&half_pi).nearest();
        let rest = x.subtract(&Float::of_big(quarter.clone(), precision).multiply(&half_pi));
        (quarter, rest)
    };
    let square = rest.multiply(&rest);
    let series = |first: Float, mut k: i64| {
        let (mut term, mut sum) = (first.clone(), first);
        if sum.is_zero() {
            return sum;
        }
        loop {
            term = term.multiply(&square).divide_by((k + 1) * (k + 2)).negated();
            k += 2;
            if term.is_zero() || term.magnitude() < sum.magnitude() - precision as i64 - 2 {
                return sum;
            }
            sum = sum.add(&term);
        }
    };
    let sin = series(rest.clone(), 1);
    let cos = series(Float::of_i64(1, precision), 0);
    let four = BigInt::from(4);
    let phase = ((quarter % &four) + &four) % &four;
    let (sin, cos) = match phase.to_u32() {
        Some(1) => (cos, sin.negated()),
        Some(2) => (sin.negated(), cos.negated()),
        Some(3) => (cos.negated(), sin),
        _ => (sin, cos),
    };
    (narrow(sin), narrow(cos))
}

fn wide_pi() -> Float {
    static PI: std::sync::OnceLock<Float> = std::sync::OnceLock::new();
    PI.get_or_init(|| pi_of(PRECISION + 300)).clone()
}

fn narrow(value: Float) -> Float {
    Float::of_i64(1, PRECISION).multiply(&value)
}

fn atan_of(x: &Float) -> Float {
    let negative = x.is_negative();
    let mut x = x.abs();
    let inverted = x.magnitude() > 1;
    if inverted {
        x = one().divide(&x);
    }
    // atan x = 2 atan(x / (1 + sqrt(1 + x²)))
    let mut halvings = 0;
    while x.magnitude() > -8 && halvings < 12 {
        x = x.divide(&one().add(&one().add(&x.multiply(&x)).sqrt()));
        halvings += 1;
    }
    let square = x.multiply(&x);
    let (mut power, mut sum, mut k, mut negative_term) = (x.clone(), x.clone(), 1, false);
    while !x.is_zero() {
        power = power.multiply(&square);
        k += 2;
        negative_term = !negative_term;
        let term = power.divide_by(k);
        if term.is_zero() || term.magnitude() < sum.magnitude() - PRECISION as i64 - 2 {
            break;
        }
        sum = if negative_term { sum.subtract(&term) } else { sum.add(&term) };
    }
    let mut angle = sum.scaled(halvings);
    if inverted {
        angle = pi().scaled(-1).subtract(&angle);
    }
    if negative { angle.negated() } else { angle }
}

pub fn exp(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::NaN => Decimal128::NAN,
        Parts::Infinity { negative: false } => infinity(false),
        Parts::Infinity { negative: true } => of_parts(false, 0, 0),
        Parts::Finite { coefficient: 0, .. } => of_parts(false, 1, 0),
        // e^14150 and e^-14400 lie outside of decimals.
        _ if float(value).magnitude() > 15 => {
            if is_signed(value) {
                of_parts(false, 0, super::EXPONENT_MIN)
            } else {
                infinity(false)
            }
        }
        _ => exp_of(&float(value)).to_decimal(),
    }
}

pub fn ln(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::NaN => Decimal128::NAN,
        Parts::Finite { coefficient: 0, .. } => infinity(true),
        Parts::Infinity { negative: false } => infinity(false),
        Parts::Infinity { negative: true } | Parts::Finite { negative: true, .. } => Decimal128::NAN,
        Parts::Finite { coefficient: 1, exponent: 0, .. } => super::zero(),
        _ => ln_of(&float(value)).to_decimal(),
    }
}

pub fn log10(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::Finite { negative: false, coefficient, exponent } if coefficient > 0 => {
            // A power of ten from one on has a whole logarithm, which is given without a fraction.
            let log = coefficient.ilog10();
            if coefficient == 10u128.pow(log) && exponent + i64::from(log) >= 0 {
                return super::of_i64(exponent + i64::from(log));
            }
            if coefficient == 10u128.pow(log) {
                return super::round_to_places(
                    super::of_i64(exponent + i64::from(log)),
                    34,
                    super::Rounding::HalfEven,
                );
            }
            ln_of(&float(value)).divide(&ln10()).to_decimal()
        }
        _ => ln(value),
    }
}

pub fn pow(base: Decimal128, exponent: Decimal128) -> Decimal128 {
    let filled = |value| super::round_to_places(value, 6200, super::Rounding::HalfEven);
    let one = super::of_i64(1);
    let is_one = base.compare(one).is_eq();
    if is_zero(exponent) || is_one {
        return filled(one);
    }
    let whole = super::is_whole(exponent);
    let odd = whole && super::to_i64(exponent, super::Rounding::TowardZero).is_some_and(|e| e % 2 != 0);
    match (parts(base), parts(exponent)) {
        (Parts::NaN, _) | (_, Parts::NaN) => Decimal128::NAN,
        (_, Parts::Infinity { negative }) => {
            let size = if is_signed(base) { super::negate(base) } else { base };
            match size.compare(one) {
                std::cmp::Ordering::Equal => filled(one),
                order if order.is_gt() != negative => infinity(false),
                _ => super::zero(),
            }
        }
        (Parts::Infinity { negative }, Parts::Finite { negative: below, .. }) => {
            if below {
                of_parts(negative && odd, 0, 0)
            } else {
                infinity(negative && odd)
            }
        }
        (Parts::Finite { negative, coefficient: 0, .. }, Parts::Finite { negative: below, .. }) => {
            if below {
                infinity(negative && odd)
            } else {
                of_parts(negative && odd, 0, 0)
            }
        }
        (Parts::Finite { negative: true, .. }, _) if !whole => Decimal128::NAN,
        (Parts::Finite { negative, .. }, _) => {
            let log = ln_of(&float(base).abs()).multiply(&float(exponent));
            let result = if log.magnitude() > 15 {
                if log.is_negative() { of_parts(false, 0, super::EXPONENT_MIN) } else { infinity(false) }
            } else {
                exp_of(&log).to_decimal()
            };
            if negative && odd { super::negate(result) } else { result }
        }
    }
}

/// A function without a special value but at zero, where it is zero.
fn odd_function(value: Decimal128, of: impl Fn(&Float) -> Float) -> Decimal128 {
    if value.is_nan() || is_zero(value) { value } else { of(&float(value)).to_decimal() }
}

pub fn sin(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::NaN | Parts::Infinity { .. } => Decimal128::NAN,
        Parts::Finite { coefficient: 0, .. } => value,
        _ => sin_cos(value).0.to_decimal(),
    }
}

pub fn cos(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::NaN | Parts::Infinity { .. } => Decimal128::NAN,
        Parts::Finite { coefficient: 0, .. } => super::of_i64(1),
        _ => sin_cos(value).1.to_decimal(),
    }
}

pub fn tan(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::NaN | Parts::Infinity { .. } => Decimal128::NAN,
        Parts::Finite { coefficient: 0, .. } => value,
        _ => {
            let (sin, cos) = sin_cos(value);
            sin.divide(&cos).to_decimal()
        }
    }
}

/// From -1 to 1; callers have checked.
pub fn asin(value: Decimal128) -> Decimal128 {
    odd_function(value, |x| {
        let rest = one().subtract(&x.multiply(x));
        if rest.is_zero() || rest.is_negative() {
            let half = pi().scaled(-1);
            return if x.is_negative() { half.negated() } else { half };
        }
        atan_of(&x.divide(&rest.sqrt()))
    })
}

pub fn acos(value: Decimal128) -> Decimal128 {
    if value.is_nan() {
        return value;
    }
    let x = float(value);
    if value.compare(super::of_i64(1)).is_eq() {
        return super::zero();
    }
    // 2 atan(sqrt((1 - x) / (1 + x))), which loses nothing near 1.
    let below = one().add(&x);
    if below.is_zero() || below.is_negative() {
        return pi().to_decimal();
    }
    atan_of(&one().subtract(&x).divide(&below).sqrt()).scaled(1).to_decimal()
}

pub fn atan(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::Infinity { negative } => {
            let half = pi().scaled(-1);
            if negative { half.negated() } else { half }.to_decimal()
        }
        _ => odd_function(value, atan_of),
    }
}

pub fn atan2(y: Decimal128, x: Decimal128) -> Decimal128 {
    if y.is_nan() || x.is_nan() {
        return Decimal128::NAN;
    }
    let signed = |angle: Float| if is_signed(y) { angle.abs().negated() } else { angle.abs() }.to_decimal();
    let (left, zero_y, infinite_x) = (is_signed(x), is_zero(y), super::is_infinite(x));
    if super::is_infinite(y) {
        let angle = if !infinite_x {
            pi().scaled(-1)
        } else if left {
            pi().scaled(-2).multiply(&Float::of_i64(3, PRECISION))
        } else {
            pi().scaled(-2)
        };
        return signed(angle);
    }
    if zero_y || infinite_x {
        return match (left, is_signed(y)) {
            (true, _) => signed(pi()),
            (false, negative) => of_parts(negative, 0, 0),
        };
    }
    if is_zero(x) {
        return signed(pi().scaled(-1));
    }
    let angle = atan_of(&float(y).divide(&float(x)).abs());
    signed(if left { pi().subtract(&angle) } else { angle })
}

pub fn sinh(value: Decimal128) -> Decimal128 {
    if let Parts::Infinity { .. } = parts(value) {
        return value;
    }
    if value.is_nan() || is_zero(value) {
        return value;
    }
    let x = float(value);
    if x.magnitude() > 15 {
        return infinity(is_signed(value));
    }
    // (e^x - 1 + (e^x - 1) / e^x) / 2
    let grown = expm1_of(&x);
    grown.add(&grown.divide(&grown.add(&one()))).scaled(-1).to_decimal()
}

pub fn cosh(value: Decimal128) -> Decimal128 {
    match parts(value) {
        Parts::NaN => value,
        Parts::Infinity { .. } => infinity(false),
        Parts::Finite { coefficient: 0, .. } => super::of_i64(1),
        _ if float(value).magnitude() > 15 => infinity(false),
        _ => {
            let grown = exp_of(&float(value));
            grown.add(&one().divide(&grown)).scaled(-1).to_decimal()
        }
    }
}

pub fn tanh(value: Decimal128) -> Decimal128 {
    let signed_one = |negative| if negative { super::of_i64(-1) } else { super::of_i64(1) };
    if let Parts::Infinity { negative } = parts(value) {
        return signed_one(negative);
    }
    if value.is_nan() || is_zero(value) {
        return value;
    }
    let x = float(value);
    if x.magnitude() > 9 {
        return signed_one(is_signed(value));
    }
    let grown = expm1_of(&x.scaled(1));
    grown.divide(&grown.add(&Float::of_i64(2, PRECISION))).to_decimal()
}

pub fn asinh(value: Decimal128) -> Decimal128 {
    if let Parts::Infinity { .. } = parts(value) {
        return value;
    }
    odd_function(value, |x| {
        let size = x.abs();
        if size.magnitude() < TINY {
            return x.clone();
        }
        // ln(1 + x + x² / (1 + sqrt(1 + x²)))
        let square = size.multiply(&size);
        let root = one().add(&square).sqrt();
        let log = ln1p_of(&size.add(&square.divide(&one().add(&root))));
        if x.is_negative() { log.negated() } else { log }
    })
}

/// From 1 on; callers have checked.
pub fn acosh(value: Decimal128) -> Decimal128 {
    if value.is_nan() || super::is_infinite(value) {
        return value;
    }
    if value.compare(super::of_i64(1)).is_le() {
        return super::zero();
    }
    let t = float(value).subtract(&one());
    // ln(1 + t + sqrt(2t + t²))
    ln1p_of(&t.add(&t.scaled(1).add(&t.multiply(&t)).sqrt())).to_decimal()
}

/// From -1 to 1; callers have checked.
pub fn atanh(value: Decimal128) -> Decimal128 {
    for (bound, negative) in [(1, false), (-1, true)] {
        if value.compare(super::of_i64(bound)).is_eq() {
            return infinity(negative);
        }
    }
    odd_function(value, |x| {
        if x.magnitude() < -3 {
            return artanh_series(x);
        }
        ln_of(&one().add(x).divide(&one().subtract(x))).scaled(-1)
    })
}
