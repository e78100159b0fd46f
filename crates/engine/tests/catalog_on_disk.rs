//! The catalog on the embedded store: a closed and a killed account come back from their files.

mod catalog_support;

use std::sync::Arc;

use catalog_support::{World, database, eventually, plain, wait};
use orrery_engine::testing::PartitionsHere as _;
use orrery_engine::{Ref, Throughput};
use orrery_storage::{EmbeddedOptions, EmbeddedStore};

fn world(directory: &std::path::Path) -> World {
    // The directory's lock goes with the last thread of the account before, which may take a moment to end.
    let mut store = None;
    eventually(|| {
        store = EmbeddedStore::open(directory, EmbeddedOptions::default()).ok();
        store.is_some()
    });
    World::over(Arc::new(store.expect("just opened")))
}

#[test]
fn a_closed_account_comes_back_from_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let number = {
        let account = world(directory.path()).open();
        let db = wait(account.create_database("db", Some(Throughput::Manual(400)))).unwrap();
        wait(account.create_container(&db, plain("a"), None)).unwrap();
        let b = wait(account.create_container(&db, plain("b"), Some(Throughput::Manual(20_000)))).unwrap();
        wait(account.delete_container(&b, None)).unwrap();
        account.close().unwrap();
        account.number()
    };
    let account = world(directory.path()).open();
    assert_eq!(account.number(), number);
    let db = database(&account, "db");
    assert_eq!(db.containers().len(), 1);
    assert_eq!(account.offers().len(), 1);
    let again = wait(account.create_container(&db, plain("b"), None)).unwrap();
    assert_eq!(again.number(), 3);
    assert!(db.container(Ref::Name("a")).unwrap().partition(0).is_ok());
}

#[test]
fn an_account_that_was_never_closed_comes_back_too() {
    let directory = tempfile::tempdir().unwrap();
    {
        let account = world(directory.path()).open();
        let db = wait(account.create_database("db", None)).unwrap();
        wait(account.create_container(&db, plain("a"), None)).unwrap();
    }
    let account = world(directory.path()).open();
    assert_eq!(database(&account, "db").containers().len(), 1);
}
