//! `findAndModify`.

use std::sync::atomic::Ordering::Relaxed;

use orrery_mongo::filter::Filter;
use orrery_mongo::projection::Projection;
use orrery_mongo::sort::Sort;
use orrery_mongo::update::Update;
use orrery_mongo::{Bson, Document, Error, Result, ValueRef, doc};

use super::update::{Done, single};
use super::{Call, delete, indexes, options};
use crate::reply::Reply;

const FIELDS: &[&str] = &[
    "query",
    "sort",
    "remove",
    "update",
    "new",
    "fields",
    "upsert",
    "arrayFilters",
    "collation",
    "hint",
    "let",
    "bypassDocumentValidation",
    "stmtId",
    "encryptionInformation",
];

pub fn find_and_modify(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    options::check_known(body, FIELDS)?;
    call.core.counts.updates.fetch_add(1, Relaxed);
    let context = call.context(None)?;
    let query = options::document(body, "query")?.cloned().unwrap_or_default();
    let remove = options::flag(body, "remove", false)?;
    let new = options::flag(body, "new", false)?;
    let upsert = options::flag(body, "upsert", false)?;
    let update = body.get("update");
    let array_filters = options::array(body, "arrayFilters")?;
    if remove && update.is_some() {
        return Err(Error::failed_to_parse("Cannot specify both an update and remove=true"));
    }
    if remove && upsert {
        return Err(Error::failed_to_parse("Cannot specify both upsert=true and remove=true"));
    }
    if remove && new {
        return Err(Error::failed_to_parse(
            "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document",
        ));
    }
    indexes::check_hint(call, &name, body.get("hint"))?;
    let filter = Filter::parse(&query, &context)?;
    let sort =
        options::document(body, "sort")?.filter(|sort| !sort.is_empty()).map(Sort::parse).transpose()?;
    let fields = options::document(body, "fields")?.filter(|fields| !fields.is_empty());
    let projection = fields.map(|fields| Projection::parse(fields, Some(&filter), &context)).transpose()?;
    let shown = |document: Option<Document>| -> Result<Bson> {
        Ok(match (document, &projection) {
            (None, _) => Bson::Null,
            (Some(document), None) => document.into(),
            (Some(document), Some(projection)) => {
                projection.apply(ValueRef::OwnedDocument(&document), &context)?.into()
            }
        })
    };
    let scope = call.scope();
    if remove {
        if call.core.catalog.meta(call.core, call.database, &name)?.is_some_and(|meta| meta.view().is_some())
        {
            super::insert::target(call, &name)?;
        }
        let removed = match call.collection(&name)? {
            Some(collection) => delete::delete_one(&scope, &collection, &filter, sort.as_ref(), &context)?,
            None => None,
        };
        let n = i32::from(removed.is_some());
        return Ok(doc! { "lastErrorObject" => doc! { "n" => n }, "value" => shown(removed)? }.into());
    }
    let Some(update) = update else {
        return Err(Error::failed_to_parse("Either an update or remove=true must be specified"));
    };
    let update = Update::parse(update, array_filters, &context)?;
    let collection = match upsert {
        true => Some(super::insert::target(call, &name)?),
        false => call.collection(&name)?,
    };
    let checked = !options::flag(body, "bypassDocumentValidation", false)?;
    let done = match collection {
        Some(collection) => {
            single(&scope, &collection, &filter, &update, sort.as_ref(), upsert, checked, &context)?
        }
        None => Done::default(),
    };
    let n = done.matched + u64::from(done.upserted.is_some());
    let mut last = doc! { "n" => n as i32, "updatedExisting" => done.matched > 0 };
    if let Some(id) = done.upserted {
        last.push("upserted", id);
    }
    let value = if new { done.after } else { done.before };
    Ok(doc! { "lastErrorObject" => last, "value" => shown(value)? }.into())
}
