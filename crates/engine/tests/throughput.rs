//! Budgets at work: what a container, a database and a key may spend, by a clock that the test moves.

use std::sync::Arc;

use orrery_engine::block_on as wait;
use orrery_engine::offer::OfferChange;
use orrery_engine::{
    Account, Container, ContainerDefinition, EngineConfig, KeyKinds, Kind, OfferOwner, Operation,
    ReadOptions, RequestClass, TestEnv, Throughput, Write,
};
use orrery_model::{KeyComponent, ParseOptions, PartitionKey, parse_json};
use orrery_storage::MemoryStore;

struct Bench {
    env: Arc<TestEnv>,
    account: Arc<Account>,
}

impl Bench {
    fn new(config: EngineConfig) -> Bench {
        let env = Arc::new(TestEnv::new(1_000_000, 7));
        let config = EngineConfig { throttling: true.into(), ..config };
        let account = Account::open(Arc::new(MemoryStore::new()), config, env.clone()).unwrap();
        Bench { env, account }
    }

    fn container(&self, database: &str, name: &str, throughput: Option<Throughput>) -> Arc<Container> {
        let database = match self.account.database(orrery_engine::Ref::Name(database)) {
            Ok(database) => database,
            Err(_) => wait(self.account.create_database(database, None)).unwrap(),
        };
        let json = serde_json::json!({ "id": name, "partitionKey": { "paths": ["/pk"], "version": 2 } });
        let definition = ContainerDefinition::parse(&json, KeyKinds::All).unwrap();
        wait(self.account.create_container(&database, definition, throughput)).unwrap()
    }

    /// Upserts for `seconds`, eight clients that each wait as they are told, keys by `choose`. RU served per second,
    /// and refusals.
    fn load(
        &self,
        container: &Arc<Container>,
        seconds: u64,
        class: RequestClass,
        choose: impl Fn(u64) -> u64,
    ) -> (f64, u64) {
        let (mut served, mut refused, mut n) = (0.0, 0, 0u64);
        let mut free_at_ms = [0u64; 8];
        // The first second also spends what was saved before, and does not count.
        for ms in 0..(seconds + 1) * 1000 {
            for free_at in &mut free_at_ms {
                // A client is free again two milliseconds after an answer.
                while *free_at <= ms {
                    n += 1;
                    match upsert(container, choose(n), n, class) {
                        Ok(charge_ru) => {
                            served += if ms < 1000 { 0.0 } else { charge_ru };
                            *free_at = ms + 2;
                        }
                        Err(retry_after_ms) => {
                            refused += 1;
                            *free_at = ms + retry_after_ms;
                        }
                    }
                }
            }
            self.env.advance_ms(1);
        }
        (served / seconds as f64, refused)
    }
}

fn key(n: u64) -> PartitionKey {
    PartitionKey([KeyComponent::String(format!("key-{n}"))].into_iter().collect())
}

/// What it cost, or when to come back.
fn upsert(container: &Arc<Container>, pk: u64, n: u64, class: RequestClass) -> Result<f64, u64> {
    let text = format!(r#"{{"id":"item-{}","pk":"key-{pk}","n":{n}}}"#, n % 50);
    let document = parse_json(text.as_bytes(), &ParseOptions::default()).unwrap().into();
    let operation = Operation::Upsert { id: format!("item-{}", n % 50), document };
    let write = Write { class, ..Write::new(operation) };
    match wait(container.write_item(&key(pk), write)) {
        Ok(reply) => Ok(reply.charge_ru),
        Err(error) => match error.kind {
            Kind::Throttled { retry_after_ms } => Err(retry_after_ms.max(1)),
            kind => panic!("{kind:?}: {error}"),
        },
    }
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() <= 0.05, "{found} is not {expected} within 5 %");
}

fn four_partitions() -> EngineConfig {
    EngineConfig { partition_throughput_limit: 1_000, ..EngineConfig::default() }
}

#[test]
fn an_even_workload_gets_the_provisioned_rate_and_a_hot_key_its_partitions_share() {
    let bench = Bench::new(four_partitions());
    let container = bench.container("db", "c", Some(Throughput::Manual(4_000)));
    assert_eq!(container.ranges().len(), 4);
    let everything = RequestClass::default();
    let (even, _) = bench.load(&container, 30, everything, |n| n % 1_000);
    near(even, 4_000.0);
    bench.env.advance_ms(10_000);
    let (skewed, refused) = bench.load(&container, 30, everything, |_| 7);
    near(skewed, 1_000.0);
    assert!(refused > 100, "{refused}");

    // Insight names the key and the partition.
    let insights = bench.account.insights(Some("db"), Some("c"), 3).unwrap();
    let hottest = insights.iter().max_by(|a, b| a.rate_ru.total_cmp(&b.rate_ru)).unwrap();
    assert_eq!(hottest.hot[0].key, key(7));
    assert!(hottest.hot[0].share > 0.5 && hottest.throttled > 100, "{hottest:?}");
    assert!((0.95..=1.0).contains(&hottest.normalized()), "{}", hottest.normalized());
    assert_eq!(insights.iter().map(|insight| insight.items).sum::<u64>(), container.usage().items);
    assert_eq!((hottest.largest.len(), hottest.surveyed), (3, 1.0));
    assert!(hottest.largest.windows(2).all(|pair| pair[0].size_bytes >= pair[1].size_bytes));
}

#[test]
fn while_a_hot_key_is_refused_other_partitions_serve() {
    let bench = Bench::new(four_partitions());
    let container = bench.container("db", "c", Some(Throughput::Manual(4_000)));
    while upsert(&container, 7, 1, RequestClass::default()).is_ok() {}
    let hot = container.position_of(&key(7)).unwrap().range_id;
    let cold = (0..100).find(|n| container.position_of(&key(*n)).unwrap().range_id != hot).unwrap();
    upsert(&container, cold, 1, RequestClass::default()).unwrap();
    let read = wait(container.read_item(&key(7), "item-1", &ReadOptions::default()));
    assert!(matches!(read.unwrap_err().kind, Kind::Throttled { retry_after_ms: 1..=1_000 }));
}

#[test]
fn containers_share_their_databases_throughput() {
    let bench = Bench::new(EngineConfig::default());
    let shared = Some(Throughput::Manual(1_000));
    wait(bench.account.create_database("shared", shared)).unwrap();
    let (a, b) = (bench.container("shared", "a", None), bench.container("shared", "b", None));
    let own = bench.container("shared", "own", Some(Throughput::Manual(400)));
    let (together, _) = bench.load(&a, 20, RequestClass::default(), |n| n % 100);
    near(together, 1_000.0);
    assert!(upsert(&b, 1, 1, RequestClass::default()).is_err(), "the other container has spent it");
    upsert(&own, 1, 1, RequestClass::default()).unwrap();
    bench.env.advance_ms(2_000);
    upsert(&b, 1, 1, RequestClass::default()).unwrap();
}

#[test]
fn a_changed_offer_is_in_force_at_once() {
    let bench = Bench::new(EngineConfig::default());
    let container = bench.container("db", "c", Some(Throughput::Manual(400)));
    let owner = OfferOwner::Container(container.database().number, container.number());
    let offer = bench.account.offer_of(owner).unwrap();
    while upsert(&container, 7, 1, RequestClass::default()).is_ok() {}
    let change = Throughput::Autoscale { max: 4_000, increment_percent: None };
    let offer = wait(bench.account.replace_offer(offer.number, change, None)).unwrap();
    bench.env.advance_ms(30);
    let (served, _) = bench.load(&container, 20, RequestClass::default(), |n| n % 100);
    near(served, 4_000.0);
    assert_eq!(bench.account.throughput_in_force(&offer), 4_000);
    bench.env.advance_ms(120_000);
    assert_eq!(bench.account.throughput_in_force(&offer), 400);
    assert!(!bench.account.offer_is_pending(&offer));
}

#[test]
fn a_throughput_bucket_outlives_a_restart_and_limits_only_its_requests() {
    let bench = Bench::new(EngineConfig::default());
    let container = bench.container("db", "c", Some(Throughput::Manual(1_000)));
    let owner = OfferOwner::Container(container.database().number, container.number());
    let number = bench.account.offer_of(owner).unwrap().number;
    let change =
        OfferChange { throughput: Throughput::Manual(1_000), buckets: Some([20, 100, 100, 100, 100]) };
    wait(bench.account.replace_offer(number, change, None)).unwrap();
    let store = bench.account.store().clone();
    drop(container);
    drop(bench);
    let env = Arc::new(TestEnv::new(9_000_000, 7));
    let config = EngineConfig { throttling: true.into(), ..EngineConfig::default() };
    let account = Account::open(store, config, env.clone()).unwrap();
    let bench = Bench { env, account };
    assert_eq!(bench.account.offer_of(owner).unwrap().buckets[0], 20);
    let container = bench.account.databases()[0].containers()[0].clone();
    let first = RequestClass { bucket: Some(1), ..RequestClass::default() };
    let (served, _) = bench.load(&container, 20, first, |n| n % 100);
    near(served, 200.0);
    let (served, _) = bench.load(&container, 20, RequestClass::default(), |n| n % 100);
    near(served, 1_000.0);
}

#[test]
fn a_serverless_account_has_no_offers_and_five_thousand_per_partition() {
    let bench = Bench::new(EngineConfig { serverless: true, ..EngineConfig::default() });
    let database = wait(bench.account.create_database("db", None)).unwrap();
    let json = serde_json::json!({ "id": "refused", "partitionKey": { "paths": ["/pk"] } });
    let definition = ContainerDefinition::parse(&json, KeyKinds::All).unwrap();
    let refused = wait(bench.account.create_container(&database, definition, Some(Throughput::Manual(400))));
    assert!(refused.err().unwrap().message.contains("not supported for serverless accounts"));
    let container = bench.container("db", "c", None);
    assert!(bench.account.offers().is_empty());
    let (served, _) = bench.load(&container, 20, RequestClass::default(), |n| n % 100);
    near(served, 5_000.0);
}

#[test]
fn nothing_is_refused_unless_the_account_asks_for_it_but_everything_is_counted() {
    let account =
        Account::open(Arc::new(MemoryStore::new()), EngineConfig::default(), Arc::new(TestEnv::new(0, 1)))
            .unwrap();
    let bench = Bench { env: Arc::new(TestEnv::new(0, 1)), account };
    let container = bench.container("db", "c", None);
    let spent: f64 = (0..500).map(|n| upsert(&container, 1, n, RequestClass::default()).unwrap()).sum();
    let insight = &bench.account.insights(None, None, 0).unwrap()[0];
    assert!((insight.consumed_ru - spent).abs() < 1.0, "{} {spent}", insight.consumed_ru);
    assert_eq!((insight.requests, insight.throttled), (500, 0));
}
