//! Databases and their collections: lists, drops, sizes, names.

use std::sync::Arc;

use orrery_mongo::filter::Filter;
use orrery_mongo::{Bson, Document, Error, Result, ValueRef, doc, error::code};

use super::{Call, create, cursor, options};
use crate::catalog::{Index, Listed, exists};
use crate::collection::Collection;
use crate::reply::Reply;

/// Databases of the server itself.
const ALWAYS_THERE: [&str; 3] = ["admin", "config", "local"];

pub fn list_databases(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let core = call.core;
    let context = call.context(None)?;
    let filter =
        options::document(body, "filter")?.map(|filter| Filter::parse(filter, &context)).transpose()?;
    let names_only = options::flag(body, "nameOnly", false)?;
    let mut total = 0u64;
    let mut shown = Vec::new();
    for database in core.account.databases() {
        let collections = core.catalog.collections(core, &database.name)?;
        if collections.is_empty() || ALWAYS_THERE.contains(&database.name.as_str()) {
            continue;
        }
        let size: u64 = collections
            .iter()
            .filter_map(|one| one.container.as_ref())
            .map(|container| container.usage().size_bytes)
            .sum();
        // An empty collection takes some room too.
        let size = size.max(4096);
        let whole = doc! { "name" => database.name.as_str(), "sizeOnDisk" => size as i64, "empty" => false };
        if let Some(filter) = &filter
            && !filter.matches(ValueRef::OwnedDocument(&whole), &context)?
        {
            continue;
        }
        total += size;
        shown.push(Bson::from(if names_only {
            doc! { "name" => database.name.as_str() }
        } else {
            whole
        }));
    }
    for name in ALWAYS_THERE {
        let whole = doc! { "name" => name, "sizeOnDisk" => 4096i64, "empty" => false };
        let fits = match &filter {
            Some(filter) => filter.matches(ValueRef::OwnedDocument(&whole), &context)?,
            None => true,
        };
        if fits {
            total += 4096;
            shown.push(if names_only { doc! { "name" => name }.into() } else { whole.into() });
        }
    }
    shown.sort_by(|a: &Bson, b: &Bson| {
        let name =
            |one: &Bson| one.as_document().and_then(|one| one.get("name")?.as_str().map(str::to_owned));
        name(a).cmp(&name(b))
    });
    let mut reply = doc! { "databases" => Bson::array(shown) };
    if !names_only {
        reply.push("totalSize", total as i64);
        reply.push("totalSizeMb", (total >> 20) as i64);
    }
    Ok(reply.into())
}

pub fn drop_database(call: &mut Call<'_>) -> Result<Reply> {
    if call.argument().as_i64() != Some(1) {
        return Err(Error::bad_value("have to pass 1 as db parameter"));
    }
    let dropped = call.core.catalog.drop_database(call.core, call.database)?;
    let prefix = format!("{}.", call.database);
    call.core.cursors.kill_where(|cursor| {
        cursor.namespace.starts_with(&prefix) && matches!(cursor.source, crate::cursors::Source::Rows(_))
    });
    Ok(match dropped {
        true => doc! { "dropped" => call.database },
        false => Document::new(),
    }
    .into())
}

pub fn list_collections(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let core = call.core;
    let context = call.context(None)?;
    let filter =
        options::document(body, "filter")?.map(|filter| Filter::parse(filter, &context)).transpose()?;
    let names_only = options::flag(body, "nameOnly", false)?;
    let mut documents = Vec::new();
    let mut listed = core.catalog.collections(core, call.database)?;
    if listed.iter().any(|one| one.container.is_none()) {
        listed.push(Listed { name: "system.views".to_owned(), container: None, meta: Arc::default() });
    }
    for Listed { name, container, meta } in listed {
        if container.is_some() && super::hidden::is_hidden(call, &name)? {
            continue;
        }
        let is_view = meta.view().is_some();
        let kind = match (is_view, meta.options.contains("timeseries")) {
            (true, _) => "view",
            (false, true) => "timeseries",
            (false, false) => "collection",
        };
        let info = match &container {
            Some(container) => create::info(uuid_of(container)),
            None => doc! { "readOnly" => is_view },
        };
        let mut whole = doc! {
            "name" => name.as_str(),
            "type" => kind,
            "options" => create::shown(&meta.options),
            "info" => info,
        };
        if container.is_some() {
            whole.push("idIndex", Index::of_ids());
        }
        if let Some(filter) = &filter
            && !filter.matches(ValueRef::OwnedDocument(&whole), &context)?
        {
            continue;
        }
        documents.push(if names_only {
            doc! { "name" => name, "type" => kind }
        } else {
            whole
        });
    }
    let batch = options::document(body, "cursor")?
        .map(|cursor| options::count(cursor, "batchSize"))
        .transpose()?
        .flatten();
    cursor::of_documents(call, format!("{}.$cmd.listCollections", call.database), documents, batch)
}

/// A number of a collection that is never another's.
pub fn uuid_of(container: &orrery_engine::Container) -> Bson {
    let mut bytes = [0u8; 16];
    bytes[..4].copy_from_slice(&container.database().number.to_be_bytes());
    bytes[4..8].copy_from_slice(&container.number().to_be_bytes());
    bytes[8..12].copy_from_slice(b"orry");
    bytes[6] = bytes[6] & 0x0F | 0x40;
    bytes[8] = bytes[8] & 0x3F | 0x80;
    Bson::Binary { subtype: 4, bytes: Arc::from(&bytes[..]) }
}

pub fn drop(call: &mut Call<'_>) -> Result<Reply> {
    let name = call.collection_name()?.to_owned();
    let namespace = format!("{}.{name}", call.database);
    let core = call.core;
    if name == crate::operations::PROFILE {
        core.operations.forget_profiled(call.database);
    }
    let is_view = core.catalog.meta(core, call.database, &name)?.is_some_and(|meta| meta.view().is_some());
    let collection = call.collection(&name)?;
    if collection.is_none() && !is_view {
        if core.config.version < crate::config::ServerVersion::V7_0 {
            return Err(Error::new(code::NAMESPACE_NOT_FOUND, "ns not found"));
        }
        return Ok(doc! { "ns" => namespace }.into());
    }
    core.catalog.drop(core, call.database, &name)?;
    core.cursors.kill_where(|cursor| {
        cursor.namespace == namespace && matches!(cursor.source, crate::cursors::Source::Rows(_))
    });
    let indexes = collection.map_or(0, |collection| collection.meta.indexes.len() + 1);
    Ok(match is_view {
        true => doc! { "ns" => namespace },
        false => doc! { "nIndexesWas" => indexes as i32, "ns" => namespace },
    }
    .into())
}

/// Copies a collection under another name, and drops it under the old one.
pub fn rename_collection(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let namespace = |value: &Bson| -> Result<(String, String)> {
        let text = value.as_str().unwrap_or_default();
        let (database, name) =
            text.split_once('.').filter(|(_, name)| !name.is_empty()).ok_or_else(|| {
                Error::new(code::INVALID_NAMESPACE, format!("Invalid namespace specified '{text}'"))
            })?;
        Ok((database.to_owned(), name.to_owned()))
    };
    let (from_database, from) = namespace(call.argument())?;
    let (to_database, to) = namespace(options::required(body, "to")?)?;
    crate::catalog::check_collection(&to_database, &to)?;
    let core = call.core;
    let missing = || {
        Error::new(
            code::NAMESPACE_NOT_FOUND,
            format!("Source collection {from_database}.{from} does not exist"),
        )
    };
    let source = core.catalog.collection(core, &from_database, &from)?.ok_or_else(missing)?;
    if (&from_database, &from) == (&to_database, &to) {
        return Err(Error::new(code::ILLEGAL_OPERATION, "Can't rename a collection to itself"));
    }
    if core.catalog.collection(core, &to_database, &to)?.is_some() {
        if !options::flag(body, "dropTarget", false)? {
            return Err(Error::new(code::NAMESPACE_EXISTS, "target namespace exists"));
        }
        core.catalog.drop(core, &to_database, &to)?;
    }
    if core.catalog.meta(core, &to_database, &to)?.is_some_and(|meta| meta.view().is_some()) {
        return Err(exists(&to_database, &to));
    }
    let policy = source.container.definition().json["indexingPolicy"].clone();
    core.catalog.create(core, &to_database, &to, source.shard_key().as_deref(), None, policy)?;
    let meta = source.meta.clone();
    core.catalog.change(core, &to_database, &to, |new| {
        *new = crate::catalog::Meta::clone(&meta);
        Ok(())
    })?;
    let target = core.catalog.collection(core, &to_database, &to)?.ok_or_else(missing)?;
    super::index_policy::follow(call, &target)?;
    let (scope, context) = (call.scope(), call.context(None)?);
    let mut found = source.find(&scope, None, &context, None)?;
    loop {
        let mut items = Vec::new();
        while items.len() < 500 {
            let Some((next, _)) = found.next_found()? else { break };
            let (key, id) = source.place_of(&next)?;
            items.push(crate::collection::NewItem { key, id, document: next.document });
        }
        if items.is_empty() {
            break;
        }
        for written in target.insert(&scope, items, true) {
            if written.is_err() {
                return Err(Error::new(
                    code::OPERATION_FAILED,
                    "the collection was changed while it was renamed",
                ));
            }
        }
    }
    std::mem::drop(found);
    let to_namespace = doc! { "db" => to_database.as_str(), "coll" => to.as_str() };
    core.changed(
        &from_database,
        &from,
        "rename",
        doc! { "to" => to_namespace, "dropTarget" => uuid_of(&target.container) },
    );
    core.catalog.drop(core, &from_database, &from)?;
    Ok(Document::new().into())
}

pub fn storage_stats(collection: &Collection, scale: i64) -> Document {
    let usage = collection.container.usage();
    let indexes = collection.meta.indexes.len() as i32 + 1;
    let size = usage.size_bytes as i64 / scale;
    let count = usage.items;
    let mut sizes = doc! { "_id_" => 4096i64 / scale };
    for index in &collection.meta.indexes {
        sizes.push(index.name.as_str(), 4096i64 / scale);
    }
    let mut stats = doc! {
        "size" => size,
        "count" => i32::try_from(count).map_or(Bson::Int64(count as i64), Bson::Int32),
        "avgObjSize" => (usage.size_bytes / count.max(1)) as i64,
        "numOrphanDocs" => 0,
        "storageSize" => size,
        "freeStorageSize" => 0i64,
        "capped" => collection.meta.is_capped(),
        "nindexes" => indexes,
        "indexBuilds" => Bson::array(Vec::new()),
        "totalIndexSize" => i64::from(indexes) * 4096 / scale,
        "totalSize" => size + i64::from(indexes) * 4096 / scale,
        "indexSizes" => sizes,
        "scaleFactor" => scale,
    };
    if collection.meta.is_capped() {
        for name in ["max", "size"] {
            if let Some(value) = collection.meta.options.get(name) {
                stats.push(if name == "size" { "maxSize" } else { name }, value.clone());
            }
        }
    }
    stats
}

pub fn coll_stats(call: &mut Call<'_>) -> Result<Reply> {
    let name = call.collection_name()?.to_owned();
    let scale = options::number(call.body, "scale")?.unwrap_or(1).max(1);
    let mut reply = doc! { "ns" => format!("{}.{name}", call.database) };
    match call.collection(&name)? {
        Some(collection) => {
            for (member, value) in storage_stats(&collection, scale).iter() {
                reply.push(member.clone(), value.clone());
            }
        }
        None => {
            let none = doc! { "size" => 0, "count" => 0, "numOrphanDocs" => 0, "storageSize" => 0, "totalSize" => 0, "nindexes" => 0, "totalIndexSize" => 0, "indexSizes" => Document::new(), "scaleFactor" => scale };
            none.iter().for_each(|(member, value)| reply.push(member.clone(), value.clone()));
        }
    }
    Ok(reply.into())
}

pub fn db_stats(call: &mut Call<'_>) -> Result<Reply> {
    let core = call.core;
    let scale = options::number(call.body, "scale")?.unwrap_or(1).max(1);
    let listed = core.catalog.collections(core, call.database)?;
    let (mut objects, mut bytes, mut indexes, mut views, mut collections) = (0u64, 0u64, 0i64, 0i64, 0i64);
    for one in &listed {
        match &one.container {
            Some(container) => {
                let usage = container.usage();
                objects += usage.items;
                bytes += usage.size_bytes;
                indexes += one.meta.indexes.len() as i64 + 1;
                collections += 1;
            }
            None => views += 1,
        }
    }
    let size = (bytes as i64 / scale) as f64;
    Ok(doc! {
        "db" => call.database,
        "collections" => collections,
        "views" => views,
        "objects" => objects as i64,
        "avgObjSize" => bytes as f64 / objects.max(1) as f64,
        "dataSize" => size,
        "storageSize" => size,
        "indexes" => indexes,
        "indexSize" => (indexes * 4096 / scale) as f64,
        "totalSize" => size + (indexes * 4096 / scale) as f64,
        "scaleFactor" => scale,
        "fsUsedSize" => 0.0,
        "fsTotalSize" => 0.0,
    }
    .into())
}

pub fn data_size(call: &mut Call<'_>) -> Result<Reply> {
    let namespace = call.argument().as_str().unwrap_or_default().to_owned();
    let (database, name) = namespace.split_once('.').unwrap_or((call.database, &namespace));
    let usage = call
        .core
        .catalog
        .collection(call.core, database, name)?
        .map(|found| found.container.usage())
        .unwrap_or_default();
    Ok(doc! { "estimate" => true, "size" => usage.size_bytes as i64, "numObjects" => usage.items as i64, "millis" => 0 }.into())
}

pub fn validate(call: &mut Call<'_>) -> Result<Reply> {
    let name = call.collection_name()?.to_owned();
    let missing = || {
        Error::new(
            code::NAMESPACE_NOT_FOUND,
            format!("Collection '{}.{name}' does not exist to validate.", call.database),
        )
    };
    let collection = call.collection(&name)?.ok_or_else(missing)?;
    let records = collection.container.usage().items as i64;
    let mut keys = doc! { "_id_" => records };
    let mut details = doc! { "_id_" => doc! { "valid" => true } };
    for index in &collection.meta.indexes {
        keys.push(index.name.as_str(), records);
        details.push(index.name.as_str(), doc! { "valid" => true });
    }
    let none = || Bson::array(Vec::new());
    Ok(doc! {
        "ns" => collection.namespace(),
        "nInvalidDocuments" => 0,
        "nrecords" => records,
        "nIndexes" => collection.meta.indexes.len() as i32 + 1,
        "keysPerIndex" => keys,
        "indexDetails" => details,
        "valid" => true,
        "repaired" => false,
        "warnings" => none(),
        "errors" => none(),
        "extraIndexEntries" => none(),
        "missingIndexEntries" => none(),
    }
    .into())
}
