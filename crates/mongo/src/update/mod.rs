//! Updates: replacement, operators, pipelines; and what an upsert inserts.
//!
//! An update by operators is a list of changes at paths ([`table`] lists the operators). For each document the paths
//! are made concrete (`$` becomes the element that the filter matched, `$[]` all elements, `$[id]` those that pass
//! the array filter), are checked against each other, and are gone through in lexicographic order.

mod apply;
mod array_filters;
mod arrays;
mod difference;
mod numbers;
mod parse;
mod path;
mod pipeline;
pub mod table;
mod upsert;

use std::sync::Arc;

use crate::codec::DEPTH_MAX;
use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::filter::{Filter, Matched};
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

const ID: &str = "_id";

#[derive(Clone, Debug)]
pub struct Update {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Replacement(Document),
    Operators(Arc<parse::Operators>),
    Pipeline(Arc<pipeline::UpdatePipeline>),
}

/// What an update made of a document.
#[derive(Clone, Debug)]
pub struct Updated {
    pub document: Document,
    /// False where the document is what it was, to the byte.
    pub modified: bool,
    /// Paths with their new values, and paths that have gone: what change streams tell. Nothing of a replacement.
    pub set: Vec<(String, Bson)>,
    pub unset: Vec<String>,
    /// Arrays that have become shorter, with their new lengths.
    pub truncated: Vec<(String, usize)>,
}

impl Update {
    /// `update` is a document (operators or a replacement) or an array (a pipeline).
    pub fn parse(update: &Bson, array_filters: Option<&[Bson]>, context: &Context) -> Result<Update> {
        let filters = array_filters.unwrap_or_default();
        let kind = match update {
            Bson::Document(document) if document.first().is_some_and(|(name, _)| name.starts_with('$')) => {
                Kind::Operators(Arc::new(parse::operators(document, filters, context)?))
            }
            Bson::Document(document) => {
                // A replacement has no use for array filters, but they have to be right.
                array_filters::parse(filters, context)?;
                if let Some((name, _)) = document.iter().find(|(name, _)| name.starts_with('$')) {
                    return Err(dollar_name(name, name));
                }
                Kind::Replacement(document.clone())
            }
            Bson::Array(stages) => {
                if array_filters.is_some() {
                    return Err(Error::failed_to_parse(
                        "arrayFilters may not be specified for pipeline-syle updates",
                    ));
                }
                Kind::Pipeline(Arc::new(pipeline::UpdatePipeline::parse(stages, context)?))
            }
            _ => {
                return Err(Error::failed_to_parse("Update argument must be either an object or an array"));
            }
        };
        Ok(Update { kind })
    }

    pub fn is_replacement(&self) -> bool {
        matches!(self.kind, Kind::Replacement(_))
    }

    pub fn is_pipeline(&self) -> bool {
        matches!(self.kind, Kind::Pipeline(_))
    }

    /// Applies the update to a document that the filter matched. `_id` stays; changing it is an error (66).
    pub fn apply(&self, document: ValueRef<'_>, matched: &Matched, context: &Context) -> Result<Updated> {
        let before = document.to_document();
        let mut after = match &self.kind {
            Kind::Replacement(replacement) => replacement.clone(),
            Kind::Operators(operators) => operators.apply(&before, matched, false, context)?,
            Kind::Pipeline(pipeline) => pipeline.apply(&before, context)?,
        };
        keep_id(&before, &mut after)?;
        let modified = !before.is_identical(&after);
        if modified {
            check_depth(&after)?;
        }
        let mut updated =
            Updated { document: after, modified, set: Vec::new(), unset: Vec::new(), truncated: Vec::new() };
        if modified && !self.is_replacement() {
            difference::note(&before, &mut updated);
        }
        Ok(updated)
    }

    /// The document that an upsert inserts; without `_id` where neither filter nor update say one.
    pub fn upsert(&self, filter: &Filter, context: &Context) -> Result<Document> {
        let start = upsert::start(filter, self.is_replacement())?;
        let mut made = match &self.kind {
            Kind::Replacement(replacement) => replacement.clone(),
            Kind::Operators(operators) => operators.apply(&start, &Matched::default(), true, context)?,
            Kind::Pipeline(pipeline) => pipeline.apply(&start, context)?,
        };
        if start.contains(ID) {
            keep_id(&start, &mut made)?;
        } else if let Some(id) = made.remove(ID) {
            made.push_front(ID, id);
        }
        check_id(&made)?;
        check_depth(&made)?;
        Ok(made)
    }
}

/// Puts `_id` back in front, and refuses another one.
fn keep_id(before: &Document, after: &mut Document) -> Result<()> {
    let Some(id) = before.get(ID) else { return Ok(()) };
    match after.get(ID) {
        // A replacement may say the same number in another width.
        Some(new) if new == id => {}
        Some(_) => return Err(immutable()),
        None => {
            after.push_front(ID, id.clone());
            return Ok(());
        }
    }
    if after.first().is_none_or(|(name, _)| &**name != ID)
        || !after.get(ID).is_some_and(|new| new.is_identical(id))
    {
        after.remove(ID);
        after.push_front(ID, id.clone());
    }
    Ok(())
}

fn check_depth(document: &Document) -> Result<()> {
    if document.is_deeper_than(DEPTH_MAX) {
        return Err(Error::new(
            code::OVERFLOW,
            format!("Document exceeds maximum nested object depth: {DEPTH_MAX}"),
        ));
    }
    Ok(())
}

fn immutable() -> Error {
    Error::new(
        code::IMMUTABLE_FIELD,
        "Performing an update on the path '_id' would modify the immutable field '_id'",
    )
}

/// What `_id` may not be.
pub fn check_id(document: &Document) -> Result<()> {
    let refused = match document.get(ID) {
        Some(Bson::Array(_)) => "array",
        Some(Bson::Regex(_)) => "regex",
        Some(Bson::Undefined) => "undefined",
        Some(Bson::Document(id)) => {
            return match id.iter().find(|(name, _)| name.starts_with('$') && !is_reference(name)) {
                Some((name, _)) => Err(dollar_name(name, &format!("_id.{name}"))),
                None => Ok(()),
            };
        }
        _ => return Ok(()),
    };
    Err(Error::new(code::INVALID_ID_FIELD, format!("The '_id' value cannot be of type {refused}")))
}

fn is_reference(name: &str) -> bool {
    matches!(name, "$ref" | "$id" | "$db")
}

fn dollar_name(name: &str, path: &str) -> Error {
    Error::new(
        code::DOLLAR_PREFIXED_FIELD_NAME,
        format!(
            "The dollar ($) prefixed field '{name}' in '{path}' is not allowed in the context of an update's replacement \
             document. Consider using an aggregation pipeline with $replaceWith."
        ),
    )
}
