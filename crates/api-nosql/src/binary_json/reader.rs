//! From the binary form to text.
//!
//! What a small body may grow to is bounded, because strings may refer to earlier ones and so repeat them cheaply.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::markers::{Extent, Form, HEX_LOWER, HEX_UPPER, NumberKind, PREAMBLE, TextForm, WORDS, form};

/// Nesting that is still read; the same order as for text.
const DEPTH_MAX: usize = 256;

/// What a body may become as text. Numbers of one byte grow to five characters, repeated strings to anything.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The body is not in this form, or holds more than it may.
#[derive(Debug)]
pub struct Malformed;

type Result<T> = std::result::Result<T, Malformed>;

pub fn is_binary(body: &[u8]) -> bool {
    body.first() == Some(&PREAMBLE)
}

/// The same value as JSON text.
pub fn to_text(body: &[u8]) -> Result<Vec<u8>> {
    let mut reader = Reader { bytes: body, at: 0, text: Vec::with_capacity(body.len() * 2) };
    if reader.byte()? != PREAMBLE {
        return Err(Malformed);
    }
    reader.value(DEPTH_MAX)?;
    if reader.at == body.len() { Ok(reader.text) } else { Err(Malformed) }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    text: Vec<u8>,
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Result<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Malformed)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let taken = self.bytes.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    /// A length, count or offset of one to four bytes.
    fn length(&mut self, width: usize) -> Result<usize> {
        let bytes = self.take(width)?;
        Ok(bytes.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte)))
    }

    fn put(&mut self, text: &[u8]) -> Result<()> {
        if self.text.len() + text.len() > TEXT_BYTES_MAX {
            return Err(Malformed);
        }
        self.text.extend_from_slice(text);
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<()> {
        let marker = self.byte()?;
        match form(marker) {
            Form::SmallNumber => self.put(marker.to_string().as_bytes()),
            Form::Number(kind) => self.number(kind),
            Form::Null => self.put(b"null"),
            Form::False => self.put(b"false"),
            Form::True => self.put(b"true"),
            Form::Text(form) => {
                let string = self.string(marker, form)?;
                self.put_string(&string)
            }
            Form::Array(extent) => self.nested(extent, false, depth.checked_sub(1).ok_or(Malformed)?),
            Form::Object(extent) => self.nested(extent, true, depth.checked_sub(1).ok_or(Malformed)?),
            Form::Numbers { width } => self.numbers(width),
            Form::RowsOfNumbers { width } => self.rows_of_numbers(width),
            Form::Unknown => Err(Malformed),
        }
    }

    fn nested(&mut self, extent: Extent, object: bool, depth: usize) -> Result<()> {
        let (open, close): (&[u8], &[u8]) = if object { (b"{", b"}") } else { (b"[", b"]") };
        self.put(open)?;
        match extent {
            Extent::Empty => {}
            Extent::One => self.entry(object, depth)?,
            Extent::Bytes { width, counted } => {
                let length = self.length(width)?;
                let count = if counted { Some(self.length(width)?) } else { None };
                let end =
                    self.at.checked_add(length).filter(|end| *end <= self.bytes.len()).ok_or(Malformed)?;
                let mut entries = 0;
                while self.at < end {
                    if entries > 0 {
                        self.put(b",")?;
                    }
                    self.entry(object, depth)?;
                    entries += 1;
                }
                if self.at != end || count.is_some_and(|count| count != entries) {
                    return Err(Malformed);
                }
            }
        }
        self.put(close)
    }

    fn entry(&mut self, object: bool, depth: usize) -> Result<()> {
        if object {
            let marker = self.byte()?;
            let Form::Text(form) = form(marker) else { return Err(Malformed) };
            let name = self.string(marker, form)?;
            self.put_string(&name)?;
            self.put(b":")?;
        }
        self.value(depth)
    }

    fn put_string(&mut self, string: &str) -> Result<()> {
        let text = serde_json::to_vec(string).map_err(|_| Malformed)?;
        self.put(&text)
    }

    /// The string that a marker begins.
    fn string(&mut self, marker: u8, form: TextForm) -> Result<String> {
        match form {
            TextForm::Word => Ok(WORDS[usize::from(marker & 0x1F)].to_owned()),
            TextForm::Short => self.utf8(usize::from(marker & 0x3F)),
            TextForm::Long { width } => {
                let length = self.length(width)?;
                self.utf8(length)
            }
            TextForm::Reference { width } => self.referred(width),
            TextForm::Base64 { width, url } => self.base64_text(width, url),
            TextForm::Guid { upper, quoted } => self.guid_text(upper, quoted),
            TextForm::FromTable(table) => self.packed_by_table(table),
            TextForm::Packed { width, bits, based } => self.packed(width, bits, based),
            TextForm::GuidBytes => self.guid_value(),
            TextForm::Bytes { width } => {
                let length = self.length(width)?;
                Ok(STANDARD.encode(self.take(length)?))
            }
        }
    }

    /// A reference leads to a string that is none itself, so one step is enough.
    fn referred(&mut self, width: usize) -> Result<String> {
        let target = self.length(width)?;
        let mut there = Reader { bytes: self.bytes, at: target, text: Vec::new() };
        let marker = there.byte()?;
        match form(marker) {
            Form::Text(TextForm::Reference { .. }) => Err(Malformed),
            Form::Text(form) => there.string(marker, form),
            _ => Err(Malformed),
        }
    }

    fn utf8(&mut self, length: usize) -> Result<String> {
        std::str::from_utf8(self.take(length)?).map(str::to_owned).map_err(|_| Malformed)
    }

    /// A string that is base64, stored as what it stands for: the number of groups of four characters, how many of
    /// the last are padding (inverted if the text has them left out), the bytes.
    fn base64_text(&mut self, width: usize, url: bool) -> Result<String> {
        let padded = self.length(width)? * 4;
        let padding = self.byte()?;
        let left_out = padding > 2;
        let padding = usize::from(if left_out { !padding } else { padding });
        let meant = padded.checked_sub(padding).filter(|_| padding <= 2).ok_or(Malformed)?;
        let bytes = self.take(meant * 3 / 4)?;
        let mut text = if url { URL_SAFE.encode(bytes) } else { STANDARD.encode(bytes) };
        if left_out {
            text.truncate(meant);
        }
        Ok(text)
    }

    /// A GUID in its usual spelling: two characters in each byte, the first one in the lower half.
    fn guid_text(&mut self, upper: bool, quoted: bool) -> Result<String> {
        let digits = if upper { HEX_UPPER } else { HEX_LOWER };
        let quote = if quoted { "\"" } else { "" };
        let mut text = String::from(quote);
        for (index, byte) in self.array::<16>()?.iter().enumerate() {
            if [4, 6, 8, 10].contains(&index) {
                text.push('-');
            }
            text.push(char::from(digits[usize::from(byte & 15)]));
            text.push(char::from(digits[usize::from(byte >> 4)]));
        }
        text.push_str(quote);
        Ok(text)
    }

    /// A GUID as sixteen bytes, the first three groups of which are little-endian numbers.
    fn guid_value(&mut self) -> Result<String> {
        Ok(uuid::Uuid::from_bytes_le(self.array()?).hyphenated().to_string())
    }

    /// Two characters of a table of sixteen in each byte, the first one in the lower half.
    fn packed_by_table(&mut self, table: &[u8; 16]) -> Result<String> {
        let length = usize::from(self.byte()?);
        let bytes = self.take(length.div_ceil(2))?;
        let halves = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        Ok(halves.take(length).map(|half| char::from(table[usize::from(half)])).collect())
    }

    /// Characters of a few bits each, from the lowest bit on; with a base they count from its character.
    fn packed(&mut self, width: usize, bits: u32, with_base: bool) -> Result<String> {
        let length = self.length(width)?;
        let base = if with_base { self.byte()? } else { 0 };
        let bytes = self.take((length * bits as usize).div_ceil(8))?;
        let mut text = String::with_capacity(length);
        for index in 0..length {
            let bit = index * bits as usize;
            let window = u16::from_le_bytes([bytes[bit / 8], bytes.get(bit / 8 + 1).copied().unwrap_or(0)]);
            let character = (window >> (bit % 8)) as u8 & ((1 << bits) - 1);
            let character = base.checked_add(character).filter(u8::is_ascii).ok_or(Malformed)?;
            text.push(char::from(character));
        }
        Ok(text)
    }

    fn number(&mut self, kind: NumberKind) -> Result<()> {
        let text = match kind {
            NumberKind::U8 => self.byte()?.to_string(),
            NumberKind::I8 => i8::from_le_bytes(self.array()?).to_string(),
            NumberKind::I16 => i16::from_le_bytes(self.array()?).to_string(),
            NumberKind::I32 => i32::from_le_bytes(self.array()?).to_string(),
            NumberKind::U32 => u32::from_le_bytes(self.array()?).to_string(),
            NumberKind::I64 => i64::from_le_bytes(self.array()?).to_string(),
            NumberKind::U64 => u64::from_le_bytes(self.array()?).to_string(),
            NumberKind::Double => double(f64::from_le_bytes(self.array()?))?,
            NumberKind::Float => double(f64::from(f32::from_le_bytes(self.array()?)))?,
        };
        self.put(text.as_bytes())
    }

    /// An array of numbers of one kind: the kind once, the count, the numbers.
    fn numbers(&mut self, width: usize) -> Result<()> {
        let kind = self.kind()?;
        let count = self.length(width)?;
        self.row(kind, count)
    }

    /// An array of such arrays, all of the same length. Empty ones take no bytes, so the limit on the text bounds
    /// them.
    fn rows_of_numbers(&mut self, width: usize) -> Result<()> {
        if usize::from(self.byte()?) != 0xEF + width {
            return Err(Malformed);
        }
        let kind = self.kind()?;
        let count = self.length(width)?;
        let rows = self.length(width)?;
        self.put(b"[")?;
        for index in 0..rows {
            if index > 0 {
                self.put(b",")?;
            }
            self.row(kind, count)?;
        }
        self.put(b"]")
    }

    /// Only numbers that say nothing about themselves are written one after the other, not those that JSON has.
    fn kind(&mut self) -> Result<NumberKind> {
        match self.byte()? {
            marker @ (0xD7..=0xDC | 0xCD | 0xCE) => match form(marker) {
                Form::Number(kind) => Ok(kind),
                _ => Err(Malformed),
            },
            _ => Err(Malformed),
        }
    }

    fn row(&mut self, kind: NumberKind, count: usize) -> Result<()> {
        self.put(b"[")?;
        for index in 0..count {
            if index > 0 {
                self.put(b",")?;
            }
            self.number(kind)?;
        }
        self.put(b"]")
    }
}

/// The shortest text that reads back as the same number; whole ones without a fraction, as in JSON text.
fn double(value: f64) -> Result<String> {
    if !value.is_finite() {
        return Err(Malformed);
    }
    let text = format!("{value:?}");
    Ok(text.strip_suffix(".0").map_or(text.clone(), str::to_owned))
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
