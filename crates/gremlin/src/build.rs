//! Bytecode to pipelines: modulators go to the step before them, filters into the lookup before them.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::bytecode::{Bytecode, Instruction};
use crate::error::{Error, ErrorKind, Result};
use crate::evaluate::{By, Child, Op, Pipeline, Selector, Stage};
use crate::graph::Filter;
use crate::lowering;
use crate::run::Options;
use crate::steps::{self, StepDef};
use crate::value::{Order, Value};

/// Steps of one traversal, as many as the service allows: each waits for the one before it on the stack.
const OPERATORS_MAX: usize = 400;
/// Steps of all nested traversals together.
const ALL_OPERATORS_MAX: usize = 10_000;
/// Traversals inside of traversals.
const NESTING_MAX: usize = 50;
/// Steps on the way from the outermost traversal to the innermost, which all wait on the stack at once.
const STACKED_MAX: usize = 800;

pub(crate) struct Builder<'a> {
    pub options: &'a Options,
    pub partition_key: Option<Arc<str>>,
    /// Keys for which `ProductiveByStrategy` holds; none: the strategy is absent, empty: all keys.
    pub productive_by: Option<Vec<Arc<str>>>,
    /// Whether filters go into lookups. Off only to compare results.
    pub lowering: bool,
    /// Whether the traversal writes somewhere, so that sources must be read to their end first.
    pub writes: bool,
    pub path_mode: crate::traverser::PathMode,
    /// Whether `or()` and `and()` without arguments stand between what they connect.
    pub infix: bool,
    operators: usize,
    depth: usize,
    stacked: usize,
    /// Whether a nested traversal that was built last has a barrier.
    nested_barrier: bool,
    /// Whether a source and the grouping after it may be one operator.
    grouping: bool,
}

/// One step with what belongs to it.
pub(crate) struct Call<'a> {
    pub name: &'static str,
    pub args: &'a [Value],
    /// Whether the arguments are written out in a script.
    pub literal: bool,
    pub mods: Vec<&'a Instruction>,
    /// Filters that followed and are part of it now.
    pub filters: Vec<Filter>,
    /// That many results are enough.
    pub limit: Option<u64>,
    /// Whether it begins the whole traversal.
    pub is_start: bool,
    /// Whether it is the first step of its traversal.
    pub is_first: bool,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(options: &'a Options, partition_key: Option<&str>) -> Builder<'a> {
        Builder {
            options,
            partition_key: partition_key.map(Arc::from),
            productive_by: None,
            lowering: true,
            writes: false,
            path_mode: crate::traverser::PathMode::Full,
            infix: true,
            operators: 0,
            depth: 0,
            stacked: 0,
            nested_barrier: false,
            grouping: true,
        }
    }

    pub(crate) fn root(&mut self, bytecode: &Bytecode) -> Result<Pipeline> {
        self.pipeline(&bytecode.steps, true)
    }

    pub(crate) fn child(&mut self, bytecode: &Bytecode) -> Result<Child> {
        if let Some(source) = bytecode.source.first() {
            return Err(Error::runtime(format!(
                "{}() belongs to the beginning of a traversal.",
                source.name
            )));
        }
        self.pipeline(&bytecode.steps, false).map(Child)
    }

    pub(crate) fn child_of(&mut self, value: &Value) -> Result<Child> {
        match value {
            Value::Traversal(bytecode) => self.child(bytecode),
            other => {
                Err(Error::runtime(format!("A traversal is needed, not {}.", crate::text::text_of(other))))
            }
        }
    }

    /// Children that begin a traversal as if nothing were before them.
    pub(crate) fn start_children(&mut self, values: &[Value]) -> Result<Vec<Child>> {
        let mut children = Vec::with_capacity(values.len());
        for value in values {
            match value {
                Value::Traversal(nested) => children.push(self.pipeline(&nested.steps, true).map(Child)?),
                other => children.push(self.child_of(other)?),
            }
        }
        Ok(children)
    }

    pub(crate) fn children(&mut self, values: &[Value]) -> Result<Vec<Child>> {
        values.iter().map(|value| self.child_of(value)).collect()
    }

    /// A pipeline of instructions as they stand, nested.
    pub(crate) fn nested(&mut self, steps: &[Instruction]) -> Result<Child> {
        self.pipeline(steps, false).map(Child)
    }

    fn pipeline(&mut self, steps: &[Instruction], is_root: bool) -> Result<Pipeline> {
        if self.depth >= NESTING_MAX {
            return Err(Error::new(ErrorKind::Limit, format!("More than {NESTING_MAX} nested traversals.")));
        }
        self.depth += 1;
        self.stacked += steps.len();
        if self.stacked > STACKED_MAX {
            let text = format!("More than {STACKED_MAX} operators in traversals inside of each other.");
            return Err(Error::new(ErrorKind::Limit, text));
        }
        let pipeline = match connectives(steps).filter(|_| self.infix) {
            Some(connected) => self.sequence(&connected, is_root),
            None => self.sequence(steps, is_root),
        };
        self.depth -= 1;
        self.stacked -= steps.len();
        pipeline
    }

    /// The same steps without anything that is known of several of them together.
    pub(crate) fn plainly(&mut self, steps: &[Instruction]) -> Result<Child> {
        let (operators, grouping) = (self.operators, std::mem::replace(&mut self.grouping, false));
        let pipeline = self.sequence(steps, true).map(Child);
        (self.operators, self.grouping) = (operators, grouping);
        pipeline
    }

    fn sequence(&mut self, steps: &[Instruction], is_root: bool) -> Result<Pipeline> {
        let mut pipeline = Pipeline {
            stages: Vec::new(),
            starts: VecDeque::new(),
            has_barrier: false,
            counts_starts: false,
        };
        let mut before_repeat: Vec<&Instruction> = Vec::new();
        let mut rest = steps;
        while let Some((step, after)) = rest.split_first() {
            rest = after;
            self.operators += 1;
            if pipeline.stages.len() >= OPERATORS_MAX || self.operators > ALL_OPERATORS_MAX {
                let text = format!("The traversal has more than {OPERATORS_MAX} operators.");
                return Err(Error::new(ErrorKind::Limit, text));
            }
            if &*step.name == "as" {
                let labels = labels(step)?;
                if pipeline.stages.is_empty() {
                    pipeline.stages.push(stage("identity", "Identity", steps::identity()));
                }
                if let Some(stage) = pipeline.stages.last_mut() {
                    stage.labels.extend(labels);
                }
                continue;
            }
            if matches!(&*step.name, "until" | "emit" | "times") {
                before_repeat.push(step);
                continue;
            }
            let Some(def) = steps::find(&step.name) else {
                let text = format!("Unable to find any method '{}'", step.name);
                return Err(Error::compile(text, step.at));
            };
            let mut call = Call {
                name: def.name,
                args: &step.arguments,
                literal: step.literal,
                mods: Vec::new(),
                filters: Vec::new(),
                limit: None,
                is_start: is_root && pipeline.stages.is_empty(),
                is_first: pipeline.stages.is_empty(),
            };
            let mut own_labels = Vec::new();
            if def.name == "repeat" {
                call.mods.append(&mut before_repeat);
                // Marks what stood before the repeat() from what stands after it.
                call.mods.push(step);
            }
            self.modulators(def, &mut call, &mut rest, &mut own_labels)?;
            if self.lowering && def.takes_filters {
                self.filters(def, &mut call, &mut rest, &mut own_labels)?;
            }
            self.nested_barrier = false;
            if self.lowering && def.name == "order" {
                call.limit = rest.first().and_then(lowering::limit_of);
            }
            let source = matches!(def.name, "V" | "E") && call.is_start && own_labels.is_empty();
            if self.lowering
                && self.grouping
                && source
                && let Some((op, taken)) = steps::grouped::build(self, &call, steps, rest)?
            {
                rest = &rest[taken..];
                pipeline.has_barrier = true;
                pipeline.counts_starts = true;
                pipeline.stages.push(stage(def.name, def.operator, op));
                continue;
            }
            let counted = self.lowering && rest.first().is_some_and(|next| self.counts(def, &call, next));
            let op = match counted && own_labels.is_empty() {
                true => {
                    rest = &rest[1..];
                    pipeline.has_barrier = true;
                    pipeline.counts_starts = true;
                    match def.name {
                        "V" | "E" => steps::counted(self, &call)?,
                        _ => steps::degrees(self, &call)?,
                    }
                }
                false => (def.build)(self, &call)?,
            };
            let mut stage = stage(def.name, def.operator, op);
            stage.labels = own_labels;
            let global_children = matches!(def.name, "union" | "choose" | "branch" | "repeat");
            pipeline.has_barrier |= def.is_barrier(&call) || (global_children && self.nested_barrier);
            pipeline.counts_starts |= def.counts_starts();
            pipeline.stages.push(stage);
        }
        if !before_repeat.is_empty() {
            return Err(Error::runtime(
                "The repeat()-traversal was not defined: emit(), until() or times() alone.",
            ));
        }
        self.nested_barrier |= pipeline.has_barrier;
        Ok(pipeline)
    }

    /// Whether a count() that follows a source or a hop needs only numbers.
    fn counts(&self, def: &StepDef, call: &Call<'_>, next: &Instruction) -> bool {
        let hops = matches!(def.name, "out" | "in" | "both" | "outE" | "inE" | "bothE");
        let count = &*next.name == "count" && next.arguments.is_empty();
        let source = matches!(def.name, "V" | "E") && call.args.is_empty();
        count && (source || hops && call.filters.is_empty())
    }

    fn modulators<'s>(
        &self,
        def: &StepDef,
        call: &mut Call<'s>,
        rest: &mut &'s [Instruction],
        own_labels: &mut Vec<Arc<str>>,
    ) -> Result<()> {
        let takes_labels = matches!(def.name, "addV" | "addE" | "mergeV" | "mergeE");
        loop {
            let named = rest.iter().take_while(|step| takes_labels && &*step.name == "as").count();
            let Some(next) = rest.get(named) else { return Ok(()) };
            if !def.modulators.contains(&&*next.name) || !steps::folds(call, next) {
                return Ok(());
            }
            for step in &rest[..named] {
                own_labels.extend(labels(step)?);
            }
            call.mods.push(next);
            *rest = &rest[named + 1..];
        }
    }

    fn filters<'s>(
        &self,
        def: &StepDef,
        call: &mut Call<'s>,
        rest: &mut &'s [Instruction],
        own_labels: &mut Vec<Arc<str>>,
    ) -> Result<()> {
        while let Some((next, after)) = rest.split_first() {
            if &*next.name == "as" {
                own_labels.extend(labels(next)?);
            } else if let Some(filters) = lowering::filters_of(next, self.options.id_and_label_as_keys) {
                if !lowering::fits(def.name, &filters) {
                    break;
                }
                call.filters.extend(filters);
            } else {
                break;
            }
            *rest = after;
        }
        if let Some(next) = rest.first() {
            call.limit = lowering::limit_of(next);
        }
        Ok(())
    }

    pub(crate) fn by(&mut self, step: &Instruction) -> Result<By> {
        let (selector, order) = match step.arguments.as_slice() {
            [] => (None, Order::Asc),
            [Value::Order(order)] => (None, *order),
            [selector] => (Some(selector), Order::Asc),
            [selector, Value::Order(order)] => (Some(selector), *order),
            _ => {
                return Err(Error::not_supported("Gremlin op does not support this by()"));
            }
        };
        let mut productive = self.productive_by.is_some();
        let selector = match selector {
            None => Selector::Identity,
            Some(Value::String(key)) => {
                // A list of keys of the strategy names those that are known to exist and need no care.
                productive = self.productive_by.as_ref().is_some_and(|keys| !keys.contains(key));
                Selector::Key(key.clone())
            }
            Some(Value::T(token)) => Selector::T(*token),
            Some(Value::Column(column)) => Selector::Column(*column),
            Some(Value::Traversal(nested)) => Selector::Child(self.child(nested)?),
            Some(Value::Null) => Selector::Identity,
            Some(other) => {
                let text = format!("by() takes no {}.", crate::text::type_name(other));
                return Err(Error::not_supported(text));
            }
        };
        Ok(By { selector, order, productive })
    }
}

fn stage(name: &'static str, operator: &'static str, op: Box<dyn Op>) -> Stage {
    Stage { name, operator, op, labels: Vec::new(), metrics: Default::default() }
}

fn labels(step: &Instruction) -> Result<Vec<Arc<str>>> {
    let label = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        _ => Err(Error::runtime("as() takes labels.")),
    };
    step.arguments.iter().map(label).collect()
}

/// `a.or().b.and().c` is `or(a, and(b, c))`: the infix forms become the others.
pub(crate) fn connectives(steps: &[Instruction]) -> Option<Vec<Instruction>> {
    // What begins the traversal stays before: `V().has(..).or().has(..)` filters what V() gives.
    let from = usize::from(steps.first().is_some_and(|step| steps::is_start(&step.name)));
    let labelled = steps[from..].iter().take_while(|step| &*step.name == "as").count();
    connected(steps, from + labelled)
}

/// The same where `as()` asks for what a label stands for: it begins what is connected.
pub(crate) fn connected_variables(steps: &[Instruction]) -> Option<Vec<Instruction>> {
    connected(steps, 0)
}

fn connected(steps: &[Instruction], from: usize) -> Option<Vec<Instruction>> {
    for word in ["or", "and"] {
        let is_word = |step: &Instruction| &*step.name == word && step.arguments.is_empty();
        if !steps.iter().any(is_word) {
            continue;
        }
        let branches: Vec<Value> = steps[from..]
            .split(is_word)
            .map(|part| Value::Traversal(Arc::new(Bytecode { source: vec![], steps: part.to_vec() })))
            .collect();
        let mut connected = steps[..from].to_vec();
        connected.push(Instruction::new(word, branches));
        return Some(connected);
    }
    None
}

impl Call<'_> {
    pub(crate) fn bys(&self, builder: &mut Builder<'_>) -> Result<Vec<By>> {
        self.mods.iter().filter(|step| &*step.name == "by").map(|step| builder.by(step)).collect()
    }

    /// At most one by(), the identity when there is none.
    pub(crate) fn one_by(&self, builder: &mut Builder<'_>) -> Result<By> {
        let mut bys = self.bys(builder)?;
        if bys.len() > 1 {
            return Err(Error::runtime(format!("{}() can only have one by modulator.", self.name)));
        }
        Ok(bys.pop().unwrap_or_else(By::identity))
    }

    pub(crate) fn string(&self, index: usize) -> Result<Arc<str>> {
        match self.args.get(index) {
            Some(Value::String(text)) => Ok(text.clone()),
            _ => Err(self.wrong()),
        }
    }

    pub(crate) fn strings(&self) -> Result<Vec<Arc<str>>> {
        strings(self.args).ok_or_else(|| self.wrong())
    }

    pub(crate) fn wrong(&self) -> Error {
        let shown: Vec<String> = self.args.iter().map(crate::text::text_of).collect();
        let shown: String = shown.join(", ").chars().take(200).collect();
        Error::new(
            ErrorKind::Compile,
            format!("Unable to find any method '{}' that takes these arguments: ({shown})", self.name),
        )
    }

    /// The scope that stands first, if one does, and the other arguments.
    pub(crate) fn scoped(&self) -> (crate::value::Scope, &[Value]) {
        match self.args.split_first() {
            Some((Value::Scope(scope), rest)) => (*scope, rest),
            _ => (crate::value::Scope::Global, self.args),
        }
    }
}

pub(crate) fn strings(values: &[Value]) -> Option<Vec<Arc<str>>> {
    values
        .iter()
        .map(|value| match value {
            Value::String(text) => Some(text.clone()),
            _ => None,
        })
        .collect()
}
