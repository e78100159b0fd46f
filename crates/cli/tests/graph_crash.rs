//! A server that is killed while graphs are written, walked, split and merged: after each restart every acknowledged
//! vertex and edge is there once, along its edges and against them; and so it was for those who walked the graph
//! beside the splits.
//!
//! Rounds (5; the full run has 30), seed and binary are set as `orrery_testkit::CrashTest` says.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use orrery_testkit::{Client, CrashTest, GraphWriter};

const CONTAINER: &str = "dbs/graphs/colls/things";
const ROUNDS_DEFAULT: u64 = 5;
const WRITERS: u64 = 4;
const ROUND_MS_MIN: u64 = 200;
const ROUND_MS_MAX: u64 = 1500;
/// Partitions from which on they are merged.
const RANGES_MAX: usize = 6;

#[test]
fn a_server_killed_in_the_middle_of_graphs_and_splits_keeps_every_vertex_and_edge_once() {
    CrashTest::run("graph crash test", ROUNDS_DEFAULT, env!("CARGO_BIN_EXE_orrery"), run);
}

fn run(test: &mut CrashTest) -> Result<String> {
    let mut client = Client::new(test.server.address());
    client.post("dbs", "", "dbs", &[], r#"{"id":"graphs"}"#)?.expect_status(201)?;
    let definition = r#"{"id":"things","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    client.post("dbs/graphs/colls", "dbs/graphs", "colls", &[], definition)?.expect_status(201)?;
    let mut writers: Vec<GraphWriter> =
        (0..WRITERS).map(|number| GraphWriter::new(CONTAINER, number, test.random.next_u64())).collect();
    let (mut splits, mut merges, mut undone) = (0, 0, 0);
    for round in 1..=test.rounds {
        let before = ranges(&mut client)?;
        let operation = if before >= RANGES_MAX { "merge" } else { "split" };
        let duration = Duration::from_millis(ROUND_MS_MIN + test.random.below(ROUND_MS_MAX - ROUND_MS_MIN));
        let context = || format!("round {round}, {operation}, killed after {duration:?}");
        let graphs = test.server.gremlin_address().context("no port for graphs")?;
        test.round(
            &mut writers,
            |writer, _, over| writer.write_until(graphs, over),
            |server| {
                let path = "_orrery/splits";
                let body =
                    format!(r#"{{"operation":"{operation}","database":"graphs","container":"things"}}"#);
                let started = client.post(path, path, "_orrery", &[], &body)?.expect_status(202);
                std::thread::sleep(duration);
                server.kill()?;
                started.map(|_| ())
            },
        )
        .with_context(context)?;
        client = Client::new(test.server.address());
        match ranges(&mut client)?.cmp(&before) {
            std::cmp::Ordering::Greater => splits += 1,
            std::cmp::Ordering::Less => merges += 1,
            std::cmp::Ordering::Equal => undone += 1,
        }
        let mut graph = Client::new(test.server.gremlin_address().context("no port for graphs")?);
        for writer in &mut writers {
            writer.check(&mut graph).with_context(context)?;
        }
    }
    let sum = |count: fn(&GraphWriter) -> u64| writers.iter().map(count).sum::<u64>();
    ensure!(sum(|writer| writer.acknowledged) > 0, "nothing was written");
    Ok(format!(
        "{} acknowledged changes of a graph, {} walks beside them, {} in flight at a kill ({} of them found), {splits} splits and {merges} merges, {undone} undone",
        sum(|writer| writer.acknowledged),
        sum(|writer| writer.walks),
        sum(|writer| writer.in_flight),
        sum(|writer| writer.in_flight_found),
    ))
}

fn ranges(client: &mut Client) -> Result<usize> {
    let path = format!("{CONTAINER}/pkranges");
    let reply = client.get(&path, CONTAINER, "pkranges", &[])?.expect_status(200)?;
    Ok(reply.json()?["PartitionKeyRanges"].as_array().context("no ranges")?.len())
}
