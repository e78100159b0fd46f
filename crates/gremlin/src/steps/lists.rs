//! Collections: combine(), conjoin(), difference(), disjunct(), intersect(), merge(), product().

use std::collections::HashSet;
use std::sync::Arc;

use super::mutate::Source;
use super::*;
use crate::compare::items;
use crate::text::{text_of, type_name};
use crate::value::Map;

fn collection(step: &str, value: &Value) -> Result<Vec<Value>> {
    match value {
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) => Ok(items(value)),
        other => Err(Error::runtime(format!(
            "{step}() step can only take an array or an Iterable type, encountered {}",
            type_name(other)
        ))),
    }
}

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [argument] = call.args else { return Err(call.wrong()) };
    let name = call.name;
    let mut source = Source::of(builder, argument)?;
    if let Source::Constant(value) = &source
        && !(name == "merge" && matches!(value, Value::Map(_)))
    {
        collection(name, value)?;
    }
    Ok(Each::map(Parts::default(), move |cx, _, traverser| {
        let given = source.get(cx, traverser)?;
        let given = given.ok_or_else(|| {
            Error::runtime(format!("{name}() step needs a value, and its traversal gives none"))
        })?;
        if let (Value::Map(a), "merge") = (&traverser.value, name) {
            let Value::Map(b) = &given else {
                return Err(Error::runtime("merge() of a Map takes a Map"));
            };
            let mut all = Map::clone(a);
            all.extend(b.iter().map(|(k, v)| (k.clone(), v.clone())));
            return Ok(Some(Value::Map(Arc::new(all))));
        }
        let (own, other) = (collection(name, &traverser.value)?, collection(name, &given)?);
        let set = |values: &[Value]| values.iter().cloned().collect::<HashSet<Value>>();
        Ok(Some(match name {
            "combine" => Value::list(own.into_iter().chain(other).collect()),
            "merge" => Value::set(own.into_iter().chain(other)),
            "difference" => {
                let known = set(&other);
                Value::set(own.into_iter().filter(|value| !known.contains(value)))
            }
            "intersect" => {
                let known = set(&other);
                Value::set(own.into_iter().filter(|value| known.contains(value)))
            }
            "disjunct" => {
                let (mine, known) = (set(&own), set(&other));
                let first = own.into_iter().filter(|value| !known.contains(value));
                Value::set(first.chain(other.into_iter().filter(|value| !mine.contains(value))))
            }
            _ => {
                cx.options.budget.step((own.len() as u64).saturating_mul(other.len() as u64))?;
                let pairs = own
                    .iter()
                    .flat_map(|a| other.iter().map(move |b| Value::list(vec![a.clone(), b.clone()])));
                Value::list(pairs.collect())
            }
        }))
    }))
}

pub(crate) fn build_conjoin(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let [Value::String(separator)] = call.args else {
        return Err(Error::runtime("Input delimiter to conjoin step can't be null."));
    };
    let separator = separator.clone();
    Ok(Each::map(Parts::default(), move |_, _, traverser| {
        let members = collection("conjoin", &traverser.value)?;
        if members.is_empty() || members.iter().all(Value::is_null) {
            return Ok(if members.is_empty() { Some(Value::string("")) } else { None });
        }
        let shown: Vec<String> = members.iter().filter(|value| !value.is_null()).map(text_of).collect();
        Ok(Some(Value::string(shown.join(&separator))))
    }))
}
