//! Indexes: kept in the catalog, and as far as the engine has a word for them in the indexing policy of the container.
//!
//! A container indexes every path by itself, so an index of one field costs nothing and is there at once. Indexes of
//! several fields become composite indexes, those of shapes spatial ones, and one with `expireAfterSeconds` on `_ts`
//! the container's time to live. Unique ones and those with `expireAfterSeconds` on another field become rules that the
//! engine holds items to (`collection::rules`), built while writers go on.

use std::sync::Arc;

use orrery_mongo::filter::Filter;
use orrery_mongo::{Bson, Document, Error, Result, doc, error::code, order};

use super::find::Find;
use super::{Call, cursor, hidden, index_policy, options, unique};
use crate::catalog::{Index, Meta};
use crate::collection::Collection;
use crate::reply::Reply;

/// Indexes of one collection.
const INDEXES_MAX: usize = 64;
/// Fields of one index.
const FIELDS_MAX: usize = 32;

const OPTIONS: &[&str] = &[
    "v",
    "key",
    "name",
    "ns",
    "unique",
    "sparse",
    "background",
    "expireAfterSeconds",
    "partialFilterExpression",
    "storageEngine",
    "collation",
    "weights",
    "default_language",
    "language_override",
    "textIndexVersion",
    "2dsphereIndexVersion",
    "bits",
    "min",
    "max",
    "bucketSize",
    "hidden",
    "wildcardProjection",
    "dropDups",
    "prepareUnique",
    "clustered",
    "cosmosSearchOptions",
    "cosmosSearch",
];

pub fn create_indexes(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    let given = match options::required(body, "indexes")? {
        Bson::Array(given) => given.clone(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'createIndexes.indexes' is the wrong type '{}', expected type 'array'",
                other.kind().name()
            )));
        }
    };
    if given.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    let created = call.collection(&name)?.is_none();
    if call.transaction.is_some() && !created && !hidden::is_own(call, &name) {
        return Err(Error::new(
            code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION,
            format!(
                "Cannot create new indexes on existing collection {}.{name} in a multi-document transaction.",
                call.database
            ),
        ));
    }
    let mut specs = Vec::with_capacity(given.len());
    for spec in given.iter() {
        let spec = spec
            .as_document()
            .ok_or_else(|| Error::type_mismatch("the 'indexes' of createIndexes are objects"))?;
        specs.push(read(call, spec)?);
    }
    let target = super::insert::target(call, &name)?;
    let lock = unique::lock(&call.scope(), &target);
    let _turn = lock.lock();
    // As it is now that nobody else changes it.
    let target = call.collection(&name)?.unwrap_or(target);
    let (before, after) = add(call, &target, specs)?;
    let mut reply = doc! {
        "_t" => "CreateIndexesResponse",
        "numIndexesBefore" => before as i32,
        "numIndexesAfter" => after as i32,
        "createdCollectionAutomatically" => created,
    };
    if before == after {
        reply.push("note", "all indexes already exist");
    }
    Ok(reply.into())
}

/// An index as it is kept, out of what a client says.
pub fn read(call: &Call<'_>, spec: &Document) -> Result<Index> {
    let invalid = |text: String| Error::new(code::CANNOT_CREATE_INDEX, text);
    let key = match spec.get("key") {
        Some(Bson::Document(key)) => key.clone(),
        Some(_) => return Err(Error::type_mismatch("The field 'key' must be an object")),
        None => {
            return Err(Error::failed_to_parse(
                "The 'key' field is a required property of an index specification",
            ));
        }
    };
    if key.is_empty() {
        return Err(invalid("Index keys cannot be empty.".to_owned()));
    }
    if key.len() > FIELDS_MAX {
        return Err(Error::new(13103, format!("too many compound keys, at most {FIELDS_MAX}")));
    }
    for (path, kind) in key.iter() {
        if path.is_empty() || path.starts_with('.') || path.ends_with('.') || path.contains("..") {
            return Err(invalid(format!("Index key contains an illegal field name: '{path}'")));
        }
        if path.starts_with('$') && &**path != "$**" && !path.starts_with("$_path") {
            return Err(invalid(format!(
                "Index key contains an illegal field name: field name starts with '$': {path}"
            )));
        }
        match kind {
            Bson::String(plugin) => {
                let known =
                    ["hashed", "text", "2dsphere", "2d", "columnstore", "cosmosSearch", "vector", "wildcard"];
                if !known.contains(&&**plugin) {
                    return Err(invalid(format!("Unknown index plugin '{plugin}'")));
                }
            }
            number if number.is_number() => {
                let zero = !number.is_truthy() || matches!(number, Bson::Double(value) if value.is_nan());
                if zero {
                    return Err(invalid("Values in the index key pattern cannot be 0.".to_owned()));
                }
            }
            other => {
                return Err(invalid(format!(
                    "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
                    other.kind().name()
                )));
            }
        }
    }
    for (option, _) in spec.iter() {
        if !OPTIONS.contains(&&**option) {
            return Err(Error::new(
                code::INVALID_INDEX_SPECIFICATION_OPTION,
                format!("The field '{option}' is not valid for an index specification."),
            ));
        }
    }
    if let Some(seconds) = spec.get("expireAfterSeconds") {
        let fits = seconds.as_i64().is_some_and(|seconds| (-1..=i64::from(i32::MAX)).contains(&seconds));
        if !fits {
            return Err(invalid(
                "TTL index 'expireAfterSeconds' option must be numeric, within 0 and 2147483647".to_owned(),
            ));
        }
        if key.len() > 1 {
            return Err(invalid(
                "TTL indexes are single-field indexes, compound indexes do not support TTL.".to_owned(),
            ));
        }
    }
    if let Some(partial) = spec.get("partialFilterExpression") {
        let partial = partial
            .as_document()
            .ok_or_else(|| Error::type_mismatch("'partialFilterExpression' is an object"))?;
        Filter::parse(partial, &call.context(None)?)?;
        if spec.get("sparse").is_some_and(Bson::is_truthy) {
            return Err(invalid("cannot mix \"partialFilterExpression\" and \"sparse\" options".to_owned()));
        }
    }
    let wildcard = key.iter().any(|(path, _)| path.ends_with("$**"));
    if wildcard && spec.get("unique").is_some_and(Bson::is_truthy) {
        return Err(invalid("Index type 'wildcard' does not support the unique option".to_owned()));
    }
    let hashed = key.iter().any(|(_, kind)| kind.as_str() == Some("hashed"));
    if hashed && spec.get("unique").is_some_and(Bson::is_truthy) {
        return Err(Error::new(
            16764,
            "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
        ));
    }
    let name = match spec.get("name") {
        Some(Bson::String(name)) if !name.is_empty() => name.to_string(),
        Some(Bson::String(_)) => return Err(invalid("index name cannot be empty".to_owned())),
        Some(_) => return Err(Error::type_mismatch("The field 'name' must be a string")),
        None => {
            return Err(Error::failed_to_parse(
                "The 'name' field is a required property of an index specification",
            ));
        }
    };
    if name == "*" {
        return Err(Error::bad_value("The index name '*' is not valid."));
    }
    let mut kept = doc! { "v" => 2, "key" => key.clone(), "name" => name };
    for (option, value) in spec.iter() {
        if !matches!(&**option, "v" | "key" | "name" | "ns" | "dropDups") {
            let falsy = matches!(&**option, "unique" | "sparse" | "hidden") && !value.is_truthy();
            if !falsy {
                kept.push(option.clone(), value.clone());
            }
        }
    }
    if key.iter().any(|(_, kind)| kind.as_str() == Some("text")) {
        if !kept.contains("weights") {
            let weights: Document = key
                .iter()
                .filter(|(_, kind)| kind.as_str() == Some("text"))
                .map(|(path, _)| (path.clone(), Bson::Int32(1)))
                .collect();
            kept.push("weights", weights);
        }
        for (option, value) in [
            ("default_language", Bson::from("english")),
            ("language_override", "language".into()),
            ("textIndexVersion", Bson::Int32(3)),
        ] {
            if !kept.contains(option) {
                kept.push(option, value);
            }
        }
    }
    if key.iter().any(|(_, kind)| kind.as_str() == Some("2dsphere")) && !kept.contains("2dsphereIndexVersion")
    {
        kept.push("2dsphereIndexVersion", 3);
    }
    Index::of_spec(&kept).ok_or_else(|| invalid("the index has no key or name".to_owned()))
}

/// Adds indexes to a collection; how many there were, and are.
pub fn add(call: &Call<'_>, target: &Collection, specs: Vec<Index>) -> Result<(usize, usize)> {
    let core = call.core;
    let before = target.meta.indexes.len() + 1;
    let mut new: Vec<Index> = Vec::new();
    for mut index in specs {
        // Where nothing is said, texts compare in an index as they do in its collection.
        if let Some(collation) = target.meta.options.get("collation")
            && !index.spec.contains("collation")
            && !index.key.iter().any(|(_, kind)| kind.as_str().is_some())
        {
            index.spec.push("collation", collation.clone());
        }
        let is_id = index.key.len() == 1 && index.key.get("_id").is_some_and(|kind| kind.as_i64() == Some(1));
        if is_id {
            continue;
        }
        if index.name == "_id_" {
            return Err(Error::bad_value(
                "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}",
            ));
        }
        let known = target.meta.indexes.iter().chain(&new);
        let mut same = false;
        for other in known {
            let same_key = order::equal((&other.key).into(), (&index.key).into(), None)
                && other.key.iter().zip(index.key.iter()).all(|((a, _), (b, _))| a == b);
            let same_options =
                ["unique", "sparse", "expireAfterSeconds", "partialFilterExpression", "collation"]
                    .iter()
                    .all(|option| match (other.spec.get(option), index.spec.get(option)) {
                        (None, None) => true,
                        (Some(a), Some(b)) => order::equal(a.into(), b.into(), None),
                        _ => false,
                    });
            if other.name == index.name {
                if !same_key {
                    return Err(Error::new(
                        code::INDEX_KEY_SPECS_CONFLICT,
                        format!(
                            "An existing index has the same name as the requested index. When index names are not specified, they are auto generated and can cause conflicts. Please refer to our documentation. Requested index: {}, existing index: {}",
                            super::text::shell(&index.spec.clone().into()),
                            super::text::shell(&other.spec.clone().into())
                        ),
                    ));
                }
                if !same_options {
                    return Err(Error::new(
                        code::INDEX_KEY_SPECS_CONFLICT,
                        format!(
                            "An existing index has the same name as the requested index, with other options: {}",
                            index.name
                        ),
                    ));
                }
                same = true;
            } else if same_key && same_options {
                return Err(Error::new(
                    code::INDEX_OPTIONS_CONFLICT,
                    format!("Index already exists with a different name: {}", other.name),
                ));
            }
        }
        if !same {
            new.push(index);
        }
    }
    if before + new.len() > INDEXES_MAX {
        return Err(Error::new(
            code::CANNOT_CREATE_INDEX,
            format!("add index fails, too many indexes for {}", target.namespace()),
        ));
    }
    check_shard_key(target, &new)?;
    let added = new.len();
    let specs: Vec<Bson> = new.iter().map(|index| index.spec.clone().into()).collect();
    if added > 0 {
        let mut wanted = target.clone();
        let mut meta = Meta::clone(&target.meta);
        meta.indexes.extend(new.iter().cloned());
        wanted.meta = Arc::new(meta);
        index_policy::build(call, target, &wanted, &new)?;
        core.catalog.change(core, &target.database, &target.name, |meta| {
            meta.indexes.extend(new);
            Ok(())
        })?;
        core.changed(
            &target.database,
            &target.name,
            "createIndexes",
            doc! { "indexes" => Bson::array(specs) },
        );
    }
    Ok((before, before + added))
}

/// A unique index holds within a logical partition, so of a sharded collection it names the shard key.
fn check_shard_key(target: &Collection, new: &[Index]) -> Result<()> {
    let Some(path) = target.shard_key() else { return Ok(()) };
    match new.iter().find(|index| index.unique && !index.key.contains(&path)) {
        None => Ok(()),
        Some(index) => Err(Error::new(
            code::CANNOT_CREATE_INDEX,
            format!(
                "cannot create unique index over {} with shard key pattern {{ {path}: 1 }}",
                super::text::shell(&index.key.clone().into())
            ),
        )),
    }
}

pub fn list_indexes(call: &mut Call<'_>) -> Result<Reply> {
    let name = call.collection_name()?.to_owned();
    let missing =
        || Error::new(code::NAMESPACE_NOT_FOUND, format!("ns does not exist: {}.{name}", call.database));
    if call.core.catalog.meta(call.core, call.database, &name)?.is_some_and(|meta| meta.view().is_some()) {
        return Err(Error::new(
            code::COMMAND_NOT_SUPPORTED_ON_VIEW,
            format!("Namespace {}.{name} is a view, not a collection", call.database),
        ));
    }
    if hidden::is_hidden(call, &name)? {
        return Err(missing());
    }
    let collection = call.collection(&name)?.ok_or_else(missing)?;
    let clustered = collection.meta.options.get("clusteredIndex").and_then(Bson::as_document);
    let mut specs = vec![match clustered {
        Some(clustered) => {
            let mut spec = clustered.clone();
            spec.set("clustered", true);
            spec
        }
        None => Index::of_ids(),
    }];
    specs.extend(collection.meta.indexes.iter().map(|index| index.spec.clone()));
    let batch = options::document(call.body, "cursor")?
        .map(|cursor| options::count(cursor, "batchSize"))
        .transpose()?
        .flatten();
    cursor::of_documents(call, format!("{}.{name}", call.database), specs, batch)
}

pub fn drop_indexes(call: &mut Call<'_>) -> Result<Reply> {
    let name = call.collection_name()?.to_owned();
    let missing = || Error::new(code::NAMESPACE_NOT_FOUND, format!("ns not found {}.{name}", call.database));
    let collection = call.collection(&name)?.ok_or_else(missing)?;
    let lock = unique::lock(&call.scope(), &collection);
    let _turn = lock.lock();
    let was = collection.meta.indexes.len() + 1;
    let given = options::required(call.body, "index")?.clone();
    let core = call.core;
    core.catalog.change(core, call.database, &name, |meta| {
        let mut remove = |wanted: &Bson| -> Result<()> {
            let refused = || Error::new(code::INVALID_OPTIONS, "cannot drop _id index");
            let before = meta.indexes.len();
            match wanted {
                Bson::String(star) if &**star == "*" => {
                    meta.indexes.clear();
                    return Ok(());
                }
                Bson::String(id) if &**id == "_id_" => return Err(refused()),
                Bson::String(wanted) => meta.indexes.retain(|index| *index.name != **wanted),
                Bson::Document(key) => {
                    if key.len() == 1 && key.contains("_id") {
                        return Err(refused());
                    }
                    meta.indexes.retain(|index| !order::equal((&index.key).into(), key.into(), None));
                }
                _ => return Err(Error::type_mismatch("'index' is a name, a key or an array of names")),
            }
            match meta.indexes.len() < before {
                true => Ok(()),
                false => Err(Error::new(
                    code::INDEX_NOT_FOUND,
                    format!(
                        "index not found with name [{}]",
                        wanted.as_str().map_or_else(|| super::text::shell(wanted), str::to_owned)
                    ),
                )),
            }
        };
        match &given {
            Bson::Array(all) => all.iter().try_for_each(remove),
            one => remove(one),
        }
    })?;
    if let Some(now) = call.collection(&name)? {
        index_policy::follow(call, &now)?;
        let gone = |index: &&Index| !now.meta.indexes.iter().any(|kept| kept.name == index.name);
        let gone: Vec<Bson> =
            collection.meta.indexes.iter().filter(gone).map(|index| index.spec.clone().into()).collect();
        core.changed(call.database, &name, "dropIndexes", doc! { "indexes" => Bson::array(gone) });
    }
    Ok(doc! { "nIndexesWas" => was as i32 }.into())
}

/// A hint must name an index that is there.
pub fn check_hint(call: &Call<'_>, name: &str, hint: Option<&Bson>) -> Result<()> {
    let bad =
        || Error::bad_value("error processing query: hint provided does not correspond to an existing index");
    let Some(hint) = hint else { return Ok(()) };
    let meta = call.core.catalog.meta(call.core, call.database, name)?.unwrap_or_default();
    let found = match hint {
        Bson::Null => true,
        Bson::String(text) => {
            text.is_empty() || &**text == "_id_" || meta.indexes.iter().any(|index| *index.name == **text)
        }
        Bson::Document(key) => {
            key.is_empty()
                || key.contains("$natural")
                || key.len() == 1 && key.contains("_id")
                || meta.indexes.iter().any(|index| order::equal((&index.key).into(), key.into(), None))
        }
        other => {
            return Err(Error::failed_to_parse(format!(
                "Hint must be a string or an object, not {}",
                other.kind().name()
            )));
        }
    };
    // Of a collection that is not there nothing is read.
    match found || call.collection(name)?.is_none() {
        true => Ok(()),
        false => Err(bad()),
    }
}

/// The key of the index that a hint names.
fn hinted(meta: &Meta, hint: Option<&Bson>) -> Option<Document> {
    let by_id = || doc! { "_id" => 1 };
    match hint? {
        Bson::String(name) if &**name == "_id_" => Some(by_id()),
        Bson::String(name) => {
            meta.indexes.iter().find(|index| *index.name == **name).map(|index| index.key.clone())
        }
        Bson::Document(key) if key.len() == 1 && key.contains("_id") => Some(by_id()),
        Bson::Document(key) => meta
            .indexes
            .iter()
            .find(|index| order::equal((&index.key).into(), key.into(), None))
            .map(|index| index.key.clone()),
        _ => None,
    }
}

/// The order in which documents come out of the index that a hint names, where nobody asked for another and sorting
/// them costs little. Larger collections come as they are read.
pub fn hinted_order(call: &Call<'_>, name: &str, hint: Option<&Bson>) -> Result<Option<Document>> {
    const SORTED_MAX: u64 = 10_000;
    if let Some(Bson::Document(natural)) = hint
        && let Some(direction) = natural.get("$natural")
    {
        return Ok(Some(doc! { "$natural" => direction.clone() }));
    }
    let Some(collection) = call.collection(name)? else { return Ok(None) };
    let plain = |key: &Document| key.iter().all(|(path, kind)| kind.is_number() && !path.contains('$'));
    let key = hinted(&collection.meta, hint).filter(plain);
    Ok(key.filter(|_| collection.container.usage().items <= SORTED_MAX).map(|key| {
        let down = |kind: &Bson| Bson::Int32(if matches!(kind.as_i64(), Some(..=-1)) { -1 } else { 1 });
        key.iter().map(|(path, kind)| (path.clone(), down(kind))).collect()
    }))
}

/// `min` and `max` of an index as a filter, and its order.
pub fn bounded(
    call: &Call<'_>,
    name: &str,
    mut find: Find,
    bounds: (Option<&Document>, Option<&Document>),
    hint: Option<&Bson>,
) -> Result<Find> {
    let (min, max) = bounds;
    if min.is_none() && max.is_none() {
        return Ok(find);
    }
    if hint.is_none() {
        return Err(Error::new(
            51173,
            "When using min()/max() a hint of which index to use must be provided",
        ));
    }
    let meta = call.core.catalog.meta(call.core, call.database, name)?.unwrap_or_default();
    let hinted = hinted(&meta, hint);
    for (bound, what) in [(min, "min"), (max, "max")] {
        let fits = |key: &Document| {
            bound.is_none_or(|bound| bound.iter().map(|(path, _)| path).eq(key.iter().map(|(path, _)| path)))
        };
        if !hinted.as_ref().is_some_and(fits) {
            return Err(Error::new(
                51174,
                format!(
                    "The index chosen is not compatible with min/max: '{what}' has to name its fields in their order"
                ),
            ));
        }
    }
    let mut parts: Vec<Bson> = vec![find.filter.clone().into()];
    for (bound, strict, reached) in [(min, "$gt", "$gte"), (max, "$lt", "$lt")] {
        let Some(bound) = bound else { continue };
        // Before the first field that differs, all are equal.
        let fields: Vec<(&str, &Bson)> = bound.iter().map(|(path, value)| (&**path, value)).collect();
        let mut ways: Vec<Bson> = Vec::new();
        for at in 0..fields.len() {
            let mut way = Document::new();
            for (path, value) in &fields[..at] {
                way.push(*path, doc! { "$eq" => (*value).clone() });
            }
            let operator = if at + 1 == fields.len() { reached } else { strict };
            way.push(fields[at].0, doc! { operator => fields[at].1.clone() });
            ways.push(way.into());
        }
        parts.push(doc! { "$or" => Bson::array(ways) }.into());
    }
    find.filter = doc! { "$and" => Bson::array(parts) };
    Ok(find)
}
