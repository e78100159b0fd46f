//! Random containers, items and queries, and the comparison of paged, planned queries with the naive evaluator.

#![allow(dead_code)]

mod generate;
mod generate_search;

use std::collections::BTreeMap;
use std::sync::Arc;

use orrery_budget::{Budget, IsGone, Limits, MemoryPool};
use orrery_engine::{
    Account, ContainerCore, Costs, EngineConfig, Item, PageRequest, PartitionQuery, QueryFailure, QueryHost,
    QueryLimits, QueryPage, QueryPosition, ResultCache, Scope, StatementSource, SystemOf, SystemProperties,
};
use orrery_model::{PartitionKey, Value};
use orrery_query::{DistanceFunction, Execution, Flow, JsonText, Language, Prepared, QueryEnv, Row};
use orrery_sql::Direction;
use orrery_storage::MemoryStore;

use super::items_support::{Fixture, Partition, PartitionsHere as _, key, wait};
pub use generate::Dice;

/// Steps that a page is given at first, where figures are not what is tested: enough for some of them.
const STEPS: u64 = 60;

/// What random containers hold and are asked.
pub struct Theme {
    policy: fn(&mut Dice) -> serde_json::Value,
    item: fn(&mut Dice, usize) -> String,
    query: fn(&mut Dice) -> String,
}

/// Values and paths.
pub const VALUES: Theme = Theme { policy: generate::policy, item: generate::item, query: generate::query };

/// Values and paths, and values that other APIs have stored.
pub const EXTENDED: Theme =
    Theme { policy: generate::policy, item: generate::extended_item, query: generate::query };

/// Shapes, texts and vectors.
pub const SEARCHES: Theme =
    Theme { policy: generate_search::policy, item: generate_search::item, query: generate_search::query };

pub struct Case {
    pub fixture: Fixture,
    pub costs: Costs,
    /// Where later pages are kept, if anywhere; at times there is room for little.
    result_cache: Option<Arc<ResultCache>>,
}

/// System properties as the tests see them: a number for the resource id, the time of the write.
pub struct TestSystem;

impl SystemProperties for TestSystem {
    fn to_shared(&self) -> std::sync::Arc<dyn SystemProperties> {
        std::sync::Arc::new(TestSystem)
    }

    fn host(&self) -> &'static str {
        TEST_HOST
    }

    fn count(&self) -> usize {
        2
    }

    fn name(&self, at: usize) -> &'static str {
        ["_rid", "_ts"][at]
    }

    fn value(&self, item: &Item, at: usize) -> Value {
        Value::from(if at == 0 { item.number as i64 } else { i64::from(item.ts) })
    }

    fn write_json(&self, item: &Item, at: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(
            format!("{}", if at == 0 { item.number } else { u64::from(item.ts) }).as_bytes(),
        );
    }
}

const TEST_HOST: &str = "test";

/// What the tests are to partitions that are elsewhere.
pub struct TestHost {
    pub results: Option<Arc<ResultCache>>,
}

impl TestHost {
    pub fn register(account: &Account, results: Option<Arc<ResultCache>>) {
        account.set_query_host(TEST_HOST, Arc::new(TestHost { results }));
    }
}

impl QueryHost for TestHost {
    fn env(&self, container: &Arc<ContainerCore>, _: &Budget) -> QueryEnv {
        container.definition().query_env()
    }

    fn system(&self, _: &Arc<ContainerCore>) -> Arc<dyn SystemProperties> {
        Arc::new(TestSystem)
    }

    fn budget(&self, limits: Limits, is_gone: Option<IsGone>) -> Budget {
        Budget::with(MemoryPool::unlimited(), limits, is_gone)
    }

    fn results(&self) -> Option<Arc<ResultCache>> {
        self.results.clone()
    }
}

/// A query that is ready to run, here and elsewhere.
pub struct Ready {
    pub prepared: Prepared,
    pub text: String,
}

impl std::ops::Deref for Ready {
    type Target = Prepared;

    fn deref(&self) -> &Prepared {
        &self.prepared
    }
}

/// Rows of a query, or the message it failed with.
type Answer = Result<Vec<String>, String>;

impl Case {
    /// A container that is there, under the usual figures.
    pub fn of(fixture: Fixture) -> Case {
        Case { fixture, costs: Costs::default(), result_cache: Some(Arc::default()) }
    }

    pub fn new(dice: &mut Dice) -> Case {
        Case::filled(dice, &VALUES)
    }

    fn filled(dice: &mut Dice, theme: &Theme) -> Case {
        let throughput = if dice.one_in(3) { 25_000 } else { 400 };
        let store = Arc::new(MemoryStore::new());
        let config = EngineConfig::default();
        let fixture = Fixture::over(store, config, (theme.policy)(dice), throughput);
        let result_cache =
            [None, Some(ResultCache::new(600)), Some(ResultCache::default())].into_iter().nth(dice.below(3));
        let case = Case {
            fixture,
            costs: generate::costs(dice),
            result_cache: result_cache.flatten().map(Arc::new),
        };
        // Upkeep changes nothing. When it comes by itself is up to the machine.
        if dice.one_in(2) {
            case.fixture.sweep();
        }
        for at in 0..dice.below(60) {
            case.fixture.create(&(theme.item)(dice, at)).unwrap();
        }
        for _ in 0..dice.below(20) {
            let at = dice.below(60);
            let text = (theme.item)(dice, at);
            if dice.one_in(3) {
                let pk = generate::partition_key(at);
                let _ = case.fixture.delete(&pk, &format!("i{at}"));
            } else {
                case.fixture.upsert(&text).unwrap();
            }
        }
        case
    }

    /// Writes or deletes one of the items that cases are made of.
    pub fn change(&self, dice: &mut Dice) {
        let at = dice.below(70);
        if dice.one_in(3) {
            let _ = self.fixture.delete(&generate::partition_key(at), &format!("i{at}"));
        } else {
            self.fixture.upsert(&generate::item(dice, at)).unwrap();
        }
    }

    pub fn keep_nothing(&mut self) {
        self.result_cache = None;
    }

    pub fn keep_rows(&mut self) {
        self.result_cache = Some(Arc::default());
    }

    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        self.fixture.container.partitions().unwrap()
    }

    pub fn prepare(&self, text: &str) -> Result<Ready, String> {
        let query = orrery_sql::parse_query(text).map_err(|error| format!("{error:?}"))?;
        let definition = self.fixture.container.definition();
        let composite = definition.indexing.composite.iter().map(|index| {
            let direction = |down| if down { Direction::Descending } else { Direction::Ascending };
            index.iter().map(|part| (part.path.clone(), direction(part.descending))).collect()
        });
        let vectors = definition.vector_embeddings.iter().filter_map(|embedding| {
            Some((embedding.path.clone(), DistanceFunction::parse(embedding.distance_function)?))
        });
        let texts = definition.full_text.as_ref();
        let languages =
            texts.iter().flat_map(|policy| &policy.paths).map(|text| (text.path.clone(), text.language));
        let env = QueryEnv {
            language: texts.map_or_else(Language::default, |policy| policy.default_language),
            languages: languages.collect(),
            composite_indexes: Some(composite.collect()),
            geometry: definition.indexing.planar,
            vectors: vectors.collect(),
            ..QueryEnv::default()
        };
        let prepared = Prepared::new(&query, &[], &env).map_err(|error| error.message)?;
        Ok(Ready { prepared, text: text.to_owned() })
    }

    pub fn page(
        &self,
        partition: &Partition,
        scope: &Scope,
        ready: &Ready,
        from: Option<&QueryPosition>,
        rows: usize,
    ) -> Result<(Vec<String>, QueryPage), QueryFailure> {
        let mut found = Vec::new();
        let (span, range) = (self.fixture.container.span_of(scope)?, Scope::Range(partition.range_id()));
        let steps = (self.costs != Costs::default()).then_some(STEPS);
        TestHost::register(&self.fixture.account, self.result_cache.clone());
        let mut query = PartitionQuery {
            prepared: &ready.prepared,
            statement: Some(StatementSource::of_text(&ready.text, &[])),
            span: &span,
            from,
            limits: QueryLimits { rows, bytes: 1 << 20, deadline: None, steps, item_bytes_max: u64::MAX },
            budget: &Budget::unlimited(),
            session: &[],
            result_cache: self.result_cache.as_deref(),
            system: &TestSystem,
            format: &JsonText,
            timed: rows.is_multiple_of(2),
            explained: true,
            costs: self.costs,
        };
        let mut run = |query: &PartitionQuery<'_>| {
            found.clear();
            self.fixture.container.query_page(&range, query, &mut |row| {
                let mut json = Vec::new();
                row.write(&mut json)?;
                found.push(String::from_utf8_lossy(&json).into_owned());
                Ok(json.len())
            })
        };
        // As the server does it: a page that takes long is run again.
        let page = match run(&query) {
            Err(QueryFailure::Lengthy) => {
                query.limits.steps = None;
                run(&query)
            }
            page => page,
        }?;
        Ok((found, page))
    }

    /// Whether the order of the rows is part of the answer.
    fn has_order(&self, prepared: &Prepared) -> bool {
        prepared.needs().order_by || self.costs.created_items_max >= 1_000
    }

    /// Whether which rows there are depends on their order.
    fn is_cut(&self, prepared: &Prepared) -> bool {
        let needs = prepared.needs();
        !self.has_order(prepared) && (needs.top.is_some() || needs.limit.is_some())
    }

    /// All pages of a query, one after the other.
    fn planned(
        &self,
        partition: &Partition,
        scope: &Scope,
        prepared: &Ready,
        rows: usize,
        ways: &mut BTreeMap<String, u64>,
    ) -> Answer {
        let mut all = Vec::new();
        let mut from: Option<QueryPosition> = None;
        for _ in 0..10_000 {
            let (found, page) = match self.page(partition, scope, prepared, from.as_ref(), rows) {
                Ok(page) => page,
                Err(QueryFailure::Query { error, .. }) => return Err(error.message.clone()),
                Err(QueryFailure::Engine(error)) => panic!("{error:?}"),
                Err(QueryFailure::Lengthy) => panic!("steps were not limited"),
                Err(QueryFailure::Exceeded(exceeded)) => panic!("nothing was limited: {exceeded}"),
            };
            assert!(found.len() <= rows.max(1));
            let way = page.report.to_string();
            let way = way.split([' ', ',']).next().unwrap_or_default();
            *ways.entry(way.to_owned()).or_default() += 1;
            all.extend(found);
            match page.next {
                None => return Ok(all),
                // As a client carries it.
                Some(next) => from = Some(QueryPosition::decode(&next.encode()).unwrap()),
            }
        }
        panic!("the query has no end");
    }

    /// Asks a sorted query everywhere, and compares.
    pub fn check_sorted(&self, text: &str, rows: usize) {
        let prepared = self.prepare(text).unwrap();
        for partition in self.partitions() {
            let scope = Scope::Range(partition.range_id());
            let found = self.planned(&partition, &scope, &prepared, rows, &mut BTreeMap::new());
            assert_eq!(found, self.naive(&scope, &prepared), "{text}, pages of {rows}");
        }
    }

    /// What the evaluator says over all items that the feed shows, by number.
    fn naive(&self, scope: &Scope, prepared: &Prepared) -> Answer {
        let mut page = PageRequest::new(1_000_000);
        let mut items: BTreeMap<u64, Item> = BTreeMap::new();
        loop {
            let found = wait(self.fixture.container.read_feed(scope, &page)).unwrap();
            items.extend(found.items.into_iter().map(|item| (item.number, item)));
            match found.continuation {
                None => break,
                next => page.continuation = next,
            }
        }
        let mut rows = Vec::new();
        let mut sink = |row: Row<'_>| {
            let mut json = Vec::new();
            row.write(&mut json)?;
            rows.push(String::from_utf8_lossy(&json).into_owned());
            Ok(Flow::More)
        };
        let mut execution = Execution::new(prepared);
        let mut run = || {
            for item in items.values() {
                let row = SystemOf { item, system: &TestSystem };
                if execution.push_numbered(row.row(), item.number, &mut sink)? == Flow::Stop {
                    break;
                }
            }
            execution.finish(&mut sink)
        };
        match run() {
            Ok(_) => Ok(rows),
            Err(error) => Err(error.message),
        }
    }
}

/// A random condition, of conditions nested so deep.
pub fn predicate(dice: &mut Dice, depth: usize) -> String {
    generate::predicate(dice, depth)
}

fn unordered(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// The scopes inside a partition that queries are asked about.
fn scopes(partition: &Partition, dice: &mut Dice) -> Vec<Scope> {
    let (min, max) = partition.bounds();
    let mut scopes = vec![Scope::Range(partition.range_id())];
    let pk = generate::partition_key(dice.below(60));
    scopes.push(Scope::Epk { min: min.clone(), max: max.clone(), range: Some(partition.range_id()) });
    scopes.push(Scope::Key(PartitionKey(key(&pk).0)));
    scopes
}

pub fn check_case(seed: u64, theme: &Theme, ways: &mut BTreeMap<String, u64>) {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
    let case = Case::filled(&mut dice, theme);
    for _ in 0..40 {
        let text = (theme.query)(&mut dice);
        let Ok(prepared) = case.prepare(&text) else { continue };
        if case.is_cut(&prepared) {
            continue;
        }
        for partition in case.partitions() {
            for scope in scopes(&partition, &mut dice) {
                if let Scope::Key(key) = &scope
                    && case.fixture.container.partition_of(key).unwrap().range_id() != partition.range_id()
                {
                    continue;
                }
                let expected = case.naive(&scope, &prepared);
                for rows in [1_000, 1 + dice.below(7)] {
                    let found = case.planned(&partition, &scope, &prepared, rows, ways);
                    // Only small spans are shown in order of creation; a larger one has an order of its own.
                    let (found, expected) = match case.has_order(&prepared) {
                        true => (found, expected.clone()),
                        false => (found.map(unordered), expected.clone().map(unordered)),
                    };
                    assert_eq!(
                        found,
                        expected,
                        "seed {seed}, {text}, pages of {rows}, {scope:?}, policy {}",
                        case.fixture.container.definition().json["indexingPolicy"],
                    );
                }
            }
        }
    }
}
