//! Decimals of 128 bits, as IEEE 754-2008 defines them and BSON carries them: read, print, compare. No arithmetic.
//!
//! A decimal is a sign, a coefficient of up to 34 digits and a power of ten from -6176 to 6111; `1.0` and `1.00` are
//! two decimals of one value. The bits hold the coefficient as a binary integer:
//!
//! ```text
//! sign (1), exponent + 6176 (14), coefficient (113)
//! sign (1), 11, ...                                  11110: infinity, 11111: NaN; else a coefficient that is too large
//! ```
//!
//! A coefficient above 34 digits counts as zero, as the standard says. Every finite decimal other than zero has one
//! *magnitude*: the power of ten of its first digit and its digits filled up to 34, so comparing is comparing two
//! integers. Doubles are compared by their exact decimal digits, which the standard library prints.

use crate::number::Number;
use std::cmp::Ordering;
use std::fmt;

/// Digits of a coefficient.
const DIGITS: u32 = 34;
const COEFFICIENT_MAX: u128 = 10u128.pow(DIGITS) - 1;
const COEFFICIENT_BITS: u32 = 113;
const EXPONENT_BIAS: i32 = 6176;
const EXPONENT_MIN: i32 = -EXPONENT_BIAS;
const EXPONENT_MAX: i32 = 6111;
/// The highest bits behind the sign: both set where the bits are no ordinary number.
const SPECIAL: u128 = 0b11 << 125;
const INFINITY: u128 = 0b11110 << 122;
const NAN: u128 = 0b11111 << 122;
/// Digits that the longest double has.
const DOUBLE_DIGITS: usize = 767;

/// A decimal of 128 bits. Equality is that of the bits; [`Decimal128::compare`] is that of the values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128(u128);

/// What a decimal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parts {
    NaN,
    Infinity { negative: bool },
    Finite { negative: bool, coefficient: u128, exponent: i32 },
}

/// How large a decimal is, whatever its sign. The order of magnitudes is numeric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Magnitude {
    Zero,
    /// The power of ten of the first digit, from -6176 to 6144, and 34 digits from that one on.
    Finite {
        power: i32,
        digits: u128,
    },
    Infinite,
}

impl Decimal128 {
    pub const NAN: Decimal128 = Decimal128(NAN);
    pub const INFINITY: Decimal128 = Decimal128(INFINITY);

    pub fn from_le_bytes(bytes: [u8; 16]) -> Decimal128 {
        Decimal128(u128::from_le_bytes(bytes))
    }

    pub fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Reads `-1.50`, `1E+3`, `Infinity`, `NaN`. `None` for what is no number, has more digits than there is room for,
    /// or lies outside; nothing is rounded.
    pub fn parse(text: &str) -> Option<Decimal128> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let sign = u128::from(negative) << 127;
        if unsigned.eq_ignore_ascii_case("infinity") || unsigned.eq_ignore_ascii_case("inf") {
            return Some(Decimal128(INFINITY | sign));
        }
        if unsigned.eq_ignore_ascii_case("nan") {
            return Some(Decimal128(NAN | sign));
        }
        let (number, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.len() + fraction.len() == 0 {
            return None;
        }
        let (mut coefficient, mut exponent) = (0u128, exponent.checked_sub(fraction.len() as i64)?);
        // Zeros that end a number that is too long are counted, not kept.
        let mut dropped = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            let digit = char::from(digit).to_digit(10)?;
            match coefficient.checked_mul(10).map(|tens| tens + u128::from(digit)) {
                Some(longer) if dropped == 0 && longer <= COEFFICIENT_MAX => coefficient = longer,
                _ if digit == 0 => dropped += 1,
                _ => return None,
            }
        }
        exponent += dropped;
        if coefficient == 0 {
            exponent = exponent.clamp(EXPONENT_MIN.into(), EXPONENT_MAX.into());
        }
        while exponent < EXPONENT_MIN.into() {
            if coefficient % 10 != 0 {
                return None;
            }
            (coefficient, exponent) = (coefficient / 10, exponent + 1);
        }
        while exponent > EXPONENT_MAX.into() {
            coefficient = coefficient.checked_mul(10).filter(|longer| *longer <= COEFFICIENT_MAX)?;
            exponent -= 1;
        }
        let biased = u128::try_from(exponent + i64::from(EXPONENT_BIAS)).ok()?;
        Some(Decimal128(sign | biased << COEFFICIENT_BITS | coefficient))
    }

    fn parts(self) -> Parts {
        let negative = self.0 >> 127 == 1;
        if self.0 & SPECIAL == SPECIAL {
            return match self.0 & NAN {
                NAN => Parts::NaN,
                INFINITY => Parts::Infinity { negative },
                _ => {
                    Parts::Finite { negative, coefficient: 0, exponent: self.exponent(COEFFICIENT_BITS - 2) }
                }
            };
        }
        let coefficient = self.0 & ((1 << COEFFICIENT_BITS) - 1);
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Parts::Finite { negative, coefficient, exponent: self.exponent(COEFFICIENT_BITS) }
    }

    fn exponent(self, lowest_bit: u32) -> i32 {
        (self.0 >> lowest_bit & 0x3FFF) as i32 - EXPONENT_BIAS
    }

    pub fn is_nan(self) -> bool {
        self.parts() == Parts::NaN
    }

    /// Whether it is below zero; zero and NaN are not, whatever their sign.
    pub fn is_negative(self) -> bool {
        match self.parts() {
            Parts::NaN => false,
            Parts::Infinity { negative } => negative,
            Parts::Finite { negative, coefficient, .. } => negative && coefficient != 0,
        }
    }

    /// How large it is; infinite for NaN, which callers look for first.
    pub fn magnitude(self) -> Magnitude {
        match self.parts() {
            Parts::Finite { coefficient, exponent, .. } => magnitude_of(coefficient, exponent),
            Parts::Infinity { .. } | Parts::NaN => Magnitude::Infinite,
        }
    }

    /// The largest double that is no farther from zero than this.
    pub fn toward_zero(self) -> f64 {
        let sign = if self.is_negative() { -1.0 } else { 1.0 };
        match self.parts() {
            Parts::NaN => f64::NAN,
            Parts::Infinity { .. } => sign * f64::INFINITY,
            Parts::Finite { coefficient, exponent, .. } => {
                let nearest = nearest_double(coefficient, exponent);
                let beyond =
                    compare_magnitude(magnitude_of(coefficient, exponent), nearest) == Ordering::Less;
                // Of positive doubles the one below has the bits below.
                sign * if beyond { f64::from_bits(nearest.to_bits() - 1) } else { nearest }
            }
        }
    }

    /// The whole part without its sign; `None` from 2^64 on and for what is not finite.
    pub fn whole_part(self) -> Option<u64> {
        let Parts::Finite { coefficient, exponent, .. } = self.parts() else { return None };
        let whole = match u32::try_from(exponent) {
            Ok(power) if coefficient != 0 => coefficient.checked_mul(10u128.checked_pow(power)?)?,
            _ => 10u128.checked_pow(exponent.unsigned_abs()).map_or(0, |power| coefficient / power),
        };
        u64::try_from(whole).ok()
    }

    /// Numeric order; NaN sorts below all and equals itself.
    pub fn compare(self, other: Decimal128) -> Ordering {
        match (self.is_nan(), other.is_nan()) {
            (false, false) => {}
            (left, right) => return right.cmp(&left),
        }
        let (left, right) = (self.is_negative(), other.is_negative());
        right.cmp(&left).then_with(|| {
            let order = self.magnitude().cmp(&other.magnitude());
            if left { order.reverse() } else { order }
        })
    }

    /// Numeric order against any other number, without rounding either.
    pub fn compare_number(self, other: Number) -> Ordering {
        let (negative, whole) = match other {
            Number::Int(value) => (value < 0, value.unsigned_abs()),
            Number::UInt(value) => (false, value),
            Number::Double(value) => return self.compare_double(value),
        };
        let sign = u128::from(negative) << 127;
        let bias = (EXPONENT_BIAS as u128) << COEFFICIENT_BITS;
        self.compare(Decimal128(sign | bias | u128::from(whole)))
    }

    fn compare_double(self, other: f64) -> Ordering {
        match (self.is_nan(), other.is_nan()) {
            (false, false) => {}
            (left, right) => return right.cmp(&left),
        }
        let (left, right) = (self.is_negative(), other < 0.0);
        right.cmp(&left).then_with(|| {
            let order = compare_magnitude(self.magnitude(), other.abs());
            if left { order.reverse() } else { order }
        })
    }
}

fn magnitude_of(coefficient: u128, exponent: i32) -> Magnitude {
    match coefficient.checked_ilog10() {
        None => Magnitude::Zero,
        Some(log) => Magnitude::Finite {
            power: exponent + log as i32,
            digits: coefficient * 10u128.pow(DIGITS - 1 - log),
        },
    }
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // More digits than fit an exponent lead outside, or belong to a zero that does not care.
    let size = digits.trim_start_matches('0').parse::<i64>().unwrap_or(if digits.contains(|c| c != '0') {
        i64::from(u32::MAX)
    } else {
        0
    });
    let size = size.min(i64::from(u32::MAX));
    Some(if text.starts_with('-') { -size } else { size })
}

fn nearest_double(coefficient: u128, exponent: i32) -> f64 {
    format!("{coefficient}e{exponent}").parse().unwrap_or(0.0)
}

/// Order of a decimal's magnitude against a double that is not negative.
fn compare_magnitude(decimal: Magnitude, double: f64) -> Ordering {
    let Magnitude::Finite { power, digits } = decimal else {
        let infinite = decimal == Magnitude::Infinite;
        return infinite.cmp(&double.is_infinite()).then(if infinite || double == 0.0 {
            Ordering::Equal
        } else {
            Ordering::Less
        });
    };
    // Rounding keeps the order, so it decides unless both are the same double.
    let nearest = nearest_double(digits, power + 1 - DIGITS as i32);
    if nearest != double {
        return nearest.total_cmp(&double);
    }
    if double.is_infinite() {
        return Ordering::Less;
    }
    if double == 0.0 {
        return Ordering::Greater;
    }
    let exact = format!("{double:.precision$e}", precision = DOUBLE_DIGITS - 1);
    let (number, exponent) = exact.split_once('e').expect("an exponent was asked for");
    let mut exact_digits = number.bytes().filter(u8::is_ascii_digit);
    let first = exact_digits.by_ref().take(DIGITS as usize);
    let first = first.fold(0u128, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let exponent: i32 = exponent.parse().expect("the exponent of a double");
    (power, digits).cmp(&(exponent, first)).then_with(|| match exact_digits.all(|digit| digit == b'0') {
        true => Ordering::Equal,
        false => Ordering::Less,
    })
}

/// As the standard prints decimals: all digits, with an exponent where they alone do not tell the value.
impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::NaN => return f.write_str("NaN"),
            Parts::Infinity { negative } => {
                return f.write_str(if negative { "-Infinity" } else { "Infinity" });
            }
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if negative {
            f.write_str("-")?;
        }
        let digits = coefficient.to_string();
        let power = exponent + digits.len() as i32 - 1;
        if exponent > 0 || power < -6 {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{first}{point}{rest}E{power:+}");
        }
        let fraction = exponent.unsigned_abs() as usize;
        if fraction == 0 {
            return f.write_str(&digits);
        }
        let digits = format!("{digits:0>width$}", width = fraction + 1);
        let (whole, fraction) = digits.split_at(digits.len() - fraction);
        write!(f, "{whole}.{fraction}")
    }
}

impl fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decimal(text: &str) -> Decimal128 {
        Decimal128::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    /// From the corpus of the BSON specification: text, bytes, and the text that comes back.
    #[test]
    fn texts_and_bits_are_those_of_the_specification() {
        let cases = [
            ("0", "00000000000000000000000000004030", "0"),
            ("-0", "000000000000000000000000000040b0", "-0"),
            ("-1", "010000000000000000000000000040b0", "-1"),
            ("0.1", "01000000000000000000000000003e30", "0.1"),
            ("0.001234", "d2040000000000000000000000003430", "0.001234"),
            ("0.00123400000", "40ef5a07000000000000000000002a30", "0.00123400000"),
            (
                "1234567890123456789012345678901234",
                "f2af967ed05c82de3297ff6fde3c4030",
                "1234567890123456789012345678901234",
            ),
            (
                "1.000000000000000000000000000000000E+6144",
                "000000000a5bc138938d44c64d31fe5f",
                "1.000000000000000000000000000000000E+6144",
            ),
            (
                "9.999999999999999999999999999999999E-6143",
                "ffffffff638e8d37c087adbe09ed0100",
                "9.999999999999999999999999999999999E-6143",
            ),
            ("1E-6176", "01000000000000000000000000000000", "1E-6176"),
            ("1E+3", "01000000000000000000000000004630", "1E+3"),
            ("1.05E+3", "69000000000000000000000000004230", "1.05E+3"),
            ("0.0000001234", "d2040000000000000000000000002c30", "1.234E-7"),
            ("Infinity", "00000000000000000000000000000078", "Infinity"),
            ("-inf", "000000000000000000000000000000f8", "-Infinity"),
            ("NaN", "0000000000000000000000000000007c", "NaN"),
            ("1E6144", "000000000a5bc138938d44c64d31fe5f", "1.000000000000000000000000000000000E+6144"),
            ("10E-6177", "01000000000000000000000000000000", "1E-6176"),
            ("0E+8000", "0000000000000000000000000000fe5f", "0E+6111"),
            ("0E-99999999999999999999", "00000000000000000000000000000000", "0E-6176"),
        ];
        for (text, hex, printed) in cases {
            let value = decimal(text);
            let bytes: String = value.to_le_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!((bytes.as_str(), value.to_string().as_str()), (hex, printed), "{text}");
        }
        let refused = [
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            "1.2.3",
            "0x1",
            "1 ",
            "E1",
            "12345678901234567890123456789012345",
            "1E6145",
            "1E-6177",
            "1e99999999999999999999",
            "NaNs",
            "--1",
            "1\u{e9}",
        ];
        for text in refused {
            assert_eq!(Decimal128::parse(text), None, "{text}");
        }
    }

    #[test]
    fn coefficients_that_are_too_large_are_zero() {
        for high in [0x6C10_u128 << 112, 0x3041_ED09_BEAD_87C0_378D_8E64_0000_0000] {
            assert_eq!(Decimal128(high).magnitude(), Magnitude::Zero);
        }
    }

    #[test]
    fn order_is_numeric_among_decimals_and_against_numbers() {
        let rising = [
            "NaN",
            "-Infinity",
            "-1E+6144",
            "-1E+300",
            "-2",
            "-1.5",
            "-1E-6176",
            "0",
            "1E-6176",
            "1E-400",
            "0.1",
            "0.5",
            "9007199254740992.5",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551615.5",
            "1E+20",
            "1E+309",
            "1E+6144",
            "Infinity",
        ];
        for (i, a) in rising.iter().enumerate() {
            for (j, b) in rising.iter().enumerate() {
                assert_eq!(decimal(a).compare(decimal(b)), i.cmp(&j), "{a} against {b}");
            }
        }
        assert_eq!(decimal("1.0").compare(decimal("1.00")), Ordering::Equal);
        assert_eq!(decimal("-0").compare(decimal("0E+3")), Ordering::Equal);
        let cases = [
            ("0.1", Number::Double(0.1), Ordering::Less),
            ("0.5", Number::Double(0.5), Ordering::Equal),
            ("-0.1", Number::Double(-0.1), Ordering::Greater),
            ("0.3", Number::Double(0.3), Ordering::Greater),
            ("9007199254740993", Number::Int(9_007_199_254_740_993), Ordering::Equal),
            ("9007199254740993", Number::Double(9_007_199_254_740_992.0), Ordering::Greater),
            ("18446744073709551615", Number::UInt(u64::MAX), Ordering::Equal),
            ("-9223372036854775808", Number::Int(i64::MIN), Ordering::Equal),
            ("1E+400", Number::Double(f64::MAX), Ordering::Greater),
            ("1E+400", Number::Double(f64::INFINITY), Ordering::Less),
            ("1E-400", Number::Double(0.0), Ordering::Greater),
            ("-1E-400", Number::Double(-0.0), Ordering::Less),
            ("1E-400", Number::Double(f64::from_bits(1)), Ordering::Less),
            ("0", Number::Double(-0.0), Ordering::Equal),
            ("Infinity", Number::Double(f64::INFINITY), Ordering::Equal),
            ("-Infinity", Number::Double(f64::MIN), Ordering::Less),
            ("NaN", Number::Double(f64::NAN), Ordering::Equal),
            ("NaN", Number::Double(f64::NEG_INFINITY), Ordering::Less),
            ("0", Number::Double(f64::NAN), Ordering::Greater),
        ];
        for (text, number, order) in cases {
            assert_eq!(decimal(text).compare_number(number), order, "{text} against {number:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_bits_print_and_read_back_as_the_same_value(bits in any::<u128>()) {
            let value = Decimal128(bits);
            let back = decimal(&value.to_string());
            prop_assert_eq!(value.compare(back), Ordering::Equal);
            prop_assert_eq!(back.to_string(), value.to_string());
        }

        #[test]
        fn any_digits_and_exponent_keep_their_bits(coefficient in 0u128..=COEFFICIENT_MAX, exponent in -6176i32..=6111, negative: bool) {
            let value = decimal(&format!("{}{coefficient}E{exponent}", if negative { "-" } else { "" }));
            prop_assert_eq!(decimal(&value.to_string()), value);
            prop_assert_eq!(value.parts(), Parts::Finite { negative, coefficient, exponent });
        }

        #[test]
        fn the_double_toward_zero_is_next_to_the_decimal(coefficient in 1u128..=COEFFICIENT_MAX, exponent in -340i32..300) {
            let value = decimal(&format!("{coefficient}E{exponent}"));
            let below = value.toward_zero();
            prop_assert!(value.compare_number(Number::Double(below)).is_ge());
            let above = f64::from_bits(below.to_bits() + 1);
            prop_assert!(value.compare_number(Number::Double(above)).is_lt());
        }

        #[test]
        fn doubles_compare_with_their_own_digits(double in any::<f64>(), digits in 0usize..34) {
            prop_assume!(double.is_finite());
            let text = format!("{double:.digits$e}");
            let rounded = decimal(&text);
            // What was cut or rounded shows in the difference, computed with more digits than either has.
            let exact = format!("{double:.766e}");
            let padded = if digits == 0 { text.replace('e', ".e") } else { text.clone() };
            let (number, exponent) = padded.split_once('e').unwrap();
            let (exact_number, exact_exponent) = exact.split_once('e').unwrap();
            let wanted = if exponent == exact_exponent {
                let negative = double.is_sign_negative();
                let filled = format!("{number:0<width$}", width = exact_number.len());
                let order = filled.trim_start_matches('-').cmp(exact_number.trim_start_matches('-'));
                if negative { order.reverse() } else { order }
            } else if double < 0.0 {
                // Rounding away from zero has led to the next power of ten.
                Ordering::Less
            } else {
                Ordering::Greater
            };
            prop_assert_eq!(rounded.compare_number(Number::Double(double)), wanted, "{} {}", text, exact);
        }
    }
}
