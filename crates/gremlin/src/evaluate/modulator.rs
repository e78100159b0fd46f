//! `by()`: how a step looks at what comes in.

use std::sync::Arc;

use super::{Child, Cx};
use crate::error::{Error, Result};
use crate::text::type_name;
use crate::traverser::Traverser;
use crate::value::{Column, Order, T, Value};

pub(crate) enum Selector {
    Identity,
    /// A property of an element, an entry of a map.
    Key(Arc<str>),
    T(T),
    Column(Column),
    Child(Child),
}

pub(crate) struct By {
    pub selector: Selector,
    pub order: Order,
    /// `ProductiveByStrategy`: what maps to nothing maps to null.
    pub productive: bool,
}

impl By {
    pub(crate) fn identity() -> By {
        By { selector: Selector::Identity, order: Order::Asc, productive: false }
    }

    pub(crate) fn loads(&self) -> bool {
        matches!(self.selector, Selector::Key(_))
    }

    pub(crate) fn prefetch(&mut self, cx: &mut Cx<'_>, values: &[Value]) -> Result<()> {
        if let Selector::Child(child) = &mut self.selector {
            child.0.prefetch(cx, values)?;
        }
        Ok(())
    }

    /// What it sees; none when that is nothing.
    pub(crate) fn apply(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<Option<Value>> {
        let seen = match &mut self.selector {
            Selector::Child(child) => child.first(cx, traverser)?.map(|found| found.value),
            _ => self.look(cx, &traverser.value)?,
        };
        Ok(if seen.is_none() && self.productive { Some(Value::Null) } else { seen })
    }

    /// The same for a value that no traverser carries by itself (a part of a path, say); `carrier` has the rest.
    pub(crate) fn apply_to(
        &mut self,
        cx: &mut Cx<'_>,
        carrier: &Traverser,
        value: &Value,
    ) -> Result<Option<Value>> {
        if let Selector::Identity = self.selector {
            return Ok(Some(value.clone()));
        }
        let mut traverser = carrier.clone();
        traverser.value = value.clone();
        traverser.bulk = 1;
        self.apply(cx, &traverser)
    }

    fn look(&self, cx: &mut Cx<'_>, value: &Value) -> Result<Option<Value>> {
        match &self.selector {
            Selector::Identity | Selector::Child(_) => Ok(Some(value.clone())),
            Selector::Key(key) => property_or_entry(cx, value, key),
            Selector::T(token) => token_of(cx, value, *token),
            Selector::Column(column) => column_of(value, *column).map(Some),
        }
    }
}

fn property_or_entry(cx: &mut Cx<'_>, value: &Value, key: &Arc<str>) -> Result<Option<Value>> {
    match value {
        Value::Vertex(vertex) => {
            let properties = cx.vertex_properties(vertex)?;
            let found = properties.iter().find(|property| property.key == *key);
            Ok(found.map(|property| property.value.clone()).or_else(|| cosmos_token(cx, value, key)))
        }
        Value::Edge(edge) => {
            let properties = cx.edge_properties(edge)?;
            let found = properties.iter().find(|property| property.key == *key);
            Ok(found.map(|property| property.value.clone()).or_else(|| cosmos_token(cx, value, key)))
        }
        Value::VertexProperty(property, _) => {
            Ok(property.meta.iter().find(|meta| meta.key == *key).map(|meta| meta.value.clone()))
        }
        Value::Map(map) => Ok(map.get(&Value::String(key.clone())).cloned()),
        Value::Entry(_) | Value::Null => Ok(None),
        other => Err(Error::runtime(format!(
            "The by(\"{key}\") modulator can only be applied to a traverser that is an Element or a Map - it is being \
             applied to [{}] a {} class instead",
            crate::text::text_of(other),
            type_name(other)
        ))),
    }
}

fn cosmos_token(cx: &Cx<'_>, value: &Value, key: &str) -> Option<Value> {
    if !cx.options.id_and_label_as_keys {
        return None;
    }
    match (key, value) {
        ("id", Value::Vertex(vertex)) => Some(vertex.id.clone()),
        ("id", Value::Edge(edge)) => Some(edge.id.clone()),
        ("label", Value::Vertex(vertex)) => Some(Value::String(vertex.label.clone())),
        ("label", Value::Edge(edge)) => Some(Value::String(edge.label.clone())),
        _ => None,
    }
}

/// `T.id` of a value and so on.
pub(crate) fn token_of(_cx: &mut Cx<'_>, value: &Value, token: T) -> Result<Option<Value>> {
    let wrong = || {
        Err(Error::runtime(format!(
            "{} cannot be cast to org.apache.tinkerpop.gremlin.structure.Element",
            type_name(value)
        )))
    };
    Ok(Some(match (token, value) {
        (T::Id, Value::Vertex(vertex)) => vertex.id.clone(),
        (T::Id, Value::Edge(edge)) => edge.id.clone(),
        (T::Id, Value::VertexProperty(property, _)) => property.id.clone(),
        (T::Label, Value::Vertex(vertex)) => Value::String(vertex.label.clone()),
        (T::Label, Value::Edge(edge)) => Value::String(edge.label.clone()),
        (T::Label | T::Key, Value::VertexProperty(property, _)) => Value::String(property.key.clone()),
        (T::Key, Value::Property(property, _)) => Value::String(property.key.clone()),
        (T::Value, Value::VertexProperty(property, _)) => property.value.clone(),
        (T::Value, Value::Property(property, _)) => property.value.clone(),
        (T::Key, Value::Entry(pair)) => pair.0.clone(),
        (T::Value, Value::Entry(pair)) => pair.1.clone(),
        (_, Value::Map(map)) if map.contains_key(&Value::T(token)) => map[&Value::T(token)].clone(),
        _ => return wrong(),
    }))
}

/// `keys` and `values` of a map, of an entry of one, of a path.
pub(crate) fn column_of(value: &Value, column: Column) -> Result<Value> {
    match (value, column) {
        (Value::Map(map), Column::Keys) => Ok(Value::set(map.keys().cloned())),
        (Value::Map(map), Column::Values) => Ok(Value::list(map.values().cloned().collect())),
        (Value::Entry(pair), Column::Keys) => Ok(pair.0.clone()),
        (Value::Entry(pair), Column::Values) => Ok(pair.1.clone()),
        (Value::Path(path), Column::Keys) => {
            let labels =
                path.labels.iter().map(|labels| Value::set(labels.iter().cloned().map(Value::String)));
            Ok(Value::list(labels.collect()))
        }
        (Value::Path(path), Column::Values) => Ok(Value::list(path.objects.clone())),
        _ => Err(Error::runtime(format!(
            "The provided object does not have accessible {}: {}",
            column.name(),
            type_name(value)
        ))),
    }
}
