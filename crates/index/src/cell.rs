//! Cells: places on the earth or on a plane as numbers whose order keeps near things together.
//!
//! The earth is projected onto the six faces of a cube, each face is divided into four again and again. The number of a
//! cell holds the face, two bits for each division, and a bit that marks where they end:
//!
//! ```text
//! fff aa bb cc 1 000…      face f, quarter a of it, quarter b of that, quarter c of that
//! ```
//!
//! So all cells inside a cell lie in one range of numbers ([`Cell::range`]), and the cells around it are few
//! ([`Cell::parents`]). A cube has no poles and no antimeridian: nothing happens there. Edges of cells are great
//! circles, and cells of a level are about equally large. A plane has one face, its bounding box; what lies outside
//! of it is in [`Cell::ELSEWHERE`], as is whatever cells cannot tell.
//!
//! A [`Region`] is asked about circles around cells, nothing else, and may answer "maybe" as often as it likes: a
//! covering is always large enough and need not be small.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Divisions of a face: one centimetre on the earth.
pub const LEVEL_MAX: u32 = 30;

/// Bytes of a cell in a key.
pub const CELL_BYTES: usize = 8;

const FACE_SHIFT: u32 = 61;
const SPHERE_FACES: u64 = 6;
const PLANE_FACE: u64 = 6;
const ELSEWHERE_FACE: u64 = 7;

/// What rounding may do to the place of a cell, relative to its distance from the origin.
const ROUNDING: f64 = 1e-14;

/// Half the side of the plane that is divided when nobody says which part is used.
const DEFAULT_HALF: f64 = 1_048_576.0;

/// One cell, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(u64);

impl Cell {
    /// Where everything is that has no cell of its own.
    pub const ELSEWHERE: Cell = Cell::face(ELSEWHERE_FACE);

    const fn face(face: u64) -> Cell {
        Cell(face << FACE_SHIFT | 1 << (FACE_SHIFT - 1))
    }

    fn mark(self) -> u64 {
        self.0 & self.0.wrapping_neg()
    }

    pub fn level(self) -> u32 {
        LEVEL_MAX - self.0.trailing_zeros() / 2
    }

    /// The lowest and the highest number of a cell inside this one.
    pub fn range(self) -> (Cell, Cell) {
        let inside = self.mark() - 1;
        (Cell(self.0 - inside), Cell(self.0 + inside))
    }

    /// The cells that this one lies in, the next larger first.
    pub fn parents(self) -> impl Iterator<Item = Cell> {
        (0..self.level()).rev().map(move |level| self.parent(level))
    }

    fn parent(self, level: u32) -> Cell {
        let mark = 1u64 << (2 * (LEVEL_MAX - level));
        Cell(self.0 & mark.wrapping_neg() | mark)
    }

    fn children(self) -> [Cell; 4] {
        let mark = self.mark();
        let first = self.0 - mark + (mark >> 2);
        [0, 1, 2, 3].map(|quarter| Cell(first + quarter * (mark >> 1)))
    }

    pub fn to_bytes(self) -> [u8; CELL_BYTES] {
        self.0.to_be_bytes()
    }

    /// Column, row and level on its face.
    fn place(self) -> (u64, u32, u32, u32) {
        let level = self.level();
        let (mut column, mut row) = (0, 0);
        for at in 0..level {
            let bits = self.0 >> (FACE_SHIFT - 2 - 2 * at) & 3;
            column = column << 1 | (bits & 1) as u32;
            row = row << 1 | (bits >> 1) as u32;
        }
        (self.0 >> FACE_SHIFT, column, row, level)
    }

    fn leaf(face: u64, column: u32, row: u32) -> Cell {
        let spread = |bits: u32| {
            let mut wide = u64::from(bits);
            for (shift, mask) in [
                (16, 0x0000_FFFF_0000_FFFF),
                (8, 0x00FF_00FF_00FF_00FF),
                (4, 0x0F0F_0F0F_0F0F_0F0F),
                (2, 0x3333_3333_3333_3333),
                (1, 0x5555_5555_5555_5555),
            ] {
                wide = (wide | wide << shift) & mask;
            }
            wide
        };
        Cell(face << FACE_SHIFT | (spread(column) | spread(row) << 1) << 1 | 1)
    }
}

/// How a circle lies to a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    Outside,
    /// Some of it may belong to the region.
    Some,
    /// All of it does.
    Inside,
}

/// What is to be covered with cells.
pub trait Region {
    /// How a circle lies to the region: around a direction on the unit sphere by an angle, or around `[x, y, 1]` on
    /// the plane.
    fn touch(&self, center: [f64; 3], radius: f64) -> Touch;

    /// Whether a rectangle of the plane, `[left, bottom, right, top]`, holds the region. Not asked on the sphere.
    fn is_within(&self, rectangle: [f64; 4]) -> bool;
}

/// What is divided into cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Grid {
    Sphere,
    /// `[left, bottom, right, top]`
    Plane([f64; 4]),
}

impl Grid {
    /// A plane of which nothing is known.
    pub fn any_plane() -> Grid {
        Grid::Plane([-DEFAULT_HALF, -DEFAULT_HALF, DEFAULT_HALF, DEFAULT_HALF])
    }

    /// The smallest cell at a direction on the sphere, or at `[x, y, 1]` on the plane.
    pub fn leaf(&self, at: [f64; 3]) -> Cell {
        const SIDE: f64 = (1u64 << LEVEL_MAX) as f64;
        let index = |share: f64| (share * SIDE).clamp(0.0, SIDE - 1.0) as u32;
        match self {
            Grid::Sphere => {
                let (face, u, v) = face_of(at);
                let share = |along: f64| (along.atan() / std::f64::consts::FRAC_PI_4 + 1.0) / 2.0;
                Cell::leaf(face, index(share(u)), index(share(v)))
            }
            Grid::Plane([left, bottom, right, top]) => {
                let [x, y, _] = at;
                if !(x >= *left && x <= *right && y >= *bottom && y <= *top) {
                    return Cell::ELSEWHERE;
                }
                let share = |from: f64, value: f64, to: f64| {
                    if to > from { (value - from) / (to - from) } else { 0.0 }
                };
                Cell::leaf(PLANE_FACE, index(share(*left, x, *right)), index(share(*bottom, y, *top)))
            }
        }
    }

    /// The circle around a cell.
    fn circle(&self, cell: Cell) -> ([f64; 3], f64) {
        let (face, column, row, level) = cell.place();
        let side = f64::from(1u32 << level);
        match self {
            Grid::Sphere => {
                let along = |at: f64| ((at / side * 2.0 - 1.0) * std::f64::consts::FRAC_PI_4).tan();
                let corner = |x: f64, y: f64| direction(face, along(x), along(y));
                let (column, row) = (f64::from(column), f64::from(row));
                let center = corner(column + 0.5, row + 0.5);
                let corners = [
                    corner(column, row),
                    corner(column + 1.0, row),
                    corner(column, row + 1.0),
                    corner(column + 1.0, row + 1.0),
                ];
                let radius = corners.iter().map(|corner| angle(center, *corner)).fold(0.0, f64::max);
                (center, radius + ROUNDING)
            }
            Grid::Plane([left, bottom, right, top]) => {
                let (width, height) = ((right - left) / side, (top - bottom) / side);
                let center =
                    [left + (f64::from(column) + 0.5) * width, bottom + (f64::from(row) + 0.5) * height, 1.0];
                let far = left.abs().max(right.abs()).max(bottom.abs()).max(top.abs());
                (center, width.hypot(height) / 2.0 + far * ROUNDING)
            }
        }
    }

    /// At most `cells_max` cells that hold a region, in order and none inside another; more only where the faces of
    /// the cube themselves are more.
    pub fn cover(&self, region: &dyn Region, cells_max: usize) -> Vec<Cell> {
        let faces = match self {
            Grid::Sphere => 0..SPHERE_FACES,
            Grid::Plane(_) => PLANE_FACE..PLANE_FACE + 1,
        };
        let mut done = Vec::new();
        if let Grid::Plane(rectangle) = self
            && !region.is_within(*rectangle)
        {
            done.push(Cell::ELSEWHERE);
        }
        // The largest cell is divided first.
        let mut open: BinaryHeap<(Reverse<u32>, Cell)> = BinaryHeap::new();
        let meet = |cell: Cell, done: &mut Vec<Cell>| {
            let (center, radius) = self.circle(cell);
            match region.touch(center, radius) {
                Touch::Outside => None,
                Touch::Some if cell.level() < LEVEL_MAX => Some(cell),
                Touch::Some | Touch::Inside => {
                    done.push(cell);
                    None
                }
            }
        };
        for face in faces {
            open.extend(meet(Cell::face(face), &mut done).map(|cell| (Reverse(cell.level()), cell)));
        }
        while let Some((_, cell)) = open.pop() {
            let mut inside = Vec::with_capacity(4);
            let parts: Vec<Cell> =
                cell.children().into_iter().filter_map(|child| meet(child, &mut inside)).collect();
            if done.len() + open.len() + inside.len() + parts.len() > cells_max {
                done.push(cell);
                continue;
            }
            done.append(&mut inside);
            open.extend(parts.into_iter().map(|cell| (Reverse(cell.level()), cell)));
        }
        done.sort_unstable();
        done
    }
}

/// The face of the cube that a direction meets, and where.
fn face_of([x, y, z]: [f64; 3]) -> (u64, f64, f64) {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    if ax >= ay && ax >= az {
        (if x >= 0.0 { 0 } else { 1 }, y / ax, z / ax)
    } else if ay >= az {
        (if y >= 0.0 { 2 } else { 3 }, x / ay, z / ay)
    } else {
        (if z >= 0.0 { 4 } else { 5 }, x / az, y / az)
    }
}

fn direction(face: u64, u: f64, v: f64) -> [f64; 3] {
    let sign = if face.is_multiple_of(2) { 1.0 } else { -1.0 };
    let [x, y, z] = match face / 2 {
        0 => [sign, u, v],
        1 => [u, sign, v],
        _ => [u, v, sign],
    };
    let length = (x * x + y * y + z * z).sqrt();
    [x / length, y / length, z / length]
}

/// The angle between two directions.
fn angle(a: [f64; 3], b: [f64; 3]) -> f64 {
    let cross = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    let dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    (cross[0] * cross[0] + cross[1] * cross[1] + cross[2] * cross[2]).sqrt().atan2(dot)
}

/// The ranges of cells in which everything lies that may share a place with a covering: the cells inside, and where
/// `larger` things are indexed too, each cell around them. In order, without overlaps.
pub fn ranges(covering: &[Cell], larger: bool) -> Vec<(Cell, Cell)> {
    let mut ranges: Vec<(Cell, Cell)> = covering.iter().map(|cell| cell.range()).collect();
    if larger {
        ranges.extend(covering.iter().flat_map(|cell| cell.parents()).map(|cell| (cell, cell)));
    }
    ranges.push((Cell::ELSEWHERE, Cell::ELSEWHERE));
    ranges.sort_unstable();
    let mut merged: Vec<(Cell, Cell)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            // Ranges begin and end with smallest cells, whose numbers are odd: two apart is side by side.
            Some(before) if first.0 <= before.1.0.saturating_add(2) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Cap {
        center: [f64; 3],
        radius: f64,
    }

    impl Region for Cap {
        fn touch(&self, center: [f64; 3], radius: f64) -> Touch {
            let apart = angle(self.center, center);
            if apart + radius <= self.radius {
                Touch::Inside
            } else if apart <= self.radius + radius {
                Touch::Some
            } else {
                Touch::Outside
            }
        }

        fn is_within(&self, _: [f64; 4]) -> bool {
            true
        }
    }

    fn unit() -> impl Strategy<Value = [f64; 3]> {
        (-1.0f64..1.0, -1.0f64..1.0, -1.0f64..1.0)
            .prop_filter("not the middle", |(x, y, z)| x * x + y * y + z * z > 1e-3)
            .prop_map(|(x, y, z)| {
                let length = (x * x + y * y + z * z).sqrt();
                [x / length, y / length, z / length]
            })
    }

    fn is_covered(cells: &[Cell], leaf: Cell) -> bool {
        ranges(cells, false).iter().any(|(first, last)| (*first..=*last).contains(&leaf))
    }

    #[test]
    fn a_face_has_four_quarters_and_they_have_it_as_parent() {
        let face = Cell::face(3);
        assert_eq!(face.level(), 0);
        let (first, last) = face.range();
        for child in face.children() {
            assert_eq!(child.level(), 1);
            assert_eq!(child.parents().collect::<Vec<_>>(), [face]);
            assert!(child.range().0 >= first && child.range().1 <= last);
        }
        assert_eq!(first.level(), LEVEL_MAX);
    }

    #[test]
    fn a_plane_puts_what_is_outside_elsewhere() {
        let grid = Grid::Plane([0.0, 0.0, 10.0, 10.0]);
        assert_eq!(grid.leaf([11.0, 5.0, 1.0]), Cell::ELSEWHERE);
        assert_eq!(grid.leaf([f64::NAN, 5.0, 1.0]), Cell::ELSEWHERE);
        assert_ne!(grid.leaf([10.0, 10.0, 1.0]), Cell::ELSEWHERE);
        assert_eq!(Grid::Plane([1.0, 1.0, 1.0, 1.0]).leaf([1.0, 1.0, 1.0]).level(), LEVEL_MAX);
    }

    proptest! {
        #[test]
        fn a_leaf_lies_in_the_circles_of_all_cells_around_it(at in unit()) {
            let leaf = Grid::Sphere.leaf(at);
            for cell in [leaf].into_iter().chain(leaf.parents()) {
                let (center, radius) = Grid::Sphere.circle(cell);
                prop_assert!(angle(center, at) <= radius + 1e-12);
                prop_assert!(cell.range().0 <= leaf && leaf <= cell.range().1);
            }
        }

        #[test]
        fn coverings_hold_what_they_cover_and_are_few(
            center in unit(), size in -7.0f64..0.4, turn in 0.0f64..7.0, share in 0.0f64..1.0, cells_max in 8usize..40
        ) {
            let radius = 10f64.powf(size);
            let cells = Grid::Sphere.cover(&Cap { center, radius }, cells_max);
            prop_assert!(cells.len() <= cells_max);
            // A point of the cap.
            let aside = if center[2].abs() < 0.9 { [0.0, 0.0, 1.0] } else { [1.0, 0.0, 0.0] };
            let cross = |a: [f64; 3], b: [f64; 3]| {
                [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
            };
            let normal = |a: [f64; 3]| {
                let length = (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]).sqrt();
                a.map(|part| part / length)
            };
            let east = normal(cross(aside, center));
            let north = cross(center, east);
            let away = radius * share;
            let point = [0, 1, 2].map(|at| {
                center[at] * away.cos() + (east[at] * turn.cos() + north[at] * turn.sin()) * away.sin()
            });
            prop_assert!(is_covered(&cells, Grid::Sphere.leaf(point)));
        }
    }
}
