//! `$derivative` and `$integral`: a quantity over the field that the stage sorts by.

use orrery_model::Decimal128;

use crate::context::Context;
use crate::decimal;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::expression::date::Unit;
use crate::expression::number::{self, NumberRef};
use crate::expression::value::type_name;
use crate::value::Bson;

/// `{input, unit}`, the unit in milliseconds.
pub(super) fn parse(name: &str, argument: &Bson, context: &Context) -> Result<(Expression, Option<f64>)> {
    let Some(members) = argument.as_document() else {
        let text = format!("{name} requires an object, but got {}", type_name(Some(argument)));
        return Err(Error::failed_to_parse(text));
    };
    if let Some((unknown, _)) = members.iter().find(|(has, _)| !["input", "unit"].contains(&&***has)) {
        return Err(Error::failed_to_parse(format!("{name} got unexpected argument: {unknown}")));
    }
    let Some(input) = members.get("input") else {
        return Err(Error::failed_to_parse(format!("{name} requires an 'input' expression")));
    };
    let unit = match members.get("unit") {
        None => None,
        Some(Bson::String(text)) => match Unit::parse(text) {
            None => return Err(Error::failed_to_parse(format!("unknown time unit value: {text}"))),
            // Months and years are not all of one length.
            Some(unit) => Some(unit.ms().ok_or_else(|| {
                Error::new(5_490_710, format!("unit must be 'week' or smaller, but got: {text}"))
            })? as f64),
        },
        Some(other) => {
            let text = format!("'unit' must be a string, but got: {}", type_name(Some(other)));
            return Err(Error::new(5_490_704, text));
        }
    };
    Ok((Expression::parse(input, context)?, unit))
}

/// A quantity with its place, of each document.
pub(super) struct Curve {
    points: Vec<Option<(NumberRef, NumberRef)>>,
    /// What widths are divided by: milliseconds of the unit.
    unit_ms: Option<f64>,
}

impl Curve {
    pub fn read(
        inputs: &[Option<Bson>],
        places: &[Option<Bson>],
        unit_ms: Option<f64>,
        name: &str,
    ) -> Result<Curve> {
        let integral = name == "$integral";
        let wrong =
            |codes: (i32, i32), text: String| Error::new(if integral { codes.0 } else { codes.1 }, text);
        let mut points = Vec::with_capacity(inputs.len());
        for (input, place) in inputs.iter().zip(places) {
            let kind = type_name(place.as_ref());
            let x = match (place, unit_ms) {
                (Some(Bson::Date(ms)), Some(_)) => NumberRef::Int64(*ms),
                (Some(Bson::Date(_)), None) => {
                    let text = format!("{name} where the sortBy is a Date requires a 'unit'");
                    return Err(wrong((5_423_902, 5_624_901), text));
                }
                (_, Some(_)) => {
                    let text = format!(
                        "{name} with 'unit' expects the sortBy field to be a Date, but it was {kind}"
                    );
                    return Err(wrong((5_423_901, 5_624_900), text));
                }
                (other, None) => other.as_ref().and_then(number::of).ok_or_else(|| {
                    let text = format!("{name} expects the sortBy field to be a number, but it was {kind}");
                    wrong((5_423_902, 5_624_902), text)
                })?,
            };
            let y = input.as_ref().and_then(number::of);
            if y.is_none() && integral && !matches!(input, Some(Bson::Null)) {
                let text = format!(
                    "{name} expects its input to be a number, but it was {}",
                    type_name(input.as_ref())
                );
                return Err(Error::new(5_423_900, text));
            }
            points.push(y.map(|y| (x, y)));
        }
        Ok(Curve { points, unit_ms })
    }

    fn width(&self, from: NumberRef, to: NumberRef) -> f64 {
        let width = match (from, to) {
            (NumberRef::Int64(from), NumberRef::Int64(to)) => (i128::from(to) - i128::from(from)) as f64,
            _ => to.to_f64() - from.to_f64(),
        };
        width / self.unit_ms.unwrap_or(1.0)
    }

    /// A width for decimals, without a double on the way where places are whole.
    fn exact_width(&self, from: NumberRef, to: NumberRef) -> Decimal128 {
        let width = decimal::subtract(to.to_decimal(), from.to_decimal());
        self.unit_ms.map_or(width, |unit| decimal::divide(width, decimal::of_i64(unit as i64)))
    }

    /// From the first document to the last.
    pub fn slope(&self, low: usize, high: usize) -> Bson {
        if high < low + 2 {
            return Bson::Null;
        }
        let (Some(Some((x1, y1))), Some(Some((x2, y2)))) = (self.points.get(low), self.points.get(high - 1))
        else {
            return Bson::Null;
        };
        let width = self.width(*x1, *x2);
        if width == 0.0 {
            return Bson::Null;
        }
        if is_exact(*y1) || is_exact(*y2) {
            let rise = decimal::subtract(y2.to_decimal(), y1.to_decimal());
            return Bson::Decimal(decimal::divide(rise, self.exact_width(*x1, *x2)));
        }
        Bson::Double((y2.to_f64() - y1.to_f64()) / width)
    }

    /// By trapezes.
    pub fn area(&self, low: usize, high: usize) -> Bson {
        let points: Vec<&(NumberRef, NumberRef)> =
            self.points.get(low..high).unwrap_or_default().iter().flatten().collect();
        if points.is_empty() {
            return Bson::Null;
        }
        let mut sum = number::Sum::default();
        sum.add(NumberRef::Double(0.0));
        for pair in points.windows(2) {
            let ((x1, y1), (x2, y2)) = (pair[0], pair[1]);
            sum.add(if is_exact(*y1) || is_exact(*y2) {
                let height = decimal::add(y1.to_decimal(), y2.to_decimal());
                let area = decimal::multiply(height, self.exact_width(*x1, *x2));
                NumberRef::Decimal(decimal::divide(area, decimal::of_i64(2)))
            } else {
                NumberRef::Double((y1.to_f64() + y2.to_f64()) / 2.0 * self.width(*x1, *x2))
            });
        }
        sum.to_bson()
    }
}

fn is_exact(number: NumberRef) -> bool {
    matches!(number, NumberRef::Decimal(_))
}
