//! What indexes ask of their container: an indexing policy, a time to live, and rules that its items are held to.

use orrery_engine::{
    ContainerDefinition, Error as EngineError, ItemRules, KeyKinds, Kind, LARGE_ITEM_BYTES_MAX, block_on,
};
use orrery_mongo::{Bson, Document, Error, Result, codec};
use serde_json::{Value, json};

use super::{Call, unique};
use crate::catalog::Index;
use crate::collection::{Collection, rules};
use crate::errors::of_engine;

/// Makes the container follow the wanted indexes, and waits until all documents have claimed their keys in the unique
/// ones. Where two have the same all is as it was before. Writers go on meanwhile.
pub fn build(call: &Call<'_>, target: &Collection, wanted: &Collection, new: &[Index]) -> Result<()> {
    follow(call, wanted)?;
    if !new.iter().any(|index| index.unique) {
        return Ok(());
    }
    let budget = call.context(None)?.budget;
    let built = target.container.build_claims(&mut || {
        budget.check().map_err(|exceeded| EngineError::new(Kind::Unavailable, exceeded.to_string()))
    });
    let failed = match built {
        Ok(None) => return Ok(()),
        Ok(Some((rule, id))) => duplicate(call, wanted, new, rule, &id),
        Err(error) => Err(of_engine(error)),
    };
    follow(call, target)?;
    failed
}

/// The error of an index for which two documents have the same key.
fn duplicate(call: &Call<'_>, wanted: &Collection, new: &[Index], rule: u16, id: &str) -> Result<()> {
    let definition = wanted.container.definition();
    let rules = definition.rules.iter().flat_map(|rules| &rules.rules);
    let specification =
        rules.clone().find(|known| known.number == rule).map(|rule| rule.specification.clone());
    let is_it = |index: &&Index| specification.as_ref() == Some(&rules::specification(index));
    let Some(index) = new.iter().find(is_it).or(new.iter().find(|index| index.unique)) else { return Ok(()) };
    // Which documents have it, where they still do.
    let (scope, context) = (call.scope(), call.context(None)?);
    let mut found = wanted.find(&scope, None, &context, None)?;
    let mut error = None;
    while let Some((next, _)) = found.next_found()? {
        let (_, own) = wanted.place_of(&next)?;
        if own == id {
            let document = codec::item(&next.document)?.to_document();
            error = unique::check_index(&scope, wanted, index, &document, &context).err();
            break;
        }
    }
    let error = error.unwrap_or_else(|| wanted.duplicate_of(&index.name, &index.key, &Document::new()));
    let text =
        format!("Index build failed: Collection {} :: caused by :: {}", wanted.namespace(), error.message);
    Err(Error { message: text.into(), ..error })
}

/// Makes the engine hold items to the indexes of a collection: it may have them from before the engine could, and a
/// build that a crash has ended may have left one that there is not.
pub fn enforce(call: &Call<'_>, collection: &Collection) -> Result<()> {
    let wanted = collection.meta.indexes.iter().filter(|index| index.is_rule()).count();
    let definition = collection.container.definition();
    let rules = definition.rules.iter().flat_map(|rules| &rules.rules);
    if rules.filter(|rule| rule.host == rules::HOST).count() == wanted {
        return Ok(());
    }
    // Whoever holds the lock builds an index that is not told yet.
    let lock = unique::lock(&call.scope(), collection);
    let Some(_turn) = lock.try_lock() else { return Ok(()) };
    match call.collection(&collection.name)? {
        Some(now) => follow(call, &now),
        None => Ok(()),
    }
}

/// Makes the container's policy what the indexes ask for.
pub fn follow(call: &Call<'_>, collection: &Collection) -> Result<()> {
    /// How often it is tried again, because somebody else has changed the container.
    const ATTEMPTS_MAX: usize = 16;
    for _ in 0..ATTEMPTS_MAX {
        match follow_once(call, collection) {
            Err(error) if error.kind == Kind::PreconditionFailed => {}
            done => return done.map_err(of_engine),
        }
    }
    Err(crate::sessions::conflict())
}

fn follow_once(call: &Call<'_>, collection: &Collection) -> std::result::Result<(), EngineError> {
    let container = &collection.container;
    let etag = container.etag().to_string();
    let definition = container.definition();
    let mut json = definition.json.clone();
    let mut composite: Vec<Value> = Vec::new();
    let mut spatial: Vec<Value> = Vec::new();
    let mut ttl = None;
    for index in &collection.meta.indexes {
        let path = |path: &str| {
            path.split('.').map(|name| format!("/\"{}\"", name.replace('"', "\\\""))).collect::<String>()
        };
        let plain = index
            .key
            .iter()
            .all(|(path, kind)| kind.is_number() && !path.contains('$') && !matches!(&**path, "_id" | "id"));
        if index.key.len() > 1 && index.key.len() <= 8 && plain && composite.len() < 50 {
            let entry: Vec<Value> = index
                .key
                .iter()
                .map(|(name, kind)| {
                    let down = kind.as_i64().is_some_and(|direction| direction < 0);
                    json!({ "path": path(name), "order": if down { "descending" } else { "ascending" } })
                })
                .collect();
            if !composite.contains(&Value::Array(entry.clone())) {
                composite.push(Value::Array(entry));
            }
        }
        for (name, kind) in index.key.iter() {
            if kind.as_str() == Some("2dsphere") && spatial.len() < 50 {
                let entry = json!({ "path": format!("{}/*", path(name)), "types": ["Point", "LineString", "Polygon", "MultiPolygon"] });
                if !spatial.contains(&entry) {
                    spatial.push(entry);
                }
            }
        }
        if index.key.len() == 1 && index.key.contains("_ts") {
            ttl = index.spec.get("expireAfterSeconds").and_then(Bson::as_i64);
        }
    }
    json["indexingPolicy"]["compositeIndexes"] = composite.into();
    json["indexingPolicy"]["spatialIndexes"] = spatial.into();
    match ttl {
        Some(seconds) => json["defaultTtl"] = if seconds > 0 { seconds.into() } else { (-1).into() },
        None => {
            if let Value::Object(members) = &mut json {
                members.remove("defaultTtl");
            }
        }
    }
    if let Some(rules) = rules_of(&definition, &collection.meta.indexes)? {
        json["itemRules"] = rules.to_json();
    }
    let new = ContainerDefinition::parse(&json, KeyKinds::All)?;
    if new.json == definition.json {
        return Ok(());
    }
    block_on(call.core.account.replace_container(container, new, Some(&etag))).map(drop)
}

/// The rules that indexes ask for: those that are there already keep their numbers. `None`: there never were any.
fn rules_of(
    definition: &ContainerDefinition,
    indexes: &[Index],
) -> std::result::Result<Option<ItemRules>, EngineError> {
    if definition.rules.is_none() && !indexes.iter().any(Index::is_rule) {
        return Ok(None);
    }
    let mut rules = definition.rules.clone().unwrap_or_default();
    rules.item_bytes_max = Some(LARGE_ITEM_BYTES_MAX);
    let wanted: Vec<(Value, &Index)> = indexes
        .iter()
        .filter(|index| index.is_rule())
        .map(|index| (rules::specification(index), index))
        .collect();
    rules
        .rules
        .retain(|rule| rule.host != rules::HOST || wanted.iter().any(|(it, _)| *it == rule.specification));
    for (specification, index) in wanted {
        let known = rules.rules.iter().any(|rule| rule.specification == specification);
        if !known {
            rules.add(rules::HOST, index.unique, index.expire_after_s().is_some(), specification)?;
        }
    }
    Ok(Some(rules))
}
