//! Distances between vectors, computed over all elements.

use super::{Function, entry};
use crate::value::Eval;

/// The elements of a vector; `None` if it is no array of numbers.
fn vector(value: &Eval<'_>) -> Option<Vec<f64>> {
    value.elements()?.map(|element| element.as_f64()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn distance(function: &str, a: &[f64], b: &[f64]) -> Option<f64> {
    Some(match function {
        "DotProduct" => dot(a, b),
        "Euclidean" => a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
        _ => {
            let lengths = dot(a, a).sqrt() * dot(b, b).sqrt();
            if lengths == 0.0 {
                return None;
            }
            dot(a, b) / lengths
        }
    })
}

/// The compiler puts the name of the distance third, from the query's options or the container's policy.
fn call<'a>(arguments: &[Eval<'a>]) -> Eval<'a> {
    let (Some(a), Some(b)) = (vector(&arguments[0]), vector(&arguments[1])) else { return Eval::Undefined };
    if a.len() != b.len() || a.is_empty() {
        return Eval::Undefined;
    }
    let function = arguments.get(2).and_then(Eval::as_str).unwrap_or("Cosine");
    distance(function, &a, &b).map_or(Eval::Undefined, Eval::double)
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "VECTORDISTANCE",
        2,
        4,
        "a, b [, bruteForce [, options]]",
        "Cosine similarity, dot product or Euclidean distance of two vectors, by the container's policy or \
         `options.distanceFunction`.",
        &[
            ("VECTORDISTANCE([1, 0], [0, 1])", "0"),
            ("VECTORDISTANCE([1, 0], [4, 4], false, {distanceFunction: 'euclidean'})", "5"),
            ("VECTORDISTANCE([1], [1, 2])", "undefined"),
        ],
        |_, a| call(a),
    ),
    entry(
        "_VECTORSCORE",
        2,
        4,
        "a, b",
        "VECTORDISTANCE as rewritten queries of clients name it.",
        &[("_VECTORSCORE([2, 0], [1, 0])", "1")],
        |_, a| call(a),
    ),
];
