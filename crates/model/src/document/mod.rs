//! The stored form of a document: its layout, the reader that navigates it and the writer that builds it.

pub(crate) mod format;
pub(crate) mod raw;
pub(crate) mod table;
pub(crate) mod writer;
