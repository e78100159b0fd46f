//! `$densify`: documents for the numbers or dates that are missing in a series.
//!
//! The series begins at the first value of all documents (`full`), of the partition (`partition`), or at the lower
//! bound, and goes on in steps; a document whose value lies between two steps stays between them.

use std::cmp::Ordering;
use std::sync::Arc;

use super::memory::StageMemory;
use super::rows::{Blocking, Row};
use super::specification::{self, Parsing, field_path};
use super::union_with::wrong_type;
use super::unwind::set_path;
use super::window::partitions;
use super::{BoxedRows, Env, ListRows, Stage};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::order::compare;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// Documents that one stage may make.
const GENERATED_MAX: usize = 500_000;

const UNITS: &[&str] =
    &["millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"];

#[derive(Clone)]
enum Bounds {
    Full,
    Partition,
    Range(Bson, Bson),
}

#[derive(Clone)]
struct Densify {
    field: Arc<str>,
    partition_by: Vec<Arc<str>>,
    bounds: Bounds,
    step: Bson,
    unit: Option<Arc<str>>,
    /// Adds `step` to `value`, or `amount` units.
    advance: Expression,
}

pub fn parse_densify(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification =
        specification::document(argument, 9, "the $densify stage specification must be an object")?;
    let (mut field, mut partition_by, mut range) = (None, Vec::new(), None);
    for (name, value) in specification.iter() {
        match (&**name, value) {
            ("field", Bson::String(path)) => field = Some(field_path(path)?),
            ("field", other) => return Err(wrong_type("$densify.field", other, "string")),
            ("partitionByFields", Bson::Array(list)) => {
                for path in list.iter() {
                    let Bson::String(path) = path else {
                        return Err(wrong_type("$densify.partitionByFields", path, "string"));
                    };
                    partition_by.push(field_path(path)?);
                }
            }
            ("partitionByFields", other) => {
                return Err(wrong_type("$densify.partitionByFields", other, "array"));
            }
            ("range", Bson::Document(value)) => range = Some(value),
            ("range", other) => return Err(wrong_type("$densify.range", other, "object")),
            _ => {
                return Err(Error::new(40_415, format!("BSON field '$densify.{name}' is an unknown field.")));
            }
        }
    }
    let missing = |name: &str| {
        Error::new(40_414, format!("BSON field '$densify.{name}' is missing but a required field"))
    };
    let field = field.ok_or_else(|| missing("field"))?;
    let range = range.ok_or_else(|| missing("range"))?;
    let bounds = bounds(range.get("bounds").ok_or_else(|| missing("range.bounds"))?, parsing.context)?;
    if matches!(bounds, Bounds::Partition) && partition_by.is_empty() {
        return Err(Error::new(
            5_733_408,
            "One may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields.",
        ));
    }
    let step = range.get("step").ok_or_else(|| missing("range.step"))?.clone();
    if !step.is_number() {
        return Err(wrong_type("$densify.range.step", &step, "number"));
    }
    if compare(ValueRef::Owned(&step), ValueRef::Owned(&Bson::Int32(0)), None) != Ordering::Greater {
        return Err(Error::new(
            5_733_401,
            "The step parameter in a range statement must be a strictly positive numeric value",
        ));
    }
    let unit = match range.get("unit") {
        None => None,
        Some(Bson::String(unit)) if UNITS.contains(&&**unit) => Some(unit.clone()),
        Some(Bson::String(unit)) => {
            return Err(Error::failed_to_parse(format!("unknown time unit value: {unit}")));
        }
        Some(other) => return Err(wrong_type("$densify.range.unit", other, "string")),
    };
    if unit.is_some() && step.as_i64().is_none() {
        return Err(Error::new(
            6_586_400,
            "The step parameter in a range satement must be a whole number when densifying a date range",
        ));
    }
    if let Bounds::Range(low, _) = &bounds
        && matches!(low, Bson::Date(_)) != unit.is_some()
    {
        let message = match unit {
            Some(_) => "Numeric bounds may not have unit parameter",
            None => {
                "A bounding array must contain either both dates or both numeric types, with a unit for dates"
            }
        };
        return Err(Error::new(if unit.is_some() { 5_733_409 } else { 5_733_402 }, message));
    }
    let advance = match &unit {
        None => crate::doc! { "$add" => vec![Bson::from("$value"), Bson::from("$amount")] },
        Some(unit) => crate::doc! {
            "$dateAdd" => crate::doc! { "startDate" => "$value", "unit" => &**unit, "amount" => "$amount" }
        },
    };
    let advance = Expression::parse(&Bson::Document(advance), parsing.context)?;
    Ok(Box::new(Densify { field, partition_by, bounds, step, unit, advance }))
}

fn bounds(value: &Bson, context: &Context) -> Result<Bounds> {
    let unordered = || {
        Error::new(
            5_733_402,
            "the bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or \
             two dates",
        )
    };
    match value {
        Bson::String(text) => match &**text {
            "full" => Ok(Bounds::Full),
            "partition" => Ok(Bounds::Partition),
            _ => Err(Error::new(5_946_802, "Bounds string must either be 'full' or 'partition'")),
        },
        Bson::Array(elements) => {
            let [low, high] = elements.as_slice() else {
                return Err(Error::new(
                    5_733_403,
                    "a bounding array in a range statement must have exactly two elements",
                ));
            };
            let same =
                low.is_number() && high.is_number() || matches!((low, high), (Bson::Date(_), Bson::Date(_)));
            let ordered = compare(ValueRef::Owned(low), ValueRef::Owned(high), context.collation.as_deref())
                != Ordering::Greater;
            if !same || !ordered {
                return Err(unordered());
            }
            Ok(Bounds::Range(low.clone(), high.clone()))
        }
        _ => Err(unordered()),
    }
}

fn less(a: &Bson, b: &Bson) -> bool {
    compare(ValueRef::Owned(a), ValueRef::Owned(b), None) == Ordering::Less
}

fn at(document: ValueRef<'_>, path: &str) -> Option<Bson> {
    path.split('.').try_fold(document, |value, name| value.get(name)).map(ValueRef::to_bson)
}

impl Densify {
    /// The value that is so many steps behind the first one.
    fn value(&self, first: &Bson, steps: i64, context: &Context) -> Result<Bson> {
        if steps == 0 {
            return Ok(first.clone());
        }
        let amount = match (&self.unit, &self.step) {
            (Some(_), step) => Bson::Int64(step.as_i64().unwrap_or(1).saturating_mul(steps)),
            (None, Bson::Int32(step)) => match step.checked_mul(i32::try_from(steps).unwrap_or(i32::MAX)) {
                Some(amount) => Bson::Int32(amount),
                None => Bson::Int64(i64::from(*step).saturating_mul(steps)),
            },
            (None, Bson::Int64(step)) => Bson::Int64(step.saturating_mul(steps)),
            (None, Bson::Double(step)) => Bson::Double(step * steps as f64),
            (None, step) => {
                let product = crate::doc! { "$multiply" => vec![step.clone(), Bson::Int64(steps)] };
                let product = Expression::parse(&Bson::Document(product), context)?;
                let nothing = Document::new();
                product.evaluate(ValueRef::OwnedDocument(&nothing), context)?.unwrap_or(Bson::Null)
            }
        };
        let operands = crate::doc! { "value" => first.clone(), "amount" => amount };
        Ok(self.advance.evaluate(ValueRef::OwnedDocument(&operands), context)?.unwrap_or(Bson::Null))
    }

    /// A value of the field, checked; `None` where there is none.
    fn checked(&self, row: &Row) -> Result<Option<Bson>> {
        let value = at(row.value()?, &self.field);
        match value {
            None | Some(Bson::Null | Bson::Undefined) => Ok(None),
            Some(value @ Bson::Date(_)) if self.unit.is_some() => Ok(Some(value)),
            Some(Bson::Date(_)) => Err(Error::new(
                6_586_401,
                "Encountered non-numeric field value in collection while step does not have a date unit.",
            )),
            Some(value) if value.is_number() && self.unit.is_none() => Ok(Some(value)),
            Some(value) if value.is_number() => Err(Error::new(
                6_053_600,
                "Encountered numeric densify value in collection when step has a date unit.",
            )),
            Some(_) => Err(Error::new(5_733_201, "Densify field type must be numeric or a date")),
        }
    }

    fn run(&self, rows: BoxedRows, context: &Context) -> Result<Vec<Row>> {
        let mut memory = StageMemory::new("$densify", &context.budget)?;
        let mut by = Document::new();
        for (number, path) in self.partition_by.iter().enumerate() {
            by.push(number.to_string(), format!("${path}"));
        }
        let by = (!by.is_empty()).then(|| Expression::parse(&Bson::Document(by), context)).transpose()?;
        let mut made = Vec::new();
        let mut partitioned: Vec<Vec<(Bson, Row)>> = Vec::new();
        for rows in partitions(rows, by.as_ref(), context, &mut memory)? {
            let mut keyed = Vec::new();
            for row in rows {
                match self.checked(&row)? {
                    Some(value) => keyed.push((value, row)),
                    None => made.push(row),
                }
            }
            keyed.sort_by(|(a, _), (b, _)| compare(ValueRef::Owned(a), ValueRef::Owned(b), None));
            if !keyed.is_empty() {
                partitioned.push(keyed);
            }
        }
        let every = || partitioned.iter().flatten().map(|(value, _)| value);
        let (first, last) = (
            every().min_by(|a, b| compare(ValueRef::Owned(a), ValueRef::Owned(b), None)).cloned(),
            every().max_by(|a, b| compare(ValueRef::Owned(a), ValueRef::Owned(b), None)).cloned(),
        );
        let mut generated = 0;
        if let (true, Bounds::Range(low, high)) = (partitioned.is_empty(), &self.bounds) {
            self.series(&mut made, Vec::new(), low, high, false, &Document::new(), context, &mut generated)?;
        }
        for keyed in partitioned {
            let mut template = Document::new();
            for path in &self.partition_by {
                if let Some(value) = at(keyed[0].1.value()?, path) {
                    set_path(&mut template, path, Some(value));
                }
            }
            let (low, high, inclusive) = match (&self.bounds, &first, &last) {
                (Bounds::Full, Some(first), Some(last)) => (first.clone(), last.clone(), true),
                (Bounds::Range(low, high), ..) => (low.clone(), high.clone(), false),
                _ => (keyed[0].0.clone(), keyed[keyed.len() - 1].0.clone(), true),
            };
            self.series(&mut made, keyed, &low, &high, inclusive, &template, context, &mut generated)?;
        }
        Ok(made)
    }

    #[allow(clippy::too_many_arguments, reason = "one partition and where its series begins and ends")]
    fn series(
        &self,
        made: &mut Vec<Row>,
        keyed: Vec<(Bson, Row)>,
        low: &Bson,
        high: &Bson,
        inclusive: bool,
        template: &Document,
        context: &Context,
        generated: &mut usize,
    ) -> Result<()> {
        let mut rows = keyed.into_iter().peekable();
        let mut steps = 0;
        loop {
            context.budget.step(1)?;
            let value = self.value(low, steps, context)?;
            let ended = less(high, &value) || !inclusive && !less(&value, high);
            // Documents up to this value come first; one that has it stands in its place.
            let mut present = false;
            while let Some((has, _)) = rows.peek() {
                if !ended && less(&value, has) {
                    break;
                }
                present |= !less(has, &value) && !less(&value, has);
                made.extend(rows.next().map(|(_, row)| row));
            }
            if ended {
                return Ok(());
            }
            if !present {
                *generated += 1;
                if *generated > GENERATED_MAX {
                    return Err(Error::new(
                        5_897_900,
                        format!(
                            "Generated {GENERATED_MAX} documents in $densify, which is over the limit. Use a larger step"
                        ),
                    ));
                }
                let mut document = template.clone();
                set_path(&mut document, &self.field, Some(value));
                made.push(Row::Built(document));
            }
            steps += 1;
        }
    }
}

impl Stage for Densify {
    fn attach(&self, input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (densify, context) = (self.clone(), env.context.clone());
        Ok(Blocking::boxed(move || Ok(ListRows::boxed(densify.run(input, &context)?))))
    }
}
