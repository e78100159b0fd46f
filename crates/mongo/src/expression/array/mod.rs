//! Operators on arrays.

pub(crate) mod elements;
pub(crate) mod join;
pub(crate) mod range;
pub(crate) mod search;
pub(crate) mod several;
pub(crate) mod sort;
pub(crate) mod zip;
