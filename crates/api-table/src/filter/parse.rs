//! The text of a filter to its expression.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Comparison, Filter, Literal, Operator};
use crate::date_time;
use crate::edm;
use crate::errors::{Code, Result, TableError};
use crate::routes::quoted;

/// Longest text.
const FILTER_BYTES_MAX: usize = 32 * 1024;
/// How deep parentheses and negations may nest; syntax trees of SQL may be about twice as high as what they are made
/// of.
const DEPTH_MAX: usize = 24;
/// Most comparisons.
const COMPARISONS_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Open,
    Close,
    Word(String),
    Literal(Literal),
}

/// Words that a parenthesis may follow at once.
const KEYWORDS: [&str; 9] = ["and", "or", "not", "eq", "ne", "gt", "ge", "lt", "le"];

/// An operand before it is known what it is compared with.
enum Operand {
    Property(String),
    Literal(Literal),
    Filter(Filter),
}

/// Reads a filter.
pub fn parse(text: &str) -> Result<Filter> {
    if text.len() > FILTER_BYTES_MAX {
        return Err(invalid("it is too long"));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, comparisons: 0 };
    let filter = parser.any(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(filter),
        Some(_) => Err(invalid("something follows its end")),
    }
}

fn invalid(why: &str) -> TableError {
    TableError::new(
        Code::InvalidInput,
        format!("One of the request inputs is not valid. The filter cannot be read: {why}."),
    )
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, behind) = match first {
            '(' => (Token::Open, &rest[1..]),
            ')' => (Token::Close, &rest[1..]),
            '\'' => {
                let (value, behind) = quoted(rest).ok_or_else(|| invalid("a string has no end"))?;
                (Token::Literal(Literal::String(value.into_owned())), behind)
            }
            _ => {
                let end = rest.find(|char: char| char.is_whitespace() || matches!(char, '(' | ')' | '\''));
                let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
                match behind.starts_with('\'') {
                    true => {
                        let (value, behind) = quoted(behind).ok_or_else(|| invalid("a value has no end"))?;
                        (Token::Literal(prefixed(word, &value)?), behind)
                    }
                    false if behind.starts_with('(') && !KEYWORDS.contains(&word) => {
                        return Err(TableError::new(
                            Code::NotImplemented,
                            "The filter calls a function; tables know none.",
                        ));
                    }
                    false => (word_token(word)?, behind),
                }
            }
        };
        tokens.push(token);
        rest = behind.trim_start();
    }
    Ok(tokens)
}

/// `datetime'…'`, `guid'…'`, `X'…'`, `binary'…'`.
fn prefixed(prefix: &str, value: &str) -> Result<Literal> {
    let literal = match prefix {
        "datetime" => date_time::parse(value).map(Literal::DateTime),
        "guid" => edm::guid(value).map(Literal::Guid),
        "X" | "x" | "binary" => bytes_of_hex(value).map(|bytes| Literal::Binary(STANDARD.encode(bytes))),
        _ => None,
    };
    literal.ok_or_else(|| invalid("a value is not of the type before its quotes"))
}

fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}

fn word_token(word: &str) -> Result<Token> {
    let literal = match word {
        "true" => Some(Literal::Boolean(true)),
        "false" => Some(Literal::Boolean(false)),
        "NaN" | "INF" | "-INF" | "Infinity" | "-Infinity" => {
            return Err(invalid("doubles without a number are compared with nothing"));
        }
        _ if word.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.')) => {
            Some(number(word).ok_or_else(|| invalid("a number cannot be read"))?)
        }
        _ => None,
    };
    Ok(literal.map_or_else(|| Token::Word(word.to_owned()), Token::Literal))
}

/// `5`, `5L`, `1.5`, `1.5e3`, `1.5d`.
fn number(word: &str) -> Option<Literal> {
    if let Some(long) = word.strip_suffix(['L', 'l']) {
        return long.parse().ok().map(Literal::Integer);
    }
    if let Ok(integer) = word.parse() {
        return Some(Literal::Integer(integer));
    }
    let plain = word.strip_suffix(['d', 'D', 'f', 'F', 'm', 'M']).unwrap_or(word);
    let usual =
        plain.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
    let value: f64 = usual.then(|| plain.parse().ok()).flatten()?;
    value.is_finite().then_some(Literal::Double(value))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    comparisons: usize,
}

impl Parser {
    fn takes_word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Word(word)) if word == wanted);
        self.at += usize::from(found);
        found
    }

    fn any(&mut self, depth: usize) -> Result<Filter> {
        let mut parts = vec![self.all(depth)?];
        while self.takes_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, Filter::Or))
    }

    fn all(&mut self, depth: usize) -> Result<Filter> {
        let mut parts = vec![self.negated(depth)?];
        while self.takes_word("and") {
            parts.push(self.negated(depth)?);
        }
        Ok(one_or(parts, Filter::And))
    }

    fn negated(&mut self, depth: usize) -> Result<Filter> {
        if depth > DEPTH_MAX {
            return Err(invalid("it nests too deep"));
        }
        match self.takes_word("not") {
            true => Ok(Filter::Not(Box::new(self.negated(depth + 1)?))),
            false => self.comparison(depth),
        }
    }

    fn comparison(&mut self, depth: usize) -> Result<Filter> {
        self.comparisons += 1;
        if self.comparisons > COMPARISONS_MAX {
            return Err(invalid("it has too many comparisons"));
        }
        let left = self.operand(depth)?;
        let Some(operator) = self.operator() else {
            return match left {
                Operand::Filter(filter) => Ok(filter),
                Operand::Literal(Literal::Boolean(value)) => Ok(Filter::Constant(value)),
                // A property alone is true if it is.
                Operand::Property(property) => Ok(Filter::Compare(Comparison {
                    property,
                    operator: Operator::Equal,
                    value: Literal::Boolean(true),
                })),
                Operand::Literal(_) => Err(invalid("a value stands alone")),
            };
        };
        match (left, self.operand(depth)?) {
            (Operand::Property(property), Operand::Literal(value)) => {
                Ok(Filter::Compare(Comparison { property, operator, value }))
            }
            (Operand::Literal(value), Operand::Property(property)) => {
                Ok(Filter::Compare(Comparison { property, operator: operator.turned(), value }))
            }
            // `(a eq 1) eq true`, as some libraries write it.
            (Operand::Filter(filter), Operand::Literal(Literal::Boolean(value)))
            | (Operand::Literal(Literal::Boolean(value)), Operand::Filter(filter)) => match operator {
                Operator::Equal | Operator::NotEqual if (operator == Operator::Equal) == value => Ok(filter),
                Operator::Equal | Operator::NotEqual => Ok(Filter::Not(Box::new(filter))),
                _ => Err(invalid("conditions are compared for equality only")),
            },
            _ => Err(invalid("a comparison needs a property and a value")),
        }
    }

    fn operator(&mut self) -> Option<Operator> {
        let operators = [
            ("eq", Operator::Equal),
            ("ne", Operator::NotEqual),
            ("gt", Operator::Greater),
            ("ge", Operator::GreaterOrEqual),
            ("lt", Operator::Less),
            ("le", Operator::LessOrEqual),
        ];
        operators.into_iter().find(|(word, _)| self.takes_word(word)).map(|(_, operator)| operator)
    }

    fn operand(&mut self, depth: usize) -> Result<Operand> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Literal(value)) => Ok(Operand::Literal(value)),
            Some(Token::Word(name)) => Ok(Operand::Property(name)),
            Some(Token::Open) => {
                // In parentheses there may be a condition, a property or a value.
                if let (Some(inside), Some(Token::Close)) =
                    (self.tokens.get(self.at), self.tokens.get(self.at + 1))
                {
                    let single = match inside {
                        Token::Literal(value) => Some(Operand::Literal(value.clone())),
                        Token::Word(name) => Some(Operand::Property(name.clone())),
                        Token::Open | Token::Close => None,
                    };
                    if let Some(single) = single {
                        self.at += 2;
                        return Ok(single);
                    }
                }
                let inside = self.any(depth + 1)?;
                match self.tokens.get(self.at) {
                    Some(Token::Close) => {
                        self.at += 1;
                        Ok(Operand::Filter(inside))
                    }
                    _ => Err(invalid("a parenthesis is not closed")),
                }
            }
            Some(Token::Close) | None => Err(invalid("something is missing")),
        }
    }
}

fn one_or(mut parts: Vec<Filter>, several: fn(Vec<Filter>) -> Filter) -> Filter {
    match parts.len() {
        1 => parts.pop().unwrap_or(Filter::Constant(false)),
        _ => several(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(property: &str, operator: Operator, value: Literal) -> Filter {
        Filter::Compare(Comparison { property: property.into(), operator, value })
    }

    #[test]
    fn literals_have_the_types_of_the_protocol() {
        for (text, value) in [
            ("A eq 'it''s'", Literal::String("it's".into())),
            ("A eq ''", Literal::String(String::new())),
            ("A eq 123", Literal::Integer(123)),
            ("A eq -123L", Literal::Integer(-123)),
            ("A eq 9223372036854775807L", Literal::Integer(i64::MAX)),
            ("A eq 1.5", Literal::Double(1.5)),
            ("A eq 1.5e3", Literal::Double(1500.0)),
            ("A eq -1E-2", Literal::Double(-0.01)),
            ("A eq true", Literal::Boolean(true)),
            ("A eq datetime'1970-01-01T00:00:00Z'", Literal::DateTime(date_time::UNIX_EPOCH_TICKS)),
            (
                "A eq guid'C9DA6455-213D-42C9-9A79-3E9149A57833'",
                Literal::Guid("c9da6455-213d-42c9-9a79-3e9149a57833".into()),
            ),
            ("A eq X'000102ff'", Literal::Binary("AAEC/w==".into())),
            ("A eq binary'00'", Literal::Binary("AA==".into())),
        ] {
            assert_eq!(parse(text).unwrap(), compare("A", Operator::Equal, value), "{text}");
        }
    }

    #[test]
    fn conditions_bind_as_in_odata() {
        let a = || compare("A", Operator::Equal, Literal::Integer(1));
        let b = || compare("B", Operator::Less, Literal::Integer(2));
        let c = || compare("C", Operator::Equal, Literal::Boolean(true));
        for (text, expected) in [
            ("A eq 1", a()),
            (" ( A eq 1 ) ", a()),
            ("1 eq A", a()),
            ("2 gt B", b()),
            ("(A) eq (1)", a()),
            ("A eq 1 and B lt 2 or C", Filter::Or(vec![Filter::And(vec![a(), b()]), c()])),
            ("A eq 1 and (B lt 2 or C)", Filter::And(vec![a(), Filter::Or(vec![b(), c()])])),
            ("not (A eq 1)", Filter::Not(Box::new(a()))),
            ("not C and A eq 1", Filter::And(vec![Filter::Not(Box::new(c())), a()])),
            ("(A eq 1) eq true", a()),
            ("(A eq 1) eq false", Filter::Not(Box::new(a()))),
            ("true", Filter::Constant(true)),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        for (text, code) in [
            ("", "InvalidInput"),
            ("A", "ok"),
            ("A eq", "InvalidInput"),
            ("A eq 'x", "InvalidInput"),
            ("A eq 1 B", "InvalidInput"),
            ("A eq B", "InvalidInput"),
            ("1 eq 1", "InvalidInput"),
            ("(A eq 1", "InvalidInput"),
            ("A eq 1)", "InvalidInput"),
            ("A eq 1x", "InvalidInput"),
            ("A eq X'0'", "InvalidInput"),
            ("A eq guid'x'", "InvalidInput"),
            ("A eq odd'x'", "InvalidInput"),
            ("A like 'x'", "InvalidInput"),
            ("5", "InvalidInput"),
            ("startswith(A,'x')", "NotImplemented"),
            ("A eq \u{1F600}", "InvalidInput"),
        ] {
            let code_of = parse(text).map_or_else(|error| error.code.name(), |_| "ok");
            assert_eq!(code_of, code, "{text}");
        }
        let deep = format!("{}A eq 1{}", "(".repeat(100), ")".repeat(100));
        assert!(parse(&deep).is_err());
        assert!(parse(&format!("{}A", "not ".repeat(100))).is_err());
        assert!(parse(&vec!["A eq 1"; 2000].join(" or ")).is_err());
    }

    #[test]
    fn the_partition_is_known_where_it_must_be() {
        for (text, expected) in [
            ("PartitionKey eq 'p'", Some("p")),
            ("'p' eq PartitionKey and RowKey gt 'a'", Some("p")),
            ("A eq 1 and (PartitionKey eq 'p' and B eq 2)", Some("p")),
            ("PartitionKey eq 'p' or A eq 1", None),
            ("not (PartitionKey eq 'p')", None),
            ("PartitionKey gt 'p'", None),
        ] {
            assert_eq!(parse(text).unwrap().partition_key(), expected, "{text}");
        }
    }
}
