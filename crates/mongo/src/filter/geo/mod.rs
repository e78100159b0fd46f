//! `$geoWithin`, `$geoIntersects`, `$near`, `$nearSphere`: places on a plane and on the sphere.
//!
//! A place is GeoJSON (`{type: "Point", coordinates: [x, y]}`), or the old form: two numbers in an array or a
//! document. `$box`, `$polygon` and `$center` are of the plane; `$centerSphere` and `$geometry` are of the sphere,
//! whose edges are parts of great circles (`sphere`).

mod parse;
mod plane;
mod sphere;

use std::sync::Arc;

pub use parse::shape_of;

use crate::error::{Error, Result};
use crate::filter::Test;
use crate::filter::parse::Place;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// Longitude and latitude, or x and y.
pub type Point = [f64; 2];
/// Metres.
pub const EARTH_RADIUS: f64 = 6_378_100.0;

/// Points, lines and polygons; a collection is one shape.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub points: Vec<Point>,
    pub lines: Vec<Vec<Point>>,
    /// Each an outer ring and holes, closed.
    pub polygons: Vec<Vec<Vec<Point>>>,
}

/// What `$geoWithin` asks a place to lie in.
#[derive(Clone, Debug)]
pub enum Region {
    Box {
        low: Point,
        high: Point,
    },
    Polygon(Vec<Point>),
    Circle {
        center: Point,
        radius: f64,
    },
    /// A circle on the sphere; its radius in radians.
    Cap {
        center: Point,
        radius: f64,
    },
    Geometry(Shape),
}

/// What a distance is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Units of the coordinates, on a plane.
    Flat,
    Radians,
    Metres,
}

/// What `$near` asks for.
#[derive(Clone, Debug)]
pub struct Near {
    pub center: Point,
    pub unit: Unit,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Shape {
    /// All corners.
    pub fn corners(&self) -> impl Iterator<Item = &Point> {
        let lines = self.lines.iter().flatten();
        self.points.iter().chain(lines).chain(self.polygons.iter().flatten().flatten())
    }

    /// Whether a stored place has a point in common.
    pub fn touches(&self, value: ValueRef<'_>) -> bool {
        shape_of(value).is_some_and(|shape| sphere::intersect(self, &shape))
    }
}

impl Region {
    /// Whether a stored place lies within.
    pub fn holds(&self, value: ValueRef<'_>) -> bool {
        let Some(shape) = shape_of(value) else { return false };
        let mut corners = shape.corners();
        match self {
            Region::Box { low, high } => {
                corners.all(|[x, y]| (low[0]..=high[0]).contains(x) && (low[1]..=high[1]).contains(y))
            }
            Region::Polygon(ring) => corners.all(|corner| plane::in_ring(*corner, ring)),
            Region::Circle { center, radius } => {
                corners.all(|corner| plane::distance(*center, *corner) <= *radius)
            }
            Region::Cap { center, radius } => {
                corners.all(|corner| sphere::angle(*center, *corner) <= *radius)
            }
            Region::Geometry(outer) => sphere::within(&shape, outer),
        }
    }
}

impl Near {
    /// How far a stored place is; `None` for what is no place.
    pub fn distance(&self, value: ValueRef<'_>) -> Option<f64> {
        let shape = shape_of(value)?;
        let inside = !shape.polygons.is_empty()
            && sphere::intersect(&Shape { points: vec![self.center], ..Shape::default() }, &shape);
        if inside {
            return Some(0.0);
        }
        let distances = shape.corners().map(|corner| match self.unit {
            Unit::Flat => plane::distance(self.center, *corner),
            Unit::Radians => sphere::angle(self.center, *corner),
            Unit::Metres => sphere::angle(self.center, *corner) * EARTH_RADIUS,
        });
        distances.reduce(f64::min)
    }

    pub fn reaches(&self, value: ValueRef<'_>) -> bool {
        self.distance(value).is_some_and(|distance| {
            self.min.is_none_or(|min| distance >= min) && self.max.is_none_or(|max| distance <= max)
        })
    }
}

pub fn within(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let Bson::Document(region) = value else { return Err(Error::bad_value("$geoWithin takes an object")) };
    Ok(Some(Test::Within(Arc::new(parse::region(region)?))))
}

pub fn intersects(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let geometry = value.as_document().and_then(|document| document.get("$geometry"));
    let geometry =
        geometry.ok_or_else(|| Error::bad_value("$geoIntersects not supported with provided geometry"))?;
    Ok(Some(Test::Intersects(Arc::new(parse::geometry(geometry)?))))
}

pub fn near(_: Place<'_>, value: &Bson, siblings: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::Near(Arc::new(parse::near(value, siblings, Unit::Flat)?))))
}

pub fn near_sphere(_: Place<'_>, value: &Bson, siblings: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::Near(Arc::new(parse::near(value, siblings, Unit::Radians)?))))
}

/// `$minDistance` and `$maxDistance` are read by their `$near`.
pub fn distance(_: Place<'_>, _: &Bson, siblings: &Document) -> Result<Option<Test>> {
    if ["$near", "$nearSphere", "$geoNear"].into_iter().any(|name| siblings.contains(name)) {
        return Ok(None);
    }
    Err(Error::bad_value("$minDistance and $maxDistance need a $near or $nearSphere"))
}
