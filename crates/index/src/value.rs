//! One value as bytes.
//!
//! ```text
//! 10            undefined: only inside composite keys, plain paths have no entry for it
//! 14            min key
//! 18            null
//! 20 21         false, true
//! 28            NaN, which no JSON brings in
//! 29 2A         a negative number, any other number; then its groups, and those of a decimal (see `number`)
//! 30            string: its bytes with 00 written 01 01 and 01 written 01 02; then 00,
//!               or for a longer one its first STRING_BYTES_MAX bytes, 01 03, and a hash of the whole (4 bytes)
//! 38 00  38 01  array: empty, with content
//! 40 00  40 01  object: empty, with content
//! 48            binary: length (4 bytes), subtype, then the bytes,
//!               or for a longer one its first BINARY_BYTES_MAX bytes and a hash of the whole (4 bytes)
//! 50            object id: 12 bytes
//! 58            date: 8 bytes, the sign turned over
//! 60            timestamp: seconds (4 bytes), increment (4 bytes)
//! 68  70        regular expression: pattern, 00, options; code. Both as strings are
//! 78            max key
//! ```
//!
//! The type byte orders types as `orrery_model::Type` does. Byte order of strings is the order of their code points.
//! The escapes keep strings in order because both bytes that are escaped sort below every other, and because the end
//! (00) sorts below anything that may follow. A cut string sorts behind the string that is exactly its first part, and
//! among the strings that share that part in no particular order, which is why such entries count as inexact. So do
//! decimals: to most readers of a range of numbers they are none, and whether they are is for the item to say. Types
//! above 40, and the one at 14, are those that only other APIs than SQL write; they stand in MongoDB's order. Gaps are
//! left for further types.

use orrery_model::{Extended, Kind, Raw, Type, Value, murmur3_x86_32};

use crate::number;

/// Bytes of a string that are kept; longer ones are cut.
pub const STRING_BYTES_MAX: usize = 64;
/// Bytes of a binary that are kept.
const BINARY_BYTES_MAX: usize = 64;
/// Longest encoding of a value: a string of bytes that are all escaped, cut.
pub const ENTRY_BYTES_MAX: usize = 1 + 2 * STRING_BYTES_MAX + 2 + 4;

pub(crate) const UNDEFINED: u8 = 0x10;
pub(crate) const MIN_KEY: u8 = 0x14;
pub(crate) const NULL: u8 = 0x18;
pub(crate) const FALSE: u8 = 0x20;
pub(crate) const TRUE: u8 = 0x21;
pub(crate) const NAN: u8 = 0x28;
pub(crate) const NEGATIVE: u8 = 0x29;
pub(crate) const POSITIVE: u8 = 0x2A;
pub(crate) const STRING: u8 = 0x30;
pub(crate) const ARRAY: u8 = 0x38;
pub(crate) const OBJECT: u8 = 0x40;
pub(crate) const BINARY: u8 = 0x48;
pub(crate) const OBJECT_ID: u8 = 0x50;
pub(crate) const DATE: u8 = 0x58;
pub(crate) const TIMESTAMP: u8 = 0x60;
pub(crate) const REGEX: u8 = 0x68;
pub(crate) const CODE: u8 = 0x70;
pub(crate) const MAX_KEY: u8 = 0x78;

/// The first byte of the values of a type.
const fn type_byte(of: Type) -> u8 {
    match of {
        Type::Undefined => UNDEFINED,
        Type::MinKey => MIN_KEY,
        Type::Null => NULL,
        Type::Bool => FALSE,
        // Decimals are written as the numbers that they lie among.
        Type::Number | Type::Decimal => NAN,
        Type::String => STRING,
        Type::Array => ARRAY,
        Type::Object => OBJECT,
        Type::Binary => BINARY,
        Type::ObjectId => OBJECT_ID,
        Type::Date => DATE,
        Type::Timestamp => TIMESTAMP,
        Type::Regex => REGEX,
        Type::Code => CODE,
        Type::MaxKey => MAX_KEY,
    }
}

// Keys sort as values do, so a type that is put between others needs a byte between theirs, or this does not compile.
const _: () = {
    let mut n = 1;
    while n < Type::ALL.len() {
        let (before, after) = (Type::ALL[n - 1], Type::ALL[n]);
        let among_numbers = matches!(after, Type::Decimal);
        assert!(among_numbers || type_byte(before) < type_byte(after));
        n += 1;
    }
};

const END: u8 = 0;
pub(crate) const ESCAPE: u8 = 1;
const ESCAPED_ZERO: u8 = 1;
const ESCAPED_ONE: u8 = 2;
pub(crate) const CUT: u8 = 3;
pub(crate) const HASH_BYTES: usize = 4;
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
        Kind::Null => out.push(NULL),
        _ => match value.as_extended() {
            Some(value) => encode_extended(out, value),
            None => out.push(NULL),
        },
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
        Value::Extended(value) => encode_extended(out, value.get()),
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

/// Appends a value that JSON has no word for.
pub fn encode_extended(out: &mut Vec<u8>, value: Extended<'_>) {
    match value {
        Extended::Decimal(decimal) => {
            out.push(if number::is_turned(decimal) { NEGATIVE } else { POSITIVE });
            number::encode_decimal(out, decimal);
        }
        Extended::Binary { subtype, bytes } => {
            out.push(BINARY);
            // Lengths are 32 bits wide in every stored form.
            out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
            out.push(subtype);
            if bytes.len() <= BINARY_BYTES_MAX {
                out.extend_from_slice(bytes);
            } else {
                out.extend_from_slice(&bytes[..BINARY_BYTES_MAX]);
                out.extend_from_slice(&murmur3_x86_32(bytes).to_be_bytes());
            }
        }
        Extended::ObjectId(id) => {
            out.push(OBJECT_ID);
            out.extend_from_slice(&id);
        }
        Extended::Date(date) => {
            out.push(DATE);
            out.extend_from_slice(&(date ^ i64::MIN).to_be_bytes());
        }
        Extended::Timestamp { seconds, increment } => {
            out.push(TIMESTAMP);
            out.extend_from_slice(&seconds.to_be_bytes());
            out.extend_from_slice(&increment.to_be_bytes());
        }
        Extended::Regex { pattern, options } => {
            encode_text(out, REGEX, &[pattern.as_bytes(), &[0], options.as_bytes()].concat());
        }
        Extended::Code(text) => encode_text(out, CODE, text.as_bytes()),
        Extended::MinKey => out.push(MIN_KEY),
        Extended::MaxKey => out.push(MAX_KEY),
    }
}

#[inline]
fn encode_string(out: &mut Vec<u8>, text: &[u8]) {
    encode_text(out, STRING, text);
}

#[inline]
fn encode_text(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
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
        UNDEFINED | NULL | FALSE | TRUE | NAN | MIN_KEY | MAX_KEY => Some(1),
        NEGATIVE | POSITIVE => Some(1 + number::length(body, *kind == NEGATIVE)?),
        STRING => string_length(body).map(|(length, _)| 1 + length),
        ARRAY | OBJECT => (*body.first()? <= FILLED).then_some(2),
        OBJECT_ID => Some(1 + 12),
        DATE | TIMESTAMP => Some(1 + 8),
        REGEX | CODE => string_length(body).map(|(length, _)| 1 + length),
        BINARY => {
            let length = binary_length(body)?;
            let hash = if length > BINARY_BYTES_MAX { HASH_BYTES } else { 0 };
            Some(1 + BINARY_HEAD_BYTES + length.min(BINARY_BYTES_MAX) + hash)
        }
        _ => None,
    }
}

/// Length and subtype, before the bytes of a binary.
const BINARY_HEAD_BYTES: usize = 4 + 1;

/// Bytes of the whole binary.
fn binary_length(body: &[u8]) -> Option<usize> {
    body.first_chunk().map(|length| u32::from_be_bytes(*length) as usize)
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
/// compares values. When not, the item decides. Entries of decimals do compare as decimals, but whoever looks for
/// numbers finds them, too, and has to ask.
#[inline]
pub fn is_exact(encoded: &[u8]) -> bool {
    match encoded.split_first() {
        Some((&STRING, body)) => string_length(body).is_some_and(|(_, whole)| whole),
        Some((&(ARRAY | OBJECT), body)) => body == [EMPTY],
        Some((&(NEGATIVE | POSITIVE), body)) => !number::is_decimal(body),
        Some((&(REGEX | CODE), body)) => string_length(body).is_some_and(|(_, whole)| whole),
        Some((&BINARY, body)) => binary_length(body).is_some_and(|length| length <= BINARY_BYTES_MAX),
        _ => true,
    }
}

/// The kind of an encoded value; `None` for undefined and for what is no encoding.
pub fn kind_of(encoded: &[u8]) -> Option<Kind> {
    let (kind, body) = encoded.split_first()?;
    Some(match *kind {
        NULL => Kind::Null,
        FALSE | TRUE => Kind::Bool,
        NEGATIVE | POSITIVE if number::is_decimal(body) => Kind::Decimal,
        NAN..=POSITIVE => Kind::Number,
        STRING => Kind::String,
        ARRAY => Kind::Array,
        OBJECT => Kind::Object,
        MIN_KEY => Kind::MinKey,
        BINARY => Kind::Binary,
        OBJECT_ID => Kind::ObjectId,
        DATE => Kind::Date,
        TIMESTAMP => Kind::Timestamp,
        REGEX => Kind::Regex,
        CODE => Kind::Code,
        MAX_KEY => Kind::MaxKey,
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
        kind => return decode_extended(kind, body),
    })
}

fn decode_extended(kind: u8, body: &[u8]) -> Option<Value> {
    let value = match kind {
        MIN_KEY => Extended::MinKey,
        MAX_KEY => Extended::MaxKey,
        OBJECT_ID => Extended::ObjectId(body.try_into().ok()?),
        DATE => Extended::Date(i64::from_be_bytes(body.try_into().ok()?) ^ i64::MIN),
        TIMESTAMP => {
            let bits = u64::from_be_bytes(body.try_into().ok()?);
            Extended::Timestamp { seconds: (bits >> 32) as u32, increment: bits as u32 }
        }
        BINARY => {
            let (&subtype, bytes) = body.get(BINARY_HEAD_BYTES - 1..)?.split_first()?;
            let whole = bytes.len() <= BINARY_BYTES_MAX && binary_length(body)? == bytes.len();
            whole.then_some(Extended::Binary { subtype, bytes })?
        }
        REGEX => {
            let text = decode_string(body)?;
            let (pattern, options) = text.split_once('\0')?;
            return (!options.contains('\0')).then(|| Extended::Regex { pattern, options }.into());
        }
        CODE => return decode_string(body).map(|text| Extended::Code(&text).into()),
        _ => return None,
    };
    Some(value.into())
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
