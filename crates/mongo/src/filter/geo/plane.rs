//! Geometry of the plane.

use crate::filter::geo::Point;

/// How near to an edge a point lies on it, in units of the coordinates.
const EDGE: f64 = 1e-9;

pub fn distance(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

fn cross(a: Point, b: Point, c: Point) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// Distance from a point to a part of a line.
pub fn distance_to_segment(point: Point, a: Point, b: Point) -> f64 {
    let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
    let length = dx * dx + dy * dy;
    if length == 0.0 {
        return distance(point, a);
    }
    let along = (((point[0] - a[0]) * dx + (point[1] - a[1]) * dy) / length).clamp(0.0, 1.0);
    distance(point, [a[0] + along * dx, a[1] + along * dy])
}

pub fn on_segment(point: Point, a: Point, b: Point) -> bool {
    distance_to_segment(point, a, b) <= EDGE
}

/// The edges of a ring, which may be closed or not.
pub fn edges(ring: &[Point]) -> impl Iterator<Item = (Point, Point)> {
    let next = ring.iter().cycle().skip(1);
    ring.iter().zip(next).map(|(a, b)| (*a, *b)).filter(|(a, b)| a != b)
}

/// Whether a point lies in a ring or on it.
pub fn in_ring(point: Point, ring: &[Point]) -> bool {
    let mut inside = false;
    for (a, b) in edges(ring) {
        if on_segment(point, a, b) {
            return true;
        }
        if (a[1] > point[1]) != (b[1] > point[1]) {
            let x = (b[0] - a[0]) * (point[1] - a[1]) / (b[1] - a[1]) + a[0];
            inside ^= point[0] < x;
        }
    }
    inside
}

/// Whether two parts of lines have a point in common.
pub fn segments_meet(a: Point, b: Point, c: Point, d: Point) -> bool {
    segments_cross(a, b, c, d)
        || on_segment(a, c, d)
        || on_segment(b, c, d)
        || on_segment(c, a, b)
        || on_segment(d, a, b)
}

/// Whether two parts of lines cross, their ends left aside.
pub fn segments_cross(a: Point, b: Point, c: Point, d: Point) -> bool {
    let (on_a, on_b) = (cross(c, d, a), cross(c, d, b));
    let (on_c, on_d) = (cross(a, b, c), cross(a, b, d));
    let apart = |left: f64, right: f64| (left > EDGE && right < -EDGE) || (left < -EDGE && right > EDGE);
    apart(on_a, on_b) && apart(on_c, on_d)
}
