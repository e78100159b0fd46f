//! `$exists`, `$type`, `$size`, `$all`, `$elemMatch`.

use crate::error::{Error, Result};
use crate::filter::Test;
use crate::filter::comparison::equal_or_regex;
use crate::filter::parse::{Place, is_operators};
use crate::value::{Bson, Document, Kind};

/// A set of types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & bit(kind) != 0
    }

    pub fn insert(&mut self, kind: Kind) {
        self.0 |= bit(kind);
    }

    pub fn insert_numbers(&mut self) {
        [Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal]
            .into_iter()
            .for_each(|kind| self.insert(kind));
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Reads a type by its name or its number, and adds it.
    pub fn add(&mut self, value: &Bson) -> Result<()> {
        match value {
            Bson::String(name) if &**name == "number" => self.insert_numbers(),
            Bson::String(name) => match Kind::ALL.into_iter().find(|kind| kind.name() == &**name) {
                Some(kind) => self.insert(kind),
                None => return Err(Error::bad_value(format!("Unknown type name alias: {name}"))),
            },
            _ if value.is_number() => {
                let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
                match Kind::ALL.into_iter().find(|kind| Some(kind.number()) == number) {
                    Some(kind) => self.insert(kind),
                    None => {
                        return Err(Error::bad_value(format!(
                            "Invalid numerical type code: {}",
                            number.map_or_else(|| format!("{value:?}"), |number| number.to_string())
                        )));
                    }
                }
            }
            _ => return Err(Error::type_mismatch("type must be represented as a number or a string")),
        }
        Ok(())
    }
}

fn bit(kind: Kind) -> u32 {
    1 << Kind::ALL.iter().position(|has| *has == kind).unwrap_or_default()
}

pub fn exists(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    Ok(Some(Test::Exists(value.is_truthy())))
}

pub fn kinds(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let mut kinds = Kinds::default();
    match value {
        Bson::Array(values) => {
            for value in values.iter() {
                kinds.add(value)?;
            }
            if values.is_empty() {
                return Err(Error::failed_to_parse("$type must match at least one type"));
            }
        }
        _ => kinds.add(value)?,
    }
    Ok(Some(Test::Kinds(kinds)))
}

pub fn size(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    if !value.is_number() {
        return Err(Error::bad_value("Failed to parse $size. Expected a number in: $size"));
    }
    match value.as_i64() {
        Some(size @ 0..) => Ok(Some(Test::Size(size))),
        Some(_) => Err(Error::bad_value("Failed to parse $size. Expected a non-negative number in: $size")),
        None => Err(Error::bad_value("Failed to parse $size. Expected an integer: $size")),
    }
}

pub fn all(place: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let Bson::Array(values) = value else { return Err(Error::bad_value("$all needs an array")) };
    if values.is_empty() {
        return Ok(Some(Test::Any(Vec::new())));
    }
    let is_element = |value: &Bson| {
        value.as_document().and_then(Document::first).is_some_and(|(name, _)| &**name == "$elemMatch")
    };
    let elements = is_element(&values[0]);
    let mut tests = Vec::with_capacity(values.len());
    for value in values.iter() {
        match value {
            Bson::Document(document) if elements => match document.first() {
                Some((name, operand)) if &**name == "$elemMatch" => {
                    if document.len() > 1 {
                        return Err(Error::bad_value("$all/$elemMatch has to be consistent"));
                    }
                    tests.extend(element(place, operand, document)?);
                }
                _ => return Err(Error::bad_value("$all/$elemMatch has to be consistent")),
            },
            _ if elements => return Err(Error::bad_value("$all/$elemMatch has to be consistent")),
            Bson::Document(document) if is_operators(document) => {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            _ => tests.push(equal_or_regex(value)?),
        }
    }
    Ok(Some(Test::All(tests)))
}

pub fn element(place: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    let Bson::Document(condition) = value else {
        return Err(Error::bad_value("$elemMatch needs an Object"));
    };
    let place = Place { in_element: true, ..place.inside()? };
    let of_values = is_operators(condition)
        && !condition
            .first()
            .is_some_and(|(name, _)| super::table::of_document(name).is_some() && &**name != "$comment");
    if of_values {
        return Ok(Some(Test::ElementValue(place.operators(condition)?)));
    }
    Ok(Some(Test::ElementDocument(Box::new(place.document(condition)?))))
}
