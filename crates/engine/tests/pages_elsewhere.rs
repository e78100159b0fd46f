//! Pages of partitions that are elsewhere: queries are sent as data, run there within what their request has left,
//! and end there when nobody waits for them.

mod items_support;
mod query_support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use items_support::*;
use orrery_budget::{Budget, Exceeded, IsGone, Limits, MemoryPool};
use orrery_engine::testing::{PagesSent, pages_sent};
use orrery_engine::{
    DistributedFailure, DistributedQuery, EngineConfig, PartitionCalls, QueryFailure, QueryOptions, Scope,
    StatementSource,
};
use orrery_model::Value;
use orrery_query::merge::{MergePlan, Merged, PageSize};
use orrery_query::{JsonText, Prepared, QueryEnv};
use orrery_storage::MemoryStore;
use query_support::{TestHost, TestSystem};
use serde_json::json;

/// Takes hours.
const ENDLESS: &str = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.t JOIN b IN c.t JOIN d IN c.t JOIN e IN c.t";
/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Four partitions, of which each is called as if it were elsewhere.
fn elsewhere() -> Fixture {
    let config = EngineConfig { partition_calls: PartitionCalls::Loopback, ..EngineConfig::default() };
    let fixture = Fixture::over(Arc::new(MemoryStore::new()), config, json!({}), 40_000);
    assert_eq!(fixture.container.ranges().len(), 4);
    TestHost::register(&fixture.account, None);
    let many: Vec<usize> = (0..300).collect();
    for n in 0..40 {
        let item = json!({ "id": format!("i{n:02}"), "pk": format!("k{n}"), "n": n, "t": many });
        fixture.create(&item.to_string()).unwrap();
    }
    fixture
}

fn sent(fixture: &Fixture) -> PagesSent {
    pages_sent(&fixture.account).expect("partitions are elsewhere")
}

/// The rows of a query, and how many pages of partitions were asked for.
fn ask(
    fixture: &Fixture,
    scope: &Scope,
    text: &str,
    parameters: &[(String, Value)],
    budget: &Budget,
) -> Result<(String, u64), DistributedFailure> {
    let query = orrery_sql::parse_query(text).unwrap();
    let prepared = Arc::new(Prepared::new(&query, parameters, &QueryEnv::default()).unwrap());
    let plan = MergePlan::new(&query, &prepared, parameters, &QueryEnv::default()).unwrap();
    let shares = fixture.container.shares_of(scope)?;
    let merged = if shares.len() == 1 { Merged::single(&prepared) } else { Merged::new(&plan) };
    let statement = StatementSource::of_text(text, parameters);
    let options =
        QueryOptions { explained: true, ..QueryOptions::new(budget, &TestSystem, &JsonText, statement) };
    let before = sent(fixture).asked;
    let mut run = DistributedQuery::new(&fixture.container, shares, options);
    let (rows, _) = run.page(&merged, None, PageSize { rows: 1_000, bytes: 1 << 20 })?;
    assert!(run.charge_ru() > 0.0 && run.at().lsn > 0 && run.insight().metrics.output_rows > 0);
    assert!(!run.insight().explained.is_empty(), "it is told how the pages were made");
    Ok((String::from_utf8(rows.into_bytes()).unwrap(), sent(fixture).asked - before))
}

#[test]
fn every_page_of_a_partition_that_is_elsewhere_is_sent() {
    let fixture = elsewhere();
    let free = Budget::unlimited();
    let one = ask(&fixture, &Scope::Key(key("k7")), "SELECT VALUE c.n FROM c", &[], &free).unwrap();
    assert_eq!(one, ("7".to_owned(), 1));
    let sorted = "SELECT TOP 3 VALUE c.n FROM c WHERE c.n < @most ORDER BY c.n DESC";
    let parameters = [("@most".to_owned(), Value::from(30))];
    assert_eq!(ask(&fixture, &Scope::All, sorted, &parameters, &free).unwrap(), ("29,28,27".to_owned(), 4));
    let grouped = "SELECT VALUE SUM(c.n) FROM c";
    assert_eq!(ask(&fixture, &Scope::All, grouped, &[], &free).unwrap(), ("780".to_owned(), 4));
    let counted = "SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.n % 7 FROM c)";
    assert_eq!(ask(&fixture, &Scope::All, counted, &[], &free).unwrap(), (r#"{"n":7}"#.to_owned(), 4));
    let range = fixture.container.ranges()[0].id;
    let (rows, pages) = ask(&fixture, &Scope::Range(range), "SELECT VALUE 1 FROM c", &[], &free).unwrap();
    assert_eq!((rows.split(',').count() as u64, pages), (fixture.container.usage_of_range(range).items, 1));
}

#[test]
fn what_goes_wrong_elsewhere_is_told_as_if_it_were_here() {
    let fixture = elsewhere();
    let failed = |text: &str, budget: &Budget| ask(&fixture, &Scope::All, text, &[], budget).unwrap_err();
    let DistributedFailure::Page(QueryFailure::Query { error, charge_ru, at }) =
        failed("SELECT VALUE 1 / 0 FROM c", &Budget::unlimited())
    else {
        panic!("infinity is no JSON");
    };
    assert_eq!(error.code, "4001");
    assert!(charge_ru > 0.0 && at.lsn > 0);
    let limits = Limits { memory_bytes: 256 * 1024, ..Limits::default() };
    let small = Budget::with(MemoryPool::unlimited(), limits, None);
    let held = small.hold(100 * 1024).unwrap();
    let failure = failed(
        "SELECT a AS a, b AS b, COUNT(1) AS n FROM c JOIN a IN c.t JOIN b IN c.t GROUP BY a, b",
        &small,
    );
    let limit_bytes = limits.memory_bytes;
    assert!(
        matches!(
            failure,
            DistributedFailure::Page(QueryFailure::Exceeded(Exceeded::RequestMemory { limit_bytes: told }))
                if told == limit_bytes
        ),
        "{failure:?}"
    );
    assert_eq!(small.used_bytes(), held.bytes());
}

/// Asks for what takes for ever with a budget that ends.
fn ends(time: Option<Duration>, is_gone: Option<IsGone>) -> Exceeded {
    let fixture = elsewhere();
    let limits = Limits { deadline: time.map(|time| Instant::now() + time), ..Limits::default() };
    let budget = Budget::with(MemoryPool::unlimited(), limits, is_gone);
    let failure = ask(&fixture, &Scope::Key(key("k7")), ENDLESS, &[], &budget).unwrap_err();
    let DistributedFailure::Page(QueryFailure::Exceeded(exceeded)) = failure else { panic!("{failure:?}") };
    assert_eq!(sent(&fixture).asked, 1);
    let began = Instant::now();
    while sent(&fixture).running > 0 {
        assert!(began.elapsed() < PATIENCE, "the page goes on where it is made");
        std::thread::sleep(Duration::from_millis(5));
    }
    exceeded
}

#[test]
fn a_page_ends_where_it_is_made_when_the_time_of_its_request_is_over() {
    assert_eq!(ends(Some(Duration::from_millis(300)), None), Exceeded::Time);
}

#[test]
fn a_page_ends_where_it_is_made_when_its_client_has_gone() {
    assert_eq!(ends(None, Some(Box::new(|| true))), Exceeded::ClientGone);
}
