//! Full-text search without an index: the text is cut into words each time.
//!
//! Each function is there once for each language, because it is the path of a text that says in which one to read it.

use super::{Function, entry};
use crate::context::Caller;
use crate::fulltext::{Term, Words, average, bm25};
use crate::language::Language;
use crate::value::{Eval, Type};

/// Whether terms stand in a text, combined as OR (`any`) or AND.
fn contains<'a>(arguments: &[Eval<'a>], any: bool, language: Language) -> Eval<'a> {
    let Some(text) = arguments[0].as_str() else { return Eval::Undefined };
    let text = Words::new(text, language);
    for wanted in &arguments[1..] {
        let Some(term) = Term::of(wanted, language) else { return Eval::Undefined };
        if (term.count(&text) > 0) == any {
            return Eval::Bool(any);
        }
    }
    Eval::Bool(!any)
}

/// BM25 with the statistics a client has gathered over all partitions.
fn score<'a>(arguments: &[Eval<'a>], language: Language) -> Option<Eval<'a>> {
    let text = Words::new(arguments[0].as_str()?, language);
    let documents = arguments[2].as_f64()?;
    let average = if documents > 0.0 { average(arguments[3].as_f64()?, documents) } else { 0.0 };
    let mut total = 0.0;
    for (wanted, matching) in arguments[1].elements()?.zip(arguments[4].elements()?) {
        let hits = Term::of(&wanted, language)?.count(&text);
        if hits > 0 {
            total += bm25(hits as f64, text.length as f64, documents, average, matching.as_f64()?);
        }
    }
    Some(Eval::double(total))
}

fn call_any<'a, const L: usize>(_: &Caller<'_>, a: &[Eval<'a>]) -> Eval<'a> {
    contains(a, true, Language::ALL[L])
}

fn call_all<'a, const L: usize>(_: &Caller<'_>, a: &[Eval<'a>]) -> Eval<'a> {
    contains(a, false, Language::ALL[L])
}

fn call_word_count<'a, const L: usize>(_: &Caller<'_>, a: &[Eval<'a>]) -> Eval<'a> {
    match a[0].as_str() {
        Some(text) => Eval::integer(Words::new(text, Language::ALL[L]).length as i64),
        None if a[0].kind() == Type::Undefined => Eval::Undefined,
        None => Eval::integer(0),
    }
}

fn call_score<'a, const L: usize>(_: &Caller<'_>, a: &[Eval<'a>]) -> Eval<'a> {
    score(a, Language::ALL[L]).unwrap_or(Eval::Undefined)
}

/// The function that reads texts in a language; of another kind of function, itself.
pub(crate) fn in_language(function: &'static Function, language: Language) -> &'static Function {
    if language == function.language {
        return function;
    }
    IN_LANGUAGES[language as usize].iter().find(|other| other.name == function.name).unwrap_or(function)
}

static IN_LANGUAGES: [[Function; 5]; Language::ALL.len()] = [
    functions::<0>(),
    functions::<1>(),
    functions::<2>(),
    functions::<3>(),
    functions::<4>(),
    functions::<5>(),
];

pub(super) const FUNCTIONS: &[Function] = &functions::<0>();

/// The family, for the language with this number.
const fn functions<const L: usize>() -> [Function; 5] {
    [
        entry(
            "FULLTEXTCONTAINS",
            2,
            2,
            "text, term",
            "Whether the term, a word or phrase, stands in the text, in any form and case.",
            &[
                ("FULLTEXTCONTAINS('I was swimming', 'Swim')", "true"),
                ("FULLTEXTCONTAINS('I was swiming', {term: 'swam', distance: 1})", "true"),
                ("FULLTEXTCONTAINS(1, 'a')", "undefined"),
            ],
            call_any::<L>,
        )
        .reads(Language::ALL[L]),
        entry(
            "FULLTEXTCONTAINSANY",
            2,
            2,
            "text, term, …",
            "Whether one of the terms stands in the text.",
            &[("FULLTEXTCONTAINSANY('red bikes', 'blue', 'bike')", "true")],
            call_any::<L>,
        )
        .any_number()
        .reads(Language::ALL[L]),
        entry(
            "FULLTEXTCONTAINSALL",
            2,
            2,
            "text, term, …",
            "Whether all of the terms stand in the text.",
            &[("FULLTEXTCONTAINSALL('red bikes', 'blue', 'bike')", "false")],
            call_all::<L>,
        )
        .any_number()
        .reads(Language::ALL[L]),
        entry(
            "_FULLTEXTWORDCOUNT",
            1,
            1,
            "text",
            "How many words; part of the statistics queries that clients send for ORDER BY RANK.",
            &[("_FULLTEXTWORDCOUNT('red, blue')", "2")],
            call_word_count::<L>,
        )
        .reads(Language::ALL[L]),
        entry(
            "_FULLTEXTSCORE",
            5,
            5,
            "text, terms, documentCount, totalWordCount, hitCounts",
            "The BM25 score, with the statistics clients have summed over all partitions.",
            &[
                ("_FULLTEXTSCORE('a b', ['c'], 10, 20, [1])", "0"),
                ("_FULLTEXTSCORE('a', ['a'], 10, 10, [1]) > 1", "true"),
            ],
            call_score::<L>,
        )
        .reads(Language::ALL[L]),
    ]
}
