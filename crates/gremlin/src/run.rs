//! The entry points: a script is parsed or taken as bytecode, then executed into a sink.

use std::collections::HashMap;
use std::sync::Arc;

use std::time::Instant;

use orrery_budget::Budget;

use crate::build::Builder;
use crate::bytecode::Bytecode;
use crate::error::Result;
use crate::evaluate::Cx;
use crate::graph::Graph;
use crate::strategies;
use crate::traverser::Traverser;
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
    /// The strings `id` and `label` mean `T.id` and `T.label` in has(), property() and values(), as the service takes
    /// them.
    pub id_and_label_as_keys: bool,
    /// Loops of one repeat(); the service allows 32. More is an error, not an end.
    pub repeat_loops_max: u32,
    /// The text of the script, for `executionProfile()`.
    pub script: String,
    /// For coin(), sample() and shuffle: the same seed gives the same choices.
    pub seed: u64,
    /// Without lowering and without merging of traversers: slower, and the same results. For comparisons.
    pub naive: bool,
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
            naive: false,
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
    crate::parser::parse(script, bindings)
}

/// A driver's bytecode as a script of one statement.
pub fn from_bytecode(traversal: Arc<Bytecode>) -> Script {
    Script { statements: vec![Statement { traversal, terminal: None }] }
}

impl Script {
    /// Whether some step of it writes, so that a token that may only read can be refused beforehand.
    pub fn writes(&self) -> bool {
        self.statements.iter().any(|statement| writes(&statement.traversal))
    }
}

pub(crate) fn writes(bytecode: &Bytecode) -> bool {
    bytecode.steps.iter().any(|step| {
        matches!(&*step.name, "addV" | "addE" | "property" | "drop" | "mergeV" | "mergeE")
            || step.arguments.iter().any(|argument| match argument {
                Value::Traversal(nested) => writes(nested),
                _ => false,
            })
    })
}

/// Runs a script to its end, or until the sink wants no more.
pub fn execute(script: &Script, graph: &mut dyn Graph, options: &Options, sink: &mut dyn Sink) -> Result<()> {
    let Some((last, before)) = script.statements.split_last() else { return Ok(()) };
    for statement in before {
        run(statement, graph, options, &mut |_: Vec<(Value, u64)>| Ok(Flow::Continue))?;
    }
    run(last, graph, options, sink)
}

fn run(statement: &Statement, graph: &mut dyn Graph, options: &Options, sink: &mut dyn Sink) -> Result<()> {
    let Some(terminal) = statement.terminal else {
        return traverse(&statement.traversal, graph, options, sink);
    };
    let mut all: Vec<(Value, u64)> = Vec::new();
    let enough = match terminal {
        Terminal::Next(count) => count,
        Terminal::TryNext | Terminal::HasNext => 1,
        _ => u64::MAX,
    };
    let mut found = 0u64;
    let mut collect = |batch: Vec<(Value, u64)>| {
        if terminal == Terminal::ToList {
            return sink.take(batch);
        }
        for (value, bulk) in batch {
            if found < enough && terminal != Terminal::Iterate {
                all.push((value, bulk.min(enough - found)));
                found = found.saturating_add(bulk);
            }
        }
        Ok(if found >= enough { Flow::Stop } else { Flow::Continue })
    };
    traverse(&statement.traversal, graph, options, &mut collect)?;
    let results = match terminal {
        Terminal::HasNext => vec![(Value::Bool(!all.is_empty()), 1)],
        Terminal::ToSet => {
            let set: indexmap::IndexSet<Value> = all.into_iter().map(|(value, _)| value).collect();
            set.into_iter().map(|value| (value, 1)).collect()
        }
        _ => all,
    };
    if !results.is_empty() {
        sink.take(results)?;
    }
    Ok(())
}

/// Results are handed to the sink in pieces of about this many.
const RESULTS_AT_ONCE: usize = 256;

fn traverse(
    bytecode: &Bytecode,
    graph: &mut dyn Graph,
    options: &Options,
    sink: &mut dyn Sink,
) -> Result<()> {
    let began = Instant::now();
    let settings = strategies::Settings::of(&bytecode.source, options)?;
    graph.show_system_properties(&settings.system_properties);
    let rewritten = settings.rewrite(bytecode)?;
    let rewritten = if options.naive { rewritten } else { crate::shorten::shorten(&settings, rewritten) };
    let mode = settings.path_mode(&rewritten);
    let mut builder = Builder::new(options, graph.partition_key());
    builder.productive_by = settings.productive_by.clone();
    builder.lowering = !options.naive;
    builder.writes = writes(&rewritten);
    builder.path_mode = mode;
    builder.infix = !settings.without_infix;
    let mut pipeline = builder.root(&rewritten)?;
    let mut cx = Cx::new(graph, options, mode);
    settings.apply(&mut cx);
    settings.register(&mut cx, &rewritten);
    cx.bulking = !options.naive && !settings.interleaves(&rewritten) && settings.allows_bulking();
    if settings.interleaves(&rewritten) {
        cx.batch_max = 1;
    }
    let profiled =
        pipeline.stages.last().is_some_and(|stage| matches!(stage.name, "executionProfile" | "profile"));
    cx.profiling = profiled;
    let mut start = Traverser::new(Value::Null);
    start.sack = cx.sack.as_ref().map(|sack| sack.initial.clone());
    pipeline.starts.push_back(start);
    loop {
        let batch = pipeline.next(&mut cx, RESULTS_AT_ONCE)?;
        if batch.is_empty() {
            break;
        }
        if profiled {
            continue;
        }
        let mut results: Vec<(Value, u64)> = Vec::with_capacity(batch.len());
        for traverser in batch {
            results.push((traverser.value, traverser.bulk));
        }
        if options.materialize_properties {
            crate::materialize::materialize(&mut cx, &mut results)?;
        }
        if sink.take(results)? == Flow::Stop {
            return Ok(());
        }
    }
    if profiled {
        let total_ms = began.elapsed().as_secs_f64() * 1e3;
        let profile = crate::profile::profile(&options.script, &pipeline.stages, total_ms);
        sink.take(vec![(profile, 1)])?;
    }
    Ok(())
}
