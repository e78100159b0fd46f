//! The steps, one file for each small family, and the table that names them all.

mod adjacent;
mod branch;
mod convert;
mod filter;
mod graph_source;
mod group;
pub(crate) mod grouped;
mod lists;
mod math;
mod merge;
mod mutate;
mod other;
mod pattern;
mod project;
mod properties;
mod range;
mod reduce;
mod repeat;
mod side_effect;
mod strings;
mod table;

pub(crate) use adjacent::degrees;
pub(crate) use graph_source::counted;
pub(crate) use table::STEPS;

use crate::build::{Builder, Call};
use crate::bytecode::Instruction;
use crate::error::{Error, Result};
use crate::evaluate::{Batch, By, Child, Cx, Each, Op, Parts, Upstream, merge_alike};
use crate::value::{Scope, Value};

/// What a step does to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Source,
    Write,
    Move,
    Filter,
    /// Lets some pass by how many there were.
    Range,
    Map,
    FlatMap,
    Branch,
    /// Waits for all.
    Barrier,
    SideEffect,
    Refused,
}

/// Who has a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The service's documentation lists it or shows it.
    Documented,
    /// The service is seen to take it.
    Seen,
    /// TinkerPop has it and the service does not.
    TinkerPop,
    /// Known, and not offered here.
    Nobody,
}

/// One step of the table.
pub struct StepDef {
    pub name: &'static str,
    pub kind: Kind,
    pub(crate) build: fn(&mut Builder<'_>, &Call<'_>) -> Result<Box<dyn Op>>,
    pub modulators: &'static [&'static str],
    pub(crate) takes_filters: bool,
    /// What an execution profile calls it.
    pub operator: &'static str,
    pub known: Known,
    pub usage: &'static str,
    pub doc: &'static str,
}

impl StepDef {
    pub(crate) fn is_barrier(&self, call: &Call<'_>) -> bool {
        let local = matches!(call.args.first(), Some(Value::Scope(Scope::Local)));
        self.kind == Kind::Barrier && !local
    }

    pub(crate) fn counts_starts(&self) -> bool {
        matches!(self.kind, Kind::Barrier | Kind::Range)
    }
}

/// Steps that change the one before them.
const MODULATORS: &[&str] =
    &["as", "by", "from", "option", "with", "until", "emit", "times", "read", "write"];

const SOURCES: &[&str] = &[
    "withStrategies",
    "withoutStrategies",
    "withSideEffect",
    "withSack",
    "withBulk",
    "withPath",
    "with",
    "withComputer",
];

/// The steps that a where() or match() is rewritten to; no text spells them.
const INTERNAL: &[StepDef] = &[
    internal("$begin", filter::build_begin),
    internal("$end", filter::build_end),
    internal("$ends", filter::build_ends),
];

const fn internal(
    name: &'static str,
    build: fn(&mut Builder<'_>, &Call<'_>) -> Result<Box<dyn Op>>,
) -> StepDef {
    StepDef {
        name,
        kind: Kind::Filter,
        build,
        modulators: &[],
        takes_filters: false,
        operator: "FilterOperator",
        known: Known::TinkerPop,
        usage: "",
        doc: "",
    }
}

pub(crate) fn find(name: &str) -> Option<&'static StepDef> {
    STEPS.iter().chain(INTERNAL).find(|def| def.name == name)
}

/// The step that a name spells, exactly or but for its case.
pub(crate) fn spelling(name: &str) -> Option<&'static str> {
    let names = || STEPS.iter().map(|def| def.name).chain(MODULATORS.iter().copied());
    names().find(|known| *known == name).or_else(|| names().find(|known| known.eq_ignore_ascii_case(name)))
}

pub(crate) fn is_source(name: &str) -> bool {
    SOURCES.contains(&name)
}

/// Whether a step can begin a traversal.
pub(crate) fn is_start(name: &str) -> bool {
    matches!(name, "V" | "E" | "inject" | "addV" | "addE" | "mergeV" | "mergeE" | "union" | "call" | "io")
}

/// Whether what follows a step belongs to it, given what belongs to it already.
pub(crate) fn folds(call: &Call<'_>, next: &Instruction) -> bool {
    match (call.name, &*next.name) {
        ("addV" | "addE", "property") => mutate::folds(next),
        // A second one that computes its value must see what the first one wrote.
        ("property", "property") => !next.arguments.iter().any(|value| matches!(value, Value::Traversal(_))),
        // `to(OUT)` is a step of its own.
        (_, "to") => !matches!(next.arguments.first(), Some(Value::Direction(_))),
        _ => true,
    }
}

pub(crate) fn identity() -> Box<dyn Op> {
    Each::filter(Parts::default(), |_, _, _| Ok(true))
}
