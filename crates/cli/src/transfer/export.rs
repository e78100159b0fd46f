//! An export: pages of a container, several slices of it at a time, as lines of one file; then the format that was
//! asked for.
//!
//! The lines are collected in `FILE.part` until they are all there. How long that file was at the last checkpoint is
//! part of the checkpoint, so a run that goes on cuts what came later and reads it again.

use std::fs::OpenOptions;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::JoinSet;

use super::checkpoint::{Checkpoint, Settled};
use super::format::{Format, convert, is_stdin};
use super::import_command::with_suffix;
use super::item::SYSTEM_PROPERTIES;
use super::progress::{Counts, Meter, message};
use super::raw_json;
use super::source::{Slice, page, slices};
use crate::account::{Account, Place};
use crate::workload::Target;

/// Pages that wait to be written. A page has up to 4 MiB.
const PAGES_AHEAD: usize = 8;

pub struct Export {
    pub target: Arc<Target>,
    pub place: Place,
    pub to: PathBuf,
    pub format: Format,
    /// Keep `_ts`, `_etag` and the others.
    pub system: bool,
    pub readers: usize,
    pub state: Option<PathBuf>,
    pub restart: bool,
}

struct Lines {
    slice: String,
    number: u64,
    text: String,
    items: u64,
    charge_ru: f64,
    after: Option<Value>,
    last: bool,
}

pub async fn run(export: &Export, meter: &Meter, bar: &ProgressBar) -> Result<(Counts, Duration)> {
    let began = Instant::now();
    let identity = json!({
        "account": export.target.endpoint.authority().map(ToString::to_string),
        "container": export.place.call(http::Method::GET).link,
        "system": export.system,
    });
    let mut checkpoint = Checkpoint::open(export.state.clone(), identity, None, export.restart)?;
    let mut account = Account::new(export.target.clone());
    let slices = slices(&mut account, &export.place).await?;
    let part = with_suffix(&export.to, ".part");
    let stdout = is_stdin(&export.to);
    let mut written_bytes = checkpoint.extra["bytes"].as_u64().unwrap_or(0);
    let mut out: BufWriter<Box<dyn Out>> = BufWriter::with_capacity(
        1 << 20,
        match stdout {
            true => Box::new(std::io::stdout()),
            false => {
                let file = OpenOptions::new().create(true).truncate(false).write(true).open(&part);
                let mut file = file.with_context(|| format!("cannot write {}", part.display()))?;
                file.set_len(written_bytes)?;
                file.seek(SeekFrom::End(0))?;
                Box::new(file)
            }
        },
    );
    let (sender, mut receiver) = channel(PAGES_AHEAD);
    let mut tasks = start(export, slices, &checkpoint, &sender);
    drop(sender);
    while let Some(lines) = receiver.recv().await {
        let lines = lines?;
        out.write_all(lines.text.as_bytes()).context("cannot write")?;
        written_bytes += lines.text.len() as u64;
        meter.items.fetch_add(lines.items, Relaxed);
        meter.bytes.fetch_add(lines.text.len() as u64, Relaxed);
        meter.requests.fetch_add(1, Relaxed);
        meter.charge(lines.charge_ru);
        bar.set_message(message(meter, began, tasks.len()));
        bar.tick();
        let counts = Counts { read: lines.items, written: lines.items, ..Counts::default() };
        checkpoint.settle(
            &lines.slice,
            lines.number,
            Settled { counts, rejects: Vec::new(), after: lines.after, last: lines.last },
        )?;
        if checkpoint.is_due() {
            out.flush()?;
            out.get_ref().sync()?;
            checkpoint.extra = json!({"bytes": written_bytes});
            checkpoint.save()?;
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended.context("a reader failed")?;
    }
    out.flush().context("cannot write")?;
    out.get_ref().sync()?;
    drop(out);
    bar.finish_and_clear();
    if !stdout {
        finish(&part, &export.to, export.format)?;
    }
    checkpoint.finish()?;
    Ok((checkpoint.counts(), began.elapsed()))
}

/// The lines in the format that was asked for, under the name that was asked for, all at once.
fn finish(part: &Path, to: &Path, format: Format) -> Result<()> {
    let rename =
        |from: &Path| std::fs::rename(from, to).with_context(|| format!("cannot write {}", to.display()));
    if format == Format::JsonLines {
        return rename(part);
    }
    let converted = with_suffix(to, ".new");
    convert(part, &converted, format)?;
    rename(&converted)?;
    Ok(std::fs::remove_file(part)?)
}

/// Where lines go: only a file can be told to be on disk.
trait Out: Write + Send {
    fn sync(&self) -> std::io::Result<()>;
}

impl Out for std::fs::File {
    fn sync(&self) -> std::io::Result<()> {
        self.sync_data()
    }
}

impl Out for std::io::Stdout {
    fn sync(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// One task for each connection, which share the slices between them.
fn start(
    export: &Export,
    slices: Vec<Slice>,
    checkpoint: &Checkpoint,
    out: &Sender<Result<Lines>>,
) -> JoinSet<()> {
    let open = slices.into_iter().filter(|slice| !checkpoint.is_done(&slice.name)).map(|slice| {
        let position = checkpoint.position(&slice.name).cloned();
        (slice, position)
    });
    let queue = Arc::new(std::sync::Mutex::new(open.collect::<Vec<_>>()));
    let mut tasks = JoinSet::new();
    for _ in 0..export.readers.max(1) {
        let (queue, out, place, system) = (queue.clone(), out.clone(), export.place.clone(), export.system);
        let mut account = Account::new(export.target.clone());
        tasks.spawn(async move {
            loop {
                let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                let Some((slice, position)) = next else { return };
                if let Err(error) = read(&mut account, &place, &slice, position, system, &out).await {
                    let _ = out.send(Err(error)).await;
                    return;
                }
            }
        });
    }
    tasks
}

async fn read(
    account: &mut Account,
    place: &Place,
    slice: &Slice,
    position: Option<Value>,
    system: bool,
    out: &Sender<Result<Lines>>,
) -> Result<()> {
    let mut continuation = position.and_then(|position| position["continuation"].as_str().map(str::to_owned));
    for number in 0.. {
        let page = page(account, place, slice, continuation.as_deref()).await?;
        continuation = page.continuation;
        let mut text = String::with_capacity(page.bytes as usize);
        for item in &page.items {
            push_line(&mut text, item, system)?;
        }
        let last = continuation.is_none();
        let after = (!last).then(|| json!({"continuation": continuation}));
        let items = page.items.len() as u64;
        let lines =
            Lines { slice: slice.name.clone(), number, text, items, charge_ru: page.charge_ru, after, last };
        if out.send(Ok(lines)).await.is_err() || last {
            break;
        }
    }
    Ok(())
}

fn push_line(out: &mut String, item: &str, system: bool) -> Result<()> {
    let members = raw_json::members(item).context("an item that is no object")?;
    let start = out.len();
    out.push('{');
    for member in &members {
        if !system && SYSTEM_PROPERTIES.contains(&&*member.name) {
            continue;
        }
        if out.len() > start + 1 {
            out.push(',');
        }
        out.push_str(member.raw_name);
        out.push(':');
        // Line breaks outside of strings mean nothing, and would end the line.
        match member.value.contains(['\n', '\r']) {
            true => out.extend(member.value.chars().filter(|c| !matches!(c, '\n' | '\r'))),
            false => out.push_str(member.value),
        }
    }
    out.push_str("}\n");
    Ok(())
}
