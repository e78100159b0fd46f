//! JSON text: the parser that makes stored documents of it, the writer that prints them, and the spelling of numbers.

pub(crate) mod decimal;
pub(crate) mod extended;
pub(crate) mod parser;
pub(crate) mod scan;
pub(crate) mod text;
