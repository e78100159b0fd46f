//! `$graphLookup`: what can be reached from a row through a collection, one scan for each level.

use std::collections::HashSet;
use std::sync::Arc;

use super::lookup::{Found, asked, id_of, key_of, target};
use super::memory::StageMemory;
use super::rows::{Mapped, Row, document_bytes};
use super::specification::{self, Parsing, field_path};
use super::unwind::set_path;
use super::{BoxedRows, Env, Stage};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter::Filter;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

#[derive(Clone)]
struct Graph {
    from: (Option<Arc<str>>, Arc<str>),
    start_with: Expression,
    connect_from: Arc<str>,
    connect_to: Arc<str>,
    output: Arc<str>,
    depth_max: Option<u64>,
    depth_field: Option<Arc<str>>,
    restrict: Option<Filter>,
}

pub fn parse_graph_lookup(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let message = "the $graphLookup stage specification must be an object";
    let specification = specification::document(argument, 40_327, message)?;
    let (mut from, mut start_with, mut connect_from, mut connect_to) = (None, None, None, None);
    let (mut output, mut depth_max, mut depth_field, mut restrict) = (None, None, None, None);
    for (name, value) in specification.iter() {
        let path = || match value {
            Bson::String(path) => field_path(path),
            other => Err(Error::new(
                40_103,
                format!("expected string as argument for {name}, found: {}", other.kind().name()),
            )),
        };
        match &**name {
            "startWith" => start_with = Some(Expression::parse(value, parsing.context)?),
            "maxDepth" => {
                if !value.is_number() {
                    return Err(Error::new(40_100, "maxDepth requires a numeric argument"));
                }
                let depth = match value {
                    Bson::Double(depth) if depth.trunc() != *depth => None,
                    value => value.as_i64(),
                };
                let depth = depth
                    .ok_or_else(|| Error::new(40_102, "maxDepth could not be represented as a long long"))?;
                let negative = |_| Error::new(40_101, "maxDepth requires a nonnegative argument");
                depth_max = Some(u64::try_from(depth).map_err(negative)?);
            }
            "restrictSearchWithMatch" => {
                let message = "restrictSearchWithMatch must be an object";
                let filter = specification::document(value, 40_185, message)?;
                restrict = Some(Filter::parse(filter, parsing.context)?);
            }
            "from" => match value {
                Bson::String(_) => from = Some(target(value, "$graphLookup.from")?),
                other => {
                    return Err(Error::failed_to_parse(format!(
                        "$graphLookup argument 'from' must be a string, found {}",
                        other.kind().name()
                    )));
                }
            },
            "as" => output = Some(path()?),
            "connectFromField" => connect_from = Some(path()?),
            "connectToField" => connect_to = Some(path()?),
            "depthField" => depth_field = Some(path()?),
            _ => return Err(Error::new(40_104, format!("Unknown argument to $graphLookup: {name}"))),
        }
    }
    let (Some(from), Some(start_with), Some(connect_from), Some(connect_to), Some(output)) =
        (from, start_with, connect_from, connect_to, output)
    else {
        return Err(Error::new(
            40_105,
            "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.",
        ));
    };
    Ok(Box::new(Graph {
        from,
        start_with,
        connect_from,
        connect_to,
        output,
        depth_max,
        depth_field,
        restrict,
    }))
}

impl Graph {
    fn reach(&self, start: Vec<Bson>, env: &Env) -> Result<Vec<Bson>> {
        let context = &env.context;
        let mut memory = StageMemory::new("$graphLookup", &context.budget)?;
        let (mut visited, mut asked_for) = (HashSet::new(), HashSet::new());
        let mut results = Vec::new();
        let database = self.from.0.as_ref().unwrap_or(&env.database);
        let mut frontier = start;
        let mut depth = 0u64;
        loop {
            frontier.retain(|value| asked_for.insert(key_of(ValueRef::Owned(value), context)));
            if frontier.is_empty() || self.depth_max.is_some_and(|max| depth > max) {
                return Ok(results);
            }
            let found = Found::ask(
                env,
                (&**database, &*self.from.1),
                &self.connect_to,
                std::mem::take(&mut frontier),
                self.restrict.as_ref(),
                &mut memory,
            )?;
            for row in found.rows {
                let document = row.into_document()?;
                if !visited.insert(key_of(ValueRef::Owned(&id_of(&document)), context)) {
                    continue;
                }
                memory.take(document_bytes(&document))?;
                let from = asked(ValueRef::OwnedDocument(&document), &self.connect_from);
                // What a document lacks leads nowhere.
                frontier
                    .extend(from.into_iter().filter(|value| !matches!(value, Bson::Null | Bson::Undefined)));
                let mut document = document;
                if let Some(field) = &self.depth_field {
                    set_path(&mut document, field, Some(super::limits::count_value(depth)));
                }
                results.push(Bson::Document(document));
            }
            depth += 1;
        }
    }
}

impl Stage for Graph {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (graph, env) = (self.clone(), env.clone());
        Ok(Mapped::boxed(input, move |row| {
            env.context.budget.step(1)?;
            let start = match graph.start_with.evaluate(row.value()?, &env.context)? {
                Some(Bson::Array(elements)) => elements.to_vec(),
                Some(value) => vec![value],
                None => vec![Bson::Null],
            };
            let results = graph.reach(start, &env)?;
            let mut document: Document = row.into_document()?;
            set_path(&mut document, &graph.output, Some(Bson::array(results)));
            Ok(Some(Row::Built(document)))
        }))
    }
}
