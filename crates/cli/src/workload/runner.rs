//! Runs a workload: make the container, load it, run the phases, clean up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Method;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use orrery_mongo::Bson;
use orrery_server::in_process::InProcess;
use tokio::task::JoinSet;

use super::client::{Answer, Call, Client, SharedDirect, Target};
use super::items::{Chooser, Random, Shape};
use super::operations::{Api, Kind, Maker};
use super::options::{Options, Spoken, Until, wants_tls};
use super::report::{Phase, Report};
use super::{in_process, mongo_requests, mongo_wire, table_requests, trust};

const CONTAINER: &str = "items";
/// Attempts of a request that is throttled or whose connection broke, outside of measuring.
const ATTEMPTS_MAX: u32 = 60;
/// Failures of a phase in a row, on one connection, that end it: the endpoint is gone.
const FAILURES_IN_A_ROW_MAX: u32 = 20;

pub async fn run(options: Options) -> Result<()> {
    let tls = match options.endpoint.scheme_str() {
        Some("mongodb") if wants_tls(&options.endpoint) => {
            Some(trust::client_config(options.authority.as_deref(), options.insecure)?)
        }
        Some("https") => Some(trust::client_config(options.authority.as_deref(), options.insecure)?),
        _ => None,
    };
    let server = in_process::open(&options)?;
    let target = Target::new(options.endpoint.clone(), &options.key, tls)?
        .with_direct(options.direct)
        .with_in_process(server.clone());
    let target = Arc::new(match &options.api {
        Spoken::Table(account) => target.for_tables(account),
        Spoken::Mongo(credentials) => target.for_mongo(credentials.clone()),
        Spoken::NoSql => target,
    });
    let stop = stop_on_interrupt();
    let mut client = Client::new(target.clone());
    match options.api {
        Spoken::Table(_) => make_table(&mut client, &options).await?,
        Spoken::Mongo(_) => make_collection(&mut client, &options).await?,
        Spoken::NoSql => make_container(&mut client, &options).await?,
    }
    let result = measure(&options, &target, server.as_deref(), &stop).await;
    let kind = if matches!(options.api, Spoken::Table(_)) { "table" } else { "database" };
    if options.keep {
        eprintln!("kept the {kind} `{}`", options.made);
    } else {
        let call = match options.api {
            Spoken::Table(_) => table_requests::delete_table(&table_prefix(&options), &options.made),
            Spoken::Mongo(_) => mongo_requests::drop_database(&options.made),
            Spoken::NoSql => delete_database(&options.made),
        };
        expect(&mut client, &call, &[200, 204, 404])
            .await
            .with_context(|| format!("cannot remove the {kind}"))?;
    }
    let report = result?;
    if let Some(server) = &server {
        server.close()?;
    }
    match options.json {
        true => println!("{}", report.json()),
        false => print!("{}", report.text()),
    }
    Ok(())
}

async fn measure(
    options: &Options,
    target: &Arc<Target>,
    server: Option<&InProcess>,
    stop: &Arc<AtomicBool>,
) -> Result<Report> {
    let api = match options.api {
        Spoken::Table(_) => Api::Table { path: format!("{}{}", table_prefix(options), options.made) },
        Spoken::Mongo(_) => Api::Mongo { database: options.made.clone(), collection: CONTAINER },
        Spoken::NoSql => Api::NoSql { container: format!("dbs/{}/colls/{CONTAINER}", options.made) },
    };
    let maker = Arc::new(Maker {
        api,
        shape: Shape { size_bytes: options.size_bytes, partitions: options.partitions },
        chooser: Chooser::new(options.items, options.zipf),
        next_new: AtomicU64::new(options.items),
        revision: AtomicU64::new(1),
    });
    let mut report = Report {
        endpoint: match &options.in_process {
            Some(directory) => format!("this process, with {}", directory.display()),
            None => options.endpoint.to_string(),
        },
        connections: options.connections,
        phases: Vec::new(),
    };
    let loaded = load(options, target, &maker, stop).await?;
    report.phases.push(loaded);
    for kind in &options.kinds {
        if stop.load(Relaxed) {
            break;
        }
        report.phases.push(match server {
            Some(server) => in_process::phase(*kind, options, target, &maker, server).await?,
            None => phase(*kind, options, target, &maker, stop).await,
        });
    }
    Ok(report)
}

/// The first interrupt ends the measuring, with a report; the second ends the program.
fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            if flag.swap(true, Relaxed) {
                std::process::exit(130);
            }
        }
    });
    stop
}

async fn make_container(client: &mut Client, options: &Options) -> Result<()> {
    let Options { made: database, throughput, .. } = options;
    let json = || ("content-type", "application/json".to_owned());
    let call = Call {
        method: Method::POST,
        path: "dbs".into(),
        link: String::new(),
        kind: "dbs",
        headers: vec![json()],
        body: format!(r#"{{"id":"{database}"}}"#).into(),
    };
    let answer = expect(client, &call, &[201, 409]).await.context("cannot make the database")?;
    if answer.status == 409 {
        bail!(
            "the database `{database}` exists already; choose another name with --database (a workload only removes what it made)"
        );
    }
    let link = format!("dbs/{database}");
    let call = Call {
        method: Method::POST,
        path: format!("{link}/colls"),
        link,
        kind: "colls",
        headers: vec![json(), ("x-ms-offer-throughput", throughput.to_string())],
        body: format!(
            r#"{{"id":"{CONTAINER}","partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}}}}"#
        )
        .into(),
    };
    expect(client, &call, &[201]).await.context("cannot make the container").map(drop)
}

fn delete_database(database: &str) -> Call {
    let path = format!("dbs/{database}");
    Call {
        method: Method::DELETE,
        link: path.clone(),
        path,
        kind: "dbs",
        headers: Vec::new(),
        body: Bytes::new(),
    }
}

/// What stands in front of the names of tables in a path: the account, where the endpoint names it there.
fn table_prefix(options: &Options) -> String {
    match options.endpoint.path().trim_matches('/') {
        "" => String::new(),
        account => format!("{account}/"),
    }
}

async fn make_table(client: &mut Client, options: &Options) -> Result<()> {
    let Options { made: table, throughput, .. } = options;
    let call = table_requests::create_table(&table_prefix(options), table, *throughput);
    let answer = expect(client, &call, &[201, 409]).await.context("cannot make the table")?;
    if answer.status == 409 {
        bail!(
            "the table `{table}` exists already; choose another name with --table (a workload only removes what it made)"
        );
    }
    Ok(())
}

async fn make_collection(client: &mut Client, options: &Options) -> Result<()> {
    let Options { made: database, throughput, .. } = options;
    let answer = expect(client, &mongo_requests::list_database(database), &[200]).await?;
    let reply = mongo_wire::read(&answer.body)?;
    if reply.get("databases").and_then(Bson::as_array).is_some_and(|found| !found.is_empty()) {
        bail!(
            "the database `{database}` exists already; choose another name with --database (a workload only removes what it made)"
        );
    }
    let call = mongo_requests::create_collection(database, CONTAINER, *throughput);
    expect(client, &call, &[200]).await.context("cannot make the collection").map(drop)
}

/// Sends until it is neither throttled nor broken; any other status than those expected is an error.
async fn expect(client: &mut Client, call: &Call, statuses: &[u16]) -> Result<Answer> {
    for attempt in 1.. {
        match client.send(call).await {
            Ok(answer) if statuses.contains(&answer.status) => return Ok(answer),
            Ok(answer) if [429, 449, 503].contains(&answer.status) && attempt < ATTEMPTS_MAX => {
                tokio::time::sleep(answer.retry_after()).await;
            }
            Ok(answer) => bail!("{} /{}: {}", call.method, call.path, answer.message()),
            Err(error) if attempt >= 3 => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    unreachable!("the loop only ends by returning")
}

async fn load(
    options: &Options,
    target: &Arc<Target>,
    maker: &Arc<Maker>,
    stop: &Arc<AtomicBool>,
) -> Result<Phase> {
    let bar = bar(options, options.items, "loading");
    let next = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..options.connections {
        let (target, maker, next, stop, bar, items) =
            (target.clone(), maker.clone(), next.clone(), stop.clone(), bar.clone(), options.items);
        tasks.spawn(async move {
            let mut client = Client::new(target);
            let mut phase = Phase::new("load");
            while !stop.load(Relaxed) {
                let number = next.fetch_add(1, Relaxed);
                if number >= items {
                    break;
                }
                let sent = Instant::now();
                let answer = expect(&mut client, &maker.upsert(number), &[200, 201, 204])
                    .await
                    .context("cannot load the items")?;
                phase.answered(sent.elapsed(), answer.charge_ru());
                bar.inc(1);
            }
            Ok::<Phase, anyhow::Error>(phase)
        });
    }
    let mut phase = Phase::new("load");
    while let Some(done) = tasks.join_next().await {
        phase.add(&done??);
    }
    bar.finish_and_clear();
    phase.elapsed = began.elapsed();
    Ok(phase)
}

async fn phase(
    kind: Kind,
    options: &Options,
    target: &Arc<Target>,
    maker: &Arc<Maker>,
    stop: &Arc<AtomicBool>,
) -> Phase {
    let name = kind.name();
    let (length, count) = match options.until {
        Until::Count(count) => (count, Some(count)),
        Until::Elapsed(limit) => (limit.as_millis() as u64, None),
    };
    let bar = bar(options, length, &name);
    let left = Arc::new(AtomicU64::new(count.unwrap_or(u64::MAX)));
    let began = Instant::now();
    let deadline = match options.until {
        Until::Elapsed(limit) => Some(began + limit),
        Until::Count(_) => None,
    };
    let mut tasks = JoinSet::new();
    let connections: Vec<_> = (0..options.connections).map(|_| SharedDirect::default()).collect();
    for number in 0..options.connections as u64 * options.in_flight as u64 {
        let connection = &connections[number as usize % connections.len()];
        let worker = Worker {
            client: Client::sharing(target.clone(), connection.clone()),
            maker: maker.clone(),
            random: Random::new(options.seed.wrapping_add(number.wrapping_mul(0x1234_5678_9abc_def1))),
            phase: Phase::new(&name),
        };
        let (stop, left, bar) = (stop.clone(), left.clone(), bar.clone());
        tasks.spawn(worker.run(kind, deadline, left, stop, bar));
    }
    let ticker = (count.is_none()).then(|| {
        let bar = bar.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(200)).await;
                bar.set_position(began.elapsed().as_millis() as u64);
            }
        })
    });
    let mut phase = Phase::new(&name);
    while let Some(done) = tasks.join_next().await {
        if let Ok(part) = done {
            phase.add(&part);
        }
    }
    if let Some(ticker) = ticker {
        ticker.abort();
    }
    bar.finish_and_clear();
    phase.elapsed = began.elapsed();
    phase
}

/// One request after the other, over a connection of a phase.
struct Worker {
    client: Client,
    maker: Arc<Maker>,
    random: Random,
    phase: Phase,
}

impl Worker {
    async fn run(
        mut self,
        kind: Kind,
        deadline: Option<Instant>,
        left: Arc<AtomicU64>,
        stop: Arc<AtomicBool>,
        bar: ProgressBar,
    ) -> Phase {
        let go_on = || !stop.load(Relaxed) && deadline.is_none_or(|deadline| Instant::now() < deadline);
        let mut failures_in_a_row = 0;
        while go_on() && failures_in_a_row < FAILURES_IN_A_ROW_MAX {
            if left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err() {
                break;
            }
            let call = self.maker.call(kind, &mut self.random);
            loop {
                let sent = Instant::now();
                match self.client.send(&call).await {
                    Ok(answer) if answer.status == 429 => {
                        self.phase.throttled += 1;
                        tokio::time::sleep(answer.retry_after()).await;
                        if go_on() {
                            continue;
                        }
                    }
                    Ok(answer) if answer.is_success() => {
                        failures_in_a_row = 0;
                        self.phase.answered(sent.elapsed(), answer.charge_ru());
                    }
                    Ok(answer) => {
                        // An answer is an answer: errors of the operation do not end a phase early unless nothing
                        // else comes.
                        failures_in_a_row += 1;
                        self.phase.failed(&answer.message());
                    }
                    Err(error) => {
                        failures_in_a_row += 1;
                        self.phase.failed(&format!("{error:#}"));
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
                break;
            }
            if deadline.is_none() {
                bar.inc(1);
            }
        }
        self.phase
    }
}

fn bar(options: &Options, length: u64, name: &str) -> ProgressBar {
    let target = if options.json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    if let Ok(style) =
        ProgressStyle::with_template("{msg:>8} {wide_bar} {percent:>3} %  {elapsed} of about {duration}")
    {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    bar
}
