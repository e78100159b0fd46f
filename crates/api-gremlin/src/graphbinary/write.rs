//! Values to GraphBinary.

use orrery_gremlin::Value;
use orrery_gremlin::value::{Edge, Property, Tree, Vertex, VertexProperty};

use super::code;
use crate::graphson::{key_text, token_name};

const NULL: [u8; 2] = [code::NULL, 1];

/// Writes a fully qualified value.
pub fn value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(&NULL),
        Value::Bool(held) => fixed(out, code::BOOLEAN, &[u8::from(*held)]),
        Value::Byte(n) => fixed(out, code::BYTE, &n.to_be_bytes()),
        Value::Short(n) => fixed(out, code::SHORT, &n.to_be_bytes()),
        Value::Int(n) => fixed(out, code::INT, &n.to_be_bytes()),
        Value::Long(n) => fixed(out, code::LONG, &n.to_be_bytes()),
        Value::Float(n) => fixed(out, code::FLOAT, &n.to_be_bytes()),
        Value::Double(n) => fixed(out, code::DOUBLE, &n.to_be_bytes()),
        Value::BigInt(n) => {
            open(out, code::BIG_INTEGER);
            blob(out, &n.to_signed_bytes_be());
        }
        Value::BigDecimal(n) => {
            open(out, code::BIG_DECIMAL);
            out.extend_from_slice(&n.scale.to_be_bytes());
            blob(out, &n.unscaled.to_signed_bytes_be());
        }
        Value::Char(c) => fixed(out, code::CHAR, c.encode_utf8(&mut [0; 4]).as_bytes()),
        Value::String(text) => qualified_string(out, text),
        Value::Uuid(id) => fixed(out, code::UUID, &id.to_be_bytes()),
        Value::Date(date) if date.offset_seconds() == 0 && date.nanos() % 1_000_000 == 0 => {
            fixed(out, code::DATE, &date.epoch_millis().to_be_bytes());
        }
        Value::Date(date) => {
            open(out, code::OFFSET_DATE_TIME);
            let civil = date.civil();
            out.extend_from_slice(&i32::from(civil.year()).to_be_bytes());
            out.push(civil.month() as u8);
            out.push(civil.day() as u8);
            let seconds =
                i64::from(civil.hour()) * 3600 + i64::from(civil.minute()) * 60 + i64::from(civil.second());
            let nanos = seconds * 1_000_000_000 + i64::from(civil.subsec_nanosecond());
            out.extend_from_slice(&nanos.to_be_bytes());
            out.extend_from_slice(&date.offset_seconds().to_be_bytes());
        }
        Value::Duration(nanoseconds) => {
            open(out, code::DURATION);
            let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000)).unwrap_or(i64::MAX);
            out.extend_from_slice(&seconds.to_be_bytes());
            out.extend_from_slice(&(nanoseconds.rem_euclid(1_000_000_000) as i32).to_be_bytes());
        }
        Value::Binary(bytes) => {
            open(out, code::BYTE_BUFFER);
            blob(out, bytes);
        }
        Value::List(items) => sequence(out, code::LIST, items.len(), items.iter()),
        Value::Set(items) => sequence(out, code::SET, items.len(), items.iter()),
        Value::Map(map) => entries(out, map.len(), map.iter()),
        Value::Entry(pair) => entries(out, 1, [(&pair.0, &pair.1)].into_iter()),
        Value::BulkSet(items) => {
            open(out, code::BULK_SET);
            count(out, items.len());
            for (item, times) in items.iter() {
                self::value(item, out);
                out.extend_from_slice(&times.to_be_bytes());
            }
        }
        Value::Vertex(vertex) => self::vertex(out, vertex),
        Value::Edge(edge) => self::edge(out, edge),
        Value::VertexProperty(property, _) => vertex_property(out, property),
        Value::Property(property, _) => self::property(out, property),
        Value::Path(path) => {
            open(out, code::PATH);
            open(out, code::LIST);
            count(out, path.labels.len());
            for labels in &path.labels {
                open(out, code::SET);
                count(out, labels.len());
                labels.iter().for_each(|label| qualified_string(out, label));
            }
            sequence(out, code::LIST, path.objects.len(), path.objects.iter());
        }
        Value::Tree(held) => {
            open(out, code::TREE);
            tree(out, held);
        }
        Value::Graph(graph) => {
            open(out, code::GRAPH);
            count(out, graph.vertices.len());
            for held in &graph.vertices {
                if let Value::Vertex(held) = held {
                    self::value(&held.id, out);
                    string(out, &held.label);
                    let properties = held.properties().map_or(&[][..], |properties| properties);
                    count(out, properties.len());
                    properties.iter().for_each(|property| vertex_property_value(out, property));
                }
            }
            count(out, graph.edges.len());
            for held in &graph.edges {
                if let Value::Edge(held) = held {
                    edge_value(out, held);
                }
            }
        }
        Value::Traverser(traverser) => {
            open(out, code::TRAVERSER);
            out.extend_from_slice(&traverser.1.to_be_bytes());
            self::value(&traverser.0, out);
        }
        Value::CardinalityValue(_, held) => self::value(held, out),
        Value::P(_) | Value::Traversal(_) | Value::Strategy(_) => qualified_string(out, &key_text(value)),
        token => {
            let kind = match token {
                Value::T(_) => code::T,
                Value::Direction(_) => code::DIRECTION,
                Value::Order(_) => code::ORDER,
                Value::Scope(_) => code::SCOPE,
                Value::Pop(_) => code::POP,
                Value::Column(_) => code::COLUMN,
                Value::Cardinality(_) => code::CARDINALITY,
                Value::Operator(_) => code::OPERATOR,
                Value::Merge(_) => code::MERGE,
                Value::Pick(_) => code::PICK,
                Value::GType(_) => code::GTYPE,
                Value::DateUnit(_) => code::DT,
                _ => code::BARRIER,
            };
            open(out, kind);
            qualified_string(out, token_name(token).unwrap_or_default());
        }
    }
}

fn open(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0]);
}

fn fixed(out: &mut Vec<u8>, kind: u8, bytes: &[u8]) {
    open(out, kind);
    out.extend_from_slice(bytes);
}

fn count(out: &mut Vec<u8>, count: usize) {
    // What is written was held in the memory of a request, which is less.
    out.extend_from_slice(&i32::try_from(count).unwrap_or(i32::MAX).to_be_bytes());
}

fn blob(out: &mut Vec<u8>, bytes: &[u8]) {
    count(out, bytes.len());
    out.extend_from_slice(bytes);
}

/// A string without type and flag.
pub fn string(out: &mut Vec<u8>, text: &str) {
    blob(out, text.as_bytes());
}

fn qualified_string(out: &mut Vec<u8>, text: &str) {
    open(out, code::STRING);
    string(out, text);
}

fn sequence<'v>(out: &mut Vec<u8>, kind: u8, length: usize, items: impl Iterator<Item = &'v Value>) {
    open(out, kind);
    count(out, length);
    items.for_each(|item| value(item, out));
}

fn entries<'v>(out: &mut Vec<u8>, length: usize, entries: impl Iterator<Item = (&'v Value, &'v Value)>) {
    open(out, code::MAP);
    count(out, length);
    for (key, held) in entries {
        value(key, out);
        value(held, out);
    }
}

fn vertex(out: &mut Vec<u8>, vertex: &Vertex) {
    open(out, code::VERTEX);
    value(&vertex.id, out);
    string(out, &vertex.label);
    match vertex.properties() {
        Some(properties) if !properties.is_empty() => {
            open(out, code::LIST);
            count(out, properties.len());
            properties.iter().for_each(|property| vertex_property(out, property));
        }
        _ => out.extend_from_slice(&NULL),
    }
}

fn vertex_property(out: &mut Vec<u8>, property: &VertexProperty) {
    open(out, code::VERTEX_PROPERTY);
    vertex_property_value(out, property);
}

fn vertex_property_value(out: &mut Vec<u8>, property: &VertexProperty) {
    value(&property.id, out);
    string(out, &property.key);
    value(&property.value, out);
    out.extend_from_slice(&NULL);
    properties(out, &property.meta);
}

fn properties(out: &mut Vec<u8>, held: &[std::sync::Arc<Property>]) {
    if held.is_empty() {
        return out.extend_from_slice(&NULL);
    }
    open(out, code::LIST);
    count(out, held.len());
    held.iter().for_each(|held| property(out, held));
}

fn property(out: &mut Vec<u8>, property: &Property) {
    open(out, code::PROPERTY);
    string(out, &property.key);
    value(&property.value, out);
    out.extend_from_slice(&NULL);
}

fn edge(out: &mut Vec<u8>, edge: &Edge) {
    open(out, code::EDGE);
    edge_value(out, edge);
}

fn edge_value(out: &mut Vec<u8>, edge: &Edge) {
    value(&edge.id, out);
    string(out, &edge.label);
    for end in [&edge.in_v, &edge.out_v] {
        value(&end.id, out);
        string(out, &end.label);
    }
    out.extend_from_slice(&NULL);
    properties(out, edge.properties().map_or(&[][..], |properties| properties));
}

fn tree(out: &mut Vec<u8>, held: &Tree) {
    count(out, held.0.len());
    for (key, below) in &held.0 {
        value(key, out);
        tree(out, below);
    }
}
