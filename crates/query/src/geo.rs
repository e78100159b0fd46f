//! Geometry of GeoJSON values: on the WGS-84 ellipsoid, or on the plane.
//!
//! Distances and areas on the earth are Karney's geodesics. Whether points lie inside rings and whether
//! edges cross is decided on the sphere, with edges as great circles.

use std::f64::consts::PI;
use std::sync::LazyLock;

use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic};

use crate::value::Eval;

/// Longitude and latitude, or x and y.
pub(crate) type Point = (f64, f64);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    Points(Vec<Point>),
    Line(Vec<Point>),
    /// Each with its outer ring first.
    Polygons(Vec<Vec<Vec<Point>>>),
}

/// Points of one polygon, the service's limit.
const POLYGON_POINTS_MAX: usize = 4096;

/// Angles, in radians, below which a point counts as lying on an edge: less than a tenth of a millimetre.
const ON_EDGE: f64 = 1e-11;

/// Steps of the search for the nearest point of an edge; each divides the interval by 1.6.
const NEAREST_STEPS: usize = 60;

/// How much longer a distance can be on the ellipsoid than on the sphere, relative to others.
const FLATTENING_MARGIN: f64 = 1.01;

/// How many vertex and edge pairs are measured exactly for one distance.
const MEASURED_PAIRS_MAX: usize = 256;

/// How often the middle of a ring is moved towards its vertices to find the half of the sphere that it lies in.
const HEMISPHERE_STEPS: usize = 64;

/// The earth or a plane.
pub(crate) struct Surface {
    earth: Option<&'static Geodesic>,
}

static EARTH: LazyLock<Geodesic> = LazyLock::new(Geodesic::wgs84);

impl Surface {
    pub fn new(planar: bool) -> Surface {
        Surface { earth: (!planar).then(|| &*EARTH) }
    }

    /// Reads GeoJSON; the error says what is wrong with it.
    pub fn shape(&self, value: &Eval<'_>) -> Result<Shape, &'static str> {
        let kind = value.member("type");
        let coordinates = value.member("coordinates");
        let shape = match kind.as_str() {
            Some("Point") => Shape::Points(vec![self.point(&coordinates)?]),
            Some("MultiPoint") => Shape::Points(self.points(&coordinates)?),
            Some("LineString") => {
                let points = self.points(&coordinates)?;
                if points.len() < 2 {
                    return Err("LineString must have at least two positions.");
                }
                Shape::Line(points)
            }
            Some("Polygon") => Shape::Polygons(vec![self.polygon(&coordinates)?]),
            Some("MultiPolygon") => {
                let polygons = coordinates.elements().ok_or("Coordinates must be an array.")?;
                Shape::Polygons(polygons.map(|polygon| self.polygon(&polygon)).collect::<Result<_, _>>()?)
            }
            Some(_) => return Err("The type of the geometry is not supported."),
            None => return Err("A geometry must have a type."),
        };
        Ok(shape)
    }

    fn point(&self, value: &Eval<'_>) -> Result<Point, &'static str> {
        let (Some(x), Some(y)) = (value.element(0).as_f64(), value.element(1).as_f64()) else {
            return Err("A position must be an array of at least two numbers.");
        };
        if self.earth.is_some() {
            if !(-90.0..=90.0).contains(&y) {
                return Err("Latitude values must be between -90 and 90 degrees.");
            }
            if !(-180.0..=180.0).contains(&x) {
                return Err("Longitude values must be between -180 and 180 degrees.");
            }
        }
        Ok((x, y))
    }

    fn points(&self, value: &Eval<'_>) -> Result<Vec<Point>, &'static str> {
        let elements = value.elements().ok_or("Coordinates must be an array.")?;
        elements.map(|element| self.point(&element)).collect()
    }

    fn polygon(&self, value: &Eval<'_>) -> Result<Vec<Vec<Point>>, &'static str> {
        let rings = value.elements().ok_or("Coordinates must be an array.")?;
        let mut polygon = Vec::new();
        let mut count = 0;
        for ring in rings {
            let ring = self.points(&ring)?;
            count += ring.len();
            if ring.len() < 4 {
                return Err("A polygon ring must have at least four positions.");
            }
            if ring.first() != ring.last() {
                return Err("A polygon ring must end where it starts.");
            }
            if count > POLYGON_POINTS_MAX {
                return Err("A polygon must not have more than 4096 positions.");
            }
            polygon.push(ring);
        }
        if polygon.is_empty() {
            return Err("A polygon must have at least one ring.");
        }
        Ok(polygon)
    }

    // ---- measures

    /// The least distance. On the sphere it is quickly told which vertices and edges come into question;
    /// only those are measured exactly.
    pub fn distance(&self, a: &Shape, b: &Shape) -> f64 {
        if self.intersects(a, b) {
            return 0.0;
        }
        let pairs = || {
            let to_b = vertices(a).flat_map(|point| edges_or_points(b).map(|edge| (*point, edge)));
            let to_a = vertices(b).flat_map(|point| edges_or_points(a).map(|edge| (*point, edge)));
            to_b.chain(to_a)
        };
        let rough = |(point, edge): &(Point, (Point, Point))| self.rough_distance(*point, *edge);
        let nearest = pairs().map(|pair| rough(&pair)).fold(f64::INFINITY, f64::min);
        let near = nearest * FLATTENING_MARGIN + 1e-12;
        pairs()
            .filter(|pair| rough(pair) <= near)
            .take(MEASURED_PAIRS_MAX)
            .map(
                |(point, (start, end))| {
                    if start == end { self.between(point, start) } else { self.to_edge(point, start, end) }
                },
            )
            .fold(f64::INFINITY, f64::min)
    }

    /// The distance of a point from an edge on the unit sphere or the plane.
    fn rough_distance(&self, point: Point, (start, end): (Point, Point)) -> f64 {
        if self.earth.is_none() {
            return self.to_edge(point, start, end);
        }
        let (p, a, b) = (self.vector(point), self.vector(start), self.vector(end));
        let angle = |q: [f64; 3]| norm(cross(p, q)).atan2(dot(p, q));
        let normal = cross(a, b);
        let length = norm(normal);
        let beside = length > 0.0 && dot(cross(normal, a), p) >= 0.0 && dot(cross(b, normal), p) >= 0.0;
        if beside { (dot(p, normal) / length).abs().min(1.0).asin() } else { angle(a).min(angle(b)) }
    }

    fn between(&self, a: Point, b: Point) -> f64 {
        match &self.earth {
            Some(earth) => earth.inverse(a.1, a.0, b.1, b.0),
            None => (a.0 - b.0).hypot(a.1 - b.1),
        }
    }

    /// The distance of a point from an edge, by golden-section search along it.
    fn to_edge(&self, point: Point, start: Point, end: Point) -> f64 {
        let Some(earth) = &self.earth else {
            let (dx, dy) = (end.0 - start.0, end.1 - start.1);
            let square = dx * dx + dy * dy;
            let along = if square > 0.0 {
                (((point.0 - start.0) * dx + (point.1 - start.1) * dy) / square).clamp(0.0, 1.0)
            } else {
                0.0
            };
            return self.between(point, (start.0 + along * dx, start.1 + along * dy));
        };
        let (length, azimuth, _, _): (f64, f64, f64, f64) = earth.inverse(start.1, start.0, end.1, end.0);
        let at = |fraction: f64| {
            let (latitude, longitude): (f64, f64) =
                earth.direct(start.1, start.0, azimuth, length * fraction);
            self.between(point, (longitude, latitude))
        };
        let ratio = (5f64.sqrt() - 1.0) / 2.0;
        let (mut low, mut high) = (0.0, 1.0);
        let (mut left, mut right) = (1.0 - ratio, ratio);
        let (mut at_left, mut at_right) = (at(left), at(right));
        for _ in 0..NEAREST_STEPS {
            if at_left < at_right {
                (high, right, at_right) = (right, left, at_left);
                left = high - ratio * (high - low);
                at_left = at(left);
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = low + ratio * (high - low);
                at_right = at(right);
            }
        }
        at_left.min(at_right).min(self.between(point, start)).min(self.between(point, end))
    }

    pub fn area(&self, shape: &Shape) -> f64 {
        let Shape::Polygons(polygons) = shape else { return 0.0 };
        let polygon_area = |rings: &Vec<Vec<Point>>| {
            let mut areas = rings.iter().map(|ring| self.ring_area(ring));
            let outer = areas.next().unwrap_or(0.0);
            outer - areas.sum::<f64>()
        };
        polygons.iter().map(polygon_area).sum()
    }

    fn ring_area(&self, ring: &[Point]) -> f64 {
        let Some(earth) = &self.earth else {
            return ring
                .windows(2)
                .map(|edge| edge[0].0 * edge[1].1 - edge[1].0 * edge[0].1)
                .sum::<f64>()
                .abs()
                / 2.0;
        };
        // Each edge contributes the area between it and the equator; a ring around a pole misses half
        // of the earth.
        let mut sum = 0.0;
        let mut turns = 0.0;
        for edge in ring.windows(2) {
            let (start, end) = (edge[0], edge[1]);
            let (_, _, _, _, _, _, area, _): (f64, f64, f64, f64, f64, f64, f64, f64) =
                earth.inverse(start.1, start.0, end.1, end.0);
            sum += area;
            turns += (end.0 - start.0 + 540.0).rem_euclid(360.0) - 180.0;
        }
        let whole = earth.area();
        let area = if turns.abs() > 180.0 { whole / 2.0 - sum.abs() } else { sum.abs() };
        area.min(whole - area)
    }

    // ---- relations

    /// Whether all of `a` lies inside `b`, points of the boundary not being inside.
    pub fn within(&self, a: &Shape, b: &Shape) -> bool {
        let Shape::Polygons(polygons) = b else {
            return match (a, b) {
                (Shape::Points(inner), Shape::Points(outer)) => {
                    inner.iter().all(|point| outer.contains(point))
                }
                (Shape::Points(inner), Shape::Line(_)) => inner.iter().all(|point| self.on_edges(*point, b)),
                _ => false,
            };
        };
        let strict = matches!(a, Shape::Points(_));
        let inside = |point: &Point| match self.side(*point, polygons) {
            Side::Inside => true,
            Side::Edge => !strict,
            Side::Outside => false,
        };
        vertices(a).all(inside) && !self.edges_cross(a, b)
    }

    pub fn intersects(&self, a: &Shape, b: &Shape) -> bool {
        vertices(a).any(|point| self.touches(*point, b))
            || vertices(b).any(|point| self.touches(*point, a))
            || self.edges_cross(a, b)
    }

    fn touches(&self, point: Point, shape: &Shape) -> bool {
        match shape {
            Shape::Points(points) => points.contains(&point),
            Shape::Line(_) => self.on_edges(point, shape),
            Shape::Polygons(polygons) => self.side(point, polygons) != Side::Outside,
        }
    }

    fn on_edges(&self, point: Point, shape: &Shape) -> bool {
        edges(shape).any(|(start, end)| self.on_edge(point, start, end))
    }

    fn side(&self, point: Point, polygons: &[Vec<Vec<Point>>]) -> Side {
        for polygon in polygons {
            for ring in polygon {
                if ring.windows(2).any(|edge| self.on_edge(point, edge[0], edge[1])) {
                    return Side::Edge;
                }
            }
            let mut rings = polygon.iter();
            let outer = rings.next().is_some_and(|ring| self.surrounds(ring, point));
            if outer && !rings.any(|hole| self.surrounds(hole, point)) {
                return Side::Inside;
            }
        }
        Side::Outside
    }

    /// Whether a ring goes round a point: seen from it, the vertices turn once.
    fn surrounds(&self, ring: &[Point], point: Point) -> bool {
        let bearing = |other: Point| match &self.earth {
            None => (other.1 - point.1).atan2(other.0 - point.0),
            Some(_) => {
                let (from, to) = (point.1.to_radians(), other.1.to_radians());
                let turn = (other.0 - point.0).to_radians();
                (turn.sin() * to.cos()).atan2(from.cos() * to.sin() - from.sin() * to.cos() * turn.cos())
            }
        };
        let mut turned = 0.0;
        for edge in ring.windows(2) {
            let difference = bearing(edge[1]) - bearing(edge[0]);
            turned += (difference + 3.0 * PI).rem_euclid(2.0 * PI) - PI;
        }
        if turned.abs() <= PI {
            return false;
        }
        // On a sphere the ring goes round the opposite point as well, which is not meant.
        let Some(_) = self.earth else { return true };
        hemisphere(ring.iter().map(|vertex| self.vector(*vertex)))
            .is_none_or(|axis| dot(axis, self.vector(point)) > 0.0)
    }

    fn on_edge(&self, point: Point, start: Point, end: Point) -> bool {
        let (p, a, b) = (self.vector(point), self.vector(start), self.vector(end));
        let normal = cross(a, b);
        let length = norm(normal);
        if length == 0.0 {
            return point == start;
        }
        // Across the earth from an edge of almost no length rounding decides everything else.
        let near = self.earth.is_none() || dot(p, a) > 0.0 || dot(p, b) > 0.0;
        let off = dot(p, normal) / length;
        near && off.abs() < ON_EDGE
            && dot(cross(a, p), normal) / length > -ON_EDGE
            && dot(cross(p, b), normal) / length > -ON_EDGE
    }

    fn edges_cross(&self, a: &Shape, b: &Shape) -> bool {
        edges(a).any(|first| edges(b).any(|second| self.cross(first, second)))
    }

    /// Whether two edges meet away from their ends.
    fn cross(&self, first: (Point, Point), second: (Point, Point)) -> bool {
        let (a, b) = (self.vector(first.0), self.vector(first.1));
        let (c, d) = (self.vector(second.0), self.vector(second.1));
        let (one, other) = (cross(a, b), cross(c, d));
        let line = cross(one, other);
        if norm(line) < ON_EDGE * ON_EDGE {
            return false;
        }
        let between = |point: [f64; 3], start, end, normal| {
            dot(cross(start, point), normal) > ON_EDGE && dot(cross(point, end), normal) > ON_EDGE
        };
        let length = norm(line);
        [1.0, -1.0].into_iter().any(|sign| {
            let point = line.map(|value| value * sign / length);
            between(point, a, b, one) && between(point, c, d, other)
        })
    }

    /// Whether the surface is a plane.
    pub fn is_planar(&self) -> bool {
        self.earth.is_none()
    }

    /// Whether a place, given as a direction, lies inside a shape or on its edge.
    pub fn covers(&self, shape: &Shape, at: [f64; 3]) -> bool {
        let Shape::Polygons(polygons) = shape else { return false };
        let point = match self.is_planar() {
            true => (at[0], at[1]),
            false => (at[1].atan2(at[0]).to_degrees(), at[2].atan2(at[0].hypot(at[1])).to_degrees()),
        };
        self.side(point, polygons) != Side::Outside
    }

    /// A point as a direction. The plane is put at height 1, so that its lines are great circles too.
    pub fn vector(&self, point: Point) -> [f64; 3] {
        if self.earth.is_none() {
            return [point.0, point.1, 1.0];
        }
        let (longitude, latitude) = (point.0.to_radians(), point.1.to_radians());
        [latitude.cos() * longitude.cos(), latitude.cos() * longitude.sin(), latitude.sin()]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Inside,
    Edge,
    Outside,
}

/// The middle of a half of the sphere that holds all these directions; `None` where there is none, or it is hard to
/// find.
pub(crate) fn hemisphere(directions: impl Iterator<Item = [f64; 3]> + Clone) -> Option<[f64; 3]> {
    let add = |a: [f64; 3], b: [f64; 3]| [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
    let mut axis = directions.clone().fold([0.0; 3], add);
    for _ in 0..HEMISPHERE_STEPS {
        match directions.clone().min_by(|a, b| dot(axis, *a).total_cmp(&dot(axis, *b))) {
            Some(worst) if dot(axis, worst) <= ON_EDGE * norm(axis) => axis = add(axis, worst),
            _ => return Some(axis),
        }
    }
    None
}

pub(crate) fn vertices(shape: &Shape) -> Box<dyn Iterator<Item = &Point> + '_> {
    match shape {
        Shape::Points(points) | Shape::Line(points) => Box::new(points.iter()),
        Shape::Polygons(polygons) => Box::new(polygons.iter().flatten().flatten()),
    }
}

pub(crate) fn edges(shape: &Shape) -> Box<dyn Iterator<Item = (Point, Point)> + '_> {
    let pair = |edge: &[Point]| (edge[0], edge[1]);
    match shape {
        Shape::Points(_) => Box::new(std::iter::empty()),
        Shape::Line(points) => Box::new(points.windows(2).map(pair)),
        Shape::Polygons(polygons) => {
            Box::new(polygons.iter().flatten().flat_map(move |ring| ring.windows(2).map(pair)))
        }
    }
}

/// The edges of a shape, or its points as edges without length.
fn edges_or_points(shape: &Shape) -> Box<dyn Iterator<Item = (Point, Point)> + '_> {
    match shape {
        Shape::Points(points) => Box::new(points.iter().map(|point| (*point, *point))),
        _ => edges(shape),
    }
}

pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn norm(a: [f64; 3]) -> f64 {
    dot(a, a).sqrt()
}
