//! The catalog against a model: whatever is created, replaced, deleted and reopened, in whatever order, the account
//! shows what a few maps say it should. Over a store that fails and comes back, a change that was refused for now has
//! changed nothing, one of unknown outcome is there or not, and handles stay the same either way.

mod catalog_support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use catalog_support::{World, definition, wait};
use orrery_engine::{Account, ContainerDefinition, Kind, OfferOwner, Ref, Throughput};
use orrery_storage::MemoryStore;
use orrery_storage::doubles::{FaultRates, Flaky};
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

type Shown = BTreeMap<u8, ModelDatabase>;

/// Asks for a change. `None`: there is nothing to ask for.
fn perform(account: &Account, step: &Step) -> Option<Result<(), Kind>> {
    let find = |db: u8| account.database(Ref::Name(&name("d", db))).ok();
    let find_in = |db: u8, c: u8| find(db)?.container(Ref::Name(&name("c", c))).ok();
    let result = match *step {
        Step::CreateDatabase(db, ru) => {
            wait(account.create_database(&name("d", db), ru.map(Throughput::Manual))).map(drop)
        }
        Step::DeleteDatabase(db) => wait(account.delete_database(Ref::Name(&name("d", db)), None)),
        Step::CreateContainer(db, c, ru) => {
            let ru = ru.map(Throughput::Manual);
            wait(account.create_container(&find(db)?, defined(c, None), ru)).map(drop)
        }
        Step::ReplaceContainer(db, c, ttl) => {
            wait(account.replace_container(&find_in(db, c)?, defined(c, Some(ttl)), None)).map(drop)
        }
        Step::DeleteContainer(db, c) => wait(account.delete_container(&find_in(db, c)?, None)),
        Step::ReplaceOffer(db, c, ru) => {
            let owner = match c {
                None => OfferOwner::Database(find(db)?.number),
                Some(c) => OfferOwner::Container(find(db)?.number, find_in(db, c)?.number()),
            };
            let offer = account.offer_of(owner)?;
            wait(account.replace_offer(offer.number, Throughput::Manual(ru), None)).map(drop)
        }
        Step::Reopen => return None,
    };
    Some(result.map_err(|error| error.kind))
}

/// What the account shows once a change was made. Numbers that it gives are taken from what it does show.
fn made(before: &Shown, step: &Step, shown: &Shown) -> Option<Shown> {
    let mut after = before.clone();
    match *step {
        Step::CreateDatabase(db, ru) => {
            let number = shown.get(&db)?.number;
            after.entry(db).or_insert(ModelDatabase { number, ru, containers: BTreeMap::new() });
        }
        Step::DeleteDatabase(db) => drop(after.remove(&db)),
        Step::CreateContainer(db, c, ru) => {
            let owner = after.get_mut(&db)?;
            let number = shown.get(&db)?.containers.get(&c)?.number;
            let own = ru.or(if owner.ru.is_none() { Some(400) } else { None });
            let ranges = own.or(owner.ru).unwrap_or(400).div_ceil(10_000) as usize;
            owner.containers.entry(c).or_insert(ModelContainer { number, ttl: None, ranges, ru: own });
        }
        Step::ReplaceContainer(db, c, ttl) => after.get_mut(&db)?.containers.get_mut(&c)?.ttl = Some(ttl),
        Step::DeleteContainer(db, c) => drop(after.get_mut(&db)?.containers.remove(&c)),
        Step::ReplaceOffer(db, None, ru) => after.get_mut(&db)?.ru = Some(ru),
        Step::ReplaceOffer(db, Some(c), ru) => after.get_mut(&db)?.containers.get_mut(&c)?.ru = Some(ru),
        Step::Reopen => {}
    }
    Some(after)
}

/// Waits until the catalog knows what became of everything: it can be asked for a change again.
fn until_ready(account: &Account) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match wait(account.replace_offer(u32::MAX, Throughput::Manual(400), None)).map_err(|error| error.kind)
        {
            Err(Kind::NotFound) => return,
            Err(Kind::Unavailable) => std::thread::sleep(Duration::from_millis(1)),
            result => panic!("{:?}", result.err()),
        }
        assert!(Instant::now() < deadline, "the store comes back and the catalog does not");
    }
}

fn handles(account: &Account) -> Vec<(u32, u32, Arc<orrery_engine::Container>)> {
    let databases = account.databases();
    let of = |db: &Arc<orrery_engine::Database>| {
        let number = db.number;
        db.containers().into_iter().map(move |container| (number, container.number(), container))
    };
    databases.iter().flat_map(of).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_catalog_whose_store_fails_and_comes_back_is_what_it_was_told_or_could_not_be_told(
        seed in any::<u64>(),
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let store = Flaky::new(MemoryStore::new(), seed);
        let line = store.line();
        let rates = FaultRates { commits: 200, claims: 250, hangs: 20, hang_max: Duration::from_millis(2) };
        let world = World::over(Arc::new(store));
        let mut account = world.open();
        line.set(rates);
        for step in &steps {
            if matches!(step, Step::Reopen) {
                let before = shown(&account);
                line.set(FaultRates::default());
                drop(account);
                account = world.open();
                prop_assert_eq!(shown(&account), before);
                line.set(rates);
                continue;
            }
            let mut again = true;
            while again {
                again = false;
                let (before, held) = (shown(&account), handles(&account));
                let Some(told) = perform(&account, step) else { break };
                until_ready(&account);
                let after = shown(&account);
                let expected = made(&before, step, &after);
                match told {
                    Ok(()) => prop_assert_eq!(Some(&after), expected.as_ref(), "{:?}", step),
                    Err(Kind::OutcomeUnknown) if after == before => {}
                    Err(Kind::OutcomeUnknown) => {
                        prop_assert_eq!(Some(&after), expected.as_ref(), "{:?}", step)
                    }
                    Err(kind) => {
                        prop_assert_eq!(&after, &before, "{:?}: {:?}", step, kind);
                        again = kind == Kind::Unavailable;
                        prop_assert!(again || matches!(kind, Kind::AlreadyExists | Kind::NotFound), "{:?}", kind);
                    }
                }
                // Whoever holds a container that is still there holds the one that is found.
                let now = handles(&account);
                for (database, number, container) in &held {
                    let found = now.iter().find(|found| (found.0, found.1) == (*database, *number));
                    prop_assert!(found.is_none_or(|found| Arc::ptr_eq(&found.2, container)), "{:?}", step);
                    prop_assert_eq!(found.is_none(), container.core().is_deleted(), "{:?}", step);
                }
            }
        }
        line.set(FaultRates::default());
        until_ready(&account);
        let last = shown(&account);
        drop(account);
        prop_assert_eq!(shown(&world.open()), last);
    }
}
