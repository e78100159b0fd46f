//! What a path of a filter leads to.
//!
//! A path goes through documents by name, and through arrays in two ways at once: into every element that is a
//! document, and into the element that a number names. An array at the end of a path stands for its elements and for
//! itself. Where a name is missing the path leads to nothing, which is a value of its own: `{a: null}` asks for it.
//!
//! `{a: [{b: 1}, {c: 2}]}` has under `a.b` the values 1 and nothing.

use crate::error::Result;
use crate::value::Kind;
use crate::value_ref::ValueRef;

/// Whether an array at the end of a path stands for its elements too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    Elements,
    Whole,
}

/// Gives each value that a path leads to, with the index in the outermost array on the way, until `visit` says that
/// it has seen enough. Returns whether it did.
pub fn walk<'a>(
    document: ValueRef<'a>,
    path: &str,
    leaf: Leaf,
    visit: &mut impl FnMut(Option<ValueRef<'a>>, Option<usize>) -> Result<bool>,
) -> Result<bool> {
    walk_document(document, path, leaf, None, visit)
}

fn walk_document<'a>(
    document: ValueRef<'a>,
    path: &str,
    leaf: Leaf,
    outer: Option<usize>,
    visit: &mut impl FnMut(Option<ValueRef<'a>>, Option<usize>) -> Result<bool>,
) -> Result<bool> {
    let (mut document, mut path) = (document, path);
    loop {
        let (name, rest) = split(path);
        let Some(value) = document.get(name) else { return visit(None, outer) };
        match (value.kind(), rest) {
            (Kind::Array, _) => return walk_array(value, rest, leaf, outer, visit),
            (Kind::Document, Some(rest)) => (document, path) = (value, rest),
            (_, Some(_)) => return visit(None, outer),
            (_, None) => return visit(Some(value), outer),
        }
    }
}

/// An array, and what of the path is left behind it.
fn walk_array<'a>(
    array: ValueRef<'a>,
    path: Option<&str>,
    leaf: Leaf,
    outer: Option<usize>,
    visit: &mut impl FnMut(Option<ValueRef<'a>>, Option<usize>) -> Result<bool>,
) -> Result<bool> {
    let Some(path) = path else {
        if leaf == Leaf::Elements {
            for (at, element) in array.elements().enumerate() {
                if visit(Some(element), outer.or(Some(at)))? {
                    return Ok(true);
                }
            }
        }
        return visit(Some(array), outer);
    };
    let (name, rest) = split(path);
    let index = index(name);
    for (at, element) in array.elements().enumerate() {
        let outer = outer.or(Some(at));
        let kind = element.kind();
        if kind == Kind::Document && walk_document(element, path, leaf, outer, visit)? {
            return Ok(true);
        }
        if index != Some(at) {
            continue;
        }
        let found = match (rest, kind) {
            (None, _) => visit(Some(element), outer)?,
            (Some(rest), Kind::Document) => walk_document(element, rest, leaf, outer, visit)?,
            (Some(rest), Kind::Array) => walk_array(element, Some(rest), leaf, outer, visit)?,
            (Some(_), _) => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first name of a path, and the rest.
pub fn split(path: &str) -> (&str, Option<&str>) {
    match path.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    }
}

/// The element that a name stands for.
pub fn index(name: &str) -> Option<usize> {
    let bytes = name.as_bytes();
    let plain =
        !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit) && (bytes.len() == 1 || bytes[0] != b'0');
    if plain { name.parse().ok() } else { None }
}
