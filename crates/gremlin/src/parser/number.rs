//! Numbers as they are written: `1`, `0x1F`, `017`, `1L`, `1.5f`, `10n`, `1.0m`.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive as _;

use crate::decimal::Decimal;
use crate::value::Value;

/// More digits than this are no number that anybody meant.
const DIGITS_MAX: usize = 2048;

/// None when it is not a number, or does not fit the type that its suffix names.
pub(crate) fn number(written: &str) -> Option<Value> {
    if written.len() > DIGITS_MAX {
        return None;
    }
    let text: String = written.chars().filter(|c| *c != '_').collect();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(&text)),
    };
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let (hex, suffix) = match hex.chars().last() {
            Some(c) if !c.is_ascii_hexdigit() => (&hex[..hex.len() - 1], Some(c.to_ascii_lowercase())),
            _ => (hex, None),
        };
        return whole(BigInt::parse_bytes(format!("{sign}{hex}").as_bytes(), 16)?, suffix);
    }
    let last = digits.chars().last()?.to_ascii_lowercase();
    let (body, suffix) = match last {
        '0'..='9' => (digits, None),
        suffix => (&digits[..digits.len() - 1], Some(suffix)),
    };
    let is_whole = body.bytes().all(|b| b.is_ascii_digit());
    match suffix {
        Some('f') => format!("{sign}{body}").parse().ok().map(Value::Float),
        Some('d') => format!("{sign}{body}").parse().ok().map(Value::Double),
        Some('m') => Decimal::parse(&format!("{sign}{body}")).map(|d| Value::BigDecimal(Arc::new(d))),
        _ if is_whole => {
            let octal =
                body.len() > 1 && body.starts_with('0') && body.bytes().all(|b| (b'0'..=b'7').contains(&b));
            let radix = if octal { 8 } else { 10 };
            whole(BigInt::parse_bytes(format!("{sign}{body}").as_bytes(), radix)?, suffix)
        }
        None => format!("{sign}{body}").parse().ok().map(Value::Double),
        _ => None,
    }
}

fn whole(number: BigInt, suffix: Option<char>) -> Option<Value> {
    match suffix {
        Some('b') => number.to_i8().map(Value::Byte),
        Some('s') => number.to_i16().map(Value::Short),
        Some('i') => number.to_i32().map(Value::Int),
        Some('l') => number.to_i64().map(Value::Long),
        Some('n' | 'g') => Some(Value::BigInt(Arc::new(number))),
        None => Some(smallest(number)),
        _ => None,
    }
}

/// An int if it fits, else a long, else an integer of any size.
pub(crate) fn smallest(number: BigInt) -> Value {
    match (number.to_i32(), number.to_i64()) {
        (Some(n), _) => Value::Int(n),
        (None, Some(n)) => Value::Long(n),
        _ => Value::BigInt(Arc::new(number)),
    }
}
