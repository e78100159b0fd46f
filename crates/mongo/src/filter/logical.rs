//! `$and`, `$or`, `$nor`, `$not`; `$expr`, `$comment`, `$sampleRate`; `$where`, which is refused.

use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::filter::comparison::{compiled, in_order};
use crate::filter::parse::Place;
use crate::filter::{Condition, Test};
use crate::value::{Bson, Document};

fn conditions(place: Place<'_>, name: &str, value: &Bson) -> Result<Vec<Condition>> {
    let Bson::Array(conditions) = value else {
        return Err(Error::bad_value(format!("{name} must be an array")));
    };
    if conditions.is_empty() {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    let place = place.inside()?;
    conditions
        .iter()
        .map(|condition| match condition {
            Bson::Document(condition) => place.document(condition),
            _ => Err(Error::bad_value("$or/$and/$nor entries need to be full objects")),
        })
        .collect()
}

pub fn and(place: Place<'_>, value: &Bson) -> Result<Condition> {
    conditions(place, "$and", value).map(Condition::And)
}

pub fn or(place: Place<'_>, value: &Bson) -> Result<Condition> {
    let conditions = conditions(place, "$or", value)?;
    Ok(as_one_of(place, &conditions).unwrap_or(Condition::Or(conditions)))
}

/// Alternatives that ask one path for equality are one `$in`, which knows the element that it matched.
fn as_one_of(place: Place<'_>, conditions: &[Condition]) -> Option<Condition> {
    let mut common = None;
    let mut values = Vec::with_capacity(conditions.len());
    for condition in conditions {
        let Condition::Field { path, test: Test::Equal(value) } = condition else { return None };
        if common.get_or_insert(path) != &path {
            return None;
        }
        values.push(value.clone());
    }
    // One alternative alone stays what it is: upserts take its value over.
    if values.len() < 2 {
        return None;
    }
    let path = common?.clone();
    Some(Condition::Field { path, test: Test::In(in_order(values, place.context.collation.as_deref())) })
}

pub fn nor(place: Place<'_>, value: &Bson) -> Result<Condition> {
    conditions(place, "$nor", value).map(Condition::Nor)
}

pub fn not(place: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let test = match value {
        Bson::Regex(regex) => compiled(regex)?,
        Bson::Document(operators) if operators.is_empty() => {
            return Err(Error::bad_value("$not cannot be empty"));
        }
        Bson::Document(operators) => {
            let mut tests = place.operators(operators)?;
            if tests.len() == 1 { tests.swap_remove(0) } else { Test::All(tests) }
        }
        _ => return Err(Error::bad_value("$not needs a regex or a document")),
    };
    Ok(Some(Test::Not(Box::new(test))))
}

pub fn expr(place: Place<'_>, value: &Bson) -> Result<Condition> {
    if place.in_element {
        return Err(Error::bad_value("$expr can only be applied to the top-level document"));
    }
    Ok(Condition::Expr(Box::new(Expression::parse(value, place.context)?)))
}

pub fn comment(_: Place<'_>, _: &Bson) -> Result<Condition> {
    Ok(Condition::Always(true))
}

pub fn comment_field(_: Place<'_>, _: &Bson, _: &Document) -> Result<Option<Test>> {
    Ok(None)
}

pub fn always_true(_: Place<'_>, value: &Bson) -> Result<Condition> {
    always("$alwaysTrue", value, true)
}

pub fn always_false(_: Place<'_>, value: &Bson) -> Result<Condition> {
    always("$alwaysFalse", value, false)
}

fn always(name: &str, value: &Bson, holds: bool) -> Result<Condition> {
    match value.as_i64() {
        Some(1) => Ok(Condition::Always(holds)),
        _ => Err(Error::failed_to_parse(format!("{name} must be an integer value of 1"))),
    }
}

pub fn where_(_: Place<'_>, _: &Bson) -> Result<Condition> {
    Err(Error::bad_value("$where is not supported: use $expr, which needs no JavaScript"))
}

pub fn sample_rate(_: Place<'_>, value: &Bson) -> Result<Condition> {
    let share = match value {
        Bson::Int32(value) => f64::from(*value),
        Bson::Int64(value) => *value as f64,
        Bson::Double(value) => *value,
        Bson::Decimal(value) => value.toward_zero(),
        _ => return Err(Error::bad_value("argument to $sampleRate must be a numeric type")),
    };
    if !(0.0..=1.0).contains(&share) {
        return Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]"));
    }
    Ok(Condition::Sample(share))
}
