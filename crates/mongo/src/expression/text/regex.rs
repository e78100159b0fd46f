//! `$regexFind`, `$regexFindAll`, `$regexMatch`.
//!
//! A pattern that is constant is compiled once, with the expression; one that comes from the document, for each
//! document.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::expression::arguments::{check_names, document, required};
use crate::expression::parse::Parser;
use crate::expression::table::{Operator, own};
use crate::expression::value::{is_nullish, type_name};
use crate::expression::{Call, Node, number::int_or_long};
use crate::pattern::Pattern;
use crate::value::{Bson, Document};

pub(crate) static OPERATORS: &[Operator] = &[
    own(
        "$regexFind",
        parse,
        "{$regexFind: {input, regex, options}}",
        "The first match with its place and groups.",
    ),
    own(
        "$regexFindAll",
        parse,
        "{$regexFindAll: {input, regex, options}}",
        "All matches with their places and groups.",
    ),
    own("$regexMatch", parse, "{$regexMatch: {input, regex, options}}", "Whether a text matches."),
];

fn parse(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = document(argument, 51103, || {
        format!("{name} expects an object of named arguments but found: {}", type_name(Some(argument)))
    })?;
    check_names(name, members, &["input", "regex", "options"], 31024)?;
    required(name, members, "input", 31022)?;
    required(name, members, "regex", 31023)?;
    let arguments = parser.named(members, &["input", "regex", "options"])?;
    // A constant pattern is looked at now, whatever the input is.
    if let (Some(regex), Some(options)) = (arguments[1].as_constant(), arguments[2].as_constant()) {
        compiled(name, regex, options)?;
    }
    Ok(Node::Call { name, run: find, arguments })
}

/// Patterns that a thread keeps compiled: most commands use one for all of their documents.
const CACHED_PATTERNS: usize = 16;

thread_local! {
    static CACHE: std::cell::RefCell<Vec<Arc<Pattern>>> = const { std::cell::RefCell::new(Vec::new()) };
}

fn cached(pattern: &str, options: &str) -> Result<Arc<Pattern>> {
    CACHE.with(|cache| {
        let mut cache = cache.borrow_mut();
        if let Some(at) = cache.iter().position(|had| &*had.text == pattern && &*had.options == options) {
            let found = cache.remove(at);
            cache.push(found.clone());
            return Ok(found);
        }
        let compiled = Arc::new(Pattern::new(pattern, options)?);
        if cache.len() >= CACHED_PATTERNS {
            cache.remove(0);
        }
        cache.push(compiled.clone());
        Ok(compiled)
    })
}

/// The pattern; `None` where it is null.
fn compiled(name: &str, regex: Option<&Bson>, options: Option<&Bson>) -> Result<Option<Arc<Pattern>>> {
    let options = match options {
        options if is_nullish(options) => None,
        Some(Bson::String(options)) => Some(&**options),
        other => {
            let text = format!("{name} needs 'options' to be of type string, found: {}", type_name(other));
            return Err(Error::new(51106, text));
        }
    };
    let (pattern, own_options) = match regex {
        regex if is_nullish(regex) => return Ok(None),
        Some(Bson::String(pattern)) => (&**pattern, ""),
        Some(Bson::Regex(regex)) => (&*regex.pattern, &*regex.options),
        other => {
            let text =
                format!("{name} needs 'regex' to be of type string or regex, found: {}", type_name(other));
            return Err(Error::new(51105, text));
        }
    };
    if options.is_some() && !own_options.is_empty() {
        let text = format!("{name} found regex option(s) specified in both 'regex' and 'option' fields");
        return Err(Error::new(51107, text));
    }
    let options = options.unwrap_or(own_options);
    if pattern.contains('\0') {
        return Err(Error::new(
            51109,
            format!("{name}: regular expression cannot contain an embedded null byte"),
        ));
    }
    if options.contains('\0') {
        let text = format!("{name}: regular expression options cannot contain an embedded null byte");
        return Err(Error::new(51110, text));
    }
    if let Some(unknown) = options.chars().find(|option| !"imsxu".contains(*option)) {
        return Err(Error::new(51108, format!("{name} invalid flag in regex options: {unknown}")));
    }
    match cached(pattern, options) {
        Ok(pattern) => Ok(Some(pattern)),
        Err(error) => Err(Error::new(51111, format!("Invalid Regex in {name}: {}", error.message))),
    }
}

fn find(call: &Call<'_>) -> Result<Option<Bson>> {
    let input = call.arguments[0].as_ref();
    let nothing = || match call.name {
        "$regexFind" => Bson::Null,
        "$regexFindAll" => Bson::array(Vec::new()),
        _ => Bson::Bool(false),
    };
    let text = match input {
        input if is_nullish(input) => None,
        Some(Bson::String(text) | Bson::Symbol(text)) => Some(&**text),
        other => {
            let text =
                format!("{} needs 'input' to be of type string, found: {}", call.name, type_name(other));
            return Err(Error::new(51104, text));
        }
    };
    let pattern = compiled(call.name, call.arguments[1].as_ref(), call.arguments[2].as_ref())?;
    let (Some(text), Some(pattern)) = (text, pattern) else { return Ok(Some(nothing())) };
    match call.name {
        "$regexMatch" => Ok(Some(Bson::Bool(pattern.is_match(text)?))),
        "$regexFind" => {
            let found = pattern.find_at(text, 0)?;
            Ok(Some(found.map_or(Bson::Null, |groups| describe(text, &groups, &mut Counter::default()))))
        }
        _ => {
            let (mut matches, mut start, mut counter) = (Vec::new(), 0, Counter::default());
            // An empty text is looked at once; behind the last character nothing is.
            while start == 0 || start < text.len() {
                call.context.budget.step(1)?;
                let Some(groups) = pattern.find_at(text, start)? else { break };
                let Some(Some(whole)) = groups.first().cloned() else { break };
                matches.push(describe(text, &groups, &mut counter));
                // An empty match must not be found again where it was.
                let next = if whole.end > whole.start {
                    whole.end
                } else {
                    whole.end + text[whole.end..].chars().next().map_or(1, char::len_utf8)
                };
                start = next;
                if text.is_empty() {
                    break;
                }
            }
            Ok(Some(Bson::array(matches)))
        }
    }
}

/// Counts code points up to a byte, going on where it was.
#[derive(Default)]
struct Counter {
    byte: usize,
    code_points: usize,
}

impl Counter {
    fn at(&mut self, text: &str, byte: usize) -> usize {
        self.code_points += text.get(self.byte..byte).map_or(0, |part| part.chars().count());
        self.byte = byte;
        self.code_points
    }
}

fn describe(text: &str, groups: &[Option<std::ops::Range<usize>>], counter: &mut Counter) -> Bson {
    let part = |range: &Option<std::ops::Range<usize>>| {
        range.as_ref().and_then(|range| text.get(range.clone())).map_or(Bson::Null, Bson::from)
    };
    let start = groups.first().and_then(Option::as_ref).map_or(0, |range| range.start);
    let mut found = Document::new();
    found.push("match", groups.first().map_or(Bson::Null, part));
    found.push("idx", int_or_long(counter.at(text, start) as i64));
    found.push("captures", Bson::array(groups.iter().skip(1).map(part).collect()));
    found.into()
}
