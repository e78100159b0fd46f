//! `$replaceRoot` and `$replaceWith`.

use super::rows::{Mapped, Row};
use super::specification::{self, Parsing, shown};
use super::{BoxedRows, Env, Stage};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::value::Bson;

pub struct Replace(Expression);

pub fn parse_replace_root(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification = specification::document(
        argument,
        40_229,
        "expected an object as specification for $replaceRoot stage",
    )?;
    let mut root = None;
    for (name, value) in specification.iter() {
        match &**name {
            "newRoot" => root = Some(value),
            _ => {
                return Err(Error::new(
                    40_415,
                    format!("BSON field '$replaceRoot.{name}' is an unknown field."),
                ));
            }
        }
    }
    let root = root.ok_or_else(|| {
        Error::new(40_414, "BSON field '$replaceRoot.newRoot' is missing but a required field")
    })?;
    parse_replace_with(root, parsing)
}

pub fn parse_replace_with(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    Ok(Box::new(Replace(Expression::parse(argument, parsing.context)?)))
}

impl Stage for Replace {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (expression, context) = (self.0.clone(), env.context.clone());
        Ok(Mapped::boxed(input, move |row| {
            context.budget.step(1)?;
            match expression.evaluate(row.value()?, &context)? {
                Some(Bson::Document(document)) => Ok(Some(Row::Built(document))),
                other => {
                    let (text, kind) = match &other {
                        Some(value) => (shown(value), value.kind().name()),
                        None => (String::new(), "missing"),
                    };
                    Err(Error::new(
                        40_228,
                        format!(
                            "'newRoot' expression must evaluate to an object, but resulting value was: {text}. Type of \
                             resulting value: '{kind}'."
                        ),
                    ))
                }
            }
        }))
    }
}
