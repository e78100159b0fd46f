//! The seam to a graph: what the evaluator asks of whoever keeps vertices and edges.
//!
//! Everything is asked for many at once. The evaluator gathers a frontier and asks for the adjacency of all of it,
//! for the properties of all of it; it hands over ids, labels, partition keys, filters, orders and limits together,
//! so that the implementation can answer from an index and route to the partitions that are named. Calls are
//! synchronous and may block.
//!
//! What was handed over is checked again by the evaluator, so an implementation may use as much of a lookup as its
//! index can and answer with more than was asked for, never with less.

use std::any::Any;
use std::sync::Arc;

use crate::error::Result;
use crate::predicate::P;
use crate::value::{Cardinality, Direction, Edge, Order, Property, Value, Vertex, VertexProperty};

/// All properties of one vertex.
pub type Properties = Arc<[Arc<VertexProperty>]>;

/// Where a page ended, for the implementation alone.
pub type Cursor = Box<dyn Any + Send>;

/// Some of the answer, and where to go on; no cursor means that this was the last.
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<Cursor>,
}

impl<T> Page<T> {
    pub fn last(items: Vec<T>) -> Page<T> {
        Page { items, next: None }
    }
}

/// An id as `V()` and `E()` take it: alone, or as the pair `[partition key, id]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementId {
    /// For an edge that of its source.
    pub partition: Option<Value>,
    pub id: Value,
}

/// What a filter looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterKey {
    Id,
    Label,
    /// Of a vertex: any of the values under that key. Holds for the partition key's name too.
    Property(Arc<str>),
}

/// One has(): all of a lookup's must hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    pub key: FilterKey,
    /// None: the key must exist.
    pub predicate: Option<P>,
}

/// Which vertices, or which edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lookup {
    /// None: all of them. An empty list: none of them.
    pub ids: Option<Vec<ElementId>>,
    /// Only elements of these labels; none: any label.
    pub labels: Option<Vec<Arc<str>>>,
    /// Only these values of the partition key, taken from filters and strategies; none: all partitions.
    pub partitions: Option<Vec<Value>>,
    /// All must hold. Those that gave `labels` and `partitions` are not repeated here.
    pub filters: Vec<Filter>,
    /// Only when the graph said [`Graph::can_order`] for this lookup.
    pub order: Vec<(Arc<str>, Order)>,
    /// That many elements *that match* are enough.
    pub limit: Option<u64>,
    /// Whether properties will be read. Without them a reference is enough.
    pub properties: bool,
}

/// Which neighbours, the same for every vertex of a frontier.
#[derive(Clone, Debug, PartialEq)]
pub struct AdjacentLookup {
    pub direction: Direction,
    /// Empty: all labels.
    pub edge_labels: Vec<Arc<str>>,
    /// On the edges.
    pub edge_filters: Vec<Filter>,
    pub want: Want,
    /// That many per vertex of the frontier are enough, after the filters.
    pub limit_per_source: Option<u64>,
}

/// What is to be found at the end of the hop.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// The edges.
    Edges,
    /// The vertices at the other end; references are enough.
    Vertices,
    /// The vertices, read, and only those for which the filters hold.
    LoadedVertices { labels: Option<Vec<Arc<str>>>, filters: Vec<Filter> },
}

/// One neighbour of a frontier.
pub struct Adjacent {
    /// Index into the frontier.
    pub source: u32,
    pub found: Found,
}

pub enum Found {
    Edge(Arc<Edge>),
    Vertex(Arc<Vertex>),
}

/// A vertex to be created. Without an id it gets one, without a label `vertex`.
#[derive(Debug, Default)]
pub struct NewVertex {
    pub id: Option<Value>,
    pub label: Option<Arc<str>>,
    /// The partition key's among them, as an ordinary one.
    pub properties: Vec<NewProperty>,
}

/// A value for a vertex.
#[derive(Clone, Debug)]
pub struct NewProperty {
    /// None: the graph's default, which is single.
    pub cardinality: Option<Cardinality>,
    pub key: Arc<str>,
    pub value: Value,
    pub meta: Vec<(Arc<str>, Value)>,
}

/// An edge to be created, with the partition of its source.
#[derive(Debug)]
pub struct NewEdge {
    pub id: Option<Value>,
    pub label: Arc<str>,
    pub out_v: Arc<Vertex>,
    pub in_v: Arc<Vertex>,
    pub properties: Vec<(Arc<str>, Value)>,
}

/// A change of a vertex. All changes of one call are one write.
#[derive(Clone, Debug)]
pub enum VertexChange {
    Set(NewProperty),
    Drop(Arc<VertexProperty>),
    SetMeta(Arc<VertexProperty>, Arc<str>, Value),
    DropMeta(Arc<VertexProperty>, Arc<str>),
}

/// A change of an edge. All changes of one call are one write.
#[derive(Clone, Debug)]
pub enum EdgeChange {
    Set(Arc<str>, Value),
    Drop(Arc<str>),
}

/// What one call to the store cost, for `executionProfile()`.
#[derive(Clone, Debug, Default)]
pub struct StoreOp {
    /// How many partitions were asked.
    pub fanout: u64,
    pub count: u64,
    pub size_bytes: u64,
    pub time_ms: f64,
}

/// A graph that traversals read and write.
///
/// Lookups see the writes that the same traversal made before.
pub trait Graph {
    /// The name of the property that is the partition key; none for fixed graphs.
    fn partition_key(&self) -> Option<&str>;

    /// Whether `vertices` answers this lookup in its `order`, over all partitions.
    fn can_order(&self, _lookup: &Lookup) -> bool {
        false
    }

    fn vertices(&mut self, lookup: &Lookup, from: Option<Cursor>) -> Result<Page<Arc<Vertex>>>;

    fn edges(&mut self, lookup: &Lookup, from: Option<Cursor>) -> Result<Page<Arc<Edge>>>;

    /// How many vertices, or edges, a lookup without ids finds; `None` where they have to be shown for that. The
    /// filters must hold exactly: nobody checks again.
    fn count(&mut self, _edges: bool, _lookup: &Lookup) -> Result<Option<u64>> {
        Ok(None)
    }

    /// The same for each value under a key; those that have none are in no group.
    fn group_counts(
        &mut self,
        _edges: bool,
        _lookup: &Lookup,
        _key: &FilterKey,
    ) -> Result<Option<Vec<(Value, u64)>>> {
        Ok(None)
    }

    /// The neighbours of a whole frontier, sources in any order, those of one source together or not.
    /// The same vertex may stand in a frontier once only.
    fn adjacent(
        &mut self,
        frontier: &[Arc<Vertex>],
        lookup: &AdjacentLookup,
        from: Option<Cursor>,
    ) -> Result<Page<Adjacent>>;

    /// How many each vertex of the frontier has, when only that is asked.
    fn degrees(&mut self, frontier: &[Arc<Vertex>], lookup: &AdjacentLookup) -> Result<Vec<u64>> {
        let mut degrees = vec![0; frontier.len()];
        let mut cursor = None;
        loop {
            let page = self.adjacent(frontier, lookup, cursor)?;
            for adjacent in &page.items {
                degrees[adjacent.source as usize] += 1;
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(degrees),
            }
        }
    }

    /// The properties of vertices known by reference; none for one that does not exist (any more).
    fn load_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<Vec<Option<Properties>>>;

    /// The edges that references name, with ends and properties; none for one that does not exist.
    fn load_edges(&mut self, edges: &[Arc<Edge>]) -> Result<Vec<Option<Arc<Edge>>>>;

    fn add_vertex(&mut self, new: NewVertex) -> Result<Arc<Vertex>>;

    fn add_edge(&mut self, new: NewEdge) -> Result<Arc<Edge>>;

    /// The vertex as it is after the change.
    fn change_vertex(&mut self, vertex: &Arc<Vertex>, changes: &[VertexChange]) -> Result<Arc<Vertex>>;

    /// The edge as it is after the change.
    fn change_edge(&mut self, edge: &Arc<Edge>, changes: &[EdgeChange]) -> Result<Arc<Edge>>;

    /// With all edges of both directions. What does not exist is no error.
    fn drop_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<()>;

    fn drop_edges(&mut self, edges: &[Arc<Edge>]) -> Result<()>;

    /// The names in `ProjectionStrategy`'s `IncludeSystemProperties`: system fields that shall be properties.
    fn show_system_properties(&mut self, _names: &[Arc<str>]) {}

    /// What the calls since the last one cost.
    fn take_store_ops(&mut self) -> Vec<StoreOp> {
        Vec::new()
    }
}

/// A property of an edge, for implementations.
pub fn edge_property(key: &str, value: Value) -> Arc<Property> {
    Arc::new(Property { key: Arc::from(key), value })
}
