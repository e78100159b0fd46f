//! Geometry of the sphere, by projection onto planes.
//!
//! A gnomonic projection looks at the half of the sphere around a point from the middle of the sphere: parts of great
//! circles become straight. So two shapes are looked at from the middle of the larger of them. Shapes that reach
//! beyond half of the sphere are compared by longitude and latitude instead.

use crate::filter::geo::{Point, Shape, plane};

/// How far from the middle of a projection a corner may lie, as the cosine of the angle.
const HORIZON: f64 = 0.01;

type Vector = [f64; 3];

fn vector([longitude, latitude]: Point) -> Vector {
    let (longitude, latitude) = (longitude.to_radians(), latitude.to_radians());
    [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn unit(a: Vector) -> Option<Vector> {
    let length = dot(a, a).sqrt();
    (length > 1e-12).then(|| a.map(|part| part / length))
}

/// The angle between two points seen from the middle, in radians.
pub fn angle(a: Point, b: Point) -> f64 {
    let (a_latitude, b_latitude) = (a[1].to_radians(), b[1].to_radians());
    let latitude = ((b_latitude - a_latitude) / 2.0).sin();
    let longitude = ((b[0] - a[0]).to_radians() / 2.0).sin();
    let haversine = latitude * latitude + a_latitude.cos() * b_latitude.cos() * longitude * longitude;
    2.0 * haversine.sqrt().min(1.0).asin()
}

/// A projection: how to look at points.
enum View {
    Gnomonic {
        middle: Vector,
        east: Vector,
        north: Vector,
    },
    /// By longitude and latitude.
    Flat,
}

impl View {
    /// From the middle of a shape.
    fn over(corners: &[Point]) -> View {
        let vectors: Vec<Vector> = corners.iter().map(|corner| vector(*corner)).collect();
        let sum = vectors.iter().fold([0.0; 3], |sum, v| [sum[0] + v[0], sum[1] + v[1], sum[2] + v[2]]);
        let Some(middle) = unit(sum) else { return View::Flat };
        if vectors.iter().any(|vector| dot(*vector, middle) < HORIZON) {
            return View::Flat;
        }
        let axis = if middle[2].abs() < 0.9 { [0.0, 0.0, 1.0] } else { [1.0, 0.0, 0.0] };
        let Some(east) = unit(cross(axis, middle)) else { return View::Flat };
        View::Gnomonic { middle, east, north: cross(middle, east) }
    }

    /// Where a point is seen; `None` beyond the horizon. In degrees near the middle.
    fn point(&self, point: Point) -> Option<Point> {
        match self {
            View::Flat => Some(point),
            View::Gnomonic { middle, east, north } => {
                let vector = vector(point);
                let depth = dot(vector, *middle);
                (depth >= HORIZON / 2.0).then(|| {
                    [(dot(vector, *east) / depth).to_degrees(), (dot(vector, *north) / depth).to_degrees()]
                })
            }
        }
    }

    fn points(&self, points: &[Point]) -> Option<Vec<Point>> {
        points.iter().map(|point| self.point(*point)).collect()
    }

    fn rings(&self, rings: &[Vec<Point>]) -> Option<Vec<Vec<Point>>> {
        rings.iter().map(|ring| self.points(ring)).collect()
    }
}

fn in_rings(point: Point, rings: &[Vec<Point>]) -> bool {
    let Some((outer, holes)) = rings.split_first() else { return false };
    plane::in_ring(point, outer)
        && !holes.iter().any(|hole| {
            plane::in_ring(point, hole) && !plane::edges(hole).any(|(a, b)| plane::on_segment(point, a, b))
        })
}

fn segments(line: &[Point]) -> impl Iterator<Item = (Point, Point)> {
    line.windows(2).map(|pair| (pair[0], pair[1]))
}

/// Whether two shapes have a point in common.
pub fn intersect(a: &Shape, b: &Shape) -> bool {
    let near = |a: Point, b: Point| angle(a, b) < 1e-12;
    a.points.iter().any(|point| touches_point(b, *point))
        || b.points
            .iter()
            .any(|point| a.points.iter().any(|other| near(*point, *other)) || touches_point(a, *point))
        || a.lines.iter().any(|line| b.lines.iter().any(|other| lines_meet(line, other)))
        || a.lines.iter().any(|line| b.polygons.iter().any(|rings| line_meets(line, rings)))
        || b.lines.iter().any(|line| a.polygons.iter().any(|rings| line_meets(line, rings)))
        || a.polygons.iter().any(|rings| b.polygons.iter().any(|other| polygons_meet(rings, other)))
}

fn touches_point(shape: &Shape, point: Point) -> bool {
    shape.points.iter().any(|other| angle(point, *other) < 1e-12)
        || shape.lines.iter().any(|line| {
            let view = View::over(line);
            view.point(point)
                .zip(view.points(line))
                .is_some_and(|(point, line)| segments(&line).any(|(a, b)| plane::on_segment(point, a, b)))
        })
        || shape.polygons.iter().any(|rings| polygon_has(rings, point))
}

fn polygon_has(rings: &[Vec<Point>], point: Point) -> bool {
    let view = View::over(&rings[0]);
    view.point(point).zip(view.rings(rings)).is_some_and(|(point, rings)| in_rings(point, &rings))
}

fn lines_meet(a: &[Point], b: &[Point]) -> bool {
    let both: Vec<Point> = a.iter().chain(b).copied().collect();
    let view = View::over(&both);
    let Some((a, b)) = view.points(a).zip(view.points(b)) else { return false };
    segments(&a).any(|(p, q)| segments(&b).any(|(r, s)| plane::segments_meet(p, q, r, s)))
}

fn line_meets(line: &[Point], rings: &[Vec<Point>]) -> bool {
    let both: Vec<Point> = rings[0].iter().chain(line).copied().collect();
    let view = View::over(&both);
    let Some((line, rings)) = view.points(line).zip(view.rings(rings)) else { return false };
    line.iter().any(|point| in_rings(*point, &rings))
        || rings.iter().any(|ring| {
            plane::edges(ring).any(|(p, q)| segments(&line).any(|(r, s)| plane::segments_meet(p, q, r, s)))
        })
}

fn polygons_meet(a: &[Vec<Point>], b: &[Vec<Point>]) -> bool {
    let both: Vec<Point> = a[0].iter().chain(&b[0]).copied().collect();
    let view = View::over(&both);
    let Some((a, b)) = view.rings(a).zip(view.rings(b)) else { return false };
    in_rings(a[0][0], &b)
        || in_rings(b[0][0], &a)
        || plane::edges(&a[0])
            .any(|(p, q)| plane::edges(&b[0]).any(|(r, s)| plane::segments_meet(p, q, r, s)))
}

/// Whether all of a shape lies in one of the polygons of another.
pub fn within(shape: &Shape, outer: &Shape) -> bool {
    let in_one = |test: &dyn Fn(&[Vec<Point>]) -> bool| outer.polygons.iter().any(|rings| test(rings));
    shape.points.iter().all(|point| in_one(&|rings| polygon_has(rings, *point)))
        && shape.lines.iter().all(|line| in_one(&|rings| line_within(line, rings)))
        && shape.polygons.iter().all(|inner| in_one(&|rings| line_within(&inner[0], rings)))
}

fn line_within(line: &[Point], rings: &[Vec<Point>]) -> bool {
    let view = View::over(&rings[0]);
    let Some((line, rings)) = view.points(line).zip(view.rings(rings)) else { return false };
    let crosses = |ring: &Vec<Point>| {
        plane::edges(ring).any(|(p, q)| segments(&line).any(|(r, s)| plane::segments_cross(p, q, r, s)))
    };
    line.iter().all(|point| in_rings(*point, &rings)) && !rings.iter().any(crosses)
}
