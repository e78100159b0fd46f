//! What lies in a directory, without changing anything: a store and which of its parts are missing, a creation that was
//! interrupted, nothing, or somebody else's files.
//!
//! ```text
//! LOCK      held by the process that has the store open
//! CREATING  in place of FORMAT while the store is made; whatever lies beside it is ours and holds no commit
//! FORMAT    version of everything below
//! LOGEND    what the log is known to hold (see `log_end`)
//! RESERVE   room for deletes on a full disk (see `reserve`)
//! log/      segments of the write-ahead log; at least one
//! items/ index/ feed/   the three trees: `current` names a manifest `v7`, which names files of `tables/`
//! ```
//!
//! A part that is missing must never be taken for one that is empty: a tree without `current` would be created anew,
//! over tables that nobody looks for any more. So whoever opens a store asks here first. An empty `tables/` is no
//! part: copies that keep only files lose it, and nothing with it.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::frame::HEADER_BYTES;
use super::log::segment_base;
use super::log_end;

/// Raised with every change of what is on disk that an older or newer program would misread.
pub(super) const FORMAT: &str = "orrery store 1\n";
pub(super) const FORMAT_FILE: &str = "FORMAT";
pub(super) const CREATING_FILE: &str = "CREATING";
pub(super) const LOCK_FILE: &str = "LOCK";
pub(super) const LOG: &str = "log";
pub(super) const TREE_NAMES: [&str; 3] = ["items", "index", "feed"];
/// Names in the way of a new store that belong to the file system (`lost+found`) or that Orrery writes before it
/// makes the store. The certificate may still have the name under which it is written.
const HARMLESS: [&str; 3] = [LOCK_FILE, "lost+found", "tls.pem"];
const HARMLESS_PREFIX: &str = "tls.pem.new-";
/// So many names are said of what is in the way.
const NAMES_SAID_MAX: usize = 5;
/// More levels, runs or tables than any tree has; a manifest that claims more is damaged.
const TABLES_MAX: usize = 1 << 24;

/// What `inspect` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    pub path: PathBuf,
    pub found: Found,
    /// Parts of a store that are not there or cannot be read, each with what is wrong. Empty unless `found` is a store.
    pub missing: Vec<MissingPart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// No directory, or one without anything that matters. A store may be made here.
    Nothing,
    /// Under its marker, and no commit was ever accepted: may be removed and made again.
    InterruptedCreation,
    Store,
    /// Parts of a store, but neither FORMAT nor the marker.
    StoreWithoutFormat {
        parts: Vec<String>,
    },
    OtherFormat(String),
    /// Some names of what is there.
    Foreign {
        names: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPart {
    /// Relative to the store's directory, such as `items/current`.
    pub part: String,
    /// `is missing`, or why it cannot be read.
    pub problem: String,
}

impl std::fmt::Display for MissingPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.part, self.problem)
    }
}

impl Inspection {
    /// Why this directory cannot be opened and what to do about it; `None` when it can.
    pub fn refusal(&self) -> Option<String> {
        let path = self.path.display();
        match &self.found {
            Found::Nothing | Found::InterruptedCreation => None,
            Found::Store if self.missing.is_empty() => None,
            Found::Store => {
                let missing: Vec<String> =
                    self.missing.iter().take(NAMES_SAID_MAX).map(ToString::to_string).collect();
                let more = match self.missing.len().saturating_sub(NAMES_SAID_MAX) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                Some(format!(
                    "the store in {path} is not whole: {}{more}. Nothing was changed. {}",
                    missing.join(", "),
                    advice(&self.path)
                ))
            }
            Found::StoreWithoutFormat { parts } => Some(format!(
                "{path} holds {} but no {FORMAT_FILE} file, so it is not known to be a whole store. Nothing was changed. \
                 {} A directory whose creation an older version did not finish holds no data and may be removed",
                parts.join(", "),
                advice(&self.path)
            )),
            Found::OtherFormat(format) => Some(format!(
                "{path} has format {:?}; this program reads {:?}",
                format.trim_end(),
                FORMAT.trim_end()
            )),
            Found::Foreign { names } => Some(format!(
                "{path} is not empty and holds no store (found: {}). Nothing was changed. Choose another directory \
                 with --data-dir, or move these files away",
                names.join(", ")
            )),
        }
    }
}

/// What an operator can do about a store that is not whole.
pub(super) fn advice(path: &Path) -> String {
    let path = path.display();
    format!(
        "Restore it from a backup, see what is left with `orrery check {path}`, or keep what is left with \
         `orrery repair {path}`"
    )
}

/// Looks at a directory. Reads names, FORMAT and manifests; no data.
pub fn inspect(path: &Path) -> io::Result<Inspection> {
    let names = match names(path) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let has = |name: &str| names.iter().any(|found| found == name);
    let found = if has(FORMAT_FILE) {
        match std::fs::read(path.join(FORMAT_FILE))? {
            format if format == FORMAT.as_bytes() => Found::Store,
            format => Found::OtherFormat(String::from_utf8_lossy(&format).chars().take(80).collect()),
        }
    } else if has(CREATING_FILE) {
        match unknown_under_marker(path, &names)? {
            unknown if unknown.is_empty() => Found::InterruptedCreation,
            unknown => Found::Foreign { names: said(unknown) },
        }
    } else if TREE_NAMES.iter().any(|tree| path.join(tree).join("current").exists())
        || names_or_none(&path.join(LOG))?.iter().any(|name| segment_base(name).is_some())
    {
        let parts = TREE_NAMES.into_iter().chain([LOG]).filter(|name| has(name));
        Found::StoreWithoutFormat { parts: parts.map(str::to_owned).collect() }
    } else {
        let foreign: Vec<String> = names.into_iter().filter(|name| !is_harmless(name)).collect();
        if foreign.is_empty() { Found::Nothing } else { Found::Foreign { names: said(foreign) } }
    };
    let missing = if found == Found::Store { missing_parts(path)? } else { Vec::new() };
    Ok(Inspection { path: path.to_owned(), found, missing })
}

fn is_harmless(name: &str) -> bool {
    HARMLESS.contains(&name) || name.starts_with(HARMLESS_PREFIX)
}

fn said(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    if names.len() > NAMES_SAID_MAX {
        let more = names.len() - NAMES_SAID_MAX;
        names.truncate(NAMES_SAID_MAX);
        names.push(format!("and {more} more"));
    }
    names
}

fn names(path: &Path) -> io::Result<Vec<String>> {
    std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

fn names_or_none(path: &Path) -> io::Result<Vec<String>> {
    match names(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        names => names,
    }
}

/// What lies beside the marker without having been made by an interrupted creation.
fn unknown_under_marker(path: &Path, names: &[String]) -> io::Result<Vec<String>> {
    let mut unknown = Vec::new();
    for name in names {
        if name == LOG {
            unknown.extend(unknown_in_new_log(path)?);
        } else if TREE_NAMES.contains(&name.as_str()) {
            unknown.extend(unknown_in_new_tree(path, name)?);
        } else if name != CREATING_FILE && name != log_end::FILE && !is_harmless(name) {
            unknown.push(name.clone());
        }
    }
    Ok(unknown)
}

/// The log of an unfinished store has segments, but no commit in them.
fn unknown_in_new_log(path: &Path) -> io::Result<Vec<String>> {
    let mut unknown = Vec::new();
    for name in names_or_none(&path.join(LOG))? {
        let shown = format!("{LOG}/{name}");
        if segment_base(&name).is_none() || std::fs::metadata(path.join(&shown))?.len() > HEADER_BYTES as u64
        {
            unknown.push(shown);
        }
    }
    Ok(unknown)
}

/// A tree that was never written to has a manifest, `current`, perhaps a file on its way to become that, and no tables.
fn unknown_in_new_tree(path: &Path, tree: &str) -> io::Result<Vec<String>> {
    let folder = path.join(tree);
    let mut unknown: Vec<String> = names_or_none(&folder.join("tables"))?
        .into_iter()
        .map(|name| format!("{tree}/tables/{name}"))
        .collect();
    for name in names_or_none(&folder)? {
        let ours = name == "current" || name == "v0" || name == "tables" || name.starts_with(".tmp");
        if !ours {
            unknown.push(format!("{tree}/{name}"));
        }
    }
    Ok(unknown)
}

fn missing_parts(path: &Path) -> io::Result<Vec<MissingPart>> {
    let mut missing = Vec::new();
    let mut lacks = |part: String, problem: String| missing.push(MissingPart { part, problem });
    let log = path.join(LOG);
    if !log.is_dir() {
        lacks(LOG.into(), "is missing".into());
    } else if !names(&log)?.iter().any(|name| segment_base(name).is_some()) {
        lacks(LOG.into(), "holds no segment".into());
    }
    for tree in TREE_NAMES {
        let folder = path.join(tree);
        if !folder.is_dir() {
            lacks(tree.into(), "is missing".into());
            continue;
        }
        let version = match read_current(&folder) {
            Ok(version) => version,
            Err(error) => {
                lacks(format!("{tree}/current"), problem(&error));
                continue;
            }
        };
        let manifest = format!("v{version}");
        match read_manifest(&folder.join(&manifest)) {
            Err(error) => lacks(format!("{tree}/{manifest}"), problem(&error)),
            Ok(tables) => {
                for table in tables {
                    if !folder.join("tables").join(table.to_string()).is_file() {
                        lacks(format!("{tree}/tables/{table}"), "is missing".into());
                    }
                }
            }
        }
    }
    Ok(missing)
}

fn problem(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read ({error})"),
    }
}

/// The number of a tree's present manifest.
pub(super) fn read_current(folder: &Path) -> io::Result<u64> {
    let mut number = [0; 8];
    std::fs::File::open(folder.join("current"))?.read_exact(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

/// The numbers of the tables that a manifest names.
fn read_manifest(path: &Path) -> io::Result<Vec<u64>> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "it is damaged");
    let reader = sfa::Reader::new(path).map_err(|error| match error {
        sfa::Error::Io(error) => error,
        _ => damaged(),
    })?;
    let mut section = reader.toc().section(b"tables").ok_or_else(damaged)?.buf_reader(path)?;
    let mut tables = Vec::new();
    for _ in 0..u8::from_le_bytes(take(&mut section)?) {
        for _ in 0..u8::from_le_bytes(take(&mut section)?) {
            for _ in 0..u32::from_le_bytes(take(&mut section)?) {
                tables.push(u64::from_le_bytes(take(&mut section)?));
                // Kind of checksum, checksum, sequence number.
                let _: [u8; 1 + 16 + 8] = take(&mut section)?;
                if tables.len() > TABLES_MAX {
                    return Err(damaged());
                }
            }
        }
    }
    Ok(tables)
}

fn take<const N: usize>(reader: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes)?;
    Ok(bytes)
}
