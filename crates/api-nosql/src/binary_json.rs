//! The binary form of JSON that some clients send for items, read as text.
//!
//! The Rust SDK writes items in this form unless it is told not to, and the .NET SDK can be asked to. A body begins
//! with the byte 0x80, which no JSON text can begin with, so nothing has to be negotiated for requests. Answers stay
//! text, which every client accepts.
//!
//! A value is a *marker* byte and what the marker asks for. Lengths, counts and numbers are little-endian.
//!
//! ```text
//! 80                     the body begins
//! ED 0E 02               an object of 14 bytes and 2 members
//!    2C                  the word "id", one of those with a marker of their own
//!    81 31               a string (80) of 1 byte: "1"
//!    81 6E               "n"
//!    CB 07 00 00 00 …    a whole number of 8 bytes: 7
//! ```
//!
//! Turning it into text costs a copy, and in exchange there is one reader of items, with one set of rules. What a
//! small body may grow to is bounded, because strings may refer to earlier ones and so repeat them cheaply.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// The first byte of a body in this form.
const PREAMBLE: u8 = 0x80;

/// Nesting that is still read; the same order as for text.
const DEPTH_MAX: usize = 256;

/// What a body may become as text. Numbers of one byte grow to five characters, repeated strings to anything.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Words that have a marker of their own, from 0x20 on.
const WORDS: [&str; 32] = [
    "$s",
    "$t",
    "$v",
    "_attachments",
    "_etag",
    "_rid",
    "_self",
    "_ts",
    "attachments/",
    "coordinates",
    "geometry",
    "GeometryCollection",
    "id",
    "url",
    "Value",
    "label",
    "LineString",
    "link",
    "MultiLineString",
    "MultiPoint",
    "MultiPolygon",
    "name",
    "Name",
    "Type",
    "Point",
    "Polygon",
    "properties",
    "type",
    "value",
    "Feature",
    "FeatureCollection",
    "_id",
];

const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";
const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
/// The characters that dates are made of, for strings that hold nothing else.
const DATE: &[u8; 16] = b" 0123456789:-.TZ";

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
        match marker {
            0xD0 => self.put(b"null"),
            0xD1 => self.put(b"false"),
            0xD2 => self.put(b"true"),
            0xE0..=0xEF => self.nested(marker, depth.checked_sub(1).ok_or(Malformed)?),
            0xF0 | 0xF1 => self.numbers(usize::from(marker - 0xEF)),
            0xF2 | 0xF3 => self.rows_of_numbers(usize::from(marker - 0xF1)),
            0x20..=0xC6 | 0xD3 | 0xDD..=0xDF => {
                let string = self.string(marker, true)?;
                self.put_string(&string)
            }
            _ => self.number(marker),
        }
    }

    /// Arrays (E0 to E7) and objects (E8 to EF): empty, of one entry, or with a length in bytes of one, two or four
    /// bytes, after which the last three forms have a count of the same width.
    fn nested(&mut self, marker: u8, depth: usize) -> Result<()> {
        let object = marker >= 0xE8;
        let (open, close): (&[u8], &[u8]) = if object { (b"{", b"}") } else { (b"[", b"]") };
        self.put(open)?;
        match marker & 7 {
            0 => {}
            1 => self.entry(object, depth)?,
            form => {
                let width = [1, 2, 4][usize::from(form - 2) % 3];
                let length = self.length(width)?;
                let count = if form >= 5 { Some(self.length(width)?) } else { None };
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
            let name = self.string(marker, true)?;
            self.put_string(&name)?;
            self.put(b":")?;
        }
        self.value(depth)
    }

    fn put_string(&mut self, string: &str) -> Result<()> {
        let text = serde_json::to_vec(string).map_err(|_| Malformed)?;
        self.put(&text)
    }

    /// The string that a marker begins. A reference leads to a string that is none itself, so one step is enough.
    fn string(&mut self, marker: u8, references: bool) -> Result<String> {
        match marker {
            0x20..=0x3F => Ok(WORDS[usize::from(marker - 0x20)].to_owned()),
            // Words of a dictionary that travels apart from the body; clients do not send them.
            0x40..=0x70 => Err(Malformed),
            0x71..=0x74 => self.base64_text(usize::from(2 - (marker & 1)), marker >= 0x73),
            0x75..=0x77 => self.guid_text(marker),
            0x78 => self.packed_by_table(HEX_LOWER),
            0x79 => self.packed_by_table(HEX_UPPER),
            0x7A => self.packed_by_table(DATE),
            0x7B..=0x7D => self.packed(1, u32::from(marker - 0x77), true),
            0x7E | 0x7F => self.packed(usize::from(marker - 0x7D), 7, false),
            0x80..=0xBF => self.utf8(usize::from(marker & 0x3F)),
            0xC0..=0xC2 => {
                let length = self.length(1 << (marker - 0xC0))?;
                self.utf8(length)
            }
            0xC3..=0xC6 if references => {
                let target = self.length(usize::from(marker - 0xC2))?;
                let mut there = Reader { bytes: self.bytes, at: target, text: Vec::new() };
                let marker = there.byte()?;
                there.string(marker, false)
            }
            0xD3 => self.guid_value(),
            0xDD..=0xDF => {
                let length = self.length(1 << (marker - 0xDD))?;
                Ok(STANDARD.encode(self.take(length)?))
            }
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
    fn guid_text(&mut self, marker: u8) -> Result<String> {
        let digits = if marker == 0x76 { HEX_UPPER } else { HEX_LOWER };
        let quote = if marker == 0x77 { "\"" } else { "" };
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

    fn number(&mut self, marker: u8) -> Result<()> {
        let text = match marker {
            0x00..=0x1F => marker.to_string(),
            0xC8 | 0xD7 => self.byte()?.to_string(),
            0xD8 => i8::from_le_bytes(self.array()?).to_string(),
            0xC9 | 0xD9 => i16::from_le_bytes(self.array()?).to_string(),
            0xCA | 0xDA => i32::from_le_bytes(self.array()?).to_string(),
            0xDC => u32::from_le_bytes(self.array()?).to_string(),
            0xCB | 0xDB => i64::from_le_bytes(self.array()?).to_string(),
            0xC7 => u64::from_le_bytes(self.array()?).to_string(),
            0xCC | 0xCE => double(f64::from_le_bytes(self.array()?))?,
            0xCD => double(f64::from(f32::from_le_bytes(self.array()?)))?,
            _ => return Err(Malformed),
        };
        self.put(text.as_bytes())
    }

    /// An array of numbers of one kind: the kind once, the count, the numbers.
    fn numbers(&mut self, width: usize) -> Result<()> {
        let kind = self.kind()?;
        let count = self.length(width)?;
        self.row(kind, count)
    }

    /// An array of such arrays, all of the same length. Empty ones take no bytes, so the limit on the text bounds them.
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

    fn kind(&mut self) -> Result<u8> {
        let kind = self.byte()?;
        if matches!(kind, 0xD7..=0xDC | 0xCD | 0xCE) { Ok(kind) } else { Err(Malformed) }
    }

    fn row(&mut self, kind: u8, count: usize) -> Result<()> {
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
#[path = "binary_json_tests.rs"]
mod tests;
