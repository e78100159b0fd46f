//! `$replaceOne`, `$replaceAll`.

use crate::error::{Error, Result};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::size::charge;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, show};
use crate::expression::{Call, Node};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    own("$replaceAll", parse, "{$replaceAll: {input, find, replacement}}", "Every place of a part replaced."),
    own(
        "$replaceOne",
        parse,
        "{$replaceOne: {input, find, replacement}}",
        "The first place of a part replaced.",
    ),
];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 51751, || {
        format!("{name} requires an object as an argument, found: {}", argument.kind().name())
    })?;
    check_names(name, members, &["input", "find", "replacement"], 51750)?;
    for (member, code) in [("input", 51749), ("find", 51748), ("replacement", 51747)] {
        required(name, members, member, code)?;
    }
    Ok(Node::Call {
        name,
        run: replace,
        arguments: parser.named(members, &["input", "find", "replacement"])?,
    })
}

fn replace(call: &Call<'_>) -> Result<Option<Bson>> {
    let text = |at: usize, what: &str, code: i32| {
        let value = call.arguments[at].as_ref();
        match value.and_then(Bson::as_str) {
            Some(text) => Ok(Some(text)),
            None if is_nullish(value) => Ok(None),
            None => {
                let text =
                    format!("{} requires that '{what}' be a string, found: {}", call.name, show(value));
                Err(Error::new(code, text))
            }
        }
    };
    let input = text(0, "input", 51746)?;
    let find = text(1, "find", 51745)?;
    let replacement = text(2, "replacement", 51744)?;
    let (Some(input), Some(find), Some(replacement)) = (input, find, replacement) else {
        return Ok(Some(Bson::Null));
    };
    if call.name == "$replaceOne" {
        charge(call.context, input.len() + replacement.len())?;
        return Ok(Some(input.replacen(find, replacement, 1).into()));
    }
    let places = if find.is_empty() { input.len() + 1 } else { input.matches(find).count() };
    charge(call.context, input.len() + places.saturating_mul(replacement.len()))?;
    Ok(Some(input.replace(find, replacement).into()))
}
