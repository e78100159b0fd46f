//! An import: chunks of a source, prepared and sent by many workers, settled in order.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinSet;

use super::checkpoint::{Checkpoint, Reject, Settled};
use super::item::{Item, Preparation};
use super::pace::LOOK_AGAIN;
use super::progress::{Counts, message};
use super::sender::{Destination, Outcome, Sender};
use super::source::{Chunk, Source, read_container, read_files, slices};
use crate::account::Account;

/// Records of a chunk for each physical partition of the destination: what fills one bulk.
const RECORDS_PER_RANGE: usize = 100;
const CHUNK_RECORDS_MAX: usize = 1_000;
/// Chunks that are read ahead.
const CHUNKS_AHEAD: usize = 32;

/// Everything the workers share.
struct Shared {
    to: Arc<Destination>,
    preparation: Preparation,
    checkpoint: Mutex<Checkpoint>,
    bar: ProgressBar,
    began: Instant,
    stop: Arc<AtomicBool>,
}

/// Runs to the end of the source. The counts include what earlier runs have done.
pub async fn run(
    source: Source,
    to: Arc<Destination>,
    preparation: Preparation,
    checkpoint: Checkpoint,
    connections: usize,
    bar: ProgressBar,
) -> Result<(Counts, Duration)> {
    let ranges = to.map.read().map(|map| map.ranges.len()).unwrap_or(1);
    let chunk_records = (ranges * RECORDS_PER_RANGE).clamp(RECORDS_PER_RANGE, CHUNK_RECORDS_MAX);
    let (sender, receiver) = channel(CHUNKS_AHEAD);
    let stop = Arc::new(AtomicBool::new(false));
    match source {
        Source::Files { files, options } => {
            let starts = files.iter().map(|(path, _)| {
                let part = path.display().to_string();
                (!checkpoint.is_done(&part)).then(|| checkpoint.position(&part).cloned())
            });
            let starts = starts.collect();
            read_files(files, options, starts, chunk_records, sender, stop.clone());
        }
        Source::Container { target, place } => {
            let mut account = Account::new(target.clone());
            let slices = slices(&mut account, &place).await.context("cannot read the source")?;
            read_container(target, place, slices, &checkpoint, chunk_records, sender).await;
        }
    }
    let began = Instant::now();
    let shared = Arc::new(Shared { to, preparation, checkpoint: Mutex::new(checkpoint), bar, began, stop });
    let receiver = Arc::new(tokio::sync::Mutex::new(receiver));
    let mut tasks = JoinSet::new();
    for number in 0..connections.max(1) {
        tasks.spawn(work(number, shared.clone(), receiver.clone()));
    }
    let mut failed = None;
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended.context("a worker failed").and_then(|result| result) {
            // The others finish what they have in hand.
            shared.stop.store(true, Relaxed);
            failed.get_or_insert(error);
        }
    }
    let mut checkpoint = shared.checkpoint.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    shared.bar.finish_and_clear();
    if let Some(error) = failed {
        checkpoint.save()?;
        return Err(error);
    }
    checkpoint.finish()?;
    Ok((checkpoint.counts(), began.elapsed()))
}

async fn work(
    number: usize,
    shared: Arc<Shared>,
    chunks: Arc<tokio::sync::Mutex<Receiver<Result<Chunk>>>>,
) -> Result<()> {
    let mut sender = Sender::new(shared.to.clone());
    loop {
        while !shared.to.pace.allows(number) && !shared.stop.load(Relaxed) {
            // The channel's end is seen by those who may send; this one has nothing in hand.
            if chunks.try_lock().is_ok_and(|chunks| chunks.is_closed() && chunks.is_empty()) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        if shared.stop.load(Relaxed) {
            return Ok(());
        }
        let Some(chunk) = chunks.lock().await.recv().await else { return Ok(()) };
        process(&shared, &mut sender, chunk?).await?;
    }
}

async fn process(shared: &Shared, sender: &mut Sender, chunk: Chunk) -> Result<()> {
    let mut items: Vec<Item> = Vec::with_capacity(chunk.records.len());
    let mut owners: Vec<u64> = Vec::with_capacity(chunk.records.len());
    let mut rejects: Vec<Reject> = Vec::new();
    let mut counts = Counts { read: chunk.records.len() as u64, ..Counts::default() };
    for (record, raw) in (chunk.first_record..).zip(chunk.records) {
        match chunk.decoder.items(raw) {
            Err((text, reason)) => rejects.push(Reject { record, text, reason }),
            Ok(texts) => {
                for text in texts {
                    let kept = text.clone();
                    match shared.preparation.item(text, record) {
                        Ok(item) => {
                            items.push(item);
                            owners.push(record);
                        }
                        Err(reason) => rejects.push(Reject { record, text: kept, reason }),
                    }
                }
            }
        }
    }
    let outcomes = sender.send(&items).await?;
    for ((item, record), outcome) in items.iter().zip(owners).zip(outcomes) {
        match outcome {
            Outcome::Written => counts.written += 1,
            Outcome::Skipped => counts.skipped += 1,
            Outcome::Rejected(reason) => rejects.push(Reject { record, text: item.body.clone(), reason }),
        }
    }
    rejects.sort_by_key(|reject| reject.record);
    counts.rejected = rejects.len() as u64;
    let meter = &shared.to.meter;
    meter.items.fetch_add(counts.written, Relaxed);
    meter.bytes.fetch_add(items.iter().map(|item| item.body.len() as u64).sum(), Relaxed);
    shared.bar.inc(chunk.bytes);
    shared.bar.set_message(message(meter, shared.began, shared.to.pace.limit()));
    let settled = Settled { counts, rejects, after: chunk.after, last: chunk.last };
    let mut checkpoint = shared.checkpoint.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    checkpoint.settle(&chunk.part, chunk.number, settled)?;
    if checkpoint.is_due() { checkpoint.save() } else { Ok(()) }
}
