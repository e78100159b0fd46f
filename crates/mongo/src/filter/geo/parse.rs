//! Places and regions as they are written.

use crate::error::{Error, Result};
use crate::filter::geo::{Near, Point, Region, Shape, Unit};
use crate::value::{Bson, Document, Kind};
use crate::value_ref::{NumberRef, ValueRef};

/// Collections within collections.
const COLLECTIONS_DEPTH_MAX: usize = 16;

fn number(value: ValueRef<'_>) -> Option<f64> {
    let number = match value.as_number()? {
        NumberRef::Int32(value) => f64::from(value),
        NumberRef::Int64(value) => value as f64,
        NumberRef::Double(value) => value,
        NumberRef::Decimal(value) => value.toward_zero(),
    };
    number.is_finite().then_some(number)
}

/// Two numbers, in an array or as the members of a document.
fn legacy_point(value: ValueRef<'_>) -> Option<Point> {
    match value.kind() {
        Kind::Array => {
            let mut numbers = value.elements();
            Some([number(numbers.next()?)?, number(numbers.next()?)?])
        }
        Kind::Document => {
            let mut numbers = value.members().map(|(_, value)| value);
            Some([number(numbers.next()?)?, number(numbers.next()?)?])
        }
        _ => None,
    }
}

/// The shape that a stored value is, `None` where it is none.
pub fn shape_of(value: ValueRef<'_>) -> Option<Shape> {
    let is_geo_json = value.kind() == Kind::Document
        && value.get("type").is_some_and(|kind| kind.as_str().is_some())
        && (value.get("coordinates").is_some() || value.get("geometries").is_some());
    if is_geo_json {
        let mut shape = Shape::default();
        add(value, &mut shape, 0)?;
        return Some(shape);
    }
    legacy_point(value).map(|point| Shape { points: vec![point], ..Shape::default() })
}

fn add(value: ValueRef<'_>, shape: &mut Shape, depth: usize) -> Option<()> {
    let coordinates = || value.get("coordinates");
    match value.get("type")?.as_str()? {
        "Point" => shape.points.push(position(coordinates()?)?),
        "MultiPoint" => shape.points.extend(positions(coordinates()?, 1)?),
        "LineString" => shape.lines.push(positions(coordinates()?, 2)?),
        "MultiLineString" => {
            for line in list(coordinates()?)? {
                shape.lines.push(positions(line, 2)?);
            }
        }
        "Polygon" => shape.polygons.push(rings(coordinates()?)?),
        "MultiPolygon" => {
            for polygon in list(coordinates()?)? {
                shape.polygons.push(rings(polygon)?);
            }
        }
        "GeometryCollection" if depth < COLLECTIONS_DEPTH_MAX => {
            for geometry in list(value.get("geometries")?)? {
                add(geometry, shape, depth + 1)?;
            }
        }
        _ => return None,
    }
    Some(())
}

fn list(value: ValueRef<'_>) -> Option<impl Iterator<Item = ValueRef<'_>>> {
    (value.kind() == Kind::Array && !value.is_empty()).then(|| value.elements())
}

fn position(value: ValueRef<'_>) -> Option<Point> {
    let [x, y] = legacy_point(value).filter(|_| value.kind() == Kind::Array)?;
    ((-180.0..=180.0).contains(&x) && (-90.0..=90.0).contains(&y)).then_some([x, y])
}

fn positions(value: ValueRef<'_>, least: usize) -> Option<Vec<Point>> {
    let points: Vec<Point> = list(value)?.map(position).collect::<Option<_>>()?;
    (points.len() >= least).then_some(points)
}

fn rings(value: ValueRef<'_>) -> Option<Vec<Vec<Point>>> {
    let rings: Vec<Vec<Point>> = list(value)?.map(|ring| positions(ring, 4)).collect::<Option<_>>()?;
    rings.iter().all(|ring| ring.first() == ring.last()).then_some(rings)
}

/// What `$geometry` says.
pub fn geometry(value: &Bson) -> Result<Shape> {
    if let Bson::Document(document) = value
        && let Some(kind) = document.get("type")
    {
        let known = [
            "Point",
            "MultiPoint",
            "LineString",
            "MultiLineString",
            "Polygon",
            "MultiPolygon",
            "GeometryCollection",
        ];
        let Some(name) = kind.as_str() else {
            return Err(Error::bad_value("GeoJSON type must be a string"));
        };
        if !known.contains(&name) {
            return Err(Error::bad_value(format!("unknown GeoJSON type: {name}")));
        }
        if !document.contains("coordinates") && !document.contains("geometries") {
            return Err(Error::bad_value("GeoJSON coordinates must be an array"));
        }
    }
    shape_of(value.into()).ok_or_else(|| {
        Error::bad_value(
            "unknown geo specifier: a geometry needs its type, and coordinates within longitudes from -180 to 180 \
             and latitudes from -90 to 90, rings closed",
        )
    })
}

/// What `$geoWithin` says.
pub fn region(document: &Document) -> Result<Region> {
    let shapes = ["$geometry", "$box", "$polygon", "$center", "$centerSphere"];
    let Some((name, value)) = document.iter().find(|(name, _)| shapes.contains(&&***name)) else {
        let name = document.first().map(|(name, _)| name.to_string()).unwrap_or_default();
        return Err(Error::bad_value(format!("unknown geo specifier: {name}")));
    };
    let point = |value: ValueRef<'_>| {
        legacy_point(value).ok_or_else(|| Error::bad_value("Point must be an array or object of two numbers"))
    };
    let parts: Vec<ValueRef<'_>> = match value {
        Bson::Array(_) => ValueRef::Owned(value).elements().collect(),
        Bson::Document(_) => ValueRef::Owned(value).members().map(|(_, value)| value).collect(),
        _ => return Err(Error::bad_value(format!("{name} has to be an array or an object"))),
    };
    match &**name {
        "$geometry" => {
            let shape = geometry(value)?;
            if shape.polygons.is_empty() || !shape.points.is_empty() || !shape.lines.is_empty() {
                return Err(Error::bad_value("$geoWithin not supported with provided geometry"));
            }
            Ok(Region::Geometry(shape))
        }
        "$box" => {
            let [a, b] = parts[..] else { return Err(Error::bad_value("$box needs exactly 2 elements")) };
            let (a, b) = (point(a)?, point(b)?);
            let (low, high) = ([a[0].min(b[0]), a[1].min(b[1])], [a[0].max(b[0]), a[1].max(b[1])]);
            Ok(Region::Box { low, high })
        }
        "$polygon" => {
            let ring = parts.into_iter().map(point).collect::<Result<Vec<_>>>()?;
            if ring.len() < 3 {
                return Err(Error::bad_value("Polygon must have at least 3 points"));
            }
            Ok(Region::Polygon(ring))
        }
        _ => {
            let [center, radius] = parts[..] else {
                return Err(Error::bad_value(format!("{name} needs a point and a radius")));
            };
            let center = point(center)?;
            let radius = match radius.as_number() {
                Some(NumberRef::Double(value)) if value == f64::INFINITY => value,
                _ => number(radius).unwrap_or(-1.0),
            };
            if radius < 0.0 {
                return Err(Error::bad_value("radius must be a non-negative number"));
            }
            Ok(match &**name {
                "$center" => Region::Circle { center, radius },
                _ => Region::Cap { center, radius },
            })
        }
    }
}

pub fn near(value: &Bson, siblings: &Document, legacy: Unit) -> Result<Near> {
    let distance = |document: &Document, name: &str| match document.get(name) {
        None => Ok(None),
        Some(value) => match number(value.into()) {
            Some(distance) if distance >= 0.0 => Ok(Some(distance)),
            Some(_) => Err(Error::bad_value(format!("{name} must be non-negative"))),
            None => Err(Error::bad_value(format!("{name} must be a number"))),
        },
    };
    if let Bson::Document(document) = value
        && let Some(geometry) = document.get("$geometry")
    {
        let shape = self::geometry(geometry)?;
        let [center] = shape.points[..] else {
            return Err(Error::bad_value("$near requires geojson point, given a geometry that is none"));
        };
        let (min, max) = (distance(document, "$minDistance")?, distance(document, "$maxDistance")?);
        return Ok(Near { center, unit: Unit::Metres, min, max });
    }
    let center = legacy_point(value.into())
        .ok_or_else(|| Error::bad_value("invalid argument in geo near query: a point is needed"))?;
    let mut max = distance(siblings, "$maxDistance")?;
    // The oldest form: [x, y, distance].
    if let Some(third) = ValueRef::Owned(value).at(2).and_then(number) {
        max = max.or(Some(third));
    }
    Ok(Near { center, unit: legacy, min: distance(siblings, "$minDistance")?, max })
}
