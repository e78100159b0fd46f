//! Paths of updates: `a.b`, `a.0.b`, `a.$`, `a.$[]`, `a.$[id].b`; made concrete for one document, in order, without
//! conflicts.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::{Error, Result, code};
use crate::filter::path::index;
use crate::value::{Bson, Document};

/// Names of one path.
const DEPTH_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Name(Arc<str>),
    /// `$`: the element that the filter matched.
    Matched,
    /// `$[]`: every element.
    Each,
    /// `$[id]`: elements that pass an array filter.
    Filtered(Arc<str>),
}

#[derive(Clone, Debug)]
pub struct UpdatePath {
    pub text: Arc<str>,
    pub parts: Vec<Part>,
}

impl UpdatePath {
    pub fn parse(text: &Arc<str>) -> Result<UpdatePath> {
        if text.is_empty() {
            return Err(Error::new(code::EMPTY_FIELD_NAME, "An empty update path is not valid."));
        }
        let mut parts = Vec::new();
        for (at, name) in text.split('.').enumerate() {
            let part = match name {
                "" => {
                    return Err(Error::new(
                        code::EMPTY_FIELD_NAME,
                        format!(
                            "The update path '{text}' contains an empty field name, which is not allowed."
                        ),
                    ));
                }
                "$" => Part::Matched,
                "$[]" => Part::Each,
                _ => match name.strip_prefix("$[").and_then(|rest| rest.strip_suffix(']')) {
                    Some(identifier) => Part::Filtered(identifier.into()),
                    None => Part::Name(name.into()),
                },
            };
            if at == 0 && !matches!(part, Part::Name(_)) {
                let what = if part == Part::Matched {
                    "positional (i.e. '$') element"
                } else {
                    "array filter identifier"
                };
                return Err(Error::bad_value(format!(
                    "Cannot have {what} in the first position in path '{text}'"
                )));
            }
            parts.push(part);
        }
        if parts.len() > DEPTH_MAX {
            return Err(Error::new(code::OVERFLOW, "the update path is nested too deeply"));
        }
        if parts.iter().filter(|part| **part == Part::Matched).count() > 1 {
            return Err(Error::bad_value(format!(
                "Too many positional (i.e. '$') elements found in path '{text}'"
            )));
        }
        Ok(UpdatePath { text: text.clone(), parts })
    }

    pub fn is_dynamic(&self) -> bool {
        self.parts.iter().any(|part| !matches!(part, Part::Name(_)))
    }
}

/// Refuses paths of one update that cannot go together, whatever the document: one within another, or names beside
/// `$[…]`.
pub fn check_conflicts(paths: &[&UpdatePath]) -> Result<()> {
    for (at, path) in paths.iter().enumerate() {
        for other in &paths[..at] {
            let shared = path.parts.iter().zip(&other.parts).take_while(|(a, b)| a == b).count();
            let within = shared == path.parts.len() || shared == other.parts.len();
            let of_array = |parts: &[Part]| matches!(parts[shared], Part::Each | Part::Filtered(_));
            let mixed = !within && of_array(&path.parts) != of_array(&other.parts);
            if within || mixed {
                let taken = if within { shared } else { shared.max(1) };
                let place = path.text.splitn(taken + 1, '.').take(taken).collect::<Vec<_>>().join(".");
                return Err(conflict(&path.text, &place));
            }
        }
    }
    Ok(())
}

pub fn conflict(path: &str, place: &str) -> Error {
    Error::new(
        code::CONFLICTING_UPDATE_OPERATORS,
        format!("Updating the path '{path}' would create a conflict at '{place}'"),
    )
}

/// A path without positional parts.
pub type Concrete = Vec<Arc<str>>;

/// The order in which paths are gone through: names by their letters, numbers by their value.
pub fn compare(a: &[Arc<str>], b: &[Arc<str>]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        let order = match (index(a), index(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.cmp(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

/// Makes a path concrete for a document.
pub struct Expansion<'a> {
    pub matched: Option<usize>,
    /// Whether an element passes the array filter of an identifier.
    pub passes: &'a dyn Fn(&str, &Bson) -> Result<bool>,
}

impl Expansion<'_> {
    pub fn expand(&self, path: &UpdatePath, document: &Document) -> Result<Vec<Concrete>> {
        let mut found = Vec::new();
        self.go(path, 0, None, Some(document), Vec::with_capacity(path.parts.len()), &mut found)?;
        Ok(found)
    }

    /// `value` is what the parts before `at` lead to; `document` where that is the root.
    fn go(
        &self,
        path: &UpdatePath,
        at: usize,
        value: Option<&Bson>,
        root: Option<&Document>,
        mut taken: Concrete,
        found: &mut Vec<Concrete>,
    ) -> Result<()> {
        let Some(part) = path.parts.get(at) else {
            found.push(taken);
            return Ok(());
        };
        let child = |name: &str| match (root, value) {
            (Some(document), _) | (None, Some(Bson::Document(document))) => document.get(name),
            (None, Some(Bson::Array(elements))) => index(name).and_then(|index| elements.get(index)),
            _ => None,
        };
        match part {
            Part::Name(name) => {
                let next = child(name);
                taken.push(name.clone());
                self.go(path, at + 1, next, None, taken, found)
            }
            Part::Matched => {
                if let (None, Some(Bson::Document(_))) = (root, value) {
                    return Err(Error::bad_value(format!(
                        "Cannot apply array updates to non-array element {}",
                        taken.join(".")
                    )));
                }
                let Some(matched) = self.matched else {
                    return Err(Error::bad_value(
                        "The positional operator did not find the match needed from the query.",
                    ));
                };
                let name: Arc<str> = matched.to_string().into();
                let next = child(&name);
                taken.push(name);
                self.go(path, at + 1, next, None, taken, found)
            }
            Part::Each | Part::Filtered(_) => {
                let place = taken.join(".");
                let elements = match value {
                    Some(Bson::Array(elements)) => elements,
                    Some(_) => {
                        return Err(Error::bad_value(format!(
                            "Cannot apply array updates to non-array element {place}"
                        )));
                    }
                    None => {
                        return Err(Error::bad_value(format!(
                            "The path '{place}' must exist in the document in order to apply array updates."
                        )));
                    }
                };
                for (number, element) in elements.iter().enumerate() {
                    let passes = match part {
                        Part::Filtered(identifier) => (self.passes)(identifier, element)?,
                        _ => true,
                    };
                    if passes {
                        let mut taken = taken.clone();
                        taken.push(number.to_string().into());
                        self.go(path, at + 1, Some(element), None, taken, found)?;
                    }
                }
                Ok(())
            }
        }
    }
}
