//! The entry points: a script is parsed or taken as bytecode, then executed into a sink.

use std::collections::HashMap;
use std::sync::Arc;

use orrery_budget::Budget;

use crate::bytecode::Bytecode;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::value::Value;

/// Statements in order; the last one's results are the script's.
#[derive(Clone, Debug)]
pub struct Script {
    pub(crate) statements: Vec<Statement>,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) traversal: Arc<Bytecode>,
    pub(crate) terminal: Option<Terminal>,
}

/// `next()`, `toList()` and so on at the end of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terminal {
    Iterate,
    Next(u64),
    TryNext,
    HasNext,
    ToList,
    ToSet,
    ToBulkSet,
    Explain,
}

/// What a request decides about its execution.
pub struct Options {
    /// Memory, steps, deadline and whether the client is still there.
    pub budget: Budget,
    /// Elements in results have their properties; otherwise they may be references.
    pub materialize_properties: bool,
    /// The strings `id` and `label` mean `T.id` and `T.label` in has(), property() and values(), as the service takes them.
    pub id_and_label_as_keys: bool,
    /// Loops of one repeat(); the service allows 32. More is an error, not an end.
    pub repeat_loops_max: u32,
    /// The text of the script, for `executionProfile()`.
    pub script: String,
    /// For coin(), sample() and shuffle: the same seed gives the same choices.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            budget: Budget::unlimited(),
            materialize_properties: true,
            id_and_label_as_keys: true,
            repeat_loops_max: 10_000,
            script: String::new(),
            seed: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    Continue,
    /// No more results are wanted; the execution ends without error.
    Stop,
}

/// Takes results as they come.
pub trait Sink {
    /// Each result with how often it occurs. A batch is never empty.
    fn take(&mut self, results: Vec<(Value, u64)>) -> Result<Flow>;
}

impl<F: FnMut(Vec<(Value, u64)>) -> Result<Flow>> Sink for F {
    fn take(&mut self, results: Vec<(Value, u64)>) -> Result<Flow> {
        self(results)
    }
}

/// Parses one script, `;` or line ends between statements. Names that are not part of the language are looked up in the
/// bindings.
pub fn parse(script: &str, bindings: &HashMap<String, Value>) -> Result<Script> {
    let _ = (script, bindings);
    Err(Error::not_supported("parse"))
}

/// A driver's bytecode as a script of one statement.
pub fn from_bytecode(traversal: Arc<Bytecode>) -> Script {
    Script { statements: vec![Statement { traversal, terminal: None }] }
}

impl Script {
    /// Whether some step of it writes, so that a token that may only read can be refused beforehand.
    pub fn writes(&self) -> bool {
        fn any(bytecode: &Bytecode) -> bool {
            bytecode.steps.iter().any(|step| {
                matches!(&*step.name, "addV" | "addE" | "property" | "drop" | "mergeV" | "mergeE")
                    || step.arguments.iter().any(|argument| match argument {
                        Value::Traversal(nested) => any(nested),
                        _ => false,
                    })
            })
        }
        self.statements.iter().any(|statement| any(&statement.traversal))
    }
}

/// Runs a script to its end, or until the sink wants no more.
pub fn execute(script: &Script, graph: &mut dyn Graph, options: &Options, sink: &mut dyn Sink) -> Result<()> {
    let _ = (script, graph, options, sink);
    Err(Error::not_supported("execute"))
}
