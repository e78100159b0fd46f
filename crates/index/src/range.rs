//! Ranges of values as ranges of bytes: what an equality, a comparison, a prefix or a type test reads from an index.
//!
//! A range is `[start, end)` over encodings and over everything that begins with them. It never leaves a wanted value
//! out. Where its edges cut through entries that are inexact it holds a few too many, and they are inexact
//! themselves, so whoever asks the item about inexact entries gets exactly the range.

use orrery_model::{Kind, Value};

use crate::value::{
    ARRAY, BINARY, CODE, CUT, DATE, ESCAPE, FALSE, HASH_BYTES, MAX_KEY, MIN_KEY, NAN, NEGATIVE, NULL, OBJECT,
    OBJECT_ID, POSITIVE, REGEX, STRING, STRING_BYTES_MAX, TIMESTAMP, TRUE, UNDEFINED, encode_value,
    push_escaped,
};

/// The encodings from `start` on and before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// Every entry is the same encoding: rows then come in the order of their items.
    point: bool,
}

impl ValueRange {
    /// Everything but undefined.
    pub fn defined() -> ValueRange {
        ValueRange { start: vec![UNDEFINED + 1], end: vec![MAX_KEY + 1], point: false }
    }

    /// Undefined, null and everything else: all that composite keys hold.
    pub fn all() -> ValueRange {
        ValueRange { start: vec![UNDEFINED], end: vec![MAX_KEY + 1], point: false }
    }

    /// Whatever lies between two places of the order.
    pub fn of_bytes(start: Vec<u8>, end: Vec<u8>) -> ValueRange {
        ValueRange { start, end, point: false }
    }

    /// What may equal a value.
    pub fn equal(value: &Value) -> ValueRange {
        let start = encoded(value);
        ValueRange { end: prefix_end(&start), start, point: true }
    }

    /// Every value of a kind. Numbers and decimals lie in one range, in which each entry says which of the two it is.
    pub fn of_kind(kind: Kind) -> ValueRange {
        let (first, last) = match kind {
            Kind::Bool => (FALSE, TRUE),
            Kind::Number | Kind::Decimal => (NAN, POSITIVE),
            Kind::String => (STRING, STRING),
            Kind::Array => (ARRAY, ARRAY),
            Kind::Object => (OBJECT, OBJECT),
            Kind::MinKey => (MIN_KEY, MIN_KEY),
            Kind::Binary => (BINARY, BINARY),
            Kind::ObjectId => (OBJECT_ID, OBJECT_ID),
            Kind::Date => (DATE, DATE),
            Kind::Timestamp => (TIMESTAMP, TIMESTAMP),
            Kind::Regex => (REGEX, REGEX),
            Kind::Code => (CODE, CODE),
            Kind::MaxKey => (MAX_KEY, MAX_KEY),
            _ => (NULL, NULL),
        };
        let point = matches!(kind, Kind::Null | Kind::MinKey | Kind::MaxKey);
        ValueRange { start: vec![first], end: vec![last + 1], point }
    }

    /// Every string that starts with `prefix`.
    pub fn starts_with(prefix: &str) -> ValueRange {
        let kept = &prefix.as_bytes()[..prefix.len().min(STRING_BYTES_MAX)];
        let mut start = vec![STRING];
        push_escaped(&mut start, kept);
        if kept.len() < prefix.len() {
            start.extend_from_slice(&[ESCAPE, CUT]);
        }
        ValueRange { end: prefix_end(&start), start, point: false }
    }

    /// Nothing: what comparing with undefined finds.
    fn nothing() -> ValueRange {
        ValueRange { start: vec![UNDEFINED], end: vec![UNDEFINED], point: false }
    }

    /// What is above a value and of its kind. `inclusive` adds the value itself.
    pub fn above(value: &Value, inclusive: bool) -> ValueRange {
        let Some(kind) = value.kind().map(ValueRange::of_kind) else { return ValueRange::nothing() };
        let start = match edge(value) {
            Edge::Exact(encoded) if inclusive => encoded,
            Edge::Exact(encoded) => prefix_end(&encoded),
            Edge::Inexact(shared) => shared,
        };
        ValueRange { start, end: kind.end, point: false }
    }

    /// What is below a value and of its kind. No number is above NaN, though it comes first where numbers are sorted.
    pub fn below(value: &Value, inclusive: bool) -> ValueRange {
        let Some(kind) = value.kind().map(ValueRange::of_kind) else { return ValueRange::nothing() };
        let end = match edge(value) {
            Edge::Exact(encoded) if inclusive => prefix_end(&encoded),
            Edge::Exact(encoded) => encoded,
            Edge::Inexact(shared) => prefix_end(&shared),
        };
        let start = if matches!(value, Value::Number(_)) { vec![NEGATIVE] } else { kind.start };
        ValueRange { start, end, point: false }
    }

    /// What both ranges hold.
    pub fn and(&self, other: &ValueRange) -> ValueRange {
        let start = self.start.clone().max(other.start.clone());
        let end = self.end.clone().min(other.end.clone());
        let point = self.point || other.point;
        ValueRange { start, end, point }
    }

    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Whether all entries are one and the same encoding, so that rows come in the order of their items.
    pub fn is_point(&self) -> bool {
        self.point
    }

    /// Whether an encoded value, with or without more behind it, lies inside.
    pub fn contains(&self, encoded: &[u8]) -> bool {
        encoded >= &self.start[..] && encoded < &self.end[..]
    }
}

enum Edge {
    Exact(Vec<u8>),
    /// What the value's entry shares with all entries that it cannot be told apart from.
    Inexact(Vec<u8>),
}

fn edge(value: &Value) -> Edge {
    match value {
        Value::String(text) if text.len() > STRING_BYTES_MAX => {
            Edge::Inexact(ValueRange::starts_with(text).start)
        }
        // Entries of decimals are in order; those that are cut end in a hash.
        Value::Extended(extended) => {
            let mut encoded = encoded(value);
            if extended.get().kind() == Kind::Decimal || crate::is_exact(&encoded) {
                return Edge::Exact(encoded);
            }
            encoded.truncate(encoded.len() - HASH_BYTES);
            Edge::Inexact(encoded)
        }
        Value::Array(_) | Value::Object(_) => {
            let encoded = encoded(value);
            if crate::is_exact(&encoded) { Edge::Exact(encoded) } else { Edge::Inexact(encoded) }
        }
        _ => Edge::Exact(encoded(value)),
    }
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    encode_value(&mut out, value);
    out
}

/// The smallest byte string above everything that starts with `prefix`. A prefix of nothing but `FF` has none and gives
/// a string above every encoding.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    match prefix.iter().rposition(|byte| *byte != 0xFF) {
        None => vec![0xFF; prefix.len() + 1],
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        }
    }
}
