//! The text front end: gremlin-lang with the Groovy spellings that people write.
//!
//! `g.V().has('age', gt(30)).order().by('name', desc).limit(10).toList();` becomes [`Bytecode`](crate::Bytecode) and a
//! terminal. Step names are found without regard to case when no step is spelled so. Deliberately missing: closures,
//! variables, arithmetic, anything that would be code.

mod lexer;
mod names;
mod number;

pub(crate) use number::{number, smallest};

use std::collections::HashMap;
use std::sync::Arc;

use lexer::{Spanned, Token, tokens, unexpected};

use crate::bytecode::{Bytecode, Instruction, Strategy};
use crate::error::{Error, ErrorKind, Position, Result};
use crate::predicate::P;
use crate::run::{Script, Statement, Terminal};
use crate::steps;
use crate::value::Value;

/// Arguments inside arguments inside arguments.
const NESTING_MAX: usize = 100;
/// Bytes of a script: the service takes 64 KB, and drivers send larger ones to nobody.
const SCRIPT_BYTES_MAX: usize = 1 << 20;
/// Members of a range literal such as `[1..5]`.
const RANGE_MAX: i64 = 100_000;

pub(crate) fn parse(script: &str, bindings: &HashMap<String, Value>) -> Result<Script> {
    if script.len() > SCRIPT_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::Limit,
            format!("The script is longer than {SCRIPT_BYTES_MAX} bytes."),
        ));
    }
    for (name, value) in bindings {
        if matches!(value, Value::Traversal(_) | Value::Strategy(_)) {
            let text = format!(
                "Value of variable {name} is not a constant type. Cannot assign complex values to groovy variable."
            );
            return Err(Error::new(ErrorKind::Argument, text));
        }
    }
    let mut parser = Parser { script, bindings, tokens: tokens(script)?, at: 0, depth: 0 };
    let mut statements = Vec::new();
    loop {
        while parser.eat(';') {}
        if parser.peek() == &Token::End {
            break;
        }
        statements.push(parser.statement()?);
        if !matches!(parser.peek(), Token::Mark(';') | Token::End) && !parser.tokens[parser.at].starts_line {
            return Err(parser.unexpected());
        }
    }
    if statements.is_empty() {
        return Err(Error::compile("Script compile error: The script is empty.", Position::default()));
    }
    Ok(Script { statements })
}

struct Parser<'a> {
    script: &'a str,
    bindings: &'a HashMap<String, Value>,
    tokens: Vec<Spanned>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn peek_after(&self, count: usize) -> &Token {
        &self.tokens[(self.at + count).min(self.tokens.len() - 1)].token
    }

    fn position(&self) -> Position {
        self.tokens[self.at].at
    }

    fn advance(&mut self) -> Token {
        let token = self.tokens[self.at].token.clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, mark: char) -> bool {
        let found = self.peek() == &Token::Mark(mark);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, mark: char) -> Result<()> {
        if self.eat(mark) { Ok(()) } else { Err(self.unexpected()) }
    }

    fn unexpected(&self) -> Error {
        let text = match self.peek() {
            Token::Name(text) | Token::Number(text) => text.clone(),
            Token::Text(text) => format!("\"{text}\""),
            Token::Mark(c) => c.to_string(),
            Token::Range => "..".to_owned(),
            Token::End => "<EOF>".to_owned(),
        };
        unexpected(&text, self.script, self.position())
    }

    fn name(&mut self) -> Result<String> {
        match self.peek() {
            Token::Name(_) => match self.advance() {
                Token::Name(name) => Ok(name),
                _ => Err(self.unexpected()),
            },
            _ => Err(self.unexpected()),
        }
    }

    fn statement(&mut self) -> Result<Statement> {
        let at = self.position();
        if let Token::Name(name) = self.peek().clone() {
            if name == "g" && self.peek_after(1) == &Token::Mark('.') {
                self.advance();
                let (traversal, terminal) = self.chain(true)?;
                return Ok(Statement { traversal: Arc::new(traversal), terminal });
            }
            if self.peek_after(1) == &Token::Mark('=') || name == "def" {
                return Err(self.unsupported_rule("assignment", at));
            }
        }
        if self.peek() == &Token::Mark('{') {
            return Err(self.closure());
        }
        // A value alone is its own result, as in a console.
        let value = match self.value()? {
            Value::Traversal(nested) => return Ok(Statement { traversal: nested, terminal: None }),
            value => value,
        };
        let inject = Instruction { name: Arc::from("inject"), arguments: vec![value], at, literal: true };
        Ok(Statement {
            traversal: Arc::new(Bytecode { source: vec![], steps: vec![inject] }),
            terminal: None,
        })
    }

    /// `.name(arguments)` as long as there are some, then perhaps a terminal.
    fn chain(&mut self, rooted: bool) -> Result<(Bytecode, Option<Terminal>)> {
        let mut bytecode = Bytecode::default();
        let mut terminal = None;
        while self.eat('.') {
            let at = self.position();
            let written = self.name()?;
            if self.peek() == &Token::Mark('{') {
                return Err(self.closure());
            }
            if terminal.is_some() {
                return Err(no_method(&written, at));
            }
            if rooted && bytecode.steps.is_empty() && steps::is_source(&written) {
                let arguments = self.arguments()?;
                bytecode.source.push(Instruction { name: Arc::from(written), arguments, at, literal: true });
                continue;
            }
            if let Some(found) = terminal_of(&written)
                && self.peek() == &Token::Mark('(')
            {
                let arguments = self.arguments()?;
                terminal = Some(match (found, arguments.first()) {
                    (Terminal::Next(_), Some(count)) => Terminal::Next(
                        count
                            .as_i64()
                            .and_then(|n| u64::try_from(n).ok())
                            .ok_or_else(|| self.unexpected())?,
                    ),
                    (found, _) => found,
                });
                continue;
            }
            bytecode.steps.push(self.call(written, at)?);
        }
        Ok((bytecode, terminal))
    }

    fn call(&mut self, written: String, at: Position) -> Result<Instruction> {
        let Some(name) = steps::spelling(&written) else { return Err(no_method(&written, at)) };
        if self.peek() != &Token::Mark('(') {
            return Err(self.unexpected());
        }
        // `V(` and then a name: the argument is bound, not written.
        let literal = !matches!(self.peek_after(1), Token::Name(_));
        Ok(Instruction { name: Arc::from(name), arguments: self.arguments()?, at, literal })
    }

    fn arguments(&mut self) -> Result<Vec<Value>> {
        self.expect('(')?;
        let mut arguments = Vec::new();
        while !self.eat(')') {
            if !arguments.is_empty() {
                self.expect(',')?;
            }
            arguments.push(self.value()?);
        }
        if self.peek() == &Token::Mark('{') {
            return Err(self.closure());
        }
        Ok(arguments)
    }

    fn value(&mut self) -> Result<Value> {
        if self.depth >= NESTING_MAX {
            let text = format!("Script compile error: More than {NESTING_MAX} levels of nesting.");
            return Err(Error::compile(text, self.position()));
        }
        self.depth += 1;
        let value = self.one_value();
        self.depth -= 1;
        let mut value = value?;
        if self.peek() == &Token::Range {
            self.advance();
            let end = self.value()?;
            value = self.range(value, end)?;
        }
        if self.peek() == &Token::Mark('-') && self.peek_after(1) == &Token::Mark('>') {
            return Err(self.closure());
        }
        Ok(value)
    }

    fn one_value(&mut self) -> Result<Value> {
        let at = self.position();
        match self.peek().clone() {
            Token::Number(text) => {
                let value = number(&text).ok_or_else(|| self.unexpected())?;
                self.advance();
                Ok(value)
            }
            Token::Text(text) => {
                self.advance();
                Ok(Value::string(text))
            }
            Token::Mark(sign @ ('-' | '+')) => {
                self.advance();
                match self.peek() {
                    Token::Name(name) if name == "Infinity" => {
                        self.advance();
                        Ok(Value::Double(if sign == '-' { f64::NEG_INFINITY } else { f64::INFINITY }))
                    }
                    _ => Err(self.unexpected()),
                }
            }
            Token::Mark('[') => self.list_or_map(),
            Token::Mark('{') => self.set(),
            Token::Mark('(') => {
                self.advance();
                let value = self.value()?;
                self.expect(')')?;
                Ok(value)
            }
            Token::Name(name) => {
                self.advance();
                self.named(name, at)
            }
            _ => Err(self.unexpected()),
        }
    }

    fn list_or_map(&mut self) -> Result<Value> {
        self.expect('[')?;
        if self.eat(':') {
            self.expect(']')?;
            return Ok(Value::map([]));
        }
        let mut items = Vec::new();
        let mut entries = Vec::new();
        while !self.eat(']') {
            if !(items.is_empty() && entries.is_empty()) {
                self.expect(',')?;
            }
            // A bare word before a colon is a key by its spelling, whatever else it may mean.
            let first = match (self.peek().clone(), self.peek_after(1)) {
                (Token::Name(name), Token::Mark(':')) => {
                    self.advance();
                    Value::string(name)
                }
                _ => self.value()?,
            };
            if self.eat(':') {
                if !items.is_empty() {
                    return Err(self.unexpected());
                }
                entries.push((first, self.value()?));
            } else if entries.is_empty() {
                items.push(first);
            } else {
                return Err(self.unexpected());
            }
        }
        if entries.is_empty() {
            // `[1..3]` is the list itself, not a list of one list.
            Ok(match <[Value; 1]>::try_from(items) {
                Ok([only]) if self.was_range() => only,
                Ok([only]) => Value::list(vec![only]),
                Err(items) => Value::list(items),
            })
        } else {
            Ok(Value::map(entries))
        }
    }

    /// Whether the bracket just closed held `a..b`.
    fn was_range(&self) -> bool {
        self.at >= 3 && self.tokens[self.at - 3].token == Token::Range
    }

    fn set(&mut self) -> Result<Value> {
        let start = self.at;
        self.expect('{')?;
        let mut items = Vec::new();
        while !self.eat('}') {
            let separated = items.is_empty() || self.eat(',');
            let item = if separated { self.value().ok() } else { None };
            match item {
                Some(item) => items.push(item),
                None => {
                    self.at = start;
                    return Err(self.closure());
                }
            }
        }
        Ok(Value::set(items))
    }

    fn range(&self, from: Value, to: Value) -> Result<Value> {
        let items = match (&from, &to) {
            (Value::String(a), Value::String(b)) => match (a.chars().next(), b.chars().next()) {
                (Some(a), Some(b)) => (a..=b).map(|c| Value::string(c.to_string())).collect(),
                _ => Vec::new(),
            },
            _ => {
                let (Some(a), Some(b)) = (from.as_i64(), to.as_i64()) else { return Err(self.unexpected()) };
                if a.abs_diff(b) > RANGE_MAX as u64 {
                    let text = format!("Script compile error: A range has at most {RANGE_MAX} members.");
                    return Err(Error::compile(text, self.position()));
                }
                let whole = |n: i64| i32::try_from(n).map_or(Value::Long(n), Value::Int);
                if a <= b { (a..=b).map(whole).collect() } else { (b..=a).rev().map(whole).collect() }
            }
        };
        Ok(Value::list(items))
    }

    /// A closure is code, which is not executed here.
    fn closure(&self) -> Error {
        let start = self.tokens[self.at].offset;
        let text = &self.script[start..];
        let end = text.find('}').map_or(text.len(), |end| end + 1);
        self.unsupported_text("closure", &text[..end], self.position())
    }

    fn unsupported_rule(&self, rule: &str, at: Position) -> Error {
        let text = self.script[self.tokens[self.at].offset..].lines().next().unwrap_or_default();
        self.unsupported_text(rule, text, at)
    }

    fn unsupported_text(&self, rule: &str, text: &str, at: Position) -> Error {
        let shown: String = text.chars().take(100).collect();
        Error::compile(format!("Unsupported groovy language rule: '{rule}' text: '{shown}'"), at)
    }

    fn strategy(&mut self, name: String) -> Result<Value> {
        let mut settings: Vec<(Arc<str>, Value)> = Vec::new();
        if self.eat('(') {
            while !self.eat(')') {
                if !settings.is_empty() {
                    self.expect(',')?;
                }
                let key = self.name()?;
                self.expect(':')?;
                settings.push((Arc::from(key), self.value()?));
            }
        }
        while self.peek() == &Token::Mark('.') {
            self.advance();
            let method = self.name()?;
            let mut arguments = self.arguments()?;
            match method.as_str() {
                "build" | "create" | "instance" => {}
                _ => {
                    let mut letters = method.chars();
                    let key: String =
                        letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
                    let value = match arguments.len() {
                        1 => arguments.remove(0),
                        _ => Value::list(arguments),
                    };
                    settings.push((Arc::from(key), value));
                }
            }
        }
        Ok(Value::Strategy(Arc::new(Strategy { name: Arc::from(name), settings })))
    }

    /// `gt(30).and(lt(40))` and `.negate()` after a predicate.
    fn predicate_chain(&mut self, mut predicate: P) -> Result<Value> {
        while self.peek() == &Token::Mark('.') {
            let Token::Name(method) = self.peek_after(1).clone() else { break };
            if !matches!(method.as_str(), "and" | "or" | "negate") {
                break;
            }
            self.advance();
            let at = self.position();
            self.advance();
            let arguments = self.arguments()?;
            predicate = match (method.as_str(), arguments.as_slice()) {
                ("negate", []) => P::Not(Box::new(predicate)),
                ("and", [Value::P(other)]) => P::And(vec![predicate, P::clone(other)]),
                ("or", [Value::P(other)]) => P::Or(vec![predicate, P::clone(other)]),
                _ => return Err(no_method(&method, at)),
            };
        }
        Ok(Value::P(Arc::new(predicate)))
    }
}

fn no_method(name: &str, at: Position) -> Error {
    Error::compile(format!("Unable to find any method '{name}'"), at)
}

fn terminal_of(name: &str) -> Option<Terminal> {
    Some(match name {
        "next" => Terminal::Next(1),
        "tryNext" => Terminal::TryNext,
        "hasNext" => Terminal::HasNext,
        "toList" => Terminal::ToList,
        "toSet" => Terminal::ToSet,
        "toBulkSet" => Terminal::ToBulkSet,
        "iterate" => Terminal::Iterate,
        "explain" => Terminal::Explain,
        _ => return None,
    })
}
