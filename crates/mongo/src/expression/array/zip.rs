//! `$zip`.

use crate::error::{Error, Result};
use crate::expression::arguments::check_names;
use crate::expression::parse::Parser;
use crate::expression::size::charge;
use crate::expression::table::{Operator, own};
use crate::expression::value::{show, type_name};
use crate::expression::{LazyCall, Node};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[own(
    "$zip",
    parse,
    "{$zip: {inputs: [array, …], useLongestLength, defaults}}",
    "The first elements of all arrays, then the second ones, and so on.",
)];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let Some(members) = argument.as_document() else {
        let text =
            format!("$zip only supports an object as an argument, found {}", type_name(Some(argument)));
        return Err(Error::new(34460, text));
    };
    check_names(name, members, &["inputs", "useLongestLength", "defaults"], 34464)?;
    let longest = match members.get("useLongestLength") {
        None => false,
        Some(Bson::Bool(longest)) => *longest,
        Some(other) => {
            let text = format!("useLongestLength must be a bool, found {}", type_name(Some(other)));
            return Err(Error::new(34463, text));
        }
    };
    let inputs = members.get("inputs");
    if inputs.and_then(Bson::as_array).is_some_and(<[Bson]>::is_empty) || inputs.is_none() {
        return Err(Error::new(34465, "$zip requires at least one input array"));
    }
    if members.contains("defaults") && !longest {
        return Err(Error::new(34466, "cannot specify defaults unless useLongestLength is true"));
    }
    if let (Some(inputs), Some(defaults)) =
        (inputs.and_then(Bson::as_array), members.get("defaults").and_then(Bson::as_array))
        && inputs.len() != defaults.len()
    {
        return Err(Error::new(34467, "defaults and inputs must have the same length"));
    }
    let mut arguments = parser.named(members, &["inputs", "defaults"])?;
    arguments.push(crate::expression::Expression::constant(Some(Bson::Bool(longest))));
    Ok(Node::Lazy { name, run: zip, arguments, variables: Vec::new() })
}

fn zip(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let inputs = match call.arguments[0].evaluate_in(call.scope)? {
        None | Some(Bson::Null | Bson::Undefined) => return Ok(Some(Bson::Null)),
        Some(Bson::Array(inputs)) => inputs,
        Some(other) => {
            let text = format!("inputs must be an array of expressions, found {}", type_name(Some(&other)));
            return Err(Error::new(34461, text));
        }
    };
    if inputs.is_empty() {
        return Err(Error::new(34465, "$zip requires at least one input array"));
    }
    let mut arrays = Vec::with_capacity(inputs.len());
    let mut null = false;
    for input in inputs.iter() {
        match input {
            Bson::Array(elements) => arrays.push(elements),
            Bson::Null | Bson::Undefined => null = true,
            other => {
                return Err(Error::new(
                    34468,
                    format!("$zip found a non-array expression in input: {}", show(Some(other))),
                ));
            }
        }
    }
    if null {
        return Ok(Some(Bson::Null));
    }
    let defaults = match call.arguments[1].evaluate_in(call.scope)? {
        None | Some(Bson::Null | Bson::Undefined) => None,
        Some(Bson::Array(defaults)) if defaults.len() == arrays.len() => Some(defaults),
        Some(Bson::Array(_)) => {
            return Err(Error::new(34467, "defaults and inputs must have the same length"));
        }
        Some(other) => {
            let text = format!("defaults must be an array of expressions, found {}", type_name(Some(&other)));
            return Err(Error::new(34462, text));
        }
    };
    let longest = matches!(call.arguments[2].as_constant(), Some(Some(Bson::Bool(true))));
    let lengths = arrays.iter().map(|array| array.len());
    let length = if longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
    charge(call.scope.context, length.saturating_mul(arrays.len()).saturating_mul(size_of::<Bson>()))?;
    let row = |at: usize| {
        let elements = arrays.iter().enumerate().map(|(which, array)| {
            let default =
                || defaults.as_ref().and_then(|defaults| defaults.get(which)).cloned().unwrap_or(Bson::Null);
            array.get(at).cloned().unwrap_or_else(default)
        });
        Bson::array(elements.collect())
    };
    Ok(Some(Bson::array((0..length).map(row).collect())))
}
