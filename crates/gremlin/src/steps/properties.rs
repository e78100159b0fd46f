//! What elements are made of: values(), properties(), valueMap(), elementMap(), id(), label(), key(), value(),
//! element().

use std::sync::Arc;

use super::*;
use crate::evaluate::{column_of, token_of};
use crate::value::{Column, Direction, Map, Owner, T};

fn not_an_element(value: &Value) -> Error {
    Error::runtime(format!(
        "{} cannot be cast to org.apache.tinkerpop.gremlin.structure.Element",
        crate::text::type_name(value)
    ))
}

/// The properties of an element under some keys, or under all.
pub(crate) fn properties(cx: &mut Cx<'_>, value: &Value, keys: &[Arc<str>]) -> Result<Vec<Value>> {
    let wanted = |key: &Arc<str>| keys.is_empty() || keys.contains(key);
    Ok(match value {
        Value::Vertex(vertex) => {
            let all = cx.vertex_properties(vertex)?;
            let found = all.iter().filter(|property| wanted(&property.key));
            found.map(|property| Value::VertexProperty(property.clone(), Some(vertex.clone()))).collect()
        }
        Value::Edge(edge) => {
            let all = cx.edge_properties(edge)?;
            let found = all.iter().filter(|property| wanted(&property.key));
            found.map(|property| Value::Property(property.clone(), Owner::Edge(edge.clone()))).collect()
        }
        Value::VertexProperty(property, vertex) => {
            let owner = || Owner::VertexProperty(property.clone(), vertex.clone());
            let found = property.meta.iter().filter(|meta| wanted(&meta.key));
            found.map(|meta| Value::Property(meta.clone(), owner())).collect()
        }
        other => return Err(not_an_element(other)),
    })
}

pub(crate) fn value_of(property: &Value) -> Value {
    match property {
        Value::VertexProperty(property, _) => property.value.clone(),
        Value::Property(property, _) => property.value.clone(),
        other => other.clone(),
    }
}

/// values() and properties().
pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let keys = call.args.iter().filter(|key| !key.is_null()).cloned().collect::<Vec<_>>();
    let only_null = keys.is_empty() && !call.args.is_empty();
    let keys = crate::build::strings(&keys).ok_or_else(|| call.wrong())?;
    let values = call.name == "values";
    let tokens = builder.options.id_and_label_as_keys && values;
    Ok(Each::flat_map(Parts::loading(), move |cx, _, traverser| {
        if only_null {
            return Ok(Vec::new());
        }
        let mut found = properties(cx, &traverser.value, &keys)?;
        if values {
            found = found.iter().map(value_of).collect();
        }
        if tokens && found.is_empty() && matches!(traverser.value, Value::Vertex(_) | Value::Edge(_)) {
            for key in &keys {
                let token = match &**key {
                    "id" => T::Id,
                    "label" => T::Label,
                    _ => continue,
                };
                found.extend(token_of(cx, &traverser.value, token)?);
            }
        }
        Ok(found)
    }))
}

/// Bits of `WithOptions`.
const IDS: i64 = 1;
const LABELS: i64 = 2;
const KEYS: i64 = 4;
const VALUES: i64 = 8;

/// valueMap() and propertyMap().
pub(crate) fn build_map(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (with_tokens, args) = match call.args {
        [Value::Bool(tokens), rest @ ..] => (*tokens, rest),
        args => (false, args),
    };
    let keys: Vec<Value> = args.iter().filter(|key| !key.is_null()).cloned().collect();
    let keys = crate::build::strings(&keys).ok_or_else(|| call.wrong())?;
    let values = call.name == "valueMap";
    let mut tokens = if with_tokens { IDS | LABELS | KEYS | VALUES } else { 0 };
    for step in call.mods.iter().filter(|step| &*step.name == "with") {
        match step.arguments.as_slice() {
            [Value::String(option)] if &**option == "~tinkerpop.valueMap.tokens" => {
                tokens = IDS | LABELS | KEYS | VALUES;
            }
            [Value::String(option), bits] if &**option == "~tinkerpop.valueMap.tokens" => {
                tokens = match bits {
                    Value::Bool(on) => i64::from(*on) * 15,
                    bits => bits.as_i64().ok_or_else(|| call.wrong())?,
                };
            }
            _ => return Err(call.wrong()),
        }
    }
    let bys = call.bys(builder)?;
    if bys.len() > 1 {
        return Err(Error::runtime(format!("{}() step can only have one by modulator", call.name)));
    }
    let parts = Parts { bys, loads: true, children: Vec::new() };
    Ok(Each::map(parts, move |cx, parts, traverser| {
        let mut map = Map::new();
        let element = &traverser.value;
        let is_property = matches!(element, Value::VertexProperty(..));
        if tokens & IDS != 0 {
            map.insert(Value::T(T::Id), token_of(cx, element, T::Id)?.unwrap_or_default());
        }
        if is_property {
            if tokens & KEYS != 0 {
                map.insert(Value::T(T::Key), token_of(cx, element, T::Key)?.unwrap_or_default());
            }
            if tokens & VALUES != 0 {
                map.insert(Value::T(T::Value), token_of(cx, element, T::Value)?.unwrap_or_default());
            }
        } else if tokens & LABELS != 0 {
            map.insert(Value::T(T::Label), token_of(cx, element, T::Label)?.unwrap_or_default());
        }
        let many = matches!(element, Value::Vertex(_));
        for property in properties(cx, element, &keys)? {
            let key = match &property {
                Value::VertexProperty(property, _) => property.key.clone(),
                Value::Property(property, _) => property.key.clone(),
                _ => continue,
            };
            let value = if values { value_of(&property) } else { property };
            let key = Value::String(key);
            if many {
                let list = map.entry(key).or_insert_with(|| Value::list(Vec::new()));
                if let Value::List(list) = list {
                    Arc::make_mut(list).push(value);
                }
            } else {
                map.insert(key, value);
            }
        }
        if let Some(by) = parts.bys.first_mut() {
            let mut seen = Map::new();
            for (key, value) in map {
                if matches!(key, Value::T(_)) {
                    seen.insert(key, value);
                } else if let Some(value) = by.apply_to(cx, traverser, &value)? {
                    seen.insert(key, value);
                }
            }
            map = seen;
        }
        Ok(Some(Value::Map(Arc::new(map))))
    }))
}

pub(crate) fn build_element_map(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let keys = call.args.iter().filter(|key| !key.is_null()).cloned().collect::<Vec<_>>();
    let keys = crate::build::strings(&keys).ok_or_else(|| call.wrong())?;
    Ok(Each::map(Parts::loading(), move |cx, _, traverser| {
        let element = &traverser.value;
        let mut map = Map::new();
        map.insert(Value::T(T::Id), token_of(cx, element, T::Id)?.unwrap_or_default());
        if let Value::VertexProperty(property, _) = element {
            map.insert(Value::T(T::Key), Value::String(property.key.clone()));
            map.insert(Value::T(T::Value), property.value.clone());
        } else {
            map.insert(Value::T(T::Label), token_of(cx, element, T::Label)?.unwrap_or_default());
        }
        if let Value::Edge(edge) = element {
            for (direction, vertex) in [(Direction::In, &edge.in_v), (Direction::Out, &edge.out_v)] {
                let end = Value::map([
                    (Value::T(T::Id), vertex.id.clone()),
                    (Value::T(T::Label), Value::String(vertex.label.clone())),
                ]);
                map.insert(Value::Direction(direction), end);
            }
        }
        for property in properties(cx, element, &keys)? {
            match &property {
                Value::VertexProperty(property, _) => {
                    map.insert(Value::String(property.key.clone()), property.value.clone());
                }
                Value::Property(property, _) => {
                    map.insert(Value::String(property.key.clone()), property.value.clone());
                }
                _ => {}
            }
        }
        Ok(Some(Value::Map(Arc::new(map))))
    }))
}

/// id(), label(), key(), value().
pub(crate) fn build_token(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let token = match call.name {
        "id" => T::Id,
        "label" => T::Label,
        "key" => T::Key,
        _ => T::Value,
    };
    Ok(Each::map(Parts::default(), move |cx, _, traverser| token_of(cx, &traverser.value, token)))
}

/// Whose property it is.
pub(crate) fn build_element(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Each::map(Parts::default(), |_, _, traverser| {
        Ok(match &traverser.value {
            Value::VertexProperty(_, Some(vertex)) => Some(Value::Vertex(vertex.clone())),
            Value::Property(_, Owner::Edge(edge)) => Some(Value::Edge(edge.clone())),
            Value::Property(_, Owner::VertexProperty(property, vertex)) => {
                Some(Value::VertexProperty(property.clone(), vertex.clone()))
            }
            _ => None,
        })
    }))
}

/// select(keys) and select(values).
pub(crate) fn build_column(column: Column) -> Box<dyn Op> {
    Each::map(Parts::default(), move |_, _, traverser| column_of(&traverser.value, column).map(Some))
}
