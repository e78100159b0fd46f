//! Field paths of expressions: `a.b.c`, through documents and the elements of arrays.

use std::fmt;
use std::sync::Arc;

use super::Value;
use crate::error::{Error, Result};
use crate::value::Bson;
use crate::value_ref::ValueRef;

/// Names of one path.
pub const NAMES_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<Arc<str>>);

impl FieldPath {
    pub fn parse(path: &str) -> Result<FieldPath> {
        let names: Result<Vec<Arc<str>>> = path
            .split('.')
            .map(|name| match name {
                "" if path.is_empty() => Err(Error::new(40352, "FieldPath cannot be constructed with empty string")),
                "" if path.ends_with('.') && !path.ends_with("..") && path != "." => {
                    Err(Error::new(40353, "FieldPath must not end with a '.'."))
                }
                "" => Err(Error::new(15998, "FieldPath field names may not be empty strings.")),
                _ if name.starts_with('$') => Err(Error::new(
                    16410,
                    format!(
                        "FieldPath field names may not start with '$'. Consider using $getField or $setField. \
                         Found '{name}' in '{path}'."
                    ),
                )),
                _ if name.contains('\0') => {
                    Err(Error::new(16411, "FieldPath field names may not contain '\\0'."))
                }
                _ => Ok(Arc::from(name)),
            })
            .collect();
        let names = names?;
        if names.len() > NAMES_MAX {
            return Err(Error::new(15, "FieldPath is too long"));
        }
        Ok(FieldPath(names))
    }

    /// The path that stays where it is.
    pub fn here() -> FieldPath {
        FieldPath(Vec::new())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn names(&self) -> &[Arc<str>] {
        &self.0
    }

    /// What the path leads to. An array on the way gives an array of what its documents lead to.
    pub fn read<'a>(&self, from: ValueRef<'a>) -> Result<Value<'a>> {
        Ok(read(from, &self.0))
    }

    pub(crate) fn read_owned(&self, from: Bson) -> Result<Value<'static>> {
        if self.0.is_empty() {
            return Ok(Value::Owned(from));
        }
        Ok(read(ValueRef::Owned(&from), &self.0).into_bson().map_or(Value::Missing, Value::Owned))
    }
}

fn read<'a>(mut from: ValueRef<'a>, names: &[Arc<str>]) -> Value<'a> {
    for (at, name) in names.iter().enumerate() {
        if from.kind() == crate::value::Kind::Array {
            let rest = &names[at..];
            let found = from.elements().filter_map(|element| match element.kind() {
                // An array directly within an array is not gone into.
                crate::value::Kind::Document => read(element, rest).into_bson(),
                _ => None,
            });
            return Value::Owned(Bson::array(found.collect()));
        }
        match from.get(name) {
            Some(value) => from = value,
            None => return Value::Missing,
        }
    }
    Value::Ref(from)
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}
