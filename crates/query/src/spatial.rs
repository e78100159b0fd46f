//! Shapes as cells of an index: the cells an item's shape lies in, and the cells in which to look for a condition.
//!
//! Both sides are coverings, so they hold too much and never too little; the functions themselves decide about what is
//! found. They measure on the ellipsoid while cells lie on the sphere, which is made up for here:
//! - A distance on the ellipsoid is at least `METRES_PER_RADIAN` for each radian between the same coordinates on the
//!   sphere: that is the smallest radius of curvature there is.
//! - An edge is a geodesic for distances and a great circle for everything else. Both share their ends and drift
//!   apart by less than `DRIFT` times the square of the angle between them.

use orrery_index::{Cell, Grid, Region, Touch, cell_ranges};
use orrery_model::{Raw, Value};

use crate::geo::{Shape, Surface, cross, dot, edges, hemisphere, norm, vertices};
use crate::value::Eval;

/// The radius of curvature of the meridian at the equator, rounded down.
const METRES_PER_RADIAN: f64 = 6_335_000.0;
/// See above; some five times what is seen.
const DRIFT: f64 = 0.01;
/// Edges longer than this are not followed: their shape is looked for everywhere.
const EDGE_ANGLE_MAX: f64 = std::f64::consts::FRAC_PI_2;
/// What is taken for touching, in radians or relative to the size of coordinates; more than the functions take.
const CLOSE: f64 = 1e-9;

/// Cells of one shape in an item.
const ITEM_CELLS_MAX: usize = 8;
/// Cells of a condition.
const SEARCH_CELLS_MAX: usize = 24;

/// The type of a GeoJSON value and the cells it lies in; `None` where it is no valid shape, so that no condition on
/// it holds.
pub fn cells_of(value: Raw<'_>, grid: &Grid) -> Option<(&'static str, Vec<Cell>)> {
    let surface = Surface::new(*grid != Grid::Sphere);
    let value = Eval::from_raw(value);
    let shape = surface.shape(&value).ok()?;
    let kind = match value.member("type").as_str() {
        Some("Polygon") => "Polygon",
        Some("MultiPolygon") => "MultiPolygon",
        Some("LineString") => "LineString",
        _ => "Point",
    };
    let cells = match &shape {
        Shape::Points(points) => {
            let mut cells: Vec<Cell> = points.iter().map(|point| grid.leaf(surface.vector(*point))).collect();
            cells.sort_unstable();
            cells.dedup();
            cells
        }
        shape => Outline::new(&surface, shape, 0.0).cover(grid, ITEM_CELLS_MAX),
    };
    Some((kind, cells))
}

/// A place to look for shapes: all that may come as near as `reach` to this one.
#[derive(Clone, Debug)]
pub struct Around {
    shape: Shape,
    planar: bool,
    /// Metres, or units of the plane.
    reach: f64,
}

impl Around {
    /// `None` where the value is no shape.
    pub(crate) fn new(value: &Value, planar: bool, reach: f64) -> Option<Around> {
        let shape = Surface::new(planar).shape(&Eval::from_constant(value)).ok()?;
        reach.is_finite().then_some(Around { shape, planar, reach: reach.max(0.0) })
    }

    pub fn is_planar(&self) -> bool {
        self.planar
    }

    /// The ranges of cells to read. `larger`: whether there are shapes that have more than the smallest cells.
    pub fn ranges(&self, grid: &Grid, larger: bool) -> Vec<(Cell, Cell)> {
        let surface = Surface::new(self.planar);
        let reach = if self.planar { self.reach } else { self.reach / METRES_PER_RADIAN };
        let covering = Outline::new(&surface, &self.shape, reach).cover(grid, SEARCH_CELLS_MAX);
        cell_ranges(&covering, larger)
    }
}

/// A shape and everything near it, as cells are asked about it.
struct Outline<'s> {
    surface: &'s Surface,
    shape: &'s Shape,
    points: Vec<[f64; 3]>,
    /// Start, end and normal.
    edges: Vec<[[f64; 3]; 3]>,
    /// How near counts.
    margin: f64,
    everywhere: bool,
}

impl<'s> Outline<'s> {
    fn new(surface: &'s Surface, shape: &'s Shape, reach: f64) -> Outline<'s> {
        let planar = surface.is_planar();
        let points: Vec<[f64; 3]> = vertices(shape).map(|point| surface.vector(*point)).collect();
        let edges: Vec<[[f64; 3]; 3]> = edges(shape)
            .map(|(start, end)| (surface.vector(start), surface.vector(end)))
            .map(|(start, end)| [start, end, cross(start, end)])
            .collect();
        let mut everywhere = false;
        let mut margin = reach;
        if planar {
            let far = points.iter().flatten().fold(1.0, |far: f64, part| far.max(part.abs()));
            margin += CLOSE * far;
        } else {
            let longest = edges.iter().map(|[start, end, _]| angle(*start, *end)).fold(0.0, f64::max);
            everywhere = longest > EDGE_ANGLE_MAX;
            if let Shape::Polygons(polygons) = shape {
                // Of a ring that goes round the earth nobody knows which side is meant.
                everywhere |= polygons
                    .iter()
                    .flatten()
                    .any(|ring| hemisphere(ring.iter().map(|vertex| surface.vector(*vertex))).is_none());
            }
            margin += CLOSE + DRIFT * longest * longest;
        }
        Outline { surface, shape, points, edges, margin, everywhere }
    }

    fn cover(&self, grid: &Grid, cells_max: usize) -> Vec<Cell> {
        grid.cover(self, cells_max)
    }

    /// Whether an edge comes as near to a place as `reach`.
    fn is_near(&self, at: [f64; 3], [start, end, normal]: &[[f64; 3]; 3], reach: f64) -> bool {
        if self.surface.is_planar() {
            let (dx, dy) = (end[0] - start[0], end[1] - start[1]);
            let square = dx * dx + dy * dy;
            let along = ((at[0] - start[0]) * dx + (at[1] - start[1]) * dy) / square;
            let along = if along.is_finite() { along.clamp(0.0, 1.0) } else { 0.0 };
            return (start[0] + along * dx - at[0]).hypot(start[1] + along * dy - at[1]) <= reach;
        }
        let length = norm(*normal);
        let beside =
            length > 0.0 && dot(cross(*normal, *start), at) >= 0.0 && dot(cross(*end, *normal), at) >= 0.0;
        // Its ends are points and were looked at before.
        beside && (dot(at, *normal) / length).abs().min(1.0).asin() <= reach
    }
}

impl Region for Outline<'_> {
    fn touch(&self, center: [f64; 3], radius: f64) -> Touch {
        if self.everywhere {
            return Touch::Some;
        }
        let reach = radius + self.margin;
        let planar = self.surface.is_planar();
        let apart = |point: &[f64; 3]| match planar {
            true => (point[0] - center[0]).hypot(point[1] - center[1]),
            false => angle(*point, center),
        };
        if self.points.iter().any(|point| apart(point) <= reach)
            || self.edges.iter().any(|edge| self.is_near(center, edge, reach))
        {
            return Touch::Some;
        }
        // No edge crosses the circle: it is all inside or all outside.
        if self.surface.covers(self.shape, center) { Touch::Inside } else { Touch::Outside }
    }

    fn is_within(&self, [left, bottom, right, top]: [f64; 4]) -> bool {
        let margin = self.margin;
        self.points.iter().all(|[x, y, _]| {
            x - margin >= left && x + margin <= right && y - margin >= bottom && y + margin <= top
        })
    }
}

fn angle(a: [f64; 3], b: [f64; 3]) -> f64 {
    norm(cross(a, b)).atan2(dot(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn geodesics_keep_near_great_circles(
            (lon, lat) in (-180.0f64..180.0, -90.0f64..90.0), azimuth in 0.0f64..360.0,
            size in -4.0f64..0.19, along in 0.0f64..1.0
        ) {
            let earth = Geodesic::wgs84();
            let metres = 10f64.powf(size) * METRES_PER_RADIAN;
            let (end_lat, end_lon): (f64, f64) = earth.direct(lat, lon, azimuth, metres);
            let (mid_lat, mid_lon): (f64, f64) = earth.direct(lat, lon, azimuth, metres * along);
            let surface = Surface::new(false);
            let (start, end) = (surface.vector((lon, lat)), surface.vector((end_lon, end_lat)));
            let long = angle(start, end);
            prop_assume!(long <= EDGE_ANGLE_MAX);
            let normal = cross(start, end);
            let off = (dot(surface.vector((mid_lon, mid_lat)), normal) / norm(normal)).abs().asin();
            prop_assert!(off <= CLOSE + DRIFT * long * long / 2.0, "{off} over {long}");
        }

        #[test]
        fn distances_are_no_shorter_than_their_angles(
            a in (-180.0f64..180.0, -90.0f64..90.0), b in (-180.0f64..180.0, -90.0f64..90.0)
        ) {
            let surface = Surface::new(false);
            let metres: f64 = Geodesic::wgs84().inverse(a.1, a.0, b.1, b.0);
            prop_assert!(metres >= METRES_PER_RADIAN * angle(surface.vector(a), surface.vector(b)));
        }
    }
}
