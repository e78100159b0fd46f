//! Values that JSON has no word for: those that other APIs store beside what SQL knows.
//!
//! [`Extended`] is borrowed, from a stored document or from whoever writes one; [`ExtendedValue`] is owned and keeps
//! the stored bytes. To SQL each of them is a type of its own: printed as an object such as `{"$oid":"…"}` (see
//! `json::extended`), no string, no number, no object, comparable to its own kind only.

use crate::decimal128::{Decimal128, Magnitude};
use crate::document::format::{BINARY, CODE, DATE, DECIMAL, MAX_KEY, MIN_KEY, OBJECT_ID, REGEX, TIMESTAMP};
use crate::document::raw::{Kind, Raw};
use crate::document::writer::DocWriter;
use std::cmp::Ordering;

/// Borrowed value that JSON has no word for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended<'a> {
    ObjectId([u8; 12]),
    /// Milliseconds since 1970.
    Date(i64),
    Timestamp {
        seconds: u32,
        increment: u32,
    },
    Decimal(Decimal128),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    /// Neither text holds NUL.
    Regex {
        pattern: &'a str,
        options: &'a str,
    },
    /// JavaScript.
    Code(&'a str),
    /// Below everything.
    MinKey,
    /// Above everything.
    MaxKey,
}

impl Extended<'_> {
    pub fn kind(self) -> Kind {
        match self {
            Extended::ObjectId(_) => Kind::ObjectId,
            Extended::Date(_) => Kind::Date,
            Extended::Timestamp { .. } => Kind::Timestamp,
            Extended::Decimal(_) => Kind::Decimal,
            Extended::Binary { .. } => Kind::Binary,
            Extended::Regex { .. } => Kind::Regex,
            Extended::Code(_) => Kind::Code,
            Extended::MinKey => Kind::MinKey,
            Extended::MaxKey => Kind::MaxKey,
        }
    }

    /// Order within one kind; values of two kinds are not told apart here. Binaries compare by length, subtype, bytes.
    pub fn compare_within_kind(self, other: Extended<'_>) -> Ordering {
        match (self, other) {
            (Extended::ObjectId(a), Extended::ObjectId(b)) => a.cmp(&b),
            (Extended::Date(a), Extended::Date(b)) => a.cmp(&b),
            (
                Extended::Timestamp { seconds: a, increment: a_increment },
                Extended::Timestamp { seconds: b, increment: b_increment },
            ) => (a, a_increment).cmp(&(b, b_increment)),
            (Extended::Decimal(a), Extended::Decimal(b)) => a.compare(b),
            (
                Extended::Binary { subtype: a_subtype, bytes: a },
                Extended::Binary { subtype: b_subtype, bytes: b },
            ) => (a.len(), a_subtype, a).cmp(&(b.len(), b_subtype, b)),
            (
                Extended::Regex { pattern: a, options: a_options },
                Extended::Regex { pattern: b, options: b_options },
            ) => (a, a_options).cmp(&(b, b_options)),
            (Extended::Code(a), Extended::Code(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }

    /// Appends bytes that are the same exactly for equal values: for hashes and sets. They do not say where they end.
    /// The kind is named by its tag in the stored form; rows of unique keys hold these bytes, so they are frozen.
    pub fn write_identity(self, out: &mut Vec<u8>) {
        out.push(match self {
            Extended::ObjectId(_) => OBJECT_ID,
            Extended::Date(_) => DATE,
            Extended::Timestamp { .. } => TIMESTAMP,
            Extended::Decimal(_) => DECIMAL,
            Extended::Binary { .. } => BINARY,
            Extended::Regex { .. } => REGEX,
            Extended::Code(_) => CODE,
            Extended::MinKey => MIN_KEY,
            Extended::MaxKey => MAX_KEY,
        });
        match self {
            Extended::ObjectId(id) => out.extend_from_slice(&id),
            Extended::Date(date) => out.extend_from_slice(&date.to_le_bytes()),
            Extended::Timestamp { seconds, increment } => {
                out.extend_from_slice(&seconds.to_le_bytes());
                out.extend_from_slice(&increment.to_le_bytes());
            }
            Extended::Decimal(decimal) => {
                let (power, digits) = match decimal.magnitude() {
                    Magnitude::Zero => (0, 0),
                    Magnitude::Finite { power, digits } => (power, digits),
                    Magnitude::Infinite => (i32::MAX, 0),
                };
                out.push(u8::from(decimal.is_negative()) + 2 * u8::from(decimal.is_nan()));
                out.extend_from_slice(&power.to_le_bytes());
                out.extend_from_slice(&digits.to_le_bytes());
            }
            Extended::Binary { subtype, bytes } => {
                out.push(subtype);
                out.extend_from_slice(bytes);
            }
            Extended::Regex { pattern, options } => {
                out.extend_from_slice(pattern.as_bytes());
                out.push(0);
                out.extend_from_slice(options.as_bytes());
            }
            Extended::Code(text) => out.extend_from_slice(text.as_bytes()),
            Extended::MinKey | Extended::MaxKey => {}
        }
    }
}

/// Owned value that JSON has no word for: a stored document that is one such value.
#[derive(Clone)]
pub struct ExtendedValue(Box<[u8]>);

impl ExtendedValue {
    pub fn get(&self) -> Extended<'_> {
        Raw::document(&self.0).ok().and_then(Raw::as_extended).expect("made from a value that was read")
    }

    /// Memory that it takes.
    pub fn size_bytes(&self) -> usize {
        self.0.len()
    }
}

impl From<Extended<'_>> for ExtendedValue {
    fn from(value: Extended<'_>) -> ExtendedValue {
        let mut writer = DocWriter::with_capacity(24);
        writer.extended(value);
        ExtendedValue(writer.finish().into_boxed_slice())
    }
}

impl std::fmt::Debug for ExtendedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
