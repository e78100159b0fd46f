//! What a store gives back when nobody uses it: rows that were deleted, and the log of what is in tables.
//!
//! A deletion is a row of its own. It removes what it hides only where the two are merged, and that happens by itself
//! only when more is written: after many deletes and then nothing, everything stayed where it was, the deletions in
//! memory and in the log. So a store that has been idle for a while writes what is in memory to tables once the log
//! is worth it, begins a new segment, and merges trees of which a notable share are deletions, as a whole, down to
//! the last level, where deletions end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lsm_tree::{AbstractTree, Table as TreeTable};

use super::committer::Request;
use super::core::Core;
use super::frame::HEADER_BYTES;
use super::trees::{Trees, guarded};
use crate::store::{StoreError, Table};

/// A log of this size is worth the tables that are written to be rid of it.
pub(super) const IDLE_LOG_BYTES: u64 = 4 * 1024 * 1024;
/// How long nothing must have been committed before.
const TRIMMED_AFTER: Duration = Duration::from_secs(10);
/// Deletions that are worth a merge: one of so many rows, and at least so many.
const GARBAGE_SHARE: u64 = 10;
const GARBAGE_MIN: u64 = 1000;
/// A larger tree is not merged as a whole: it would keep the compactor from its work for minutes.
const COLLECTED_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// Has the committer trim the log of a store that is idle. True while there is something to come back for. `begun`:
/// it takes two steps, one that writes tables and one that ends the segment.
pub(super) fn trim_log(core: &Core, idle: Duration, begun: &mut bool) -> bool {
    let log_bytes = core.counters.log_bytes.load(Ordering::Relaxed);
    *begun &= log_bytes > HEADER_BYTES as u64;
    if log_bytes < IDLE_LOG_BYTES && !*begun {
        return false;
    }
    if idle >= TRIMMED_AFTER {
        core.queue.push_control(Request::Trim);
        *begun = true;
    }
    true
}

impl Trees {
    /// Whether so many rows of a tree are deletions that it should be merged as a whole.
    pub(super) fn has_garbage(&self, table: Table) -> bool {
        let Ok(version) = guarded(|| Ok(self.tree(table).current_version())) else { return false };
        let sum = |figure: fn(&TreeTable) -> u64| -> u64 { version.iter_tables().map(figure).sum() };
        let deletions = sum(|table| table.metadata.tombstone_count);
        deletions >= GARBAGE_MIN
            && deletions * GARBAGE_SHARE >= sum(|table| table.metadata.item_count)
            && sum(|table| table.metadata.file_size) <= COLLECTED_BYTES_MAX
            && self.collected[table as usize].load(Ordering::Relaxed) != version.id()
            && !self.is_damaged(table)
    }

    /// Merges a tree into its last level.
    pub(super) fn collect_garbage(&self, table: Table, watermark: u64) -> Result<(), StoreError> {
        let tree = self.tree(table);
        let collect = || {
            tree.major_compact(self.table_bytes_max, watermark)?;
            Ok(tree.current_version().id())
        };
        let collected = self.swept(table, || guarded(collect));
        self.note_version(table);
        match collected {
            // What an open snapshot still sees stays, and another try at once would not change that.
            Ok(version) => self.collected[table as usize].store(version, Ordering::Relaxed),
            Err(StoreError::Damaged(_) | StoreError::Io(_)) if self.look_for_damage(table) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
