//! Where records come from: files, or a container of any account. Both are cut into chunks with a position behind each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::{Context, Result};
use http::Method;
use orrery_model::Epk;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use super::checkpoint::Checkpoint;
use super::format::{Decoder, Format, FormatOptions, RawRecord, open};
use super::raw_json;
use crate::account::{Account, ContainerInfo, Place};
use crate::workload::Target;

/// A chunk is sent by one worker.
const CHUNK_BYTES_MAX: usize = 1024 * 1024;
/// Slices of the hash space that a container of ours is read in.
const SLICES: u32 = 8;
/// Ranges that are read at the same time.
const READERS_MAX: usize = 16;

/// Some records of one part, in their order.
pub struct Chunk {
    pub part: String,
    pub number: u64,
    /// The number of the first record in its part, from 1.
    pub first_record: u64,
    pub records: Vec<RawRecord>,
    pub decoder: Decoder,
    pub after: Option<Value>,
    pub last: bool,
    /// How far the source is, for the bar.
    pub bytes: u64,
}

pub enum Source {
    Files { files: Vec<(PathBuf, Format)>, options: FormatOptions },
    Container { target: Arc<Target>, place: Place },
}

/// A part of the hash space of a container.
#[derive(Debug, Clone)]
pub struct Slice {
    pub name: String,
    headers: Vec<(&'static str, String)>,
}

/// Reads files one after the other, on a thread of its own.
pub fn read_files(
    files: Vec<(PathBuf, Format)>,
    options: FormatOptions,
    starts: Vec<Option<Option<Value>>>,
    chunk_records: usize,
    out: Sender<Result<Chunk>>,
    stop: Arc<AtomicBool>,
) {
    std::thread::spawn(move || {
        for ((path, format), start) in files.into_iter().zip(starts) {
            // `None`: done by an earlier run.
            let Some(position) = start else { continue };
            let read = read_file(&path, format, &options, position.as_ref(), chunk_records, &out, &stop);
            if let Err(error) = read {
                let _ = out.blocking_send(Err(error));
                return;
            }
        }
    });
}

fn read_file(
    path: &std::path::Path,
    format: Format,
    options: &FormatOptions,
    position: Option<&Value>,
    chunk_records: usize,
    out: &Sender<Result<Chunk>>,
    stop: &AtomicBool,
) -> Result<()> {
    let number = |name: &str| position.and_then(|position| position[name].as_u64()).unwrap_or(0);
    let (mut reader, decoder) = open(path, format, options, number("at"))?;
    let mut record = number("record");
    let part = path.display().to_string();
    for chunk in 0.. {
        let (first_record, began) = (record + 1, reader.read_bytes());
        let (mut records, mut size, mut last) = (Vec::with_capacity(chunk_records), 0, false);
        while records.len() < chunk_records && size < CHUNK_BYTES_MAX {
            match reader.next()? {
                Some(read) => {
                    size += read.size_bytes();
                    records.push(read);
                    record += 1;
                }
                None => {
                    last = true;
                    break;
                }
            }
        }
        let after = Some(json!({"at": reader.position(), "record": record}));
        let bytes = reader.read_bytes().saturating_sub(began);
        let chunk = Chunk {
            part: part.clone(),
            number: chunk,
            first_record,
            records,
            decoder: decoder.clone(),
            after,
            last,
            bytes,
        };
        // Nobody receives any more when something else has failed.
        if out.blocking_send(Ok(chunk)).is_err() || stop.load(Relaxed) || last {
            return Ok(());
        }
    }
    Ok(())
}

/// The parts in which a container is read.
///
/// A server of ours takes any slice of the hash space, whatever becomes of its partitions; others are asked for their
/// ranges, and say so when one is split meanwhile.
pub async fn slices(account: &mut Account, place: &Place) -> Result<Vec<Slice>> {
    let container = ContainerInfo::read(account, place).await?;
    if account.is_orrery().await? {
        let bounds = container.key.boundaries(SLICES.max(container.ranges.len() as u32));
        return Ok(bounds.windows(2).map(|pair| slice(&pair[0], &pair[1])).collect());
    }
    let by_range = |id: &str| Slice {
        name: format!("range {id}"),
        headers: vec![("x-ms-documentdb-partitionkeyrangeid", id.to_owned())],
    };
    Ok(container.ranges.iter().map(|range| by_range(&range.id)).collect())
}

fn slice(min: &Epk, max: &Epk) -> Slice {
    Slice {
        name: format!("hashes {}-{}", min.to_hex(), max.to_hex()),
        headers: vec![
            ("x-ms-read-key-type", "EffectivePartitionKeyRange".into()),
            ("x-ms-start-epk", min.to_hex()),
            ("x-ms-end-epk", max.to_hex()),
        ],
    }
}

/// A page of items as texts.
pub struct Page {
    pub items: Vec<String>,
    pub continuation: Option<String>,
    pub charge_ru: f64,
    pub bytes: u64,
}

pub async fn page(
    account: &mut Account,
    place: &Place,
    slice: &Slice,
    continuation: Option<&str>,
) -> Result<Page> {
    let mut call = place.feed(Method::GET, "docs");
    call.headers.clone_from(&slice.headers);
    call.headers.push(("x-ms-max-item-count", "-1".into()));
    if let Some(token) = continuation {
        call.headers.push(("x-ms-continuation", token.to_owned()));
    }
    let answer = account.send(&call).await.context("cannot read the container")?;
    let continuation = answer.header("x-ms-continuation").map(str::to_owned);
    let (charge_ru, bytes) = (answer.charge_ru(), answer.body.len() as u64);
    let text = std::str::from_utf8(&answer.body).context("a page that is not UTF-8")?;
    let documents = raw_json::member(text, "Documents").and_then(raw_json::elements);
    let items = documents.context("a page without documents")?.into_iter().map(str::to_owned).collect();
    Ok(Page { items, continuation, charge_ru, bytes })
}

/// Reads a container, several slices at a time.
pub async fn read_container(
    target: Arc<Target>,
    place: Place,
    slices: Vec<Slice>,
    checkpoint: &Checkpoint,
    chunk_records: usize,
    out: Sender<Result<Chunk>>,
) {
    let places = Arc::new(tokio::sync::Semaphore::new(READERS_MAX));
    let mut tasks = JoinSet::new();
    for slice in slices.into_iter().filter(|slice| !checkpoint.is_done(&slice.name)) {
        let position = checkpoint.position(&slice.name).cloned();
        let (places, out, place, target) = (places.clone(), out.clone(), place.clone(), target.clone());
        tasks.spawn(async move {
            let _place = places.acquire_owned().await;
            let mut account = Account::new(target);
            if let Err(error) = read_slice(&mut account, &place, &slice, position, chunk_records, &out).await
            {
                let _ = out.send(Err(error)).await;
            }
        });
    }
    // They end by themselves; nobody has to wait for them but the channel.
    tasks.detach_all();
}

async fn read_slice(
    account: &mut Account,
    place: &Place,
    slice: &Slice,
    position: Option<Value>,
    chunk_records: usize,
    out: &Sender<Result<Chunk>>,
) -> Result<()> {
    let at = |name: &str| position.as_ref().map(|position| position[name].clone());
    let mut continuation = at("continuation").and_then(|token| token.as_str().map(str::to_owned));
    let mut record = at("record").and_then(|record| record.as_u64()).unwrap_or(0);
    let mut number = 0;
    loop {
        let page = page(account, place, slice, continuation.as_deref()).await?;
        continuation = page.continuation;
        let mut items = page.items.into_iter().map(|item| RawRecord::Text(item.into_bytes())).peekable();
        loop {
            let records: Vec<RawRecord> = items.by_ref().take(chunk_records).collect();
            let first_record = record + 1;
            record += records.len() as u64;
            let page_ends = items.peek().is_none();
            let last = page_ends && continuation.is_none();
            let after = (page_ends && !last).then(|| json!({"continuation": continuation, "record": record}));
            let bytes = records.iter().map(|record| record.size_bytes() as u64).sum();
            let chunk = Chunk {
                part: slice.name.clone(),
                number,
                first_record,
                records,
                decoder: Decoder::json(),
                after,
                last,
                bytes,
            };
            number += 1;
            if out.send(Ok(chunk)).await.is_err() || last {
                return Ok(());
            }
            if page_ends {
                break;
            }
        }
    }
}
