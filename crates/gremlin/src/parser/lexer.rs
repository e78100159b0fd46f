//! Text to tokens: names, numbers with their suffixes, strings of both quotes, marks; comments are left out.

use crate::error::{Error, Position, Result};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    Name(String),
    /// Digits with sign, point, exponent and suffix as written.
    Number(String),
    Text(String),
    Mark(char),
    /// `..`
    Range,
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Spanned {
    pub token: Token,
    pub at: Position,
    /// Byte offset in the script.
    pub offset: usize,
    /// Whether it is the first on its line.
    pub starts_line: bool,
}

pub(crate) fn tokens(script: &str) -> Result<Vec<Spanned>> {
    let mut lexer = Lexer { script, offset: 0, line: 1, line_start: 0, fresh_line: true };
    let mut all = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let (at, offset) = (lexer.position(), lexer.offset);
        let starts_line = std::mem::replace(&mut lexer.fresh_line, false);
        let token = lexer.token(at)?;
        let is_end = token == Token::End;
        all.push(Spanned { token, at, offset, starts_line });
        if is_end {
            return Ok(all);
        }
    }
}

struct Lexer<'a> {
    script: &'a str,
    offset: usize,
    line: u32,
    line_start: usize,
    fresh_line: bool,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.script[self.offset..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn peek_after(&self, count: usize) -> Option<char> {
        self.rest().chars().nth(count)
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.offset += c.len_utf8();
        if c == '\n' {
            self.line += 1;
            self.line_start = self.offset;
            self.fresh_line = true;
        }
        Some(c)
    }

    fn position(&self) -> Position {
        let column = self.script[self.line_start..self.offset].chars().count() as u32 + 1;
        Position { line: self.line, column }
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            if rest.starts_with("//") {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.advance();
                }
            } else if rest.starts_with("/*") {
                let at = self.position();
                let Some(length) = rest.find("*/") else {
                    return Err(unexpected("/*", self.script, at));
                };
                let end = self.offset + length + 2;
                while self.offset < end {
                    self.advance();
                }
            } else if self.peek().is_some_and(|c| c.is_whitespace() || c == '\u{feff}') {
                self.advance();
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self, at: Position) -> Result<Token> {
        let Some(c) = self.peek() else { return Ok(Token::End) };
        if c.is_alphabetic() || c == '_' || c == '$' {
            let start = self.offset;
            while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
                self.advance();
            }
            return Ok(Token::Name(self.script[start..self.offset].to_owned()));
        }
        if c == '"' || c == '\'' {
            return self.text(c, at);
        }
        let signed = matches!(c, '+' | '-') && self.peek_after(1).is_some_and(|c| c.is_ascii_digit());
        if c.is_ascii_digit()
            || signed
            || (c == '.' && self.peek_after(1).is_some_and(|c| c.is_ascii_digit()))
        {
            return Ok(self.number());
        }
        if self.rest().starts_with("..") {
            self.advance();
            self.advance();
            return Ok(Token::Range);
        }
        self.advance();
        match c {
            '.' | ',' | ';' | ':' | '(' | ')' | '[' | ']' | '{' | '}' | '-' | '+' | '=' | '>' | '<' | '!'
            | '?' | '&' | '|' | '*' | '/' | '%' | '@' => Ok(Token::Mark(c)),
            _ => Err(unexpected(&c.to_string(), self.script, at)),
        }
    }

    fn number(&mut self) -> Token {
        let start = self.offset;
        if matches!(self.peek(), Some('+' | '-')) {
            self.advance();
        }
        if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.advance();
            self.advance();
            while self.peek().is_some_and(|c| c.is_ascii_hexdigit() || c == '_') {
                self.advance();
            }
        } else {
            self.digits();
            if self.peek() == Some('.') && self.peek_after(1).is_some_and(|c| c.is_ascii_digit()) {
                self.advance();
                self.digits();
            }
            let exponent = matches!(self.peek(), Some('e' | 'E'))
                && match self.peek_after(1) {
                    Some('+' | '-') => self.peek_after(2).is_some_and(|c| c.is_ascii_digit()),
                    Some(c) => c.is_ascii_digit(),
                    None => false,
                };
            if exponent {
                self.advance();
                self.advance();
                self.digits();
            }
        }
        if self.peek().is_some_and(|c| "bBsSiIlLnNgGfFdDmM".contains(c)) {
            self.advance();
        }
        Token::Number(self.script[start..self.offset].to_owned())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_digit() || c == '_') {
            self.advance();
        }
    }

    fn text(&mut self, quote: char, at: Position) -> Result<Token> {
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let is_triple = self.rest().starts_with(&triple);
        for _ in 0..if is_triple { 3 } else { 1 } {
            self.advance();
        }
        let mut text = String::new();
        loop {
            if is_triple && self.rest().starts_with(&triple) {
                for _ in 0..3 {
                    self.advance();
                }
                return Ok(Token::Text(text));
            }
            match self.advance() {
                None => return Err(unexpected(&quote.to_string(), self.script, at)),
                Some(c) if c == quote && !is_triple => return Ok(Token::Text(text)),
                Some('\\') => text.push(self.escape(at)?),
                Some(c) => text.push(c),
            }
        }
    }

    fn escape(&mut self, at: Position) -> Result<char> {
        let c = self.advance().ok_or_else(|| unexpected("\\", self.script, at))?;
        Ok(match c {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            'u' => {
                let first = self.hex4(at)?;
                if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
                    self.advance();
                    self.advance();
                    let second = self.hex4(at)?;
                    let low = second.wrapping_sub(0xdc00);
                    if low < 0x400 {
                        return char::from_u32(0x10000 + ((first - 0xd800) << 10) + low)
                            .ok_or_else(|| unexpected("\\u", self.script, at));
                    }
                }
                char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => other,
        })
    }

    fn hex4(&mut self, at: Position) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.advance().and_then(|c| c.to_digit(16));
            code = code * 16 + digit.ok_or_else(|| unexpected("\\u", self.script, at))?;
        }
        Ok(code)
    }
}

/// The service's words for what cannot stand here. Long scripts are cut.
pub(crate) fn unexpected(token: &str, script: &str, at: Position) -> Error {
    const SHOWN_CHARS: usize = 200;
    let shown: String = script.chars().take(SHOWN_CHARS).collect();
    Error::compile(format!("Script compile error: Unexpected token: '{token}'; in input: '{shown}'."), at)
}
