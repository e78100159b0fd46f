//! Expressions that bind variables: `$let`, `$map`, `$filter`, `$reduce`.

use super::arguments::{check_names, document, required};
use super::boolean::is_true;
use super::parse::{Parser, check_variable_bound};
use super::scope::Binding;
use super::table::{Operator, own};
use super::value::type_name;
use super::{LazyCall, Node, Value, VariableId, number};
use crate::error::{Error, Result};
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

/// Variables of one `$let`: each takes a frame of the stack.
const VARIABLES_MAX: usize = 500;

pub(crate) static OPERATORS: &[Operator] = &[
    own(
        "$filter",
        parse_filter,
        "{$filter: {input, as, cond, limit}}",
        "The elements of an array for which a condition holds.",
    ),
    own("$let", parse_let, "{$let: {vars: {name: value, …}, in}}", "A value in which variables are bound."),
    own(
        "$map",
        parse_map,
        "{$map: {input, as, in}}",
        "What an expression makes of each element of an array.",
    ),
    own(
        "$reduce",
        parse_reduce,
        "{$reduce: {input, initialValue, in}}",
        "What is left of an array when `in` combines `$$value` with each element `$$this`.",
    ),
];

fn parse_let(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 16874, || "$let only supports an object as its argument".into())?;
    check_names(name, members, &["vars", "in"], 16875)?;
    let vars = required(name, members, "vars", 16876)?;
    let within = required(name, members, "in", 16877)?;
    let Some(vars) = vars.as_document() else {
        return Err(Error::new(10065, "invalid parameter: expected an object (vars)"));
    };
    if vars.len() > VARIABLES_MAX {
        return Err(Error::bad_value(format!("$let binds more than {VARIABLES_MAX} variables")));
    }
    let mut arguments = Vec::with_capacity(vars.len() + 1);
    let mut names = Vec::with_capacity(vars.len());
    for (variable, value) in vars.iter() {
        check_variable_bound(variable)?;
        arguments.push(parser.expression(value)?);
        names.push(&**variable);
    }
    let (within, variables) =
        parser.bind(&names, |parser, ids| Ok((parser.expression(within)?, ids.to_vec())))?;
    arguments.push(within);
    Ok(Node::Lazy { name, run: bind_all, arguments, variables })
}

fn bind_all(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let (within, values) = call.arguments.split_last().unwrap_or((&call.arguments[0], &[]));
    let values: Result<Vec<Value<'_>>> = values.iter().map(|value| value.value_in(call.scope)).collect();
    let values = values?;
    bind_next(call.variables, &values, within, call.scope)
}

/// Bindings point at those around them, so each is made within the one before.
fn bind_next(
    variables: &[VariableId],
    values: &[Value<'_>],
    within: &super::Expression,
    scope: &super::Scope<'_>,
) -> Result<Option<Bson>> {
    match (variables.split_first(), values.split_first()) {
        (Some((id, variables)), Some((value, values))) => {
            let binding = Binding { id: *id, value: value.get(), outer: scope.bindings() };
            bind_next(variables, values, within, &scope.with(&binding))
        }
        _ => within.evaluate_in(scope),
    }
}

fn parse_map(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 16878, || "$map only supports an object as its argument".into())?;
    check_names(name, members, &["input", "as", "in"], 16879)?;
    let input = required(name, members, "input", 16880)?;
    let within = required(name, members, "in", 16882)?;
    let input = parser.expression(input)?;
    let variable = variable_name(members.get("as"))?;
    let (within, variables) =
        parser.bind(&[variable], |parser, ids| Ok((parser.expression(within)?, ids.to_vec())))?;
    Ok(Node::Lazy { name, run: map, arguments: vec![input, within], variables })
}

fn variable_name(name: Option<&Bson>) -> Result<&str> {
    match name {
        None => Ok("this"),
        Some(name) => {
            let name = name.as_str().unwrap_or_default();
            check_variable_bound(name)?;
            Ok(name)
        }
    }
}

/// The array that is gone through; `None` where it is null.
fn input<'v>(call: &LazyCall<'_>, value: &'v Value<'_>, code: i32) -> Result<Option<ValueRef<'v>>> {
    match value.get() {
        None => Ok(None),
        Some(array) => match array.kind() {
            Kind::Null | Kind::Undefined => Ok(None),
            Kind::Array => Ok(Some(array)),
            other => {
                let text = format!("input to {} must be an array not {}", call.name, other.name());
                Err(Error::new(code, text))
            }
        },
    }
}

fn map(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    let Some(array) = input(call, &value, 16883)? else { return Ok(Some(Bson::Null)) };
    let mut results = Vec::with_capacity(array.len());
    for element in array.elements() {
        let binding = Binding { id: call.variables[0], value: Some(element), outer: call.scope.bindings() };
        let result = call.arguments[1].evaluate_in(&call.scope.with(&binding))?;
        results.push(result.unwrap_or(Bson::Null));
    }
    Ok(Some(Bson::array(results)))
}

fn parse_filter(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 28646, || "$filter only supports an object as its argument".into())?;
    check_names(name, members, &["input", "as", "cond", "limit"], 28647)?;
    let input = required(name, members, "input", 28648)?;
    let condition = required(name, members, "cond", 28650)?;
    let input = parser.expression(input)?;
    let variable = variable_name(members.get("as"))?;
    let (condition, variables) =
        parser.bind(&[variable], |parser, ids| Ok((parser.expression(condition)?, ids.to_vec())))?;
    let limit = parser.optional(members.get("limit"))?;
    Ok(Node::Lazy { name, run: filter, arguments: vec![input, condition, limit], variables })
}

fn filter(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    let Some(array) = input(call, &value, 28651)? else { return Ok(Some(Bson::Null)) };
    let mut limit = usize::MAX;
    if let Some(given) = call.arguments[2].evaluate_in(call.scope)?
        && !matches!(given, Bson::Null | Bson::Undefined)
    {
        let Some(number) = number::of(&given).and_then(number::NumberRef::to_i32) else {
            let text = format!(
                "$filter: limit must be represented as a 32-bit integral value: {}",
                super::value::show(Some(&given))
            );
            return Err(Error::new(327_391, text));
        };
        if number < 1 {
            return Err(Error::new(327_392, format!("$filter: limit must be greater than 0: {number}")));
        }
        limit = number as usize;
    }
    let mut results = Vec::new();
    for element in array.elements() {
        if results.len() >= limit {
            break;
        }
        let binding = Binding { id: call.variables[0], value: Some(element), outer: call.scope.bindings() };
        let inner = call.scope.with(&binding);
        if is_true(call.arguments[1].value_in(&inner)?.get()) {
            results.push(element.to_bson());
        }
    }
    Ok(Some(Bson::array(results)))
}

fn parse_reduce(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 40075, || {
        format!("$reduce requires an object as an argument, found: {}", type_name(Some(argument)))
    })?;
    check_names(name, members, &["input", "initialValue", "in"], 40076)?;
    let input = required(name, members, "input", 40077)?;
    let initial = required(name, members, "initialValue", 40078)?;
    let within = required(name, members, "in", 40079)?;
    let input = parser.expression(input)?;
    let initial = parser.expression(initial)?;
    let (within, variables) =
        parser.bind(&["this", "value"], |parser, ids| Ok((parser.expression(within)?, ids.to_vec())))?;
    Ok(Node::Lazy { name, run: reduce, arguments: vec![input, initial, within], variables })
}

fn reduce(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let value = call.arguments[0].value_in(call.scope)?;
    let array = match input(call, &value, 40080) {
        Ok(Some(array)) => array,
        Ok(None) => return Ok(Some(Bson::Null)),
        Err(error) => return Err(error),
    };
    let mut result = call.arguments[1].evaluate_in(call.scope)?;
    for element in array.elements() {
        let so_far = Binding {
            id: call.variables[1],
            value: result.as_ref().map(ValueRef::Owned),
            outer: call.scope.bindings(),
        };
        let this = Binding { id: call.variables[0], value: Some(element), outer: Some(&so_far) };
        let next = call.arguments[2].evaluate_in(&call.scope.with(&this))?;
        result = next;
    }
    Ok(result)
}
