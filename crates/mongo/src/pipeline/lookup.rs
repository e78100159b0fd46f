//! `$lookup`: rows of another collection for each row.
//!
//! Rows are taken in batches. Where fields are compared, one scan asks for all values of a batch, so that an index of
//! the other collection is used once for many rows; what comes back is found by its value. A pipeline runs for each
//! row, with the variables of `let`; one that depends on no row runs once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::memory::StageMemory;
use super::rows::{Row, Rows, document_bytes};
use super::specification::{Parsing, field_path};
use super::union_with::{begins_with_documents, wrong_type};
use super::unwind::set_path;
use super::{BoxedRows, Env, ListRows, Pipeline, Scan, Stage};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter::{Condition, Filter, Test};
use crate::order::identity;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// Rows that one scan of the other collection serves.
const BATCH_ROWS: usize = 256;

/// What rows are compared by.
struct Fields {
    local: Arc<str>,
    foreign: Arc<str>,
}

pub struct Lookup {
    from: Option<(Option<Arc<str>>, Arc<str>)>,
    fields: Option<Fields>,
    variables: Vec<(Arc<str>, Expression)>,
    pipeline: Option<Pipeline>,
    output: Arc<str>,
}

/// The collection that `from` names: a text, or a database and a collection.
pub fn target(value: &Bson, field: &str) -> Result<(Option<Arc<str>>, Arc<str>)> {
    match value {
        Bson::String(name) => Ok((None, name.clone())),
        Bson::Document(target) => {
            let text = |name: &str| match target.get(name) {
                Some(Bson::String(text)) => Ok(Some(text.clone())),
                None => Ok(None),
                Some(other) => Err(wrong_type(&format!("{field}.{name}"), other, "string")),
            };
            let collection = text("coll")?.ok_or_else(|| {
                Error::new(40_414, format!("BSON field '{field}.coll' is missing but a required field"))
            })?;
            Ok((text("db")?, collection))
        }
        other => Err(Error::failed_to_parse(format!(
            "{field} must be a string or object, found {}",
            other.kind().name()
        ))),
    }
}

/// The names and expressions of `let`.
pub fn variables(value: &Bson, context: &Context) -> Result<Vec<(Arc<str>, Expression)>> {
    let Bson::Document(list) = value else {
        return Err(Error::failed_to_parse(format!(
            "'let' argument must be an object, but found {}",
            value.kind().name()
        )));
    };
    let mut variables = Vec::new();
    for (name, value) in list.iter() {
        check_variable(name)?;
        variables.push((name.clone(), Expression::parse(value, context)?));
    }
    Ok(variables)
}

pub fn check_variable(name: &str) -> Result<()> {
    let mut characters = name.chars();
    match characters.next() {
        None => return Err(Error::failed_to_parse("empty variable names are not allowed")),
        Some(first) if !first.is_ascii_lowercase() && first.is_ascii() => {
            return Err(Error::failed_to_parse(format!(
                "'{name}' starts with an invalid character for a user variable name"
            )));
        }
        Some(_) => {}
    }
    if characters
        .any(|character| !(character.is_ascii_alphanumeric() || character == '_' || !character.is_ascii()))
    {
        return Err(Error::failed_to_parse(format!(
            "'{name}' contains an invalid character for a variable name"
        )));
    }
    Ok(())
}

/// The context with the names of variables, whose values come with each row.
pub fn declaring(context: &Context, variables: &[(Arc<str>, Expression)]) -> Context {
    let mut context = context.clone();
    for (name, _) in variables {
        context.variables.set(name, Bson::Null);
    }
    context
}

/// The context with the values that variables have for a row.
pub fn bound(context: &Context, variables: &[(Arc<str>, Expression)], row: ValueRef<'_>) -> Result<Context> {
    let mut made = context.clone();
    for (name, expression) in variables {
        match expression.evaluate(row, context)? {
            Some(value) => made.variables.set(name, value),
            // What is missing is known, and nothing.
            None => made.variables.set(name, Bson::Undefined),
        }
    }
    Ok(made)
}

pub fn parse_lookup(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let Bson::Document(specification) = argument else {
        return Err(Error::failed_to_parse(format!(
            "the $lookup specification must be an Object, but found {}",
            argument.kind().name()
        )));
    };
    let (mut from, mut local, mut foreign, mut output) = (None, None, None, None);
    let (mut lets, mut stages): (_, Option<&[Bson]>) = (Vec::new(), None);
    for (name, value) in specification.iter() {
        match (&**name, value) {
            ("from", value) => from = Some(target(value, "$lookup.from")?),
            ("localField", Bson::String(path)) => local = Some(field_path(path)?),
            ("foreignField", Bson::String(path)) => foreign = Some(field_path(path)?),
            ("as", Bson::String(path)) => output = Some(field_path(path)?),
            ("let", value) => lets = variables(value, parsing.context)?,
            ("pipeline", Bson::Array(elements)) => stages = Some(elements),
            ("pipeline", other) => return Err(wrong_type("$lookup.pipeline", other, "array")),
            ("localField" | "foreignField" | "as", other) => {
                return Err(Error::failed_to_parse(format!(
                    "$lookup argument '{name}' must be a string, but found {}",
                    other.kind().name()
                )));
            }
            _ => return Err(Error::failed_to_parse(format!("unknown argument to $lookup: {name}"))),
        }
    }
    if from.is_none() && !stages.is_some_and(begins_with_documents) {
        return Err(Error::failed_to_parse("must specify 'pipeline' when 'from' is empty"));
    }
    let output = output.ok_or_else(|| Error::failed_to_parse("must specify 'as' field for a $lookup"))?;
    let fields = match (local, foreign) {
        (Some(local), Some(foreign)) => Some(Fields { local, foreign }),
        (None, None) => None,
        _ => {
            return Err(Error::failed_to_parse(
                "$lookup requires both or neither of 'localField' and 'foreignField' to be specified",
            ));
        }
    };
    if fields.is_none() && stages.is_none() {
        return Err(Error::failed_to_parse(
            "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
        ));
    }
    let pipeline = match stages {
        None => None,
        Some(stages) => {
            for stage in stages {
                let Some(stage) = stage.as_document() else {
                    return Err(Error::bad_value("Each element of the 'pipeline' array must be an object"));
                };
                if let Some((name, _)) = stage.first()
                    && matches!(&**name, "$out" | "$merge")
                {
                    return Err(Error::new(
                        51_047,
                        format!("{name} is not allowed within a $lookup's sub-pipeline"),
                    ));
                }
            }
            let context = declaring(parsing.context, &lets);
            Some(Parsing { context: &context, depth: parsing.depth }.pipeline(stages)?)
        }
    };
    Ok(Box::new(SharedLookup(Arc::new(Lookup { from, fields, variables: lets, pipeline, output }))))
}

/// All values that a path leads to: elements of arrays, and arrays as a whole. Nothing counts as null.
pub fn reached<'a>(document: ValueRef<'a>, path: &str, into: &mut Vec<ValueRef<'a>>) {
    fn walk<'a>(value: ValueRef<'a>, path: Option<&str>, into: &mut Vec<ValueRef<'a>>) {
        let Some(path) = path else {
            into.push(value);
            if value.kind() == crate::Kind::Array {
                into.extend(value.elements());
            }
            return;
        };
        let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
        match value.kind() {
            crate::Kind::Document => {
                if let Some(member) = value.get(name) {
                    walk(member, rest, into);
                }
            }
            crate::Kind::Array => {
                if let Some(element) = name.parse().ok().and_then(|index| value.at(index)) {
                    walk(element, rest, into);
                }
                for element in value.elements().filter(|element| element.kind() == crate::Kind::Document) {
                    walk(element, Some(path), into);
                }
            }
            _ => {}
        }
    }
    walk(document, Some(path), into);
}

/// The values by which a local row asks: of an array its elements.
pub fn asked(document: ValueRef<'_>, path: &str) -> Vec<Bson> {
    let mut values = Vec::new();
    reached(document, path, &mut values);
    let elements = values.iter().any(|value| value.kind() == crate::Kind::Array);
    let mut asked: Vec<Bson> = values
        .into_iter()
        .filter(|value| !elements || value.kind() != crate::Kind::Array)
        .map(ValueRef::to_bson)
        .collect();
    if asked.is_empty() && !elements {
        asked.push(Bson::Null);
    }
    asked
}

/// Rows of one collection by the values of one of its paths.
pub struct Found {
    pub rows: Vec<Row>,
    by_value: HashMap<Vec<u8>, Vec<usize>>,
}

impl Found {
    /// Asks a collection for the rows in which a path has one of the values.
    pub fn ask(
        env: &Env,
        target: (&str, &str),
        path: &Arc<str>,
        mut values: Vec<Bson>,
        also: Option<&Filter>,
        memory: &mut StageMemory,
    ) -> Result<Found> {
        let context = &env.context;
        // A list of values is looked through by halves.
        values.sort_by(|a, b| crate::order::compare(a.into(), b.into(), context.collation.as_deref()));
        let condition = Condition::Field { path: path.clone(), test: Test::In(values) };
        let filter = Filter { root: condition, collation: context.collation.clone() };
        let filter = Filter::all_of(also.into_iter().cloned().chain([filter]).collect::<Vec<_>>());
        let scan = Scan { filter: filter.clone(), variables: context.variables.clone(), ..Scan::default() };
        let mut source = env.collections.scan(target.0, target.1, &scan)?;
        let mut found = Found { rows: Vec::new(), by_value: HashMap::new() };
        while let Some(row) = source.next()? {
            context.budget.step(1)?;
            if let Some(filter) = &filter
                && !filter.matches(row.value()?, context)?
            {
                continue;
            }
            memory.take(row.size_bytes())?;
            let number = found.rows.len();
            let mut values = Vec::new();
            reached(row.value()?, path, &mut values);
            let mut keys: Vec<Vec<u8>> = values.iter().map(|value| key_of(*value, context)).collect();
            if keys.is_empty() {
                keys.push(key_of(ValueRef::Owned(&Bson::Null), context));
            }
            for key in keys {
                let numbers = found.by_value.entry(key).or_default();
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            }
            found.rows.push(row);
        }
        Ok(found)
    }

    /// The numbers of the rows that have one of the values, in their order.
    pub fn of(&self, values: &[Bson], context: &Context) -> Vec<usize> {
        let keys = values.iter().map(|value| key_of(ValueRef::Owned(value), context));
        let mut numbers: Vec<usize> =
            keys.filter_map(|key| self.by_value.get(&key)).flatten().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

pub fn key_of(value: ValueRef<'_>, context: &Context) -> Vec<u8> {
    let mut key = Vec::new();
    let value = match value.kind() {
        crate::Kind::Undefined => ValueRef::Owned(&Bson::Null),
        _ => value,
    };
    identity(value, context.collation.as_deref(), &mut key);
    key
}

struct SharedLookup(Arc<Lookup>);

struct LookupRows {
    lookup: Arc<Lookup>,
    input: BoxedRows,
    env: Env,
    ready: VecDeque<Row>,
    /// What a pipeline that depends on no row came to.
    constant: Option<Arc<Vec<Bson>>>,
    ended: bool,
}

impl LookupRows {
    fn foreign_env(&self) -> Env {
        let mut env = self.env.clone();
        let from = self.lookup.from.as_ref();
        if let Some(database) = from.and_then(|(database, _)| database.clone()) {
            env.database = database;
        }
        env.collection = from.map_or_else(|| "".into(), |(_, collection)| collection.clone());
        env
    }

    fn fill(&mut self) -> Result<()> {
        let lookup = self.lookup.clone();
        let mut memory = StageMemory::new("$lookup", &self.env.context.budget)?;
        let mut batch: Vec<Row> = Vec::new();
        while batch.len() < BATCH_ROWS {
            let Some(row) = self.input.next()? else {
                self.ended = true;
                break;
            };
            memory.take(row.size_bytes())?;
            batch.push(row);
        }
        let foreign = self.foreign_env();
        // A pipeline of `$documents` has rows of its own; it runs before fields are compared.
        let by_scan = lookup.from.is_some();
        let (found, asked_by): (Option<Found>, Vec<Vec<Bson>>) = match &lookup.fields {
            Some(fields) if by_scan && !batch.is_empty() => {
                let asked_by: Vec<Vec<Bson>> =
                    batch.iter().map(|row| Ok(asked(row.value()?, &fields.local))).collect::<Result<_>>()?;
                let mut seen = std::collections::HashSet::new();
                let distinct = asked_by
                    .iter()
                    .flatten()
                    .filter(|value| seen.insert(key_of(ValueRef::Owned(value), &self.env.context)))
                    .cloned()
                    .collect();
                let target = (&*foreign.database, &*foreign.collection);
                let found = Found::ask(&foreign, target, &fields.foreign, distinct, None, &mut memory)?;
                (Some(found), asked_by)
            }
            _ => (None, Vec::new()),
        };
        for (at, row) in batch.into_iter().enumerate() {
            let elements = match (&found, &lookup.pipeline) {
                (Some(found), pipeline) => {
                    let numbers = found.of(&asked_by[at], &self.env.context);
                    let rows = ListRows::boxed(numbers.into_iter().map(|number| found.rows[number].clone()));
                    match pipeline {
                        None => collect(rows, &mut memory)?,
                        Some(pipeline) => {
                            let mut env = foreign.clone();
                            env.context = bound(&self.env.context, &lookup.variables, row.value()?)?;
                            collect(pipeline.run(rows, &env)?, &mut memory)?
                        }
                    }
                }
                (None, Some(pipeline)) => self.by_pipeline(pipeline, &row, &foreign, &mut memory)?,
                (None, None) => Arc::default(),
            };
            memory.take(elements.len() * 64)?;
            let mut document = row.into_document()?;
            set_path(&mut document, &lookup.output, Some(Bson::Array(elements)));
            self.ready.push_back(Row::Built(document));
        }
        Ok(())
    }

    fn by_pipeline(
        &mut self,
        pipeline: &Pipeline,
        row: &Row,
        foreign: &Env,
        memory: &mut StageMemory,
    ) -> Result<Arc<Vec<Bson>>> {
        if let Some(constant) = &self.constant {
            return Ok(constant.clone());
        }
        let mut env = foreign.clone();
        env.context = bound(&self.env.context, &self.lookup.variables, row.value()?)?;
        let mut rows = pipeline.run_over_collection(&env)?;
        let Some(fields) = &self.lookup.fields else {
            let elements = collect(rows, memory)?;
            if self.lookup.variables.is_empty() {
                self.constant = Some(elements.clone());
            }
            return Ok(elements);
        };
        let context = &self.env.context;
        let wanted: Vec<Vec<u8>> = asked(row.value()?, &fields.local)
            .iter()
            .map(|value| key_of(ValueRef::Owned(value), context))
            .collect();
        let mut elements = Vec::new();
        while let Some(row) = rows.next()? {
            let document = row.into_document()?;
            let mut values = Vec::new();
            reached(ValueRef::OwnedDocument(&document), &fields.foreign, &mut values);
            if values.is_empty() {
                values.push(ValueRef::Owned(&Bson::Null));
            }
            if values.iter().any(|value| wanted.contains(&key_of(*value, context))) {
                memory.take(document_bytes(&document))?;
                elements.push(Bson::Document(document));
            }
        }
        Ok(Arc::new(elements))
    }
}

fn collect(mut rows: BoxedRows, memory: &mut StageMemory) -> Result<Arc<Vec<Bson>>> {
    let mut elements = Vec::new();
    while let Some(row) = rows.next()? {
        let document = row.into_document()?;
        memory.take(document_bytes(&document))?;
        elements.push(Bson::Document(document));
    }
    Ok(Arc::new(elements))
}

impl Rows for LookupRows {
    fn next(&mut self) -> Result<Option<Row>> {
        while self.ready.is_empty() && !self.ended {
            self.fill()?;
        }
        Ok(self.ready.pop_front())
    }
}

impl Stage for SharedLookup {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        Ok(Box::new(LookupRows {
            lookup: self.0.clone(),
            input,
            env: env.clone(),
            ready: VecDeque::new(),
            constant: None,
            ended: false,
        }))
    }
}

/// What a stage that is no pipeline may still need of documents: the value at `_id`.
pub fn id_of(document: &Document) -> Bson {
    document.get("_id").cloned().unwrap_or(Bson::Null)
}
