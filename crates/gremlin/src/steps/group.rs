//! group() and groupCount(), as results and as side effects.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::*;
use crate::evaluate::Selector;
use crate::steps::reduce::reduced;
use crate::traverser::Traverser;
use crate::value::Map;

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let side_effect = match call.args {
        [] => None,
        [Value::String(key)] => Some(key.clone()),
        _ => return Err(call.wrong()),
    };
    let counts = call.name == "groupCount";
    let mut bys = call.bys(builder)?;
    let allowed = if counts { 1 } else { 2 };
    if bys.len() > allowed {
        let text = if counts {
            "GroupCount step can only have one by modulator"
        } else {
            "The key and value traversals for group()-step have already been set"
        };
        return Err(Error::runtime(text));
    }
    let value = if bys.len() == 2 { bys.pop() } else { None };
    let key = bys.pop().unwrap_or_else(By::identity);
    let value = value.unwrap_or_else(By::identity);
    let values = match &value.selector {
        _ if counts => Values::Count,
        Selector::Child(child) if child.0.has_barrier => Values::Reduce,
        Selector::Child(_) => Values::One,
        _ => Values::List,
    };
    let groups = Groups { groups: IndexMap::default(), counts: IndexMap::default(), bytes: 0, held: None };
    Ok(Box::new(Group { side_effect, key: Parts::bys(vec![key]), value, values, groups, done: false }))
}

#[derive(Clone, Copy, PartialEq)]
enum Values {
    /// How many.
    Count,
    /// All of them.
    List,
    /// What a traversal makes of all of them.
    Reduce,
    /// What a traversal makes of one.
    One,
}

struct Groups {
    groups: IndexMap<Value, Vec<Traverser>, RandomState>,
    counts: IndexMap<Value, u64, RandomState>,
    bytes: usize,
    held: Option<orrery_budget::Held>,
}

struct Group {
    side_effect: Option<Arc<str>>,
    key: Parts,
    value: By,
    values: Values,
    groups: Groups,
    done: bool,
}

impl Group {
    fn take(&mut self, cx: &mut Cx<'_>, batch: &[Traverser]) -> Result<()> {
        let values: Vec<Value> = batch.iter().map(|t| t.value.clone()).collect();
        self.key.prepare(cx, &values)?;
        if self.value.loads() {
            cx.load(&values)?;
        }
        for traverser in batch {
            let Some(key) = self.key.bys[0].apply(cx, traverser)? else { continue };
            let bulk = if cx.one_bulk { 1 } else { traverser.bulk };
            let size = key.size_bytes();
            if self.values == Values::Count {
                let mut is_new = false;
                let count = self.groups.counts.entry(key).or_insert_with(|| {
                    is_new = true;
                    0
                });
                *count = count.saturating_add(bulk);
                self.groups.bytes += if is_new { size + 32 } else { 0 };
                continue;
            }
            let mut member = traverser.clone();
            if self.values == Values::List {
                match self.value.apply(cx, traverser)? {
                    Some(value) => member.value = value,
                    None => {
                        self.groups.groups.entry(key).or_default();
                        continue;
                    }
                }
            }
            self.groups.bytes += size + member.size_bytes();
            self.groups.groups.entry(key).or_default().push(member);
        }
        match &mut self.groups.held {
            Some(held) => held.resize(self.groups.bytes)?,
            None => self.groups.held = Some(cx.options.budget.hold(self.groups.bytes)?),
        }
        Ok(())
    }

    fn result(&mut self, cx: &mut Cx<'_>) -> Result<Value> {
        let mut map = Map::new();
        if self.values == Values::Count {
            for (key, count) in &self.groups.counts {
                map.insert(key.clone(), Value::Long(i64::try_from(*count).unwrap_or(i64::MAX)));
            }
        }
        for (key, members) in &self.groups.groups {
            let value = match (self.values, &mut self.value.selector) {
                (Values::Reduce, Selector::Child(child)) => {
                    let values: Vec<Value> = members.iter().map(|t| t.value.clone()).collect();
                    child.0.prefetch(cx, &values)?;
                    child.run(cx, members.clone())?.into_iter().next().map(|t| t.value)
                }
                (Values::One, Selector::Child(child)) => {
                    let mut last = None;
                    for member in members {
                        if let Some(found) = child.first(cx, member)? {
                            last = Some(found.value);
                            break;
                        }
                    }
                    last
                }
                _ => {
                    let mut list = Vec::new();
                    for member in members {
                        for _ in 0..member.bulk {
                            list.push(member.value.clone());
                        }
                        cx.options.budget.step(member.bulk)?;
                    }
                    Some(Value::list(list))
                }
            };
            if let Some(value) = value {
                map.insert(key.clone(), value);
            }
        }
        Ok(Value::Map(Arc::new(map)))
    }
}

impl Op for Group {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        if let Some(side_effect) = self.side_effect.clone() {
            let (all, _held) = up.all(cx)?;
            self.take(cx, &all)?;
            let mut result = self.result(cx)?;
            if let (Some(Value::Map(before)), Value::Map(now)) = (cx.side_effects.get(&side_effect), &result)
            {
                let mut both = Map::clone(before);
                for (key, value) in now.iter() {
                    let value = match (both.get(key), value) {
                        (Some(before), value)
                            if self.values == Values::Count && before.is_number() && value.is_number() =>
                        {
                            crate::arithmetic::operate(crate::value::Operator::Sum, before, value)?
                        }
                        (Some(Value::List(before)), Value::List(more)) if self.values == Values::List => {
                            Value::list(before.iter().chain(more.iter()).cloned().collect())
                        }
                        (_, value) => value.clone(),
                    };
                    both.insert(key.clone(), value);
                }
                result = Value::Map(Arc::new(both));
            }
            // What can be added up is; what a traversal reduces is reduced again with all that comes later.
            if matches!(self.values, Values::Count | Values::List) {
                self.groups =
                    Groups { groups: IndexMap::default(), counts: IndexMap::default(), bytes: 0, held: None };
            }
            cx.side_effects.insert(side_effect, result);
            return Ok(all);
        }
        loop {
            let batch = up.next(cx, usize::MAX)?;
            if batch.is_empty() {
                break;
            }
            self.take(cx, &batch)?;
        }
        let result = self.result(cx)?;
        Ok(vec![reduced(cx, result)])
    }

    fn reset(&mut self) {
        self.done = false;
        // As a side effect it goes on from where it was.
        if self.side_effect.is_none() {
            self.groups =
                Groups { groups: IndexMap::default(), counts: IndexMap::default(), bytes: 0, held: None };
        }
    }
}
