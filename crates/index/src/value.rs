//! One value as bytes.
//!
//! ```text
//! 10            undefined: only inside composite keys, plain paths have no entry for it
//! 18            null
//! 20 21         false, true
//! 28            NaN, which no JSON brings in
//! 29 2A         a negative number, any other number; then its groups (see `number`)
//! 30            string: its bytes with 00 written 01 01 and 01 written 01 02; then 00,
//!               or for a longer one its first STRING_BYTES_MAX bytes, 01 03, and a hash of the whole (4 bytes)
//! 38 00  38 01  array: empty, with content
//! 40 00  40 01  object: empty, with content
//! ```
//!
//! The type byte orders types as the language does. Byte order of strings is the order of their code points. The
//! escapes keep strings in order because both bytes that are escaped sort below every other, and because the end (00)
//! sorts below anything that may follow. A cut string sorts behind the string that is exactly its first part, and
//! among the strings that share that part in no particular order, which is why such entries count as inexact. Gaps
//! are left for further types.

use orrery_model::{Kind, Raw, Value, murmur3_x86_32};

use crate::number;

/// Bytes of a string that are kept; longer ones are cut.
pub const STRING_BYTES_MAX: usize = 64;
/// Longest encoding of a value: a string of bytes that are all escaped, cut.
pub const ENTRY_BYTES_MAX: usize = 1 + 2 * STRING_BYTES_MAX + 2 + 4;

pub(crate) const UNDEFINED: u8 = 0x10;
pub(crate) const NULL: u8 = 0x18;
pub(crate) const FALSE: u8 = 0x20;
pub(crate) const TRUE: u8 = 0x21;
pub(crate) const NAN: u8 = 0x28;
pub(crate) const NEGATIVE: u8 = 0x29;
pub(crate) const POSITIVE: u8 = 0x2A;
pub(crate) const STRING: u8 = 0x30;
pub(crate) const ARRAY: u8 = 0x38;
pub(crate) const OBJECT: u8 = 0x40;

const END: u8 = 0;
pub(crate) const ESCAPE: u8 = 1;
const ESCAPED_ZERO: u8 = 1;
const ESCAPED_ONE: u8 = 2;
pub(crate) const CUT: u8 = 3;
const HASH_BYTES: usize = 4;
const EMPTY: u8 = 0;
const FILLED: u8 = 1;

/// Appends a stored value.
#[inline]
pub fn encode_raw(out: &mut Vec<u8>, value: Raw<'_>) {
    match value.kind() {
        Kind::Bool => out.push(if value.as_bool() == Some(true) { TRUE } else { FALSE }),
        Kind::Number => match value.as_number() {
            Some(number) => encode_number(out, number),
            None => out.push(NULL),
        },
        Kind::String => encode_string(out, value.string_bytes().unwrap_or_default()),
        Kind::Array => out.extend_from_slice(&[ARRAY, if value.is_empty() { EMPTY } else { FILLED }]),
        Kind::Object => out.extend_from_slice(&[OBJECT, if value.is_empty() { EMPTY } else { FILLED }]),
        _ => out.push(NULL),
    }
}

/// Appends an owned value.
pub fn encode_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Undefined => out.push(UNDEFINED),
        Value::Null => out.push(NULL),
        Value::Bool(value) => out.push(if *value { TRUE } else { FALSE }),
        Value::Number(number) => encode_number(out, *number),
        Value::String(text) => encode_string(out, text.as_bytes()),
        Value::Array(elements) => {
            // Undefined elements are not there, as in the stored form.
            let filled = elements.iter().any(|element| !element.is_undefined());
            out.extend_from_slice(&[ARRAY, u8::from(filled)]);
        }
        Value::Object(members) => {
            let filled = members.iter().any(|(_, member)| !member.is_undefined());
            out.extend_from_slice(&[OBJECT, u8::from(filled)]);
        }
    }
}

/// Appends what stands for a missing value in a composite key.
pub fn encode_undefined(out: &mut Vec<u8>) {
    out.push(UNDEFINED);
}

fn encode_number(out: &mut Vec<u8>, value: orrery_model::Number) {
    let double = value.as_f64();
    if double.is_nan() {
        return out.push(NAN);
    }
    out.push(if double < 0.0 { NEGATIVE } else { POSITIVE });
    number::encode(out, value);
}

#[inline]
fn encode_string(out: &mut Vec<u8>, text: &[u8]) {
    out.push(STRING);
    if text.len() <= STRING_BYTES_MAX {
        push_escaped(out, text);
        out.push(END);
    } else {
        push_escaped(out, &text[..STRING_BYTES_MAX]);
        out.extend_from_slice(&[ESCAPE, CUT]);
        out.extend_from_slice(&murmur3_x86_32(text).to_be_bytes());
    }
}

#[inline]
pub(crate) fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    // Control characters this low are rare: runs between them are copied whole.
    while let Some(at) = first_to_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[ESCAPE, if rest[at] == 0 { ESCAPED_ZERO } else { ESCAPED_ONE }]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// Where the first byte is that stands for something else, looked for eight bytes at a time.
#[inline]
fn first_to_escape(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let is_escaped = |byte: &u8| *byte <= ESCAPE;
    let (words, tail) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        // A byte below two, less two, has the high bit that it had not; so may bytes behind it, which does not matter.
        let number = u64::from_le_bytes(*word);
        if number.wrapping_sub(ONES * (u64::from(ESCAPE) + 1)) & !number & HIGHS != 0 {
            return word.iter().position(is_escaped).map(|inside| at * 8 + inside);
        }
    }
    tail.iter().position(is_escaped).map(|inside| words.len() * 8 + inside)
}

/// Splits an encoded value off the front; `None` when the bytes do not start with one.
#[inline]
pub fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(length(bytes)?)
}

#[inline]
fn length(bytes: &[u8]) -> Option<usize> {
    let (kind, body) = bytes.split_first()?;
    match *kind {
        UNDEFINED | NULL | FALSE | TRUE | NAN => Some(1),
        NEGATIVE | POSITIVE => Some(1 + number::length(body, *kind == NEGATIVE)?),
        STRING => string_length(body).map(|(length, _)| 1 + length),
        ARRAY | OBJECT => (*body.first()? <= FILLED).then_some(2),
        _ => None,
    }
}

/// Bytes of a string's body with its end, and whether it is whole.
#[inline]
fn string_length(body: &[u8]) -> Option<(usize, bool)> {
    let mut at = 0;
    loop {
        at += body.get(at..)?.iter().position(|byte| *byte <= ESCAPE)?;
        if body[at] == END {
            return Some((at + 1, true));
        }
        match *body.get(at + 1)? {
            ESCAPED_ZERO | ESCAPED_ONE => at += 2,
            CUT => return Some((at + 2 + HASH_BYTES, false)),
            _ => return None,
        }
    }
}

/// Whether an encoded value says all there is to say: equal entries are then equal values, and comparing entries
/// compares values. When not, the item decides.
#[inline]
pub fn is_exact(encoded: &[u8]) -> bool {
    match encoded.split_first() {
        Some((&STRING, body)) => string_length(body).is_some_and(|(_, whole)| whole),
        Some((&(ARRAY | OBJECT), body)) => body == [EMPTY],
        _ => true,
    }
}

/// The kind of an encoded value; `None` for undefined and for what is no encoding.
pub fn kind_of(encoded: &[u8]) -> Option<Kind> {
    Some(match *encoded.first()? {
        NULL => Kind::Null,
        FALSE | TRUE => Kind::Bool,
        NAN..=POSITIVE => Kind::Number,
        STRING => Kind::String,
        ARRAY => Kind::Array,
        OBJECT => Kind::Object,
        _ => return None,
    })
}

/// The value of an entry, where the entry alone tells it: not for inexact entries, nor for whole numbers from 10^15 on,
/// which items print according to how they were written. Damaged bytes give `None` too.
pub fn decode(encoded: &[u8]) -> Option<Value> {
    let (kind, body) = encoded.split_first()?;
    Some(match *kind {
        UNDEFINED => Value::Undefined,
        NULL => Value::Null,
        FALSE => Value::Bool(false),
        TRUE => Value::Bool(true),
        NAN => Value::Number(orrery_model::Number::Double(f64::NAN)),
        NEGATIVE | POSITIVE => Value::Number(number::decode(body, *kind == NEGATIVE)?),
        STRING => Value::String(decode_string(body)?),
        ARRAY if body == [EMPTY] => Value::Array(Vec::new()),
        OBJECT if body == [EMPTY] => Value::Object(Vec::new()),
        _ => return None,
    })
}

fn decode_string(body: &[u8]) -> Option<String> {
    let (length, true) = string_length(body)? else { return None };
    let mut text = Vec::with_capacity(length);
    let mut rest = &body[..length - 1];
    while let Some(at) = rest.iter().position(|byte| *byte == ESCAPE) {
        text.extend_from_slice(&rest[..at]);
        text.push(if *rest.get(at + 1)? == ESCAPED_ZERO { 0 } else { ESCAPE });
        rest = &rest[at + 2..];
    }
    text.extend_from_slice(rest);
    String::from_utf8(text).ok()
}
