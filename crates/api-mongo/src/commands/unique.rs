//! Unique indexes: which one refuses a write, and with which values.
//!
//! The engine holds items to them (`collection::rules`), in the commit of each write; it knows that a key is taken, and
//! here it is found out whose. Within a transaction, whose writes are not made before its end, the same look-up is made
//! before each write.

use std::sync::Arc;

use orrery_mongo::filter::Filter;
use orrery_mongo::{Bson, Context, Document, Error, Result, ValueRef, doc, error::code, index_keys, order};
use parking_lot::Mutex;

use crate::catalog::Index;
use crate::collection::{Collection, Scope};

/// What whoever changes the indexes of a collection holds.
pub fn lock(scope: &Scope, collection: &Collection) -> Arc<Mutex<()>> {
    /// Locks that are kept.
    const LOCKS_MAX: usize = 10_000;
    let container = &collection.container;
    let mut locks = scope.core.index_locks.lock();
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

/// The error of a write that the engine has refused, because a key is taken. `None`: it is not any more.
pub fn taken(
    scope: &Scope,
    collection: &Collection,
    document: &Document,
    context: &Context,
) -> Option<Error> {
    check(scope, collection, document, context).err()
}

/// The same, where whoever had the key is gone already and there is no time to try again.
pub fn was_taken(collection: &Collection) -> Error {
    let index = collection.meta.indexes.iter().find(|index| index.unique);
    match index {
        Some(index) => collection.duplicate_of(&index.name, &index.key, &Document::new()),
        None => Error::new(code::DUPLICATE_KEY, "E11000 duplicate key error"),
    }
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
    let own = document.get("_id").cloned().unwrap_or(Bson::Null);
    for values in index_keys::combinations(ValueRef::OwnedDocument(document), &paths)? {
        if index.sparse && values.iter().all(Option::is_none) {
            continue;
        }
        let key: Vec<Bson> =
            values.into_iter().map(|value| value.map_or(Bson::Null, ValueRef::to_bson)).collect();
        let mut wanted = Document::new();
        for (path, value) in paths.iter().zip(&key) {
            let value =
                if matches!(value, Bson::Undefined) { Bson::array(Vec::new()) } else { value.clone() };
            wanted.push(*path, doc! { "$eq" => value });
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

/// Kinds of numbers that answers depend on.
#[derive(Clone, Copy, Default)]
struct Numbers {
    decimals: bool,
    longs: bool,
}

/// Writes down, before the first one is stored, that a collection may hold decimals, or integers of 64 bits: queries
/// then look at them.
pub fn note_numbers<'d>(
    scope: &Scope,
    collection: &Collection,
    documents: impl Iterator<Item = &'d Document>,
) -> Result<()> {
    let known = Numbers { decimals: collection.meta.decimals, longs: collection.meta.longs };
    let mut found = known;
    for document in documents {
        if found.decimals && found.longs {
            break;
        }
        document.iter().for_each(|(_, value)| found.look(value));
    }
    if found.decimals == known.decimals && found.longs == known.longs {
        return Ok(());
    }
    let catalog = &scope.core.catalog;
    catalog.change(&scope.core, &collection.database, &collection.name, |meta| {
        meta.decimals |= found.decimals;
        meta.longs |= found.longs;
        Ok(())
    })?;
    Ok(())
}

impl Numbers {
    fn look(&mut self, value: &Bson) {
        match value {
            Bson::Decimal(_) => self.decimals = true,
            Bson::Int64(_) => self.longs = true,
            Bson::Document(document) => document.iter().for_each(|(_, value)| self.look(value)),
            Bson::Array(elements) => elements.iter().for_each(|value| self.look(value)),
            _ => {}
        }
    }
}
