//! `$bucketAuto`: as many groups as asked for, of about the same number of documents.

use std::cmp::Ordering;

use super::bucket::group_by;
use super::granularity::Granularity;
use super::group::Fields;
use super::memory::StageMemory;
use super::rows::{Blocking, Row, value_bytes};
use super::specification::{self, Parsing, shown};
use super::{BoxedRows, Env, ListRows, Stage};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::order::compare;
use crate::value::{Bson, Document};
use crate::value_ref::{NumberRef, ValueRef};

#[derive(Clone)]
pub struct BucketAuto {
    group_by: Expression,
    buckets: usize,
    granularity: Option<Granularity>,
    fields: Fields,
}

pub fn parse_bucket_auto(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let context = parsing.context;
    let specification =
        specification::document(argument, 40_240, "The argument to $bucketAuto must be an object")?;
    let (mut by, mut buckets, mut output, mut granularity) = (None, None, None, None);
    for (name, value) in specification.iter() {
        match &**name {
            "groupBy" => by = Some(group_by(value, 40_239, "$bucketAuto", context)?),
            "buckets" => {
                if !value.is_number() {
                    return Err(Error::new(
                        40_241,
                        format!(
                            "The $bucketAuto 'buckets' field must be a numeric value, but found type: {}.",
                            value.kind().name()
                        ),
                    ));
                }
                let number = value.as_i64().and_then(|number| i32::try_from(number).ok()).ok_or_else(|| {
                    Error::new(
                        40_242,
                        format!(
                            "The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {}.",
                            shown(value)
                        ),
                    )
                })?;
                if number <= 0 {
                    return Err(Error::new(
                        40_243,
                        format!(
                            "The $bucketAuto 'buckets' field must be greater than 0, but found: {number}."
                        ),
                    ));
                }
                buckets = Some(number as usize);
            }
            "output" => output = Some(value),
            "granularity" => {
                let Bson::String(name) = value else {
                    return Err(Error::new(
                        40_261,
                        format!(
                            "The $bucketAuto 'granularity' field must be a string, but found type: {}.",
                            value.kind().name()
                        ),
                    ));
                };
                let named = Granularity::named(name);
                granularity =
                    Some(named.ok_or_else(|| {
                        Error::new(40_257, format!("Unknown rounding granularity '{name}'"))
                    })?);
            }
            _ => return Err(Error::new(40_245, format!("Unrecognized option to $bucketAuto: {name}."))),
        }
    }
    let (Some(group_by), Some(buckets)) = (by, buckets) else {
        return Err(Error::new(40_246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified."));
    };
    let fields = Fields::of_output(output, 40_244, "$bucketAuto", context)?;
    Ok(Box::new(BucketAuto { group_by, buckets, granularity, fields }))
}

/// A number that a granularity can round.
fn rounded_number(value: &Bson) -> Result<f64> {
    let number = match ValueRef::Owned(value).as_number() {
        Some(NumberRef::Int32(value)) => f64::from(value),
        Some(NumberRef::Int64(value)) => value as f64,
        Some(NumberRef::Double(value)) => value,
        Some(NumberRef::Decimal(value)) => value.to_string().parse().unwrap_or(f64::NAN),
        None => {
            return Err(Error::new(
                40_258,
                format!(
                    "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {}",
                    value.kind().name()
                ),
            ));
        }
    };
    if number.is_nan() {
        return Err(Error::new(
            40_259,
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN",
        ));
    }
    if number < 0.0 {
        return Err(Error::new(
            40_260,
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number",
        ));
    }
    Ok(number)
}

struct Keyed {
    value: Bson,
    row: Row,
}

impl BucketAuto {
    fn documents(&self, mut rows: Vec<Keyed>, env: &Env, memory: &mut StageMemory) -> Result<Vec<Document>> {
        let context = &env.context;
        let order = |a: &Bson, b: &Bson| {
            compare(ValueRef::Owned(a), ValueRef::Owned(b), context.collation.as_deref())
        };
        rows.sort_by(|a, b| order(&a.value, &b.value));
        let total = rows.len();
        let mut made: Vec<(Bson, Bson, Document)> = Vec::new();
        let mut at = 0;
        while at < total && made.len() < self.buckets {
            let begin = at;
            // What is left is shared by the buckets that are left; where it does not divide, the first ones have more.
            let mut end = begin + (total - begin).div_ceil(self.buckets - made.len());
            let mut max = rows[end - 1].value.clone();
            let mut min = rows[begin].value.clone();
            match self.granularity {
                Some(granularity) => {
                    let low = rounded_number(&min)?;
                    min = match made.last() {
                        Some((_, upper, _)) => upper.clone(),
                        None if low == 0.0 => Bson::Double(0.0),
                        None => Bson::Double(granularity.down(low)),
                    };
                    let boundary = granularity.up(rounded_number(&max)?);
                    max = Bson::Double(boundary);
                    // All below the boundary belong to this bucket.
                    while end < total && order(&rows[end].value, &max) == Ordering::Less {
                        end += 1;
                    }
                    // Those at or above a boundary that was rounded stay for the next one.
                    if rounded_number(&rows[end - 1].value)? == 0.0 && end < total && boundary == 0.0 {
                        max = Bson::Double(granularity.up(rounded_number(&rows[end].value)?));
                        while end < total && order(&rows[end].value, &max) == Ordering::Less {
                            end += 1;
                        }
                    }
                }
                None => {
                    // Equal values lie in one bucket.
                    while end < total && order(&rows[end].value, &max) == Ordering::Equal {
                        end += 1;
                    }
                    if end < total {
                        max = rows[end].value.clone();
                    }
                }
            }
            let id = crate::doc! { "min" => min.clone(), "max" => max.clone() };
            let id = Bson::Document(id);
            let mut group = self.fields.start(ValueRef::Owned(&id), context)?;
            for keyed in &rows[begin..end] {
                context.budget.step(1)?;
                group.add(keyed.row.value()?, context, memory)?;
            }
            let document = self.fields.finish(Some(id), &group, context)?;
            made.push((min, max, document));
            at = end;
        }
        Ok(made.into_iter().map(|(_, _, document)| document).collect())
    }
}

impl Stage for BucketAuto {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (stage, env) = (self.clone(), env.clone());
        Ok(Blocking::boxed(move || {
            let mut memory = StageMemory::new("$bucketAuto", &env.context.budget)?;
            let mut rows = Vec::new();
            while let Some(row) = input.next()? {
                env.context.budget.step(1)?;
                let value = stage.group_by.evaluate(row.value()?, &env.context)?.unwrap_or(Bson::Null);
                if stage.granularity.is_some() {
                    rounded_number(&value)?;
                }
                memory.take(row.size_bytes() + value_bytes(&value))?;
                rows.push(Keyed { value, row });
            }
            Ok(ListRows::boxed(stage.documents(rows, &env, &mut memory)?.into_iter().map(Row::Built)))
        }))
    }
}
