//! What the tests of items share: a container over a store that outlives its account, and short ways to ask it things.

#![allow(dead_code)]

use std::sync::Arc;

use bytes::Bytes;
pub use orrery_engine::block_on as wait;
pub use orrery_engine::testing::{Partition, PartitionsHere};
use orrery_engine::{
    Account, ChangesFrom, Container, ContainerDefinition, Durability, EngineConfig, Item, KeyKinds, Kind,
    Operation, Outcome, PageRequest, ReadOptions, Ref, Result, Scope, TestEnv, Throughput, Write, WriteReply,
};
use orrery_model::{KeyComponent, NumberStyle, ParseOptions, PartitionKey, parse_extended_json, parse_json};
use orrery_storage::embedded::{EmbeddedOptions, EmbeddedStore};
use orrery_storage::{Claim, MemoryStore, Space, SpaceId, Store, StoreError, StoreStats};
use serde_json::{Value, json};

pub const NOW_MS: u64 = 1_800_000_000_000;

pub struct Fixture {
    pub store: Arc<dyn Store>,
    pub env: Arc<TestEnv>,
    pub config: EngineConfig,
    pub account: Arc<Account>,
    pub container: Arc<Container>,
    /// Of a store on disk, which is opened again with the account.
    directory: Option<tempfile::TempDir>,
}

impl Fixture {
    /// A container `c` partitioned by `/pk`, with further members of its definition.
    pub fn new(extra: Value) -> Fixture {
        Fixture::over(Arc::new(MemoryStore::new()), EngineConfig::default(), extra, 400)
    }

    /// The same over the embedded store.
    pub fn embedded(extra: Value) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let store = Arc::new(EmbeddedStore::open(directory.path(), EmbeddedOptions::default()).unwrap());
        // Nothing here loses power; waiting for the disk would only make fewer cases.
        let config = EngineConfig { durability: Durability::Relaxed, ..EngineConfig::default() };
        Fixture { directory: Some(directory), ..Fixture::over(store, config, extra, 400) }
    }

    pub fn over(store: Arc<dyn Store>, config: EngineConfig, extra: Value, throughput: u32) -> Fixture {
        let env = Arc::new(TestEnv::new(NOW_MS, 7));
        let account = Account::open(store.clone(), config.clone(), env.clone()).unwrap();
        let database = wait(account.create_database("d", None)).unwrap();
        let definition = definition(extra);
        let throughput = Some(Throughput::Manual(throughput));
        let container = wait(account.create_container(&database, definition, throughput)).unwrap();
        Fixture { store, env, config, account, container, directory: None }
    }

    /// Of what is open already.
    pub fn of(
        store: Arc<dyn Store>,
        env: Arc<TestEnv>,
        config: EngineConfig,
        account: Arc<Account>,
        container: Arc<Container>,
    ) -> Fixture {
        Fixture { store, env, config, account, container, directory: None }
    }

    /// Opens everything again, as after a restart.
    pub fn reopen(&mut self) {
        if let Some(directory) = &self.directory {
            self.account.close().unwrap();
            // The directory is free when the last handle of the store is gone.
            self.store = Arc::new(MemoryStore::new());
            self.account = Account::open(self.store.clone(), self.config.clone(), self.env.clone()).unwrap();
            let database = wait(self.account.create_database("d", None)).unwrap();
            let empty = definition(json!({}));
            self.container = wait(self.account.create_container(&database, empty, None)).unwrap();
            self.store = Arc::new(EmbeddedStore::open(directory.path(), EmbeddedOptions::default()).unwrap());
        }
        self.account = Account::open(self.store.clone(), self.config.clone(), self.env.clone()).unwrap();
        let database = self.account.database(Ref::Name("d")).unwrap();
        self.container = database.container(Ref::Name("c")).unwrap();
    }

    pub fn replace_definition(&self, extra: Value) {
        self.try_replace_definition(extra).unwrap();
    }

    pub fn try_replace_definition(&self, extra: Value) -> Result<()> {
        wait(self.account.replace_container(&self.container, definition(extra), None)).map(drop)
    }

    pub fn only_partition(&self) -> Arc<Partition> {
        self.container.partition(self.container.ranges()[0].id).unwrap()
    }

    pub fn write(&self, pk: &str, write: impl Into<Write>) -> Result<WriteReply> {
        wait(self.container.write_item(&key(pk), write.into()))
    }

    pub fn create(&self, text: &str) -> Result<WriteReply> {
        let (pk, id, document) = parts(text);
        self.write(&pk, Operation::Create { id, document })
    }

    pub fn upsert(&self, text: &str) -> Result<WriteReply> {
        let (pk, id, document) = parts(text);
        self.write(&pk, Operation::Upsert { id, document })
    }

    pub fn replace(&self, text: &str) -> Result<WriteReply> {
        let (pk, id, document) = parts(text);
        self.write(&pk, Operation::Replace { id, document })
    }

    pub fn delete(&self, pk: &str, id: &str) -> Result<WriteReply> {
        self.write(pk, Operation::Delete { id: id.into() })
    }

    pub fn read(&self, pk: &str, id: &str) -> Result<Item> {
        wait(self.container.read_item(&key(pk), id, &ReadOptions::default())).map(|reply| reply.item)
    }

    pub fn text(&self, pk: &str, id: &str) -> Option<String> {
        match self.read(pk, id) {
            Ok(item) => Some(text_of(&item)),
            Err(error) if error.kind == Kind::NotFound => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    /// All items, in one page.
    pub fn try_items(&self) -> Result<Vec<Item>> {
        let page = wait(self.container.read_feed(&Scope::All, &PageRequest::new(100_000)))?;
        assert!(page.continuation.is_none());
        Ok(page.items)
    }

    /// All changes of a scope, in one page, and the LSN that they lead to.
    pub fn try_changes(&self, scope: &Scope) -> Result<(Vec<Item>, u64)> {
        let (from, page) = (ChangesFrom::Beginning, PageRequest::new(100_000));
        let page = wait(self.container.read_changes(scope, from, &page))?;
        Ok((page.items, page.lsn))
    }

    /// The ids of a whole listing, read in pages.
    pub fn list(&self, scope: &Scope, page_items: usize) -> Vec<String> {
        let mut ids = Vec::new();
        let mut page = PageRequest::new(page_items);
        loop {
            let found = wait(self.container.read_feed(scope, &page)).unwrap();
            assert!(found.items.len() <= page_items);
            ids.extend(found.items.iter().map(|item| item.id().to_owned()));
            match found.continuation {
                Some(next) => page.continuation = Some(next),
                None => return ids,
            }
        }
    }

    /// Everything that is due in the background, now.
    /// The account's own sweeper may be doing the same, so only what is left afterwards can be counted.
    pub fn sweep(&self) {
        self.try_sweep().unwrap();
    }

    pub fn try_sweep(&self) -> Result<()> {
        for partition in self.container.partitions()? {
            partition.definition_changed();
            loop {
                let done = partition.upkeep()?;
                if !done.more && !done.linking {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Items in all partitions, each of which can be opened.
    pub fn try_stored_items(&self) -> Result<u64> {
        Ok(self.container.partitions()?.iter().map(|partition| partition.usage().items).sum())
    }

    pub fn stored_items(&self) -> u64 {
        self.container.usage().items
    }
}

pub fn definition(extra: Value) -> ContainerDefinition {
    let mut json = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    for (name, value) in extra.as_object().unwrap() {
        if value.is_null() {
            json.as_object_mut().unwrap().remove(name);
        } else {
            json[name] = value.clone();
        }
    }
    ContainerDefinition::parse(&json, KeyKinds::All).unwrap()
}

pub fn key(pk: &str) -> PartitionKey {
    PartitionKey([KeyComponent::String(pk.to_owned())].into_iter().collect())
}

pub fn document(text: &str) -> Bytes {
    // Names with a dollar stand for values that other APIs store.
    let parse = if text.contains("\"$") { parse_extended_json } else { parse_json };
    parse(text.as_bytes(), &ParseOptions::default()).unwrap().into()
}

/// Partition key, id and stored form of an item.
pub fn parts(text: &str) -> (String, String, Bytes) {
    let json: Value = serde_json::from_str(text).unwrap();
    let member = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    (member("pk"), member("id"), document(text))
}

pub fn text_of(item: &Item) -> String {
    let mut out = Vec::new();
    item.body().write_json(&mut out, NumberStyle::Item);
    String::from_utf8(out).unwrap()
}

pub fn kind<T>(result: Result<T>) -> Kind {
    match result {
        Ok(_) => panic!("succeeded"),
        Err(error) => error.kind,
    }
}

pub fn outcome(result: Result<WriteReply>) -> Outcome {
    result.unwrap().outcome
}

/// Lets a store be looked at after the decorator around it has failed.
#[derive(Clone)]
pub struct Handle(pub Arc<MemoryStore>);

impl Store for Handle {
    fn claim_space(&self, id: SpaceId, claim: Claim) -> Result<Arc<dyn Space>, StoreError> {
        self.0.claim_space(id, claim)
    }
    fn drop_space(&self, id: SpaceId) -> Result<(), StoreError> {
        self.0.drop_space(id)
    }
    fn blocking(&self) -> bool {
        self.0.blocking()
    }
    fn stats(&self) -> StoreStats {
        self.0.stats()
    }
    fn close(&self) -> Result<(), StoreError> {
        self.0.close()
    }
}
