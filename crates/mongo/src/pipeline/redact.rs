//! `$redact`: each document, and each document in it, is kept, pruned or gone into.

use std::sync::Arc;

use super::rows::{Mapped, Row};
use super::specification::{Parsing, shown};
use super::{BoxedRows, Env, Stage};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::{DESCEND, Expression, KEEP, PRUNE};
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

pub struct Redact(Expression);

pub fn parse_redact(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    if !matches!(argument, Bson::Document(_) | Bson::String(_)) {
        return Err(undecided(argument));
    }
    Ok(Box::new(Redact(Expression::parse_redact(argument, parsing.context)?)))
}

fn undecided(value: &Bson) -> Error {
    Error::new(
        17_053,
        format!(
            "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and $$PRUNE, but \
             returned {}",
            shown(value)
        ),
    )
}

fn redacted(expression: &Expression, document: ValueRef<'_>, context: &Context) -> Result<Option<Document>> {
    context.budget.step(1)?;
    let decision = expression.evaluate(document, context)?.unwrap_or(Bson::Null);
    match decision.as_str().map(|text| text.trim_start_matches("$$")).map(str::to_ascii_lowercase).as_deref()
    {
        Some(KEEP) => Ok(Some(document.to_document())),
        Some(PRUNE) => Ok(None),
        Some(DESCEND) => {
            let mut made = Document::new();
            for (name, value) in document.members() {
                if let Some(value) = within(expression, value, context)? {
                    made.push(Arc::from(name), value);
                }
            }
            Ok(Some(made))
        }
        _ => Err(undecided(&decision)),
    }
}

fn within(expression: &Expression, value: ValueRef<'_>, context: &Context) -> Result<Option<Bson>> {
    Ok(match value.kind() {
        crate::Kind::Document => redacted(expression, value, context)?.map(Bson::Document),
        crate::Kind::Array => {
            let mut elements = Vec::new();
            for element in value.elements() {
                elements.extend(within(expression, element, context)?);
            }
            Some(Bson::array(elements))
        }
        _ => Some(value.to_bson()),
    })
}

impl Stage for Redact {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (expression, context) = (self.0.clone(), env.context.clone());
        Ok(Mapped::boxed(
            input,
            move |row| Ok(redacted(&expression, row.value()?, &context)?.map(Row::Built)),
        ))
    }
}
