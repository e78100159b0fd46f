//! A graph in memory: for tests, comparisons and whoever wants the language without a store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexMap;

use crate::element::{Edge, Property, Vertex, VertexProperty};
use crate::error::{Error, Result};
use crate::graph::{
    Adjacent, AdjacentLookup, Cursor, EdgeChange, ElementId, Found, Graph, Lookup, NewEdge, NewProperty,
    NewVertex, Page, VertexChange, Want,
};
use crate::value::{Cardinality, Direction, Value};

type Key = (Value, Value);

/// Vertices and edges in the order in which they were added. Ids are numbers unless others are given.
#[derive(Default)]
pub struct MemoryGraph {
    partition_key: Option<String>,
    vertices: IndexMap<Key, Arc<Vertex>>,
    edges: IndexMap<Key, Arc<Edge>>,
    out_edges: HashMap<Key, Vec<Key>>,
    in_edges: HashMap<Key, Vec<Key>>,
    next_id: i64,
    given_ids: HashSet<i64>,
    /// How often it was asked, for tests of batching.
    pub requests: usize,
}

fn vertex_key(vertex: &Vertex) -> Key {
    (vertex.id.clone(), vertex.partition.clone())
}

fn edge_key(edge: &Edge) -> Key {
    (edge.id.clone(), edge.out_v.partition.clone())
}

impl MemoryGraph {
    pub fn new() -> MemoryGraph {
        MemoryGraph::default()
    }

    /// Vertices must have that property; ids are unique for each of its values.
    pub fn with_partition_key(name: &str) -> MemoryGraph {
        MemoryGraph { partition_key: Some(name.to_owned()), ..MemoryGraph::default() }
    }

    /// A number that no element has as its id.
    fn fresh_id(&mut self) -> Value {
        loop {
            let id = Value::Long(self.next_id);
            self.next_id += 1;
            if !self.given_ids.contains(&self.next_id.wrapping_sub(1)) {
                return id;
            }
        }
    }

    fn given_id(&mut self, id: &Value) {
        self.given_ids.extend(id.as_i64());
    }

    fn matching<T>(ids: &Option<Vec<ElementId>>, all: &IndexMap<Key, Arc<T>>) -> Vec<Arc<T>> {
        match ids {
            None => all.values().cloned().collect(),
            Some(ids) => {
                let mut found = Vec::new();
                for wanted in ids {
                    found.extend(all.iter().filter_map(|((id, partition), element)| {
                        let same = crate::compare::equal(id, &wanted.id)
                            && wanted.partition.as_ref().is_none_or(|p| crate::compare::equal(p, partition));
                        same.then(|| element.clone())
                    }));
                }
                found
            }
        }
    }

    fn set(properties: &mut Vec<Arc<VertexProperty>>, new: &NewProperty, id: Value) {
        let meta: Vec<Arc<Property>> = new
            .meta
            .iter()
            .map(|(key, value)| Arc::new(Property { key: key.clone(), value: value.clone() }))
            .collect();
        match new.cardinality.unwrap_or(Cardinality::Single) {
            Cardinality::Single => properties.retain(|property| property.key != new.key),
            Cardinality::List => {}
            Cardinality::Set => {
                let same = properties.iter_mut().find(|property| {
                    property.key == new.key && crate::compare::equal(&property.value, &new.value)
                });
                if let Some(same) = same {
                    if !meta.is_empty() {
                        let (id, key, value) = (same.id.clone(), same.key.clone(), same.value.clone());
                        *same = Arc::new(VertexProperty { id, key, value, meta });
                    }
                    return;
                }
            }
        }
        properties.push(Arc::new(VertexProperty {
            id,
            key: new.key.clone(),
            value: new.value.clone(),
            meta,
        }));
    }
}

impl Graph for MemoryGraph {
    fn partition_key(&self) -> Option<&str> {
        self.partition_key.as_deref()
    }

    fn vertices(&mut self, lookup: &Lookup, _from: Option<Cursor>) -> Result<Page<Arc<Vertex>>> {
        self.requests += 1;
        let mut found = MemoryGraph::matching(&lookup.ids, &self.vertices);
        if let Some(labels) = &lookup.labels {
            found.retain(|vertex| labels.contains(&vertex.label));
        }
        if let Some(partitions) = &lookup.partitions {
            found.retain(|vertex| partitions.iter().any(|p| crate::compare::equal(p, &vertex.partition)));
        }
        Ok(Page::last(found))
    }

    fn edges(&mut self, lookup: &Lookup, _from: Option<Cursor>) -> Result<Page<Arc<Edge>>> {
        self.requests += 1;
        let mut found = MemoryGraph::matching(&lookup.ids, &self.edges);
        if let Some(labels) = &lookup.labels {
            found.retain(|edge| labels.contains(&edge.label));
        }
        Ok(Page::last(found))
    }

    fn adjacent(
        &mut self,
        frontier: &[Arc<Vertex>],
        lookup: &AdjacentLookup,
        _from: Option<Cursor>,
    ) -> Result<Page<Adjacent>> {
        self.requests += 1;
        let mut items = Vec::new();
        for (source, vertex) in frontier.iter().enumerate() {
            let key = vertex_key(vertex);
            let mut count = 0;
            for (direction, index) in [(Direction::Out, &self.out_edges), (Direction::In, &self.in_edges)] {
                if lookup.direction != direction && lookup.direction != Direction::Both {
                    continue;
                }
                for edge in index.get(&key).into_iter().flatten() {
                    let Some(edge) = self.edges.get(edge) else { continue };
                    if !lookup.edge_labels.is_empty() && !lookup.edge_labels.contains(&edge.label) {
                        continue;
                    }
                    if lookup.limit_per_source.is_some_and(|limit| count >= limit) {
                        break;
                    }
                    count += 1;
                    let found = match lookup.want {
                        Want::Edges => Found::Edge(edge.clone()),
                        _ => {
                            let end = if direction == Direction::Out { &edge.in_v } else { &edge.out_v };
                            Found::Vertex(self.vertices.get(&vertex_key(end)).unwrap_or(end).clone())
                        }
                    };
                    items.push(Adjacent { source: source as u32, found });
                }
            }
        }
        Ok(Page::last(items))
    }

    fn load_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<Vec<Option<Arc<[Arc<VertexProperty>]>>>> {
        self.requests += 1;
        let read = |vertex: &Arc<Vertex>| {
            self.vertices.get(&vertex_key(vertex)).and_then(|own| own.properties().cloned())
        };
        Ok(vertices.iter().map(read).collect())
    }

    fn load_edges(&mut self, edges: &[Arc<Edge>]) -> Result<Vec<Option<Arc<Edge>>>> {
        self.requests += 1;
        Ok(edges.iter().map(|edge| self.edges.get(&edge_key(edge)).cloned()).collect())
    }

    fn add_vertex(&mut self, new: NewVertex) -> Result<Arc<Vertex>> {
        let partition = match &self.partition_key {
            None => Value::Null,
            Some(name) => {
                let own = new.properties.iter().rev().find(|property| *property.key == **name);
                own.map(|property| property.value.clone()).filter(|value| !value.is_null()).ok_or_else(
                    || {
                        Error::runtime(
                            "Cannot add a vertex where the partition key property has value 'null'.",
                        )
                    },
                )?
            }
        };
        let id = match new.id {
            Some(id) => {
                self.given_id(&id);
                id
            }
            None => self.fresh_id(),
        };
        let key = (id.clone(), partition.clone());
        if self.vertices.contains_key(&key) {
            let text = format!("Vertex with id already exists: {}", crate::text::text_of(&id));
            return Err(Error::runtime(text));
        }
        let mut properties = Vec::new();
        for property in &new.properties {
            let id = self.fresh_id();
            MemoryGraph::set(&mut properties, property, id);
        }
        let label = new.label.unwrap_or_else(|| Arc::from("vertex"));
        let vertex = Arc::new(Vertex::loaded(id, label, partition, properties));
        self.vertices.insert(key, vertex.clone());
        Ok(vertex)
    }

    fn add_edge(&mut self, new: NewEdge) -> Result<Arc<Edge>> {
        let id = match new.id {
            Some(id) => {
                self.given_id(&id);
                id
            }
            None => self.fresh_id(),
        };
        let reference =
            |v: &Arc<Vertex>| Arc::new(Vertex::reference(v.id.clone(), v.label.clone(), v.partition.clone()));
        let mut properties: Vec<Arc<Property>> = Vec::new();
        for (key, value) in new.properties {
            properties.retain(|property| property.key != key);
            properties.push(Arc::new(Property { key, value }));
        }
        let edge = Edge::loaded(id, new.label, reference(&new.out_v), reference(&new.in_v), properties);
        let edge = Arc::new(edge);
        let key = edge_key(&edge);
        if self.edges.contains_key(&key) {
            let text = format!("Edge with id already exists: {}", crate::text::text_of(&edge.id));
            return Err(Error::runtime(text));
        }
        self.out_edges.entry(vertex_key(&edge.out_v)).or_default().push(key.clone());
        self.in_edges.entry(vertex_key(&edge.in_v)).or_default().push(key.clone());
        self.edges.insert(key, edge.clone());
        Ok(edge)
    }

    fn change_vertex(&mut self, vertex: &Arc<Vertex>, changes: &[VertexChange]) -> Result<Arc<Vertex>> {
        let key = vertex_key(vertex);
        let Some(current) = self.vertices.get(&key).cloned() else {
            return Err(Error::runtime("The vertex does not exist any more."));
        };
        let mut properties = current.properties().map(|all| all.to_vec()).unwrap_or_default();
        for change in changes {
            match change {
                VertexChange::Set(new) => {
                    if self.partition_key.as_deref() == Some(&*new.key)
                        && !crate::compare::equal(&new.value, &current.partition)
                    {
                        return Err(Error::runtime("The partition key of a vertex cannot be changed."));
                    }
                    let id = self.fresh_id();
                    MemoryGraph::set(&mut properties, new, id);
                }
                VertexChange::Drop(property) => properties.retain(|own| **own != **property),
                VertexChange::SetMeta(property, ..) | VertexChange::DropMeta(property, _) => {
                    for own in properties.iter_mut().filter(|own| ***own == **property) {
                        let mut meta = own.meta.clone();
                        match change {
                            VertexChange::SetMeta(_, key, value) => {
                                meta.retain(|property| property.key != *key);
                                meta.push(Arc::new(Property { key: key.clone(), value: value.clone() }));
                            }
                            VertexChange::DropMeta(_, key) => meta.retain(|property| property.key != *key),
                            _ => {}
                        }
                        let (id, key, value) = (own.id.clone(), own.key.clone(), own.value.clone());
                        *own = Arc::new(VertexProperty { id, key, value, meta });
                    }
                }
            }
        }
        let changed = Arc::new(Vertex::loaded(
            current.id.clone(),
            current.label.clone(),
            current.partition.clone(),
            properties,
        ));
        self.vertices.insert(key, changed.clone());
        Ok(changed)
    }

    fn change_edge(&mut self, edge: &Arc<Edge>, changes: &[EdgeChange]) -> Result<Arc<Edge>> {
        let key = edge_key(edge);
        let Some(current) = self.edges.get(&key).cloned() else {
            return Err(Error::runtime("The edge does not exist any more."));
        };
        let mut properties = current.properties().map(|all| all.to_vec()).unwrap_or_default();
        for change in changes {
            match change {
                EdgeChange::Set(key, value) => {
                    properties.retain(|property| property.key != *key);
                    properties.push(Arc::new(Property { key: key.clone(), value: value.clone() }));
                }
                EdgeChange::Drop(key) => properties.retain(|property| property.key != *key),
            }
        }
        let changed = Edge::loaded(
            current.id.clone(),
            current.label.clone(),
            current.out_v.clone(),
            current.in_v.clone(),
            properties,
        );
        let changed = Arc::new(changed);
        self.edges.insert(key, changed.clone());
        Ok(changed)
    }

    fn drop_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<()> {
        for vertex in vertices {
            let key = vertex_key(vertex);
            self.vertices.shift_remove(&key);
            let edges: Vec<Key> = [&mut self.out_edges, &mut self.in_edges]
                .into_iter()
                .flat_map(|index| index.remove(&key).unwrap_or_default())
                .collect();
            for edge in edges {
                self.edges.shift_remove(&edge);
            }
        }
        Ok(())
    }

    fn drop_edges(&mut self, edges: &[Arc<Edge>]) -> Result<()> {
        for edge in edges {
            let key = edge_key(edge);
            self.edges.shift_remove(&key);
            for (index, vertex) in [(&mut self.out_edges, &edge.out_v), (&mut self.in_edges, &edge.in_v)] {
                if let Some(list) = index.get_mut(&vertex_key(vertex)) {
                    list.retain(|known| *known != key);
                }
            }
        }
        Ok(())
    }
}
