//! `$trim`, `$ltrim`, `$rtrim`.

use crate::error::{Error, Result};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, show, type_name};
use crate::expression::{LazyCall, Node};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    own(
        "$ltrim",
        parse,
        "{$ltrim: {input, chars}}",
        "Blanks, or other characters, taken from the beginning.",
    ),
    own("$rtrim", parse, "{$rtrim: {input, chars}}", "Blanks, or other characters, taken from the end."),
    own("$trim", parse, "{$trim: {input, chars}}", "Blanks, or other characters, taken from both ends."),
];

/// What counts as blank.
const BLANKS: &[char] = &[
    '\0', ' ', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}', '\u{2002}',
    '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}', '\u{200a}',
];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 50696, || {
        format!("{name} only supports an object as its argument, got {}", type_name(Some(argument)))
    })?;
    check_names(name, members, &["input", "chars"], 50694)?;
    required(name, members, "input", 50695)?;
    let arguments = parser.named(members, &["input", "chars"])?;
    Ok(Node::Lazy { name, run: trim, arguments, variables: Vec::new() })
}

fn trim(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let input = call.arguments[0].evaluate_in(call.scope)?;
    if is_nullish(input.as_ref()) {
        return Ok(Some(Bson::Null));
    }
    let Some(text) = input.as_ref().and_then(Bson::as_str) else {
        let text = format!(
            "{} requires its input to be a string, got {} (of type {}) instead.",
            call.name,
            show(input.as_ref()),
            type_name(input.as_ref())
        );
        return Err(Error::new(50699, text));
    };
    let given;
    let set: Vec<char>;
    let chars: &[char] = if call.arguments[1].is_absent() {
        BLANKS
    } else {
        given = call.arguments[1].evaluate_in(call.scope)?;
        if is_nullish(given.as_ref()) {
            return Ok(Some(Bson::Null));
        }
        let Some(given) = given.as_ref().and_then(Bson::as_str) else {
            let text = format!(
                "{} requires 'chars' to be a string, got {} (of type {}) instead.",
                call.name,
                show(given.as_ref()),
                type_name(given.as_ref())
            );
            return Err(Error::new(50700, text));
        };
        set = given.chars().collect();
        &set
    };
    let trimmed = match call.name {
        "$ltrim" => text.trim_start_matches(chars),
        "$rtrim" => text.trim_end_matches(chars),
        _ => text.trim_matches(chars),
    };
    Ok(Some(trimmed.into()))
}
