//! Trimming and repeating.

use super::{Function, entry, units};
use crate::value::Eval;

/// Longest string REPLICATE makes.
const REPLICATED_UNITS_MAX: usize = 10_000;

fn trim<'a>(arguments: &[Eval<'a>], start: bool, end: bool) -> Eval<'a> {
    let Some(text) = arguments[0].as_str() else { return Eval::Undefined };
    let set = match arguments.get(1) {
        None => None,
        Some(value) => match value.as_str() {
            Some(set) => Some(set),
            None => return Eval::Undefined,
        },
    };
    let strip = |character: char| match set {
        None => character.is_whitespace(),
        Some(set) => set.contains(character),
    };
    let mut trimmed = text;
    if start {
        trimmed = trimmed.trim_start_matches(strip);
    }
    if end {
        trimmed = trimmed.trim_end_matches(strip);
    }
    Eval::text(trimmed.to_string())
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "TRIM",
        1,
        2,
        "text [, characters]",
        "Without blanks, or the given characters, at both ends.",
        &[("TRIM('  a ')", "\"a\""), ("TRIM('-_a-', '-_')", "\"a\""), ("TRIM(' a', '')", "\" a\"")],
        |_, a| trim(a, true, true),
    ),
    entry(
        "LTRIM",
        1,
        2,
        "text [, characters]",
        "Without blanks, or the given characters, at the start.",
        &[("LTRIM('  a ')", "\"a \"")],
        |_, a| trim(a, true, false),
    ),
    entry(
        "RTRIM",
        1,
        2,
        "text [, characters]",
        "Without blanks, or the given characters, at the end.",
        &[("RTRIM(' a  ')", "\" a\"")],
        |_, a| trim(a, false, true),
    ),
    entry(
        "REPLICATE",
        2,
        2,
        "text, count",
        "The string `count` times, up to 10,000 characters.",
        &[
            ("REPLICATE('ab', 2)", "\"abab\""),
            ("REPLICATE('a', -1)", "undefined"),
            ("REPLICATE('a', 20000)", "undefined"),
        ],
        |_, a| {
            let (Some(text), Some(count)) = (a[0].as_str(), a[1].as_f64()) else { return Eval::Undefined };
            let count = count.trunc();
            if !count.is_finite() || count < 0.0 {
                return Eval::Undefined;
            }
            if units::length(text) as f64 * count > REPLICATED_UNITS_MAX as f64 {
                return Eval::Undefined;
            }
            // An empty string stays empty however often it is repeated.
            Eval::text(if text.is_empty() { String::new() } else { text.repeat(count as usize) })
        },
    ),
];
