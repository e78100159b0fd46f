//! Numbers: 64-bit integers kept exact, everything else an IEEE double.
//!
//! The service stores `9007199254740993` exactly and still says that `1` equals `1.0`, so a number is one of
//! three shapes with one numeric order over all of them. Comparing an integer with a double never rounds the
//! integer: `9007199254740993` is greater than `9007199254740992.0`.

use std::cmp::Ordering;

/// One JSON number. `UInt` holds only what does not fit `Int`, so that every integer has one spelling.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Int(i64),
    /// Only values above `i64::MAX`.
    UInt(u64),
    Double(f64),
}

/// How doubles are spelled. The service prints the same digits everywhere but pads exponents differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberStyle {
    /// As a point read prints: `1e+019`.
    Item,
    /// As a query result prints: `1e+19`.
    Query,
}

/// 2^63 and 2^64: the first doubles beyond the two integer shapes. Both are exact.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_64: f64 = 18_446_744_073_709_551_616.0;

impl Number {
    /// An unsigned integer in its one shape.
    pub fn from_u64(value: u64) -> Number {
        match i64::try_from(value) {
            Ok(value) => Number::Int(value),
            Err(_) => Number::UInt(value),
        }
    }

    /// The nearest double.
    #[inline]
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::UInt(value) => value as f64,
            Number::Double(value) => value,
        }
    }

    /// The same number as an `i64`, also when it is a double without a fraction; `None` when it is not one.
    #[inline]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Number::Int(value) => Some(value),
            Number::UInt(_) => None,
            Number::Double(value) if (-TWO_63..TWO_63).contains(&value) && value.trunc() == value => {
                Some(value as i64)
            }
            Number::Double(_) => None,
        }
    }

    /// Numeric order, exact between integers and doubles. NaN, which JSON cannot bring in, sorts below all.
    #[inline]
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::UInt(a), Number::UInt(b)) => a.cmp(&b),
            (Number::Int(_), Number::UInt(_)) => Ordering::Less,
            (Number::UInt(_), Number::Int(_)) => Ordering::Greater,
            (Number::Double(a), Number::Double(b)) => {
                a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
            }
            (Number::Double(a), b) => compare_double(a, b),
            (a, Number::Double(b)) => compare_double(b, a).reverse(),
        }
    }

    /// The sum, exact while it fits an integer, as increments need it.
    pub fn plus(self, other: Number) -> Number {
        let integer = |n: Number| match n {
            Number::Int(value) => Some(i128::from(value)),
            Number::UInt(value) => Some(i128::from(value)),
            Number::Double(_) => None,
        };
        if let (Some(a), Some(b)) = (integer(self), integer(other)) {
            let sum = a + b;
            if let Ok(sum) = i64::try_from(sum) {
                return Number::Int(sum);
            }
            if let Ok(sum) = u64::try_from(sum) {
                return Number::UInt(sum);
            }
        }
        Number::Double(self.as_f64() + other.as_f64())
    }
}

/// Order of a double against an integer number, without rounding the integer.
fn compare_double(a: f64, b: Number) -> Ordering {
    if a.is_nan() {
        return Ordering::Less;
    }
    // The truncated double is an exact integer inside the range, and its fraction decides a tie.
    let (whole, integer): (i128, i128) = match b {
        Number::Int(b) => (i128::from(b), clamp_to_integer(a)),
        Number::UInt(b) => (i128::from(b), clamp_to_integer(a)),
        Number::Double(b) => return a.partial_cmp(&b).unwrap_or(Ordering::Greater),
    };
    integer.cmp(&whole).then_with(|| {
        let fraction = a - a.trunc();
        if a.is_infinite() { Ordering::Equal } else { fraction.partial_cmp(&0.0).unwrap_or(Ordering::Equal) }
    })
}

/// The integer part, with everything outside the integers' range pushed just beyond it.
fn clamp_to_integer(a: f64) -> i128 {
    if a >= TWO_64 {
        1 << 64
    } else if a < -TWO_63 {
        -(1 << 63) - 1
    } else {
        a as i128
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.compare(*other) == Ordering::Equal
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number::Int(value)
    }
}

impl From<f64> for Number {
    fn from(value: f64) -> Number {
        Number::Double(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_doubles_share_one_exact_order() {
        let rising = [
            Number::Double(f64::NAN),
            Number::Double(f64::NEG_INFINITY),
            Number::Double(-1e300),
            Number::Int(i64::MIN),
            Number::Double(-1.5),
            Number::Int(-1),
            Number::Int(0),
            Number::Double(0.5),
            Number::Int(1),
            Number::Double(9_007_199_254_740_992.0),
            Number::Int(9_007_199_254_740_993),
            Number::Int(i64::MAX),
            Number::Double(TWO_63),
            Number::UInt(u64::MAX),
            Number::Double(TWO_64),
            Number::Double(f64::INFINITY),
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(a.compare(*b), i.cmp(&j), "{a:?} against {b:?}");
            }
        }
    }

    #[test]
    fn one_equals_one_point_zero_and_zero_has_one_value() {
        assert_eq!(Number::Int(1), Number::Double(1.0));
        assert_eq!(Number::Double(-0.0), Number::Int(0));
        assert_eq!(Number::Double(TWO_63), Number::UInt(1 << 63));
        assert_ne!(Number::Int(i64::MAX), Number::Double(TWO_63));
    }

    #[test]
    fn integral_doubles_read_as_integers() {
        assert_eq!(Number::Double(3.0).as_i64(), Some(3));
        assert_eq!(Number::Double(3.5).as_i64(), None);
        assert_eq!(Number::Double(TWO_63).as_i64(), None);
        assert_eq!(Number::Double(-TWO_63).as_i64(), Some(i64::MIN));
        assert_eq!(Number::UInt(u64::MAX).as_i64(), None);
        assert_eq!(Number::Double(f64::NAN).as_i64(), None);
    }

    #[test]
    fn sums_stay_integers_while_they_fit() {
        assert!(matches!(Number::Int(7).plus(Number::Int(3)), Number::Int(10)));
        assert!(matches!(
            Number::Int(i64::MAX).plus(Number::Int(1)),
            Number::UInt(9_223_372_036_854_775_808)
        ));
        assert!(matches!(Number::Int(i64::MIN).plus(Number::Int(-1)), Number::Double(_)));
        assert!(matches!(Number::Int(1).plus(Number::Double(0.5)), Number::Double(1.5)));
    }
}
