//! What the arguments of stages have in common.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::value::{Bson, Document};

/// What a stage is parsed with.
pub struct Parsing<'a> {
    pub context: &'a Context,
    /// Pipelines around this one.
    pub depth: usize,
}

impl Parsing<'_> {
    /// A pipeline inside of a stage.
    pub fn pipeline(&self, stages: &[Bson]) -> Result<super::Pipeline> {
        super::Pipeline::parse_within(stages, self.context, self.depth + 1)
    }
}

/// The argument as a document, or an error with this code.
pub fn document<'a>(argument: &'a Bson, code: i32, message: &'static str) -> Result<&'a Document> {
    argument.as_document().ok_or_else(|| Error::new(code, message))
}

/// A field path as stages take it: no empty parts, no `$` in front of one, no NUL.
pub fn field_path(path: &str) -> Result<Arc<str>> {
    if path.is_empty() {
        return Err(Error::new(40_352, "FieldPath cannot be constructed with empty string"));
    }
    if path.ends_with('.') {
        return Err(Error::new(40_353, "FieldPath must not end with a '.'."));
    }
    for part in path.split('.') {
        if part.is_empty() {
            return Err(Error::new(15_998, "FieldPath field names may not be empty strings."));
        }
        if part.starts_with('$') {
            return Err(Error::new(
                16_410,
                format!(
                    "FieldPath field names may not start with '$'. Consider using $getField or $setField: '{part}'"
                ),
            ));
        }
        if part.contains('\0') {
            return Err(Error::new(16_411, "FieldPath field names may not contain '\0'."));
        }
    }
    Ok(path.into())
}

/// How a value is shown in texts of errors.
pub fn shown(value: &Bson) -> String {
    crate::ext_json::to_text(value.into(), crate::ext_json::Style::Relaxed)
}
