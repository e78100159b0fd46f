//! The change feed, latest version: every item once, at its last change, in the order of commits.
//!
//! The feed holds one row for each item, moved to the end whenever the item changes, and rows for deletes, which this
//! mode passes by. A page never ends inside a commit, so a position is an LSN and nothing else; a page may hold a few
//! items more than asked for that reason.

use orrery_storage::{Direction, Snapshot, Table, keys};

use super::Partition;
use super::rows::{FeedRow, damaged, decode_item};
use super::scan::{PageLimits, Span};
use super::target::Target;
use crate::error::Result;
use crate::feed::ChangesFrom;
use crate::item::{Item, Position};

/// Feed rows that one call looks at. A page that found too little by then ends early and says where to go on.
const CHANGES_SCAN_ROWS_MAX: usize = 100_000;

#[derive(Debug)]
pub struct PartitionChanges {
    pub items: Vec<Item>,
    /// Everything up to this commit has been seen.
    pub lsn: u64,
    /// Whether more is already there.
    pub more: bool,
    pub at: Position,
}

impl Partition {
    /// The next page of changes.
    pub fn read_changes(
        &self,
        span: &Span,
        from: ChangesFrom,
        limits: PageLimits,
        session: &[(u32, u64)],
    ) -> Result<PartitionChanges> {
        let view = self.view(session)?;
        let snapshot = self.snapshot()?;
        let after = match from {
            ChangesFrom::Beginning => 0,
            ChangesFrom::Now => view.lsn,
            ChangesFrom::After(lsn) => lsn,
            ChangesFrom::Time(second) => before_second(snapshot.as_ref(), second, view.lsn)?,
        };
        let only = match span {
            Span::Key { epk, key } => Some(Target::new(epk, key, "").key),
            _ => None,
        };
        let in_span = |key: &[u8]| match span {
            Span::All => true,
            Span::Key { .. } => only.as_ref().is_some_and(|prefix| key.starts_with(prefix)),
            Span::Epk { min, max } => keys::ItemKey::decode(key)
                .is_some_and(|parts| *parts.epk >= *min.as_bytes() && *parts.epk < *max.as_bytes()),
        };
        let mut items: Vec<Item> = Vec::new();
        let mut bytes = 0;
        let mut last = after;
        let mut more = false;
        let mut rows = snapshot.scan(Table::Feed, keys::feed_after(after), Direction::Forward);
        let mut looked_at = 0;
        while let Some(row) = rows.next_row().transpose()? {
            let Some(keys::FeedTableKey::Feed { lsn, .. }) = keys::FeedTableKey::decode(&row.key) else {
                return Err(damaged("feed"));
            };
            let full = items.len() >= limits.items || bytes >= limits.bytes && !items.is_empty();
            if lsn != last && (full || looked_at >= CHANGES_SCAN_ROWS_MAX) {
                more = true;
                break;
            }
            last = lsn;
            looked_at += 1;
            let change = FeedRow::decode(&row.value)?;
            if !change.kind.leaves_item() || !in_span(&change.key) {
                continue;
            }
            let item = snapshot
                .get(Table::Items, &change.key)?
                .ok_or_else(|| damaged("feed"))
                .and_then(decode_item)?;
            if view.shows_row(&change.key, &item) {
                bytes += item.document.len();
                items.push(item);
            }
        }
        let lsn = if more { last } else { last.max(view.lsn) };
        let at = Position { range_id: self.range_id, lsn: view.lsn.max(last), item_lsn: 0 };
        Ok(PartitionChanges { items, lsn, more, at })
    }
}

/// The LSN after which the changes of `second` and later begin. Times of commits grow with their LSNs as far as the
/// clock does, so this halves the feed instead of reading it.
fn before_second(snapshot: &dyn Snapshot, second: u32, newest_lsn: u64) -> Result<u64> {
    let reached = |after: u64| -> Result<bool> {
        let row =
            snapshot.scan(Table::Feed, keys::feed_after(after), Direction::Forward).next_row().transpose()?;
        row.map_or(Ok(true), |row| Ok(FeedRow::decode(&row.value)?.ts >= second))
    };
    let (mut low, mut high) = (0, newest_lsn);
    while low < high {
        let middle = low + (high - low) / 2;
        if reached(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
