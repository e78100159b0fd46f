//! `$setWindowFields`: partitions, each in order, and functions over windows of them (`accumulator/window`).

use std::sync::Arc;

use super::memory::StageMemory;
use super::rows::{Blocking, Row};
use super::sorting::sorted;
use super::specification::{Parsing, field_path};
use super::unwind::set_path;
use super::{BoxedRows, Env, ListRows, Stage};
use crate::accumulator::window::WindowFunction;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::order::identity;
use crate::sort::Sort;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

#[derive(Clone)]
pub struct Windows {
    pub partition_by: Option<Expression>,
    pub sort_by: Option<Sort>,
    pub output: Vec<(Arc<str>, WindowFunction)>,
}

pub fn parse_set_window_fields(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let context = parsing.context;
    let Bson::Document(specification) = argument else {
        return Err(Error::failed_to_parse(format!(
            "the $setWindowFields stage specification must be an object, found {}",
            argument.kind().name()
        )));
    };
    let (mut partition_by, mut sort_by, mut output) = (None, None, None);
    for (name, value) in specification.iter() {
        match (&**name, value) {
            ("partitionBy", value) => partition_by = Some(Expression::parse(value, context)?),
            ("sortBy", Bson::Document(sort)) => sort_by = Some(sort),
            ("output", Bson::Document(list)) => output = Some(list),
            ("sortBy" | "output", other) => {
                return Err(Error::type_mismatch(format!(
                    "BSON field '$setWindowFields.{name}' is the wrong type '{}', expected type 'object'",
                    other.kind().name()
                )));
            }
            _ => {
                return Err(Error::new(
                    40_415,
                    format!("BSON field '$setWindowFields.{name}' is an unknown field."),
                ));
            }
        }
    }
    let output = output.ok_or_else(|| {
        Error::new(40_414, "BSON field '$setWindowFields.output' is missing but a required field")
    })?;
    let mut functions = Vec::new();
    for (name, value) in output.iter() {
        functions.push((field_path(name)?, WindowFunction::parse(value, sort_by, context)?));
    }
    let sort_by = sort_by.filter(|sort| !sort.is_empty()).map(Sort::parse).transpose()?;
    Ok(Box::new(Windows { partition_by, sort_by, output: functions }))
}

/// Gathers rows into partitions, which come in the order of their values.
pub fn partitions(
    mut input: BoxedRows,
    partition_by: Option<&Expression>,
    context: &Context,
    memory: &mut StageMemory,
) -> Result<Vec<Vec<Row>>> {
    let mut numbers = std::collections::HashMap::new();
    let mut found: Vec<(Bson, Vec<Row>)> = Vec::new();
    while let Some(row) = input.next()? {
        context.budget.step(1)?;
        memory.take(row.size_bytes())?;
        let value = match partition_by {
            Some(expression) => expression.evaluate(row.value()?, context)?.unwrap_or(Bson::Null),
            None => Bson::Null,
        };
        if matches!(value, Bson::Array(_)) {
            return Err(Error::type_mismatch(
                "An expression used to partition cannot evaluate to value of type array",
            ));
        }
        let mut key = Vec::new();
        identity(ValueRef::Owned(&value), context.collation.as_deref(), &mut key);
        let number = *numbers.entry(key).or_insert_with(|| {
            found.push((value, Vec::new()));
            found.len() - 1
        });
        found[number].1.push(row);
    }
    found.sort_by(|(a, _), (b, _)| {
        crate::order::compare(ValueRef::Owned(a), ValueRef::Owned(b), context.collation.as_deref())
    });
    Ok(found.into_iter().map(|(_, rows)| rows).collect())
}

impl Stage for Windows {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (windows, context) = (self.clone(), env.context.clone());
        Ok(Blocking::boxed(move || {
            let mut memory = StageMemory::new("$setWindowFields", &context.budget)?;
            let mut made = Vec::new();
            for rows in partitions(input, windows.partition_by.as_ref(), &context, &mut memory)? {
                let rows = match &windows.sort_by {
                    Some(sort) => sorted(ListRows::boxed(rows), sort, None, "$setWindowFields", &context)?,
                    None => rows,
                };
                let values: Vec<ValueRef<'_>> = rows.iter().map(Row::value).collect::<Result<_>>()?;
                let mut columns = Vec::with_capacity(windows.output.len());
                for (_, function) in &windows.output {
                    columns.push(function.compute(&values, &context)?.into_iter());
                }
                for row in &rows {
                    let mut document: Document = row.to_document()?;
                    for ((name, _), column) in windows.output.iter().zip(&mut columns) {
                        set_path(&mut document, name, column.next().flatten());
                    }
                    made.push(Row::Built(document));
                }
            }
            Ok(ListRows::boxed(made))
        }))
    }
}
