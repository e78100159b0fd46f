//! Regular expressions as MongoDB's users write them, which is PCRE's language.
//!
//! A pattern is translated for `regex`, which takes time in proportion to the text whatever the pattern; only one
//! with look-around, back-references or possessive quantifiers goes to `fancy-regex`, whose backtracking is bounded.
//! Letters, digits and blanks of `\w`, `\d`, `\s` and `\b` are those of ASCII, as the server has them. Options that
//! are not known are passed over.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};

/// How long a pattern may be.
pub const PATTERN_BYTES_MAX: usize = 32_764;
/// What a compiled pattern may take.
const PROGRAM_BYTES_MAX: usize = 8 << 20;
/// Steps back that one match may take.
const BACKTRACKS_MAX: usize = 500_000;
const INVALID: i32 = 51091;
const FAILED: i32 = 51156;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    pub text: Arc<str>,
    pub options: Arc<str>,
    program: Program,
}

#[derive(Clone, Debug)]
enum Program {
    /// A text that must occur, or must begin the value: what most patterns are.
    Literal {
        text: Box<str>,
        at_start: bool,
    },
    Linear(regex::Regex),
    Backtracking(fancy_regex::Regex),
}

impl Pattern {
    pub fn new(pattern: &str, options: &str) -> Result<Pattern> {
        let invalid = |why: &str| Error::new(INVALID, format!("Regular expression is invalid: {why}"));
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(invalid("regular expression is too large"));
        }
        if pattern.contains('\0') {
            return Err(invalid("it holds a NUL character"));
        }
        let of = |program| Pattern { text: pattern.into(), options: options.into(), program };
        let has = |letter| options.contains(letter);
        if !has('i') && !has('x') && !has('m') {
            let (at_start, literal) = match pattern.strip_prefix('^') {
                Some(rest) => (true, rest),
                None => (false, pattern),
            };
            if !literal.contains(|c: char| "\\^$.|?*+()[]{}".contains(c)) {
                return Ok(of(Program::Literal { text: literal.into(), at_start }));
            }
        }
        let translated = translate(pattern, has('m'), has('x'));
        let mut builder = regex::RegexBuilder::new(&translated);
        builder.case_insensitive(has('i')).multi_line(has('m')).dot_matches_new_line(has('s'));
        builder.ignore_whitespace(has('x')).size_limit(PROGRAM_BYTES_MAX);
        if let Ok(program) = builder.build() {
            return Ok(of(Program::Linear(program)));
        }
        let mut flags = String::new();
        ['i', 'm', 's', 'x'].into_iter().filter(|flag| has(*flag)).for_each(|flag| flags.push(flag));
        let flagged = if flags.is_empty() { translated } else { format!("(?{flags}){translated}") };
        let mut builder = fancy_regex::RegexBuilder::new(&flagged);
        builder.backtrack_limit(BACKTRACKS_MAX).delegate_size_limit(PROGRAM_BYTES_MAX);
        match builder.build() {
            Ok(program) => Ok(of(Program::Backtracking(program))),
            Err(error) => Err(invalid(&error.to_string())),
        }
    }

    pub fn is_match(&self, text: &str) -> Result<bool> {
        match &self.program {
            Program::Literal { text: literal, at_start: true } => Ok(text.starts_with(&**literal)),
            Program::Literal { text: literal, at_start: false } => Ok(text.contains(&**literal)),
            Program::Linear(program) => Ok(program.is_match(text)),
            Program::Backtracking(program) => program.is_match(text).map_err(failed),
        }
    }

    /// The first match from a byte on: where it lies, then where each group does.
    pub fn find_at(&self, text: &str, start: usize) -> Result<Option<Vec<Option<Range<usize>>>>> {
        match &self.program {
            Program::Literal { text: literal, at_start } => {
                let at = match at_start {
                    true => (start == 0 && text.starts_with(&**literal)).then_some(0),
                    false => text.get(start..).and_then(|rest| rest.find(&**literal)).map(|at| at + start),
                };
                Ok(at.map(|at| vec![Some(at..at + literal.len())]))
            }
            Program::Linear(program) => Ok(program
                .captures_at(text, start)
                .map(|found| found.iter().map(|group| group.map(|group| group.range())).collect())),
            Program::Backtracking(program) => {
                let found = program.captures_from_pos(text, start).map_err(failed)?;
                Ok(found.map(|found| found.iter().map(|group| group.map(|group| group.range())).collect()))
            }
        }
    }

    /// What every text that matches begins with, where the pattern says so: a range of an index.
    pub fn prefix(&self) -> Option<&str> {
        let rest = self.text.strip_prefix('^')?;
        if self.options.contains(['i', 'm', 'x']) || rest.contains('|') {
            return None;
        }
        let end = rest.find(|c: char| "\\^$.?*+()[]{}".contains(c)).unwrap_or(rest.len());
        // What is behind the last letter may say that it need not be there.
        let optional = rest[end..].starts_with(['?', '*', '{']);
        let last = rest[..end].char_indices().next_back().map_or(0, |(at, _)| at);
        let prefix = &rest[..if optional { last } else { end }];
        (!prefix.is_empty()).then_some(prefix)
    }
}

fn failed(error: fancy_regex::Error) -> Error {
    Error::new(FAILED, format!("Error occurred while executing the regular expression: {error}"))
}

/// PCRE's spelling to that of `regex`.
fn translate(pattern: &str, multi_line: bool, extended: bool) -> String {
    let pattern = pattern.strip_prefix("(*UTF8)").or(pattern.strip_prefix("(*UTF)")).unwrap_or(pattern);
    let pattern = pattern.strip_prefix("(*UCP)").unwrap_or(pattern);
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => escape(&mut rest, &mut out),
            '[' => class(&mut rest, &mut out),
            '{' => {
                let quantifier: String = rest.clone().take_while(|c| *c != '}').collect();
                let (least, most) = quantifier.split_once(',').unwrap_or((&quantifier, ""));
                let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                let closed = rest.clone().nth(quantifier.chars().count()) == Some('}');
                if closed && !least.is_empty() && digits(least) && digits(most) {
                    out.push('{');
                    out.push_str(&quantifier);
                    out.push('}');
                    rest.nth(quantifier.chars().count());
                } else {
                    out.push_str("\\{");
                }
            }
            '}' => out.push_str("\\}"),
            // The end of a text is also before the newline that ends it.
            '$' if !multi_line && rest.peek().is_none() => out.push_str("(?:\\n?\\z)"),
            '(' if rest.clone().take(2).eq("?#".chars()) => while rest.next().is_some_and(|c| c != ')') {},
            '#' if !extended => out.push_str("\\#"),
            _ => out.push(letter),
        }
    }
    out
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn escape(rest: &mut Letters<'_>, out: &mut String) {
    let Some(letter) = rest.next() else {
        out.push_str("\\\\");
        return;
    };
    match letter {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\x20\\t\\n\\r\\x0b\\x0c]"),
        'S' => out.push_str("[^\\x20\\t\\n\\r\\x0b\\x0c]"),
        'b' => out.push_str("(?-u:\\b)"),
        'h' => out.push_str("[\\x20\\t]"),
        'H' => out.push_str("[^\\x20\\t]"),
        'R' => out.push_str("(?:\\r\\n|\\n|\\r|\\x0b|\\x0c)"),
        'N' => out.push_str("[^\\n]"),
        'e' => out.push_str("\\x1b"),
        'Z' => out.push_str("(?:\\n?\\z)"),
        'Q' => loop {
            match rest.next() {
                None => break,
                Some('\\') if rest.peek() == Some(&'E') => {
                    rest.next();
                    break;
                }
                Some(letter) => out.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4]))),
            }
        },
        'E' => {}
        'p' if rest.peek() == Some(&'{') => {
            let name: String = rest.clone().skip(1).take_while(|c| *c != '}').collect();
            let class = match name.as_str() {
                "Xan" => "[\\p{L}\\p{N}]".to_owned(),
                "Xwd" => "[\\p{L}\\p{N}_]".to_owned(),
                "Xsp" | "Xps" => "[\\p{Z} \\t\\n\\r\\x0b\\x0c]".to_owned(),
                "L&" => "[\\p{Lu}\\p{Ll}\\p{Lt}]".to_owned(),
                _ => format!("\\p{{{name}}}"),
            };
            out.push_str(&class);
            rest.nth(name.chars().count() + 1);
        }
        '<' | '>' => out.push(letter),
        letter if !letter.is_ascii_alphanumeric() => {
            out.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
        }
        letter => {
            out.push('\\');
            out.push(letter);
        }
    }
}

/// A class in brackets, of which the opening one has been read.
fn class(rest: &mut Letters<'_>, out: &mut String) {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    while let Some(letter) = rest.next() {
        match letter {
            ']' if !first => {
                out.push(']');
                return;
            }
            ']' => out.push_str("\\]"),
            '[' if rest.peek() == Some(&':') => {
                // A named class such as [:alpha:] is spelled in the same way.
                let name: String =
                    rest.clone().skip(1).take_while(|c| c.is_ascii_alphabetic() || *c == '^').collect();
                let whole = format!(":{name}:]");
                if rest.clone().take(whole.len()).eq(whole.chars()) {
                    out.push('[');
                    out.push_str(&whole);
                    rest.nth(whole.len() - 1);
                } else {
                    out.push_str("\\[");
                }
            }
            '[' => out.push_str("\\["),
            '&' | '~' | '#' | ' ' => {
                out.push('\\');
                out.push(letter);
            }
            '\\' => match rest.next() {
                Some('d') => out.push_str("0-9"),
                Some('w') => out.push_str("0-9A-Za-z_"),
                Some('s') => out.push_str("\\x20\\t\\n\\r\\x0b\\x0c"),
                Some('h') => out.push_str("\\x20\\t"),
                Some('b') => out.push_str("\\x08"),
                Some('e') => out.push_str("\\x1b"),
                Some(letter) if !letter.is_ascii_alphanumeric() => {
                    out.push_str(&regex::escape(letter.encode_utf8(&mut [0; 4])));
                }
                Some(letter) => {
                    out.push('\\');
                    out.push(letter);
                }
                None => {}
            },
            '-' if !first && rest.peek() == Some(&'-') => out.push_str("\\-"),
            _ => out.push(letter),
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_pcre_says() {
        let cases = [
            ("^ab", "", "abc", true),
            ("^ab", "", "cab", false),
            ("b$", "", "ab\n", true),
            ("A", "i", "banana", true),
            ("^b", "m", "a\nb", true),
            ("a.b", "", "a\nb", false),
            ("a.b", "s", "a\nb", true),
            ("a b # c", "x", "ab", true),
            ("^(?!foo)", "", "foobar", false),
            ("^(?!foo)", "", "barfoo", true),
            ("(a)\\1", "", "aa", true),
            ("\\d{2,}", "", "a12", true),
            ("a{b", "", "a{b", true),
            ("[[]x]", "", "[x]", true),
            ("[^\\w\\s]", "", "a b", false),
            ("\\bfoo\\b", "", "a foo b", true),
            ("foo\\/bar", "", "foo/bar", true),
            ("\\Qa.b\\E", "", "axb", false),
            ("[[:alpha:]]+$", "", "12ab", true),
            ("\u{e9}", "i", "\u{c9}", true),
            ("a#b", "", "a#b", true),
            ("(?i)AB", "", "ab", true),
            ("a++b", "", "aab", true),
            ("^\\p{Xan}+$", "", "ab1", true),
            ("\\p{Hangul}", "", "\u{d55c}", true),
        ];
        for (pattern, options, text, matches) in cases {
            let found = Pattern::new(pattern, options).unwrap().is_match(text).unwrap();
            assert_eq!(found, matches, "/{pattern}/{options} on {text:?}");
        }
        for pattern in ["(", "a)", "[", "*a", "(?P<n"] {
            assert_eq!(Pattern::new(pattern, "").unwrap_err().code, INVALID, "{pattern}");
        }
    }

    #[test]
    fn prefixes_are_what_all_matches_begin_with() {
        let cases = [
            ("^abc", "", Some("abc")),
            ("^ab.*", "", Some("ab")),
            ("^ab?", "", Some("a")),
            ("^a*", "", None),
            ("^ab|c", "", None),
            ("ab", "", None),
            ("^ab", "i", None),
        ];
        for (pattern, options, prefix) in cases {
            assert_eq!(Pattern::new(pattern, options).unwrap().prefix(), prefix, "/{pattern}/{options}");
        }
    }

    #[test]
    fn backtracking_ends() {
        let pattern = Pattern::new("^(a|a)*(?=b)$", "").unwrap();
        assert_eq!(pattern.is_match(&"a".repeat(60)).unwrap_err().code, FAILED);
    }
}
