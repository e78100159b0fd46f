//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin`; `$mod`; `$regex` with `$options`.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::filter::Test;
use crate::filter::parse::{Place, is_operators};
use crate::order;
use crate::pattern::Pattern;
use crate::value::{Bson, Document, Regex};
use crate::value_ref::NumberRef;

/// What a plain value under a name asks for.
pub fn equal_or_regex(value: &Bson) -> Result<Test> {
    match value {
        Bson::Regex(regex) => compiled(regex),
        _ => Ok(Test::Equal(comparable(value)?)),
    }
}

pub fn compiled(regex: &Regex) -> Result<Test> {
    Ok(Test::Regex(Arc::new(Pattern::new(&regex.pattern, &regex.options)?)))
}

fn comparable(value: &Bson) -> Result<Bson> {
    match value {
        Bson::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        _ => Ok(value.clone()),
    }
}

/// An operand of an order, in which regular expressions have no place.
fn ordered(value: &Bson) -> Result<Bson> {
    match value {
        Bson::Regex(_) => Err(Error::bad_value("Can't have RegEx as arg to predicate over field.")),
        _ => comparable(value),
    }
}

pub fn equal(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::Equal(comparable(value)?)))
}

pub fn not_equal(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    if let Bson::Regex(_) = value {
        return Err(Error::bad_value("Can't have regex as arg to $ne."));
    }
    Ok(Some(Test::NotEqual(comparable(value)?)))
}

pub fn greater(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::Greater(ordered(value)?)))
}

pub fn greater_or_equal(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::GreaterOrEqual(ordered(value)?)))
}

pub fn less(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::Less(ordered(value)?)))
}

pub fn less_or_equal(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::LessOrEqual(ordered(value)?)))
}

pub fn one_of(place: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let (values, patterns) = members(place, "$in", value)?;
    if patterns.is_empty() {
        return Ok(Some(Test::In(values)));
    }
    Ok(Some(Test::Any(std::iter::once(Test::In(values)).chain(patterns).collect())))
}

pub fn none_of(place: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let (values, patterns) = members(place, "$nin", value)?;
    if patterns.is_empty() {
        return Ok(Some(Test::NotIn(values)));
    }
    let any = Test::Any(std::iter::once(Test::In(values)).chain(patterns).collect());
    Ok(Some(Test::Not(Box::new(any))))
}

/// The values of a list in their order, and the tests that its regular expressions are.
fn members(place: Place<'_>, name: &str, value: &Bson) -> Result<(Vec<Bson>, Vec<Test>)> {
    let Bson::Array(list) = value else { return Err(Error::bad_value(format!("{name} needs an array"))) };
    let (mut values, mut patterns) = (Vec::with_capacity(list.len()), Vec::new());
    for value in list.iter() {
        match value {
            Bson::Document(document) if is_operators(document) => {
                return Err(Error::bad_value(format!("cannot nest $ under {name}")));
            }
            Bson::Regex(regex) => {
                values.push(value.clone());
                patterns.push(compiled(regex)?);
            }
            _ => values.push(comparable(value)?),
        }
    }
    Ok((in_order(values, place.context.collation.as_deref()), patterns))
}

/// Values in their order, each once.
pub fn in_order(mut values: Vec<Bson>, collation: Option<&order::Collation>) -> Vec<Bson> {
    values.sort_by(|a, b| order::compare(a.into(), b.into(), collation));
    values.dedup_by(|a, b| order::equal((&*a).into(), (&*b).into(), collation));
    values
}

pub fn modulo(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let Bson::Array(numbers) = value else {
        return Err(Error::bad_value("malformed mod, needs to be an array"));
    };
    if numbers.len() < 2 {
        return Err(Error::bad_value("malformed mod, not enough elements"));
    }
    if numbers.len() > 2 {
        return Err(Error::bad_value("malformed mod, too many elements"));
    }
    let part = |at: usize, name: &str| {
        let number = crate::ValueRef::Owned(&numbers[at]).as_number();
        let number = number.ok_or_else(|| Error::bad_value(format!("malformed mod, {name} not a number")))?;
        truncated(number).ok_or_else(|| {
            Error::bad_value(format!(
                "malformed mod, {name} value is invalid :: caused by :: Unable to coerce NaN/Inf to integral type"
            ))
        })
    };
    let (divisor, remainder) = (part(0, "divisor")?, part(1, "remainder")?);
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Some(Test::Mod { divisor, remainder }))
}

/// The whole part of a number that fits.
pub fn truncated(number: NumberRef) -> Option<i64> {
    match number {
        NumberRef::Int32(value) => Some(value.into()),
        NumberRef::Int64(value) => Some(value),
        NumberRef::Double(value) => Bson::Double(value.trunc()).as_i64(),
        NumberRef::Decimal(value) => {
            if value.is_nan() {
                return None;
            }
            let whole = i128::from(value.whole_part()?);
            i64::try_from(if value.is_negative() { -whole } else { whole }).ok()
        }
    }
}

pub fn regex(_: Place<'_>, value: &Bson, siblings: &Document) -> Result<Option<Test>> {
    let options = match siblings.get("$options") {
        None => None,
        Some(Bson::String(options)) => Some(options.clone()),
        Some(_) => return Err(Error::bad_value("$options has to be a string")),
    };
    let (pattern, own) = match value {
        Bson::String(pattern) => (pattern.clone(), None),
        Bson::Regex(regex) => (regex.pattern.clone(), Some(regex.options.clone())),
        _ => return Err(Error::bad_value("$regex has to be a string")),
    };
    let options = match (options, own) {
        (Some(_), Some(own)) if !own.is_empty() => {
            return Err(Error::new(51074, "options set in both $regex and $options"));
        }
        (Some(options), _) => options,
        (None, own) => own.unwrap_or_default(),
    };
    Ok(Some(Test::Regex(Arc::new(Pattern::new(&pattern, &options)?))))
}

pub fn options(_: Place<'_>, _: &Bson, siblings: &Document) -> Result<Option<Test>> {
    if siblings.contains("$regex") { Ok(None) } else { Err(Error::bad_value("$options needs a $regex")) }
}
