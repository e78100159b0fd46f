//! TinkerPop's GraphSON, versions 1 to 3: one vertex with its out-edges per line.
//!
//! A vertex becomes an item in the form in which Cosmos DB keeps it, every out-edge another. An edge's item names
//! label and partition of the vertex it leads to, which the line does not have: so the file is read twice, first for
//! the vertices alone. The partition key is the vertex's property of that name; a vertex without it is its own
//! partition, by its id.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::lines::Lines;
use super::{RawRecord, Reader};

/// Vertices whose label and partition are kept while a file is read.
const VERTICES_MAX: usize = 20_000_000;
const DEFAULT_LABEL: &str = "vertex";
const DEFAULT_EDGE_LABEL: &str = "edge";

/// What edges have to know of the vertices of a file.
pub struct Graph {
    key: Option<String>,
    vertices: HashMap<String, (String, Value)>,
}

impl Graph {
    pub fn survey(path: &Path, key: Option<String>) -> Result<Graph> {
        let mut graph = Graph { key, vertices: HashMap::new() };
        if super::is_stdin(path) {
            bail!("graphs are read twice, so standard input cannot be one");
        }
        let mut lines = Lines::open(path, 0)?;
        while let Some(record) = lines.next().context("cannot read")? {
            let RawRecord::Text(text) = record else { continue };
            // What is wrong with a line is said when it is imported.
            let Ok(vertex) = serde_json::from_slice::<Value>(&text) else { continue };
            let Ok(vertex) = Vertex::of(&vertex) else { continue };
            if graph.vertices.len() >= VERTICES_MAX {
                bail!("more than {VERTICES_MAX} vertices in one file");
            }
            let partition = vertex.partition(graph.key.as_deref());
            graph.vertices.insert(vertex.id, (vertex.label, partition));
        }
        Ok(graph)
    }

    /// The vertex of a line and the edges that leave it.
    pub fn items(&self, line: &str) -> Result<Vec<String>, String> {
        let parsed: Value = serde_json::from_str(line).map_err(|error| format!("not JSON: {error}"))?;
        let vertex = Vertex::of(&parsed)?;
        let partition = vertex.partition(self.key.as_deref());
        let mut item = Map::new();
        item.insert("id".into(), vertex.id.clone().into());
        item.insert("label".into(), vertex.label.clone().into());
        if let Some(key) = self.key.as_deref().filter(|key| *key != "id") {
            item.insert(key.into(), partition.clone());
        }
        for (name, values) in &vertex.properties {
            if self.key.as_deref() != Some(name) {
                item.insert(name.clone(), values.clone());
            }
        }
        let mut items = vec![Value::Object(item).to_string()];
        for (label, edges) in vertex.out_edges {
            for edge in edges {
                items.push(self.edge(&vertex.id, &vertex.label, &partition, &label, &edge)?);
            }
        }
        Ok(items)
    }

    fn edge(
        &self,
        source: &str,
        source_label: &str,
        partition: &Value,
        label: &str,
        edge: &Value,
    ) -> Result<String, String> {
        let edge = unwrapped(edge);
        let id = text(edge.get("id")).ok_or("an edge without an id")?;
        let sink = text(edge.get("inV")).ok_or("an edge without inV")?;
        let mut item = Map::new();
        item.insert("id".into(), format!("e|{id}").into());
        item.insert("_edgeId".into(), id.into());
        let label = if label.is_empty() { DEFAULT_EDGE_LABEL } else { label };
        item.insert("label".into(), label.into());
        item.insert("_isEdge".into(), true.into());
        if let Some(key) = self.key.as_deref().filter(|key| *key != "id") {
            item.insert(key.into(), partition.clone());
        }
        item.insert("_vertexId".into(), source.into());
        item.insert("_vertexLabel".into(), source_label.into());
        if let Some((sink_label, sink_partition)) = self.vertices.get(&sink) {
            item.insert("_sinkLabel".into(), sink_label.clone().into());
            item.insert("_sinkPartition".into(), sink_partition.clone());
        }
        item.insert("_sink".into(), sink.into());
        if let Some(Value::Object(properties)) = edge.get("properties") {
            for (name, value) in properties {
                let value = match value.get("value") {
                    Some(inner) => plain(inner),
                    None => plain(value),
                };
                item.insert(name.clone(), value);
            }
        }
        Ok(Value::Object(item).to_string())
    }
}

struct Vertex {
    id: String,
    label: String,
    properties: Vec<(String, Value)>,
    out_edges: Vec<(String, Vec<Value>)>,
}

impl Vertex {
    fn of(line: &Value) -> Result<Vertex, String> {
        let vertex = unwrapped(line);
        let id = text(vertex.get("id")).ok_or("a vertex without an id")?;
        let label = vertex.get("label").and_then(Value::as_str).unwrap_or(DEFAULT_LABEL).to_owned();
        let mut properties = Vec::new();
        for (name, values) in vertex.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let list = match values {
                Value::Array(list) => list.clone(),
                one => vec![one.clone()],
            };
            let values = list.iter().enumerate().map(|(n, property)| {
                let property = unwrapped(property);
                let value = property.get("value").map_or_else(|| plain(property), plain);
                let own = text(property.get("id")).unwrap_or_else(|| format!("{id}|{name}|{n}"));
                let mut kept = json!({"_value": value, "id": own});
                if let Some(Value::Object(meta)) = property.get("properties") {
                    kept["_meta"] = meta.iter().map(|(name, value)| (name.clone(), plain(value))).collect();
                }
                kept
            });
            properties.push((name.clone(), values.collect()));
        }
        let out = vertex.get("outE").and_then(Value::as_object).into_iter().flatten();
        let out = out.map(|(label, edges)| (label.clone(), edges.as_array().cloned().unwrap_or_default()));
        Ok(Vertex { id, label, properties, out_edges: out.collect() })
    }

    fn partition(&self, key: Option<&str>) -> Value {
        let named = self.properties.iter().find(|(name, _)| Some(name.as_str()) == key);
        named.map_or_else(|| self.id.clone().into(), |(_, values)| values[0]["_value"].clone())
    }
}

/// What is inside of `{"@type": …, "@value": …}`.
fn unwrapped(value: &Value) -> &Value {
    match value.get("@type").and(value.get("@value")) {
        Some(inner) => unwrapped(inner),
        None => value,
    }
}

/// A typed value as JSON: numbers as numbers, dates as strings, lists and maps inside out.
fn plain(value: &Value) -> Value {
    let kind = value.get("@type").and_then(Value::as_str).unwrap_or_default();
    let inner = unwrapped(value);
    match (kind, inner) {
        ("g:Date" | "g:Timestamp", Value::Number(milliseconds)) => {
            let time = milliseconds.as_i64().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
            time.map_or_else(|| inner.clone(), |time| time.to_string().into())
        }
        ("g:Map", Value::Array(pairs)) => {
            let name = |key: &Value| text(Some(key)).unwrap_or_else(|| key.to_string());
            pairs.chunks_exact(2).map(|pair| (name(&pair[0]), plain(&pair[1]))).collect()
        }
        (_, Value::Array(list)) => list.iter().map(plain).collect(),
        (_, Value::Object(map)) => map.iter().map(|(name, value)| (name.clone(), plain(value))).collect(),
        _ => inner.clone(),
    }
}

/// An id as text.
fn text(value: Option<&Value>) -> Option<String> {
    match unwrapped(value?) {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

type EdgesByLabel = Map<String, Value>;

/// Items of a graph as lines of GraphSON 3. Edges are held until their vertex is written.
pub fn write(items: &mut dyn Iterator<Item = Result<String>>, out: &mut dyn std::io::Write) -> Result<u64> {
    let mut edges: HashMap<String, (EdgesByLabel, EdgesByLabel)> = HashMap::new();
    let mut vertices = Vec::new();
    for item in items {
        let item: Map<String, Value> = serde_json::from_str(&item?)?;
        if item.get("_isEdge") != Some(&Value::Bool(true)) {
            vertices.push(item);
            continue;
        }
        let name = |member: &str| item.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (source, sink, label) = (name("_vertexId"), name("_sink"), name("label"));
        let id = item.get("_edgeId").or(item.get("id")).cloned().unwrap_or_default();
        let own = ["id", "label", "pk", "ttl"];
        let shown = item.iter().filter(|(name, _)| !name.starts_with('_') && !own.contains(&name.as_str()));
        let properties: Map<String, Value> =
            shown.map(|(name, value)| (name.clone(), typed(value))).collect();
        let add = |map: &mut Map<String, Value>, edge: Value| {
            if let Value::Array(list) = map.entry(label.clone()).or_insert_with(|| json!([])) {
                list.push(edge);
            }
        };
        let (from, to) = (
            json!({"id": id, "inV": sink, "properties": properties}),
            json!({"id": id, "outV": source, "properties": properties}),
        );
        add(&mut edges.entry(source).or_default().0, from);
        add(&mut edges.entry(sink).or_default().1, to);
    }
    let count = vertices.len() as u64;
    for vertex in vertices {
        let id = vertex.get("id").and_then(Value::as_str).unwrap_or_default();
        let mut line =
            json!({"id": id, "label": vertex.get("label").cloned().unwrap_or_else(|| DEFAULT_LABEL.into())});
        if let Some((out_edges, in_edges)) = edges.remove(id) {
            for (name, edges) in [("inE", in_edges), ("outE", out_edges)] {
                if !edges.is_empty() {
                    line[name] = Value::Object(edges);
                }
            }
        }
        let mut properties = Map::new();
        for (name, value) in &vertex {
            if name == "id" || name == "label" || name.starts_with('_') {
                continue;
            }
            let list = match value {
                Value::Array(list) => list.clone(),
                flat => vec![json!({"_value": flat, "id": format!("{id}|{name}")})],
            };
            let list = list.iter().filter(|one| one.get("_value").is_some()).map(|one| {
                let mut property = json!({"id": one["id"], "value": typed(&one["_value"])});
                if let Some(Value::Object(meta)) = one.get("_meta") {
                    property["properties"] =
                        meta.iter().map(|(name, value)| (name.clone(), typed(value))).collect();
                }
                property
            });
            properties.insert(name.clone(), list.collect());
        }
        if !properties.is_empty() {
            line["properties"] = Value::Object(properties);
        }
        writeln!(out, "{line}")?;
    }
    Ok(count)
}

fn typed(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) if i32::try_from(whole).is_ok() => json!({"@type": "g:Int32", "@value": whole}),
            Some(whole) => json!({"@type": "g:Int64", "@value": whole}),
            None => json!({"@type": "g:Double", "@value": number}),
        },
        Value::Array(list) => {
            json!({"@type": "g:List", "@value": list.iter().map(typed).collect::<Vec<_>>()})
        }
        Value::Object(map) => {
            let pairs: Vec<Value> =
                map.iter().flat_map(|(name, value)| [json!(name), typed(value)]).collect();
            json!({"@type": "g:Map", "@value": pairs})
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = concat!(
        r#"{"id":{"@type":"g:Int32","@value":1},"label":"person","outE":{"created":[{"id":{"@type":"g:Int32","@value":9},"inV":{"@type":"g:Int32","@value":3},"properties":{"weight":{"@type":"g:Double","@value":0.4}}}]},"properties":{"name":[{"id":{"@type":"g:Int64","@value":0},"value":"marko"}],"pk":[{"id":"x","value":"p1"}]}}"#,
        "\n",
        r#"{"id":3,"label":"software","properties":{"name":[{"id":4,"value":"lop"}]}}"#,
        "\n"
    );

    #[test]
    fn vertices_and_edges_become_items_and_lines_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), LINES).unwrap();
        let graph = Graph::survey(file.path(), Some("pk".into())).unwrap();
        let items: Vec<String> = LINES.lines().flat_map(|line| graph.items(line).unwrap()).collect();
        let parsed: Vec<Value> = items.iter().map(|item| serde_json::from_str(item).unwrap()).collect();
        assert_eq!(
            parsed[0],
            json!({"id":"1","label":"person","pk":"p1","name":[{"_value":"marko","id":"0"}]})
        );
        assert_eq!(
            parsed[1],
            json!({"id":"e|9","_edgeId":"9","label":"created","_isEdge":true,"pk":"p1","_vertexId":"1","_vertexLabel":"person",
                "_sinkLabel":"software","_sinkPartition":"3","_sink":"3","weight":0.4})
        );
        assert_eq!(parsed[2]["pk"], "3", "a vertex without a key is its own partition");
        let mut out = Vec::new();
        assert_eq!(write(&mut items.iter().map(|item| Ok(item.clone())), &mut out).unwrap(), 2);
        let text = String::from_utf8(out).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(
            first["outE"]["created"][0]["properties"]["weight"],
            json!({"@type":"g:Double","@value":0.4})
        );
        assert_eq!(first["properties"]["name"][0]["value"], "marko");
        assert!(graph.items(r#"{"label":"x"}"#).unwrap_err().contains("without an id"));
    }
}
