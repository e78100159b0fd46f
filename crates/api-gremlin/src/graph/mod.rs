//! A graph in a container: vertices and edges are items in the form that Cosmos DB gives them.
//!
//! ```text
//! vertices, edges, adjacent ── reads ── statement (syntax tree of SQL, compiled) ── engine's merge over partitions
//!                                └───── items by key and id
//! add, change, drop ────────── writes ── document ── items, bound to the version that the traversal has seen
//! ```
//!
//! - An edge lies in the logical partition of the vertex that it leaves: edges out of a frontier are asked for where
//!   its vertices lie, by the index on `_vertexId`; edges into one by the index on `_sink`, wherever they are.
//! - A frontier is asked for at once: one query for each partition, not one for each vertex (`adjacency`).
//! - What was read and not written since is not read again (`cache`).
//! - What a traversal has read of an element is what it changes: a write that another one has overtaken is refused.

mod adjacency;
pub mod cache;
mod counts;
mod document;
pub mod host;
mod ids;
mod item_form;
mod reads;
mod statement;
#[cfg(test)]
mod tests;
mod writes;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use orrery_budget::Budget;
use orrery_engine::access::Limits;
use orrery_engine::{Container, Env, RequestClass};
use orrery_gremlin::graph::{
    Adjacent, AdjacentLookup, Cursor, EdgeChange, FilterKey, Graph, Lookup, NewEdge, NewVertex, Page,
    StoreOp, VertexChange,
};
use orrery_gremlin::value::{Edge, Vertex, VertexProperty};
use orrery_gremlin::{Error, Result, Value};
use orrery_model::{KeyComponent, PartitionKey};

use crate::errors::Failure;
use cache::{GraphCache, Kept};

/// What a request has spent so far, for whoever writes its answer meanwhile.
#[derive(Debug, Default)]
pub struct Spent(AtomicU64);

impl Spent {
    pub fn add(&self, charge_ru: f64) {
        // One thread adds, others look.
        self.0.store((self.charge_ru() + charge_ru).to_bits(), Relaxed);
    }

    pub fn charge_ru(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

/// The graph that one traversal sees.
pub struct ContainerGraph {
    container: Arc<Container>,
    env: Arc<dyn Env>,
    /// The member that is the partition key; none for containers without one.
    partition_key: Option<Arc<str>>,
    /// What the caller may reach.
    limits: Limits,
    budget: Budget,
    spent: Arc<Spent>,
    /// Versions that the traversal has seen, if it writes.
    seen: Option<HashMap<(String, String), String>>,
    /// Edges among what was read whose items have other ids.
    displaced: HashSet<(String, String)>,
    system_properties: Vec<Arc<str>>,
    store_ops: Vec<StoreOp>,
    cache: Arc<GraphCache>,
}

/// What was answered from memory, by partition: how much there was of it and what it costs.
#[derive(Default)]
struct KeptCharges(Vec<(u32, u64, f64)>);

impl ContainerGraph {
    pub fn new(
        container: Arc<Container>,
        env: Arc<dyn Env>,
        limits: Limits,
        budget: Budget,
        spent: Arc<Spent>,
        cache: Arc<GraphCache>,
        writes: bool,
    ) -> std::result::Result<ContainerGraph, Failure> {
        let partition_key = partition_key(&container)?;
        Ok(ContainerGraph {
            container,
            env,
            partition_key,
            limits,
            budget,
            spent,
            seen: writes.then(HashMap::new),
            displaced: HashSet::new(),
            system_properties: Vec::new(),
            store_ops: Vec::new(),
            cache,
        })
    }

    /// Whether what was read may be kept and used again: what a traversal changes it sees as it is, with its version;
    /// and some callers see a part of the graph.
    fn may_keep(&self) -> bool {
        self.seen.is_none() && self.system_properties.is_empty() && self.limits.key().is_none()
    }

    /// Lets the request in at a partition that something kept is of, as reading it would.
    fn use_kept(&self, spent: &mut KeptCharges, kept: &Kept) -> Result<()> {
        let range = kept.fresh.range_id;
        let place = match spent.0.iter().position(|(known, ..)| *known == range) {
            Some(place) => place,
            None => {
                self.container.admit_page(range, RequestClass::default()).map_err(failed)?;
                spent.0.push((range, 0, 0.0));
                spent.0.len() - 1
            }
        };
        let (_, count, charge_ru) = &mut spent.0[place];
        *count += 1;
        *charge_ru += kept.charge_ru;
        Ok(())
    }

    fn charge_kept(&mut self, spent: KeptCharges) {
        let began = std::time::Instant::now();
        for (range, count, charge_ru) in spent.0 {
            self.container.charge_page(range, RequestClass::default(), charge_ru, None);
            self.spent.add(charge_ru);
            self.did(1, count as usize, 0, began);
        }
    }

    /// The key of a logical partition by the value of its property.
    fn key(&self, partition: &Value) -> Option<PartitionKey> {
        if self.partition_key.is_none() {
            return Some(PartitionKey::default());
        }
        let component = match partition {
            Value::String(text) => KeyComponent::String(text.to_string()),
            Value::Bool(value) => KeyComponent::Bool(*value),
            number if number.is_number() => KeyComponent::Number(number.as_f64()?),
            _ => return None,
        };
        Some([component].into())
    }

    fn new_uuid(&self) -> String {
        ids::next(self.env.now_ms(), self.env.random_u64()).hyphenated().to_string()
    }

    fn did(&mut self, fanout: usize, count: usize, size_bytes: usize, began: std::time::Instant) {
        /// Of one profile; what is beyond is added to the last.
        const STORE_OPS_MAX: usize = 256;
        let op = StoreOp {
            fanout: fanout as u64,
            count: count as u64,
            size_bytes: size_bytes as u64,
            time_ms: began.elapsed().as_secs_f64() * 1e3,
        };
        let full = self.store_ops.len() == STORE_OPS_MAX;
        match self.store_ops.last_mut().filter(|_| full) {
            Some(last) => {
                last.count += op.count;
                last.size_bytes += op.size_bytes;
                last.time_ms += op.time_ms;
            }
            None => self.store_ops.push(op),
        }
    }
}

/// The name of the property that is the partition key.
fn partition_key(container: &Container) -> std::result::Result<Option<Arc<str>>, Failure> {
    let definition = container.definition();
    let key = &definition.partition_key;
    if key.system_key {
        return Ok(None);
    }
    match key.paths.as_slice() {
        [path] => match path.segments() {
            [name] if name != "id" && name != document::LABEL => Ok(Some(Arc::from(name.as_str()))),
            _ => Err(Failure::runtime(
                "The partition key of a graph is one property of its vertices: a path such as /pk, and neither /id \
                 nor /label nor one with several segments.",
            )),
        },
        _ => Err(Failure::runtime(
            "The partition key of a graph is one property of its vertices; this container has several.",
        )),
    }
}

/// A failure on its way through the evaluator.
fn failed(failure: impl Into<Failure>) -> Error {
    Error::storage(failure.into())
}

impl Graph for ContainerGraph {
    fn partition_key(&self) -> Option<&str> {
        self.partition_key.as_deref()
    }

    fn vertices(&mut self, lookup: &Lookup, from: Option<Cursor>) -> Result<Page<Arc<Vertex>>> {
        self.find_vertices(lookup, from)
    }

    fn edges(&mut self, lookup: &Lookup, from: Option<Cursor>) -> Result<Page<Arc<Edge>>> {
        self.find_edges(lookup, from)
    }

    fn count(&mut self, edges: bool, lookup: &Lookup) -> Result<Option<u64>> {
        self.count_elements(edges, lookup)
    }

    fn group_counts(
        &mut self,
        edges: bool,
        lookup: &Lookup,
        key: &FilterKey,
    ) -> Result<Option<Vec<(Value, u64)>>> {
        self.count_groups(edges, lookup, key)
    }

    fn adjacent(
        &mut self,
        frontier: &[Arc<Vertex>],
        lookup: &AdjacentLookup,
        from: Option<Cursor>,
    ) -> Result<Page<Adjacent>> {
        self.find_adjacent(frontier, lookup, from)
    }

    fn load_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<Vec<Option<Arc<[Arc<VertexProperty>]>>>> {
        let found = self.read_vertices(vertices)?;
        Ok(found.into_iter().map(|vertex| vertex.and_then(|vertex| vertex.properties().cloned())).collect())
    }

    fn load_edges(&mut self, edges: &[Arc<Edge>]) -> Result<Vec<Option<Arc<Edge>>>> {
        self.read_edges(edges)
    }

    fn add_vertex(&mut self, new: NewVertex) -> Result<Arc<Vertex>> {
        self.create_vertex(new)
    }

    fn add_edge(&mut self, new: NewEdge) -> Result<Arc<Edge>> {
        self.create_edge(new)
    }

    fn change_vertex(&mut self, vertex: &Arc<Vertex>, changes: &[VertexChange]) -> Result<Arc<Vertex>> {
        self.rewrite_vertex(vertex, changes)
    }

    fn change_edge(&mut self, edge: &Arc<Edge>, changes: &[EdgeChange]) -> Result<Arc<Edge>> {
        self.rewrite_edge(edge, changes)
    }

    fn drop_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<()> {
        self.remove_vertices(vertices)
    }

    fn drop_edges(&mut self, edges: &[Arc<Edge>]) -> Result<()> {
        self.remove_edges(edges)
    }

    fn show_system_properties(&mut self, names: &[Arc<str>]) {
        self.system_properties = names.to_vec();
    }

    fn take_store_ops(&mut self) -> Vec<StoreOp> {
        std::mem::take(&mut self.store_ops)
    }
}
