//! Operators on documents: `$getField`, `$setField`, `$unsetField`, `$mergeObjects`, `$objectToArray`,
//! `$arrayToObject`.

use super::arguments::{check_names, required};
use super::parse::Parser;
use super::table::{MANY, Operator, own, values};
use super::value::{is_nullish, show, show_document, type_name};
use super::{Call, Expression, LazyCall, Node};
use crate::error::{Error, Result};
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    values(
        "$arrayToObject",
        (1, 1),
        array_to_object,
        "{$arrayToObject: [[name, value], …]} or {$arrayToObject: [{k, v}, …]}",
        "A document of names and values.",
    ),
    own(
        "$getField",
        parse_get,
        "{$getField: {field, input}}",
        "A member by its name, dots and dollars included.",
    ),
    values(
        "$mergeObjects",
        (0, MANY),
        merge,
        "{$mergeObjects: [a, b, …]}",
        "One document of all members; later ones win.",
    ),
    values(
        "$objectToArray",
        (1, 1),
        object_to_array,
        "{$objectToArray: document}",
        "The members as [{k, v}, …].",
    ),
    own(
        "$setField",
        parse_set,
        "{$setField: {field, input, value}}",
        "A document with a member changed or added.",
    ),
    own("$unsetField", parse_set, "{$unsetField: {field, input}}", "A document without a member."),
];

fn parse_get(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let (field, input) = match argument {
        Bson::Document(members) if !members.first().is_some_and(|(first, _)| first.starts_with('$')) => {
            check_names(name, members, &["field", "input"], 3_041_701)?;
            let field = required(name, members, "field", 3_041_702)?;
            let input = required(name, members, "input", 3_041_703)?;
            (parser.expression(field)?, parser.expression(input)?)
        }
        _ => (parser.expression(argument)?, Expression::current()),
    };
    if let Some(value) = field.as_constant() {
        field_name(name, value, 3_041_704)?;
    }
    Ok(Node::Lazy { name, run: get, arguments: vec![field, input], variables: Vec::new() })
}

fn field_name<'a>(name: &str, value: Option<&'a Bson>, code: i32) -> Result<&'a str> {
    match value {
        Some(Bson::String(text)) => Ok(text),
        other => {
            let text =
                format!("{name} requires 'field' to evaluate to type String, but got {}", type_name(other));
            Err(Error::new(code, text))
        }
    }
}

fn get(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let field = call.arguments[0].evaluate_in(call.scope)?;
    let field = field_name(call.name, field.as_ref(), 3_041_704)?;
    let input = call.arguments[1].value_in(call.scope)?;
    Ok(match input.get() {
        None => None,
        Some(input) if matches!(input.kind(), crate::value::Kind::Null | crate::value::Kind::Undefined) => {
            Some(Bson::Null)
        }
        Some(input) => input.get(field).map(ValueRef::to_bson),
    })
}

fn parse_set(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let Some(members) = argument.as_document() else {
        let text = format!("{name} only supports an object as its argument");
        return Err(Error::new(4_161_100, text));
    };
    let unset = name == "$unsetField";
    let known: &[&str] = if unset { &["field", "input"] } else { &["field", "input", "value"] };
    check_names(name, members, known, 4_161_101)?;
    let field = required(name, members, "field", 4_161_102)?;
    if !unset {
        required(name, members, "value", 4_161_103)?;
    }
    required(name, members, "input", 4_161_109)?;
    let literal = field.as_document().is_some_and(
        |field| matches!(field.first(), Some((first, _)) if matches!(&**first, "$literal" | "$const")),
    );
    if field.as_str().is_some_and(|field| field.starts_with('$')) {
        let text =
            format!("'field' cannot be a field path reference in {name}. Did you mean {{$literal: …}}?");
        return Err(Error::new(4_161_108, text));
    }
    let parsed = parser.expression(field)?;
    if !parsed.is_constant() || (field.as_document().is_some() && !literal) {
        let text = format!("{name} requires 'field' to evaluate to a constant");
        return Err(Error::new(4_161_106, text));
    }
    let field = parsed;
    field_name(name, field.as_constant().flatten(), 4_161_107)?;
    let input = parser.optional(members.get("input"))?;
    let value = if unset { Expression::constant(None) } else { parser.optional(members.get("value"))? };
    Ok(Node::Call { name, run: set, arguments: vec![field, input, value] })
}

fn set(call: &Call<'_>) -> Result<Option<Bson>> {
    let field = field_name(call.name, call.arguments[0].as_ref(), 4_161_107)?;
    let input = call.arguments[1].as_ref();
    let Some(Bson::Document(document)) = input else {
        if is_nullish(input) {
            return Ok(Some(Bson::Null));
        }
        return Err(Error::new(
            4_161_105,
            format!("{} requires 'input' to evaluate to type Object", call.name),
        ));
    };
    let mut document = document.clone();
    match &call.arguments[2] {
        Some(value) => document.set(field, value.clone()),
        None => {
            document.remove(field);
        }
    }
    Ok(Some(document.into()))
}

fn merge(call: &Call<'_>) -> Result<Option<Bson>> {
    let mut merged = Document::new();
    let arguments = match call.arguments {
        // One array is as good as its elements.
        [Some(Bson::Array(elements))] => elements.iter().cloned().map(Some).collect::<Vec<_>>(),
        arguments => arguments.to_vec(),
    };
    for argument in &arguments {
        merge_into(&mut merged, argument.as_ref())?;
    }
    Ok(Some(merged.into()))
}

/// Adds the members of a document; null adds none.
pub(crate) fn merge_into(merged: &mut Document, value: Option<&Bson>) -> Result<()> {
    match value {
        None | Some(Bson::Null | Bson::Undefined) => {}
        Some(Bson::Document(document)) if merged.is_empty() => *merged = document.clone(),
        Some(Bson::Document(document)) => {
            for (name, value) in document.iter() {
                merged.set(name, value.clone());
            }
        }
        Some(other) => {
            let text = format!(
                "$mergeObjects requires object inputs, but input {} is of type {}",
                show(Some(other)),
                other.kind().name()
            );
            return Err(Error::new(40400, text));
        }
    }
    Ok(())
}

fn object_to_array(call: &Call<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].as_ref();
    match value {
        value if is_nullish(value) => Ok(Some(Bson::Null)),
        Some(Bson::Document(document)) => {
            let pairs = document.iter().map(|(name, value)| {
                let mut pair = Document::new();
                pair.push("k", Bson::String(name.clone()));
                pair.push("v", value.clone());
                Bson::Document(pair)
            });
            Ok(Some(Bson::array(pairs.collect())))
        }
        _ => {
            let text = format!("$objectToArray requires a document input, found: {}", type_name(value));
            Err(Error::new(40390, text))
        }
    }
}

fn array_to_object(call: &Call<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].as_ref();
    let elements = match value {
        value if is_nullish(value) => return Ok(Some(Bson::Null)),
        Some(Bson::Array(elements)) => elements,
        _ => {
            let text = format!("$arrayToObject requires an array input, found: {}", type_name(value));
            return Err(Error::new(40386, text));
        }
    };
    let arrays = matches!(elements.first(), Some(Bson::Array(_)));
    let mut document = Document::new();
    for element in elements.iter() {
        let (name, value) = match element {
            Bson::Array(pair) if arrays => match pair.as_slice() {
                [Bson::String(name), value] => (name, value),
                [other, _] => {
                    let text = format!(
                        "$arrayToObject requires an array of key-value pairs, where the key must be of type string. \
                         Found key type: {}",
                        other.kind().name()
                    );
                    return Err(Error::new(40395, text));
                }
                other => {
                    let text = format!(
                        "$arrayToObject requires an array of size 2 arrays,found array of size: {}",
                        other.len()
                    );
                    return Err(Error::new(40397, text));
                }
            },
            Bson::Document(pair) if !arrays => {
                if pair.len() != 2 {
                    let text = format!(
                        "$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{}",
                        pair.len()
                    );
                    return Err(Error::new(40392, text));
                }
                match (pair.get("k"), pair.get("v")) {
                    (Some(Bson::String(name)), Some(value)) => (name, value),
                    (Some(other), Some(_)) => {
                        let text = format!(
                            "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be \
                             of type string. Found type: {}",
                            other.kind().name()
                        );
                        return Err(Error::new(40394, text));
                    }
                    _ => {
                        let text = format!(
                            "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {}",
                            show_document(pair)
                        );
                        return Err(Error::new(40393, text));
                    }
                }
            }
            other if arrays => {
                let text = format!(
                    "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. \
                     Array was detected, now found: {}",
                    other.kind().name()
                );
                return Err(Error::new(40396, text));
            }
            other if matches!(elements.first(), Some(Bson::Document(_))) => {
                let text = format!(
                    "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. \
                     Object was detected, now found: {}",
                    other.kind().name()
                );
                return Err(Error::new(40391, text));
            }
            other => {
                let text =
                    format!("Unrecognised input type format for $arrayToObject: {}", other.kind().name());
                return Err(Error::new(40398, text));
            }
        };
        if name.contains('\0') {
            let code = if arrays { 4_940_400 } else { 4_940_401 };
            return Err(Error::new(code, "Key field cannot contain an embedded null byte"));
        }
        document.set(name, value.clone());
    }
    Ok(Some(document.into()))
}
