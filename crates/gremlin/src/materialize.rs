//! Results with the properties of their elements, read for a whole batch at once.

use crate::error::Result;
use crate::evaluate::Cx;
use crate::value::{Tree, Value};

/// Fills the elements among the results, however deep, and shows each as this traversal left it.
pub(crate) fn materialize(cx: &mut Cx<'_>, results: &mut [(Value, u64)]) -> Result<()> {
    let mut vertices = Vec::new();
    for (value, _) in results.iter() {
        gather(value, &mut vertices);
    }
    cx.load(&vertices)?;
    for (value, _) in results {
        match value {
            Value::Vertex(vertex) => *vertex = cx.vertex(vertex)?,
            Value::Edge(edge) => *edge = cx.edge(edge)?,
            _ => {}
        }
    }
    Ok(())
}

fn gather(value: &Value, vertices: &mut Vec<Value>) {
    match value {
        Value::Vertex(_) => vertices.push(value.clone()),
        Value::List(items) => items.iter().for_each(|item| gather(item, vertices)),
        Value::Set(items) => items.iter().for_each(|item| gather(item, vertices)),
        Value::BulkSet(items) => items.keys().for_each(|item| gather(item, vertices)),
        Value::Path(path) => path.objects.iter().for_each(|item| gather(item, vertices)),
        Value::Entry(pair) => {
            gather(&pair.0, vertices);
            gather(&pair.1, vertices);
        }
        Value::Map(map) => map.iter().for_each(|(key, value)| {
            gather(key, vertices);
            gather(value, vertices);
        }),
        Value::Tree(tree) => gather_tree(tree, vertices),
        _ => {}
    }
}

fn gather_tree(tree: &Tree, vertices: &mut Vec<Value>) {
    for (key, branch) in &tree.0 {
        gather(key, vertices);
        gather_tree(branch, vertices);
    }
}
