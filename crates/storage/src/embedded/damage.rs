//! Tables that are known to be damaged, and compaction around them.
//!
//! A flush never reads a table, so damage stops only compactions that have the damaged table among their inputs, and
//! those are not many kinds: one that takes the table itself, and one that would have to put newer rows below it. The
//! strategy of the crate cannot be told to leave a table out, so a tree with a damaged table is compacted in another
//! way until the table is gone:
//!
//! - what is flushed is merged within the first level, which then is one sorted run again;
//! - a damaged table in the first level is first moved, with all others there, on top of the next level that has any.
//!   That level then has several runs, which readers do not mind. As soon as no table of the tree is damaged, it is
//!   merged.
//!
//! This costs more than leveled compaction, grows with what is written until the repair, and loses nothing. A damaged
//! table in the first level of a tree that has no other level stays where it is, with new runs above it, up to
//! `RUNS_MAX`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lsm_tree::compaction::{CompactionStrategy, MoveDown, PullDown};
use lsm_tree::{AbstractTree, Table as TreeTable};
use parking_lot::Mutex;

use super::blocks::TableFile;
use super::directory::TREE_NAMES;
use super::trees::{Trees, guarded};
use crate::store::{StoreError, Table};

/// Runs of the first level that a tree may have at most: the crate counts them in one byte.
pub(super) const RUNS_MAX: usize = 200;

/// What is known of one tree.
#[derive(Default)]
pub(super) struct Damage {
    /// By number, with what was said about it.
    tables: Mutex<BTreeMap<u64, String>>,
    /// A reader has met something; the compactor is to find out what.
    suspected: AtomicBool,
    /// Tables that were read and found whole; a reader's suspicion does not make anybody read them again.
    whole: Mutex<BTreeSet<u64>>,
}

impl Damage {
    pub(super) fn count(&self) -> u64 {
        self.tables.lock().len() as u64
    }

    fn is_known(&self, id: u64) -> bool {
        self.tables.lock().contains_key(&id)
    }

    /// A reader has met damage. True for the first since the tables were last looked at.
    pub(super) fn suspect(&self) -> bool {
        !self.suspected.swap(true, Ordering::AcqRel)
    }
}

impl Trees {
    /// Whether compaction has to work around damaged tables. Those that are gone are forgotten.
    pub(super) fn is_damaged(&self, table: Table) -> bool {
        let damage = &self.damage[table as usize];
        if damage.count() == 0 {
            return false;
        }
        let present: Vec<u64> = self.tables(table).iter().map(TreeTable::id).collect();
        let mut tables = damage.tables.lock();
        tables.retain(|id, _| present.contains(id));
        if tables.is_empty() {
            tracing::info!(tree = TREE_NAMES[table as usize], "no damaged table is left in the tree");
        }
        !tables.is_empty()
    }

    pub(super) fn damaged_tables(&self) -> u64 {
        self.damage.iter().map(Damage::count).sum()
    }

    /// Sorted runs of the first level that somebody has to merge. Where nobody can, they do not count until they are
    /// too many.
    pub(super) fn runs_to_merge(&self, table: Table) -> usize {
        match self.damage[table as usize].count() {
            0 => self.tree(table).l0_run_count(),
            _ => self.tree(table).l0_run_count() / RUNS_MAX * RUNS_MAX,
        }
    }

    /// Reads every table of a tree and notes those that cannot be read. True when there is one that was not known.
    pub(super) fn look_for_damage(&self, table: Table) -> bool {
        self.damage[table as usize].whole.lock().clear();
        self.look_at_unread(table)
    }

    /// The same for tables that nobody has looked at.
    fn look_at_unread(&self, table: Table) -> bool {
        let damage = &self.damage[table as usize];
        damage.suspected.store(false, Ordering::Release);
        let files = self.tables(table);
        damage.whole.lock().retain(|id| files.iter().any(|file| file.id() == *id));
        let mut found = false;
        for file in files {
            if damage.is_known(file.id()) || damage.whole.lock().contains(&file.id()) {
                continue;
            }
            let Some(Trouble { what, rows }) = describe(&file) else {
                damage.whole.lock().insert(file.id());
                continue;
            };
            let key_range = &file.metadata.key_range;
            tracing::error!(
                tree = TREE_NAMES[table as usize],
                file = %file.path.display(),
                first_key = %hex(key_range.min()),
                last_key = %hex(key_range.max()),
                damage = what,
                "a table is damaged: what its bad part holds is not served, everything else is; \
                 stop the server and run `orrery check`"
            );
            if rows {
                damage.tables.lock().insert(file.id(), what);
                found = true;
            } else {
                // A merge reads rows alone, and makes the rest anew.
                damage.whole.lock().insert(file.id());
            }
        }
        found
    }

    /// Looks when a reader asked for it.
    pub(super) fn look_if_suspected(&self, table: Table) {
        if self.damage[table as usize].suspected.load(Ordering::Acquire) {
            self.look_at_unread(table);
        }
    }

    /// One step of compaction in a tree with damaged tables. False when there was nothing to do.
    pub(super) fn compact_around(
        &self,
        table: Table,
        watermark: u64,
        runs_max: usize,
    ) -> Result<bool, StoreError> {
        let tree = self.tree(table);
        let runs = guarded(|| Ok(tree.l0_run_count()))?;
        if runs < runs_max.max(2) {
            return Ok(false);
        }
        if runs >= RUNS_MAX {
            return Err(StoreError::Damaged(
                format!(
                    "{}: a damaged table keeps {runs} others from being merged; stop the server and run `orrery repair`",
                    TREE_NAMES[table as usize]
                )
                .into(),
            ));
        }
        let version = guarded(|| Ok(tree.current_version()))?;
        let damage = &self.damage[table as usize];
        let in_first = version.l0().iter().flat_map(|run| run.iter()).any(|file| damage.is_known(file.id()));
        let next = version.iter_levels().enumerate().skip(1).find(|(_, level)| !level.is_empty());
        let strategy: Arc<dyn CompactionStrategy> = match (in_first, next) {
            (false, _) => Arc::new(PullDown(0, 0)),
            (true, Some((level, _))) => Arc::new(MoveDown(0, level as u8)),
            (true, None) => return Ok(false),
        };
        // The merged run comes before all others of its level, so none may be flushed meanwhile.
        let _flush = guarded(|| Ok(tree.get_flush_lock()))?;
        self.step(table, strategy, watermark)
    }

    /// The level, behind the first, that has several runs: compaction went around a damaged table once.
    pub(super) fn tangled_level(&self, table: Table) -> Option<u8> {
        let version = guarded(|| Ok(self.tree(table).current_version())).ok()?;
        let tangled = version.iter_levels().enumerate().skip(1).find(|(_, level)| level.run_count() > 1);
        tangled.map(|(level, _)| level as u8)
    }

    pub(super) fn tables(&self, table: Table) -> Vec<TreeTable> {
        guarded(|| Ok(self.tree(table).current_version().iter_tables().cloned().collect()))
            .unwrap_or_default()
    }
}

/// What is wrong with a table.
struct Trouble {
    what: String,
    /// Whether there are rows that cannot be read, so that a merge would fail.
    rows: bool,
}

/// `None` when everything in a table can be read.
fn describe(table: &TreeTable) -> Option<Trouble> {
    let read = guarded(|| table.scan()?.try_for_each(|row| row.map(drop)));
    let gaps = match (TableFile::read(&table.path), &read) {
        (Err(error), _) => return Some(Trouble { what: error.to_string(), rows: true }),
        (Ok(file), _) if file.gaps.is_empty() && read.is_ok() => return None,
        (Ok(file), _) => file.gaps,
    };
    let edge = |key: Option<lsm_tree::UserKey>| key.map_or("the end".to_owned(), |key| hex(&key));
    let places: Vec<String> = gaps
        .into_iter()
        .map(|gap| {
            let (start, end) = (gap.offset, gap.offset + gap.size_bytes);
            format!("bytes {start}..{end}, after key {} and before {}", edge(gap.after), edge(gap.before))
        })
        .collect();
    let what = match &read {
        Err(error) if places.is_empty() => error.to_string(),
        _ => places.join("; "),
    };
    Some(Trouble { what, rows: read.is_err() })
}

/// A key for the log: the space's number and what follows, cut.
pub(super) fn hex(key: &[u8]) -> String {
    const BYTES_MAX: usize = 40;
    let mut text = String::new();
    for byte in key.iter().take(BYTES_MAX) {
        text.push_str(&format!("{byte:02x}"));
    }
    if key.len() > BYTES_MAX {
        text.push('…');
    }
    text
}
