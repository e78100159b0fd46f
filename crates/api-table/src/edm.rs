//! The types of property values, and how they are kept.
//!
//! | type | JSON | `$t` | `$v` |
//! |---|---|---|---|
//! | `Edm.Guid` | string | 0 | string |
//! | `Edm.Double` | number, or `"NaN"`, `"Infinity"`, `"-Infinity"` | 1 | the same |
//! | `Edm.String` | string | 2 | string |
//! | `Edm.Binary` | base64 | 5 | base64 |
//! | `Edm.Boolean` | `true`, `false` | 8 | the same |
//! | `Edm.DateTime` | `2021-01-04T22:25:57.4388744Z` | 9 | ticks in 20 digits |
//! | `Edm.Int32` | number | 16 | number |
//! | `Edm.Int64` | string | 18 | 20 characters, padded with zeros behind the sign |
//!
//! The kept forms of times and of positive long integers sort as the values do, so ranges of them are ranges of the
//! index.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use orrery_model::{DocWriter, Raw};

use crate::date_time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdmType {
    Guid,
    Double,
    String,
    Binary,
    Boolean,
    DateTime,
    Int32,
    Int64,
}

/// Type, name, tag in the stored form.
const TYPES: &[(EdmType, &str, i64)] = &[
    (EdmType::Guid, "Edm.Guid", 0),
    (EdmType::Double, "Edm.Double", 1),
    (EdmType::String, "Edm.String", 2),
    (EdmType::Binary, "Edm.Binary", 5),
    (EdmType::Boolean, "Edm.Boolean", 8),
    (EdmType::DateTime, "Edm.DateTime", 9),
    (EdmType::Int32, "Edm.Int32", 16),
    (EdmType::Int64, "Edm.Int64", 18),
];

/// Members of a stored property.
pub const TYPE_MEMBER: &str = "$t";
pub const VALUE_MEMBER: &str = "$v";

impl EdmType {
    pub fn named(name: &str) -> Option<EdmType> {
        TYPES.iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| *kind)
    }

    pub fn name(self) -> &'static str {
        TYPES[self as usize].1
    }

    pub fn tag(self) -> i64 {
        TYPES[self as usize].2
    }

    fn tagged(tag: i64) -> Option<EdmType> {
        TYPES.iter().find(|(.., known)| *known == tag).map(|(kind, ..)| *kind)
    }

    /// Whether JSON does not tell the type by itself, so that it is named beside the value.
    pub fn is_annotated(self) -> bool {
        matches!(self, EdmType::Guid | EdmType::Binary | EdmType::DateTime | EdmType::Int64)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum EdmValue<'a> {
    /// In lower case, with hyphens.
    Guid(Cow<'a, str>),
    Double(f64),
    String(Cow<'a, str>),
    /// In base64.
    Binary(Cow<'a, str>),
    Boolean(bool),
    /// In ticks.
    DateTime(u64),
    Int32(i32),
    Int64(i64),
}

/// Doubles that JSON has no number for.
const UNUSUAL_DOUBLES: [(&str, f64); 3] =
    [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)];

impl<'a> EdmValue<'a> {
    pub fn kind(&self) -> EdmType {
        match self {
            EdmValue::Guid(_) => EdmType::Guid,
            EdmValue::Double(_) => EdmType::Double,
            EdmValue::String(_) => EdmType::String,
            EdmValue::Binary(_) => EdmType::Binary,
            EdmValue::Boolean(_) => EdmType::Boolean,
            EdmValue::DateTime(_) => EdmType::DateTime,
            EdmValue::Int32(_) => EdmType::Int32,
            EdmValue::Int64(_) => EdmType::Int64,
        }
    }

    /// A value that was sent as a string with its type beside it.
    pub fn parse(kind: EdmType, text: Cow<'a, str>) -> Option<EdmValue<'a>> {
        Some(match kind {
            EdmType::String => EdmValue::String(text),
            EdmType::Guid => EdmValue::Guid(Cow::Owned(guid(&text)?)),
            EdmType::Binary => {
                STANDARD.decode(text.as_bytes()).ok()?;
                EdmValue::Binary(text)
            }
            EdmType::DateTime => EdmValue::DateTime(date_time::parse(&text)?),
            EdmType::Int32 => EdmValue::Int32(text.trim().parse().ok()?),
            EdmType::Int64 => EdmValue::Int64(text.trim().parse().ok()?),
            EdmType::Double => EdmValue::Double(double(&text)?),
            EdmType::Boolean if text.eq_ignore_ascii_case("true") => EdmValue::Boolean(true),
            EdmType::Boolean if text.eq_ignore_ascii_case("false") => EdmValue::Boolean(false),
            EdmType::Boolean => return None,
        })
    }

    /// A property in its stored form; `None` where the member is something else.
    pub fn stored(property: Raw<'a>) -> Option<EdmValue<'a>> {
        // Both are first of all members, unless another API has written them.
        let mut members = property.members();
        let (kind, value) = match (members.next(), members.next()) {
            (Some((TYPE_MEMBER, kind)), Some((VALUE_MEMBER, value))) => (kind, value),
            _ => (property.get(TYPE_MEMBER)?, property.get(VALUE_MEMBER)?),
        };
        let kind = EdmType::tagged(kind.as_number()?.as_f64() as i64)?;
        Some(match kind {
            EdmType::String => EdmValue::String(Cow::Borrowed(value.as_str()?)),
            EdmType::Guid => EdmValue::Guid(Cow::Borrowed(value.as_str()?)),
            EdmType::Binary => EdmValue::Binary(Cow::Borrowed(value.as_str()?)),
            EdmType::Boolean => EdmValue::Boolean(value.as_bool()?),
            EdmType::DateTime => EdmValue::DateTime(value.as_str()?.parse().ok()?),
            EdmType::Int64 => match value.as_str() {
                Some(text) => EdmValue::Int64(unpad(text)?),
                None => EdmValue::Int64(value.as_number()?.as_f64() as i64),
            },
            EdmType::Int32 => EdmValue::Int32(value.as_number()?.as_f64() as i32),
            EdmType::Double => match value.as_str() {
                Some(text) => EdmValue::Double(double(text)?),
                None => EdmValue::Double(value.as_number()?.as_f64()),
            },
        })
    }

    /// Writes `{"$t":…,"$v":…}`.
    pub fn store(&self, out: &mut DocWriter) {
        out.begin_object();
        out.key(TYPE_MEMBER);
        out.number(self.kind().tag());
        out.key(VALUE_MEMBER);
        match self {
            EdmValue::Guid(text) | EdmValue::String(text) | EdmValue::Binary(text) => out.string(text),
            EdmValue::Boolean(value) => out.bool(*value),
            EdmValue::DateTime(ticks) => out.string(&stored_ticks(*ticks)),
            EdmValue::Int64(value) => out.string(&pad(*value)),
            EdmValue::Int32(value) => out.number(i64::from(*value)),
            EdmValue::Double(value) => match unusual(*value) {
                Some(name) => out.string(name),
                None => out.number(*value),
            },
        }
        out.end_object();
    }

    /// About how many bytes storage counts for the value.
    pub fn size_bytes(&self) -> usize {
        match self {
            EdmValue::String(text) => 2 * text.encode_utf16().count() + 4,
            other => other.size_bytes_max(),
        }
    }

    /// What it counts at most, told without looking at the value: a text has no more units of UTF-16 than bytes.
    pub fn size_bytes_max(&self) -> usize {
        match self {
            EdmValue::String(text) => 2 * text.len() + 4,
            EdmValue::Binary(text) => text.len() / 4 * 3 + 4,
            EdmValue::Guid(_) => 16,
            EdmValue::Boolean(_) => 1,
            EdmValue::Int32(_) => 4,
            EdmValue::Double(_) | EdmValue::DateTime(_) | EdmValue::Int64(_) => 8,
        }
    }
}

/// The kept form of a time.
pub fn stored_ticks(ticks: u64) -> String {
    format!("{ticks:020}")
}

/// The kept form of a long integer: `-0000000000000000005` and `00000000000000000005`.
pub fn pad(value: i64) -> String {
    match value < 0 {
        true => format!("-{:019}", value.unsigned_abs()),
        false => format!("{value:020}"),
    }
}

fn unpad(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// The name of a double that JSON cannot write.
pub fn unusual(value: f64) -> Option<&'static str> {
    match value.is_finite() {
        true => None,
        false if value.is_nan() => Some(UNUSUAL_DOUBLES[0].0),
        false => Some(if value > 0.0 { UNUSUAL_DOUBLES[1].0 } else { UNUSUAL_DOUBLES[2].0 }),
    }
}

fn double(text: &str) -> Option<f64> {
    let named = UNUSUAL_DOUBLES.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    named.or_else(|| {
        // What Rust reads beyond that is no double of JSON.
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
        plain.then(|| text.parse().ok()).flatten().filter(|value: &f64| value.is_finite())
    })
}

/// A guid in its usual form.
pub fn guid(text: &str) -> Option<String> {
    uuid::Uuid::try_parse(text.trim()).ok().map(|guid| guid.hyphenated().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_stand_in_the_order_of_their_table() {
        for (kind, name, tag) in TYPES {
            assert_eq!((kind.name(), kind.tag(), EdmType::named(name)), (*name, *tag, Some(*kind)));
        }
    }

    #[test]
    fn values_come_back_from_their_stored_form() {
        for (kind, text) in [
            (EdmType::Guid, "c9da6455-213d-42c9-9a79-3e9149a57833"),
            (EdmType::Double, "1.5"),
            (EdmType::Double, "-Infinity"),
            (EdmType::Double, "1e300"),
            (EdmType::String, "it's"),
            (EdmType::Binary, "AAEC"),
            (EdmType::Boolean, "true"),
            (EdmType::DateTime, "2021-01-04T22:25:57.4388744Z"),
            (EdmType::Int32, "-2147483648"),
            (EdmType::Int64, "-9223372036854775808"),
            (EdmType::Int64, "9223372036854775807"),
            (EdmType::Int64, "-1"),
        ] {
            let value = EdmValue::parse(kind, Cow::Borrowed(text)).unwrap();
            let mut out = DocWriter::new();
            value.store(&mut out);
            let stored = out.finish();
            assert_eq!(EdmValue::stored(Raw::document(&stored).unwrap()), Some(value), "{text}");
        }
    }

    #[test]
    fn what_is_not_of_its_type_is_refused() {
        for (kind, text) in [
            (EdmType::Guid, "x"),
            (EdmType::Double, "nan"),
            (EdmType::Double, ""),
            (EdmType::Double, "1e999"),
            (EdmType::Binary, "%%"),
            (EdmType::Boolean, "yes"),
            (EdmType::DateTime, "yesterday"),
            (EdmType::Int32, "2147483648"),
            (EdmType::Int64, "9223372036854775808"),
            (EdmType::Int64, "1.0"),
        ] {
            assert_eq!(EdmValue::parse(kind, Cow::Borrowed(text)), None, "{text}");
        }
    }

    #[test]
    fn padded_integers_are_told_apart_by_their_sign() {
        assert_eq!(pad(5), "00000000000000000005");
        assert_eq!(pad(-5), "-0000000000000000005");
        for value in [0, 1, -1, i64::MAX, i64::MIN, 42, -42] {
            assert_eq!((pad(value).len(), unpad(&pad(value))), (20, Some(value)));
        }
    }
}
