//! Applies changes to a document, path by path.

use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::ext_json;
use crate::filter::Matched;
use crate::filter::path::index;
use crate::order;
use crate::update::parse::{Action, Operators};
use crate::update::path::{self, Concrete, Expansion, Part, UpdatePath};
use crate::update::{ID, dollar_name, immutable, numbers};
use crate::value::{Bson, Document};

/// Nulls that an update may put before an element that it sets.
const BACKFILL_MAX: usize = 1_500_000;

impl Operators {
    pub fn apply(
        &self,
        before: &Document,
        matched: &Matched,
        inserting: bool,
        context: &Context,
    ) -> Result<Document> {
        let passes = |identifier: &str, element: &Bson| match self
            .filters
            .iter()
            .find(|f| *f.identifier == *identifier)
        {
            Some(filter) => filter.passes(element, context),
            None => Ok(false),
        };
        let expansion = Expansion { matched: matched.element, passes: &passes };
        let mut changes: Vec<(Concrete, &Action)> = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            if matches!(change.action, Action::SetOnInsert(_)) && !inserting {
                continue;
            }
            let paths = expansion.expand(&change.path, before)?;
            changes.extend(paths.into_iter().map(|path| (path, &change.action)));
        }
        changes.sort_by(|(a, _), (b, _)| path::compare(a, b));
        for pair in changes.windows(2) {
            if pair[1].0.starts_with(&pair[0].0) {
                return Err(path::conflict(&pair[1].0.join("."), &pair[0].0.join(".")));
            }
        }
        let mut document = before.clone();
        for (path, action) in &changes {
            apply(&mut document, path, action, context)?;
        }
        if before.contains(ID) && !document.contains(ID) {
            return Err(immutable());
        }
        Ok(document)
    }
}

/// The document, as messages name it.
pub fn at_document(document: &Document) -> String {
    match document.get(ID) {
        Some(id) => format!("{{_id: {}}}", ext_json::to_text(id.into(), ext_json::Style::Relaxed)),
        None => "{no id}".to_owned(),
    }
}

/// What a path leads to.
enum Place<'a> {
    There(&'a Bson),
    /// Nothing yet, but it can be made.
    Missing,
    /// So many names lead to a value that cannot have the next one.
    Blocked(usize, &'a Bson),
}

fn look<'a>(document: &'a Document, path: &[Arc<str>]) -> Place<'a> {
    let Some(mut value) = document.get(&path[0]) else { return Place::Missing };
    for (taken, name) in path.iter().enumerate().skip(1) {
        let next = match value {
            Bson::Document(inner) => inner.get(name),
            Bson::Array(elements) => match index(name) {
                Some(index) => elements.get(index),
                None => return Place::Blocked(taken, value),
            },
            _ => return Place::Blocked(taken, value),
        };
        match next {
            Some(next) => value = next,
            None => return Place::Missing,
        }
    }
    Place::There(value)
}

fn not_viable(path: &[Arc<str>], taken: usize, value: &Bson) -> Error {
    let holder = ext_json::to_text(value.into(), ext_json::Style::Relaxed);
    Error::new(
        code::PATH_NOT_VIABLE,
        format!("Cannot create field '{}' in element {{{}: {holder}}}", path[taken], path[taken - 1]),
    )
}

fn apply(document: &mut Document, path: &[Arc<str>], action: &Action, context: &Context) -> Result<()> {
    if let Action::RenameFrom(source) = action {
        return rename(document, source, path);
    }
    let old = match look(document, path) {
        Place::There(value) => Some(value),
        Place::Missing => None,
        Place::Blocked(..) if matches!(action, Action::Unset) => return Ok(()),
        Place::Blocked(taken, value) => return Err(not_viable(path, taken, value)),
    };
    let text = || path.join(".");
    let new = match action {
        Action::Set(value) | Action::SetOnInsert(value) => value.clone(),
        Action::Unset => {
            if old.is_some() {
                take_away(document, path);
            }
            return Ok(());
        }
        Action::Arithmetic(arithmetic, operand) => arithmetic.apply(old, operand, document, &text())?,
        Action::Min(value) | Action::Max(value) => {
            let descending = matches!(action, Action::Max(_));
            let replaces = old.is_none_or(|old| {
                let order = order::compare(value.into(), old.into(), context.collation.as_deref());
                if descending { order.is_gt() } else { order.is_lt() }
            });
            if !replaces {
                return Ok(());
            }
            value.clone()
        }
        Action::CurrentDate { timestamp: false } => Bson::Date(context.now_ms),
        Action::CurrentDate { timestamp: true } => {
            let (seconds, increment) = context.cluster_time;
            let now = u32::try_from(context.now_ms / 1000).unwrap_or(u32::MAX);
            Bson::Timestamp { seconds: seconds.max(now), increment: increment.max(1) }
        }
        Action::Bits(operations) => numbers::bits(old, operations, document, &text())?,
        Action::Push(push) => {
            let at = || format!("The field '{}' in document {}", text(), at_document(document));
            push.apply(old, context, at)?
        }
        Action::AddToSet(add) => {
            let at = || format!("Field named '{}' in document {}", text(), at_document(document));
            add.apply(old, context, at)?
        }
        Action::Pop { first } => match old {
            None => return Ok(()),
            Some(Bson::Array(elements)) if elements.is_empty() => return Ok(()),
            Some(Bson::Array(elements)) => {
                let left = if *first { &elements[1..] } else { &elements[..elements.len() - 1] };
                Bson::array(left.to_vec())
            }
            Some(other) => {
                return Err(Error::type_mismatch(format!(
                    "Path '{}' contains an element of non-array type '{}'",
                    text(),
                    other.kind().name()
                )));
            }
        },
        Action::Pull(pull) => {
            let Some(left) = left_of(old, "$pull", |element| pull.takes(element, context))? else {
                return Ok(());
            };
            left
        }
        Action::PullAll(values) => {
            let collation = context.collation.as_deref();
            let takes = |element: &Bson| {
                Ok(values.iter().any(|value| order::equal(element.into(), value.into(), collation)))
            };
            let Some(left) = left_of(old, "$pullAll", takes)? else { return Ok(()) };
            left
        }
        Action::RenameFrom(_) => return Ok(()),
    };
    if old.is_some_and(|old| old.is_identical(&new)) {
        return Ok(());
    }
    // Names with a dollar may be there already, but are not made.
    let there = (1..=path.len())
        .take_while(|taken| matches!(look(document, &path[..*taken]), Place::There(_)))
        .count();
    if let Some(name) = path[there..].iter().find(|name| name.starts_with('$') && !super::is_reference(name))
    {
        return Err(dollar_name(name, &text()));
    }
    put(document, path, new)
}

/// An array without the elements that are taken; `None` where there is nothing to take them from.
fn left_of(old: Option<&Bson>, name: &str, takes: impl Fn(&Bson) -> Result<bool>) -> Result<Option<Bson>> {
    let elements = match old {
        None => return Ok(None),
        Some(Bson::Array(elements)) => elements,
        Some(_) => return Err(Error::bad_value(format!("Cannot apply {name} to a non-array value"))),
    };
    let mut left = Vec::with_capacity(elements.len());
    for element in elements.iter() {
        if !takes(element)? {
            left.push(element.clone());
        }
    }
    Ok(if left.len() == elements.len() { None } else { Some(Bson::array(left)) })
}

/// Sets what a path leads to, making documents on the way and nulls before elements.
fn put(document: &mut Document, path: &[Arc<str>], value: Bson) -> Result<()> {
    let (name, rest) = (&path[0], &path[1..]);
    if rest.is_empty() {
        document.set(name, value);
        return Ok(());
    }
    if document.get(name).is_none() {
        document.push(name.clone(), Document::new());
    }
    let Some(inner) = document.get_mut(name) else { return Ok(()) };
    put_in(inner, rest, value)
}

fn put_in(holder: &mut Bson, path: &[Arc<str>], value: Bson) -> Result<()> {
    match holder {
        Bson::Document(document) => put(document, path, value),
        Bson::Array(elements) => {
            let Some(at) = index(&path[0]) else { return Ok(()) };
            let elements = Arc::make_mut(elements);
            if at >= elements.len() {
                if at - elements.len() > BACKFILL_MAX {
                    return Err(Error::new(
                        code::CANNOT_BACKFILL_ARRAY,
                        "can't backfill more than 1500000 elements",
                    ));
                }
                elements.resize(at, Bson::Null);
                elements.push(Bson::Document(Document::new()));
            }
            if path.len() == 1 {
                elements[at] = value;
                return Ok(());
            }
            put_in(&mut elements[at], &path[1..], value)
        }
        _ => Ok(()),
    }
}

/// Removes a member; an element of an array becomes null.
fn take_away(document: &mut Document, path: &[Arc<str>]) {
    let (name, rest) = (&path[0], &path[1..]);
    if rest.is_empty() {
        document.remove(name);
        return;
    }
    let Some(mut holder) = document.get_mut(name) else { return };
    for (at, name) in rest.iter().enumerate() {
        let last = at + 1 == rest.len();
        let next = match holder {
            Bson::Document(inner) if last => {
                inner.remove(name);
                return;
            }
            Bson::Document(inner) => inner.get_mut(name),
            Bson::Array(elements) => {
                let element = index(name).and_then(|index| Arc::make_mut(elements).get_mut(index));
                if last {
                    if let Some(element) = element {
                        *element = Bson::Null;
                    }
                    return;
                }
                element
            }
            _ => None,
        };
        let Some(next) = next else { return };
        holder = next;
    }
}

fn rename(document: &mut Document, source: &UpdatePath, target: &[Arc<str>]) -> Result<()> {
    let source: Concrete = source
        .parts
        .iter()
        .filter_map(|part| if let Part::Name(name) = part { Some(name.clone()) } else { None })
        .collect();
    let in_array = |path: &[Arc<str>]| {
        (1..path.len()).any(|taken| matches!(look(document, &path[..taken]), Place::There(Bson::Array(_))))
    };
    if in_array(&source) {
        return Err(Error::bad_value(format!(
            "The source field cannot be an array element, '{}' in doc with {}",
            source.join("."),
            at_document(document)
        )));
    }
    let value = match look(document, &source) {
        Place::There(value) => value.clone(),
        _ => return Ok(()),
    };
    if in_array(target) {
        return Err(Error::bad_value(format!(
            "The destination field cannot be an array element, '{}' in doc with {}",
            target.join("."),
            at_document(document)
        )));
    }
    if let Place::Blocked(taken, value) = look(document, target) {
        return Err(not_viable(target, taken, value));
    }
    if source[0].as_ref() == ID {
        return Err(immutable());
    }
    take_away(document, &source);
    // What had the name before goes, so that the member comes at the end.
    take_away(document, target);
    put(document, target, value)
}
