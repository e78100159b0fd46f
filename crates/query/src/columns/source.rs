//! What a column is made of: a path, or a function of the value there.

use std::fmt;
use std::sync::OnceLock;

use orrery_model::Raw;

use crate::context::{Caller, Context};
use crate::env::QueryEnv;
use crate::functions::Function;
use crate::meter::Meter;
use crate::value::Eval;

/// Functions of one value that columns are made of: their results are small where the value itself may be none for a
/// column, and depend on nothing else.
const SUMMARIES: [&str; 10] = [
    "LENGTH",
    "ARRAY_LENGTH",
    "IS_ARRAY",
    "IS_BOOL",
    "IS_DEFINED",
    "IS_NULL",
    "IS_NUMBER",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_STRING",
];

#[derive(Clone)]
pub struct ColumnSource {
    path: Vec<String>,
    function: Option<&'static Function>,
}

impl ColumnSource {
    pub(crate) fn new(path: Vec<String>, function: Option<&'static Function>) -> ColumnSource {
        ColumnSource { path, function }
    }

    pub(super) fn summarizes(function: &Function) -> bool {
        SUMMARIES.contains(&function.name)
    }

    /// The value that the column has for a document.
    pub fn read<'a>(&self, document: Raw<'a>) -> Eval<'a> {
        let found = self.path.iter().try_fold(document, |value, name| value.get(name));
        let value = found.map_or(Eval::Undefined, Eval::from_raw);
        match self.function {
            None => value,
            Some(function) if value.is_undefined() && !function.takes_undefined => Eval::Undefined,
            Some(function) => (function.call)(&Caller::new(plain_context(), &Meter::default()), &[value]),
        }
    }

    /// Whether it is the value at a path.
    pub fn is_path(&self, path: &[&str]) -> bool {
        self.function.is_none() && self.path == path
    }

    fn name(&self) -> Option<&'static str> {
        self.function.map(|function| function.name)
    }
}

/// The functions above look at nothing in it.
fn plain_context() -> &'static Context {
    static PLAIN: OnceLock<Context> = OnceLock::new();
    PLAIN.get_or_init(|| Context::new(&QueryEnv::default()))
}

impl PartialEq for ColumnSource {
    fn eq(&self, other: &ColumnSource) -> bool {
        self.name() == other.name() && self.path == other.path
    }
}

impl Eq for ColumnSource {}

impl fmt::Debug for ColumnSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(out, "{name}({})", self.path.join(".")),
            None => out.write_str(&self.path.join(".")),
        }
    }
}
