//! Vertices, edges and properties as traversers carry them.
//!
//! A vertex reached over an edge is known by reference (id, label, partition key) before its document was read: its
//! properties are [filled in](Vertex::fill) when a step or the result needs them, for a whole batch at once. Elements
//! are never changed in place; after a write the evaluator remembers the new state and shows it wherever the element
//! turns up again.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use crate::value::Value;

/// A vertex, perhaps without its properties yet.
#[derive(Debug)]
pub struct Vertex {
    pub id: Value,
    pub label: Arc<str>,
    /// The value of the partition key; null in graphs without one.
    pub partition: Value,
    properties: OnceLock<Arc<[Arc<VertexProperty>]>>,
}

impl Vertex {
    /// A vertex that is known but not read.
    pub fn reference(id: Value, label: impl Into<Arc<str>>, partition: Value) -> Vertex {
        Vertex { id, label: label.into(), partition, properties: OnceLock::new() }
    }

    pub fn loaded(
        id: Value,
        label: impl Into<Arc<str>>,
        partition: Value,
        properties: Vec<Arc<VertexProperty>>,
    ) -> Vertex {
        let vertex = Vertex::reference(id, label, partition);
        vertex.fill(properties.into());
        vertex
    }

    /// The properties, if they were read.
    pub fn properties(&self) -> Option<&Arc<[Arc<VertexProperty>]>> {
        self.properties.get()
    }

    /// Gives a reference its properties; a vertex that has them keeps what it has.
    pub fn fill(&self, properties: Arc<[Arc<VertexProperty>]>) {
        let _ = self.properties.set(properties);
    }
}

impl PartialEq for Vertex {
    fn eq(&self, other: &Vertex) -> bool {
        self.id == other.id && self.partition == other.partition
    }
}

impl Eq for Vertex {}

impl Hash for Vertex {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// A property of a vertex: one of several with the same key, and with properties of its own.
#[derive(Debug)]
pub struct VertexProperty {
    pub id: Value,
    pub key: Arc<str>,
    pub value: Value,
    pub meta: Vec<Arc<Property>>,
}

impl PartialEq for VertexProperty {
    fn eq(&self, other: &VertexProperty) -> bool {
        self.id == other.id && self.key == other.key
    }
}

impl Eq for VertexProperty {}

/// A property of an edge or of a vertex property: a key and a value.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Property {
    pub key: Arc<str>,
    pub value: Value,
}

/// Whose property it is.
#[derive(Clone, Debug, Default)]
pub enum Owner {
    #[default]
    Unknown,
    Edge(Arc<Edge>),
    VertexProperty(Arc<VertexProperty>, Option<Arc<Vertex>>),
}

/// An edge with both its ends. Its document lies in the partition of the vertex that it leaves.
#[derive(Debug)]
pub struct Edge {
    pub id: Value,
    pub label: Arc<str>,
    pub out_v: Arc<Vertex>,
    pub in_v: Arc<Vertex>,
    properties: OnceLock<Arc<[Arc<Property>]>>,
}

impl Edge {
    /// An edge that is known (from a binding, say) but not read.
    pub fn reference(id: Value, label: impl Into<Arc<str>>, out_v: Arc<Vertex>, in_v: Arc<Vertex>) -> Edge {
        Edge { id, label: label.into(), out_v, in_v, properties: OnceLock::new() }
    }

    pub fn loaded(
        id: Value,
        label: impl Into<Arc<str>>,
        out_v: Arc<Vertex>,
        in_v: Arc<Vertex>,
        properties: Vec<Arc<Property>>,
    ) -> Edge {
        let edge = Edge::reference(id, label, out_v, in_v);
        edge.fill(properties.into());
        edge
    }

    pub fn properties(&self) -> Option<&Arc<[Arc<Property>]>> {
        self.properties.get()
    }

    pub fn fill(&self, properties: Arc<[Arc<Property>]>) {
        let _ = self.properties.set(properties);
    }
}

impl PartialEq for Edge {
    fn eq(&self, other: &Edge) -> bool {
        self.id == other.id && self.out_v.partition == other.out_v.partition
    }
}

impl Eq for Edge {}

impl Hash for Edge {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}
