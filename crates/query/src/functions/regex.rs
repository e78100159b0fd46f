//! Regular expressions. They are searched in time linear to the text, so look-around and
//! back-references are not known: such patterns give undefined.

use super::{Function, entry};
use crate::context::Caller;
use crate::value::Eval;

fn compiled(context: &Caller<'_>, arguments: &[Eval<'_>]) -> Option<regex::Regex> {
    let flags = match arguments.get(2) {
        None => "",
        Some(flags) => flags.as_str()?,
    };
    // Compiling a pattern that was not seen before takes as long as many comparisons.
    context.work(REGEX_STEPS);
    context.regex(arguments[1].as_str()?, flags)
}

/// Steps that a regular expression counts as.
const REGEX_STEPS: u64 = 16;
/// What a match takes beside its bytes: the value, and the allocation.
const MATCH_BYTES: usize = 64;

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "REGEXMATCH",
        2,
        3,
        "text, pattern [, flags]",
        "Whether the pattern stands anywhere in the text. Flags: `m` lines, `s` dot matches line ends, `i` ignores \
         case, `x` ignores blanks in the pattern.",
        &[
            ("REGEXMATCH('abcd', 'ABC', 'i')", "true"),
            ("REGEXMATCH('abcd', '^bc')", "false"),
            ("REGEXMATCH('a', '(')", "undefined"),
        ],
        |context, a| match (a[0].as_str(), compiled(context, a)) {
            (Some(text), Some(regex)) => Eval::Bool(regex.is_match(text)),
            _ => Eval::Undefined,
        },
    ),
    entry(
        "REGEXEXTRACT",
        2,
        3,
        "text, pattern [, flags]",
        "The first match of the pattern.",
        &[("REGEXEXTRACT('a12b3', '[0-9]+')", "\"12\"")],
        |context, a| match (a[0].as_str(), compiled(context, a)) {
            (Some(text), Some(regex)) => {
                regex.find(text).map_or(Eval::Undefined, |found| Eval::text(found.as_str().to_string()))
            }
            _ => Eval::Undefined,
        },
    ),
    entry(
        "REGEXEXTRACTALL",
        2,
        3,
        "text, pattern [, flags]",
        "All matches of the pattern.",
        &[("REGEXEXTRACTALL('a12b3', '[0-9]+')", "[\"12\",\"3\"]")],
        |context, a| match (a[0].as_str(), compiled(context, a)) {
            (Some(text), Some(regex)) => {
                let mut all = Vec::new();
                for found in regex.find_iter(text) {
                    if all.len() == all.capacity()
                        && !context.has_room(3 * all.len() * MATCH_BYTES + text.len())
                    {
                        return Eval::Undefined;
                    }
                    all.push(Eval::text(found.as_str().to_string()));
                }
                Eval::array(all)
            }
            _ => Eval::Undefined,
        },
    ),
];
