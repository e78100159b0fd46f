//! Stages about the server itself, which the database around the pipeline answers: `$collStats`, `$indexStats`,
//! `$currentOp`, `$listSessions`, `$listLocalSessions`, `$planCacheStats`, `$changeStream`.

use super::rows::Blocking;
use super::specification::Parsing;
use super::{BoxedRows, Env, Stage};
use crate::error::{Error, Result};
use crate::value::Bson;

struct Describe {
    stage: &'static str,
    argument: Bson,
}

fn parse(stage: &'static str, argument: &Bson, code: i32) -> Result<Box<dyn Stage>> {
    if argument.as_document().is_none() {
        return Err(Error::new(code, format!("{stage} must take a nested object")));
    }
    Ok(Box::new(Describe { stage, argument: argument.clone() }))
}

pub fn parse_coll_stats(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$collStats", argument, 5_447_000)
}

pub fn parse_index_stats(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$indexStats", argument, 28_803)
}

pub fn parse_current_op(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$currentOp", argument, 9)
}

pub fn parse_list_sessions(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$listSessions", argument, 9)
}

pub fn parse_list_local_sessions(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$listLocalSessions", argument, 9)
}

pub fn parse_plan_cache_stats(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$planCacheStats", argument, 28_803)
}

pub fn parse_change_stream(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$changeStream", argument, 50_808)
}

pub fn parse_vector_search(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$vectorSearch", argument, 9)
}

pub fn parse_search(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    parse("$search", argument, 9)
}

impl Stage for Describe {
    fn attach(&self, _: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (stage, argument, env) = (self.stage, self.argument.clone(), env.clone());
        Ok(Blocking::boxed(move || {
            env.collections.describe(&env.database, &env.collection, stage, &argument)
        }))
    }
}
