//! `$literal`, `$expr`, and what is refused: `$function`, `$accumulator`, `$where`.

use super::Node;
use super::parse::Parser;
use super::table::{Operator, own};
use crate::error::{Error, Result, code};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    own("$const", literal, "{$const: value}", "The value as it stands."),
    own("$expr", expr, "{$expr: expression}", "The value of the expression."),
    own(
        "$function",
        refused,
        "{$function: {body, args, lang}}",
        "Refused: there is no JavaScript in pipelines.",
    ),
    own("$literal", literal, "{$literal: value}", "The value as it stands, dollars and all."),
];

fn literal(_: &mut Parser<'_>, _: &'static str, argument: &Bson) -> Result<Node> {
    Ok(Node::Constant(Some(argument.clone())))
}

fn expr(parser: &mut Parser<'_>, _: &'static str, argument: &Bson) -> Result<Node> {
    Ok(Node::Lazy {
        name: "$expr",
        run: |call| call.arguments[0].evaluate_in(call.scope),
        arguments: vec![parser.expression(argument)?],
        variables: Vec::new(),
    })
}

fn refused(_: &mut Parser<'_>, name: &'static str, _: &Bson) -> Result<Node> {
    Err(Error::new(
        code::COMMAND_NOT_SUPPORTED,
        format!("{name} is not supported: server-side JavaScript is disabled"),
    ))
}
