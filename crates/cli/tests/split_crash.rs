//! A server that is killed in the middle of splits and merges: after each restart every acknowledged write is there,
//! and every hash value has exactly one owner.
//!
//! Each round begins a split or a merge over the wire, lets writers go on beside it, one of them with changesets of a
//! table that is split or merged as well, and kills the server at a random moment: while it plans, copies, catches
//! up, hands over, or frees the old partitions. Rounds (5; the full run has 30), seed and binary are set as
//! `orrery_testkit::CrashTest` says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use orrery_testkit::{ChangesetWriter, Client, CrashTest, Random, Reply};
use serde_json::Value;

const CONTAINER: &str = "dbs/splits/colls/items";
const ROUNDS_DEFAULT: u64 = 5;
const ITEMS: u64 = 3_000;
const KEYS: u64 = 97;
const WRITERS: u64 = 3;
const TABLE: &str = "groups";
const TABLE_CONTAINER: &str = "dbs/TablesDB/colls/groups";
/// Longest wait before the kill, in parts of what an undisturbed split took: a third of them have happened by then.
const KILL_AFTER_PERCENT_MAX: u64 = 200;

/// One that writes, and what it knows about its items.
struct Writer {
    number: u64,
    random: Random,
    acknowledged: BTreeMap<String, u64>,
    /// Sent and not answered: it may have happened.
    in_flight: Option<(String, u64)>,
}

#[test]
fn a_server_killed_in_the_middle_of_splits_keeps_every_write_and_one_owner_per_key() {
    CrashTest::run("split crash test", ROUNDS_DEFAULT, env!("CARGO_BIN_EXE_orrery"), run);
}

fn run(test: &mut CrashTest) -> Result<String> {
    let mut client = Client::new(test.server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"splits"}"#)?.expect_status(201)?;
    let definition = r#"{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/u"]}]}}"#;
    client.post("dbs/splits/colls", "dbs/splits", "colls", &[], definition)?.expect_status(201)?;
    let mut writers: Vec<Writer> =
        (0..WRITERS).map(|number| Writer::new(number, test.random.next_u64())).collect();
    for n in 0..ITEMS {
        let writer = (n % WRITERS) as usize;
        let id = format!("{writer}-{n}");
        upsert(&mut client, &id, n, 0)?;
        writers[writer].acknowledged.insert(id, 0);
    }
    ChangesetWriter::create_table(&mut client, TABLE, "400")?;
    let mut changesets = ChangesetWriter::new(TABLE, 0, test.random.next_u64());
    let took_ms = split_undisturbed(&mut client)?;
    let kill_after_ms_max = 20 + took_ms * KILL_AFTER_PERCENT_MAX / 100;
    println!("an undisturbed split takes {took_ms} ms");
    let mut seen = (0, 0, 0);
    let (mut table_ranges, mut table_changes) = (1, 0);
    // What the job was at, as the server said a moment before its death.
    let mut moments: BTreeMap<String, u64> = BTreeMap::new();
    for round in 1..=test.rounds {
        let ranges = check_ranges(&mut client, CONTAINER)?;
        // Few partitions are split, many are merged, so that both happen all the time.
        let merges = ranges > 6 || ranges > 1 && test.random.below(3) == 0;
        let operation = if merges { "merge" } else { "split" };
        let killed_after = Duration::from_millis(test.random.below(kill_after_ms_max));
        let context = || format!("round {round}, {operation}, killed after {killed_after:?}");
        let write = |writer: &mut AnyWriter<'_>, address, over: &AtomicBool| match writer {
            AnyWriter::Items(writer) => {
                writer.write_until(address, round, over);
                Ok(())
            }
            AnyWriter::Changesets(writer) => writer.write_until(address, over),
        };
        let mut all: Vec<AnyWriter<'_>> = writers.iter_mut().map(AnyWriter::Items).collect();
        all.push(AnyWriter::Changesets(&mut changesets));
        test.round(&mut all, write, |server| {
            let started =
                begin(&mut client, operation, "splits", "items").and_then(|reply| reply.expect_status(202));
            // The table may be split less often than the items, and what cannot be merged is refused.
            begin(&mut client, operation, "TablesDB", TABLE)?;
            std::thread::sleep(killed_after);
            *moments.entry(step(&mut client).unwrap_or_else(|_| "unknown".to_owned())).or_insert(0) += 1;
            let killed = server.kill();
            started.context("the split was not begun")?;
            killed
        })
        .with_context(context)?;
        client = Client::new(test.server.address());
        let now = check_ranges(&mut client, CONTAINER).with_context(context)?;
        let table_now = check_ranges(&mut client, TABLE_CONTAINER).with_context(context)?;
        table_changes += u64::from(table_now != table_ranges);
        table_ranges = table_now;
        match now.cmp(&ranges) {
            std::cmp::Ordering::Greater => seen.0 += 1,
            std::cmp::Ordering::Less => seen.1 += 1,
            std::cmp::Ordering::Equal => seen.2 += 1,
        }
        check_items(&mut client, &mut writers).with_context(context)?;
        changesets.check(&mut client).with_context(context)?;
    }
    ensure!(changesets.acknowledged > 0, "no changeset was written");
    let moments: Vec<String> = moments.iter().map(|(step, count)| format!("{step} {count}")).collect();
    Ok(format!(
        "killed when {}: {} splits and {} merges had happened, {} were undone; beside them {} changesets over {table_changes} splits and merges, {} in flight at a kill ({} of them found whole)",
        moments.join(", "),
        seen.0,
        seen.1,
        seen.2,
        changesets.acknowledged,
        changesets.in_flight,
        changesets.in_flight_found,
    ))
}

/// Writers of both kinds, which share a round.
enum AnyWriter<'w> {
    Items(&'w mut Writer),
    Changesets(&'w mut ChangesetWriter),
}

/// Asks for a split or a merge.
fn begin(client: &mut Client, operation: &str, database: &str, container: &str) -> Result<Reply> {
    let body = format!(r#"{{"operation":"{operation}","database":"{database}","container":"{container}"}}"#);
    let path = "_orrery/splits";
    client.post(path, path, "_orrery", &[], &body)
}

/// The step of the latest job of the items.
fn step(client: &mut Client) -> Result<String> {
    let path = "_orrery/splits";
    let reply = client.get(path, path, "_orrery", &[])?.expect_status(200)?;
    let body: Value = serde_json::from_slice(&reply.body)?;
    let jobs = body["jobs"].as_array().context("no jobs")?;
    let job = jobs.iter().find(|job| job["container"] == "items").context("no job of the items")?;
    Ok(job["step"].as_str().context("no step")?.to_owned())
}

/// Splits once and tells how long it took, with time for the old partition to be removed.
fn split_undisturbed(client: &mut Client) -> Result<u64> {
    let path = "_orrery/splits";
    let body = r#"{"operation":"split","database":"splits","container":"items"}"#;
    client.post(path, path, "_orrery", &[], body)?.expect_status(202)?;
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let reply = client.get(path, path, "_orrery", &[])?.expect_status(200)?;
        let body: Value = serde_json::from_slice(&reply.body)?;
        let job = &body["jobs"][0];
        match job["step"].as_str() {
            Some("done") => return job["tookMs"].as_u64().context("no time"),
            Some("failed") => anyhow::bail!("the split failed: {job}"),
            _ => {}
        }
    }
}

fn key(n: u64) -> String {
    format!("k{}", n % KEYS)
}

fn upsert(client: &mut Client, id: &str, n: u64, version: u64) -> Result<()> {
    let pk = key(n);
    let body =
        format!(r#"{{"id":"{id}","pk":"{pk}","u":"{id}","version":{version},"fill":"{}"}}"#, "x".repeat(200));
    let header = format!("[\"{pk}\"]");
    let headers = [("x-ms-documentdb-partitionkey", header.as_str()), ("x-ms-documentdb-is-upsert", "true")];
    let reply = client.post(&format!("{CONTAINER}/docs"), CONTAINER, "docs", &headers, &body)?;
    ensure!(
        reply.status == 200 || reply.status == 201,
        "{} {}",
        reply.status,
        String::from_utf8_lossy(&reply.body)
    );
    Ok(())
}

impl Writer {
    fn new(number: u64, seed: u64) -> Writer {
        Writer { number, random: Random::new(seed), acknowledged: BTreeMap::new(), in_flight: None }
    }

    /// Writes until the server is gone. An answer that is an error is one that the final check will find.
    fn write_until(&mut self, address: SocketAddr, version: u64, over: &AtomicBool) {
        let mut client = Client::new(address);
        while !over.load(Ordering::Relaxed) {
            let n = self.random.below(ITEMS / WRITERS) * WRITERS + self.number;
            let id = format!("{}-{n}", self.number);
            self.in_flight = Some((id.clone(), version));
            if upsert(&mut client, &id, n, version).is_err() {
                return;
            }
            self.acknowledged.insert(id, version);
            self.in_flight = None;
        }
    }
}

/// How many ranges there are; they must cover the hash space without gap or overlap.
fn check_ranges(client: &mut Client, container: &str) -> Result<usize> {
    let reply =
        client.get(&format!("{container}/pkranges"), container, "pkranges", &[])?.expect_status(200)?;
    let body: Value = serde_json::from_slice(&reply.body)?;
    let ranges = body["PartitionKeyRanges"].as_array().context("no ranges")?;
    let text = |range: &Value, name: &str| range[name].as_str().unwrap_or("?").to_owned();
    let mut bounds: Vec<(String, String)> =
        ranges.iter().map(|range| (text(range, "minInclusive"), text(range, "maxExclusive"))).collect();
    bounds.sort();
    ensure!(bounds.first().is_some_and(|first| first.0.is_empty()), "no range begins at the beginning");
    ensure!(bounds.last().is_some_and(|last| last.1 == "FF"), "no range ends at the end");
    ensure!(bounds.windows(2).all(|pair| pair[0].1 == pair[1].0), "gaps or overlaps: {bounds:?}");
    Ok(bounds.len())
}

/// Every item as it was last acknowledged, and nothing else.
fn check_items(client: &mut Client, writers: &mut [Writer]) -> Result<()> {
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    let mut continuation = String::new();
    loop {
        let mut headers = vec![("x-ms-max-item-count", "1000")];
        if !continuation.is_empty() {
            headers.push(("x-ms-continuation", continuation.as_str()));
        }
        let reply =
            client.get(&format!("{CONTAINER}/docs"), CONTAINER, "docs", &headers)?.expect_status(200)?;
        let body: Value = serde_json::from_slice(&reply.body)?;
        for item in body["Documents"].as_array().context("no items")? {
            let id = item["id"].as_str().context("no id")?.to_owned();
            ensure!(found.insert(id.clone(), item["version"].as_u64().unwrap_or(0)).is_none(), "{id} twice");
        }
        match reply.header("x-ms-continuation") {
            Some(next) => continuation = next.to_owned(),
            None => break,
        }
    }
    for writer in writers {
        if let Some((id, version)) = writer.in_flight.take()
            && found.get(&id) == Some(&version)
        {
            writer.acknowledged.insert(id, version);
        }
        for (id, version) in &writer.acknowledged {
            ensure!(found.remove(id) == Some(*version), "{id}: version {version} was acknowledged");
        }
    }
    ensure!(found.is_empty(), "items that nobody wrote: {:?}", found.keys().take(5).collect::<Vec<_>>());
    Ok(())
}
