//! Queries over three physical partitions. This SDK merges sorted, distinct and limited rows and distances by itself,
//! from the server's plans. It has no aggregates, groups or hybrid search across partitions; inside one the server
//! answers them.
//!
//! Sixty readings: `score` is a permutation of 0..59, so every order is known; `v` turns with `n`, so every distance
//! is.

use std::num::NonZeroU32;

use azure_data_cosmos::Query;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::{ContinuationToken, FeedScope};
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::{MaxItemCountHint, QueryOptions};
use futures::StreamExt;
use serde_json::{Value, json};

use crate::cases::definition;
use crate::{Counts, Fixture, Problem};

const COUNT: i64 = 60;

pub async fn run_all(counts: &mut Counts, fixture: &Fixture) {
    let container = match readings(fixture).await {
        Ok(container) => container,
        Err(problem) => {
            return counts.run("readings are written for the queries", async move { Err(problem) }).await;
        }
    };
    let c = &container;
    counts.run("one partition answers every query", one_partition(c)).await;
    counts.run("a filter runs over all partitions, with parameters", filters(c)).await;
    counts.run("ORDER BY merges the sorted rows of all partitions", sorted(c)).await;
    counts.run("TOP and OFFSET LIMIT count over all partitions", limited(c)).await;
    counts.run("DISTINCT gives every value once", distinct(c)).await;
    counts.run("aggregates and groups over all partitions are what this SDK cannot do", refusals(c)).await;
    counts.run("a sorted query goes on where its continuation says", resumed(c)).await;
    counts.run("the nearest vectors of all partitions come first", nearest(c)).await;
    counts.run("feed ranges divide the rows among them", ranges(c)).await;
    counts.run("a wrong query is refused with its reason", wrong(c)).await;
}

async fn readings(f: &Fixture) -> Result<ContainerClient, Problem> {
    let properties: ContainerProperties = definition("readings", &["/pk"]);
    let container = f.container(properties, Some(ThroughputProperties::manual(30_000))).await?;
    for n in 0..COUNT {
        let (id, pk) = (format!("i{n}"), format!("k{}", n % 20));
        let kind = ["a", "b", "c"][n as usize % 3];
        let item = json!({
            "id": id, "pk": pk, "n": n, "kind": kind, "score": n * 37 % COUNT, "v": [n, 1],
        });
        container.create_item(pk, &id, &item, None).await?;
    }
    Ok(container)
}

fn few() -> QueryOptions {
    let rows = NonZeroU32::new(7).unwrap_or(NonZeroU32::MIN);
    QueryOptions::default().with_max_item_count(MaxItemCountHint::Limit(rows))
}

/// Reads a query to its end, a few rows at a time.
async fn rows(c: &ContainerClient, query: impl Into<Query>, scope: FeedScope) -> Result<Vec<Value>, Problem> {
    let mut pages = c.query_items::<Value>(query, scope, Some(few())).await?.into_pages();
    let mut all = Vec::new();
    while let Some(page) = pages.next().await {
        all.extend(page?.into_items());
    }
    Ok(all)
}

fn numbers(from: i64, count: i64) -> Vec<Value> {
    (from..from + count).map(Value::from).collect()
}

async fn one_partition(c: &ContainerClient) -> Result<(), Problem> {
    let k7 = || FeedScope::partition("k7");
    equal!(
        rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n DESC", k7()).await?,
        [json!(47), json!(27), json!(7)]
    );
    equal!(rows(c, "SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n", k7()).await?, [json!(7), json!(27)]);
    equal!(rows(c, "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 1", k7()).await?, [json!(27)]);
    equal!(rows(c, "SELECT DISTINCT VALUE c.pk FROM c", k7()).await?, [json!("k7")]);
    let groups = "SELECT c.pk, COUNT(1) AS count, SUM(c.n) AS total FROM c GROUP BY c.pk";
    equal!(rows(c, groups, k7()).await?, [json!({"pk": "k7", "count": 3, "total": 81})]);
    for (aggregate, wanted) in
        [("COUNT(1)", 3.0), ("SUM(c.n)", 81.0), ("MIN(c.n)", 7.0), ("MAX(c.n)", 47.0), ("AVG(c.n)", 27.0)]
    {
        let found = rows(c, format!("SELECT VALUE {aggregate} FROM c"), k7()).await?;
        equal!(found.iter().map(Value::as_f64).collect::<Vec<_>>(), [Some(wanted)]);
    }
    Ok(())
}

async fn filters(c: &ContainerClient) -> Result<(), Problem> {
    let query = Query::from("SELECT VALUE c.n FROM c WHERE c.n < @high AND c.kind = @kind")
        .with_parameter("@high", 30)?
        .with_parameter("@kind", "b")?;
    let mut found: Vec<i64> =
        rows(c, query, FeedScope::full_container()).await?.iter().filter_map(Value::as_i64).collect();
    found.sort_unstable();
    equal!(found, (0..30).filter(|n| n % 3 == 1).collect::<Vec<i64>>());
    equal!(rows(c, "SELECT * FROM c", FeedScope::full_container()).await?.len(), COUNT as usize);
    Ok(())
}

async fn sorted(c: &ContainerClient) -> Result<(), Problem> {
    let all = FeedScope::full_container;
    equal!(rows(c, "SELECT VALUE c.score FROM c ORDER BY c.score", all()).await?, numbers(0, COUNT));
    let mut falling = numbers(0, COUNT);
    falling.reverse();
    equal!(rows(c, "SELECT VALUE c.score FROM c ORDER BY c.score DESC", all()).await?, falling);
    Ok(())
}

async fn limited(c: &ContainerClient) -> Result<(), Problem> {
    let all = FeedScope::full_container;
    equal!(rows(c, "SELECT TOP 5 VALUE c.score FROM c ORDER BY c.score", all()).await?, numbers(0, 5));
    let window = "SELECT VALUE c.score FROM c ORDER BY c.score OFFSET 10 LIMIT 7";
    equal!(rows(c, window, all()).await?, numbers(10, 7));
    equal!(rows(c, "SELECT TOP 9 * FROM c", all()).await?.len(), 9);
    Ok(())
}

async fn distinct(c: &ContainerClient) -> Result<(), Problem> {
    // Without an order this SDK wants to know how many it may have to hold.
    let found = rows(c, "SELECT DISTINCT TOP 10 VALUE c.kind FROM c", FeedScope::full_container()).await?;
    let mut kinds: Vec<&str> = found.iter().filter_map(Value::as_str).collect();
    kinds.sort_unstable();
    equal!(kinds, ["a", "b", "c"]);
    let sorted = "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC";
    equal!(rows(c, sorted, FeedScope::full_container()).await?, [json!("c"), json!("b"), json!("a")]);
    Ok(())
}

async fn refusals(c: &ContainerClient) -> Result<(), Problem> {
    for query in ["SELECT VALUE COUNT(1) FROM c", "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind"] {
        if let Ok(found) = rows(c, query, FeedScope::full_container()).await {
            return Err(format!("{query} was answered: {found:?}").into());
        }
    }
    Ok(())
}

async fn resumed(c: &ContainerClient) -> Result<(), Problem> {
    let query = || Query::from("SELECT VALUE c.score FROM c ORDER BY c.score");
    let mut seen = Vec::new();
    let mut options = few();
    // Each page by an iterator of its own.
    while seen.len() < COUNT as usize {
        let pages = c.query_items::<Value>(query(), FeedScope::full_container(), Some(options)).await?;
        let mut pages = pages.into_pages();
        let Some(page) = pages.next().await else { break };
        seen.extend(page?.into_items());
        if seen.len() >= COUNT as usize {
            break;
        }
        let token = pages.to_continuation_token()?;
        let token = ContinuationToken::from_string(token.as_str().to_owned());
        options = few().with_continuation_token(token);
    }
    equal!(seen, numbers(0, COUNT));
    Ok(())
}

async fn nearest(c: &ContainerClient) -> Result<(), Problem> {
    let query = Query::from("SELECT TOP 3 c.id FROM c ORDER BY VectorDistance(c.v, @v, true)")
        .with_parameter("@v", [1.0, 0.0])?;
    let found = rows(c, query, FeedScope::full_container()).await?;
    let ids: Vec<&str> = found.iter().filter_map(|row| row["id"].as_str()).collect();
    equal!(ids, ["i59", "i58", "i57"]);
    Ok(())
}

async fn ranges(c: &ContainerClient) -> Result<(), Problem> {
    let ranges = c.read_feed_ranges(None).await?;
    equal!(ranges.len(), 3);
    let mut all: Vec<i64> = Vec::new();
    for range in ranges {
        let found = rows(c, "SELECT VALUE c.n FROM c", FeedScope::range(range)).await?;
        all.extend(found.iter().filter_map(Value::as_i64));
    }
    all.sort_unstable();
    equal!(all, (0..COUNT).collect::<Vec<i64>>());
    Ok(())
}

async fn wrong(c: &ContainerClient) -> Result<(), Problem> {
    match rows(c, "SELECT FROM WHERE", FeedScope::partition("k7")).await {
        Ok(_) => Err("a query without sense was answered".into()),
        Err(problem) if problem.to_string().contains("400") || problem.to_string().contains("SC1001") => {
            Ok(())
        }
        Err(problem) => Err(format!("expected 400, got {problem}").into()),
    }
}
