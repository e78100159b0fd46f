//! mergeV() and mergeE(): find what a map describes, or create it.

use std::sync::Arc;

use super::*;
use crate::graph::{
    AdjacentLookup, ElementId, Filter, FilterKey, Found, NewEdge, NewProperty, NewVertex, Want,
};
use crate::lowering;
use crate::predicate::P;
use crate::steps::mutate::{Source, write};
use crate::steps::reduce::reduced;
use crate::traverser::Traverser;
use crate::value::{Cardinality, Direction, Map, Merge, T, Vertex};

struct MergeOp {
    edges: bool,
    /// None: the map comes with the traverser.
    search: Option<Source>,
    on_create: Option<Source>,
    on_match: Option<(Source, Option<Cardinality>)>,
    out_v: Option<Source>,
    in_v: Option<Source>,
    is_start: bool,
}

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let mut merge = MergeOp {
        edges: call.name == "mergeE",
        search: match call.args {
            [] => None,
            [search] => Some(Source::of(builder, search)?),
            _ => return Err(call.wrong()),
        },
        on_create: None,
        on_match: None,
        out_v: None,
        in_v: None,
        is_start: call.is_start,
    };
    for step in &call.mods {
        let (kind, value, cardinality) = match step.arguments.as_slice() {
            [Value::Merge(kind), value] => (*kind, value, None),
            [Value::Merge(kind), value, Value::Cardinality(cardinality)] => {
                (*kind, value, Some(*cardinality))
            }
            _ => return Err(call.wrong()),
        };
        let source = Source::of(builder, value)?;
        if let Source::Constant(map @ (Value::Map(_) | Value::Null)) = &source {
            check(map_of(map)?.as_ref(), merge.edges, kind != Merge::OnMatch)?;
            if kind == Merge::OnMatch {
                check_on_match(map_of(map)?.as_ref())?;
            }
        }
        match kind {
            Merge::OnCreate => merge.on_create = Some(source),
            Merge::OnMatch => merge.on_match = Some((source, cardinality)),
            Merge::OutV => merge.out_v = Some(source),
            Merge::InV => merge.in_v = Some(source),
        }
    }
    if let Some(Source::Constant(map)) = &merge.search {
        check(map_of(map)?.as_ref(), merge.edges, true)?;
    }
    if let (Some(Source::Constant(search)), Some(Source::Constant(create))) =
        (&merge.search, &merge.on_create)
    {
        let search = map_of(search)?;
        for (key, value) in map_of(create)?.iter().filter(|(key, _)| !matches!(key, Value::String(_))) {
            if search.get(key).is_some_and(|before| !crate::compare::equal(before, value)) {
                return Err(overrides(key));
            }
        }
    }
    Ok(Each::op(Parts::default(), move |cx, _, traverser, out| {
        for _ in 0..traverser.bulk {
            for element in merge.merge(cx, &traverser)? {
                let mut next =
                    if merge.is_start { reduced(cx, element) } else { traverser.step(element, cx.mode) };
                next.bulk = 1;
                out.push(next);
            }
        }
        Ok(())
    }))
}

fn map_of(value: &Value) -> Result<Arc<Map>> {
    match value {
        Value::Map(map) => Ok(map.clone()),
        Value::Null => Ok(Arc::default()),
        other => Err(Error::runtime(format!("merge() takes a Map, not {}", crate::text::type_name(other)))),
    }
}

/// What keys and values may be.
fn check(map: &Map, edges: bool, tokens: bool) -> Result<()> {
    let name = if edges { "mergeE" } else { "mergeV" };
    for (key, value) in map {
        match key {
            Value::T(T::Id | T::Label) if tokens => {
                if value.is_null() {
                    return Err(Error::runtime(format!(
                        "{name}() does not allow null for {}",
                        crate::text::text_of(key)
                    )));
                }
                if let (Value::T(T::Label), Some(label)) = (key, value.as_str())
                    && label.starts_with('~')
                {
                    return Err(Error::runtime(format!("Label can not be a hidden key: {label}")));
                }
                let is_text = matches!(value, Value::String(_) | Value::Traversal(_));
                if matches!(key, Value::T(T::Label)) && !is_text {
                    return Err(Error::runtime(format!("{name}() expects T.label value to be of String")));
                }
            }
            Value::Direction(Direction::Out | Direction::In) if edges => {
                if value.is_null() {
                    return Err(Error::runtime(format!(
                        "{name}() does not allow null for {}",
                        crate::text::text_of(key)
                    )));
                }
            }
            Value::String(key) if key.starts_with("~") => {
                return Err(Error::runtime(format!("Property key can not be a hidden key: {key}")));
            }
            Value::String(key) if key.is_empty() => {
                return Err(Error::runtime("Property key can not be the empty string"));
            }
            Value::String(_) => {}
            Value::T(_) | Value::Direction(_) if !tokens => {}
            other => {
                return Err(Error::runtime(format!(
                    "{name}() and option() arguments can only have String keys or T.id, T.label{}: {}",
                    if edges { ", Direction.OUT, Direction.IN" } else { "" },
                    crate::text::text_of(other)
                )));
            }
        }
    }
    Ok(())
}

fn overrides(key: &Value) -> Error {
    let key = crate::text::text_of(key);
    Error::runtime(format!("option(onCreate) cannot override values from merge() argument: ({key})"))
}

fn check_on_match(map: &Map) -> Result<()> {
    match map.keys().find(|key| !matches!(key, Value::String(_))) {
        Some(key) => Err(Error::runtime(format!(
            "option(onMatch) expects keys in Map to be of String: {}",
            crate::text::text_of(key)
        ))),
        None => Ok(()),
    }
}

fn new_property(key: &Value, value: &Value, default: Option<Cardinality>) -> Option<NewProperty> {
    let Value::String(key) = key else { return None };
    let (cardinality, value) = match value {
        Value::CardinalityValue(own, value) => (Some(*own), (**value).clone()),
        value => (default, value.clone()),
    };
    Some(NewProperty { cardinality, key: key.clone(), value, meta: Vec::new() })
}

fn plain(value: &Value) -> Value {
    match value {
        Value::CardinalityValue(_, value) => (**value).clone(),
        value => value.clone(),
    }
}

impl MergeOp {
    fn merge(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<Vec<Value>> {
        let search = match &mut self.search {
            None => map_of(&traverser.value)?,
            Some(source) => match source.get(cx, traverser)? {
                Some(map) => map_of(&map)?,
                None => return Err(Error::runtime("merge() needs a map, and its traversal gives nothing.")),
            },
        };
        check(&search, self.edges, true)?;
        let search = if self.edges { self.with_ends(cx, traverser, &search)? } else { Map::clone(&search) };
        let found = if self.edges { self.find_edges(cx, &search)? } else { self.find_vertices(cx, &search)? };
        if found.is_empty() {
            return Ok(vec![self.create(cx, traverser, search)?]);
        }
        let mut merged = Vec::with_capacity(found.len());
        for element in found {
            let mut now = element;
            if let Some((source, cardinality)) = &mut self.on_match {
                let mut at = traverser.clone();
                at.value = now.clone();
                at.bulk = 1;
                // The element is what the traversal looks at; a map that came along is still reachable by its label.
                let changes = match source {
                    Source::Constant(map) => map_of(map)?,
                    Source::Child(_) => match source.get(cx, &at)? {
                        Some(map) => map_of(&map)?,
                        None => Arc::default(),
                    },
                };
                check_on_match(&changes)?;
                check(&changes, self.edges, false)?;
                let default = cardinality.or(Some(Cardinality::Single));
                let properties = changes.iter().filter_map(|(k, v)| new_property(k, v, default)).collect();
                now = write(cx, &now, properties)?;
            }
            merged.push(now);
        }
        Ok(merged)
    }

    fn find_vertices(&self, cx: &mut Cx<'_>, search: &Map) -> Result<Vec<Value>> {
        let mut filters = Vec::new();
        for (key, value) in search {
            let value = plain(value);
            let key = match key {
                Value::T(T::Id) => FilterKey::Id,
                Value::T(_) => FilterKey::Label,
                Value::String(key) => FilterKey::Property(key.clone()),
                _ => continue,
            };
            filters.push(Filter { key, predicate: Some(P::Eq(value)) });
        }
        let partition_key = cx.graph.partition_key().map(str::to_owned);
        let lookup = lowering::lookup(None, &filters, partition_key.as_deref(), None);
        let mut found = Vec::new();
        let mut cursor = None;
        loop {
            let page = cx.graph.vertices(&lookup, cursor)?;
            for vertex in page.items {
                let vertex = Value::Vertex(vertex);
                if lowering::all_hold(cx, &vertex, &filters)? {
                    found.push(vertex);
                }
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(found),
            }
        }
    }

    /// Ends that are named by `Merge.outV` and `Merge.inV`, by ids or by vertices, as vertices.
    fn with_ends(&mut self, cx: &mut Cx<'_>, traverser: &Traverser, search: &Map) -> Result<Map> {
        let mut map = Map::clone(search);
        for direction in [Direction::Out, Direction::In] {
            let key = Value::Direction(direction);
            let given = map.get(&key).cloned();
            let resolved = self.end(cx, traverser, given, direction)?;
            match resolved {
                Some(value) => map.insert(key, value),
                None => map.shift_remove(&key),
            };
        }
        Ok(map)
    }

    fn end(
        &mut self,
        cx: &mut Cx<'_>,
        traverser: &Traverser,
        given: Option<Value>,
        direction: Direction,
    ) -> Result<Option<Value>> {
        let given = match given {
            Some(Value::Merge(merge)) => {
                let source = if merge == Merge::OutV { &mut self.out_v } else { &mut self.in_v };
                match source {
                    Some(source) => {
                        let found = source.get(cx, traverser)?;
                        match found {
                            Some(Value::Map(map)) => {
                                let vertices = self.find_vertices(cx, &map)?;
                                match vertices.into_iter().next() {
                                    Some(vertex) => return Ok(Some(vertex)),
                                    None => {
                                        let text = "Vertex does not exist for the map of option(outV) or option(inV)";
                                        return Err(Error::runtime(text));
                                    }
                                }
                            }
                            Some(value) => value,
                            None => return Err(Error::runtime("option(outV/inV) gives no vertex")),
                        }
                    }
                    None => {
                        let text = format!("option({}) is needed for {}", merge.name(), merge.name());
                        return Err(Error::runtime(text));
                    }
                }
            }
            Some(value) => value,
            None => return Ok(None),
        };
        let id = match given {
            Value::Vertex(vertex) => return Ok(Some(Value::Vertex(vertex))),
            Value::List(pair) if cx.graph.partition_key().is_some() && pair.len() == 2 => {
                ElementId { partition: Some(pair[0].clone()), id: pair[1].clone() }
            }
            id => ElementId { partition: None, id },
        };
        let shown = crate::text::text_of(&id.id);
        let lookup = lowering::lookup(Some(vec![id]), &[], None, None);
        let mut cursor = None;
        loop {
            let page = cx.graph.vertices(&lookup, cursor)?;
            if let Some(vertex) = page.items.into_iter().next() {
                return Ok(Some(Value::Vertex(vertex)));
            }
            match page.next {
                Some(next) => cursor = Some(next),
                None => {
                    return Err(Error::runtime(format!(
                        "Vertex id {shown} could not be found and edge could not be created ({})",
                        direction.name()
                    )));
                }
            }
        }
    }

    fn find_edges(&self, cx: &mut Cx<'_>, search: &Map) -> Result<Vec<Value>> {
        let vertex = |direction| match search.get(&Value::Direction(direction)) {
            Some(Value::Vertex(vertex)) => Some(vertex.clone()),
            _ => None,
        };
        let (out_v, in_v): (Option<Arc<Vertex>>, Option<Arc<Vertex>>) =
            (vertex(Direction::Out), vertex(Direction::In));
        let mut filters = Vec::new();
        for (key, value) in search {
            let key = match key {
                Value::T(T::Id) => FilterKey::Id,
                Value::T(_) => FilterKey::Label,
                Value::String(key) => FilterKey::Property(key.clone()),
                _ => continue,
            };
            filters.push(Filter { key, predicate: Some(P::Eq(plain(value))) });
        }
        let mut found = Vec::new();
        let from = out_v.as_ref().map(|v| (v, Direction::Out)).or(in_v.as_ref().map(|v| (v, Direction::In)));
        if let Some((vertex, direction)) = from {
            let lookup = AdjacentLookup {
                direction,
                edge_labels: Vec::new(),
                edge_filters: filters.clone(),
                want: Want::Edges,
                limit_per_source: None,
            };
            let mut cursor = None;
            loop {
                let page = cx.graph.adjacent(std::slice::from_ref(vertex), &lookup, cursor)?;
                found.extend(page.items.into_iter().filter_map(|adjacent| match adjacent.found {
                    Found::Edge(edge) => Some(edge),
                    Found::Vertex(_) => None,
                }));
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
        } else {
            let lookup = lowering::lookup(None, &filters, None, None);
            let mut cursor = None;
            loop {
                let page = cx.graph.edges(&lookup, cursor)?;
                found.extend(page.items);
                match page.next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
        }
        let mut matching = Vec::new();
        for edge in found {
            let ends = out_v.as_ref().is_none_or(|v| **v == *edge.out_v)
                && in_v.as_ref().is_none_or(|v| **v == *edge.in_v);
            let edge = Value::Edge(edge);
            if ends && lowering::all_hold(cx, &edge, &filters)? {
                matching.push(edge);
            }
        }
        Ok(matching)
    }

    fn create(&mut self, cx: &mut Cx<'_>, traverser: &Traverser, search: Map) -> Result<Value> {
        let mut all = search;
        if let Some(source) = &mut self.on_create {
            let more = match source.get(cx, traverser)? {
                Some(map) => map_of(&map)?,
                None => Arc::default(),
            };
            check(&more, self.edges, true)?;
            for (key, value) in more.iter() {
                if matches!(key, Value::T(_) | Value::Direction(_))
                    && let Some(before) = all.get(key)
                    && !crate::compare::equal(before, value)
                {
                    let same_vertex =
                        matches!((before, value), (Value::Vertex(v), id) if crate::compare::equal(&v.id, id));
                    if !same_vertex {
                        return Err(overrides(key));
                    }
                    continue;
                }
                all.insert(key.clone(), value.clone());
            }
            if self.edges {
                all = self.with_ends(cx, traverser, &all)?;
            }
        }
        let id = all.get(&Value::T(T::Id)).cloned();
        let label = match all.get(&Value::T(T::Label)) {
            Some(Value::String(label)) => Some(label.clone()),
            _ => None,
        };
        let mut properties: Vec<NewProperty> =
            all.iter().filter_map(|(k, v)| new_property(k, v, None)).collect();
        properties.retain(|property| !property.value.is_null());
        if !self.edges {
            let vertex = cx.graph.add_vertex(NewVertex { id, label, properties })?;
            cx.vertex_changed(&vertex);
            return Ok(Value::Vertex(vertex));
        }
        let end = |direction: Direction| match all.get(&Value::Direction(direction)) {
            Some(Value::Vertex(vertex)) => Ok(vertex.clone()),
            _ => {
                let side = if direction == Direction::Out { "Out" } else { "In" };
                Err(Error::runtime(format!(
                    "{side} Vertex not specified in mergeE(): edge could not be created"
                )))
            }
        };
        let (out_v, in_v) = (end(Direction::Out)?, end(Direction::In)?);
        let label = label.unwrap_or_else(|| Arc::from("edge"));
        let properties = properties.into_iter().map(|p| (p.key, p.value)).collect();
        let edge = cx.graph.add_edge(NewEdge { id, label, out_v, in_v, properties })?;
        cx.edge_changed(&edge);
        Ok(Value::Edge(edge))
    }
}
