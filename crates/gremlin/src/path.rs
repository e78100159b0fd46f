//! The path of a traverser, as a value: what `path()` gives.

use std::sync::Arc;

use crate::value::Value;

/// Objects with the labels that `as()` gave them, in the order of the walk.
#[derive(Clone, Debug, Default)]
pub struct Path {
    pub objects: Vec<Value>,
    /// As many as objects.
    pub labels: Vec<Vec<Arc<str>>>,
}
