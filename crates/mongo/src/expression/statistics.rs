//! Accumulators over the elements of an array or over several values: `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`,
//! `$stdDevSamp`, `$median`, `$percentile`.

use super::parse::Parser;
use super::table::{MANY, Operator, own, values};
use super::{Call, LazyCall, Node};
use crate::accumulator::percentile::{self, Percentiles};
use crate::accumulator::state::{Deviation, Extreme};
use crate::error::Result;
use crate::expression::number::{self, Sum};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    values(
        "$avg",
        (0, MANY),
        average,
        "{$avg: array} or {$avg: [a, b, …]}",
        "The mean of the numbers; null without any.",
    ),
    values(
        "$max",
        (0, MANY),
        greatest,
        "{$max: array} or {$max: [a, b, …]}",
        "The greatest value; null without any.",
    ),
    own("$median", parse_percentile, "{$median: {input, method}}", "The value in the middle."),
    values(
        "$min",
        (0, MANY),
        least,
        "{$min: array} or {$min: [a, b, …]}",
        "The least value; null without any.",
    ),
    own(
        "$percentile",
        parse_percentile,
        "{$percentile: {input, p: […], method}}",
        "Values below which parts of all lie.",
    ),
    values(
        "$stdDevPop",
        (0, MANY),
        deviation_of_all,
        "{$stdDevPop: array}",
        "The standard deviation of all values.",
    ),
    values(
        "$stdDevSamp",
        (0, MANY),
        deviation_of_sample,
        "{$stdDevSamp: array}",
        "The standard deviation of a sample.",
    ),
    values("$sum", (0, MANY), sum, "{$sum: array} or {$sum: [a, b, …]}", "The sum of the numbers."),
];

/// One array stands for its elements.
fn inputs<'a>(call: &'a Call<'_>) -> Box<dyn Iterator<Item = &'a Bson> + 'a> {
    match call.arguments {
        [Some(Bson::Array(elements))] => Box::new(elements.iter()),
        arguments => Box::new(arguments.iter().flatten()),
    }
}

fn total(call: &Call<'_>) -> Sum {
    let mut sum = Sum::default();
    inputs(call).filter_map(number::of).for_each(|number| sum.add(number));
    sum
}

fn sum(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(total(call).to_bson()))
}

fn average(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(crate::accumulator::state::mean(&total(call))))
}

fn extreme(call: &Call<'_>, greatest: bool) -> Result<Option<Bson>> {
    let mut best = Extreme::new(greatest);
    inputs(call).for_each(|value| best.add(value, call.context));
    Ok(Some(best.finish()))
}

fn least(call: &Call<'_>) -> Result<Option<Bson>> {
    extreme(call, false)
}

fn greatest(call: &Call<'_>) -> Result<Option<Bson>> {
    extreme(call, true)
}

fn deviation(call: &Call<'_>, sample: bool) -> Result<Option<Bson>> {
    let mut deviation = Deviation::default();
    inputs(call).filter_map(number::of).for_each(|number| deviation.add(number.to_f64()));
    Ok(Some(deviation.finish(sample)))
}

fn deviation_of_all(call: &Call<'_>) -> Result<Option<Bson>> {
    deviation(call, false)
}

fn deviation_of_sample(call: &Call<'_>) -> Result<Option<Bson>> {
    deviation(call, true)
}

fn parse_percentile(parser: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let members = percentile::check(name, argument)?;
    let arguments = parser.named(members, &["input", "p"])?;
    Ok(Node::Lazy { name, run: percentiles, arguments, variables: Vec::new() })
}

fn percentiles(call: &LazyCall<'_>) -> Result<Option<Bson>> {
    let input = call.arguments[0].evaluate_in(call.scope)?;
    let mut values = Percentiles::default();
    match &input {
        Some(Bson::Array(elements)) => {
            elements.iter().filter_map(number::of).for_each(|number| values.add(number.to_f64()));
        }
        Some(value) => number::of(value).into_iter().for_each(|number| values.add(number.to_f64())),
        None => {}
    }
    if call.name == "$median" {
        return Ok(Some(values.finish(&[0.5]).into_iter().next().unwrap_or(Bson::Null)));
    }
    let wanted = percentile::wanted(call.arguments[1].evaluate_in(call.scope)?.as_ref())?;
    Ok(Some(Bson::array(values.finish(&wanted))))
}
