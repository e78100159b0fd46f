//! `create`, `collMod`, and what capped collections give up.

use std::sync::Arc;

use orrery_mongo::filter::Filter;
use orrery_mongo::pipeline::Pipeline;
use orrery_mongo::{Bson, Context, Document, Error, Result, doc, error::code};

use super::{Call, hidden, index_policy, options, unique};
use crate::catalog::{Index, Meta, exists};
use crate::collection::write::Change;
use crate::collection::{Collection, Scope};
use crate::reply::Reply;

const FIELDS: &[&str] = &[
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "collation",
    "timeseries",
    "clusteredIndex",
    "expireAfterSeconds",
    "changeStreamPreAndPostImages",
    "indexOptionDefaults",
    "storageEngine",
    "autoIndexId",
    "flags",
    "idIndex",
    "encryptedFields",
    "temp",
    "recordPreImages",
];
/// Options that are kept and shown.
const KEPT: [&str; 16] = [
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "viewOn",
    "pipeline",
    "collation",
    "timeseries",
    "clusteredIndex",
    "expireAfterSeconds",
    "changeStreamPreAndPostImages",
    "indexOptionDefaults",
    "storageEngine",
    "encryptedFields",
];

pub fn create(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    options::check_known(body, FIELDS)?;
    crate::catalog::check_collection(call.database, &name)?;
    let mut given = Document::new();
    for option in KEPT {
        if let Some(value) = body.get(option).filter(|value| !matches!(value, Bson::Null)) {
            given.push(option, value.clone());
        }
    }
    let context = call.context(None)?;
    check(&mut given, &context)?;
    let core = call.core;
    let known = core.catalog.meta(core, call.database, &name)?;
    let present = call.collection(&name)?;
    if present.is_some() || known.as_ref().is_some_and(|meta| meta.view().is_some()) {
        let same = known.map(|meta| meta.options.clone()).unwrap_or_default();
        let equal = orrery_mongo::order::equal((&same).into(), (&given).into(), None);
        // Since 7.0 asking again for what is there is no error.
        if equal && call.transaction.is_none() && core.config.version >= crate::config::ServerVersion::V7_0 {
            return Ok(Document::new().into());
        }
        return Err(exists(call.database, &name));
    }
    if given.contains("viewOn") {
        core.catalog.change(core, call.database, &name, |meta| {
            meta.options = given.clone();
            Ok(())
        })?;
        core.changed(call.database, &name, "create", given);
        return Ok(Document::new().into());
    }
    if let Some(Bson::Document(clustered)) = given.get("clusteredIndex") {
        given.set("clusteredIndex", clustered_index(clustered)?);
    }
    core.catalog.create(core, call.database, &name, None, None, serde_json::Value::Null)?;
    hidden::made(call, &name);
    let mut description = given.clone();
    description.push("idIndex", Index::of_ids());
    core.changed(call.database, &name, "create", description);
    if !given.is_empty() {
        core.catalog.change(core, call.database, &name, |meta| {
            meta.options = given;
            Ok(())
        })?;
    }
    Ok(Document::new().into())
}

/// Documents lie by their `_id` anyway: what is said of the index by which they do is kept and shown.
fn clustered_index(given: &Document) -> Result<Document> {
    let by_id = given.get("key").and_then(Bson::as_document).is_some_and(|key| {
        key.len() == 1 && key.get("_id").is_some_and(|direction| direction.as_i64() == Some(1))
    });
    if !by_id || !given.get("unique").is_some_and(Bson::is_truthy) {
        return Err(Error::new(
            code::INVALID_INDEX_SPECIFICATION_OPTION,
            "The clusteredIndex option takes key: {_id: 1} and unique: true",
        ));
    }
    let name = given.get("name").and_then(Bson::as_str).unwrap_or("_id_");
    Ok(doc! { "v" => 2, "key" => doc! { "_id" => 1 }, "name" => name, "unique" => true })
}

fn check(given: &mut Document, context: &Context) -> Result<()> {
    if let Some(on) = given.get("viewOn") {
        if on.as_str().is_none_or(str::is_empty) {
            return Err(Error::bad_value("'viewOn' cannot be empty"));
        }
        let stages = match given.get("pipeline") {
            None => Vec::new(),
            Some(Bson::Array(stages)) => stages.to_vec(),
            Some(_) => return Err(Error::type_mismatch("'pipeline' of a view is an array")),
        };
        let pipeline = Pipeline::parse(&stages, context)?;
        if pipeline.writes() {
            return Err(Error::new(
                code::OPTION_NOT_SUPPORTED_ON_VIEW,
                "The aggregation stage $out or $merge cannot be used in a view definition",
            ));
        }
        if given.contains("capped") {
            return Err(Error::new(code::INVALID_OPTIONS, "Cannot specify 'capped' together with 'viewOn'"));
        }
    } else if given.contains("pipeline") {
        return Err(Error::new(code::INVALID_OPTIONS, "'pipeline' cannot be specified without 'viewOn'"));
    }
    let capped = given.get("capped").is_some_and(Bson::is_truthy);
    if capped {
        match given.get("size").and_then(Bson::as_i64) {
            Some(size) if size > 0 => {
                // In steps of 256 bytes, as it is told.
                given.set("size", Bson::Int64((size + 255) / 256 * 256).narrowed());
            }
            _ => {
                return Err(Error::new(
                    code::INVALID_OPTIONS,
                    "the 'size' field is required when 'capped' is true",
                ));
            }
        }
    } else {
        given.remove("capped");
        if given.contains("max") && !given.contains("timeseries") {
            return Err(Error::new(code::INVALID_OPTIONS, "the 'max' field is only for capped collections"));
        }
    }
    if let Some(rule) = given.get("validator") {
        let rule =
            rule.as_document().ok_or_else(|| Error::type_mismatch("'validator' has to be a document."))?;
        Filter::parse(rule, context)?;
    }
    for (name, allowed) in
        [("validationLevel", &["off", "strict", "moderate"][..]), ("validationAction", &["error", "warn"])]
    {
        if let Some(value) = given.get(name)
            && !value.as_str().is_some_and(|value| allowed.contains(&value))
        {
            return Err(Error::bad_value(format!("invalid value for '{name}'")));
        }
    }
    if let Some(collation) = given.get("collation").and_then(Bson::as_document) {
        options::collation(Some(collation))?;
    }
    Ok(())
}

trait Narrowed {
    fn narrowed(self) -> Bson;
}

impl Narrowed for Bson {
    fn narrowed(self) -> Bson {
        match self {
            Bson::Int64(value) => i32::try_from(value).map_or(Bson::Int64(value), Bson::Int32),
            other => other,
        }
    }
}

pub fn coll_mod(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    let core = call.core;
    let missing =
        || Error::new(code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {}.{name}", call.database));
    let is_view = core.catalog.meta(core, call.database, &name)?.is_some_and(|meta| meta.view().is_some());
    if !is_view && call.collection(&name)?.is_none() {
        return Err(missing());
    }
    let context = call.context(None)?;
    let mut changes = Document::new();
    for option in [
        "validator",
        "validationLevel",
        "validationAction",
        "viewOn",
        "pipeline",
        "changeStreamPreAndPostImages",
        "expireAfterSeconds",
    ] {
        if let Some(value) = body.get(option) {
            changes.push(option, value.clone());
        }
    }
    if changes.contains("viewOn") && !is_view {
        return Err(Error::new(code::INVALID_OPTIONS, "'viewOn' is for views"));
    }
    if !is_view || changes.contains("viewOn") {
        check(&mut changes.clone(), &context)?;
    }
    let index = options::document(body, "index")?;
    let mut reply = Document::new();
    let collection = call.collection(&name)?.filter(|_| index.is_some());
    let lock = collection.as_ref().map(|collection| unique::lock(&call.scope(), collection));
    let _turn = lock.as_ref().map(|lock| lock.lock());
    if let (Some(change), Some(collection)) = (index, &collection) {
        // What the index will be has to hold before it is told.
        let mut wanted = collection.clone();
        let mut meta = Meta::clone(&collection.meta);
        change_index(&mut meta.indexes, change)?;
        let new: Vec<Index> = if change.contains("unique") { meta.indexes.clone() } else { Vec::new() };
        wanted.meta = Arc::new(meta);
        index_policy::build(call, collection, &wanted, &new)?;
    }
    core.catalog.change(core, call.database, &name, |meta| {
        for (option, value) in changes.iter() {
            meta.options.set(option, value.clone());
        }
        if let Some(change) = index {
            reply = change_index(&mut meta.indexes, change)?;
        }
        Ok(())
    })?;
    let mut description = changes;
    if let Some(index) = index {
        description.push("index", index.clone());
    }
    core.changed(call.database, &name, "modify", description);
    Ok(reply.into())
}

fn change_index(known: &mut [Index], change: &Document) -> Result<Document> {
    let by_name = change.get("name").and_then(Bson::as_str);
    let by_key = change.get("keyPattern").and_then(Bson::as_document);
    let found = known.iter_mut().find(|index| match (by_name, by_key) {
        (Some(name), _) => index.name == name,
        (None, Some(key)) => orrery_mongo::order::equal((&index.key).into(), key.into(), None),
        _ => false,
    });
    let Some(index) = found else {
        return Err(Error::new(code::INDEX_NOT_FOUND, "cannot find index for the collMod command"));
    };
    let mut reply = Document::new();
    for (option, old, new) in [
        ("expireAfterSeconds", "expireAfterSeconds_old", "expireAfterSeconds_new"),
        ("hidden", "hidden_old", "hidden_new"),
    ] {
        if let Some(value) = change.get(option) {
            if let Some(before) = index.spec.get(option) {
                reply.push(old, before.clone());
            }
            reply.push(new, value.clone());
            index.spec.set(option, value.clone());
        }
    }
    if change.get("unique").is_some_and(Bson::is_truthy) {
        index.unique = true;
        index.spec.set("unique", true);
        reply.push("unique_new", true);
    }
    Ok(reply)
}

/// Takes the oldest documents of a capped collection away until it is as small as it must be.
pub fn trim(scope: &Scope, collection: &Collection, context: &Context) -> Result<()> {
    if !collection.meta.is_capped() || scope.transaction.is_some() {
        return Ok(());
    }
    let limit = |name: &str| {
        collection.meta.options.get(name).and_then(Bson::as_i64).and_then(|limit| u64::try_from(limit).ok())
    };
    let (size, max) =
        (limit("size").unwrap_or(u64::MAX), limit("max").filter(|max| *max > 0).unwrap_or(u64::MAX));
    let usage = collection.container.usage();
    if usage.items <= max && usage.size_bytes <= size {
        return Ok(());
    }
    let (mut items, mut bytes) = (usage.items, usage.size_bytes);
    let mut found = collection.find(scope, None, context, None)?;
    let mut gone = Vec::new();
    while items > max || bytes > size && items > 1 {
        let Some((oldest, _)) = found.next_found()? else { break };
        let (key, id) = collection.place_of(&oldest)?;
        items -= 1;
        bytes = bytes.saturating_sub(oldest.document.len() as u64);
        gone.push((key, id, Change::Delete, None));
    }
    drop(found);
    // One that is gone already is no error.
    drop(collection.write_many(scope, gone));
    Ok(())
}

/// The options of a collection as lists show them.
pub fn shown(options: &Document) -> Document {
    options.clone()
}

/// What `listCollections` tells of a collection beside its options.
pub fn info(uuid: Bson) -> Document {
    doc! { "readOnly" => false, "uuid" => uuid }
}
