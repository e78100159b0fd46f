//! Small writers into a byte buffer: integers, charges, JSON strings.
//!
//! Answers are written straight into one buffer, without format strings and without trees. A charge is written as
//! the service writes it: two decimals at most, no trailing zeros (`6.67`, `8`, `0.38`).

use orrery_model::{Number, NumberStyle, write_json_number, write_json_string};

pub fn push_u64(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A charge for the header.
pub fn push_charge(out: &mut Vec<u8>, charge_ru: f64) {
    // Not a number and negative charges cannot be; writing 0 keeps the header a number whatever happens.
    let hundredths = (charge_ru * 100.0).round().max(0.0) as u64;
    push_u64(out, hundredths / 100);
    let (tenths, rest) = ((hundredths % 100) / 10, hundredths % 10);
    if tenths != 0 || rest != 0 {
        out.push(b'.');
        out.push(b'0' + tenths as u8);
        if rest != 0 {
            out.push(b'0' + rest as u8);
        }
    }
}

/// A charge inside a body, with all its digits.
pub fn push_full_charge(out: &mut Vec<u8>, charge_ru: f64) {
    write_json_number(out, Number::Double(charge_ru), NumberStyle::Item);
}

pub fn push_json_string(out: &mut Vec<u8>, text: &str) {
    write_json_string(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_have_two_decimals_at_most_and_no_trailing_zeros() {
        let check = |charge: f64, want: &str| {
            let mut out = Vec::new();
            push_charge(&mut out, charge);
            assert_eq!(String::from_utf8(out).unwrap(), want);
        };
        check(1.0, "1");
        check(6.666_666, "6.67");
        check(704.761_904, "704.76");
        check(2.8, "2.8");
        check(0.38, "0.38");
        check(3.04, "3.04");
        check(0.0, "0");
        check(f64::NAN, "0");
    }

    #[test]
    fn integers_of_every_length_are_written() {
        for value in [0, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            push_u64(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }
}
