//! How values are shown in texts of errors, and what they are called there.

use std::fmt::Write;

use crate::value::{Bson, Document};

/// Bytes of a value that a text shows.
const SHOWN_MAX: usize = 512;

/// What a value is called; `missing` where there is none.
pub fn type_name(value: Option<&Bson>) -> &'static str {
    value.map_or("missing", |value| value.kind().name())
}

/// Whether it is null, undefined or missing.
pub fn is_nullish(value: Option<&Bson>) -> bool {
    matches!(value, None | Some(Bson::Null | Bson::Undefined))
}

pub fn show(value: Option<&Bson>) -> String {
    let mut out = String::new();
    match value {
        Some(value) => write_value(value, &mut out),
        None => out.push_str("MISSING"),
    }
    out
}

pub fn show_document(document: &Document) -> String {
    let mut out = String::new();
    write_document(document, &mut out);
    out
}

fn write_value(value: &Bson, out: &mut String) {
    if out.len() > SHOWN_MAX {
        if !out.ends_with("...") {
            out.push_str("...");
        }
        return;
    }
    let _ = match value {
        Bson::Double(number) => write!(out, "{}", double(*number)),
        Bson::String(text) | Bson::Symbol(text) => {
            let shown: String = text.chars().take(SHOWN_MAX).collect();
            write!(out, "\"{shown}\"")
        }
        Bson::Document(document) => {
            write_document(document, out);
            Ok(())
        }
        Bson::Array(elements) => {
            out.push('[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_value(element, out);
                if out.len() > SHOWN_MAX {
                    break;
                }
            }
            out.push(']');
            Ok(())
        }
        Bson::Binary { subtype, bytes } => write!(out, "BinData({subtype}, {} bytes)", bytes.len()),
        Bson::Undefined => write!(out, "undefined"),
        Bson::ObjectId(id) => write!(out, "ObjectId('{}')", hex(id)),
        Bson::Bool(value) => write!(out, "{value}"),
        Bson::Date(ms) => write!(out, "{}", super::date::show(*ms)),
        Bson::Null => write!(out, "null"),
        Bson::Regex(regex) => write!(out, "/{}/{}", regex.pattern, regex.options),
        Bson::DbPointer(pointer) => write!(out, "DBRef(\"{}\", {})", pointer.0, hex(&pointer.1)),
        Bson::Code(text) => write!(out, "Code(\"{text}\")"),
        Bson::CodeWithScope(code) => write!(out, "CodeWithScope(\"{}\")", code.0),
        Bson::Int32(number) => write!(out, "{number}"),
        Bson::Timestamp { seconds, increment } => write!(out, "Timestamp({seconds}, {increment})"),
        Bson::Int64(number) => write!(out, "{number}"),
        Bson::Decimal(number) => write!(out, "{number}"),
        Bson::MinKey => write!(out, "MinKey"),
        Bson::MaxKey => write!(out, "MaxKey"),
    };
}

fn write_document(document: &Document, out: &mut String) {
    if document.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push_str("{ ");
    for (at, (name, value)) in document.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        let _ = write!(out, "{name}: ");
        write_value(value, out);
        if out.len() > SHOWN_MAX {
            break;
        }
    }
    out.push_str(" }");
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// A double as the server prints it: up to 17 significant digits, `inf`, `nan`.
pub fn double(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    format!("{value}")
}
