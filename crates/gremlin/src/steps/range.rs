//! Some of many: range(), limit(), skip(), tail(), sample() and dedup(), of the stream or of one collection.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use super::*;
use crate::compare::items;
use crate::traverser::Traverser;
use crate::value::{Map, Pop, Scope};

pub(crate) fn build_range(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, args) = call.scoped();
    let whole = |value: &Value| value.as_i64().ok_or_else(|| call.wrong());
    let (low, high) = match (call.name, args) {
        ("limit", [high]) => (0, whole(high)?),
        ("skip", [low]) => (whole(low)?, -1),
        ("range", [low, high]) => (whole(low)?, whole(high)?),
        _ => return Err(call.wrong()),
    };
    if low < -1 || high < -1 || (high != -1 && low > high) {
        return Err(Error::runtime(format!("Not a legal range: [{low}, {high}]")));
    }
    let low = low.max(0) as u64;
    let high = u64::try_from(high).unwrap_or(u64::MAX);
    if scope == Scope::Local {
        return Ok(Each::map(Parts::default(), move |_, _, traverser| {
            Ok(Some(slice(&traverser.value, low as usize, usize::try_from(high).unwrap_or(usize::MAX))))
        }));
    }
    Ok(Box::new(Range { low, high, seen: 0 }))
}

/// A part of a collection, a map or a path; anything else is whole already.
fn slice(value: &Value, low: usize, high: usize) -> Value {
    let count = high.saturating_sub(low);
    match value {
        Value::List(list) => Value::list(list.iter().skip(low).take(count).cloned().collect()),
        Value::Set(set) => Value::set(set.iter().skip(low).take(count).cloned()),
        Value::BulkSet(_) => Value::list(items(value).into_iter().skip(low).take(count).collect()),
        Value::Map(map) => Value::map(map.iter().skip(low).take(count).map(|(k, v)| (k.clone(), v.clone()))),
        Value::Path(path) => Value::Path(Arc::new(crate::path::Path {
            objects: path.objects.iter().skip(low).take(count).cloned().collect(),
            labels: path.labels.iter().skip(low).take(count).cloned().collect(),
        })),
        other => other.clone(),
    }
}

struct Range {
    low: u64,
    high: u64,
    seen: u64,
}

impl Op for Range {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        loop {
            if self.seen >= self.high {
                return Ok(Vec::new());
            }
            let left = usize::try_from(self.high - self.seen).unwrap_or(usize::MAX);
            let skipped = usize::try_from(self.low.saturating_sub(self.seen)).unwrap_or(usize::MAX);
            let batch = up.next(cx, left.min(want.saturating_add(skipped)))?;
            if batch.is_empty() {
                return Ok(batch);
            }
            let mut out = Vec::new();
            for mut traverser in batch {
                let (from, to) = (self.seen, self.seen.saturating_add(traverser.bulk));
                self.seen = to;
                let (from, to) = (from.max(self.low), to.min(self.high));
                if from < to {
                    traverser.bulk = to - from;
                    out.push(traverser);
                }
            }
            if !out.is_empty() {
                return Ok(out);
            }
        }
    }

    fn reset(&mut self) {
        self.seen = 0;
    }
}

pub(crate) fn build_tail(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, args) = call.scoped();
    let count = match args {
        [] => 1,
        [count] => count.as_i64().and_then(|n| u64::try_from(n).ok()).ok_or_else(|| call.wrong())?,
        _ => return Err(call.wrong()),
    };
    if scope == Scope::Local {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        return Ok(Each::map(Parts::default(), move |_, _, traverser| {
            let length = match &traverser.value {
                Value::Map(map) => map.len(),
                Value::Path(path) => path.objects.len(),
                other => items(other).len(),
            };
            Ok(Some(slice(&traverser.value, length.saturating_sub(count), usize::MAX)))
        }));
    }
    Ok(Box::new(Tail { count, done: false }))
}

struct Tail {
    count: u64,
    done: bool,
}

impl Op for Tail {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let mut last: VecDeque<Traverser> = VecDeque::new();
        let mut total = 0u64;
        loop {
            let batch = up.next(cx, usize::MAX)?;
            if batch.is_empty() {
                break;
            }
            for traverser in batch {
                total = total.saturating_add(traverser.bulk);
                last.push_back(traverser);
                while let Some(first) = last.front_mut()
                    && total > self.count
                {
                    let over = (total - self.count).min(first.bulk);
                    first.bulk -= over;
                    total -= over;
                    if first.bulk == 0 {
                        last.pop_front();
                    }
                }
            }
        }
        Ok(last.into())
    }

    fn reset(&mut self) {
        self.done = false;
    }
}

pub(crate) fn build_sample(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, args) = call.scoped();
    let count = match args {
        [count] => count.as_i64().and_then(|n| u64::try_from(n).ok()).ok_or_else(|| call.wrong())?,
        _ => return Err(call.wrong()),
    };
    if scope == Scope::Local {
        let mut chances = None;
        return Ok(Each::map(Parts::default(), move |cx, _, traverser| {
            let chances = chances.get_or_insert_with(|| cx.chances());
            let mut chosen = |length: usize| {
                let mut all: Vec<usize> = (0..length).collect();
                if all.len() as u64 <= count {
                    return all;
                }
                let wanted = 0..count as usize;
                wanted.map(|_| all.remove(chances.below(all.len() as u32) as usize)).collect()
            };
            Ok(Some(match &traverser.value {
                Value::Map(map) => {
                    let chosen = chosen(map.len());
                    let entry = |at: usize| map.get_index(at).map(|(k, v)| (k.clone(), v.clone()));
                    Value::Map(Arc::new(chosen.into_iter().filter_map(entry).collect::<Map>()))
                }
                value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_)) => {
                    let all = items(value);
                    Value::list(chosen(all.len()).into_iter().map(|at| all[at].clone()).collect())
                }
                other => other.clone(),
            }))
        }));
    }
    let by = call.one_by(builder)?;
    let weighted = call.mods.iter().any(|step| &*step.name == "by");
    Ok(Box::new(Sample { count, by, weighted, done: false }))
}

struct Sample {
    count: u64,
    by: By,
    weighted: bool,
    done: bool,
}

impl Op for Sample {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let (all, _held) = up.all(cx)?;
        let mut weights = Vec::with_capacity(all.len());
        let mut kept = Vec::with_capacity(all.len());
        for traverser in all {
            let weight = if self.weighted {
                match self.by.apply(cx, &traverser)? {
                    Some(weight) => weight.as_f64().unwrap_or(0.0),
                    None => continue,
                }
            } else {
                1.0
            };
            weights.push(weight * traverser.bulk as f64);
            kept.push((traverser, weight, 0u64));
        }
        let total: u64 = kept.iter().map(|(t, _, _)| t.bulk).sum();
        for _ in 0..self.count.min(total) {
            let sum: f64 = weights.iter().sum();
            let mut point = cx.rng.unit() * sum;
            let mut at = weights.iter().position(|weight| *weight > 0.0).unwrap_or(0);
            for (index, weight) in weights.iter().enumerate() {
                if *weight > 0.0 {
                    at = index;
                    if point < *weight {
                        break;
                    }
                    point -= weight;
                }
            }
            weights[at] -= kept[at].1;
            kept[at].2 += 1;
            if kept[at].2 >= kept[at].0.bulk {
                weights[at] = 0.0;
            }
        }
        Ok(kept
            .into_iter()
            .filter(|(_, _, chosen)| *chosen > 0)
            .map(|(mut traverser, _, chosen)| {
                traverser.bulk = chosen.min(traverser.bulk);
                traverser
            })
            .collect())
    }

    fn reset(&mut self) {
        self.done = false;
    }
}

pub(crate) fn build_dedup(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (scope, args) = call.scoped();
    let labels = crate::build::strings(args).ok_or_else(|| call.wrong())?;
    let bys = call.bys(builder)?;
    if labels.is_empty() && bys.len() > 1 {
        return Err(Error::runtime("Dedup step can only have one by modulator"));
    }
    if scope == Scope::Local {
        return Ok(Each::map(Parts::bys(bys), move |cx, parts, traverser| {
            if !matches!(traverser.value, Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_))
            {
                return Ok(Some(traverser.value.clone()));
            }
            let mut seen = HashSet::new();
            let mut kept = Vec::new();
            for item in items(&traverser.value) {
                let key = match parts.bys.first_mut() {
                    Some(by) => by.apply_to(cx, traverser, &item)?,
                    None => Some(item.clone()),
                };
                if let Some(key) = key
                    && seen.insert(key)
                {
                    kept.push(item);
                }
            }
            Ok(Some(Value::set(kept)))
        }));
    }
    Ok(Box::new(Dedup { labels, parts: Parts::bys(bys), seen: HashSet::default(), held: None, bytes: 0 }))
}

struct Dedup {
    labels: Vec<Arc<str>>,
    parts: Parts,
    seen: HashSet<Value, foldhash::fast::RandomState>,
    held: Option<orrery_budget::Held>,
    bytes: usize,
}

impl Dedup {
    fn key(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<Option<Value>> {
        if self.labels.is_empty() {
            return match self.parts.bys.first_mut() {
                Some(by) => by.apply(cx, traverser),
                None => Ok(Some(traverser.value.clone())),
            };
        }
        let mut key = Vec::with_capacity(self.labels.len());
        for (index, label) in self.labels.iter().enumerate() {
            let Some(value) = cx.scoped(traverser, label, Pop::Last) else { return Ok(None) };
            let count = self.parts.bys.len();
            let value = match self.parts.bys.get_mut(index % count.max(1)) {
                Some(by) => by.apply_to(cx, traverser, &value)?,
                None => Some(value),
            };
            match value {
                Some(value) => key.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(Value::list(key)))
    }
}

impl Op for Dedup {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        loop {
            let batch = up.next(cx, want)?;
            if batch.is_empty() {
                return Ok(batch);
            }
            let values: Vec<Value> = batch.iter().map(|t| t.value.clone()).collect();
            self.parts.prepare(cx, &values)?;
            let mut out = Vec::new();
            for mut traverser in batch {
                let Some(key) = self.key(cx, &traverser)? else { continue };
                let size = key.size_bytes() + 32;
                if self.seen.insert(key) {
                    self.bytes += size;
                    traverser.bulk = 1;
                    out.push(traverser);
                }
            }
            match &mut self.held {
                Some(held) => held.resize(self.bytes)?,
                None => self.held = Some(cx.options.budget.hold(self.bytes)?),
            }
            if !out.is_empty() {
                return Ok(out);
            }
        }
    }

    /// What was seen in one loop stays seen in the next.
    fn next_loop(&mut self) {}

    fn reset(&mut self) {
        self.seen.clear();
        self.held = None;
        self.bytes = 0;
    }
}
