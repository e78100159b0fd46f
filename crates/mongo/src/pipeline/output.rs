//! `$out` and `$merge`: the rows go into a collection, and nothing comes out.

use std::sync::Arc;

use super::lookup::{bound, target, variables};
use super::rows::Blocking;
use super::specification::{self, Parsing, field_path};
use super::union_with::wrong_type;
use super::{BoxedRows, Env, ListRows, Merge, Stage, WhenMatched, WhenNotMatched};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

struct Out {
    target: (Option<Arc<str>>, Arc<str>),
}

pub fn parse_out(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let target = match argument {
        Bson::String(_) => target(argument, "$out")?,
        Bson::Document(specification) => {
            for (name, _) in specification.iter() {
                match &**name {
                    "db" | "coll" => {}
                    "timeseries" => {
                        return Err(Error::new(303, "$out into time series collections is not supported"));
                    }
                    _ => {
                        return Err(Error::new(
                            40_415,
                            format!("BSON field '$out.{name}' is an unknown field."),
                        ));
                    }
                }
            }
            if !specification.contains("db") {
                return Err(Error::new(40_414, "BSON field '$out.db' is missing but a required field"));
            }
            target(argument, "$out")?
        }
        other => {
            return Err(Error::new(
                16_990,
                format!("$out only supports a string or object argument, but found {}", other.kind().name()),
            ));
        }
    };
    Ok(Box::new(Out { target }))
}

impl Stage for Out {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (target, env) = (self.target.clone(), env.clone());
        Ok(Blocking::boxed(move || {
            let database = target.0.as_ref().unwrap_or(&env.database);
            env.collections.replace(database, &target.1, input)?;
            Ok(ListRows::empty())
        }))
    }
}

#[derive(Clone)]
struct MergeStage {
    target: (Option<Arc<str>>, Arc<str>),
    on: Vec<String>,
    when_matched: WhenMatched,
    when_not_matched: WhenNotMatched,
    variables: Vec<(Arc<str>, Expression)>,
}

pub fn parse_merge(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let plain;
    let specification = match argument {
        Bson::String(_) => {
            plain = crate::doc! { "into" => argument.clone() };
            &plain
        }
        _ => specification::document(argument, 51_182, "$merge requires a string or object argument")?,
    };
    let mut stage = MergeStage {
        target: (None, "".into()),
        on: vec!["_id".to_owned()],
        when_matched: WhenMatched::Merge,
        when_not_matched: WhenNotMatched::Insert,
        variables: Vec::new(),
    };
    let mut into = false;
    for (name, value) in specification.iter() {
        match &**name {
            "into" => {
                into = true;
                stage.target = target(value, "$merge.into")?;
            }
            "on" => stage.on = on_fields(value)?,
            "whenMatched" => stage.when_matched = when_matched(value)?,
            "whenNotMatched" => {
                stage.when_not_matched = match value.as_str() {
                    Some("insert") => WhenNotMatched::Insert,
                    Some("discard") => WhenNotMatched::Discard,
                    Some("fail") => WhenNotMatched::Fail,
                    _ => {
                        return Err(Error::bad_value(
                            "Enumeration value for field 'whenNotMatched' is not a valid value.",
                        ));
                    }
                };
            }
            "let" => stage.variables = variables(value, parsing.context)?,
            _ => return Err(Error::new(40_415, format!("BSON field '$merge.{name}' is an unknown field."))),
        }
    }
    if !into {
        return Err(Error::new(40_414, "BSON field '$merge.into' is missing but a required field"));
    }
    if !stage.variables.is_empty() && !matches!(stage.when_matched, WhenMatched::Pipeline(_)) {
        return Err(Error::new(
            51_199,
            "Cannot use 'let' variables with 'whenMatched' that is not a pipeline",
        ));
    }
    Ok(Box::new(stage))
}

fn on_fields(value: &Bson) -> Result<Vec<String>> {
    match value {
        Bson::String(path) => Ok(vec![field_path(path)?.to_string()]),
        Bson::Array(elements) if elements.is_empty() => {
            Err(Error::new(51_187, "If explicitly specifying $merge 'on', must include at least one field"))
        }
        Bson::Array(elements) => elements
            .iter()
            .map(|element| match element {
                Bson::String(path) => Ok(field_path(path)?.to_string()),
                other => Err(Error::new(
                    51_134,
                    format!("$merge 'on' array elements must be strings, but found {}", other.kind().name()),
                )),
            })
            .collect(),
        other => Err(Error::new(
            51_186,
            format!(
                "$merge 'on' field  must be either a string or an array of strings, but found {}",
                other.kind().name()
            ),
        )),
    }
}

fn when_matched(value: &Bson) -> Result<WhenMatched> {
    Ok(match value {
        Bson::Array(stages) => WhenMatched::Pipeline(stages.to_vec()),
        Bson::String(mode) => match &**mode {
            "replace" => WhenMatched::Replace,
            "keepExisting" => WhenMatched::KeepExisting,
            "merge" => WhenMatched::Merge,
            "fail" => WhenMatched::Fail,
            _ => {
                return Err(Error::bad_value(
                    "Enumeration value for field 'whenMatched' is not a valid value.",
                ));
            }
        },
        other => return Err(wrong_type("$merge.whenMatched", other, "string")),
    })
}

impl Stage for MergeStage {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (stage, env) = (self.clone(), env.clone());
        Ok(Blocking::boxed(move || {
            let database = stage.target.0.clone().unwrap_or_else(|| env.database.clone());
            while let Some(row) = input.next()? {
                env.context.budget.step(1)?;
                let document = row.into_document()?;
                let row = ValueRef::OwnedDocument(&document);
                let mut variables = env.context.variables.clone();
                if matches!(stage.when_matched, WhenMatched::Pipeline(_)) {
                    variables.set("new", document.clone());
                    let bound = bound(&env.context, &stage.variables, row)?;
                    for (name, _) in &stage.variables {
                        if let Some(value) = bound.variables.get(name) {
                            variables.set(name, value.clone());
                        }
                    }
                }
                let merge = Merge {
                    on: stage.on.clone(),
                    when_matched: stage.when_matched.clone(),
                    when_not_matched: stage.when_not_matched,
                    variables,
                };
                env.collections.merge(&database, &stage.target.1, &merge, document)?;
            }
            Ok(ListRows::empty())
        }))
    }
}

/// A document as `whenMatched: "merge"` makes it: members of the new one replace those of the old one.
pub fn merged(old: &Document, new: &Document) -> Document {
    let mut made = old.clone();
    for (name, value) in new.iter() {
        made.set(name, value.clone());
    }
    made
}
