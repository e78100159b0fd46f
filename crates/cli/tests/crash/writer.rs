//! One writer: random operations on its own ids, each compared with what the model says must come of it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use orrery_testkit::{Client, Random, Reply};
use serde_json::Value;

use crate::CONTAINER;
use crate::model::{After, Expected, IDS, Key, Model, PARTITIONS, Step, VALUES};

/// Filler of an item: some small, some large enough to fill memory tables and make them flush.
const FILLER_BYTES_MAX: u64 = 12_000;

pub struct Writer {
    pub number: usize,
    pub model: Model,
    random: Random,
    revision: u64,
    /// The operation whose answer did not come.
    pending: Option<BTreeMap<Key, After>>,
    /// Whether an answer may say that the store is away. It is then taken for none.
    pub meets_outages: bool,
    pub acknowledged: u64,
    pub refused: u64,
    pub in_flight: u64,
    pub in_flight_found: u64,
}

impl Writer {
    pub fn new(number: usize, seed: u64) -> Writer {
        Writer {
            number,
            model: Model::default(),
            random: Random::new(seed),
            revision: 0,
            pending: None,
            meets_outages: false,
            acknowledged: 0,
            refused: 0,
            in_flight: 0,
            in_flight_found: 0,
        }
    }

    /// Writes until an operation gets no answer, which must not happen before the kill. An error is a wrong answer.
    pub fn write_until(&mut self, address: SocketAddr, over: &AtomicBool) -> Result<()> {
        let mut client = Client::new(address);
        while !over.load(Relaxed) && self.pending.is_none() {
            match self.random.below(5) {
                0 => self.batch(&mut client)?,
                _ => self.single(&mut client)?,
            }
        }
        Ok(())
    }

    fn single(&mut self, client: &mut Client) -> Result<()> {
        let partition = self.random.below(PARTITIONS);
        let step = self.step(partition, true);
        let expected = self.model.expect(&step, &BTreeMap::new());
        match self.send(client, &step) {
            Ok(reply) if !self.is_outage(&reply) => self.judge(&step, &expected, &reply),
            _ => {
                self.no_answer(
                    expected.ok().map(|after| BTreeMap::from([(step.key(), after)])).unwrap_or_default(),
                );
                Ok(())
            }
        }
    }

    fn judge(&mut self, step: &Step, expected: &Expected, reply: &Reply) -> Result<()> {
        let fine = match expected {
            Ok(_) => (200..300).contains(&reply.status),
            Err(status) => reply.status == *status,
        };
        ensure!(
            fine,
            "writer {}: {step:?} should give {expected:?}, got {}: {}",
            self.number,
            reply.status,
            reply.text()
        );
        match expected {
            Ok(after) => {
                self.acknowledged += 1;
                self.model.apply(step.key(), *after, reply.header("etag"));
            }
            Err(_) => self.refused += 1,
        }
        Ok(())
    }

    fn batch(&mut self, client: &mut Client) -> Result<()> {
        let partition = self.random.below(PARTITIONS);
        let steps: Vec<Step> = (0..2 + self.random.below(4)).map(|_| self.step(partition, false)).collect();
        let mut view = BTreeMap::new();
        let mut refusal = None;
        for step in &steps {
            match self.model.expect(step, &view) {
                Ok(after) => drop(view.insert(step.key(), after)),
                Err(status) => {
                    refusal = Some(status);
                    break;
                }
            }
        }
        let operations: Vec<String> = steps.iter().map(|step| self.batch_operation(step)).collect();
        let key = format!("[\"{}\"]", partition_name(partition));
        let headers = [
            ("x-ms-documentdb-partitionkey", key.as_str()),
            ("x-ms-cosmos-is-batch-request", "True"),
            ("x-ms-cosmos-batch-atomic", "True"),
        ];
        let body = format!("[{}]", operations.join(","));
        let reply = client.post(&format!("{CONTAINER}/docs"), CONTAINER, "docs", &headers, &body);
        let Some(reply) = reply.ok().filter(|reply| !self.is_outage(reply)) else {
            self.no_answer(if refusal.is_none() { view } else { BTreeMap::new() });
            return Ok(());
        };
        let results = reply.json()?;
        let results = results.as_array().with_context(|| format!("no results: {}", reply.text()))?;
        let statuses: Vec<u64> = results.iter().filter_map(|result| result["statusCode"].as_u64()).collect();
        let fine = match refusal {
            None => reply.status == 200 && statuses.iter().all(|status| (200..300).contains(status)),
            Some(status) => {
                reply.status == 207 && statuses.contains(&u64::from(status)) && !statuses.contains(&201)
            }
        };
        ensure!(
            fine,
            "writer {}: batch {steps:?} (refusal {refusal:?}) got {}: {}",
            self.number,
            reply.status,
            reply.text()
        );
        if refusal.is_some() {
            self.refused += 1;
            return Ok(());
        }
        self.acknowledged += 1;
        for (key, after) in view {
            let last = steps.iter().rposition(|step| step.key() == key).context("a step for every key")?;
            self.model.apply(key, after, results[last]["eTag"].as_str());
        }
        Ok(())
    }

    fn step(&mut self, partition: u64, with_replace: bool) -> Step {
        let key = Key { partition, id: self.random.below(IDS) };
        self.revision += 1;
        let (revision, value) = (self.revision, self.random.below(VALUES));
        match self.random.below(10) {
            // In a batch one refusal refuses all, so steps that may fail are rarer there.
            0..3 if with_replace => Step::Create { key, revision, value },
            0 => Step::Create { key, revision, value },
            1..6 => Step::Upsert { key, revision, value },
            6..8 if with_replace => {
                Step::Replace { key, revision, value, right_etag: self.random.chance(80) }
            }
            8 if !with_replace => Step::Delete { key },
            9 if with_replace => Step::Delete { key },
            _ => Step::Upsert { key, revision, value },
        }
    }

    fn send(&mut self, client: &mut Client, step: &Step) -> Result<Reply> {
        let key = step.key();
        let partition_key = format!("[\"{}\"]", partition_name(key.partition));
        let mut headers = vec![("x-ms-documentdb-partitionkey", partition_key.as_str())];
        let (docs, item) = (format!("{CONTAINER}/docs"), format!("{CONTAINER}/docs/{}", self.id(key)));
        match step {
            Step::Create { revision, value, .. } => {
                let body = self.document(key, *revision, *value);
                client.post(&docs, CONTAINER, "docs", &headers, &body)
            }
            Step::Upsert { revision, value, .. } => {
                headers.push(("x-ms-documentdb-is-upsert", "True"));
                let body = self.document(key, *revision, *value);
                client.post(&docs, CONTAINER, "docs", &headers, &body)
            }
            Step::Replace { revision, value, right_etag, .. } => {
                let wrong = "\"00000000-0000-0000-0000-000000000000\"".to_owned();
                let known = self.model.items.get(&key).map(|live| live.etag.clone());
                let etag = known.filter(|_| *right_etag).unwrap_or(wrong);
                headers.push(("if-match", &etag));
                let body = self.document(key, *revision, *value);
                client.put(&item, "docs", &headers, &body)
            }
            Step::Delete { .. } => client.delete(&item, "docs", &headers),
        }
    }

    fn batch_operation(&mut self, step: &Step) -> String {
        let key = step.key();
        match step {
            Step::Create { revision, value, .. } => {
                format!(
                    r#"{{"operationType":"Create","resourceBody":{}}}"#,
                    self.document(key, *revision, *value)
                )
            }
            Step::Upsert { revision, value, .. } | Step::Replace { revision, value, .. } => {
                format!(
                    r#"{{"operationType":"Upsert","resourceBody":{}}}"#,
                    self.document(key, *revision, *value)
                )
            }
            Step::Delete { .. } => format!(r#"{{"operationType":"Delete","id":"{}"}}"#, self.id(key)),
        }
    }

    pub fn document(&mut self, key: Key, revision: u64, value: u64) -> String {
        let filler = "x".repeat(self.random.below(FILLER_BYTES_MAX) as usize);
        let (id, partition, value) = (self.id(key), partition_name(key.partition), self.value_text(value));
        format!(r#"{{"id":"{id}","pk":"{partition}","u":"{value}","rev":{revision},"filler":"{filler}"}}"#)
    }

    pub fn id(&self, key: Key) -> String {
        format!("w{}-{}", self.number, key.id)
    }

    pub fn value_text(&self, value: u64) -> String {
        format!("w{}-{value}", self.number)
    }

    /// The key of an item that a feed showed, if it is one of this writer's.
    pub fn key_of(&self, document: &Value) -> Option<Key> {
        let id = document["id"].as_str()?.strip_prefix(&format!("w{}-", self.number))?.parse().ok()?;
        let partition = document["pk"].as_str()?.strip_prefix("pk-")?.parse().ok()?;
        Some(Key { partition, id })
    }

    pub fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    /// 503: nothing was written; 408: nobody knows. Of a batch its results may say so.
    fn is_outage(&self, reply: &Reply) -> bool {
        let results = reply.json().ok();
        let results = results.as_ref().and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut statuses = results.iter().filter_map(|result| result["statusCode"].as_u64());
        self.meets_outages
            && ([503, 408].contains(&reply.status) || statuses.any(|status| [503, 408].contains(&status)))
    }

    fn no_answer(&mut self, plan: BTreeMap<Key, After>) {
        self.in_flight += 1;
        self.pending = Some(plan);
    }

    /// After the restart: finds out what became of the operation in flight. All of it must be there, or nothing.
    pub fn settle(&mut self, client: &mut Client) -> Result<()> {
        let Some(plan) = self.pending.take() else { return Ok(()) };
        let mut applied = Vec::new();
        let mut untouched = Vec::new();
        for (key, after) in plan {
            let before = self.model.items.get(&key).map(|live| (live.revision, live.value));
            let (content, etag) = self.read(client, key)?.unzip();
            if before == after {
                // Created and deleted within the batch: both outcomes look the same.
                ensure!(
                    content == before,
                    "writer {}: {key:?} was {before:?}, but is {content:?}",
                    self.number
                );
            } else if content == after {
                applied.push((key, after, etag));
            } else {
                ensure!(
                    content == before,
                    "writer {}: {key:?} was {before:?} or {after:?}, but is {content:?}",
                    self.number
                );
                untouched.push(key);
            }
        }
        ensure!(
            applied.is_empty() || untouched.is_empty(),
            "writer {}: a batch is there in part: {applied:?} but not {untouched:?}",
            self.number
        );
        self.in_flight_found += u64::from(!applied.is_empty());
        for (key, after, etag) in applied {
            self.model.apply(key, after, etag.as_deref());
        }
        Ok(())
    }

    /// Content and etag of an item, read by its id.
    pub fn read(&self, client: &mut Client, key: Key) -> Result<Option<((u64, u64), String)>> {
        let path = format!("{CONTAINER}/docs/{}", self.id(key));
        let partition_key = format!("[\"{}\"]", partition_name(key.partition));
        let reply = client.get(&path, &path, "docs", &[("x-ms-documentdb-partitionkey", &partition_key)])?;
        if reply.status == 404 {
            return Ok(None);
        }
        let reply = reply.expect_status(200)?;
        let document = reply.json()?;
        let etag = document["_etag"].as_str().context("an item has an etag")?.to_owned();
        ensure!(reply.header("etag") == Some(&etag), "header and body disagree about the etag");
        Ok(Some((self.content(&document)?, etag)))
    }

    pub fn content(&self, document: &Value) -> Result<(u64, u64)> {
        let revision = document["rev"].as_u64().context("an item has a revision")?;
        let value = document["u"].as_str().and_then(|text| text.strip_prefix(&format!("w{}-", self.number)));
        Ok((revision, value.and_then(|text| text.parse().ok()).context("an item has a value of its writer")?))
    }
}

pub fn partition_name(partition: u64) -> String {
    format!("pk-{partition}")
}
