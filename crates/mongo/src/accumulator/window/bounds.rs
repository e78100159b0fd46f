//! Which documents a window holds: `{documents: [lower, upper]}` or `{range: [lower, upper], unit}`.

use crate::decimal;
use crate::error::{Error, Result};
use crate::expression::date::{Unit, Zone, shift};
use crate::expression::number::{self, NumberRef};
use crate::expression::value::{show, type_name};
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

#[derive(Clone, Debug)]
pub(super) enum Bounds {
    Documents { low: Bound<i64>, high: Bound<i64> },
    Range { low: Bound<Bson>, high: Bound<Bson>, unit: Option<Unit> },
}

#[derive(Clone, Debug)]
pub(super) enum Bound<T> {
    Unbounded,
    Current,
    Offset(T),
}

impl Bounds {
    pub fn parse(window: Option<&Bson>, keys: usize) -> Result<Bounds> {
        let all = Bounds::Documents { low: Bound::Unbounded, high: Bound::Unbounded };
        let Some(window) = window else { return Ok(all) };
        let Some(members) = window.as_document() else {
            let text = format!("'window' field must be an object, but found {}", type_name(Some(window)));
            return Err(Error::failed_to_parse(text));
        };
        if members.is_empty() {
            return Ok(all);
        }
        if let Some((unknown, _)) =
            members.iter().find(|(has, _)| !["documents", "range", "unit"].contains(&&***has))
        {
            return Err(Error::failed_to_parse(format!("'window' field that is not known: {unknown}")));
        }
        match (members.get("documents"), members.get("range"), members.get("unit")) {
            (Some(_), Some(_), _) => Err(Error::failed_to_parse(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (Some(_), None, Some(_)) => Err(Error::failed_to_parse(
                "Window bounds can specify either 'documents' or 'unit', not both.",
            )),
            (Some(bounds), None, None) => Bounds::parse_documents(bounds, keys),
            (None, Some(bounds), unit) => Bounds::parse_range(bounds, unit, keys),
            (None, None, _) => Err(Error::failed_to_parse("'window' field must have 'documents' or 'range'")),
        }
    }

    fn parse_documents(bounds: &Bson, keys: usize) -> Result<Bounds> {
        let (low, high) = pair("documents", bounds)?;
        let whole = |value: &Bson| {
            number::of(value).and_then(NumberRef::to_i64).filter(|_| value.is_number()).ok_or_else(|| {
                let text = format!("Numeric document-based bounds must be an integer: {}", show(Some(value)));
                Error::failed_to_parse(text)
            })
        };
        let (low, high) = (bound(low, whole)?, bound(high, whole)?);
        if !matches!((&low, &high), (Bound::Unbounded, Bound::Unbounded)) && keys == 0 {
            return Err(Error::new(5_339_901, "Document-based bounds require a sortBy"));
        }
        let place = |bound: &Bound<i64>| match bound {
            Bound::Unbounded => None,
            Bound::Current => Some(0),
            Bound::Offset(offset) => Some(*offset),
        };
        if let (Some(low), Some(high)) = (place(&low), place(&high))
            && low > high
        {
            let text = format!("Lower bound must not exceed upper bound: documents: [{low}, {high}]");
            return Err(Error::new(5_339_900, text));
        }
        Ok(Bounds::Documents { low, high })
    }

    fn parse_range(bounds: &Bson, unit: Option<&Bson>, keys: usize) -> Result<Bounds> {
        let (low, high) = pair("range", bounds)?;
        if keys != 1 {
            return Err(Error::new(5_339_902, "Range-based bounds require sortBy a single field"));
        }
        let unit = match unit {
            None => None,
            Some(Bson::String(text)) => Some(
                Unit::parse(text)
                    .ok_or_else(|| Error::failed_to_parse(format!("unknown time unit value: {text}")))?,
            ),
            Some(other) => {
                let text = format!("'unit' must be a string, found {}", type_name(Some(other)));
                return Err(Error::failed_to_parse(text));
            }
        };
        let offset = |value: &Bson| match number::of(value) {
            Some(number) if unit.is_none() || number.to_i64().is_some() => Ok(value.clone()),
            _ => {
                let text = format!("Range-based bounds expression must be a number: {}", show(Some(value)));
                Err(Error::failed_to_parse(text))
            }
        };
        Ok(Bounds::Range { low: bound(low, offset)?, high: bound(high, offset)?, unit })
    }

    /// Of each document the first one of its window and the first behind it.
    pub fn of_documents(&self, count: usize) -> Vec<(usize, usize)> {
        let Bounds::Documents { low, high } = self else { return vec![(0, count); count] };
        let place = |bound: &Bound<i64>, at: usize, unbounded: i64, more: i64| match bound {
            Bound::Unbounded => unbounded,
            Bound::Current => at as i64 + more,
            Bound::Offset(offset) => (at as i64).saturating_add(*offset).saturating_add(more),
        };
        let clamp = |place: i64| place.clamp(0, count as i64) as usize;
        (0..count)
            .map(|at| {
                let from = clamp(place(low, at, 0, 0));
                let to = clamp(place(high, at, count as i64, 1));
                (from, to.max(from))
            })
            .collect()
    }

    /// The same for windows of values, which rise, or fall where the sort descends.
    pub fn of_range(&self, values: &[Option<Bson>], descending: bool) -> Result<Vec<(usize, usize)>> {
        let Bounds::Range { low, high, unit } = self else { return Ok(self.of_documents(values.len())) };
        let count = values.len();
        if matches!((low, high), (Bound::Unbounded, Bound::Unbounded)) {
            return Ok(vec![(0, count); count]);
        }
        for value in values {
            check(value.as_ref(), *unit)?;
        }
        let compare = |at: usize, edge: &Bson| {
            let order = crate::order::compare(
                ValueRef::Owned(values[at].as_ref().unwrap_or(&Bson::Null)),
                ValueRef::Owned(edge),
                None,
            );
            if descending { order.reverse() } else { order }
        };
        let edge = |bound: &Bound<Bson>, at: usize| -> Result<Option<Bson>> {
            let value = values[at].as_ref().unwrap_or(&Bson::Null);
            match bound {
                Bound::Unbounded => Ok(None),
                Bound::Current => Ok(Some(value.clone())),
                Bound::Offset(offset) => shifted(value, offset, *unit, descending).map(Some),
            }
        };
        let mut windows: Vec<(usize, usize)> = Vec::with_capacity(count);
        for at in 0..count {
            let from = match edge(low, at)? {
                None => 0,
                Some(edge) => partition_point(count, |place| compare(place, &edge).is_lt()),
            };
            let to = match edge(high, at)? {
                None => count,
                Some(edge) => partition_point(count, |place| compare(place, &edge).is_le()),
            };
            windows.push((from, to.max(from)));
        }
        Ok(windows)
    }
}

fn partition_point(count: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn check(value: Option<&Bson>, unit: Option<Unit>) -> Result<()> {
    match (value, unit) {
        (Some(Bson::Date(_)), Some(_)) => Ok(()),
        (other, Some(_)) => Err(Error::new(
            5_429_513,
            format!("Invalid range: Expected the sortBy field to be a Date, but it was {}", type_name(other)),
        )),
        (Some(value), None) if value.is_number() => Ok(()),
        (other, None) => Err(Error::new(
            5_429_414,
            format!(
                "Invalid range: Expected the sortBy field to be a number, but it was {}",
                type_name(other)
            ),
        )),
    }
}

/// A value moved by an offset. Where the order descends, forward is downward.
fn shifted(value: &Bson, offset: &Bson, unit: Option<Unit>, descending: bool) -> Result<Bson> {
    let Some(by) = number::of(offset) else { return Ok(value.clone()) };
    if let (Bson::Date(ms), Some(unit)) = (value, unit) {
        let by = by.to_i64().unwrap_or(0);
        let by = if descending { -by } else { by };
        let beyond = if by < 0 { i64::MIN } else { i64::MAX };
        return Ok(Bson::Date(shift::add(*ms, unit, by, &Zone::UTC).unwrap_or(beyond)));
    }
    let Some(number) = number::of(value) else { return Ok(value.clone()) };
    let by = match by {
        by if !descending => by,
        NumberRef::Decimal(by) => NumberRef::Decimal(decimal::negate(by)),
        by => NumberRef::Double(-by.to_f64()),
    };
    Ok(number::add(number, by))
}

fn pair<'a>(name: &str, bounds: &'a Bson) -> Result<(&'a Bson, &'a Bson)> {
    match bounds.as_array() {
        Some([low, high]) => Ok((low, high)),
        _ => {
            let mut shown = Document::new();
            shown.push(name, bounds.clone());
            let text = format!(
                "Window bounds must be a 2-element array: {}",
                crate::expression::value::show_document(&shown)
            );
            Err(Error::failed_to_parse(text))
        }
    }
}

fn bound<T>(value: &Bson, offset: impl Fn(&Bson) -> Result<T>) -> Result<Bound<T>> {
    match value {
        Bson::String(text) if &**text == "unbounded" => Ok(Bound::Unbounded),
        Bson::String(text) if &**text == "current" => Ok(Bound::Current),
        Bson::String(_) => Err(Error::failed_to_parse(format!(
            "Window bounds must be 'unbounded', 'current', or a number: {}",
            show(Some(value))
        ))),
        value => offset(value).map(Bound::Offset),
    }
}
