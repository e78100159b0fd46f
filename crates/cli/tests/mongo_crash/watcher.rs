//! Follows the changes of the collection through splits and kills, each time from where it was.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use orrery_mongo::{Bson, Document, doc};

use crate::client::{Mongo, done};
use crate::writer::Content;
use crate::{COLLECTION, DATABASE};

/// How long changes that were acknowledged may take to be told.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Default)]
pub struct Watcher {
    token: Option<Bson>,
    /// What each document is told to have held.
    pub told: BTreeMap<String, Vec<Content>>,
}

impl Watcher {
    /// Opens the stream, so that it begins before anything is written.
    pub fn begin(&mut self, address: SocketAddr) -> Result<()> {
        self.open(&mut Mongo::connect(address)?).map(drop)
    }

    pub fn watch_until(&mut self, address: SocketAddr, over: &AtomicBool) -> Result<()> {
        let Ok(mut client) = Mongo::connect(address) else { return Ok(()) };
        // What happens to the connection is no matter: the token says where to go on.
        let Ok(cursor) = self.open(&mut client) else { return Ok(()) };
        while !over.load(Relaxed) {
            let Ok(reply) = client.command(DATABASE, more(cursor)) else { return Ok(()) };
            self.take(&done(reply)?, "nextBatch")?;
        }
        Ok(())
    }

    /// Reads on until everything of these histories was told.
    pub fn catch_up(&mut self, address: SocketAddr, wanted: &BTreeMap<String, Vec<Content>>) -> Result<()> {
        let mut client = Mongo::connect(address)?;
        let cursor = self.open(&mut client)?;
        let began = Instant::now();
        while self.told != *wanted {
            if began.elapsed() > PATIENCE {
                for (id, history) in wanted {
                    let told = self.told.get(id).cloned().unwrap_or_default();
                    ensure!(told == *history, "{id}: {told:?} was told, and {history:?} acknowledged");
                }
                bail!("more was told than acknowledged");
            }
            self.take(&done(client.command(DATABASE, more(cursor))?)?, "nextBatch")?;
        }
        Ok(())
    }

    fn open(&mut self, client: &mut Mongo) -> Result<i64> {
        let mut options = Document::new();
        if let Some(token) = &self.token {
            options.push("resumeAfter", token.clone());
        }
        let pipeline = vec![doc! { "$changeStream" => options }.into()];
        let command = doc! { "aggregate" => COLLECTION, "pipeline" => pipeline, "cursor" => Document::new() };
        let reply = done(client.command(DATABASE, command)?)?;
        self.take(&reply, "firstBatch")
    }

    fn take(&mut self, reply: &Document, batch: &str) -> Result<i64> {
        let cursor = reply.get("cursor").and_then(Bson::as_document).context("a cursor")?;
        for event in cursor.get(batch).and_then(Bson::as_array).unwrap_or_default() {
            let event = event.as_document().context("an event")?;
            let member = |path: &[&str]| {
                let mut names = path.iter();
                let first = names.next().and_then(|name| event.get(name));
                names.fold(first, |value, name| value?.as_document()?.get(name)).cloned()
            };
            let id = member(&["documentKey", "_id"]).context("a key")?;
            let id = id.as_str().context("a text")?.to_owned();
            let content = match member(&["operationType"]).as_ref().and_then(Bson::as_str) {
                Some("insert") => member(&["fullDocument", "v"]),
                Some("update") => member(&["updateDescription", "updatedFields", "v"]),
                Some("delete") => None,
                other => bail!("an event of the kind {other:?}: {event:?}"),
            };
            self.told.entry(id).or_default().push(content.as_ref().and_then(Bson::as_i64));
            self.token = member(&["_id"]);
        }
        if let Some(token) = cursor.get("postBatchResumeToken") {
            self.token = Some(token.clone());
        }
        cursor.get("id").and_then(Bson::as_i64).context("a cursor's id")
    }
}

fn more(cursor: i64) -> Document {
    doc! { "getMore" => cursor, "collection" => COLLECTION, "maxTimeMS" => 100 }
}
