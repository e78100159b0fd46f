//! Partition keys: their values, as clients write them and as they are stored.
//!
//! A key is a list of components, one per path of the container's definition (or fewer, then it is a prefix of a
//! hierarchical key). `[{}]` (undefined), `[null]` and `[]` (no components) are three different keys.

use crate::document::raw::{Kind, Raw};
use crate::json::parser::{Parser, Str};
use crate::json::text::{write_json_number, write_json_string};
use crate::number::{Number, NumberStyle};
use smallvec::SmallVec;

/// Most components that a key read from a client may have; definitions have at most three paths.
pub const KEY_COMPONENTS_MAX: usize = 16;

/// One component of a partition key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyComponent {
    Undefined,
    Null,
    Bool(bool),
    /// As the client wrote it: -0.0 hashes unlike 0.0.
    Number(f64),
    String(String),
}

/// A partition key or a prefix of one; empty is `[]`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PartitionKey(pub SmallVec<[KeyComponent; 1]>);

/// Why a key could not be read or taken from an item.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    pub message: String,
}

impl PartitionKey {
    /// Whether no component has a value.
    pub fn is_undefined(&self) -> bool {
        self.0.iter().all(|component| *component == KeyComponent::Undefined)
    }

    /// Reads the JSON array that clients send in a header.
    pub fn parse_header(text: &str) -> Result<PartitionKey, KeyError> {
        read_components(text).map_err(|reason| KeyError {
            message: format!(
                "the partition key is not a JSON array of strings, numbers, booleans, null or {{}}: {reason}"
            ),
        })
    }

    /// Appends the key as the JSON array that [`PartitionKey::parse_header`] reads.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for (i, component) in self.0.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            match component {
                KeyComponent::Undefined => out.extend_from_slice(b"{}"),
                KeyComponent::Null => out.extend_from_slice(b"null"),
                KeyComponent::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
                KeyComponent::Number(value) if *value == 0.0 && value.is_sign_negative() => {
                    out.extend_from_slice(b"-0.0");
                }
                KeyComponent::Number(value) => {
                    write_json_number(out, Number::Double(*value), NumberStyle::Query)
                }
                KeyComponent::String(value) => write_json_string(out, value),
            }
        }
        out.push(b']');
    }

    /// Appends bytes whose order is the order of keys: by component, undefined < null < false < true < numbers <
    /// strings. Each component says where it ends, so more can follow.
    ///
    /// ```text
    /// 01 undefined   02 null   03 false   04 true   05 number, 8 bytes   06 string, 00 as 00 FF, end 00 01
    /// ```
    pub fn encode(&self, out: &mut Vec<u8>) {
        for component in &self.0 {
            match component {
                KeyComponent::Undefined => out.push(1),
                KeyComponent::Null => out.push(2),
                KeyComponent::Bool(value) => out.push(if *value { 4 } else { 3 }),
                KeyComponent::Number(value) => {
                    out.push(5);
                    out.extend_from_slice(&ordered_bits(*value).to_be_bytes());
                }
                KeyComponent::String(value) => {
                    out.push(6);
                    for part in value.as_bytes().split_inclusive(|&byte| byte == 0) {
                        out.extend_from_slice(part);
                        if part.last() == Some(&0) {
                            out.push(0xFF);
                        }
                    }
                    out.extend_from_slice(&[0, 1]);
                }
            }
        }
    }

    /// The text of an encoded key that is one string without NUL.
    pub(crate) fn encoded_text(encoded: &[u8]) -> Option<&[u8]> {
        let text = encoded.strip_prefix(&[6])?.strip_suffix(&[0, 1])?;
        memchr::memchr(0, text).is_none().then_some(text)
    }

    /// Reads what [`PartitionKey::encode`] wrote; `None` when the bytes are something else.
    pub fn decode(mut bytes: &[u8]) -> Option<PartitionKey> {
        let mut components = SmallVec::new();
        while !bytes.is_empty() {
            let (component, rest) = KeyComponent::decode(bytes)?;
            components.push(component);
            bytes = rest;
        }
        Some(PartitionKey(components))
    }
}

impl KeyComponent {
    /// Reads one encoded component; returns it with the bytes behind it.
    pub fn decode(bytes: &[u8]) -> Option<(KeyComponent, &[u8])> {
        let (&kind, rest) = bytes.split_first()?;
        Some(match kind {
            1 => (KeyComponent::Undefined, rest),
            2 => (KeyComponent::Null, rest),
            3 => (KeyComponent::Bool(false), rest),
            4 => (KeyComponent::Bool(true), rest),
            5 => {
                let (bits, rest) = rest.split_first_chunk()?;
                let bits = u64::from_be_bytes(*bits);
                let bits = if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits };
                (KeyComponent::Number(f64::from_bits(bits)), rest)
            }
            6 => {
                let mut text = Vec::new();
                let mut rest = rest;
                loop {
                    let end = memchr::memchr(0, rest)?;
                    text.extend_from_slice(&rest[..end]);
                    match rest.get(end + 1)? {
                        0xFF => text.push(0),
                        1 => {
                            rest = &rest[end + 2..];
                            break;
                        }
                        _ => return None,
                    }
                    rest = &rest[end + 2..];
                }
                (KeyComponent::String(String::from_utf8(text).ok()?), rest)
            }
            _ => return None,
        })
    }

    /// The component that a stored value is; `None` for arrays and objects, and for what JSON has no word for.
    pub fn from_raw(value: Raw<'_>) -> Option<KeyComponent> {
        match value.kind() {
            Kind::Null => Some(KeyComponent::Null),
            Kind::Bool => value.as_bool().map(KeyComponent::Bool),
            Kind::Number => value.as_number().map(|number| KeyComponent::Number(number.as_f64())),
            Kind::String => value.as_str().map(|text| KeyComponent::String(text.to_owned())),
            _ => None,
        }
    }
}

impl<const N: usize> From<[KeyComponent; N]> for PartitionKey {
    fn from(components: [KeyComponent; N]) -> PartitionKey {
        PartitionKey(components.into_iter().collect())
    }
}

impl From<&str> for PartitionKey {
    fn from(value: &str) -> PartitionKey {
        PartitionKey::from([KeyComponent::String(value.to_owned())])
    }
}

fn read_components(text: &str) -> Result<PartitionKey, &'static str> {
    let mut parser = Parser::new(text.as_bytes()).map_err(|error| error.message)?;
    let mut components = SmallVec::new();
    if parser.peek() != b'[' {
        return Err("an array was expected");
    }
    parser.take();
    if parser.peek() == b']' {
        parser.take();
        parser.end().map_err(|error| error.message)?;
        return Ok(PartitionKey(components));
    }
    loop {
        if components.len() == KEY_COMPONENTS_MAX {
            return Err("there are too many components");
        }
        components.push(read_component(&mut parser)?);
        match parser.peek() {
            b',' => parser.take(),
            b']' => break,
            _ => return Err("a comma or a closing bracket was expected"),
        }
    }
    parser.take();
    parser.end().map_err(|error| error.message)?;
    Ok(PartitionKey(components))
}

fn read_component(parser: &mut Parser<'_>) -> Result<KeyComponent, &'static str> {
    let word = |parser: &mut Parser<'_>, word| parser.literal(word).map_err(|error| error.message);
    Ok(match parser.peek() {
        b'"' => {
            let text = match parser.string().map_err(|error| error.message)? {
                Str::Plain(text) => text.to_vec(),
                Str::Unescaped => parser.unescaped().to_vec(),
            };
            KeyComponent::String(String::from_utf8(text).map_err(|_| "the text is not UTF-8")?)
        }
        b'{' => {
            parser.take();
            if parser.peek() != b'}' {
                return Err("an object cannot be a component");
            }
            parser.take();
            KeyComponent::Undefined
        }
        b'[' => return Err("an array cannot be a component"),
        b'n' => {
            word(parser, b"null")?;
            KeyComponent::Null
        }
        b't' => {
            word(parser, b"true")?;
            KeyComponent::Bool(true)
        }
        b'f' => {
            word(parser, b"false")?;
            KeyComponent::Bool(false)
        }
        _ => KeyComponent::Number(parser.number().map_err(|error| error.message)?.as_f64()),
    })
}

/// The bits of a double so that their unsigned order is the order of doubles, with -0.0 just below 0.0.
fn ordered_bits(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
