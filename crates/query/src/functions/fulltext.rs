//! Full-text search without an index: the text is cut into words each time.

use super::{Function, entry};
use crate::fulltext::{Term, Words, average, bm25};
use crate::value::{Eval, Type};

/// Whether terms stand in a text, combined as OR (`any`) or AND.
fn contains<'a>(arguments: &[Eval<'a>], any: bool) -> Eval<'a> {
    let Some(text) = arguments[0].as_str() else { return Eval::Undefined };
    let text = Words::new(text);
    for wanted in &arguments[1..] {
        let Some(term) = Term::of(wanted) else { return Eval::Undefined };
        if (term.count(&text) > 0) == any {
            return Eval::Bool(any);
        }
    }
    Eval::Bool(!any)
}

/// BM25 with the statistics a client has gathered over all partitions.
fn score<'a>(arguments: &[Eval<'a>]) -> Option<Eval<'a>> {
    let text = Words::new(arguments[0].as_str()?);
    let documents = arguments[2].as_f64()?;
    let average = if documents > 0.0 { average(arguments[3].as_f64()?, documents) } else { 0.0 };
    let mut total = 0.0;
    for (wanted, matching) in arguments[1].elements()?.zip(arguments[4].elements()?) {
        let hits = Term::of(&wanted)?.count(&text);
        if hits > 0 {
            total += bm25(hits as f64, text.length as f64, documents, average, matching.as_f64()?);
        }
    }
    Some(Eval::double(total))
}

pub(super) const FUNCTIONS: &[Function] = &[
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
        |_, a| contains(a, true),
    ),
    entry(
        "FULLTEXTCONTAINSANY",
        2,
        2,
        "text, term, …",
        "Whether one of the terms stands in the text.",
        &[("FULLTEXTCONTAINSANY('red bikes', 'blue', 'bike')", "true")],
        |_, a| contains(a, true),
    )
    .any_number(),
    entry(
        "FULLTEXTCONTAINSALL",
        2,
        2,
        "text, term, …",
        "Whether all of the terms stand in the text.",
        &[("FULLTEXTCONTAINSALL('red bikes', 'blue', 'bike')", "false")],
        |_, a| contains(a, false),
    )
    .any_number(),
    entry(
        "_FULLTEXTWORDCOUNT",
        1,
        1,
        "text",
        "How many words; part of the statistics queries that clients send for ORDER BY RANK.",
        &[("_FULLTEXTWORDCOUNT('red, blue')", "2")],
        |_, a| match a[0].as_str() {
            Some(text) => Eval::integer(Words::new(text).length as i64),
            None if a[0].kind() == Type::Undefined => Eval::Undefined,
            None => Eval::integer(0),
        },
    ),
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
        |_, a| score(a).unwrap_or(Eval::Undefined),
    ),
];
