//! `$sortArray`.

use crate::error::{Error, Result};
use crate::expression::arguments::{check_names, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, type_name};
use crate::expression::{LazyCall, Node};
use crate::sort::Sort;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

pub(crate) static OPERATORS: &[Operator] = &[own(
    "$sortArray",
    parse,
    "{$sortArray: {input, sortBy}}",
    "The array in the order of a sort specification.",
)];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let Some(members) = argument.as_document() else {
        let text =
            format!("$sortArray requires an object as an argument, found: {}", type_name(Some(argument)));
        return Err(Error::new(2_942_500, text));
    };
    check_names(name, members, &["input", "sortBy"], 2_942_501)?;
    let input = required(name, members, "input", 2_942_502)?;
    let by = required(name, members, "sortBy", 2_942_503)?;
    check(by)?;
    let input = parser.expression(input)?;
    let by = crate::expression::Expression::constant(Some(by.clone()));
    Ok(Node::Lazy { name, run: sort, arguments: vec![input, by], variables: Vec::new() })
}

fn check(by: &Bson) -> Result<()> {
    let direction = |value: &Bson| matches!(value.as_i64(), Some(1 | -1));
    match by {
        Bson::Document(keys) if keys.is_empty() => {
            Err(Error::bad_value("$sort pattern must have at least one sort key"))
        }
        Bson::Document(keys) => match keys.iter().find(|(_, value)| value.is_number() && !direction(value)) {
            None => Sort::parse(keys).map(|_| ()),
            Some(_) => {
                Err(Error::bad_value("$sort key ordering must be 1 (for ascending) or -1 (for descending)"))
            }
        },
        value if direction(value) => Ok(()),
        _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
    }
}

fn sort(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let input = call.arguments[0].evaluate_in(call.scope)?;
    if is_nullish(input.as_ref()) {
        return Ok(Some(Bson::Null));
    }
    let Some(Bson::Array(elements)) = &input else {
        let text = format!(
            "The input argument to $sortArray must be an array, but was of type: {}",
            type_name(input.as_ref())
        );
        return Err(Error::new(2_942_504, text));
    };
    let context = call.scope.context;
    context.budget.step(elements.len() as u64)?;
    let mut sorted: Vec<Bson> = elements.to_vec();
    match call.arguments[1].as_constant() {
        Some(Some(Bson::Document(keys))) => {
            let specification = Sort::parse(keys)?;
            let nothing = Document::new();
            let mut keyed: Vec<(Vec<Bson>, Bson)> = sorted
                .into_iter()
                .map(|element| {
                    let key = match &element {
                        Bson::Document(_) | Bson::Array(_) => {
                            specification.key_of(ValueRef::Owned(&element), context)
                        }
                        _ => specification.key_of(ValueRef::OwnedDocument(&nothing), context),
                    };
                    (key, element)
                })
                .collect();
            keyed.sort_by(|(a, _), (b, _)| specification.compare_keys(a, b, context));
            Ok(Some(Bson::array(keyed.into_iter().map(|(_, element)| element).collect())))
        }
        Some(Some(direction)) => {
            let descending = direction.as_i64() == Some(-1);
            let collation = context.collation.as_deref();
            sorted.sort_by(|a, b| {
                let order = crate::order::compare(ValueRef::Owned(a), ValueRef::Owned(b), collation);
                if descending { order.reverse() } else { order }
            });
            Ok(Some(Bson::array(sorted)))
        }
        _ => Ok(Some(Bson::array(sorted))),
    }
}
