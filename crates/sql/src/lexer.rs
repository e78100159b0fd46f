//! The lexer: SQL text to tokens with byte positions.
//!
//! The whole text is cut at once; its length is bounded by `QUERY_TEXT_BYTES_MAX`. Strings take JSON's
//! escapes in either kind of quotes, because clients that resume a sorted query write their filters
//! that way. Integers that fit 64 bits stay exact, everything else becomes a double.

use crate::ast::{Literal, Span};
use crate::error::SqlError;
use crate::token::{Keyword, SYMBOLS, Token, TokenKind};

pub(crate) fn tokenize(text: &str) -> Result<Vec<Token>, SqlError> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    // UTF-16 units passed so far, counted along the way so that long texts stay linear.
    let mut units = 0;
    let mut counted = 0;
    loop {
        lexer.skip_blanks();
        let start = lexer.at;
        let kind = lexer.next_kind()?;
        let done = kind == TokenKind::End;
        let unit_start = units + utf16_length(&text[counted..start]);
        units = unit_start + utf16_length(&text[start..lexer.at]);
        counted = lexer.at;
        tokens.push(Token { kind, start, end: lexer.at, span: Span::new(unit_start, units) });
        if done {
            return Ok(tokens);
        }
    }
}

fn utf16_length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn byte(&self, ahead: usize) -> u8 {
        // Zero is no start of any token, so it can stand for the end of the text.
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        loop {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'-' if self.byte(1) == b'-' => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ => return,
            }
        }
    }

    fn next_kind(&mut self) -> Result<TokenKind, SqlError> {
        let Some(first) = self.rest().chars().next() else { return Ok(TokenKind::End) };
        match first {
            'a'..='z' | 'A'..='Z' | '_' => Ok(self.word()),
            '0'..='9' => self.number(),
            '.' if self.byte(1).is_ascii_digit() => self.number(),
            '\'' | '"' => self.string(first),
            '@' => self.parameter(),
            _ => self.symbol(first),
        }
    }

    fn word_end(&self, from: usize) -> usize {
        let tail = &self.text.as_bytes()[from..];
        from + tail.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
    }

    fn word(&mut self) -> TokenKind {
        let start = self.at;
        self.at = self.word_end(start);
        match Keyword::of(&self.text[start..self.at]) {
            Some(keyword) => TokenKind::Keyword(keyword),
            None => TokenKind::Word,
        }
    }

    fn parameter(&mut self) -> Result<TokenKind, SqlError> {
        let end = self.word_end(self.at + 1);
        if end == self.at + 1 {
            return Err(self.invalid_token(self.at, end));
        }
        self.at = end;
        Ok(TokenKind::Parameter)
    }

    fn symbol(&mut self, first: char) -> Result<TokenKind, SqlError> {
        for (text, symbol) in SYMBOLS {
            if self.rest().starts_with(text) {
                self.at += text.len();
                return Ok(TokenKind::Symbol(*symbol));
            }
        }
        Err(self.invalid_token(self.at, self.at + first.len_utf8()))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.byte(0).is_ascii_digit() {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<TokenKind, SqlError> {
        let start = self.at;
        if self.byte(0) == b'0' && matches!(self.byte(1), b'x' | b'X') {
            return self.hexadecimal(start);
        }
        self.digits();
        let mut integer = true;
        if self.byte(0) == b'.' {
            integer = false;
            self.at += 1;
            self.digits();
        }
        if matches!(self.byte(0), b'e' | b'E') {
            integer = false;
            self.at += 1;
            if matches!(self.byte(0), b'+' | b'-') {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.invalid_number(start));
            }
        }
        if self.word_end(self.at) != self.at {
            return Err(self.invalid_number(start));
        }
        let text = &self.text[start..self.at];
        if integer && let Ok(value) = text.parse::<i64>() {
            return Ok(TokenKind::Literal(Literal::Integer(value)));
        }
        match text.parse::<f64>() {
            // A whole number is an integer however it is written, `1.0` or `1e2`, so that equal literals
            // are equal trees.
            Ok(value) if value == value.trunc() && value.abs() < DOUBLE_EXACT_MAX => {
                Ok(TokenKind::Literal(Literal::Integer(value as i64)))
            }
            Ok(value) if value.is_finite() => Ok(TokenKind::Literal(Literal::Double(value))),
            _ => Err(self.invalid_number(start)),
        }
    }

    fn hexadecimal(&mut self, start: usize) -> Result<TokenKind, SqlError> {
        self.at += 2;
        let end = self.word_end(self.at);
        let digits = &self.text[self.at..end];
        let mut value = 0f64;
        for digit in digits.chars() {
            match digit.to_digit(16) {
                Some(digit) => value = value * 16.0 + f64::from(digit),
                None => return Err(self.invalid_number(start)),
            }
        }
        if digits.is_empty() || !value.is_finite() {
            return Err(self.invalid_number(start));
        }
        let literal = match i64::from_str_radix(digits, 16) {
            Ok(exact) => Literal::Integer(exact),
            Err(_) => Literal::Double(value),
        };
        self.at = end;
        Ok(TokenKind::Literal(literal))
    }

    fn string(&mut self, quote: char) -> Result<TokenKind, SqlError> {
        let start = self.at;
        let mut value = String::new();
        let mut chars = self.text[start + 1..].char_indices();
        // A high surrogate waits here for its other half; alone it becomes U+FFFD, as in stored items.
        let mut high: Option<u16> = None;
        while let Some((offset, character)) = chars.next() {
            let unit = if character != '\\' {
                None
            } else {
                match chars.next().map(|(_, escaped)| escaped) {
                    Some('u') => {
                        let digits = self.text.get(start + 1 + offset + 2..start + 1 + offset + 6);
                        let Some(unit) = digits
                            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
                            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
                        else {
                            return Err(self.invalid_string(start));
                        };
                        chars.nth(3);
                        Some(u32::from(unit))
                    }
                    Some(escaped) => match unescape(escaped) {
                        Some(plain) => Some(plain as u32 | PLAIN),
                        None => return Err(self.invalid_string(start)),
                    },
                    None => return Err(self.invalid_string(start)),
                }
            };
            if let Some(code) = unit
                && code & PLAIN == 0
            {
                push_unit(&mut value, &mut high, code as u16);
                continue;
            }
            if high.take().is_some() {
                value.push(char::REPLACEMENT_CHARACTER);
            }
            match unit {
                Some(code) => {
                    value.push(char::from_u32(code & !PLAIN).unwrap_or(char::REPLACEMENT_CHARACTER))
                }
                None if character == quote => {
                    self.at = start + 1 + offset + 1;
                    return Ok(TokenKind::Literal(Literal::String(value)));
                }
                None => value.push(character),
            }
        }
        Err(self.invalid_string(start))
    }

    fn place(&self, start: usize, end: usize) -> Span {
        let unit_start = utf16_length(&self.text[..start]);
        Span::new(unit_start, unit_start + utf16_length(&self.text[start..end]))
    }

    fn invalid_token(&self, start: usize, end: usize) -> SqlError {
        let message = format!("Syntax error, invalid token '{}'.", &self.text[start..end]);
        SqlError::at("SC1010", message, self.place(start, end))
    }

    fn invalid_number(&self, start: usize) -> SqlError {
        let end = self.word_end(self.at).max(start + 1);
        let message = format!("Syntax error, invalid numeric value token '{}'.", &self.text[start..end]);
        SqlError::at("SC1012", message, self.place(start, end))
    }

    fn invalid_string(&self, start: usize) -> SqlError {
        let end = self.text.len();
        let shown: String = self.text[start..].chars().take(SHOWN_CHARS_MAX).collect();
        let message = format!("Syntax error, invalid string literal token '{shown}'.");
        SqlError::at("SC1011", message, self.place(start, end))
    }
}

/// Below this every whole number has a double of its own.
const DOUBLE_EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// How much of a broken string an error repeats.
const SHOWN_CHARS_MAX: usize = 100;

/// Marks a code point that came from a simple escape, as opposed to a `\u` code unit.
const PLAIN: u32 = 1 << 31;

fn unescape(escaped: char) -> Option<char> {
    Some(match escaped {
        '\'' | '"' | '\\' | '/' => escaped,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        _ => return None,
    })
}

fn push_unit(value: &mut String, high: &mut Option<u16>, unit: u16) {
    if let Some(first) = high.take() {
        if (0xDC00..0xE000).contains(&unit) {
            let pair = char::decode_utf16([first, unit]).next();
            value.push(pair.and_then(Result::ok).unwrap_or(char::REPLACEMENT_CHARACTER));
            return;
        }
        value.push(char::REPLACEMENT_CHARACTER);
    }
    match unit {
        0xD800..0xDC00 => *high = Some(unit),
        _ => value.push(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)),
    }
}
