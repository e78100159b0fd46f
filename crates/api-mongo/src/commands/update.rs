//! `update`, and what it shares with `findAndModify`, `bulkWrite` and `$merge`.

use std::sync::atomic::Ordering::Relaxed;

use orrery_mongo::filter::Filter;
use orrery_mongo::sort::Sort;
use orrery_mongo::update::Update;
use orrery_mongo::{Bson, Context, Document, Error, Result, codec, doc, error::code};

use super::insert::{check_count, ends_transaction, insert_documents, write_error};
use super::{Call, indexes, options, unique, validation};
use crate::collection::write::{Change, Refusal};
use crate::collection::{Collection, Found, Scope};
use crate::reply::Reply;

/// How often a change is begun anew because another writer was faster.
pub const ATTEMPTS_MAX: usize = 128;

const FIELDS: &[&str] =
    &["updates", "ordered", "bypassDocumentValidation", "let", "stmtIds", "stmtId", "runtimeConstants"];

/// One update of a command.
pub struct Statement {
    pub filter: Document,
    pub update: Bson,
    pub array_filters: Option<Vec<Bson>>,
    pub multi: bool,
    pub upsert: bool,
    pub sort: Option<Document>,
    pub constants: Option<Document>,
}

/// What an update did.
#[derive(Debug, Default)]
pub struct Done {
    pub matched: u64,
    pub modified: u64,
    pub upserted: Option<Bson>,
    pub before: Option<Document>,
    pub after: Option<Document>,
}

pub fn update(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    options::check_known(body, FIELDS)?;
    let updates = match options::required(body, "updates")? {
        Bson::Array(updates) => updates.clone(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'update.updates' is the wrong type '{}', expected type 'array'",
                other.kind().name()
            )));
        }
    };
    check_count(updates.len())?;
    let ordered = options::boolean(body, "ordered", true)?;
    call.core.counts.updates.fetch_add(updates.len() as u64, Relaxed);
    let (mut n, mut modified) = (0u64, 0u64);
    let (mut upserted, mut errors) = (Vec::new(), Vec::new());
    for (index, given) in updates.iter().enumerate() {
        match one(call, &name, given) {
            Ok(done) => {
                n += done.matched;
                modified += done.modified;
                if let Some(id) = done.upserted {
                    n += 1;
                    upserted.push(Bson::from(doc! { "index" => index as i32, "_id" => id }));
                }
            }
            Err(error) if call.transaction.is_some() && ends_transaction(&error) => return Err(error),
            Err(error) => {
                errors.push(Bson::from(write_error(index, &error)));
                if ordered {
                    break;
                }
            }
        }
    }
    let mut reply = doc! { "n" => n as i32, "nModified" => modified as i32 };
    if !upserted.is_empty() {
        reply.push("upserted", Bson::array(upserted));
    }
    if !errors.is_empty() {
        reply.push("writeErrors", Bson::array(errors));
    }
    Ok(reply.into())
}

fn one(call: &Call<'_>, name: &str, given: &Bson) -> Result<Done> {
    let given = given.as_document().ok_or_else(|| Error::type_mismatch("an update is no object"))?;
    for (member, _) in given.iter() {
        const KNOWN: [&str; 10] =
            ["q", "u", "c", "multi", "upsert", "arrayFilters", "collation", "hint", "sort", "upsertSupplied"];
        if !KNOWN.contains(&&**member) {
            return Err(Error::new(
                40415,
                format!("BSON field 'update.updates.{member}' is an unknown field."),
            ));
        }
    }
    let q = options::document(given, "q")?
        .ok_or_else(|| Error::new(40414, "BSON field 'update.updates.q' is missing but a required field"))?;
    let u = given
        .get("u")
        .ok_or_else(|| Error::new(40414, "BSON field 'update.updates.u' is missing but a required field"))?;
    let statement = Statement {
        filter: q.clone(),
        update: u.clone(),
        array_filters: options::array(given, "arrayFilters")?.map(<[_]>::to_vec),
        multi: options::flag(given, "multi", false)?,
        upsert: options::flag(given, "upsert", false)?,
        sort: options::document(given, "sort")?.cloned(),
        constants: options::document(given, "c")?.cloned(),
    };
    indexes::check_hint(call, name, given.get("hint"))?;
    let context = call.context(options::document(given, "collation")?)?;
    let checked = !options::flag(call.body, "bypassDocumentValidation", false)?;
    run(call, name, &statement, checked, context)
}

/// Runs one update of a command.
pub fn run(
    call: &Call<'_>,
    name: &str,
    statement: &Statement,
    checked: bool,
    mut context: Context,
) -> Result<Done> {
    for (variable, value) in statement.constants.iter().flat_map(|constants| constants.iter()) {
        context.variables.set(variable, value.clone());
    }
    let filter = Filter::parse(&statement.filter, &context)?;
    let update = Update::parse(&statement.update, statement.array_filters.as_deref(), &context)?;
    if statement.multi && update.is_replacement() {
        return Err(Error::failed_to_parse("multi update is not supported for replacement-style update"));
    }
    if statement.multi && statement.sort.is_some() {
        return Err(Error::failed_to_parse("Cannot specify sort with multi=true"));
    }
    let scope = call.scope();
    let existing = match statement.upsert {
        true => Some(super::insert::target(call, name)?),
        false => {
            if call
                .core
                .catalog
                .meta(call.core, call.database, name)?
                .is_some_and(|meta| meta.view().is_some())
            {
                super::insert::target(call, name)?;
            }
            call.collection(name)?
        }
    };
    let Some(collection) = existing else { return Ok(Done::default()) };
    match statement.multi {
        true => many(&scope, &collection, &filter, &update, statement.upsert, checked, &context),
        false => {
            let sort = statement.sort.as_ref().map(Sort::parse).transpose()?;
            single(&scope, &collection, &filter, &update, sort.as_ref(), statement.upsert, checked, &context)
        }
    }
}

/// The first document that matches, by the sort if there is one.
pub fn first(
    scope: &Scope,
    collection: &Collection,
    filter: &Filter,
    sort: Option<&Sort>,
    context: &Context,
) -> Result<Option<(Found, orrery_mongo::filter::Matched)>> {
    let mut found = collection.find(scope, Some(filter), context, Some(1))?;
    let Some(sort) = sort else { return found.next_found() };
    let mut best: Option<(Vec<Bson>, (Found, orrery_mongo::filter::Matched))> = None;
    while let Some(next) = found.next_found()? {
        let key = sort.key_of(codec::item(&next.0.document)?, context);
        let better = best.as_ref().is_none_or(|(known, _)| sort.compare_keys(&key, known, context).is_lt());
        if better {
            best = Some((key, next));
        }
    }
    Ok(best.map(|(_, found)| found))
}

/// Changes one document, from the version that was read.
#[allow(clippy::too_many_arguments)]
pub fn single(
    scope: &Scope,
    collection: &Collection,
    filter: &Filter,
    update: &Update,
    sort: Option<&Sort>,
    upsert: bool,
    checked: bool,
    context: &Context,
) -> Result<Done> {
    let validator = if checked { validation::Validator::of(collection, context)? } else { None };
    for _ in 0..ATTEMPTS_MAX {
        context.budget.check()?;
        let Some((found, matched)) = first(scope, collection, filter, sort, context)? else {
            if !upsert {
                return Ok(Done::default());
            }
            let new = insert_new(scope, collection, filter, update, checked, context);
            match new {
                // Somebody has inserted it meanwhile: now there is one to update.
                Err(error) if is_by_id(filter) && is_duplicate_id(&error) => continue,
                new => return new,
            }
        };
        let old = codec::item(&found.document)?.to_document();
        let made = update.apply((&old).into(), &matched, context)?;
        if !made.modified {
            return Ok(Done { matched: 1, before: Some(old.clone()), after: Some(old), ..Done::default() });
        }
        if let Some(validator) = &validator {
            validator.check_change(&old, &made.document, context)?;
        }
        match change(scope, collection, &found, &made.document, update.is_replacement(), context) {
            Ok(()) => {
                return Ok(Done {
                    matched: 1,
                    modified: 1,
                    upserted: None,
                    before: Some(old),
                    after: Some(made.document),
                });
            }
            Err(Refusal::Stale) if scope.transaction.is_none() => {}
            Err(Refusal::Stale | Refusal::Exists | Refusal::Taken) => return Err(crate::sessions::conflict()),
            Err(Refusal::Other(error)) => return Err(error),
        }
    }
    Err(crate::sessions::conflict())
}

/// Whether a document with the same `_id` was in the way, and not one with the values of another index.
fn is_duplicate_id(error: &Error) -> bool {
    let pattern =
        error.details.as_ref().and_then(|details| details.get("keyPattern")).and_then(Bson::as_document);
    error.code == code::DUPLICATE_KEY && pattern.is_some_and(|pattern| pattern.contains("_id"))
}

fn is_by_id(filter: &Filter) -> bool {
    filter.equalities().iter().any(|(path, _)| *path == "_id")
}

/// Writes the new version of a document.
fn change(
    scope: &Scope,
    collection: &Collection,
    found: &Found,
    new: &Document,
    whole: bool,
    context: &Context,
) -> std::result::Result<(), Refusal> {
    unique::note_numbers(scope, collection, std::iter::once(new))?;
    let (key, id) = collection.place_of(found)?;
    let item = collection.changed_item(found, new)?;
    if item.key != key {
        return Err(Refusal::Other(shard_key_changed(collection)));
    }
    let etag = (!found.etag.is_empty()).then_some(found.etag.as_str());
    if scope.transaction.is_some() {
        unique::check(scope, collection, new, context)?;
    }
    let change = if whole { Change::Replace(item.document) } else { Change::Update(item.document) };
    match collection.write(scope, &key, &id, change, etag) {
        Err(Refusal::Taken) => match unique::taken(scope, collection, new, context) {
            Some(error) => Err(Refusal::Other(error)),
            // Whoever had the key has given it up meanwhile.
            None => Err(Refusal::Stale),
        },
        result => result,
    }
}

fn shard_key_changed(collection: &Collection) -> Error {
    let path = collection.shard_key().unwrap_or_default();
    Error::new(
        code::IMMUTABLE_FIELD,
        format!(
            "Performing an update on the path '{path}' would modify the immutable field '{path}': it is the shard key."
        ),
    )
}

/// Replaces a document that was found.
pub fn replace_found(
    scope: &Scope,
    collection: &Collection,
    found: &Found,
    new: &Document,
    context: &Context,
) -> Result<()> {
    match change(scope, collection, found, new, true, context) {
        Ok(()) => Ok(()),
        Err(Refusal::Other(error)) => Err(error),
        Err(_) => Err(crate::sessions::conflict()),
    }
}

/// What an upsert inserts.
fn insert_new(
    scope: &Scope,
    collection: &Collection,
    filter: &Filter,
    update: &Update,
    checked: bool,
    context: &Context,
) -> Result<Done> {
    let document = update.upsert(filter, context)?;
    let document = crate::collection::prepared(&scope.core, &document);
    if let Some(validator) = validation::Validator::of(collection, context)?
        && checked
    {
        validator.check(&document, context)?;
    }
    let id = document.get("_id").cloned().unwrap_or(Bson::Null);
    insert_documents(scope, collection, std::slice::from_ref(&document), true, context)?
        .into_iter()
        .collect::<Result<()>>()?;
    Ok(Done { upserted: Some(id), after: Some(document), ..Done::default() })
}

/// Changes all documents that match, each from the version that was read.
fn many(
    scope: &Scope,
    collection: &Collection,
    filter: &Filter,
    update: &Update,
    upsert: bool,
    checked: bool,
    context: &Context,
) -> Result<Done> {
    let validator = if checked { validation::Validator::of(collection, context)? } else { None };
    // All of them first: what is changed may match again further on.
    let mut all = Vec::new();
    let mut found = collection.find(scope, Some(filter), context, None)?;
    while let Some(next) = found.next_found()? {
        context.budget.take(next.0.document.len() + 128)?;
        all.push(next);
    }
    drop(found);
    if all.is_empty() {
        return match upsert {
            true => insert_new(scope, collection, filter, update, checked, context),
            false => Ok(Done::default()),
        };
    }
    let mut done = Done { matched: all.len() as u64, ..Done::default() };
    let alone = collection.meta.has_unique() || scope.transaction.is_some();
    let mut pending = Vec::new();
    let mut stale: Vec<Found> = Vec::new();
    for (found, matched) in all {
        context.budget.check()?;
        let old = codec::item(&found.document)?.to_document();
        let made = update.apply((&old).into(), &matched, context)?;
        if !made.modified {
            continue;
        }
        if let Some(validator) = &validator {
            validator.check_change(&old, &made.document, context)?;
        }
        if alone {
            match change(scope, collection, &found, &made.document, false, context) {
                Ok(()) => done.modified += 1,
                Err(Refusal::Stale) if scope.transaction.is_none() => stale.push(found),
                Err(Refusal::Other(error)) => return Err(error),
                Err(_) => return Err(crate::sessions::conflict()),
            }
            continue;
        }
        unique::note_numbers(scope, collection, std::iter::once(&made.document))?;
        let (key, id) = collection.place_of(&found)?;
        let item = collection.changed_item(&found, &made.document)?;
        if item.key != key {
            return Err(shard_key_changed(collection));
        }
        pending.push((found, (key, id, item.document)));
    }
    let (founds, changes): (Vec<_>, Vec<_>) = pending.into_iter().unzip();
    let changes = changes.into_iter().zip(&founds).map(|((key, id, document), found): (_, &Found)| {
        (key, id, Change::Update(document), Some(found.etag.clone()))
    });
    let results = collection.write_many(scope, changes.collect());
    for (result, found) in results.into_iter().zip(founds) {
        match result {
            Ok(()) => done.modified += 1,
            Err(Refusal::Stale | Refusal::Exists | Refusal::Taken) => stale.push(found),
            Err(Refusal::Other(error)) => return Err(error),
        }
    }
    // Those that others have changed meanwhile: one by one, as they are now.
    for found in stale {
        let id = codec::item(&found.document)?
            .get("_id")
            .map(orrery_mongo::ValueRef::to_bson)
            .unwrap_or(Bson::Null);
        let by_id = Filter::parse(&doc! { "_id" => doc! { "$eq" => id } }, context)?;
        let Some(both) = Filter::all_of(vec![by_id, filter.clone()]) else { continue };
        let again = single(scope, collection, &both, update, None, false, checked, context)?;
        done.modified += again.modified;
    }
    Ok(done)
}
