//! GeoJSON: distances in metres, areas in square metres, and how shapes lie to each other.

use super::{Function, entry};
use crate::context::Caller;
use crate::geo::{Shape, Surface};
use crate::value::Eval;

/// Computes something of two shapes; undefined if one is no valid GeoJSON.
fn two<'a>(
    context: &Caller<'_>,
    arguments: &[Eval<'a>],
    compute: impl Fn(&Surface, &Shape, &Shape) -> Eval<'a>,
) -> Eval<'a> {
    let surface = Surface::new(context.geometry);
    match (surface.shape(&arguments[0]), surface.shape(&arguments[1])) {
        (Ok(first), Ok(second)) => compute(&surface, &first, &second),
        _ => Eval::Undefined,
    }
}

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "ST_DISTANCE",
        2,
        2,
        "a, b",
        "The shortest distance between two shapes.",
        &[(
            "ROUND(ST_DISTANCE({type: 'Point', coordinates: [0, 0]}, {type: 'Point', coordinates: [0, 1]}))",
            "110574",
        )],
        |context, a| two(context, a, |surface, first, second| Eval::double(surface.distance(first, second))),
    ),
    entry(
        "ST_AREA",
        1,
        1,
        "shape",
        "The area of a polygon or several.",
        &[(
            "ROUND(ST_AREA({type: 'Polygon', coordinates: [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]]}) / 1000000)",
            "12309",
        )],
        |context, a| {
            let surface = Surface::new(context.geometry);
            surface.shape(&a[0]).map_or(Eval::Undefined, |shape| Eval::double(surface.area(&shape)))
        },
    ),
    entry(
        "ST_WITHIN",
        2,
        2,
        "a, b",
        "Whether `a` lies inside `b`; the boundary does not belong to the inside.",
        &[(
            "ST_WITHIN({type: 'Point', coordinates: [1, 1]}, {type: 'Polygon', coordinates: [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]})",
            "true",
        )],
        |context, a| two(context, a, |surface, first, second| Eval::Bool(surface.within(first, second))),
    ),
    entry(
        "ST_INTERSECTS",
        2,
        2,
        "a, b",
        "Whether two shapes have a point in common.",
        &[(
            "ST_INTERSECTS({type: 'LineString', coordinates: [[-1, 1], [3, 1]]}, {type: 'Polygon', coordinates: [[[0, 0], [2, 0], [2, 2], [0, 2], [0, 0]]]})",
            "true",
        )],
        |context, a| two(context, a, |surface, first, second| Eval::Bool(surface.intersects(first, second))),
    ),
    entry(
        "ST_ISVALID",
        1,
        1,
        "shape",
        "Whether it is GeoJSON that the other functions take.",
        &[("ST_ISVALID({type: 'Point', coordinates: [31.9, -132.8]})", "false")],
        |context, a| Eval::Bool(Surface::new(context.geometry).shape(&a[0]).is_ok()),
    ),
    entry(
        "ST_ISVALIDDETAILED",
        1,
        1,
        "shape",
        "Whether it is valid, and if not, why.",
        &[("ST_ISVALIDDETAILED({type: 'Point', coordinates: [1, 2]})", r#"{"valid":true}"#)],
        |context, a| match Surface::new(context.geometry).shape(&a[0]) {
            Ok(_) => Eval::object(vec![("valid".into(), Eval::Bool(true))]),
            Err(reason) => {
                Eval::object(vec![("valid".into(), Eval::Bool(false)), ("reason".into(), Eval::text(reason))])
            }
        },
    ),
];
