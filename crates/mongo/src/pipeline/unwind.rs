//! `$unwind`: a document for each element of an array.

use std::sync::Arc;

use super::rows::{Row, Rows};
use super::specification::{Parsing, field_path, shown};
use super::{BoxedRows, Env, Stage};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

#[derive(Clone)]
pub struct Unwind {
    path: Arc<str>,
    index: Option<Arc<str>>,
    preserves_empty: bool,
}

pub fn parse_unwind(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let (mut path, mut index, mut preserves_empty) = (None, None, false);
    match argument {
        Bson::String(text) => path = Some(text.clone()),
        Bson::Document(specification) => {
            for (name, value) in specification.iter() {
                match (&**name, value) {
                    ("path", Bson::String(text)) => path = Some(text.clone()),
                    ("path", other) => {
                        return Err(Error::new(
                            28_808,
                            format!(
                                "expected a string as the path for $unwind stage, got {}",
                                other.kind().name()
                            ),
                        ));
                    }
                    ("preserveNullAndEmptyArrays", Bson::Bool(value)) => preserves_empty = *value,
                    ("preserveNullAndEmptyArrays", other) => {
                        return Err(Error::new(
                            28_809,
                            format!(
                                "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {}",
                                other.kind().name()
                            ),
                        ));
                    }
                    ("includeArrayIndex", Bson::String(text)) if !text.is_empty() => {
                        if text.starts_with('$') {
                            return Err(Error::new(
                                28_822,
                                format!(
                                    "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}"
                                ),
                            ));
                        }
                        index = Some(field_path(text)?);
                    }
                    ("includeArrayIndex", other) => {
                        return Err(Error::new(
                            28_810,
                            format!(
                                "expected a non-empty string for the includeArrayIndex option to $unwind stage, got {}",
                                shown(other)
                            ),
                        ));
                    }
                    _ => {
                        return Err(Error::new(
                            28_811,
                            format!("unrecognized option to $unwind stage: {name}"),
                        ));
                    }
                }
            }
        }
        other => {
            return Err(Error::new(
                15_981,
                format!(
                    "expected either a string or an object as specification for $unwind stage, got {}",
                    other.kind().name()
                ),
            ));
        }
    }
    let path = path.filter(|path| !path.is_empty());
    let path = path.ok_or_else(|| Error::new(28_812, "no path specified to $unwind stage"))?;
    let Some(path) = path.strip_prefix('$') else {
        return Err(Error::new(
            28_818,
            format!("path option to $unwind stage should be prefixed with a '$': {path}"),
        ));
    };
    Ok(Box::new(Unwind { path: field_path(path)?, index, preserves_empty }))
}

/// What a path leads to through documents alone.
fn at_path<'a>(document: ValueRef<'a>, path: &str) -> Option<ValueRef<'a>> {
    path.split('.').try_fold(document, |value, name| value.get(name))
}

/// Sets, or with `None` removes, what a path leads to through documents alone.
pub fn set_path(document: &mut Document, path: &str, value: Option<Bson>) {
    match path.split_once('.') {
        None => match value {
            Some(value) => document.set(path, value),
            None => {
                document.remove(path);
            }
        },
        Some((name, rest)) => match document.get_mut(name) {
            Some(Bson::Document(inner)) => set_path(inner, rest, value),
            _ if value.is_none() => {}
            _ => {
                let mut inner = Document::new();
                set_path(&mut inner, rest, value);
                document.set(name, inner);
            }
        },
    }
}

struct Unwound {
    unwind: Unwind,
    input: BoxedRows,
    context: Context,
    /// The document that is being unwound, its elements, and how many have been handed out.
    current: Option<(Document, Arc<Vec<Bson>>, usize)>,
}

impl Unwound {
    fn made(&self, document: &Document, element: Option<Bson>, index: Option<usize>) -> Row {
        let mut made = document.clone();
        set_path(&mut made, &self.unwind.path, element);
        if let Some(name) = &self.unwind.index {
            set_path(&mut made, name, Some(index.map_or(Bson::Null, |index| Bson::Int64(index as i64))));
        }
        Row::Built(made)
    }
}

impl Rows for Unwound {
    fn next(&mut self) -> Result<Option<Row>> {
        loop {
            self.context.budget.step(1)?;
            if let Some((document, elements, at)) = &mut self.current {
                if let Some(element) = elements.get(*at) {
                    let (document, element, index) = (document.clone(), element.clone(), *at);
                    *at += 1;
                    return Ok(Some(self.made(&document, Some(element), Some(index))));
                }
                self.current = None;
            }
            let Some(row) = self.input.next()? else { return Ok(None) };
            let value = at_path(row.value()?, &self.unwind.path).map(ValueRef::to_bson);
            match value {
                Some(Bson::Array(elements)) if !elements.is_empty() => {
                    self.current = Some((row.into_document()?, elements, 0));
                }
                Some(Bson::Array(_)) => {
                    if self.unwind.preserves_empty {
                        return Ok(Some(self.made(&row.into_document()?, None, None)));
                    }
                }
                None | Some(Bson::Null | Bson::Undefined) => {
                    if self.unwind.preserves_empty {
                        let document = row.into_document()?;
                        return Ok(Some(match &self.unwind.index {
                            None => Row::Built(document),
                            Some(name) => {
                                let mut document = document;
                                set_path(&mut document, name, Some(Bson::Null));
                                Row::Built(document)
                            }
                        }));
                    }
                }
                Some(value) => {
                    let document = row.into_document()?;
                    return Ok(Some(self.made(&document, Some(value), None)));
                }
            }
        }
    }
}

impl Stage for Unwind {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (unwind, context) = (self.clone(), env.context.clone());
        Ok(Box::new(Unwound { unwind, input, context, current: None }))
    }
}
