//! has() and its relatives as filters of a lookup, so that the graph can use its index.
//!
//! `V().has('age', gt(30)).hasLabel('person').limit(10)` asks the graph for the persons older than 30, at least ten of
//! them. The evaluator checks the filters again on what comes back.

use std::sync::Arc;

use crate::bytecode::Instruction;
use crate::compare::items;
use crate::error::Result;
use crate::evaluate::Cx;
use crate::graph::{ElementId, Filter, FilterKey, Lookup};
use crate::predicate::P;
use crate::value::{Scope, T, Value};

/// The filters that a step stands for; none when it is no such step or needs evaluation.
pub(crate) fn filters_of(step: &Instruction, id_and_label_as_keys: bool) -> Option<Vec<Filter>> {
    let key_of = |name: &Arc<str>| match &**name {
        "id" if id_and_label_as_keys => FilterKey::Id,
        "label" if id_and_label_as_keys => FilterKey::Label,
        _ => FilterKey::Property(name.clone()),
    };
    let filter = |key, predicate| Filter { key, predicate };
    match (&*step.name, step.arguments.as_slice()) {
        ("has", [Value::String(key)]) => Some(vec![filter(FilterKey::Property(key.clone()), None)]),
        ("has", [Value::String(key), value]) => Some(vec![filter(key_of(key), Some(predicate_of(value)?))]),
        ("has", [Value::T(T::Id), value]) => Some(vec![filter(FilterKey::Id, Some(predicate_of(value)?))]),
        ("has", [Value::T(T::Label), value]) => {
            Some(vec![filter(FilterKey::Label, Some(predicate_of(value)?))])
        }
        ("has", [label @ (Value::String(_) | Value::P(_)), Value::String(key), value]) => Some(vec![
            filter(FilterKey::Label, Some(predicate_of(label)?)),
            filter(key_of(key), Some(predicate_of(value)?)),
        ]),
        ("hasLabel", [Value::P(p)]) => Some(vec![filter(FilterKey::Label, Some(P::clone(p)))]),
        ("hasLabel", labels) if !labels.is_empty() => {
            Some(vec![filter(FilterKey::Label, Some(one_or_many(labels.to_vec())))])
        }
        ("hasId", [Value::P(p)]) => Some(vec![filter(FilterKey::Id, Some(P::clone(p)))]),
        ("hasId", ids) if !ids.is_empty() => {
            let mut all = Vec::new();
            for id in ids {
                match id {
                    Value::List(_) | Value::Set(_) => all.extend(items(id)),
                    other => all.push(other.clone()),
                }
            }
            let all = all.into_iter().map(|id| element_id(&id).unwrap_or(id)).collect();
            Some(vec![filter(FilterKey::Id, Some(one_or_many(all)))])
        }
        _ => None,
    }
}

fn element_id(value: &Value) -> Option<Value> {
    match value {
        Value::Vertex(vertex) => Some(vertex.id.clone()),
        Value::Edge(edge) => Some(edge.id.clone()),
        Value::VertexProperty(property, _) => Some(property.id.clone()),
        _ => None,
    }
}

fn one_or_many(mut values: Vec<Value>) -> P {
    if values.len() == 1 { P::Eq(values.remove(0)) } else { P::Within(values) }
}

fn predicate_of(value: &Value) -> Option<P> {
    match value {
        Value::P(p) => Some(P::clone(p)),
        Value::Traversal(_) => None,
        constant => Some(P::Eq(constant.clone())),
    }
}

/// Whether a step can take these filters in.
pub(crate) fn fits(_step: &str, filters: &[Filter]) -> bool {
    // An unknown type name is an error that must not depend on whether anything is found.
    !filters.iter().any(|filter| matches!(filter.predicate, Some(P::TypeOfName(_))))
}

/// How many results a following limit() or range() leaves at most.
pub(crate) fn limit_of(step: &Instruction) -> Option<u64> {
    let args = match step.arguments.split_first() {
        Some((Value::Scope(Scope::Global), rest)) => rest,
        _ => &step.arguments,
    };
    match (&*step.name, args) {
        ("limit", [high]) | ("range", [_, high]) => high.as_i64().and_then(|n| u64::try_from(n).ok()),
        _ => None,
    }
}

/// Moves what the graph has better words for: ids, labels, partition keys.
pub(crate) fn lookup(
    ids: Option<Vec<ElementId>>,
    filters: &[Filter],
    partition_key: Option<&str>,
    limit: Option<u64>,
) -> Lookup {
    let mut lookup = Lookup { ids, limit, properties: true, ..Lookup::default() };
    for filter in filters {
        let texts = |values: &[Value]| -> Option<Vec<Arc<str>>> { crate::build::strings(values) };
        match (&filter.key, &filter.predicate) {
            (FilterKey::Label, Some(P::Eq(label))) if lookup.labels.is_none() && label.as_str().is_some() => {
                lookup.labels = texts(std::slice::from_ref(label));
            }
            (FilterKey::Label, Some(P::Within(labels)))
                if lookup.labels.is_none() && texts(labels).is_some() =>
            {
                lookup.labels = texts(labels);
            }
            (FilterKey::Id, Some(P::Eq(id))) if lookup.ids.is_none() => {
                lookup.ids = Some(vec![ElementId { partition: None, id: id.clone() }]);
            }
            (FilterKey::Id, Some(P::Within(ids))) if lookup.ids.is_none() => {
                let ids = ids.iter().map(|id| ElementId { partition: None, id: id.clone() });
                lookup.ids = Some(ids.collect());
            }
            (FilterKey::Property(key), Some(P::Eq(value)))
                if partition_key == Some(&**key) && lookup.partitions.is_none() =>
            {
                lookup.partitions = Some(vec![value.clone()]);
            }
            (FilterKey::Property(key), Some(P::Within(values)))
                if partition_key == Some(&**key) && lookup.partitions.is_none() =>
            {
                lookup.partitions = Some(values.clone());
            }
            _ => lookup.filters.push(filter.clone()),
        }
    }
    lookup
}

/// Whether a filter holds for a value that came back.
pub(crate) fn holds(cx: &mut Cx<'_>, value: &Value, filter: &Filter) -> Result<bool> {
    let test = |value: &Value| match &filter.predicate {
        Some(p) => p.test(value),
        None => Ok(true),
    };
    match (&filter.key, value) {
        (FilterKey::Id, Value::Vertex(vertex)) => test(&vertex.id),
        (FilterKey::Id, Value::Edge(edge)) => test(&edge.id),
        (FilterKey::Id, Value::VertexProperty(property, _)) => test(&property.id),
        (FilterKey::Label, Value::Vertex(vertex)) => test(&Value::String(vertex.label.clone())),
        (FilterKey::Label, Value::Edge(edge)) => test(&Value::String(edge.label.clone())),
        (FilterKey::Label, Value::VertexProperty(property, _)) => test(&Value::String(property.key.clone())),
        (FilterKey::Property(key), Value::Vertex(vertex)) => {
            for property in cx.vertex_properties(vertex)?.iter() {
                if property.key == *key && test(&property.value)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        // An edge lies where its source does, though it does not show that.
        (FilterKey::Property(key), Value::Edge(edge)) if cx.graph.partition_key() == Some(&**key) => {
            test(&cx.edge(edge)?.out_v.partition)
        }
        (FilterKey::Property(key), Value::Edge(edge)) => {
            for property in cx.edge_properties(edge)?.iter() {
                if property.key == *key && test(&property.value)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (FilterKey::Property(key), Value::VertexProperty(property, _)) => {
            for meta in &property.meta {
                if meta.key == *key && test(&meta.value)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

pub(crate) fn all_hold(cx: &mut Cx<'_>, value: &Value, filters: &[Filter]) -> Result<bool> {
    for filter in filters {
        if !holds(cx, value, filter)? {
            return Ok(false);
        }
    }
    Ok(true)
}
