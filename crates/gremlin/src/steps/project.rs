//! New shapes: project(), select(), path(), constant(), index(), order().

use std::cmp::Ordering;
use std::sync::Arc;

use super::filter::Section;
use super::*;
use crate::compare::{self, items};
use crate::path::Path;
use crate::traverser::Traverser;
use crate::value::{Map, Order, Pop, Scope};

pub(crate) fn build_project(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let keys = call.strings()?;
    if keys.is_empty() {
        return Err(call.wrong());
    }
    let parts = Parts::bys(call.bys(builder)?);
    Ok(Each::map(parts, move |cx, parts, traverser| {
        let mut map = Map::new();
        for (index, key) in keys.iter().enumerate() {
            let count = parts.bys.len();
            let value = match parts.bys.get_mut(index % count.max(1)) {
                Some(by) => by.apply(cx, traverser)?,
                None => Some(traverser.value.clone()),
            };
            if let Some(value) = value {
                map.insert(Value::String(key.clone()), value);
            }
        }
        Ok(Some(Value::Map(Arc::new(map))))
    }))
}

pub(crate) fn build_select(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (pop, args) = match call.args {
        [Value::Column(column)] => return Ok(super::properties::build_column(*column)),
        [Value::Pop(pop), rest @ ..] => (Some(*pop), rest),
        args => (None, args),
    };
    let bys = call.bys(builder)?;
    if let [Value::Traversal(key)] = args {
        let child = builder.child(key)?;
        let parts = Parts { children: vec![child], bys, loads: false };
        return Ok(Each::map(parts, move |cx, parts, traverser| {
            let Some(key) = parts.children[0].first(cx, traverser)? else { return Ok(None) };
            let found = match (&traverser.value, &key.value) {
                (Value::Map(map), key) if map.contains_key(key) => map.get(key).cloned(),
                (_, Value::String(key)) => cx.scoped(traverser, key, pop.unwrap_or(Pop::Last)),
                _ => None,
            };
            match (found, parts.bys.first_mut()) {
                (Some(value), Some(by)) => by.apply_to(cx, traverser, &value),
                (found, _) => Ok(found),
            }
        }));
    }
    let keys = crate::build::strings(args).ok_or_else(|| call.wrong())?;
    let pop = pop.unwrap_or(Pop::Last);
    match keys.as_slice() {
        [] => Err(call.wrong()),
        [key] => {
            if bys.len() > 1 {
                return Err(Error::runtime("select() of one key can only have one by modulator"));
            }
            let key = key.clone();
            Ok(Each::map(Parts::bys(bys), move |cx, parts, traverser| {
                match (cx.scoped(traverser, &key, pop), parts.bys.first_mut()) {
                    (Some(value), Some(by)) => by.apply_to(cx, traverser, &value),
                    (found, _) => Ok(found),
                }
            }))
        }
        _ => Ok(Each::map(Parts::bys(bys), move |cx, parts, traverser| {
            let mut map = Map::new();
            for (index, key) in keys.iter().enumerate() {
                let Some(value) = cx.scoped(traverser, key, pop) else { return Ok(None) };
                let count = parts.bys.len();
                let value = match parts.bys.get_mut(index % count.max(1)) {
                    Some(by) => by.apply_to(cx, traverser, &value)?,
                    None => Some(value),
                };
                match value {
                    Some(value) => map.insert(Value::String(key.clone()), value),
                    None => return Ok(None),
                };
            }
            Ok(Some(Value::Map(Arc::new(map))))
        })),
    }
}

pub(crate) fn build_path(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let section = Section::of(call)?;
    let parts = Parts::bys(call.bys(builder)?);
    Ok(Each::map(parts, move |cx, parts, traverser| {
        let path = section.cut(traverser);
        if parts.bys.is_empty() {
            return Ok(Some(Value::Path(Arc::new(path))));
        }
        let mut seen = Path { objects: Vec::with_capacity(path.objects.len()), labels: path.labels };
        for (index, object) in path.objects.iter().enumerate() {
            let count = parts.bys.len();
            match parts.bys[index % count].apply_to(cx, traverser, object)? {
                Some(object) => seen.objects.push(object),
                None => return Ok(None),
            }
        }
        Ok(Some(Value::Path(Arc::new(seen))))
    }))
}

pub(crate) fn build_constant(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [value] = call.args else { return Err(call.wrong()) };
    let value = value.clone();
    Ok(Each::map(Parts::default(), move |_, _, _| Ok(Some(value.clone()))))
}

pub(crate) fn build_identity(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(identity())
}

pub(crate) fn build_index(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let mut as_map = false;
    for step in &call.mods {
        match step.arguments.as_slice() {
            [Value::String(option), kind] if &**option == "~tinkerpop.index.indexer" => {
                as_map = match kind.as_i64() {
                    Some(0) => false,
                    Some(1) => true,
                    _ => return Err(call.wrong()),
                };
            }
            _ => return Err(call.wrong()),
        }
    }
    Ok(Each::map(Parts::default(), move |_, _, traverser| {
        let members = match &traverser.value {
            Value::Map(map) => {
                map.iter().map(|(k, v)| Value::Entry(Arc::new((k.clone(), v.clone())))).collect()
            }
            value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_)) => items(value),
            other => vec![other.clone()],
        };
        let numbered =
            members.into_iter().enumerate().map(|(index, value)| (Value::Int(index as i32), value));
        Ok(Some(if as_map {
            Value::map(numbered)
        } else {
            Value::list(numbered.map(|(index, value)| Value::list(vec![value, index])).collect())
        }))
    }))
}

pub(crate) fn build_order(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, rest) = call.scoped();
    if !rest.is_empty() {
        return Err(call.wrong());
    }
    let mut bys = call.bys(builder)?;
    if bys.is_empty() {
        bys.push(By::identity());
    }
    if scope == Scope::Global {
        let limit = call.limit.and_then(|limit| usize::try_from(limit).ok());
        return Ok(Box::new(OrderOp { parts: Parts::bys(bys), limit, waiting: None }));
    }
    Ok(Each::map(Parts::bys(bys), move |cx, parts, traverser| {
        if let Value::Map(map) = &traverser.value {
            let entries: Vec<Value> =
                map.iter().map(|(k, v)| Value::Entry(Arc::new((k.clone(), v.clone())))).collect();
            let sorted = sort(cx, &mut parts.bys, traverser, entries)?;
            let entry = |value: Value| match value {
                Value::Entry(pair) => Some((pair.0.clone(), pair.1.clone())),
                _ => None,
            };
            return Ok(Some(Value::map(sorted.into_iter().filter_map(entry))));
        }
        match &traverser.value {
            value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_)) => {
                Ok(Some(Value::list(sort(cx, &mut parts.bys, traverser, items(value))?)))
            }
            other => Ok(Some(other.clone())),
        }
    }))
}

fn sort(cx: &mut Cx<'_>, bys: &mut [By], carrier: &Traverser, values: Vec<Value>) -> Result<Vec<Value>> {
    let mut keyed = Vec::with_capacity(values.len());
    'values: for value in values {
        let mut keys = Vec::with_capacity(bys.len());
        for by in bys.iter_mut() {
            match by.apply_to(cx, carrier, &value)? {
                Some(key) => keys.push(key),
                None => continue 'values,
            }
        }
        let chance = cx.rng.next();
        keyed.push((keys, chance, value));
    }
    keyed.sort_by(|a, b| by_keys(bys, (&a.0, a.1), (&b.0, b.1)));
    Ok(keyed.into_iter().map(|(_, _, value)| value).collect())
}

fn by_keys(bys: &[By], a: (&[Value], u64), b: (&[Value], u64)) -> Ordering {
    for (by, (x, y)) in bys.iter().zip(a.0.iter().zip(b.0)) {
        let found = match by.order {
            Order::Asc => compare::order(x, y),
            Order::Desc => compare::order(y, x),
            Order::Shuffle => a.1.cmp(&b.1),
        };
        if found != Ordering::Equal {
            return found;
        }
    }
    Ordering::Equal
}

/// Beyond this many, all but the first that a limit leaves are dropped while the others still come.
const TOP_K_SLACK: usize = 4096;

struct OrderOp {
    parts: Parts,
    /// No more than these will be asked for.
    limit: Option<usize>,
    waiting: Option<(std::collections::VecDeque<Traverser>, orrery_budget::Held)>,
}

type Keyed = (Vec<Value>, u64, Traverser);

impl OrderOp {
    fn gather(
        &mut self,
        cx: &mut Cx<'_>,
        up: &mut Upstream<'_>,
    ) -> Result<(std::collections::VecDeque<Traverser>, orrery_budget::Held)> {
        let mut keyed: Vec<Keyed> = Vec::new();
        let mut held = cx.options.budget.hold(0)?;
        let mut bytes = 0;
        loop {
            let batch = up.next(cx, usize::MAX)?;
            if batch.is_empty() {
                break;
            }
            let values: Vec<Value> = batch.iter().map(|t| t.value.clone()).collect();
            self.parts.prepare(cx, &values)?;
            'batch: for traverser in batch {
                let mut keys = Vec::with_capacity(self.parts.bys.len());
                for by in &mut self.parts.bys {
                    match by.apply(cx, &traverser)? {
                        Some(key) => keys.push(key),
                        None => continue 'batch,
                    }
                }
                let chance = cx.rng.next();
                bytes += traverser.size_bytes() + keys.iter().map(Value::size_bytes).sum::<usize>();
                keyed.push((keys, chance, traverser));
            }
            if let Some(limit) = self.limit
                && keyed.len() > limit.saturating_add(TOP_K_SLACK)
            {
                let before = keyed.len();
                self.sort(&mut keyed);
                keyed.truncate(limit);
                bytes = bytes / before * keyed.len();
            }
            held.resize(bytes)?;
        }
        self.sort(&mut keyed);
        Ok((keyed.into_iter().map(|(_, _, traverser)| traverser).collect(), held))
    }

    fn sort(&self, keyed: &mut [Keyed]) {
        keyed.sort_by(|a, b| by_keys(&self.parts.bys, (&a.0, a.1), (&b.0, b.1)));
    }
}

impl Op for OrderOp {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        if self.waiting.is_none() {
            self.waiting = Some(self.gather(cx, up)?);
        }
        let Some((waiting, _)) = &mut self.waiting else { return Ok(Vec::new()) };
        let count = waiting.len().min(want);
        Ok(waiting.drain(..count).collect())
    }

    fn reset(&mut self) {
        self.waiting = None;
    }
}
