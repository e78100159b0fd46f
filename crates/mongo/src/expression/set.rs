//! Arrays as sets: `$setUnion`, `$setIntersection`, `$setDifference`, `$setEquals`, `$setIsSubset`, `$allElementsTrue`,
//! `$anyElementTrue`.

use std::collections::HashSet;

use super::Call;
use super::Node;
use super::boolean::is_true;
use super::parse::Parser;
use super::table::{MANY, Operator, own, values};
use super::value::{is_nullish, type_name};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::value::Bson;
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    values(
        "$allElementsTrue",
        (1, 1),
        all_true,
        "{$allElementsTrue: [array]}",
        "Whether no element is false.",
    ),
    values("$anyElementTrue", (1, 1), any_true, "{$anyElementTrue: [array]}", "Whether an element is true."),
    values("$setDifference", (2, 2), difference, "{$setDifference: [a, b]}", "What a has and b has not."),
    own("$setEquals", parse_equals, "{$setEquals: [a, b, …]}", "Whether all have the same elements."),
    values("$setIntersection", (0, MANY), intersection, "{$setIntersection: [a, b, …]}", "What all have."),
    values("$setIsSubset", (2, 2), is_subset, "{$setIsSubset: [a, b]}", "Whether b has all of a."),
    values("$setUnion", (0, MANY), union, "{$setUnion: [a, b, …]}", "What any has."),
];

/// Bytes by which equal values are the same.
pub(crate) fn identity(value: &Bson, context: &Context) -> Vec<u8> {
    let mut bytes = Vec::new();
    crate::order::identity(ValueRef::Owned(value), context.collation.as_deref(), &mut bytes);
    bytes
}

fn identities(elements: &[Bson], context: &Context) -> HashSet<Vec<u8>> {
    elements.iter().map(|element| identity(element, context)).collect()
}

fn elements_true<'a>(call: &'a Call<'_>, code: i32) -> Result<&'a [Bson]> {
    match &call.arguments[0] {
        Some(Bson::Array(elements)) => Ok(elements),
        other => {
            let text =
                format!("{}'s argument must be an array, but is {}", call.name, type_name(other.as_ref()));
            Err(Error::new(code, text))
        }
    }
}

fn all_true(call: &Call<'_>) -> Result<Option<Bson>> {
    let elements = elements_true(call, 17040)?;
    Ok(Some(Bson::Bool(elements.iter().all(|element| is_true(Some(ValueRef::Owned(element)))))))
}

fn any_true(call: &Call<'_>) -> Result<Option<Bson>> {
    let elements = elements_true(call, 17041)?;
    Ok(Some(Bson::Bool(elements.iter().any(|element| is_true(Some(ValueRef::Owned(element)))))))
}

fn not_array(call: &Call<'_>, which: &str, value: Option<&Bson>, code: i32) -> Error {
    let text =
        format!("{which} of {} must be arrays. One argument is of type: {}", call.name, type_name(value));
    Error::new(code, text)
}

fn union(call: &Call<'_>) -> Result<Option<Bson>> {
    let (mut seen, mut result, mut null) = (HashSet::new(), Vec::new(), false);
    for argument in call.arguments {
        match argument {
            value if is_nullish(value.as_ref()) => null = true,
            Some(Bson::Array(elements)) => {
                for element in elements.iter() {
                    if !null && seen.insert(identity(element, call.context)) {
                        result.push(element.clone());
                    }
                }
            }
            other => return Err(not_array(call, "All operands", other.as_ref(), 17043)),
        }
    }
    Ok(Some(if null { Bson::Null } else { Bson::array(result) }))
}

fn intersection(call: &Call<'_>) -> Result<Option<Bson>> {
    let mut result: Option<Vec<Bson>> = None;
    let mut null = false;
    for argument in call.arguments {
        match argument {
            value if is_nullish(value.as_ref()) => null = true,
            Some(Bson::Array(elements)) => {
                let next = match result {
                    None => {
                        let mut seen = HashSet::new();
                        elements
                            .iter()
                            .filter(|element| seen.insert(identity(element, call.context)))
                            .cloned()
                            .collect()
                    }
                    Some(kept) => {
                        let others = identities(elements, call.context);
                        kept.into_iter()
                            .filter(|element| others.contains(&identity(element, call.context)))
                            .collect()
                    }
                };
                result = Some(next);
            }
            other => return Err(not_array(call, "All operands", other.as_ref(), 17047)),
        }
    }
    Ok(Some(if null { Bson::Null } else { Bson::array(result.unwrap_or_default()) }))
}

fn difference(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    if is_nullish(a) || is_nullish(b) {
        return Ok(Some(Bson::Null));
    }
    let Some(Bson::Array(left)) = a else { return Err(not_array(call, "both operands", a, 17048)) };
    let Some(Bson::Array(right)) = b else { return Err(not_array(call, "both operands", b, 17049)) };
    let mut without = identities(right, call.context);
    let kept = left.iter().filter(|element| without.insert(identity(element, call.context))).cloned();
    Ok(Some(Bson::array(kept.collect())))
}

fn parse_equals(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let arguments = parser.positional(name, argument, 0, MANY)?;
    if arguments.len() < 2 {
        return Err(Error::new(
            17045,
            format!("$setEquals needs at least two arguments had: {}", arguments.len()),
        ));
    }
    Ok(Node::Call { name, run: equals, arguments })
}

fn equals(call: &Call<'_>) -> Result<Option<Bson>> {
    let mut sets = Vec::with_capacity(call.arguments.len());
    for argument in call.arguments {
        match argument {
            Some(Bson::Array(elements)) => sets.push(identities(elements, call.context)),
            other => return Err(not_array(call, "All operands", other.as_ref(), 17044)),
        }
    }
    Ok(Some(Bson::Bool(sets.windows(2).all(|pair| pair[0] == pair[1]))))
}

fn is_subset(call: &Call<'_>) -> Result<Option<Bson>> {
    let (a, b) = (call.arguments[0].as_ref(), call.arguments[1].as_ref());
    let Some(Bson::Array(left)) = a else { return Err(not_array(call, "both operands", a, 17046)) };
    let Some(Bson::Array(right)) = b else { return Err(not_array(call, "both operands", b, 17042)) };
    let others = identities(right, call.context);
    Ok(Some(Bson::Bool(left.iter().all(|element| others.contains(&identity(element, call.context))))))
}
