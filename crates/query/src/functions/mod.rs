//! The built-in functions, as a table: name, how many arguments, what it does, and cases that are run
//! as tests and printed in the reference.
//!
//! To add a function, write an entry in the file of its family. A function gets its arguments evaluated
//! and answers undefined for types it does not take; unless an entry says `.takes_undefined()` it is
//! not even called with an undefined argument.

mod array;
mod conditional;
mod date;
mod fulltext;
mod integer;
mod math;
mod parse;
mod regex;
mod set;
mod spatial;
mod string;
mod trim;
mod types;
mod units;
mod vector;

use crate::context::Caller;
use crate::language::Language;
use crate::value::Eval;

pub(crate) use fulltext::in_language;
pub use parse::number_text;

/// An expression and the JSON it evaluates to, or `undefined`.
pub type Case = (&'static str, &'static str);

type Call = for<'a> fn(&Caller<'_>, &[Eval<'a>]) -> Eval<'a>;

#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    pub least: usize,
    /// `None`: as many as one likes.
    pub most: Option<usize>,
    /// The arguments as the reference shows them.
    pub arguments: &'static str,
    pub summary: &'static str,
    pub cases: &'static [Case],
    pub takes_undefined: bool,
    /// Always the same for the same arguments, so constant calls are computed once.
    pub deterministic: bool,
    /// In which language texts are read.
    pub(crate) language: Language,
    pub(crate) call: Call,
}

/// A table entry. Angle brackets never stand in `arguments`, square ones mark what may be left out.
const fn entry(
    name: &'static str,
    least: usize,
    most: usize,
    arguments: &'static str,
    summary: &'static str,
    cases: &'static [Case],
    call: Call,
) -> Function {
    Function {
        name,
        least,
        most: Some(most),
        arguments,
        summary,
        cases,
        takes_undefined: false,
        deterministic: true,
        language: Language::English,
        call,
    }
}

impl Function {
    const fn takes_undefined(mut self) -> Function {
        self.takes_undefined = true;
        self
    }

    const fn any_number(mut self) -> Function {
        self.most = None;
        self
    }

    const fn reads(mut self, language: Language) -> Function {
        self.language = language;
        self
    }

    const fn changes(mut self) -> Function {
        self.deterministic = false;
        self
    }
}

/// Functions by family, in the order of the reference.
pub static FAMILIES: &[(&str, &[Function])] = &[
    ("Mathematics", math::FUNCTIONS),
    ("64-bit integers", integer::FUNCTIONS),
    ("Strings", string::FUNCTIONS),
    ("Trimming and padding", trim::FUNCTIONS),
    ("Regular expressions", regex::FUNCTIONS),
    ("Conversion", parse::FUNCTIONS),
    ("Arrays", array::FUNCTIONS),
    ("Sets", set::FUNCTIONS),
    ("Types", types::FUNCTIONS),
    ("Date and time", date::FUNCTIONS),
    ("Spatial", spatial::FUNCTIONS),
    ("Full text", fulltext::FUNCTIONS),
    ("Vectors", vector::FUNCTIONS),
    ("Items and conditions", conditional::FUNCTIONS),
];

/// The function of a name, in any case.
pub fn find(name: &str) -> Option<&'static Function> {
    FAMILIES
        .iter()
        .flat_map(|(_, functions)| functions.iter())
        .find(|function| function.name.eq_ignore_ascii_case(name))
}
