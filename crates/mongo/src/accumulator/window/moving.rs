//! `$expMovingAvg`.

use orrery_model::Decimal128;

use crate::decimal;
use crate::expression::number::{self, NumberRef};
use crate::value::Bson;

/// The first number stands for itself; each one after it weighs `alpha`, all before it the rest. Others do not count.
pub(super) fn means(inputs: &[Option<Bson>], alpha: f64, exact: Option<Decimal128>) -> Vec<Option<Bson>> {
    let mut mean: Option<Bson> = None;
    inputs
        .iter()
        .map(|input| {
            let Some(number) = input.as_ref().and_then(number::of) else { return Some(Bson::Null) };
            let next = match mean.as_ref().and_then(number::of) {
                None => number.to_bson(),
                Some(before) => match (before, number, exact) {
                    (NumberRef::Decimal(_), _, Some(alpha)) | (_, NumberRef::Decimal(_), Some(alpha)) => {
                        let rest = decimal::subtract(decimal::of_i64(1), alpha);
                        Bson::Decimal(decimal::add(
                            decimal::multiply(number.to_decimal(), alpha),
                            decimal::multiply(before.to_decimal(), rest),
                        ))
                    }
                    _ => {
                        let next = number.to_f64() * alpha + before.to_f64() * (1.0 - alpha);
                        // Ints whose mean is whole stay ints.
                        match (before, number) {
                            (NumberRef::Int32(_), NumberRef::Int32(_)) if next.fract() == 0.0 => {
                                Bson::Int32(next as i32)
                            }
                            _ => Bson::Double(next),
                        }
                    }
                },
            };
            mean = Some(next.clone());
            Some(next)
        })
        .collect()
}
