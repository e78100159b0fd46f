//! Steps that let a traverser pass or not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::bytecode::{Bytecode, Instruction};
use crate::compare::{equal, items};
use crate::graph::{Filter, FilterKey};
use crate::lowering;
use crate::path::Path;
use crate::predicate::P;
use crate::traverser::Traverser;
use crate::value::{Pop, T};

pub(crate) fn build_has(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let step = Instruction::new(call.name, call.args.to_vec());
    if let Some(filters) = lowering::filters_of(&step, builder.options.id_and_label_as_keys) {
        let loads = filters.iter().any(|filter| matches!(filter.key, FilterKey::Property(_)));
        let parts = Parts { loads, ..Parts::default() };
        return Ok(Each::filter(parts, move |cx, _, traverser| {
            lowering::all_hold(cx, &traverser.value, &filters)
        }));
    }
    match (call.name, call.args) {
        ("hasNot", [Value::String(key)]) => {
            let filter = Filter { key: FilterKey::Property(key.clone()), predicate: None };
            Ok(Each::filter(Parts::loading(), move |cx, _, traverser| {
                lowering::holds(cx, &traverser.value, &filter).map(|has| !has)
            }))
        }
        // Nothing is stored under a key that is null.
        ("has", [Value::Null, ..]) => Ok(Each::filter(Parts::default(), |_, _, _| Ok(false))),
        ("hasNot", [Value::Null]) => Ok(identity()),
        ("has", [key @ (Value::String(_) | Value::T(_)), Value::Traversal(test)]) => {
            has_traversal(builder, key, test)
        }
        ("has", [label, key @ Value::String(_), Value::Traversal(test)]) => {
            let label = Instruction::new("hasLabel", vec![label.clone()]);
            let has = Instruction::new("has", vec![key.clone(), Value::Traversal(test.clone())]);
            let child = builder.nested(&[label, has])?;
            Ok(Each::filter(Parts::children(vec![child]), |cx, parts, t| parts.children[0].test(cx, t)))
        }
        _ => Err(call.wrong()),
    }
}

fn has_traversal(builder: &mut Builder<'_>, key: &Value, test: &Bytecode) -> Result<Box<dyn Op>> {
    let first = match key {
        Value::T(T::Id) => Instruction::new("id", vec![]),
        Value::T(T::Label) => Instruction::new("label", vec![]),
        Value::T(T::Key) => Instruction::new("key", vec![]),
        Value::T(T::Value) => Instruction::new("value", vec![]),
        key => Instruction::new("values", vec![key.clone()]),
    };
    let mut steps = vec![first];
    steps.extend(test.steps.iter().cloned());
    let child = builder.nested(&steps)?;
    Ok(Each::filter(Parts::children(vec![child]), |cx, parts, t| parts.children[0].test(cx, t)))
}

/// hasKey() and hasValue(), of properties.
pub(crate) fn build_property_filter(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let keys = call.name == "hasKey";
    let predicate = match call.args {
        [Value::P(p)] => P::clone(p),
        [] => return Err(call.wrong()),
        values => {
            let mut all = Vec::new();
            for value in values {
                match value {
                    Value::List(_) | Value::Set(_) => all.extend(items(value)),
                    other => all.push(other.clone()),
                }
            }
            P::Within(all)
        }
    };
    Ok(Each::filter(Parts::default(), move |_, _, traverser| match &traverser.value {
        Value::VertexProperty(property, _) if keys => predicate.test(&Value::String(property.key.clone())),
        Value::Property(property, _) if keys => predicate.test(&Value::String(property.key.clone())),
        Value::VertexProperty(property, _) => predicate.test(&property.value),
        Value::Property(property, _) => predicate.test(&property.value),
        _ => Ok(false),
    }))
}

pub(crate) fn build_is(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let predicate = match call.args {
        [Value::P(p)] => P::clone(p),
        [value] => P::Eq(value.clone()),
        _ => return Err(call.wrong()),
    };
    Ok(Each::filter(Parts::default(), move |_, _, traverser| predicate.test(&traverser.value)))
}

/// filter(), not(), and(), or().
pub(crate) fn build_connective(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    if let ("filter", [Value::P(p)]) = (call.name, call.args) {
        let predicate = P::clone(p);
        return Ok(Each::filter(Parts::default(), move |_, _, t| predicate.test(&t.value)));
    }
    let children = builder.children(call.args)?;
    if matches!(call.name, "filter" | "not") && children.len() != 1 {
        return Err(call.wrong());
    }
    let (every, wanted) = match call.name {
        "not" => (true, false),
        "or" => (false, true),
        _ => (true, true),
    };
    Ok(Each::filter(Parts::children(children), move |cx, parts, traverser| {
        for child in &mut parts.children {
            let holds = child.test(cx, traverser)? == wanted;
            if holds != every {
                return Ok(holds);
            }
        }
        Ok(every)
    }))
}

pub(crate) fn build_where(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (label, predicate) = match call.args {
        [Value::P(p)] => (None, P::clone(p)),
        [Value::String(label), Value::P(p)] => (Some(label.clone()), P::clone(p)),
        [Value::Traversal(test)] => {
            let child = builder.nested(&variables(&test.steps))?;
            return Ok(Each::filter(Parts::children(vec![child]), |cx, parts, t| {
                parts.children[0].test(cx, t)
            }));
        }
        _ => return Err(call.wrong()),
    };
    let parts = Parts::bys(call.bys(builder)?);
    Ok(Each::filter(parts, move |cx, parts, traverser| {
        let mut turn = 0;
        let mut look = |cx: &mut Cx<'_>, value: Value| -> Result<Option<Value>> {
            if parts.bys.is_empty() {
                return Ok(Some(value));
            }
            let count = parts.bys.len();
            let by = &mut parts.bys[turn % count];
            turn += 1;
            by.apply_to(cx, traverser, &value)
        };
        let own = match &label {
            None => Some(traverser.value.clone()),
            Some(label) => cx.scoped(traverser, label, Pop::Last),
        };
        let Some(own) = own else { return Ok(false) };
        let Some(own) = look(cx, own)? else { return Ok(false) };
        let resolved = predicate.resolve(&mut |value| match value {
            Value::String(label) => match cx.scoped(traverser, label, Pop::Last) {
                Some(found) => look(cx, found),
                None => Ok(None),
            },
            other => Ok(Some(other.clone())),
        })?;
        match resolved {
            Some(predicate) => predicate.test(&own),
            None => Ok(false),
        }
    }))
}

/// In `where(__.as('a').out().as('b'))` the labels are not given but asked for.
pub(crate) fn variables(steps: &[Instruction]) -> Vec<Instruction> {
    let mut steps = crate::build::connected_variables(steps).unwrap_or_else(|| steps.to_vec());
    if let [only] = steps.as_mut_slice()
        && matches!(&*only.name, "and" | "or" | "not" | "where" | "filter")
    {
        for argument in &mut only.arguments {
            if let Value::Traversal(nested) = argument {
                let inner = Bytecode { source: vec![], steps: variables(&nested.steps) };
                *argument = Value::Traversal(Arc::new(inner));
            }
        }
        return steps;
    }
    if let Some(first) = steps.first_mut().filter(|step| &*step.name == "as") {
        *first = Instruction::new("$begin", first.arguments.clone());
    }
    if steps.len() > 1
        && let Some(last) = steps.last_mut().filter(|step| &*step.name == "as")
    {
        *last = Instruction::new("$end", last.arguments.clone());
    }
    // What a count() gives has forgotten the labels: they are looked at from where it began.
    let reduces = |step: &Instruction| super::find(&step.name).is_some_and(|def| def.kind == Kind::Barrier);
    if let [begin, inner @ .., end] = steps.as_slice()
        && (&*begin.name, &*end.name) == ("$begin", "$end")
        && inner.iter().any(reduces)
    {
        let inner = Value::Traversal(Arc::new(Bytecode { source: vec![], steps: inner.to_vec() }));
        let mut arguments = vec![inner];
        arguments.extend(end.arguments.iter().cloned());
        return vec![begin.clone(), Instruction::new("$ends", arguments)];
    }
    steps
}

pub(crate) fn build_begin(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let label = call.string(0)?;
    Ok(Each::op(Parts::default(), move |cx, _, mut traverser, out| {
        if let Some(value) = cx.scoped(&traverser, &label, Pop::Last) {
            traverser.value = value;
            traverser.on_path = false;
            out.push(traverser);
        }
        Ok(())
    }))
}

pub(crate) fn build_end(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let label = call.string(0)?;
    Ok(Each::filter(Parts::default(), move |cx, _, traverser| {
        Ok(cx.scoped(traverser, &label, Pop::Last).is_some_and(|wanted| equal(&wanted, &traverser.value)))
    }))
}

/// Whether a traversal leads to what a label stands for.
pub(crate) fn build_ends(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [inner, Value::String(label)] = call.args else { return Err(call.wrong()) };
    let (child, label) = (builder.child_of(inner)?, label.clone());
    Ok(Each::filter(Parts::children(vec![child]), move |cx, parts, traverser| {
        let Some(wanted) = cx.scoped(traverser, &label, Pop::Last) else { return Ok(false) };
        let found = parts.children[0].all(cx, traverser)?;
        Ok(found.iter().any(|one| equal(&wanted, &one.value)))
    }))
}

pub(crate) fn build_coin(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let probability = call.args.first().and_then(Value::as_f64).ok_or_else(|| call.wrong())?;
    let mut chances = None;
    Ok(Each::op(Parts::default(), move |cx, _, mut traverser, out| {
        let chances = chances.get_or_insert_with(|| cx.chances());
        // A coin for every walk that the traverser stands for; large crowds behave as expected of them.
        const COINS_MAX: u64 = 10_000;
        let bulk = traverser.bulk;
        traverser.bulk = if bulk > COINS_MAX {
            (bulk as f64 * probability) as u64
        } else {
            (0..bulk).filter(|_| probability >= chances.unit()).count() as u64
        };
        if traverser.bulk > 0 {
            out.push(traverser);
        }
        Ok(())
    }))
}

/// simplePath() and cyclicPath().
pub(crate) fn build_path_filter(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let simple = call.name == "simplePath";
    let section = Section::of(call)?;
    let parts = Parts::bys(call.bys(builder)?);
    Ok(Each::filter(parts, move |cx, parts, traverser| {
        let path = section.cut(traverser);
        let mut seen = std::collections::HashSet::new();
        let mut repeats = false;
        for (index, object) in path.objects.into_iter().enumerate() {
            let count = parts.bys.len();
            let object = match parts.bys.get_mut(index % count.max(1)) {
                Some(by) => match by.apply_to(cx, traverser, &object)? {
                    Some(object) => object,
                    None => return Ok(false),
                },
                None => object,
            };
            repeats |= !seen.insert(object);
        }
        Ok(repeats != simple)
    }))
}

/// The part of a path between two labels, as from() and to() name it.
#[derive(Default)]
pub(crate) struct Section {
    from: Option<Arc<str>>,
    to: Option<Arc<str>>,
}

impl Section {
    pub(crate) fn of(call: &Call<'_>) -> Result<Section> {
        let mut section = Section::default();
        for step in &call.mods {
            let label = match step.arguments.as_slice() {
                [Value::String(label)] => Some(label.clone()),
                _ if matches!(&*step.name, "from" | "to") => return Err(call.wrong()),
                _ => None,
            };
            match &*step.name {
                "from" => section.from = label,
                "to" => section.to = label,
                _ => {}
            }
        }
        Ok(section)
    }

    pub(crate) fn cut(&self, traverser: &Traverser) -> Path {
        let path = traverser.path_value();
        if self.from.is_none() && self.to.is_none() {
            return path;
        }
        let has = |labels: &Vec<Arc<str>>, label: &Option<Arc<str>>| {
            label.as_ref().is_some_and(|label| labels.contains(label))
        };
        let from = path.labels.iter().rposition(|labels| has(labels, &self.from)).unwrap_or(0);
        let to = path
            .labels
            .iter()
            .rposition(|labels| has(labels, &self.to))
            .map_or(path.objects.len(), |at| at + 1);
        let range = from.min(to)..to;
        Path { objects: path.objects[range.clone()].to_vec(), labels: path.labels[range].to_vec() }
    }
}

pub(crate) fn build_time_limit(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let millis = call.args.first().and_then(Value::as_i64).ok_or_else(|| call.wrong())?;
    let limit = Duration::from_millis(u64::try_from(millis).map_err(|_| call.wrong())?);
    let mut began = None;
    Ok(Each::filter(Parts::default(), move |_, _, _| {
        Ok(began.get_or_insert_with(Instant::now).elapsed() < limit)
    }))
}

/// all(), any() and none(): predicates over the members of a collection.
pub(crate) fn build_members(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let predicate = match (call.name, call.args) {
        ("none", []) => return Ok(Each::filter(Parts::default(), |_, _, _| Ok(false))),
        (_, [Value::P(p)]) => P::clone(p),
        _ => return Err(call.wrong()),
    };
    let (every, wanted) = match call.name {
        "all" => (true, true),
        "any" => (false, true),
        _ => (true, false),
    };
    Ok(Each::filter(Parts::default(), move |_, _, traverser| {
        let collection =
            matches!(traverser.value, Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_));
        if !collection {
            return Ok(false);
        }
        for item in items(&traverser.value) {
            let holds = predicate.test(&item)? == wanted;
            if holds != every {
                return Ok(holds);
            }
        }
        Ok(every)
    }))
}

pub(crate) fn build_discard(_: &mut Builder<'_>, _: &Call<'_>) -> Result<Box<dyn Op>> {
    Ok(Each::filter(Parts::default(), |_, _, _| Ok(false)))
}
