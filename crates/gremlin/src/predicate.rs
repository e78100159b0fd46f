//! Predicates: `P` and `TextP`.

use std::cmp::Ordering;

use crate::compare::{compare, equal};
use crate::error::{Error, Result};
use crate::value::{GType, Value};

/// A predicate over one value.
#[derive(Clone, Debug, PartialEq)]
pub enum P {
    Eq(Value),
    Neq(Value),
    Lt(Value),
    Lte(Value),
    Gt(Value),
    Gte(Value),
    /// Both ends excluded.
    Inside(Value, Value),
    Outside(Value, Value),
    /// The first end included.
    Between(Value, Value),
    Within(Vec<Value>),
    Without(Vec<Value>),
    TypeOf(GType),
    /// A type by a name that is not one of the enumeration, which is an error when it is evaluated.
    TypeOfName(std::sync::Arc<str>),
    Text(TextOp, Value),
    And(Vec<P>),
    Or(Vec<P>),
    Not(Box<P>),
}

/// What a text is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOp {
    Containing,
    NotContaining,
    StartingWith,
    NotStartingWith,
    EndingWith,
    NotEndingWith,
    Regex,
    NotRegex,
}

impl P {
    /// Whether the predicate holds. Fails only where the question itself is wrong (a text question without a text,
    /// say).
    pub fn test(&self, value: &Value) -> Result<bool> {
        let compared = |other: &Value| compare(value, other);
        Ok(match self {
            P::Eq(other) => equal(value, other),
            P::Neq(other) => !equal(value, other),
            P::Lt(other) => compared(other) == Some(Ordering::Less),
            P::Lte(other) => matches!(compared(other), Some(Ordering::Less | Ordering::Equal)),
            P::Gt(other) => compared(other) == Some(Ordering::Greater),
            P::Gte(other) => matches!(compared(other), Some(Ordering::Greater | Ordering::Equal)),
            P::Inside(low, high) => {
                compared(low) == Some(Ordering::Greater) && compared(high) == Some(Ordering::Less)
            }
            P::Outside(low, high) => {
                compared(low) == Some(Ordering::Less) || compared(high) == Some(Ordering::Greater)
            }
            P::Between(low, high) => {
                matches!(compared(low), Some(Ordering::Greater | Ordering::Equal))
                    && compared(high) == Some(Ordering::Less)
            }
            P::Within(members) => members.iter().any(|member| equal(value, member)),
            P::Without(members) => !members.iter().any(|member| equal(value, member)),
            P::TypeOf(kind) => is_of_type(value, *kind),
            P::TypeOfName(name) => match GType::parse(&name.to_uppercase()).or_else(|| class(name)) {
                Some(kind) => is_of_type(value, kind),
                None => {
                    let text = format!("{name} is not a registered type");
                    return Err(Error::runtime(text));
                }
            },
            P::Text(op, other) => return text(*op, value, other),
            P::And(all) => {
                for p in all {
                    if !p.test(value)? {
                        return Ok(false);
                    }
                }
                true
            }
            P::Or(any) => {
                for p in any {
                    if p.test(value)? {
                        return Ok(true);
                    }
                }
                false
            }
            P::Not(inner) => !inner.test(value)?,
        })
    }

    /// The same predicate over other values: `where(eq('a'))` names labels, which become what they stand for.
    pub(crate) fn resolve(&self, of: &mut dyn FnMut(&Value) -> Result<Option<Value>>) -> Result<Option<P>> {
        fn two(
            a: &Value,
            b: &Value,
            of: &mut dyn FnMut(&Value) -> Result<Option<Value>>,
            make: fn(Value, Value) -> P,
        ) -> Result<Option<P>> {
            let Some(a) = of(a)? else { return Ok(None) };
            let Some(b) = of(b)? else { return Ok(None) };
            Ok(Some(make(a, b)))
        }
        let one = |value: &Value,
                   of: &mut dyn FnMut(&Value) -> Result<Option<Value>>,
                   make: fn(Value) -> P| { Ok(of(value)?.map(make)) };
        match self {
            P::Eq(v) => one(v, of, P::Eq),
            P::Neq(v) => one(v, of, P::Neq),
            P::Lt(v) => one(v, of, P::Lt),
            P::Lte(v) => one(v, of, P::Lte),
            P::Gt(v) => one(v, of, P::Gt),
            P::Gte(v) => one(v, of, P::Gte),
            P::Inside(a, b) => two(a, b, of, P::Inside),
            P::Outside(a, b) => two(a, b, of, P::Outside),
            P::Between(a, b) => two(a, b, of, P::Between),
            P::Within(labels) | P::Without(labels) => {
                let mut members = Vec::new();
                for label in labels {
                    let Some(value) = of(label)? else { return Ok(None) };
                    match &value {
                        Value::List(_) | Value::Set(_) | Value::BulkSet(_) if labels.len() == 1 => {
                            members.extend(crate::compare::items(&value));
                        }
                        _ => members.push(value),
                    }
                }
                Ok(Some(if matches!(self, P::Within(_)) { P::Within(members) } else { P::Without(members) }))
            }
            P::TypeOf(_) | P::TypeOfName(_) => Ok(Some(self.clone())),
            P::Text(op, v) => Ok(of(v)?.map(|v| P::Text(*op, v))),
            P::And(all) | P::Or(all) => {
                let mut resolved = Vec::with_capacity(all.len());
                for p in all {
                    match p.resolve(of)? {
                        Some(p) => resolved.push(p),
                        None => return Ok(None),
                    }
                }
                Ok(Some(if matches!(self, P::And(_)) { P::And(resolved) } else { P::Or(resolved) }))
            }
            P::Not(inner) => Ok(inner.resolve(of)?.map(|p| P::Not(Box::new(p)))),
        }
    }
}

fn class(name: &str) -> Option<GType> {
    Some(match name {
        "Integer" => GType::Int,
        "BigInteger" => GType::BigInt,
        "OffsetDateTime" => GType::DateTime,
        "VertexProperty" => GType::VProperty,
        "Character" => GType::Char,
        _ => return None,
    })
}

fn is_of_type(value: &Value, kind: GType) -> bool {
    match kind {
        GType::Null => value.is_null(),
        GType::Number => value.is_number(),
        GType::BigDecimal => matches!(value, Value::BigDecimal(_)),
        GType::BigInt => matches!(value, Value::BigInt(_)),
        GType::Binary => matches!(value, Value::Binary(_)),
        GType::Boolean => matches!(value, Value::Bool(_)),
        GType::Byte => matches!(value, Value::Byte(_)),
        GType::Char => matches!(value, Value::Char(_)),
        GType::DateTime => matches!(value, Value::Date(_)),
        GType::Double => matches!(value, Value::Double(_)),
        GType::Duration => matches!(value, Value::Duration(_)),
        GType::Edge => matches!(value, Value::Edge(_)),
        GType::Float => matches!(value, Value::Float(_)),
        GType::Graph => matches!(value, Value::Graph(_)),
        GType::Int => matches!(value, Value::Int(_)),
        GType::List => matches!(value, Value::List(_)),
        GType::Long => matches!(value, Value::Long(_)),
        GType::Map => matches!(value, Value::Map(_)),
        GType::Path => matches!(value, Value::Path(_)),
        GType::Property => matches!(value, Value::Property(..) | Value::VertexProperty(..)),
        GType::Set => matches!(value, Value::Set(_) | Value::BulkSet(_)),
        GType::Short => matches!(value, Value::Short(_)),
        GType::String => matches!(value, Value::String(_)),
        GType::Tree => matches!(value, Value::Tree(_)),
        GType::Uuid => matches!(value, Value::Uuid(_)),
        GType::Vertex => matches!(value, Value::Vertex(_)),
        GType::VProperty => matches!(value, Value::VertexProperty(..)),
    }
}

/// A value that is no text contains nothing.
fn text(op: TextOp, value: &Value, other: &Value) -> Result<bool> {
    let (Some(text), Some(other)) = (value.as_str(), other.as_str()) else { return Ok(false) };
    Ok(match op {
        TextOp::Containing => text.contains(other),
        TextOp::NotContaining => !text.contains(other),
        TextOp::StartingWith => text.starts_with(other),
        TextOp::NotStartingWith => !text.starts_with(other),
        TextOp::EndingWith => text.ends_with(other),
        TextOp::NotEndingWith => !text.ends_with(other),
        TextOp::Regex => regex(other)?.is_match(text),
        TextOp::NotRegex => !regex(other)?.is_match(text),
    })
}

fn regex(pattern: &str) -> Result<regex::Regex> {
    /// What a compiled pattern may take.
    const REGEX_BYTES_MAX: usize = 1 << 20;
    regex::RegexBuilder::new(pattern)
        .size_limit(REGEX_BYTES_MAX)
        .build()
        .map_err(|_| Error::runtime(format!("'{pattern}' is not a regular expression that can be used.")))
}
