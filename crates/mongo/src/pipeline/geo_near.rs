//! `$geoNear`: documents by their distance from a point.

use std::sync::Arc;

use super::memory::StageMemory;
use super::rows::{Blocking, Row};
use super::specification::{self, Parsing, field_path};
use super::unwind::set_path;
use super::{BoxedRows, Env, ListRows, Stage};
use crate::error::{Error, Result, code};
use crate::filter::Filter;
use crate::value::Bson;
use crate::value_ref::{NumberRef, ValueRef};

/// The radius of the earth that MongoDB reckons with.
const EARTH_RADIUS_M: f64 = 6_378_100.0;

#[derive(Clone, Copy)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Clone)]
struct GeoNear {
    near: Point,
    /// A GeoJSON point: distances are metres on the earth. Else radians, or the plane.
    metres: bool,
    spherical: bool,
    distance_field: Option<Arc<str>>,
    locations_field: Option<Arc<str>>,
    key: Option<Arc<str>>,
    distance_max: Option<f64>,
    distance_min: Option<f64>,
    multiplier: f64,
    query: Option<Filter>,
    argument: Bson,
}

fn number(value: ValueRef<'_>) -> Option<f64> {
    match value.as_number()? {
        NumberRef::Int32(value) => Some(f64::from(value)),
        NumberRef::Int64(value) => Some(value as f64),
        NumberRef::Double(value) => Some(value),
        NumberRef::Decimal(value) => value.to_string().parse().ok(),
    }
}

/// A GeoJSON point, `[x, y]`, or `{x: …, y: …}`; and whether it is GeoJSON.
fn point(value: ValueRef<'_>) -> Option<(Point, bool)> {
    let coordinates = value.get("coordinates");
    let (pair, is_geojson) = match coordinates {
        Some(coordinates) if value.get("type").and_then(ValueRef::as_str) == Some("Point") => {
            (coordinates, true)
        }
        _ => (value, false),
    };
    let mut numbers = match pair.kind() {
        crate::Kind::Array => pair.elements().map(number).collect::<Vec<_>>().into_iter(),
        crate::Kind::Document => {
            pair.members().map(|(_, value)| number(value)).collect::<Vec<_>>().into_iter()
        }
        _ => return None,
    };
    Some((Point { x: numbers.next()??, y: numbers.next()?? }, is_geojson))
}

pub fn parse_geo_near(argument: &Bson, parsing: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification = specification::document(
        argument,
        10_065,
        "Invalid argument type for $geoNear, it must be an object",
    )?;
    let near = specification
        .get("near")
        .ok_or_else(|| Error::new(5_860_400, "$geoNear requires a 'near' argument"))?;
    let (near, metres) = point(near.into()).ok_or_else(|| {
        Error::new(5_860_401, "$geoNear requires near argument to be a GeoJSON object, or a legacy point")
    })?;
    let mut stage = GeoNear {
        near,
        metres,
        spherical: metres,
        distance_field: None,
        locations_field: None,
        key: None,
        distance_max: None,
        distance_min: None,
        multiplier: 1.0,
        query: None,
        argument: argument.clone(),
    };
    for (name, value) in specification.iter() {
        let path = || match value {
            Bson::String(path) => field_path(path).map(Some),
            _ => Err(Error::new(16_606, format!("$geoNear requires that '{name}' is a string"))),
        };
        let distance = || match number(value.into()) {
            Some(distance) if distance >= 0.0 => Ok(distance),
            Some(_) => Err(Error::bad_value(format!("$geoNear {name} must be nonnegative"))),
            None => Err(Error::type_mismatch(format!("$geoNear '{name}' must be a number"))),
        };
        match &**name {
            "near" => {}
            "distanceField" => stage.distance_field = path()?,
            "includeLocs" => stage.locations_field = path()?,
            "key" => stage.key = path()?,
            "spherical" => stage.spherical = value.is_truthy() || metres,
            "maxDistance" => stage.distance_max = Some(distance()?),
            "minDistance" => stage.distance_min = Some(distance()?),
            "distanceMultiplier" => stage.multiplier = distance()?,
            "query" => {
                let filter =
                    specification::document(value, code::TYPE_MISMATCH, "$geoNear query must be an object")?;
                stage.query = Some(Filter::parse(filter, parsing.context)?);
            }
            "limit" | "num" | "start" => {
                return Err(Error::new(
                    50_858,
                    format!("$geoNear no longer supports the '{name}' parameter. Use a $limit stage"),
                ));
            }
            "uniqueDocs" => {}
            _ => {
                return Err(Error::new(40_415, format!("BSON field '$geoNear.{name}' is an unknown field.")));
            }
        }
    }
    Ok(Box::new(stage))
}

impl GeoNear {
    fn distance(&self, to: Point) -> f64 {
        if !self.spherical {
            return (self.near.x - to.x).hypot(self.near.y - to.y);
        }
        let (a, b) = (self.near.y.to_radians(), to.y.to_radians());
        let (across, along) = ((b - a) / 2.0, (to.x - self.near.x).to_radians() / 2.0);
        let root = across.sin().powi(2) + a.cos() * b.cos() * along.sin().powi(2);
        let radians = 2.0 * root.sqrt().min(1.0).asin();
        if self.metres { radians * EARTH_RADIUS_M } else { radians }
    }

    /// The nearest point of what a path leads to, with its distance.
    fn nearest<'a>(&self, document: ValueRef<'a>, path: &str) -> Option<(f64, ValueRef<'a>)> {
        let place = path.split('.').try_fold(document, |value, name| value.get(name))?;
        let several = place.elements().filter_map(|place| Some((self.distance(point(place)?.0), place)));
        let one = point(place).map(|(to, _)| (self.distance(to), place));
        one.into_iter().chain(several).min_by(|a, b| a.0.total_cmp(&b.0))
    }
}

impl Stage for GeoNear {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (stage, env) = (self.clone(), env.clone());
        Ok(Blocking::boxed(move || {
            let context = &env.context;
            let key = match &stage.key {
                Some(key) => key.clone(),
                // The database knows which path has a geospatial index.
                None => {
                    let mut rows = env.collections.describe(
                        &env.database,
                        &env.collection,
                        "$geoNear",
                        &stage.argument,
                    )?;
                    let key = rows.next()?.map(Row::into_document).transpose()?;
                    match key.as_ref().and_then(|document| document.get("key")) {
                        Some(Bson::String(key)) => key.clone(),
                        _ => {
                            return Err(Error::new(
                                code::INDEX_NOT_FOUND,
                                "$geoNear requires a 2d or 2dsphere index, but none were found",
                            ));
                        }
                    }
                }
            };
            let mut memory = StageMemory::new("$geoNear", &context.budget)?;
            let mut found = Vec::new();
            while let Some(row) = input.next()? {
                context.budget.step(1)?;
                let document = row.value()?;
                if let Some(query) = &stage.query
                    && !query.matches(document, context)?
                {
                    continue;
                }
                let Some((distance, place)) = stage.nearest(document, &key) else { continue };
                let outside = stage.distance_max.is_some_and(|max| distance > max)
                    || stage.distance_min.is_some_and(|min| distance < min);
                if !outside {
                    let place = place.to_bson();
                    memory.take(row.size_bytes())?;
                    found.push((distance, place, row));
                }
            }
            found.sort_by(|a, b| a.0.total_cmp(&b.0));
            let rows = found.into_iter().map(|(distance, place, row)| {
                let mut document = row.into_document()?;
                if let Some(field) = &stage.distance_field {
                    set_path(&mut document, field, Some(Bson::Double(distance * stage.multiplier)));
                }
                if let Some(field) = &stage.locations_field {
                    set_path(&mut document, field, Some(place));
                }
                Ok(Row::Built(document))
            });
            Ok(ListRows::boxed(rows.collect::<Result<Vec<_>>>()?))
        }))
    }
}
