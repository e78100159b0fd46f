//! `$group` and `$sortByCount`; and the groups themselves, which buckets share.

use std::collections::HashMap;
use std::sync::Arc;

use super::limits::count_value;
use super::memory::StageMemory;
use super::rows::{Blocking, Row, value_bytes};
use super::specification::{self, Parsing};
use super::{BoxedRows, Env, ListRows, Stage};
use crate::accumulator::{Accumulator, AccumulatorSpec};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::order::identity;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// About what a group takes beside its id and its accumulators.
const GROUP_BYTES: usize = 160;

/// The fields of a group that are not its id: names and accumulators.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(Arc<str>, AccumulatorSpec)>);

impl Fields {
    /// One field of `$group`, or of `output` of a bucket.
    pub fn add(&mut self, name: &Arc<str>, value: &Bson, context: &Context) -> Result<()> {
        if name.contains('.') {
            return Err(Error::new(40_235, format!("The field name '{name}' cannot contain '.'")));
        }
        if name.starts_with('$') {
            return Err(Error::new(40_236, format!("The field name '{name}' cannot be an operator name")));
        }
        let Bson::Document(accumulator) = value else {
            return Err(Error::new(40_234, format!("The field '{name}' must be an accumulator object")));
        };
        let (Some((operator, argument)), 1) = (accumulator.first(), accumulator.len()) else {
            return match accumulator.first() {
                None => Err(Error::new(40_234, format!("The field '{name}' must be an accumulator object"))),
                Some(_) => {
                    Err(Error::new(40_238, format!("The field '{name}' must specify one accumulator")))
                }
            };
        };
        if !operator.starts_with('$') {
            return Err(Error::new(40_234, format!("The field '{name}' must be an accumulator object")));
        }
        self.0.push((name.clone(), AccumulatorSpec::parse(operator, argument, context)?));
        Ok(())
    }

    /// `output` of a bucket, or what stands in its place: a count.
    pub fn of_output(output: Option<&Bson>, code: i32, stage: &str, context: &Context) -> Result<Fields> {
        let mut fields = Fields::default();
        match output {
            None => {
                let sum = AccumulatorSpec::parse("$sum", &Bson::Int32(1), context)?;
                fields.0.push(("count".into(), sum));
            }
            Some(Bson::Document(output)) => {
                for (name, value) in output.iter() {
                    fields.add(name, value, context)?;
                }
            }
            Some(_) => {
                return Err(Error::new(code, format!("The {stage} 'output' field must be an object")));
            }
        }
        Ok(fields)
    }

    pub fn start(&self, id: ValueRef<'_>, context: &Context) -> Result<Group> {
        let start = |(_, spec): &(Arc<str>, AccumulatorSpec)| spec.start(id, context);
        let accumulators = self.0.iter().map(start).collect::<Result<_>>()?;
        Ok(Group { accumulators, size_bytes: 0 })
    }

    /// The document of a group: its id and its fields.
    pub fn finish(&self, id: Option<Bson>, group: &Group, context: &Context) -> Result<Document> {
        let mut document = Document::new();
        if let Some(id) = id {
            document.push("_id", id);
        }
        for ((name, _), accumulator) in self.0.iter().zip(&group.accumulators) {
            document.push(name.clone(), accumulator.finish(context)?);
        }
        Ok(document)
    }
}

/// What is known of one group so far.
pub struct Group {
    accumulators: Vec<Accumulator>,
    size_bytes: usize,
}

impl Group {
    pub fn add(&mut self, document: ValueRef<'_>, context: &Context, memory: &mut StageMemory) -> Result<()> {
        for accumulator in &mut self.accumulators {
            accumulator.add(document, context)?;
        }
        let size_bytes = self.accumulators.iter().map(Accumulator::size_bytes).sum();
        memory.give_back(self.size_bytes);
        memory.take(size_bytes)?;
        self.size_bytes = size_bytes;
        Ok(())
    }
}

pub struct GroupStage {
    id: Expression,
    fields: Fields,
}

pub fn parse_group(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification =
        specification::document(argument, 15_947, "a group's fields must be specified in an object")?;
    let (mut id, mut fields) = (None, Fields::default());
    for (name, value) in specification.iter() {
        match &**name {
            "_id" => id = Some(Expression::parse(value, parsing.context)?),
            _ => fields.add(name, value, parsing.context)?,
        }
    }
    let id = id.ok_or_else(|| Error::new(15_955, "a group specification must include an _id"))?;
    Ok(Box::new(GroupStage { id, fields }))
}

impl Stage for GroupStage {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (id, fields, context) = (self.id.clone(), self.fields.clone(), env.context.clone());
        Ok(Blocking::boxed(move || {
            let mut memory = StageMemory::new("$group", &context.budget)?;
            let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
            let mut groups: Vec<(Bson, Group)> = Vec::new();
            let mut key = Vec::new();
            while let Some(row) = input.next()? {
                context.budget.step(1)?;
                let document = row.value()?;
                let value = id.evaluate(document, &context)?.unwrap_or(Bson::Null);
                key.clear();
                identity(ValueRef::Owned(&value), context.collation.as_deref(), &mut key);
                let number = match numbers.get(&key) {
                    Some(number) => *number,
                    None => {
                        memory.take(GROUP_BYTES + key.len() + value_bytes(&value))?;
                        let group = fields.start(ValueRef::Owned(&value), &context)?;
                        groups.push((value, group));
                        numbers.insert(key.clone(), groups.len() - 1);
                        groups.len() - 1
                    }
                };
                groups[number].1.add(document, &context, &mut memory)?;
            }
            let rows = groups
                .into_iter()
                .map(|(id, group)| Ok(Row::Built(fields.finish(Some(id), &group, &context)?)));
            Ok(ListRows::boxed(rows.collect::<Result<Vec<_>>>()?))
        }))
    }
}

pub struct SortByCount(Expression);

pub fn parse_sort_by_count(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    match argument {
        Bson::String(path) if path.starts_with('$') => {}
        Bson::String(_) => {
            return Err(Error::new(
                40_148,
                "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
            ));
        }
        Bson::Document(expression) if expression.first().is_some_and(|(name, _)| name.starts_with('$')) => {}
        Bson::Document(_) => {
            return Err(Error::new(
                40_147,
                "the sortByCount field must be defined as a $-prefixed path or an expression inside an object",
            ));
        }
        _ => {
            return Err(Error::new(
                40_149,
                "the sortByCount field must be specified as a string or as an object",
            ));
        }
    }
    Ok(Box::new(SortByCount(Expression::parse(argument, parsing.context)?)))
}

impl Stage for SortByCount {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (expression, context) = (self.0.clone(), env.context.clone());
        Ok(Blocking::boxed(move || {
            let mut memory = StageMemory::new("$sortByCount", &context.budget)?;
            let mut numbers: HashMap<Vec<u8>, usize> = HashMap::new();
            let mut groups: Vec<(Bson, u64)> = Vec::new();
            while let Some(row) = input.next()? {
                context.budget.step(1)?;
                let value = expression.evaluate(row.value()?, &context)?.unwrap_or(Bson::Null);
                let mut key = Vec::new();
                identity(ValueRef::Owned(&value), context.collation.as_deref(), &mut key);
                match numbers.get(&key) {
                    Some(number) => groups[*number].1 += 1,
                    None => {
                        memory.take(GROUP_BYTES + key.len() + value_bytes(&value))?;
                        groups.push((value, 1));
                        numbers.insert(key, groups.len() - 1);
                    }
                }
            }
            groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            Ok(ListRows::boxed(groups.into_iter().map(|(id, count)| {
                let mut document = Document::new();
                document.push("_id", id);
                document.push("count", count_value(count));
                Row::Built(document)
            })))
        }))
    }
}
