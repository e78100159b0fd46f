//! All into one: count(), sum(), min(), max(), mean(), fold().

use std::cmp::Ordering;

use super::*;
use crate::arithmetic::{self, Sum};
use crate::compare::items;
use crate::value::{Operator, Scope};

#[derive(Clone, Copy, PartialEq)]
enum Reduce {
    Count,
    Sum,
    Min,
    Max,
    Mean,
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    value: Option<Value>,
    count: u64,
}

impl Reduce {
    fn add(self, seen: &mut Seen, value: &Value, bulk: u64) -> Result<()> {
        if self != Reduce::Count && value.is_null() {
            // Null is no number and no extreme, yet something was there.
            seen.value.get_or_insert(Value::Null);
            return Ok(());
        }
        let before = seen.value.take();
        seen.value = Some(match (self, before) {
            (Reduce::Count, _) => Value::Null,
            (Reduce::Sum | Reduce::Mean, before) => {
                if !value.is_number() {
                    let text =
                        format!("{} cannot be cast to java.lang.Number", crate::text::type_name(value));
                    return Err(Error::runtime(text));
                }
                let summand = arithmetic::times(value, bulk)?;
                match before {
                    None | Some(Value::Null) => summand,
                    Some(before) => arithmetic::apply(Sum::Add, &before, &summand)?,
                }
            }
            (_, None) => value.clone(),
            (Reduce::Min, Some(before)) => arithmetic::extreme(&before, value, Ordering::Less),
            (Reduce::Max, Some(before)) => arithmetic::extreme(&before, value, Ordering::Greater),
        });
        seen.count = seen.count.saturating_add(bulk);
        Ok(())
    }

    fn result(self, seen: Seen) -> Result<Option<Value>> {
        Ok(match self {
            Reduce::Count => Some(Value::Long(i64::try_from(seen.count).unwrap_or(i64::MAX))),
            Reduce::Mean => match seen.value {
                None | Some(Value::Null) => seen.value,
                Some(sum) => {
                    let count = Value::Long(i64::try_from(seen.count).unwrap_or(i64::MAX));
                    Some(match &sum {
                        Value::BigDecimal(_) | Value::BigInt(_) => {
                            let sum = crate::compare::decimal(&sum)
                                .unwrap_or_else(|| crate::decimal::Decimal::new(0.into(), 0));
                            arithmetic::apply(Sum::Div, &Value::BigDecimal(sum.into()), &count)?
                        }
                        Value::Float(_) => {
                            Value::Float((sum.as_f64().unwrap_or(f64::NAN) / seen.count as f64) as f32)
                        }
                        sum => Value::Double(sum.as_f64().unwrap_or(f64::NAN) / seen.count as f64),
                    })
                }
            },
            _ => seen.value,
        })
    }
}

pub(crate) fn build(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let reduce = match call.name {
        "count" => Reduce::Count,
        "sum" => Reduce::Sum,
        "min" => Reduce::Min,
        "max" => Reduce::Max,
        _ => Reduce::Mean,
    };
    let (scope, rest) = call.scoped();
    if !rest.is_empty() {
        return Err(call.wrong());
    }
    if scope == Scope::Global {
        return Ok(Box::new(Global { reduce, done: false }));
    }
    Ok(Each::map(Parts::default(), move |_, _, traverser| {
        let value = &traverser.value;
        let members = match value {
            Value::Map(map) if reduce == Reduce::Count => {
                return Ok(Some(Value::Long(map.len() as i64)));
            }
            Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) => items(value),
            Value::Tree(tree) if reduce == Reduce::Count => {
                return Ok(Some(Value::Long(tree.0.len() as i64)));
            }
            _ if reduce == Reduce::Count => {
                return Ok(Some(Value::Long(1)));
            }
            other => vec![other.clone()],
        };
        let mut seen = Seen::default();
        for member in &members {
            reduce.add(&mut seen, member, 1)?;
        }
        reduce.result(seen)
    }))
}

struct Global {
    reduce: Reduce,
    done: bool,
}

impl Op for Global {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let mut seen = Seen::default();
        loop {
            let batch = up.next(cx, usize::MAX)?;
            if batch.is_empty() {
                break;
            }
            for traverser in &batch {
                let bulk = if cx.one_bulk { 1 } else { traverser.bulk };
                self.reduce.add(&mut seen, &traverser.value, bulk)?;
            }
        }
        Ok(self.reduce.result(seen)?.map(|value| reduced(cx, value)).into_iter().collect())
    }

    fn reset(&mut self) {
        self.done = false;
    }
}

/// What a reduction gives has no past: nothing that came in led to it alone.
pub(crate) fn reduced(cx: &Cx<'_>, value: Value) -> crate::traverser::Traverser {
    let mut traverser = crate::traverser::Traverser::new(Value::Null);
    traverser.sack = cx.sack.as_ref().map(|sack| sack.initial.clone());
    traverser.into_step(value, cx.mode)
}

pub(crate) fn build_fold(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let seed = match call.args {
        [] => None,
        [seed, Value::Operator(operator)] => Some((seed.clone(), *operator)),
        _ => return Err(call.wrong()),
    };
    Ok(Box::new(Fold { seed, done: false }))
}

struct Fold {
    seed: Option<(Value, Operator)>,
    done: bool,
}

impl Op for Fold {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, _: usize) -> Result<Batch> {
        /// What a list made of merged traversers may hold; beyond it nobody could read it.
        const FOLDED_MAX: u64 = 10_000_000;
        if std::mem::replace(&mut self.done, true) {
            return Ok(Vec::new());
        }
        let (all, _held) = up.all(cx)?;
        let value = match &self.seed {
            Some((seed, operator)) => {
                let mut value = seed.clone();
                for traverser in &all {
                    for _ in 0..traverser.bulk.min(FOLDED_MAX) {
                        value = arithmetic::operate(*operator, &value, &traverser.value)?;
                    }
                }
                value
            }
            None => {
                let total: u64 = all.iter().map(|traverser| traverser.bulk).sum();
                if total > FOLDED_MAX {
                    let text = format!("A list of more than {FOLDED_MAX} members is not built.");
                    return Err(Error::new(crate::error::ErrorKind::Limit, text));
                }
                let mut list = Vec::with_capacity(total as usize);
                for traverser in all {
                    for _ in 1..traverser.bulk {
                        list.push(traverser.value.clone());
                    }
                    list.push(traverser.value);
                }
                Value::list(list)
            }
        };
        Ok(vec![reduced(cx, value)])
    }

    fn reset(&mut self) {
        self.done = false;
    }
}
