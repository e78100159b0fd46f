//! Operators on texts.

pub(crate) mod case;
pub(crate) mod coerce;
pub(crate) mod concat;
pub(crate) mod index_of;
pub(crate) mod length;
pub(crate) mod regex;
pub(crate) mod replace;
pub(crate) mod split;
pub(crate) mod substring;
pub(crate) mod trim;
