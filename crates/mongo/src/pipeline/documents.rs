//! `$documents`: rows that the pipeline itself names.

use super::rows::{Blocking, Row};
use super::specification::Parsing;
use super::{BoxedRows, Env, ListRows, Stage};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

pub struct Documents(Expression);

pub fn parse_documents(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    Ok(Box::new(Documents(Expression::parse(argument, parsing.context)?)))
}

impl Stage for Documents {
    fn attach(&self, _: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (expression, context) = (self.0.clone(), env.context.clone());
        Ok(Blocking::boxed(move || {
            let empty = Document::new();
            let value = expression.evaluate(ValueRef::OwnedDocument(&empty), &context)?;
            let Some(Bson::Array(elements)) = value else {
                return Err(Error::new(5_858_203, "an array is expected"));
            };
            let rows = elements.iter().map(|element| match element {
                Bson::Document(document) => Ok(Row::Built(document.clone())),
                _ => Err(Error::new(40_228, "'$documents' must be an array of objects")),
            });
            Ok(ListRows::boxed(rows.collect::<Result<Vec<_>>>()?))
        }))
    }
}
