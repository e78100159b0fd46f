//! `$firstN`, `$lastN`, `$minN`, `$maxN` of one array.

use crate::error::{Error, Result};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, show, type_name};
use crate::expression::{Call, Node, number};
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[
    own("$firstN", parse, "{$firstN: {input, n}}", "The first elements of an array."),
    own("$lastN", parse, "{$lastN: {input, n}}", "The last elements of an array."),
    own("$maxN", parse, "{$maxN: {input, n}}", "The greatest elements of an array, the greatest first."),
    own("$minN", parse, "{$minN: {input, n}}", "The least elements of an array, the least first."),
];

/// The two arguments of all operators for several elements.
pub(crate) fn members<'a>(name: &str, argument: &'a Bson) -> Result<(&'a Document, &'a Bson, &'a Bson)> {
    let Some(members) = argument.as_document() else {
        let text = format!("specification must be an object; found {name}: {}", show(Some(argument)));
        return Err(Error::new(5_787_801, text));
    };
    if let Some((unknown, _)) = members.iter().find(|(has, _)| !["input", "n"].contains(&&***has)) {
        return Err(Error::new(5_787_901, format!("Unknown argument for 'n' operator: {unknown}")));
    }
    let n = members.get("n").ok_or_else(|| Error::new(5_787_906, "Missing value for 'n'"))?;
    let input = members.get("input").ok_or_else(|| Error::new(5_787_907, "Missing value for 'input'"))?;
    Ok((members, input, n))
}

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let (members, ..) = members(name, argument)?;
    Ok(Node::Call { name, run: several, arguments: parser.named(members, &["input", "n"])? })
}

/// How many elements are wanted.
pub(crate) fn count(name: &str, value: Option<&Bson>) -> Result<usize> {
    let Some(number) = value.and_then(number::of) else {
        let text = format!("Value for 'n' must be of integral type, but found {}", show(value));
        return Err(Error::new(5_787_902, text));
    };
    let Some(n) = number.to_i64() else {
        if matches!(name, "$maxN" | "$minN") && number.to_f64().fract() == 0.0 {
            return Err(Error::new(241, "Conversion would overflow target type"));
        }
        let text = format!(
            "Value for 'n' must be of integral type, but found {} of type {}",
            show(value),
            type_name(value)
        );
        return Err(Error::new(5_787_903, text));
    };
    match usize::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(Error::new(5_787_908, format!("'n' must be greater than 0, found {n}"))),
    }
}

fn several(call: &Call<'_>) -> Result<Option<Bson>> {
    let n = count(call.name, call.arguments[1].as_ref())?;
    let input = call.arguments[0].as_ref();
    let Some(Bson::Array(elements)) = input else {
        if is_nullish(input) && matches!(call.name, "$maxN" | "$minN") {
            return Ok(Some(Bson::Null));
        }
        let text = format!("Input must be an array, but found {}", type_name(input));
        return Err(Error::new(5_788_200, text));
    };
    let n = n.min(elements.len());
    Ok(Some(Bson::array(match call.name {
        "$firstN" => elements[..n].to_vec(),
        "$lastN" => elements[elements.len() - n..].to_vec(),
        _ => {
            let mut sorted: Vec<Bson> =
                elements.iter().filter(|element| !is_nullish(Some(element))).cloned().collect();
            let collation = call.context.collation.as_deref();
            let least = call.name == "$minN";
            sorted.sort_by(|a, b| {
                let order = crate::order::compare(ValueRef::Owned(a), ValueRef::Owned(b), collation);
                if least { order } else { order.reverse() }
            });
            sorted.truncate(n);
            sorted
        }
    })))
}
