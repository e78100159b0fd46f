//! What search indexes cost and save: bytes on disk for each item, CPU for each write and for each query, with and
//! without.
//!
//! `cargo run --release -p orrery-engine --example search_bench DIR [ITEMS]`: loads items with a point, a text of a
//! hundred words and a vector of 128 dimensions into empty directories under `DIR`, one for each policy, with relaxed
//! durability, and asks each of them the same queries. CPU is that of the whole process.

mod bench_support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bench_support::{Failure, NoSystem, cpu_seconds, directory_bytes, fraction, mix, write_all};
use orrery_budget::Budget;
use orrery_engine::block_on as wait;
use orrery_engine::testing::PartitionsHere as _;
use orrery_engine::{
    Account, Container, ContainerDefinition, Costs, Durability, EngineConfig, KeyKinds, PartitionQuery,
    QueryLimits, Scope, SystemEnv, Throughput,
};
use orrery_query::{DistanceFunction, JsonText, Prepared, QueryEnv};
use orrery_storage::embedded::{EmbeddedOptions, EmbeddedStore};
use serde_json::json;

const DIMENSIONS: usize = 128;
/// Each query is asked until it has taken this much CPU.
const SECONDS_PER_QUERY: f64 = 0.5;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let items: usize = arguments.next().map_or(Ok(10_000), |text| text.parse())?;
    println!("{items} items of {} bytes of JSON", text(1).len());
    let policies = [
        ("no search index", json!({})),
        ("spatial", json!({"spatialIndexes": [{"path": "/at/?"}]})),
        ("full text", json!({"fullTextIndexes": [{"path": "/text"}]})),
        ("flat vectors", json!({"vectorIndexes": [{"path": "/v", "type": "flat"}]})),
        ("quantized vectors", json!({"vectorIndexes": [{"path": "/v", "type": "quantizedFlat"}]})),
    ];
    for (number, (name, policy)) in policies.into_iter().enumerate() {
        let path = Path::new(&directory).join(format!("{number}"));
        std::fs::create_dir_all(&path)?;
        println!("{name}");
        measure(&path, items, policy)?;
    }
    Ok(())
}

fn measure(path: &Path, items: usize, mut policy: serde_json::Value) -> Result<(), Failure> {
    policy["includedPaths"] = json!([{"path": "/*"}]);
    policy["excludedPaths"] = json!([{"path": "/at/*"}, {"path": "/text/?"}, {"path": "/v/*"}]);
    let json = json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "indexingPolicy": policy,
        "fullTextPolicy": {"fullTextPaths": [{"path": "/text"}]},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": "cosine"}
        ]},
    });
    let definition = ContainerDefinition::parse(&json, KeyKinds::All)?;
    let store = Arc::new(EmbeddedStore::open(path, EmbeddedOptions::default())?);
    let config = EngineConfig { durability: Durability::Relaxed, ..EngineConfig::default() };
    let account = Account::open(store.clone(), config, Arc::new(SystemEnv::new()))?;
    let database = wait(account.create_database("bench", None))?;
    let container = wait(account.create_container(&database, definition, Some(Throughput::Manual(400))))?;
    let before = cpu_seconds();
    let item = |n| (format!("p{:05}", n / 10), format!("i{n:07}"), text(n));
    write_all(&container, (0..items).map(item))?;
    std::thread::sleep(Duration::from_secs(2));
    println!("  {:>9.1} µs CPU to create an item", (cpu_seconds() - before) * 1e6 / items as f64);
    for (what, query) in queries() {
        ask(&container, what, &query)?;
    }
    drop((container, database));
    account.close()?;
    drop((account, store));
    let bytes = |tree: &str| directory_bytes(&path.join(tree)).map(|bytes| bytes as f64 / items as f64);
    println!(
        "  {:>9.0} bytes on disk for an item, {:.0} for its index rows",
        bytes("items")?,
        bytes("index")?
    );
    Ok(())
}

fn queries() -> Vec<(&'static str, String)> {
    let point = r#"{"type":"Point","coordinates":[13.4,52.5]}"#;
    let square =
        r#"{"type":"Polygon","coordinates":[[[13.0,52.3],[13.5,52.3],[13.5,52.6],[13.0,52.6],[13.0,52.3]]]}"#;
    let wanted = vector(3_000_001);
    let terms = format!("\"{}\", \"{}\"", word(400), word(77));
    vec![
        ("distance below 5 km", format!("SELECT c.id FROM c WHERE ST_DISTANCE(c.at, {point}) < 5000")),
        ("within a polygon", format!("SELECT c.id FROM c WHERE ST_WITHIN(c.at, {square})")),
        (
            "full-text contains",
            format!("SELECT c.id FROM c WHERE FullTextContains(c.text, \"{}\")", word(400)),
        ),
        (
            "statistics of two terms",
            format!(
                "SELECT COUNT(1) AS d, SUM(_FullTextWordCount(c.text)) AS w, COUNTIF(FullTextContains(c.text, \"{}\")) AS a, \
                 COUNTIF(FullTextContains(c.text, \"{}\")) AS b FROM c",
                word(400),
                word(77)
            ),
        ),
        (
            "ten best texts",
            format!(
                "SELECT TOP 10 c.id FROM c ORDER BY _FullTextScore(c.text, [{terms}], 10000, 1000000, [900, 900]) DESC"
            ),
        ),
        ("ten nearest vectors", format!("SELECT TOP 10 c.id FROM c ORDER BY VectorDistance(c.v, {wanted})")),
    ]
}

fn ask(container: &Arc<Container>, what: &str, text: &str) -> Result<(), Failure> {
    let query = orrery_sql::parse_query(text).map_err(|error| format!("{error:?}"))?;
    let path = orrery_model::PropertyPath::from_segments(["v"]);
    let env = QueryEnv { vectors: vec![(path, DistanceFunction::Cosine)], ..QueryEnv::default() };
    let prepared = Prepared::new(&query, &[], &env).map_err(|error| error.message)?;
    let mut json = Vec::new();
    let (before, mut rounds, mut rows, mut loaded) = (cpu_seconds(), 0u32, 0, 0);
    while rounds < 3 || cpu_seconds() - before < SECONDS_PER_QUERY {
        (rows, loaded) = (0, 0);
        for partition in container.partitions()? {
            let span = container.span_of(&Scope::All)?;
            let page = partition.query(
                &PartitionQuery {
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
                    costs: Costs::default(),
                },
                &mut |row| {
                    json.clear();
                    row.write(&mut json)?;
                    rows += 1;
                    Ok(json.len())
                },
            );
            loaded += page.map_err(|_| "the query failed")?.metrics.loaded_items;
        }
        rounds += 1;
    }
    let each = (cpu_seconds() - before) * 1e6 / f64::from(rounds);
    println!("  {each:>9.1} µs CPU  {what}: {rows} rows, {loaded} items loaded");
    Ok(())
}

/// One of a thousand made-up words; low numbers are common.
fn word(number: u64) -> String {
    let h = mix(number * 31 + 7);
    let pair = |at: u64| {
        let letters = h >> (at * 8);
        [b"bdfgklmnprtvz"[(letters % 13) as usize], b"aeiou"[(letters / 13 % 5) as usize]]
    };
    (0..=1 + h % 3).flat_map(pair).map(char::from).collect()
}

/// Near one of fifty centres.
fn vector(n: u64) -> String {
    let parts: Vec<String> = (0..DIMENSIONS as u64)
        .map(|at| {
            let centre = fraction(mix(n) % 50 * 1_000 + at) - 0.5;
            format!("{:.5}", centre + 0.5 * (fraction(n * 1_000 + at + 17) - 0.5))
        })
        .collect();
    format!("[{}]", parts.join(","))
}

fn text(n: usize) -> String {
    let n = n as u64;
    let words: Vec<String> =
        (0..100).map(|at| word((fraction(n * 100 + at).powi(2) * 1_000.0) as u64)).collect();
    format!(
        r#"{{"id":"i{n:07}","pk":"p{:05}","n":{},"at":{{"type":"Point","coordinates":[{:.5},{:.5}]}},"text":"{}","v":{}}}"#,
        n / 10,
        n % 1_000,
        12.0 + 3.0 * fraction(n * 3 + 1),
        51.0 + 3.0 * fraction(n * 3 + 2),
        words.join(" "),
        vector(n)
    )
}
