//! From documents to conditions.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::{Condition, Test, comparison, table};
use crate::value::{Bson, Document};

/// Conditions within conditions.
const DEPTH_MAX: usize = 100;

/// Where in a filter something is read.
#[derive(Clone, Copy)]
pub struct Place<'c> {
    pub context: &'c Context,
    pub depth: usize,
    /// Inside of `$elemMatch`, where conditions on the whole document have no place.
    pub in_element: bool,
}

pub fn filter(filter: &Document, context: &Context) -> Result<Condition> {
    Place { context, depth: 0, in_element: false }.document(filter)
}

impl<'c> Place<'c> {
    pub fn inside(self) -> Result<Place<'c>> {
        if self.depth >= DEPTH_MAX {
            return Err(Error::bad_value("exceeded depth limit while parsing a query"));
        }
        Ok(Place { depth: self.depth + 1, ..self })
    }

    /// Conditions of a document, all of which must hold.
    pub fn document(self, filter: &Document) -> Result<Condition> {
        let place = self.inside()?;
        let mut conditions = Vec::with_capacity(filter.len());
        for (name, value) in filter.iter() {
            if name.starts_with('$') && !matches!(&**name, "$ref" | "$id" | "$db") {
                let Some(read) = table::of_document(name) else {
                    return Err(Error::bad_value(format!(
                        "unknown top level operator: {name}. If you have a field name that starts with a '$' symbol, \
                         consider using $getField or $setField."
                    )));
                };
                match read(place, value)? {
                    Condition::Always(true) if filter.len() > 1 => {}
                    condition => conditions.push(condition),
                }
            } else {
                place.field(name, value, &mut conditions)?;
            }
        }
        Ok(match conditions.len() {
            0 => Condition::Always(true),
            1 => conditions.swap_remove(0),
            _ => Condition::And(conditions),
        })
    }

    fn field(self, path: &Arc<str>, value: &Bson, conditions: &mut Vec<Condition>) -> Result<()> {
        let mut push = |test| conditions.push(Condition::Field { path: path.clone(), test });
        match value {
            Bson::Document(operators) if is_operators(operators) => {
                self.operators(operators)?.into_iter().for_each(push);
            }
            _ => push(comparison::equal_or_regex(value)?),
        }
        Ok(())
    }

    /// Operators under one name.
    pub fn operators(self, operators: &Document) -> Result<Vec<Test>> {
        let place = self.inside()?;
        let mut tests = Vec::with_capacity(operators.len());
        for (name, value) in operators.iter() {
            let Some(read) = table::of_field(name) else {
                return Err(Error::bad_value(format!("unknown operator: {name}")));
            };
            tests.extend(read(place, value, operators)?);
        }
        Ok(tests)
    }
}

/// Whether a document is made of operators, and is not a value to compare with: a reference to a document is one.
pub fn is_operators(document: &Document) -> bool {
    document
        .first()
        .is_some_and(|(name, _)| name.starts_with('$') && !matches!(&**name, "$ref" | "$id" | "$db"))
}
