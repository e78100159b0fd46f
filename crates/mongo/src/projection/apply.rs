//! What a projection makes of a document.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::{Condition, Filter};
use crate::projection::{Computed, Members, Node, Projection, Slice};
use crate::value::{Bson, Document, Kind};
use crate::value_ref::ValueRef;

const ID: &str = "_id";

pub fn document(projection: &Projection, document: ValueRef<'_>, context: &Context) -> Result<Document> {
    let mut made = Document::new();
    for (name, value) in document.members() {
        if name == ID && projection.members.get(ID).is_none() {
            if projection.keeps_id {
                made.push(name, value.to_bson());
            }
            continue;
        }
        if let Some(kept) = member(projection.members.get(name), value, projection.inclusion) {
            made.push(name, kept);
        }
    }
    if let Some((path, filter)) = &projection.positional {
        let matched = filter.find(document, context)?;
        let element = matched.and_then(|matched| matched.element);
        positional(&mut made, document, path, element)?;
    }
    for (path, computed) in &projection.computed {
        let value = match computed {
            Computed::Expression(expression) => expression.evaluate(document, context)?,
            Computed::Element(test) => element(document, path, test, context)?,
            Computed::Meta(name) => meta(projection, name, document, context)?,
        };
        if let Some(value) = value {
            put(&mut made, path, value);
        }
    }
    Ok(made)
}

fn is_only_computed(members: &Members) -> bool {
    members.0.iter().all(|(_, node)| match node {
        Node::Computed => true,
        Node::Members(members) => is_only_computed(members),
        Node::Named | Node::Slice(_) => false,
    })
}

/// What is kept of a member; `None` where it goes.
fn member(node: Option<&Node>, value: ValueRef<'_>, inclusion: bool) -> Option<Bson> {
    match node {
        None => (!inclusion).then(|| value.to_bson()),
        Some(Node::Named) => inclusion.then(|| value.to_bson()),
        Some(Node::Computed) => (!inclusion).then(|| value.to_bson()),
        Some(Node::Slice(slice)) => Some(slice.of(value)),
        Some(Node::Members(members)) => match value.kind() {
            Kind::Document => {
                let kept: Document = value
                    .members()
                    .filter_map(|(name, value)| {
                        Some((Arc::from(name), member(members.get(name), value, inclusion)?))
                    })
                    .collect();
                // A document that only leads to computed members is made by them.
                (!(inclusion && is_only_computed(members))).then_some(Bson::Document(kept))
            }
            Kind::Array => Some(Bson::array(
                value
                    .elements()
                    .filter_map(|element| match element.kind() {
                        Kind::Document | Kind::Array => member(node, element, inclusion),
                        _ => (!inclusion).then(|| element.to_bson()),
                    })
                    .collect(),
            )),
            _ => (!inclusion).then(|| value.to_bson()),
        },
    }
}

impl Slice {
    fn of(self, value: ValueRef<'_>) -> Bson {
        if value.kind() != Kind::Array {
            return value.to_bson();
        }
        let (start, limit) = self.range(value.len());
        Bson::array(value.elements().skip(start).take(limit).map(ValueRef::to_bson).collect())
    }

    /// How many elements are passed over, and how many are taken.
    pub fn range(self, length: usize) -> (usize, usize) {
        let length = i64::try_from(length).unwrap_or(i64::MAX);
        let (start, limit) = match self {
            Slice { skip: None, limit: first @ 0.. } => (0, first),
            Slice { skip: None, limit: last } => (length.saturating_add(last).max(0), length),
            Slice { skip: Some(skip @ 0..), limit } => (skip.min(length), limit),
            Slice { skip: Some(from_end), limit } => (length.saturating_add(from_end).max(0), limit),
        };
        (usize::try_from(start).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

/// The first element of an array that passes, in an array of its own.
fn element(
    document: ValueRef<'_>,
    path: &Arc<str>,
    test: &crate::filter::Test,
    context: &Context,
) -> Result<Option<Bson>> {
    let Some(array) = document.get(path).filter(|value| value.kind() == Kind::Array) else { return Ok(None) };
    let root = Condition::Field { path: path.clone(), test: test.clone() };
    let filter = Filter { root, collation: context.collation.clone() };
    let found = filter.find(document, context)?.and_then(|matched| matched.element);
    Ok(found.and_then(|at| array.at(at)).map(|element| Bson::array(vec![element.to_bson()])))
}

/// Leaves of the first array on a path the element that the filter matched.
fn positional(made: &mut Document, document: ValueRef<'_>, path: &str, element: Option<usize>) -> Result<()> {
    let mut value = document;
    let mut taken = Vec::new();
    for name in path.split('.') {
        let Some(next) = value.get(name) else { return Ok(()) };
        taken.push(name);
        if next.kind() != Kind::Array {
            value = next;
            continue;
        }
        let Some(element) = element else {
            return Err(Error::new(
                51246,
                "Executor error during find command :: caused by :: positional operator '.$' couldn't find a matching \
                 element in the array",
            ));
        };
        let place = at_mut(made, &taken);
        let Some(Bson::Array(elements)) = place else { return Ok(()) };
        let Some(kept) = elements.get(element).cloned() else {
            return Err(Error::new(
                51247,
                "Executor error during find command :: caused by :: positional operator '.$' element mismatch",
            ));
        };
        *elements = Arc::new(vec![kept]);
        return Ok(());
    }
    Ok(())
}

fn at_mut<'a>(document: &'a mut Document, path: &[&str]) -> Option<&'a mut Bson> {
    let (name, rest) = path.split_first()?;
    let value = document.get_mut(name)?;
    match (rest.is_empty(), value) {
        (true, value) => Some(value),
        (false, Bson::Document(inner)) => at_mut(inner, rest),
        _ => None,
    }
}

fn meta(
    projection: &Projection,
    name: &str,
    document: ValueRef<'_>,
    context: &Context,
) -> Result<Option<Bson>> {
    Ok(match name {
        "randVal" => Some(Bson::Double(((context.random)() >> 11) as f64 / (1u64 << 53) as f64)),
        _ => projection.filter.as_ref().and_then(|filter| filter.meta(name, document)),
    })
}

/// Sets what a path leads to, in every element of arrays on the way.
fn put(document: &mut Document, path: &str, value: Bson) {
    let Some((name, rest)) = path.split_once('.') else { return document.set(path, value) };
    match document.get_mut(name) {
        Some(Bson::Document(inner)) => put(inner, rest, value),
        Some(Bson::Array(elements)) => {
            for element in Arc::make_mut(elements) {
                put_in(element, rest, &value);
            }
        }
        Some(_) | None => {
            let mut inner = Document::new();
            put(&mut inner, rest, value);
            document.set(name, inner);
        }
    }
}

fn put_in(element: &mut Bson, path: &str, value: &Bson) {
    match element {
        Bson::Document(inner) => put(inner, path, value.clone()),
        Bson::Array(elements) => {
            for element in Arc::make_mut(elements) {
                put_in(element, path, value);
            }
        }
        _ => {
            let mut inner = Document::new();
            put(&mut inner, path, value.clone());
            *element = Bson::Document(inner);
        }
    }
}
