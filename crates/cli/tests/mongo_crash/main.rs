//! A server that is killed while clients of the MongoDB API write, and while their collection is split and merged:
//! after each restart every acknowledged write is there, what was sent twice was done once, a transaction is there
//! whole or not at all; and a change stream, resumed each time, tells every change of every document once and in order.
//!
//! Rounds (5; the full run has 30), seed and binary are set as `orrery_testkit::CrashTest` says.

mod client;
mod watcher;
mod writer;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use orrery_mongo::doc;
use orrery_testkit::{Client, CrashTest};

use client::{Mongo, done};
use watcher::Watcher;
use writer::Writer;

const DATABASE: &str = "crash";
const COLLECTION: &str = "counters";
const ROUNDS_DEFAULT: u64 = 5;
const WRITERS: u64 = 4;
const ROUND_MS_MIN: u64 = 200;
const ROUND_MS_MAX: u64 = 1500;
/// Partitions from which on they are merged.
const RANGES_MAX: usize = 4;

enum Actor {
    Writer(Box<Writer>),
    Watcher(Watcher),
}

impl Actor {
    fn act_until(&mut self, address: SocketAddr, over: &AtomicBool) -> Result<()> {
        match self {
            Actor::Writer(writer) => writer.write_until(address, over),
            Actor::Watcher(watcher) => watcher.watch_until(address, over),
        }
    }

    fn writer(&self) -> Option<&Writer> {
        if let Actor::Writer(writer) = self { Some(writer) } else { None }
    }
}

#[test]
fn a_server_killed_under_clients_of_mongodb_loses_nothing_and_tells_every_change() {
    CrashTest::run("MongoDB crash test", ROUNDS_DEFAULT, env!("CARGO_BIN_EXE_orrery"), run);
}

fn run(test: &mut CrashTest) -> Result<String> {
    let create = doc! { "customAction" => "CreateCollection", "collection" => COLLECTION, "shardKey" => "s" };
    done(Mongo::connect(test.server.address())?.command(DATABASE, create)?)?;
    let mut watcher = Watcher::default();
    watcher.begin(test.server.address())?;
    let mut actors: Vec<Actor> = (0..WRITERS)
        .map(|number| Actor::Writer(Box::new(Writer::new(number, test.random.next_u64()))))
        .collect();
    actors.push(Actor::Watcher(watcher));
    let (mut splits, mut merges, mut undone) = (0, 0, 0);
    for round in 1..=test.rounds {
        let mut http = Client::new(test.server.address());
        let before = ranges(&mut http)?;
        let operation = if before >= RANGES_MAX { "merge" } else { "split" };
        let duration = Duration::from_millis(ROUND_MS_MIN + test.random.below(ROUND_MS_MAX - ROUND_MS_MIN));
        let context = || format!("round {round}, {operation}, killed after {duration:?}");
        test.round(&mut actors, Actor::act_until, |server| {
            let path = "_orrery/splits";
            let body = format!(
                r#"{{"operation":"{operation}","database":"{DATABASE}","container":"{COLLECTION}"}}"#
            );
            let started = http.post(path, path, "_orrery", &[], &body)?.expect_status(202);
            std::thread::sleep(duration);
            server.kill()?;
            started.map(|_| ())
        })
        .with_context(context)?;
        match ranges(&mut Client::new(test.server.address()))?.cmp(&before) {
            std::cmp::Ordering::Greater => splits += 1,
            std::cmp::Ordering::Less => merges += 1,
            std::cmp::Ordering::Equal => undone += 1,
        }
        let mut mongo = Mongo::connect(test.server.address())?;
        for actor in &mut actors {
            if let Actor::Writer(writer) = actor {
                writer.check(&mut mongo).with_context(context)?;
            }
        }
    }
    let histories: BTreeMap<_, _> =
        actors.iter().filter_map(Actor::writer).flat_map(|writer| writer.history.clone()).collect();
    for actor in &mut actors {
        if let Actor::Watcher(watcher) = actor {
            watcher.catch_up(test.server.address(), &histories).context("the change stream")?;
        }
    }
    let sum = |count: fn(&Writer) -> u64| actors.iter().filter_map(Actor::writer).map(count).sum::<u64>();
    ensure!(sum(|writer| writer.acknowledged) > 0, "nothing was written");
    Ok(format!(
        "{} acknowledged changes, {} of them sent twice, {} transactions, {} in flight at a kill and found, {} changes told, {splits} splits and {merges} merges, {undone} undone",
        sum(|writer| writer.acknowledged),
        sum(|writer| writer.repeated),
        sum(|writer| writer.committed),
        sum(|writer| writer.in_flight_found),
        histories.values().map(Vec::len).sum::<usize>(),
    ))
}

fn ranges(client: &mut Client) -> Result<usize> {
    let container = format!("dbs/{DATABASE}/colls/{COLLECTION}");
    let path = format!("{container}/pkranges");
    let reply = client.get(&path, &container, "pkranges", &[])?.expect_status(200)?;
    Ok(reply.json()?["PartitionKeyRanges"].as_array().context("no ranges")?.len())
}
