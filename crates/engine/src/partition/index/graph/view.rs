//! Graphs as queries see them.

use std::collections::HashSet;

use bytes::Bytes;
use orrery_index::{Metric, prefix_end};
use orrery_storage::{Direction, Table, keys};

use super::super::entries::{Entries, Entry, Shape};
use super::super::view::{PartitionView, VectorPath};
use super::{GONE, Graph, decode_node, words};
use crate::error::{Error, Result};
use crate::partition::Span;
use crate::partition::rows::damaged;

/// The part of all vectors up to which those that the graph has not looked at are asked for one by one, to count all.
const COUNTED_PART: u64 = 8;

/// A graph in the snapshot of a view.
pub struct GraphPath {
    path: u16,
    graph: Graph,
}

impl GraphPath {
    /// Nodes at which searches begin.
    pub fn entries(&self) -> Vec<u32> {
        self.graph.beginnings()
    }

    /// How many vectors are linked.
    pub fn nodes(&self) -> u64 {
        u64::from(self.graph.nodes)
    }
}

/// What a touched row says about the vector of its item.
pub enum TouchedVector<'e> {
    /// Its code. It may be an old one, when the item is touched again further behind.
    Code(&'e [u8]),
    /// There is one, and only the item tells what it is.
    Unknown,
    Gone,
}

impl<'e> TouchedVector<'e> {
    pub fn of(entry: &'e Entry) -> TouchedVector<'e> {
        match entry.payload() {
            [] => TouchedVector::Unknown,
            payload if payload == GONE => TouchedVector::Gone,
            code => TouchedVector::Code(code),
        }
    }
}

impl PartitionView {
    /// The graph over the vectors of a path by a metric, where there is one.
    pub fn graph(&self, vectors: &VectorPath, metric: Metric) -> Result<Option<GraphPath>> {
        let Some(path) = vectors.path().filter(|_| vectors.is_graph) else { return Ok(None) };
        let Some(row) = self.snapshot().get(Table::Index, &keys::index::graph(path))? else {
            return Ok(None);
        };
        let graph = Graph::decode(&row).filter(|graph| !graph.dropping && graph.metric == metric as u8);
        Ok(graph.map(|graph| GraphPath { path, graph }))
    }

    /// Vectors that the graph does not know, or not as they are: first those without a code, then those that were
    /// written since it was last worked on.
    pub fn touched_entries(&self, graph: &GraphPath, span: &Span) -> [Entries<'_>; 2] {
        let first = keys::index::touched(graph.path, 1, &[]);
        let mut head = Vec::with_capacity(keys::index::HEAD_BYTES);
        keys::index::push_touched_head(&mut head, graph.path);
        let end = prefix_end(&head);
        let after = graph.graph.touched_to.as_ref().map(|tail| [&head[..], tail].concat());
        let entries = |bounds: (&[u8], &[u8]), after: Option<&[u8]>| {
            Entries::new(self, &[], bounds, false, Shape::Fixed(8), span, Direction::Forward, after)
        };
        [entries((&head, &first), None), entries((&first, &end), after.as_deref())]
    }

    /// Codes that the graph has not come to yet.
    pub fn unlinked_entries(
        &self,
        graph: &GraphPath,
        vectors: &VectorPath,
        span: &Span,
    ) -> Option<Entries<'_>> {
        let after = graph.graph.codes_to.as_ref()?;
        Some(self.vector_entries_after(vectors, span, Some(after)))
    }

    /// How many vectors there are, as far as the graph tells without looking at each: not while it is begun, and not
    /// when much was written since it was last worked on.
    pub(in super::super) fn graph_vectors(&self, vectors: &VectorPath) -> Result<Option<u64>> {
        let Some(path) = vectors.path().filter(|_| vectors.is_graph) else { return Ok(None) };
        let Some(row) = self.snapshot().get(Table::Index, &keys::index::graph(path))? else {
            return Ok(None);
        };
        let graph = Graph::decode(&row).filter(|graph| !graph.dropping && graph.codes_to.is_none());
        let Some(graph) = graph.map(|graph| GraphPath { path, graph }) else { return Ok(None) };
        let looks_max = graph.nodes() / COUNTED_PART;
        let [mut odd, mut touched] = self.touched_entries(&graph, &Span::All);
        let mut count = graph.nodes();
        let mut looks = 0;
        while odd.next_entry()?.is_some() {
            (count, looks) = (count + 1, looks + 1);
        }
        let mut waiting: HashSet<Bytes> = HashSet::new();
        while let Some(entry) = touched.next_entry()? {
            looks += 1;
            if looks > looks_max {
                return Ok(None);
            }
            waiting.insert(entry.reference_bytes());
        }
        for reference in waiting {
            let has =
                |key: Bytes| Ok::<u64, Error>(u64::from(self.snapshot().get(Table::Index, &key)?.is_some()));
            let mut code = Vec::with_capacity(keys::index::HEAD_BYTES + reference.len());
            keys::index::push_code_head(&mut code, path);
            code.extend_from_slice(&reference);
            // What the graph knew of it is not what there is.
            count = (count + has(code.into())?).saturating_sub(has(keys::index::node_of(path, &reference))?);
        }
        Ok(Some(count))
    }

    /// The item of a node, and its code; `None` when the node is gone.
    pub fn node(&self, graph: &GraphPath, node: u32) -> Result<Option<(Bytes, Bytes)>> {
        match self.snapshot().get(Table::Index, &keys::index::node(graph.path, node))? {
            Some(row) => Ok(Some(decode_node(&row).ok_or_else(|| damaged("node"))?)),
            None => Ok(None),
        }
    }

    /// The links of a node, none when it is gone.
    pub fn node_links(&self, graph: &GraphPath, node: u32) -> Result<Vec<u32>> {
        match self.snapshot().get(Table::Index, &keys::index::links(graph.path, node))? {
            Some(row) => words(&row).ok_or_else(|| damaged("links")),
            None => Ok(Vec::new()),
        }
    }
}
