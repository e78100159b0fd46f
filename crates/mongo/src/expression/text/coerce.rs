//! Values as texts, as operators on texts take them.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::expression::date;
use crate::value::Bson;

/// A text, a number, a date or a timestamp as a text; null is the empty one.
pub(crate) fn text(value: Option<&Bson>) -> Result<Cow<'_, str>> {
    Ok(match value {
        None | Some(Bson::Null | Bson::Undefined) => Cow::Borrowed(""),
        Some(Bson::String(text) | Bson::Symbol(text) | Bson::Code(text)) => Cow::Borrowed(text),
        Some(Bson::Int32(value)) => Cow::Owned(value.to_string()),
        Some(Bson::Int64(value)) => Cow::Owned(value.to_string()),
        Some(Bson::Double(value)) => Cow::Owned(double(*value)),
        Some(Bson::Decimal(value)) => Cow::Owned(value.to_string()),
        Some(Bson::Date(ms)) => Cow::Owned(date::format::iso(*ms)?),
        Some(Bson::Timestamp { seconds, increment }) => {
            let shown = date::format::timestamp(*seconds)?;
            Cow::Owned(format!("{shown}:{increment:03}"))
        }
        Some(other) => {
            let text = format!("can't convert from BSON type {} to String", other.kind().name());
            return Err(Error::new(16007, text));
        }
    })
}

/// A double with 16 significant digits, in exponents only where it is very large or small: C's `%.16g`.
pub(crate) fn double(value: f64) -> String {
    const DIGITS: i32 = 16;
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let scientific = format!("{value:.precision$e}", precision = DIGITS as usize - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| -> String {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text.into() }
    };
    if !(-4..DIGITS).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(digits), exponent.abs());
    }
    trimmed(&format!("{value:.places$}", places = (DIGITS - 1 - exponent).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::double;

    #[test]
    fn doubles_are_printed_as_c_does() {
        let cases = [
            (0.1, "0.1"),
            (55.5, "55.5"),
            (1e10, "10000000000"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (1234.0, "1234"),
            (-2.5, "-2.5"),
            (1.2345123455666662, "1.234512345566666"),
        ];
        for (value, text) in cases {
            assert_eq!(double(value), text);
        }
    }
}
