//! What all operators of one execution share: the graph, the options, side effects, what was written.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use super::BATCH_MAX;
use crate::element::{Edge, Property, Vertex, VertexProperty};
use crate::error::Result;
use crate::graph::Graph;
use crate::random::Rng;
use crate::run::Options;
use crate::traverser::PathMode;
use crate::value::{Operator, Pop, Value};

/// `withSack()`: what every walk begins with, and how two become one.
#[derive(Clone)]
pub(crate) struct SackSpec {
    pub initial: Value,
    pub merge: Option<Operator>,
}

pub(crate) struct Cx<'a> {
    pub graph: &'a mut dyn Graph,
    pub options: &'a Options,
    pub mode: PathMode,
    pub side_effects: IndexMap<Arc<str>, Value>,
    pub reducers: HashMap<Arc<str>, Operator>,
    /// Side effects as withSideEffect() gave them.
    pub given: HashMap<Arc<str>, Value>,
    pub rng: Rng,
    /// Of `SeedStrategy`.
    pub seed: Option<u64>,
    pub sack: Option<SackSpec>,
    /// `withBulk(false)`: a merged traverser counts as one.
    pub one_bulk: bool,
    pub bulking: bool,
    pub batch_max: usize,
    pub profiling: bool,
    /// Counts writes: what was read of the graph before is stale after.
    pub generation: u64,
    /// Elements as this traversal left them, by id and partition.
    changed_vertices: HashMap<(Value, Value), Arc<Vertex>>,
    changed_edges: HashMap<(Value, Value), Arc<Edge>>,
}

impl<'a> Cx<'a> {
    pub(crate) fn new(graph: &'a mut dyn Graph, options: &'a Options, mode: PathMode) -> Cx<'a> {
        Cx {
            graph,
            options,
            mode,
            side_effects: IndexMap::new(),
            reducers: HashMap::new(),
            given: HashMap::new(),
            rng: Rng::new(options.seed),
            seed: None,
            sack: None,
            one_bulk: false,
            bulking: true,
            batch_max: BATCH_MAX,
            profiling: false,
            generation: 0,
            changed_vertices: HashMap::new(),
            changed_edges: HashMap::new(),
        }
    }

    /// The chances of one step. With a seed every step begins with the same ones.
    pub(crate) fn chances(&mut self) -> Rng {
        Rng::new(self.seed.unwrap_or_else(|| self.rng.next()))
    }

    pub(crate) fn vertex_changed(&mut self, vertex: &Arc<Vertex>) {
        self.generation += 1;
        self.changed_vertices.insert((vertex.id.clone(), vertex.partition.clone()), vertex.clone());
    }

    pub(crate) fn edge_changed(&mut self, edge: &Arc<Edge>) {
        self.generation += 1;
        self.changed_edges.insert((edge.id.clone(), edge.out_v.partition.clone()), edge.clone());
    }

    /// The vertex as it is now, with its properties.
    pub(crate) fn vertex(&mut self, vertex: &Arc<Vertex>) -> Result<Arc<Vertex>> {
        if !self.changed_vertices.is_empty()
            && let Some(changed) = self.changed_vertices.get(&(vertex.id.clone(), vertex.partition.clone()))
        {
            return Ok(changed.clone());
        }
        if vertex.properties().is_none() {
            let loaded = self.graph.load_vertices(std::slice::from_ref(vertex))?.pop().flatten();
            vertex.fill(loaded.unwrap_or_else(|| Arc::from([])));
        }
        Ok(vertex.clone())
    }

    pub(crate) fn vertex_properties(&mut self, vertex: &Arc<Vertex>) -> Result<Arc<[Arc<VertexProperty>]>> {
        let vertex = self.vertex(vertex)?;
        Ok(vertex.properties().cloned().unwrap_or_else(|| Arc::from([])))
    }

    pub(crate) fn edge(&mut self, edge: &Arc<Edge>) -> Result<Arc<Edge>> {
        if !self.changed_edges.is_empty()
            && let Some(changed) = self.changed_edges.get(&(edge.id.clone(), edge.out_v.partition.clone()))
        {
            return Ok(changed.clone());
        }
        if edge.properties().is_none() {
            let loaded = self.graph.load_edges(std::slice::from_ref(edge))?.pop().flatten();
            let properties = loaded.as_ref().and_then(|edge| edge.properties().cloned());
            edge.fill(properties.unwrap_or_else(|| Arc::from([])));
            return Ok(loaded.unwrap_or_else(|| edge.clone()));
        }
        Ok(edge.clone())
    }

    pub(crate) fn edge_properties(&mut self, edge: &Arc<Edge>) -> Result<Arc<[Arc<Property>]>> {
        let edge = self.edge(edge)?;
        Ok(edge.properties().cloned().unwrap_or_else(|| Arc::from([])))
    }

    /// Reads the properties of all vertices among the values that have none yet, in one request.
    pub(crate) fn load(&mut self, values: &[Value]) -> Result<()> {
        let mut seen: HashSet<_, foldhash::fast::RandomState> = HashSet::default();
        let mut missing = Vec::new();
        for value in values {
            if let Value::Vertex(vertex) = value
                && vertex.properties().is_none()
                && !self.changed_vertices.contains_key(&(vertex.id.clone(), vertex.partition.clone()))
                && seen.insert(Arc::as_ptr(vertex))
            {
                missing.push(vertex.clone());
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let loaded = self.graph.load_vertices(&missing)?;
        for (vertex, properties) in missing.iter().zip(loaded) {
            vertex.fill(properties.unwrap_or_else(|| Arc::from([])));
        }
        Ok(())
    }

    /// What a label means here: a key of the map at hand, a side effect, or a place on the path.
    pub(crate) fn scoped(
        &self,
        traverser: &crate::traverser::Traverser,
        key: &str,
        pop: Pop,
    ) -> Option<Value> {
        if let Value::Map(map) = &traverser.value
            && let Some(value) = map.get(&Value::string(key))
        {
            return Some(value.clone());
        }
        if let Some(value) = self.side_effects.get(key) {
            return Some(value.clone());
        }
        traverser.labelled(key, pop)
    }
}
