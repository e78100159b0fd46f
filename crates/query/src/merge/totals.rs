//! Aggregates and groups: partial results of the shares, added up.
//!
//! A share answers `{"item": …}` for each aggregate: a count or sum as it is, an average as its sum and count, a
//! minimum or maximum with the count of its values, which tells a share without values from one whose result is
//! undefined. Undefined parts make the whole undefined, as they would have in one partition.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use orrery_budget::Budget;
use orrery_model::{Number, Value};
use orrery_sql::SqlError;

use super::row::{items, unreadable};
use crate::aggregate::AggregateKind;
use crate::compare::canonical_key;
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::operators::add;
use crate::plan::QueryInfo;
use crate::value::Eval;

/// One aggregate over all shares. `None` inside is undefined for good.
#[derive(Debug)]
enum Total {
    Count(i64),
    Sum(Option<Number>),
    Average(Option<(Number, i64)>),
    Extreme(Option<Option<Value>>, Ordering),
    List(Vec<Value>, Option<HashSet<Vec<u8>>>),
}

impl Total {
    fn new(kind: AggregateKind) -> Total {
        match kind {
            AggregateKind::Count | AggregateKind::CountIf => Total::Count(0),
            AggregateKind::Sum => Total::Sum(Some(Number::Int(0))),
            AggregateKind::Average => Total::Average(Some((Number::Int(0), 0))),
            AggregateKind::Min => Total::Extreme(Some(None), Ordering::Less),
            AggregateKind::Max => Total::Extreme(Some(None), Ordering::Greater),
            AggregateKind::MakeList => Total::List(Vec::new(), None),
            AggregateKind::MakeSet => Total::List(Vec::new(), Some(HashSet::new())),
        }
    }

    fn add(&mut self, part: &Value, meter: &Meter) -> Result<(), SqlError> {
        let item = part.get("item");
        match self {
            Total::Count(count) => *count += integer(item)?,
            Total::Sum(sum) => {
                *sum = match (sum.take(), item.and_then(Value::as_number)) {
                    (Some(sum), Some(number)) => Some(add(sum, number)),
                    _ => None,
                };
            }
            Total::Average(state) => {
                let count = integer(item.and_then(|item| item.get("count")))?;
                let sum = item.and_then(|item| item.get("sum")).and_then(Value::as_number);
                *state = match (state.take(), sum) {
                    (Some((total, counted)), Some(sum)) => Some((add(total, sum), counted + count)),
                    _ => None,
                };
            }
            Total::Extreme(state, wanted) => {
                let count = integer(part.get("item2").and_then(|item| item.get("count")))?;
                if count == 0 {
                    return Ok(());
                }
                match (item, &mut *state) {
                    (None, _) => *state = None,
                    (Some(value), Some(best))
                        if best.as_ref().is_none_or(|best| value.compare(best) == *wanted) =>
                    {
                        *best = Some(value.clone());
                    }
                    _ => {}
                }
            }
            Total::List(values, seen) => {
                for value in item.and_then(Value::as_array).unwrap_or_default() {
                    let key = canonical_key(&Eval::from_constant(value));
                    let size = key.len();
                    if seen.as_mut().is_none_or(|seen| seen.insert(key)) {
                        meter.take(size + ROW_OVERHEAD_BYTES)?;
                        values.push(value.clone());
                    }
                }
            }
        }
        Ok(())
    }

    fn result(self) -> Value {
        match self {
            Total::Count(count) => Value::from(count),
            Total::Sum(sum) => sum.map_or(Value::Undefined, Value::Number),
            Total::Average(Some((sum, count))) if count > 0 => Value::from(sum.as_f64() / count as f64),
            Total::Average(_) => Value::Undefined,
            Total::Extreme(best, _) => best.flatten().unwrap_or_default(),
            Total::List(values, _) => Value::Array(values),
        }
    }
}

fn integer(value: Option<&Value>) -> Result<i64, SqlError> {
    value.and_then(Value::as_number).and_then(Number::as_i64).ok_or_else(unreadable)
}

/// One group, or everything where there are no groups.
#[derive(Debug)]
enum Group {
    /// `SELECT VALUE` of an aggregate.
    Value(Total),
    /// A select list: the values of its names, in order.
    List(Vec<Part>),
    /// `SELECT VALUE` of an expression over the group's keys: the same in every share.
    Payload(Value),
}

#[derive(Debug)]
enum Part {
    Plain(Value),
    Total(Total),
}

/// All groups in the order in which they first appeared.
pub(super) struct Groups<'i> {
    info: &'i QueryInfo,
    groups: Vec<Group>,
    places: HashMap<Vec<u8>, usize>,
    meter: Meter,
}

impl<'i> Groups<'i> {
    pub fn new(info: &'i QueryInfo, budget: &Budget) -> Groups<'i> {
        Groups { info, groups: Vec::new(), places: HashMap::new(), meter: Meter::new(budget) }
    }

    /// Adds one row of a share.
    pub fn add(&mut self, row: &Value) -> Result<(), SqlError> {
        let grouped = !self.info.group_by_expressions.is_empty();
        let undefined = Value::Undefined;
        let (key, payload) = if grouped {
            let keys = Value::Array(items(row.get("groupByItems").unwrap_or(&undefined)));
            (group_key(&keys), row.get("payload").unwrap_or(&undefined))
        } else if self.info.select_value {
            (Vec::new(), row)
        } else {
            (Vec::new(), row.get("payload").unwrap_or(&undefined))
        };
        let size = key.len();
        let next = self.groups.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            self.meter.take(size * 2 + ROW_OVERHEAD_BYTES)?;
            self.groups.push(Group::new(self.info, payload));
        }
        let Some(group) = self.groups.get_mut(place) else { return Ok(()) };
        group.add(self.info, payload, &self.meter)
    }

    /// The rows; undefined ones have no row.
    pub fn into_rows(self) -> impl Iterator<Item = Value> {
        let info = self.info;
        self.groups.into_iter().map(|group| group.result(info)).filter(|row| !row.is_undefined())
    }
}

/// Keys with undefined ones among them: an array would drop those.
fn group_key(keys: &Value) -> Vec<u8> {
    keys.as_array()
        .unwrap_or_default()
        .iter()
        .flat_map(|key| canonical_key(&Eval::from_constant(key)))
        .collect()
}

impl Group {
    fn new(info: &QueryInfo, payload: &Value) -> Group {
        if let [kind] = info.aggregates.as_slice() {
            return Group::Value(Total::new(*kind));
        }
        if info.select_value || info.aliases.is_empty() {
            return Group::Payload(payload.clone());
        }
        let parts = info.aliases.iter().map(|(alias, kind)| match kind {
            Some(kind) => Part::Total(Total::new(*kind)),
            None => Part::Plain(payload.get(alias).cloned().unwrap_or_default()),
        });
        Group::List(parts.collect())
    }

    fn add(&mut self, info: &QueryInfo, payload: &Value, meter: &Meter) -> Result<(), SqlError> {
        match self {
            Group::Value(total) => total.add(payload.at(0).ok_or_else(unreadable)?, meter),
            Group::Payload(_) => Ok(()),
            Group::List(parts) => {
                for (part, (alias, _)) in parts.iter_mut().zip(&info.aliases) {
                    if let Part::Total(total) = part {
                        total.add(payload.get(alias).ok_or_else(unreadable)?, meter)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn result(self, info: &QueryInfo) -> Value {
        match self {
            Group::Value(total) => total.result(),
            Group::Payload(value) => value,
            Group::List(parts) => {
                let values = parts.into_iter().map(|part| match part {
                    Part::Plain(value) => value,
                    Part::Total(total) => total.result(),
                });
                let names = info.aliases.iter().map(|(alias, _)| alias.clone());
                Value::Object(names.zip(values).filter(|(_, value)| !value.is_undefined()).collect())
            }
        }
    }
}
