//! Doubles as decimal text, in the service's spelling.
//!
//! The service prints a double with 15 significant digits when they read back as the same double and with 17
//! otherwise, without trailing zeros, and with an exponent below 1e-4 or when the digits do not reach the point:
//! `0.1`, `0.33333333333333331`, `100`, `1e+15`, `4.94065645841247e-324`. That is not the shortest text
//! (`0.3333333333333333`), but it is what clients compare.
//!
//! Between about 1e-8 and 1e+15 the digits come from exact 128-bit arithmetic: the double is `m * 2^e`, so its digits
//! are `m * 5^p` shifted by `e + p` bits, rounded half to even. Outside, the standard library's exact formatting does
//! the same more slowly.

use crate::number::NumberStyle;

/// Powers of ten that a double holds exactly; also the limit of the quick exact reading back.
pub(crate) const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
/// The powers of five that fit 64 bits; their product with a 53-bit number fits 128 bits with room to round.
const FIVES: [u64; 28] = {
    let mut powers = [1; 28];
    let mut i = 1;
    while i < powers.len() {
        powers[i] = powers[i - 1] * 5;
        i += 1;
    }
    powers
};

/// Appends a double. Infinities and NaN, which JSON lacks, are printed as strings, as the service does.
pub(crate) fn write_double(out: &mut Vec<u8>, value: f64, style: NumberStyle) {
    if !value.is_finite() {
        let name: &[u8] = match value {
            f64::INFINITY => b"\"Infinity\"",
            f64::NEG_INFINITY => b"\"-Infinity\"",
            _ => b"\"NaN\"",
        };
        out.extend_from_slice(name);
        return;
    }
    if value == 0.0 {
        out.push(b'0');
        return;
    }
    if value < 0.0 {
        out.push(b'-');
    }
    let value = value.abs();
    if value < 1e15 && value as u64 as f64 == value {
        write_unsigned(out, value as u64);
        return;
    }
    let digits = few_decimals(value).or_else(|| quick_digits(value)).unwrap_or_else(|| slow_digits(value));
    write_digits(out, digits, style);
}

/// Prices and the like: at most four decimals. At most 15 digits that read back are the digits that 15-digit
/// rounding gives, so no further proof is needed.
#[inline]
fn few_decimals(value: f64) -> Option<Digits> {
    let scaled = value * 1e4 + 0.5;
    if !(1.0..1e15).contains(&scaled) {
        return None;
    }
    let digits = scaled as u64;
    if digits as f64 / 1e4 != value {
        return None;
    }
    Some(strip(digits, digits.ilog10() as i32 - 4, 15))
}

/// Significant digits without trailing zeros: `digits * 10^(exponent - (number of digits - 1))`.
struct Digits {
    digits: u64,
    /// Exponent of the first digit.
    exponent: i32,
    /// 15 or 17: where plain notation ends.
    precision: i32,
}

fn quick_digits(value: f64) -> Option<Digits> {
    let bits = value.to_bits();
    let biased = (bits >> 52) as i32;
    if !(990..1023 + 50).contains(&biased) {
        return None;
    }
    let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
    let binary = biased - 1075;
    // floor(log10) from the binary exponent is right or one too small; the rounded digits tell.
    let mut exponent = ((binary + 52) * 78_913) >> 18;
    let mut short = scaled(mantissa, binary, 14 - exponent)?;
    if short >= 1_000_000_000_000_000 {
        exponent += 1;
        short = scaled(mantissa, binary, 14 - exponent)?;
    }
    let power = TENS.get(usize::try_from(14 - exponent).ok()?)?;
    // Both are exact, so one division rounds as reading the text would.
    if short as f64 / power == value {
        return Some(strip(short, exponent, 15));
    }
    let mut long = scaled(mantissa, binary, 16 - exponent)?;
    if long < 10_000_000_000_000_000 {
        // 15 digits had rounded up to the next power of ten; 17 digits tell that the value lies below.
        exponent -= 1;
        long = scaled(mantissa, binary, 16 - exponent)?;
    }
    Some(strip(long, exponent, 17))
}

/// `mantissa * 2^binary * 10^power`, rounded half to even. `None` when the quick arithmetic does not reach.
fn scaled(mantissa: u64, binary: i32, power: i32) -> Option<u64> {
    let product = u128::from(mantissa) * u128::from(*FIVES.get(usize::try_from(power).ok()?)?);
    let shift = -(binary + power);
    if shift <= 0 {
        return u64::try_from(product.checked_shl(shift.unsigned_abs()).filter(|_| shift > -64)?).ok();
    }
    if shift > 126 {
        return None;
    }
    let whole = product >> shift;
    let rest = product & ((1u128 << shift) - 1);
    let half = 1u128 << (shift - 1);
    let up = rest > half || (rest == half && whole & 1 == 1);
    u64::try_from(whole + u128::from(up)).ok()
}

/// Any double: through the standard library's exact exponent notation.
fn slow_digits(value: f64) -> Digits {
    let read = |text: &str| {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits =
            mantissa.bytes().filter(u8::is_ascii_digit).fold(0u64, |n, b| n * 10 + u64::from(b - b'0'));
        (digits, exponent.parse::<i32>().unwrap_or(0))
    };
    let short = format!("{value:.14e}");
    if short.parse() == Ok(value) {
        let (digits, exponent) = read(&short);
        return strip(digits, exponent, 15);
    }
    let (digits, exponent) = read(&format!("{value:.16e}"));
    strip(digits, exponent, 17)
}

fn strip(mut digits: u64, exponent: i32, precision: i32) -> Digits {
    // A value rounded up to the next power of ten has one digit more than asked for; its exponent follows.
    let exponent =
        exponent + i32::from(digits >= if precision == 15 { 10u64.pow(15) } else { 10u64.pow(17) });
    for power in [100_000_000, 10_000, 100, 10] {
        while digits.is_multiple_of(power) && digits > 0 {
            digits /= power;
        }
    }
    Digits { digits, exponent, precision }
}

fn write_digits(out: &mut Vec<u8>, digits: Digits, style: NumberStyle) {
    let mut buffer = [0u8; 20];
    let text = unsigned_text(digits.digits, &mut buffer);
    let exponent = digits.exponent;
    if exponent < -4 || exponent >= digits.precision {
        let (first, rest) = text.split_at(1);
        out.extend_from_slice(first);
        if !rest.is_empty() {
            out.push(b'.');
            out.extend_from_slice(rest);
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        let mut buffer = [0u8; 20];
        let power = unsigned_text(u64::from(exponent.unsigned_abs()), &mut buffer);
        let width = if style == NumberStyle::Item { 3 } else { 2 };
        out.extend_from_slice(&b"000"[..width - power.len().min(width)]);
        out.extend_from_slice(power);
    } else if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.extend_from_slice(&b"000"[..(-exponent - 1) as usize]);
        out.extend_from_slice(text);
    } else {
        let whole = exponent as usize + 1;
        if text.len() <= whole {
            out.extend_from_slice(text);
            out.resize(out.len() + whole - text.len(), b'0');
        } else {
            out.extend_from_slice(&text[..whole]);
            out.push(b'.');
            out.extend_from_slice(&text[whole..]);
        }
    }
}

/// Appends an unsigned integer.
#[inline]
pub(crate) fn write_unsigned(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
        return;
    }
    let mut buffer = [0u8; 20];
    out.extend_from_slice(unsigned_text(value, &mut buffer));
}

/// Decimal digits of an integer, two at a time from the end of the buffer.
#[inline]
fn unsigned_text(mut value: u64, buffer: &mut [u8; 20]) -> &[u8] {
    const PAIRS: &[u8; 200] = b"0001020304050607080910111213141516171819\
2021222324252627282930313233343536373839\
4041424344454647484950515253545556575859\
6061626364656667686970717273747576777879\
8081828384858687888990919293949596979899";
    let mut at = buffer.len();
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value >= 10 {
        let pair = value as usize * 2;
        at -= 2;
        buffer[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    &buffer[at..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn print(value: f64, style: NumberStyle) -> String {
        let mut out = Vec::new();
        write_double(&mut out, value, style);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_spelled_as_the_service_spells_them() {
        let cases: &[(f64, &str)] = &[
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.33333333333333331"),
            (22.0 / 7.0, "3.1428571428571428"),
            (200.0 / 7.0, "28.571428571428573"),
            (18_446_744_073_709_551_616.0, "1.8446744073709552e+19"),
            (9.876_543_210_987_654e28, "9.8765432109876546e+28"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "4.94065645841247e-324"),
            (1e300, "1e+300"),
            (1.0, "1"),
            (100.0, "100"),
            (-0.0, "0"),
            (-1.5, "-1.5"),
            (1e14, "100000000000000"),
            (1e15, "1e+15"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (123_456.789, "123456.789"),
            (1_234_567_890_123_456.8, "1234567890123456.8"),
            (0.999_999_999_999_999_9, "0.99999999999999989"),
            (1e23, "1e+23"),
            (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        ];
        for (value, text) in cases {
            assert_eq!(print(*value, NumberStyle::Query), *text);
        }
        assert_eq!(print(18_446_744_073_709_551_616.0, NumberStyle::Item), "1.8446744073709552e+019");
        assert_eq!(print(1e-7, NumberStyle::Item), "1e-007");
        assert_eq!(print(1e300, NumberStyle::Item), "1e+300");
        assert_eq!(print(f64::NEG_INFINITY, NumberStyle::Item), "\"-Infinity\"");
    }

    fn check(value: f64) {
        let text = print(value, NumberStyle::Query);
        assert_eq!(text.parse::<f64>().unwrap(), value, "{text} reads back");
        for quick in [few_decimals(value.abs()), quick_digits(value.abs())].into_iter().flatten() {
            let slow = slow_digits(value.abs());
            assert_eq!(
                (quick.digits, quick.exponent, quick.precision),
                (slow.digits, slow.exponent, slow.precision),
                "{value:e}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn any_double_reads_back_and_quick_digits_are_the_exact_ones(bits in any::<u64>(), near in -30i32..30) {
            let value = f64::from_bits(bits);
            if value.is_finite() && value != 0.0 {
                check(value);
                // The same digits near one, where the quick way works.
                let exponent = (1023 + near) as u64;
                check(f64::from_bits(bits & 0x800f_ffff_ffff_ffff | exponent << 52));
            }
        }

        #[test]
        fn neighbours_of_powers_of_ten_read_back(power in -20i32..25, steps in -40i64..40) {
            let ten: f64 = format!("1e{power}").parse().unwrap();
            check(f64::from_bits(ten.to_bits().wrapping_add_signed(steps)));
        }

        #[test]
        fn short_decimals_print_as_they_were_written(digits in 1i64..1_000_000_000_000, scale in 0i32..12) {
            let text = format!("{}", digits as f64 / 10f64.powi(scale));
            let value: f64 = text.parse().unwrap();
            prop_assume!(value >= 1e-4);
            assert_eq!(print(value, NumberStyle::Query), text);
            check(value);
        }

        #[test]
        fn integers_print_as_the_standard_library_prints_them(value in any::<u64>()) {
            let mut out = Vec::new();
            write_unsigned(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
