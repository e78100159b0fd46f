//! Updates by a pipeline: `[{$set: …}, {$unset: …}]`.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::pipeline::{BoxedRows, Collections, Env, ListRows, Merge, Pipeline, Row, Rows, Scan};
use crate::value::{Bson, Document};

const STAGES: [&str; 6] = ["$addFields", "$set", "$project", "$unset", "$replaceRoot", "$replaceWith"];

pub struct UpdatePipeline(Pipeline);

impl std::fmt::Debug for UpdatePipeline {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_list().entries(self.0.names()).finish()
    }
}

impl UpdatePipeline {
    pub fn parse(stages: &[Bson], context: &Context) -> Result<UpdatePipeline> {
        let pipeline = Pipeline::parse(stages, context)?;
        let refused = pipeline.names().find(|name| !STAGES.contains(name));
        match refused {
            Some(name) => Err(Error::new(
                code::INVALID_OPTIONS,
                format!("{name} is not allowed to be used within an update"),
            )),
            None => Ok(UpdatePipeline(pipeline)),
        }
    }

    pub fn apply(&self, document: &Document, context: &Context) -> Result<Document> {
        let env = Env {
            database: "".into(),
            collection: "".into(),
            collections: Arc::new(Nowhere),
            context: context.clone(),
        };
        let mut rows = self.0.run(Box::new(One(Some(document.clone()))), &env)?;
        match rows.next()? {
            Some(row) => row.into_document(),
            None => Ok(document.clone()),
        }
    }
}

/// One document.
struct One(Option<Document>);

impl Rows for One {
    fn next(&mut self) -> Result<Option<Row>> {
        Ok(self.0.take().map(Row::Built))
    }
}

/// No collections: the stages of an update look at their document only.
struct Nowhere;

fn nowhere() -> Error {
    Error::new(code::INVALID_OPTIONS, "an update reads no other collection")
}

impl Collections for Nowhere {
    fn scan(&self, _: &str, _: &str, _: &Scan) -> Result<BoxedRows> {
        Ok(ListRows::empty())
    }

    fn replace(&self, _: &str, _: &str, _: BoxedRows) -> Result<()> {
        Err(nowhere())
    }

    fn merge(&self, _: &str, _: &str, _: &Merge, _: Document) -> Result<()> {
        Err(nowhere())
    }

    fn describe(&self, _: &str, _: &str, _: &str, _: &Bson) -> Result<BoxedRows> {
        Err(nowhere())
    }
}
