//! The id of an item, which is a text, out of the `_id` of a document, which is nearly anything.
//!
//! Values that MongoDB holds for equal have one text, others have different ones ([ADR
//! 35](../../../docs/adr/0035-documents-of-mongodb.md)):
//!
//! | `_id` | id |
//! |---|---|
//! | object id | its 24 hexadecimal digits |
//! | text | itself, unless it could be taken for another, is long, or has a sign that URLs divide by |
//! | such a text | `~s` and the text, escaped; `~S` and a hash where it is long |
//! | number | `~n` and its value, whichever its width: `~n1`, `~n0.5` |
//! | boolean, null, date, timestamp, binary | `~b1`, `~z`, `~t` ms, `~T` seconds`.`increment, `~x` subtype`.`hex |
//! | document, code and others | `~h` and a hash |

use std::fmt::Write as _;

use orrery_mongo::{Bson, Document, ValueRef, codec};
use sha2::{Digest as _, Sha256};

/// Longest text that is an id by itself.
const TEXT_BYTES_MAX: usize = 255;
/// Longest binary that is written out.
const BINARY_BYTES_MAX: usize = 64;
/// What every id begins with that is no plain text.
const MARK: char = '~';

/// The id of the item of a document.
pub fn id_text(id: &Bson) -> String {
    match id {
        Bson::ObjectId(bytes) => hex(bytes),
        Bson::String(text) | Bson::Symbol(text) => {
            if is_plain(text) {
                return text.to_string();
            }
            if text.len() > TEXT_BYTES_MAX {
                return format!("~S{}", hash(text.as_bytes()));
            }
            let mut out = String::from("~s");
            for character in text.chars() {
                match character {
                    '/' | '\\' | '?' | '#' | '%' => {
                        let _ = write!(out, "%{:02X}", u32::from(character));
                    }
                    character if character.is_control() => {
                        let _ = write!(out, "%{:02X}", u32::from(character));
                    }
                    other => out.push(other),
                }
            }
            out
        }
        Bson::Int32(value) => format!("~n{value}"),
        Bson::Int64(value) => format!("~n{value}"),
        Bson::Double(value) => format!("~n{}", double_text(*value)),
        Bson::Decimal(value) => format!("~n{}", decimal_text(&value.to_string())),
        Bson::Bool(value) => format!("~b{}", u8::from(*value)),
        Bson::Null | Bson::Undefined => "~z".to_owned(),
        Bson::Date(ms) => format!("~t{ms}"),
        Bson::Timestamp { seconds, increment } => format!("~T{seconds}.{increment}"),
        Bson::Binary { subtype, bytes } if bytes.len() <= BINARY_BYTES_MAX => {
            format!("~x{subtype}.{}", hex(bytes))
        }
        Bson::MinKey => "~-".to_owned(),
        Bson::MaxKey => "~+".to_owned(),
        other => {
            let mut document = Document::new();
            document.push("", canonical(other));
            let mut bytes = Vec::new();
            codec::write_document(ValueRef::OwnedDocument(&document), &mut bytes);
            format!("~h{}", hash(&bytes))
        }
    }
}

/// The ids under which an item with this `_id` may lie: its own, and that of an item that another API has written.
pub fn candidates(id: &Bson) -> Vec<String> {
    let own = id_text(id);
    match id {
        Bson::String(text) if **text != *own && !text.is_empty() && text.len() <= 1023 => {
            vec![own, text.to_string()]
        }
        _ => vec![own],
    }
}

fn is_plain(text: &str) -> bool {
    let hexadecimal = text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    !text.is_empty()
        && text.len() <= TEXT_BYTES_MAX
        && !hexadecimal
        && !text.starts_with(MARK)
        && !text.ends_with(' ')
        && !text
            .chars()
            .any(|character| matches!(character, '/' | '\\' | '?' | '#') || character.is_control())
}

/// Numbers of one value in one form, also inside of documents.
fn canonical(value: &Bson) -> Bson {
    match value {
        Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal(_) => {
            Bson::Symbol(id_text(value).into())
        }
        Bson::Document(document) => {
            document.iter().map(|(name, value)| (name.clone(), canonical(value))).collect::<Document>().into()
        }
        Bson::Array(elements) => Bson::array(elements.iter().map(canonical).collect()),
        other => other.clone(),
    }
}

fn double_text(value: f64) -> String {
    if let Some(whole) = Bson::Double(value).as_i64() {
        return whole.to_string();
    }
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".to_owned() } else { "-Infinity".to_owned() };
    }
    // All digits that it has: a decimal of the same value has the same.
    plain_digits(&format!("{value:.1100}"))
}

/// A number as digits without an exponent and without what does not count.
fn decimal_text(text: &str) -> String {
    match text {
        "NaN" | "Infinity" | "-Infinity" => return text.to_owned(),
        _ => {}
    }
    let (digits, exponent) = text.split_once(['E', 'e']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let point = whole.len() as i64 + exponent;
    let plain = if point <= 0 {
        format!("0.{}{all}", "0".repeat(usize::try_from(-point).unwrap_or(0)))
    } else if point >= all.len() as i64 {
        format!("{all}{}", "0".repeat(usize::try_from(point - all.len() as i64).unwrap_or(0)))
    } else {
        let at = usize::try_from(point).unwrap_or(0);
        format!("{}.{}", &all[..at], &all[at..])
    };
    plain_digits(&format!("{sign}{plain}"))
}

/// Takes away zeros that say nothing; what is then still long is its hash.
fn plain_digits(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    };
    let digits = digits.trim_start_matches('0');
    let digits = match digits {
        "" => return "0".to_owned(),
        fraction if fraction.starts_with('.') => format!("0{fraction}"),
        other => other.to_owned(),
    };
    let text = format!("{sign}{digits}");
    if text.len() > TEXT_BYTES_MAX { format!("h{}", hash(text.as_bytes())) } else { text }
}

fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_value_have_one_text() {
        for (values, text) in [
            (vec![Bson::Int32(1), Bson::Int64(1), Bson::Double(1.0)], "~n1"),
            (vec![Bson::Double(-0.0), Bson::Int32(0)], "~n0"),
            (vec![Bson::Double(0.5)], "~n0.5"),
            (vec![Bson::Double(1e300)], ""),
        ] {
            let texts: Vec<String> = values.iter().map(id_text).collect();
            assert!(texts.iter().all(|one| *one == texts[0]), "{texts:?}");
            assert!(text.is_empty() || texts[0] == text, "{texts:?}");
        }
        assert_eq!(decimal_text("1.50"), "1.5");
        assert_eq!(decimal_text("15E-1"), "1.5");
        assert_eq!(decimal_text("-1E+3"), "-1000");
        assert_eq!(decimal_text("0E-6176"), "0");
        assert_eq!(double_text(0.1).len(), 57, "the double nearest to 0.1 is not 0.1");
        assert_ne!(decimal_text("0.1"), double_text(0.1));
    }

    #[test]
    fn different_values_have_different_texts() {
        let object_id = Bson::ObjectId([0x50; 12]);
        let all = [
            object_id.clone(),
            Bson::from("505050505050505050505050"),
            Bson::from("~n1"),
            Bson::Int32(1),
            Bson::from("1"),
            Bson::from("a/b"),
            Bson::from("a%2Fb"),
            Bson::from(""),
            Bson::Null,
            Bson::Bool(true),
            Bson::Date(1),
            Bson::from("x".repeat(300)),
            Bson::from("x".repeat(301)),
        ];
        let texts: std::collections::HashSet<String> = all.iter().map(id_text).collect();
        assert_eq!(texts.len(), all.len(), "{texts:?}");
        assert!(texts.iter().all(|text| !text.is_empty() && text.len() <= 1023));
        assert_eq!(id_text(&Bson::from("plain text")), "plain text");
    }
}
