//! Printing values as JSON text, without spaces and in member order.
//!
//! Stored strings know whether they hold characters to escape, so most are copied without a look at their bytes.

use super::decimal::{write_double, write_unsigned};
use super::extended::write_extended;
use super::scan::{is_special, plain_prefix};
use crate::document::format::READ_DEPTH_MAX;
use crate::document::raw::{Kind, Raw};
use crate::document::table::Entry;
use crate::number::{Number, NumberStyle};
use crate::value::Value;

/// Appends a string with its quotes, escaping what JSON demands and nothing else.
pub fn write_json_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape(out, text.as_bytes());
    out.push(b'"');
}

/// Appends a number.
#[inline]
pub fn write_json_number(out: &mut Vec<u8>, number: Number, style: NumberStyle) {
    match number {
        Number::Int(value) => {
            if value < 0 {
                out.push(b'-');
            }
            write_unsigned(out, value.unsigned_abs());
        }
        Number::UInt(value) => write_unsigned(out, value),
        Number::Double(value) => write_double(out, value, style),
    }
}

pub(crate) fn needs_escape(text: &[u8]) -> bool {
    plain_prefix(text) < text.len()
}

fn escape(out: &mut Vec<u8>, mut text: &[u8]) {
    loop {
        let plain = plain_prefix(text);
        out.extend_from_slice(&text[..plain]);
        let Some(&special) = text.get(plain) else { return };
        debug_assert!(is_special(special));
        let short = match special {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x09 => b't',
            0x0A => b'n',
            0x0C => b'f',
            0x0D => b'r',
            _ => b'u',
        };
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let (high, low) = (DIGITS[usize::from(special >> 4)], DIGITS[usize::from(special & 15)]);
            out.extend_from_slice(&[b'0', b'0', high, low]);
        }
        text = &text[plain + 1..];
    }
}

pub(crate) fn write_raw(value: Raw<'_>, out: &mut Vec<u8>, style: NumberStyle, depth: usize) {
    match value.kind() {
        Kind::String => match value.string_bytes() {
            Some(text) => {
                out.push(b'"');
                if value.is_clean_string() {
                    out.extend_from_slice(text)
                } else {
                    escape(out, text)
                }
                out.push(b'"');
            }
            None => out.extend_from_slice(b"null"),
        },
        Kind::Number => match value.as_number() {
            Some(number) => write_json_number(out, number, style),
            None => out.extend_from_slice(b"null"),
        },
        Kind::Bool => out.extend_from_slice(if value.as_bool() == Some(true) { b"true" } else { b"false" }),
        Kind::Object if depth < READ_DEPTH_MAX => {
            out.push(b'{');
            let mut comma = false;
            for entry in value.entries() {
                write_entry(&entry, comma, out, style, depth);
                comma = true;
            }
            out.push(b'}');
        }
        Kind::Array if depth < READ_DEPTH_MAX => {
            out.push(b'[');
            for (i, element) in value.elements().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_raw(element, out, style, depth + 1);
            }
            out.push(b']');
        }
        Kind::Null => out.extend_from_slice(b"null"),
        _ => write_rare(value, out),
    }
}

/// What SQL does not write, or nests too deeply. Apart, because what is inlined here is room on the stack at every
/// level.
#[cold]
#[inline(never)]
fn write_rare(value: Raw<'_>, out: &mut Vec<u8>) {
    match value.as_extended() {
        Some(value) => write_extended(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

pub(crate) fn write_members(
    value: Raw<'_>,
    range: std::ops::Range<usize>,
    out: &mut Vec<u8>,
    style: NumberStyle,
    depth: usize,
) {
    let count = range.end.saturating_sub(range.start);
    let mut comma = false;
    for entry in value.entries().skip(range.start).take(count) {
        write_entry(&entry, comma, out, style, depth);
        comma = true;
    }
}

#[inline]
fn write_entry(entry: &Entry<'_>, comma: bool, out: &mut Vec<u8>, style: NumberStyle, depth: usize) {
    if comma {
        out.push(b',');
    }
    out.push(b'"');
    if entry.escape {
        escape(out, entry.key)
    } else {
        out.extend_from_slice(entry.key)
    }
    out.extend_from_slice(b"\":");
    write_raw(entry.value(), out, style, depth + 1);
}

pub(crate) fn write_value(value: &Value, out: &mut Vec<u8>, style: NumberStyle) {
    match value {
        Value::Undefined | Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Value::Number(number) => write_json_number(out, *number, style),
        Value::String(text) => write_json_string(out, text),
        Value::Extended(value) => write_extended(out, value.get()),
        Value::Array(elements) => {
            out.push(b'[');
            for (i, element) in elements.iter().filter(|e| !e.is_undefined()).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_value(element, out, style);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (i, (key, value)) in members.iter().filter(|(_, value)| !value.is_undefined()).enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_json_string(out, key);
                out.push(b':');
                write_value(value, out, style);
            }
            out.push(b'}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_escape_what_json_demands_and_nothing_else() {
        let mut out = Vec::new();
        write_json_string(&mut out, "a\"b\\c\u{0}\u{1f}\n\r\t\u{8}\u{c}/é😀\u{7f}\u{2028}");
        let expected = "\"a\\\"b\\\\c\\u0000\\u001f\\n\\r\\t\\b\\f/é😀\u{7f}\u{2028}\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
