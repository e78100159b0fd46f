//! Pipelines: stages that pull documents from each other.
//!
//! A pipeline is parsed once, with everything in it, and run over rows. Each stage is in a file of its own or with
//! its family; the table that names them all, with their documentation, is in `stages`. What a stage keeps in memory
//! is charged to the budget of the command and to a limit of its own (`memory`).

mod bucket;
mod bucket_auto;
mod densify;
mod describe;
mod documents;
mod facet;
mod fill;
mod filtering;
mod geo_near;
mod granularity;
mod graph_lookup;
mod group;
mod limits;
mod lookup;
mod memory;
mod output;
mod redact;
mod replace;
mod rows;
mod shape;
mod sorting;
mod specification;
mod stages;
mod union_with;
mod unwind;
mod window;

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::filter::Filter;
use crate::sort::Sort;
use crate::value::{Bson, Document};

pub use output::merged;
pub use rows::{BoxedRows, ListRows, Row, Rows};
pub use stages::{STAGES, StageEntry};

/// Stages of one pipeline.
pub const STAGES_MAX: usize = 1_000;
/// Pipelines within each other: `$lookup`, `$facet`, `$unionWith`, views.
pub const NESTING_MAX: usize = 20;

/// What a pipeline asks of the database around it.
pub trait Collections: Send + Sync {
    /// The documents of a collection that may match. What is asked for is a hint that an index may use; whoever asks
    /// checks again. A collection that does not exist is empty. A view is run by whoever implements this.
    fn scan(&self, database: &str, collection: &str, request: &Scan) -> Result<BoxedRows>;

    /// Replaces (`$out`) a collection by these documents.
    fn replace(&self, database: &str, collection: &str, rows: BoxedRows) -> Result<()>;

    /// One write of `$merge`.
    fn merge(&self, database: &str, collection: &str, merge: &Merge, document: Document) -> Result<()>;

    /// What stages about the server itself show: `$collStats`, `$indexStats`, `$currentOp`, `$listSessions`, and
    /// `$changeStream`, whose rows do not end.
    fn describe(&self, database: &str, collection: &str, stage: &str, argument: &Bson) -> Result<BoxedRows>;
}

/// What a scan should bring. All of it may be ignored.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    pub filter: Option<Filter>,
    pub sort: Option<Sort>,
    /// Rows that are wanted of what the filter lets through, in the order of the sort.
    pub limit: Option<u64>,
    /// The variables that the filter may name.
    pub variables: Document,
}

/// `$merge` without its target.
#[derive(Clone, Debug)]
pub struct Merge {
    pub on: Vec<String>,
    pub when_matched: WhenMatched,
    pub when_not_matched: WhenNotMatched,
    /// Variables of the pipeline of `whenMatched`, evaluated for the document.
    pub variables: Document,
}

#[derive(Clone, Debug)]
pub enum WhenMatched {
    Replace,
    KeepExisting,
    Merge,
    Fail,
    Pipeline(Vec<Bson>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

/// What stages are run with.
#[derive(Clone)]
pub struct Env {
    pub database: Arc<str>,
    pub collection: Arc<str>,
    pub collections: Arc<dyn Collections>,
    pub context: Context,
}

/// What the source of a pipeline may know of a stage.
pub(crate) enum Hint<'a> {
    Filter(&'a Filter),
    Sort(&'a Sort),
    Limit(u64),
    Skip(u64),
    Other,
}

/// A parsed stage.
pub(crate) trait Stage: Send + Sync {
    /// Puts the stage behind rows.
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows>;

    fn hint(&self) -> Hint<'_> {
        Hint::Other
    }

    /// Told how many rows the stages behind it want at most. Only sorts listen.
    fn limit_to(&mut self, _rows: u64) {}
}

/// A parsed pipeline.
pub struct Pipeline {
    stages: Vec<(&'static StageEntry, Box<dyn Stage>)>,
}

/// What the beginning of a pipeline asks of its collection.
#[derive(Clone, Debug, Default)]
pub struct Leading {
    /// The `$match` stages at the front.
    pub filter: Option<Filter>,
    /// A `$sort` behind them, and how many rows are wanted of all that.
    pub sort: Option<Sort>,
    pub limit: Option<u64>,
    /// Stages that this is all of: where the source has done it exactly, they need not run.
    pub stages: usize,
}

impl Pipeline {
    pub fn parse(stages: &[Bson], context: &Context) -> Result<Pipeline> {
        Pipeline::parse_within(stages, context, 0)
    }

    pub(crate) fn parse_within(stages: &[Bson], context: &Context, depth: usize) -> Result<Pipeline> {
        if stages.len() > STAGES_MAX {
            return Err(Error::new(
                7_749_501,
                format!("Pipeline length must be no longer than {STAGES_MAX} stages"),
            ));
        }
        if depth > NESTING_MAX {
            return Err(Error::new(
                5_136_301,
                format!("Maximum number of nested pipelines exceeded: {NESTING_MAX}"),
            ));
        }
        let mut parsed: Vec<(&'static StageEntry, Box<dyn Stage>)> = Vec::with_capacity(stages.len());
        for (at, stage) in stages.iter().enumerate() {
            let Bson::Document(document) = stage else {
                return Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object"));
            };
            let (Some((name, argument)), 1) = (document.first(), document.len()) else {
                return Err(Error::new(
                    40_323,
                    "A pipeline stage specification object must contain exactly one field.",
                ));
            };
            let Some(entry) = stages::find(name) else {
                return Err(Error::new(40_324, format!("Unrecognized pipeline stage name: '{name}'")));
            };
            if entry.first_only && at > 0 {
                return Err(Error::new(
                    40_602,
                    format!("{name} is only valid as the first stage in a pipeline"),
                ));
            }
            if entry.last_only && at + 1 < stages.len() {
                return Err(Error::new(
                    40_601,
                    format!("{name} can only be the final stage in the pipeline"),
                ));
            }
            parsed.push((entry, (entry.parse)(argument, &specification::Parsing { context, depth })?));
        }
        bound_sorts(&mut parsed);
        Ok(Pipeline { stages: parsed })
    }

    /// What the source of the pipeline may do for it. The stages stay: they check again.
    pub fn leading(&self) -> Leading {
        let mut leading = Leading::default();
        let (mut filters, mut skipped) = (Vec::new(), 0u64);
        for (_, stage) in &self.stages {
            match stage.hint() {
                Hint::Filter(filter) if leading.sort.is_none() && leading.limit.is_none() && skipped == 0 => {
                    filters.push(filter.clone());
                }
                Hint::Sort(sort) if leading.sort.is_none() && leading.limit.is_none() && skipped == 0 => {
                    leading.sort = Some(sort.clone());
                }
                Hint::Skip(rows) if leading.limit.is_none() => skipped = skipped.saturating_add(rows),
                Hint::Limit(rows) => {
                    let rows = rows.saturating_add(skipped);
                    leading.limit = Some(leading.limit.map_or(rows, |limit| limit.min(rows)));
                }
                _ => break,
            }
            leading.stages += 1;
        }
        leading.filter = Filter::all_of(filters);
        leading
    }

    /// Whether it begins with a stage that makes its own documents (`$documents`, `$collStats`, `$changeStream` …).
    pub fn has_own_source(&self) -> bool {
        self.stages.first().is_some_and(|(entry, _)| entry.own_source)
    }

    /// The names of the stages.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.stages.iter().map(|(entry, _)| entry.name)
    }

    /// Whether it writes: `$out` or `$merge` at its end.
    pub fn writes(&self) -> bool {
        self.stages.last().is_some_and(|(entry, _)| entry.last_only)
    }

    /// Runs the stages over rows of `database.collection`. Nothing is read before the first row is asked for.
    pub fn run(&self, rows: BoxedRows, env: &Env) -> Result<BoxedRows> {
        self.stages.iter().try_fold(rows, |rows, (_, stage)| stage.attach(rows, env))
    }

    /// Reads the collection of the environment and runs over it.
    pub fn run_over_collection(&self, env: &Env) -> Result<BoxedRows> {
        if self.has_own_source() {
            return self.run(ListRows::empty(), env);
        }
        let Leading { filter, sort, limit, .. } = self.leading();
        let scan = Scan { filter, sort, limit, variables: env.context.variables.clone() };
        let rows = env.collections.scan(&env.database, &env.collection, &scan)?;
        self.run(rows, env)
    }
}

/// Tells sorts how many rows the `$skip` and `$limit` behind them leave of theirs.
fn bound_sorts(stages: &mut [(&'static StageEntry, Box<dyn Stage>)]) {
    for at in 0..stages.len() {
        if !matches!(stages[at].1.hint(), Hint::Sort(_)) {
            continue;
        }
        let (mut skipped, mut bound) = (0u64, None);
        for (_, stage) in &stages[at + 1..] {
            match stage.hint() {
                Hint::Skip(rows) => skipped = skipped.saturating_add(rows),
                Hint::Limit(rows) => {
                    bound = Some(rows.saturating_add(skipped));
                    break;
                }
                _ => break,
            }
        }
        if let Some(rows) = bound {
            stages[at].1.limit_to(rows);
        }
    }
}

/// The variables of a command's `let`, evaluated: they depend on no document, and each may name those before it.
pub fn evaluate_let(variables: &Document, context: &Context) -> Result<Document> {
    let nothing = Document::new();
    let mut context = context.clone();
    for (name, expression) in variables.iter() {
        lookup::check_variable(name)?;
        let expression = crate::expression::Expression::parse(expression, &context)?;
        if expression.paths().is_none_or(|paths| !paths.is_empty()) {
            return Err(Error::new(
                4_890_500,
                "Command let Expression tried to access a field, but this is not allowed because Command let expressions \
                 run before the query examines any documents.",
            ));
        }
        let value = expression.evaluate(crate::ValueRef::OwnedDocument(&nothing), &context)?;
        context.variables.set(name, value.unwrap_or(Bson::Undefined));
    }
    Ok(context.variables)
}

/// The values that `distinct` finds at a path: of arrays their elements; none where there is nothing.
pub fn values_of(document: crate::ValueRef<'_>, path: &str) -> Vec<Bson> {
    let mut values = Vec::new();
    lookup::reached(document, path, &mut values);
    let mut found = Vec::new();
    let mut values = values.into_iter();
    while let Some(value) = values.next() {
        if value.kind() == crate::Kind::Array {
            // Its elements follow it.
            found.extend(values.by_ref().take(value.len()).map(crate::ValueRef::to_bson));
        } else {
            found.push(value.to_bson());
        }
    }
    found
}

/// The refusal of a stage that needs a collection and runs over a database.
pub fn needs_collection(stage: &str) -> Error {
    Error::new(
        code::INVALID_NAMESPACE,
        format!("{{aggregate: 1}} is not valid for '{stage}'; a collection is required."),
    )
}
