//! Documents on their way through a pipeline.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::error::Result;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// A document: an item as it is stored, or one that a stage has made.
#[derive(Clone, Debug)]
pub enum Row {
    /// Bytes of a stored item.
    Stored(Bytes),
    Built(Document),
}

impl Row {
    pub fn value(&self) -> Result<ValueRef<'_>> {
        match self {
            Row::Stored(bytes) => crate::codec::item(bytes),
            Row::Built(document) => Ok(ValueRef::OwnedDocument(document)),
        }
    }

    pub fn to_document(&self) -> Result<Document> {
        match self {
            Row::Stored(_) => self.value().map(ValueRef::to_document),
            Row::Built(document) => Ok(document.clone()),
        }
    }

    pub fn into_document(self) -> Result<Document> {
        match self {
            Row::Stored(_) => self.to_document(),
            Row::Built(document) => Ok(document),
        }
    }

    /// About what it takes of memory.
    pub fn size_bytes(&self) -> usize {
        match self {
            Row::Stored(bytes) => bytes.len() + ROW_BYTES,
            Row::Built(document) => document_bytes(document) + ROW_BYTES,
        }
    }
}

/// About what a row, a member or an element takes beside its content.
const ROW_BYTES: usize = 48;
const MEMBER_BYTES: usize = 56;

/// About what a value takes of memory. What is shared counts in full.
pub(crate) fn value_bytes(value: &Bson) -> usize {
    match value {
        Bson::String(text) | Bson::Symbol(text) | Bson::Code(text) => text.len() + MEMBER_BYTES,
        Bson::Binary { bytes, .. } => bytes.len() + MEMBER_BYTES,
        Bson::Document(document) => document_bytes(document) + MEMBER_BYTES,
        Bson::Array(elements) => elements.iter().map(value_bytes).sum::<usize>() + MEMBER_BYTES,
        Bson::Regex(regex) => regex.pattern.len() + regex.options.len() + MEMBER_BYTES,
        Bson::CodeWithScope(code) => code.0.len() + document_bytes(&code.1) + MEMBER_BYTES,
        _ => MEMBER_BYTES,
    }
}

pub(crate) fn document_bytes(document: &Document) -> usize {
    document.iter().map(|(name, value)| name.len() + value_bytes(value)).sum()
}

/// Documents one after the other. Kept by a cursor between two requests, so it is sent between threads.
pub trait Rows: Send {
    fn next(&mut self) -> Result<Option<Row>>;
}

pub type BoxedRows = Box<dyn Rows>;

/// Rows that are there already.
pub struct ListRows(VecDeque<Row>);

impl ListRows {
    pub fn boxed(rows: impl IntoIterator<Item = Row>) -> BoxedRows {
        Box::new(ListRows(rows.into_iter().collect()))
    }

    pub fn empty() -> BoxedRows {
        ListRows::boxed([])
    }
}

impl Rows for ListRows {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.0.pop_front())
    }
}

/// Rows that a blocking stage makes of all of its input, when the first one is asked for.
pub(crate) struct Blocking<F> {
    make: Option<F>,
    rows: BoxedRows,
}

impl<F: FnOnce() -> Result<BoxedRows> + Send + 'static> Blocking<F> {
    pub fn boxed(make: F) -> BoxedRows {
        Box::new(Blocking { make: Some(make), rows: ListRows::empty() })
    }
}

impl<F: FnOnce() -> Result<BoxedRows> + Send> Rows for Blocking<F> {
    fn next(&mut self) -> Result<Option<Row>> {
        if let Some(make) = self.make.take() {
            self.rows = make()?;
        }
        self.rows.next()
    }
}

/// Rows that a stage makes of one row after the other.
pub(crate) struct Mapped<F> {
    input: BoxedRows,
    map: F,
}

impl<F: FnMut(Row) -> Result<Option<Row>> + Send + 'static> Mapped<F> {
    pub fn boxed(input: BoxedRows, map: F) -> BoxedRows {
        Box::new(Mapped { input, map })
    }
}

impl<F: FnMut(Row) -> Result<Option<Row>> + Send> Rows for Mapped<F> {
    fn next(&mut self) -> Result<Option<Row>> {
        while let Some(row) = self.input.next()? {
            if let Some(row) = (self.map)(row)? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
