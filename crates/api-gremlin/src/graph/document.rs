//! Vertices and edges as items, in the form that Cosmos DB gives them and SQL sees.
//!
//! ```text
//! vertex  {"id":"a","label":"person","pk":"p0",  "name":[{"_value":"A","id":"…"}],  "ttl":60}
//! edge    {"id":"e","label":"knows","_isEdge":true,"pk":"p0","_vertexId":"a","_vertexLabel":"person",
//!          "_sink":"b","_sinkLabel":"person","_sinkPartition":"p1","w":0.5}
//! ```
//!
//! Properties of a vertex are lists of values with ids, those of an edge stand flat, and so do the partition key and
//! `ttl`. Members in another form are none of the graph's: they are not shown, and kept when the element is changed.

use std::sync::Arc;

use num_bigint::BigInt;
use orrery_gremlin::Value;
use orrery_gremlin::value::{DateTime, Decimal, Direction, Edge, Property, Vertex, VertexProperty};
use orrery_model::{DocWriter, Extended, Kind, Number, NumberWidth, Raw};

use super::cache::Far;

pub const ID: &str = "id";
pub const LABEL: &str = "label";
pub const TTL: &str = "ttl";
pub const IS_EDGE: &str = "_isEdge";
pub const SOURCE: &str = "_vertexId";
pub const SOURCE_LABEL: &str = "_vertexLabel";
pub const SINK: &str = "_sink";
pub const SINK_LABEL: &str = "_sinkLabel";
pub const SINK_PARTITION: &str = "_sinkPartition";
pub const VALUE: &str = "_value";
pub const META: &str = "_meta";
/// The id of an edge whose item could not have it.
pub const EDGE_ID: &str = "_edgeId";
pub const ETAG: &str = "_etag";
pub const TS: &str = "_ts";

/// What the service calls a vertex that was given no label.
pub const DEFAULT_LABEL: &str = "vertex";
pub const DEFAULT_EDGE_LABEL: &str = "edge";

/// Names that no property can have, because the form of elements uses them.
const RESERVED: [&str; 16] = [
    ID,
    LABEL,
    IS_EDGE,
    SOURCE,
    SOURCE_LABEL,
    SINK,
    SINK_LABEL,
    SINK_PARTITION,
    VALUE,
    META,
    EDGE_ID,
    ETAG,
    TS,
    "_rid",
    "_self",
    "_attachments",
];

/// The only member of what stands for a set: JSON has lists alone.
const SET: &str = "$set";

/// Subtype of binaries that are UUIDs.
const UUID_SUBTYPE: u8 = 4;

pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// The id of the item of an edge whose own id a vertex of the same partition has: items of both kinds share their
/// ids, edges and vertices of other graph databases do not.
pub fn displaced_id(id: &str) -> String {
    format!("{id}|edge")
}

/// Whether an item is an edge under another id than its own.
pub fn is_displaced(document: Raw<'_>) -> bool {
    document.get(EDGE_ID).is_some()
}

pub fn is_edge(document: Raw<'_>) -> bool {
    document.get(IS_EDGE).and_then(Raw::as_bool) == Some(true)
}

fn text<'d>(document: Raw<'d>, name: &str) -> Option<&'d str> {
    document.get(name).and_then(Raw::as_str)
}

/// How elements are taken out of documents.
pub struct Form<'g> {
    pub partition_key: Option<&'g str>,
    /// System fields that shall be properties.
    pub system: &'g [Arc<str>],
}

/// What an item says besides its document.
#[derive(Clone, Copy, Default)]
pub struct System<'i> {
    pub etag: Option<&'i str>,
    pub ts: Option<u32>,
}

impl Form<'_> {
    fn partition(&self, document: Raw<'_>) -> Value {
        self.partition_key.and_then(|name| document.get(name)).map_or(Value::Null, value)
    }

    /// The vertex that a document is; `None` for edges.
    pub fn vertex(&self, document: Raw<'_>, system: System<'_>) -> Option<Vertex> {
        if document.get(IS_EDGE).is_some() {
            return None;
        }
        let id = text(document, ID)?;
        let label = text(document, LABEL).unwrap_or(DEFAULT_LABEL);
        let mut properties = Vec::new();
        for (name, member) in document.members() {
            let flat = self.partition_key == Some(name) || (name == TTL && member.kind() == Kind::Number);
            if flat {
                properties.push(Arc::new(VertexProperty {
                    id: Value::string(format!("{id}|{name}")),
                    key: name.into(),
                    value: value(member),
                    meta: Vec::new(),
                }));
            } else if member.kind() == Kind::Array && !is_reserved(name) {
                let key: Arc<str> = name.into();
                properties.extend(member.elements().filter_map(|element| vertex_property(&key, element)));
            }
        }
        for name in self.system {
            if let Some(shown) = system.shown(name) {
                let id = Value::string(format!("{id}|{name}"));
                properties.push(Arc::new(VertexProperty {
                    id,
                    key: name.clone(),
                    value: shown,
                    meta: Vec::new(),
                }));
            }
        }
        Some(Vertex::loaded(Value::string(id), label, self.partition(document), properties))
    }

    /// The edge that a document is; `None` for anything else.
    pub fn edge(&self, document: Raw<'_>, system: System<'_>) -> Option<Edge> {
        if !is_edge(document) {
            return None;
        }
        let id = text(document, EDGE_ID).or_else(|| text(document, ID))?;
        let end = |id: &str, label: &str, partition: Value| {
            let label = text(document, label).unwrap_or(DEFAULT_LABEL);
            let id = text(document, id).unwrap_or_default();
            Arc::new(Vertex::reference(Value::string(id), label, partition))
        };
        let sink_partition = document.get(SINK_PARTITION).map_or(Value::Null, value);
        let out_v = end(SOURCE, SOURCE_LABEL, self.partition(document));
        let in_v = end(SINK, SINK_LABEL, sink_partition);
        let own = |name: &str| !is_reserved(name) && self.partition_key != Some(name);
        let mut properties: Vec<Arc<Property>> = document
            .members()
            .filter(|(name, member)| own(name) && member.kind() != Kind::Null)
            .map(|(name, member)| Arc::new(Property { key: name.into(), value: value(member) }))
            .collect();
        for name in self.system {
            let value = match &**name {
                "inVPartition" => Some(in_v.partition.clone()),
                "outVPartition" => Some(out_v.partition.clone()),
                name => system.shown(name),
            };
            properties.extend(value.map(|value| Arc::new(Property { key: name.clone(), value })));
        }
        let label = text(document, LABEL).unwrap_or(DEFAULT_EDGE_LABEL);
        Some(Edge::loaded(Value::string(id), label, out_v, in_v, properties))
    }
}

impl Form<'_> {
    /// Of an edge: the id and the partition of one end, and what is known of the other. `label` is used again where it
    /// fits.
    pub fn ends<'d>(
        &self,
        document: Raw<'d>,
        near: Direction,
        label: &Arc<str>,
    ) -> Option<(&'d str, Value, Far)> {
        if !is_edge(document) {
            return None;
        }
        let (out, into) =
            (text(document, SOURCE).unwrap_or_default(), text(document, SINK).unwrap_or_default());
        let out_partition = self.partition(document);
        let in_partition = document.get(SINK_PARTITION).map_or(Value::Null, value);
        let far = |id: &str, far_label: &str, partition| {
            let far_label = text(document, far_label).unwrap_or(DEFAULT_LABEL);
            let label = if **label == *far_label { label.clone() } else { Arc::from(far_label) };
            Far { id: Value::string(id), label, partition }
        };
        Some(match near {
            Direction::In => (into, in_partition, far(out, SOURCE_LABEL, out_partition)),
            _ => (out, out_partition, far(into, SINK_LABEL, in_partition)),
        })
    }
}

impl System<'_> {
    fn shown(&self, name: &str) -> Option<Value> {
        match name {
            ETAG => self.etag.map(Value::string),
            TS => self.ts.map(|ts| Value::Long(i64::from(ts))),
            _ => None,
        }
    }
}

fn vertex_property(key: &Arc<str>, element: Raw<'_>) -> Option<Arc<VertexProperty>> {
    if element.kind() != Kind::Object {
        return None;
    }
    let held = element.get(VALUE)?;
    let meta = element.get(META).map(|meta| {
        let each =
            |(name, member): (&str, Raw<'_>)| Arc::new(Property { key: name.into(), value: value(member) });
        meta.members().map(each).collect()
    });
    Some(Arc::new(VertexProperty {
        id: element.get(ID).map_or(Value::Null, value),
        key: key.clone(),
        value: value(held),
        meta: meta.unwrap_or_default(),
    }))
}

/// A stored value as one of the language.
pub fn value(raw: Raw<'_>) -> Value {
    match raw.kind() {
        Kind::Bool => raw.as_bool().map_or(Value::Null, Value::Bool),
        Kind::Number => match (raw.as_number(), raw.number_width()) {
            (Some(Number::Int(whole)), Some(NumberWidth::Int64)) => Value::Long(whole),
            (Some(Number::Int(whole)), _) => i32::try_from(whole).map_or(Value::Long(whole), Value::Int),
            (Some(Number::Double(number)), _) => Value::Double(number),
            (Some(Number::UInt(whole)), _) => Value::BigInt(Arc::new(BigInt::from(whole))),
            (None, _) => Value::Null,
        },
        Kind::String => raw.as_str().map_or(Value::Null, Value::string),
        Kind::Array => Value::list(raw.elements().map(value).collect()),
        Kind::Object if raw.len() == 1 && raw.get(SET).is_some_and(|set| set.kind() == Kind::Array) => {
            Value::set(raw.get(SET).into_iter().flat_map(Raw::elements).map(value))
        }
        Kind::Object => Value::map(raw.members().map(|(name, member)| (Value::string(name), value(member)))),
        _ => match raw.as_extended() {
            Some(Extended::Date(millis)) => {
                DateTime::from_epoch_millis(millis).map_or(Value::Null, Value::Date)
            }
            Some(Extended::Binary { subtype: UUID_SUBTYPE, bytes }) => match <[u8; 16]>::try_from(bytes) {
                Ok(bytes) => Value::Uuid(u128::from_be_bytes(bytes)),
                Err(_) => Value::Binary(bytes.into()),
            },
            Some(Extended::Binary { bytes, .. }) => Value::Binary(bytes.into()),
            Some(Extended::Decimal(number)) => Decimal::parse(&number.to_string())
                .map_or(Value::Null, |number| Value::BigDecimal(Arc::new(number))),
            _ => Value::Null,
        },
    }
}

/// Whether a value can be stored. What JSON has no word for is stored as other APIs do it.
pub fn can_store(value: &Value) -> bool {
    match value {
        Value::Bool(_)
        | Value::String(_)
        | Value::Char(_)
        | Value::Date(_)
        | Value::Uuid(_)
        | Value::Binary(_) => true,
        Value::Float(number) => number.is_finite(),
        Value::Double(number) => number.is_finite(),
        Value::List(items) => items.iter().all(|item| item.is_null() || can_store(item)),
        Value::Set(items) => items.iter().all(|item| item.is_null() || can_store(item)),
        Value::Map(map) => {
            map.iter().all(|(key, value)| key.as_str().is_some() && (value.is_null() || can_store(value)))
        }
        number => number.is_number(),
    }
}

pub fn write_value(writer: &mut DocWriter, value: &Value) {
    match value {
        Value::Bool(held) => writer.bool(*held),
        Value::String(text) => writer.string(text),
        Value::Char(character) => writer.string(character.encode_utf8(&mut [0; 4])),
        Value::Date(date) => writer.extended(Extended::Date(date.epoch_millis())),
        Value::Uuid(id) => {
            writer.extended(Extended::Binary { subtype: UUID_SUBTYPE, bytes: &id.to_be_bytes() })
        }
        Value::Binary(bytes) => writer.extended(Extended::Binary { subtype: 0, bytes }),
        Value::List(items) => write_items(writer, items.iter()),
        Value::Set(items) => {
            writer.begin_object();
            writer.key(SET);
            write_items(writer, items.iter());
            writer.end_object();
        }
        Value::Map(map) => {
            writer.begin_object();
            for (key, held) in map.iter() {
                writer.key(key.as_str().unwrap_or_default());
                write_value(writer, held);
            }
            writer.end_object();
        }
        Value::Long(whole) => writer.int64(*whole),
        number => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => writer.number(Number::Int(whole)),
            (None, Some(number)) => writer.double(number),
            (None, None) => writer.null(),
        },
    }
}

fn write_items<'v>(writer: &mut DocWriter, items: impl Iterator<Item = &'v Value>) {
    writer.begin_array();
    items.for_each(|item| write_value(writer, item));
    writer.end_array();
}

/// Writes the list of a vertex's values under one key.
pub fn write_properties<'p>(
    writer: &mut DocWriter,
    properties: impl Iterator<Item = &'p Arc<VertexProperty>>,
) {
    writer.begin_array();
    for property in properties {
        writer.begin_object();
        writer.key(VALUE);
        write_value(writer, &property.value);
        writer.key(ID);
        write_value(writer, &property.id);
        if !property.meta.is_empty() {
            writer.key(META);
            writer.begin_object();
            for meta in &property.meta {
                writer.key(&meta.key);
                write_value(writer, &meta.value);
            }
            writer.end_object();
        }
        writer.end_object();
    }
    writer.end_array();
}
