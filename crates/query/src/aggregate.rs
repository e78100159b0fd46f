//! Aggregates: COUNT, SUM, AVG, MIN, MAX, COUNTIF, MAKELIST and MAKESET.
//!
//! Undefined inputs are skipped by all of them. A non-number makes SUM and AVG undefined for good, an
//! array or object does the same to MIN and MAX. SUM of nothing is 0, AVG, MIN and MAX of nothing are
//! undefined. Integer sums stay exact while they fit 64 bits.

use std::cmp::Ordering;
use std::collections::HashSet;

use orrery_model::{Number, Value};
use orrery_sql::SqlError;

use crate::compare::{canonical_key, order};
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::operators::add;
use crate::value::{Eval, value_bytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    Count,
    Sum,
    Average,
    Min,
    Max,
    CountIf,
    MakeList,
    MakeSet,
}

const NAMES: &[(&str, AggregateKind)] = &[
    ("COUNT", AggregateKind::Count),
    ("SUM", AggregateKind::Sum),
    ("AVG", AggregateKind::Average),
    ("MIN", AggregateKind::Min),
    ("MAX", AggregateKind::Max),
    ("COUNTIF", AggregateKind::CountIf),
    ("MAKELIST", AggregateKind::MakeList),
    ("MAKESET", AggregateKind::MakeSet),
];

impl AggregateKind {
    /// The aggregate a function name stands for.
    pub fn of(name: &str) -> Option<AggregateKind> {
        NAMES.iter().find(|(text, _)| text.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }

    /// The name query plans use.
    pub fn plan_name(self) -> &'static str {
        match self {
            AggregateKind::Count => "Count",
            AggregateKind::Sum => "Sum",
            AggregateKind::Average => "Average",
            AggregateKind::Min => "Min",
            AggregateKind::Max => "Max",
            AggregateKind::CountIf => "CountIf",
            AggregateKind::MakeList => "MakeList",
            AggregateKind::MakeSet => "MakeSet",
        }
    }
}

/// One aggregate being computed.
#[derive(Clone, Debug)]
pub(crate) enum Accumulator {
    Count(i64),
    CountIf(i64),
    /// The sum and how many numbers it holds; `None` once a non-number came.
    Sum(Option<(Number, i64)>, bool),
    /// The best so far, `None` inside once an array or object came.
    Extreme(Option<Option<Value>>, Ordering),
    List(Vec<Value>, Option<HashSet<Vec<u8>>>),
}

impl Accumulator {
    pub fn new(kind: AggregateKind) -> Accumulator {
        match kind {
            AggregateKind::Count => Accumulator::Count(0),
            AggregateKind::CountIf => Accumulator::CountIf(0),
            AggregateKind::Sum => Accumulator::Sum(Some((Number::Int(0), 0)), false),
            AggregateKind::Average => Accumulator::Sum(Some((Number::Int(0), 0)), true),
            AggregateKind::Min => Accumulator::Extreme(Some(None), Ordering::Less),
            AggregateKind::Max => Accumulator::Extreme(Some(None), Ordering::Greater),
            AggregateKind::MakeList => Accumulator::List(Vec::new(), None),
            AggregateKind::MakeSet => Accumulator::List(Vec::new(), Some(HashSet::new())),
        }
    }

    /// Adds a value and says how much more is held because of it.
    pub fn add(&mut self, value: &Eval<'_>, meter: &Meter) -> Result<usize, SqlError> {
        if value.is_undefined() {
            return Ok(0);
        }
        match self {
            Accumulator::Count(count) => *count += 1,
            Accumulator::CountIf(count) => *count += i64::from(value.is_true()),
            Accumulator::Sum(state, _) => {
                *state = match (state.take(), value.as_number()) {
                    (Some((sum, count)), Some(number)) => Some((add(sum, number), count + 1)),
                    _ => None,
                };
            }
            Accumulator::Extreme(state, wanted) => {
                if !value.kind().has_extremes() {
                    *state = None;
                } else if let Some(best) = state {
                    let better =
                        best.as_ref().is_none_or(|best| order(value, &Eval::from_constant(best)) == *wanted);
                    if better {
                        // Only strings take memory, and each is held in place of the one before.
                        let before = best.as_ref().map_or(0, value_bytes);
                        let bytes = value.as_str().map_or(0, str::len);
                        meter.take(bytes.saturating_sub(before))?;
                        *best = Some(value.to_value());
                        return Ok(bytes.saturating_sub(before));
                    }
                }
            }
            Accumulator::List(values, seen) => {
                let fresh = match seen {
                    None => true,
                    Some(seen) => seen.insert(canonical_key(value)),
                };
                if fresh {
                    let value = value.to_value();
                    let copies = if seen.is_some() { 2 } else { 1 };
                    let bytes = copies * (size_of::<Value>() + value_bytes(&value)) + ROW_OVERHEAD_BYTES;
                    meter.take(bytes)?;
                    values.push(value);
                    return Ok(bytes);
                }
            }
        }
        Ok(0)
    }

    /// The same for a number.
    #[inline]
    pub fn add_number(&mut self, number: Number, meter: &Meter) -> Result<(), SqlError> {
        match self {
            Accumulator::Count(count) => *count += 1,
            Accumulator::Sum(Some((sum, count)), _) => {
                *sum = add(*sum, number);
                *count += 1;
            }
            other => {
                other.add(&Eval::Number(number), meter)?;
            }
        }
        Ok(())
    }

    /// Counts rows without their values; other aggregates need them.
    pub fn count(&mut self, rows: u64) {
        if let Accumulator::Count(count) = self {
            *count = count.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
        }
    }

    /// Sets a count or a sum that was found out otherwise.
    pub fn set_total(&mut self, total: u64) {
        let total = i64::try_from(total).unwrap_or(i64::MAX);
        match self {
            Accumulator::Count(count) | Accumulator::CountIf(count) => *count = total,
            Accumulator::Sum(sum, _) => *sum = Some((Number::Int(total), 1)),
            Accumulator::Extreme(..) | Accumulator::List(..) => {}
        }
    }

    /// Adds what another accumulator of the same aggregate has come to, as if its values had come after these, and
    /// says how much more is held because of it.
    pub fn absorb(&mut self, other: Accumulator, meter: &Meter) -> Result<usize, SqlError> {
        match (self, other) {
            (Accumulator::Count(count), Accumulator::Count(more))
            | (Accumulator::CountIf(count), Accumulator::CountIf(more)) => {
                *count = count.saturating_add(more);
            }
            (Accumulator::Sum(state, _), Accumulator::Sum(more, _)) => {
                *state = match (state.take(), more) {
                    (Some((sum, count)), Some((more, counted))) => {
                        Some((add(sum, more), count.saturating_add(counted)))
                    }
                    _ => None,
                };
            }
            (Accumulator::Extreme(state, _), Accumulator::Extreme(None, _)) => *state = None,
            (extreme @ Accumulator::Extreme(..), Accumulator::Extreme(Some(Some(best)), _)) => {
                return extreme.add(&Eval::from_constant(&best), meter);
            }
            (list @ Accumulator::List(..), Accumulator::List(values, _)) => {
                let mut bytes = 0;
                for value in &values {
                    bytes += list.add(&Eval::from_constant(value), meter)?;
                }
                return Ok(bytes);
            }
            // Nothing came to the other one, or it is of another query.
            _ => {}
        }
        Ok(0)
    }

    /// The memory that it takes.
    pub fn size_bytes(&self) -> usize {
        let held = match self {
            Accumulator::Extreme(Some(Some(best)), _) => value_bytes(best),
            Accumulator::List(values, seen) => {
                let copies = if seen.is_some() { 2 } else { 1 };
                let one =
                    |value: &Value| copies * (size_of::<Value>() + value_bytes(value)) + ROW_OVERHEAD_BYTES;
                values.iter().map(one).sum()
            }
            _ => 0,
        };
        size_of::<Accumulator>() + held
    }

    pub fn result(self) -> Value {
        match self {
            Accumulator::Count(count) | Accumulator::CountIf(count) => Value::Number(Number::Int(count)),
            Accumulator::Sum(None, _) | Accumulator::Extreme(None, _) => Value::Undefined,
            Accumulator::Sum(Some((_, 0)), true) => Value::Undefined,
            Accumulator::Sum(Some((sum, count)), true) => {
                Value::Number(Number::Double(sum.as_f64() / count as f64))
            }
            Accumulator::Sum(Some((sum, _)), false) => Value::Number(sum),
            Accumulator::Extreme(Some(best), _) => best.unwrap_or(Value::Undefined),
            Accumulator::List(values, _) => Value::Array(values),
        }
    }
}
