//! Values to plain JSON, as Cosmos DB answers: in essence GraphSON 1.
//!
//! ```text
//! {"id":"a","label":"person","type":"vertex","properties":{"name":[{"id":"…","value":"A"}]}}
//! {"id":"e","label":"knows","type":"edge","inVLabel":"p","outVLabel":"p","inV":"b","outV":"a","properties":{"w":0.5}}
//! ```

use std::sync::Arc;

use orrery_gremlin::Value;
use orrery_gremlin::value::{Edge, Tree, Vertex, VertexProperty};

use super::typed::duration_text;
use super::{double_text, key_text, push, push_string, separated};

pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => push(out, "null"),
        Value::Bool(value) => push(out, if *value { "true" } else { "false" }),
        Value::String(text) => push_string(out, text),
        Value::Byte(_)
        | Value::Short(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::BigInt(_)
        | Value::BigDecimal(_) => {
            push(out, &key_text(value));
        }
        Value::Float(n) => number(out, f64::from(*n), &format!("{n:?}")),
        Value::Double(n) => number(out, *n, &double_text(*n)),
        Value::Duration(nanoseconds) => push_string(out, &duration_text(*nanoseconds)),
        Value::Binary(bytes) => {
            use base64::Engine as _;
            push_string(out, &base64::engine::general_purpose::STANDARD.encode(bytes));
        }
        Value::List(items) => sequence(out, items.iter()),
        Value::Set(items) => sequence(out, items.iter()),
        Value::BulkSet(items) => {
            sequence(out, items.iter().flat_map(|(item, count)| (0..*count).map(move |_| item)));
        }
        Value::Map(map) => object(out, map.iter()),
        Value::Entry(pair) => object(out, [(&pair.0, &pair.1)].into_iter()),
        Value::Vertex(vertex) => self::vertex(vertex, out),
        Value::Edge(edge) => self::edge(edge, out),
        Value::VertexProperty(property, _) => vertex_property(property, true, out),
        Value::Property(property, _) => {
            push(out, "{\"key\":");
            push_string(out, &property.key);
            push(out, ",\"value\":");
            write(&property.value, out);
            out.push(b'}');
        }
        Value::Path(path) => {
            push(out, "{\"labels\":[");
            separated(out, &path.labels, |out, labels| {
                out.push(b'[');
                separated(out, labels, |out, label| push_string(out, label));
                out.push(b']');
            });
            push(out, "],\"objects\":");
            sequence(out, path.objects.iter());
            out.push(b'}');
        }
        Value::Tree(tree) => self::tree(tree, out),
        Value::Graph(graph) => {
            push(out, "{\"vertices\":");
            sequence(out, graph.vertices.iter());
            push(out, ",\"edges\":");
            sequence(out, graph.edges.iter());
            out.push(b'}');
        }
        Value::CardinalityValue(_, value) => write(value, out),
        Value::Traverser(traverser) => write(&traverser.0, out),
        other => push_string(out, &key_text(other)),
    }
}

fn number(out: &mut Vec<u8>, number: f64, text: &str) {
    match number.is_finite() {
        true => push(out, text),
        false => push_string(out, &double_text(number)),
    }
}

fn sequence<'v>(out: &mut Vec<u8>, items: impl Iterator<Item = &'v Value>) {
    out.push(b'[');
    separated(out, items, |out, item| write(item, out));
    out.push(b']');
}

fn object<'v>(out: &mut Vec<u8>, entries: impl Iterator<Item = (&'v Value, &'v Value)>) {
    out.push(b'{');
    separated(out, entries, |out, (key, value)| {
        push_string(out, &key_text(key));
        out.push(b':');
        write(value, out);
    });
    out.push(b'}');
}

/// Properties with the same key together, in the order in which the keys turn up first.
pub(crate) fn by_key(
    properties: &[Arc<VertexProperty>],
) -> impl Iterator<Item = (&str, impl Iterator<Item = &Arc<VertexProperty>>)> {
    let is_first = |at: usize| !properties[..at].iter().any(|before| before.key == properties[at].key);
    (0..properties.len()).filter(move |at| is_first(*at)).map(move |at| {
        let key = &*properties[at].key;
        (key, properties[at..].iter().filter(move |property| &*property.key == key))
    })
}

fn vertex(vertex: &Vertex, out: &mut Vec<u8>) {
    push(out, "{\"id\":");
    write(&vertex.id, out);
    push(out, ",\"label\":");
    push_string(out, &vertex.label);
    push(out, ",\"type\":\"vertex\"");
    if let Some(properties) = vertex.properties().filter(|properties| !properties.is_empty()) {
        push(out, ",\"properties\":{");
        separated(out, by_key(properties), |out, (key, values)| {
            push_string(out, key);
            push(out, ":[");
            separated(out, values, |out, property| vertex_property(property, false, out));
            out.push(b']');
        });
        out.push(b'}');
    }
    out.push(b'}');
}

fn vertex_property(property: &VertexProperty, alone: bool, out: &mut Vec<u8>) {
    push(out, "{\"id\":");
    write(&property.id, out);
    push(out, ",\"value\":");
    write(&property.value, out);
    if alone {
        push(out, ",\"label\":");
        push_string(out, &property.key);
    }
    if !property.meta.is_empty() {
        push(out, ",\"properties\":{");
        separated(out, &property.meta, |out, meta| {
            push_string(out, &meta.key);
            out.push(b':');
            write(&meta.value, out);
        });
        out.push(b'}');
    }
    out.push(b'}');
}

fn edge(edge: &Edge, out: &mut Vec<u8>) {
    push(out, "{\"id\":");
    write(&edge.id, out);
    push(out, ",\"label\":");
    push_string(out, &edge.label);
    push(out, ",\"type\":\"edge\",\"inVLabel\":");
    push_string(out, &edge.in_v.label);
    push(out, ",\"outVLabel\":");
    push_string(out, &edge.out_v.label);
    push(out, ",\"inV\":");
    write(&edge.in_v.id, out);
    push(out, ",\"outV\":");
    write(&edge.out_v.id, out);
    if let Some(properties) = edge.properties().filter(|properties| !properties.is_empty()) {
        push(out, ",\"properties\":{");
        separated(out, properties.iter(), |out, property| {
            push_string(out, &property.key);
            out.push(b':');
            write(&property.value, out);
        });
        out.push(b'}');
    }
    out.push(b'}');
}

fn tree(tree: &Tree, out: &mut Vec<u8>) {
    out.push(b'{');
    separated(out, &tree.0, |out, (key, below)| {
        let name = match key {
            Value::Vertex(vertex) => key_text(&vertex.id),
            Value::Edge(edge) => key_text(&edge.id),
            other => key_text(other),
        };
        push_string(out, &name);
        push(out, ":{\"key\":");
        write(key, out);
        push(out, ",\"value\":");
        self::tree(below, out);
        out.push(b'}');
    });
    out.push(b'}');
}
