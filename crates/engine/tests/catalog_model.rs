//! The catalog against a model: whatever is created, replaced, deleted and reopened, in whatever order, the account
//! shows what a few maps say it should.

mod catalog_support;

use std::collections::{BTreeMap, BTreeSet};

use catalog_support::{World, definition, wait};
use orrery_engine::{Account, ContainerDefinition, Kind, OfferOwner, Ref, Throughput};
use proptest::prelude::*;
use serde_json::json;

#[derive(Debug, Clone)]
enum Step {
    CreateDatabase(u8, Option<u32>),
    DeleteDatabase(u8),
    CreateContainer(u8, u8, Option<u32>),
    ReplaceContainer(u8, u8, i32),
    DeleteContainer(u8, u8),
    ReplaceOffer(u8, Option<u8>, u32),
    Reopen,
}

/// Few names, so that they meet.
fn step() -> impl Strategy<Value = Step> {
    let name = || 0..3u8;
    let ru = || prop_oneof![Just(None), (4..300u32).prop_map(|hundreds| Some(hundreds * 100))];
    prop_oneof![
        3 => (name(), ru()).prop_map(|(db, ru)| Step::CreateDatabase(db, ru)),
        1 => name().prop_map(Step::DeleteDatabase),
        5 => (name(), name(), ru()).prop_map(|(db, c, ru)| Step::CreateContainer(db, c, ru)),
        2 => (name(), name(), 1..100i32).prop_map(|(db, c, ttl)| Step::ReplaceContainer(db, c, ttl)),
        2 => (name(), name()).prop_map(|(db, c)| Step::DeleteContainer(db, c)),
        2 => (name(), proptest::option::of(name()), 4..300u32).prop_map(|(db, c, h)| Step::ReplaceOffer(db, c, h * 100)),
        2 => Just(Step::Reopen),
    ]
}

#[derive(Debug, Clone, PartialEq)]
struct ModelContainer {
    number: u32,
    ttl: Option<i32>,
    ranges: usize,
    ru: Option<u32>,
}

#[derive(Debug, Clone, PartialEq)]
struct ModelDatabase {
    number: u32,
    ru: Option<u32>,
    containers: BTreeMap<u8, ModelContainer>,
}

#[derive(Default)]
struct Model {
    databases: BTreeMap<u8, ModelDatabase>,
    numbers: BTreeSet<u32>,
    container_numbers: BTreeSet<(u32, u32)>,
}

fn name(kind: &str, index: u8) -> String {
    format!("{kind}{index}")
}

fn defined(container: u8, ttl: Option<i32>) -> ContainerDefinition {
    let mut json = json!({ "id": name("c", container), "partitionKey": { "paths": ["/pk"], "version": 2 } });
    if let Some(ttl) = ttl {
        json["defaultTtl"] = ttl.into();
    }
    definition(json)
}

fn ceiling(offer: Option<std::sync::Arc<orrery_engine::Offer>>) -> Option<u32> {
    offer.map(|offer| offer.throughput.ceiling())
}

/// What the account shows, in the model's terms.
fn shown(account: &Account) -> BTreeMap<u8, ModelDatabase> {
    let index = |name: &str| name.as_bytes().last().expect("a name") - b'0';
    let container = |db: u32, container: &std::sync::Arc<orrery_engine::Container>| ModelContainer {
        number: container.number(),
        ttl: container.definition().default_ttl,
        ranges: container.ranges().len(),
        ru: ceiling(account.offer_of(OfferOwner::Container(db, container.number()))),
    };
    account
        .databases()
        .iter()
        .map(|db| {
            let containers =
                db.containers().iter().map(|c| (index(c.name()), container(db.number, c))).collect();
            let ru = ceiling(account.offer_of(OfferOwner::Database(db.number)));
            (index(&db.name), ModelDatabase { number: db.number, ru, containers })
        })
        .collect()
}

fn apply(account: &Account, model: &mut Model, step: &Step) -> Result<(), TestCaseError> {
    let find = |db: u8| account.database(Ref::Name(&name("d", db)));
    match *step {
        Step::CreateDatabase(db, ru) => {
            let result = wait(account.create_database(&name("d", db), ru.map(Throughput::Manual)));
            if model.databases.contains_key(&db) {
                prop_assert_eq!(result.err().map(|error| error.kind), Some(Kind::AlreadyExists));
            } else {
                let number = result.map_err(|error| TestCaseError::fail(error.message))?.number;
                prop_assert!(model.numbers.insert(number), "a database number came back");
                model.databases.insert(db, ModelDatabase { number, ru, containers: BTreeMap::new() });
            }
        }
        Step::DeleteDatabase(db) => {
            let result = wait(account.delete_database(Ref::Name(&name("d", db)), None));
            prop_assert_eq!(result.is_ok(), model.databases.remove(&db).is_some());
        }
        Step::CreateContainer(db, c, ru) => {
            let Some(owner) = model.databases.get_mut(&db) else { return Ok(()) };
            let database = find(db).map_err(|error| TestCaseError::fail(error.message))?;
            let result =
                wait(account.create_container(&database, defined(c, None), ru.map(Throughput::Manual)));
            if owner.containers.contains_key(&c) {
                prop_assert_eq!(result.err().map(|error| error.kind), Some(Kind::AlreadyExists));
            } else {
                let number = result.map_err(|error| TestCaseError::fail(error.message))?.number();
                prop_assert!(
                    model.container_numbers.insert((owner.number, number)),
                    "a container number came back"
                );
                let own = ru.or(if owner.ru.is_none() { Some(400) } else { None });
                let ranges = own.or(owner.ru).unwrap_or(400).div_ceil(10_000) as usize;
                owner.containers.insert(c, ModelContainer { number, ttl: None, ranges, ru: own });
            }
        }
        Step::ReplaceContainer(db, c, ttl) => {
            let Some(entry) = model.databases.get_mut(&db).and_then(|db| db.containers.get_mut(&c)) else {
                return Ok(());
            };
            let container = find(db).and_then(|db| db.container(Ref::Name(&name("c", c))));
            let container = container.map_err(|error| TestCaseError::fail(error.message))?;
            prop_assert!(wait(account.replace_container(&container, defined(c, Some(ttl)), None)).is_ok());
            entry.ttl = Some(ttl);
        }
        Step::DeleteContainer(db, c) => {
            let Ok(container) = find(db).and_then(|db| db.container(Ref::Name(&name("c", c)))) else {
                prop_assert!(!model.databases.get(&db).is_some_and(|db| db.containers.contains_key(&c)));
                return Ok(());
            };
            prop_assert!(wait(account.delete_container(&container, None)).is_ok());
            let removed = model.databases.get_mut(&db).and_then(|db| db.containers.remove(&c));
            prop_assert!(removed.is_some());
        }
        Step::ReplaceOffer(db, c, ru) => {
            let Some(owner) = model.databases.get_mut(&db) else { return Ok(()) };
            let (key, slot) = match c {
                None => (OfferOwner::Database(owner.number), &mut owner.ru),
                Some(c) => match owner.containers.get_mut(&c) {
                    Some(container) => {
                        (OfferOwner::Container(owner.number, container.number), &mut container.ru)
                    }
                    None => return Ok(()),
                },
            };
            match account.offer_of(key) {
                None => prop_assert_eq!(*slot, None),
                Some(offer) => {
                    prop_assert!(
                        wait(account.replace_offer(offer.number, Throughput::Manual(ru), None)).is_ok()
                    );
                    *slot = Some(ru);
                }
            }
        }
        Step::Reopen => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_catalog_is_what_its_history_says(steps in prop::collection::vec(step(), 1..40)) {
        let world = World::new();
        let mut account = world.open();
        let mut model = Model::default();
        for step in &steps {
            apply(&account, &mut model, step)?;
            if matches!(step, Step::Reopen) {
                drop(account);
                account = world.open();
            }
            prop_assert_eq!(&shown(&account), &model.databases);
        }
        drop(account);
        prop_assert_eq!(&shown(&world.open()), &model.databases);
    }
}
