//! The official Rust SDK (`azure_data_cosmos`), unmodified, against a running server.
//!
//! ```text
//! COSMOS_ENDPOINT=http://127.0.0.1:8081 COSMOS_KEY=... [SSL_CERT_FILE=cert.pem] cargo run [WORD]
//! ```
//!
//! This file connects, runs the cases of `cases.rs` and `queries.rs` and counts. The SDK verifies certificates
//! against the file that `SSL_CERT_FILE` names. The last line is `N passed, N failed`, and so says the exit status.

/// Fails the case when the two differ.
macro_rules! equal {
    ($got:expr, $wanted:expr) => {
        let (got, wanted) = (&$got, &$wanted);
        if got != wanted {
            return Err(format!("line {}: got {got:?}, wanted {wanted:?}", line!()).into());
        }
    };
}

mod cases;
mod queries;

use std::future::Future;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use azure_data_cosmos::clients::{ContainerClient, CosmosClient, DatabaseClient};
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::{CreateContainerOptions, Region};
use azure_data_cosmos::{AccountEndpoint, AccountReference, CosmosError, RoutingStrategy};

/// Anything that goes wrong in a case; the runner prints it.
type Problem = Box<dyn std::error::Error + Send + Sync>;

/// What every case may use: a client, a database of this run and a container with the key `/pk`.
struct Fixture {
    client: CosmosClient,
    database: DatabaseClient,
    items: ContainerClient,
}

impl Fixture {
    async fn open() -> Result<Self, Problem> {
        let client = connect(&variable("COSMOS_KEY")?).await?;
        let id = unique("rust");
        client.create_database(&id, None).await?;
        let database = client.database_client(&id);
        let items = create(&database, cases::definition("items", &["/pk"]), None).await?;
        Ok(Fixture { client, database, items })
    }

    async fn container(
        &self,
        properties: ContainerProperties,
        throughput: Option<ThroughputProperties>,
    ) -> Result<ContainerClient, Problem> {
        create(&self.database, properties, throughput).await
    }
}

async fn create(
    database: &DatabaseClient,
    properties: ContainerProperties,
    throughput: Option<ThroughputProperties>,
) -> Result<ContainerClient, Problem> {
    let id = properties.id.to_string();
    let options = throughput.map(|each| CreateContainerOptions::default().with_throughput(each));
    database.create_container(properties, options).await?;
    Ok(database.container_client(id, None).await?)
}

async fn connect(key: &str) -> Result<CosmosClient, Problem> {
    let endpoint: AccountEndpoint = variable("COSMOS_ENDPOINT")?.parse()?;
    let account = AccountReference::with_authentication_key(endpoint, key.to_owned());
    Ok(CosmosClient::builder().build(account, RoutingStrategy::ProximityTo(Region::EAST_US)).await?)
}

fn variable(name: &str) -> Result<String, Problem> {
    std::env::var(name).map_err(|_| format!("the environment has no {name}").into())
}

fn unique(prefix: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is after 1970");
    format!("{prefix}-{}-{}", std::process::id(), since.as_nanos())
}

/// Fails unless the service refused with this status.
fn refused<T>(status: u16, outcome: Result<T, CosmosError>) -> Result<(), Problem> {
    match outcome {
        Ok(_) => Err(format!("expected {status}, but it succeeded").into()),
        Err(error) if u16::from(error.status()) == status => Ok(()),
        Err(error) => Err(format!("expected {status}, got {error}").into()),
    }
}

/// Runs one case and counts it.
#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    selection: Option<String>,
}

impl Counts {
    async fn run(&mut self, name: &str, case: impl Future<Output = Result<(), Problem>>) {
        if self.selection.as_ref().is_some_and(|word| !name.contains(word.as_str())) {
            return;
        }
        let started = Instant::now();
        match case.await {
            Ok(()) => {
                self.passed += 1;
                println!("ok   {name} ({:.2} s)", started.elapsed().as_secs_f64());
            }
            Err(problem) => {
                self.failed += 1;
                println!("FAIL {name}\n{problem}");
            }
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Problem> {
    let fixture = Fixture::open().await?;
    let mut counts = Counts { selection: std::env::args().nth(1), ..Counts::default() };
    cases::run_all(&mut counts, &fixture).await;
    queries::run_all(&mut counts, &fixture).await;
    fixture.database.delete(None).await?;
    println!("{} passed, {} failed", counts.passed, counts.failed);
    std::process::exit(i32::from(counts.failed > 0));
}
