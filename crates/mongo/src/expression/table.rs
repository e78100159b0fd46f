//! The operators of expressions: names, arguments, what they do. `docs/compat` is generated from this.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::parse::Parser;
use super::{
    Node, Run, RunLazy, arithmetic, array, bits, boolean, comparison, conditional, convert, date, lambda,
    literal, logarithm, object, random, set, size, statistics, text, timestamp, trigonometry,
};
use crate::error::Result;
use crate::value::Bson;

/// One operator.
pub struct Operator {
    /// With its dollar.
    pub name: &'static str,
    /// How it is written.
    pub usage: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    pub(crate) build: Build,
}

#[derive(Clone, Copy)]
pub(crate) enum Build {
    /// Arguments by position, evaluated before the call.
    Values { least: usize, most: usize, run: Run },
    /// Arguments by position, evaluated by the call.
    Lazy { least: usize, most: usize, run: RunLazy },
    /// Anything else.
    Own(fn(&mut Parser<'_>, &'static str, &Bson) -> Result<Node>),
}

pub(crate) const MANY: usize = usize::MAX;

pub(crate) const fn values(
    name: &'static str,
    (least, most): (usize, usize),
    run: Run,
    usage: &'static str,
    about: &'static str,
) -> Operator {
    Operator { name, usage, about, build: Build::Values { least, most, run } }
}

pub(crate) const fn lazy(
    name: &'static str,
    (least, most): (usize, usize),
    run: RunLazy,
    usage: &'static str,
    about: &'static str,
) -> Operator {
    Operator { name, usage, about, build: Build::Lazy { least, most, run } }
}

pub(crate) const fn own(
    name: &'static str,
    parse: fn(&mut Parser<'_>, &'static str, &Bson) -> Result<Node>,
    usage: &'static str,
    about: &'static str,
) -> Operator {
    Operator { name, usage, about, build: Build::Own(parse) }
}

/// All families, each with its title.
pub static OPERATORS: &[(&str, &[Operator])] = &[
    ("Arithmetic", arithmetic::OPERATORS),
    ("Logarithms and powers", logarithm::OPERATORS),
    ("Trigonometry", trigonometry::OPERATORS),
    ("Bits", bits::OPERATORS),
    ("Comparison", comparison::OPERATORS),
    ("Boolean", boolean::OPERATORS),
    ("Conditions", conditional::OPERATORS),
    ("Variables and elements", lambda::OPERATORS),
    ("Values as they are", literal::OPERATORS),
    ("Arrays: elements", array::elements::OPERATORS),
    ("Arrays: joining", array::join::OPERATORS),
    ("Arrays: ranges", array::range::OPERATORS),
    ("Arrays: searching", array::search::OPERATORS),
    ("Arrays: several elements", array::several::OPERATORS),
    ("Arrays: sorting", array::sort::OPERATORS),
    ("Arrays: side by side", array::zip::OPERATORS),
    ("Sets", set::OPERATORS),
    ("Documents", object::OPERATORS),
    ("Texts: case", text::case::OPERATORS),
    ("Texts: joining", text::concat::OPERATORS),
    ("Texts: places", text::index_of::OPERATORS),
    ("Texts: length", text::length::OPERATORS),
    ("Texts: regular expressions", text::regex::OPERATORS),
    ("Texts: replacing", text::replace::OPERATORS),
    ("Texts: splitting", text::split::OPERATORS),
    ("Texts: parts", text::substring::OPERATORS),
    ("Texts: trimming", text::trim::OPERATORS),
    ("Dates: parts", date::parts::OPERATORS),
    ("Dates: adding", date::shift::OPERATORS),
    ("Dates: differences", date::difference::OPERATORS),
    ("Dates: bins", date::truncate::OPERATORS),
    ("Dates: to texts", date::format::OPERATORS),
    ("Dates: from texts", date::read::OPERATORS),
    ("Timestamps", timestamp::OPERATORS),
    ("Types", convert::OPERATORS),
    ("Hashes", convert::hashed::OPERATORS),
    ("Sizes", size::OPERATORS),
    ("Statistics", statistics::OPERATORS),
    ("Chance and scores", random::OPERATORS),
];

/// An operator by its name.
pub fn find(name: &str) -> Option<&'static Operator> {
    static BY_NAME: OnceLock<HashMap<&str, &Operator>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| {
        OPERATORS
            .iter()
            .flat_map(|(_, family)| family.iter())
            .map(|operator| (operator.name, operator))
            .collect()
    });
    by_name.get(name).copied()
}
