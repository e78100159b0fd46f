//! Reading a stored document in place.
//!
//! A [`Raw`] is a tag and the bytes of its body. Getting a property compares one-byte hashes, then the key, and hands
//! out the child as another `Raw`; nothing is decoded ahead and nothing is allocated. Elements of packed float arrays
//! have no tag of their own in the bytes; the reader supplies it.
//!
//! Damaged bytes never panic and never cost more than linear work: a child sees only the bytes up to the next slot,
//! iterators stop at the first slot that does not rise, recursive readers stop at [`READ_DEPTH_MAX`]. What cannot be
//! read appears as null or absent; [`Raw::verify`] tells such a document from a sound one.

use super::format::*;
use super::table::{Elements, Entries, Floats, Members, Table};
use crate::decimal128::Decimal128;
use crate::extended::Extended;
use crate::number::{Number, NumberStyle};
use crate::path::PropertyPath;
use crate::value::Value;

/// The JSON kinds, and those that only other APIs than SQL write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
    ObjectId,
    Date,
    Timestamp,
    Decimal,
    Binary,
    Regex,
    Code,
    MinKey,
    MaxKey,
}

impl Kind {
    /// Whether values of this kind are [`Extended`]: JSON has no word for them.
    #[inline]
    pub fn is_extended(self) -> bool {
        !matches!(self, Kind::Null | Kind::Bool | Kind::Number | Kind::String | Kind::Array | Kind::Object)
    }
}

/// How wide a number is, for APIs that keep widths apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberWidth {
    Int32,
    Int64,
    /// An integer above `i64::MAX`, which only JSON brings in.
    UInt64,
    Double,
}

/// The bytes are not a document of a format that this program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stored bytes are not a readable document")]
pub struct CorruptDocument;

/// Borrowed value inside a stored document.
#[derive(Clone, Copy)]
pub struct Raw<'a> {
    pub(super) tag: u8,
    pub(super) body: &'a [u8],
}

impl<'a> Raw<'a> {
    /// The root value of a stored document. Checks the format byte, the flags and the root's tag and size.
    #[inline]
    pub fn document(bytes: &'a [u8]) -> Result<Raw<'a>, CorruptDocument> {
        match bytes {
            [FORMAT, FLAGS, value @ ..] => {
                let root = Raw::at_tag(value).ok_or(CorruptDocument)?;
                if root.is_container() && Table::of(root).is_none() && Floats::of(root).is_none() {
                    return Err(CorruptDocument);
                }
                Ok(root)
            }
            _ => Err(CorruptDocument),
        }
    }

    /// The null value, for callers that need a `Raw` where there is none.
    pub const NULL: Raw<'static> = Raw { tag: NULL, body: &[] };

    /// A value whose tag is the first of `bytes`; the rest is its body, with or without something behind it.
    #[inline]
    pub(crate) fn at_tag(bytes: &'a [u8]) -> Option<Raw<'a>> {
        let (&tag, body) = bytes.split_first()?;
        Some(Raw { tag, body })
    }

    #[inline]
    fn is_container(self) -> bool {
        (OBJECT16..=FLOATS32).contains(&self.tag)
    }

    #[inline]
    pub fn kind(self) -> Kind {
        match self.tag {
            FALSE | TRUE => Kind::Bool,
            INT8..=FLOAT32 | SMALL_INT..SHORT_STRING => Kind::Number,
            STRING16..=ESCAPED32 | SHORT_STRING.. => Kind::String,
            OBJECT16 | OBJECT32 => Kind::Object,
            ARRAY16..=FLOATS32 => Kind::Array,
            NULL => Kind::Null,
            tag => kind_of_other_apis(tag),
        }
    }

    #[inline]
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    #[inline]
    pub fn as_bool(self) -> Option<bool> {
        match self.tag {
            FALSE => Some(false),
            TRUE => Some(true),
            _ => None,
        }
    }

    #[inline]
    pub fn as_number(self) -> Option<Number> {
        Some(match self.tag {
            SMALL_INT..SHORT_STRING => Number::Int(i64::from(self.tag - SMALL_INT)),
            INT8 => Number::Int(i64::from(i8::from_le_bytes(*self.body.first_chunk()?))),
            INT16 => Number::Int(i64::from(i16::from_le_bytes(*self.body.first_chunk()?))),
            INT32 => Number::Int(i64::from(i32::from_le_bytes(*self.body.first_chunk()?))),
            INT64 => Number::Int(i64::from_le_bytes(*self.body.first_chunk()?)),
            UINT64 => Number::from_u64(u64::from_le_bytes(*self.body.first_chunk()?)),
            FLOAT64 => Number::Double(f64::from_le_bytes(*self.body.first_chunk()?)),
            FLOAT32 => Number::Double(f64::from(f32::from_le_bytes(*self.body.first_chunk()?))),
            _ => Number::Int(self.as_long()?),
        })
    }

    /// An integer that says that it is 64 bits wide although fewer would do. Apart, so that the others are read no
    /// slower.
    #[cold]
    #[inline(never)]
    fn as_long(self) -> Option<i64> {
        Some(match self.tag {
            LONG8 => i8::from_le_bytes(*self.body.first_chunk()?).into(),
            LONG16 => i16::from_le_bytes(*self.body.first_chunk()?).into(),
            LONG32 => i32::from_le_bytes(*self.body.first_chunk()?).into(),
            _ => return None,
        })
    }

    /// How wide a number is; `None` for everything else. What JSON brought in is as narrow as it can be.
    pub fn number_width(self) -> Option<NumberWidth> {
        Some(match self.tag {
            SMALL_INT..SHORT_STRING | INT8..=INT32 => NumberWidth::Int32,
            INT64 | LONG8..=LONG32 => NumberWidth::Int64,
            UINT64 => NumberWidth::UInt64,
            FLOAT64 | FLOAT32 => NumberWidth::Double,
            _ => return None,
        })
    }

    /// Whether an integer says that it is 64 bits wide although fewer would do.
    #[inline]
    pub(super) fn is_long(self) -> bool {
        matches!(self.tag, LONG8..=LONG32)
    }

    /// A value that JSON has no word for. `None` for all others, and where the bytes are damaged.
    pub fn as_extended(self) -> Option<Extended<'a>> {
        self.split_extended().map(|(value, _)| value)
    }

    /// An extended value and the bytes behind it.
    fn split_extended(self) -> Option<(Extended<'a>, &'a [u8])> {
        let body = self.body;
        Some(match self.tag {
            OBJECT_ID => body.split_first_chunk().map(|(id, rest)| (Extended::ObjectId(*id), rest))?,
            DATE => body
                .split_first_chunk()
                .map(|(date, rest)| (Extended::Date(i64::from_le_bytes(*date)), rest))?,
            TIMESTAMP => {
                let (bits, rest) = body.split_first_chunk()?;
                let bits = u64::from_le_bytes(*bits);
                (Extended::Timestamp { seconds: (bits >> 32) as u32, increment: bits as u32 }, rest)
            }
            DECIMAL => body
                .split_first_chunk()
                .map(|(bits, rest)| (Extended::Decimal(Decimal128::from_le_bytes(*bits)), rest))?,
            BINARY => {
                let (length, rest) = read_varint(body)?;
                let (&subtype, rest) = rest.split_first()?;
                let (bytes, rest) = rest.split_at_checked(length as usize)?;
                (Extended::Binary { subtype, bytes }, rest)
            }
            REGEX => {
                let (pattern, rest) = split_text(body)?;
                let (options, rest) = split_text(rest)?;
                if pattern.contains('\0') || options.contains('\0') {
                    return None;
                }
                (Extended::Regex { pattern, options }, rest)
            }
            CODE => split_text(body).map(|(text, rest)| (Extended::Code(text), rest))?,
            MIN_KEY => (Extended::MinKey, body),
            MAX_KEY => (Extended::MaxKey, body),
            _ => return None,
        })
    }

    #[inline]
    pub fn as_str(self) -> Option<&'a str> {
        std::str::from_utf8(self.string_bytes()?).ok()
    }

    /// The bytes of a string without the check that they are UTF-8: enough to compare and to copy.
    #[inline]
    pub fn string_bytes(self) -> Option<&'a [u8]> {
        match self.tag {
            SHORT_STRING.. => self.body.get(..usize::from(self.tag - SHORT_STRING)),
            STRING16 | ESCAPED16 => {
                let (length, rest) = self.body.split_first_chunk()?;
                rest.get(..usize::from(u16::from_le_bytes(*length)))
            }
            STRING32 | ESCAPED32 => {
                let (length, rest) = self.body.split_first_chunk()?;
                rest.get(..u32::from_le_bytes(*length) as usize)
            }
            _ => None,
        }
    }

    /// Whether a string can be printed between quotes as it is.
    #[inline]
    pub(crate) fn is_clean_string(self) -> bool {
        matches!(self.tag, STRING16 | STRING32 | SHORT_STRING..)
    }

    /// Number of members or elements; 0 for scalars.
    #[inline]
    pub fn len(self) -> usize {
        match self.tag {
            OBJECT16..=ARRAY32 => Table::of(self).map_or(0, |table| table.count),
            FLOATS64 | FLOATS32 => Floats::of(self).map_or(0, |floats| floats.count()),
            _ => 0,
        }
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// A member of an object. `None` when this is no object or has no such member.
    #[inline]
    pub fn get(self, key: &str) -> Option<Raw<'a>> {
        match self.tag {
            OBJECT16 | OBJECT32 => Table::of(self)?.find(key.as_bytes()),
            _ => None,
        }
    }

    /// An element of an array. `None` when this is no array or the index lies outside.
    #[inline]
    pub fn at(self, index: usize) -> Option<Raw<'a>> {
        match self.tag {
            ARRAY16 | ARRAY32 => {
                let table = Table::of(self)?;
                if index >= table.count { None } else { Raw::at_tag(table.window(index)?) }
            }
            FLOATS64 | FLOATS32 => Floats::of(self)?.at(index),
            _ => None,
        }
    }

    /// Members in the order of insertion; none when this is no object.
    #[inline]
    pub fn members(self) -> Members<'a> {
        Members::of(self)
    }

    /// Elements of an array; none when this is no array.
    #[inline]
    pub fn elements(self) -> Elements<'a> {
        Elements::of(self)
    }

    /// The value at a path of property names.
    #[inline]
    pub fn path(self, path: &PropertyPath) -> Option<Raw<'a>> {
        path.segments().iter().try_fold(self, |value, segment| value.get(segment))
    }

    /// A decoded copy.
    pub fn to_value(self) -> Value {
        Value::from_raw(self, 0)
    }

    /// Appends the value as JSON text.
    pub fn write_json(self, out: &mut Vec<u8>, style: NumberStyle) {
        crate::json::text::write_raw(self, out, style, 0);
    }

    /// Appends the members of `range` as `"a":1,"b":2`, without braces and without commas around them, so that
    /// callers can write members of their own before, between and behind.
    pub fn write_json_members(self, range: std::ops::Range<usize>, out: &mut Vec<u8>, style: NumberStyle) {
        crate::json::text::write_members(self, range, out, style, 0);
    }

    /// Walks the whole value: every tag known, every size, hash and slot sound, every string UTF-8, nesting within
    /// bounds.
    pub fn verify(self) -> Result<(), CorruptDocument> {
        self.verify_within(0)
    }

    fn verify_within(self, depth: usize) -> Result<(), CorruptDocument> {
        if depth > READ_DEPTH_MAX {
            return Err(CorruptDocument);
        }
        let (seen, expected) = match self.tag {
            NULL | FALSE | TRUE => return Ok(()),
            INT8..=FLOAT32 | SMALL_INT..SHORT_STRING | LONG8..=LONG32 => {
                return self.as_number().map(|_| ()).ok_or(CorruptDocument);
            }
            STRING16..=ESCAPED32 | SHORT_STRING.. => {
                return self.as_str().map(|_| ()).ok_or(CorruptDocument);
            }
            FLOATS64 | FLOATS32 => return Floats::of(self).map(|_| ()).ok_or(CorruptDocument),
            OBJECT_ID..=MAX_KEY => return self.as_extended().map(|_| ()).ok_or(CorruptDocument),
            OBJECT16 | OBJECT32 => {
                let table = Table::of(self).ok_or(CorruptDocument)?;
                let mut seen = 0;
                for (key, value) in self.members() {
                    if table.hashes.get(seen) != Some(&key_hash(key.as_bytes())) {
                        return Err(CorruptDocument);
                    }
                    value.verify_within(depth + 1)?;
                    seen += 1;
                }
                (seen, table.count)
            }
            ARRAY16 | ARRAY32 => {
                let mut seen = 0;
                for value in self.elements() {
                    value.verify_within(depth + 1)?;
                    seen += 1;
                }
                (seen, Table::of(self).ok_or(CorruptDocument)?.count)
            }
            _ => return Err(CorruptDocument),
        };
        if seen == expected { Ok(()) } else { Err(CorruptDocument) }
    }

    /// The exact bytes of the value, tag first, to be copied into another document.
    pub(crate) fn copy_into(self, out: &mut Vec<u8>) {
        let length = match self.tag {
            INT8 => Some(1),
            INT16 => Some(2),
            INT32 | FLOAT32 => Some(4),
            INT64 | UINT64 | FLOAT64 => Some(8),
            STRING16 | ESCAPED16 => self.string_bytes().map(|s| s.len() + 2),
            STRING32 | ESCAPED32 => self.string_bytes().map(|s| s.len() + 4),
            SHORT_STRING.. => self.string_bytes().map(<[u8]>::len),
            OBJECT16..=ARRAY32 => Table::of(self).map(|table| table.body.len()),
            FLOATS64 | FLOATS32 => Floats::of(self).map(|floats| floats.bytes.len() + 4),
            LONG8 => Some(1),
            LONG16 => Some(2),
            LONG32 => Some(4),
            OBJECT_ID..=MAX_KEY => self.split_extended().map(|(_, rest)| self.body.len() - rest.len()),
            _ => Some(0),
        };
        match length.and_then(|length| self.body.get(..length)) {
            Some(body) if self.kind() != Kind::Null => {
                out.push(self.tag);
                out.extend_from_slice(body);
            }
            _ => out.push(NULL),
        }
    }

    /// Whether two values are the same bytes, which makes them equal unless a NaN is inside.
    #[inline]
    pub fn same_bytes(self, other: Raw<'_>) -> bool {
        self.tag == other.tag && self.body == other.body
    }

    /// Members as bytes, without a check of the keys.
    #[inline]
    pub(crate) fn entries(self) -> Entries<'a> {
        Entries::of(self)
    }
}

/// The kind of a tag that SQL does not write; null for those that nobody does. Apart, so that the others are told no
/// slower.
#[cold]
fn kind_of_other_apis(tag: u8) -> Kind {
    let kind = tag.checked_sub(LONG8).and_then(|place| EXTENDED_KINDS.get(usize::from(place)));
    kind.copied().unwrap_or(Kind::Null)
}

/// The kinds of the tags from 20 to 2B.
const EXTENDED_KINDS: [Kind; (MAX_KEY - LONG8 + 1) as usize] = [
    Kind::Number,
    Kind::Number,
    Kind::Number,
    Kind::ObjectId,
    Kind::Date,
    Kind::Timestamp,
    Kind::Decimal,
    Kind::Binary,
    Kind::Regex,
    Kind::Code,
    Kind::MinKey,
    Kind::MaxKey,
];

/// A text behind its length, and what follows it.
fn split_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = read_varint(bytes)?;
    let (text, rest) = rest.split_at_checked(length as usize)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

impl std::fmt::Debug for Raw<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = Vec::new();
        self.write_json(&mut text, NumberStyle::Query);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}
