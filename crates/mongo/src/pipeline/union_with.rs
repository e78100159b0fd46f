//! `$unionWith`: the rows, and then those of another collection.

use std::sync::Arc;

use super::rows::{Row, Rows};
use super::specification::Parsing;
use super::{BoxedRows, Env, Pipeline, Stage};
use crate::error::{Error, Result};
use crate::value::{Bson, Document};

pub struct UnionWith {
    collection: Option<Arc<str>>,
    pipeline: Arc<Pipeline>,
}

/// Whether the first stage names its own documents.
pub fn begins_with_documents(stages: &[Bson]) -> bool {
    let first = stages.first().and_then(Bson::as_document).and_then(Document::first);
    first.is_some_and(|(name, _)| &**name == "$documents")
}

pub fn parse_union_with(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let (mut collection, mut stages): (Option<Arc<str>>, &[Bson]) = (None, &[]);
    match argument {
        Bson::String(name) => collection = Some(name.clone()),
        Bson::Document(specification) => {
            for (name, value) in specification.iter() {
                match (&**name, value) {
                    ("coll", Bson::String(name)) => collection = Some(name.clone()),
                    ("coll", other) => return Err(wrong_type("coll", other, "string")),
                    ("pipeline", Bson::Array(elements)) => stages = elements,
                    ("pipeline", other) => return Err(wrong_type("pipeline", other, "array")),
                    _ => {
                        return Err(Error::new(
                            40_415,
                            format!("BSON field '$unionWith.{name}' is an unknown field."),
                        ));
                    }
                }
            }
        }
        other => {
            return Err(Error::failed_to_parse(format!(
                "the $unionWith stage specification must be an object or string, but found {}",
                other.kind().name()
            )));
        }
    }
    if collection.is_none() && !begins_with_documents(stages) {
        return Err(Error::bad_value(
            "$unionWith stage without explicit collection must have a pipeline with $documents as first stage",
        ));
    }
    for stage in stages.iter().filter_map(Bson::as_document).filter_map(Document::first) {
        if matches!(&**stage.0, "$out" | "$merge") {
            return Err(Error::new(
                31_441,
                format!("{} is not allowed within a $unionWith's sub-pipeline", stage.0),
            ));
        }
    }
    let pipeline = Arc::new(parsing.pipeline(stages)?);
    Ok(Box::new(UnionWith { collection, pipeline }))
}

pub fn wrong_type(field: &str, value: &Bson, wanted: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{field}' is the wrong type '{}', expected type '{wanted}'",
        value.kind().name()
    ))
}

struct Union {
    input: Option<BoxedRows>,
    pipeline: Arc<Pipeline>,
    env: Env,
    other: Option<BoxedRows>,
}

impl Rows for Union {
    fn next(&mut self) -> Result<Option<Row>> {
        if let Some(input) = &mut self.input {
            if let Some(row) = input.next()? {
                return Ok(Some(row));
            }
            self.input = None;
            self.other = Some(self.pipeline.run_over_collection(&self.env)?);
        }
        match &mut self.other {
            Some(other) => other.next(),
            None => Ok(None),
        }
    }
}

impl Stage for UnionWith {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let mut env = env.clone();
        env.collection = self.collection.clone().unwrap_or_else(|| "".into());
        Ok(Box::new(Union { input: Some(input), pipeline: self.pipeline.clone(), env, other: None }))
    }
}
