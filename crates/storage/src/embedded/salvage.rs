//! Making a new store out of what can be read of a damaged one.
//!
//! Every block that reads is taken, from all tables of a tree at once, merged with the frames of the log that read;
//! of each key the newest version counts. So nothing that can be read is lost. What cannot be read is told: rows of a
//! bad block are gone, and where it hid older versions or deletions of them, those may come back. That is why a range
//! with damage is called unknown as a whole.
//!
//! The damaged store is only read. Putting the new one in its place is the caller's last step, see
//! [`HeldStore::replace_with`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use lsm_tree::{AbstractTree, InternalValue, ValueType};

use super::EmbeddedOptions;
use super::blocks::TableFile;
use super::directory::{Directory, TREE_NAMES};
use super::files::{LogDirectory, OsDirectory, sync_directory};
use super::frame::{Frame, HEADER_BYTES, Header, Kind};
use super::inspection::{FORMAT, FORMAT_FILE, LOG};
use super::log::{Log, segment_name};
use super::log_end::{self, EndFile, LogEnd};
use super::reserve::Reserve;
use super::trees::{Trees, prefixed, space_of};
use super::verify::{FileDamage, HeldStore, Progress, ReadOnly, io_error, listed_tables, segment_bases};
use crate::store::{SpaceId, StoreError, TABLES, Table};

/// What was kept, and what was not.
#[derive(Debug, Default)]
pub struct Salvaged {
    /// Rows by tree: items, index, feed.
    pub rows: [u64; TABLES.len()],
    pub lost: Vec<FileDamage>,
    /// Trees of which nothing was kept, because a part of them is lost and the caller makes the whole anew.
    pub left_out: Vec<Table>,
}

impl Salvaged {
    /// Whether rows of a tree are lost: in its own tables, or with commits of the log, which hold rows of every tree.
    fn has_lost(&self, table: Table) -> bool {
        let tree = TREE_NAMES[table as usize];
        let of_tree = |part: &str| part.split('/').next().is_some_and(|head| head == tree || head == LOG);
        self.lost.iter().any(|lost| of_tree(&lost.part))
    }
}

/// Rows of the log that can be read, by tree, and when spaces were dropped.
#[derive(Default)]
struct LogRows {
    rows: [Vec<InternalValue>; TABLES.len()],
    drops: HashMap<u32, u64>,
    last_seqno: u64,
}

impl HeldStore {
    /// Writes what can be read into a new store in an empty directory. Of the `derived` trees, whose rows the caller
    /// can make from the others, all or nothing is kept: rows that number or count each other mean nothing when some
    /// are gone.
    pub fn salvage(
        &self,
        into: &Path,
        derived: &[Table],
        progress: Progress<'_>,
    ) -> Result<Salvaged, StoreError> {
        let mut salvaged = Salvaged::default();
        let log = self.read_log(&mut salvaged)?;
        let (directory, _) = Directory::open(into)?;
        let options = EmbeddedOptions::default();
        let trees = Trees::open(&directory, &options)?;
        // Versions of the new tables take numbers too; they must not be below those of rows.
        let mut rows = log.rows;
        for table in TABLES {
            let files = self.table_files(table, &mut salvaged)?;
            progress(table as u64, TABLES.len() as u64);
            if derived.contains(&table) && salvaged.has_lost(table) {
                salvaged.left_out.push(table);
                continue;
            }
            let of_log = std::mem::take(&mut rows[table as usize]);
            salvaged.rows[table as usize] =
                merge(&trees, table, &files, of_log, &log.drops, options.memtable_bytes[table as usize])?;
        }
        progress(TABLES.len() as u64, TABLES.len() as u64);
        let highest = trees.persisted().into_iter().fold(log.last_seqno, u64::max);
        let log_directory = std::sync::Arc::new(OsDirectory { path: directory.log() });
        EndFile::open(into)
            .and_then(|end| {
                let reserve = std::sync::Arc::new(Reserve::open(into, 0));
                let none = Default::default();
                Log::start(log_directory, end, reserve, none, highest + 1, options.segment_bytes)
            })
            .map_err(|error| io_error(into, &error))?;
        directory.finish_creation()?;
        directory.unlock();
        Ok(salvaged)
    }

    fn table_files(&self, table: Table, salvaged: &mut Salvaged) -> Result<Vec<TableFile>, StoreError> {
        let tree = TREE_NAMES[table as usize];
        let folder = self.path.join(tree);
        let paths: Vec<PathBuf> = match listed_tables(&folder) {
            Ok(tables) => tables.into_iter().map(|table| table.path).collect(),
            Err(what) => {
                let what = format!("{what}; every table file that is there was read");
                salvaged.lost.push(lost(format!("{tree}/current"), what));
                let entries = std::fs::read_dir(folder.join("tables"));
                entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
            }
        };
        let mut files = Vec::new();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let part = format!("{tree}/tables/{name}");
            match TableFile::read(&path) {
                Err(error) => salvaged.lost.push(lost(part, format!("cannot be read: {error}"))),
                Ok(file) => {
                    salvaged.lost.extend(file.gaps.iter().filter(|gap| gap.rows).map(|gap| FileDamage {
                        after: gap.after.clone().map(Bytes::from),
                        before: gap.before.clone().map(Bytes::from),
                        ..lost(
                            part.clone(),
                            format!("{} bytes of rows at byte {}", gap.size_bytes, gap.offset),
                        )
                    }));
                    files.push(file);
                }
            }
        }
        Ok(files)
    }

    fn read_log(&self, salvaged: &mut Salvaged) -> Result<LogRows, StoreError> {
        let log = ReadOnly(OsDirectory { path: self.path.join(LOG) });
        let mut rows = LogRows::default();
        let bases = match segment_bases(&log) {
            Ok(bases) if !bases.is_empty() => bases,
            _ => {
                salvaged.lost.push(lost(LOG.to_owned(), "no segment of the log is there".to_owned()));
                return Ok(rows);
            }
        };
        let known = LogEnd::read(&self.path).ok().flatten().filter(|known| !known.takes_anything());
        if let Some(known) = known {
            for base in [known.oldest, known.newest].into_iter().filter(|base| !bases.contains(base)) {
                let part = format!("{LOG}/{}", segment_name(base));
                salvaged.lost.push(lost(part, "is missing, with the commits in it".to_owned()));
            }
        }
        for (index, base) in bases.iter().copied().enumerate() {
            let name = segment_name(base);
            let part = format!("{LOG}/{name}");
            let bytes = log.read(&name).map_err(|error| io_error(&self.path, &error))?;
            // How long the segment was, as far as somebody knows.
            let next = bases.get(index + 1).and_then(|next| log.read(&segment_name(*next)).ok());
            let next = next.and_then(|next| Header::decode(&next)).filter(|next| next.previous_base == base);
            let durable = match next {
                Some(next) => next.previous_bytes,
                None => known.filter(|known| known.newest == base).map_or(0, |known| known.synced_end),
            };
            let mut at = HEADER_BYTES;
            while at < bytes.len() {
                let Some(frame) = Frame::decode(&bytes, base, at) else {
                    if bytes[at..].iter().all(|byte| *byte == 0) {
                        break;
                    }
                    let next = Frame::find(&bytes, base, at + 1).map(|frame| frame.start);
                    let end = next.unwrap_or(bytes.len());
                    // The end of the newest segment is torn by every crash that comes in the middle of a write.
                    if next.is_some() || index + 1 < bases.len() || (at as u64) < durable {
                        let what = format!("{} bytes of commits at byte {at}", end - at);
                        salvaged.lost.push(lost(part.clone(), what));
                    }
                    at = end;
                    continue;
                };
                for record in frame.records().flatten() {
                    rows.last_seqno = rows.last_seqno.max(record.seqno);
                    match record.kind {
                        Kind::Drop | Kind::DropPending => {
                            let seqno = rows.drops.entry(record.space.0).or_default();
                            *seqno = (*seqno).max(record.seqno);
                        }
                        Kind::DropFinished => {}
                        Kind::Commit => {
                            let Some(commit) = record.commit(|_| true) else {
                                salvaged.lost.push(lost(part.clone(), "a commit makes no sense".to_owned()));
                                continue;
                            };
                            for change in commit.changes {
                                let key = prefixed(SpaceId(record.space.0), &change.key);
                                rows.rows[change.table as usize].push(match change.value {
                                    Some(value) => InternalValue::from_components(
                                        key,
                                        value,
                                        record.seqno,
                                        ValueType::Value,
                                    ),
                                    None => InternalValue::new_tombstone(key, record.seqno),
                                });
                            }
                        }
                    }
                }
                at = frame.end;
            }
            if (at as u64) < durable {
                let what = format!("{} bytes of commits at its end", durable - at as u64);
                salvaged.lost.push(lost(part, what));
            }
        }
        Ok(rows)
    }

    /// Puts a salvaged store in the place of this one. Everything of the old one is kept beside it, in `aside`.
    pub fn replace_with(&self, salvaged: &Path, aside: &Path) -> Result<(), StoreError> {
        let replace = || -> std::io::Result<()> {
            std::fs::create_dir_all(aside)?;
            // What is no longer there has been moved by an earlier try that was interrupted.
            let names = [LOG, log_end::FILE].into_iter().chain(TREE_NAMES);
            for name in names.filter(|name| salvaged.join(name).exists()) {
                if self.path.join(name).exists() {
                    std::fs::rename(self.path.join(name), aside.join(name))?;
                }
                std::fs::rename(salvaged.join(name), self.path.join(name))?;
            }
            if !self.path.join(FORMAT_FILE).exists() {
                std::fs::write(self.path.join(FORMAT_FILE), FORMAT)?;
            }
            sync_directory(aside)?;
            sync_directory(&self.path)
        };
        replace().map_err(|error| io_error(&self.path, &error))
    }
}

fn lost(part: String, what: String) -> FileDamage {
    FileDamage { part, what, rows: true, after: None, before: None }
}

/// Rows of one source, in order of their keys, newest version first.
type Source = Box<dyn Iterator<Item = InternalValue>>;

/// The next row of a source: by key, of one key the newest first, then by source.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: lsm_tree::UserKey,
    older: Reverse<u64>,
    source: usize,
}

/// Writes the newest version of every key. Returns how many there are.
fn merge(
    trees: &Trees,
    table: Table,
    files: &[TableFile],
    mut of_log: Vec<InternalValue>,
    drops: &HashMap<u32, u64>,
    memtable_bytes: u64,
) -> Result<u64, StoreError> {
    // Of one commit that writes a key twice the last wins; a stable sort keeps their order, and the last is taken.
    of_log.sort_by(|a, b| {
        (&a.key.user_key, Reverse(a.key.seqno)).cmp(&(&b.key.user_key, Reverse(b.key.seqno)))
    });
    let mut log_rows: Vec<InternalValue> = Vec::with_capacity(of_log.len());
    for row in of_log {
        match log_rows.last_mut() {
            Some(last) if (&last.key.user_key, last.key.seqno) == (&row.key.user_key, row.key.seqno) => {
                *last = row
            }
            _ => log_rows.push(row),
        }
    }
    let mut sources: Vec<Source> = vec![Box::new(log_rows.into_iter())];
    for file in files {
        let rows = file.rows().map_err(|error| io_error(&file.path, &error))?;
        sources.push(Box::new(rows));
    }
    let mut rows: Vec<Option<InternalValue>> = Vec::new();
    let mut heads = BinaryHeap::new();
    for (source, iterator) in sources.iter_mut().enumerate() {
        rows.push(iterator.next());
        heads.extend(rows[source].as_ref().map(|row| Reverse(head(row, source))));
    }
    let tree = trees.tree(table);
    let (mut last, mut count) = (None, 0);
    while let Some(Reverse(Head { source, .. })) = heads.pop() {
        let next = sources[source].next();
        heads.extend(next.as_ref().map(|row| Reverse(head(row, source))));
        let Some(row) = std::mem::replace(&mut rows[source], next) else { continue };
        if last.as_ref() == Some(&row.key.user_key) {
            continue;
        }
        last = Some(row.key.user_key.clone());
        let dropped = drops.get(&space_of(&row.key.user_key)).is_some_and(|seqno| row.key.seqno < *seqno);
        if row.is_tombstone() || dropped {
            continue;
        }
        count += 1;
        tree.active_memtable().insert(row);
        if tree.active_memtable().size() >= memtable_bytes {
            flush(trees, table)?;
        }
    }
    flush(trees, table)?;
    Ok(count)
}

fn head(row: &InternalValue, source: usize) -> Head {
    Head { key: row.key.user_key.clone(), older: Reverse(row.key.seqno), source }
}

fn flush(trees: &Trees, table: Table) -> Result<(), StoreError> {
    if trees.tree(table).rotate_memtable().is_some() {
        trees.flush(table, 0)?;
    }
    Ok(())
}
