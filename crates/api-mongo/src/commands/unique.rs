//! Unique indexes: looked up before a write, one writer of a collection at a time.
//!
//! They hold among all who write through this API. The engine's own unique keys are fixed when a container is made,
//! know nothing of arrays, and of sparse and partial indexes; these do.

use std::sync::Arc;

use orrery_mongo::filter::Filter;
use orrery_mongo::{Bson, Context, Document, Kind, Result, ValueRef, doc, order};
use parking_lot::Mutex;

use crate::catalog::Index;
use crate::collection::{Collection, Scope};

/// Combinations of elements of arrays that one document has in one index.
const KEYS_MAX: usize = 1_000;

/// What whoever writes in a collection with unique indexes holds.
pub fn lock(scope: &Scope, collection: &Collection) -> Arc<Mutex<()>> {
    /// Locks that are kept.
    const LOCKS_MAX: usize = 10_000;
    let container = &collection.container;
    let mut locks = scope.core.unique_locks.lock();
    if locks.len() > LOCKS_MAX {
        locks.retain(|_, lock| Arc::strong_count(lock) > 1);
    }
    locks.entry((container.database().number, container.number())).or_default().clone()
}

/// Refuses a document whose values another one has.
pub fn check(scope: &Scope, collection: &Collection, document: &Document, context: &Context) -> Result<()> {
    for index in collection.meta.indexes.iter().filter(|index| index.unique) {
        check_index(scope, collection, index, document, context)?;
    }
    Ok(())
}

pub fn check_index(
    scope: &Scope,
    collection: &Collection,
    index: &Index,
    document: &Document,
    context: &Context,
) -> Result<()> {
    let context = &Context {
        collation: super::options::collation(index.spec.get("collation").and_then(Bson::as_document))?,
        ..context.clone()
    };
    if let Some(partial) = &index.partial
        && !Filter::parse(partial, context)?.matches(ValueRef::OwnedDocument(document), context)?
    {
        return Ok(());
    }
    let paths: Vec<&str> = index.key.iter().map(|(path, _)| &**path).collect();
    let mut keys: Vec<Vec<Bson>> = vec![Vec::new()];
    let mut present = false;
    for path in &paths {
        let mut values = Vec::new();
        values_at(ValueRef::OwnedDocument(document), path, &mut values);
        present |= !values.is_empty();
        if values.is_empty() {
            values.push(Bson::Null);
        }
        keys = keys
            .into_iter()
            .flat_map(|key| values.iter().map(move |value| [&key[..], std::slice::from_ref(value)].concat()))
            .take(KEYS_MAX)
            .collect();
    }
    if index.sparse && !present {
        return Ok(());
    }
    let own = document.get("_id").cloned().unwrap_or(Bson::Null);
    for key in keys {
        let mut wanted = Document::new();
        for (path, value) in paths.iter().zip(&key) {
            wanted.push(*path, doc! { "$eq" => value.clone() });
        }
        if let Some(partial) = &index.partial {
            wanted = doc! { "$and" => Bson::array(vec![wanted.into(), partial.clone().into()]) };
        }
        let filter = Filter::parse(&wanted, context)?;
        let mut found = collection.find(scope, Some(&filter), context, None)?;
        while let Some((other, _)) = found.next_found()? {
            let other = orrery_mongo::codec::item(&other.document)?;
            let same = other.get("_id").is_some_and(|id| order::equal(id, (&own).into(), None));
            if !same {
                let values = paths.iter().zip(&key).map(|(path, value)| (Arc::from(*path), value.clone()));
                return Err(collection.duplicate_of(&index.name, &index.key, &values.collect()));
            }
        }
    }
    Ok(())
}

/// The values that a path leads to, as an index has them.
fn values_at(value: ValueRef<'_>, path: &str, out: &mut Vec<Bson>) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    if value.kind() == Kind::Array {
        for element in value.elements() {
            values_at(element, path, out);
        }
        return;
    }
    let Some(inner) = value.get(name) else { return };
    match rest {
        Some(rest) => values_at(inner, rest, out),
        None if inner.kind() == Kind::Array => out.extend(inner.elements().map(ValueRef::to_bson)),
        None => out.push(inner.to_bson()),
    }
}

/// Writes down, before the first one is stored, that a collection may hold decimals: queries of numbers then look at
/// them.
pub fn note_decimals<'d>(
    scope: &Scope,
    collection: &Collection,
    documents: impl Iterator<Item = &'d Document>,
) -> Result<()> {
    let mut documents = documents;
    if collection.meta.decimals
        || !documents.any(|document| document.iter().any(|(_, value)| has_decimal(value)))
    {
        return Ok(());
    }
    let catalog = &scope.core.catalog;
    catalog.change(&scope.core, &collection.database, &collection.name, |meta| {
        meta.decimals = true;
        Ok(())
    })?;
    Ok(())
}

fn has_decimal(value: &Bson) -> bool {
    match value {
        Bson::Decimal(_) => true,
        Bson::Document(document) => document.iter().any(|(_, value)| has_decimal(value)),
        Bson::Array(elements) => elements.iter().any(has_decimal),
        _ => false,
    }
}
