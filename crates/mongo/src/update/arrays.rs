//! `$push`, `$addToSet`, `$pull`: what becomes of arrays.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::order;
use crate::sort::Sort;
use crate::value::{Bson, Document, Kind};
use crate::value_ref::ValueRef;

/// Elements to add, where, and what of the array stays.
#[derive(Clone, Debug)]
pub struct Push {
    each: Vec<Bson>,
    position: Option<i64>,
    slice: Option<i64>,
    sort: Option<ElementSort>,
}

#[derive(Clone, Debug)]
enum ElementSort {
    Whole { descending: bool },
    Members(Sort),
}

impl Push {
    pub fn parse(value: &Bson, _: &Context) -> Result<Push> {
        let clauses = match value {
            Bson::Document(clauses) if clauses.contains("$each") => clauses,
            _ => return Ok(Push { each: vec![value.clone()], position: None, slice: None, sort: None }),
        };
        let mut push = Push { each: Vec::new(), position: None, slice: None, sort: None };
        for (name, value) in clauses.iter() {
            let whole = || {
                value.as_i64().filter(|_| value.is_number()).ok_or_else(|| {
                    Error::bad_value(format!(
                        "The value for {name} must be an integer value but was given type: {}",
                        value.kind().name()
                    ))
                })
            };
            match &**name {
                "$each" => match value {
                    Bson::Array(values) => push.each = values.to_vec(),
                    _ => {
                        return Err(Error::bad_value(format!(
                            "The argument to $each in $push must be an array but it was of type: {}",
                            value.kind().name()
                        )));
                    }
                },
                "$position" => push.position = Some(whole()?),
                "$slice" => push.slice = Some(whole()?),
                "$sort" => push.sort = Some(element_sort(value)?),
                _ => return Err(Error::bad_value(format!("Unrecognized clause in $push: {name}"))),
            }
        }
        Ok(push)
    }

    pub fn apply(&self, old: Option<&Bson>, context: &Context, at: impl FnOnce() -> String) -> Result<Bson> {
        let mut elements = match old {
            None => Vec::new(),
            Some(Bson::Array(elements)) => elements.to_vec(),
            Some(other) => {
                return Err(Error::bad_value(format!(
                    "{} must be an array but is of type {}",
                    at(),
                    other.kind().name()
                )));
            }
        };
        let length = elements.len();
        let position = match self.position {
            None => length,
            Some(position @ 0..) => usize::try_from(position).unwrap_or(length).min(length),
            Some(from_end) => {
                length.saturating_sub(usize::try_from(from_end.unsigned_abs()).unwrap_or(length))
            }
        };
        elements.splice(position..position, self.each.iter().cloned());
        match &self.sort {
            None => {}
            Some(ElementSort::Whole { descending }) => {
                let collation = context.collation.as_deref();
                elements.sort_by(|a, b| {
                    let order = order::compare(a.into(), b.into(), collation);
                    if *descending { order.reverse() } else { order }
                });
            }
            Some(ElementSort::Members(sort)) => {
                let mut keyed: Vec<(Vec<Bson>, Bson)> =
                    elements.into_iter().map(|element| (keys_of(sort, &element), element)).collect();
                keyed.sort_by(|a, b| sort.compare_keys(&a.0, &b.0, context));
                elements = keyed.into_iter().map(|(_, element)| element).collect();
            }
        }
        match self.slice {
            None => {}
            Some(first @ 0..) => elements.truncate(usize::try_from(first).unwrap_or(usize::MAX)),
            Some(last) => {
                let keep = usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX);
                elements.drain(..elements.len().saturating_sub(keep));
            }
        }
        Ok(Bson::array(elements))
    }
}

/// The values that an element sorts by. Unlike those of a query, these paths do not look into arrays.
fn keys_of(sort: &Sort, element: &Bson) -> Vec<Bson> {
    let at = |path: &str| {
        path.split('.').try_fold(ValueRef::Owned(element), |value, name| match value.kind() {
            Kind::Array => name.parse().ok().and_then(|index| value.at(index)),
            _ => value.get(name),
        })
    };
    sort.keys.iter().map(|key| at(&key.path).map_or(Bson::Null, ValueRef::to_bson)).collect()
}

fn element_sort(value: &Bson) -> Result<ElementSort> {
    let direction = |value: &Bson| match value.as_i64() {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
    };
    match value {
        Bson::Document(pattern) if pattern.is_empty() => {
            Err(Error::bad_value("The $sort pattern is empty when it should be a set of fields."))
        }
        Bson::Document(pattern) => {
            for (path, value) in pattern.iter() {
                if path.is_empty() || path.split('.').any(str::is_empty) {
                    return Err(Error::bad_value(format!(
                        "The $sort field '{path}' is a dotted field with empty parts"
                    )));
                }
                direction(value)?;
            }
            Ok(ElementSort::Members(Sort::parse(pattern)?))
        }
        _ if value.is_number() => Ok(ElementSort::Whole { descending: direction(value)? }),
        _ => Err(Error::bad_value(
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
        )),
    }
}

/// Values to add that an array does not have.
#[derive(Clone, Debug)]
pub struct AddToSet(Vec<Bson>);

impl AddToSet {
    pub fn parse(value: &Bson) -> Result<AddToSet> {
        if let Bson::Document(clauses) = value
            && let Some(each) = clauses.first().filter(|(name, _)| &***name == "$each").map(|(_, each)| each)
        {
            if clauses.len() > 1 {
                return Err(Error::bad_value(
                    "Found unexpected fields after $each in $addToSet: only $each is allowed",
                ));
            }
            return match each {
                Bson::Array(values) => Ok(AddToSet(values.to_vec())),
                _ => Err(Error::type_mismatch(format!(
                    "The argument to $each in $addToSet must be an array but it was of type {}",
                    each.kind().name()
                ))),
            };
        }
        Ok(AddToSet(vec![value.clone()]))
    }

    pub fn apply(&self, old: Option<&Bson>, context: &Context, at: impl FnOnce() -> String) -> Result<Bson> {
        let mut elements = match old {
            None => Vec::new(),
            Some(Bson::Array(elements)) => elements.to_vec(),
            Some(other) => {
                return Err(Error::bad_value(format!(
                    "Cannot apply $addToSet to non-array field. {} has non-array type {}",
                    at(),
                    other.kind().name()
                )));
            }
        };
        let collation = context.collation.as_deref();
        let identity = |value: &Bson| {
            let mut out = Vec::new();
            order::identity(value.into(), collation, &mut out);
            out
        };
        let mut has: std::collections::HashSet<Vec<u8>> = elements.iter().map(identity).collect();
        for value in &self.0 {
            if has.insert(identity(value)) {
                elements.push(value.clone());
            }
        }
        Ok(Bson::array(elements))
    }
}

/// Which elements `$pull` takes away.
#[derive(Clone, Debug)]
pub enum Pull {
    Equal(Bson),
    /// Documents that meet a condition.
    Documents(Filter),
    /// Values that pass tests: a filter on the member without a name.
    Values(Filter),
}

impl Pull {
    pub fn parse(value: &Bson, context: &Context) -> Result<Pull> {
        match value {
            Bson::Document(document) if !document.first().is_some_and(|(name, _)| name.starts_with('$')) => {
                Ok(Pull::Documents(Filter::parse(document, context)?))
            }
            Bson::Document(_) | Bson::Regex(_) => {
                Ok(Pull::Values(Filter::parse(&crate::doc! {"" => value.clone()}, context)?))
            }
            _ => Ok(Pull::Equal(value.clone())),
        }
    }

    pub fn takes(&self, element: &Bson, context: &Context) -> Result<bool> {
        match self {
            Pull::Equal(value) => {
                Ok(order::equal(element.into(), value.into(), context.collation.as_deref()))
            }
            Pull::Documents(filter) => match element {
                Bson::Document(document) => filter.matches(document.into(), context),
                _ => Ok(false),
            },
            Pull::Values(filter) => {
                let mut wrapped = Document::new();
                wrapped.push("", element.clone());
                filter.matches((&wrapped).into(), context)
            }
        }
    }
}
