//! The change feed, latest version: every item once, at its last change, in the order of commits.
//!
//! The feed holds one row for each item, moved to the end whenever the item changes, and rows for deletes, which this
//! mode passes by.

use orrery_storage::{Direction, Snapshot, Table, keys};

use super::Partition;
use super::commit_page::{CommitPage, InSpan};
use super::rows::{FeedRow, damaged, decode_detached};
use super::scan::{PageLimits, Span};
use crate::error::Result;
use crate::feed::ChangesFrom;
use crate::item::{Item, Position};

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
        let in_span = InSpan::new(span);
        let mut page = CommitPage::after(after, limits);
        let mut items: Vec<Item> = Vec::new();
        let mut rows = snapshot.scan(Table::Feed, keys::feed_after(after), Direction::Forward);
        while let Some(row) = rows.next_row().transpose()? {
            let Some(keys::FeedTableKey::Feed { lsn, .. }) = keys::FeedTableKey::decode(&row.key) else {
                return Err(damaged("feed"));
            };
            if !page.takes(lsn) {
                break;
            }
            let change = FeedRow::decode(&row.value)?;
            if !change.kind.leaves_item() || !in_span.holds(&change.key) {
                continue;
            }
            let item = snapshot
                .get(Table::Items, &change.key)?
                .ok_or_else(|| damaged("feed"))
                .and_then(decode_detached)?;
            if view.shows_row(&change.key, &item) {
                page.holds(item.document.len());
                items.push(item);
            }
        }
        let at = self.stands_at(view.lsn.max(page.last()), 0);
        Ok(PartitionChanges { items, lsn: page.seen(view.lsn), more: page.more, at })
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
