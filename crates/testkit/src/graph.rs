//! Graphs for tests that kill the server: writers that own a part of a graph each and know what must be there.
//!
//! A writer adds vertices and edges between them, changes and drops them, one traversal at a time, and looks at its
//! part of the graph between its writes: from the vertices along their edges, against them, and at the elements
//! themselves. Its vertices lie in many logical partitions, so each of these walks visits every physical partition,
//! also while they are split and merged.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::client::{Client, EMULATOR_KEY, Reply};
use crate::random::Random;

/// Vertices of one writer, and edges.
const VERTICES_MAX: usize = 60;
const EDGES_MAX: usize = 200;
/// Writes between two walks.
const WRITES_PER_WALK: u64 = 8;

/// A script over HTTP; `address` of the client is that of the Gremlin API. The answer is its results.
pub fn graph_script(client: &mut Client, graph: &str, script: &str) -> Result<Reply> {
    graph_request(client, graph, &serde_json::json!({ "gremlin": script }))
}

/// The same with other members than the script: `bindings`, `evaluationTimeout` and so on.
pub fn graph_request(client: &mut Client, graph: &str, request: &Value) -> Result<Reply> {
    let credentials = STANDARD.encode(format!("/{graph}:{EMULATOR_KEY}"));
    let body = request.to_string();
    let request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nauthorization: Basic {credentials}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.exchange(request.as_bytes())
}

#[derive(Clone, Debug)]
enum Change {
    AddVertex(String),
    SetVersion(String, u64),
    DropVertex(String),
    AddEdge(String, String, String),
    DropEdge(String),
}

/// What is there, or must be.
#[derive(Clone, Debug, Default, PartialEq)]
struct Part {
    /// Versions by id.
    vertices: BTreeMap<String, u64>,
    /// Sources and sinks by id.
    edges: BTreeMap<String, (String, String)>,
}

impl Part {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::AddVertex(id) => {
                self.vertices.insert(id.clone(), 0);
            }
            Change::SetVersion(id, version) => {
                self.vertices.insert(id.clone(), *version);
            }
            Change::DropVertex(id) => {
                self.vertices.remove(id);
                self.edges.retain(|_, (from, to)| from != id && to != id);
            }
            Change::AddEdge(id, from, to) => {
                self.edges.insert(id.clone(), (from.clone(), to.clone()));
            }
            Change::DropEdge(id) => {
                self.edges.remove(id);
            }
        }
    }

    /// Whether a change that was cut off can have led from here to there. A vertex goes after its edges, one by one.
    fn leads_to(&self, change: &Change, found: &Part) -> bool {
        let mut done = self.clone();
        done.apply(change);
        if *found == *self || *found == done {
            return true;
        }
        let Change::DropVertex(_) = change else { return false };
        found.vertices == self.vertices
            && found.edges.iter().all(|(id, ends)| self.edges.get(id) == Some(ends))
            && done.edges.keys().all(|id| found.edges.contains_key(id))
    }
}

/// One that writes a part of a graph, and what it knows about it.
pub struct GraphWriter {
    graph: String,
    number: u64,
    random: Random,
    next: u64,
    part: Part,
    pending: Option<Change>,
    pub acknowledged: u64,
    pub walks: u64,
    /// Changes in flight at a kill, and those of them of which something was found.
    pub in_flight: u64,
    pub in_flight_found: u64,
}

impl GraphWriter {
    /// `graph` is the path of its container, partitioned by `pk`.
    pub fn new(graph: &str, number: u64, seed: u64) -> GraphWriter {
        GraphWriter {
            graph: graph.to_owned(),
            number,
            random: Random::new(seed),
            next: 0,
            part: Part::default(),
            pending: None,
            acknowledged: 0,
            walks: 0,
            in_flight: 0,
            in_flight_found: 0,
        }
    }

    /// Writes and walks until a request gets no answer. An answer that is no success is an error.
    pub fn write_until(&mut self, address: SocketAddr, over: &AtomicBool) -> Result<()> {
        let mut client = Client::new(address);
        while !over.load(Relaxed) && self.pending.is_none() {
            let change = self.choose();
            let Ok(reply) = graph_script(&mut client, &self.graph, &self.script(&change)) else {
                self.in_flight += 1;
                self.pending = Some(change);
                return Ok(());
            };
            ensure!(
                reply.status == 200,
                "writer {}: {change:?} got {} {}",
                self.number,
                reply.status,
                reply.text()
            );
            self.part.apply(&change);
            self.acknowledged += 1;
            if self.acknowledged.is_multiple_of(WRITES_PER_WALK) {
                let Ok(found) = self.walk(&mut client) else { return Ok(()) };
                let found = found?;
                ensure!(found == self.part, "writer {}: {}", self.number, difference(&self.part, &found));
                self.walks += 1;
            }
        }
        Ok(())
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len() as u64) as usize].clone()
    }

    fn choose(&mut self) -> Change {
        let vertices: Vec<String> = self.part.vertices.keys().cloned().collect();
        let edges: Vec<String> = self.part.edges.keys().cloned().collect();
        self.next += 1;
        let number = self.next;
        match self.random.below(10) {
            0 | 1 if vertices.len() < VERTICES_MAX => Change::AddVertex(self.id('v', number)),
            2 if vertices.len() > VERTICES_MAX / 2 => Change::DropVertex(self.one_of(&vertices)),
            3 if edges.len() > EDGES_MAX / 2 => Change::DropEdge(self.one_of(&edges)),
            4 | 5 if !vertices.is_empty() => Change::SetVersion(self.one_of(&vertices), number),
            _ if !vertices.is_empty() && edges.len() < EDGES_MAX => {
                Change::AddEdge(self.id('e', number), self.one_of(&vertices), self.one_of(&vertices))
            }
            _ => Change::AddVertex(self.id('v', number)),
        }
    }

    fn id(&self, kind: char, number: u64) -> String {
        format!("w{}-{kind}{number}", self.number)
    }

    /// Every vertex has a logical partition of its own; an edge has that of its source.
    fn place(id: &str) -> String {
        format!("['k-{id}','{id}']")
    }

    fn script(&self, change: &Change) -> String {
        let number = self.number;
        match change {
            Change::AddVertex(id) => format!(
                "g.addV('thing').property('id','{id}').property('pk','k-{id}').property('w',{number}).property('version',0)"
            ),
            Change::SetVersion(id, version) => {
                format!("g.V({}).property('version',{version})", Self::place(id))
            }
            Change::DropVertex(id) => format!("g.V({}).drop()", Self::place(id)),
            Change::AddEdge(id, from, to) => format!(
                "g.V({}).addE('to').to(g.V({})).property('id','{id}').property('w',{number})",
                Self::place(from),
                Self::place(to)
            ),
            Change::DropEdge(id) => format!("g.E('{id}').drop()"),
        }
    }

    /// Looks at the part in four ways, which must agree. The outer result is that of the connection.
    fn walk(&self, client: &mut Client) -> Result<Result<Part>> {
        let number = self.number;
        let mut answers = Vec::new();
        for script in [
            format!("g.V().has('w',{number}).project('id','version').by(id).by('version')"),
            format!(
                "g.E().has('w',{number}).project('id','from','to').by(id).by(outV().id()).by(inV().id())"
            ),
            format!("g.V().has('w',{number}).outE().id()"),
            format!("g.V().has('w',{number}).inE().id()"),
        ] {
            answers.push(graph_script(client, &self.graph, &script)?);
        }
        Ok(Self::read(&answers))
    }

    fn read(answers: &[Reply]) -> Result<Part> {
        let mut results = Vec::new();
        for reply in answers {
            ensure!(reply.status == 200, "a walk got {} {}", reply.status, reply.text());
            let body = reply.json()?;
            results.push(body["result"]["data"].as_array().context("no results")?.clone());
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut part = Part::default();
        for vertex in &results[0] {
            let version = vertex["version"].as_u64().context("no version")?;
            let twice = part.vertices.insert(text(&vertex["id"]), version).is_some();
            ensure!(!twice, "vertex {} twice", vertex["id"]);
        }
        for edge in &results[1] {
            let ends = (text(&edge["from"]), text(&edge["to"]));
            ensure!(part.edges.insert(text(&edge["id"]), ends).is_none(), "edge {} twice", edge["id"]);
        }
        let all: BTreeSet<String> = part.edges.keys().cloned().collect();
        for (ids, direction) in [(&results[2], "out"), (&results[3], "in")] {
            let walked: BTreeSet<String> = ids.iter().map(text).collect();
            ensure!(walked.len() == ids.len(), "edges were walked {direction} twice");
            ensure!(walked == all, "{} edges walked {direction}, of {}", walked.len(), all.len());
        }
        Ok(part)
    }

    /// After the restart: everything acknowledged is there, once, and nothing else but what was in flight.
    pub fn check(&mut self, client: &mut Client) -> Result<()> {
        let found = self.walk(client)??;
        match self.pending.take() {
            Some(change) => {
                ensure!(
                    self.part.leads_to(&change, &found),
                    "writer {}, with {change:?} in flight: {}",
                    self.number,
                    difference(&self.part, &found)
                );
                self.in_flight_found += u64::from(found != self.part);
            }
            None => {
                ensure!(found == self.part, "writer {}: {}", self.number, difference(&self.part, &found));
            }
        }
        self.part = found;
        Ok(())
    }
}

/// The first of what is not the same.
fn difference(expected: &Part, found: &Part) -> String {
    let vertices = expected.vertices.iter().find(|(id, version)| found.vertices.get(*id) != Some(version));
    let edges = expected.edges.iter().find(|(id, ends)| found.edges.get(*id) != Some(ends));
    let more = found.vertices.keys().find(|id| !expected.vertices.contains_key(*id));
    let more_edges = found.edges.keys().find(|id| !expected.edges.contains_key(*id));
    format!("missing or other {vertices:?} {edges:?}, more {more:?} {more_edges:?}")
}
