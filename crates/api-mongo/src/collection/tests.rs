//! Properties: what an index finds, counts, sorts and groups is what looking at every document does.

use std::sync::Arc;

use orrery_engine::{Account, AccountKeys, EngineConfig, Env, TestEnv};
use orrery_mongo::filter::Filter;
use orrery_mongo::memory::Memory;
use orrery_mongo::pipeline::Rows;
use orrery_mongo::sort::Sort;
use orrery_mongo::{Bson, Context, Document, codec, doc, order};
use orrery_storage::MemoryStore;
use proptest::prelude::*;

use super::grouping::Grouping;
use super::{Collection, Scope, Spent};
use crate::commands::insert::insert_documents;
use crate::config::{AuthMode, MongoConfig, ServerVersion};
use crate::service::MongoService;

struct Fixture {
    scope: Scope,
    collection: Collection,
    memory: Arc<Memory>,
}

fn fixture(documents: Vec<Document>, sharded: bool) -> Fixture {
    let env = Arc::new(TestEnv::new(1_700_000_000_000, 7));
    let account =
        Account::open(Arc::new(MemoryStore::new()), EngineConfig::default(), env as Arc<dyn Env>).unwrap();
    let config = MongoConfig {
        account_name: "test".into(),
        keys: AccountKeys::default(),
        auth: AuthMode::Off,
        version: ServerVersion::default(),
        request_time: std::time::Duration::from_secs(60),
        clock_skew_s: 900,
        memory_bytes: 256 << 20,
        memory: orrery_budget::MemoryPool::unlimited(),
    };
    let service = MongoService::new(account, config, |work| work());
    let core = service.core();
    let shard_key = sharded.then_some("s");
    core.catalog.create(&core, "d", "c", shard_key, None, serde_json::Value::Null).unwrap();
    let collection = core.catalog.collection(&core, "d", "c").unwrap().unwrap();
    let scope = Scope { core, spent: Arc::new(Spent::default()), transaction: None, moment: None };
    let memory = Arc::new(Memory::default());
    memory.fill("c", documents);
    let stored = memory.stored("c");
    for outcome in insert_documents(&scope, &collection, &stored, true, &Context::for_tests()).unwrap() {
        outcome.unwrap();
    }
    // What it has noted of their numbers.
    let collection = scope.core.catalog.collection(&scope.core, "d", "c").unwrap().unwrap();
    Fixture { scope, collection, memory }
}

fn rows(mut rows: impl Rows) -> Vec<Document> {
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        all.push(row.into_document().unwrap());
    }
    all
}

fn by_id(mut documents: Vec<Document>) -> Vec<Document> {
    let id = |document: &Document| document.get("_id").cloned().unwrap_or(Bson::Null);
    documents.sort_by(|a, b| order::compare((&id(a)).into(), (&id(b)).into(), None));
    documents
}

fn bytes(document: &Document) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::write_document(document.into(), &mut bytes);
    bytes
}

fn identical(left: &[Document], right: &[Document]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(a, b)| bytes(a) == bytes(b))
}

fn equal(left: &[Document], right: &[Document]) -> bool {
    let same = |(a, b): (&Document, &Document)| order::compare(a.into(), b.into(), None).is_eq();
    left.len() == right.len() && left.iter().zip(right).all(same)
}

fn leaf() -> impl Strategy<Value = Bson> {
    prop_oneof![
        4 => (0..5i32).prop_map(Bson::Int32),
        1 => (0..4i64).prop_map(Bson::Int64),
        1 => (0..8i32).prop_map(|half| Bson::Double(f64::from(half) / 2.0)),
        3 => "[ab]{0,2}".prop_map(Bson::from),
        1 => Just(Bson::Null),
        1 => any::<bool>().prop_map(Bson::Bool),
        2 => (0..3i64).prop_map(Bson::Date),
        2 => (0..3u8).prop_map(|last| Bson::ObjectId([last; 12])),
        1 => (0..2u32).prop_map(|seconds| Bson::Timestamp { seconds, increment: 1 }),
    ]
}

/// What documents of one kind hold, now and then with something odd among it.
fn odd() -> impl Strategy<Value = Bson> {
    prop_oneof![
        Just(Bson::MinKey),
        Just(Bson::MaxKey),
        Just(Bson::Double(f64::NAN)),
        Just(Bson::from("é")),
        proptest::collection::vec(leaf(), 0..3).prop_map(Bson::array),
        leaf().prop_map(|value| doc! { "x" => value }.into()),
        leaf().prop_map(|value| Bson::array(vec![doc! { "x" => value }.into()])),
    ]
}

fn value(odd_part: u32) -> impl Strategy<Value = Bson> {
    prop_oneof![100 - odd_part => leaf(), odd_part => odd()]
}

/// Documents whose members are mostly, or all, plain; some with numbers only.
fn documents() -> impl Strategy<Value = Vec<Document>> {
    let member = |odd_part| proptest::option::weighted(0.8, value(odd_part));
    let numbers = proptest::option::weighted(0.9, (0..5i32).prop_map(Bson::Int32));
    (any::<bool>(), any::<bool>()).prop_flat_map(move |(odd, plain)| {
        let a = if plain { numbers.clone().boxed() } else { member(if odd { 15 } else { 0 }).boxed() };
        let one = (a, member(if odd { 10 } else { 0 }), member(0), 0..3i32).prop_map(|(a, b, x, s)| {
            let mut document = Document::new();
            a.into_iter().for_each(|a| document.push("a", a));
            b.into_iter().for_each(|b| document.push("b", b));
            x.into_iter().for_each(|x| document.push("c", doc! { "x" => x }));
            document.push("s", s);
            document
        });
        proptest::collection::vec(one, 0..40)
    })
}

fn path() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just("a"), 2 => Just("b"), 1 => Just("c.x"), 1 => Just("b.x"), 1 => Just("_id")]
}

fn filter() -> impl Strategy<Value = Document> {
    let comparison =
        prop_oneof![Just("$eq"), Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte"), Just("$ne")];
    let test = prop_oneof![
        2 => leaf(),
        4 => (comparison, value(10)).prop_map(|(name, value)| doc! { name => value }.into()),
        1 => proptest::collection::vec(leaf(), 0..3).prop_map(|values| doc! { "$in" => values }.into()),
        1 => any::<bool>().prop_map(|there| doc! { "$exists" => there }.into()),
        1 => (leaf(), leaf()).prop_map(|(low, high)| doc! { "$gte" => low, "$lt" => high }.into()),
    ];
    let one = (path(), test).prop_map(|(path, test)| {
        let mut filter = Document::new();
        filter.push(path, test);
        filter
    });
    (proptest::collection::vec(one, 0..3), any::<bool>()).prop_map(|(parts, all)| {
        let parts: Vec<Bson> = parts.into_iter().map(Bson::from).collect();
        match parts.len() {
            0 => Document::new(),
            _ => doc! { if all { "$and" } else { "$or" } => parts },
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn an_index_finds_sorts_and_counts_what_there_is(
        documents in documents(),
        sharded in any::<bool>(),
        asked in proptest::collection::vec((filter(), path(), any::<bool>(), 1..12u64), 12),
    ) {
        let fixture = fixture(documents, sharded);
        let (context, scope) = (Context::for_tests(), &fixture.scope);
        for (filter, path, descending, limit) in asked {
            let Ok(parsed) = Filter::parse(&filter, &context) else { continue };
            let model = fixture.memory.find("c", &doc! { "filter" => filter.clone() }, &context).unwrap();
            let found = rows(fixture.collection.find(scope, Some(&parsed), &context, None).unwrap());
            prop_assert!(identical(&by_id(found), &by_id(model.clone())), "find {filter:?}");
            if let Some(count) = fixture.collection.count(scope, Some(&parsed), &context).unwrap() {
                prop_assert_eq!(count, model.len() as u64, "count {:?}", filter);
            }
            let sort = Sort::parse(&doc! { path => if descending { -1 } else { 1 } }).unwrap();
            let first = fixture.collection.find_in_order(scope, Some(&parsed), &sort, limit, &context).unwrap();
            if let Some(first) = first {
                let first = rows(first);
                let key = |one: &Document| sort.key_of(one.into(), &context);
                let mut keys: Vec<_> = model.iter().map(key).collect();
                keys.sort_by(|a, b| sort.compare_keys(a, b, &context));
                keys.truncate(limit as usize);
                prop_assert_eq!(first.len(), keys.len(), "{:?} by {}", filter, path);
                for (row, wanted) in first.iter().zip(&keys) {
                    prop_assert!(
                        sort.compare_keys(&key(row), wanted, &context).is_eq(),
                        "{filter:?} by {path} {descending}: {row:?}, not {wanted:?}"
                    );
                    prop_assert!(model.iter().any(|one| bytes(one) == bytes(row)), "{filter:?}: {row:?}");
                }
            }
        }
    }

    #[test]
    fn groups_of_the_engine_are_those_of_the_pipeline(
        documents in documents(),
        sharded in any::<bool>(),
        asked in proptest::collection::vec((filter(), 0..6usize, path()), 12),
    ) {
        let fixture = fixture(documents, sharded);
        let (context, scope) = (Context::for_tests(), &fixture.scope);
        for (filter, key, path) in asked {
            let Ok(parsed) = Filter::parse(&filter, &context) else { continue };
            let key: Bson = match key {
                0 => Bson::Null,
                1 => "$a".into(),
                2 => "$b".into(),
                3 => "$c.x".into(),
                4 => Bson::Int32(1),
                _ => doc! { "a" => "$a", "s" => "$s" }.into(),
            };
            let of = |name: &str| Bson::from(doc! { name => format!("${path}") });
            let group = doc! {
                "_id" => key,
                "n" => doc! { "$sum" => 1 },
                "sum" => of("$sum"),
                "mean" => of("$avg"),
                "least" => of("$min"),
                "most" => of("$max"),
            };
            let Some(grouping) = Grouping::of(&group.clone().into()) else { continue };
            let Some(groups) = fixture.collection.group(scope, Some(&parsed), &grouping, &context).unwrap() else {
                continue;
            };
            let stages = vec![doc! { "$match" => filter.clone() }.into(), doc! { "$group" => group.clone() }.into()];
            let model = fixture.memory.aggregate(Some("c"), &stages, &context).unwrap();
            // Of equal numbers of different types the first one counts, and partitions have an order of their own.
            let equal = match sharded {
                false => identical(&by_id(groups.clone()), &by_id(model.clone())),
                true => equal(&by_id(groups.clone()), &by_id(model.clone())),
            };
            prop_assert!(
                equal,
                "{filter:?} {group:?}: {groups:?}, not {model:?}"
            );
        }
    }
}

#[test]
fn plain_documents_are_served_by_the_engine() {
    let one =
        |n: i32| doc! { "city" => ["Ulm", "Oslo"][n as usize % 2], "n" => n, "at" => Bson::Date(n.into()) };
    let fixture = fixture((0..100).map(one).collect(), false);
    let (context, scope, collection) = (Context::for_tests(), &fixture.scope, &fixture.collection);
    let filter =
        Filter::parse(&doc! { "city" => "Ulm", "at" => doc! { "$gte" => Bson::Date(50) } }, &context);
    let filter = filter.unwrap();
    assert_eq!(collection.count(scope, Some(&filter), &context).unwrap(), Some(25));
    let sort = Sort::parse(&doc! { "n" => -1 }).unwrap();
    let first =
        collection.find_in_order(scope, Some(&filter), &sort, 2, &context).unwrap().expect("an order");
    let ns: Vec<_> = rows(first).iter().map(|row| row.get("n").and_then(Bson::as_i64)).collect();
    assert_eq!(ns, [Some(98), Some(96)]);
    let group = doc! { "_id" => "$city", "n" => doc! { "$sum" => 1 }, "mean" => doc! { "$avg" => "$n" } };
    let grouping = Grouping::of(&group.into()).expect("a group");
    let groups = collection.group(scope, None, &grouping, &context).unwrap().expect("groups of the engine");
    assert_eq!(groups[0], doc! { "_id" => "Ulm", "n" => 50, "mean" => 49.0 });
}

#[test]
fn what_is_no_number_is_below_none() {
    let documents = [Bson::Double(f64::NAN), Bson::Double(-1e9), Bson::Int32(7)];
    let fixture = fixture(documents.map(|n| doc! { "n" => n }).to_vec(), false);
    let (context, scope) = (Context::for_tests(), &fixture.scope);
    for (operator, count) in [("$lte", 2), ("$lt", 1), ("$gte", 1), ("$gt", 0)] {
        let filter = Filter::parse(&doc! { "n" => doc! { operator => 7 } }, &context).unwrap();
        assert_eq!(
            fixture.collection.count(scope, Some(&filter), &context).unwrap(),
            Some(count),
            "{operator}"
        );
        assert_eq!(
            rows(fixture.collection.find(scope, Some(&filter), &context, None).unwrap()).len(),
            count as usize
        );
    }
}
