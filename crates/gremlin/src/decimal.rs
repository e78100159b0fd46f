//! Decimal numbers of any size: an integer and where its point stands.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use num_bigint::BigInt;
use num_traits::{Signed as _, ToPrimitive as _, Zero as _};

/// Digits that a division keeps, as the JVM's DECIMAL128 does.
const DIVISION_DIGITS: u32 = 34;
/// No decimal is written out with more zeros than this; larger exponents are refused when they are read.
pub const SCALE_MAX: i32 = 4096;

/// `unscaled * 10^-scale`.
#[derive(Clone, Debug)]
pub struct Decimal {
    pub unscaled: BigInt,
    pub scale: i32,
}

impl Decimal {
    pub fn new(unscaled: BigInt, scale: i32) -> Decimal {
        Decimal { unscaled, scale }
    }

    /// `12`, `-1.50`, `1e3`; none when it is no number or its exponent is absurd.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (digits, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{fraction}");
        let unscaled = BigInt::parse_bytes(all.strip_prefix('+').unwrap_or(&all).as_bytes(), 10)?;
        let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
        (scale.abs() <= SCALE_MAX).then(|| Decimal::new(unscaled, scale))
    }

    pub fn from_f64(number: f64) -> Option<Decimal> {
        number.is_finite().then(|| Decimal::parse(&format!("{number:?}"))).flatten()
    }

    pub fn to_f64(&self) -> f64 {
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// The integer part.
    pub fn truncate(&self) -> BigInt {
        if self.scale <= 0 {
            &self.unscaled * ten_to(self.scale.unsigned_abs())
        } else {
            &self.unscaled / ten_to(self.scale.unsigned_abs())
        }
    }

    fn aligned(&self, other: &Decimal) -> (BigInt, BigInt, i32) {
        let scale = self.scale.max(other.scale);
        let lift = |d: &Decimal| &d.unscaled * ten_to(scale.abs_diff(d.scale));
        (lift(self), lift(other), scale)
    }

    pub fn add(&self, other: &Decimal) -> Decimal {
        let (a, b, scale) = self.aligned(other);
        Decimal::new(a + b, scale)
    }

    pub fn sub(&self, other: &Decimal) -> Decimal {
        let (a, b, scale) = self.aligned(other);
        Decimal::new(a - b, scale)
    }

    pub fn mul(&self, other: &Decimal) -> Decimal {
        Decimal::new(&self.unscaled * &other.unscaled, self.scale.saturating_add(other.scale))
    }

    /// None when divided by zero.
    pub fn div(&self, other: &Decimal) -> Option<Decimal> {
        if other.unscaled.is_zero() {
            return None;
        }
        let lifted = &self.unscaled * ten_to(DIVISION_DIGITS);
        let scale = self.scale.saturating_sub(other.scale).saturating_add(DIVISION_DIGITS as i32);
        Some(Decimal::new(lifted / &other.unscaled, scale).stripped())
    }

    /// Without zeros at the end of the fraction.
    pub fn stripped(mut self) -> Decimal {
        let ten = BigInt::from(10);
        while self.scale > 0 && (&self.unscaled % &ten).is_zero() {
            self.unscaled /= &ten;
            self.scale -= 1;
        }
        self
    }
}

fn ten_to(exponent: u32) -> BigInt {
    BigInt::from(10).pow(exponent)
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let (a, b, _) = self.aligned(other);
        a.cmp(&b)
    }
}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.truncate().to_i64().hash(state);
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale <= 0 {
            return write!(f, "{}", self.truncate());
        }
        let digits = self.unscaled.abs().to_string();
        let scale = self.scale as usize;
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let sign = if self.unscaled.is_negative() { "-" } else { "" };
        write!(f, "{sign}{whole}.{fraction}")
    }
}
