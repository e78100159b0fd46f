//! Searching, cutting and joining strings.

use super::{Case, Function, entry, units};
use crate::limits::STRING_BYTES_MAX;
use crate::value::Eval;

/// The texts of all arguments; `None` if one is no string.
fn texts<'e>(arguments: &'e [Eval<'_>]) -> Option<Vec<&'e str>> {
    arguments.iter().map(Eval::as_str).collect()
}

/// A test of two strings with an optional third argument that ignores case.
fn test<'a>(arguments: &[Eval<'a>], test: fn(&str, &str) -> bool) -> Eval<'a> {
    let (Some(text), Some(wanted)) = (arguments[0].as_str(), arguments[1].as_str()) else {
        return Eval::Undefined;
    };
    match arguments.get(2) {
        None | Some(Eval::Bool(false)) => Eval::Bool(test(text, wanted)),
        Some(Eval::Bool(true)) => Eval::Bool(test(&text.to_lowercase(), &wanted.to_lowercase())),
        Some(_) => Eval::Undefined,
    }
}

/// CONTAINS of several strings, combined as OR (`any`) or AND, with undefined as in logic.
fn contains_many<'a>(arguments: &[Eval<'a>], ignore_case: bool, any: bool) -> Eval<'a> {
    let Some(text) = arguments[0].as_str() else { return Eval::Undefined };
    let text = if ignore_case { text.to_lowercase() } else { text.to_string() };
    let mut known = true;
    for wanted in &arguments[1..] {
        let found = wanted.as_str().map(|wanted| {
            if ignore_case { text.contains(&wanted.to_lowercase()) } else { text.contains(wanted) }
        });
        match found {
            Some(found) if found == any => return Eval::Bool(any),
            Some(_) => {}
            None => known = false,
        }
    }
    if known { Eval::Bool(!any) } else { Eval::Undefined }
}

/// LEFT and RIGHT: how many units to take.
fn taken(arguments: &[Eval<'_>]) -> Option<usize> {
    let count = arguments[1].as_i64()?;
    Some(usize::try_from(count).unwrap_or(0))
}

/// A position argument: a whole number, negative ones being zero.
fn position(argument: Option<&Eval<'_>>, default: usize) -> Option<usize> {
    match argument {
        None => Some(default),
        Some(value) => value.as_i64().map(|value| usize::try_from(value).unwrap_or(0)),
    }
}

fn index<'a>(found: Option<usize>) -> Eval<'a> {
    Eval::integer(found.map_or(-1, |at| at as i64))
}

/// What one part of a string takes beside its bytes: the value, and the allocation.
const PART_BYTES: usize = 64;

const CONTAINS_CASES: &[Case] = &[
    ("CONTAINS('abc', 'b')", "true"),
    ("CONTAINS('abc', 'B')", "false"),
    ("CONTAINS('abc', 'B', true)", "true"),
];

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "CONCAT",
        2,
        2,
        "a, b, …",
        "The strings one after the other.",
        &[("CONCAT('a', 'b', 'c')", "\"abc\"")],
        |caller, a| match texts(a) {
            Some(texts) => {
                let bytes = texts.iter().map(|text| text.len()).sum::<usize>();
                let fits = bytes <= STRING_BYTES_MAX && caller.has_room(bytes);
                if fits { Eval::text(texts.concat()) } else { Eval::Undefined }
            }
            _ => Eval::Undefined,
        },
    )
    .any_number(),
    entry(
        "CONTAINS",
        2,
        3,
        "text, part [, ignoreCase]",
        "Whether `part` stands in `text`.",
        CONTAINS_CASES,
        |_, a| test(a, |text, wanted| text.contains(wanted)),
    ),
    entry(
        "CONTAINS_ANY_CI",
        2,
        2,
        "text, part, …",
        "Whether one of the parts stands in `text`, whatever their case.",
        &[("CONTAINS_ANY_CI('Nice day', 'had', 'DAY')", "true")],
        |_, a| contains_many(a, true, true),
    )
    .any_number()
    .takes_undefined(),
    entry(
        "CONTAINS_ANY_CS",
        2,
        2,
        "text, part, …",
        "Whether one of the parts stands in `text`.",
        &[("CONTAINS_ANY_CS('Nice day', 'had', 'DAY')", "false")],
        |_, a| contains_many(a, false, true),
    )
    .any_number()
    .takes_undefined(),
    entry(
        "CONTAINS_ALL_CI",
        2,
        2,
        "text, part, …",
        "Whether all parts stand in `text`, whatever their case.",
        &[("CONTAINS_ALL_CI('Nice day', 'nice', 'DAY')", "true")],
        |_, a| contains_many(a, true, false),
    )
    .any_number()
    .takes_undefined(),
    entry(
        "CONTAINS_ALL_CS",
        2,
        2,
        "text, part, …",
        "Whether all parts stand in `text`.",
        &[("CONTAINS_ALL_CS('Nice day', 'Nice', 'day')", "true")],
        |_, a| contains_many(a, false, false),
    )
    .any_number()
    .takes_undefined(),
    entry(
        "ENDSWITH",
        2,
        3,
        "text, end [, ignoreCase]",
        "Whether `text` ends with `end`.",
        &[("ENDSWITH('abc', 'bc')", "true")],
        |_, a| test(a, |text, wanted| text.ends_with(wanted)),
    ),
    entry(
        "STARTSWITH",
        2,
        3,
        "text, start [, ignoreCase]",
        "Whether `text` begins with `start`.",
        &[("STARTSWITH('abc', 'AB', true)", "true")],
        |_, a| test(a, |text, wanted| text.starts_with(wanted)),
    ),
    entry(
        "STRINGEQUALS",
        2,
        3,
        "a, b [, ignoreCase]",
        "Whether two strings are the same.",
        &[("STRINGEQUALS('a', 'A')", "false"), ("STRINGEQUALS('a', 'A', true)", "true")],
        |_, a| test(a, |text, wanted| text == wanted),
    ),
    entry(
        "INDEX_OF",
        2,
        3,
        "text, part [, start]",
        "Where `part` first stands in `text`, at or after `start`; -1 if it does not.",
        &[("INDEX_OF('abcb', 'b')", "1"), ("INDEX_OF('abcb', 'b', 2)", "3"), ("INDEX_OF('abc', 'x')", "-1")],
        |_, a| match (a[0].as_str(), a[1].as_str(), position(a.get(2), 0)) {
            (Some(text), Some(wanted), Some(start)) => index(units::find(text, wanted, start)),
            _ => Eval::Undefined,
        },
    ),
    entry(
        "LASTINDEXOF",
        2,
        3,
        "text, part [, start]",
        "Where `part` last stands in `text`, looking backwards from `start`; -1 if it does not.",
        &[("LASTINDEXOF('abcb', 'b')", "3"), ("LASTINDEXOF('abcb', 'b', 2)", "1")],
        |_, a| match (a[0].as_str(), a[1].as_str(), position(a.get(2), usize::MAX)) {
            (Some(text), Some(wanted), Some(last)) => index(units::find_last(text, wanted, last)),
            _ => Eval::Undefined,
        },
    ),
    entry(
        "LEFT",
        2,
        2,
        "text, count",
        "The first `count` characters.",
        &[("LEFT('abc', 2)", "\"ab\""), ("LEFT('abc', -1)", "\"\""), ("LEFT('abc', 1.5)", "undefined")],
        |_, a| match (a[0].as_str(), taken(a)) {
            (Some(text), Some(count)) => Eval::text(units::slice(text, 0, count)),
            _ => Eval::Undefined,
        },
    ),
    entry(
        "RIGHT",
        2,
        2,
        "text, count",
        "The last `count` characters.",
        &[("RIGHT('abc', 2)", "\"bc\""), ("RIGHT('abc', 9)", "\"abc\"")],
        |_, a| match (a[0].as_str(), taken(a)) {
            (Some(text), Some(count)) => {
                let start = units::length(text).saturating_sub(count);
                Eval::text(units::slice(text, start, count))
            }
            _ => Eval::Undefined,
        },
    ),
    entry(
        "LENGTH",
        1,
        1,
        "text",
        "How many characters.",
        &[("LENGTH('abc')", "3"), ("LENGTH(1)", "undefined")],
        |_, a| a[0].as_str().map_or(Eval::Undefined, |text| Eval::integer(units::length(text) as i64)),
    ),
    entry("LOWER", 1, 1, "text", "In lower case.", &[("LOWER('AbC')", "\"abc\"")], |_, a| {
        a[0].as_str().map_or(Eval::Undefined, |text| Eval::text(text.to_lowercase()))
    }),
    entry("UPPER", 1, 1, "text", "In upper case.", &[("UPPER('AbC')", "\"ABC\"")], |_, a| {
        a[0].as_str().map_or(Eval::Undefined, |text| Eval::text(text.to_uppercase()))
    }),
    entry(
        "REPLACE",
        3,
        3,
        "text, part, replacement",
        "Every `part` replaced.",
        &[("REPLACE('abab', 'b', 'x')", "\"axax\""), ("REPLACE('ab', '', 'x')", "\"ab\"")],
        |caller, a| match texts(a).as_deref() {
            Some([text, "", _]) => Eval::text(text.to_string()),
            Some([text, part, replacement]) => {
                let count = text.matches(part).count();
                let bytes = text.len().saturating_add(count.saturating_mul(replacement.len()));
                if bytes > STRING_BYTES_MAX || !caller.has_room(bytes) {
                    return Eval::Undefined;
                }
                Eval::text(text.replace(part, replacement))
            }
            _ => Eval::Undefined,
        },
    ),
    entry("REVERSE", 1, 1, "text", "Back to front.", &[("REVERSE('abc')", "\"cba\"")], |_, a| {
        a[0].as_str().map_or(Eval::Undefined, |text| Eval::text(text.chars().rev().collect::<String>()))
    }),
    entry(
        "SUBSTRING",
        3,
        3,
        "text, start, count",
        "`count` characters from `start`, which counts from 0.",
        &[("SUBSTRING('abcd', 1, 2)", "\"bc\""), ("SUBSTRING('abc', 3, 1)", "\"\"")],
        |_, a| match (a[0].as_str(), a[1].as_i64(), a[2].as_i64()) {
            (Some(text), Some(start), Some(count)) => {
                match (usize::try_from(start), usize::try_from(count)) {
                    (Ok(start), Ok(count)) => Eval::text(units::slice(text, start, count)),
                    _ => Eval::text(""),
                }
            }
            _ => Eval::Undefined,
        },
    ),
    entry(
        "STRINGJOIN",
        2,
        2,
        "array, separator",
        "The strings of an array with a separator between them.",
        &[("STRINGJOIN(['a', 'b'], ', ')", "\"a, b\""), ("STRINGJOIN([1], '')", "undefined")],
        |_, a| {
            let (Some(elements), Some(separator)) = (a[0].elements(), a[1].as_str()) else {
                return Eval::Undefined;
            };
            let mut joined = String::new();
            for (at, element) in elements.enumerate() {
                let Some(text) = element.as_str() else { return Eval::Undefined };
                if at > 0 {
                    joined.push_str(separator);
                }
                joined.push_str(text);
                if joined.len() > STRING_BYTES_MAX {
                    return Eval::Undefined;
                }
            }
            Eval::text(joined)
        },
    ),
    entry(
        "STRINGSPLIT",
        2,
        2,
        "text, separator",
        "The parts between separators.",
        &[("STRINGSPLIT('a,b', ',')", "[\"a\",\"b\"]"), ("STRINGSPLIT('ab', '')", "[\"ab\"]")],
        |caller, a| match texts(a).as_deref() {
            Some([text, ""]) => Eval::array(vec![Eval::text(text.to_string())]),
            Some([text, separator]) => {
                let parts = text.matches(separator).count() + 1;
                if !caller.has_room(text.len() + parts * PART_BYTES) {
                    return Eval::Undefined;
                }
                Eval::array(text.split(separator).map(|part| Eval::text(part.to_string())).collect())
            }
            _ => Eval::Undefined,
        },
    ),
    entry(
        "SUBSTRINGBEFORE",
        2,
        2,
        "text, mark",
        "What stands before the first `mark`; nothing if there is none.",
        &[("SUBSTRINGBEFORE('a.b.c', '.')", "\"a\"")],
        |_, a| cut(a, |text, mark| text.split_once(mark).map(|(before, _)| before)),
    ),
    entry(
        "SUBSTRINGAFTER",
        2,
        2,
        "text, mark",
        "What stands after the first `mark`; nothing if there is none.",
        &[("SUBSTRINGAFTER('a.b.c', '.')", "\"b.c\"")],
        |_, a| cut(a, |text, mark| text.split_once(mark).map(|(_, after)| after)),
    ),
    entry(
        "LASTSUBSTRINGBEFORE",
        2,
        2,
        "text, mark",
        "What stands before the last `mark`; nothing if there is none.",
        &[("LASTSUBSTRINGBEFORE('a.b.c', '.')", "\"a.b\"")],
        |_, a| cut(a, |text, mark| text.rsplit_once(mark).map(|(before, _)| before)),
    ),
    entry(
        "LASTSUBSTRINGAFTER",
        2,
        2,
        "text, mark",
        "What stands after the last `mark`; nothing if there is none.",
        &[("LASTSUBSTRINGAFTER('a.b.c', '.')", "\"c\"")],
        |_, a| cut(a, |text, mark| text.rsplit_once(mark).map(|(_, after)| after)),
    ),
];

fn cut<'a>(arguments: &[Eval<'a>], part: for<'t> fn(&'t str, &str) -> Option<&'t str>) -> Eval<'a> {
    match texts(arguments).as_deref() {
        Some([text, mark]) => Eval::text(part(text, mark).unwrap_or("").to_string()),
        _ => Eval::Undefined,
    }
}
