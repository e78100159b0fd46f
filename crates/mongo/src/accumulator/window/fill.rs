//! `$linearFill`, `$locf`.

use crate::decimal;
use crate::error::{Error, Result};
use crate::expression::number::{self, NumberRef};
use crate::expression::value::{is_nullish, type_name};
use crate::value::Bson;

/// Null and missing values take the last one before them.
pub(super) fn last_seen(inputs: Vec<Option<Bson>>) -> Vec<Option<Bson>> {
    let mut last = Bson::Null;
    inputs
        .into_iter()
        .map(|input| {
            if let Some(value) = input.filter(|value| !is_nullish(Some(value))) {
                last = value;
            }
            Some(last.clone())
        })
        .collect()
}

/// Null and missing values between two numbers lie on the line between them.
pub(super) fn linear(inputs: &[Option<Bson>], places: &[Option<Bson>]) -> Result<Vec<Option<Bson>>> {
    let mut xs = Vec::with_capacity(places.len());
    for place in places {
        xs.push(match place {
            Some(Bson::Date(ms)) => *ms as f64,
            Some(value) if value.is_number() => number::of(value).map_or(0.0, NumberRef::to_f64),
            other => {
                let text = format!(
                    "The sortBy field must be numeric or a date, but is {}",
                    type_name(other.as_ref())
                );
                return Err(Error::type_mismatch(text));
            }
        });
    }
    if let Some(at) = xs.windows(2).position(|pair| pair[0] == pair[1]) {
        let text = format!("There can be no repeated values in the sort field, but {} is", xs[at]);
        return Err(Error::new(6_050_106, text));
    }
    let mut filled: Vec<Option<Bson>> = Vec::with_capacity(inputs.len());
    let mut known: Option<(usize, NumberRef)> = None;
    for (at, input) in inputs.iter().enumerate() {
        if is_nullish(input.as_ref()) {
            filled.push(Some(Bson::Null));
            continue;
        }
        let Some(next) = input.as_ref().and_then(number::of) else {
            let text = format!(
                "Value to be filled must be numeric or nullish, but is {}",
                type_name(input.as_ref())
            );
            return Err(Error::type_mismatch(text));
        };
        if let Some((from, previous)) = known {
            for place in from + 1..at {
                filled[place] = Some(between(previous, next, xs[place] - xs[from], xs[at] - xs[from]));
            }
        }
        known = Some((at, next));
        filled.push(input.clone());
    }
    Ok(filled)
}

/// The number on the line from `a` to `b`, so far of the whole way.
fn between(a: NumberRef, b: NumberRef, so_far: f64, whole: f64) -> Bson {
    if matches!(a, NumberRef::Decimal(_)) || matches!(b, NumberRef::Decimal(_)) {
        let rise = decimal::subtract(b.to_decimal(), a.to_decimal());
        let part = decimal::multiply(rise, decimal::of_f64(so_far));
        return Bson::Decimal(decimal::add(a.to_decimal(), decimal::divide(part, decimal::of_f64(whole))));
    }
    Bson::Double(a.to_f64() + (b.to_f64() - a.to_f64()) * so_far / whole)
}
