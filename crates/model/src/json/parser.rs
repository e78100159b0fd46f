//! From JSON text to a stored document, in one pass and without a tree.
//!
//! The text is checked to be UTF-8 once, then read by recursive descent that writes straight into a [`DocWriter`].
//! Integers are kept exact up to 64 bits, other numbers are rounded correctly, `-0` and `-0.0` are stored as 0, and a
//! number beyond the doubles is refused. Escaped surrogates that have no partner become U+FFFD, as on the service. A
//! name given twice keeps its first place and its last value.

use super::decimal::TENS;
use super::scan::plain_prefix;
use crate::document::format::DEPTH_MAX;
use crate::document::raw::Raw;
use crate::document::writer::DocWriter;
use crate::number::Number;
use crate::value::Value;

/// Longest text accepted. Stored sizes are 32 bits wide and a stored document may be three times as long as its text,
/// so this keeps all of them in range; limits of requests and items are far below.
pub const JSON_BYTES_MAX: usize = 256 << 20;

/// What the parser lets pass.
#[derive(Clone, Copy, Debug)]
pub struct ParseOptions<'a> {
    /// Members of the outermost object to leave out: system properties that a client may send back.
    pub skip_top_level: &'a [&'a str],
    /// Deepest nesting accepted; values above [`DEPTH_MAX`] mean `DEPTH_MAX`.
    pub depth_max: usize,
}

impl Default for ParseOptions<'_> {
    fn default() -> Self {
        ParseOptions { skip_top_level: &[], depth_max: DEPTH_MAX }
    }
}

/// Why a text is no JSON, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at byte {offset}")]
pub struct JsonError {
    pub offset: usize,
    pub message: &'static str,
}

/// Reads one JSON value and returns it as a stored document.
pub fn parse_json(text: &[u8], options: &ParseOptions<'_>) -> Result<Vec<u8>, JsonError> {
    parse_into(DocWriter::with_capacity(text.len() + text.len() / 4 + 32), text, options)
}

/// The same with a writer of the caller's.
pub(crate) fn parse_into(
    writer: DocWriter,
    text: &[u8],
    options: &ParseOptions<'_>,
) -> Result<Vec<u8>, JsonError> {
    let depth_max = options.depth_max.min(DEPTH_MAX);
    let mut reader = Reader { parser: Parser::new(text)?, writer, options, depth_max };
    reader.value(0)?;
    reader.parser.end()?;
    Ok(reader.writer.finish())
}

/// Reads one JSON value as an owned value.
pub fn parse_json_value(text: &[u8]) -> Result<Value, JsonError> {
    let document = parse_json(text, &ParseOptions::default())?;
    Raw::document(&document)
        .map(Raw::to_value)
        .map_err(|_| JsonError { offset: 0, message: "the value cannot be read back" })
}

/// Text with a position; the lexical rules.
pub(crate) struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    /// Strings with escapes are put together here.
    scratch: Vec<u8>,
}

/// A string as it stands in the text or, when it had escapes, in the scratch space.
pub(crate) enum Str<'t> {
    Plain(&'t [u8]),
    Unescaped,
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Result<Parser<'t>, JsonError> {
        if text.len() > JSON_BYTES_MAX {
            return Err(JsonError { offset: JSON_BYTES_MAX, message: "the text is too long" });
        }
        if let Err(error) = std::str::from_utf8(text) {
            return Err(JsonError { offset: error.valid_up_to(), message: "the text is not UTF-8" });
        }
        Ok(Parser { text, at: 0, scratch: Vec::new() })
    }

    #[inline]
    pub(crate) fn fail<T>(&self, message: &'static str) -> Result<T, JsonError> {
        Err(JsonError { offset: self.at, message })
    }

    /// Skips white space and returns the next byte without taking it; 0 at the end.
    #[inline]
    pub(crate) fn peek(&mut self) -> u8 {
        // Compact text has none, so that comes first.
        match self.text.get(self.at) {
            Some(&byte) if byte > b' ' => byte,
            _ => self.skip_space(),
        }
    }

    #[cold]
    fn skip_space(&mut self) -> u8 {
        loop {
            match self.text.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(&byte) => return byte,
                None => return 0,
            }
        }
    }

    #[inline]
    pub(crate) fn take(&mut self) {
        self.at += 1;
    }

    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        self.peek();
        if self.at < self.text.len() { self.fail("something follows the value") } else { Ok(()) }
    }

    pub(crate) fn literal(&mut self, word: &'static [u8]) -> Result<(), JsonError> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            self.fail("a value was expected")
        }
    }

    /// The contents of the scratch space after [`Str::Unescaped`].
    pub(crate) fn unescaped(&self) -> &[u8] {
        &self.scratch
    }

    /// Reads a string whose opening quote is the next byte.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Str<'t>, JsonError> {
        self.at += 1;
        let start = self.at;
        let length = plain_prefix(&self.text[start..]);
        self.at += length;
        match self.text.get(self.at) {
            Some(b'"') => {
                self.at += 1;
                Ok(Str::Plain(&self.text[start..start + length]))
            }
            Some(b'\\') => {
                self.scratch.clear();
                self.scratch.extend_from_slice(&self.text[start..start + length]);
                self.unescape()?;
                Ok(Str::Unescaped)
            }
            Some(_) => self.fail("a control character in a string must be escaped"),
            None => self.fail("the string has no end"),
        }
    }

    /// Reads the rest of a string from its first backslash into the scratch space.
    fn unescape(&mut self) -> Result<(), JsonError> {
        loop {
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    let byte = match self.text.get(self.at + 1) {
                        Some(b'u') => {
                            self.at += 2;
                            self.unicode_escape()?;
                            continue;
                        }
                        Some(b'n') => b'\n',
                        Some(b't') => b'\t',
                        Some(b'r') => b'\r',
                        Some(b'b') => 0x08,
                        Some(b'f') => 0x0C,
                        Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
                        _ => return self.fail("an unknown escape"),
                    };
                    self.scratch.push(byte);
                    self.at += 2;
                }
                Some(_) => {
                    let length = plain_prefix(&self.text[self.at..]);
                    if length == 0 {
                        return self.fail("a control character in a string must be escaped");
                    }
                    self.scratch.extend_from_slice(&self.text[self.at..self.at + length]);
                    self.at += length;
                }
                None => return self.fail("the string has no end"),
            }
        }
    }

    /// Reads four digits behind `\u`, and the second half of a pair if one follows.
    fn unicode_escape(&mut self) -> Result<(), JsonError> {
        let unit = self.four_digits(self.at)?;
        self.at += 4;
        let mut code = unit;
        if (0xD800..0xDC00).contains(&unit) && self.text[self.at..].starts_with(b"\\u") {
            let low = self.four_digits(self.at + 2)?;
            if (0xDC00..0xE000).contains(&low) {
                code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                self.at += 6;
            }
        }
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        self.scratch.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn four_digits(&self, at: usize) -> Result<u32, JsonError> {
        let digits = self.text.get(at..at + 4).unwrap_or(&[]);
        let mut code = 0;
        for &digit in digits {
            match (digit as char).to_digit(16) {
                Some(digit) => code = code << 4 | digit,
                None => return self.fail("four hexadecimal digits were expected"),
            }
        }
        if digits.len() < 4 { self.fail("four hexadecimal digits were expected") } else { Ok(code) }
    }

    /// Reads a number whose first byte is next. `-0` stays a negative double; callers decide what it means.
    pub(crate) fn number(&mut self) -> Result<Number, JsonError> {
        let text = &self.text[self.at..];
        let negative = text.first() == Some(&b'-');
        let mut at = usize::from(negative);
        let whole_start = at;
        let (mut digits, mut exponent) = (0u64, 0i64);
        while let Some(&byte @ b'0'..=b'9') = text.get(at) {
            digits = digits.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            at += 1;
        }
        let whole = at - whole_start;
        if whole == 0 || (whole > 1 && text[whole_start] == b'0') {
            return self.fail("a value was expected");
        }
        let mut places = whole;
        let mut integer = true;
        if text.get(at) == Some(&b'.') {
            integer = false;
            at += 1;
            let start = at;
            while let Some(&byte @ b'0'..=b'9') = text.get(at) {
                digits = digits.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
                at += 1;
            }
            if at == start {
                self.at += at;
                return self.fail("digits must follow the point");
            }
            places += at - start;
            exponent = -((at - start) as i64);
        }
        if let Some(b'e' | b'E') = text.get(at) {
            integer = false;
            at += 1;
            let minus = text.get(at) == Some(&b'-');
            at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
            let start = at;
            let mut power = 0i64;
            while let Some(&byte @ b'0'..=b'9') = text.get(at) {
                // Saturates far outside the doubles, so that a long exponent cannot wrap around.
                power = (power * 10 + i64::from(byte - b'0')).min(1_000_000_000);
                at += 1;
            }
            if at == start {
                self.at += at;
                return self.fail("digits must follow the exponent sign");
            }
            exponent += if minus { -power } else { power };
        }
        let number = if integer
            && places <= 19
            && let Some(exact) = exact_integer(digits, negative)
        {
            // 19 digits never wrap around 64 bits.
            exact
        } else if integer
            && places == 20
            && !negative
            && let Some(exact) = parse_integer(&text[..at])
        {
            exact
        } else if places <= 19 && digits <= 1 << 53 && exponent.unsigned_abs() < TENS.len() as u64 {
            // Both operands are exact, so one operation rounds correctly.
            let power = TENS[exponent.unsigned_abs() as usize];
            let value = if exponent < 0 { digits as f64 / power } else { digits as f64 * power };
            Number::Double(if negative { -value } else { value })
        } else {
            let value = std::str::from_utf8(&text[..at]).ok().and_then(|text| text.parse::<f64>().ok());
            match value {
                Some(value) if value.is_finite() => Number::Double(value),
                _ => return self.fail("the number is beyond the range of doubles"),
            }
        };
        self.at += at;
        Ok(number)
    }
}

/// A short integer in its shape; `None` for what only a double can hold, such as -0.
fn exact_integer(digits: u64, negative: bool) -> Option<Number> {
    if negative {
        if digits == 0 {
            return None;
        }
        0i64.checked_sub_unsigned(digits).map(Number::Int)
    } else {
        Some(Number::from_u64(digits))
    }
}

fn parse_integer(text: &[u8]) -> Option<Number> {
    std::str::from_utf8(text).ok()?.parse::<u64>().ok().map(Number::from_u64)
}

/// The grammar: drives the lexer and fills the writer.
struct Reader<'r, 't> {
    parser: Parser<'t>,
    writer: DocWriter,
    options: &'r ParseOptions<'r>,
    depth_max: usize,
}

impl Reader<'_, '_> {
    fn value(&mut self, depth: usize) -> Result<(), JsonError> {
        match self.parser.peek() {
            b'"' => match self.parser.string()? {
                Str::Plain(text) => self.writer.string_bytes(text, false),
                Str::Unescaped => {
                    let text = self.parser.unescaped();
                    self.writer.string_bytes(text, super::text::needs_escape(text));
                }
            },
            b'{' => return self.object(depth + 1),
            b'[' => return self.array(depth + 1),
            b'-' | b'0'..=b'9' => match self.parser.number()? {
                Number::Double(0.0) => self.writer.number(Number::Int(0)),
                number => self.writer.number(number),
            },
            b't' => {
                self.parser.literal(b"true")?;
                self.writer.bool(true);
            }
            b'f' => {
                self.parser.literal(b"false")?;
                self.writer.bool(false);
            }
            b'n' => {
                self.parser.literal(b"null")?;
                self.writer.null();
            }
            _ => return self.parser.fail("a value was expected"),
        }
        Ok(())
    }

    fn object(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > self.depth_max {
            return self.parser.fail("the value is nested too deeply");
        }
        self.parser.take();
        self.writer.begin_object();
        if self.parser.peek() == b'}' {
            self.parser.take();
            self.writer.end_object();
            return Ok(());
        }
        loop {
            if self.parser.peek() != b'"' {
                return self.parser.fail("a property name was expected");
            }
            let mark = self.writer.mark();
            let name = self.parser.string()?;
            let (key, escape) = match &name {
                Str::Plain(key) => (*key, false),
                Str::Unescaped => {
                    let key = self.parser.unescaped();
                    (key, super::text::needs_escape(key))
                }
            };
            let skip = depth == 1 && self.options.skip_top_level.iter().any(|name| name.as_bytes() == key);
            self.writer.key_bytes(key, escape);
            if self.parser.peek() != b':' {
                return self.parser.fail("a colon was expected");
            }
            self.parser.take();
            self.value(depth)?;
            if skip {
                self.writer.forget(mark);
            }
            match self.parser.peek() {
                b',' => self.parser.take(),
                b'}' => break,
                _ => return self.parser.fail("a comma or a closing brace was expected"),
            }
        }
        self.parser.take();
        self.writer.end_object();
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > self.depth_max {
            return self.parser.fail("the value is nested too deeply");
        }
        self.parser.take();
        self.writer.begin_array();
        if self.parser.peek() == b']' {
            self.parser.take();
            self.writer.end_array();
            return Ok(());
        }
        loop {
            self.value(depth)?;
            match self.parser.peek() {
                b',' => self.parser.take(),
                b']' => break,
                _ => return self.parser.fail("a comma or a closing bracket was expected"),
            }
        }
        self.parser.take();
        self.writer.end_array();
        Ok(())
    }
}
