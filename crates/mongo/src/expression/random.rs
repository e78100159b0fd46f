//! `$rand`, `$sampleRate`, `$meta`.

use super::parse::Parser;
use super::table::{Operator, own};
use super::value::type_name;
use super::{Call, Expression, Node, number};
use crate::error::{Error, Result};
use crate::value::Bson;

pub(crate) static OPERATORS: &[Operator] = &[
    own(
        "$meta",
        parse_meta,
        "{$meta: \"textScore\" | \"indexKey\" | …}",
        "What is known about a document beside it.",
    ),
    own("$rand", parse_rand, "{$rand: {}}", "A random number from 0 to before 1."),
    own("$sampleRate", parse_sample_rate, "{$sampleRate: rate}", "Whether a random number is below a rate."),
];

/// Where scores and the like of a document are kept on its way through a pipeline: a member that clients do not see.
pub const META_MEMBER: &str = "$meta";

fn parse_rand(_: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let empty = match argument {
        Bson::Document(members) => members.is_empty(),
        Bson::Array(elements) => elements.is_empty(),
        _ => false,
    };
    if !empty {
        return Err(Error::new(3_040_501, "$rand does not currently accept arguments"));
    }
    Ok(Node::Call { name, run: rand, arguments: Vec::new() })
}

fn fraction(call: &Call<'_>) -> f64 {
    // 53 bits are what a double holds.
    ((call.context.random)() >> 11) as f64 / (1u64 << 53) as f64
}

fn rand(call: &Call<'_>) -> Result<Option<Bson>> {
    Ok(Some(Bson::Double(fraction(call))))
}

fn parse_sample_rate(_: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    match number::of(argument).map(number::NumberRef::to_f64) {
        Some(rate) if (0.0..=1.0).contains(&rate) => {
            let rate = Expression::constant(Some(Bson::Double(rate)));
            Ok(Node::Call { name, run: sample_rate, arguments: vec![rate] })
        }
        _ => Err(Error::bad_value("numeric argument to $sampleRate must be in [0, 1]")),
    }
}

fn sample_rate(call: &Call<'_>) -> Result<Option<Bson>> {
    let rate = call.arguments[0].as_ref().and_then(number::of).map_or(0.0, number::NumberRef::to_f64);
    Ok(Some(Bson::Bool(fraction(call) < rate)))
}

fn parse_meta(_: &mut Parser<'_>, name: &'static str, argument: &Bson) -> Result<Node> {
    let Some(which) = argument.as_str() else {
        return Err(Error::new(
            17307,
            format!("$meta only supports string arguments, not {}", type_name(Some(argument))),
        ));
    };
    let known = [
        "textScore",
        "indexKey",
        "randVal",
        "searchScore",
        "searchHighlights",
        "searchScoreDetails",
        "vectorSearchScore",
        "geoNearDistance",
        "geoNearPoint",
        "recordId",
        "sortKey",
        "score",
        "timeseriesBucketMinTime",
    ];
    if !known.contains(&which) {
        return Err(Error::new(17308, format!("Unsupported argument to $meta: {which}")));
    }
    let which = Expression::constant(Some(Bson::from(which)));
    Ok(Node::Lazy { name, run: meta, arguments: vec![which, Expression::current()], variables: Vec::new() })
}

fn meta(call: &super::LazyCall<'_>) -> Result<Option<Bson>> {
    let Some(Some(Bson::String(which))) = call.arguments[0].as_constant() else { return Ok(None) };
    let document = call.arguments[1].value_in(call.scope)?;
    Ok(document
        .get()
        .and_then(|document| document.get(META_MEMBER)?.get(which))
        .map(crate::value_ref::ValueRef::to_bson))
}
