//! Binary numbers of 384 bits, in which functions of decimals are computed.
//!
//! A number is a whole mantissa times a power of two. Every operation cuts its result to the precision, so errors are
//! of some 2^-380 of the result; cancellation is kept away by the formulas of `functions`.

use num_bigint::{BigInt, BigUint, Sign};
use num_traits::{One, Signed, Zero};
use orrery_model::Decimal128;

use super::{DIGITS, Parts, count_digits, parts, power_of_ten, round};

pub const PRECISION: u64 = 384;

#[derive(Clone, Debug)]
pub struct Float {
    mantissa: BigInt,
    exponent: i64,
    precision: u64,
}

impl Float {
    pub fn new(mantissa: BigInt, exponent: i64, precision: u64) -> Float {
        Float { mantissa, exponent, precision }.cut()
    }

    pub fn of_i64(value: i64, precision: u64) -> Float {
        Float::new(value.into(), 0, precision)
    }

    fn cut(mut self) -> Float {
        if self.mantissa.is_zero() {
            self.exponent = 0;
            return self;
        }
        let more = self.mantissa.bits().saturating_sub(self.precision);
        if more > 0 {
            self.mantissa >>= more;
            self.exponent += more as i64;
        }
        self
    }

    /// A finite decimal; zero for anything else, which callers have looked for.
    pub fn of_decimal(value: Decimal128, precision: u64) -> Float {
        let Parts::Finite { negative, coefficient, exponent } = parts(value) else {
            return Float::of_i64(0, precision);
        };
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        if exponent >= 0 {
            let whole = BigUint::from(coefficient) * power_of_ten(exponent as u32);
            return Float::new(BigInt::from_biguint(sign, whole), 0, precision);
        }
        let divisor = power_of_ten(exponent.unsigned_abs() as u32);
        let shift = precision + divisor.bits();
        let quotient = (BigUint::from(coefficient) << shift) / divisor;
        Float::new(BigInt::from_biguint(sign, quotient), -(shift as i64), precision)
    }

    /// The nearest decimal, with all of its digits.
    pub fn to_decimal(&self) -> Decimal128 {
        if self.mantissa.is_zero() {
            return super::zero();
        }
        // log10(2) = 0.30103; the power of ten that leaves some forty digits before the point.
        let bits = self.mantissa.bits() as i64 + self.exponent;
        let wanted = i64::from(DIGITS) + 8;
        let places = wanted - (bits as f64 * std::f64::consts::LOG10_2) as i64;
        let mut numerator = self.mantissa.magnitude().clone();
        let mut denominator = BigUint::one();
        if places.unsigned_abs() > 20_000 {
            // Far outside of what decimals reach.
            return if places > 0 { super::zero() } else { super::infinity(self.mantissa.is_negative()) };
        }
        if places >= 0 {
            numerator *= power_of_ten(places as u32);
        } else {
            denominator *= power_of_ten(places.unsigned_abs() as u32);
        }
        if self.exponent >= 0 {
            numerator <<= self.exponent as u64;
        } else {
            denominator <<= self.exponent.unsigned_abs();
        }
        let quotient = numerator / denominator;
        debug_assert!(count_digits(&quotient) > DIGITS);
        round(self.mantissa.is_negative(), quotient, -places, true)
    }

    pub fn is_zero(&self) -> bool {
        self.mantissa.is_zero()
    }

    pub fn is_negative(&self) -> bool {
        self.mantissa.is_negative()
    }

    pub fn abs(&self) -> Float {
        Float { mantissa: self.mantissa.abs(), ..*self }
    }

    pub fn negated(&self) -> Float {
        Float { mantissa: -&self.mantissa, ..*self }
    }

    /// The power of two just above its size.
    pub fn magnitude(&self) -> i64 {
        if self.mantissa.is_zero() { i64::MIN / 2 } else { self.mantissa.bits() as i64 + self.exponent }
    }

    pub fn add(&self, other: &Float) -> Float {
        if self.is_zero() {
            return other.clone();
        }
        if other.is_zero() {
            return self.clone();
        }
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let far = high.magnitude() - low.magnitude();
        if far > self.precision as i64 + 2 {
            return high.clone();
        }
        if low.magnitude() - high.magnitude() > self.precision as i64 + 2 {
            return low.clone();
        }
        let shift = (high.exponent - low.exponent) as u64;
        Float::new((&high.mantissa << shift) + &low.mantissa, low.exponent, self.precision)
    }

    pub fn subtract(&self, other: &Float) -> Float {
        self.add(&other.negated())
    }

    pub fn multiply(&self, other: &Float) -> Float {
        Float::new(&self.mantissa * &other.mantissa, self.exponent + other.exponent, self.precision)
    }

    /// Division by what is not zero.
    pub fn divide(&self, other: &Float) -> Float {
        if other.is_zero() {
            return Float::of_i64(0, self.precision);
        }
        let shift = self.precision + other.mantissa.bits();
        let quotient = (&self.mantissa << shift) / &other.mantissa;
        Float::new(quotient, self.exponent - other.exponent - shift as i64, self.precision)
    }

    pub fn divide_by(&self, other: i64) -> Float {
        self.divide(&Float::of_i64(other, self.precision))
    }

    /// Times a power of two.
    pub fn scaled(&self, power: i64) -> Float {
        Float { exponent: self.exponent + power, ..self.clone() }
    }

    pub fn sqrt(&self) -> Float {
        if self.is_zero() || self.is_negative() {
            return Float::of_i64(0, self.precision);
        }
        let mut shift = 2 * self.precision;
        if (self.exponent - shift as i64) % 2 != 0 {
            shift += 1;
        }
        let root = (self.mantissa.magnitude() << shift).sqrt();
        Float::new(BigInt::from(root), (self.exponent - shift as i64) / 2, self.precision)
    }

    /// The nearest whole number, which has to be a small one or is cut to its last 64 bits.
    pub fn nearest(&self) -> BigInt {
        let half = Float { mantissa: BigInt::one(), exponent: -1, precision: self.precision };
        let sum = if self.is_negative() { self.subtract(&half) } else { self.add(&half) };
        if sum.exponent >= 0 {
            sum.mantissa << sum.exponent as u64
        } else {
            let sign = sum.mantissa.sign();
            BigInt::from_biguint(sign, sum.mantissa.magnitude() >> sum.exponent.unsigned_abs())
        }
    }

    pub fn of_big(value: BigInt, precision: u64) -> Float {
        Float::new(value, 0, precision)
    }
}
