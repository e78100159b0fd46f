//! Sort specifications: `{a: 1, "b.c": -1}`, and `{$meta: …}`.
//!
//! A document sorts by what its paths lead to: of an array by its least element, or by its greatest where the key
//! descends; an empty array comes before null, and what is missing is null.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::{Filter, path};
use crate::order::{self, Collation};
use crate::value::{Bson, Document, Kind};
use crate::value_ref::ValueRef;

/// Keys of one sort.
const KEYS_MAX: usize = 32;

#[derive(Clone, Debug)]
pub struct Sort {
    pub keys: Vec<SortKey>,
    /// `{$natural: -1}`: documents in the reverse of the order in which they come.
    pub reversed: bool,
}

#[derive(Clone, Debug)]
pub struct SortKey {
    pub path: Arc<str>,
    pub descending: bool,
    /// `$meta`: which score, instead of a path.
    pub meta: Option<Arc<str>>,
}

impl Sort {
    pub fn parse(sort: &Document) -> Result<Sort> {
        if sort.len() > KEYS_MAX {
            return Err(Error::bad_value(format!("too many compound keys: at most {KEYS_MAX}")));
        }
        let mut keys: Vec<SortKey> = Vec::with_capacity(sort.len());
        if let Some(direction) = sort.get("$natural") {
            if sort.len() > 1 || !matches!(direction.as_i64(), Some(1 | -1)) {
                let text = "$natural sort cannot be set to a value other than -1 or 1.";
                return Err(Error::bad_value(text));
            }
            return Ok(Sort { keys, reversed: direction.as_i64() == Some(-1) });
        }
        for (path, value) in sort.iter() {
            if keys.iter().any(|key| key.path == *path) {
                continue;
            }
            keys.push(key(path, value)?);
        }
        Ok(Sort { keys, reversed: false })
    }

    /// The values by which a document sorts: of an array its least element, or its greatest where the key descends.
    pub fn key_of(&self, document: ValueRef<'_>, context: &Context) -> Vec<Bson> {
        self.key_with(document, context, &|name| match name {
            "randVal" => Bson::Double((context.random)() as f64),
            _ => Bson::Null,
        })
    }

    /// The same for a document that a filter matched, whose scores are known.
    pub fn key_of_match(&self, document: ValueRef<'_>, filter: &Filter, context: &Context) -> Vec<Bson> {
        self.key_with(document, context, &|name| match name {
            "randVal" => Bson::Double((context.random)() as f64),
            _ => filter.meta(name, document).unwrap_or(Bson::Null),
        })
    }

    /// The same, where scores are known.
    pub fn key_with(
        &self,
        document: ValueRef<'_>,
        context: &Context,
        score: &dyn Fn(&str) -> Bson,
    ) -> Vec<Bson> {
        let collation = context.collation.as_deref();
        self.keys
            .iter()
            .map(|key| match &key.meta {
                Some(meta) => score(meta),
                None => {
                    let mut best = None;
                    extreme(document, &key.path, key.descending, collation, &mut best);
                    match best {
                        Some(Found::Value(value)) => value.to_bson(),
                        Some(Found::Nothing) => Bson::Undefined,
                        Some(Found::Missing) | None => Bson::Null,
                    }
                }
            })
            .collect()
    }

    pub fn compare_keys(&self, a: &[Bson], b: &[Bson], context: &Context) -> Ordering {
        let collation = context.collation.as_deref();
        for (key, (a, b)) in self.keys.iter().zip(a.iter().zip(b)) {
            let order = order::compare(a.into(), b.into(), collation);
            if order != Ordering::Equal {
                return if key.descending { order.reverse() } else { order };
            }
        }
        Ordering::Equal
    }
}

fn key(path: &Arc<str>, value: &Bson) -> Result<SortKey> {
    if let Bson::Document(meta) = value {
        let name = match meta.first() {
            Some((name, Bson::String(score))) if &**name == "$meta" && meta.len() == 1 => score,
            _ => return Err(Error::new(17312, "$meta is the only expression supported by $sort right now")),
        };
        let known = [
            "textScore",
            "randVal",
            "searchScore",
            "searchHighlights",
            "geoNearDistance",
            "vectorSearchScore",
        ];
        if !known.contains(&&**name) {
            return Err(Error::new(31138, format!("Illegal $meta sort: {name}")));
        }
        return Ok(SortKey { path: path.clone(), descending: true, meta: Some(name.clone()) });
    }
    if !value.is_number() {
        let text = format!("Illegal key in $sort specification: {path}");
        return Err(Error::new(15974, text));
    }
    let descending = match value.as_i64() {
        Some(1) => false,
        Some(-1) => true,
        _ => {
            let text = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            return Err(Error::new(15975, text));
        }
    };
    check_path(path)?;
    Ok(SortKey { path: path.clone(), descending, meta: None })
}

/// Refuses paths that lead nowhere: empty names, and names that start with a dollar.
fn check_path(path: &str) -> Result<()> {
    if path.is_empty() {
        return Err(Error::new(40352, "FieldPath cannot be constructed with empty string"));
    }
    for name in path.split('.') {
        if name.is_empty() {
            return Err(match path.ends_with('.') {
                true => Error::new(40353, "FieldPath must not end with a '.'."),
                false => Error::new(15998, "FieldPath field names may not be empty strings."),
            });
        }
        if name.starts_with('$') && !matches!(name, "$id" | "$ref" | "$db") {
            let text = format!(
                "FieldPath field names may not start with '$'. Consider using $getField or $setField. given: {name}"
            );
            return Err(Error::new(16410, text));
        }
    }
    Ok(())
}

/// What a path leads to, as a sort sees it.
enum Found<'a> {
    /// An empty array.
    Nothing,
    Missing,
    Value(ValueRef<'a>),
}

impl Found<'_> {
    fn compare(&self, other: &Found<'_>, collation: Option<&Collation>) -> Ordering {
        let rank = |found: &Found<'_>| match found {
            Found::Nothing => order::rank(Kind::Undefined),
            Found::Missing => order::rank(Kind::Null),
            Found::Value(value) => order::rank(value.kind()),
        };
        match (self, other) {
            (Found::Value(a), Found::Value(b)) => order::compare(*a, *b, collation),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

fn extreme<'a>(
    document: ValueRef<'a>,
    path: &str,
    descending: bool,
    collation: Option<&Collation>,
    best: &mut Option<Found<'a>>,
) {
    let mut offer = |found| replace(found, descending, collation, best);
    let (mut document, mut path) = (document, path);
    loop {
        let (name, rest) = path::split(path);
        let Some(value) = document.get(name) else { return offer(Found::Missing) };
        match (value.kind(), rest) {
            (Kind::Array, None) => {
                if value.is_empty() {
                    offer(Found::Nothing);
                }
                return value.elements().for_each(|element| offer(Found::Value(element)));
            }
            (Kind::Array, Some(rest)) => return extreme_in(value, rest, descending, collation, best),
            (Kind::Document, Some(rest)) => (document, path) = (value, rest),
            (_, Some(_)) => return offer(Found::Missing),
            (_, None) => return offer(Found::Value(value)),
        }
    }
}

/// The rest of a path behind an array: by number into one element, else into all that are documents.
fn extreme_in<'a>(
    array: ValueRef<'a>,
    path: &str,
    descending: bool,
    collation: Option<&Collation>,
    best: &mut Option<Found<'a>>,
) {
    let (name, rest) = path::split(path);
    if let Some(element) = path::index(name).and_then(|index| array.at(index)) {
        match (element.kind(), rest) {
            (Kind::Array, Some(rest)) => return extreme_in(element, rest, descending, collation, best),
            (Kind::Document, Some(rest)) => return extreme(element, rest, descending, collation, best),
            (Kind::Array, None) => {
                for element in element.elements() {
                    replace(Found::Value(element), descending, collation, best);
                }
                return;
            }
            (_, None) => return replace(Found::Value(element), descending, collation, best),
            _ => {}
        }
    }
    if array.is_empty() {
        return replace(Found::Nothing, descending, collation, best);
    }
    for element in array.elements() {
        match element.kind() {
            Kind::Document => extreme(element, path, descending, collation, best),
            _ => replace(Found::Missing, descending, collation, best),
        }
    }
}

fn replace<'a>(
    found: Found<'a>,
    descending: bool,
    collation: Option<&Collation>,
    best: &mut Option<Found<'a>>,
) {
    let better = best.as_ref().is_none_or(|best| {
        let order = found.compare(best, collation);
        if descending { order.is_gt() } else { order.is_lt() }
    });
    if better {
        *best = Some(found);
    }
}
