//! Named arguments: `{$op: {input: …, as: …}}`.

use super::Expression;
use super::parse::Parser;
use crate::error::{Error, Result};
use crate::value::{Bson, Document};

/// The document of named arguments.
pub(super) fn document(argument: &Bson, code: i32, text: impl FnOnce() -> String) -> Result<&Document> {
    argument.as_document().ok_or_else(|| Error::new(code, text()))
}

/// Refuses names that are not known.
pub(super) fn check_names(name: &str, document: &Document, known: &[&str], code: i32) -> Result<()> {
    match document.iter().find(|(has, _)| !known.contains(&&***has)) {
        None => Ok(()),
        Some((unknown, _)) => Err(Error::new(code, format!("Unrecognized argument to {name}: {unknown}"))),
    }
}

/// An argument that must be there.
pub(super) fn required<'a>(
    name: &str,
    document: &'a Document,
    argument: &str,
    code: i32,
) -> Result<&'a Bson> {
    document
        .get(argument)
        .ok_or_else(|| Error::new(code, format!("Missing '{argument}' parameter to {name}")))
}

impl Parser<'_> {
    /// Parses arguments in the order of their names; those not given are absent.
    pub(super) fn named(&mut self, document: &Document, names: &[&str]) -> Result<Vec<Expression>> {
        names.iter().map(|name| self.optional(document.get(name))).collect()
    }
}
