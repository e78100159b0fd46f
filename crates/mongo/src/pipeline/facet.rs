//! `$facet`: several pipelines over the same rows, one document in the end.

use std::sync::Arc;

use super::memory::StageMemory;
use super::rows::{Blocking, Row, document_bytes};
use super::specification::{Parsing, field_path};
use super::{BoxedRows, Env, ListRows, Pipeline, Stage};
use crate::error::{Error, Result};
use crate::value::{Bson, Document};

/// Stages that make no sense on a part of the rows.
const REFUSED: &[&str] = &[
    "$facet",
    "$out",
    "$merge",
    "$geoNear",
    "$collStats",
    "$indexStats",
    "$planCacheStats",
    "$changeStream",
    "$documents",
    "$currentOp",
    "$listSessions",
    "$listLocalSessions",
    "$search",
    "$vectorSearch",
];

pub struct Facet(Arc<Vec<(Arc<str>, Pipeline)>>);

pub fn parse_facet(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification = argument.as_document().filter(|document| !document.is_empty());
    let specification = specification
        .ok_or_else(|| Error::new(40_169, "the $facet specification must be a non-empty object"))?;
    let mut facets = Vec::new();
    for (name, value) in specification.iter() {
        field_path(name)?;
        let Bson::Array(stages) = value else {
            return Err(Error::new(
                40_170,
                format!("arguments to $facet must be arrays, {name} is type {}", value.kind().name()),
            ));
        };
        for stage in stages.iter() {
            if let Some((stage, _)) = stage.as_document().and_then(Document::first)
                && REFUSED.contains(&&**stage)
            {
                return Err(Error::new(
                    40_600,
                    format!("{stage} is not allowed to be used within a $facet stage"),
                ));
            }
        }
        facets.push((name.clone(), parsing.pipeline(stages)?));
    }
    Ok(Box::new(Facet(Arc::new(facets))))
}

impl Stage for Facet {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (facets, env) = (self.0.clone(), env.clone());
        Ok(Blocking::boxed(move || {
            let mut memory = StageMemory::new("$facet", &env.context.budget)?;
            let mut rows: Vec<Row> = Vec::new();
            while let Some(row) = input.next()? {
                env.context.budget.step(1)?;
                memory.take(row.size_bytes())?;
                rows.push(row);
            }
            let mut made = Document::new();
            for (name, pipeline) in facets.iter() {
                let mut results = pipeline.run(ListRows::boxed(rows.iter().cloned()), &env)?;
                let mut elements = Vec::new();
                while let Some(row) = results.next()? {
                    let document = row.into_document()?;
                    memory.take(document_bytes(&document))?;
                    elements.push(Bson::Document(document));
                }
                made.push(name.clone(), elements);
            }
            Ok(ListRows::boxed([Row::Built(made)]))
        }))
    }
}
