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
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use orrery_testkit::{ChangesetWriter, Client, CrashTest};

use check::Feeds;
use writer::Writer;

pub const CONTAINER: &str = "dbs/crash/colls/items";
const WRITERS: usize = 5;
const TABLE: &str = "groups";
const CHANGESET_WRITERS: u64 = 2;
const ROUNDS_DEFAULT: u64 = 5;
const ROUND_MS_MIN: u64 = 150;
const ROUND_MS_MAX: u64 = 1200;

#[test]
fn a_killed_server_keeps_every_acknowledged_write() {
    CrashTest::run("crash test", ROUNDS_DEFAULT, env!("CARGO_BIN_EXE_orrery"), run);
}

fn run(test: &mut CrashTest) -> Result<String> {
    make_container(&mut Client::new(test.server.address()))?;
    let mut client = Client::new(test.server.address());
    ChangesetWriter::create_table(&mut client, TABLE, "25000")?;
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|number| Writer::new(number, test.random.next_u64())).collect();
    let mut changesets: Vec<ChangesetWriter> = (0..CHANGESET_WRITERS)
        .map(|number| ChangesetWriter::new(TABLE, number, test.random.next_u64()))
        .collect();
    let mut feeds = Feeds::new(&mut Client::new(test.server.address()))?;
    for round in 1..=test.rounds {
        let gracefully = round % 5 == 0;
        let context = || format!("round {round}, after {}", if gracefully { "SIGTERM" } else { "SIGKILL" });
        let duration = Duration::from_millis(ROUND_MS_MIN + test.random.below(ROUND_MS_MAX - ROUND_MS_MIN));
        let mut all: Vec<AnyWriter<'_>> = writers.iter_mut().map(AnyWriter::Items).collect();
        all.extend(changesets.iter_mut().map(AnyWriter::Changesets));
        test.round(&mut all, AnyWriter::write_until, |server| {
            std::thread::sleep(duration);
            match gracefully {
                true => ensure!(
                    server.stop()?.success(),
                    "a graceful stop ended with an error:\n{}",
                    server.log()
                ),
                false => server.kill()?,
            }
            Ok(())
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
