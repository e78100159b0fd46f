//! A recording of requests about items: what was asked, and what it cost; one JSON object per line.
//!
//! ```text
//! {"operation":"query_items","database":"shop","container":"orders","partitionKey":null,"status":200,"charge":2.82,…}
//! ```
//!
//! For `orrery advise`, and for whoever wants to run the same again. It holds what clients sent, keys and items
//! included, so its file is the operator's alone. Lines go through a bounded queue to a thread of their own; when
//! that cannot keep up lines are left out and counted, and no request waits.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use serde_json::{Value, json};

use crate::headers::{BATCH_ATOMIC, PARTITION_KEY};
use crate::service::Context;

/// Lines that wait to be written.
const LINES_MAX: usize = 10_000;
/// A longer body is left out.
const BODY_BYTES_MAX: usize = 256 * 1024;
/// What is recorded: everything that reads or writes items.
const OPERATIONS: [&str; 10] = [
    "read_item",
    "create_item",
    "upsert_item",
    "replace_item",
    "patch_item",
    "delete_item",
    "batch",
    "list_items",
    "query_items",
    "execute_procedure",
];

#[derive(Debug)]
pub struct Recorder {
    lines: SyncSender<String>,
    left_out: AtomicU64,
}

impl Recorder {
    /// Appends to a file, which is made if it does not exist.
    pub fn start(path: &FilePath) -> std::io::Result<Arc<Recorder>> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let (lines, receiver) = sync_channel(LINES_MAX);
        std::thread::Builder::new().name("recording".into()).spawn(move || write(file, &receiver))?;
        Ok(Arc::new(Recorder { lines, left_out: AtomicU64::new(0) }))
    }

    pub(crate) fn note(&self, context: &Context<'_>, status: u16, charge_ru: f64) {
        let operation = context.action.name();
        if !OPERATIONS.contains(&operation) {
            return;
        }
        let path = context.path;
        let key: Option<Value> = context.text(PARTITION_KEY).and_then(|text| serde_json::from_str(text).ok());
        let body: Option<Value> = (!context.body.is_empty() && context.body.len() <= BODY_BYTES_MAX)
            .then(|| serde_json::from_slice(context.body).ok())
            .flatten();
        let line = json!({
            "at": context.service.account.env().now_ms(),
            "operation": operation,
            "database": path.id(0),
            "container": path.id(1),
            "id": Some(path.id(2)).filter(|id| !id.is_empty()),
            "partitionKey": key,
            // A batch is a transaction, or a bulk that only looks like one.
            "atomic": (operation == "batch").then(|| context.flag(BATCH_ATOMIC)),
            "status": status,
            "charge": charge_ru,
            "body": body,
        });
        if self.lines.try_send(format!("{line}\n")).is_err() && self.left_out.fetch_add(1, Relaxed) == 0 {
            tracing::warn!("the recording cannot keep up; requests are left out of it");
        }
    }
}

/// Writes what has come, and makes it visible whenever there is nothing more for the moment.
fn write(file: File, lines: &Receiver<String>) {
    let mut out = BufWriter::new(file);
    while let Ok(line) = lines.recv() {
        let written =
            std::iter::once(line).chain(lines.try_iter()).try_for_each(|line| out.write_all(line.as_bytes()));
        if let Err(error) = written.and_then(|()| out.flush()) {
            tracing::error!(%error, "the recording cannot be written and ends here");
            return;
        }
    }
}
