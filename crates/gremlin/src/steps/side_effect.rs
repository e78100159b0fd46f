//! What is kept beside the stream: aggregate(), store(), cap(), tree(), subgraph(), sack(), barrier(), inject().

use std::sync::Arc;

use indexmap::IndexMap;

use super::*;
use crate::arithmetic::{self, Sum};
use crate::compare::items;
use crate::evaluate::merge;
use crate::steps::reduce::reduced;
use crate::traverser::Traverser;
use crate::value::{Operator, Scope, Subgraph, Tree};

/// aggregate() waits for all; store() and aggregate(local) take each as it passes.
pub(crate) fn build_aggregate(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, args) = call.scoped();
    let [Value::String(key)] = args else { return Err(call.wrong()) };
    let key = key.clone();
    let by = call.one_by(builder)?;
    if scope == Scope::Local || call.name == "store" {
        return Ok(Each::op(Parts::bys(vec![by]), move |cx, parts, traverser, out| {
            register(cx, &key);
            if let Some(value) = parts.bys[0].apply(cx, &traverser)? {
                gather(cx, &key, vec![(value, traverser.bulk)])?;
            }
            out.push(traverser);
            Ok(())
        }));
    }
    Ok(Box::new(Aggregate { key, parts: Parts::bys(vec![by]), waiting: None }))
}

fn register(cx: &mut Cx<'_>, key: &Arc<str>) {
    cx.side_effects.entry(key.clone()).or_insert_with(|| Value::BulkSet(Arc::default()));
}

/// Adds to a side effect by its operator, which is addAll where none was given.
fn gather(cx: &mut Cx<'_>, key: &Arc<str>, values: Vec<(Value, u64)>) -> Result<()> {
    let operator = cx.reducers.get(key).copied().unwrap_or(Operator::AddAll);
    let current = cx.side_effects.get_mut(key);
    if let (Some(Value::BulkSet(set)), Operator::AddAll) = (current, operator) {
        let set = Arc::make_mut(set);
        for (value, bulk) in values {
            *set.entry(value).or_insert(0) += bulk;
        }
        return Ok(());
    }
    let current = cx.side_effects.get(key).cloned().unwrap_or_default();
    let result = match operator {
        Operator::AddAll | Operator::Assign => {
            let mut set: IndexMap<Value, u64> = IndexMap::new();
            for (value, bulk) in values {
                *set.entry(value).or_insert(0) += bulk;
            }
            arithmetic::operate(operator, &current, &Value::BulkSet(Arc::new(set)))?
        }
        _ => {
            let mut result = current;
            for (value, bulk) in values {
                for _ in 0..bulk {
                    result = arithmetic::operate(operator, &result, &value)?;
                }
                cx.options.budget.step(bulk)?;
            }
            result
        }
    };
    cx.side_effects.insert(key.clone(), result);
    Ok(())
}

struct Aggregate {
    key: Arc<str>,
    parts: Parts,
    waiting: Option<(std::collections::VecDeque<Traverser>, orrery_budget::Held)>,
}

impl Op for Aggregate {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        if self.waiting.is_none() {
            let (all, held) = up.all(cx)?;
            register(cx, &self.key);
            let values: Vec<Value> = all.iter().map(|t| t.value.clone()).collect();
            self.parts.prepare(cx, &values)?;
            let mut seen = Vec::with_capacity(all.len());
            for traverser in &all {
                if let Some(value) = self.parts.bys[0].apply(cx, traverser)? {
                    seen.push((value, traverser.bulk));
                }
            }
            if !all.is_empty() {
                gather(cx, &self.key, seen)?;
            }
            self.waiting = Some((all.into(), held));
        }
        let Some((waiting, _)) = &mut self.waiting else { return Ok(Vec::new()) };
        let count = waiting.len().min(want);
        Ok(waiting.drain(..count).collect())
    }

    fn reset(&mut self) {
        self.waiting = None;
    }
}

pub(crate) fn build_cap(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let keys = call.strings()?;
    if keys.is_empty() {
        return Err(call.wrong());
    }
    Ok(Box::new(Cap { keys, done: false }))
}

struct Cap {
    keys: Vec<Arc<str>>,
    done: bool,
}

impl Op for Cap {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        while !up.next(cx, usize::MAX)?.is_empty() {}
        let get = |key: &Arc<str>| {
            cx.side_effects.get(key).cloned().ok_or_else(|| {
                Error::runtime(format!("The side-effect key does not exist in the side-effects: {key}"))
            })
        };
        let value = match self.keys.as_slice() {
            [key] => get(key)?,
            keys => {
                let mut entries = Vec::new();
                for key in keys {
                    entries.push((Value::String(key.clone()), get(key)?));
                }
                Value::map(entries)
            }
        };
        Ok(vec![reduced(cx, value)])
    }

    fn reset(&mut self) {
        self.done = false;
    }
}

pub(crate) fn build_tree(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let key = match call.args {
        [] => None,
        [Value::String(key)] => Some(key.clone()),
        _ => return Err(call.wrong()),
    };
    Ok(Box::new(TreeOp { key, parts: Parts::bys(call.bys(builder)?), tree: Tree::default(), done: false }))
}

struct TreeOp {
    key: Option<Arc<str>>,
    parts: Parts,
    tree: Tree,
    done: bool,
}

impl TreeOp {
    fn grow(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<()> {
        let mut node = &mut self.tree;
        for (index, object) in traverser.path_value().objects.into_iter().enumerate() {
            let count = self.parts.bys.len();
            let object = match self.parts.bys.get_mut(index % count.max(1)) {
                Some(by) => match by.apply_to(cx, traverser, &object)? {
                    Some(object) => object,
                    None => return Ok(()),
                },
                None => object,
            };
            node = node.0.entry(object).or_default();
        }
        Ok(())
    }
}

impl Op for TreeOp {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let (all, _held) = up.all(cx)?;
        for traverser in &all {
            self.grow(cx, traverser)?;
        }
        let tree = Value::Tree(Arc::new(self.tree.clone()));
        match &self.key {
            Some(key) => {
                cx.side_effects.insert(key.clone(), tree);
                Ok(all)
            }
            None => Ok(vec![reduced(cx, tree)]),
        }
    }

    fn reset(&mut self) {
        self.done = false;
        if self.key.is_none() {
            self.tree = Tree::default();
        }
    }
}

pub(crate) fn build_subgraph(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let key = call.string(0)?;
    Ok(Each::op(Parts::default(), move |cx, _, traverser, out| {
        let Value::Edge(edge) = &traverser.value else {
            return Err(Error::runtime(format!(
                "{} cannot be cast to org.apache.tinkerpop.gremlin.structure.Edge",
                crate::text::type_name(&traverser.value)
            )));
        };
        let edge = cx.edge(edge)?;
        cx.load(&[Value::Vertex(edge.out_v.clone()), Value::Vertex(edge.in_v.clone())])?;
        let graph = cx.side_effects.entry(key.clone()).or_insert_with(|| Value::Graph(Arc::default()));
        if let Value::Graph(graph) = graph {
            let graph: &mut Subgraph = Arc::make_mut(graph);
            graph.vertices.insert(Value::Vertex(edge.out_v.clone()));
            graph.vertices.insert(Value::Vertex(edge.in_v.clone()));
            graph.edges.insert(Value::Edge(edge));
        }
        out.push(traverser);
        Ok(())
    }))
}

pub(crate) fn build_sack(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let operator = match call.args {
        [] => {
            return Ok(Each::map(Parts::default(), |_, _, traverser| {
                Ok(Some(traverser.sack.clone().unwrap_or_default()))
            }));
        }
        [Value::Operator(operator)] => *operator,
        _ => return Err(call.wrong()),
    };
    let by = call.one_by(builder)?;
    Ok(Each::op(Parts::bys(vec![by]), move |cx, parts, mut traverser, out| {
        if let Some(value) = parts.bys[0].apply(cx, &traverser)? {
            let sack = traverser.sack.take().unwrap_or_default();
            traverser.sack = Some(arithmetic::operate(operator, &sack, &value)?);
            out.push(traverser);
        }
        Ok(())
    }))
}

pub(crate) fn build_barrier(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let normalizes = match call.args {
        [] => false,
        [Value::NormSack] => true,
        [size] if size.as_i64().is_some() => false,
        _ => return Err(call.wrong()),
    };
    Ok(Box::new(Barrier { normalizes, waiting: None }))
}

struct Barrier {
    normalizes: bool,
    waiting: Option<(std::collections::VecDeque<Traverser>, orrery_budget::Held)>,
}

impl Barrier {
    /// Alike traversers become one; sacks with an operator become one by it.
    fn merged(cx: &Cx<'_>, all: Batch) -> Result<Batch> {
        let Some(operator) = cx.sack.as_ref().and_then(|sack| sack.merge) else {
            let mut merged = if cx.mode == crate::traverser::PathMode::Full { all } else { merge(all) };
            if cx.one_bulk {
                merged.iter_mut().for_each(|traverser| traverser.bulk = 1);
            }
            return Ok(merged);
        };
        let mut kept: IndexMap<Value, Traverser> = IndexMap::new();
        for traverser in all {
            match kept.entry(traverser.value.clone()) {
                indexmap::map::Entry::Vacant(entry) => {
                    entry.insert(traverser);
                }
                indexmap::map::Entry::Occupied(mut entry) => {
                    let first = entry.get_mut();
                    let (a, b) = (first.sack.take().unwrap_or_default(), traverser.sack.unwrap_or_default());
                    first.sack = Some(arithmetic::operate(operator, &a, &b)?);
                    first.bulk = if cx.one_bulk { 1 } else { first.bulk.saturating_add(traverser.bulk) };
                }
            }
        }
        Ok(kept.into_values().collect())
    }

    fn normalize(batch: &mut [Traverser]) -> Result<()> {
        // Numbers beyond doubles stay exact.
        let exact = batch.iter().any(|t| matches!(t.sack, Some(Value::BigInt(_) | Value::BigDecimal(_))));
        let widened = |sack: Value| match exact.then(|| crate::compare::decimal(&sack)).flatten() {
            Some(decimal) => Value::BigDecimal(Arc::new(decimal)),
            None => Value::Double(sack.as_f64().unwrap_or(f64::NAN)),
        };
        let mut sum = widened(Value::Int(0));
        for traverser in batch.iter() {
            let sack = widened(traverser.sack.clone().unwrap_or_default());
            sum = arithmetic::apply(Sum::Add, &sum, &arithmetic::times(&sack, traverser.bulk)?)?;
        }
        for traverser in batch {
            let sack = widened(traverser.sack.take().unwrap_or_default());
            traverser.sack = Some(arithmetic::apply(Sum::Div, &sack, &sum)?);
        }
        Ok(())
    }
}

impl Op for Barrier {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        if self.waiting.is_none() {
            let (all, held) = up.all(cx)?;
            let mut all = Barrier::merged(cx, all)?;
            if self.normalizes {
                Barrier::normalize(&mut all)?;
            }
            self.waiting = Some((all.into(), held));
        }
        let Some((waiting, _)) = &mut self.waiting else { return Ok(Vec::new()) };
        let count = waiting.len().min(want);
        Ok(waiting.drain(..count).collect())
    }

    fn reset(&mut self) {
        self.waiting = None;
    }
}

pub(crate) fn build_inject(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Box::new(Inject {
        values: call.args.to_vec(),
        is_start: call.is_start,
        is_first: call.is_first,
        begun: false,
    }))
}

struct Inject {
    values: Vec<Value>,
    is_start: bool,
    /// In a nested traversal what comes in is there before what is put in.
    is_first: bool,
    begun: bool,
}

impl Op for Inject {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        if self.is_first && !self.is_start && !self.begun {
            let batch = up.next(cx, want)?;
            if !batch.is_empty() {
                return Ok(batch);
            }
        }
        if !std::mem::replace(&mut self.begun, true) && !self.values.is_empty() {
            return Ok(self.values.iter().map(|value| reduced(cx, value.clone())).collect());
        }
        if self.is_start { Ok(Vec::new()) } else { up.next(cx, want) }
    }

    fn reset(&mut self) {
        self.begun = false;
    }
}

/// unfold(): the members of what can be taken apart.
pub(crate) fn build_unfold(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Each::op(Parts::default(), |cx, _, traverser, out| {
        let mode = cx.mode;
        match &traverser.value {
            Value::List(_) | Value::Set(_) | Value::Path(_) => {
                for value in items(&traverser.value) {
                    out.push(traverser.step(value, mode));
                }
            }
            Value::BulkSet(set) => {
                for (value, count) in set.iter() {
                    let mut next = traverser.step(value.clone(), mode);
                    next.bulk = next.bulk.saturating_mul(*count);
                    out.push(next);
                }
            }
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    out.push(traverser.step(Value::Entry(Arc::new((key.clone(), value.clone()))), mode));
                }
            }
            Value::Tree(tree) => {
                for (key, branch) in &tree.0 {
                    let branch = Value::Tree(Arc::new(branch.clone()));
                    out.push(traverser.step(Value::Entry(Arc::new((key.clone(), branch))), mode));
                }
            }
            other => {
                let same = other.clone();
                out.push(traverser.into_step(same, mode));
            }
        }
        Ok(())
    }))
}
