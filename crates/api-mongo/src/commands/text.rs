//! Values as the shell shows them, for texts of errors.

use orrery_mongo::Bson;

/// Longest text of one value.
const SHOWN_MAX: usize = 1_000;

pub fn shell(value: &Bson) -> String {
    let mut out = String::new();
    write(value, &mut out);
    if out.len() > SHOWN_MAX {
        let end = (0..=SHOWN_MAX).rev().find(|end| out.is_char_boundary(*end)).unwrap_or(0);
        out.truncate(end);
        out.push_str("...");
    }
    out
}

fn write(value: &Bson, out: &mut String) {
    if out.len() > SHOWN_MAX {
        return;
    }
    match value {
        Bson::Document(document) => {
            out.push_str("{ ");
            for (n, (name, value)) in document.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                out.push_str(name);
                out.push_str(": ");
                write(value, out);
            }
            out.push_str(if document.is_empty() { "}" } else { " }" });
        }
        Bson::Array(elements) => {
            out.push_str("[ ");
            for (n, element) in elements.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write(element, out);
            }
            out.push_str(" ]");
        }
        Bson::String(text) | Bson::Symbol(text) => out.push_str(&format!("\"{text}\"")),
        Bson::Int32(value) => out.push_str(&value.to_string()),
        Bson::Int64(value) => out.push_str(&value.to_string()),
        Bson::Double(value) if value.fract() == 0.0 && value.abs() < 1e15 => {
            out.push_str(&format!("{value:.1}"))
        }
        Bson::Double(value) => out.push_str(&value.to_string()),
        Bson::Decimal(value) => out.push_str(&value.to_string()),
        Bson::Bool(value) => out.push_str(&value.to_string()),
        Bson::Null | Bson::Undefined => out.push_str("null"),
        Bson::ObjectId(id) => {
            let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            out.push_str(&format!("ObjectId('{digits}')"));
        }
        Bson::Date(ms) => out.push_str(&format!("new Date({ms})")),
        Bson::Timestamp { seconds, increment } => out.push_str(&format!("Timestamp({seconds}, {increment})")),
        Bson::MinKey => out.push_str("MinKey"),
        Bson::MaxKey => out.push_str("MaxKey"),
        Bson::Regex(regex) => out.push_str(&format!("/{}/{}", regex.pattern, regex.options)),
        Bson::Code(text) => out.push_str(text),
        Bson::CodeWithScope(code) => out.push_str(&code.0),
        Bson::Binary { subtype, bytes } => {
            out.push_str(&format!("BinData({subtype}, {} bytes)", bytes.len()))
        }
        Bson::DbPointer(pointer) => out.push_str(&pointer.0),
    }
}
