//! `$fill`: values for what is null or missing: an expression, the last one before, or a line between neighbours.
//!
//! Made of two other stages: `$setWindowFields` with `$locf` and `$linearFill`, and `$addFields` with `$ifNull`.

use super::shape::Shape;
use super::specification::{self, Parsing, field_path};
use super::union_with::wrong_type;
use super::window::Windows;
use super::{BoxedRows, Env, Stage};
use crate::accumulator::window::WindowFunction;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::sort::Sort;
use crate::value::{Bson, Document};

struct Fill {
    windows: Option<Windows>,
    values: Option<Shape>,
}

pub fn parse_fill(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let context = parsing.context;
    let specification =
        specification::document(argument, 9, "the $fill stage specification must be an object")?;
    let (mut partition_by, mut fields, mut sort_by, mut output) = (None, None, None, None);
    for (name, value) in specification.iter() {
        match (&**name, value) {
            ("partitionBy", value) => partition_by = Some(value.clone()),
            ("partitionByFields", Bson::Array(list)) => fields = Some(list),
            ("partitionByFields", other) => {
                return Err(wrong_type("$fill.partitionByFields", other, "array"));
            }
            ("sortBy", Bson::Document(sort)) => sort_by = Some(sort),
            ("sortBy", other) => return Err(wrong_type("$fill.sortBy", other, "object")),
            ("output", Bson::Document(list)) => output = Some(list),
            ("output", other) => return Err(wrong_type("$fill.output", other, "object")),
            _ => return Err(Error::new(40_415, format!("BSON field '$fill.{name}' is an unknown field."))),
        }
    }
    let output = output
        .ok_or_else(|| Error::new(40_414, "BSON field '$fill.output' is missing but a required field"))?;
    if output.is_empty() {
        return Err(Error::new(6_050_203, "a $fill stage must specify at least one output field"));
    }
    if let Some(fields) = fields {
        if partition_by.is_some() {
            return Err(Error::new(
                6_050_204,
                "Maximum one of 'partitionBy' and 'partitionByFields' can be specified in '$fill'",
            ));
        }
        let mut by = Document::new();
        for field in fields.iter() {
            let Bson::String(path) = field else {
                return Err(wrong_type("$fill.partitionByFields", field, "string"));
            };
            if path.starts_with('$') {
                return Err(Error::new(
                    6_050_205,
                    "Each field in 'partitionByFields' must not start with '$'",
                ));
            }
            field_path(path)?;
            by.push(path.replace('.', "_"), format!("${path}"));
        }
        partition_by = Some(Bson::Document(by));
    }
    let (mut functions, mut values) = (Vec::new(), Document::new());
    for (name, how) in output.iter() {
        let path = field_path(name)?;
        let Bson::Document(how) = how else {
            return Err(wrong_type(&format!("$fill.output.{name}"), how, "object"));
        };
        let (Some((word, value)), 1) = (how.first(), how.len()) else {
            return Err(Error::new(6_050_200, "Each $fill output must be an object with exactly one field"));
        };
        let field = Bson::from(format!("${name}"));
        match (&**word, value.as_str()) {
            ("value", _) => {
                values.push(name.clone(), crate::doc! { "$ifNull" => vec![field, value.clone()] });
            }
            ("method", Some("linear")) => {
                if sort_by.is_none_or(|sort| sort.len() != 1) {
                    return Err(Error::new(
                        605_001,
                        "$linearFill must be specified with a top level sortBy expression with exactly one element",
                    ));
                }
                let function = Bson::Document(crate::doc! { "$linearFill" => field });
                functions.push((path, WindowFunction::parse(&function, sort_by, context)?));
            }
            ("method", Some("locf")) => {
                let function = Bson::Document(crate::doc! { "$locf" => field });
                functions.push((path, WindowFunction::parse(&function, sort_by, context)?));
            }
            ("method", _) => {
                return Err(Error::new(6_050_202, "Method must be either locf or linear"));
            }
            (other, _) => {
                return Err(Error::new(
                    40_415,
                    format!("BSON field '$fill.output.{name}.{other}' is an unknown field."),
                ));
            }
        }
    }
    let partition_by = partition_by.map(|value| Expression::parse(&value, context)).transpose()?;
    let sort_by = sort_by.filter(|sort| !sort.is_empty()).map(Sort::parse).transpose()?;
    let windows = (!functions.is_empty()).then_some(Windows { partition_by, sort_by, output: functions });
    let values = (!values.is_empty()).then(|| Shape::addition(&values, context)).transpose()?;
    Ok(Box::new(Fill { windows, values }))
}

impl Stage for Fill {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let mut rows = input;
        if let Some(windows) = &self.windows {
            rows = windows.attach(rows, env)?;
        }
        if let Some(values) = &self.values {
            rows = values.attach(rows, env)?;
        }
        Ok(rows)
    }
}
