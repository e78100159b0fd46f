//! One client that writes documents of its own and knows what each must hold: counters, each step of which is one
//! write. Writes are sent as drivers send them that try again, and now and then really twice.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result, bail, ensure};
use orrery_mongo::{Bson, Document, doc};
use orrery_testkit::Random;

use crate::client::{Mongo, done, is_ok};
use crate::{COLLECTION, DATABASE};

/// Documents of one writer.
const DOCUMENTS: u64 = 24;

/// What a document holds: its counter, or nothing where there is no document.
pub type Content = Option<i64>;

pub struct Writer {
    number: u64,
    random: Random,
    session: Bson,
    transactions: i64,
    documents: BTreeMap<String, Content>,
    /// What was under way when the connection ended: all of it was done, or nothing.
    in_flight: Vec<(String, Content)>,
    /// Everything that each document has held.
    pub history: BTreeMap<String, Vec<Content>>,
    pub acknowledged: u64,
    pub repeated: u64,
    pub committed: u64,
    pub in_flight_found: u64,
}

impl Writer {
    pub fn new(number: u64, seed: u64) -> Writer {
        let mut id = [7; 16];
        id[8..].copy_from_slice(&number.to_be_bytes());
        Writer {
            number,
            random: Random::new(seed),
            session: doc! { "id" => Bson::Binary { subtype: 4, bytes: id[..].into() } }.into(),
            transactions: 0,
            documents: BTreeMap::new(),
            in_flight: Vec::new(),
            history: BTreeMap::new(),
            acknowledged: 0,
            repeated: 0,
            committed: 0,
            in_flight_found: 0,
        }
    }

    pub fn write_until(&mut self, address: SocketAddr, over: &AtomicBool) -> Result<()> {
        // A server that is gone has not been asked anything.
        let Ok(mut client) = Mongo::connect(address) else { return Ok(()) };
        while !over.load(Relaxed) {
            let changes = match self.random.below(8) {
                0..=1 => self.transaction(&mut client)?,
                2 => self.find_and_modify(&mut client)?,
                _ => self.write(&mut client)?,
            };
            let Some(changes) = changes else { return Ok(()) };
            self.acknowledged += changes.len() as u64;
            self.keep(changes);
        }
        Ok(())
    }

    fn keep(&mut self, changes: Vec<(String, Content)>) {
        for (id, content) in changes {
            self.documents.insert(id.clone(), content);
            self.history.entry(id).or_default().push(content);
        }
    }

    fn choose(&mut self) -> (String, Content) {
        let id = format!("{}-{}", self.number, self.random.below(DOCUMENTS));
        let content = self.documents.get(&id).copied().flatten();
        (id, content)
    }

    fn place(&self, id: &str) -> Document {
        doc! { "_id" => id, "s" => self.number as i32 }
    }

    fn numbered(&mut self, command: &mut Document) {
        self.transactions += 1;
        command.push("lsid", self.session.clone());
        command.push("txnNumber", self.transactions);
    }

    /// An insert, a step or a delete; perhaps sent twice.
    fn write(&mut self, client: &mut Mongo) -> Result<Option<Vec<(String, Content)>>> {
        let (id, before) = self.choose();
        let (mut command, after) = match before {
            None => {
                let mut document = self.place(&id);
                document.push("v", 1i64);
                (doc! { "insert" => COLLECTION, "documents" => vec![document.into()] }, Some(1))
            }
            Some(_) if self.random.below(8) == 0 => {
                let delete = doc! { "q" => self.place(&id), "limit" => 1 };
                (doc! { "delete" => COLLECTION, "deletes" => vec![delete.into()] }, None)
            }
            Some(v) => {
                let update = doc! { "q" => self.place(&id), "u" => doc! { "$inc" => doc! { "v" => 1i64 } } };
                (doc! { "update" => COLLECTION, "updates" => vec![update.into()] }, Some(v + 1))
            }
        };
        self.numbered(&mut command);
        let changes = vec![(id, after)];
        let times = if self.random.below(4) == 0 { 2 } else { 1 };
        for time in 0..times {
            match client.command(DATABASE, command.clone()) {
                Ok(reply) => {
                    let n = reply.get("n").and_then(Bson::as_i64);
                    ensure!(is_ok(&reply) && n == Some(1), "{command:?}: {reply:?}");
                }
                // The first time was acknowledged.
                Err(_) if time > 0 => {
                    self.acknowledged += 1;
                    self.keep(changes);
                    return Ok(None);
                }
                Err(_) => {
                    self.in_flight = changes;
                    return Ok(None);
                }
            }
            self.repeated += time;
        }
        Ok(Some(changes))
    }

    /// A step that answers with what is there then.
    fn find_and_modify(&mut self, client: &mut Mongo) -> Result<Option<Vec<(String, Content)>>> {
        let (id, before) = self.choose();
        let Some(before) = before else { return Ok(Some(Vec::new())) };
        let mut command = doc! {
            "findAndModify" => COLLECTION, "query" => self.place(&id), "new" => true,
            "update" => doc! { "$inc" => doc! { "v" => 1i64 } },
        };
        self.numbered(&mut command);
        let changes = vec![(id, Some(before + 1))];
        let Ok(reply) = client.command(DATABASE, command) else {
            self.in_flight = changes;
            return Ok(None);
        };
        let value =
            done(reply)?.get("value").and_then(Bson::as_document).and_then(|new| new.get("v").cloned());
        ensure!(
            value.as_ref().and_then(Bson::as_i64) == Some(before + 1),
            "{}: {value:?} where {} was expected",
            changes[0].0,
            before + 1
        );
        Ok(Some(changes))
    }

    /// Two steps that are one. What ends a transaction before its commit has done nothing.
    fn transaction(&mut self, client: &mut Mongo) -> Result<Option<Vec<(String, Content)>>> {
        let (first, second) = (self.choose(), self.choose());
        let ((one, Some(v)), (other, Some(w))) = (first, second) else { return Ok(Some(Vec::new())) };
        if one == other {
            return Ok(Some(Vec::new()));
        }
        self.transactions += 1;
        let within = |mut command: Document, begins: bool, session: &Bson, number: i64| {
            command.push("lsid", session.clone());
            command.push("txnNumber", number);
            command.push("autocommit", false);
            if begins {
                command.push("startTransaction", true);
            }
            command
        };
        for (at, id) in [&one, &other].into_iter().enumerate() {
            let update = doc! { "q" => self.place(id), "u" => doc! { "$inc" => doc! { "v" => 1i64 } } };
            let command = doc! { "update" => COLLECTION, "updates" => vec![update.into()] };
            let command = within(command, at == 0, &self.session, self.transactions);
            let Ok(reply) = client.command(DATABASE, command) else { return Ok(None) };
            if !is_ok(&reply) {
                ensure!(has_label(&reply, "TransientTransactionError"), "{reply:?}");
                return Ok(Some(Vec::new()));
            }
        }
        let commit = within(doc! { "commitTransaction" => 1 }, false, &self.session, self.transactions);
        let changes = vec![(one, Some(v + 1)), (other, Some(w + 1))];
        match client.command("admin", commit) {
            Ok(reply) if is_ok(&reply) => {
                self.committed += 1;
                Ok(Some(changes))
            }
            Ok(reply) if has_label(&reply, "TransientTransactionError") => Ok(Some(Vec::new())),
            Ok(reply) => bail!("a commit: {reply:?}"),
            Err(_) => {
                self.in_flight = changes;
                Ok(None)
            }
        }
    }

    /// Every document holds what it must; what was under way is there whole, or not at all.
    pub fn check(&mut self, client: &mut Mongo) -> Result<()> {
        let reply = client.command(
            DATABASE,
            doc! { "find" => COLLECTION, "filter" => doc! { "s" => self.number as i32 }, "batchSize" => 1_000 },
        )?;
        let reply = done(reply)?;
        let cursor = reply.get("cursor").and_then(Bson::as_document).context("a cursor")?;
        let batch = cursor.get("firstBatch").and_then(Bson::as_array).context("a batch")?;
        let mut found: BTreeMap<String, i64> = BTreeMap::new();
        for document in batch.iter().filter_map(Bson::as_document) {
            let id = document.get("_id").and_then(Bson::as_str).context("an _id")?.to_owned();
            let v = document.get("v").and_then(Bson::as_i64).context("a counter")?;
            ensure!(found.insert(id.clone(), v).is_none(), "{id} is there twice");
        }
        let in_flight = std::mem::take(&mut self.in_flight);
        if !in_flight.is_empty() && in_flight.iter().all(|(id, after)| found.get(id).copied() == *after) {
            self.in_flight_found += 1;
            self.keep(in_flight);
        }
        for (id, content) in &self.documents {
            let there = found.remove(id);
            ensure!(there == *content, "{id}: {there:?} where {content:?} was acknowledged");
        }
        ensure!(found.is_empty(), "nobody wrote {found:?}");
        Ok(())
    }
}

fn has_label(reply: &Document, label: &str) -> bool {
    let labels = reply.get("errorLabels").and_then(Bson::as_array).unwrap_or_default();
    labels.iter().any(|one| one.as_str() == Some(label))
}
