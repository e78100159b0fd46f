//! Numbers of four widths: how they are promoted, added and multiplied.
//!
//! Whole numbers stay whole: a sum of ints is an int, a long where it does not fit, a double beyond that. A decimal
//! makes everything a decimal.

use orrery_model::Decimal128;

use crate::decimal::{self, Rounding};
use crate::value::Bson;
pub use crate::value_ref::NumberRef;
use crate::value_ref::ValueRef;

pub fn of(value: &Bson) -> Option<NumberRef> {
    ValueRef::Owned(value).as_number()
}

impl NumberRef {
    pub fn to_f64(self) -> f64 {
        match self {
            NumberRef::Int32(value) => value.into(),
            NumberRef::Int64(value) => value as f64,
            NumberRef::Double(value) => value,
            NumberRef::Decimal(value) => decimal::to_f64(value),
        }
    }

    pub fn to_decimal(self) -> Decimal128 {
        match self {
            NumberRef::Int32(value) => decimal::of_i64(value.into()),
            NumberRef::Int64(value) => decimal::of_i64(value),
            NumberRef::Double(value) => decimal::of_f64(value),
            NumberRef::Decimal(value) => value,
        }
    }

    pub fn to_bson(self) -> Bson {
        match self {
            NumberRef::Int32(value) => Bson::Int32(value),
            NumberRef::Int64(value) => Bson::Int64(value),
            NumberRef::Double(value) => Bson::Double(value),
            NumberRef::Decimal(value) => Bson::Decimal(value),
        }
    }

    pub fn is_nan(self) -> bool {
        match self {
            NumberRef::Double(value) => value.is_nan(),
            NumberRef::Decimal(value) => value.is_nan(),
            _ => false,
        }
    }

    pub fn is_zero(self) -> bool {
        match self {
            NumberRef::Int32(value) => value == 0,
            NumberRef::Int64(value) => value == 0,
            NumberRef::Double(value) => value == 0.0,
            NumberRef::Decimal(value) => decimal::is_zero(value),
        }
    }

    /// The whole number, if it is one and fits.
    pub fn to_i64(self) -> Option<i64> {
        match self {
            NumberRef::Int32(value) => Some(value.into()),
            NumberRef::Int64(value) => Some(value),
            NumberRef::Double(value) => Bson::Double(value).as_i64(),
            NumberRef::Decimal(value) if decimal::is_whole(value) => {
                decimal::to_i64(value, Rounding::TowardZero)
            }
            NumberRef::Decimal(_) => None,
        }
    }

    /// The whole number of 32 bits, if it is one.
    pub fn to_i32(self) -> Option<i32> {
        self.to_i64().and_then(|value| i32::try_from(value).ok())
    }

    /// The nearest whole number, at the ends of the range where it lies outside.
    pub fn to_i64_saturated(self, round: bool) -> i64 {
        match self {
            NumberRef::Int32(value) => value.into(),
            NumberRef::Int64(value) => value,
            NumberRef::Double(value) => (if round { value.round() } else { value }) as i64,
            NumberRef::Decimal(value) if value.is_nan() => 0,
            NumberRef::Decimal(value) => {
                let rounding = if round { Rounding::HalfEven } else { Rounding::TowardZero };
                decimal::to_i64(value, rounding).unwrap_or(if decimal::is_signed(value) {
                    i64::MIN
                } else {
                    i64::MAX
                })
            }
        }
    }
}

/// A whole number of 32 bits where it fits.
pub fn int_or_long(value: i64) -> Bson {
    i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32)
}

fn is_decimal(a: NumberRef, b: NumberRef) -> bool {
    matches!(a, NumberRef::Decimal(_)) || matches!(b, NumberRef::Decimal(_))
}

fn is_double(a: NumberRef, b: NumberRef) -> bool {
    matches!(a, NumberRef::Double(_)) || matches!(b, NumberRef::Double(_))
}

fn combine(
    a: NumberRef,
    b: NumberRef,
    whole: fn(i128, i128) -> i128,
    double: fn(f64, f64) -> f64,
    decimal: fn(Decimal128, Decimal128) -> Decimal128,
) -> Bson {
    if is_decimal(a, b) {
        return Bson::Decimal(decimal(a.to_decimal(), b.to_decimal()));
    }
    if is_double(a, b) {
        return Bson::Double(double(a.to_f64(), b.to_f64()));
    }
    let result = whole(i128::from(a.to_i64().unwrap_or(0)), i128::from(b.to_i64().unwrap_or(0)));
    let ints = matches!((a, b), (NumberRef::Int32(_), NumberRef::Int32(_)));
    match (i32::try_from(result), i64::try_from(result)) {
        (Ok(int), _) if ints => Bson::Int32(int),
        (_, Ok(long)) => Bson::Int64(long),
        _ => Bson::Double(double(a.to_f64(), b.to_f64())),
    }
}

pub fn add(a: NumberRef, b: NumberRef) -> Bson {
    combine(a, b, |a, b| a + b, |a, b| a + b, decimal::add)
}

pub fn subtract(a: NumberRef, b: NumberRef) -> Bson {
    combine(a, b, |a, b| a - b, |a, b| a - b, decimal::subtract)
}

pub fn multiply(a: NumberRef, b: NumberRef) -> Bson {
    combine(a, b, |a, b| a * b, |a, b| a * b, decimal::multiply)
}

/// A sum of many numbers that rounds once: whole numbers exactly, doubles with what rounding lost beside the sum.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    whole: i128,
    high: f64,
    low: f64,
    /// Infinities and NaN, which would spoil the compensation.
    special: f64,
    specials: usize,
    decimal: Option<Decimal128>,
    longs: usize,
    doubles: usize,
    decimals: usize,
    count: usize,
}

impl Sum {
    pub fn add(&mut self, number: NumberRef) {
        self.count += 1;
        match number {
            NumberRef::Int32(value) => self.whole += i128::from(value),
            NumberRef::Int64(value) => {
                self.longs += 1;
                self.whole += i128::from(value);
            }
            NumberRef::Double(value) => {
                self.doubles += 1;
                self.add_double(value);
            }
            NumberRef::Decimal(value) => {
                self.decimals += 1;
                self.decimal = Some(self.decimal.map_or(value, |sum| decimal::add(sum, value)));
            }
        }
    }

    fn add_double(&mut self, value: f64) {
        if !value.is_finite() {
            self.special += value;
            self.specials += 1;
            return;
        }
        let sum = self.high + value;
        let shadow = sum - self.high;
        self.low += (self.high - (sum - shadow)) + (value - shadow);
        self.high = sum;
    }

    /// Takes a number away again; `false` where that cannot be done exactly.
    #[must_use]
    pub fn remove(&mut self, number: NumberRef) -> bool {
        match number {
            NumberRef::Int32(value) => self.whole -= i128::from(value),
            NumberRef::Int64(value) => {
                self.longs -= 1;
                self.whole -= i128::from(value);
            }
            _ => return false,
        }
        self.count -= 1;
        true
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn to_f64(&self) -> f64 {
        if self.specials > 0 {
            return self.special;
        }
        // Whole numbers are added last, and exactly as far as doubles are.
        let mut sum = self.clone();
        let whole = self.whole as f64;
        sum.add_double(whole);
        let rest = self.whole - whole as i128;
        sum.add_double(rest as f64);
        sum.high + sum.low
    }

    pub fn to_decimal(&self) -> Decimal128 {
        let mut sum = self.decimal.unwrap_or_else(decimal::zero);
        if self.whole != 0 || self.decimal.is_none() {
            let whole = decimal::parse(&self.whole.to_string()).unwrap_or(Decimal128::NAN);
            sum = decimal::add(sum, whole);
        }
        if self.doubles > 0 {
            let double = if self.specials > 0 { self.special } else { self.high + self.low };
            sum = decimal::add(sum, decimal::of_f64(double));
        }
        sum
    }

    pub fn is_decimal(&self) -> bool {
        self.decimals > 0
    }

    /// The sum, as wide as its widest number and wide enough.
    pub fn to_bson(&self) -> Bson {
        if self.decimals > 0 {
            return Bson::Decimal(self.to_decimal());
        }
        if self.doubles > 0 {
            return Bson::Double(self.to_f64());
        }
        match i64::try_from(self.whole) {
            Ok(whole) if self.longs == 0 => int_or_long(whole),
            Ok(whole) => Bson::Int64(whole),
            Err(_) => Bson::Double(self.whole as f64),
        }
    }
}
