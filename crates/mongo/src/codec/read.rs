//! From BSON bytes.

use std::sync::Arc;

use orrery_model::{DocWriter, Extended};

use super::stored::write_pointer;
use super::{DEPTH_MAX, tag};
use crate::error::{Error, Result, code};
use crate::value::{Bson, Document, Regex};

/// What a document takes besides its members: its length and its end.
const DOCUMENT_BYTES_MIN: usize = 5;

/// Reads one document that is all of `bytes`.
pub fn read_document(bytes: &[u8]) -> Result<Document> {
    document_within(bytes, 1)
}

/// The members of a document that is all of `bytes`.
pub fn elements(bytes: &[u8]) -> Result<Elements<'_>> {
    elements_within(bytes, 1)
}

fn invalid(what: &'static str) -> Error {
    Error::new(code::INVALID_BSON, what)
}

fn check_depth(depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Error::new(code::OVERFLOW, "the document is nested too deeply"));
    }
    Ok(())
}

fn elements_within(bytes: &[u8], depth: usize) -> Result<Elements<'_>> {
    check_depth(depth)?;
    let size = bytes.first_chunk().map(|size| u32::from_le_bytes(*size) as usize);
    if bytes.len() < DOCUMENT_BYTES_MIN || size != Some(bytes.len()) || bytes.last() != Some(&0) {
        return Err(invalid("the length of a document is wrong"));
    }
    Ok(Elements { rest: &bytes[4..bytes.len() - 1], depth })
}

fn document_within(bytes: &[u8], depth: usize) -> Result<Document> {
    elements_within(bytes, depth)?
        .map(|element| element.and_then(|(name, element)| Ok((Arc::from(name), element.to_bson()?))))
        .collect()
}

/// Members of a document in BSON.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
    depth: usize,
}

/// One value in BSON, whose length has been checked.
#[derive(Clone, Copy, Debug)]
pub struct Element<'a> {
    tag: u8,
    body: &'a [u8],
    /// How deep the document lies that it is a member of.
    depth: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<(&'a str, Element<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (tag, rest) = self.rest.split_first()?;
        let found = self.read(*tag, rest);
        if found.is_err() {
            self.rest = &[];
        }
        Some(found)
    }
}

impl<'a> Elements<'a> {
    fn read(&mut self, tag: u8, rest: &'a [u8]) -> Result<(&'a str, Element<'a>)> {
        let (name, rest) = read_name(rest)?;
        let size = body_size(tag, rest)?;
        let (body, rest) = rest.split_at_checked(size).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok((name, Element { tag, body, depth: self.depth }))
    }
}

fn cut_off() -> Error {
    invalid("a value is cut off")
}

fn read_name(bytes: &[u8]) -> Result<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0).ok_or_else(|| invalid("a name has no end"))?;
    let name = std::str::from_utf8(&bytes[..end]).map_err(|_| invalid("a name is not UTF-8"))?;
    Ok((name, &bytes[end + 1..]))
}

fn read_size(bytes: &[u8]) -> Result<usize> {
    let size = bytes.first_chunk().map(|size| u32::from_le_bytes(*size)).ok_or_else(cut_off)?;
    i32::try_from(size).ok().and_then(|size| usize::try_from(size).ok()).ok_or_else(cut_off)
}

/// How long a value is.
fn body_size(tag: u8, rest: &[u8]) -> Result<usize> {
    Ok(match tag {
        tag::DOUBLE | tag::DATE | tag::TIMESTAMP | tag::INT64 => 8,
        tag::STRING | tag::CODE | tag::SYMBOL => 4 + read_size(rest)?,
        tag::DOCUMENT | tag::ARRAY | tag::CODE_WITH_SCOPE => read_size(rest)?,
        tag::BINARY => 5 + read_size(rest)?,
        tag::UNDEFINED | tag::NULL | tag::MIN_KEY | tag::MAX_KEY => 0,
        tag::OBJECT_ID => 12,
        tag::BOOL => 1,
        tag::REGEX => {
            let (pattern, behind) = read_name(rest)?;
            let (options, _) = read_name(behind)?;
            pattern.len() + options.len() + 2
        }
        tag::DB_POINTER => 4 + read_size(rest)? + 12,
        tag::INT32 => 4,
        tag::DECIMAL => 16,
        _ => return Err(invalid("a value is of a type that is not known")),
    })
}

fn read_text(bytes: &[u8]) -> Result<&str> {
    let size = read_size(bytes)?;
    let text = bytes.get(4..4 + size).ok_or_else(cut_off)?;
    let Some((0, text)) = text.split_last() else { return Err(invalid("a text has no end")) };
    std::str::from_utf8(text).map_err(|_| invalid("a text is not UTF-8"))
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.first_chunk().copied().ok_or_else(cut_off)
}

fn read_binary(body: &[u8]) -> Result<(u8, &[u8])> {
    let subtype = *body.get(4).ok_or_else(cut_off)?;
    Ok((subtype, &body[5..]))
}

impl<'a> Element<'a> {
    /// The bytes of a document, to be read with [`elements`].
    pub fn document_bytes(self) -> Option<&'a [u8]> {
        (self.tag == tag::DOCUMENT).then_some(self.body)
    }

    pub fn to_bson(self) -> Result<Bson> {
        let body = self.body;
        Ok(match self.tag {
            tag::DOUBLE => Bson::Double(f64::from_le_bytes(fixed(body)?)),
            tag::STRING => Bson::String(read_text(body)?.into()),
            tag::DOCUMENT => Bson::Document(document_within(body, self.depth + 1)?),
            tag::ARRAY => {
                let elements = elements_within(body, self.depth + 1)?;
                Bson::array(
                    elements
                        .map(|element| element.and_then(|(_, value)| value.to_bson()))
                        .collect::<Result<_>>()?,
                )
            }
            tag::BINARY => {
                let (subtype, bytes) = read_binary(body)?;
                Bson::Binary { subtype, bytes: bytes.into() }
            }
            tag::UNDEFINED => Bson::Undefined,
            tag::OBJECT_ID => Bson::ObjectId(fixed(body)?),
            tag::BOOL => Bson::Bool(read_bool(body)?),
            tag::DATE => Bson::Date(i64::from_le_bytes(fixed(body)?)),
            tag::NULL => Bson::Null,
            tag::REGEX => {
                let (pattern, options) = read_regex(body)?;
                Bson::Regex(Arc::new(Regex { pattern: pattern.into(), options: sorted(options) }))
            }
            tag::DB_POINTER => Bson::DbPointer(Arc::new((read_text(body)?.into(), pointer_id(body)?))),
            tag::CODE => Bson::Code(read_text(body)?.into()),
            tag::SYMBOL => Bson::Symbol(read_text(body)?.into()),
            tag::CODE_WITH_SCOPE => {
                let code = body.get(4..).ok_or_else(cut_off)?;
                let text = read_text(code)?;
                let scope = code.get(4 + read_size(code)?..).ok_or_else(cut_off)?;
                Bson::CodeWithScope(Arc::new((text.into(), document_within(scope, self.depth + 1)?)))
            }
            tag::INT32 => Bson::Int32(i32::from_le_bytes(fixed(body)?)),
            tag::TIMESTAMP => {
                let (increment, seconds) = read_timestamp(body)?;
                Bson::Timestamp { seconds, increment }
            }
            tag::INT64 => Bson::Int64(i64::from_le_bytes(fixed(body)?)),
            tag::DECIMAL => Bson::Decimal(orrery_model::Decimal128::from_le_bytes(fixed(body)?)),
            tag::MIN_KEY => Bson::MinKey,
            tag::MAX_KEY => Bson::MaxKey,
            _ => return Err(invalid("a value is of a type that is not known")),
        })
    }

    /// Writes the value into a stored document without building it. After an error the writer is of no use.
    pub fn write_stored(self, writer: &mut DocWriter) -> Result<()> {
        let body = self.body;
        match self.tag {
            tag::DOUBLE => writer.double(f64::from_le_bytes(fixed(body)?)),
            tag::STRING | tag::SYMBOL => writer.string(read_text(body)?),
            tag::DOCUMENT => {
                let members = elements_within(body, self.depth + 1)?;
                writer.begin_object();
                for member in members {
                    let (name, value) = member?;
                    writer.key(name);
                    value.write_stored(writer)?;
                }
                writer.end_object();
            }
            tag::ARRAY => {
                let elements = elements_within(body, self.depth + 1)?;
                writer.begin_array();
                for element in elements {
                    element?.1.write_stored(writer)?;
                }
                writer.end_array();
            }
            tag::BINARY => {
                let (subtype, bytes) = read_binary(body)?;
                writer.extended(Extended::Binary { subtype, bytes });
            }
            tag::UNDEFINED | tag::NULL => writer.null(),
            tag::OBJECT_ID => writer.extended(Extended::ObjectId(fixed(body)?)),
            tag::BOOL => writer.bool(read_bool(body)?),
            tag::DATE => writer.extended(Extended::Date(i64::from_le_bytes(fixed(body)?))),
            tag::REGEX => {
                let (pattern, options) = read_regex(body)?;
                writer.extended(Extended::Regex { pattern, options: &sorted(options) });
            }
            tag::DB_POINTER => write_pointer(read_text(body)?, pointer_id(body)?, writer),
            tag::CODE => writer.extended(Extended::Code(read_text(body)?)),
            tag::CODE_WITH_SCOPE => {
                writer.extended(Extended::Code(read_text(body.get(4..).ok_or_else(cut_off)?)?))
            }
            tag::INT32 => writer.int32(i32::from_le_bytes(fixed(body)?)),
            tag::TIMESTAMP => {
                let (increment, seconds) = read_timestamp(body)?;
                writer.extended(Extended::Timestamp { seconds, increment });
            }
            tag::INT64 => writer.int64(i64::from_le_bytes(fixed(body)?)),
            tag::DECIMAL => {
                writer.extended(Extended::Decimal(orrery_model::Decimal128::from_le_bytes(fixed(body)?)))
            }
            tag::MIN_KEY => writer.extended(Extended::MinKey),
            tag::MAX_KEY => writer.extended(Extended::MaxKey),
            _ => return Err(invalid("a value is of a type that is not known")),
        }
        Ok(())
    }
}

fn read_bool(body: &[u8]) -> Result<bool> {
    match body {
        [0] => Ok(false),
        [1] => Ok(true),
        _ => Err(invalid("a boolean is neither true nor false")),
    }
}

fn read_regex(body: &[u8]) -> Result<(&str, &str)> {
    let (pattern, rest) = read_name(body)?;
    Ok((pattern, read_name(rest)?.0))
}

fn read_timestamp(body: &[u8]) -> Result<(u32, u32)> {
    let bits = u64::from_le_bytes(fixed(body)?);
    Ok((bits as u32, (bits >> 32) as u32))
}

fn pointer_id(body: &[u8]) -> Result<[u8; 12]> {
    body.last_chunk().copied().ok_or_else(cut_off)
}

/// The letters of options, in alphabetical order.
fn sorted(options: &str) -> Arc<str> {
    if options.as_bytes().is_sorted() {
        return options.into();
    }
    let mut letters: Vec<char> = options.chars().collect();
    letters.sort_unstable();
    letters.into_iter().collect::<String>().into()
}
