//! Nothing acknowledged is lost: the server is killed under concurrent writes, again and again, and checked against a
//! model.
//!
//! Several writers share a container of three physical partitions with a unique key. Each owns its ids, so each knows
//! exactly what must be there: the last acknowledged version with its etag, or nothing. The server dies by SIGKILL at
//! a random moment (sometimes by SIGTERM, which must lose nothing either), starts again on the same directory, and
//! then
//!
//! - every item is read and compared; the one operation that each writer had in flight may be there or not, but whole;
//! - the container holds nothing else;
//! - unique values in use are refused, freed ones are free;
//! - the change feed of each partition, read from its beginning, has every living item once, in order; read on from
//!   the position before the round, it has exactly what changed since.
//!
//! Beside them others write changesets of the Table API, each of which must be there as a whole or not at all.
//!
//! Rounds (5; the full run has 50), seed and binary are set as `orrery_testkit::CrashTest` says.

mod check;
mod model;
mod writer;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use orrery_testkit::postgres::Postgres;
use orrery_testkit::{ChangesetWriter, Client, CrashTest, TestServer};

use check::Feeds;
use writer::Writer;

pub const CONTAINER: &str = "dbs/crash/colls/items";
const WRITERS: usize = 5;
const TABLE: &str = "groups";
const CHANGESET_WRITERS: u64 = 2;
const ROUNDS_DEFAULT: u64 = 5;
const ROUNDS_OVER_POSTGRES: u64 = 3;
const ROUND_MS_MIN: u64 = 150;
const ROUND_MS_MAX: u64 = 1200;

#[test]
fn a_killed_server_keeps_every_acknowledged_write() {
    CrashTest::run("crash test", ROUNDS_DEFAULT, env!("CARGO_BIN_EXE_orrery"), |test| {
        run(test, false, |round, server| match round % 5 {
            0 => {
                let ended = server.stop()?.success();
                ensure!(ended, "a graceful stop ended with an error:\n{}", server.log());
                Ok(())
            }
            _ => server.kill(),
        })
    });
}

/// The same over a log in PostgreSQL, which is killed too, and sometimes the server's copy is lost.
#[test]
fn neither_a_killed_postgresql_nor_a_lost_copy_costs_an_acknowledged_write() {
    let name = "crash test over PostgreSQL";
    let Some(postgres) = Postgres::start(name) else { return };
    let address = postgres.database("crash");
    let arguments = ["--store", address.as_str()];
    CrashTest::run_with(name, ROUNDS_OVER_POSTGRES, env!("CARGO_BIN_EXE_orrery"), &arguments, |test| {
        run(test, true, |round, server| {
            if round % 3 == 2 {
                postgres.kill()?;
                postgres.resume()?;
                serves_again(server)?;
            }
            match round % 5 {
                0 => ensure!(server.stop()?.success(), "ended with an error:\n{}", server.log()),
                _ => server.kill()?,
            }
            if round % 3 == 0 {
                std::fs::remove_dir_all(server.data_dir().join("copy"))?;
            }
            Ok(())
        })
    });
}

/// Waits until a server whose store was away reads items again, without having been restarted.
fn serves_again(server: &TestServer) -> Result<()> {
    let began = Instant::now();
    let (docs, mut client) = (format!("{CONTAINER}/docs"), Client::new(server.address()));
    loop {
        let status = client.get(&docs, CONTAINER, "docs", &[])?.status;
        if status == 200 {
            return Ok(());
        }
        ensure!(status == 503, "an outage is answered with {status}");
        ensure!(began.elapsed() < Duration::from_secs(30), "away for half a minute:\n{}", server.log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn run(
    test: &mut CrashTest,
    meets_outages: bool,
    end: impl Fn(u64, &mut TestServer) -> Result<()>,
) -> Result<String> {
    make_container(&mut Client::new(test.server.address()))?;
    let mut client = Client::new(test.server.address());
    ChangesetWriter::create_table(&mut client, TABLE, "25000")?;
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|number| Writer::new(number, test.random.next_u64())).collect();
    let mut changesets: Vec<ChangesetWriter> = (0..CHANGESET_WRITERS)
        .map(|number| ChangesetWriter::new(TABLE, number, test.random.next_u64()))
        .map(|writer| if meets_outages { writer.meeting_outages() } else { writer })
        .collect();
    writers.iter_mut().for_each(|writer| writer.meets_outages = meets_outages);
    let mut feeds = Feeds::new(&mut Client::new(test.server.address()))?;
    for round in 1..=test.rounds {
        let context = || format!("round {round}");
        let duration = Duration::from_millis(ROUND_MS_MIN + test.random.below(ROUND_MS_MAX - ROUND_MS_MIN));
        let mut all: Vec<AnyWriter<'_>> = writers.iter_mut().map(AnyWriter::Items).collect();
        all.extend(changesets.iter_mut().map(AnyWriter::Changesets));
        test.round(&mut all, AnyWriter::write_until, |server| {
            std::thread::sleep(duration);
            end(round, server)
        })
        .with_context(context)?;
        let mut client = Client::new(test.server.address());
        for writer in &mut writers {
            writer.settle(&mut client).with_context(context)?;
        }
        for writer in &mut changesets {
            writer.check(&mut client).with_context(context)?;
        }
        check::items(&mut client, &writers).with_context(context)?;
        feeds.check(&mut client, &mut writers).with_context(context)?;
        check::unique_values(&mut client, &mut writers, &mut test.random).with_context(context)?;
    }
    let of_changesets = |count: fn(&ChangesetWriter) -> u64| changesets.iter().map(count).sum::<u64>();
    ensure!(of_changesets(|writer| writer.acknowledged) > 0, "no changeset was written");
    let sum = |count: fn(&Writer) -> u64| writers.iter().map(count).sum::<u64>();
    ensure!(sum(|writer| writer.acknowledged) > 0, "nothing was written");
    Ok(format!(
        "{} acknowledged writes, {} refused as they should be, {} in flight at a kill ({} of them found whole), {} items at the end; {} changesets, {} in flight at a kill ({} of them found whole)",
        sum(|writer| writer.acknowledged),
        sum(|writer| writer.refused),
        sum(|writer| writer.in_flight),
        sum(|writer| writer.in_flight_found),
        sum(|writer| writer.model.items.len() as u64),
        of_changesets(|writer| writer.acknowledged),
        of_changesets(|writer| writer.in_flight),
        of_changesets(|writer| writer.in_flight_found),
    ))
}

/// Writers of both kinds, which share a round.
enum AnyWriter<'w> {
    Items(&'w mut Writer),
    Changesets(&'w mut ChangesetWriter),
}

impl AnyWriter<'_> {
    fn write_until(&mut self, address: SocketAddr, over: &AtomicBool) -> Result<()> {
        match self {
            AnyWriter::Items(writer) => writer.write_until(address, over),
            AnyWriter::Changesets(writer) => writer.write_until(address, over),
        }
    }
}

/// 25,000 RU/s make three physical partitions.
fn make_container(client: &mut Client) -> Result<()> {
    client.post("dbs", "", "dbs", &[], r#"{"id":"crash"}"#)?.expect_status(201)?;
    let definition = r#"{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}}"#;
    let headers = [("x-ms-offer-throughput", "25000")];
    client.post("dbs/crash/colls", "dbs/crash", "colls", &headers, definition)?.expect_status(201)?;
    Ok(())
}
