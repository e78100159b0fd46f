//! Moves along edges: out() and its relatives, the ends of edges, otherV().
//!
//! A whole batch is one frontier: every vertex in it is asked for once, however many traversers stand on it. Inside
//! of a nested traversal the frontier is that of the batch outside, fetched beforehand and kept until the graph is
//! written.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::*;
use crate::graph::{AdjacentLookup, Filter, FilterKey, Found, Want};
use crate::lowering;
use crate::value::{Direction, Vertex};

/// Frontiers are asked for in pieces of this size, so that their neighbours stay few enough to hold.
const FRONTIER_MAX: usize = 1024;

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(match adjacent(builder, call)? {
        Some(op) => Box::new(op),
        None => Each::filter(Parts::default(), |_, _, _| Ok(false)),
    })
}

/// None when no edge can have such a label.
fn adjacent(builder: &Builder<'_>, call: &Call<'_>) -> Result<Option<Adjacent>> {
    let (direction, edges, labels) = match (call.name, call.args) {
        ("out", labels) => (Direction::Out, false, labels),
        ("in", labels) => (Direction::In, false, labels),
        ("both", labels) => (Direction::Both, false, labels),
        ("outE", labels) => (Direction::Out, true, labels),
        ("inE", labels) => (Direction::In, true, labels),
        ("bothE", labels) => (Direction::Both, true, labels),
        ("to", [Value::Direction(direction), labels @ ..]) => (*direction, false, labels),
        ("toE", [Value::Direction(direction), labels @ ..]) => (*direction, true, labels),
        _ => return Err(call.wrong()),
    };
    let mut edge_labels = Vec::new();
    for label in labels {
        match label {
            Value::String(label) => edge_labels.push(label.clone()),
            Value::Null => {}
            _ => return Err(call.wrong()),
        }
    }
    if edge_labels.is_empty() && !labels.is_empty() {
        return Ok(None);
    }
    let mut lookup = AdjacentLookup {
        direction,
        edge_labels,
        edge_filters: Vec::new(),
        want: Want::Edges,
        limit_per_source: None,
    };
    if edges {
        lookup.edge_filters = call.filters.clone();
    } else if call.filters.is_empty() {
        lookup.want = Want::Vertices;
    } else {
        let found = lowering::lookup(None, &call.filters, None, None);
        let mut filters = found.filters;
        if let Some(ids) = found.ids {
            let ids = ids.into_iter().map(|id| id.id).collect();
            filters.push(Filter { key: FilterKey::Id, predicate: Some(crate::predicate::P::Within(ids)) });
        }
        lookup.want = Want::LoadedVertices { labels: found.labels, filters };
    }
    if call.filters.is_empty() && !builder.writes {
        lookup.limit_per_source = call.limit;
    }
    Ok(Some(Adjacent {
        lookup,
        filters: call.filters.clone(),
        known: HashMap::default(),
        generation: 0,
        held: None,
    }))
}

/// A hop and the count() after it: how many neighbours there are, without looking at one.
pub(crate) fn degrees(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let lookup = adjacent(builder, call)?.map(|op| op.lookup);
    Ok(Box::new(Degrees { lookup, done: false }))
}

struct Degrees {
    /// None when no edge can have such a label.
    lookup: Option<AdjacentLookup>,
    done: bool,
}

impl Op for Degrees {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let mut total = 0u64;
        loop {
            let batch = up.next(cx, FRONTIER_MAX)?;
            if batch.is_empty() {
                break;
            }
            let mut places: HashMap<(Value, Value), usize, RandomState> = HashMap::default();
            let (mut frontier, mut bulks) = (Vec::new(), Vec::new());
            for traverser in &batch {
                let vertex = vertex_of(&traverser.value)?;
                let bulk = if cx.one_bulk { 1 } else { traverser.bulk };
                let place = *places.entry(key(vertex)).or_insert_with(|| {
                    frontier.push(vertex.clone());
                    bulks.push(0u64);
                    bulks.len() - 1
                });
                bulks[place] = bulks[place].saturating_add(bulk);
            }
            if let Some(lookup) = &self.lookup {
                for (degree, bulk) in cx.graph.degrees(&frontier, lookup)?.into_iter().zip(bulks) {
                    total = total.saturating_add(degree.saturating_mul(bulk));
                }
            }
        }
        let total = Value::Long(i64::try_from(total).unwrap_or(i64::MAX));
        Ok(vec![super::reduce::reduced(cx, total)])
    }

    fn reset(&mut self) {
        self.done = false;
    }
}

struct Adjacent {
    lookup: AdjacentLookup,
    filters: Vec<Filter>,
    known: HashMap<(Value, Value), Arc<Vec<Value>>, RandomState>,
    generation: u64,
    held: Option<orrery_budget::Held>,
}

fn key(vertex: &Vertex) -> (Value, Value) {
    (vertex.id.clone(), vertex.partition.clone())
}

fn vertex_of(value: &Value) -> Result<&Arc<Vertex>> {
    match value {
        Value::Vertex(vertex) => Ok(vertex),
        other => Err(Error::runtime(format!(
            "{} cannot be cast to org.apache.tinkerpop.gremlin.structure.Vertex",
            crate::text::type_name(other)
        ))),
    }
}

impl Adjacent {
    /// Charges what was found and is not handed on yet.
    fn hold(&mut self, cx: &Cx<'_>, found: usize) -> Result<()> {
        const BYTES_EACH: usize = 200;
        match &mut self.held {
            Some(held) => held.resize(found * BYTES_EACH)?,
            None => self.held = Some(cx.options.budget.hold(found * BYTES_EACH)?),
        }
        Ok(())
    }

    /// Asks for the neighbours of those vertices that are not known yet.
    fn fetch<'v>(&mut self, cx: &mut Cx<'_>, values: impl Iterator<Item = &'v Value>) -> Result<()> {
        if self.generation != cx.generation {
            self.known.clear();
            self.generation = cx.generation;
        }
        let mut frontier: Vec<Arc<Vertex>> = Vec::new();
        for value in values {
            let vertex = vertex_of(value)?;
            if let std::collections::hash_map::Entry::Vacant(entry) = self.known.entry(key(vertex)) {
                entry.insert(Arc::new(Vec::new()));
                frontier.push(vertex.clone());
            }
        }
        for piece in frontier.chunks(FRONTIER_MAX) {
            let mut found: Vec<Vec<Value>> = vec![Vec::new(); piece.len()];
            let mut cursor = None;
            loop {
                let page = cx.graph.adjacent(piece, &self.lookup, cursor)?;
                for adjacent in page.items {
                    let value = match adjacent.found {
                        Found::Edge(edge) => Value::Edge(edge),
                        Found::Vertex(vertex) => Value::Vertex(vertex),
                    };
                    found[adjacent.source as usize].push(value);
                }
                cx.options.budget.check()?;
                self.hold(cx, found.iter().map(Vec::len).sum())?;
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            for (vertex, found) in piece.iter().zip(found) {
                let mut kept = Vec::with_capacity(found.len());
                for value in found {
                    if lowering::all_hold(cx, &value, &self.filters)? {
                        kept.push(value);
                    }
                }
                self.known.insert(key(vertex), Arc::new(kept));
            }
        }
        Ok(())
    }
}

impl Op for Adjacent {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        loop {
            let batch = up.next(cx, want)?;
            if batch.is_empty() {
                return Ok(batch);
            }
            let batch = merge_alike(cx, batch);
            let kept = self.known.len();
            self.fetch(cx, batch.iter().map(|traverser| &traverser.value))?;
            let mut out = Vec::new();
            for traverser in &batch {
                let Value::Vertex(vertex) = &traverser.value else { continue };
                if let Some(found) = self.known.get(&key(vertex)) {
                    out.extend(found.iter().map(|value| traverser.step(value.clone(), cx.mode)));
                }
            }
            // What was prefetched stays; what this batch added would only grow.
            if kept == 0 || self.known.len() > 4 * FRONTIER_MAX {
                self.known.clear();
            }
            if !out.is_empty() {
                return Ok(merge_alike(cx, out));
            }
        }
    }

    fn prefetch(&mut self, cx: &mut Cx<'_>, values: &[Value]) -> Result<Option<Vec<Value>>> {
        self.known.clear();
        if !values.iter().all(|value| matches!(value, Value::Vertex(_))) {
            return Ok(None);
        }
        self.fetch(cx, values.iter())?;
        Ok(Some(self.known.values().flat_map(|found| found.iter().cloned()).collect()))
    }
}

/// outV(), inV(), bothV(), toV(): the ends of an edge.
pub(crate) fn build_ends(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let direction = match (call.name, call.args) {
        ("outV", []) => Direction::Out,
        ("inV", []) => Direction::In,
        ("bothV", []) => Direction::Both,
        ("toV", [Value::Direction(direction)]) => *direction,
        _ => return Err(call.wrong()),
    };
    Ok(Each::flat_map(Parts::default(), move |_, _, traverser| {
        let edge = edge_of(&traverser.value)?;
        let (out, into) = (Value::Vertex(edge.out_v.clone()), Value::Vertex(edge.in_v.clone()));
        Ok(match direction {
            Direction::Out => vec![out],
            Direction::In => vec![into],
            Direction::Both => vec![out, into],
        })
    }))
}

fn edge_of(value: &Value) -> Result<&crate::value::Edge> {
    match value {
        Value::Edge(edge) => Ok(edge),
        other => Err(Error::runtime(format!(
            "{} cannot be cast to org.apache.tinkerpop.gremlin.structure.Edge",
            crate::text::type_name(other)
        ))),
    }
}

/// The end that the walk did not come from.
pub(crate) fn build_other(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Each::map(Parts::default(), |_, _, traverser| {
        let edge = edge_of(&traverser.value)?;
        let mut node = traverser.path.as_deref();
        while let Some(place) = node {
            if let Value::Vertex(vertex) = &place.value {
                if **vertex == *edge.out_v {
                    return Ok(Some(Value::Vertex(edge.in_v.clone())));
                }
                if **vertex == *edge.in_v {
                    return Ok(Some(Value::Vertex(edge.out_v.clone())));
                }
            }
            node = place.previous.as_deref();
        }
        Ok(None)
    }))
}
