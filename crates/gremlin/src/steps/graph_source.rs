//! `V()` and `E()`, at the beginning and in the middle.

use std::collections::VecDeque;

use super::*;
use crate::compare::items;
use crate::graph::{Cursor, ElementId, Filter, Lookup};
use crate::lowering;
use crate::traverser::Traverser;

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Box::new(source(builder, call)?))
}

/// `V()` or `E()` and the count() after it: how many there are, without looking at one.
pub(crate) fn counted(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Box::new(Counted { source: source(builder, call)?, done: false }))
}

fn source(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<GraphSource> {
    let edges = call.name == "E";
    let partition_key = builder.partition_key.clone();
    let ids = if call.args.is_empty() { None } else { Some(ids(call.args, partition_key.is_some())?) };
    let lookup = lowering::lookup(ids, &call.filters, partition_key.as_deref(), call.limit);
    // A list of two that came from outside: if it is no pair, it may be two ids.
    let two_ids = match call.args {
        [Value::List(pair)] if !call.literal && partition_key.is_some() && pair.len() == 2 => {
            let ids = Some(self::ids(pair, false)?);
            Some(lowering::lookup(ids, &call.filters, partition_key.as_deref(), call.limit))
        }
        _ => None,
    };
    Ok(GraphSource {
        edges,
        lookup,
        two_ids,
        filters: call.filters.clone(),
        drains: builder.writes,
        starts: VecDeque::new(),
        current: None,
        cursor: None,
        opened: false,
        queue: VecDeque::new(),
    })
}

/// Ids alone, elements, lists of them and, where there is a partition key, pairs `[partition key, id]`.
fn ids(args: &[Value], partitioned: bool) -> Result<Vec<ElementId>> {
    let mut ids = Vec::new();
    for arg in args {
        match arg {
            Value::List(pair) if partitioned && pair.len() == 2 && !pair.iter().any(is_element) => {
                ids.push(ElementId { partition: Some(pair[0].clone()), id: pair[1].clone() });
            }
            Value::List(_) | Value::Set(_) | Value::BulkSet(_) => ids.extend(items(arg).iter().map(id_of)),
            other => ids.push(id_of(other)),
        }
    }
    // Null is nobody's id.
    ids.retain(|id| !id.id.is_null());
    Ok(ids)
}

fn is_element(value: &Value) -> bool {
    matches!(value, Value::Vertex(_) | Value::Edge(_))
}

fn id_of(value: &Value) -> ElementId {
    match value {
        Value::Vertex(vertex) => ElementId {
            partition: Some(vertex.partition.clone()).filter(|p| !p.is_null()),
            id: vertex.id.clone(),
        },
        Value::Edge(edge) => ElementId {
            partition: Some(edge.out_v.partition.clone()).filter(|p| !p.is_null()),
            id: edge.id.clone(),
        },
        other => ElementId { partition: None, id: other.clone() },
    }
}

struct GraphSource {
    edges: bool,
    lookup: Lookup,
    /// What to look for where nothing was found.
    two_ids: Option<Lookup>,
    filters: Vec<Filter>,
    /// Reads to the end before anything is handed on, because what follows writes.
    drains: bool,
    /// Those that wait for their turn.
    starts: VecDeque<Traverser>,
    current: Option<Traverser>,
    cursor: Option<Cursor>,
    opened: bool,
    queue: VecDeque<Value>,
}

impl GraphSource {
    fn page(&mut self, cx: &mut Cx<'_>) -> Result<bool> {
        if self.opened && self.cursor.is_none() {
            return Ok(false);
        }
        let first = !std::mem::replace(&mut self.opened, true);
        let cursor = self.cursor.take();
        let found = self.found(cx, cursor)?;
        let found = match &self.two_ids {
            Some(two_ids) if first && found.is_empty() && self.cursor.is_none() => {
                self.lookup = two_ids.clone();
                self.two_ids = None;
                self.found(cx, None)?
            }
            _ => found,
        };
        for value in found {
            if lowering::all_hold(cx, &value, &self.filters)? {
                self.queue.push_back(value);
            }
        }
        Ok(true)
    }

    fn found(&mut self, cx: &mut Cx<'_>, cursor: Option<Cursor>) -> Result<Vec<Value>> {
        Ok(if self.edges {
            let page = cx.graph.edges(&self.lookup, cursor)?;
            self.cursor = page.next;
            page.items.into_iter().map(Value::Edge).collect()
        } else {
            let page = cx.graph.vertices(&self.lookup, cursor)?;
            self.cursor = page.next;
            page.items.into_iter().map(Value::Vertex).collect()
        })
    }
}

impl Op for GraphSource {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        loop {
            if self.current.is_none() {
                if self.starts.is_empty() {
                    self.starts.extend(up.next(cx, 1)?);
                }
                let Some(start) = self.starts.pop_front() else { return Ok(Vec::new()) };
                self.current = Some(start);
                self.opened = false;
                self.cursor = None;
                if self.drains {
                    while self.page(cx)? {}
                }
            }
            while self.queue.is_empty() && self.page(cx)? {}
            if let Some(current) = self.current.as_ref()
                && !self.queue.is_empty()
            {
                let count = self.queue.len().min(want);
                let mode = cx.mode;
                return Ok(self.queue.drain(..count).map(|value| current.step(value, mode)).collect());
            }
            self.current = None;
        }
    }

    fn reset(&mut self) {
        self.starts.clear();
        self.current = None;
        self.cursor = None;
        self.queue.clear();
    }
}

/// All that a source finds, as a number.
struct Counted {
    source: GraphSource,
    done: bool,
}

impl Counted {
    fn count(&mut self, cx: &mut Cx<'_>) -> Result<u64> {
        let GraphSource { edges, lookup, .. } = &self.source;
        // What is named by id is looked at.
        if lookup.ids.is_none()
            && let Some(count) = cx.graph.count(*edges, lookup)?
        {
            return Ok(count);
        }
        (self.source.opened, self.source.cursor) = (false, None);
        let mut count = 0;
        while self.source.page(cx)? {
            count += self.source.queue.len() as u64;
            self.source.queue.clear();
        }
        Ok(count)
    }
}

impl Op for Counted {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let mut total = 0u64;
        loop {
            let batch = up.next(cx, 1)?;
            if batch.is_empty() {
                break;
            }
            for start in batch {
                let bulk = if cx.one_bulk { 1 } else { start.bulk };
                total = total.saturating_add(self.count(cx)?.saturating_mul(bulk));
            }
        }
        let total = Value::Long(i64::try_from(total).unwrap_or(i64::MAX));
        Ok(vec![super::reduce::reduced(cx, total)])
    }

    fn reset(&mut self) {
        self.source.reset();
        self.done = false;
    }
}
