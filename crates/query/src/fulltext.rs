//! Full text: words of a text, their stems, and the BM25 score.
//!
//! A text is cut into runs of letters and digits, lower-cased and stemmed in the language of its path, so that
//! `swimming` finds `swims`. A term of several words is a phrase: its words must follow each other. A term may allow
//! a few letters of difference. Words that carry no meaning of their own are found like others but do not count
//! towards the length of a text.
//!
//! An index keeps for each stem the places where it stands ([`places_of`]). That is all there is to know: whether a
//! term is in a text, how often, and what its score is follow from the places, and give the same numbers as the text.

use std::collections::BTreeMap;

use orrery_model::Value;

use crate::language::Language;
use crate::value::Eval;

/// Longest term that is compared letter by letter when a difference is allowed.
const FUZZY_CHARS_MAX: usize = 64;

/// Longest term, in letters and those that may differ, that an index with its long stems cut finds all forms of: what
/// it cuts has more letters.
const FINDABLE_CHARS_MAX: usize = 16;

/// A text cut into words.
pub(crate) struct Words {
    /// The stems, in order.
    stems: Vec<String>,
    /// How many words carry meaning.
    pub length: usize,
}

impl Words {
    pub fn new(text: &str, language: Language) -> Words {
        let mut words = Words { stems: Vec::new(), length: 0 };
        for word in text.split(|character: char| !character.is_alphanumeric()) {
            if word.is_empty() {
                continue;
            }
            let word = word.to_lowercase();
            words.length += usize::from(!language.is_function_word(&word));
            words.stems.push(language.stem(&word));
        }
        words
    }
}

/// The stems of a text, each with the places where it stands, and how many words carry meaning.
pub fn places_of(text: &str, language: Language) -> (BTreeMap<String, Vec<u32>>, usize) {
    let words = Words::new(text, language);
    let mut places: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (at, stem) in words.stems.into_iter().enumerate() {
        places.entry(stem).or_default().push(u32::try_from(at).unwrap_or(u32::MAX));
    }
    (places, words.length)
}

/// A term to look for: one word or a phrase.
#[derive(Clone, Debug)]
pub struct Term {
    words: Vec<String>,
    /// How many letters may differ, 0 to 2.
    distance: usize,
    language: Language,
}

impl Term {
    pub(crate) fn new(text: &str, distance: usize, language: Language) -> Term {
        Term { words: Words::new(text, language).stems, distance, language }
    }

    /// A term of a query: a string, or an object with a `term` and how many letters may differ.
    pub(crate) fn of(value: &Eval<'_>, language: Language) -> Option<Term> {
        if let Some(text) = value.as_str() {
            return Some(Term::new(text, 0, language));
        }
        let distance = value.member("distance").as_i64().unwrap_or(0);
        Some(Term::new(value.member("term").as_str()?, usize::try_from(distance).ok()?.min(2), language))
    }

    /// The stems that must follow each other. None: the term is nowhere.
    pub fn stems(&self) -> &[String] {
        &self.words
    }

    /// In which language its stems are.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Whether words count only if they are just these.
    pub fn is_literal(&self) -> bool {
        self.distance == 0
    }

    /// Whether all forms of its words are among the stems that an index writes out.
    pub(crate) fn is_findable(&self) -> bool {
        let short = |word: &String| word.chars().count() + self.distance <= FINDABLE_CHARS_MAX;
        self.is_literal() || self.words.iter().all(short)
    }

    /// Whether a stem is a form of one of its words.
    pub fn accepts(&self, word: usize, stem: &str) -> bool {
        self.words.get(word).is_some_and(|wanted| self.same(stem, wanted))
    }

    /// How often the term stands in a text, by the places of each of its stems, which are in order.
    pub fn count_places(&self, places: &[Vec<u32>]) -> usize {
        let Some((first, rest)) = places.split_first() else { return 0 };
        let follows = |start: &u32| {
            let mut next = *start;
            rest.iter().all(|places| {
                next = next.saturating_add(1);
                places.binary_search(&next).is_ok()
            })
        };
        first.iter().filter(|start| follows(start)).count()
    }

    /// How often the term stands among the words of a text.
    pub(crate) fn count(&self, text: &Words) -> usize {
        if self.words.is_empty() {
            return 0;
        }
        text.stems
            .windows(self.words.len())
            .filter(|window| window.iter().zip(&self.words).all(|(word, wanted)| self.same(word, wanted)))
            .count()
    }

    fn same(&self, word: &str, wanted: &str) -> bool {
        word == wanted || (self.distance > 0 && within(word, wanted, self.distance))
    }
}

/// Whether two words differ by at most `limit` insertions, deletions or replacements.
fn within(a: &str, b: &str, limit: usize) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit || a.len().max(b.len()) > FUZZY_CHARS_MAX {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()] <= limit
}

/// What BM25 needs to know besides a text: how common its terms are in all of them.
#[derive(Clone, Debug)]
pub struct Scorer {
    pub terms: Vec<Term>,
    documents: f64,
    average_words: f64,
    matching: Vec<f64>,
}

impl Scorer {
    /// Reads the arguments of `_FullTextScore` behind the text; `None` where there is no score, or not a plain one.
    pub(crate) fn new(
        terms: &Value,
        documents: &Value,
        words: &Value,
        matching: &Value,
        language: Language,
    ) -> Option<Scorer> {
        let number = |value: &Value| value.as_number().map(|number| number.as_f64());
        let (Value::Array(terms), Value::Array(matching)) = (terms, matching) else { return None };
        let terms = terms.iter().map(|term| Term::of(&Eval::from_constant(term), language));
        let terms: Vec<Term> = terms.collect::<Option<_>>()?;
        let matching: Vec<f64> = matching.iter().map(number).collect::<Option<_>>()?;
        let count = terms.len().min(matching.len());
        let documents = number(documents)?;
        let average_words = average(number(words)?, documents);
        let terms = terms.into_iter().take(count).collect();
        Some(Scorer { terms, documents, average_words, matching })
    }

    /// The same from counts over all texts.
    pub fn counted(terms: Vec<Term>, documents: u64, words: u64, matching: &[u64]) -> Scorer {
        let matching = matching.iter().map(|count| *count as f64).collect();
        let average_words = words as f64 / (documents as f64).max(1.0);
        Scorer { terms, documents: documents as f64, average_words, matching }
    }

    /// Whether every hit makes a score larger than that of a text without any.
    pub fn rewards_hits(&self) -> bool {
        self.matching.iter().all(|matching| rarity(self.documents, *matching) > 0.0)
    }

    /// The score of a text in which each term stands so often.
    pub fn score(&self, hits: &[u32], words: u32) -> f64 {
        let mut total = 0.0;
        for (hits, matching) in hits.iter().zip(&self.matching).filter(|(hits, _)| **hits > 0) {
            total += bm25(f64::from(*hits), f64::from(words), self.documents, self.average_words, *matching);
        }
        total
    }
}

/// The average length of a text.
pub(crate) fn average(words: f64, documents: f64) -> f64 {
    if documents > 0.0 { words / documents } else { 0.0 }
}

fn rarity(documents: f64, matching: f64) -> f64 {
    (1.0 + (documents - matching + 0.5) / (matching + 0.5)).ln()
}

/// BM25 of one term in one text.
pub(crate) fn bm25(hits: f64, words: f64, documents: f64, average_words: f64, matching: f64) -> f64 {
    const K1: f64 = 1.2;
    const B: f64 = 0.75;
    let rarity = rarity(documents, matching);
    let length = if average_words > 0.0 { words / average_words } else { 1.0 };
    rarity * hits * (K1 + 1.0) / (hits + K1 * (1.0 - B + B * length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EN: Language = Language::English;

    #[test]
    fn function_words_do_not_lengthen_a_text() {
        assert_eq!(Words::new("The cat and the hat", EN).length, 2);
        assert_eq!(Words::new("a about your yours", EN).length, 1);
    }

    #[test]
    fn phrases_need_their_words_in_order() {
        let text = Words::new("The United States of America", EN);
        assert_eq!(Term::new("united states", 0, EN).count(&text), 1);
        assert_eq!(Term::new("states united", 0, EN).count(&text), 0);
        assert_eq!(Term::new("amerika", 1, EN).count(&text), 1);
    }

    #[test]
    fn places_count_as_words_do() {
        let text = "new york, new new york: the york of a new new new world";
        let (places, length) = places_of(text, EN);
        assert_eq!(length, Words::new(text, EN).length);
        for term in ["new", "york", "new york", "new new", "the york", "york new", "gone", "new new new", ""]
        {
            let term = Term::new(term, 0, EN);
            let found: Option<Vec<Vec<u32>>> =
                term.stems().iter().map(|stem| places.get(stem).cloned()).collect();
            let counted = found.map_or(0, |found| term.count_places(&found));
            assert_eq!(counted, term.count(&Words::new(text, EN)), "{term:?}");
        }
    }
}
