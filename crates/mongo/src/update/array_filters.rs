//! `arrayFilters`: which elements `$[id]` stands for.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::filter::Filter;
use crate::value::{Bson, Document};

#[derive(Clone, Debug)]
pub struct ArrayFilter {
    pub identifier: Arc<str>,
    filter: Filter,
}

impl ArrayFilter {
    pub fn passes(&self, element: &Bson, context: &Context) -> Result<bool> {
        let mut wrapped = Document::new();
        wrapped.push(self.identifier.clone(), element.clone());
        self.filter.matches((&wrapped).into(), context)
    }
}

pub fn parse(filters: &[Bson], context: &Context) -> Result<Vec<ArrayFilter>> {
    let mut parsed: Vec<ArrayFilter> = Vec::with_capacity(filters.len());
    for (at, filter) in filters.iter().enumerate() {
        let Bson::Document(document) = filter else {
            return Err(Error::type_mismatch(format!(
                "BSON field 'update.updates.arrayFilters.{at}' is the wrong type, expected type object"
            )));
        };
        let filter = Filter::parse(document, context)?;
        let mut names = Vec::new();
        names_of(document, &mut names);
        let Some(identifier) = names.first().cloned() else {
            return Err(Error::failed_to_parse(
                "Cannot use an expression without a top-level field name in arrayFilters",
            ));
        };
        if let Some(other) = names.iter().find(|name| **name != identifier) {
            return Err(Error::failed_to_parse(format!(
                "Error parsing array filter :: caused by :: Expected a single top-level field name, found \
                 '{identifier}' and '{other}'"
            )));
        }
        let lower = identifier.starts_with(|letter: char| letter.is_ascii_lowercase());
        if !lower || !identifier.chars().all(|letter| letter.is_ascii_alphanumeric()) {
            return Err(Error::new(
                code::BAD_VALUE,
                format!(
                    "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string \
                     beginning with a lowercase letter, found '{identifier}'"
                ),
            ));
        }
        if parsed.iter().any(|filter| *filter.identifier == identifier) {
            return Err(Error::failed_to_parse(format!(
                "Found multiple array filters with the same top-level field name {identifier}"
            )));
        }
        parsed.push(ArrayFilter { identifier: identifier.into(), filter });
    }
    Ok(parsed)
}

/// First names of the paths of a filter, those in `$and`, `$or` and `$nor` too.
fn names_of(document: &Document, names: &mut Vec<String>) {
    for (name, value) in document.iter() {
        if !name.starts_with('$') {
            names.push(name.split('.').next().unwrap_or_default().to_owned());
        } else if let Bson::Array(conditions) = value {
            conditions.iter().filter_map(Bson::as_document).for_each(|inner| names_of(inner, names));
        }
    }
}
