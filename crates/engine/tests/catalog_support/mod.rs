//! What the catalog's tests share: an account over a store in memory that outlives it, and waiting for a future.

#![allow(dead_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};

pub use orrery_engine::block_on as wait;
use orrery_engine::{Account, ContainerDefinition, Database, EngineConfig, KeyKinds, Ref, Result, TestEnv};
use orrery_storage::{MemoryStore, Store};

pub const NOW_MS: u64 = 1_800_000_000_000;

/// A store that can be opened again after its account is gone.
pub struct World {
    pub store: Arc<dyn Store>,
    pub env: Arc<TestEnv>,
}

impl World {
    pub fn new() -> World {
        World::over(Arc::new(MemoryStore::new()))
    }

    pub fn over(store: Arc<dyn Store>) -> World {
        World { store, env: Arc::new(TestEnv::new(NOW_MS, 42)) }
    }

    pub fn open(&self) -> Arc<Account> {
        self.try_open().expect("the catalog opens")
    }

    pub fn try_open(&self) -> Result<Arc<Account>> {
        Account::open(self.store.clone(), EngineConfig::default(), self.env.clone())
    }
}

pub fn definition(json: serde_json::Value) -> ContainerDefinition {
    ContainerDefinition::parse(&json, KeyKinds::All).expect("a valid definition")
}

/// A container keyed by `/pk`.
pub fn plain(id: &str) -> ContainerDefinition {
    definition(
        serde_json::json!({ "id": id, "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } }),
    )
}

pub fn database(account: &Account, name: &str) -> Arc<Database> {
    account.database(Ref::Name(name)).expect("the database is there")
}

/// Waits for the background; how long it takes is not what is tested.
pub fn eventually(mut happened: impl FnMut() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < Duration::from_secs(20), "it never happened");
        std::thread::sleep(Duration::from_millis(2));
    }
}
