//! Texts with a term, from the rows of its words.
//!
//! A term of several words is a phrase: the rows of its words are read side by side, each from where the others have got to, and
//! the places in them tell whether the words follow each other.

use bytes::Bytes;
use orrery_index::{count_places, decode_places};
use orrery_query::fulltext::Term;

use crate::error::{Error, Result};
use crate::partition::Span;
use crate::partition::index::{Entries, Entry, PartitionView, TextPath};

/// A text with the term.
pub(super) struct Hit {
    pub reference: Bytes,
    /// How often the term stands in it.
    pub count: u32,
    /// Words of the text.
    pub length: u32,
}

/// Texts with a term, in the order of their items.
pub(super) struct TermHits<'v> {
    term: &'v Term,
    words: Vec<Entries<'v>>,
}

impl<'v> TermHits<'v> {
    pub fn new(view: &'v PartitionView, path: &TextPath, term: &'v Term, span: &Span) -> TermHits<'v> {
        let words = term.stems().iter().map(|stem| view.word_entries(path, stem, span)).collect();
        TermHits { term, words }
    }

    /// Rows read so far.
    pub fn read(&self) -> u64 {
        self.words.iter().map(Entries::rows_read).sum()
    }

    pub fn next_hit(&mut self) -> Result<Option<Hit>> {
        let [first, others @ ..] = self.words.as_mut_slice() else { return Ok(None) };
        'texts: while let Some(entry) = first.next_entry()? {
            if others.is_empty() {
                let (length, count) = count_places(entry.payload()).ok_or_else(damaged)?;
                return Ok(Some(Hit { reference: entry.reference_bytes(), count, length }));
            }
            let (length, places) = places_of(&entry)?;
            let mut all = Vec::with_capacity(others.len() + 1);
            all.push(places);
            for other in &mut *others {
                other.seek(entry.reference())?;
                match other.peek_entry()? {
                    None => return Ok(None),
                    Some(found) if found.reference() == entry.reference() => all.push(places_of(found)?.1),
                    Some(found) => {
                        let further = found.reference_bytes();
                        first.seek(&further)?;
                        continue 'texts;
                    }
                }
            }
            let count = u32::try_from(self.term.count_places(&all)).unwrap_or(u32::MAX);
            if count > 0 {
                return Ok(Some(Hit { reference: entry.reference_bytes(), count, length }));
            }
        }
        Ok(None)
    }
}

fn places_of(entry: &Entry) -> Result<(u32, Vec<u32>)> {
    decode_places(entry.payload()).ok_or_else(damaged)
}

fn damaged() -> Error {
    Error::internal("A row of the full-text index is damaged.")
}
