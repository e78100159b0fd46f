//! Accumulators of `$group`, `$bucket`, `$bucketAuto` and windows.
//!
//! A specification is parsed once, started once for each group, given each document of the group, and finished.
//!
//! ```text
//! let spec = AccumulatorSpec::parse("$sum", &argument, &context)?;
//! let mut sum = spec.start(group_id, &context)?;
//! for document in group { sum.add(document, &context)?; }
//! let result = sum.finish(&context)?;
//! ```

pub(crate) mod percentile;
mod specification;
pub(crate) mod state;
pub mod window;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use specification::Specification;
pub use specification::{ACCUMULATORS, AccumulatorDoc};

use crate::context::Context;
use crate::error::Result;
use crate::expression::number::{self, Sum};
use crate::expression::size::held_bytes;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;
use percentile::Percentiles;
use state::{Deviation, Extreme};

/// A parsed accumulator: `{$sum: "$x"}`. Clones share it.
#[derive(Clone, Debug)]
pub struct AccumulatorSpec(Arc<Specification>);

/// What one accumulator has seen of one group.
#[derive(Clone, Debug)]
pub struct Accumulator {
    specification: Arc<Specification>,
    state: State,
    size_bytes: usize,
}

/// What an accumulator takes of a document.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    value: Option<Bson>,
    /// By which `$top` and its like sort.
    key: Vec<Bson>,
}

impl Input {
    fn size_bytes(&self) -> usize {
        size_of::<Input>() + self.value.iter().chain(&self.key).map(held_bytes).sum::<usize>()
    }
}

#[derive(Clone, Debug)]
enum State {
    Sum(Sum),
    Mean(Sum),
    Count(i64),
    Extreme(Extreme),
    First(Option<Bson>),
    Last(Bson),
    Push(VecDeque<Bson>),
    Set {
        seen: HashSet<Vec<u8>>,
        values: Vec<Bson>,
    },
    Deviation(Deviation),
    Merge(Document),
    FirstN {
        n: usize,
        values: Vec<Bson>,
    },
    LastN {
        n: usize,
        values: VecDeque<Bson>,
    },
    /// The least or greatest ones, in order.
    ExtremeN {
        n: usize,
        values: Vec<Bson>,
    },
    /// Outputs with their keys, in order.
    Top {
        n: usize,
        entries: Vec<Input>,
    },
    Percentiles {
        values: Percentiles,
        parts: Vec<f64>,
    },
    Joined(Vec<Bson>),
}

impl AccumulatorSpec {
    /// Parses `{name: argument}`, where the name has its dollar.
    pub fn parse(name: &str, argument: &Bson, context: &Context) -> Result<AccumulatorSpec> {
        Specification::parse(name, argument, context)
            .map(|specification| AccumulatorSpec(Arc::new(specification)))
    }

    /// Whether a name is that of an accumulator.
    pub fn is_known(name: &str) -> bool {
        ACCUMULATORS.iter().any(|known| known.name == name)
    }

    /// Begins a group. `group` is its `_id`, which arguments like `n` may refer to.
    pub fn start(&self, group: ValueRef<'_>, context: &Context) -> Result<Accumulator> {
        let n = || self.0.count(group, context);
        let state = match self.0.name {
            "$sum" => State::Sum(Sum::default()),
            "$avg" => State::Mean(Sum::default()),
            "$count" => State::Count(0),
            "$min" => State::Extreme(Extreme::new(false)),
            "$max" => State::Extreme(Extreme::new(true)),
            "$first" => State::First(None),
            "$last" => State::Last(Bson::Null),
            "$push" => State::Push(VecDeque::new()),
            "$addToSet" | "$setUnion" => State::Set { seen: HashSet::new(), values: Vec::new() },
            "$stdDevPop" | "$stdDevSamp" => State::Deviation(Deviation::default()),
            "$mergeObjects" => State::Merge(Document::new()),
            "$firstN" => State::FirstN { n: n()?, values: Vec::new() },
            "$lastN" => State::LastN { n: n()?, values: VecDeque::new() },
            "$minN" | "$maxN" => State::ExtremeN { n: n()?, values: Vec::new() },
            "$top" | "$bottom" => State::Top { n: 1, entries: Vec::new() },
            "$topN" | "$bottomN" => State::Top { n: n()?, entries: Vec::new() },
            "$median" => State::Percentiles { values: Percentiles::default(), parts: vec![0.5] },
            "$percentile" => {
                State::Percentiles { values: Percentiles::default(), parts: self.0.parts(group, context)? }
            }
            _ => State::Joined(Vec::new()),
        };
        Ok(Accumulator { specification: self.0.clone(), state, size_bytes: 0 })
    }

    /// The paths of documents that it reads; `None` where it may read all of a document.
    pub fn paths(&self) -> Option<BTreeSet<String>> {
        let mut paths = self.0.input.paths()?;
        if let Some(sort) = &self.0.sort {
            paths.extend(sort.keys.iter().map(|key| key.path.to_string()));
        }
        Some(paths)
    }

    pub(crate) fn read(&self, document: ValueRef<'_>, context: &Context) -> Result<Input> {
        self.0.read(document, context)
    }
}

impl Accumulator {
    pub fn add(&mut self, document: ValueRef<'_>, context: &Context) -> Result<()> {
        if let State::Count(count) = &mut self.state {
            *count += 1;
            return Ok(());
        }
        let input = self.specification.read(document, context)?;
        self.take(input, context)
    }

    pub(crate) fn take(&mut self, input: Input, context: &Context) -> Result<()> {
        let name = self.specification.name;
        let Input { value, key } = input;
        let present = |value: &Option<Bson>| value.clone().unwrap_or(Bson::Null);
        match &mut self.state {
            State::Count(count) => *count += 1,
            State::Sum(sum) | State::Mean(sum) => {
                if let Some(number) = value.as_ref().and_then(number::of) {
                    sum.add(number);
                }
            }
            State::Extreme(best) => {
                if let Some(value) = &value {
                    best.add(value, context);
                    self.size_bytes = best.best().map_or(0, held_bytes);
                }
            }
            State::First(first) => {
                if first.is_none() {
                    let value = present(&value);
                    self.size_bytes = held_bytes(&value);
                    *first = Some(value);
                }
            }
            State::Last(last) => {
                *last = present(&value);
                self.size_bytes = held_bytes(last);
            }
            State::Push(values) => {
                if let Some(value) = value {
                    self.size_bytes += held_bytes(&value);
                    values.push_back(value);
                }
            }
            State::Set { seen, values } => {
                let elements = match value {
                    Some(Bson::Array(elements)) if name == "$setUnion" => elements.to_vec(),
                    Some(value) => vec![value],
                    None => Vec::new(),
                };
                for element in elements {
                    let identity = crate::expression::set::identity(&element, context);
                    let bytes = identity.len() + held_bytes(&element);
                    if seen.insert(identity) {
                        self.size_bytes += bytes;
                        values.push(element);
                    }
                }
            }
            State::Deviation(deviation) => {
                if let Some(number) = value.as_ref().and_then(number::of) {
                    deviation.add(number.to_f64());
                }
            }
            State::Merge(merged) => {
                crate::expression::object::merge_into(merged, value.as_ref())?;
                self.size_bytes += value.as_ref().map_or(0, held_bytes);
            }
            State::FirstN { n, values } => {
                if values.len() < *n {
                    let value = present(&value);
                    self.size_bytes += held_bytes(&value);
                    values.push(value);
                }
            }
            State::LastN { n, values } => {
                let value = present(&value);
                self.size_bytes += held_bytes(&value);
                values.push_back(value);
                if values.len() > *n
                    && let Some(gone) = values.pop_front()
                {
                    self.size_bytes = self.size_bytes.saturating_sub(held_bytes(&gone));
                }
            }
            State::ExtremeN { n, values } => {
                let Some(value) = value.filter(|value| !matches!(value, Bson::Null | Bson::Undefined)) else {
                    return Ok(());
                };
                let collation = context.collation.as_deref();
                let at = values.partition_point(|had| {
                    let order =
                        crate::order::compare(ValueRef::Owned(had), ValueRef::Owned(&value), collation);
                    if name == "$minN" { order.is_le() } else { order.is_ge() }
                });
                if at < *n {
                    self.size_bytes += held_bytes(&value);
                    values.insert(at, value);
                    if values.len() > *n
                        && let Some(gone) = values.pop()
                    {
                        self.size_bytes = self.size_bytes.saturating_sub(held_bytes(&gone));
                    }
                }
            }
            State::Top { n, entries } => {
                let Some(sort) = &self.specification.sort else { return Ok(()) };
                let at = entries.partition_point(|had| sort.compare_keys(&had.key, &key, context).is_le());
                let entry = Input { value: Some(present(&value)), key };
                let entry_bytes =
                    |entry: &Input| entry.value.iter().chain(&entry.key).map(held_bytes).sum::<usize>();
                if matches!(name, "$top" | "$topN") {
                    if at < *n {
                        self.size_bytes += entry_bytes(&entry);
                        entries.insert(at, entry);
                        if entries.len() > *n
                            && let Some(gone) = entries.pop()
                        {
                            self.size_bytes = self.size_bytes.saturating_sub(entry_bytes(&gone));
                        }
                    }
                } else if entries.len() < *n || at > 0 {
                    self.size_bytes += entry_bytes(&entry);
                    entries.insert(at, entry);
                    if entries.len() > *n {
                        let gone = entries.remove(0);
                        self.size_bytes = self.size_bytes.saturating_sub(entry_bytes(&gone));
                    }
                }
            }
            State::Percentiles { values, .. } => {
                if let Some(number) = value.as_ref().and_then(number::of) {
                    values.add(number.to_f64());
                    self.size_bytes = values.len() * size_of::<f64>();
                }
            }
            State::Joined(values) => match value {
                None => {}
                Some(Bson::Array(elements)) => {
                    self.size_bytes += elements.iter().map(held_bytes).sum::<usize>();
                    values.extend(elements.iter().cloned());
                }
                Some(other) => {
                    let text = format!("{name} requires array inputs, but got {}", other.kind().name());
                    return Err(crate::error::Error::type_mismatch(text));
                }
            },
        }
        Ok(())
    }

    /// Takes the oldest input away again; `false` where this accumulator cannot, and has to begin anew.
    #[must_use]
    pub(crate) fn remove_oldest(&mut self, input: &Input) -> bool {
        match &mut self.state {
            State::Count(count) => {
                *count -= 1;
                true
            }
            State::Sum(sum) | State::Mean(sum) => {
                input.value.as_ref().and_then(number::of).is_none_or(|number| sum.remove(number))
            }
            State::Push(values) => {
                if input.value.is_some()
                    && let Some(gone) = values.pop_front()
                {
                    self.size_bytes = self.size_bytes.saturating_sub(held_bytes(&gone));
                }
                true
            }
            State::Last(_) => true,
            _ => false,
        }
    }

    /// The result. The accumulator may go on afterwards.
    pub fn finish(&self, _context: &Context) -> Result<Bson> {
        Ok(match &self.state {
            State::Sum(sum) => sum.to_bson(),
            State::Mean(sum) => state::mean(sum),
            State::Count(count) => number::int_or_long(*count),
            State::Extreme(best) => best.finish(),
            State::First(first) => first.clone().unwrap_or(Bson::Null),
            State::Last(last) => last.clone(),
            State::Push(values) | State::LastN { values, .. } => {
                Bson::array(values.iter().cloned().collect())
            }
            State::Set { values, .. }
            | State::FirstN { values, .. }
            | State::ExtremeN { values, .. }
            | State::Joined(values) => Bson::array(values.clone()),
            State::Deviation(deviation) => deviation.finish(self.specification.name == "$stdDevSamp"),
            State::Merge(merged) => Bson::Document(merged.clone()),
            State::Top { entries, .. } => {
                let mut outputs = entries.iter().map(|entry| entry.value.clone().unwrap_or(Bson::Null));
                match self.specification.name {
                    "$top" | "$bottom" => outputs.next().unwrap_or(Bson::Null),
                    _ => Bson::array(outputs.collect()),
                }
            }
            State::Percentiles { values, parts } => {
                let mut found = values.finish(parts);
                match self.specification.name {
                    "$median" => found.pop().unwrap_or(Bson::Null),
                    _ => Bson::array(found),
                }
            }
        })
    }

    /// Bytes of memory that it holds beyond itself.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
