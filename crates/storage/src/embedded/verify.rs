//! Reading a store that nobody has open, without changing it: every block of every table, every frame of the log.
//!
//! `verify` believes checksums only. What the rows mean is the engine's business: it reads them through a *shadow*, a
//! directory elsewhere that holds copies of the manifests and of the log and links to the tables. A store that is
//! opened there replays, compacts and removes as always, and none of it reaches the original.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::blocks::{self, TableFile};
use super::directory::{Directory, TREE_NAMES};
use super::files::{LogDirectory, LogFile, OsDirectory};
use super::frame::{Frame, HEADER_BYTES};
use super::inspection::{FORMAT_FILE, Found, LOG, inspect};
use super::log::{segment_base, segment_name};
use super::log_end::{self, LogEnd};
use super::{manifest, recovery};
use crate::store::StoreError;

/// What was read and what is wrong with it.
#[derive(Debug, Default)]
pub struct Verified {
    pub tables: u64,
    pub blocks: u64,
    pub segments: u64,
    pub frames: u64,
    pub size_bytes: u64,
    pub damage: Vec<FileDamage>,
}

/// One damaged place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDamage {
    /// Relative to the store's directory, such as `items/tables/12`.
    pub part: String,
    pub what: String,
    /// Whether rows may be lost; otherwise only what helps to find them.
    pub rows: bool,
    /// The keys that are known around it, with the number of their space in front.
    pub after: Option<Bytes>,
    pub before: Option<Bytes>,
}

/// Called with the bytes that have been read and those that there are.
pub type Progress<'p> = &'p mut dyn FnMut(u64, u64);

/// A store's directory that is held so that no server opens it.
pub struct HeldStore {
    pub(super) path: PathBuf,
    pub(super) found: Found,
    _locks: Vec<std::fs::File>,
}

impl HeldStore {
    /// Refuses what is no store, or is one of another format, or is in use.
    pub fn hold(path: &Path) -> Result<HeldStore, StoreError> {
        let inspection = inspect(path).map_err(|error| io_error(path, &error))?;
        let refused = |what: String| Err(StoreError::Refused(what.into()));
        match &inspection.found {
            Found::Store | Found::StoreWithoutFormat { .. } => {}
            Found::Nothing | Found::InterruptedCreation => {
                return refused(format!("{} holds no store", path.display()));
            }
            Found::OtherFormat(_) | Found::Foreign { .. } => {
                return refused(inspection.refusal().unwrap_or_else(|| "this is no store".to_owned()));
            }
        }
        let locks = Directory::hold(path)?;
        Ok(HeldStore { path: path.to_owned(), found: inspection.found, _locks: locks })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads everything.
    pub fn verify(&self, progress: Progress<'_>) -> Result<Verified, StoreError> {
        let mut verified = Verified::default();
        let mut add = |part: String, what: String, rows: bool| {
            verified.damage.push(FileDamage { part, what, rows, after: None, before: None });
        };
        if !matches!(self.found, Found::Store) {
            add("FORMAT".to_owned(), "is missing".to_owned(), false);
        }
        let mut files = Vec::new();
        for tree in TREE_NAMES {
            let folder = self.path.join(tree);
            match listed_tables(&folder) {
                Ok(tables) => files.extend(tables.into_iter().map(|table| (tree, table))),
                Err(what) => add(format!("{tree}/current"), what, true),
            }
        }
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let log = ReadOnly(OsDirectory { path: self.path.join(LOG) });
        let mut segments: Vec<String> = log.list().unwrap_or_default();
        segments.retain(|name| segment_base(name).is_some());
        segments.sort();
        let total: u64 = files.iter().map(|(_, table)| size(&table.path)).sum::<u64>()
            + segments.iter().map(|name| size(&self.path.join(LOG).join(name))).sum::<u64>();

        for (tree, table) in files {
            verify_table(tree, &table, &mut verified);
            verified.size_bytes += size(&table.path);
            progress(verified.size_bytes, total);
        }
        let known = LogEnd::read(&self.path).unwrap_or_else(|error| {
            let (part, what) = (log_end::FILE.to_owned(), error.to_string());
            verified.damage.push(FileDamage { part, what, rows: false, after: None, before: None });
            None
        });
        if segments.is_empty() {
            verified.damage.push(FileDamage {
                part: LOG.to_owned(),
                what: "holds no segment".to_owned(),
                rows: true,
                after: None,
                before: None,
            });
        } else if let Err(error) = recovery::check(&log, known) {
            let part = segments.iter().find(|name| error.to_string().contains(*name));
            let part = part.map_or(LOG.to_owned(), |name| format!("{LOG}/{name}"));
            let what = error.to_string();
            verified.damage.push(FileDamage { part, what, rows: true, after: None, before: None });
        }
        for name in segments {
            let bytes = log.read(&name).map_err(|error| io_error(&self.path, &error))?;
            verified.frames += count_frames(&bytes, segment_base(&name).unwrap_or(0));
            verified.segments += 1;
            verified.size_bytes += bytes.len() as u64;
            progress(verified.size_bytes, total);
        }
        Ok(verified)
    }

    /// Makes a shadow of the store in an empty directory.
    pub fn shadow(&self, at: &Path) -> Result<(), StoreError> {
        let copy = || -> io::Result<()> {
            for name in [FORMAT_FILE, log_end::FILE].into_iter().filter(|name| self.path.join(name).exists())
            {
                std::fs::copy(self.path.join(name), at.join(name))?;
            }
            copy_files(&self.path.join(LOG), &at.join(LOG))?;
            for tree in TREE_NAMES {
                let (from, to) = (self.path.join(tree), at.join(tree));
                copy_files(&from, &to)?;
                std::fs::create_dir_all(to.join("tables"))?;
                for table in listed_tables(&from).map_err(io::Error::other)? {
                    let original = table.path.canonicalize()?;
                    link(&original, &to.join("tables").join(table.id.to_string()))?;
                }
            }
            Ok(())
        };
        copy().map_err(|error| io_error(at, &error))
    }
}

pub(super) struct ListedTable {
    pub(super) id: u64,
    pub(super) path: PathBuf,
    pub(super) checksum: u128,
}

/// The tables of a tree, by its manifest, or why they are not known.
pub(super) fn listed_tables(tree: &Path) -> Result<Vec<ListedTable>, String> {
    let (manifest, _) = match manifest::current(tree) {
        Ok(Some(current)) => current,
        Ok(None) => return Err("is missing".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    manifest::check(tree).map_err(|error| error.to_string())?;
    let tables = manifest::tables(&manifest).map_err(|error| error.to_string())?;
    let listed = |(id, checksum): (u64, u128)| ListedTable {
        id,
        path: tree.join("tables").join(id.to_string()),
        checksum,
    };
    Ok(tables.into_iter().map(listed).collect())
}

fn verify_table(tree: &str, table: &ListedTable, verified: &mut Verified) {
    let part = format!("{tree}/tables/{}", table.id);
    verified.tables += 1;
    let mut add = |what: String, rows: bool, after: Option<Bytes>, before: Option<Bytes>| {
        verified.damage.push(FileDamage { part: part.clone(), what, rows, after, before });
    };
    let file = match TableFile::read(&table.path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return add("is missing".to_owned(), true, None, None);
        }
        Err(error) => return add(format!("cannot be read: {error}"), true, None, None),
    };
    for gap in &file.gaps {
        let what = format!(
            "bytes {}..{} are damaged: {}",
            gap.offset,
            gap.offset + gap.size_bytes,
            if gap.rows { "rows" } else { "index, filter or metadata of the table" }
        );
        add(what, gap.rows, gap.after.clone().map(Bytes::from), gap.before.clone().map(Bytes::from));
    }
    let whole = file.gaps.is_empty();
    if let (true, Some(error)) = (whole, &file.unopenable) {
        add(format!("cannot be opened: {error}"), false, None, None);
    } else if whole && blocks::checksum(&table.path).ok() != Some(table.checksum) {
        add("some of its bytes are not those that were written".to_owned(), false, None, None);
    }
    verified.blocks += file.blocks.len() as u64;
}

fn count_frames(bytes: &[u8], base: u64) -> u64 {
    let (mut at, mut count) = (HEADER_BYTES, 0);
    while let Some(frame) = Frame::decode(bytes, base, at) {
        at = frame.end;
        count += 1;
    }
    count
}

fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(original: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(original, at)
}

#[cfg(not(unix))]
fn link(original: &Path, at: &Path) -> io::Result<()> {
    std::fs::copy(original, at).map(drop)
}

pub(super) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Io(format!("{}: {error}", path.display()).into())
}

/// A log that is looked at: what recovery would cut or remove stays.
pub(super) struct ReadOnly(pub(super) OsDirectory);

impl LogDirectory for ReadOnly {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        Err(io::Error::other(format!("{name} may not be created")))
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.read(name)
    }

    fn truncate(&self, _name: &str, _size_bytes: u64) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Segments in order, oldest first.
pub(super) fn segment_bases(log: &dyn LogDirectory) -> io::Result<Vec<u64>> {
    let mut bases: Vec<u64> = log.list()?.iter().filter_map(|name| segment_base(name)).collect();
    bases.sort_unstable();
    debug_assert!(bases.iter().all(|base| segment_base(&segment_name(*base)) == Some(*base)));
    Ok(bases)
}
