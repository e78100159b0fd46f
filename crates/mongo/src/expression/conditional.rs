//! `$cond`, `$ifNull`, `$switch`.

use super::arguments::{check_names, document, required};
use super::parse::Parser;
use super::table::{Operator, own};
use super::value::type_name;
use super::{LazyCall, Node};
use crate::error::{Error, Result};
use crate::value::{Bson, Kind};

pub(crate) static OPERATORS: &[Operator] = &[
    own(
        "$cond",
        parse_cond,
        "{$cond: [if, then, else]} or {$cond: {if, then, else}}",
        "One value or the other.",
    ),
    own(
        "$ifNull",
        parse_if_null,
        "{$ifNull: [a, b, …, otherwise]}",
        "The first that is neither null nor missing.",
    ),
    own(
        "$switch",
        parse_switch,
        "{$switch: {branches: [{case, then}, …], default}}",
        "The value of the first branch whose case is true.",
    ),
];

fn parse_cond(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let arguments = match argument {
        Bson::Document(members) => {
            if let Some((unknown, _)) = members.iter().find(|(n, _)| !["if", "then", "else"].contains(&&***n))
            {
                return Err(Error::new(17083, format!("Unrecognized parameter to $cond: {unknown}")));
            }
            for (member, code) in [("if", 17080), ("then", 17081), ("else", 17082)] {
                required(name, members, member, code)?;
            }
            parser.named(members, &["if", "then", "else"])?
        }
        _ => parser.positional(name, argument, 3, 3)?,
    };
    Ok(Node::Lazy { name, run: cond, arguments, variables: Vec::new() })
}

fn cond(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let chosen = if call.holds(0)? { 1 } else { 2 };
    call.arguments[chosen].evaluate_in(call.scope)
}

fn parse_if_null(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let count = argument.as_array().map_or(1, <[Bson]>::len);
    if count < 2 {
        let text = format!("$ifNull needs at least two arguments, had: {count}");
        return Err(Error::new(1_257_300, text));
    }
    let arguments = parser.positional(name, argument, 0, usize::MAX)?;
    Ok(Node::Lazy { name, run: if_null, arguments, variables: Vec::new() })
}

fn if_null(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let (last, first) = call.arguments.split_last().unwrap_or((&call.arguments[0], &[]));
    for argument in first {
        let value = argument.value_in(call.scope)?;
        if value.get().is_some_and(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined)) {
            return Ok(value.into_bson());
        }
    }
    last.evaluate_in(call.scope)
}

fn parse_switch(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 40060, || {
        format!("$switch requires an object as an argument, found: {}", type_name(Some(argument)))
    })?;
    for (member, value) in members.iter() {
        match &**member {
            "branches" if value.as_array().is_none() => {
                let text =
                    format!("$switch expected an array for 'branches', found: {}", type_name(Some(value)));
                return Err(Error::new(40061, text));
            }
            "branches" | "default" => {}
            _ => return Err(Error::new(40067, format!("$switch found an unknown argument: {member}"))),
        }
    }
    let branches = members.get("branches").and_then(Bson::as_array).unwrap_or_default();
    let mut arguments = Vec::with_capacity(2 * branches.len() + 1);
    for branch in branches {
        let branch = document(branch, 40062, || {
            format!("$switch expected each branch to be an object, found: {}", type_name(Some(branch)))
        })?;
        check_names("a branch of $switch", branch, &["case", "then"], 40063)?;
        let case = required("a branch of $switch", branch, "case", 40064)?;
        let then = required("a branch of $switch", branch, "then", 40065)?;
        arguments.push(parser.expression(case)?);
        arguments.push(parser.expression(then)?);
    }
    if arguments.is_empty() {
        return Err(Error::new(40068, "$switch requires at least one branch."));
    }
    if let Some(default) = members.get("default") {
        arguments.push(parser.expression(default)?);
    }
    Ok(Node::Lazy { name, run: switch, arguments, variables: Vec::new() })
}

fn switch(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let mut at = 0;
    while at + 1 < call.arguments.len() {
        if call.holds(at)? {
            return call.arguments[at + 1].evaluate_in(call.scope);
        }
        at += 2;
    }
    match call.arguments.get(at) {
        Some(default) => default.evaluate_in(call.scope),
        None => Err(Error::new(
            40066,
            "$switch could not find a matching branch for an input, and no default was specified.",
        )),
    }
}
