//! `$bucket`: groups between given boundaries.

use std::cmp::Ordering;

use super::group::Fields;
use super::memory::StageMemory;
use super::rows::{Blocking, Row};
use super::specification::{self, Parsing, shown};
use super::{BoxedRows, Env, ListRows, Stage};
use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::expression::Expression;
use crate::order::compare;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

pub struct Bucket {
    group_by: Expression,
    boundaries: Vec<Bson>,
    default: Option<Bson>,
    fields: Fields,
}

/// A value that depends on no document.
fn constant(value: &Bson, context: &Context) -> Result<Option<Bson>> {
    let expression = Expression::parse(value, context)?;
    match expression.as_constant() {
        Some(value) => Ok(Some(value.cloned().unwrap_or(Bson::Null))),
        None => Ok(None),
    }
}

/// `groupBy` of buckets: a path or an expression.
pub fn group_by(value: &Bson, code: i32, stage: &str, context: &Context) -> Result<Expression> {
    let fits = match value {
        Bson::String(path) => path.starts_with('$'),
        Bson::Document(expression) => expression.first().is_some_and(|(name, _)| name.starts_with('$')),
        _ => false,
    };
    if !fits {
        return Err(Error::new(
            code,
            format!(
                "The {stage} 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {}.",
                shown(value)
            ),
        ));
    }
    Expression::parse(value, context)
}

pub fn parse_bucket(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let context = parsing.context;
    let specification =
        specification::document(argument, 40_201, "Argument to $bucket stage must be an object")?;
    let (mut by, mut boundaries, mut default, mut output) = (None, None, None, None);
    for (name, value) in specification.iter() {
        match &**name {
            // A text that is no path is one constant value, as the service has it.
            "groupBy" if matches!(value, Bson::String(_)) => by = Some(Expression::parse(value, context)?),
            "groupBy" => by = Some(group_by(value, 40_202, "$bucket", context)?),
            "boundaries" => {
                let Bson::Array(elements) = value else {
                    return Err(Error::new(
                        40_200,
                        format!(
                            "The $bucket 'boundaries' field must be an array, but found type: {}.",
                            value.kind().name()
                        ),
                    ));
                };
                let mut list = Vec::with_capacity(elements.len());
                for element in elements.iter() {
                    list.push(constant(element, context)?.ok_or_else(|| {
                        Error::new(
                            40_191,
                            format!(
                                "The $bucket 'boundaries' field must be an array of constant values, but found value: {}.",
                                shown(element)
                            ),
                        )
                    })?);
                }
                boundaries = Some(list);
            }
            "default" => {
                default = Some(constant(value, context)?.ok_or_else(|| {
                    Error::new(
                        40_195,
                        format!(
                            "The $bucket 'default' field must be a constant expression, but found: {}.",
                            shown(value)
                        ),
                    )
                })?);
            }
            "output" => output = Some(value),
            _ => return Err(Error::new(40_197, format!("Unrecognized option to $bucket: {name}."))),
        }
    }
    let (Some(group_by), Some(boundaries)) = (by, boundaries) else {
        return Err(Error::new(40_198, "$bucket requires 'groupBy' and 'boundaries' to be specified."));
    };
    check(&boundaries, default.as_ref(), context)?;
    let fields = Fields::of_output(output, 40_196, "$bucket", context)?;
    Ok(Box::new(Bucket { group_by, boundaries, default, fields }))
}

fn check(boundaries: &[Bson], default: Option<&Bson>, context: &Context) -> Result<()> {
    let order =
        |a: &Bson, b: &Bson| compare(ValueRef::Owned(a), ValueRef::Owned(b), context.collation.as_deref());
    let [lowest, .., highest] = boundaries else {
        return Err(Error::new(
            40_192,
            format!(
                "The $bucket 'boundaries' field must have at least 2 values, but found {} value(s).",
                boundaries.len()
            ),
        ));
    };
    for pair in boundaries.windows(2) {
        let same = pair[0].kind() == pair[1].kind() || pair[0].is_number() && pair[1].is_number();
        if !same {
            return Err(Error::new(
                40_193,
                format!(
                    "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types \
                     {} and {}.",
                    pair[0].kind().name(),
                    pair[1].kind().name()
                ),
            ));
        }
        if order(&pair[0], &pair[1]) != Ordering::Less {
            return Err(Error::new(
                40_194,
                "The 'boundaries' option to $bucket must be sorted, but elements are not in ascending order.",
            ));
        }
    }
    if let Some(default) = default
        && order(default, lowest) != Ordering::Less
        && order(default, highest) == Ordering::Less
    {
        return Err(Error::new(
            40_199,
            "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest \
             boundary.",
        ));
    }
    Ok(())
}

impl Stage for Bucket {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (group_by, fields, context) = (self.group_by.clone(), self.fields.clone(), env.context.clone());
        let (boundaries, default) = (self.boundaries.clone(), self.default.clone());
        Ok(Blocking::boxed(move || {
            let mut memory = StageMemory::new("$bucket", &context.budget)?;
            // One for each lower boundary, and the last for what lies outside.
            let mut groups: Vec<Option<super::group::Group>> = Vec::new();
            groups.resize_with(boundaries.len(), || None);
            let collation = context.collation.as_deref();
            while let Some(row) = input.next()? {
                context.budget.step(1)?;
                let document = row.value()?;
                let value = group_by.evaluate(document, &context)?.unwrap_or(Bson::Null);
                let above = boundaries.partition_point(|boundary| {
                    compare(ValueRef::Owned(boundary), ValueRef::Owned(&value), collation)
                        != Ordering::Greater
                });
                let at = match above {
                    0 => boundaries.len() - 1,
                    above => above - 1,
                };
                let outside = at == boundaries.len() - 1;
                let id = match (&default, outside) {
                    (_, false) => &boundaries[at],
                    (Some(default), true) => default,
                    (None, true) => {
                        return Err(Error::new(
                            code::BAD_VALUE,
                            format!(
                                "$bucket could not find a matching branch for an input of {}, and no default was specified.",
                                shown(&value)
                            ),
                        ));
                    }
                };
                let group = match &mut groups[at] {
                    Some(group) => group,
                    none => none.insert(fields.start(ValueRef::Owned(id), &context)?),
                };
                group.add(document, &context, &mut memory)?;
            }
            let mut made: Vec<(Bson, Document)> = Vec::new();
            for (at, group) in groups.iter().enumerate() {
                let Some(group) = group else { continue };
                let id = match at == boundaries.len() - 1 {
                    true => default.clone().unwrap_or(Bson::Null),
                    false => boundaries[at].clone(),
                };
                made.push((id.clone(), fields.finish(Some(id), group, &context)?));
            }
            made.sort_by(|(a, _), (b, _)| compare(ValueRef::Owned(a), ValueRef::Owned(b), collation));
            Ok(ListRows::boxed(made.into_iter().map(|(_, document)| Row::Built(document))))
        }))
    }
}
