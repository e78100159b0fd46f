//! What containers have no word for: options and indexes of collections, views, users.
//!
//! Kept as items of a container `$mongo` of each database, made when there is something to keep. Read once, and then
//! changed together with what is kept in memory; each change is bound to the version that it was made from.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use orrery_engine::{
    Container, ContainerDefinition, Database, ItemRules, KeyKinds, Kind, LARGE_ITEM_BYTES_MAX, Operation,
    PageRequest, Ref, Scope, Throughput, Write, block_on,
};
use orrery_model::{DocWriter, PartitionKey};
use orrery_mongo::{Bson, Document, Error, Result, ValueRef, codec, doc, error::code};
use parking_lot::Mutex;

use crate::collection::Collection;
use crate::errors::of_engine;
use crate::service::Core;

/// The container of a database that holds all this.
pub const SYSTEM_CONTAINER: &str = "$mongo";
/// Entries of one database.
const ENTRIES_MAX: usize = 20_000;
/// Databases that are kept in memory.
const DATABASES_MAX: usize = 1_000;

/// How long change streams can be resumed.
const WATCHED_MINUTES: u32 = 24 * 60;

const COLLECTION: &str = "c:";
const USER: &str = "u:";
const VALUE: &str = "value";

/// One index of a collection.
#[derive(Clone, Debug)]
pub struct Index {
    pub name: String,
    pub key: Document,
    /// All that was said about it, as `listIndexes` shows it.
    pub spec: Document,
    pub unique: bool,
    pub sparse: bool,
    pub partial: Option<Document>,
}

impl Index {
    pub fn of_spec(spec: &Document) -> Option<Index> {
        Some(Index {
            name: spec.get("name")?.as_str()?.to_owned(),
            key: spec.get("key")?.as_document()?.clone(),
            unique: spec.get("unique").is_some_and(Bson::is_truthy),
            sparse: spec.get("sparse").is_some_and(Bson::is_truthy),
            partial: spec.get("partialFilterExpression").and_then(Bson::as_document).cloned(),
            spec: spec.clone(),
        })
    }

    /// How long after a date of its documents these are removed. `_ts` is the container's own time to live.
    pub fn expire_after_s(&self) -> Option<i64> {
        self.key.first().filter(|(path, _)| self.key.len() == 1 && &***path != "_ts")?;
        match self.spec.get("expireAfterSeconds")? {
            // What MongoDB makes of it.
            Bson::Double(value) if value.is_nan() => Some(i64::from(i32::MAX)),
            Bson::Double(value) => Some(*value as i64),
            other => other.as_i64(),
        }
    }

    /// Whether the engine holds items to it.
    pub fn is_rule(&self) -> bool {
        self.unique || self.expire_after_s().is_some()
    }

    /// The index that every collection has.
    pub fn of_ids() -> Document {
        doc! { "v" => 2, "key" => doc! { "_id" => 1 }, "name" => "_id_" }
    }
}

/// What is known of a collection or a view beside its container.
#[derive(Clone, Debug, Default)]
pub struct Meta {
    /// As they were given when it was made.
    pub options: Document,
    pub indexes: Vec<Index>,
    /// Decimals may be among its values, which SQL does not compare with other numbers.
    pub decimals: bool,
    /// Integers of 64 bits may be among its values: what is computed of them is as wide.
    pub longs: bool,
}

impl Meta {
    fn of(value: &Document) -> Meta {
        let indexes = value.get("indexes").and_then(Bson::as_array).unwrap_or_default();
        Meta {
            options: value.get("options").and_then(Bson::as_document).cloned().unwrap_or_default(),
            indexes: indexes.iter().filter_map(Bson::as_document).filter_map(Index::of_spec).collect(),
            decimals: value.get("decimals").is_some_and(Bson::is_truthy),
            longs: value.get("longs").is_some_and(Bson::is_truthy),
        }
    }

    fn to_document(&self) -> Document {
        let indexes: Vec<Bson> = self.indexes.iter().map(|index| index.spec.clone().into()).collect();
        doc! {
            "options" => self.options.clone(),
            "indexes" => Bson::array(indexes),
            "decimals" => self.decimals,
            "longs" => self.longs,
        }
    }

    /// What a view is of, and its pipeline.
    pub fn view(&self) -> Option<(String, Vec<Bson>)> {
        let on = self.options.get("viewOn")?.as_str()?.to_owned();
        let pipeline = self.options.get("pipeline").and_then(Bson::as_array).unwrap_or_default().to_vec();
        Some((on, pipeline))
    }

    pub fn is_capped(&self) -> bool {
        self.options.get("capped").is_some_and(Bson::is_truthy)
    }

    pub fn has_unique(&self) -> bool {
        self.indexes.iter().any(|index| index.unique)
    }
}

/// The entries of one database.
#[derive(Clone, Default)]
struct Entries {
    values: BTreeMap<String, (Document, String)>,
    metas: HashMap<String, Arc<Meta>>,
}

#[derive(Default)]
pub struct Catalog {
    /// By the number of a database.
    known: Mutex<HashMap<u32, Arc<Entries>>>,
    /// Held by whoever changes something.
    changing: Mutex<()>,
}

/// What a collection is called as a container: names may hold what divides the path of a URL.
pub fn container_name(collection: &str) -> String {
    let mut name = String::with_capacity(collection.len());
    for character in collection.chars() {
        match character {
            '/' | '\\' | '?' | '#' | '%' => name.push_str(&format!("%{:02X}", u32::from(character))),
            character if character.is_control() => name.push_str(&format!("%{:02X}", u32::from(character))),
            other => name.push(other),
        }
    }
    if name.ends_with(' ') {
        name.pop();
        name.push_str("%20");
    }
    name
}

/// The name of the collection that a container is.
pub fn collection_name(container: &str) -> String {
    let mut name = String::with_capacity(container.len());
    let mut rest = container;
    while let Some(at) = rest.find('%') {
        name.push_str(&rest[..at]);
        let escaped = rest.get(at + 1..at + 3).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match escaped.and_then(char::from_u32) {
            Some(character) => {
                name.push(character);
                rest = &rest[at + 3..];
            }
            None => {
                name.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    name.push_str(rest);
    name
}

/// Whether a container is no collection of a client.
fn is_hidden(container: &str) -> bool {
    container.starts_with('$')
}

impl Catalog {
    pub fn database(&self, core: &Core, name: &str) -> Option<Arc<Database>> {
        core.account.database(Ref::Name(name)).ok()
    }

    /// The collections of a database, by name.
    pub fn collections(&self, core: &Core, name: &str) -> Result<Vec<Listed>> {
        let Some(database) = self.database(core, name) else { return Ok(Vec::new()) };
        let entries = self.entries(&database)?;
        let mut listed: Vec<Listed> = Vec::new();
        for container in database.containers() {
            if !is_hidden(container.name()) {
                let name = collection_name(container.name());
                let meta = entries.metas.get(&name).cloned().unwrap_or_default();
                listed.push(Listed { name, container: Some(container), meta });
            }
        }
        for (name, meta) in &entries.metas {
            if meta.view().is_some() {
                listed.push(Listed { name: name.clone(), container: None, meta: meta.clone() });
            }
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listed)
    }

    /// A collection, if there is one.
    pub fn collection(&self, core: &Core, database: &str, name: &str) -> Result<Option<Collection>> {
        let Some(found) = self.database(core, database) else { return Ok(None) };
        let Ok(container) = found.container(Ref::Name(&container_name(name))) else { return Ok(None) };
        let meta = self.entries(&found)?.metas.get(name).cloned().unwrap_or_default();
        Ok(Some(Collection { database: database.into(), name: name.into(), container, meta }))
    }

    pub fn meta(&self, core: &Core, database: &str, name: &str) -> Result<Option<Arc<Meta>>> {
        let Some(found) = self.database(core, database) else { return Ok(None) };
        Ok(self.entries(&found)?.metas.get(name).cloned())
    }

    /// A collection, made if it is not there.
    pub fn ensure(&self, core: &Core, database: &str, name: &str) -> Result<Collection> {
        if let Some(collection) = self.collection(core, database, name)? {
            return Ok(collection);
        }
        match self.create(core, database, name, None, None, serde_json::Value::Null) {
            // Somebody else was faster.
            Err(error) if error.code == code::NAMESPACE_EXISTS => {}
            made => drop(made?),
        }
        self.found(core, database, name)
    }

    fn found(&self, core: &Core, database: &str, name: &str) -> Result<Collection> {
        let gone = || Error::new(code::NAMESPACE_NOT_FOUND, format!("ns not found {database}.{name}"));
        self.collection(core, database, name)?.ok_or_else(gone)
    }

    /// The database, made if it is not there.
    pub fn ensure_database(&self, core: &Core, name: &str) -> Result<Arc<Database>> {
        check_database(name)?;
        if let Some(found) = self.database(core, name) {
            return Ok(found);
        }
        // Names that differ in case alone are one on some systems.
        let other = core.account.databases().into_iter().find(|known| known.name.eq_ignore_ascii_case(name));
        if let Some(other) = other {
            return Err(Error::new(
                13297,
                format!(
                    "db already exists with different case already have: [{}] trying to create [{name}]",
                    other.name
                ),
            ));
        }
        match block_on(core.account.create_database(name, None)) {
            Err(error) if error.kind == Kind::AlreadyExists => {
                core.account.database(Ref::Name(name)).map_err(of_engine)
            }
            made => made.map_err(of_engine),
        }
    }

    /// Makes a container for a collection.
    pub fn create(
        &self,
        core: &Core,
        database: &str,
        name: &str,
        shard_key: Option<&str>,
        throughput: Option<Throughput>,
        indexing: serde_json::Value,
    ) -> Result<Arc<Container>> {
        check_collection(database, name)?;
        let database = self.ensure_database(core, database)?;
        if self.entries(&database)?.metas.get(name).is_some_and(|meta| meta.view().is_some()) {
            return Err(exists(&database.name, name));
        }
        let mut definition = serde_json::json!({ "id": container_name(name) });
        let rules = ItemRules { item_bytes_max: Some(LARGE_ITEM_BYTES_MAX), ..ItemRules::default() };
        definition["itemRules"] = rules.to_json();
        if let Some(path) = shard_key {
            let path: String =
                path.split('.').map(|part| format!("/\"{}\"", part.replace('"', "\\\""))).collect();
            definition["partitionKey"] = serde_json::json!({ "paths": [path], "kind": "Hash", "version": 2 });
        }
        if core.watched.load(std::sync::atomic::Ordering::Relaxed) {
            definition["changeFeedPolicy"] = crate::catalog::watched_policy();
        }
        if !indexing.is_null() {
            definition["indexingPolicy"] = indexing;
        }
        let definition = ContainerDefinition::parse(&definition, KeyKinds::All).map_err(of_engine)?;
        // What was said about an earlier collection of the name does not hold for this one.
        self.forget(core, &database, COLLECTION, name)?;
        match block_on(core.account.create_container(&database, definition, throughput)) {
            Err(error) if error.kind == Kind::AlreadyExists => Err(exists(&database.name, name)),
            made => made.map_err(of_engine),
        }
    }

    pub fn drop(&self, core: &Core, database: &str, name: &str) -> Result<()> {
        let Some(found) = self.database(core, database) else { return Ok(()) };
        if let Ok(container) = found.container(Ref::Name(&container_name(name))) {
            match block_on(core.account.delete_container(&container, None)) {
                Err(error) if error.kind == Kind::NotFound => {}
                done => done.map_err(of_engine)?,
            }
        }
        self.forget(core, &found, COLLECTION, name)
    }

    pub fn drop_database(&self, core: &Core, name: &str) -> Result<bool> {
        let Some(found) = self.database(core, name) else { return Ok(false) };
        self.known.lock().remove(&found.number);
        match block_on(core.account.delete_database(Ref::Name(name), None)) {
            Err(error) if error.kind == Kind::NotFound => Ok(false),
            done => done.map(|()| true).map_err(of_engine),
        }
    }

    /// Changes what is known of a collection or view; what `change` makes of it is kept.
    pub fn change(
        &self,
        core: &Core,
        database: &str,
        name: &str,
        change: impl FnOnce(&mut Meta) -> Result<()>,
    ) -> Result<Arc<Meta>> {
        let database = self.ensure_database(core, database)?;
        let _changing = self.changing.lock();
        let entries = self.entries(&database)?;
        let mut meta = entries.metas.get(name).map(|meta| Meta::clone(meta)).unwrap_or_default();
        change(&mut meta)?;
        self.store(core, &database, &format!("{COLLECTION}{name}"), Some(meta.to_document()))?;
        Ok(Arc::new(meta))
    }

    /// Users of a database.
    pub fn users(&self, core: &Core, database: &str) -> Result<Vec<Document>> {
        let Some(found) = self.database(core, database) else { return Ok(Vec::new()) };
        let entries = self.entries(&found)?;
        Ok(entries
            .values
            .iter()
            .filter(|(id, _)| id.starts_with(USER))
            .map(|(_, (value, _))| value.clone())
            .collect())
    }

    pub fn user(&self, core: &Core, database: &str, user: &str) -> Result<Option<Document>> {
        let Some(found) = self.database(core, database) else { return Ok(None) };
        Ok(self.entries(&found)?.values.get(&format!("{USER}{user}")).map(|(value, _)| value.clone()))
    }

    /// Keeps a user, or takes it away.
    pub fn set_user(&self, core: &Core, database: &str, user: &str, value: Option<Document>) -> Result<()> {
        let database = self.ensure_database(core, database)?;
        let _changing = self.changing.lock();
        self.store(core, &database, &format!("{USER}{user}"), value)
    }

    fn forget(&self, core: &Core, database: &Arc<Database>, kind: &str, name: &str) -> Result<()> {
        let id = format!("{kind}{name}");
        let _changing = self.changing.lock();
        if self.entries(database)?.values.contains_key(&id) {
            self.store(core, database, &id, None)?;
        }
        Ok(())
    }

    fn entries(&self, database: &Arc<Database>) -> Result<Arc<Entries>> {
        if let Some(known) = self.known.lock().get(&database.number) {
            return Ok(known.clone());
        }
        let mut entries = Entries::default();
        if let Ok(container) = database.container(Ref::Name(SYSTEM_CONTAINER)) {
            let mut page = PageRequest::new(1_000);
            loop {
                let read = block_on(container.read_feed(&Scope::All, &page)).map_err(of_engine)?;
                for item in &read.items {
                    let value = item.body().get(VALUE).map(|value| ValueRef::Stored(value).to_document());
                    entries.put(item.id(), value.unwrap_or_default(), item.etag.to_string());
                }
                match read.continuation {
                    Some(next) if entries.values.len() < ENTRIES_MAX => page.continuation = Some(next),
                    _ => break,
                }
            }
        }
        let entries = Arc::new(entries);
        let mut known = self.known.lock();
        if known.len() >= DATABASES_MAX {
            known.clear();
        }
        known.insert(database.number, entries.clone());
        Ok(entries)
    }

    /// Writes or removes an entry, in the container first. The caller holds the lock for changes.
    fn store(&self, core: &Core, database: &Arc<Database>, id: &str, value: Option<Document>) -> Result<()> {
        let mut entries = Entries::clone(&*self.entries(database)?);
        let container = match database.container(Ref::Name(SYSTEM_CONTAINER)) {
            Ok(container) => container,
            Err(_) if value.is_none() => return Ok(()),
            Err(_) => {
                let definition = serde_json::json!({ "id": SYSTEM_CONTAINER, "indexingPolicy": { "indexingMode": "none" } });
                let definition = ContainerDefinition::parse(&definition, KeyKinds::All).map_err(of_engine)?;
                match block_on(core.account.create_container(database, definition, None)) {
                    Err(error) if error.kind == Kind::AlreadyExists => {
                        database.container(Ref::Name(SYSTEM_CONTAINER)).map_err(of_engine)?
                    }
                    made => made.map_err(of_engine)?,
                }
            }
        };
        if entries.values.len() >= ENTRIES_MAX && value.is_some() {
            return Err(Error::new(
                code::OPERATION_FAILED,
                format!("a database describes at most {ENTRIES_MAX} collections and users"),
            ));
        }
        let known = entries.values.get(id).map(|(_, etag)| etag.clone());
        let write = match &value {
            Some(value) => {
                let document = item(id, value);
                match known {
                    Some(etag) => {
                        Write::new(Operation::Replace { id: id.to_owned(), document }).if_match(etag)
                    }
                    None => Write::new(Operation::Create { id: id.to_owned(), document }),
                }
            }
            None => Write::new(Operation::Delete { id: id.to_owned() }),
        };
        let written = block_on(container.write_item(&PartitionKey::default(), write));
        match (written, value) {
            (Ok(reply), Some(value)) => {
                let etag = reply.item.map(|item| item.etag.to_string()).unwrap_or_default();
                entries.put(id, value, etag);
            }
            (Ok(_), None) => entries.remove(id),
            (Err(error), None) if error.kind == Kind::NotFound => entries.remove(id),
            (Err(error), _) => {
                // What is known here is not what is there: it is read again.
                self.known.lock().remove(&database.number);
                return Err(of_engine(error));
            }
        }
        self.known.lock().insert(database.number, Arc::new(entries));
        Ok(())
    }
}

/// What change streams need of a container: all versions, and what was before, for a while.
pub fn watched_policy() -> serde_json::Value {
    serde_json::json!({ "retentionDuration": WATCHED_MINUTES, "previousImages": true })
}

/// A collection or view, as lists show it.
pub struct Listed {
    pub name: String,
    /// A view has none.
    pub container: Option<Arc<Container>>,
    pub meta: Arc<Meta>,
}

impl Entries {
    fn put(&mut self, id: &str, value: Document, etag: String) {
        if let Some(name) = id.strip_prefix(COLLECTION) {
            self.metas.insert(name.to_owned(), Arc::new(Meta::of(&value)));
        }
        self.values.insert(id.to_owned(), (value, etag));
    }

    fn remove(&mut self, id: &str) {
        if let Some(name) = id.strip_prefix(COLLECTION) {
            self.metas.remove(name);
        }
        self.values.remove(id);
    }
}

fn item(id: &str, value: &Document) -> Bytes {
    let mut writer = DocWriter::keeping_widths(256);
    writer.begin_object();
    writer.key("id");
    writer.string(id);
    writer.key(VALUE);
    codec::write_stored(ValueRef::OwnedDocument(value), &mut writer);
    writer.end_object();
    Bytes::from(writer.finish())
}

pub fn exists(database: &str, name: &str) -> Error {
    Error::new(code::NAMESPACE_EXISTS, format!("Collection {database}.{name} already exists."))
}

pub fn check_database(name: &str) -> Result<()> {
    let refused = name.is_empty()
        || name.len() > 63
        || name.chars().any(|character| {
            matches!(character, '/' | '\\' | '.' | ' ' | '"' | '$' | '\0' | '#' | '?')
                || character.is_control()
        });
    match refused {
        true => Err(Error::new(code::INVALID_NAMESPACE, format!("Invalid database name: '{name}'"))),
        false => Ok(()),
    }
}

pub fn check_collection(database: &str, name: &str) -> Result<()> {
    check_database(database)?;
    let refused = name.is_empty()
        || name.contains('\0')
        || name.starts_with('.')
        || name.ends_with('.')
        || name.contains("..")
        || name.contains('$')
        || name.len() > 235;
    match refused {
        true => Err(Error::new(code::INVALID_NAMESPACE, format!("Invalid collection name: '{name}'"))),
        false => Ok(()),
    }
}
