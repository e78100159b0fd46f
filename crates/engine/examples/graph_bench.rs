//! What a graph over vectors costs and saves, beside a scan over their codes.
//!
//! `cargo run --release -p orrery-engine --example graph_bench DIR [ITEMS] [clustered|uniform|grouped] [DISTANCE]`:
//! loads items with a vector of 128 dimensions into an empty directory, links all of them, and asks for the ten
//! nearest by the graph, by a scan over the codes, and by brute force, which tells the recall. CPU is that of the
//! whole process.

mod bench_support;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bench_support::{Failure, NoSystem, cpu_seconds, directory_bytes, fraction, mix, write_all};
use orrery_budget::Budget;
use orrery_engine::block_on as wait;
use orrery_engine::testing::PartitionsHere as _;
use orrery_engine::{
    Account, Container, ContainerDefinition, Costs, Durability, EngineConfig, KeyKinds, PartitionQuery,
    QueryLimits, QueryMetrics, Scope, SystemEnv, Throughput,
};
use orrery_query::{DistanceFunction, JsonText, Prepared, QueryEnv};
use orrery_storage::embedded::{EmbeddedOptions, EmbeddedStore};
use serde_json::json;

const DIMENSIONS: u64 = 128;
const QUERIES: u64 = 20;
/// Times that the queries are asked; the first warms caches.
const ROUNDS: u64 = 3;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let items: u64 = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    let kind = arguments.next().unwrap_or_else(|| "clustered".into());
    let distance = arguments.next().unwrap_or_else(|| "cosine".into());
    let function = DistanceFunction::parse(&distance).ok_or("which distance?")?;
    std::fs::create_dir_all(&directory)?;
    let json = json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/v/*"}],
            "vectorIndexes": [{"path": "/v", "type": "diskANN"}],
        },
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": distance}
        ]},
    });
    let definition = ContainerDefinition::parse(&json, KeyKinds::All)?;
    let store = Arc::new(EmbeddedStore::open(Path::new(&directory), EmbeddedOptions::default())?);
    // Linking begins when everything is there, so that its cost can be told apart.
    let load = EngineConfig {
        durability: Durability::Relaxed,
        graph_items_min: u64::MAX,
        ..EngineConfig::default()
    };
    let account = Account::open(store.clone(), load.clone(), Arc::new(SystemEnv::new()))?;
    let database = wait(account.create_database("bench", None))?;
    let container = wait(account.create_container(&database, definition, Some(Throughput::Manual(400))))?;
    let before = cpu_seconds();
    let item = |n: u64| {
        let (key, id) = (format!("p{:05}", n / 10), format!("i{n:07}"));
        let text = format!(r#"{{"id":"{id}","pk":"{key}","v":{}}}"#, vector(n, &kind));
        (key, id, text)
    };
    write_all(&container, (0..items).map(item))?;
    println!("{items} {kind}: {:.1} µs CPU to create an item", (cpu_seconds() - before) * 1e6 / items as f64);
    std::thread::sleep(Duration::from_secs(3));
    let unlinked_bytes = directory_bytes(&Path::new(&directory).join("index"))?;
    drop((container, database, account));
    let config = EngineConfig { graph_items_min: 1, ..load };
    let account = Account::open(store.clone(), config, Arc::new(SystemEnv::new()))?;
    let database = account.database(orrery_engine::Ref::Name("bench"))?;
    let container = database.container(orrery_engine::Ref::Name("c"))?;
    let before = cpu_seconds();
    for partition in container.partitions()? {
        while partition.upkeep_is_due() {
            partition.upkeep()?;
        }
    }
    println!("  {:.1} µs CPU to link a vector", (cpu_seconds() - before) * 1e6 / items as f64);
    std::thread::sleep(Duration::from_secs(3));
    let usual = Costs::default();
    let scan = Costs { graph_nodes_min: u64::MAX, ..usual };
    let asked = Asked { container: &container, kind: &kind, function };
    let exact = ask("brute force", &asked, ", true", usual, 1, None)?;
    ask("graph, for the first time", &asked, "", usual, 1, Some(&exact))?;
    let graph = ask("graph", &asked, "", usual, ROUNDS, Some(&exact))?;
    ask("codes", &asked, "", scan, ROUNDS, Some(&exact))?;
    for multiplier in [5, 20] {
        let options = format!(", false, {{\"searchListSizeMultiplier\": {multiplier}}}");
        ask(&format!("graph, multiplier {multiplier}"), &asked, &options, usual, 1, Some(&exact))?;
    }
    drop((graph, container, database));
    account.close()?;
    drop((account, store));
    let linked_bytes = directory_bytes(&Path::new(&directory).join("index"))?;
    println!(
        "  {:.0} bytes of index rows on disk for an item, {:.0} before it was linked",
        linked_bytes as f64 / items as f64,
        unlinked_bytes as f64 / items as f64
    );
    Ok(())
}

/// Whom to ask, and for what.
struct Asked<'a> {
    container: &'a Arc<Container>,
    kind: &'a str,
    function: DistanceFunction,
}

/// Asks for the ten nearest, and returns them.
fn ask(
    what: &str,
    asked: &Asked<'_>,
    options: &str,
    costs: Costs,
    rounds: u64,
    exact: Option<&Vec<HashSet<String>>>,
) -> Result<Vec<HashSet<String>>, Failure> {
    let path = orrery_model::PropertyPath::from_segments(["v"]);
    let Asked { container, kind, function } = *asked;
    let env = QueryEnv { vectors: vec![(path, function)], ..QueryEnv::default() };
    let (mut answers, mut metrics, mut cpu) = (Vec::new(), QueryMetrics::default(), f64::INFINITY);
    for _ in 0..rounds {
        answers.clear();
        metrics = QueryMetrics::default();
        let before = cpu_seconds();
        for number in 0..QUERIES {
            let wanted = vector(90_000_000 + number, kind);
            let text =
                format!("SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, {wanted}{options})");
            let query = orrery_sql::parse_query(&text).map_err(|error| format!("{error:?}"))?;
            let prepared = Prepared::new(&query, &[], &env).map_err(|error| error.message)?;
            let mut rows = HashSet::new();
            for partition in container.partitions()? {
                let span = container.span_of(&Scope::All)?;
                let query = PartitionQuery {
                    prepared: &prepared,
                    statement: None,
                    span: &span,
                    from: None,
                    limits: QueryLimits {
                        rows: 10_000,
                        bytes: 4 << 20,
                        deadline: None,
                        steps: None,
                        item_bytes_max: u64::MAX,
                    },
                    budget: &Budget::unlimited(),
                    session: &[],
                    system: &NoSystem,
                    format: &JsonText,
                    timed: false,
                    explained: false,
                    result_cache: None,
                    costs,
                };
                let page = partition.query(&query, &mut |row| {
                    let mut json = Vec::new();
                    row.write(&mut json)?;
                    rows.insert(String::from_utf8_lossy(&json).into_owned());
                    Ok(json.len())
                });
                let page = page.map_err(|_| "the query failed")?;
                metrics.index_entries += page.metrics.index_entries;
                metrics.loaded_items += page.metrics.loaded_items;
            }
            answers.push(rows);
        }
        cpu = f64::min(cpu, cpu_seconds() - before);
    }
    let recall = exact.map_or(1.0, |exact| {
        let hits: usize =
            answers.iter().zip(exact).map(|(found, exact)| found.intersection(exact).count()).sum();
        hits as f64 / (10 * QUERIES) as f64
    });
    println!(
        "  {what}: recall {recall:.3}, {:.2} ms CPU, {} entries read, {} items loaded",
        cpu * 1e3 / QUERIES as f64,
        metrics.index_entries / QUERIES,
        metrics.loaded_items / QUERIES
    );
    Ok(answers)
}

/// Near one of fifty centres, near one of many, or anywhere.
fn vector(n: u64, kind: &str) -> String {
    let (centres, spread) = match kind {
        "uniform" => (0, 1.0),
        "grouped" => (2_000, 0.1),
        _ => (50, 0.5),
    };
    let parts: Vec<String> = (0..DIMENSIONS)
        .map(|at| {
            let centre = match centres {
                0 => 0.0,
                centres => fraction(mix(n) % centres * 1_000 + at + 500_000_000) - 0.5,
            };
            format!("{:.5}", centre + spread * (fraction(n * 1_000 + at + 17) - 0.5))
        })
        .collect();
    format!("[{}]", parts.join(","))
}
