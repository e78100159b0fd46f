//! Commands that Cosmos DB adds: sharding, throughput, what the last request has cost.

use std::sync::Arc;

use orrery_engine::{OfferOwner, Throughput, block_on};
use orrery_mongo::{Document, Error, Result, doc, error::code};

use super::{Call, change_stream, indexes, options};
use crate::collection::shard_key;
use crate::errors::of_engine;
use crate::reply::Reply;

/// Throughput beyond this needs a shard key.
const UNSHARDED_RU_MAX: i64 = 10_000;

pub fn shard_collection(call: &mut Call<'_>) -> Result<Reply> {
    let namespace = call.argument().as_str().unwrap_or_default().to_owned();
    let (database, name) = namespace.split_once('.').ok_or_else(|| {
        Error::new(code::INVALID_NAMESPACE, format!("Invalid namespace specified '{namespace}'"))
    })?;
    let key = options::document(call.body, "key")?.filter(|key| !key.is_empty());
    let key =
        key.ok_or_else(|| Error::bad_value("shardCollection needs a key, such as {region: \"hashed\"}"))?;
    let (path, kind) = match (key.len(), key.first()) {
        (1, Some((path, kind))) => (path.to_string(), kind),
        _ => return Err(Error::bad_value("The shard key is one field: several are not supported.")),
    };
    if kind.as_str() != Some("hashed") && !kind.is_number() {
        return Err(Error::bad_value(format!(
            "Unsupported shard key pattern. Pattern must be {{{path}: \"hashed\"}}"
        )));
    }
    let core = call.core;
    if let Some(found) = core.catalog.collection(core, database, name)? {
        if shard_key(&found.container).as_deref() == Some(&path) {
            return Ok(sharded(&namespace));
        }
        if found.shard_key().is_some() {
            return Err(Error::new(
                20,
                format!("{namespace} is sharded by another key already, which cannot be changed"),
            ));
        }
        if found.container.usage().items > 0 {
            return Err(Error::new(
                code::ILLEGAL_OPERATION,
                format!(
                    "{namespace} has documents and no shard key: copy them into a collection that is made with one"
                ),
            ));
        }
        // Nothing is in it: made again, with a key.
        let meta = found.meta.clone();
        core.catalog.drop(core, database, name)?;
        core.catalog.create(core, database, name, Some(&path), None, serde_json::Value::Null)?;
        core.catalog.change(core, database, name, |new| {
            *new = crate::catalog::Meta::clone(&meta);
            Ok(())
        })?;
        return Ok(sharded(&namespace));
    }
    core.catalog.create(core, database, name, Some(&path), None, serde_json::Value::Null)?;
    Ok(sharded(&namespace))
}

fn sharded(namespace: &str) -> Reply {
    doc! { "_t" => "ShardCollectionResponse", "ok" => 1, "collectionsharded" => namespace }.into()
}

pub fn last_request_statistics(call: &mut Call<'_>) -> Result<Reply> {
    let last = &call.client.last;
    Ok(doc! {
        "_t" => "GetRequestStatisticsResponse",
        "ok" => 1,
        "CommandName" => last.name,
        "RequestCharge" => (last.charge_ru * 100.0).round() / 100.0,
        "RequestDurationInMilliSeconds" => last.took_ms.round() as i64,
    }
    .into())
}

pub fn custom_action(call: &mut Call<'_>) -> Result<Reply> {
    let action = call.argument().as_str().unwrap_or_default().to_owned();
    let done = match action.as_str() {
        "CreateDatabase" => create_database(call),
        "UpdateDatabase" => update_database(call),
        "GetDatabase" => get_database(call),
        "CreateCollection" => create_collection(call),
        "UpdateCollection" => update_collection(call),
        "GetCollection" => get_collection(call),
        "GetChangeStreamTokens" => change_stream::tokens(call),
        other => Err(Error::bad_value(format!("The extension command '{other}' is not known."))),
    };
    // These have their own form of errors.
    done.map(Reply::from).map_err(|error| {
        let text = error.message.to_string();
        error.with_details(doc! { "errMsg" => text })
    })
}

fn throughput(call: &Call<'_>) -> Result<Option<Throughput>> {
    let manual = options::number(call.body, "offerThroughput")?;
    let autoscale = options::document(call.body, "autoScaleSettings")?
        .map(|settings| options::number(settings, "maxThroughput"))
        .transpose()?
        .flatten();
    match (manual, autoscale) {
        (Some(_), Some(_)) => {
            Err(Error::bad_value("offerThroughput and autoScaleSettings exclude each other"))
        }
        (Some(ru), None) => Throughput::manual(ru).map(Some).map_err(of_engine),
        (None, Some(max)) => Throughput::autoscale(max, None).map(Some).map_err(of_engine),
        (None, None) => Ok(None),
    }
}

fn create_database(call: &Call<'_>) -> Result<Document> {
    crate::catalog::check_database(call.database)?;
    let throughput = throughput(call)?;
    match block_on(call.core.account.create_database(call.database, throughput)) {
        Ok(_) => Ok(Document::new()),
        Err(error) if error.kind == orrery_engine::Kind::AlreadyExists => Err(Error::new(
            code::NAMESPACE_EXISTS,
            format!("The database '{}' exists already.", call.database),
        )),
        Err(error) => Err(of_engine(error)),
    }
}

fn database(call: &Call<'_>) -> Result<Arc<orrery_engine::Database>> {
    let missing =
        || Error::new(code::NAMESPACE_NOT_FOUND, format!("There is no database '{}'.", call.database));
    call.core.catalog.database(call.core, call.database).ok_or_else(missing)
}

fn set_throughput(call: &Call<'_>, owner: OfferOwner, new: Throughput) -> Result<()> {
    let offer = call.core.account.offer_of(owner);
    let offer = offer
        .ok_or_else(|| Error::bad_value("It has no throughput of its own: the database's is shared."))?;
    block_on(call.core.account.replace_offer(offer.number, new, None)).map(drop).map_err(of_engine)
}

fn update_database(call: &Call<'_>) -> Result<Document> {
    let database = database(call)?;
    let new = throughput(call)?
        .ok_or_else(|| Error::bad_value("UpdateDatabase needs offerThroughput or autoScaleSettings"))?;
    set_throughput(call, OfferOwner::Database(database.number), new)?;
    Ok(Document::new())
}

/// What an offer is, in a reply.
fn tell_throughput(call: &Call<'_>, owner: OfferOwner, reply: &mut Document) {
    let Some(offer) = call.core.account.offer_of(owner) else { return };
    match offer.throughput {
        Throughput::Manual(ru) => reply.push("provisionedThroughput", ru as i32),
        Throughput::Level(level) => reply.push("provisionedThroughput", level.ru() as i32),
        Throughput::Autoscale { max, .. } => {
            reply.push("provisionedThroughput", (max / 10) as i32);
            reply.push("autoScaleSettings", doc! { "maxThroughput" => max as i32 });
        }
    }
}

fn get_database(call: &Call<'_>) -> Result<Document> {
    let database = database(call)?;
    let mut reply = doc! { "database" => call.database };
    tell_throughput(call, OfferOwner::Database(database.number), &mut reply);
    Ok(reply)
}

fn collection_of(call: &Call<'_>) -> Result<String> {
    options::text(call.body, "collection")?
        .map(str::to_owned)
        .ok_or_else(|| Error::bad_value("The field 'collection' is missing."))
}

fn create_collection(call: &Call<'_>) -> Result<Document> {
    let name = collection_of(call)?;
    let shard_key = options::text(call.body, "shardKey")?;
    let manual = options::number(call.body, "offerThroughput")?;
    if shard_key.is_none() && manual.is_some_and(|ru| ru > UNSHARDED_RU_MAX) {
        return Err(Error::bad_value(format!("More than {UNSHARDED_RU_MAX} RU/s need a shardKey.")));
    }
    let given = options::array(call.body, "indexes")?;
    let mut wanted = Vec::new();
    if let Some(given) = given {
        let mut has_id = false;
        for spec in given {
            let spec = spec.as_document().ok_or_else(|| Error::type_mismatch("indexes are objects"))?;
            let index = indexes::read(call, spec)?;
            has_id |= index.key.len() == 1 && index.key.contains("_id");
            wanted.push(index);
        }
        if !has_id {
            return Err(Error::bad_value("The indexes need one on _id."));
        }
    }
    let core = call.core;
    core.catalog.create(core, call.database, &name, shard_key, throughput(call)?, serde_json::Value::Null)?;
    if !wanted.is_empty()
        && let Some(target) = core.catalog.collection(core, call.database, &name)?
    {
        indexes::add(call, &target, wanted)?;
    }
    Ok(Document::new())
}

fn collection(call: &Call<'_>) -> Result<crate::collection::Collection> {
    let name = collection_of(call)?;
    let missing = || {
        Error::new(code::NAMESPACE_NOT_FOUND, format!("There is no collection '{}.{name}'.", call.database))
    };
    call.collection(&name)?.ok_or_else(missing)
}

fn owner(collection: &crate::collection::Collection) -> OfferOwner {
    let container = &collection.container;
    OfferOwner::Container(container.database().number, container.number())
}

fn update_collection(call: &Call<'_>) -> Result<Document> {
    let collection = collection(call)?;
    if let Some(new) = throughput(call)? {
        set_throughput(call, owner(&collection), new)?;
    }
    if let Some(given) = options::array(call.body, "indexes")? {
        let mut wanted = Vec::new();
        for spec in given {
            wanted.push(indexes::read(call, spec.as_document().unwrap_or(&Document::new()))?);
        }
        // All of them anew.
        let core = call.core;
        core.catalog.change(core, call.database, &collection.name, |meta| {
            meta.indexes.clear();
            Ok(())
        })?;
        if let Some(target) = core.catalog.collection(core, call.database, &collection.name)? {
            indexes::add(call, &target, wanted)?;
        }
    }
    Ok(Document::new())
}

fn get_collection(call: &Call<'_>) -> Result<Document> {
    let collection = collection(call)?;
    let mut reply = doc! { "database" => call.database, "collection" => &*collection.name };
    if let Some(path) = collection.shard_key() {
        reply.push("shardKeyDefinition", doc! { path => "hashed" });
    }
    tell_throughput(call, owner(&collection), &mut reply);
    Ok(reply)
}
