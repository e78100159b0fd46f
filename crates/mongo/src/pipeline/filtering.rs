//! `$match`.

use super::rows::Mapped;
use super::specification::Parsing;
use super::{BoxedRows, Env, Hint, Stage};
use crate::error::{Error, Result};
use crate::filter::{Condition, Filter};
use crate::value::Bson;

pub struct Match(Filter);

pub fn parse_match(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let Bson::Document(filter) = argument else {
        return Err(Error::new(15_959, "the match filter must be an expression in an object"));
    };
    Ok(Box::new(Match(Filter::parse(filter, parsing.context)?)))
}

impl Stage for Match {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (filter, context) = (self.0.clone(), env.context.clone());
        Ok(Mapped::boxed(input, move |row| {
            context.budget.step(1)?;
            Ok(filter.matches(row.value()?, &context)?.then_some(row))
        }))
    }

    fn hint(&self) -> Hint<'_> {
        Hint::Filter(&self.0)
    }
}

impl Filter {
    /// The filter that lets through what all of these do; `None` where there is none.
    pub fn all_of(mut filters: Vec<Filter>) -> Option<Filter> {
        if filters.len() <= 1 {
            return filters.pop();
        }
        let collation = filters[0].collation.clone();
        Some(Filter {
            root: Condition::And(filters.into_iter().map(|filter| filter.root).collect()),
            collation,
        })
    }
}
