//! Texts: concat(), format(), toUpper() and the others, of one text or of each in a collection.

use std::sync::Arc;

use super::mutate::Source;
use super::*;
use crate::compare::items;
use crate::text::{text_of, type_name};
use crate::value::{Pop, Scope};

fn not_text(step: &str, value: &Value) -> Error {
    Error::runtime(format!(
        "The {step}() step can only take string as argument, encountered {}",
        type_name(value)
    ))
}

type Change = Box<dyn Fn(&str) -> Result<Value>>;

/// Applies to a text, to null as null, and in local scope to every member of a collection.
fn per_text(name: &'static str, scope: Scope, change: Change) -> Box<dyn Op> {
    Each::map(Parts::default(), move |_, _, traverser| {
        let one = |value: &Value| match value {
            Value::Null => Ok(Value::Null),
            Value::String(text) => change(text),
            other => Err(not_text(name, other)),
        };
        if scope == Scope::Global {
            return one(&traverser.value).map(Some);
        }
        match &traverser.value {
            Value::Set(set) => {
                let changed: Result<Vec<Value>> = set.iter().map(one).collect();
                Ok(Some(Value::set(changed?)))
            }
            value @ (Value::List(_) | Value::BulkSet(_) | Value::Path(_)) => {
                let changed: Result<Vec<Value>> = items(value).iter().map(one).collect();
                Ok(Some(Value::list(changed?)))
            }
            other => one(other).map(Some),
        }
    })
}

pub(crate) fn build(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, args) = call.scoped();
    let change: Change = match (call.name, args) {
        ("toUpper", []) => Box::new(|text| Ok(Value::string(text.to_uppercase()))),
        ("toLower", []) => Box::new(|text| Ok(Value::string(text.to_lowercase()))),
        ("trim", []) => Box::new(|text| Ok(Value::string(text.trim()))),
        ("lTrim", []) => Box::new(|text| Ok(Value::string(text.trim_start()))),
        ("rTrim", []) => Box::new(|text| Ok(Value::string(text.trim_end()))),
        ("length", []) => Box::new(|text| Ok(Value::Int(text.encode_utf16().count() as i32))),
        ("replace", [from, to]) => {
            let (Some(from), Some(to)) = (from.as_str(), to.as_str()) else {
                // With nothing to look for, nothing changes.
                return Ok(per_text(call.name, scope, Box::new(|text| Ok(Value::string(text)))));
            };
            let (from, to) = (from.to_owned(), to.to_owned());
            Box::new(move |text| Ok(Value::string(text.replace(&from, &to))))
        }
        ("split", [separator]) => {
            let separator = match separator {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                _ => return Err(call.wrong()),
            };
            Box::new(move |text| {
                let parts: Vec<Value> = match separator.as_deref() {
                    None => text.split_whitespace().map(Value::string).collect(),
                    Some("") => text.chars().map(|c| Value::string(c.to_string())).collect(),
                    Some(separator) => {
                        text.split(separator).filter(|part| !part.is_empty()).map(Value::string).collect()
                    }
                };
                Ok(Value::list(parts))
            })
        }
        ("substring", [start, rest @ ..]) => {
            let start = start.as_i64().ok_or_else(|| call.wrong())?;
            let end = match rest {
                [] => None,
                [end] => Some(end.as_i64().ok_or_else(|| call.wrong())?),
                _ => return Err(call.wrong()),
            };
            Box::new(move |text| {
                let chars: Vec<char> = text.chars().collect();
                let length = chars.len() as i64;
                // A negative place counts from the end.
                let place = |n: i64| if n < 0 { (length + n).max(0) } else { n.min(length) } as usize;
                let (from, to) = (place(start), end.map_or(chars.len(), place));
                Ok(Value::string(
                    chars.get(from..to.max(from)).unwrap_or_default().iter().collect::<String>(),
                ))
            })
        }
        _ => return Err(call.wrong()),
    };
    Ok(per_text(call.name, scope, change))
}

/// Of a text or of a collection.
pub(crate) fn build_reverse(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Each::map(Parts::default(), |_, _, traverser| {
        Ok(Some(match &traverser.value {
            Value::String(text) => Value::string(text.chars().rev().collect::<String>()),
            value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_)) => {
                let mut all = items(value);
                all.reverse();
                Value::list(all)
            }
            other => other.clone(),
        }))
    }))
}

pub(crate) fn build_concat(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let mut sources = Vec::new();
    for argument in call.args {
        match argument {
            Value::String(_) | Value::Null | Value::Traversal(_) => {
                sources.push(Source::of(builder, argument)?)
            }
            _ => return Err(call.wrong()),
        }
    }
    Ok(Each::map(Parts::default(), move |cx, _, traverser| {
        let mut all: Option<String> = None;
        let mut add = |value: &Value| match value {
            Value::Null => Ok(()),
            Value::String(text) => {
                all.get_or_insert_with(String::new).push_str(text);
                Ok(())
            }
            other => Err(not_text("concat", other)),
        };
        add(&traverser.value)?;
        for source in &mut sources {
            if let Some(value) = source.get(cx, traverser)? {
                add(&value)?;
            }
        }
        Ok(Some(all.map_or(Value::Null, Value::string)))
    }))
}

enum Piece {
    Text(String),
    /// `%{_}`: the next by().
    Next,
    Name(Arc<str>),
}

pub(crate) fn build_format(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let text = call.string(0)?;
    let mut pieces = Vec::new();
    let mut rest = &*text;
    while let Some(at) = rest.find("%{") {
        let Some(length) = rest[at..].find('}') else { break };
        pieces.push(Piece::Text(rest[..at].to_owned()));
        pieces.push(match &rest[at + 2..at + length] {
            "_" => Piece::Next,
            name => Piece::Name(Arc::from(name)),
        });
        rest = &rest[at + length + 1..];
    }
    pieces.push(Piece::Text(rest.to_owned()));
    let parts = Parts { bys: call.bys(builder)?, loads: true, children: Vec::new() };
    Ok(Each::map(parts, move |cx, parts, traverser| {
        let mut shown = String::new();
        let mut turn = 0;
        for piece in &pieces {
            let value = match piece {
                Piece::Text(text) => {
                    shown.push_str(text);
                    continue;
                }
                Piece::Next => {
                    let count = parts.bys.len();
                    let by = parts.bys.get_mut(turn % count.max(1));
                    turn += 1;
                    match by {
                        Some(by) => by.apply(cx, traverser)?,
                        None => Some(traverser.value.clone()),
                    }
                }
                Piece::Name(name) => {
                    let own = match &traverser.value {
                        element @ (Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(..)) => {
                            super::properties::properties(cx, element, std::slice::from_ref(name))?
                                .first()
                                .map(super::properties::value_of)
                        }
                        _ => None,
                    };
                    own.or_else(|| cx.scoped(traverser, name, Pop::Last))
                }
            };
            match value {
                Some(value) => shown.push_str(&text_of(&value)),
                None => return Ok(None),
            }
        }
        Ok(Some(Value::string(shown)))
    }))
}
