//! Texts with a term, from the rows of its words.
//!
//! A term of several words is a phrase: the rows of its words are read side by side, each from where the others have
//! got to, and the places in them tell whether the words follow each other. Where letters may differ a word has
//! several forms, which are looked for among all stems of the path; a text has the word where it has any of them.

use bytes::Bytes;
use orrery_index::{count_places, decode_places};
use orrery_query::fulltext::Term;

use crate::error::{Error, Result};
use crate::partition::Span;
use crate::partition::index::{Entries, PartitionView, TextPath};

/// Forms of one word. Each is a scan of its own.
const FORMS_MAX: usize = 256;
/// Different stems that are always looked at; in a larger partition as many as there are items.
const STEMS_MIN: u64 = 10_000;

/// A text with the term.
pub(in crate::query) struct Hit {
    pub reference: Bytes,
    /// How often the term stands in it.
    pub count: u32,
    /// Words of the text.
    pub length: u32,
}

/// Texts with a term, in the order of their items.
pub(in crate::query) struct TermHits<'v> {
    term: &'v Term,
    words: Vec<Word<'v>>,
    /// Rows that were read to find the forms of the words.
    stems_read: u64,
}

impl<'v> TermHits<'v> {
    /// `None` where the words have so many forms that the texts are better read.
    pub fn new(
        view: &'v PartitionView,
        path: &TextPath,
        term: &'v Term,
        span: &Span,
    ) -> Result<Option<TermHits<'v>>> {
        let forms = |stem: &str| Word { forms: vec![view.word_entries(path, stem, span)] };
        if term.is_literal() {
            let words = term.stems().iter().map(|stem| forms(stem)).collect();
            return Ok(Some(TermHits { term, words, stems_read: 0 }));
        }
        let mut found: Vec<Word<'v>> = term.stems().iter().map(|_| Word { forms: Vec::new() }).collect();
        let mut few = true;
        let stems_max = view.item_count().max(STEMS_MIN);
        let read = view.visit_stems(path, stems_max, &mut |stem| {
            for (at, word) in found.iter_mut().enumerate() {
                if term.accepts(at, stem) {
                    word.forms.push(view.word_entries(path, stem, span));
                    few &= word.forms.len() <= FORMS_MAX;
                }
            }
            few
        })?;
        Ok(read.filter(|_| few).map(|stems_read| TermHits { term, words: found, stems_read }))
    }

    /// Rows read so far.
    pub fn read(&self) -> u64 {
        self.stems_read + self.words.iter().flat_map(|word| &word.forms).map(Entries::rows_read).sum::<u64>()
    }

    pub fn next_hit(&mut self) -> Result<Option<Hit>> {
        let [first, others @ ..] = self.words.as_mut_slice() else { return Ok(None) };
        'texts: while let Some(reference) = first.next_text()? {
            if others.is_empty() {
                let (length, count) = first.count(&reference)?;
                return Ok(Some(Hit { reference, count, length }));
            }
            let (length, places) = first.places(&reference)?;
            let mut all = Vec::with_capacity(others.len() + 1);
            all.push(places);
            for other in &mut *others {
                other.seek(&reference)?;
                match other.next_text()? {
                    None => return Ok(None),
                    Some(found) if found == reference => all.push(other.places(&reference)?.1),
                    Some(further) => {
                        first.seek(&further)?;
                        continue 'texts;
                    }
                }
            }
            let count = u32::try_from(self.term.count_places(&all)).unwrap_or(u32::MAX);
            if count > 0 {
                return Ok(Some(Hit { reference, count, length }));
            }
        }
        Ok(None)
    }
}

/// The texts with a word in one of its forms.
struct Word<'v> {
    forms: Vec<Entries<'v>>,
}

impl Word<'_> {
    /// The next text, which stays the next until it is taken or passed over.
    fn next_text(&mut self) -> Result<Option<Bytes>> {
        let mut next: Option<Bytes> = None;
        for form in &mut self.forms {
            if let Some(entry) = form.peek_entry()?
                && next.as_ref().is_none_or(|next| entry.reference() < &next[..])
            {
                next = Some(entry.reference_bytes());
            }
        }
        Ok(next)
    }

    fn seek(&mut self, reference: &[u8]) -> Result<()> {
        self.forms.iter_mut().try_for_each(|form| form.seek(reference))
    }

    /// Takes the next text: how long it is, and how often the word stands in it.
    fn count(&mut self, reference: &[u8]) -> Result<(u32, u32)> {
        let (mut length, mut count) = (0, 0);
        self.take(reference, &mut |payload| {
            let (words, times) = count_places(payload)?;
            (length, count) = (words, count + times);
            Some(())
        })?;
        Ok((length, count))
    }

    /// Takes the next text: how long it is, and where the word stands in it.
    fn places(&mut self, reference: &[u8]) -> Result<(u32, Vec<u32>)> {
        let (mut length, mut places) = (0, Vec::new());
        self.take(reference, &mut |payload| {
            let (words, found) = decode_places(payload)?;
            length = words;
            places.extend(found);
            Some(())
        })?;
        if self.forms.len() > 1 {
            places.sort_unstable();
        }
        Ok((length, places))
    }

    fn take(&mut self, reference: &[u8], read: &mut dyn FnMut(&[u8]) -> Option<()>) -> Result<()> {
        for form in &mut self.forms {
            if form.peek_entry()?.is_some_and(|entry| entry.reference() == reference)
                && let Some(entry) = form.next_entry()?
            {
                read(entry.payload()).ok_or_else(damaged)?;
            }
        }
        Ok(())
    }
}

fn damaged() -> Error {
    Error::internal("A row of the full-text index is damaged.")
}
