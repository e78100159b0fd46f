//! To BSON bytes.

use orrery_model::{Extended, Raw};

use super::tag;
use crate::value::Bson;
use crate::value_ref::{NumberRef, ValueRef};

/// Appends a document as BSON.
pub fn write_document(document: ValueRef<'_>, out: &mut Vec<u8>) {
    let start = begin(out);
    match document {
        ValueRef::Owned(Bson::Document(document)) | ValueRef::OwnedDocument(document) => {
            for (name, value) in document.iter() {
                write_element(name, ValueRef::Owned(value), out);
            }
        }
        _ => document.members().for_each(|(name, value)| write_element(name, value, out)),
    }
    end(start, out);
}

/// Appends one member of a document: its tag, its name, its value.
pub fn write_element(name: &str, value: ValueRef<'_>, out: &mut Vec<u8>) {
    write_element_with(name, out, |out| Some(write_value(value, out)));
}

/// A member whose value is appended by `write`, which gives its tag or leaves the member out.
pub(crate) fn write_element_with(
    name: &str,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Option<u8>,
) {
    let tag_at = out.len();
    out.push(0);
    write_name(name, out);
    match write(out) {
        Some(tag) => out[tag_at] = tag,
        None => out.truncate(tag_at),
    }
}

/// Begins a document or an array; gives what [`end`] is to be told.
pub(crate) fn begin(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0; 4]);
    out.len() - 4
}

pub(crate) fn end(start: usize, out: &mut Vec<u8>) {
    out.push(0);
    let size = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&size.to_le_bytes());
}

/// A name ends at its first NUL: BSON has no way to spell one inside.
pub fn before_nul(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(before_nul(name).as_bytes());
    out.push(0);
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// Appends a value and returns its tag.
pub(crate) fn write_value(value: ValueRef<'_>, out: &mut Vec<u8>) -> u8 {
    match value {
        ValueRef::Owned(value) => write_owned(value, out),
        ValueRef::OwnedDocument(_) | ValueRef::Item(_) => {
            write_document(value, out);
            tag::DOCUMENT
        }
        ValueRef::Stored(raw) => write_raw(raw, out),
    }
}

fn write_owned(value: &Bson, out: &mut Vec<u8>) -> u8 {
    match value {
        Bson::Double(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            tag::DOUBLE
        }
        Bson::String(text) => {
            write_text(text, out);
            tag::STRING
        }
        Bson::Document(document) => {
            write_document(ValueRef::OwnedDocument(document), out);
            tag::DOCUMENT
        }
        Bson::Array(elements) => {
            write_array(elements.iter().map(ValueRef::Owned), out);
            tag::ARRAY
        }
        Bson::Undefined => tag::UNDEFINED,
        Bson::Bool(value) => {
            out.push(u8::from(*value));
            tag::BOOL
        }
        Bson::Null => tag::NULL,
        Bson::DbPointer(pointer) => {
            write_text(&pointer.0, out);
            out.extend_from_slice(&pointer.1);
            tag::DB_POINTER
        }
        Bson::Symbol(text) => {
            write_text(text, out);
            tag::SYMBOL
        }
        Bson::CodeWithScope(code) => {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            write_text(&code.0, out);
            write_document(ValueRef::OwnedDocument(&code.1), out);
            let size = (out.len() - start) as u32;
            out[start..start + 4].copy_from_slice(&size.to_le_bytes());
            tag::CODE_WITH_SCOPE
        }
        Bson::Int32(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            tag::INT32
        }
        Bson::Int64(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            tag::INT64
        }
        _ => match ValueRef::Owned(value).as_extended() {
            Some(value) => write_extended(value, out),
            None => tag::NULL,
        },
    }
}

fn write_raw(raw: Raw<'_>, out: &mut Vec<u8>) -> u8 {
    match raw.kind() {
        orrery_model::Kind::Null => tag::NULL,
        orrery_model::Kind::Bool => {
            out.push(u8::from(raw.as_bool().unwrap_or_default()));
            tag::BOOL
        }
        orrery_model::Kind::Number => match ValueRef::Stored(raw).as_number() {
            Some(NumberRef::Int32(value)) => {
                out.extend_from_slice(&value.to_le_bytes());
                tag::INT32
            }
            Some(NumberRef::Int64(value)) => {
                out.extend_from_slice(&value.to_le_bytes());
                tag::INT64
            }
            Some(NumberRef::Double(value)) => {
                out.extend_from_slice(&value.to_le_bytes());
                tag::DOUBLE
            }
            _ => tag::NULL,
        },
        orrery_model::Kind::String => {
            write_text(raw.as_str().unwrap_or_default(), out);
            tag::STRING
        }
        orrery_model::Kind::Array => {
            write_array(raw.elements().map(ValueRef::Stored), out);
            tag::ARRAY
        }
        orrery_model::Kind::Object => {
            let start = begin(out);
            for (name, value) in raw.members() {
                write_element(name, ValueRef::Stored(value), out);
            }
            end(start, out);
            tag::DOCUMENT
        }
        _ => match raw.as_extended() {
            Some(value) => write_extended(value, out),
            None => tag::NULL,
        },
    }
}

pub(crate) fn write_array<'a>(elements: impl Iterator<Item = ValueRef<'a>>, out: &mut Vec<u8>) {
    write_array_with(elements, out, |element, out| Some(write_value(element, out)));
}

/// An array of what is made of elements: `write` appends a value and gives its tag, or leaves the element out.
pub(crate) fn write_array_with<'a>(
    elements: impl Iterator<Item = ValueRef<'a>>,
    out: &mut Vec<u8>,
    write: impl Fn(ValueRef<'a>, &mut Vec<u8>) -> Option<u8>,
) {
    let start = begin(out);
    let mut name = Counter::default();
    for element in elements {
        let tag_at = out.len();
        out.push(0);
        out.extend_from_slice(name.digits());
        out.push(0);
        match write(element, out) {
            Some(tag) => {
                out[tag_at] = tag;
                name.increment();
            }
            None => out.truncate(tag_at),
        }
    }
    end(start, out);
}

/// The names of an array's elements, counted in decimal digits.
struct Counter {
    digits: [u8; 10],
    first: usize,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter { digits: [b'0'; 10], first: 9 }
    }
}

impl Counter {
    fn digits(&self) -> &[u8] {
        &self.digits[self.first..]
    }

    fn increment(&mut self) {
        for at in (0..self.digits.len()).rev() {
            if self.digits[at] < b'9' {
                self.digits[at] += 1;
                self.first = self.first.min(at);
                return;
            }
            self.digits[at] = b'0';
        }
    }
}

fn write_extended(value: Extended<'_>, out: &mut Vec<u8>) -> u8 {
    match value {
        Extended::ObjectId(id) => {
            out.extend_from_slice(&id);
            tag::OBJECT_ID
        }
        Extended::Date(date) => {
            out.extend_from_slice(&date.to_le_bytes());
            tag::DATE
        }
        Extended::Timestamp { seconds, increment } => {
            out.extend_from_slice(&increment.to_le_bytes());
            out.extend_from_slice(&seconds.to_le_bytes());
            tag::TIMESTAMP
        }
        Extended::Decimal(value) => {
            out.extend_from_slice(&value.to_le_bytes());
            tag::DECIMAL
        }
        Extended::Binary { subtype, bytes } => {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.push(subtype);
            out.extend_from_slice(bytes);
            tag::BINARY
        }
        Extended::Regex { pattern, options } => {
            write_name(pattern, out);
            write_name(options, out);
            tag::REGEX
        }
        Extended::Code(text) => {
            write_text(text, out);
            tag::CODE
        }
        Extended::MinKey => tag::MIN_KEY,
        Extended::MaxKey => tag::MAX_KEY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_elements_count_up() {
        let mut counter = Counter::default();
        for number in 0..1200 {
            assert_eq!(counter.digits(), number.to_string().as_bytes());
            counter.increment();
        }
    }
}
