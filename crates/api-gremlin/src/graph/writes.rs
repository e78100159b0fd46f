//! Changing elements: each is one item, and each change one write.
//!
//! An element is changed from the version that the traversal has seen. If another one has come in between, the write
//! is refused with 412, as the service does; what the traversal wrote before stays.

use std::sync::Arc;

use bytes::Bytes;
use orrery_engine::{Item, Kind, Operation, Write, WriteReply, block_on};
use orrery_gremlin::graph::{EdgeChange, NewEdge, NewProperty, NewVertex, VertexChange};
use orrery_gremlin::value::{Cardinality, Edge, Property, Vertex, VertexProperty};
use orrery_gremlin::{Error, Result, Value};
use orrery_model::{DocWriter, PartitionKey, Raw};

use super::document::{
    DEFAULT_LABEL, EDGE_ID, ID, IS_EDGE, LABEL, SINK, SINK_LABEL, SINK_PARTITION, SOURCE, SOURCE_LABEL,
    System, TTL, can_store, displaced_id, is_edge, is_reserved, write_properties, write_value,
};
use super::reads::place;
use super::{ContainerGraph, failed};
use crate::errors::Failure;

/// Deletes that are under way at one time.
const DELETES_MAX: usize = 256;

fn no_partition_key() -> Error {
    Error::runtime("Cannot add a vertex where the partition key property has value 'null'.")
}

fn check_name(name: &str) -> Result<()> {
    match is_reserved(name) || name.is_empty() {
        true => Err(Error::runtime(format!("The property name '{name}' is reserved and cannot be used."))),
        false => Ok(()),
    }
}

fn check_value(name: &str, value: &Value) -> Result<()> {
    match can_store(value) {
        true => Ok(()),
        false => Err(Error::runtime(format!(
            "The value of property '{name}' cannot be stored. Allowed are texts, finite numbers, booleans, dates, UUIDs, and \
             lists of these."
        ))),
    }
}

impl ContainerGraph {
    fn new_id(&self, id: Option<Value>, kind: &str) -> Result<String> {
        match id {
            None | Some(Value::Null) => Ok(self.new_uuid()),
            Some(Value::String(id)) => Ok(id.to_string()),
            Some(Value::Uuid(id)) => Ok(uuid::Uuid::from_u128(id).hyphenated().to_string()),
            Some(_) => Err(Error::runtime(format!("{kind}'s ID must be a string"))),
        }
    }

    /// Writes an item and waits until it is durable.
    fn write(&mut self, key: &PartitionKey, write: Write) -> Result<WriteReply> {
        self.budget.check()?;
        if self.limits.permits_key(key).is_err() {
            return Err(failed(Failure::forbidden()));
        }
        let id = write.operation.id().to_owned();
        match block_on(self.container.write_item(key, write)) {
            Ok(reply) => {
                self.spent.add(reply.charge_ru);
                match &reply.item {
                    Some(item) => self.saw(key, &id, &item.etag.to_string()),
                    None => self.forget(key, &id),
                }
                Ok(reply)
            }
            Err(error) => {
                self.spent.add(error.charge_ru);
                Err(failed(error))
            }
        }
    }

    fn forget(&mut self, key: &PartitionKey, id: &str) {
        if let Some(seen) = &mut self.seen {
            seen.remove(&place(key, id));
        }
    }

    fn vertex_of(&self, item: Option<&Item>) -> Result<Arc<Vertex>> {
        let vertex = item.and_then(|item| {
            let etag = item.etag.to_string();
            self.form().vertex(item.body(), System { etag: Some(&etag), ts: Some(item.ts) })
        });
        vertex.map(Arc::new).ok_or_else(|| failed(Failure::defect()))
    }

    fn edge_of(&self, item: Option<&Item>) -> Result<Arc<Edge>> {
        let edge = item.and_then(|item| {
            let etag = item.etag.to_string();
            self.form().edge(item.body(), System { etag: Some(&etag), ts: Some(item.ts) })
        });
        edge.map(Arc::new).ok_or_else(|| failed(Failure::defect()))
    }

    pub(super) fn create_vertex(&mut self, new: NewVertex) -> Result<Arc<Vertex>> {
        let id = self.new_id(new.id, "Vertex")?;
        let label = new.label.unwrap_or_else(|| DEFAULT_LABEL.into());
        let mut state = VertexState { partition_key: self.partition_key.clone(), ..VertexState::default() };
        for property in new.properties {
            let random = self.new_uuid();
            state.set(&property, random, true)?;
        }
        let partition = match (&self.partition_key, &state.partition) {
            (None, _) => Value::Null,
            (Some(_), Some(value)) => value.clone(),
            (Some(_), None) => return Err(no_partition_key()),
        };
        let key = self.key(&partition).ok_or_else(no_partition_key)?;
        let document = state.document(&id, &label, None);
        let reply = self.write(&key, Write::new(Operation::Create { id, document }))?;
        self.vertex_of(reply.item.as_ref())
    }

    pub(super) fn create_edge(&mut self, new: NewEdge) -> Result<Arc<Edge>> {
        let id = self.new_id(new.id, "Edge")?;
        let out_v = self.placed(&new.out_v)?;
        let in_v = self.placed(&new.in_v)?;
        let key = self.key(&out_v.partition).ok_or_else(no_partition_key)?;
        let mut properties: Vec<(Arc<str>, Value)> = Vec::new();
        for (name, value) in new.properties {
            self.check_edge_property(&name, &value)?;
            properties.retain(|(known, _)| *known != name);
            if !value.is_null() {
                properties.push((name, value));
            }
        }
        let edge = NewEdgeItem {
            label: &new.label,
            partition_key: self.partition_key.as_deref(),
            out_v: &out_v,
            in_v: &in_v,
            properties: &properties,
        };
        let own = Write::new(Operation::Create { id: id.clone(), document: edge.document(&id, None) });
        let displaced = displaced_id(&id);
        let document = edge.document(&displaced, Some(&id));
        let reply = match self.write(&key, own) {
            Err(error) if is_conflict(&error) && self.is_vertex(&key, &id)? => {
                self.displaced.insert(place(&key, &id));
                self.write(&key, Write::new(Operation::Create { id: displaced, document }))?
            }
            written => written?,
        };
        self.edge_of(reply.item.as_ref())
    }

    fn is_vertex(&mut self, key: &PartitionKey, id: &str) -> Result<bool> {
        Ok(self.item(key, id)?.is_some_and(|item| !is_edge(item.body())))
    }

    fn check_edge_property(&self, name: &str, value: &Value) -> Result<()> {
        check_name(name)?;
        if self.partition_key.as_deref() == Some(name) {
            return Err(Error::runtime(format!(
                "The property '{name}' is the partition key, which an edge has from the vertex that it leaves."
            )));
        }
        if value.is_null() { Ok(()) } else { check_value(name, value) }
    }

    /// A vertex with its partition, which a reference that a client sent does not say.
    fn placed(&mut self, vertex: &Arc<Vertex>) -> Result<Arc<Vertex>> {
        if self.key(&vertex.partition).is_some() {
            return Ok(vertex.clone());
        }
        let found = self.read_vertices(std::slice::from_ref(vertex))?.into_iter().next().flatten();
        found.ok_or_else(|| failed(orrery_engine::Error::not_found()))
    }

    /// The present version of an element that is to be changed: that which the traversal has seen.
    fn present(&mut self, key: &PartitionKey, id: &str) -> Result<Item> {
        let seen = self.seen.as_ref().and_then(|seen| seen.get(&place(key, id)).cloned());
        let Some(item) = self.item(key, id)? else { return Err(failed(orrery_engine::Error::not_found())) };
        match seen {
            Some(etag) if etag != item.etag.to_string() => {
                Err(failed(orrery_engine::Error::precondition_failed()))
            }
            _ => Ok(item),
        }
    }

    pub(super) fn rewrite_vertex(
        &mut self,
        vertex: &Arc<Vertex>,
        changes: &[VertexChange],
    ) -> Result<Arc<Vertex>> {
        let vertex = self.placed(vertex)?;
        let key = self.key(&vertex.partition).ok_or_else(no_partition_key)?;
        let id = vertex.id.as_str().unwrap_or_default().to_owned();
        let item = self.present(&key, &id)?;
        let present = self.vertex_of(Some(&item))?;
        let mut state = VertexState::of(&present, self.partition_key.clone(), &self.system_properties);
        for change in changes {
            match change {
                VertexChange::Set(property) => {
                    let random = self.new_uuid();
                    state.set(property, random, false)?;
                }
                VertexChange::Drop(property) => state.drop(property)?,
                VertexChange::SetMeta(property, name, value) => {
                    state.set_meta(property, name, Some(value))?
                }
                VertexChange::DropMeta(property, name) => state.set_meta(property, name, None)?,
            }
        }
        let document = state.document(&id, &present.label, Some(item.body()));
        let write = Write::new(Operation::Replace { id, document }).if_match(item.etag.to_string());
        let reply = self.write(&key, write)?;
        self.vertex_of(reply.item.as_ref())
    }

    pub(super) fn rewrite_edge(&mut self, edge: &Arc<Edge>, changes: &[EdgeChange]) -> Result<Arc<Edge>> {
        let edge = match self.key(&edge.out_v.partition) {
            Some(_) => edge.clone(),
            None => {
                let found = self.read_edges(std::slice::from_ref(edge))?.into_iter().next().flatten();
                found.ok_or_else(|| failed(orrery_engine::Error::not_found()))?
            }
        };
        let key = self.key(&edge.out_v.partition).ok_or_else(no_partition_key)?;
        // It was read before, and so it is known which id its item has.
        let own_id = edge.id.as_str().unwrap_or_default();
        let id = self.edge_item_id(&key, own_id);
        let item = self.present(&key, &id)?;
        if !is_edge(item.body()) {
            return Err(failed(orrery_engine::Error::not_found()));
        }
        let mut set: Vec<(Arc<str>, Option<Value>)> = Vec::new();
        for change in changes {
            let (name, value) = match change {
                EdgeChange::Set(name, value) => (name, Some(value.clone()).filter(|value| !value.is_null())),
                EdgeChange::Drop(name) => (name, None),
            };
            self.check_edge_property(name, value.as_ref().unwrap_or(&Value::Null))?;
            set.retain(|(known, _)| known != name);
            set.push((name.clone(), value));
        }
        let mut writer = DocWriter::keeping_widths(item.document.len() + 64);
        writer.begin_object();
        for (name, member) in item.body().members() {
            if !set.iter().any(|(changed, _)| **changed == *name) {
                writer.key(name);
                writer.raw(member);
            }
        }
        for (name, value) in &set {
            if let Some(value) = value {
                writer.key(name);
                write_value(&mut writer, value);
            }
        }
        writer.end_object();
        let document = Bytes::from(writer.finish());
        let write = Write::new(Operation::Replace { id, document }).if_match(item.etag.to_string());
        let reply = self.write(&key, write)?;
        self.edge_of(reply.item.as_ref())
    }

    pub(super) fn remove_vertices(&mut self, vertices: &[Arc<Vertex>]) -> Result<()> {
        let mut placed = Vec::with_capacity(vertices.len());
        for vertex in vertices {
            match self.key(&vertex.partition) {
                Some(_) => placed.push(vertex.clone()),
                None => {
                    placed.extend(self.read_vertices(std::slice::from_ref(vertex))?.into_iter().flatten())
                }
            }
        }
        // Edges first: one that leads nowhere would be worse than a vertex that has lost some.
        let edges = self.touching(&placed)?;
        self.remove_edges(&edges)?;
        let items = placed
            .iter()
            .filter_map(|vertex| Some((self.key(&vertex.partition)?, vertex.id.as_str()?.to_owned())));
        let items: Vec<_> = items.collect();
        self.delete(&items)
    }

    pub(super) fn remove_edges(&mut self, edges: &[Arc<Edge>]) -> Result<()> {
        let mut items = Vec::with_capacity(edges.len());
        for edge in edges {
            let edge = match self.key(&edge.out_v.partition) {
                Some(_) => Some(edge.clone()),
                None => self.read_edges(std::slice::from_ref(edge))?.into_iter().next().flatten(),
            };
            let Some(edge) = edge else { continue };
            if let (Some(key), Some(id)) = (self.key(&edge.out_v.partition), edge.id.as_str()) {
                let id = self.edge_item_id(&key, id);
                items.push((key, id));
            }
        }
        self.delete(&items)
    }

    /// Deletes items, many at a time. Those that are gone already are no error.
    fn delete(&mut self, items: &[(PartitionKey, String)]) -> Result<()> {
        for some in items.chunks(DELETES_MAX) {
            self.budget.check()?;
            if some.iter().any(|(key, _)| self.limits.permits_key(key).is_err()) {
                return Err(failed(Failure::forbidden()));
            }
            let begun: Vec<_> = some
                .iter()
                .map(|(key, id)| {
                    self.container.write_item(key, Write::new(Operation::Delete { id: id.clone() }))
                })
                .collect();
            let mut refused = None;
            for (written, (key, id)) in begun.into_iter().zip(some) {
                match block_on(written) {
                    Ok(reply) => self.spent.add(reply.charge_ru),
                    Err(error) if error.kind == Kind::NotFound => self.spent.add(error.charge_ru),
                    Err(error) => {
                        self.spent.add(error.charge_ru);
                        refused = refused.or(Some(error));
                    }
                }
                self.forget(key, id);
            }
            if let Some(error) = refused {
                return Err(failed(error));
            }
        }
        Ok(())
    }
}

fn is_conflict(error: &Error) -> bool {
    error
        .storage_error()
        .and_then(|error| error.downcast_ref::<Failure>())
        .is_some_and(|failure| failure.status == 409)
}

/// A new edge on its way into a document.
struct NewEdgeItem<'e> {
    label: &'e str,
    partition_key: Option<&'e str>,
    out_v: &'e Vertex,
    in_v: &'e Vertex,
    properties: &'e [(Arc<str>, Value)],
}

impl NewEdgeItem<'_> {
    fn document(&self, id: &str, edge_id: Option<&str>) -> Bytes {
        let mut writer = DocWriter::keeping_widths(256);
        writer.begin_object();
        for (name, held) in [(ID, Some(id)), (EDGE_ID, edge_id), (LABEL, Some(self.label))] {
            if let Some(held) = held {
                writer.key(name);
                writer.string(held);
            }
        }
        writer.key(IS_EDGE);
        writer.bool(true);
        if let Some(name) = self.partition_key {
            writer.key(name);
            write_value(&mut writer, &self.out_v.partition);
        }
        for (id_name, label_name, vertex) in
            [(SOURCE, SOURCE_LABEL, self.out_v), (SINK, SINK_LABEL, self.in_v)]
        {
            writer.key(id_name);
            write_value(&mut writer, &vertex.id);
            writer.key(label_name);
            writer.string(&vertex.label);
        }
        if self.partition_key.is_some() {
            writer.key(SINK_PARTITION);
            write_value(&mut writer, &self.in_v.partition);
        }
        for (name, value) in self.properties {
            writer.key(name);
            write_value(&mut writer, value);
        }
        writer.end_object();
        Bytes::from(writer.finish())
    }
}

/// The properties of a vertex on their way into a document.
#[derive(Default)]
struct VertexState {
    partition_key: Option<Arc<str>>,
    partition: Option<Value>,
    ttl: Option<Value>,
    properties: Vec<Arc<VertexProperty>>,
}

impl VertexState {
    fn of(vertex: &Vertex, partition_key: Option<Arc<str>>, system: &[Arc<str>]) -> VertexState {
        let mut state = VertexState { partition_key, ..VertexState::default() };
        state.partition = Some(vertex.partition.clone()).filter(|value| !value.is_null());
        for property in vertex.properties().into_iter().flat_map(|properties| properties.iter()) {
            let key = &property.key;
            let flat = state.partition_key.as_ref() == Some(key);
            if **key == *TTL {
                state.ttl = Some(property.value.clone());
            } else if !flat && !system.contains(key) {
                state.properties.push(property.clone());
            }
        }
        state
    }

    fn set(&mut self, new: &NewProperty, id: String, creates: bool) -> Result<()> {
        let NewProperty { cardinality, key, value, meta } = new;
        if self.partition_key.as_ref() == Some(key) {
            if value.is_null() {
                return Err(no_partition_key());
            }
            if !creates && self.partition.as_ref() != Some(value) {
                return Err(Error::runtime(format!(
                    "The property '{key}' is the partition key of the graph, which cannot be changed."
                )));
            }
            if !matches!(value, Value::String(_) | Value::Bool(_)) && !value.is_number() {
                return Err(Error::runtime(format!(
                    "The property '{key}' is the partition key of the graph: a text, a number or a boolean."
                )));
            }
            self.partition = Some(value.clone());
            return Ok(());
        }
        check_name(key)?;
        if **key == *TTL {
            // Only whole numbers have the effect, and nothing else is stored under the name.
            let seconds = value.as_i64().and_then(|seconds| i32::try_from(seconds).ok());
            if !value.is_null() && seconds.is_none_or(|seconds| seconds == 0 || seconds < -1) {
                return Err(Error::runtime("The property 'ttl' is a number of seconds, or -1."));
            }
            self.ttl = seconds.map(Value::Int);
            return Ok(());
        }
        // A key that is given several times when a vertex is made has all those values; later it has the last.
        let single = match cardinality {
            Some(Cardinality::List | Cardinality::Set) => false,
            Some(Cardinality::Single) => true,
            None => !creates,
        };
        if single || value.is_null() {
            self.properties.retain(|known| known.key != *key);
        }
        if value.is_null() {
            return Ok(());
        }
        check_value(key, value)?;
        let mut kept = Vec::with_capacity(meta.len());
        for (name, value) in meta {
            if !value.is_null() {
                check_value(name, value)?;
                kept.push(Arc::new(Property { key: name.clone(), value: value.clone() }));
            }
        }
        let twin = self.properties.iter().position(|known| known.key == *key && known.value == *value);
        match twin.filter(|_| *cardinality == Some(Cardinality::Set)) {
            // A set keeps the value that it has, with what is now said about it.
            Some(at) => {
                let known = &self.properties[at];
                let others =
                    known.meta.iter().filter(|one| !kept.iter().any(|new| new.key == one.key)).cloned();
                let meta = others.chain(kept.iter().cloned()).collect();
                self.properties[at] = Arc::new(VertexProperty {
                    id: known.id.clone(),
                    key: key.clone(),
                    value: value.clone(),
                    meta,
                });
            }
            None => self.properties.push(Arc::new(VertexProperty {
                id: Value::string(id),
                key: key.clone(),
                value: value.clone(),
                meta: kept,
            })),
        }
        Ok(())
    }

    fn drop(&mut self, property: &VertexProperty) -> Result<()> {
        if self.partition_key.as_ref() == Some(&property.key) {
            return Err(Error::runtime(format!(
                "The property '{}' is the partition key of the graph, which cannot be dropped.",
                property.key
            )));
        }
        if *property.key == *TTL {
            self.ttl = None;
        }
        self.properties.retain(|known| **known != *property);
        Ok(())
    }

    fn set_meta(&mut self, property: &VertexProperty, name: &Arc<str>, value: Option<&Value>) -> Result<()> {
        let value = value.filter(|value| !value.is_null());
        if let Some(value) = value {
            check_value(name, value)?;
        }
        for known in self.properties.iter_mut().filter(|known| ***known == *property) {
            let others = known.meta.iter().filter(|one| one.key != *name).cloned();
            let new = value.map(|value| Arc::new(Property { key: name.clone(), value: value.clone() }));
            *known = Arc::new(VertexProperty {
                id: known.id.clone(),
                key: known.key.clone(),
                value: known.value.clone(),
                meta: others.chain(new).collect(),
            });
        }
        Ok(())
    }

    /// The document, with those members of the present one that are none of the graph's.
    fn document(&self, id: &str, label: &str, present: Option<Raw<'_>>) -> Bytes {
        let mut writer = DocWriter::keeping_widths(256);
        writer.begin_object();
        for (name, held) in [(ID, id), (LABEL, label)] {
            writer.key(name);
            writer.string(held);
        }
        if let (Some(name), Some(value)) = (&self.partition_key, &self.partition) {
            writer.key(name);
            write_value(&mut writer, value);
        }
        for (name, properties) in crate::graphson::by_key(&self.properties) {
            writer.key(name);
            write_properties(&mut writer, properties);
        }
        if let Some(ttl) = &self.ttl {
            writer.key(TTL);
            write_value(&mut writer, ttl);
        }
        for (name, member) in present.into_iter().flat_map(Raw::members) {
            let own =
                name == ID || name == LABEL || name == TTL || self.partition_key.as_deref() == Some(name);
            let of_graph = member.kind() == orrery_model::Kind::Array
                && (!is_reserved(name)
                    && (member.is_empty()
                        || member.elements().all(|element| element.get("_value").is_some())));
            if !own && !of_graph {
                writer.key(name);
                writer.raw(member);
            }
        }
        writer.end_object();
        Bytes::from(writer.finish())
    }
}
