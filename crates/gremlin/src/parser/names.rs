//! What a name means where a value stands: a binding, a constant, a member of an enumeration, a predicate, a strategy,
//! or the beginning of a nested traversal.

use std::sync::Arc;

use super::lexer::Token;
use super::{Parser, no_method};
use crate::bytecode::Bytecode;
use crate::datetime::DateTime;
use crate::error::{Error, Position, Result};
use crate::predicate::{P, TextOp};
use crate::steps;
use crate::value::{
    Cardinality, Column, DateUnit, Direction, GType, Merge, Operator, Order, Pick, Pop, Scope, T, Value,
};

impl Parser<'_> {
    /// `name` was read already.
    pub(super) fn named(&mut self, name: String, at: Position) -> Result<Value> {
        let next = self.peek().clone();
        if next == Token::Mark('{') {
            return Err(self.closure());
        }
        if !matches!(next, Token::Mark('(' | '.'))
            && let Some(value) = self.bindings.get(&name)
        {
            return Ok(value.clone());
        }
        match (name.as_str(), &next) {
            ("g", Token::Mark('.')) => {
                let (traversal, terminal) = self.chain(true)?;
                if terminal.is_some() {
                    return Err(Error::not_supported("A terminal step inside of a traversal."));
                }
                return Ok(Value::Traversal(Arc::new(traversal)));
            }
            ("__", Token::Mark('.')) => return self.anonymous(Bytecode::default()),
            ("new", Token::Name(_)) => {
                let class = self.name()?;
                return self.constructed(class, at);
            }
            ("true", _) => return Ok(Value::Bool(true)),
            ("false", _) => return Ok(Value::Bool(false)),
            ("null", _) => return Ok(Value::Null),
            ("NaN", _) => return Ok(Value::Double(f64::NAN)),
            ("Infinity", _) => return Ok(Value::Double(f64::INFINITY)),
            _ => {}
        }
        if name.ends_with("Strategy") {
            return self.strategy(name);
        }
        match next {
            Token::Mark('.') => self.qualified(name, at),
            Token::Mark('(') => self.called(name, at),
            _ => bare(&name).ok_or_else(|| unresolved(&name, at)),
        }
    }

    fn anonymous(&mut self, mut bytecode: Bytecode) -> Result<Value> {
        let (rest, terminal) = self.chain(false)?;
        if terminal.is_some() {
            return Err(Error::not_supported("A terminal step inside of a traversal."));
        }
        bytecode.steps.extend(rest.steps);
        Ok(Value::Traversal(Arc::new(bytecode)))
    }

    /// `Name.member` or `Name.method(...)`.
    fn qualified(&mut self, name: String, at: Position) -> Result<Value> {
        self.expect('.')?;
        let member = self.name()?;
        if self.peek() == &Token::Mark('(') {
            if matches!(name.as_str(), "P" | "TextP") {
                let arguments = self.arguments()?;
                let predicate = predicate(&member, &arguments).ok_or_else(|| no_method(&member, at))?;
                return self.predicate_chain(predicate);
            }
            if name == "Cardinality" {
                return self.called(member, at);
            }
            let arguments = self.arguments()?;
            return match (name.as_str(), member.as_str(), arguments.as_slice()) {
                ("UUID", "fromString", [Value::String(text)]) => uuid(text).ok_or_else(|| self.unexpected()),
                ("UUID", "randomUUID", []) => Ok(crate::random::uuid()),
                _ => Err(no_method(&member, at)),
            };
        }
        if name == "VertexProperty" && member == "Cardinality" {
            return self.qualified(member, at);
        }
        if let Some(value) = member_of(&name, &member) {
            return Ok(value);
        }
        // A package before the class: the class alone says enough.
        if self.peek() == &Token::Mark('.')
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        {
            return self.qualified(member, at);
        }
        Err(unresolved(&name, at))
    }

    /// `name(...)` without anything before it.
    fn called(&mut self, name: String, at: Position) -> Result<Value> {
        match name.as_str() {
            "datetime" | "DateTime" => {
                let arguments = self.arguments()?;
                return match arguments.as_slice() {
                    [] => Ok(Value::Date(DateTime::now())),
                    [Value::String(text)] => DateTime::parse(text).map(Value::Date).ok_or_else(|| {
                        Error::compile(format!("Script compile error: '{text}' is not a date."), at)
                    }),
                    _ => Err(no_method(&name, at)),
                };
            }
            "UUID" => {
                let arguments = self.arguments()?;
                return match arguments.as_slice() {
                    [] => Ok(crate::random::uuid()),
                    [Value::String(text)] => uuid(text).ok_or_else(|| {
                        Error::compile(format!("Script compile error: '{text}' is not a UUID."), at)
                    }),
                    _ => Err(no_method(&name, at)),
                };
            }
            "single" | "list" | "set" => {
                let cardinality = Cardinality::parse(&name).unwrap_or(Cardinality::Single);
                let mut arguments = self.arguments()?;
                return match arguments.len() {
                    1 => Ok(Value::CardinalityValue(cardinality, Arc::new(arguments.remove(0)))),
                    _ => Err(no_method(&name, at)),
                };
            }
            _ => {}
        }
        if is_predicate_name(&name) && (name != "not" || self.starts_predicate()) {
            let arguments = self.arguments()?;
            let predicate = predicate(&name, &arguments).ok_or_else(|| no_method(&name, at))?;
            return self.predicate_chain(predicate);
        }
        if steps::spelling(&name).is_none() {
            return Err(no_method(&name, at));
        }
        let first = self.call(name, at)?;
        self.anonymous(Bytecode { source: vec![], steps: vec![first] })
    }

    /// Whether `not(` goes on with a predicate rather than with a traversal.
    fn starts_predicate(&self) -> bool {
        let name_at = |count| match self.peek_after(count) {
            Token::Name(name) => Some(name.as_str()),
            _ => None,
        };
        match name_at(1) {
            Some("P" | "TextP") => true,
            Some("not") => matches!(name_at(3), Some(name) if is_predicate_name(name) || name == "P"),
            Some(name) => is_predicate_name(name) || matches!(self.bindings.get(name), Some(Value::P(_))),
            None => false,
        }
    }

    fn constructed(&mut self, class: String, at: Position) -> Result<Value> {
        if class.ends_with("Strategy") {
            return self.strategy(class);
        }
        let arguments = self.arguments()?;
        match (class.as_str(), arguments.as_slice()) {
            ("Date", []) => Ok(Value::Date(DateTime::now())),
            ("Date", [millis]) if millis.as_i64().is_some() => millis
                .as_i64()
                .and_then(DateTime::from_epoch_millis)
                .map(Value::Date)
                .ok_or_else(|| unresolved(&class, at)),
            _ => Err(self.unsupported_text("creator", &class, at)),
        }
    }
}

fn unresolved(name: &str, at: Position) -> Error {
    Error::compile(format!("Unable to resolve symbol '{name}' in the current context."), at)
}

pub(crate) fn uuid(text: &str) -> Option<Value> {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    if lengths != [8, 4, 4, 4, 12] {
        return None;
    }
    u128::from_str_radix(&parts.concat(), 16).ok().map(Value::Uuid)
}

fn is_predicate_name(name: &str) -> bool {
    matches!(
        name,
        "eq" | "neq"
            | "lt"
            | "lte"
            | "gt"
            | "gte"
            | "inside"
            | "outside"
            | "between"
            | "within"
            | "without"
            | "not"
            | "typeOf"
            | "containing"
            | "notContaining"
            | "startingWith"
            | "notStartingWith"
            | "endingWith"
            | "notEndingWith"
            | "regex"
            | "notRegex"
    )
}

/// A predicate by its name, as text and bytecode spell it.
pub(crate) fn predicate(name: &str, arguments: &[Value]) -> Option<P> {
    let text = |op| match arguments {
        [value] => Some(P::Text(op, value.clone())),
        _ => None,
    };
    Some(match (name, arguments) {
        ("eq", [a]) => P::Eq(a.clone()),
        ("neq", [a]) => P::Neq(a.clone()),
        ("lt", [a]) => P::Lt(a.clone()),
        ("lte", [a]) => P::Lte(a.clone()),
        ("gt", [a]) => P::Gt(a.clone()),
        ("gte", [a]) => P::Gte(a.clone()),
        ("inside", [a, b]) => P::Inside(a.clone(), b.clone()),
        ("outside", [a, b]) => P::Outside(a.clone(), b.clone()),
        ("between", [a, b]) => P::Between(a.clone(), b.clone()),
        ("inside" | "outside" | "between", [Value::List(pair)]) if pair.len() == 2 => {
            return predicate(name, pair);
        }
        ("within", values) => P::Within(members(values)),
        ("without", values) => P::Without(members(values)),
        ("not", [Value::P(inner)]) => P::Not(Box::new(P::clone(inner))),
        ("typeOf", [Value::GType(kind)]) => P::TypeOf(*kind),
        ("typeOf", [Value::String(name)]) => P::TypeOfName(name.clone()),
        ("containing", _) => return text(TextOp::Containing),
        ("notContaining", _) => return text(TextOp::NotContaining),
        ("startingWith", _) => return text(TextOp::StartingWith),
        ("notStartingWith", _) => return text(TextOp::NotStartingWith),
        ("endingWith", _) => return text(TextOp::EndingWith),
        ("notEndingWith", _) => return text(TextOp::NotEndingWith),
        ("regex", _) => return text(TextOp::Regex),
        ("notRegex", _) => return text(TextOp::NotRegex),
        _ => return None,
    })
}

/// One collection is its members; several arguments are members themselves.
fn members(values: &[Value]) -> Vec<Value> {
    match values {
        [Value::List(items)] => items.to_vec(),
        [Value::Set(items)] => items.iter().cloned().collect(),
        [Value::BulkSet(items)] => items.keys().cloned().collect(),
        _ => values.to_vec(),
    }
}

fn member_of(class: &str, member: &str) -> Option<Value> {
    match class {
        "T" => T::parse(member).map(Value::T),
        "Order" => order(member),
        "Scope" => Scope::parse(member).map(Value::Scope),
        "Pop" => Pop::parse(member).map(Value::Pop),
        "Column" => Column::parse(member).map(Value::Column),
        "Direction" => direction(member),
        "Cardinality" => Cardinality::parse(member).map(Value::Cardinality),
        "Operator" => Operator::parse(member).map(Value::Operator),
        "Merge" => Merge::parse(member).map(Value::Merge),
        "Pick" => Pick::parse(member).map(Value::Pick),
        "DT" => DateUnit::parse(member).map(Value::DateUnit),
        "GType" => GType::parse(member).map(Value::GType),
        "Barrier" => (member == "normSack").then_some(Value::NormSack),
        "WithOptions" => with_option(member),
        _ => None,
    }
}

fn order(name: &str) -> Option<Value> {
    Order::parse(name)
        .or(match name {
            "incr" => Some(Order::Asc),
            "decr" => Some(Order::Desc),
            _ => None,
        })
        .map(Value::Order)
}

fn direction(name: &str) -> Option<Value> {
    Direction::parse(name)
        .or(match name {
            "from" => Some(Direction::Out),
            "to" => Some(Direction::In),
            _ => None,
        })
        .map(Value::Direction)
}

fn with_option(name: &str) -> Option<Value> {
    Some(match name {
        "tokens" => Value::string("~tinkerpop.valueMap.tokens"),
        "indexer" => Value::string("~tinkerpop.index.indexer"),
        "none" | "list" => Value::Int(0),
        "ids" | "map" => Value::Int(1),
        "labels" => Value::Int(2),
        "keys" => Value::Int(4),
        "values" => Value::Int(8),
        "all" => Value::Int(15),
        _ => return None,
    })
}

/// A member of an enumeration without its class.
fn bare(name: &str) -> Option<Value> {
    T::parse(name)
        .map(Value::T)
        .or_else(|| order(name))
        .or_else(|| Scope::parse(name).map(Value::Scope))
        .or_else(|| Pop::parse(name).map(Value::Pop))
        .or_else(|| Column::parse(name).map(Value::Column))
        .or_else(|| direction(name))
        .or_else(|| Cardinality::parse(name).map(Value::Cardinality))
        .or_else(|| Merge::parse(name).map(Value::Merge))
        .or_else(|| Pick::parse(name).map(Value::Pick))
        .or_else(|| Operator::parse(name).map(Value::Operator))
        .or_else(|| DateUnit::parse(name).map(Value::DateUnit))
        .or_else(|| GType::parse(name).map(Value::GType))
        .or_else(|| (name == "normSack").then_some(Value::NormSack))
}
