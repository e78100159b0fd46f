//! Writes: addV(), addE(), property(), drop().
//!
//! property() steps right after addV() or addE() are part of the creation (the partition key is one of them), and
//! several property() steps in a row are one write.

use std::sync::Arc;

use super::*;
use crate::bytecode::Instruction;
use crate::graph::{EdgeChange, ElementId, NewEdge, NewProperty, NewVertex, VertexChange};
use crate::steps::properties::value_of;
use crate::steps::reduce::reduced;
use crate::traverser::Traverser;
use crate::value::{Cardinality, Owner, Pop, T, Vertex};

/// A key and a value that may have to be computed.
pub(crate) struct Setting {
    cardinality: Option<Cardinality>,
    key: Source,
    value: Source,
    meta: Vec<(Arc<str>, Source)>,
}

pub(crate) enum Source {
    Constant(Value),
    Child(Child),
}

impl Source {
    pub(crate) fn of(builder: &mut Builder<'_>, value: &Value) -> Result<Source> {
        Ok(match value {
            Value::Traversal(nested) => Source::Child(builder.child(nested)?),
            constant => Source::Constant(constant.clone()),
        })
    }

    pub(crate) fn get(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<Option<Value>> {
        Ok(match self {
            Source::Constant(value) => Some(value.clone()),
            Source::Child(child) => child.first(cx, traverser)?.map(|found| found.value),
        })
    }
}

/// The settings that one property() names.
fn settings(builder: &mut Builder<'_>, arguments: &[Value]) -> Result<Vec<Setting>> {
    let (cardinality, rest) = match arguments {
        [Value::Cardinality(cardinality), rest @ ..] => (Some(*cardinality), rest),
        [Value::Null, key @ Value::String(_), value @ ..] if !value.is_empty() && arguments.len() == 3 => {
            return settings(builder, &[std::slice::from_ref(key), value].concat());
        }
        rest => (None, rest),
    };
    match rest {
        [Value::Null] => Ok(Vec::new()),
        [Value::Map(map)] => {
            let mut all = Vec::new();
            for (key, value) in map.iter() {
                let (own, value) = match value {
                    Value::CardinalityValue(own, value) => (Some(*own), (**value).clone()),
                    value => (cardinality, value.clone()),
                };
                let value = Source::of(builder, &value)?;
                all.push(Setting {
                    cardinality: own,
                    key: Source::Constant(key.clone()),
                    value,
                    meta: Vec::new(),
                });
            }
            Ok(all)
        }
        [key, value, meta @ ..] if meta.len() % 2 == 0 => {
            let mut pairs = Vec::new();
            for pair in meta.chunks_exact(2) {
                let Value::String(key) = &pair[0] else {
                    return Err(Error::runtime("The key of a meta property is a text."));
                };
                pairs.push((key.clone(), Source::of(builder, &pair[1])?));
            }
            let (cardinality, value) = match value {
                Value::CardinalityValue(own, value) => (Some(*own), (**value).clone()),
                value => (cardinality, value.clone()),
            };
            let (key, value) = (Source::of(builder, key)?, Source::of(builder, &value)?);
            Ok(vec![Setting { cardinality, key, value, meta: pairs }])
        }
        _ => Err(Error::runtime("property() takes a key and a value, or a map of them.")),
    }
}

/// Whether a property() can be part of the creation before it: its value must not look at the new element.
pub(crate) fn folds(next: &Instruction) -> bool {
    let constant = !next.arguments.iter().any(|argument| matches!(argument, Value::Traversal(_)));
    constant || (next.arguments.len() == 2 && !matches!(next.arguments[0], Value::Cardinality(_)))
}

#[derive(Default)]
struct Resolved {
    id: Option<Value>,
    label: Option<Arc<str>>,
    properties: Vec<NewProperty>,
}

fn resolve(cx: &mut Cx<'_>, settings: &mut [Setting], traverser: &Traverser) -> Result<Resolved> {
    let mut resolved = Resolved::default();
    for setting in settings {
        let Some(value) = setting.value.get(cx, traverser)? else { continue };
        let Some(key) = setting.key.get(cx, traverser)? else { continue };
        match &key {
            Value::T(T::Id) => resolved.id = Some(value),
            Value::String(key) if &**key == "id" && cx.options.id_and_label_as_keys => {
                resolved.id = Some(value)
            }
            Value::T(T::Label) => match value {
                Value::String(label) => resolved.label = Some(label),
                _ => return Err(Error::runtime("A label is a text.")),
            },
            Value::String(key) => {
                let mut meta = Vec::new();
                for (key, source) in &mut setting.meta {
                    if let Some(value) = source.get(cx, traverser)? {
                        meta.push((key.clone(), value));
                    }
                }
                resolved.properties.push(NewProperty {
                    cardinality: setting.cardinality,
                    key: key.clone(),
                    value: storable(value)?,
                    meta,
                });
            }
            _ => {
                return Err(Error::runtime(
                    "The key of a property is a text, or T.id or T.label of a new element.",
                ));
            }
        }
    }
    Ok(resolved)
}

/// An element is no value of a property; its own value may be.
fn storable(value: Value) -> Result<Value> {
    match value {
        Value::VertexProperty(..) | Value::Property(..) => Ok(value_of(&value)),
        Value::Vertex(_)
        | Value::Edge(_)
        | Value::Path(_)
        | Value::Tree(_)
        | Value::Graph(_)
        | Value::P(_) => {
            let text = format!(
                "Property value [{}] is of type {} is not supported",
                crate::text::text_of(&value),
                crate::text::type_name(&value)
            );
            Err(Error::runtime(text))
        }
        value => Ok(value),
    }
}

/// A key that a creation names several times without saying how has several values.
pub(crate) fn several(properties: &mut [NewProperty]) {
    for index in 1..properties.len() {
        let (before, rest) = properties.split_at_mut(index);
        let property = &mut rest[0];
        if property.cardinality.is_none() && before.iter().any(|other| other.key == property.key) {
            property.cardinality = Some(Cardinality::List);
        }
    }
}

pub(crate) fn build_add_vertex(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let mut label = match call.args {
        [] | [Value::Null] => None,
        [label] => Some(Source::of(builder, label)?),
        // Labels and property keys in one call, as old samples write them.
        _ => return Err(call.wrong()),
    };
    let mut all = Vec::new();
    for step in call.mods.iter().filter(|step| &*step.name == "property") {
        all.extend(settings(builder, &step.arguments)?);
    }
    let is_start = call.is_start;
    Ok(Each::op(Parts::default(), move |cx, _, traverser, out| {
        for _ in 0..traverser.bulk {
            let own_label = match &mut label {
                None => None,
                Some(source) => match source.get(cx, &traverser)? {
                    Some(Value::String(label)) => Some(label),
                    Some(Value::Null) => None,
                    _ => return Err(Error::runtime("The label of addV() is a text.")),
                },
            };
            if own_label.as_ref().is_some_and(|label| label.is_empty()) {
                return Err(Error::runtime("Label can not be empty"));
            }
            let resolved = resolve(cx, &mut all, &traverser)?;
            let mut properties = resolved.properties;
            properties.retain(|property| !property.value.is_null());
            several(&mut properties);
            let new = NewVertex {
                id: resolved.id.filter(|id| !id.is_null()),
                label: resolved.label.or(own_label),
                properties,
            };
            let vertex = cx.graph.add_vertex(new)?;
            cx.vertex_changed(&vertex);
            let mut next = if is_start {
                reduced(cx, Value::Vertex(vertex))
            } else {
                traverser.step(Value::Vertex(vertex), cx.mode)
            };
            next.bulk = 1;
            out.push(next);
        }
        Ok(())
    }))
}

/// Which vertex is meant: a label of the path, or what a traversal finds.
pub(crate) enum End {
    Label(Arc<str>),
    Source(Source),
}

impl End {
    fn get(&mut self, cx: &mut Cx<'_>, traverser: &Traverser, side: &str) -> Result<Arc<Vertex>> {
        let found = match self {
            End::Label(label) => cx.scoped(traverser, label, Pop::Last),
            End::Source(source) => source.get(cx, traverser)?,
        };
        match found {
            Some(Value::Vertex(vertex)) => Ok(vertex),
            Some(id @ (Value::String(_) | Value::Int(_) | Value::Long(_))) => match vertex_of_id(cx, &id)? {
                Some(vertex) => Ok(vertex),
                None => Err(not_a_vertex(side, Some(id))),
            },
            other => Err(not_a_vertex(side, other)),
        }
    }
}

/// A side effect may name a vertex by its id.
fn vertex_of_id(cx: &mut Cx<'_>, id: &Value) -> Result<Option<Arc<Vertex>>> {
    let id = ElementId { partition: None, id: id.clone() };
    let lookup = crate::lowering::lookup(Some(vec![id]), &[], None, Some(1));
    let mut cursor = None;
    loop {
        let page = cx.graph.vertices(&lookup, cursor)?;
        match (page.items.into_iter().next(), page.next) {
            (None, Some(next)) => cursor = Some(next),
            (found, _) => return Ok(found),
        }
    }
}

fn not_a_vertex(side: &str, found: Option<Value>) -> Error {
    let what = found.map_or("nothing".to_owned(), |value| crate::text::text_of(&value));
    let text = format!("addE(…).{side}() must resolve to a Vertex but {what} was specified instead");
    Error::runtime(format!("The value given to {text}"))
}

pub(crate) fn build_add_edge(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [label] = call.args else { return Err(call.wrong()) };
    let mut label = Source::of(builder, label)?;
    let (mut from, mut to) = (None, None);
    let mut all = Vec::new();
    for step in &call.mods {
        if &*step.name == "property" {
            all.extend(settings(builder, &step.arguments)?);
        }
        if !matches!(&*step.name, "from" | "to") {
            continue;
        }
        let end = match step.arguments.as_slice() {
            [Value::String(label)] => End::Label(label.clone()),
            [source @ (Value::Traversal(_) | Value::Vertex(_))] => End::Source(Source::of(builder, source)?),
            _ => return Err(call.wrong()),
        };
        *(if &*step.name == "from" { &mut from } else { &mut to }) = Some(end);
    }
    let is_start = call.is_start;
    Ok(Each::op(Parts::default(), move |cx, _, traverser, out| {
        for _ in 0..traverser.bulk {
            let label = match label.get(cx, &traverser)? {
                Some(Value::String(label)) => label,
                _ => return Err(Error::runtime("The label of addE() is a text.")),
            };
            let end = |cx: &mut Cx<'_>, end: &mut Option<End>, side: &str| match end {
                Some(end) => end.get(cx, &traverser, side),
                None => match &traverser.value {
                    Value::Vertex(vertex) => Ok(vertex.clone()),
                    _ => Err(Error::runtime(format!(
                        "The value given to addE({label}).{side}() must resolve to a Vertex but {} was specified instead",
                        crate::text::text_of(&traverser.value)
                    ))),
                },
            };
            let out_v = end(cx, &mut from, "from")?;
            let in_v = end(cx, &mut to, "to")?;
            let resolved = resolve(cx, &mut all, &traverser)?;
            let properties = resolved.properties.into_iter().filter(|p| !p.value.is_null());
            let properties = properties.map(|p| (p.key, p.value)).collect();
            let label = resolved.label.unwrap_or(label);
            let edge = cx.graph.add_edge(NewEdge { id: resolved.id, label, out_v, in_v, properties })?;
            cx.edge_changed(&edge);
            let mut next = if is_start {
                reduced(cx, Value::Edge(edge))
            } else {
                traverser.step(Value::Edge(edge), cx.mode)
            };
            next.bulk = 1;
            out.push(next);
        }
        Ok(())
    }))
}

pub(crate) fn build_property(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let mut all = settings(builder, call.args)?;
    for step in call.mods.iter().filter(|step| &*step.name == "property") {
        all.extend(settings(builder, &step.arguments)?);
    }
    Ok(Each::op(Parts::loading(), move |cx, _, mut traverser, out| {
        let resolved = resolve(cx, &mut all, &traverser)?;
        if resolved.id.is_some() || resolved.label.is_some() {
            return Err(Error::runtime("The id and the label of an element cannot be changed."));
        }
        traverser.value = write(cx, &traverser.value, resolved.properties)?;
        out.push(traverser);
        Ok(())
    }))
}

/// Sets properties of an element and gives the element as it is then. A null takes the key away.
pub(crate) fn write(cx: &mut Cx<'_>, element: &Value, properties: Vec<NewProperty>) -> Result<Value> {
    if properties.is_empty() {
        return Ok(element.clone());
    }
    match element {
        Value::Vertex(vertex) => {
            let now = cx.vertex(vertex)?;
            let mut changes = Vec::new();
            for property in properties {
                if property.value.is_null() {
                    let existing = now.properties().cloned().unwrap_or_else(|| Arc::from([]));
                    let dropped = existing.iter().filter(|own| own.key == property.key);
                    changes.extend(dropped.map(|own| VertexChange::Drop(own.clone())));
                } else {
                    changes.push(VertexChange::Set(property));
                }
            }
            let changed = cx.graph.change_vertex(&now, &changes)?;
            cx.vertex_changed(&changed);
            Ok(Value::Vertex(changed))
        }
        Value::Edge(edge) => {
            let now = cx.edge(edge)?;
            let mut changes = Vec::new();
            for property in properties {
                if property.cardinality.is_some_and(|c| c != Cardinality::Single) || !property.meta.is_empty()
                {
                    return Err(Error::runtime(
                        "Property cardinality can only be set for a Vertex but the traversal encountered Edge",
                    ));
                }
                changes.push(if property.value.is_null() {
                    EdgeChange::Drop(property.key)
                } else {
                    EdgeChange::Set(property.key, property.value)
                });
            }
            let changed = cx.graph.change_edge(&now, &changes)?;
            cx.edge_changed(&changed);
            Ok(Value::Edge(changed))
        }
        Value::VertexProperty(own, Some(vertex)) => {
            let now = cx.vertex(vertex)?;
            let mut changes = Vec::new();
            for property in properties {
                changes.push(if property.value.is_null() {
                    VertexChange::DropMeta(own.clone(), property.key)
                } else {
                    VertexChange::SetMeta(own.clone(), property.key, property.value)
                });
            }
            let changed = cx.graph.change_vertex(&now, &changes)?;
            cx.vertex_changed(&changed);
            let same = |property: &&Arc<crate::value::VertexProperty>| ***property == **own;
            let property = changed.properties().and_then(|all| all.iter().find(same)).unwrap_or(own).clone();
            Ok(Value::VertexProperty(property, Some(changed)))
        }
        other => Err(Error::runtime(format!(
            "property() is for elements, not for {}.",
            crate::text::type_name(other)
        ))),
    }
}

pub(crate) fn build_drop(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Box::new(DropOp))
}

struct DropOp;

impl Op for DropOp {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        // What is dropped must not end what is still being looked for.
        let (all, _held) = up.all(cx)?;
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        for traverser in all {
            match traverser.value {
                Value::Vertex(vertex) => vertices.push(vertex),
                Value::Edge(edge) => edges.push(edge),
                Value::VertexProperty(property, Some(vertex)) => {
                    let now = cx.vertex(&vertex)?;
                    let changed = cx.graph.change_vertex(&now, &[VertexChange::Drop(property)])?;
                    cx.vertex_changed(&changed);
                }
                Value::Property(property, Owner::Edge(edge)) => {
                    let now = cx.edge(&edge)?;
                    let changed = cx.graph.change_edge(&now, &[EdgeChange::Drop(property.key.clone())])?;
                    cx.edge_changed(&changed);
                }
                Value::Property(meta, Owner::VertexProperty(property, Some(vertex))) => {
                    let now = cx.vertex(&vertex)?;
                    let change = VertexChange::DropMeta(property, meta.key.clone());
                    let changed = cx.graph.change_vertex(&now, &[change])?;
                    cx.vertex_changed(&changed);
                }
                other => {
                    let text = format!("{} cannot be dropped.", crate::text::type_name(&other));
                    return Err(Error::runtime(text));
                }
            }
        }
        if !edges.is_empty() {
            cx.graph.drop_edges(&edges)?;
        }
        if !vertices.is_empty() {
            cx.graph.drop_vertices(&vertices)?;
        }
        cx.generation += 1;
        Ok(Vec::new())
    }
}
