//! `delete`.

use std::sync::atomic::Ordering::Relaxed;

use orrery_mongo::filter::Filter;
use orrery_mongo::sort::Sort;
use orrery_mongo::{Bson, Context, Document, Error, Result, codec, doc};

use super::insert::{check_count, ends_transaction, write_error};
use super::update::{ATTEMPTS_MAX, first};
use super::{Call, indexes, options};
use crate::collection::write::{Change, Refusal};
use crate::collection::{Collection, Scope};
use crate::reply::Reply;

/// Documents that are deleted at a time.
const DELETES_MAX: usize = 1_000;
const FIELDS: &[&str] = &["deletes", "ordered", "let", "stmtIds", "stmtId", "runtimeConstants"];

pub fn delete(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    options::check_known(body, FIELDS)?;
    let deletes = match options::required(body, "deletes")? {
        Bson::Array(deletes) => deletes.clone(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'delete.deletes' is the wrong type '{}', expected type 'array'",
                other.kind().name()
            )));
        }
    };
    check_count(deletes.len())?;
    let ordered = options::boolean(body, "ordered", true)?;
    call.core.counts.deletes.fetch_add(deletes.len() as u64, Relaxed);
    let (mut n, mut errors) = (0u64, Vec::new());
    for (index, given) in deletes.iter().enumerate() {
        match one(call, &name, given) {
            Ok(deleted) => n += deleted,
            Err(error) if call.transaction.is_some() && ends_transaction(&error) => return Err(error),
            Err(error) => {
                errors.push(Bson::from(write_error(index, &error)));
                if ordered {
                    break;
                }
            }
        }
    }
    let mut reply = doc! { "n" => n as i32 };
    if !errors.is_empty() {
        reply.push("writeErrors", Bson::array(errors));
    }
    Ok(reply.into())
}

fn one(call: &Call<'_>, name: &str, given: &Bson) -> Result<u64> {
    let given = given.as_document().ok_or_else(|| Error::type_mismatch("a delete is no object"))?;
    let q = options::document(given, "q")?
        .ok_or_else(|| Error::new(40414, "BSON field 'delete.deletes.q' is missing but a required field"))?;
    let limit = match given.get("limit") {
        Some(limit) => limit.as_i64(),
        None => {
            return Err(Error::new(
                40414,
                "BSON field 'delete.deletes.limit' is missing but a required field",
            ));
        }
    };
    let single = match limit {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(Error::failed_to_parse("The limit field in delete objects must be 0 or 1")),
    };
    indexes::check_hint(call, name, given.get("hint"))?;
    let context = call.context(options::document(given, "collation")?)?;
    run(call, name, q, single, &context)
}

pub fn run(call: &Call<'_>, name: &str, filter: &Document, single: bool, context: &Context) -> Result<u64> {
    let filter = Filter::parse(filter, context)?;
    if call.core.catalog.meta(call.core, call.database, name)?.is_some_and(|meta| meta.view().is_some()) {
        super::insert::target(call, name)?;
    }
    let Some(collection) = call.collection(name)? else { return Ok(0) };
    match single {
        true => Ok(u64::from(delete_one(&call.scope(), &collection, &filter, None, context)?.is_some())),
        false => delete_many(&call.scope(), &collection, &filter, context),
    }
}

/// Deletes the first document that matches, and gives it back.
pub fn delete_one(
    scope: &Scope,
    collection: &Collection,
    filter: &Filter,
    sort: Option<&Sort>,
    context: &Context,
) -> Result<Option<Document>> {
    for _ in 0..ATTEMPTS_MAX {
        context.budget.check()?;
        let Some((found, _)) = first(scope, collection, filter, sort, context)? else { return Ok(None) };
        let (key, id) = collection.place_of(&found)?;
        let etag = (!found.etag.is_empty()).then_some(found.etag.as_str());
        match collection.write(scope, &key, &id, Change::Delete, etag) {
            Ok(()) => return codec::item(&found.document).map(|document| Some(document.to_document())),
            Err(Refusal::Stale) if scope.transaction.is_none() => {}
            Err(Refusal::Other(error)) => return Err(error),
            Err(_) => return Err(crate::sessions::conflict()),
        }
    }
    Err(crate::sessions::conflict())
}

pub fn delete_all(scope: &Scope, collection: &Collection, context: &Context) -> Result<u64> {
    let everything = Filter::parse(&Document::new(), context)?;
    delete_many(scope, collection, &everything, context)
}

fn delete_many(scope: &Scope, collection: &Collection, filter: &Filter, context: &Context) -> Result<u64> {
    let mut deleted = 0;
    loop {
        let mut found = collection.find(scope, Some(filter), context, None)?;
        let mut some = Vec::new();
        while some.len() < DELETES_MAX {
            let Some((next, _)) = found.next_found()? else { break };
            let (key, id) = collection.place_of(&next)?;
            some.push((key, id, Change::Delete, Some(next.etag)));
        }
        drop(found);
        let count = some.len();
        let mut conflicts = 0;
        for result in collection.write_many(scope, some) {
            match result {
                Ok(()) => deleted += 1,
                // Changed or deleted by others: looked at again.
                Err(Refusal::Stale | Refusal::Exists | Refusal::Taken) => conflicts += 1,
                Err(Refusal::Other(error)) => return Err(error),
            }
        }
        context.budget.check()?;
        if count < DELETES_MAX && conflicts == 0 {
            return Ok(deleted);
        }
    }
}
