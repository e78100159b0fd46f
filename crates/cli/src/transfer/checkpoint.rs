//! How far a transfer is, on disk: what a run that was killed left to the next one.
//!
//! A source has parts (files, ranges of a container); each is read in order, cut into chunks, and the chunks are done
//! in any order. A part's position moves over a chunk only when all before it are done, and its counts move with it,
//! so counts and position always belong together. Chunks beyond the position are done again by the next run, which
//! changes nothing: items are written whole, under ids that do not change. Rejected records are appended in the same
//! order; of what a run wrote behind its last checkpoint the next one cuts the file.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::progress::Counts;

const VERSION: u64 = 1;
/// How often the file is written.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest text of a rejected record that is kept.
const REJECT_TEXT_BYTES_MAX: usize = 64 * 1024;

/// A record that was not taken, and why.
#[derive(Debug)]
pub struct Reject {
    pub record: u64,
    pub text: String,
    pub reason: String,
}

/// A chunk that is done.
#[derive(Debug, Default)]
pub struct Settled {
    pub counts: Counts,
    pub rejects: Vec<Reject>,
    /// Where the next chunk begins, if the source can begin there.
    pub after: Option<Value>,
    /// Whether the part ends here.
    pub last: bool,
}

#[derive(Default)]
struct Part {
    next: u64,
    waiting: BTreeMap<u64, Settled>,
    /// Done, but there is no position behind it yet.
    pending: Counts,
    pending_rejects: Vec<Reject>,
    counts: Counts,
    position: Option<Value>,
    done: bool,
}

pub struct Checkpoint {
    path: Option<PathBuf>,
    /// What the transfer is about; another one must not go on from this file.
    identity: Value,
    parts: BTreeMap<String, Part>,
    rejects: Option<RejectFile>,
    /// Beside the parts, for the one who uses this.
    pub extra: Value,
    saved: Instant,
}

struct RejectFile {
    path: PathBuf,
    out: Option<BufWriter<File>>,
    bytes: u64,
}

impl Checkpoint {
    /// Reads the file if there is one about the same transfer. `None` keeps nothing.
    pub fn open(
        path: Option<PathBuf>,
        identity: Value,
        rejects: Option<PathBuf>,
        restart: bool,
    ) -> Result<Checkpoint> {
        let rejects = rejects.map(|path| RejectFile { path, out: None, bytes: 0 });
        let mut checkpoint = Checkpoint {
            path,
            identity,
            parts: BTreeMap::new(),
            rejects,
            extra: Value::Null,
            saved: Instant::now(),
        };
        let Some(path) = checkpoint.path.as_deref().filter(|path| !restart && path.exists()) else {
            return Ok(checkpoint);
        };
        let shown = path.display();
        let text = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
        let state: Value =
            serde_json::from_slice(&text).with_context(|| format!("{shown} is no state of a transfer"))?;
        if state["version"] != VERSION || state["identity"] != checkpoint.identity {
            bail!(
                "{shown} is the state of another transfer ({}); begin anew with --restart, or name another file with --state",
                state["identity"]
            );
        }
        for (name, part) in state["parts"].as_object().into_iter().flatten() {
            let part = Part {
                counts: Counts::of_json(&part["counts"]),
                position: part.get("position").filter(|position| !position.is_null()).cloned(),
                done: part["done"].as_bool().unwrap_or(false),
                ..Part::default()
            };
            checkpoint.parts.insert(name.clone(), part);
        }
        checkpoint.extra = state["extra"].clone();
        if let Some(rejects) = &mut checkpoint.rejects {
            rejects.bytes = state["rejectBytes"].as_u64().unwrap_or(0);
        }
        Ok(checkpoint)
    }

    /// Where a part begins: `None` at its own beginning.
    pub fn position(&self, part: &str) -> Option<&Value> {
        self.parts.get(part)?.position.as_ref()
    }

    pub fn is_done(&self, part: &str) -> bool {
        self.parts.get(part).is_some_and(|part| part.done)
    }

    pub fn counts(&self) -> Counts {
        let mut all = Counts::default();
        for part in self.parts.values() {
            all.add(&part.counts);
        }
        all
    }

    /// Notes that a chunk is done. Chunks of a part are numbered from 0 in every run.
    pub fn settle(&mut self, part: &str, chunk: u64, settled: Settled) -> Result<()> {
        let entry = match self.parts.get_mut(part) {
            Some(entry) => entry,
            None => self.parts.entry(part.to_owned()).or_default(),
        };
        entry.waiting.insert(chunk, settled);
        while let Some(settled) = entry.waiting.remove(&entry.next) {
            entry.next += 1;
            entry.pending.add(&settled.counts);
            entry.pending_rejects.extend(settled.rejects);
            if settled.after.is_some() || settled.last {
                let rejected = std::mem::take(&mut entry.pending_rejects);
                if let Some(rejects) = &mut self.rejects {
                    rejects.append(part, &rejected)?;
                }
                entry.counts.add(&std::mem::take(&mut entry.pending));
                entry.done = settled.last;
                if settled.after.is_some() {
                    entry.position = settled.after;
                }
            }
        }
        Ok(())
    }

    /// Whether it is time to [`Checkpoint::save`].
    pub fn is_due(&self) -> bool {
        self.saved.elapsed() >= INTERVAL
    }

    /// Writes the file as a whole beside the old one, then in its place.
    pub fn save(&mut self) -> Result<()> {
        self.saved = Instant::now();
        let mut reject_bytes = 0;
        if let Some(rejects) = &mut self.rejects {
            rejects.sync()?;
            reject_bytes = rejects.bytes;
        }
        let Some(path) = &self.path else { return Ok(()) };
        let parts: Map<String, Value> = self
            .parts
            .iter()
            .map(|(name, part)| {
                let value =
                    json!({"position": part.position, "counts": part.counts.to_json(), "done": part.done});
                (name.clone(), value)
            })
            .collect();
        let state = json!({
            "version": VERSION,
            "identity": self.identity,
            "rejectBytes": reject_bytes,
            "extra": self.extra,
            "parts": parts,
        });
        write_whole(path, state.to_string().as_bytes())
    }

    /// The transfer is complete, and there is nothing to go on with.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(rejects) = &mut self.rejects {
            rejects.sync()?;
        }
        match self.path.as_deref().filter(|path| path.exists()) {
            Some(path) => {
                std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
            }
            None => Ok(()),
        }
    }
}

/// Replaces a file in one step.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        std::fs::rename(&new, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

impl RejectFile {
    fn append(&mut self, part: &str, rejects: &[Reject]) -> Result<()> {
        if rejects.is_empty() {
            return Ok(());
        }
        let out = self.file()?;
        let mut bytes = 0;
        for reject in rejects {
            let mut end = reject.text.len().min(REJECT_TEXT_BYTES_MAX);
            while !reject.text.is_char_boundary(end) {
                end -= 1;
            }
            let line = json!({
                "source": part,
                "record": reject.record,
                "reason": reject.reason,
                "text": &reject.text[..end],
            });
            let line = format!("{line}\n");
            out.write_all(line.as_bytes())?;
            bytes += line.len() as u64;
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Opened by the first reject, and cut to what the last checkpoint knew of it.
    fn file(&mut self) -> Result<&mut BufWriter<File>> {
        if self.out.is_none() {
            let open = || -> std::io::Result<File> {
                let mut file =
                    OpenOptions::new().create(true).write(true).truncate(false).open(&self.path)?;
                file.set_len(self.bytes)?;
                file.seek(SeekFrom::End(0))?;
                Ok(file)
            };
            let file = open().with_context(|| format!("cannot write {}", self.path.display()))?;
            self.out = Some(BufWriter::new(file));
        }
        self.out.as_mut().context("it was just opened")
    }

    fn sync(&mut self) -> Result<()> {
        if let Some(out) = &mut self.out {
            out.flush()?;
            out.get_ref().sync_data()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(count: u64, after: Option<u64>, last: bool) -> Settled {
        let rejects = vec![Reject { record: count, text: "x".into(), reason: "no".into() }];
        let counts = Counts { read: count, written: count - 1, rejected: 1, skipped: 0 };
        Settled { counts, rejects, after: after.map(Value::from), last }
    }

    #[test]
    fn positions_and_counts_move_together_and_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| Some(directory.path().join(name));
        let open = || Checkpoint::open(path("state"), json!("a"), path("rejects"), false).unwrap();
        let mut checkpoint = open();
        checkpoint.settle("p", 1, settled(20, Some(30), false)).unwrap();
        checkpoint.save().unwrap();
        assert_eq!(open().counts(), Counts::default(), "the first chunk is not done");
        checkpoint.settle("p", 0, settled(10, None, false)).unwrap();
        checkpoint.settle("p", 2, settled(5, None, false)).unwrap();
        checkpoint.save().unwrap();
        let mut again = open();
        assert_eq!(
            (again.counts().read, again.position("p"), again.is_done("p")),
            (30, Some(&json!(30)), false)
        );
        // The last chunk comes again, and so does its reject.
        again.settle("p", 0, settled(5, None, true)).unwrap();
        again.save().unwrap();
        assert_eq!((again.counts().read, again.counts().rejected, again.is_done("p")), (35, 3, true));
        let lines = std::fs::read_to_string(directory.path().join("rejects")).unwrap();
        let records: Vec<u64> = lines
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["record"].as_u64().unwrap())
            .collect();
        assert_eq!(records, [10, 20, 5]);
        assert!(Checkpoint::open(path("state"), json!("b"), None, false).is_err(), "another transfer");
        again.finish().unwrap();
        assert!(!directory.path().join("state").exists());
    }
}
