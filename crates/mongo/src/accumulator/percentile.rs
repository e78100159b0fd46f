//! `$median` and `$percentile`: the values are kept, and the answer is one of them.

use crate::error::{Error, Result, code};
use crate::expression::number;
use crate::expression::value::{show, type_name};
use crate::value::{Bson, Document};

/// Looks at `{input, p, method}`.
pub(crate) fn check<'a>(name: &str, argument: &'a Bson) -> Result<&'a Document> {
    let Some(members) = argument.as_document() else {
        let text = format!("specification must be an object; found {name}: {}", show(Some(argument)));
        return Err(Error::new(if name == "$median" { 7_436_100 } else { 7_429_703 }, text));
    };
    let known: &[&str] = if name == "$median" { &["input", "method"] } else { &["input", "p", "method"] };
    if let Some((unknown, _)) = members.iter().find(|(has, _)| !known.contains(&&***has)) {
        return Err(Error::new(40415, format!("BSON field '{name}.{unknown}' is an unknown field.")));
    }
    if let Some(missing) = known.iter().find(|member| !members.contains(member)) {
        let text = format!("BSON field '{name}.{missing}' is missing but a required field");
        return Err(Error::new(40414, text));
    }
    match members.get("method") {
        Some(Bson::String(method)) if &**method == "approximate" => Ok(members),
        Some(Bson::String(method)) => Err(Error::bad_value(format!(
            "Currently only 'approximate' can be used as a percentile 'method', not {method}"
        ))),
        other => Err(Error::new(
            code::TYPE_MISMATCH,
            format!(
                "BSON field '{name}.method' is the wrong type '{}', expected type 'string'",
                type_name(other)
            ),
        )),
    }
}

/// The parts that are asked for.
pub(crate) fn wanted(p: Option<&Bson>) -> Result<Vec<f64>> {
    let Some(elements) = p.and_then(Bson::as_array).filter(|elements| !elements.is_empty()) else {
        let text = format!(
            "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {}",
            show(p)
        );
        return Err(Error::new(7_750_301, text));
    };
    let wrong = |value: &Bson, code: i32| {
        let text = format!(
            "The $percentile 'p' field must be an array of numbers from [0.0, 1.0], but found: {}",
            show(Some(value))
        );
        Error::new(code, text)
    };
    elements
        .iter()
        .map(|value| {
            let part = number::of(value).ok_or_else(|| wrong(value, 7_750_302))?.to_f64();
            if (0.0..=1.0).contains(&part) { Ok(part) } else { Err(wrong(value, 7_750_303)) }
        })
        .collect()
}

#[derive(Clone, Debug, Default)]
pub struct Percentiles {
    values: Vec<f64>,
}

impl Percentiles {
    pub fn add(&mut self, value: f64) {
        if !value.is_nan() {
            self.values.push(value);
        }
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// For each part the least value that has at least that part of all at or below it.
    pub fn finish(&self, parts: &[f64]) -> Vec<Bson> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        parts
            .iter()
            .map(|part| {
                let rank = (part * sorted.len() as f64).ceil() as usize;
                sorted.get(rank.saturating_sub(1)).map_or(Bson::Null, |value| Bson::Double(*value))
            })
            .collect()
    }
}
